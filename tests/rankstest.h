/* rankstest.h - models computed by several ranks (examples/ranks.h), each a process with a CPU driver of its own, for
 * tests of examples/llama.h. Include it behind the headers with their implementations. */
#ifndef RANKSTEST_H
#define RANKSTEST_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "architecturetest.h"

/* What the processes share: their counts, and the tokens of each. */
typedef struct shared_results {
    unsigned passed[RANKS_MAX], failed[RANKS_MAX];
    uint32_t token[RANKS_MAX][BATCH_MAX][TOKENS_MAX];
} shared_results;
static shared_results *results;
static ranks_group group;

/* The library of collectives, an argument of the test; without the CPU driver NCCL itself. */
static const char *nccl_library;

static inline void set_number(const char *name, unsigned long x)
{
    char text[32];
    snprintf(text, sizeof text, "%lu", x);
    setenv(name, text, 1);
}

/* Runs `body` in as many processes as ranks, and adds up what they have counted. Only rank 0 prints, all of them where
 * RANKSTEST_ALL is set. A rank whose number is `killed` ends by a signal. */
static inline void run_ranks_but(uint32_t count, uint32_t killed, void (*body)(void))
{
    pid_t process[RANKS_MAX];
    uint32_t i;
    int status;
    memset(results, 0, sizeof *results);
    fflush(stdout);
    for (i = 0; i < count; i++) {
        process[i] = fork();
        if (process[i]) continue;
        set_number("RANK", i);
        set_number("WORLD_SIZE", count);
        set_number("LOCAL_RANK", i);
        passed = failed = 0;
        if (i && !getenv("RANKSTEST_ALL") && !freopen("/dev/null", "w", stdout)) _exit(3);
        if (!CHECK_MORE(ranks_read(&group) == 0 && ranks_meet(&group) == 0, group.error)) {
            results->failed[i] = failed;
            fflush(stdout);
            _exit(1);
        }
        body();
        ranks_close(&group);
        ptxcu_close(device);
        fflush(stdout);
        results->passed[i] = passed;
        results->failed[i] = failed;
        exit(0);
    }
    for (i = 0; i < count; i++) {
        char what[80];
        snprintf(what, sizeof what, "rank %u of %u", (unsigned)i, (unsigned)count);
        CHECK_MORE(waitpid(process[i], &status, 0) == process[i]
                       && (i == killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0),
                   what);
        CHECK_MORE(results->failed[i] == 0, what);
        passed += results->passed[i];
    }
}

static inline void run_ranks(uint32_t count, void (*body)(void))
{
    run_ranks_but(count, RANKS_MAX, body);
}

/* In a rank: the device, its stream, the collectives. */
static inline int open_rank(void)
{
    ptxcu_desc desc = PTX_ZERO;
    char path[] = "/tmp/rankstest-XXXXXX";
    int file = mkstemp(path);
    if (!CHECK(file >= 0 && write(file, "sm = 90\nsms = 3\n", 16) == 16)) return 0;
    setenv("PTXSIM_DEVICE", path, 0);
    close(file);
    desc.dependent_launch = 1;
    if (!fine(ptxcu_open(&device, &desc))) return 0;
    unlink(path);
    return fine(ptxcu_stream_create(device, &stream)) && CHECK_MORE(ranks_open(&group, device) == 0, group.error);
}

/* All ranks have the same tokens of sequence b. */
static inline void check_same_tokens(const sequences *s, uint32_t b, const char *what)
{
    static uint32_t all[RANKS_MAX][TOKENS_MAX];
    uint32_t i;
    if (!CHECK(ranks_collect(&group, s->token[b], sizeof s->token[b], all) == 0)) return;
    for (i = 1; !group.rank && i < group.count; i++) CHECK_MORE(memcmp(all[0], all[i], sizeof all[0]) == 0, what);
}

/* The model as ranks hold it: as many heads as there are ranks or more, parts on the borders of blocks, numbers that
 * do not divide evenly where they need not. */
static inline model_shape shape_of_ranks(model_shape s)
{
    uint64_t values = 1, down = 1, bytes;
    gguf_block(s.format, &values, &bytes);
    gguf_block(s.down_format, &down, &bytes);
    if (model_is(s.architecture, "olmo2")) s.kv_heads = 4;
    if (s.heads < 4) s.heads = 4;
    if (values > 1) s.head_dim = (uint32_t)((s.head_dim + values - 1) / values * values);
    if (!strcmp(s.architecture, "qwen2moe")) s.down_format = GGUF_FORMAT_F16, down = 1; /* its shared expert of 64 */
    if (s.down_format == GGUF_FORMAT_MXFP4) down *= 2;
    s.ffn = (uint32_t)(down > 1 || values > 1 ? 5 * (down > values ? down : values) : 88);
    return s;
}

/* Sums of a token: one for each half of a layer, or one for both; behind that logits are gathered. Norms of whole rows
 * gather q and k. */
static inline void check_collectives(const llama *m, const char *what)
{
    const llama_architecture *a = m->config.architecture;
    uint32_t sums = 0, gathered = 0, i;
    for (i = 0; i < m->step.count; i++) {
        if (m->step.launch[i].program) continue;
        sums += m->step.launch[i].args.ranks.to == 0;
        gathered += m->step.launch[i].args.ranks.to != 0;
    }
    CHECK_MORE(sums == m->config.layers * (a->norm_places == LLAMA_PARALLEL ? 1 : 2), what);
    CHECK_MORE(gathered == 1 + (a->qk_norm == LLAMA_QK_ROWS ? 2 * m->config.layers : 0), what);
}

/* A model beside the reference, and the same in all ranks: one token after the other by launches; then the prompt in
 * passes, and the tokens by a graph. */
static inline void check_ranks(const model_shape *shape, uint32_t batch, uint32_t prompt, uint32_t tokens,
                               const char *what)
{
    static sequences passes, single;
    gguf_maker made = {0};
    model_file f;
    llama m;
    llama_options o;
    llama_config whole;
    llama_persistent p;
    gguf_error why;
    ref_llama reference;
    float *logits = (float *)malloc(2 * (size_t)batch * shape->vocab * sizeof *logits);
    double worst = 0, one;
    uint32_t b;
    memset(&o, 0, sizeof o);
    memset(&passes, 0, sizeof passes);
    make_model(&made, shape);
    o.batch = passes.batch = batch;
    o.max_seq = prompt + tokens + 1;
    o.prompt_tokens = 16;
    o.ranks = &group;
    for (b = 0; b < batch; b++) random_tokens(&passes, b, prompt - 3 * b, shape->vocab);
    single = passes;
    passes.steps = tokens - 1;
    single.steps = prompt + tokens - 1;
    if (!CHECK(logits) || !open_made(&f, &made)
        || !CHECK_MORE(llama_read(&whole, &f.g, &why) == 0, why.text)
        || !CHECK_MORE(llama_open(&m, device, &f.g, f.file, &o, NULL, &why) == 0, why.text)) {
        free(logits);
        close_file(&f);
        return;
    }
    check_collectives(&m, what);
    if (run_model(&m, &single, NULL) && CHECK_MORE(llama_record(&m, stream, &why) == 0, why.text)
        && run_prompts(&m, &passes, logits)) {
        for (b = 0; b < batch; b++) {
            check_same_tokens(&passes, b, what);
            check_same_tokens(&single, b, what);
        }
        CHECK(llama_persistent_open(&m, &p, 4, NULL, 0, &why) && strstr(why.text, "does not have: several ranks"));
        if (!group.rank) {
            model_reference(&reference, &whole, &f.g, f.data);
            reference.context = o.max_seq;
            for (b = 0; b < batch; b++) {
                one = beside_both(&reference, &passes, &single, b, logits, what);
                if (one > worst) worst = one;
            }
            ref_llama_free(&reference);
            printf("%s, %u ranks: error at most %.3f of the tolerance\n", what, (unsigned)group.count, worst);
        }
    }
    llama_close(&m);
    close_file(&f);
    free(logits);
}

/* Takes the libraries, from the command line and the environment. Returns 0 where the test cannot be made. */
static inline int start_ranks(int argc, char **argv)
{
    ptxcu *cu;
    int is_cpu;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start_random();
    pid_t child = fork(); /* the device is opened by the ranks, not in this process */
    if (!child) {
        is_cpu = ptxcu_open(&cu, NULL) == PTXCU_E_NONE && ptxcu_device_info(cu)->is_cpu_driver;
        ptxcu_close(cu);
        _exit(is_cpu ? 0 : 1);
    }
    waitpid(child, &is_cpu, 0);
    if (is_cpu || argc < 2) {
        printf("skipped: ranks are tested on the CPU driver, with the library of collectives as argument\n");
        return 0;
    }
    nccl_library = argv[1];
    setenv("PTXGEN_NCCL_LIBRARY", nccl_library, 1);
    set_number("MASTER_PORT", 20000 + random_below(30000));
    set_number("TORCHELASTIC_RUN_ID", (unsigned long)getpid());
    setenv("NCCLSIM_TIMEOUT", "120", 0);
    results = (shared_results *)mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return CHECK(results != MAP_FAILED);
}

#endif
