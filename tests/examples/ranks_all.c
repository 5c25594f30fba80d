/* ranks_all.c - all architectures in 2 and 4 processes, as ranks.c has two of them: 64 tokens beside the reference.
 * Of one model, or fewer tokens: ranks_all build/libncclsim.so NAME TOKENS ("": all models). */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../rankstest.h"

static const char *only;      /* NULL, or the name of the only model to test */
static uint32_t tokens = 64;

static void test_models(void)
{
    uint32_t i;
    if (!open_rank()) return;
    for (i = 0; i < sizeof models / sizeof *models; i++) {
        model_shape s = shape_of_ranks(models[i].shape);
        if (only && *only && strcmp(models[i].what, only)) continue;
        check_ranks(&s, 1, 18, s.layers > 20 ? 4 : tokens, models[i].what);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2) only = argv[2];
    if (argc > 3) tokens = (uint32_t)atoi(argv[3]);
    if (start_ranks(argc, argv)) {
        run_ranks(2, test_models);
        run_ranks(4, test_models);
    }
    return check_end();
}
