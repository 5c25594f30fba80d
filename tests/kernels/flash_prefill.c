/* flash_prefill.c - attention of many queries is right, on odd shapes, at every edge, on tensor cores.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU.
 *
 * Data is fresh in every run; PTXGEN_SEED=n repeats one. Outputs are filled with NaN before each run, and so
 * is all of the tensors that belongs to no row. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../prefilltest.h"
#include "../sass.h"

static void check_on(unsigned target, ptxk_flash_prefill_desc desc, uint32_t q_len, uint32_t kv_len) {
    problem p = problem_new(desc, ROWS, 0, &q_len, &kv_len, 1);
    p.target = PTX_SM(target);
    problem_check(&p);
    problem_free(&p);
}

static void every_type_on_sm_75(void) {
    static const uint32_t dims[] = {8, 24, 40, 64, 72, 96, 128, 136, 160, 192, 256};
    uint32_t i, format;
    for (format = 0; format < 3; format++)
        for (i = 0; i < 11; i++)
            check_on(75, describe(2, 1, dims[i], (enum ref_format)format, i & 1), 50, 75);
}

static void an_empty_batch_has_no_launches(void) {
    ptxk_flash_prefill_desc desc = describe(4, 2, 64, REF_F16, 1);
    ptxk_flash_prefill_shape shape;
    ptx_plan plan;
    memset(&shape, 0, sizeof shape);
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, NULL) == PTX_E_NONE && !plan.launches);
    shape.batch = 3;
    shape.kv_len = 10;
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, NULL) == PTX_E_NONE && !plan.launches);
}

static void shared_memory_fits_every_device(void) {
    uint32_t d, format, rows = 0;
    for (format = 0; format < 3; format++) {
        for (d = 8; d <= 256; d += 8) {
            ptxk_flash_prefill_desc desc = describe(1, 1, d, (enum ref_format)format, 1);
            ptxk_flash_prefill_shape shape;
            ptx_plan plan;
            memset(&shape, 0, sizeof shape);
            shape.batch = 1, shape.q_len = shape.kv_len = 1000;
            CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, NULL) == PTX_E_NONE);
            rows = (1000 + plan.launch[0].grid[1] - 1) / plan.launch[0].grid[1];
            CHECK(plan.launches == 1 && plan.launch[0].shared_bytes <= 65536 && rows >= 30);
        }
    }
}

/* The first shared symbol is at 0 up to sm_89, and not from sm_90 on: the text must name it. */
static void shared_memory_is_addressed_by_its_symbol(void) {
    ptxk_flash_prefill_desc desc = describe(1, 1, 64, REF_F16, 1);
    ptx_module *m = ptx_module_new(NULL);
    const char *text;
    ptxk_flash_prefill_emit(m, &desc);
    text = ptx_text(m, NULL);
    CHECK(text && strstr(text, "mov.b32") && strstr(text, "$dynamic;"));
    ptx_module_free(m);
}

/* -- refusals -- */

static void refuse_desc(ptxk_flash_prefill_desc desc, const char *message) {
    ptxk_flash_prefill_shape shape;
    ptxk_flash_prefill_args args;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m = ptx_module_new(NULL);
    memset(&shape, 0, sizeof shape);
    memset(&args, 0, sizeof args);
    CHECK(ptxk_flash_prefill_emit(m, &desc) == PTX_E_DESC);
    CHECK_MORE(strstr(ptx_get_error(m)->message, message) != NULL, ptx_get_error(m)->message);
    CHECK_MORE(strstr(ptx_get_error(m)->message, "flash_prefill.c:") != NULL, ptx_get_error(m)->message);
    CHECK(ptx_entry_count(m) == 0);
    ptx_module_free(m);
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && plan.launches == 0);
    CHECK_MORE(strstr(why.text, message) != NULL, why.text);
    CHECK(ptxk_flash_prefill_check(&desc, &args, &why) == PTX_E_DESC);
}

static void bad_descriptions_are_refused(void) {
    ptxk_flash_prefill_desc good = describe(4, 2, 64, REF_F16, 1), d;
#define REFUSE(change, message) d = good, d.change, refuse_desc(d, message)
    REFUSE(heads = 0, "heads is 0, must be 1 to 65536");
    REFUSE(heads = 65538, "heads is 65538, must be 1 to 65536");
    REFUSE(heads = 5, "heads is 5, must be a multiple of kv_heads, 2");
    REFUSE(kv_heads = 0, "kv_heads is 0, must be 1 to 65536");
    REFUSE(head_dim = 0, "head_dim is 0, must be a multiple of 8 from 8 to 256");
    REFUSE(head_dim = 100, "head_dim is 100, must be a multiple of 8");
    REFUSE(head_dim = 512, "head_dim is 512, must be a multiple of 8 from 8 to 256");
    REFUSE(type = 0, "type is 0, must be PTX_F32, PTX_F16 or PTX_BF16");
    REFUSE(type = PTX_F64, "must be PTX_F32, PTX_F16 or PTX_BF16");
    REFUSE(out_type = PTX_U32, "out_type is PTX_U32");
    REFUSE(out_type = PTXK_F16, "out_type is PTXK_F16, must be PTX_F32");
    REFUSE(out_type = 0, "out_type is 0");
    REFUSE(flags = 32, "flags is 32");
    d = good, d.flags = PTXK_PREFILL_TREE, d.window = 3;
    refuse_desc(d, "window is 3, must be 0 with PTXK_PREFILL_TREE");
    REFUSE(flags = 4, "page_size is 0");
    REFUSE(page_size = 24, "page_size is 24");
    REFUSE(window = (1u << 30) + 1, "window is 1073741825, must be at most 2^30");
    REFUSE(precision = 1, "precision is 1, must be PTXK_PREFILL_EXACT with 16-bit types");
    REFUSE(precision = 2, "precision is 2");
    REFUSE(scale = INFINITY, "scale is inf");
    REFUSE(scale = NAN, "scale is ");
    REFUSE(soft_cap = -1, "soft_cap is -1");
    REFUSE(soft_cap = NAN, "soft_cap is ");
#undef REFUSE
}

static void refuse_args(const ptxk_flash_prefill_desc *desc, ptxk_flash_prefill_args args,
                        const char *message) {
    ptxk_message why;
    CHECK(ptxk_flash_prefill_check(desc, &args, &why) == PTX_E_ARGUMENT);
    CHECK_MORE(strstr(why.text, message) != NULL, why.text);
}

/* e4m3: for one target only, and fewer head dimensions. */
static void e4m3_elsewhere_is_refused(void) {
    static const uint32_t dims[] = {64, 72, 144};
    static const char *const messages[] = {
        "type is e4m3, which needs the target sm_90a",
        "head_dim is 72, with e4m3 must be a multiple of 16, at most 128",
        "head_dim is 144, with e4m3 must be a multiple of 16, at most 128"};
    uint32_t i;
    for (i = 0; i < 4; i++) {
        ptxk_flash_prefill_desc desc = describe(2, 1, i < 3 ? dims[i] : 128, REF_F16, 1);
        ptxk_flash_prefill_shape shape;
        ptx_module_desc module_desc;
        ptxk_message why;
        ptx_plan plan;
        ptx_module *m;
        memset(&shape, 0, sizeof shape);
        memset(&module_desc, 0, sizeof module_desc);
        shape.batch = shape.q_len = shape.kv_len = 1;
        module_desc.target = shape.target = i ? PTX_SM_A(90) : PTX_SM(90);
        desc.type = PTX_E4M3;
        m = ptx_module_new(&module_desc);
        ptxk_flash_prefill_emit(m, &desc);
        ptxk_flash_prefill_plan(&desc, &shape, &plan, &why);
        if (i == 3)
            CHECK(ptx_text(m, NULL) && plan.launches == 1 && plan.maps == 2);
        else {
            CHECK_MORE(strstr(ptx_get_error(m)->message, messages[i]) != NULL, ptx_get_error(m)->message);
            CHECK_MORE(strstr(why.text, messages[i]) != NULL, why.text);
        }
        ptx_module_free(m);
    }
}

static void bad_shapes_and_arguments_are_refused(void) {
    ptxk_flash_prefill_desc desc = describe(4, 2, 64, REF_F16, 3);
    ptxk_flash_prefill_shape shape;
    ptxk_flash_prefill_args good, a;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *m;
    memset(&shape, 0, sizeof shape);
    shape.batch = 1, shape.q_len = (1u << 30) + 1;
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && strstr(why.text, "q_len is"));
    shape.q_len = 1u << 30;
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) == PTX_E_DESC
          && strstr(why.text, "must be at most 8388480"));
    shape.q_len = 65535 * 128;
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) == PTX_E_NONE
          && plan.launch[0].grid[1] == 65535);
    shape.batch = 1u << 29;
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) == PTX_E_DESC && strstr(why.text, "batch is"));
    CHECK(ptxk_flash_prefill_plan(NULL, &shape, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_flash_prefill_plan(&desc, NULL, &plan, &why) == PTX_E_ARGUMENT);
    CHECK(ptxk_flash_prefill_plan(&desc, &shape, NULL, &why) == PTX_E_ARGUMENT);
    m = ptx_module_new(NULL);
    CHECK(ptxk_flash_prefill_emit(m, NULL) == PTX_E_ARGUMENT);
    ptx_module_free(m);
    CHECK(ptxk_flash_prefill_emit(NULL, &desc) != PTX_E_NONE);

    memset(&good, 0, sizeof good);
    shape.batch = 2, shape.q_len = 10, shape.kv_len = 20;
    ptxk_flash_prefill_pack(&desc, &shape, &good);
    good.q = 0x1000, good.k = 0x20000, good.v = 0x30000, good.out = 0x40000, good.lse = 0x50004;
    good.batch = 2, good.q_len = 10, good.kv_len = 20;
    CHECK_MORE(ptxk_flash_prefill_check(&desc, &good, &why) == PTX_E_NONE, why.text);
    CHECK(ptxk_flash_prefill_check(&desc, NULL, &why) == PTX_E_ARGUMENT);
#define REFUSE(change, message) a = good, a.change, refuse_args(&desc, a, message)
    REFUSE(q = 0, "q is 0");
    REFUSE(v = 0, "v is 0");
    REFUSE(out = 0, "out is 0");
    REFUSE(lse = 0, "lse is 0");
    REFUSE(k = 0x20008, "k is not aligned to 16 bytes");
    REFUSE(lse = 0x50002, "lse is not aligned to 4 bytes");
    REFUSE(cu_q = 2, "cu_q is not aligned to 4 bytes");
    REFUSE(k_head_stride = 60, "k_head_stride is 60, must be a multiple of 8 elements");
    REFUSE(v_row_stride = (uint64_t)1 << 32, "v_row_stride is 4294967296, must be below 2^32");
    REFUSE(q_batch_stride = (uint64_t)1 << 60, "q_batch_stride is");
    REFUSE(out_row_stride = 32, "rows of out overlap");
    REFUSE(out = 0x20000, "out overlaps k");
    REFUSE(kv_len = 0xffffffffu, "kv_len is 4294967295, must be 0 to 1073741824");
#undef REFUSE
}

/* With cumulative lengths q_len and kv_len are bounds: they may pass the rows that there are, in every
   layout, and wherever the tensors lie. What cannot be right is refused as before. */
static void bounds_above_the_rows_of_ragged_batches(void) {
    ptxk_flash_prefill_desc desc = describe(4, 2, 64, REF_F16, 3);
    ptxk_flash_prefill_shape shape = {3, 500, 700, 7, 9, 0};
    ptxk_flash_prefill_args a, rows;
    ptxk_message why;
    ptx_plan plan;
    CHECK(!ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) && plan.launch[0].grid[1] == 1);
    shape.q_total = 0;
    CHECK(!ptxk_flash_prefill_plan(&desc, &shape, &plan, &why) && plan.launch[0].grid[1] == 4);
    shape.q_total = 7;
    memset(&a, 0, sizeof a);
    a.cu_q = 0x1000, a.cu_kv = 0x2000;
    ptxk_flash_prefill_pack(&desc, &shape, &a);
    a.q = 0x10000, a.out = a.q + 7 * 4 * 128, a.k = a.out + 7 * 4 * 128, a.v = a.k + 9 * 2 * 128;
    a.lse = a.v + 9 * 2 * 128; /* all of them side by side */
    a.batch = 3, a.q_len = 500, a.kv_len = 700;
    CHECK_MORE(!ptxk_flash_prefill_check(&desc, &a, &why), why.text);
    rows = a;
    a.q_row_stride = a.out_row_stride = a.k_row_stride = a.v_row_stride = 64;
    a.q_head_stride = a.out_head_stride = 7 * 64;
    a.k_head_stride = a.v_head_stride = 9 * 64;
    CHECK_MORE(!ptxk_flash_prefill_check(&desc, &a, &why), why.text);
    a.q_head_stride = a.out_head_stride = a.k_head_stride = a.v_head_stride = 64; /* one row */
    a.lse_head_stride = 1;
    CHECK_MORE(!ptxk_flash_prefill_check(&desc, &a, &why), why.text);
    a.q = a.out;
    CHECK_MORE(!ptxk_flash_prefill_check(&desc, &a, &why), why.text);
#define REFUSE(change, message) a = rows, a.change, refuse_args(&desc, a, message)
    REFUSE(out_row_stride = 0, "rows of out overlap");
    REFUSE(out_row_stride = 3 * 64, "rows of out overlap");
    REFUSE(out_head_stride = 56, "rows of out overlap");
    REFUSE(lse_head_stride = 0, "rows of lse overlap");
    REFUSE(out = a.q + 16, "out overlaps q");
    REFUSE(k = a.out, "out overlaps k");
#undef REFUSE
}

/* -- what the CPU driver counts -- */

/* The reads of a causal block end at its last query: what remains is that each block reads them. All copies
   are of 16 bytes, no access of shared memory conflicts, the products are made by tensor cores. */
static void counts_are_held(uint32_t d, enum ref_format format, uint32_t precision, uint32_t length,
                            uint32_t flags) {
    ptxk_flash_prefill_desc desc = describe(2, 1, d, format, flags);
    ptxsim_counters c;
    problem p;
    double reads = 0, sectors, bytes = format == REF_F32 ? 4 : 2, least;
    uint32_t rows, i;
    desc.precision = precision;
    p = problem_new(desc, ROWS, 0, &length, &length, 1);
    problem_check(&p);
    cu.ptxsim_counters_get(&c, sizeof c);
    rows = d <= (format == REF_F32 ? 64 : 128) ? 128 : d > 160 && format == REF_F32 ? 32 : 64;
    CHECK(p.plan.launch[0].grid[1] == (length + rows - 1) / rows);
    for (i = 0; i < length; i += rows) {
        uint32_t end = i + rows < length ? i + rows : length;
        reads += (end - i) + 2.0 * (flags & 1 ? end : length);
    }
    reads *= 2 * d * bytes;
    sectors = 32.0 * (double)c.global_load_sectors;
    least = 2.0 * 2 * d * length * (double)length / (flags & 1 ? 2 : 1) * 2;
    printf("note: d %3u, %s, length %u, flags %u: %.4f of the reads by tiles, %.2f of the lower bound; %.1f "
           "bytes a "
           "copy; %llu conflicts in %llu passes; tensor operations %.2f of the fewest; %.2f warp "
           "instructions for "
           "each 16x8x16\n",
           d,
           format == REF_F32   ? "f32"
           : format == REF_F16 ? "f16"
                               : "bf16",
           length, flags, sectors / reads,
           (sectors + 32.0 * (double)c.global_store_sectors) / (double)p.plan.min_bytes,
           (double)c.async_copy_bytes / (double)c.async_copies, (unsigned long long)c.shared_bank_conflicts,
           (unsigned long long)c.shared_wavefronts, (double)c.tensor_operations / least,
           (double)c.warp_instructions / ((double)c.tensor_operations / 4096));
    CHECK(sectors <= 1.01 * reads);
    CHECK(c.async_copy_bytes == 16 * c.async_copies);
    CHECK(c.tensor_operations > 0 && c.local_requests == 0);
    /* f32 goes out by 8 bytes a lane, two passes more for each 8 rows and columns: at the end, not in the
       loop */
    CHECK(c.shared_bank_conflicts <= (format == REF_F32 ? (uint64_t)2 * 2 * (length / 8) * (d / 8) : 0));
    problem_free(&p);
}

static void traffic_conflicts_and_tensor_cores(void) {
    if (!cu.ptxsim_counters_get) {
        printf("SKIP traffic_conflicts_and_tensor_cores: only the CPU driver counts\n");
        return;
    }
    counts_are_held(128, REF_F16, 0, 512, 1);
    counts_are_held(128, REF_F16, 0, 512, 0);
    counts_are_held(64, REF_BF16, 0, 512, 1);
    counts_are_held(96, REF_F16, 0, 384, 1);
    counts_are_held(256, REF_F16, 0, 256, 1);
    counts_are_held(64, REF_F32, 0, 256, 1);
    counts_are_held(128, REF_F32, 1, 256, 0);
}

/* -- machine instructions, which ptxas alone can tell -- */

/* d 128, f16, causal: at most 5 instructions for each mma in the loop over tiles that all queries see. */
static void instructions_per_mma(void) {
    ptxk_flash_prefill_desc desc = describe(32, 8, 128, REF_F16, 1);
    ptx_module_desc module_desc;
    ptx_entry_info info;
    ptx_module *m;
    static unsigned char image[1 << 18];
    const unsigned char *code;
    uint32_t count, first = 0, loop, products;
    if (!sass_possible("instructions_per_mma")) return;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(90);
    m = ptx_module_new(&module_desc);
    ptxk_flash_prefill_emit(m, &desc);
    if (sass_assemble(ptx_text(m, NULL), image, sizeof image) && CHECK(ptx_entry_get(m, 0, &info))
        && (code = sass_code(image, info.name, &count)) != NULL) {
        loop = sass_inner_loop(code, count, &first);
        products = loop ? sass_products(code, first, first + loop - 1) : 0;
        printf("note: sm_90: %u instructions, %u in the loop, %u of them mma: %.2f for each\n", count, loop,
               products, (double)loop / products);
        CHECK(products >= 128 && loop <= 5 * products);
    }
    ptx_module_free(m);
}

int main(void) {
    start_random();
    if (!getenv("PTXSIM_MEMORY")) (void)setenv("PTXSIM_MEMORY", "68719476736", 1); /* sparse */
    bad_descriptions_are_refused();
    e4m3_elsewhere_is_refused();
    bad_shapes_and_arguments_are_refused();
    bounds_above_the_rows_of_ragged_batches();
    an_empty_batch_has_no_launches();
    shared_memory_fits_every_device();
    shared_memory_is_addressed_by_its_symbol();
    instructions_per_mma();
    if (CHECK(open_driver())) {
        all_of_every_tile_is_stored();
        weights_and_values_are_not_transposed();
        each_row_has_its_own_maximum_and_sum();
        sums_are_rescaled_between_tiles();
        the_diagonal_tile_is_masked();
        seq_that_is_no_multiple_of_16();
        d_that_is_no_multiple_of_16();
        gqa_of_every_kind();
        values_above_65504_stay_finite();
        values_near_the_largest_of_f32();
        small_weights_count();
        scores_of_any_size();
        infinite_scores();
        infinite_elements_of_q();
        nan_scores_make_their_query_nan_and_no_other();
        scale_and_cap_are_used();
        window_edges();
        ragged_batches_with_empty_sequences();
        lengths_beyond_the_arguments();
        out_may_be_q();
        keys_in_pages();
        pages_and_rows_have_the_same_bits();
        pages_past_the_pool();
        pages_before_the_window();
        offsets_past_2_to_32_elements();
        every_tile_edge();
        every_head_dim();
        every_type_on_sm_75();
        random_product();
        trees(24);
        sinks_above_the_keys();
        traffic_conflicts_and_tensor_cores();
        build(NULL, 0);
        printf("note: largest error: %.3f of its bound; of lse %.3f\n", worst, worst_lse);
    }
    return check_end();
}
