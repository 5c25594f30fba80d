/* flash_hopper_random.c - flash_prefill on sm_90a: every edge, head dimension and combination.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. PTXGEN_SEED=n repeats a run. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../prefilltest.h"

int main(void) {
    start_random();
    base_target = PTX_SM_A(90);
    if (CHECK(open_driver())) {
        if (capability != 90) {
            printf("SKIP flash_hopper_random: this device is not of sm_90\n");
            return check_end();
        }
        each_row_has_its_own_maximum_and_sum();
        the_diagonal_tile_is_masked();
        gqa_of_every_kind();
        small_weights_count();
        scores_of_any_size();
        scale_and_cap_are_used();
        pages_and_rows_have_the_same_bits();
        values_above_65504_stay_finite();
        values_near_the_largest_of_f32();
        infinite_scores();
        infinite_elements_of_q();
        seq_that_is_no_multiple_of_16();
        d_that_is_no_multiple_of_16();
        window_edges();
        ragged_batches_with_empty_sequences();
        keys_in_pages();
        every_tile_edge();
        every_head_dim();
        random_product();
        bytes_with_factors(60);
        trees(60);
        build(NULL, 0);
        printf("note: largest error: %.3f of its bound; of lse %.3f\n", worst, worst_lse);
    }
    return check_end();
}
