/* gemm_warpgroups.c - gemm's form for sm_90a, whose warpgroups multiply: formats, numbers of columns, precisions,
 * epilogues and tails against double, by the bounds of tests/gemmtest.h; no bank conflicts. Other tests of gemm take
 * it by chance. gemm_warpgroups_faults.c takes out what synchronises, counts machine instructions, and has all
 * formats. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_GEMM
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"

static const uint32_t some[] = {PTXK_Q4_K, PTXK_Q5_K, PTXK_Q6_K, PTXK_Q8_0, PTXK_Q4_0};
#define SOME (sizeof some / sizeof *some)

static void run(problem p, int warpgroups)
{
    ptxk__gemm form;
    CHECK(!ptxk__gemm_form(&p.desc, p.shape.target, &form, NULL) && (int)form.wgmma == warpgroups);
    problem_run(&p);
    problem_free(&p);
}

static void every_format(void)
{
    uint32_t f, g, i;
    SOME_FORMATS(f, g)
        for (i = 0; i < 3 && ref_block_values(formats[f].type) > 1; i++)
            run(any_problem_for_warpgroups(formats[f].format, i & 1), formats[f].format != PTXK_IQ4_XS || i & 1);
}

/* Formats that differ share the stages of x. */
static void several_matrices(void)
{
    uint32_t i;
    for (i = 0; i < 4; i++) {
        ptxk_gemm_desc desc = {0, 0, 0, 128, 0, 0, 0, 0, 0};
        ptxk_gemm_shape shape = {0, 0, 0, 0, 0, 0, 0, 0};
        desc.format = some[random_below(SOME)];
        desc.second = i ? some[random_below(SOME)] : PTXK_Q8_0;
        if (i & 1) desc.third = some[random_below(SOME)];
        desc.precision = i & 1;
        desc.flags = PTXK_GEMM_NORM | PTXK_GEMM_BIAS;
        shape.m = 1 + random_below(150);
        shape.n = 1 + random_below(150);
        shape.second_n = 1 + random_below(150);
        shape.third_n = 1 + random_below(150);
        shape.k = 256 * (1 + random_below(5));
        shape.sm_count = 1 + random_below(4);
        run(problem_for_warpgroups(desc, shape), 1);
    }
}

/* Rows whose powers of two would be too large; x makes up for it. */
static void smallest_factors(void)
{
    uint32_t i, j;
    for (i = 0; i < 4; i++) {
        problem p = problem_new(PTXK_MXFP4, 3, 20, 256, 64, i & 1, 0);
        p.shape.target = PTX_SM_A(90);
        for (j = 0; j < p.m[0].row_bytes * 20; j += 17)
            p.m[0].weights[j] = (unsigned char)(6 * (i / 2) + random_below(6));
        for (j = 0; j < stride_or(p.x_stride, 256) * 3; j++) ((float *)p.x)[j] *= 1e32f;
        run(p, 1);
    }
}

/* At the rows of a model, which are multiples of 16 bytes. */
static void bank_conflicts(void)
{
    uint32_t i;
    for (i = 0; i < SOME && cu.ptxsim_counters_get; i++) {
        problem p = problem_new(some[i], 64, 128, 4096, 64, i & 1, 0);
        ptxsim_counters c;
        p.shape.target = PTX_SM_A(90);
        p.row_step = 31, p.column_step = 29;
        problem_run(&p);
        CHECK(cu.ptxsim_counters_get(&c, sizeof c) == 0);
        printf("note: %s: bank conflicts %llu of %llu wavefronts\n", ptxk_format_name(some[i]),
               (unsigned long long)c.shared_bank_conflicts, (unsigned long long)c.shared_wavefronts);
        CHECK((double)c.shared_bank_conflicts <= 0.02 * (double)c.shared_wavefronts);
        problem_free(&p);
    }
}

int main(void)
{
    start_random();
    if (!open_driver()) return 1;
    if (capability != 90) {
        puts("SKIP: warpgroups multiply on sm_90 only");
        return check_end();
    }
    every_format();
    several_matrices();
    smallest_factors();
    bank_conflicts();
    printf("note: errors up to %.2g of their bounds; exact %.2g, fast %.2g of |W| |x|\n", most_of_bound,
           most_of_norms[0], most_of_norms[1]);
    return check_end();
}
