/* flash_decode - decode attention on the shapes of a real model: plan, launch, check against double.
   cc -O2 examples/flash_decode.c -o flash_decode -ldl -lm

     flash_decode [heads=32] [kv_heads=8] [head_dim=128] [type=f16|bf16|f32] [lengths=4096,1,777,2048]
                  [repeat=3] [seed=...]

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
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/flash_decode.h"
#include "../tests/sim/ptxsim.h"

#define MAX_BATCH 256

typedef struct options {
    ptxk_flash_decode_desc desc;
    uint32_t lengths[MAX_BATCH], batch, longest, repeat, seed;
} options;

/* xorshift64*: the test data */
static double uniform(uint64_t *state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)((*state * 2685821657736338717ull) >> 11) / 4503599627370496.0 - 1.0;
}

static int parse_number(const char *name, const char *text, uint32_t highest, uint32_t *out) {
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text == 0 || *text == '-' || *end || n > highest) {
        fprintf(stderr, "flash_decode: %s=%s is not a number from 0 to %u\n", name, text, highest);
        return 0;
    }
    *out = (uint32_t)n;
    return 1;
}

static int parse_lengths(options *o, char *text) {
    char *item = text;
    for (o->batch = 0; item; o->batch++) {
        char *comma = strchr(item, ',');
        if (comma) *comma = 0;
        if (o->batch == MAX_BATCH) {
            fprintf(stderr, "flash_decode: more than %d lengths\n", MAX_BATCH);
            return 0;
        }
        if (!parse_number("lengths", item, 1u << 24, &o->lengths[o->batch])) return 0;
        if (o->lengths[o->batch] > o->longest) o->longest = o->lengths[o->batch];
        item = comma ? comma + 1 : NULL;
    }
    return 1;
}

static int parse_type(options *o, const char *text) {
    static const ptx_type types[] = {PTX_F32, PTX_F16, PTX_BF16};
    size_t i;
    for (i = 0; i < 3; i++)
        if (!strcmp(text, ptx_type_name(types[i]))) {
            o->desc.kv_type = (uint32_t)types[i];
            return 1;
        }
    fprintf(stderr, "flash_decode: type=%s is not f32, f16 or bf16\n", text);
    return 0;
}

static int parse_option(options *o, const char *name, char *value) {
    if (!strcmp(name, "heads")) return parse_number(name, value, 1u << 20, &o->desc.heads);
    if (!strcmp(name, "kv_heads")) return parse_number(name, value, 1u << 20, &o->desc.kv_heads);
    if (!strcmp(name, "head_dim")) return parse_number(name, value, 1u << 20, &o->desc.head_dim);
    if (!strcmp(name, "repeat")) return parse_number(name, value, 100000, &o->repeat);
    if (!strcmp(name, "seed")) return parse_number(name, value, 0xffffffffu, &o->seed);
    if (!strcmp(name, "type")) return parse_type(o, value);
    if (!strcmp(name, "lengths")) {
        o->longest = 0;
        return parse_lengths(o, value);
    }
    fprintf(stderr, "flash_decode: there is no option %s=; the source's first lines list them\n", name);
    return 0;
}

static int parse(options *o, int argc, char **argv) {
    int i;
    for (i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value) {
            fprintf(stderr, "flash_decode: '%s' is not of the form option=value\n", argv[i]);
            return 0;
        }
        *value++ = 0;
        if (!parse_option(o, argv[i], value)) return 0;
    }
    return 1;
}

static void *need(size_t bytes) {
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) {
        fprintf(stderr, "flash_decode: out of memory on the host: %lu bytes\n", (unsigned long)bytes);
        exit(1);
    }
    return p;
}

/* One step that may fail: say why and leave. */
static void must(ptxcu *cu, ptxcu_code failed) {
    if (!failed) return;
    fprintf(stderr, "flash_decode: %s\n", ptxcu_get_error(cu)->message);
    ptxcu_close(cu);
    exit(1);
}

/* Device memory, kept in mind until the end. */
static ptxcu_buffer buffers[2 * MAX_BATCH + 8];
static unsigned buffer_count;

static ptxcu_buffer device_bytes(ptxcu *cu, size_t bytes) {
    ptxcu_buffer *b = &buffers[buffer_count++];
    must(cu, ptxcu_alloc(cu, bytes, b));
    return *b;
}

static ptxcu_buffer to_device(ptxcu *cu, const void *data, size_t bytes) {
    ptxcu_buffer b = device_bytes(cu, bytes);
    must(cu, ptxcu_upload(cu, b, 0, data, bytes, NULL));
    return b;
}

int main(int argc, char **argv) {
    options o = {{32, 8, 128, PTX_F16, 0.0f, 0, 0, 0, 0, 0.0f, 0, 0, 0}, {4096, 1, 777, 2048}, 4, 4096, 3, 0};
    ptxk_flash_decode_shape shape;
    ptxk_flash_decode_args args;
    ptxk_message why;
    ptx_plan plan;
    ptxcu *cu = NULL;
    ptxcu_program *program;
    const ptxcu_device *device;
    enum ref_format format;
    uint64_t k_address[MAX_BATCH], v_address[MAX_BATCH], state, bytes;
    size_t row, q_count, cache_bytes, i;
    void *k_host[MAX_BATCH], *v_host[MAX_BATCH];
    float *q, *out;
    double *expected, *bound, *lse, *lse_bound, worst = 0, worst_bound = 1, best_ms = 0;
    uint32_t b, wrong = 0, r;
    ptxcu_buffer buffer;
    ptxcu_event begin, end;
    int (*counters_get)(ptxsim_counters *, size_t) = NULL;
    void (*counters_reset)(void) = NULL;
    ptxsim_counters counted;
    void *symbol;

    o.seed = (uint32_t)time(NULL);
    if (!parse(&o, argc, argv)) return 2;
    if (o.repeat == 0) o.repeat = 1;
    must(cu, ptxcu_open(&cu, NULL));
    device = ptxcu_device_info(cu);
    printf("device     %s%s, %u multiprocessors\n", device->name,
           device->is_cpu_driver ? " - no GPU: this runs on the CPU driver" : "", device->sm_count);
    printf("shape      %u heads on %u, head_dim %u, %s cache, %u sequences, longest %u; seed %u\n",
           o.desc.heads, o.desc.kv_heads, o.desc.head_dim, ptx_type_name((ptx_type)o.desc.kv_type), o.batch,
           o.longest, o.seed);

    /* The plan: everything about the launches follows from the sizes. */
    o.desc.q_type = o.desc.out_type = PTX_F32;
    o.desc.queries = 1;
    shape.batch = o.batch;
    shape.max_len = o.longest;
    shape.max_seq = o.longest ? o.longest : 1;
    shape.sm_count = device->sm_count;
    shape.cluster = device->max_cluster;
    if (ptxk_flash_decode_plan(&o.desc, &shape, &plan, &why)) {
        fprintf(stderr, "%s\n", why.text);
        ptxcu_close(cu);
        return 2;
    }
    must(cu, ptxcu_operation(cu, ptxk_operation_find("flash_decode"), &o.desc, &program));
    for (r = 0; r < plan.launches; r++)
        printf("launch %u   grid %u x %u x %u, block %u%s%.0u\n", r, plan.launch[r].grid[0],
               plan.launch[r].grid[1], plan.launch[r].grid[2], plan.launch[r].block[0],
               plan.launch[r].cluster[2] ? ", clusters of " : "", plan.launch[r].cluster[2]);

    /* Random data, and poison where results belong. */
    state = (uint64_t)o.seed * 2 + 1;
    format = o.desc.kv_type == PTX_F32 ? REF_F32 : o.desc.kv_type == PTX_F16 ? REF_F16 : REF_BF16;
    row = (size_t)o.desc.heads * o.desc.head_dim;
    q_count = row * o.batch;
    cache_bytes = (size_t)o.desc.kv_heads * shape.max_seq * o.desc.head_dim * ref_bytes(format);
    q = (float *)need(q_count * sizeof *q);
    out = (float *)need(q_count * sizeof *out);
    for (i = 0; i < q_count; i++) q[i] = (float)(3 * uniform(&state));
    for (b = 0; b < o.batch; b++) {
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
    args.k_caches = to_device(cu, k_address, o.batch * sizeof *k_address).address;
    args.v_caches = to_device(cu, v_address, o.batch * sizeof *v_address).address;
    args.lengths = to_device(cu, o.lengths, o.batch * sizeof *o.lengths).address;
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
    for (r = 0; r < o.repeat; r++) {
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
    bytes = ptxk_flash_decode_bytes(&o.desc, o.lengths, o.batch);
    printf("time       %.3f ms, best of %u%s\n", best_ms, o.repeat,
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
    lse = (double *)need(o.desc.heads * sizeof *lse);
    lse_bound = (double *)need(o.desc.heads * sizeof *lse_bound);
    for (b = 0; b < o.batch; b++) {
        ref_attention about;
        memset(&about, 0, sizeof about);
        about.heads = o.desc.heads;
        about.kv_heads = o.desc.kv_heads;
        about.d = o.desc.head_dim;
        about.kv_format = format;
        about.scale = 1.0 / sqrt((double)o.desc.head_dim);
        about.rows = about.max_seq = shape.max_seq;
        about.length = o.lengths[b];
        about.splits = plan.launches ? plan.launch[0].grid[2] : 1;
        about.chunk = ptxk_flash_decode_chunk(&o.desc, o.lengths[b], about.splits);
        if (format != REF_F32 && (device->target & 0xfff) >= 80) about.tensor = device->is_cpu_driver ? 1 : 2;
        ref_flash_decode(&about, expected, bound, lse, lse_bound, q + b * row, k_host[b], v_host[b]);
        for (i = 0; i < row; i++) {
            double error = fabs((double)out[b * row + i] - expected[i]);
            if (!(error <= bound[i])) wrong++;
            if (error * worst_bound > worst * bound[i]) worst = error, worst_bound = bound[i];
        }
        free(k_host[b]);
        free(v_host[b]);
    }
    printf("error      %.3g at worst beside a tolerance of %.3g (derived from the arithmetic); %u of %lu "
           "wrong: %s\n",
           worst, worst_bound, wrong, (unsigned long)q_count, wrong ? "FAILED" : "ok");
    free(expected);
    free(bound);
    free(lse);
    free(lse_bound);
    free(q);
    free(out);
    while (buffer_count) ptxcu_free(cu, buffers[--buffer_count]);
    ptxcu_event_destroy(cu, begin);
    ptxcu_event_destroy(cu, end);
    ptxcu_close(cu);
    return wrong != 0;
}
