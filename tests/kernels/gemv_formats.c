/* gemv_formats.c - GEMV of every format of weights, of several matrices over one x, of SwiGLU: against
 * double at each boundary, at every alignment of rows, with factors of every size; and the traffic and bank
 * conflicts of each.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../gemvtest.h"

static void shaped(uint32_t format, uint32_t second, uint32_t third, uint32_t n, uint32_t second_n,
                   uint32_t third_n, uint32_t k, uint32_t columns, uint32_t precision, uint32_t output,
                   uint32_t flags, unsigned target, double size)
{
    ptxk_gemv_desc desc;
    ptxk_gemv_shape shape;
    problem p;
    if ((int)target > capability) target = (unsigned)capability;
    desc.format = format;
    desc.columns = columns;
    desc.precision = precision;
    desc.output_type = output;
    desc.flags = flags;
    desc.second = second;
    desc.third = third;
    shape.n = n;
    shape.k = k;
    shape.sm_count = 1 + random_below(140);
    shape.second_n = second_n;
    shape.third_n = third_n;
    p = problem_of(&desc, &shape, size);
    p.target = PTX_SM(target);
    problem_run(&p);
    if (p.worst > most_of_bound) most_of_bound = p.worst;
    if (p.worst_norms > most_of_norms) most_of_norms = p.worst_norms;
    problem_free(&p);
}

static void one_of(uint32_t format, uint32_t n, uint32_t k, uint32_t columns, uint32_t precision,
                   uint32_t flags, unsigned target)
{
    shaped(format, 0, 0, n, 0, 0, k, columns, precision, PTX_F32, flags, target, 0.02);
}

/* K: of what the format's rows are multiples of, about each boundary of a step, with rows that begin at every
   even address; N odd. */
static void every_format_every_k(void)
{
    static const uint32_t of_256[] = {256, 512, 768, 1024, 1280, 2048, 2304, 3584, 4096, 6400, 14336},
                          of_32[] = {32, 64, 96, 224, 288, 896, 1056, 2016, 2080, 4128},
                          of_8[] = {8, 16, 40, 248, 264, 520, 1000};
    uint32_t f, g, i;
    SOME_FORMATS(f, g) {
        uint32_t type = (uint32_t)ref_block_values(formats[f].type), format = formats[f].format;
        for (i = 0; i < sizeof of_256 / sizeof *of_256; i++) {
            one_of(format, 1 + 2 * random_below(20), of_256[i], 1, PTXK_GEMV_EXACT, 0, i & 1 ? 75 : 80);
            one_of(format, 1 + 2 * random_below(9), of_256[i], 1 + i % 8, (i & 1) ^ (i >> 1 & 1), 3,
                   i & 2 ? 90 : 75);
        }
        for (i = 0; i < sizeof of_32 / sizeof *of_32 && type <= 64; i++)
            one_of(format, 1 + 2 * random_below(20), of_32[i] << (type == 64 || format == PTXK_MXFP4), 1 + i % 3,
                   i & 1, 0, i & 1 ? 80 : 75);
        for (i = 0; i < sizeof of_8 / sizeof *of_8 && type == 1; i++)
            one_of(format, 1 + 2 * random_below(20), of_8[i], 1, 0, PTXK_GEMV_NORM, i & 1 ? 80 : 75);
        one_of(format, 3, 65536, 1, f & 1, 3, 80);
    }
}

static void every_format_every_number_of_columns(void)
{
    uint32_t f, g, c;
    SOME_FORMATS(f, g)
        for (c = 1; c <= 8; c++) {
            shaped(formats[f].format, 0, 0, 21 + c, 0, 0, 256 * (1 + random_below(12)), c, 0,
                   c & 1 ? PTX_F32 : PTX_F16, c & 7, c & 2 ? 80 : 75, 0.02);
            shaped(formats[f].format, 0, 0, 17, 0, 0, 256 * (1 + random_below(12)), c, 1, PTX_F32,
                   PTXK_GEMV_BIAS | PTXK_GEMV_RESIDUAL, c & 1 ? 80 : 75, 0.02);
        }
}

/* Factors of every finite size and sign, zeros and subnormals; plain numbers of 2^-70 ... 2^20 or any of
 * f16. */
static void extreme_factors(void)
{
    uint32_t f, g, i;
    SOME_FORMATS(f, g)
        for (i = 0; i < 4; i++)
            shaped(formats[f].format, 0, 0, 33, 0, 0, 1536 + 256 * i, 1 + i % 2, i >> 1, PTX_F32, 0,
                   i & 1 ? 75 : 80, 0);
}

/* A factor (or a plain number) that is NaN or infinite spoils its row, and no other. */
static void a_bad_factor_of_every_format_spoils_its_row_only(void)
{
    uint32_t f, g, i, r, bad = 11;
    SOME_FORMATS(f, g)
        for (i = 0; i < 4; i++) {
            ptxk_gemv_desc desc = {0, 1, 0, PTX_F32, 0, 0, 0};
            ptxk_gemv_shape shape = {37, 3840, 9, 0, 0};
            uint32_t at = 256 * random_below(15) / (uint32_t)ref_block_values(formats[f].type);
            unsigned char *block;
            double value = i & 1 ? (double)NAN : (double)INFINITY;
            problem p;
            desc.format = formats[f].format;
            desc.precision = i >> 1;
            p = problem_of(&desc, &shape, 0.02);
            if (i & 2) p.target = PTX_SM(75);
            block = p.m[0].weights + bad * p.m[0].row_bytes + at * ref_block_bytes(p.m[0].type);
            if (!put_factor(p.m[0].type, block, value)) {
                problem_free(&p);
                continue;
            }
            problem_launch(&p);
            for (r = 0; r < 37; r++) {
                float y = ((float *)p.m[0].y)[r];
                CHECK_MORE((y - y == 0) == (r != bad), formats[f].name);
            }
            problem_free(&p);
        }
}

/* Several matrices over one x: as GGUF files mix them, every pair of quantised formats, plain ones; N of 1
   and of another size each; every tile in one block and every tile in its own. */
static void several_matrices(void)
{
    uint32_t i, j, plain[] = {PTXK_F32, PTXK_F16, PTXK_BF16};
    uint32_t ints[] = {PTXK_Q4_K, PTXK_Q8_0, PTXK_Q4_0, PTXK_Q5_K, PTXK_Q6_K};
    for (i = 0; i < 5; i++)
        for (j = 0; j < 5; j++)
            shaped(ints[i], ints[j], ints[(i + j) % 5], 1 + random_below(90), 1 + random_below(40),
                   1 + random_below(40), 256 * (1 + random_below(20)), 1 + (i + 2 * j) % 8, j & 1,
                   i & 1 ? PTX_F16 : PTX_F32, 3 | (i ^ j) % 2 * PTXK_GEMV_BIAS, j & 2 ? 80 : 75, 0.02);
    for (i = 0; i < 3; i++)
        shaped(plain[i], plain[(i + 1) % 3], plain[(i + 2) % 3], 35, 1, 17, 8 * (1 + random_below(300)),
               1 + i, 0, PTX_F32, PTXK_GEMV_NORM | PTXK_GEMV_BIAS, i & 1 ? 75 : 80, 0.02);
    shaped(PTXK_Q4_K, PTXK_Q4_K, PTXK_Q6_K, 512, 128, 128, 896 * 2, 1, 0, PTX_F32, 3 | PTXK_GEMV_BIAS, 90,
           0.02);
    shaped(PTXK_Q8_0, PTXK_Q8_0, 0, 96, 40, 0, 896, 1, 0, PTX_F32, 3, 90, 0.02);
}

static void gate_up_and_swiglu(void)
{
    uint32_t f, g, c;
    SOME_FORMATS(f, g)
        for (c = 1; c <= 8; c += c < 3 ? 1 : 5) {
            uint32_t other = formats[f < 5 ? (f + c) % 5 : f].format;
            shaped(formats[f].format, other, 0, 1 + random_below(70), 0, 0, 256 * (1 + random_below(18)), c,
                   c & 1, f & 1 ? PTX_F16 : PTX_F32, 3 | PTXK_GEMV_SWIGLU, c & 1 ? 80 : 75, 0.02);
            shaped(formats[f].format, formats[f].format, 0, 1 + random_below(70), 0, 0, 512, c, 0, PTX_F32,
                   PTXK_GEMV_SWIGLU | PTXK_GEMV_BIAS | PTXK_GEMV_RESIDUAL, 80, 0.02);
        }
}

/* A vocabulary's output matrix, and a single row. */
static void embedding_sizes(void)
{
    ptxk_gemv_desc desc = {PTXK_Q4_K, 1, 0, PTX_F32, 0, 0, 0};
    ptxk_gemv_shape shape = {151936, 256, 132, 0, 0};
    problem p = problem_of(&desc, &shape, 0.02);
    p.row_step = 37;
    problem_run(&p);
    problem_free(&p);
    one_of(PTXK_Q6_K, 1, 65536, 1, 0, 0, 80);
    one_of(PTXK_BF16, 1, 14336, 1, 0, 0, 80);
    one_of(PTXK_Q8_0, 1, 32, 8, 1, 0, 80);
}

/* The quantisers of blocks.h make what its decoders read: close to normal numbers, in the measure of the
 * bits. */
static void quantisers_and_decoders_agree(void)
{
    static const double most[] = {0.075, 0.006, 0.085, 0.038, 0.019, 1e-12, 0.0004, 0.003,
                                  0.095, 0.055, 0.047, 0.42,  0.23,  0.11,  0.11,   0.14,  0.125};
    static float x[4096], back[4096];
    static unsigned char blocks[4096 * 4];
    uint32_t f, i, j;
    for (f = 0; f < sizeof most / sizeof *most; f++) { /* IQ2 and IQ3 have no quantiser */
        double error = 0, size = 0, w, both;
        int type = formats[f].type;
        for (i = 0; i < 4096; i++)
            for (x[i] = 0, j = 0; j < 12; j++) x[i] += (float)random_within(0.05);
        ref_quantise(type, x, 4096, blocks);
        ref_dequantise_f32(type, blocks, 4096, back);
        for (i = 0; i < 4096; i++) {
            uint32_t values = (uint32_t)ref_block_values(type);
            w = ref_weight(type, blocks + i / values * ref_block_bytes(type), (int)(i % values), &both);
            CHECK(fabs(w) <= both * (1 + 1e-12) && (double)back[i] - w <= 1e-7 * both);
            error += ((double)x[i] - w) * ((double)x[i] - w);
            size += (double)x[i] * (double)x[i];
        }
        CHECK_MORE(sqrt(error / size) <= most[f], formats[f].name);
    }
}

/* Of Q6_K two lanes read from one bank in most loads of weights: at most 35 % of the passes. */
static int few_conflicts(uint32_t f, const ptxsim_counters *counts)
{
    return formats[f].format == PTXK_Q6_K && 20 * counts->shared_bank_conflicts <= 7 * counts->shared_wavefronts;
}

/* Shared memory's passes beyond the fewest, of n rows of k weights; 0 where they are few. */
static unsigned long long conflicts_of(uint32_t f, uint32_t n, uint32_t k, uint32_t c, uint32_t precision)
{
    ptxk_gemv_desc desc = {0, 0, 0, PTX_F32, 0, 0, 0};
    ptxk_gemv_shape shape = {0, 0, 132, 0, 0};
    ptxsim_counters counts;
    problem p;
    desc.format = formats[f].format;
    desc.columns = c;
    desc.precision = precision;
    shape.n = n;
    shape.k = k;
    p = problem_of(&desc, &shape, 0.02);
    p.target = PTX_SM(80);
    problem_run(&p);
    CHECK(cu.ptxsim_counters_get(&counts, sizeof counts) == 0);
    problem_free(&p);
    if (few_conflicts(f, &counts)) return 0;
    return counts.shared_bank_conflicts;
}

/* No two lanes on one bank, but few of Q6_K, with any number of columns, in both precisions, with rows that begin
   anywhere: of 4352 = 17 x 256 weights those of Q6_K do at any even byte. Where a row of Q8_0 or Q4_0 begins 2 bytes
   past a word, which takes an odd number of blocks, the 32 lanes' factors reach over one bank more than there are: two
   meet, in one of a step's 10 or 6 loads. */
static void no_bank_conflicts(void)
{
    uint32_t f, c, precision;
    if (!cu.ptxsim_counters_get) return;
    for (f = 0; f < CODED; f++)
        for (c = 1; c <= 8; c++)
            for (precision = 0; precision < 2; precision++) {
                if (ref_block_values(formats[f].type) == 1 && precision) continue;
                CHECK_MORE(conflicts_of(f, 16, c & 1 ? 4352 : 2048, c, precision) == 0, formats[f].name);
                CHECK_MORE(conflicts_of(f, 16, c & 1 ? 2048 : 4352, c, precision) == 0, formats[f].name);
                if (ref_block_values(formats[f].type) != 32 || (c + precision) % 3) continue;
                CHECK_MORE(conflicts_of(f, 16, 4128, c, precision) <= 8 * 6, formats[f].name);
            }
}

/* Weights once, x and partial results beside them. */
static void traffic_of_every_format(void)
{
    uint32_t f, c;
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic_of_every_format: only the CPU driver counts\n");
        return;
    }
    for (f = 0; f < CODED; f++)
        for (c = 1; c <= 8; c += c == 1 ? 2 : 5) {
            ptxk_gemv_desc desc = {0, 1, 0, PTX_F32, 0, 0, 0};
            ptxk_gemv_shape shape = {4096, 14336, 132, 0, 0};
            uint32_t plain = ref_block_values(formats[f].type) == 1;
            ptxsim_counters counts;
            double ratio;
            problem p;
            desc.format = formats[f].format;
            desc.columns = c;
            desc.precision = c % 2 == 0;
            if (c >= 2) shape.k = 4096;
            shape.n = c >= 2                           ? 64
                      : formats[f].format == PTXK_F32  ? 512
                      : plain                          ? 1024
                      : formats[f].format == PTXK_Q4_0 ? 4096
                                                       : 2048;
            if (shape.n == 2048 || shape.n == 512) shape.sm_count = 66; /* as twice the rows on 132 */
            if ((c == 1 && formats[f].format == PTXK_Q4_K) || !is_drawn(3)) continue; /* the first: gemv.c */
            p = problem_of(&desc, &shape, 0.02);
            p.row_step = 97;
            problem_run(&p);
            CHECK(cu.ptxsim_counters_get(&counts, sizeof counts) == 0);
            ratio = 32.0 * (double)(counts.global_load_sectors + counts.global_store_sectors)
                    / (double)p.plan.min_bytes;
            printf(
                "note: %s, %u x %u, %u columns: %.4f of the lower bound; %.3f thread instructions a weight; "
                "bank conflicts %llu of %llu wavefronts\n",
                formats[f].name, shape.n, shape.k, c, ratio,
                (double)counts.thread_instructions / shape.n / shape.k,
                (unsigned long long)counts.shared_bank_conflicts,
                (unsigned long long)counts.shared_wavefronts);
            if (c == 1) CHECK_MORE(ratio <= 1.05, formats[f].name);
            CHECK_MORE(!counts.shared_bank_conflicts || few_conflicts(f, &counts), formats[f].name);
            problem_free(&p);
        }
}

int main(void)
{
    start_random();
    quantisers_and_decoders_agree();
    if (CHECK(open_driver())) {
        every_format_every_k();
        every_format_every_number_of_columns();
        extreme_factors();
        a_bad_factor_of_every_format_spoils_its_row_only();
        several_matrices();
        gate_up_and_swiglu();
        embedding_sizes();
        no_bank_conflicts();
        traffic_of_every_format();
        printf("note: largest error %.3f of its bound; at full precision %.3g of |W| |x|\n", most_of_bound,
               most_of_norms);
    }
    return check_end();
}
