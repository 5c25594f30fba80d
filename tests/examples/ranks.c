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

/* Of architecturetest.h; the rest is in ranks_all.c. */
static void test_two(void)
{
    if (open_rank()) test_model("llama, biases", 2, 4);
}

static void test_four(void)
{
    if (open_rank()) test_model("qwen2moe", 1, 2);
}

int main(int argc, char **argv)
{
    if (start_ranks(argc, argv)) {
        run_ranks(2, test_two);
        run_ranks(4, test_four);
    }
    return check_end();
}
