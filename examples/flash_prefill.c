/* flash_prefill - attention of a whole prompt on tensor cores: plan, launch, check against double.
   cc -O2 examples/flash_prefill.c -o flash_prefill -ldl -lm

     flash_prefill [seq=512] [heads=4] [kv_heads=2] [head_dim=128] [type=f16|bf16|f32] [causal=1] [window=0]
                   [repeat=1] [seed=...]

   Prints device, plan, time, products per second, and the largest error beside its tolerance. Exits with 1
   when a result is wrong. Runs on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./flash_prefill */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/flash_prefill.h"

typedef struct options {
    ptxk_flash_prefill_desc desc;
    uint32_t seq, causal, repeat, seed;
} options;

static int parse_option(options *o, const char *name, const char *value) {
    static const char *const names[] = {"seq",    "heads",  "kv_heads", "head_dim",
                                        "causal", "window", "repeat",   "seed"};
    uint32_t *const fields[] = {&o->seq,    &o->desc.heads,  &o->desc.kv_heads, &o->desc.head_dim,
                                &o->causal, &o->desc.window, &o->repeat,        &o->seed};
    size_t i;
    char *end;
    if (!strcmp(name, "type")) {
        o->desc.type = !strcmp(value, "f16")    ? PTX_F16
                       : !strcmp(value, "bf16") ? PTX_BF16
                       : !strcmp(value, "f32")  ? PTX_F32
                                                : 0u;
        if (!o->desc.type) fprintf(stderr, "flash_prefill: type=%s is not f16, bf16 or f32\n", value);
        return o->desc.type != 0;
    }
    for (i = 0; i < 8; i++) {
        unsigned long n;
        if (strcmp(name, names[i])) continue;
        n = strtoul(value, &end, 10);
        *fields[i] = (uint32_t)n;
        if (*value && *value != '-' && !*end && n <= 0xfffffffful) return 1;
        fprintf(stderr, "flash_prefill: %s=%s is not a number\n", name, value);
        return 0;
    }
    fprintf(stderr, "flash_prefill: there is no option %s=; the source's first lines list them\n", name);
    return 0;
}

/* One step that may fail: say why and leave. */
static void must(ptxcu *cu, ptxcu_code failed) {
    if (!failed) return;
    fprintf(stderr, "flash_prefill: %s\n", ptxcu_get_error(cu)->message);
    ptxcu_close(cu);
    exit(1);
}

/* A tensor of random numbers, here and on the device. */
static void *make(ptxcu *cu, enum ref_format format, size_t count, uint64_t *state, ptxcu_buffer *buffer) {
    void *data = malloc(count * ref_bytes(format) + 1);
    size_t i;
    if (!data) {
        fprintf(stderr, "flash_prefill: no memory for %lu elements\n", (unsigned long)count);
        ptxcu_close(cu);
        exit(1);
    }
    for (i = 0; i < count; i++) { /* xorshift64* */
        *state ^= *state >> 12;
        *state ^= *state << 25;
        *state ^= *state >> 27;
        ref_put(data, format, i, (double)((*state * 2685821657736338717ull) >> 11) / 2251799813685248.0 - 2);
    }
    must(cu, ptxcu_alloc(cu, count * ref_bytes(format), buffer));
    must(cu, ptxcu_upload(cu, *buffer, 0, data, count * ref_bytes(format), NULL));
    return data;
}

int main(int argc, char **argv) {
    options o;
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
    double best_ms = 0, worst = 0, worst_bound = 1, truth[256], bound[256], lse[2], products;
    void *q_host, *k_host, *v_host, *result;
    int n;

    memset(&o, 0, sizeof o);
    o.desc.heads = 4, o.desc.kv_heads = 2, o.desc.head_dim = 128, o.desc.type = PTX_F16;
    o.seq = 512, o.causal = 1, o.repeat = 1, o.seed = (uint32_t)time(NULL);
    for (n = 1; n < argc; n++) {
        char *value = strchr(argv[n], '=');
        if (value) *value++ = 0;
        if (!parse_option(&o, argv[n], value ? value : "")) return 2;
    }
    o.desc.out_type = o.desc.type;
    o.desc.flags = o.causal ? PTXK_PREFILL_CAUSAL : 0;
    d = o.desc.head_dim;
    memset(&shape, 0, sizeof shape);
    shape.batch = 1, shape.q_len = shape.kv_len = o.seq;
    if (ptxk_flash_prefill_plan(&o.desc, &shape, &plan, &why)) { /* before anything is opened */
        fprintf(stderr, "%s\n", why.text);
        return 2;
    }
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u queries and keys, %u heads on %u of %u, %s%s, window %u; seed %u\n", o.seq,
           o.desc.heads, o.desc.kv_heads, d, ptx_type_name((ptx_type)o.desc.type), o.causal ? ", causal" : "",
           o.desc.window, o.seed);
    if (plan.launches)
        printf("launch     grid %u x %u, block %u, %u bytes of shared memory\n", plan.launch[0].grid[0],
               plan.launch[0].grid[1], plan.launch[0].block[0], plan.launch[0].shared_bytes);

    /* q, k, v and out as [seq, heads, d]: the strides of what is packed. */
    format = o.desc.type == PTX_F32 ? REF_F32 : o.desc.type == PTX_F16 ? REF_F16 : REF_BF16;
    queries = (size_t)o.seq * o.desc.heads * d;
    keys = (size_t)o.seq * o.desc.kv_heads * d;
    state = (uint64_t)o.seed * 2 + 1;
    memset(&r, 0, sizeof r);
    r.q = q_host = make(cu, format, queries, &state, &q);
    r.k = k_host = make(cu, format, keys, &state, &k);
    r.v = v_host = make(cu, format, keys, &state, &v);
    result = make(cu, format, queries, &state, &out);
    memset(&args, 0, sizeof args);
    args.q = q.address, args.k = k.address, args.v = v.address, args.out = out.address;
    args.batch = 1, args.q_len = args.kv_len = o.seq;
    ptxk_flash_prefill_pack(&o.desc, &shape, &args);
    must(cu, ptxcu_operation(cu, ptxk_operation_find("flash_prefill"), &o.desc, &program));
    must(cu, ptxcu_event_create(cu, &begin));
    must(cu, ptxcu_event_create(cu, &end));
    for (i = 0; i < (o.repeat ? o.repeat : 1); i++) {
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
    products = 4.0 * o.seq * o.seq * o.desc.heads * d / (o.causal ? 2 : 1);
    printf("time       %.3f ms, best of %u", best_ms, o.repeat);
    if (device->is_cpu_driver)
        printf(" (of a CPU that interprets PTX: says nothing about a GPU)\n");
    else
        printf(": %.1f TFLOP/s\n", products / best_ms / 1e9);

    /* Every query of a short prompt, some 100 of a long one, against double. */
    r.format = r.out = format;
    r.d = d;
    r.scale = 1 / sqrt(d);
    r.causal = o.causal != 0;
    r.window = o.desc.window;
    r.tile = 16;
    r.weight = format == REF_F32 ? 1.5 * 0x1p-20 : ref_unit(format);
    r.product = format == REF_F32 ? r.weight : 0;
    step = o.seq > 200 ? o.seq / 100 : 1;
    for (i = 0; i < o.seq; i += step) {
        for (h = 0; h < o.desc.heads; h++, rows++) {
            size_t at = ((size_t)i * o.desc.heads + h) * d,
                   key = (size_t)(h * o.desc.kv_heads / o.desc.heads) * d;
            int bad = 0;
            ref_prefill_row(&r, at, key, (size_t)args.k_row_stride, key, (size_t)args.v_row_stride, i, o.seq,
                            truth, bound, lse);
            for (e = 0; e < d; e++) {
                double error = fabs(ref_get(result, format, at + e) - truth[e]);
                if (!(error <= bound[e])) bad = 1;
                if (error * worst_bound > worst * bound[e]) worst = error, worst_bound = bound[e];
            }
            wrong += (uint32_t)bad;
        }
    }
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
