/* flash_prefill - attention of a whole prompt on tensor cores: plan, launch, check against double.
   cc -O2 examples/flash_prefill.c -o flash_prefill -ldl -lm

     flash_prefill [--seq 512] [--heads 4] [--kv-heads 2] [--head-dim 128] [--type f16|bf16|f32] [--causal 1]
                   [--window 0] [--repeat 1] [--seed N] [--help]

   Prints device, plan, time, products per second, and the largest error beside its tolerance. Exits with 1
   when a result is wrong. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./flash_prefill */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_FLASH_PREFILL /* no other is compiled */
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/flash_prefill.h"
#define EXAMPLE "flash_prefill"
#include "example.h"

/* A tensor of random numbers, here and on the device. */
static void *make(ptxcu *cu, enum ref_format format, size_t count, uint64_t *state, ptxcu_buffer *buffer) {
    void *data = need(count * ref_bytes(format));
    size_t i;
    for (i = 0; i < count; i++) ref_put(data, format, i, 2 * uniform(state));
    must(cu, ptxcu_alloc(cu, count * ref_bytes(format), buffer));
    must(cu, ptxcu_upload(cu, *buffer, 0, data, count * ref_bytes(format), NULL));
    return data;
}

int main(int argc, char **argv) {
    static const ptx_type types[] = {PTX_F16, PTX_BF16, PTX_F32};
    uint32_t seq = 512, causal = 1, repeat = 1, seed = (uint32_t)time(NULL), type = 0;
    ptxk_flash_prefill_desc desc;
    const option options[] = {
        {"seq", OPTION_U32, &seq, 1, 1 << 24, NULL, "queries and keys"},
        {"heads", OPTION_U32, &desc.heads, 1, 65536, NULL, "heads of q"},
        {"kv-heads", OPTION_U32, &desc.kv_heads, 1, 65536, NULL,
         "heads of k and v; heads is a multiple of it"},
        {"head-dim", OPTION_U32, &desc.head_dim, 1, 65536, NULL,
         "elements of a head, a multiple of 8 to 256"},
        {"type", OPTION_CHOICE, &type, 0, 0, "f16|bf16|f32", "of q, k, v and out"},
        {"causal", OPTION_U32, &causal, 0, 1, NULL, "1: a query sees no later key"},
        {"window", OPTION_U32, &desc.window, 0, 1 << 30, NULL, "keys that a query sees; 0: all"},
        {"repeat", OPTION_U32, &repeat, 1, 100000, NULL, "launches; the best time counts"},
        {"seed", OPTION_U32, &seed, 0, 0xffffffff, NULL, "of the random data"},
    };
    const command_line line = {EXAMPLE, "attention of a whole prompt on tensor cores",
                               options, sizeof options / sizeof *options,
                               NULL,    NULL,
                               0};
    ptxk_flash_prefill_shape shape;
    ptxk_flash_prefill_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    ptxcu_buffer q, k, v, out;
    ptxcu_event begin, end;
    ref_prefill r;
    enum ref_format format;
    size_t queries, keys;
    uint64_t state;
    uint32_t d, i, e, h, step, rows = 0, wrong = 0;
    double best_ms = 0, worst = 0, worst_bound = 0, truth[256], bound[256], lse[2], products;
    void *q_host, *k_host, *v_host, *result;
    progress checking = {"checking", 0, 0};

    memset(&desc, 0, sizeof desc);
    desc.heads = 4, desc.kv_heads = 2, desc.head_dim = 128;
    if (!parse_command_line(&line, argc, argv)) return 2;
    desc.type = desc.out_type = types[type];
    desc.flags = causal ? PTXK_PREFILL_CAUSAL : 0;
    d = desc.head_dim;
    memset(&shape, 0, sizeof shape);
    shape.batch = 1, shape.q_len = shape.kv_len = seq;
    if (ptxk_flash_prefill_plan(&desc, &shape, &plan, &why)) { /* before anything is opened */
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    shape.target = device->target; /* some targets have a plan of their own */
    (void)ptxk_flash_prefill_plan(&desc, &shape, &plan, &why);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u queries and keys, %u heads on %u of %u, %s%s, window %u; seed %u\n", seq,
           desc.heads, desc.kv_heads, d, ptx_type_name((ptx_type)desc.type), causal ? ", causal" : "",
           desc.window, seed);
    if (plan.launches)
        printf("launch     grid %u x %u, block %u, %u bytes of shared memory\n", plan.launch[0].grid[0],
               plan.launch[0].grid[1], plan.launch[0].block[0], plan.launch[0].shared_bytes);

    /* q, k, v and out as [seq, heads, d]: the strides of what is packed. */
    format = desc.type == PTX_F32 ? REF_F32 : desc.type == PTX_F16 ? REF_F16 : REF_BF16;
    queries = (size_t)seq * desc.heads * d;
    keys = (size_t)seq * desc.kv_heads * d;
    state = (uint64_t)seed * 2 + 1;
    memset(&r, 0, sizeof r);
    r.q = q_host = make(cu, format, queries, &state, &q);
    r.k = k_host = make(cu, format, keys, &state, &k);
    r.v = v_host = make(cu, format, keys, &state, &v);
    result = make(cu, format, queries, &state, &out);
    memset(&args, 0, sizeof args);
    args.q = q.address, args.k = k.address, args.v = v.address, args.out = out.address;
    args.batch = 1, args.q_len = args.kv_len = seq;
    ptxk_flash_prefill_pack(&desc, &shape, &args);
    must(cu, ptxcu_operation(cu, ptxk_operation_find("flash_prefill"), &desc, &program));
    must(cu, ptxcu_event_create(cu, &begin));
    must(cu, ptxcu_event_create(cu, &end));
    for (i = 0; i < repeat; i++) {
        float ms;
        must(cu, ptxcu_event_record(cu, begin, NULL));
        must(cu, ptxcu_run(cu, program, &plan, &args, sizeof args, NULL));
        must(cu, ptxcu_event_record(cu, end, NULL));
        must(cu, ptxcu_sync(cu));
        must(cu, ptxcu_event_elapsed_ms(cu, begin, end, &ms));
        if (i == 0 || ms < best_ms) best_ms = ms;
    }
    must(cu, ptxcu_download(cu, result, out, 0, queries * ref_bytes(format), NULL));
    must(cu, ptxcu_sync(cu));
    products = 4.0 * seq * seq * desc.heads * d / (causal ? 2 : 1);
    printf("time       %.3f ms, best of %u", best_ms, repeat);
    if (device->is_cpu_driver)
        printf(" (of a CPU that interprets PTX: says nothing about a GPU)\n");
    else
        printf(": %.1f TFLOP/s\n", products / best_ms / 1e9);

    /* Every query of a short prompt, some 100 of a long one, against double. */
    r.format = r.out = format;
    r.d = d;
    r.scale = 1 / sqrt(d);
    r.causal = causal != 0;
    r.window = desc.window;
    r.tile = 16;
    r.weight = format == REF_F32 ? 1.5 * 0x1p-20 : ref_unit(format);
    r.product = format == REF_F32 ? r.weight : 0;
    step = seq > 200 ? seq / 100 : 1;
    for (i = 0; i < seq; i += step) {
        show_progress(&checking, i, seq);
        for (h = 0; h < desc.heads; h++, rows++) {
            size_t at = ((size_t)i * desc.heads + h) * d, key = (size_t)(h * desc.kv_heads / desc.heads) * d;
            int bad = 0;
            ref_prefill_row(&r, at, key, (size_t)args.k_row_stride, key, (size_t)args.v_row_stride, i, seq,
                            truth, bound, lse);
            for (e = 0; e < d; e++) {
                double error = fabs(ref_get(result, format, at + e) - truth[e]);
                if (!(error <= bound[e])) bad = 1;
                keep_worst(error, bound[e], &worst, &worst_bound);
            }
            wrong += (uint32_t)bad;
        }
    }
    show_progress(&checking, seq, seq);
    printf("error      %.3g at worst beside a tolerance of %.3g (derived from the arithmetic); "
           "%u of %u rows wrong: %s\n",
           worst, worst_bound, wrong, rows, wrong ? "FAILED" : "ok");
    ptxcu_event_destroy(cu, begin);
    ptxcu_event_destroy(cu, end);
    ptxcu_free(cu, q);
    ptxcu_free(cu, k);
    ptxcu_free(cu, v);
    ptxcu_free(cu, out);
    free(q_host);
    free(k_host);
    free(v_host);
    free(result);
    ptxcu_close(cu);
    return wrong != 0;
}
