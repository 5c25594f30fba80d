/* flash_hopper.c - flash_prefill on sm_90a: what holds on every target holds for the warpgroups' form too.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. PTXGEN_SEED=n repeats a run. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../prefilltest.h"

/* Fewer and more than one block of queries and one tile of keys, in each form of the tile. */
static void tile_edges(void) {
    static const uint32_t lengths[] = {1, 63, 64, 65, 127, 128, 129, 257, 400}, dims[] = {64, 128, 192, 256};
    uint32_t i, n = sizeof lengths / sizeof *lengths;
    for (i = 0; i < n; i++) {
        uint32_t q = lengths[i], kv = lengths[random_below(n)], flags = random_below(4);
        check_one(describe(1, 1, dims[i % 4], i & 1 ? REF_BF16 : REF_F16, flags), q, kv);
    }
}

static void a_few_head_dims(void) {
    uint32_t i;
    for (i = 0; i < 4; i++) {
        uint32_t d = 8 + 8 * random_below(32);
        check_one(describe(2, 1, d, REF_F16, 1), 70, 130);
        check_one(describe(1, 1, d, REF_BF16, 0), 140, 33);
    }
}

int main(void) {
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    base_target = PTX_SM_A(90);
    if (CHECK(open_driver())) {
        if (capability != 90) {
            printf("SKIP flash_hopper: this device is not of sm_90\n");
            return check_end();
        }
        all_of_every_tile_is_stored();
        weights_and_values_are_not_transposed();
        each_row_has_its_own_maximum_and_sum();
        sums_are_rescaled_between_tiles();
        the_diagonal_tile_is_masked();
        gqa_of_every_kind();
        small_weights_count();
        scores_of_any_size();
        nan_scores_make_their_query_nan_and_no_other();
        scale_and_cap_are_used();
        ragged_batches_with_empty_sequences();
        lengths_beyond_the_arguments();
        out_may_be_q();
        pages_and_rows_have_the_same_bits();
        pages_past_the_pool();
        offsets_past_2_to_32_elements();
        tile_edges();
        a_few_head_dims();
        build(NULL, 0);
        printf("note: largest error: %.3f of its bound; of lse %.3f\n", worst, worst_lse);
    }
    return check_end();
}
