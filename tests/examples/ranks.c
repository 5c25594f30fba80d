/* ranks.c - models in 2 and 4 processes (examples/ranks.h, llama.h), which add their parts by NCCL's functions on the
 * CPU driver (tests/nccl): beside the reference in double precision, by launches, as a graph, with prompts in passes.
 * More architectures: ranks_all.c. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../rankstest.h"

static void test_model(const char *name, uint32_t batch, uint32_t tokens)
{
    uint32_t i;
    model_shape s;
    for (i = 0; strcmp(models[i].what, name); i++) {}
    s = shape_of_ranks(models[i].shape);
    check_ranks(&s, batch, 19, tokens, models[i].what);
}

/* What all ranks hold of the matrices that are divided, beside the file's. */
static void check_parts(const llama *m)
{
    uint64_t part = 0, whole = 0, all[RANKS_MAX], i;
    for (i = 0; i < (uint64_t)m->config.layers * LLAMA_TENSORS_OF_A_LAYER; i++) {
        const llama_tensor *t = &m->tensor[LLAMA_MODEL_TENSORS + i];
        if (!t->from || t->is_divided || (t->from->size[1] == t->rows && t->from->size[0] == t->columns)) continue;
        part += llama_tensor_bytes(t);
        whole += t->from->bytes;
    }
    if (!CHECK(ranks_collect(&group, &part, sizeof part, all) == 0) || group.rank) return;
    for (part = i = 0; i < group.count; i++) part += all[i];
    CHECK(part == whole && whole > 0);
}

/* Drawn tokens, then drafts of which some are right: the same in all ranks. */
static void check_drawn(void)
{
    enum { PROMPT = 9, TOKENS = 8, DRAFTS = 3 };
    static sequences s;
    model_shape shape = shape_of_ranks(models[0].shape);
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    float *logits = (float *)malloc(4 * (size_t)shape.vocab * sizeof *logits);
    uint32_t drafts[2 * DRAFTS], chosen[2 * (DRAFTS + 1)], gained[2], told[2 * (DRAFTS + 1) * RANKS_MAX], b, i;
    memset(&o, 0, sizeof o);
    memset(&s, 0, sizeof s);
    make_model(&made, &shape);
    o.batch = s.batch = 2;
    o.max_seq = PROMPT + TOKENS + DRAFTS + 2;
    o.ranks = &group;
    o.temperature = 1.5f;
    o.seed = random_u32();
    for (b = 0; b < 2; b++) random_tokens(&s, b, PROMPT, shape.vocab);
    s.steps = TOKENS;
    if (CHECK(logits) && open_made(&f, &made)
        && CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        check_parts(&m);
        if (run_prompts(&m, &s, logits)) {
            check_same_tokens(&s, 0, "drawn tokens");
            check_same_tokens(&s, 1, "drawn tokens of another sequence");
            for (i = 0; i < 2 * DRAFTS; i++) drafts[i] = random_below(shape.vocab);
            if (CHECK_MORE(llama_verify(&m, drafts, DRAFTS + 1, chosen, gained, stream, &why) == 0, why.text)
                && CHECK(ranks_collect(&group, chosen, sizeof chosen, told) == 0) && !group.rank)
                CHECK(!memcmp(told, told + 2 * (DRAFTS + 1), sizeof chosen));
        }
        llama_close(&m);
    }
    close_file(&f);
    free(logits);
    check_reports();
}

/* Of architecturetest.h; the rest is in ranks_all.c. */
static void test_two(void)
{
    if (!open_rank()) return;
    test_model("qwen2moe", 1, 2);
    check_drawn();
}

static void test_four(void)
{
    if (open_rank()) test_model("llama, biases", 2, 3);
}

/* -- what cannot be divided -- */

static void check_refused(const model_shape *shape, const char *words)
{
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    gguf_error why;
    memset(&o, 0, sizeof o);
    make_model(&made, shape);
    o.batch = 1;
    o.max_seq = 8;
    o.ranks = &group;
    if (open_made(&f, &made))
        CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) && strstr(why.text, words), why.text);
    close_file(&f);
}

static void test_refused(void)
{
    const model_shape plain = models[0].shape;
    model_shape s = plain;
    if (!fine(ptxcu_open(&device, NULL))) return;
    s.heads = s.kv_heads = 5;
    check_refused(&s, "5 heads in 2 ranks: no whole number for each");
    s = plain, s.heads = 6, s.kv_heads = 3;
    check_refused(&s, "3 heads of keys and values in 2 ranks: no whole number for each");
    s = plain, s.heads = s.kv_heads = 2, s.format = GGUF_FORMAT_Q8_0;
    check_refused(&s, "1 heads of 16 in each of 2 ranks: Q8_0 has blocks of 32 columns");
    s = plain, s.ffn = 32, s.down_format = GGUF_FORMAT_Q8_0;
    check_refused(&s, "32 columns of Q8_0 in 2 ranks: parts are multiples of 32");
    s = plain, s.vocab = 1;
    check_refused(&s, "1 tokens in 2 ranks: at least one of each");
}

int main(int argc, char **argv)
{
    if (start_ranks(argc, argv)) {
        run_ranks(2, test_two);
        run_ranks(4, test_four);
        run_ranks(2, test_refused);
    }
    return check_end();
}
