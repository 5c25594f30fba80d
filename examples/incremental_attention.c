/* incremental_attention - a token loop: append K and V to the caches, attend, token after token.
   cc -O2 examples/incremental_attention.c -o incremental_attention -ldl -lm

     incremental_attention [--tokens 24] [--seed N] [--help]

   Three sequences of different lengths on one stream, first by a launch for each step, then the same again as
   one graph, launched once a token: lengths and positions advance in device memory, so nothing in the graph
   changes. Prints time and largest error beside its tolerance, and whether both ways gave the same bits. Runs
   on the GPU; without one, on the CPU driver:
   PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./incremental_attention */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY (PTXK_OP_FLASH_DECODE | PTXK_OP_KV_SCATTER) /* no others are compiled */
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "../ptxgen_cuda.h"
#include "../tests/reference/flash_decode.h"
#define EXAMPLE "incremental_attention"
#include "example.h"

enum { BATCH = 3, HEADS = 8, KV_HEADS = 2, DIM = 64, MAX_SEQ = 512, TOKENS_MAX = 256 };
enum { Q_COUNT = BATCH * HEADS * DIM, KV_COUNT = BATCH * KV_HEADS * DIM, CACHE = KV_HEADS * MAX_SEQ * DIM };
static const uint32_t start_lengths[BATCH] = {0, 37, 250};

/* What the model's projections would write in each step is here made before, and taken step by step. */
typedef struct step_args {
    uint64_t all_q, all_k, all_v; /* f32 [tokens][...] */
    uint64_t q, k, v;             /* of this step */
    uint64_t lengths, positions, step;
} step_args;

static ptx_val pointer(ptx_kernel *k, ptx_val args, size_t offset) {
    ptx_val p = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offset));
    return ptx_ptr(p, PTX_GLOBAL);
}

/* to[i] = from[step * count + i] for i < count */
static void take(ptx_kernel *k, ptx_val from, ptx_val to, ptx_val step, ptx_val i, uint32_t count) {
    ptx_val inside = ptx_setp(k, PTX_LT, i, ptx_u32(count)), at, x;
    ptx_if(k, inside);
    at = ptx_mad(k, step, ptx_u32(count), i);
    at = ptx_ptr_add(k, from, at, 4);
    x = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    at = ptx_ptr_add(k, to, i, 4);
    ptx_st(k, PTX_F32, ptx_at(at, 0), x);
    ptx_end(k);
}

/* Two entries: `take` copies this step's q, k, v; `tick` gives each sequence its next position. */
static ptx_module *build_steps(ptxcu *cu) {
    ptx_module *m;
    ptx_kernel *k;
    ptx_val args, i, tid, step, length, at, p;
    ptxcu_module_new(cu, &m); /* NULL: all that follows does nothing, and ptxcu_load refuses it */
    k = ptx_entry(m, "take");
    args = ptx_param_bytes(k, "args", sizeof(step_args), 8);
    i = ptx_ctaid_x(k);
    tid = ptx_tid_x(k);
    i = ptx_mad(k, i, ptx_u32(256), tid);
    at = pointer(k, args, offsetof(step_args, step));
    step = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    at = pointer(k, args, offsetof(step_args, all_q));
    p = pointer(k, args, offsetof(step_args, q));
    take(k, at, p, step, i, Q_COUNT);
    at = pointer(k, args, offsetof(step_args, all_k));
    p = pointer(k, args, offsetof(step_args, k));
    take(k, at, p, step, i, KV_COUNT);
    at = pointer(k, args, offsetof(step_args, all_v));
    p = pointer(k, args, offsetof(step_args, v));
    take(k, at, p, step, i, KV_COUNT);
    ptx_ret(k);

    k = ptx_entry(m, "tick");
    args = ptx_param_bytes(k, "args", sizeof(step_args), 8);
    tid = ptx_tid_x(k);
    at = pointer(k, args, offsetof(step_args, lengths));
    at = ptx_ptr_add(k, at, tid, 4);
    length = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    i = ptx_add(k, length, ptx_u32(1));
    ptx_st(k, PTX_U32, ptx_at(at, 0), i);
    at = pointer(k, args, offsetof(step_args, positions));
    at = ptx_ptr_add(k, at, tid, 4);
    ptx_st(k, PTX_U32, ptx_at(at, 0), length);
    p = ptx_setp(k, PTX_EQ, tid, ptx_u32(0));
    ptx_if(k, p);
    at = pointer(k, args, offsetof(step_args, step));
    step = ptx_ld(k, PTX_U32, ptx_at(at, 0));
    step = ptx_add(k, step, ptx_u32(1));
    ptx_st(k, PTX_U32, ptx_at(at, 0), step);
    ptx_end(k);
    ptx_ret(k);
    return m;
}

typedef struct loop {
    ptxcu_program *steps;
    ptx_plan take, tick;
    step_args step;
    ptxcu_call scatter, attention;
} loop;

/* One token of every sequence. */
static void one_step(ptxcu *cu, loop *l, ptxcu_stream stream) {
    must(cu, ptxcu_run(cu, l->steps, &l->take, &l->step, sizeof l->step, stream));
    must(cu, ptxcu_run(cu, l->steps, &l->tick, &l->step, sizeof l->step, stream));
    must(cu, ptxcu_call_run(cu, &l->scatter, stream));
    must(cu, ptxcu_call_run(cu, &l->attention, stream));
}

static ptx_plan one_launch(uint32_t entry, uint32_t grid, uint32_t block) {
    ptx_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.launches = 1;
    plan.launch[0].entry = entry;
    plan.launch[0].grid[0] = grid;
    plan.launch[0].block[0] = block;
    plan.launch[0].grid[1] = plan.launch[0].grid[2] = plan.launch[0].block[1] = plan.launch[0].block[2] = 1;
    plan.args_bytes = sizeof(step_args);
    return plan;
}

static ptxcu_tensor make(ptxcu *cu, ptx_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t c) {
    ptxcu_tensor t;
    uint64_t shape[3];
    shape[0] = a;
    shape[1] = b;
    shape[2] = c;
    must(cu, ptxcu_tensor_create(cu, type, rank, shape, &t));
    return t;
}

static float *all_q, *all_k, *all_v, out[2][Q_COUNT];
static uint16_t caches[2][BATCH][CACHE]; /* K and V as they are before the first token */

/* Checks `have` against double: the caches with the tokens appended. */
static int check(const ptxcu_device *device, const float *have, uint32_t tokens, const loop *l,
                 const ptxk_flash_decode_desc *desc) {
    static double want[HEADS * DIM], bound[HEADS * DIM], lse[HEADS], lse_bound[HEADS];
    ref_attention r;
    static uint16_t full[2][CACHE];
    double worst = 0, worst_bound = 0;
    uint32_t b, g, t, e, which, wrong = 0, i;
    for (b = 0; b < BATCH; b++) {
        uint32_t length = start_lengths[b] + tokens;
        memcpy(full[0], caches[0][b], sizeof full[0]);
        memcpy(full[1], caches[1][b], sizeof full[1]);
        for (which = 0; which < 2; which++)
            for (t = 0; t < tokens; t++)
                for (g = 0; g < KV_HEADS; g++)
                    for (e = 0; e < DIM; e++)
                        full[which][(g * MAX_SEQ + start_lengths[b] + t) * DIM + e] =
                            ref_to_f16((which ? all_v : all_k)[((t * BATCH + b) * KV_HEADS + g) * DIM + e]);
        memset(&r, 0, sizeof r);
        r.heads = HEADS;
        r.kv_heads = KV_HEADS;
        r.d = DIM;
        r.kv_format = REF_F16;
        r.scale = 1.0 / sqrt((double)DIM);
        r.rows = r.max_seq = MAX_SEQ;
        r.length = length;
        r.splits = l->attention.plan.launch[0].grid[2];
        r.chunk = ptxk_flash_decode_chunk(desc, length, l->attention.plan.launch[0].grid[2]);
        if ((device->target & 0xfff) >= 80) r.tensor = 1;
        ref_flash_decode(&r, want, bound, lse, lse_bound, all_q + ((tokens - 1) * BATCH + b) * HEADS * DIM,
                         full[0], full[1]);
        for (i = 0; i < HEADS * DIM; i++) {
            double error = fabs((double)have[b * HEADS * DIM + i] - want[i]);
            if (!(error <= bound[i])) wrong++;
            keep_worst(error, bound[i], &worst, &worst_bound);
        }
    }
    printf("error      %.3g at worst beside a tolerance of %.3g (derived from the arithmetic); %u of %u "
           "wrong: %s\n",
           worst, worst_bound, wrong, (unsigned)Q_COUNT, wrong ? "FAILED" : "ok");
    return wrong != 0;
}

int main(int argc, char **argv) {
    uint32_t tokens = 24, round, t, i;
    uint64_t seed = (uint64_t)time(NULL), state;
    const option options[] = {
        {"tokens", OPTION_U32, &tokens, 1, TOKENS_MAX, NULL, "steps of the loop"},
        {"seed", OPTION_U64, &seed, 0, 9007199254740991.0, NULL, "of the random data"},
    };
    const command_line line = {EXAMPLE, "append to the caches and attend, token after token",
                               options, sizeof options / sizeof *options,
                               NULL,    NULL,
                               0};
    const ptxk_flash_decode_desc form = {HEADS,   KV_HEADS, DIM, PTX_F16, 0, PTX_F32,
                                         PTX_F32, 1,        0,   0,       0, 0,       0};
    ptxcu_flash_decode_desc attention;
    ptxcu_kv_scatter_desc scatter;
    ptxcu_kv_cache cache;
    ptxcu_tensor all[3], step;
    ptx_module *m;
    ptxcu *cu;
    ptxcu_stream stream;
    ptxcu_event begin, end;
    ptxcu_graph graph = NULL;
    uint32_t zero = 0;
    int failed = 0;
    loop l;
    if (!parse_command_line(&line, argc, argv)) return 2;
    memset(&l, 0, sizeof l);
    memset(&attention, 0, sizeof attention);
    memset(&scatter, 0, sizeof scatter);
    state = seed * 2862933555777941757ull + 3037000493ull;
    all_q = (float *)need(sizeof(float) * tokens * Q_COUNT);
    all_k = (float *)need(sizeof(float) * tokens * KV_COUNT);
    all_v = (float *)need(sizeof(float) * tokens * KV_COUNT);
    for (i = 0; i < tokens * Q_COUNT; i++) all_q[i] = (float)(2 * uniform(&state));
    for (i = 0; i < tokens * KV_COUNT; i++)
        all_k[i] = (float)uniform(&state), all_v[i] = (float)uniform(&state);
    for (i = 0; i < 2 * BATCH * CACHE; i++) (&caches[0][0][0])[i] = ref_to_f16(uniform(&state));

    if (ptxcu_open(&cu, NULL)) {
        fprintf(stderr, "incremental_attention: %s\n", ptxcu_get_error(cu)->message);
        ptxcu_close(cu);
        return 1;
    }
    printf("device     %s\n", ptxcu_device_info(cu)->name);
    printf("shape      %d sequences of %u, %u, %u keys and %u tokens more; %d heads on %d, head_dim %d; seed "
           "%llu\n",
           BATCH, start_lengths[0], start_lengths[1], start_lengths[2], tokens, HEADS, KV_HEADS, DIM,
           (unsigned long long)seed);
    must(cu, ptxcu_stream_create(cu, &stream));
    m = build_steps(cu);
    must(cu, ptxcu_load(cu, m, &l.steps));
    ptx_module_free(m);
    l.take = one_launch(0, (Q_COUNT + 255) / 256, 256);
    l.tick = one_launch(1, 1, BATCH);

    must(cu, ptxcu_kv_cache_create(cu, PTX_F16, BATCH, KV_HEADS, MAX_SEQ, DIM, &cache));
    all[0] = make(cu, PTX_F32, 2, tokens, Q_COUNT, 0);
    all[1] = make(cu, PTX_F32, 2, tokens, KV_COUNT, 0);
    all[2] = make(cu, PTX_F32, 2, tokens, KV_COUNT, 0);
    step = make(cu, PTX_U32, 1, 1, 0, 0);
    scatter.k = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM);
    scatter.v = make(cu, PTX_F32, 3, BATCH, KV_HEADS, DIM);
    scatter.positions = make(cu, PTX_U32, 1, BATCH, 0, 0);
    scatter.sequence_step = 1; /* one token of each sequence */
    scatter.cache = &cache;
    attention.q = make(cu, PTX_F32, 3, BATCH, HEADS, DIM);
    attention.out = make(cu, PTX_F32, 3, BATCH, HEADS, DIM);
    attention.lengths = make(cu, PTX_U32, 1, BATCH, 0, 0);
    attention.cache = &cache;
    must(cu, ptxcu_kv_scatter_prepare(cu, &scatter, &l.scatter));
    must(cu, ptxcu_flash_decode_prepare(cu, &attention, &l.attention)); /* says what workspace it needs */
    must(cu, ptxcu_workspace_create(cu, &l.attention, stream, &attention.workspace));
    must(cu, ptxcu_flash_decode_prepare(cu, &attention, &l.attention));
    must(cu, ptxcu_tensor_upload(cu, &all[0], all_q, sizeof(float) * tokens * Q_COUNT, stream));
    must(cu, ptxcu_tensor_upload(cu, &all[1], all_k, sizeof(float) * tokens * KV_COUNT, stream));
    must(cu, ptxcu_tensor_upload(cu, &all[2], all_v, sizeof(float) * tokens * KV_COUNT, stream));
    l.step.all_q = all[0].address;
    l.step.all_k = all[1].address;
    l.step.all_v = all[2].address;
    l.step.q = attention.q.address;
    l.step.k = scatter.k.address;
    l.step.v = scatter.v.address;
    l.step.lengths = attention.lengths.address;
    l.step.positions = scatter.positions.address;
    l.step.step = step.address;

    must(cu, ptxcu_event_create(cu, &begin));
    must(cu, ptxcu_event_create(cu, &end));
    for (round = 0; round < 2; round++) {
        float ms;
        must(cu, ptxcu_tensor_upload(cu, &cache.k, caches[0], sizeof caches[0], stream));
        must(cu, ptxcu_tensor_upload(cu, &cache.v, caches[1], sizeof caches[1], stream));
        must(cu, ptxcu_tensor_upload(cu, &attention.lengths, start_lengths, sizeof start_lengths, stream));
        must(cu, ptxcu_tensor_upload(cu, &step, &zero, 4, stream));
        if (round == 1) {
            must(cu, ptxcu_graph_begin(cu, stream));
            one_step(cu, &l, stream);
            must(cu, ptxcu_graph_end(cu, stream, &graph));
        }
        must(cu, ptxcu_event_record(cu, begin, stream));
        for (t = 0; t < tokens; t++)
            if (round == 0)
                one_step(cu, &l, stream);
            else
                must(cu, ptxcu_graph_launch(cu, graph, stream));
        must(cu, ptxcu_event_record(cu, end, stream));
        must(cu, ptxcu_tensor_read(cu, out[round], &attention.out, sizeof out[0], stream));
        must(cu, ptxcu_event_elapsed_ms(cu, begin, end, &ms));
        printf("%-10s %.3f ms a token%s\n", round ? "graph" : "launches", (double)ms / tokens,
               ptxcu_device_info(cu)->is_cpu_driver
                   ? " (of a CPU that interprets PTX: says nothing about a GPU)"
                   : "");
        failed |= check(ptxcu_device_info(cu), out[round], tokens, &l, &form);
    }
    if (memcmp(out[0], out[1], sizeof out[0])) failed = 1;
    printf("the graph gives %s\n", memcmp(out[0], out[1], sizeof out[0]) ? "OTHER BITS" : "the same bits");
    must(cu, ptxcu_graph_destroy(cu, graph));
    must(cu, ptxcu_event_destroy(cu, begin));
    must(cu, ptxcu_event_destroy(cu, end));
    must(cu, ptxcu_stream_destroy(cu, stream));
    ptxcu_close(cu); /* and all tensors with it */
    free(all_q);
    free(all_k);
    free(all_v);
    return failed;
}
