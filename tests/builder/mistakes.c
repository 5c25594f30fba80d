/* Mistakes. First the 115 wrong modules that a GPU assembler was measured on, many of which it takes in
   silence: each that the interface can express is made here and must be refused with the identifier
   that says what it is; the others are listed with the reason why they are not. Then more
   of the same kinds. Behind a mistake stands, where one is near, the same thing done right.

     make build/tests/builder/mistakes */
#include "../../ptxgen.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const all_names[] = {
    "T3_f32_op_on_b32_reg", "T4_u32_op_on_s32_reg_signedness", "T6_f16_op_on_b32_reg", "T8_pred_as_value",
    "T9_value_as_guard_pred", "T10_selp_with_r_as_pred", "T11_mul_wide_dst_too_narrow",
    "T12_shl_b64_with_64_bit_count", "T13_setp_dst_not_pred", "T14_setp_wrong_type_letters_lo_on_s32",
    "T15_missing_rounding_on_fma", "T16_cvt_f32_f16_no_rounding", "T17_cvt_f32_s32_no_rounding",
    "T18_cvt_with_needless_rounding", "T19_and_u32", "T20_div_f32_bare", "T22_too_many_operands",
    "T23_unknown_opcode", "T24_unknown_modifier", "T25_dst_immediate",
    "T27_ld_u8_into_b8_width_b16_ok_reg_f32", "N3_undefined_label", "N4_duplicate_label",
    "N7_duplicate_kernel", "N9_undefined_function", "N11_reg_name_opcode", "N12_name_starts_with_digit",
    "N13_write_to_special_reg", "I2_imm_too_big_for_u16_add", "I3_float_imm_int_syntax_mov_f32_1",
    "I4_add_f32_with_int_imm", "I5_decimal_float_1_5", "I7_0d_into_f32", "I8_f16_imm_0x3C00",
    "I11_shl_count_40_on_b32", "I12_bfe_pos_len_out_of_range", "I13_prmt_selector_0x9999999",
    "I15_bar_id_16", "I16_bar_thread_count_33", "I17_bar_count_0", "I18_cp_async_size_12",
    "I19_cp_async_bulk_size_8", "I20_setmaxnreg_41", "I21_setmaxnreg_300", "I22_tcgen05_alloc_100_cols",
    "I24_wgmma_n_12", "I26_mbarrier_init_count_0", "I27_mbarrier_init_count_2_20", "M1_v4_of_b64_on_sm_90",
    "M3_v4_with_3_regs", "M4_v4_without_braces", "M6_dup_dest_in_vector",
    "M7_v4_f32_at_imm_offset_4_misaligned", "M8_shared_var_aligned_4_v4_load_var", "M12_misaligned_param",
    "M13_global_space_with_32_bit_address_reg", "M15_shared_with_f32_address", "M17_st_param_kernel_param",
    "M19_shared_var_with_ld_global", "M23_align_3", "M24_param_32768", "M25_params_4352_at_old_version_7_8",
    "M26_ld_volatile_with_cache_op", "M29_cache_hint_without_policy", "M31_qualifier_order_wrong",
    "M32_qualifier_order_v4_before_space", "M34_null_immediate_address", "M35_address_offset_2_33",
    "M37_atom_cas_2_operands", "M38_ldmatrix_regs_3", "M40_mma_f32_frag_in_b32_regs",
    "M41_mma_a_frag_f32_regs", "V1_redux_on_sm_75", "V2_redux_with_version_6_5", "V3_wgmma_on_sm_90_no_a",
    "V5_cp_async_bulk_version_7_8", "V6_version_7_0_target_sm_90", "V7_version_9_1_too_new",
    "V8_target_sm_99", "V9_target_sm_90a_compiled_for_sm_100", "V10_target_sm_90_compiled_for_sm_80",
    "V14_no_version", "V16_no_address_size_64_bit_regs", "F2_uninit_pred", "F5_missing_ret_at_end",
    "F6_infinite_loop", "F7_unreachable_code", "F8_divergent_bar_sync_inside_tid_16",
    "F10_divergent_shfl_sync_full_mask", "F11_divergent_mma_sync",
    "F12_shared_race_no_bar_between_st_and_ld", "F13_predicate_use_before_def_in_loop",
    "F14_wgmma_acc_read_before_wait", "F16_predicated_call_param", "F17_call_arg_count",
    "F18_call_arg_type_size", "F19_recursion", "F20_missing_semicolon", "F22_guard_on_label",
    "F23_guard_on_reg_decl", "F24_nested_entry_barrier_in_func", "F25_exit_in_divergent_then_barrier",
    "D3_maxntid_reqntid", "D4_maxnreg_300", "D6_maxnreg_minnctapersm", "D7_reqnctapercluster_16",
    "D8_reqnctapercluster_17", "D9_unknown_pragma", "D10_1024_minnctapersm_ntid", "D11_non_ASCII_comment",
    "D12_very_long_identifier_2000", "D15_extern_shared_sized_static_overlap",
    "D16_const_initializer_too_many", "D17_shared_initializer", "D18_loc_without_file",
};
#define ALL (sizeof all_names / sizeof *all_names)
static int met[ALL];
static void meet(const char *name, int line) {
    size_t i;
    for (i = 0; i < ALL; i++)
        if (strcmp(all_names[i], name) == 0) break;
    if (i < ALL) met[i]++;
    else if (name[0] != '+')
        CHECK_AT(0, line, "no such mistake", name);
}

/* -- a kernel with one value of each kind -- */

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, w, n, u, s, f, g, h, d, b, i16, c, tid, lane, sh, mine, blk, zero;

static void start_with(ptx_target target, uint32_t cap) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = target;
    desc.max_version = cap;
    m = ptx_module_new(&desc);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    w = ptx_param(k, "w", PTX_U64);
    n = ptx_param(k, "n", PTX_U32);
    s = ptx_param(k, "s", PTX_S32);
    f = ptx_param(k, "f", PTX_F32);
    h = ptx_param(k, "h", PTX_F16);
    d = ptx_param(k, "d", PTX_F64);
    i16 = ptx_param(k, "i16", PTX_U16);
    blk = ptx_param_bytes(k, "blk", 16, 8);
    sh = ptx_shared(k, "sh", PTX_U32, 1024, 128);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    mine = ptx_ptr_add(k, sh, tid, 4);
    zero = ptx_mov(k, ptx_u32(0));
    u = ptx_add(k, n, ptx_imm(1));
    g = ptx_add(k, f, f);
    b = ptx_as(u, PTX_B32);
    c = ptx_setp(k, PTX_LT, n, ptx_imm(5));
}
static void start(void) { start_with(PTX_SM(90), 0); }
static void start_a(void) { start_with(PTX_SM_A(90), 0); }

static int with_ret = 1;
static void refused(int line, const char *name, ptx_code code) {
    const ptx_error *e;
    char where[300];
    if (with_ret) ptx_ret(k);
    with_ret = 1;
    ptx_text(m, NULL);
    e = ptx_get_error(m);
    CHECK_AT(e->code == code, line, name, *e->message ? e->message : "accepted");
    snprintf(where, sizeof where, "%s:%d: error: ", __FILE__, line);
    if (e->code && *e->site)
        CHECK_AT(strncmp(e->message, __FILE__, strlen(__FILE__)) == 0, line, name, e->message);
    meet(name, line);
    ptx_module_free(m);
}
#define REFUSED(name, code) refused(__LINE__, name, PTX_E_##code)
#define FINE refused(__LINE__, "+ the same done right", PTX_E_NONE)

static ptx_val load(ptx_val address, int64_t offset) { return ptx_ld(k, PTX_U32, ptx_at(address, offset)); }
static void store(ptx_val x) { ptx_st(k, PTX_U32, ptx_at(p, 0), x); }
static void barrier(void) { ptx_bar_sync(k, ptx_imm(0)); }
static ptx_val shuffle(void) {
    return ptx_shfl_bfly(k, u, ptx_imm(1), ptx_imm(31), ptx_b32(0xffffffff));
}
static ptx_val some(void) { return ptx_setp(k, PTX_LT, tid, ptx_imm(16)); }

static void types(void) {
    ptx_var v;
    ptx_val x;
    start(), ptx_add(k, b, b), REFUSED("T3_f32_op_on_b32_reg", FORM);
    start(), ptx_add(k, ptx_as(b, PTX_F32), f), FINE;
    start(), ptx_add(k, u, s), REFUSED("T4_u32_op_on_s32_reg_signedness", TYPE);
    start(), ptx_add(k, h, b), REFUSED("T6_f16_op_on_b32_reg", TYPE);
    start(), ptx_add(k, u, c), REFUSED("T8_pred_as_value", TYPE);
    start(), ptx_guard(k, u), store(u), REFUSED("T9_value_as_guard_pred", TYPE);
    start(), ptx_selp(k, u, n, s), REFUSED("T10_selp_with_r_as_pred", TYPE);
    start(), v = ptx_var_new(k, u), ptx_set(k, v, ptx_mul_wide(k, u, n));
    REFUSED("T11_mul_wide_dst_too_narrow", TYPE);
    start(), ptx_shl(k, w, w), REFUSED("T12_shl_b64_with_64_bit_count", TYPE);
    start(), ptx_shl(k, w, u), FINE;
    start(), v = ptx_var_new(k, u), ptx_set(k, v, c), REFUSED("T13_setp_dst_not_pred", TYPE);
    start(), ptx_setp(k, PTX_LTU, s, s), REFUSED("T14_setp_wrong_type_letters_lo_on_s32", MODIFIER);
    start(), ptx_cvt_with(k, PTX_RN, PTX_F32, h), REFUSED("T18_cvt_with_needless_rounding", MODIFIER);
    start(), ptx_op3(k, PTX_ADD, 0, u, u, u), REFUSED("T22_too_many_operands", ARGUMENT);
    start(), ptx_op2(k, PTX__OP_COUNT, 0, u, u), REFUSED("T23_unknown_opcode", ARGUMENT);
    start(), ptx_op2(k, PTX_ADD, PTX_APPROX, f, f), REFUSED("T24_unknown_modifier", MODIFIER);
    start(), v.cell = ptx_u32(1), ptx_set(k, v, u), REFUSED("T25_dst_immediate", HANDLE);
    start(), x = ptx_ld(k, PTX_U8, ptx_at(p, 0)), ptx_add(k, f, x);
    REFUSED("T27_ld_u8_into_b8_width_b16_ok_reg_f32", TYPE);
}

static void names(void) {
    ptx_label l;
    ptx_kernel *q;
    start(), l = ptx_label_new(k), ptx_guard(k, c), ptx_bra(k, l), REFUSED("N3_undefined_label", LABEL);
    start(), l = ptx_label_new(k), ptx_place(k, l), ptx_place(k, l), REFUSED("N4_duplicate_label", LABEL);
    start(), ptx_ret(k), ptx_entry(m, "k"), with_ret = 0, REFUSED("N7_duplicate_kernel", NAME_TAKEN);
    start(), ptx_call(k, NULL, 0, NULL), REFUSED("N9_undefined_function", ARGUMENT);
    start(), ptx_ret(k), ptx_entry(m, "2k"), with_ret = 0, REFUSED("N12_name_starts_with_digit", NAME);
    {
        char name[2001];
        memset(name, 'a', 2000), name[2000] = 0;
        start(), ptx_ret(k), ptx_entry(m, name), with_ret = 0, REFUSED("D12_very_long_identifier_2000", NAME);
    }
    start(), ptx_ret(k), q = ptx_entry(m, "q"), ptx_call(q, k, 0, NULL), ptx_ret(q), with_ret = 0;
    REFUSED("F24_nested_entry_barrier_in_func", ARGUMENT);
}

static void immediates(void) {
    ptx_var v;
    ptx_val o[7];
    ptx_var sums[6];
    int i;
    start(), ptx_add(k, i16, ptx_imm(70000)), REFUSED("I2_imm_too_big_for_u16_add", RANGE);
    start(), ptx_add(k, i16, ptx_imm(65535)), FINE;
    start(), v = ptx_var_new(k, f), ptx_set(k, v, ptx_imm(1)),
             REFUSED("I3_float_imm_int_syntax_mov_f32_1", TYPE);
    start(), ptx_add(k, f, ptx_imm(1)), REFUSED("I4_add_f32_with_int_imm", TYPE);
    start(), ptx_add(k, f, ptx_f64(1)), REFUSED("I7_0d_into_f32", TYPE);
    start(), ptx_add(k, h, ptx_imm(0x3c00)), REFUSED("I8_f16_imm_0x3C00", TYPE);
    start(), ptx_shl(k, u, ptx_imm(40)), REFUSED("I11_shl_count_40_on_b32", RANGE);
    start(), ptx_bfe(k, u, ptx_imm(40), ptx_imm(40)), REFUSED("I12_bfe_pos_len_out_of_range", RANGE);
    start(), ptx_prmt(k, b, b, ptx_imm(0x9999999)), REFUSED("I13_prmt_selector_0x9999999", RANGE);
    start(), ptx_bar_sync(k, ptx_imm(16)), REFUSED("I15_bar_id_16", RANGE);
    start(), ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(33)), REFUSED("I16_bar_thread_count_33", RANGE);
    start(), ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(0)), REFUSED("I17_bar_count_0", RANGE);
    start(), ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(64)), FINE;
    start(), ptx_cp_async(k, sh, p, ptx_imm(12)), REFUSED("I18_cp_async_size_12", RANGE);
    start(), ptx_bulk_load(k, sh, p, ptx_imm(8), sh), REFUSED("I19_cp_async_bulk_size_8", RANGE);
    start_a(), ptx_op1(k, PTX_SETMAXNREG_DEC, 0, ptx_imm(41)), REFUSED("I20_setmaxnreg_41", RANGE);
    start_a(), ptx_op1(k, PTX_SETMAXNREG_INC, 0, ptx_imm(300)), REFUSED("I21_setmaxnreg_300", RANGE);
    start_with(PTX_SM_A(100), 0), ptx_op2(k, PTX_TCGEN05_ALLOC, PTX_CTA_GROUP_1, sh, ptx_imm(100));
    REFUSED("I22_tcgen05_alloc_100_cols", RANGE);
    start_a();
    for (i = 0; i < 6; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
    o[0] = o[1] = w, o[2] = c, o[3] = o[4] = ptx_imm(1), o[5] = o[6] = ptx_imm(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 6, sums, 7, o);
    REFUSED("I24_wgmma_n_12", ARGUMENT);
    start(), ptx_mbarrier_init(k, sh, ptx_imm(0)), REFUSED("I26_mbarrier_init_count_0", RANGE);
    start(), ptx_mbarrier_init(k, sh, ptx_imm(1 << 20)), REFUSED("I27_mbarrier_init_count_2_20", RANGE);
    start(), ptx_mbarrier_init(k, sh, ptx_imm((1 << 20) - 1)), FINE;
}

static void memory(void) {
    ptx_val v[8];
    ptx_val a[4], bb[2], cc[4], dd[4];
    int i;
    start(), ptx_ld_vec(k, PTX_B64, 4, ptx_at(p, 0), v), REFUSED("M1_v4_of_b64_on_sm_90", VECTOR);
    start_with(PTX_SM(100), 0), ptx_ld_vec(k, PTX_B64, 4, ptx_at(p, 0), v), FINE;
    start(), ptx_ld_vec(k, PTX_U32, 3, ptx_at(p, 0), v), REFUSED("M3_v4_with_3_regs", VECTOR);
    start(), ptx_ld_vec(k, PTX_U32, 4, ptx_at(ptx_shared(k, "four", PTX_U32, 64, 4), 0), v);
    REFUSED("M8_shared_var_aligned_4_v4_load_var", ALIGN);
    start(), ptx_ld(k, PTX_U64, ptx_at(blk, 4)), REFUSED("M12_misaligned_param", ALIGN);
    start(), load(ptx_ptr(u, PTX_GLOBAL), 0), REFUSED("M13_global_space_with_32_bit_address_reg", ADDRESS);
    start(), load(ptx_ptr(f, PTX_SHARED), 0), REFUSED("M15_shared_with_f32_address", ADDRESS);
    start(), ptx_st(k, PTX_U32, ptx_at(blk, 0), u), REFUSED("M17_st_param_kernel_param", MODIFIER);
    start(), load(ptx_ptr(sh, PTX_GLOBAL), 0), REFUSED("M19_shared_var_with_ld_global", ADDRESS);
    start(), ptx_shared(k, "three", PTX_U8, 8, 3), REFUSED("M23_align_3", ARGUMENT);
    start(), ptx_param_bytes(k, "big", 32768, 4), REFUSED("M24_param_32768", PARAM_LIMIT);
    start_with(PTX_SM(80), 78), ptx_param_bytes(k, "big", 5000, 4);
    REFUSED("M25_params_4352_at_old_version_7_8", PARAM_LIMIT);
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_VOLATILE | PTX_CA));
    REFUSED("M26_ld_volatile_with_cache_op", MODIFIER);
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_L2_CACHE_HINT));
    REFUSED("M29_cache_hint_without_policy", HANDLE);
    start(), ptx_ld(k, PTX_U32, ptx_at(ptx_imm(0), 0)), REFUSED("M34_null_immediate_address", HANDLE);
    start(), load(p, (int64_t)1 << 33), REFUSED("M35_address_offset_2_33", RANGE);
    start(), ptx_atom(k, PTX_ATOM_CAS, ptx_at(p, 0), u), REFUSED("M37_atom_cas_2_operands", MODIFIER);
    start(), ptx_ldmatrix(k, 3, sh, v), REFUSED("M38_ldmatrix_regs_3", ARGUMENT);
    start();
    for (i = 0; i < 4; i++) a[i] = b, cc[i] = u, bb[i & 1] = b;
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, dd, a, bb, cc);
    REFUSED("M40_mma_f32_frag_in_b32_regs", TYPE);
    start();
    for (i = 0; i < 4; i++) a[i] = f, cc[i] = f, bb[i & 1] = b;
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, dd, a, bb, cc);
    REFUSED("M41_mma_a_frag_f32_regs", TYPE);
    start();
    for (i = 0; i < 4; i++) a[i] = b, cc[i] = f, bb[i & 1] = b;
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, dd, a, bb, cc), FINE;
}

static void versions(void) {
    start_with(PTX_SM(75), 0), ptx_op2(k, PTX_REDUX_ADD, 0, u, ptx_imm(-1)),
        REFUSED("V1_redux_on_sm_75", TARGET);
    start_with(PTX_SM(75), 65), ptx_op2(k, PTX_REDUX_ADD, 0, u, ptx_imm(-1));
    REFUSED("V2_redux_with_version_6_5", TARGET);
    start(), ptx_op0(k, PTX_WGMMA_FENCE, 0), REFUSED("V3_wgmma_on_sm_90_no_a", TARGET);
    start_with(PTX_SM(90), 78), ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
    REFUSED("V5_cp_async_bulk_version_7_8", VERSION);
    start_with(PTX_SM(90), 70), REFUSED("V6_version_7_0_target_sm_90", VERSION);
    start_with(PTX_SM(99), 0), REFUSED("V8_target_sm_99", TARGET);
}

static void flow(void) {
    ptx_val x, args[2], dd[4], a[4], bb[2], cc[4];
    ptx_var sums[4];
    ptx_kernel *q;
    ptx_label l;
    int i;
    start(), ptx_if(k, c), x = ptx_setp(k, PTX_EQ, n, zero), ptx_end(k), ptx_guard(k, x), store(u);
    REFUSED("F2_uninit_pred", UNDEFINED);
    start(), store(u), with_ret = 0, REFUSED("F5_missing_ret_at_end", FALL_OFF);
    start(), ptx_loop(k), store(u), ptx_end(k), with_ret = 0, REFUSED("F6_infinite_loop", ENDLESS);
    start(), ptx_ret(k), store(u), REFUSED("F7_unreachable_code", UNREACHABLE);
    start(), ptx_if(k, some()), barrier(), ptx_end(k);
    REFUSED("F8_divergent_bar_sync_inside_tid_16", DIVERGENT);
    start(), ptx_if(k, some()), shuffle(), ptx_end(k),
        REFUSED("F10_divergent_shfl_sync_full_mask", DIVERGENT);
    start();
    for (i = 0; i < 4; i++) a[i] = b, cc[i] = f, bb[i & 1] = b;
    ptx_if(k, some()), ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, dd, a, bb, cc), ptx_end(k);
    REFUSED("F11_divergent_mma_sync", DIVERGENT);
    start(), l = ptx_label_new(k), ptx_guard(k, c), ptx_bra(k, l), x = ptx_setp(k, PTX_EQ, n, zero);
    ptx_place(k, l), ptx_loop(k), ptx_while(k, x), ptx_end(k);
    REFUSED("F13_predicate_use_before_def_in_loop", UNDEFINED);
    start_a();
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
    {
        ptx_val o[7];
        o[0] = o[1] = w, o[2] = c, o[3] = o[4] = ptx_imm(1), o[5] = o[6] = ptx_imm(0);
        ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
        store(ptx_as(ptx_get(k, sums[0]), PTX_U32));
    }
    REFUSED("F14_wgmma_acc_read_before_wait", ASYNC);
    start(), q = ptx_func(m, "q", PTX_NONE), ptx_param(q, "x", PTX_U32), ptx_ret(q);
    args[0] = u, args[1] = u, ptx_guard(k, c), ptx_call(k, q, 1, args);
    REFUSED("F16_predicated_call_param", GUARD);
    start(), q = ptx_func(m, "q", PTX_NONE), ptx_param(q, "x", PTX_U32), ptx_ret(q);
    ptx_call(k, q, 2, args), REFUSED("F17_call_arg_count", ARGUMENT);
    start(), q = ptx_func(m, "q", PTX_NONE), ptx_param(q, "x", PTX_U32), ptx_ret(q);
    ptx_call(k, q, 1, &w), REFUSED("F18_call_arg_type_size", TYPE);
    start(), q = ptx_func(m, "q", PTX_NONE), ptx_call(q, q, 0, NULL), REFUSED("F19_recursion", RECURSION);
    start(), l = ptx_label_new(k), ptx_guard(k, c), ptx_place(k, l), REFUSED("F22_guard_on_label", GUARD);
    start(), ptx_guard(k, c), ptx_shared(k, "more", PTX_U32, 4, 0), REFUSED("F23_guard_on_reg_decl", GUARD);
    start(), ptx_if(k, some()), ptx_exit(k), ptx_end(k), barrier();
    REFUSED("F25_exit_in_divergent_then_barrier", DIVERGENT);
}

static void directives(void) {
    ptx_variable_desc desc;
    start(), ptx_launch_bounds(k, 128, 0), ptx_require_block(k, 128, 1, 1);
    REFUSED("D3_maxntid_reqntid", LAUNCH_LIMIT);
    start(), ptx_max_registers(k, 300), REFUSED("D4_maxnreg_300", LAUNCH_LIMIT);
    start(), ptx_max_registers(k, 64), ptx_launch_bounds(k, 128, 2);
    REFUSED("D6_maxnreg_minnctapersm", LAUNCH_LIMIT);
    start(), ptx_require_cluster(k, 16, 1, 1), FINE;
    start(), ptx_require_cluster(k, 17, 1, 1), REFUSED("D8_reqnctapercluster_17", LAUNCH_LIMIT);
    start(), ptx_pragma(k, "bogus"), REFUSED("D9_unknown_pragma", ARGUMENT);
    start(), ptx_launch_bounds(k, 1024, 4), REFUSED("D10_1024_minnctapersm_ntid", LAUNCH_LIMIT);
    start(), memset(&desc, 0, sizeof desc), desc.name = "tab", desc.type = PTX_U32, desc.count = 4;
    desc.space = PTX_SHARED, desc.data = "0123456789abcdef", ptx_variable(m, &desc);
    REFUSED("D17_shared_initializer", ARGUMENT);
}

/* More of the same kinds, which no list had. */
static void further(void) {
    ptx_val x, y, args[2], v[8];
    ptx_var r;
    ptx_label l, l2;
    ptx_kernel *q;
    ptx_module *m2;
    int i;
    /* spaces */
    start(), ptx_ldmatrix(k, 1, p, &x), REFUSED("+ ldmatrix from global memory", ADDRESS);
    start(), ptx_cp_async(k, p, sh, ptx_imm(16)), REFUSED("+ cp.async the wrong way round", ADDRESS);
    start(), ptx_mbarrier_init(k, p, ptx_imm(1)), REFUSED("+ an mbarrier in global memory", ADDRESS);
    start(), ptx_add(k, sh, p), REFUSED("+ a shared and a global address added", TYPE);
    start(), x = ptx_cvt(k, PTX_U32, p), load(ptx_ptr(x, PTX_GLOBAL), 0),
             REFUSED("+ a global address cut to 32 bits", ADDRESS);
    start(), x = ptx_cvta(k, sh), load(x, 0), FINE;
    start(), ptx_red(k, PTX_ATOM_ADD, ptx_at(ptx_address(k, ptx_variable(m, NULL)), 0), u),
             REFUSED("+ a variable without a description", ARGUMENT);
    start();
    {
        ptx_variable_desc desc = {"table", PTX_CONST, PTX_U32, 4, 0, NULL, 0};
        x = ptx_address(k, ptx_variable(m, &desc)), ptx_st(k, PTX_U32, ptx_at(x, 0), u);
        REFUSED("+ a store to constant memory", MODIFIER);
        start(), desc.count = 20000, ptx_variable(m, &desc), REFUSED("+ constants over 64 KiB", CONST_LIMIT);
    }
    start(), ptx_shared(k, "big", PTX_U32, 12000, 0), REFUSED("+ shared memory over 48 KiB", SHARED_LIMIT);
    start(), ptx_shared(k, "big", PTX_U64, 0xffffffffu, 0), REFUSED("+ a size that wraps", SHARED_LIMIT);
    /* widths and signs */
    start(), ptx_st(k, PTX_U32, ptx_at(p, 0), w), REFUSED("+ 64 bits into a store of 32", TYPE);
    start(), ptx_st(k, PTX_F32, ptx_at(p, 0), u), REFUSED("+ an integer into a store of f32", TYPE);
    start(), ptx_setp(k, PTX_LT, u, s), REFUSED("+ u32 compared with s32", TYPE);
    start(), ptx_setp(k, PTX_LT, u, ptx_imm(-1)), REFUSED("+ u32 compared with -1", RANGE);
    start(), ptx_add(k, u, ptx_u32((uint64_t)1 << 32)), REFUSED("+ 2^32 as u32", RANGE);
    start(), ptx_add(k, s, ptx_s32((int64_t)1 << 31)), REFUSED("+ 2^31 as s32", RANGE);
    start(), ptx_add(k, f, ptx_f32(1e300)), REFUSED("+ 1e300 as f32", RANGE);
    start(), ptx_add(k, h, ptx_f16(1e6)), REFUSED("+ 1e6 as f16", RANGE);
    start(), ptx_op4(k, PTX_LOP3, 0, b, b, b, ptx_imm(0x196)), REFUSED("+ a table of lop3 of 9 bits", RANGE);
    start(), ptx_shfl_bfly(k, u, ptx_f32(16), ptx_imm(31), ptx_imm(-1)),
        REFUSED("+ a float as a lane mask", TYPE);
    start(), ptx_shfl_idx(k, w, zero, ptx_imm(31), ptx_imm(-1)), REFUSED("+ a shuffle of 64 bits", FORM);
    start(), ptx_fma(k, f, g, d), REFUSED("+ f32 * f32 + f64", TYPE);
    start(), ptx_ptr_add(k, p, f, 4), REFUSED("+ a float as an index", TYPE);
    /* warps and blocks */
    start(), ptx_for(k, lane, n, ptx_u32(32)), shuffle(), ptx_end(k),
        REFUSED("+ shfl in a loop by lane", DIVERGENT);
    start(), ptx_if(k, c), store(u), ptx_else(k), ptx_if(k, some()), barrier(), ptx_end(k), ptx_end(k);
    REFUSED("+ a barrier in an if in an else", DIVERGENT);
    start(), ptx_if(k, some()), store(u), ptx_else(k), barrier(), ptx_end(k);
    REFUSED("+ a barrier in the else of a divergent if", DIVERGENT);
    start(), ptx_loop(k), ptx_guard(k, some()), ptx_ret(k), barrier(), ptx_while(k, c), ptx_end(k);
    REFUSED("+ a barrier in a loop that threads have left", DIVERGENT);
    start(), ptx_guard(k, some()), ptx_ret(k), shuffle(), REFUSED("+ shfl after some returned", DIVERGENT);
    start(), ptx_guard(k, some()), barrier(), REFUSED("+ a guarded barrier", DIVERGENT);
    start(), x = load(p, 0), ptx_for(k, zero, x, ptx_u32(1)), barrier(), ptx_end(k);
    REFUSED("+ a barrier in a loop as long as what was loaded", DIVERGENT);
    start(), ptx_loop(k), ptx_while(k, c), ptx_if(k, some()), ptx_continue(k), ptx_end(k), barrier(),
        ptx_end(k);
    REFUSED("+ a barrier that some skip by continue", DIVERGENT);
    start(), ptx_switch(k, lane, 2), ptx_case(k, 0), shuffle(), ptx_case(k, 1), store(u), ptx_end(k);
    REFUSED("+ shfl in a case of a switch on the lane", DIVERGENT);
    start(), l = ptx_label_new(k), ptx_guard(k, some()), ptx_bra(k, l);
    ptx_op2(k, PTX_VOTE_ALL, 0, c, ptx_imm(-1)), ptx_place(k, l),
        REFUSED("+ vote behind a divergent branch", DIVERGENT);
    start(), ptx_if(k, some()), ptx_cluster_arrive(k), ptx_cluster_wait(k), ptx_end(k);
    REFUSED("+ a cluster barrier for some", DIVERGENT);
    start(), q = ptx_func(m, "q", PTX_NONE), ptx_bar_sync(q, ptx_imm(0)), ptx_ret(q);
    ptx_if(k, some()), ptx_call(k, q, 0, NULL), ptx_end(k),
        REFUSED("+ a barrier in a function that some call", DIVERGENT);
    /* paths */
    start(), l = ptx_label_new(k), l2 = ptx_label_new(k), ptx_guard(k, c), ptx_bra(k, l),
             x = ptx_add(k, u, u);
    ptx_bra(k, l2), ptx_place(k, l), store(u), ptx_place(k, l2), store(x);
    REFUSED("+ a value of one of two paths to a label", UNDEFINED);
    start(), ptx_loop(k), ptx_guard(k, c), ptx_break(k), x = ptx_add(k, u, u), ptx_end(k), store(x);
    REFUSED("+ a value of a loop that may have no round", UNDEFINED);
    start(), ptx_if(k, c), r = ptx_var_new(k, u), ptx_end(k), ptx_set(k, r, n);
    REFUSED("+ a variable declared on one path", UNDEFINED);
    start(), ptx_guard(k, c), ptx_add(k, u, u), REFUSED("+ a guard before a value", GUARD);
    start(), store(u), ptx_guard(k, c), with_ret = 0, REFUSED("+ a guard before nothing", GUARD);
    start(), ptx_guard(k, c), ptx_guard(k, c), store(u), REFUSED("+ two guards", GUARD);
    start(), ptx_if(k, c), store(u), REFUSED("+ an if that is not closed", SCOPE);
    start(), ptx_else(k), REFUSED("+ an else without an if", SCOPE);
    start(), ptx_break(k), REFUSED("+ a break outside of loops", SCOPE);
    /* waits */
    start(), ptx_cp_async(k, sh, p, ptx_imm(16)), ptx_cp_async_commit(k);
    ptx_if(k, c), ptx_cp_async_wait_all(k), ptx_end(k), store(load(mine, 0));
    REFUSED("+ cp.async waited for on one path", ASYNC);
    start(), ptx_cp_async(k, sh, p, ptx_imm(16)), ptx_cp_async_wait(k, 0), store(load(mine, 0));
    REFUSED("+ cp.async waited for without a group", ASYNC);
    start_a();
    {
        ptx_var sums[4];
        ptx_val o[7];
        for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
        sums[3] = sums[0];
        o[0] = o[1] = w, o[2] = c, o[3] = o[4] = ptx_imm(1), o[5] = o[6] = ptx_imm(0);
        ptx_op0(k, PTX_WGMMA_FENCE, 0), ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
        REFUSED("+ a variable twice in the sums of wgmma", ARGUMENT);
    }
    /* handles */
    start(), m2 = ptx_module_new(NULL), q = ptx_entry(m2, "q"), x = ptx_param(q, "x", PTX_U32);
    ptx_add(k, u, x), REFUSED("+ a value of another module", FOREIGN), ptx_module_free(m2);
    start(), q = ptx_entry(m, "q"), x = ptx_param(q, "x", PTX_U32), ptx_ret(q), ptx_add(k, u, x);
    REFUSED("+ a value of another kernel", FOREIGN);
    start(), y = u, ptx_module_reset(m), k = ptx_entry(m, "k"), store(y),
             REFUSED("+ a value of before the reset", FOREIGN);
    start(), memset(&x, 0, sizeof x), ptx_add(k, u, x), REFUSED("+ a value of zeros", HANDLE);
    start(), memset(&x, 0xff, sizeof x), ptx_add(k, u, x), REFUSED("+ a value of ones", HANDLE);
    start(), ptx_ld_vec(k, PTX_U32, 4, ptx_at(p, 0), NULL), REFUSED("+ a vector into NULL", ARGUMENT);
    start(), ptx_call(k, k, 0, NULL), REFUSED("+ a kernel that calls itself", ARGUMENT);
    start(), ptx_raw(k, NULL, 0, NULL, 0, NULL, NULL), REFUSED("+ raw text of NULL", ARGUMENT);
    start(), ptx_raw(k, "add.u32 $0, $1, $2;", 1, args, 0, NULL, NULL),
        REFUSED("+ raw text with too few operands", ARGUMENT);
    start(), ptx_printf(k, NULL, 0, NULL), REFUSED("+ printf of NULL", ARGUMENT);
    /* addresses */
    start(), ptx_ld_vec(k, PTX_U32, 4, ptx_at(ptx_add(k, sh, ptx_imm(8)), 0), v),
        REFUSED("+ 16 bytes at 8 of an array", ALIGN);
    start(), load(sh, 4096), REFUSED("+ just behind an array", ADDRESS);
    start(), load(ptx_ptr_add(k, sh, ptx_u32(4096), 1), 0),
        REFUSED("+ just behind an array, by an index", ADDRESS);
    start(), ptx_ld(k, PTX_U32, ptx_at(blk, 16)), REFUSED("+ just behind a parameter", ADDRESS);
}

/* What nobody can write with this interface, or what only a run shows, and why. */
static void impossible(void) {
    static const char *const why[][2] = {
        {"M7_v4_f32_at_imm_offset_4_misaligned", "a pointer's alignment is known at run time"},
        {"F12_shared_race_no_bar_between_st_and_ld", "races are found by running"},
        {"D7_reqnctapercluster_16", "right where the launch allows clusters of that size"},
        {"T15_missing_rounding_on_fma", "fma has a default rounding, .rn"},
        {"T16_cvt_f32_f16_no_rounding", "cvt has a default rounding wherever it rounds"},
        {"T17_cvt_f32_s32_no_rounding", "the same"},
        {"T19_and_u32", "logic prints the b type of its operands' width"},
        {"T20_div_f32_bare", "div has a default rounding, .rn"},
        {"N11_reg_name_opcode", "registers have no names here"},
        {"N13_write_to_special_reg", "ptx_sreg gives a copy, and only variables are written to"},
        {"I5_decimal_float_1_5", "immediates print as hexadecimal bits of their type"},
        {"M4_v4_without_braces", "the builder prints the braces"},
        {"M6_dup_dest_in_vector", "a load makes new values, each once"},
        {"M31_qualifier_order_wrong", "modifiers print in the order of their bits"},
        {"M32_qualifier_order_v4_before_space", "the same"},
        {"V7_version_9_1_too_new", "the .version is the lowest that does, and of a known target"},
        {"V9_target_sm_90a_compiled_for_sm_100", "a matter of who loads the module, not of its text"},
        {"V10_target_sm_90_compiled_for_sm_80", "the same"},
        {"V14_no_version", "the builder prints it"},
        {"V16_no_address_size_64_bit_regs", "the builder prints it"},
        {"F20_missing_semicolon", "the builder prints it"},
        {"D11_non_ASCII_comment", "such characters become '?'"},
        {"D15_extern_shared_sized_static_overlap",
         "dynamic shared memory has no size here, and a name of its own"},
        {"D16_const_initializer_too_many", "an initialiser has as many bytes as its variable"},
        {"D18_loc_without_file", "the builder prints .file for each file of a .loc"}};
    size_t i;
    for (i = 0; i < sizeof why / sizeof *why; i++) meet(why[i][0], __LINE__);
    for (i = 0; i < ALL; i++) CHECK_AT(met[i] != 0, __LINE__, "neither made nor impossible", all_names[i]);
}

int main(void) {
    types();
    names();
    immediates();
    memory();
    versions();
    flow();
    directives();
    further();
    impossible();
    return check_end();
}
