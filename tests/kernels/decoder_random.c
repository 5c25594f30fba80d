/* decoder_random.c - the persistent decoder on models drawn at random from all that it takes: shapes,
 * formats, caches, positions, targets, schedules; one to three launches, each going on where the last
 * stopped, beside a forward pass in double (decodertest.h).
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. PTXGEN_ROUNDS=n draws so many
 * models; what fails is named with the PTXGEN_SEED that, with PTXGEN_ROUNDS=1, draws only that. PTXGEN_TELL
 * names all. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../decodertest.h"

#define COUNT(list) ((uint32_t)(sizeof(list) / sizeof *(list)))
#define PICK(list) (list)[random_below(COUNT(list))]

static int one_in(uint32_t n) { return random_below(n) == 0; }

/* From 1 to most, rather a small one. */
static uint32_t any_size(uint32_t most) {
    uint32_t below = 1 + random_below(most);
    return 1 + random_below(below);
}

/* Columns, in units: a slice of a product, or several. */
static uint32_t any_columns(uint32_t unit, uint32_t most, int several) {
    return unit * (several ? 1024 / unit + any_size((most - 1024) / unit) : any_size(1024 / unit));
}

/* Of all matrices. */
static uint32_t sizes_weights(const ptxk_decoder_desc *d, uint32_t layers) {
    uint32_t wide = (d->heads + d->kv_heads) * d->head_dim;
    return layers * (2 * wide + 3 * d->ffn) * d->hidden + 2 * d->vocab * d->hidden;
}

/* Shapes, until there is one of about so many weights. */
static void draw_sizes(model *m) {
    static const uint32_t block[] = {8, 32, 256}, dims[] = {8, 32, 40, 64, 96, 128, 256};
    static const uint32_t groups[] = {1, 1, 2, 3, 4, 7, 8, 17}, heads[] = {1, 1, 2, 3, 5};
    ptxk_decoder_desc *d = &m->desc;
    uint32_t most, weights;
    int several = one_in(5);
    do {
        uint32_t unit = PICK(block), other = one_in(3) ? PICK(block) : unit;
        most = 1u << (several || unit + other > 256 ? 18 + random_below(3) : 14 + random_below(5));
        d->hidden = any_columns(unit, 2500, several);
        d->ffn = any_columns(other, 5000, one_in(4));
        d->head_dim = one_in(2) ? 8 * (1 + random_below(32)) : PICK(dims);
        d->kv_heads = PICK(heads);
        d->heads = d->kv_heads * PICK(groups);
        d->vocab = one_in(8) ? 1 : any_size(one_in(8) ? 6000 : 300);
        m->layers = any_size(4);
        weights = sizes_weights(d, m->layers);
    } while (weights > most || weights < most / 4);
}

static void draw_rope(model *m) {
    static const double theta[] = {0, 10, 500000, 1e6}, factor[] = {0, 0, 2.5, 8};
    ptxk_decoder_desc *d = &m->desc;
    uint32_t i;
    d->rope_dims = one_in(6) ? 0 : one_in(2) ? d->head_dim : 2 * (1 + random_below(d->head_dim / 2));
    d->rope_pairs = one_in(2) ? PTXK_ROPE_NEOX : PTXK_ROPE_INTERLEAVED;
    m->scaling.theta = PICK(theta);
    m->scaling.factor = PICK(factor);
    if (one_in(3) && d->rope_dims) {
        float *factors = (float *)keep(m, malloc(d->rope_dims / 2 * sizeof *factors));
        for (i = 0; i < d->rope_dims / 2; i++) factors[i] = (float)(4.5 + random_within(3.5));
        m->scaling.factors = factors;
    }
}

/* What the sequences have behind them, and how much room there is: at times to the last row, at times less
   than the tokens need. */
static void draw_sequences(model *m, uint32_t launches) {
    ptxk_decoder_desc *d = &m->desc;
    uint32_t most = 30000 / (m->layers * d->kv_heads * d->head_dim), b, longest = 0, first = 0, at;
    if (most > 300) most = 300;
    d->batch = one_in(2) ? 1 : 1 + random_below(4);
    m->n = 1 + random_below(d->batch > 2 ? 3 : 4);
    for (b = 0; b < d->batch; b++) {
        m->positions[b] = one_in(2) ? 0 : random_below(one_in(2) ? 8 : most + 1);
        m->prompt_lengths[b] = one_in(7) ? 0 : any_size(5);
        at = m->positions[b] + m->prompt_lengths[b];
        if (at > first) first = at;
        if (at + launches * (m->n + 2) > longest) longest = at + launches * (m->n + 2);
    }
    m->max_seq = one_in(2) ? longest + random_below(20) : first + random_below(m->n + 2);
    if (m->max_seq < m->n) m->max_seq = m->n;
    for (b = 0; b < 64; b++) m->prompts[b] = random_below(d->vocab);
}

static void draw_choice(model *m) {
    static const uint32_t top_k[] = {0, 1, 5, 40};
    static const float top_p[] = {0, 0.5f, 0.9f, 1};
    uint32_t i;
    m->seed = (uint64_t)random_u32() << 32 | random_u32();
    if (one_in(3)) {
        m->temperature = (float)(1.1 + random_within(0.9));
        m->top_k = PICK(top_k);
        m->top_p = PICK(top_p);
    }
    if (one_in(3)) m->end_count = 1 + random_below(PTXK_DECODER_ENDS);
    for (i = 0; i < m->end_count; i++) m->end_tokens[i] = random_below(m->desc.vocab);
}

/* Experts, together of about the weights that a feed-forward has; with 16 bits for each x: with 8 a score may be so
   far off that others are chosen. */
static void draw_mixture(model *m) {
    ptxk_decoder_desc *d = &m->desc;
    uint32_t experts = 1 + random_below(one_in(3) ? 40 : 9), unit = d->ffn % 256 ? d->ffn % 32 ? 8 : 32 : 256;
    uint32_t chosen = 1 + random_below(experts < 8 ? experts : 8), ffn = d->ffn;
    if (ffn / experts / unit > 0) ffn = ffn / experts / unit * unit;
    if (ffn * experts > 20000) return;
    while (chosen * d->batch > 32) chosen--;
    d->precision = PTXK_GEMV_EXACT;
    model_mix(m, ffn, experts, chosen);
    if (d->ffn) d->ffn = (1 + random_below(d->ffn / unit)) * unit;
}

static model draw_model(uint32_t launches) {
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16}, plain[] = {PTXK_F32, PTXK_F16, PTXK_BF16};
    static const uint32_t every[] = {PTXK_Q4_K, PTXK_Q5_K,   PTXK_Q6_K,   PTXK_Q8_0,  PTXK_Q4_0, PTXK_F16,
                                     PTXK_BF16, PTXK_F32,    PTXK_Q4_1,   PTXK_Q5_0,  PTXK_Q5_1, PTXK_Q2_K,
                                     PTXK_Q3_K, PTXK_IQ4_NL, PTXK_IQ4_XS, PTXK_MXFP4, PTXK_NVFP4, PTXK_IQ2_XXS,
                                     PTXK_IQ2_XS, PTXK_IQ2_S, PTXK_IQ3_XXS, PTXK_IQ3_S, PTXK_IQ1_S, PTXK_IQ1_M,
                                       PTXK_TQ1_0, PTXK_TQ2_0};
    static const uint32_t targets[] = {75, 80, 86, 89, 90, 100};
    uint32_t list[8], count = any_size(7), i, target;
    model m = model_start();
    ptxk_decoder_desc *d = &m.desc;
    draw_sizes(&m);
    draw_rope(&m);
    draw_sequences(&m, launches);
    draw_choice(&m);
    for (i = 0; i < count; i++) list[i] = PICK(every);
    if (d->hidden % 256 || d->ffn % 256 || d->heads * d->head_dim % 256) list[count++] = PICK(plain);
    d->kv_type = PICK(types);
    d->precision = one_in(3) ? PTXK_GEMV_FAST : PTXK_GEMV_EXACT;
    d->head_norms = random_below(2);
    d->embedding_scale = one_in(2) ? 0 : 0.5f + 3 * (float)random_below(100) / 100;
    d->activation = random_below(3) ? random_below(2) : PTXK_SWIGLU_CLAMPED;
    d->sinks = (uint32_t)one_in(3);
    d->window = one_in(2) ? 0 : 1 + random_below(one_in(2) ? 4 : 150);
    if (one_in(4)) d->scale = (float)(random_within(1.5) / sqrt((double)d->head_dim));
    if (one_in(4)) d->formats = PTXK_SET(PICK(every)); /* one that is perhaps used nowhere */
    do target = PICK(targets);
    while (target > (uint32_t)capability);
    m.target = PTX_SM(target);
    m.blocks = one_in(4) ? 1 : one_in(16) ? 132 : 2 + random_below(one_in(3) ? 24 : 5);
    m.watchdog = 0;
    m.period = one_in(3) ? 2 : 0;
    if (one_in(2)) draw_mixture(&m);
    model_fill(&m, list, count, one_in(3));
    return m;
}

/* The next launch goes on where this one stopped: with the token that came last, and at times words of a user
   behind it. One that has no room for that rests. */
static void draw_next(model *m) {
    uint32_t b, i, length;
    for (b = 0; b < m->desc.batch; b++) {
        uint32_t wrote = m->state.written[b];
        for (i = 0; i < 16; i++) m->prompts[16 * b + i] = random_below(m->desc.vocab);
        if (wrote) m->prompts[16 * b] = m->tokens[b * MOST_TOKENS + wrote - 1];
        m->positions[b] = m->state.length[b];
        length = one_in(7) ? 0 : one_in(2) ? 1 : 1 + random_below(4);
        m->prompt_lengths[b] = m->positions[b] + length <= m->max_seq ? length : 0;
    }
    m->n = 1 + random_below(3);
    if (m->n > m->max_seq) m->n = m->max_seq;
    m->goes_on = 1;
}

static void tell(const model *m, unsigned long long seed, uint32_t launch) {
    const ptxk_decoder_desc *d = &m->desc;
    if (d->route.experts)
        printf("%u of %u experts of %u, kind %u, flags %u, groups %u, shared router %u, ", d->route.chosen,
               d->route.experts, d->expert_ffn, d->route.kind, d->route.flags, d->route.groups, d->shared_router);
    printf("PTXGEN_SEED=%llu: launch %u: hidden %u, ffn %u, heads %u / %u of %u, vocab %u, layers %u, "
           "batch %u, formats 0x%x, kv_type %u, rope %u of %s, precision %u, norms %u, window %u, scale %g; "
           "sm_%u, %u blocks, n %u, max_seq %u, temperature %g, end tokens %u\n",
           seed, launch, d->hidden, d->ffn, d->heads, d->kv_heads, d->head_dim, d->vocab, m->layers, d->batch,
           d->formats, d->kv_type, d->rope_dims, d->rope_pairs == PTXK_ROPE_NEOX ? "halves" : "neighbours",
           d->precision, d->head_norms, d->window, (double)d->scale, (unsigned)m->target, m->blocks, m->n,
           m->max_seq, (double)m->temperature, m->end_count);
}

/* One model. Returns its worst logit beside its tolerance. */
static double round_of(unsigned long long seed) {
    unsigned before = failed;
    uint32_t launch, launches;
    double worst;
    model m;
    seed_state = ref_random(seed, 0);
    launches = any_size(3);
    if (option) {
        option("perturb", one_in(3) ? 1 + (int)random_below(1000000) : 0);
        option("contract", one_in(3));
    }
    m = draw_model(launches);
    if (getenv("PTXGEN_TELL")) tell(&m, seed, 0);
    for (launch = 0; launch < launches && failed == before; launch++) {
        if (option) option("seed", one_in(2) ? 0 : 1 + (int)random_below(1000000));
        if (launch) draw_next(&m);
        model_launch(&m);
        if (model_done(&m)) model_compare(&m);
        if (failed != before) tell(&m, seed, launch);
    }
    worst = m.worst_of;
    if (getenv("PTXGEN_TELL")) printf("  logits within %.3f of what they may be off\n", worst);
    model_free(&m);
    return worst;
}

/* A small model of each format that has a reader. */
static void every_reader(void) {
    static const uint32_t readers[] = {PTXK_Q4_1,   PTXK_Q5_0,   PTXK_Q5_1,  PTXK_Q2_K, PTXK_Q3_K,
                                       PTXK_IQ4_NL, PTXK_IQ4_XS, PTXK_MXFP4, PTXK_NVFP4, PTXK_IQ2_XXS,
                                       PTXK_IQ2_XS, PTXK_IQ2_S, PTXK_IQ3_XXS, PTXK_IQ3_S, PTXK_IQ1_S, PTXK_IQ1_M,
                                       PTXK_TQ1_0, PTXK_TQ2_0};
    uint32_t i;
    for (i = 0; i < sizeof readers / sizeof *readers; i++) {
        model m = model_start();
        m.desc.hidden = m.desc.ffn = 256;
        m.desc.vocab = 33;
        m.desc.heads = 4;
        m.desc.kv_heads = 1;
        m.desc.head_dim = 64;
        m.desc.batch = 1 + (i == 2);
        m.desc.kv_type = PTX_F16;
        m.desc.precision = i & 1;
        m.layers = 1;
        m.prompt_lengths[0] = m.prompt_lengths[1] = 1 + random_below(2);
        m.target = PTX_SM(i & 1 && capability >= 80 ? 80 : 75);
        m.blocks = 3;
        model_fill(&m, &readers[i], 1, 1);
        model_launch(&m);
        if (model_done(&m)) model_compare(&m);
        model_free(&m);
    }
}

int main(void) {
    const char *seed = getenv("PTXGEN_SEED"), *rounds = getenv("PTXGEN_ROUNDS");
    unsigned long long first = seed ? strtoull(seed, NULL, 0) : (unsigned long long)time(NULL) * 1000;
    uint32_t n = rounds ? (uint32_t)strtoul(rounds, NULL, 10) : 8, i;
    double worst = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)setenv("PTXSIM_DEVICE", "sm_100", 0); /* one that takes code for all that came before */
    if (!open_driver()) return 1;
    one_thread();
    printf("seed: PTXGEN_SEED=%llu\n", first);
    every_reader();
    for (i = 0; i < n; i++) worst = fmax(worst, round_of(first + i));
    printf("note: %u models; logits within %.3f of what they may be off\n", n, worst);
    return check_end();
}
