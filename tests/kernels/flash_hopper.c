/* flash_hopper.c - flash_prefill on sm_90a: what holds on every target holds for the warpgroups' form too.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. PTXGEN_SEED=n repeats a run. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../prefilltest.h"
#include "../sass.h"

/* Fewer and more than one block of queries and one tile of keys, in each form of the tile. */
static void tile_edges(void) {
    static const uint32_t lengths[] = {1, 63, 64, 65, 127, 128, 129, 257, 400}, dims[] = {64, 128, 192, 256};
    uint32_t i, n = sizeof lengths / sizeof *lengths;
    for (i = random_below(2); i < n; i += 2) {
        uint32_t q = lengths[i], kv = lengths[random_below(n)], flags = random_below(4);
        check_one(describe(1, 1, dims[random_below(4)], random_below(2) ? REF_BF16 : REF_F16, flags), q, kv);
    }
}

static void a_few_head_dims(void) {
    uint32_t i;
    for (i = 0; i < 2; i++) {
        uint32_t d = 8 + 8 * random_below(32);
        check_one(describe(2, 1, d, REF_F16, 1), 70, 130);
        check_one(describe(1, 1, d, REF_BF16, 0), 140, 33);
    }
}

/* -- machine instructions, which ptxas alone can tell -- */

#define SASS_MUFU 0x308u
#define SASS_F2FP 0x3eu /* the low 8 bits: two f32 to two of 16 bits */

/* Instructions of the code from first to last, and of one kind, on the way that skips the longest `skips` parts that a
   forward branch may skip; always: a branch without a guard. */
static uint32_t way(const unsigned char *code, uint32_t first, uint32_t last, uint32_t skips, int always,
                    uint32_t kind, uint32_t *of_kind) {
    uint32_t from[16], to[16], n = 0, i, j, count = 0;
    *of_kind = 0;
    for (i = first; i < last && n < 16; i++) {
        int64_t target = sass_target(code, i);
        if (sass_opcode(code, i) != SASS_BRA || target <= (int64_t)i || target > (int64_t)last) continue;
        if (always && sass_guarded(code, i)) continue;
        from[n] = i + 1, to[n++] = (uint32_t)target;
    }
    for (i = 0; i < n; i++) /* longest first */
        for (j = i + 1; j < n; j++)
            if (to[j] - from[j] > to[i] - from[i]) {
                uint32_t a = from[i], b = to[i];
                from[i] = from[j], to[i] = to[j], from[j] = a, to[j] = b;
            }
    for (i = first; i <= last; i++) {
        uint32_t skipped = 0, opcode = sass_opcode(code, i);
        for (j = 0; j < skips && j < n; j++) skipped |= i >= from[j] && i < to[j];
        if (skipped) continue;
        count++;
        *of_kind += opcode == kind || (opcode & 255) == kind;
    }
    return count;
}

/* A scheduler issues one instruction a clock; it has a warp of each computing warpgroup and one that copies. The
   tensor cores of an SM multiply 2048 pairs of 16 bits a clock, twice as many of 8. */
static void instructions_per_tile(uint32_t type, uint32_t d, uint32_t keys, uint32_t flags, double share) {
    ptxk_flash_prefill_desc desc = describe(32, 8, d, REF_F16, flags);
    ptx_module_desc module_desc;
    ptx_entry_info info;
    ptx_module *m;
    static unsigned char image[1 << 18];
    const unsigned char *code;
    uint32_t count, first = 0, loop, all, kept, exponentials, conversions, unused, copy = 0, i;
    unsigned remarks = 0;
    double tensor = 2.0 * 128 * keys * d / (type == PTX_E4M3 ? 4096 : 2048), issue, grown = 0;
    desc.type = type;
    if (!sass_possible("instructions_per_tile")) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM_A(90);
    m = ptx_module_new(&module_desc);
    ptxk_flash_prefill_emit(m, &desc);
    if (sass_assemble_for("sm_90a", ptx_text(m, NULL), image, sizeof image, &remarks)
        && CHECK(ptx_entry_get(m, 0, &info)) && (code = sass_code(image, info.name, &count)) != NULL) {
        CHECK(remarks == 0);
        loop = sass_inner_loop(code, count, &first);
        all = way(code, first, first + loop - 1, 2, 0, SASS_MUFU,
                  &exponentials); /* without mask and large scores */
        kept = way(code, first, first + loop - 1, 3, 0, SASS_F2FP,
                   &conversions);              /* ... and with sums as they are */
        for (i = 0; i < first && !copy; i++) { /* the copying loop, without copies by cp.async */
            int64_t begin = sass_opcode(code, i) == SASS_BRA ? sass_target(code, i) : i;
            if ((int64_t)i - begin > 100) copy = way(code, (uint32_t)begin, i, 1, 1, SASS_MUFU, &unused);
        }
        CHECK(copy > 0);
        for (i = 1; i < 32;
             i++) /* one of a warp's 16 maxima grows in tile i of 32, where scores are random */
            grown += (1 - pow((double)i / (i + 1), 16)) / 31;
        issue = 2.0 * (kept + grown * (all - kept)) + copy;
        printf("note: %s, d %u: %u instructions a tile and warp, %u where no maximum grows, %u copy; %u ex2 and "
               "%u conversions "
               "of %u and %u; issue %.0f clocks of %.0f of the tensor cores, %.3f\n",
               ptx_type_name((ptx_type)type), d, all, kept, copy, exponentials, conversions, keys / 2, keys / 4,
               issue, tensor, issue / tensor);
        CHECK(loop && exponentials >= keys / 2 && exponentials <= 1.2 * keys / 2);
        CHECK(conversions >= keys / 4 && conversions <= 1.2 * keys / 4);
        CHECK(issue <= share * tensor && 2 * all + copy <= 1.02 * share * tensor);
    }
    ptx_module_free(m);
}

/* -- what the CPU driver counts -- */

/* Tiles that no query of a block sees are neither copied nor multiplied. */
static void counts_are_held(uint32_t d, uint32_t keys, uint32_t length, uint32_t flags, uint32_t window) {
    ptxk_flash_prefill_desc desc = describe(2, 1, d, REF_F16, flags);
    ptxsim_counters c;
    problem p;
    uint32_t i, tiles = 0;
    double products;
    desc.window = window;
    p = problem_new(desc, ROWS, 0, &length, &length, 1);
    problem_check(&p);
    cu.ptxsim_counters_get(&c, sizeof c);
    for (i = 0; i < length; i += 128) {
        uint32_t end = i + 128 < length ? i + 128 : length,
                 first = window && i + 1 > window ? i + 1 - window : 0;
        tiles += ((flags & 1 ? end : length) - first + keys - 1) / keys;
    }
    products = 2.0 * tiles * 2 * 128 * keys * d;
    printf("note: d %u, length %u, flags %u, window %u: %.4f of the products by tiles; %llu conflicts in "
           "%llu passes\n",
           d, length, flags, window, (double)c.tensor_operations / 2 / products,
           (unsigned long long)c.shared_bank_conflicts, (unsigned long long)c.shared_wavefronts);
    CHECK(c.tensor_operations > 0 && (double)c.tensor_operations / 2 <= 1.0001 * products);
    CHECK(c.shared_bank_conflicts * 50 <= c.shared_wavefronts && c.local_requests == 0);
    problem_free(&p);
}

int main(void) {
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    base_target = PTX_SM_A(90);
    instructions_per_tile(PTX_F16, 128, 128, 1, 0.5);
    instructions_per_tile(PTX_F16, 256, 64, 1, 0.5);
    instructions_per_tile(PTX_F16, 64, 128, 1, 1);
    instructions_per_tile(PTX_E4M3, 128, 128, 1, 1.06);
    instructions_per_tile(PTX_E4M3, 64, 128, 1, 1.9);
    if (CHECK(open_driver())) {
        if (capability != 90) {
            printf("SKIP flash_hopper: this device is not of sm_90\n");
            return check_end();
        }
        all_of_every_tile_is_stored();
        weights_and_values_are_not_transposed();
        sums_are_rescaled_between_tiles();
        nan_scores_make_their_query_nan_and_no_other();
        scale_and_cap_are_used();
        lengths_beyond_the_arguments();
        out_may_be_q();
        pages_past_the_pool();
        pages_before_the_window();
        offsets_past_2_to_32_elements();
        tile_edges();
        a_few_head_dims();
        bytes_with_factors(4);
        trees(6);
        sinks_above_the_keys();
        if (cu.ptxsim_counters_get) {
            counts_are_held(128, 128, 300, 1, 0);
            counts_are_held(64, 128, 400, 1, 100);
            counts_are_held(256, 64, 130, 0, 0);
        }
        build(NULL, 0);
        printf("note: largest error: %.3f of its bound; of lse %.3f\n", worst, worst_lse);
    }
    return check_end();
}
