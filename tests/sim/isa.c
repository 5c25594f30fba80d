/* isa.c - THE table of instruction forms, and finding the form of a statement.
 *
 * One row is one form. `name`: the opcode and the modifiers that choose the form. `types`: the allowed types of
 * each type position. `mods`: further modifiers that may (?) or must (!) be there, alternatives joined by
 * '|'; words in capitals are groups (below). `args`: one letter for each operand:
 *
 *     d a      destination, source of the first type          D A    the same, twice as wide
 *     b        source of the second type                      W w u  destination, source of 32 bits; u32
 *     P p      predicate destination, source (may be !p)      i      immediate
 *
 * Rows with `lower` have their operands checked by that function. A new scalar instruction is a line in lanes.def
 * and a row here. */
#include "sim.h"
#include "lower.h"

const sim_type_info sim_types[T_COUNT] = {
    [T_NONE] = { "", 0, K_NONE },           [T_PRED] = { "pred", 0, K_PRED },
    [T_B8] = { "b8", 1, K_BITS },           [T_B16] = { "b16", 2, K_BITS },
    [T_B32] = { "b32", 4, K_BITS },         [T_B64] = { "b64", 8, K_BITS },
    [T_B128] = { "b128", 16, K_BITS },      [T_U8] = { "u8", 1, K_UINT },
    [T_U16] = { "u16", 2, K_UINT },         [T_U32] = { "u32", 4, K_UINT },
    [T_U64] = { "u64", 8, K_UINT },         [T_S8] = { "s8", 1, K_SINT },
    [T_S16] = { "s16", 2, K_SINT },         [T_S32] = { "s32", 4, K_SINT },
    [T_S64] = { "s64", 8, K_SINT },         [T_F16] = { "f16", 2, K_FLOAT },
    [T_F16X2] = { "f16x2", 4, K_PACKED },   [T_BF16] = { "bf16", 2, K_FLOAT },
    [T_BF16X2] = { "bf16x2", 4, K_PACKED }, [T_F32] = { "f32", 4, K_FLOAT },
    [T_F32X2] = { "f32x2", 8, K_PACKED },   [T_F64] = { "f64", 8, K_FLOAT },
    [T_TF32] = { "tf32", 4, K_FLOAT },      [T_U16X2] = { "u16x2", 4, K_PACKED },
    [T_S16X2] = { "s16x2", 4, K_PACKED },   [T_E4M3X2] = { "e4m3x2", 2, K_PACKED },
    [T_E5M2X2] = { "e5m2x2", 2, K_PACKED }, [T_E4M3] = { "e4m3", 1, K_FLOAT },
    [T_E5M2] = { "e5m2", 1, K_FLOAT },      [T_E2M1X2] = { "e2m1x2", 1, K_PACKED },
    [T_E2M3X2] = { "e2m3x2", 2, K_PACKED }, [T_E3M2X2] = { "e3m2x2", 2, K_PACKED },
    [T_UE8M0X2] = { "ue8m0x2", 2, K_PACKED }, [T_E4M3X4] = { "e4m3x4", 4, K_PACKED },
    [T_E5M2X4] = { "e5m2x4", 4, K_PACKED }, [T_E2M1X4] = { "e2m1x4", 2, K_PACKED },
    [T_E2M3X4] = { "e2m3x4", 4, K_PACKED }, [T_E3M2X4] = { "e3m2x4", 4, K_PACKED },
    [T_S4] = { "s4", 0, K_SINT },
    [T_U4] = { "u4", 0, K_UINT },           [T_B1] = { "b1", 0, K_BITS },
    [T_OTHER] = { "?", 0, K_NONE },
};

sim_type sim_type_find(const char *name, size_t n)
{
    for (int t = T_PRED; t < T_OTHER; t++)
        if (!strncmp(sim_types[t].name, name, n) && !sim_types[t].name[n]) return (sim_type)t;
    return T_NONE;
}

static const char *const mod_names[M_COUNT] = {
    [M_NONE] = "",
#define X(name) [M_##name] = #name,
    SIM_MODIFIERS(X)
#undef X
#define X(name, text) [M_##name] = text,
    SIM_MODIFIERS_COLON(X) SIM_MODIFIERS_MATRIX(X) SIM_MODIFIERS_COPY(X) SIM_MODIFIERS_VIDEO(X)
#undef X
};

int sim_mod_find(const char *name, size_t n)
{
    for (int k = 1; k < M_COUNT; k++)
        if (mod_names[k][0] == name[0] && !strncmp(mod_names[k], name, n) && !mod_names[k][n]) return k;
    return M_NONE;
}

const char *sim_mod_name(int id) { return mod_names[id]; }

static const struct { const char *name, *members;
} groups[] = {
    { "RND", "rn|rz|rm|rp" },
    { "IRND", "rni|rzi|rmi|rpi" },
    { "ICMP", "eq|ne|lt|le|gt|ge" },
    { "UCMP", "eq|ne|lt|le|gt|ge|lo|ls|hi|hs" },
    { "BCMP", "eq|ne" },
    { "FCMP", "eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan" },
    { "BOOL", "and|or|xor" },
    { "SPACE", "global|shared|shared::cta|shared::cluster|local|const|param|param::entry|param::func" },
    { "STSPACE", "global|shared|shared::cta|shared::cluster|local|param|param::func" },
    { "ATSPACE", "global|shared|shared::cta|shared::cluster" },
    { "LDCOP", "ca|cg|cs|lu|cv" },
    { "STCOP", "wb|cg|cs|wt" },
    { "SCOPE", "cta|cluster|gpu|sys" },
    { "VEC", "v2|v4|v8" },
    { "L1", "L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate" },
    { "L2P", "L2::evict_last|L2::evict_normal|L2::evict_first" },
    { "L2F", "L2::64B|L2::128B|L2::256B" },
};

/* Rows, by family.  S: since .version, target.  OP3: operation, with .ftz alone, with any other modifier. */
#define S(version_, target_) .version = version_, .target = target_
#define OP(o) .op = OP_##o, .op_ftz = SIM_NO_OP, .op_any = SIM_NO_OP
#define OP2(o, any) .op = OP_##o, .op_ftz = OP_##any, .op_any = OP_##any
#define OP3(o, ftz, any) .op = OP_##o, .op_ftz = OP_##ftz, .op_any = OP_##any
#define LOW(f) .lower = sim_lower_##f

static const sim_form forms[] = {
    /* integers */
    { "add", "u16|s16", "", "d a a", S(10, 10), C_INT, OP(add_16) },
    { "add", "u32|s32", "", "d a a", S(10, 10), C_INT, OP(add_32) },
    { "add", "u64|s64", "", "d a a", S(10, 10), C_INT, OP(add_64) },
    { "add.sat", "s32", "", "d a a", S(10, 10), C_INT, OP(add_sat) },
    { "add", "u16x2|s16x2", "", "d a a", S(80, 90), C_INT, OP(add_16x2) },
    { "sub", "u16|s16", "", "d a a", S(10, 10), C_INT, OP(sub_16) },
    { "sub", "u32|s32", "", "d a a", S(10, 10), C_INT, OP(sub_32) },
    { "sub", "u64|s64", "", "d a a", S(10, 10), C_INT, OP(sub_64) },
    { "sub.sat", "s32", "", "d a a", S(10, 10), C_INT, OP(sub_sat) },
    { "mul.lo", "u16|s16", "", "d a a", S(10, 10), C_INT, OP(mul_lo_16) },
    { "mul.lo", "u32|s32", "", "d a a", S(10, 10), C_INT, OP(mul_lo_32) },
    { "mul.lo", "u64|s64", "", "d a a", S(10, 10), C_INT, OP(mul_lo_64) },
    { "mul.hi", "u16", "", "d a a", S(10, 10), C_INT, OP(mul_hi_u16) },
    { "mul.hi", "s16", "", "d a a", S(10, 10), C_INT, OP(mul_hi_s16) },
    { "mul.hi", "u32", "", "d a a", S(10, 10), C_INT, OP(mul_hi_u32) },
    { "mul.hi", "s32", "", "d a a", S(10, 10), C_INT, OP(mul_hi_s32) },
    { "mul.hi", "u64", "", "d a a", S(10, 10), C_INT, OP(mul_hi_u64) },
    { "mul.hi", "s64", "", "d a a", S(10, 10), C_INT, OP(mul_hi_s64) },
    { "mul.wide", "u16", "", "D a a", S(10, 10), C_INT, OP(mul_wide_u16) },
    { "mul.wide", "s16", "", "D a a", S(10, 10), C_INT, OP(mul_wide_s16) },
    { "mul.wide", "u32", "", "D a a", S(10, 10), C_INT, OP(mul_wide_u32) },
    { "mul.wide", "s32", "", "D a a", S(10, 10), C_INT, OP(mul_wide_s32) },
    { "mad.lo", "u16|s16", "", "d a a a", S(10, 10), C_INT, OP(mad_lo_16) },
    { "mad.lo", "u32|s32", "", "d a a a", S(10, 10), C_INT, OP(mad_lo_32) },
    { "mad.lo", "u64|s64", "", "d a a a", S(10, 10), C_INT, OP(mad_lo_64) },
    { "mad.hi", "u16", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_u16) },
    { "mad.hi", "s16", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_s16) },
    { "mad.hi", "u32", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_u32) },
    { "mad.hi", "s32", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_s32) },
    { "mad.hi.sat", "s32", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_sat) },
    { "mad.hi", "u64", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_u64) },
    { "mad.hi", "s64", "", "d a a a", S(10, 10), C_INT, OP(mad_hi_s64) },
    { "mad.wide", "u16", "", "D a a A", S(10, 10), C_INT, OP(mad_wide_u16) },
    { "mad.wide", "s16", "", "D a a A", S(10, 10), C_INT, OP(mad_wide_s16) },
    { "mad.wide", "u32", "", "D a a A", S(10, 10), C_INT, OP(mad_wide_u32) },
    { "mad.wide", "s32", "", "D a a A", S(10, 10), C_INT, OP(mad_wide_s32) },
    { "mul24.lo", "u32", "", "d a a", S(10, 10), C_INT, OP(mul24_lo_u32) },
    { "mul24.lo", "s32", "", "d a a", S(10, 10), C_INT, OP(mul24_lo_s32) },
    { "mul24.hi", "u32", "", "d a a", S(10, 10), C_INT, OP(mul24_hi_u32) },
    { "mul24.hi", "s32", "", "d a a", S(10, 10), C_INT, OP(mul24_hi_s32) },
    { "mad24.lo", "u32", "", "d a a a", S(10, 10), C_INT, OP(mad24_lo_u32) },
    { "mad24.lo", "s32", "", "d a a a", S(10, 10), C_INT, OP(mad24_lo_s32) },
    { "mad24.hi", "u32", "", "d a a a", S(10, 10), C_INT, OP(mad24_hi_u32) },
    { "mad24.hi", "s32", "", "d a a a", S(10, 10), C_INT, OP(mad24_hi_s32) },
    { "mad24.hi.sat", "s32", "", "d a a a", S(10, 10), C_INT, OP(mad24_hi_sat) },
    { "sad", "u16", "", "d a a a", S(10, 10), C_INT, OP(sad_u16) },
    { "sad", "s16", "", "d a a a", S(10, 10), C_INT, OP(sad_s16) },
    { "sad", "u32", "", "d a a a", S(10, 10), C_INT, OP(sad_u32) },
    { "sad", "s32", "", "d a a a", S(10, 10), C_INT, OP(sad_s32) },
    { "sad", "u64", "", "d a a a", S(10, 10), C_INT, OP(sad_u64) },
    { "sad", "s64", "", "d a a a", S(10, 10), C_INT, OP(sad_s64) },
    { "div", "u16", "", "d a a", S(10, 10), C_INT, OP(div_u16) },
    { "div", "s16", "", "d a a", S(10, 10), C_INT, OP(div_s16) },
    { "div", "u32", "", "d a a", S(10, 10), C_INT, OP(div_u32) },
    { "div", "s32", "", "d a a", S(10, 10), C_INT, OP(div_s32) },
    { "div", "u64", "", "d a a", S(10, 10), C_INT, OP(div_u64) },
    { "div", "s64", "", "d a a", S(10, 10), C_INT, OP(div_s64) },
    { "rem", "u16", "", "d a a", S(10, 10), C_INT, OP(rem_u16) },
    { "rem", "s16", "", "d a a", S(10, 10), C_INT, OP(rem_s16) },
    { "rem", "u32", "", "d a a", S(10, 10), C_INT, OP(rem_u32) },
    { "rem", "s32", "", "d a a", S(10, 10), C_INT, OP(rem_s32) },
    { "rem", "u64", "", "d a a", S(10, 10), C_INT, OP(rem_u64) },
    { "rem", "s64", "", "d a a", S(10, 10), C_INT, OP(rem_s64) },
    { "abs", "s16", "", "d a", S(10, 10), C_INT, OP(abs_s16) },
    { "abs", "s32", "", "d a", S(10, 10), C_INT, OP(abs_s32) },
    { "abs", "s64", "", "d a", S(10, 10), C_INT, OP(abs_s64) },
    { "neg", "s16", "", "d a", S(10, 10), C_INT, OP(neg_s16) },
    { "neg", "s32", "", "d a", S(10, 10), C_INT, OP(neg_s32) },
    { "neg", "s64", "", "d a", S(10, 10), C_INT, OP(neg_s64) },
    { "min", "u16", "", "d a a", S(10, 10), C_INT, OP(min_u16) },
    { "min", "s16", "", "d a a", S(10, 10), C_INT, OP(min_s16) },
    { "min", "u32", "", "d a a", S(10, 10), C_INT, OP(min_u32) },
    { "min", "s32", "", "d a a", S(10, 10), C_INT, OP(min_s32) },
    { "min", "u64", "", "d a a", S(10, 10), C_INT, OP(min_u64) },
    { "min", "s64", "", "d a a", S(10, 10), C_INT, OP(min_s64) },
    { "min.relu", "s32", "", "d a a", S(80, 90), C_INT, OP(min_relu_s32) },
    { "min", "u16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2) },
    { "min", "s16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2), .x = X_SIGNED },
    { "min.relu", "s16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2), .x = X_SIGNED | X_RELU },
    { "max", "u16", "", "d a a", S(10, 10), C_INT, OP(max_u16) },
    { "max", "s16", "", "d a a", S(10, 10), C_INT, OP(max_s16) },
    { "max", "u32", "", "d a a", S(10, 10), C_INT, OP(max_u32) },
    { "max", "s32", "", "d a a", S(10, 10), C_INT, OP(max_s32) },
    { "max", "u64", "", "d a a", S(10, 10), C_INT, OP(max_u64) },
    { "max", "s64", "", "d a a", S(10, 10), C_INT, OP(max_s64) },
    { "max.relu", "s32", "", "d a a", S(80, 90), C_INT, OP(max_relu_s32) },
    { "max", "u16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2), .sub = 1 },
    { "max", "s16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2), .sub = 1, .x = X_SIGNED },
    { "max.relu", "s16x2", "", "d a a", S(80, 90), C_INT, OP(minmax_16x2), .sub = 1, .x = X_SIGNED | X_RELU },
    { "popc", "b32", "", "W a", S(20, 20), C_INT, OP(popc_32) },
    { "popc", "b64", "", "W a", S(20, 20), C_INT, OP(popc_64) },
    { "clz", "b32", "", "W a", S(20, 20), C_INT, OP(clz_32) },
    { "clz", "b64", "", "W a", S(20, 20), C_INT, OP(clz_64) },
    { "brev", "b32", "", "d a", S(20, 20), C_INT, OP(brev_32) },
    { "brev", "b64", "", "d a", S(20, 20), C_INT, OP(brev_64) },
    { "bfind", "u32", "", "W a", S(20, 20), C_INT, OP(bfind_u32) },
    { "bfind", "s32", "", "W a", S(20, 20), C_INT, OP(bfind_s32) },
    { "bfind", "u64", "", "W a", S(20, 20), C_INT, OP(bfind_u64) },
    { "bfind", "s64", "", "W a", S(20, 20), C_INT, OP(bfind_s64) },
    { "bfind.shiftamt", "u32", "", "W a", S(20, 20), C_INT, OP(bfind_u32), .imm = 1 },
    { "bfind.shiftamt", "s32", "", "W a", S(20, 20), C_INT, OP(bfind_s32), .imm = 1 },
    { "bfind.shiftamt", "u64", "", "W a", S(20, 20), C_INT, OP(bfind_u64), .imm = 1 },
    { "bfind.shiftamt", "s64", "", "W a", S(20, 20), C_INT, OP(bfind_s64), .imm = 1 },
    { "fns", "b32", "", "W a w w", S(60, 30), C_INT, OP(fns) },
    { "bfe", "u32", "", "d a u u", S(20, 20), C_INT, OP(bfe_u32) },
    { "bfe", "s32", "", "d a u u", S(20, 20), C_INT, OP(bfe_s32) },
    { "bfe", "u64", "", "d a u u", S(20, 20), C_INT, OP(bfe_u64) },
    { "bfe", "s64", "", "d a u u", S(20, 20), C_INT, OP(bfe_s64) },
    { "bfi", "b32", "", "d a a u u", S(20, 20), C_INT, OP(bfi_32) },
    { "bfi", "b64", "", "d a a u u", S(20, 20), C_INT, OP(bfi_64) },
    { "szext.clamp", "u32", "", "d a u", S(76, 70), C_INT, OP(szext_u32) },
    { "szext.clamp", "s32", "", "d a u", S(76, 70), C_INT, OP(szext_s32) },
    { "szext.wrap", "u32", "", "d a u", S(76, 70), C_INT, OP(szext_u32), .imm = 1 },
    { "szext.wrap", "s32", "", "d a u", S(76, 70), C_INT, OP(szext_s32), .imm = 1 },
    { "bmsk.clamp", "b32", "", "d a u", S(76, 70), C_INT, OP(bmsk) },
    { "bmsk.wrap", "b32", "", "d a u", S(76, 70), C_INT, OP(bmsk), .imm = 1 },
    { "dp4a", "u32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp4a_uu) },
    { "dp4a", "u32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp4a_us) },
    { "dp4a", "s32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp4a_su) },
    { "dp4a", "s32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp4a_ss) },
    { "dp2a.lo", "u32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_uu) },
    { "dp2a.lo", "u32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_us) },
    { "dp2a.lo", "s32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_su) },
    { "dp2a.lo", "s32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_ss) },
    { "dp2a.hi", "u32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_uu), .imm = 1 },
    { "dp2a.hi", "u32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_us), .imm = 1 },
    { "dp2a.hi", "s32.u32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_su), .imm = 1 },
    { "dp2a.hi", "s32.s32", "", "W w w w", S(50, 61), C_INT, OP(dp2a_ss), .imm = 1 },
    { "add.cc", "u32|s32", "", "", S(12, 10), C_INT, LOW(carry), .sub = 0, .x = X_CC },
    { "add.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 0, .x = X_CC },
    { "addc", "u32|s32", "", "", S(12, 10), C_INT, LOW(carry), .sub = 0, .x = X_CARRY },
    { "addc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 0, .x = X_CARRY },
    { "addc.cc", "u32|s32", "", "", S(12, 10), C_INT, LOW(carry), .sub = 0, .x = X_CARRY | X_CC },
    { "addc.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 0, .x = X_CARRY | X_CC },
    { "sub.cc", "u32|s32", "", "", S(12, 10), C_INT, LOW(carry), .sub = 1, .x = X_CC },
    { "sub.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 1, .x = X_CC },
    { "subc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 1, .x = X_CARRY },
    { "subc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 1, .x = X_CARRY },
    { "subc.cc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 1, .x = X_CARRY | X_CC },
    { "subc.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 1, .x = X_CARRY | X_CC },
    { "mad.lo.cc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 2, .x = X_CC },
    { "mad.lo.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 2, .x = X_CC },
    { "mad.hi.cc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 3, .x = X_CC },
    { "mad.hi.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 3, .x = X_CC },
    { "madc.lo", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 2, .x = X_CARRY },
    { "madc.lo", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 2, .x = X_CARRY },
    { "madc.hi", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 3, .x = X_CARRY },
    { "madc.hi", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 3, .x = X_CARRY },
    { "madc.lo.cc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 2, .x = X_CARRY | X_CC },
    { "madc.lo.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 2, .x = X_CARRY | X_CC },
    { "madc.hi.cc", "u32|s32", "", "", S(30, 20), C_INT, LOW(carry), .sub = 3, .x = X_CARRY | X_CC },
    { "madc.hi.cc", "u64|s64", "", "", S(43, 20), C_INT, LOW(carry), .sub = 3, .x = X_CARRY | X_CC },

    /* f32 */
    { "add", "f32", "RND? ftz? sat?", "d a a", S(10, 10), C_FLOAT, OP3(add_f32, add_f32_ftz, any_f32),
      .sub = 0 },
    { "sub", "f32", "RND? ftz? sat?", "d a a", S(10, 10), C_FLOAT, OP3(sub_f32, sub_f32_ftz, any_f32),
      .sub = 1 },
    { "mul", "f32", "RND? ftz? sat?", "d a a", S(10, 10), C_FLOAT, OP3(mul_f32, mul_f32_ftz, any_f32),
      .sub = 2 },
    { "fma", "f32", "RND! ftz? sat?", "d a a a", S(20, 20), C_FLOAT, OP3(fma_f32, fma_f32_ftz, any_f32),
      .sub = 3 },
    { "mad", "f32", "RND! ftz? sat?", "d a a a", S(10, 10), C_FLOAT, OP3(fma_f32, fma_f32_ftz, any_f32),
      .sub = 3 },
    { "div.approx", "f32", "ftz?", "d a a", S(10, 10), C_SPECIAL,
      OP3(div_approx, div_approx_ftz, div_approx) },
    { "div.full", "f32", "ftz?", "d a a", S(10, 10), C_SPECIAL, OP3(div_full, div_full_ftz, div_full) },
    { "div", "f32", "RND! ftz?", "d a a", S(14, 20), C_SPECIAL, OP3(div_f32, div_f32_ftz, any_f32),
      .sub = 4 },
    { "add", "f32.f16", "RND? sat?", "d b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 0 },
    { "add", "f32.bf16", "RND? sat?", "d b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 0,
      .x = X_BF16 },
    { "sub", "f32.f16", "RND? sat?", "d b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 1 },
    { "sub", "f32.bf16", "RND? sat?", "d b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 1,
      .x = X_BF16 },
    { "fma", "f32.f16", "RND! sat?", "d b b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 2 },
    { "fma", "f32.bf16", "RND! sat?", "d b b a", S(86, 100), C_FLOAT, OP2(mixed, mixed), .sub = 2,
      .x = X_BF16 },
    { "abs", "f32", "ftz?", "d a", S(10, 10), C_FLOAT, OP3(abs_f32, abs_f32_ftz, abs_f32) },
    { "neg", "f32", "ftz?", "d a", S(10, 10), C_FLOAT, OP3(neg_f32, neg_f32_ftz, neg_f32) },
    { "min", "f32", "ftz?", "d a a", S(10, 10), C_FLOAT, OP3(min_f32, min_f32_ftz, min_f32),
      LOW(minmax), .sub = 0 },
    { "max", "f32", "ftz?", "d a a", S(10, 10), C_FLOAT, OP3(max_f32, max_f32_ftz, max_f32),
      LOW(minmax), .sub = 1 },
    { "min.NaN", "f32", "ftz?", "d a a", S(70, 80), C_FLOAT, OP2(minmax_any, minmax_any), LOW(minmax),
      .sub = 0, .x = X_NAN },
    { "min.abs", "f32", "ftz? NaN?", "", S(88, 100), C_FLOAT, LOW(minmax), .sub = 0, .x = X_ABS },
    { "max.NaN", "f32", "ftz?", "d a a", S(70, 80), C_FLOAT, OP2(minmax_any, minmax_any), LOW(minmax),
      .sub = 1, .x = X_NAN },
    { "max.abs", "f32", "ftz? NaN?", "", S(88, 100), C_FLOAT, LOW(minmax), .sub = 1, .x = X_ABS },
    { "min.xorsign.abs", "f32", "ftz? NaN?", "d a a", S(72, 86), C_FLOAT, OP2(minmax_any, minmax_any),
      .x = X_XORSIGN | X_ABS },
    { "max.xorsign.abs", "f32", "ftz? NaN?", "d a a", S(72, 86), C_FLOAT, OP2(minmax_any, minmax_any),
      .sub = 1, .x = X_XORSIGN | X_ABS },
    { "rcp.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL, OP3(rcp_approx, rcp_approx_ftz, rcp_approx) },
    { "rcp", "f32", "RND! ftz?", "d a", S(14, 20), C_SPECIAL, OP3(rcp_f32, rcp_f32_ftz, any_f32), .sub = 5 },
    { "sqrt.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL,
      OP3(sqrt_approx, sqrt_approx_ftz, sqrt_approx) },
    { "sqrt", "f32", "RND! ftz?", "d a", S(14, 20), C_SPECIAL, OP3(sqrt_approx, sqrt_approx_ftz, any_f32),
      .sub = 6 },
    { "rsqrt.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL,
      OP3(rsqrt_approx, rsqrt_approx_ftz, rsqrt_approx) },
    { "sin.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL, OP3(sin_approx, sin_approx_ftz, sin_approx) },
    { "cos.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL, OP3(cos_approx, cos_approx_ftz, cos_approx) },
    { "lg2.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL, OP3(lg2_approx, lg2_approx_ftz, lg2_approx) },
    { "ex2.approx", "f32", "ftz?", "d a", S(10, 10), C_SPECIAL, OP3(ex2_approx, ex2_approx_ftz, ex2_approx) },
    { "tanh.approx", "f32", "", "d a", S(70, 75), C_SPECIAL, OP(tanh_approx) },
    { "copysign", "f32", "", "d a a", S(20, 20), C_FLOAT, OP(copysign_f32) },
    { "copysign", "f64", "", "d a a", S(20, 20), C_DOUBLE, OP(copysign_f64) },
    { "testp.finite", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 0 },
    { "testp.infinite", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 1 },
    { "testp.number", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 2 },
    { "testp.notanumber", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 3 },
    { "testp.normal", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 4 },
    { "testp.subnormal", "f32", "", "P a", S(20, 20), C_FLOAT, OP(testp_f32), .sub = 5 },
    { "testp.finite", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 0 },
    { "testp.infinite", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 1 },
    { "testp.number", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 2 },
    { "testp.notanumber", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 3 },
    { "testp.normal", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 4 },
    { "testp.subnormal", "f64", "", "P a", S(20, 20), C_DOUBLE, OP(testp_f64), .sub = 5 },

    /* f64 and f32x2 */
    { "add", "f64", "RND?", "d a a", S(10, 13), C_DOUBLE, OP2(add_f64, any_f64), .sub = 0 },
    { "sub", "f64", "RND?", "d a a", S(10, 13), C_DOUBLE, OP2(sub_f64, any_f64), .sub = 1 },
    { "mul", "f64", "RND?", "d a a", S(10, 13), C_DOUBLE, OP2(mul_f64, any_f64), .sub = 2 },
    { "fma", "f64", "RND!", "d a a a", S(14, 13), C_DOUBLE, OP2(fma_f64, any_f64), .sub = 3 },
    { "mad", "f64", "RND!", "d a a a", S(10, 13), C_DOUBLE, OP2(fma_f64, any_f64), .sub = 3 },
    { "div", "f64", "RND!", "d a a", S(10, 13), C_DOUBLE, OP2(div_f64, any_f64), .sub = 4 },
    { "rcp", "f64", "RND!", "d a", S(14, 13), C_DOUBLE, OP2(rcp_f64, any_f64), .sub = 5 },
    { "sqrt", "f64", "RND!", "d a", S(14, 13), C_DOUBLE, OP2(sqrt_f64, any_f64), .sub = 6 },
    { "rcp.approx.ftz", "f64", "", "d a", S(21, 20), C_DOUBLE, OP2(rcp_approx_f64, rcp_approx_f64) },
    { "rsqrt.approx", "f64", "", "d a", S(13, 13), C_DOUBLE, OP2(rsqrt_approx_f64, rsqrt_approx_f64) },
    { "rsqrt.approx.ftz", "f64", "", "d a", S(40, 20), C_DOUBLE,
      OP2(rsqrt_approx_ftz_f64, rsqrt_approx_ftz_f64) },
    { "abs", "f64", "", "d a", S(10, 13), C_DOUBLE, OP(abs_f64) },
    { "neg", "f64", "", "d a", S(10, 13), C_DOUBLE, OP(neg_f64) },
    { "min", "f64", "", "d a a", S(10, 13), C_DOUBLE, OP(min_f64) },
    { "max", "f64", "", "d a a", S(10, 13), C_DOUBLE, OP(max_f64) },
    { "add", "f32x2", "rn?", "d a a", S(86, 100), C_FLOAT, OP(add_f32x2) },
    { "sub", "f32x2", "rn?", "d a a", S(86, 100), C_FLOAT, OP(sub_f32x2) },
    { "mul", "f32x2", "rn?", "d a a", S(86, 100), C_FLOAT, OP(mul_f32x2) },
    { "fma", "f32x2", "rn!", "d a a a", S(86, 100), C_FLOAT, OP(fma_f32x2) },
    { "add", "f32x2", "rn? ftz!", "d a a", S(86, 100), C_FLOAT,
      OP3(add_f32x2_ftz, add_f32x2_ftz, add_f32x2_ftz) },
    { "sub", "f32x2", "rn? ftz!", "d a a", S(86, 100), C_FLOAT,
      OP3(sub_f32x2_ftz, sub_f32x2_ftz, sub_f32x2_ftz) },
    { "mul", "f32x2", "rn? ftz!", "d a a", S(86, 100), C_FLOAT,
      OP3(mul_f32x2_ftz, mul_f32x2_ftz, mul_f32x2_ftz) },
    { "fma", "f32x2", "rn! ftz!", "d a a a", S(86, 100), C_FLOAT,
      OP3(fma_f32x2_ftz, fma_f32x2_ftz, fma_f32x2_ftz) },

    /* halves */
    { "add", "f16", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(add_f16, any_half), .sub = 0,
      .lanes = 1 },
    { "add", "f16x2", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(add_f16x2, any_half), .sub = 0,
      .lanes = 2 },
    { "add", "bf16", "rn?", "d a a", S(78, 90), C_HALF, OP(add_bf16) },
    { "add", "bf16x2", "rn?", "d a a", S(78, 90), C_HALF, OP(add_bf16x2) },
    { "sub", "f16", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(sub_f16, any_half), .sub = 1,
      .lanes = 1 },
    { "sub", "f16x2", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(sub_f16x2, any_half), .sub = 1,
      .lanes = 2 },
    { "sub", "bf16", "rn?", "d a a", S(78, 90), C_HALF, OP(sub_bf16) },
    { "sub", "bf16x2", "rn?", "d a a", S(78, 90), C_HALF, OP(sub_bf16x2) },
    { "mul", "f16", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(mul_f16, any_half), .sub = 2,
      .lanes = 1 },
    { "mul", "f16x2", "rn? ftz? sat?", "d a a", S(42, 53), C_HALF, OP2(mul_f16x2, any_half), .sub = 2,
      .lanes = 2 },
    { "mul", "bf16", "rn?", "d a a", S(78, 90), C_HALF, OP(mul_bf16) },
    { "mul", "bf16x2", "rn?", "d a a", S(78, 90), C_HALF, OP(mul_bf16x2) },
    { "fma", "f16", "rn! ftz? sat?", "d a a a", S(42, 53), C_HALF, OP2(fma_f16, any_half), .sub = 3,
      .lanes = 1 },
    { "fma", "f16x2", "rn! ftz? sat?", "d a a a", S(42, 53), C_HALF, OP2(fma_f16x2, any_half), .sub = 3,
      .lanes = 2 },
    { "fma.relu", "f16", "rn! ftz?", "d a a a", S(70, 80), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 1, .x = X_RELU },
    { "fma.relu", "f16x2", "rn! ftz?", "d a a a", S(70, 80), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 2, .x = X_RELU },
    { "fma.oob", "f16", "rn! relu?", "d a a a", S(81, 90), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 1, .x = X_OOB },
    { "fma.oob", "f16x2", "rn! relu?", "d a a a", S(81, 90), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 2, .x = X_OOB },
    { "fma", "bf16", "rn!", "d a a a", S(70, 80), C_HALF, OP(fma_bf16) },
    { "fma", "bf16x2", "rn!", "d a a a", S(70, 80), C_HALF, OP(fma_bf16x2) },
    { "fma.relu", "bf16", "rn!", "d a a a", S(70, 80), C_HALF, OP2(any_half, any_half), .sub = 3, .lanes = 1,
      .x = X_RELU | X_BF16 },
    { "fma.relu", "bf16x2", "rn!", "d a a a", S(70, 80), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 2, .x = X_RELU | X_BF16 },
    { "fma.oob", "bf16", "rn! relu?", "d a a a", S(81, 90), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 1, .x = X_OOB | X_BF16 },
    { "fma.oob", "bf16x2", "rn! relu?", "d a a a", S(81, 90), C_HALF, OP2(any_half, any_half), .sub = 3,
      .lanes = 2, .x = X_OOB | X_BF16 },
    { "neg", "f16", "ftz?", "d a", S(60, 53), C_HALF, OP3(neg_16f, neg_f16_ftz, neg_16f) },
    { "neg", "f16x2", "ftz?", "d a", S(60, 53), C_HALF, OP3(neg_16fx2, neg_f16x2_ftz, neg_16fx2) },
    { "neg", "bf16", "", "d a", S(70, 80), C_HALF, OP(neg_16f) },
    { "neg", "bf16x2", "", "d a", S(70, 80), C_HALF, OP(neg_16fx2) },
    { "abs", "f16", "ftz?", "d a", S(65, 53), C_HALF, OP3(abs_16f, abs_f16_ftz, abs_16f) },
    { "abs", "f16x2", "ftz?", "d a", S(65, 53), C_HALF, OP3(abs_16fx2, abs_f16x2_ftz, abs_16fx2) },
    { "abs", "bf16", "", "d a", S(70, 80), C_HALF, OP(abs_16f) },
    { "abs", "bf16x2", "", "d a", S(70, 80), C_HALF, OP(abs_16fx2) },
    { "min", "f16", "ftz? NaN?", "d a a", S(70, 80), C_HALF, OP2(min_f16, minmax_any), .sub = 0 },
    { "min", "f16x2", "ftz? NaN?", "d a a", S(70, 80), C_HALF, OP2(min_f16x2, minmax_any), .sub = 0 },
    { "min", "bf16", "NaN?", "d a a", S(70, 80), C_HALF, OP2(min_bf16, minmax_any), .sub = 0, .x = X_BF16 },
    { "min", "bf16x2", "NaN?", "d a a", S(70, 80), C_HALF, OP2(min_bf16x2, minmax_any), .sub = 0,
      .x = X_BF16 },
    { "max", "f16", "ftz? NaN?", "d a a", S(70, 80), C_HALF, OP2(max_f16, minmax_any), .sub = 1 },
    { "max", "f16x2", "ftz? NaN?", "d a a", S(70, 80), C_HALF, OP2(max_f16x2, minmax_any), .sub = 1 },
    { "max", "bf16", "NaN?", "d a a", S(70, 80), C_HALF, OP2(max_bf16, minmax_any), .sub = 1, .x = X_BF16 },
    { "max", "bf16x2", "NaN?", "d a a", S(70, 80), C_HALF, OP2(max_bf16x2, minmax_any), .sub = 1,
      .x = X_BF16 },
    { "min.xorsign.abs", "f16|f16x2", "ftz? NaN?", "d a a", S(72, 86), C_HALF, OP2(minmax_any, minmax_any),
      .x = X_XORSIGN | X_ABS },
    { "max.xorsign.abs", "f16|f16x2", "ftz? NaN?", "d a a", S(72, 86), C_HALF, OP2(minmax_any, minmax_any),
      .sub = 1, .x = X_XORSIGN | X_ABS },
    { "min.xorsign.abs", "bf16|bf16x2", "NaN?", "d a a", S(72, 86), C_HALF, OP2(minmax_any, minmax_any),
      .x = X_XORSIGN | X_ABS | X_BF16 },
    { "max.xorsign.abs", "bf16|bf16x2", "NaN?", "d a a", S(72, 86), C_HALF, OP2(minmax_any, minmax_any),
      .sub = 1, .x = X_XORSIGN | X_ABS | X_BF16 },
    { "tanh.approx", "f16", "", "d a", S(70, 75), C_SPECIAL, OP(tanh_f16) },
    { "tanh.approx", "f16x2", "", "d a", S(70, 75), C_SPECIAL, OP(tanh_f16x2) },
    { "tanh.approx", "bf16", "", "d a", S(78, 90), C_SPECIAL, OP(tanh_bf16) },
    { "tanh.approx", "bf16x2", "", "d a", S(78, 90), C_SPECIAL, OP(tanh_bf16x2) },
    { "ex2.approx", "f16", "", "d a", S(70, 75), C_SPECIAL, OP(ex2_f16) },
    { "ex2.approx", "f16x2", "", "d a", S(70, 75), C_SPECIAL, OP(ex2_f16x2) },
    { "ex2.approx.ftz", "bf16", "", "d a", S(78, 90), C_SPECIAL, OP2(ex2_bf16, ex2_bf16) },
    { "ex2.approx.ftz", "bf16x2", "", "d a", S(78, 90), C_SPECIAL, OP2(ex2_bf16x2, ex2_bf16x2) },

    /* comparison and selection */
    { "setp", "b16|b32|b64", "BCMP! BOOL?", "", S(10, 10), C_INT, LOW(setp) },
    { "setp", "u16|u32|u64", "UCMP! BOOL?", "", S(10, 10), C_INT, LOW(setp) },
    { "setp", "s16|s32|s64", "ICMP! BOOL?", "", S(10, 10), C_INT, LOW(setp) },
    { "setp", "f32", "FCMP! BOOL? ftz?", "", S(10, 10), C_FLOAT, LOW(setp) },
    { "setp", "f64", "FCMP! BOOL?", "", S(10, 13), C_DOUBLE, LOW(setp) },
    { "setp", "f16", "FCMP! BOOL? ftz?", "", S(42, 53), C_HALF, LOW(setp) },
    { "setp", "f16x2", "FCMP! BOOL? ftz?", "", S(42, 53), C_HALF, LOW(setp), .lanes = 2 },
    { "setp", "bf16", "FCMP! BOOL?", "", S(78, 90), C_HALF, LOW(setp), .x = X_BF16 },
    { "setp", "bf16x2", "FCMP! BOOL?", "", S(78, 90), C_HALF, LOW(setp), .lanes = 2, .x = X_BF16 },
    { "set", "u32|s32|f32.b16|b32|b64", "BCMP! BOOL?", "", S(10, 10), C_INT, LOW(set) },
    { "set", "u32|s32|f32.u16|u32|u64", "UCMP! BOOL?", "", S(10, 10), C_INT, LOW(set) },
    { "set", "u32|s32|f32.s16|s32|s64", "ICMP! BOOL?", "", S(10, 10), C_INT, LOW(set) },
    { "set", "u32|s32|f32.f32", "FCMP! BOOL? ftz?", "", S(10, 10), C_FLOAT, LOW(set) },
    { "set", "u32|s32|f32.f64", "FCMP! BOOL?", "", S(10, 13), C_DOUBLE, LOW(set) },
    { "set", "f16.f16", "FCMP! BOOL? ftz?", "", S(42, 53), C_HALF, LOW(set) },
    { "set", "u16|s16|u32|s32.f16", "FCMP! BOOL? ftz?", "", S(65, 53), C_HALF, LOW(set) },
    { "set", "f16.u16|s16|u32|s32|u64|s64|f32|f64|b16|b32|b64", "FCMP! BOOL? ftz?", "", S(42, 53), C_HALF,
      LOW(set) },
    { "set", "f16x2.f16x2", "FCMP! BOOL? ftz?", "", S(42, 53), C_HALF, LOW(set), .lanes = 2 },
    { "set", "u32|s32.f16x2", "FCMP! BOOL? ftz?", "", S(65, 53), C_HALF, LOW(set), .lanes = 2 },
    { "set", "bf16|u16|s16|u32|s32.bf16", "FCMP! BOOL?", "", S(78, 90), C_HALF, LOW(set), .x = X_BF16 },
    { "set", "bf16x2|u32|s32.bf16x2", "FCMP! BOOL?", "", S(78, 90), C_HALF, LOW(set), .lanes = 2,
      .x = X_BF16 },
    { "selp", "b16|u16|s16|b32|u32|s32|f32", "", "d a a p", S(10, 10), C_MOVE, OP(selp_32) },
    { "selp", "b64|u64|s64|f64", "", "d a a p", S(10, 10), C_MOVE, OP(selp_64) },
    { "slct", "b16|u16|s16|b32|u32|s32|f32.s32", "", "d a a b", S(10, 10), C_MOVE, OP(slct_32_s32) },
    { "slct", "b64|u64|s64|f64.s32", "", "d a a b", S(10, 10), C_MOVE, OP(slct_64_s32) },
    { "slct", "b16|u16|s16|b32|u32|s32|f32.f32", "ftz?", "d a a b", S(10, 10), C_MOVE,
      OP3(slct_32_f32, slct_32_f32_ftz, slct_32_f32) },
    { "slct", "b64|u64|s64|f64.f32", "ftz?", "d a a b", S(10, 10), C_MOVE,
      OP3(slct_64_f32, slct_64_f32_ftz, slct_64_f32) },

    /* logic and shifts */
    { "and", "pred", "", "", S(10, 10), C_INT, LOW(pred), .sub = 0 },
    { "or", "pred", "", "", S(10, 10), C_INT, LOW(pred), .sub = 1 },
    { "xor", "pred", "", "", S(10, 10), C_INT, LOW(pred), .sub = 2 },
    { "not", "pred", "", "", S(10, 10), C_INT, LOW(pred), .sub = 3 },
    { "and", "b16|b32", "", "d a a", S(10, 10), C_INT, OP(and_32) },
    { "and", "b64", "", "d a a", S(10, 10), C_INT, OP(and_64) },
    { "or", "b16|b32", "", "d a a", S(10, 10), C_INT, OP(or_32) },
    { "or", "b64", "", "d a a", S(10, 10), C_INT, OP(or_64) },
    { "xor", "b16|b32", "", "d a a", S(10, 10), C_INT, OP(xor_32) },
    { "xor", "b64", "", "d a a", S(10, 10), C_INT, OP(xor_64) },
    { "not", "b16", "", "d a", S(10, 10), C_INT, OP(not_16) },
    { "not", "b32", "", "d a", S(10, 10), C_INT, OP(not_32) },
    { "not", "b64", "", "d a", S(10, 10), C_INT, OP(not_64) },
    { "cnot", "b16|b32", "", "d a", S(10, 10), C_INT, OP(cnot_32) },
    { "cnot", "b64", "", "d a", S(10, 10), C_INT, OP(cnot_64) },
    { "lop3", "b32", "", "", S(43, 50), C_INT, LOW(lop3) },
    { "lop3.or", "b32", "", "", S(82, 70), C_INT, LOW(lop3), .sub = 1 },
    { "lop3.and", "b32", "", "", S(82, 70), C_INT, LOW(lop3), .sub = 2 },
    { "shf.l.wrap", "b32", "", "d a a u", S(31, 32), C_INT, OP(shf_l_wrap) },
    { "shf.l.clamp", "b32", "", "d a a u", S(31, 32), C_INT, OP(shf_l_clamp) },
    { "shf.r.wrap", "b32", "", "d a a u", S(31, 32), C_INT, OP(shf_r_wrap) },
    { "shf.r.clamp", "b32", "", "d a a u", S(31, 32), C_INT, OP(shf_r_clamp) },
    { "shl", "b16", "", "d a u", S(10, 10), C_INT, OP(shl_16) },
    { "shl", "b32", "", "d a u", S(10, 10), C_INT, OP(shl_32) },
    { "shl", "b64", "", "d a u", S(10, 10), C_INT, OP(shl_64) },
    { "shr", "b16|u16", "", "d a u", S(10, 10), C_INT, OP(shr_u16) },
    { "shr", "s16", "", "d a u", S(10, 10), C_INT, OP(shr_s16) },
    { "shr", "b32|u32", "", "d a u", S(10, 10), C_INT, OP(shr_u32) },
    { "shr", "s32", "", "d a u", S(10, 10), C_INT, OP(shr_s32) },
    { "shr", "b64|u64", "", "d a u", S(10, 10), C_INT, OP(shr_u64) },
    { "shr", "s64", "", "d a u", S(10, 10), C_INT, OP(shr_s64) },
    { "prmt", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt) },
    { "prmt.f4e", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 1 },
    { "prmt.b4e", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 2 },
    { "prmt.rc8", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 3 },
    { "prmt.ecl", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 5 },
    { "prmt.ecr", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 6 },
    { "prmt.rc16", "b32", "", "d a a u", S(20, 20), C_INT, OP(prmt_mode), .imm = 4 },

    /* moves and conversions */
    { "mov", "pred", "", "", S(10, 10), C_MOVE, LOW(mov) },
    { "mov", "b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64", "v2|v4?", "", S(10, 10), C_MOVE, LOW(mov) },
    { "mov", "b128", "", "", S(83, 70), C_MOVE, LOW(mov) },
    { "cvt", "*", "*", "", S(10, 10), C_CONVERT, LOW(cvt) },
    { "cvt.pack.sat", "u16|s16.s32", "", "", S(65, 72), C_CONVERT, LOW(cvt_pack) },
    { "cvt.pack.sat", "u8|s8.s32.b32", "", "", S(65, 72), C_CONVERT, LOW(cvt_pack) },
    { "cvt.pack.sat", "u4|s4.s32.b32", "", "", S(65, 75), C_CONVERT, LOW(cvt_pack) },
    { "cvta", "u32|u64", "to? global|shared|local|const|param|param::entry|shared::cta|shared::cluster!", "",
      S(20, 20), C_INT, LOW(cvta) },
    { "isspacep", "", "global|shared|local|const|param|param::entry|shared::cta|shared::cluster!", "",
      S(20, 20), C_INT, LOW(isspacep) },

    /* memory: modifiers and the versions that they need are checked in lower_memory.c */
    { "ld", "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64|b128",
      "weak|volatile|relaxed|acquire? mmio? SCOPE? SPACE? LDCOP? nc? L1? L2P? L2F? L2::cache_hint? VEC?", "",
      S(10, 10), C_MEMORY, LOW(ld) },
    { "ldu", "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64", "global? VEC?", "", S(20, 20), C_MEMORY,
      LOW(ld) },
    { "st", "b8|u8|s8|b16|u16|s16|b32|u32|s32|b64|u64|s64|f32|f64|b128",
      "weak|volatile|relaxed|release? mmio? SCOPE? STSPACE? STCOP? L1? L2P? L2::cache_hint? VEC?", "",
      S(10, 10), C_MEMORY, LOW(st) },
    { "atom", "*",
      "relaxed|acquire|release|acq_rel? SCOPE? ATSPACE? add|min|max|inc|dec|and|or|xor|exch|cas! noftz? VEC? "
      "L2::cache_hint?",
      "", S(11, 11), C_MEMORY, LOW(atom) },
    { "red", "*",
      "relaxed|release? SCOPE? ATSPACE? add|min|max|inc|dec|and|or|xor! noftz? VEC? L2::cache_hint?", "",
      S(12, 11), C_MEMORY, LOW(atom) },
    { "prefetch", "", "global|local? L1|L2!", "", S(20, 20), C_MEMORY, LOW(hint) },
    { "prefetch", "", "global? L2::evict_last|L2::evict_normal!", "", S(74, 80), C_MEMORY, LOW(hint) },
    { "prefetchu.L1", "", "", "", S(20, 20), C_MEMORY, LOW(hint) },
    { "applypriority.L2::evict_normal", "", "global?", "", S(74, 80), C_MEMORY, LOW(hint), .sub = 1 },
    { "discard.L2", "", "global?", "", S(74, 80), C_MEMORY, LOW(hint), .sub = 2 },
    { "cp.async.ca", "", "shared|shared::cta! global! L2F? L2::cache_hint?", "", S(70, 80), C_MEMORY,
      LOW(cp_async) },
    { "cp.async.cg", "", "shared|shared::cta! global! L2F? L2::cache_hint?", "", S(70, 80), C_MEMORY,
      LOW(cp_async) },
    { "cp.async.commit_group", "", "", "", S(70, 80), C_MEMORY, LOW(cp_group), .sub = 0 },
    { "cp.async.wait_group", "", "", "", S(70, 80), C_MEMORY, LOW(cp_group), .sub = 1 },
    { "cp.async.wait_all", "", "", "", S(70, 80), C_MEMORY, LOW(cp_group), .sub = 2 },
    { "membar", "", "cta|gl|sys!", "", S(14, 11), C_MEMORY, LOW(fence) },
    { "fence", "", "sc|acq_rel? cta|gpu|sys!", "", S(60, 70), C_MEMORY, LOW(fence) },
    { "fence.cluster", "", "sc|acq_rel?", "", S(78, 90), C_MEMORY, LOW(fence) },
    { "fence.acquire", "", "SCOPE!", "", S(86, 90), C_MEMORY, LOW(fence) },
    { "fence.release", "", "SCOPE!", "", S(86, 90), C_MEMORY, LOW(fence) },
    { "fence.proxy.alias", "", "", "", S(75, 70), C_MEMORY, LOW(nop) },
    { "membar.proxy.alias", "", "", "", S(75, 70), C_MEMORY, LOW(nop) },
    { "fence.mbarrier_init.release.cluster", "", "", "", S(80, 90), C_MEMORY, LOW(fence) },

    /* control */
    { "bra", "", "uni?", "", S(10, 10), C_CONTROL, LOW(bra) },
    { "brx.idx", "", "uni?", "", S(60, 30), C_CONTROL, LOW(brx) },
    { "ret", "", "uni?", "", S(10, 10), C_CONTROL, LOW(ret) },
    { "exit", "", "", "", S(10, 10), C_CONTROL, LOW(exit) },
    { "trap", "", "", "", S(10, 10), C_CONTROL, LOW(trap) },
    { "brkpt", "", "", "", S(10, 10), C_CONTROL, LOW(nop) },
    { "call", "", "uni?", "", S(10, 10), C_CONTROL, LOW(call) },
    { "alloca", "u64", "", "", S(73, 52), C_CONTROL, LOW(alloca) },
    { "stacksave", "u64", "", "", S(73, 52), C_CONTROL, LOW(stack), .sub = 0 },
    { "stackrestore", "u64", "", "", S(73, 52), C_CONTROL, LOW(stack), .sub = 1 },
    { "nanosleep", "u32", "", "", S(63, 70), C_CONTROL, LOW(nanosleep) },
    { "pmevent", "", "", "", S(14, 10), C_CONTROL, LOW(pmevent), .imm = 15 },
    { "pmevent.mask", "", "", "", S(30, 20), C_CONTROL, LOW(pmevent), .imm = 0xffff },
    { "griddepcontrol.wait", "", "", "", S(78, 90), C_CONTROL, LOW(griddepcontrol) },

    /* video */
#define VIDEO(name, v, mods) \
    { name, "u32|s32.u32|s32.u32|s32", mods, "", S(20, 20), C_INT, LOW(video), .sub = v, .lanes = 1 }
#define VIDEO_LANES(name, v) \
    { name "2", "u32|s32.u32|s32.u32|s32", "sat? add?", "", S(30, 30), C_INT, LOW(video), .sub = v, \
      .lanes = 2 }, \
    { name "4", "u32|s32.u32|s32.u32|s32", "sat? add?", "", S(30, 30), C_INT, LOW(video), .sub = v, \
      .lanes = 4 }
    VIDEO("vadd", 0, "sat? add|min|max?"),
    VIDEO("vsub", 1, "sat? add|min|max?"),
    VIDEO("vabsdiff", 2, "sat? add|min|max?"),
    VIDEO("vmin", 3, "sat? add|min|max?"),
    VIDEO("vmax", 4, "sat? add|min|max?"),
    { "vshl", "u32|s32.u32|s32.u32", "clamp|wrap! sat? add|min|max?", "", S(20, 20), C_INT, LOW(video),
      .sub = 5, .lanes = 1 },
    { "vshr", "u32|s32.u32|s32.u32", "clamp|wrap! sat? add|min|max?", "", S(20, 20), C_INT, LOW(video),
      .sub = 6, .lanes = 1 },
    VIDEO("vmad", 7, "sat? po? shr7|shr15?"),
    { "vset", "u32|s32.u32|s32", "ICMP! add|min|max?", "", S(20, 20), C_INT, LOW(video), .sub = 8,
      .lanes = 1 },
    VIDEO_LANES("vadd", 0),
    VIDEO_LANES("vsub", 1),
    VIDEO_LANES("vabsdiff", 2),
    VIDEO_LANES("vmin", 3),
    VIDEO_LANES("vmax", 4),
    VIDEO_LANES("vavrg", 9),
    { "vset2", "u32|s32.u32|s32", "ICMP! add?", "", S(30, 30), C_INT, LOW(video), .sub = 8, .lanes = 2 },
    { "vset4", "u32|s32.u32|s32", "ICMP! add?", "", S(30, 30), C_INT, LOW(video), .sub = 8, .lanes = 4 },
#undef VIDEO
#undef VIDEO_LANES

    /* clusters */
    { "mapa", "u32|u64", "shared::cluster?", "", S(78, 90), C_INT, LOW(mapa) },
    { "getctarank", "u32|u64", "shared::cluster?", "", S(78, 90), C_INT, LOW(mapa), .sub = 1 },
    { "barrier.cluster.arrive", "", "release|relaxed? aligned?", "", S(78, 90), C_CONTROL,
      LOW(cluster_barrier) },
    { "barrier.cluster.wait", "", "acquire? aligned?", "", S(78, 90), C_CONTROL, LOW(cluster_barrier),
      .sub = 1 },
    { "st.async.release.global", "b32|u32|s32|b64|u64|s64|f32|f64", "mmio? gpu|sys!", "",
      S(87, 100), C_MEMORY, LOW(st) },
    { "red.async.release.global", "u32|s32|u64|b32",
      "mmio? gpu|sys! add|min|max|inc|dec|and|or|xor!", "", S(87, 100), C_MEMORY, LOW(atom) },
    { "st.bulk", "", "weak? shared::cta?", "", S(86, 100), C_MEMORY, LOW(store_bulk) },
    { "st.async", "b32|u32|s32|b64|u64|s64|f32|f64",
      "weak? shared::cluster? mbarrier::complete_tx::bytes! v2|v4?",
      "", S(81, 90), C_MEMORY, LOW(store_async) },
    { "red.async.relaxed.cluster", "u32|s32|u64|s64|b32",
      "shared::cluster? mbarrier::complete_tx::bytes! add|min|max|inc|dec|and|or|xor!", "", S(81, 90),
      C_MEMORY,
      LOW(store_async), .sub = 1 },
    { "setmaxnreg.inc.sync.aligned", "u32", "", "", S(80, 90), C_CONTROL, LOW(setmaxnreg), .sub = 1 },
    { "setmaxnreg.dec.sync.aligned", "u32", "", "", S(80, 90), C_CONTROL, LOW(setmaxnreg) },
    { "griddepcontrol.launch_dependents", "", "", "", S(78, 90), C_CONTROL, LOW(griddepcontrol), .sub = 1 },
    { "fence.acquire.sync_restrict::shared::cluster.cluster", "", "", "", S(86, 90), C_MEMORY, LOW(nop) },
    { "fence.release.sync_restrict::shared::cta.cluster", "", "", "", S(86, 90), C_MEMORY, LOW(nop) },

    /* mbarrier */
    { "mbarrier.init", "b64", "shared|shared::cta?", "", S(70, 80), C_MEMORY, LOW(mbarrier), .sub = 0 },
    { "mbarrier.inval", "b64", "shared|shared::cta?", "", S(70, 80), C_MEMORY, LOW(mbarrier), .sub = 1 },
    { "mbarrier.arrive", "b64", "release|relaxed? cta|cluster? shared|shared::cta|shared::cluster?", "",
      S(70, 80),
      C_MEMORY, LOW(mbarrier), .sub = 2 },
    { "mbarrier.arrive.noComplete", "b64", "release? cta? shared|shared::cta?", "", S(70, 80), C_MEMORY,
      LOW(mbarrier), .sub = 2, .x = 2 },
    { "mbarrier.arrive.expect_tx", "b64",
      "release|relaxed? cta|cluster? shared|shared::cta|shared::cluster?", "",
      S(80, 90), C_MEMORY, LOW(mbarrier), .sub = 2, .x = 1 },
    { "mbarrier.arrive_drop", "b64", "release|relaxed? cta|cluster? shared|shared::cta|shared::cluster?", "",
      S(70, 80), C_MEMORY, LOW(mbarrier), .sub = 3 },
    { "mbarrier.arrive_drop.noComplete", "b64", "release? cta? shared|shared::cta?", "", S(70, 80), C_MEMORY,
      LOW(mbarrier), .sub = 3, .x = 2 },
    { "mbarrier.arrive_drop.expect_tx", "b64",
      "release|relaxed? cta|cluster? shared|shared::cta|shared::cluster?",
      "", S(80, 90), C_MEMORY, LOW(mbarrier), .sub = 3, .x = 1 },
    { "mbarrier.expect_tx", "b64", "relaxed? cta|cluster? shared|shared::cta|shared::cluster?", "", S(80, 90),
      C_MEMORY, LOW(mbarrier), .sub = 4 },
    { "mbarrier.complete_tx", "b64", "relaxed? cta|cluster? shared|shared::cta|shared::cluster?", "", S(80,
      90),
      C_MEMORY, LOW(mbarrier), .sub = 5 },
    { "mbarrier.test_wait", "b64", "parity? acquire|relaxed? cta|cluster? shared|shared::cta?", "", S(70, 80),
      C_MEMORY, LOW(mbarrier_wait) },
    { "mbarrier.try_wait", "b64", "parity? acquire|relaxed? cta|cluster? shared|shared::cta?", "", S(78, 90),
      C_MEMORY, LOW(mbarrier_wait), .sub = 1 },
    { "mbarrier.pending_count", "b64", "", "", S(70, 80), C_MEMORY, LOW(mbarrier_pending) },
    { "cp.async.mbarrier.arrive", "b64", "noinc? shared|shared::cta?", "", S(70, 80), C_MEMORY,
      LOW(mbarrier_cp_async) },

    /* bulk and tensor copies */
    { "cp.async.bulk.global", "",
      "shared::cta|shared::cluster! mbarrier::complete_tx::bytes! multicast::cluster? L2::cache_hint?", "",
      S(80, 90), C_MEMORY, LOW(bulk), .sub = 0 },
    { "cp.async.bulk.global.shared::cta.bulk_group", "", "L2::cache_hint?", "", S(80, 90), C_MEMORY,
      LOW(bulk),
      .sub = 1 },
    { "cp.async.bulk.shared::cluster.shared::cta", "", "mbarrier::complete_tx::bytes!", "", S(80, 90),
      C_MEMORY,
      LOW(bulk), .sub = 2 },
    { "cp.async.bulk.prefetch.L2.global", "", "L2::cache_hint?", "", S(80, 90), C_MEMORY, LOW(bulk),
      .sub = 3 },
    { "cp.async.bulk.commit_group", "", "", "", S(80, 90), C_MEMORY, LOW(bulk_group) },
    { "cp.async.bulk.wait_group", "", "read?", "", S(80, 90), C_MEMORY, LOW(bulk_group), .sub = 1 },
    { "cp.reduce.async.bulk.global.shared::cta.bulk_group", "u32|s32|u64|s64|f16|bf16|f32|f64|b32|b64",
      "add|min|max|inc|dec|and|or|xor! noftz? L2::cache_hint?", "", S(80, 90), C_MEMORY, LOW(bulk),
      .sub = 1 },
    { "cp.reduce.async.bulk.shared::cluster.shared::cta", "u32|s32|u64|b32",
      "mbarrier::complete_tx::bytes! add|min|max|inc|dec|and|or|xor!", "", S(80, 90), C_MEMORY, LOW(bulk),
      .sub = 2 },
    { "cp.async.bulk.tensor.global", "",
      "1d|2d|3d|4d|5d! shared::cta|shared::cluster! tile? mbarrier::complete_tx::bytes! multicast::cluster? "
      "L2::cache_hint?",
      "", S(80, 90), C_MEMORY, LOW(bulk_tensor), .sub = 0 },
    { "cp.async.bulk.tensor.global.shared::cta.bulk_group", "", "1d|2d|3d|4d|5d! tile? L2::cache_hint?", "",
      S(80, 90), C_MEMORY, LOW(bulk_tensor), .sub = 1 },
    { "cp.reduce.async.bulk.tensor.global.shared::cta.bulk_group", "",
      "1d|2d|3d|4d|5d! add|min|max|inc|dec|and|or|xor! tile? L2::cache_hint?", "", S(80, 90), C_MEMORY,
      LOW(bulk_tensor), .sub = 1 },
    { "cp.async.bulk.prefetch.tensor.L2.global", "", "1d|2d|3d|4d|5d! tile? L2::cache_hint?", "", S(80, 90),
      C_MEMORY, LOW(bulk_tensor), .sub = 3 },
    { "fence.proxy.async", "", "global|shared::cta|shared::cluster?", "", S(80, 90), C_MEMORY,
      LOW(proxy_fence) },
    { "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", "", "", "", S(86, 90),
      C_MEMORY,
      LOW(nop) },
    { "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", "", "", "", S(86, 90),
      C_MEMORY,
      LOW(nop) },
    { "fence.proxy.tensormap::generic.release", "", "SCOPE!", "", S(83, 90), C_MEMORY, LOW(proxy_fence) },
    { "fence.proxy.tensormap::generic.acquire", "", "SCOPE!", "", S(83, 90), C_MEMORY, LOW(proxy_fence),
      .sub = 2 },
    { "tensormap.replace.tile.b1024", "b32|b64",
      "global|shared::cta? global_address|rank|box_dim|global_dim|global_stride|element_stride|elemtype|"
      "interleave_layout|swizzle_mode|fill_mode!",
      "", S(83, 90), C_MEMORY, LOW(tensormap) },
    { "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.sync.aligned", "", "SCOPE!", "",
      S(83, 90), C_MEMORY, LOW(tensormap), .sub = 1 },
    { "prefetch.tensormap", "", "param|const?", "", S(80, 90), C_MEMORY, LOW(prefetch_map) },
    { "createpolicy.fractional", "b64",
      "L2::evict_last|L2::evict_normal? L2::evict_first? L2::evict_unchanged?", "",
      S(74, 80), C_MEMORY, LOW(createpolicy) },
    { "createpolicy.range", "b64",
      "global? L2::evict_last|L2::evict_normal? L2::evict_first? L2::evict_unchanged?", "", S(74, 80),
      C_MEMORY,
      LOW(createpolicy) },
    { "createpolicy.cvt.L2", "b64", "", "", S(74, 80), C_MEMORY, LOW(createpolicy) },

    /* matrices: ldmatrix, mma, wmma; shapes, types and their versions are tables in lower_tensor.c */
    { "ldmatrix", "*", "*", "", S(65, 75), C_TENSOR, LOW(ldmatrix) },
    { "stmatrix", "*", "*", "", S(78, 90), C_TENSOR, LOW(stmatrix) },
    { "movmatrix", "*", "*", "", S(78, 75), C_TENSOR, LOW(movmatrix) },
    { "mma", "*", "*", "", S(64, 70), C_TENSOR, LOW(mma) },
    { "wmma", "*", "*", "", S(60, 70), C_TENSOR, LOW(wmma) },

    /* warpgroup matrices: wgmma */
    { "wgmma", "*", "*", "", S(80, 90), C_TENSOR, LOW(wgmma) },

    /* tensor memory: modifiers, versions and operands are checked in lower_tcgen05.c */
    { "tcgen05", "*", "*", "", S(86, 100), C_TENSOR, LOW(tcgen05) },

    /* textures and surfaces: modifiers, types and versions are checked in lower_texture.c */
    { "tex", "*", "*", "", S(31, 20), C_MEMORY, LOW(tex) },
    { "tld4", "*", "*", "", S(31, 20), C_MEMORY, LOW(tex) },
    { "txq", "*", "*", "", S(31, 20), C_MEMORY, LOW(texture_query) },
    { "suq", "*", "*", "", S(31, 20), C_MEMORY, LOW(texture_query), .sub = 1 },
    { "suld", "*", "*", "", S(31, 20), C_MEMORY, LOW(surface) },
    { "sust", "*", "*", "", S(31, 20), C_MEMORY, LOW(surface), .sub = 1 },
    { "sured", "*", "*", "", S(31, 20), C_MEMORY, LOW(sured) },

    /* barriers and warps */
    { "bar.cta.sync", "", "", "", S(78, 10), C_CONTROL, LOW(bar), .sub = 0, .x = X_ALIGNED },
    { "bar.cta.arrive", "", "", "", S(78, 20), C_CONTROL, LOW(bar), .sub = 1, .x = X_ALIGNED },
    { "bar.cta.red.popc", "u32", "", "", S(78, 20), C_CONTROL, LOW(bar), .sub = 2, .x = X_ALIGNED },
    { "bar.cta.red", "pred", "and|or!", "", S(78, 20), C_CONTROL, LOW(bar), .sub = 2, .x = X_ALIGNED },
    { "barrier.cta.sync", "", "aligned?", "", S(78, 30), C_CONTROL, LOW(bar), .sub = 0 },
    { "barrier.cta.arrive", "", "aligned?", "", S(78, 30), C_CONTROL, LOW(bar), .sub = 1 },
    { "barrier.cta.red.popc", "u32", "aligned?", "", S(78, 30), C_CONTROL, LOW(bar), .sub = 2 },
    { "barrier.cta.red", "pred", "aligned? and|or!", "", S(78, 30), C_CONTROL, LOW(bar), .sub = 2 },
    { "bar.sync", "", "", "", S(10, 10), C_CONTROL, LOW(bar), .sub = 0, .x = X_ALIGNED },
    { "bar.arrive", "", "", "", S(20, 20), C_CONTROL, LOW(bar), .sub = 1, .x = X_ALIGNED },
    { "bar.red.popc", "u32", "", "", S(20, 20), C_CONTROL, LOW(bar), .sub = 2, .x = X_ALIGNED },
    { "bar.red", "pred", "and|or!", "", S(20, 20), C_CONTROL, LOW(bar), .sub = 2, .x = X_ALIGNED },
    { "barrier.sync", "", "aligned?", "", S(60, 30), C_CONTROL, LOW(bar), .sub = 0 },
    { "barrier.arrive", "", "aligned?", "", S(60, 30), C_CONTROL, LOW(bar), .sub = 1 },
    { "barrier.red.popc", "u32", "aligned?", "", S(60, 30), C_CONTROL, LOW(bar), .sub = 2 },
    { "barrier.red", "pred", "aligned? and|or!", "", S(60, 30), C_CONTROL, LOW(bar), .sub = 2 },
    { "bar.warp.sync", "", "", "", S(60, 30), C_WARP, LOW(warp_sync) },
    { "shfl.sync", "b32", "up|down|bfly|idx!", "", S(60, 30), C_WARP, LOW(shfl) },
    { "vote.sync", "pred", "all|any|uni!", "", S(60, 30), C_WARP, LOW(vote) },
    { "vote.sync.ballot", "b32", "", "", S(60, 30), C_WARP, LOW(vote), .sub = 3 },
    { "match.any.sync", "b32|b64", "", "", S(60, 70), C_WARP, LOW(match), .sub = 0 },
    { "match.all.sync", "b32|b64", "", "", S(60, 70), C_WARP, LOW(match), .sub = 1 },
    { "redux.sync", "u32|s32", "add|min|max!", "", S(70, 80), C_WARP, LOW(redux) },
    { "redux.sync", "b32", "and|or|xor!", "", S(70, 80), C_WARP, LOW(redux) },
    { "redux.sync", "f32", "min|max! abs? NaN?", "", S(86, 100), C_WARP, LOW(redux_f32) },
    { "elect.sync", "", "", "", S(80, 90), C_WARP, LOW(elect) },
    { "activemask", "b32", "", "", S(62, 30), C_WARP, LOW(activemask) },
};
enum { FORMS = sizeof forms / sizeof *forms };

/* Legal instructions that are not implemented; their message differs from that of illegal ones. A prefix of the
 * dotted name. */
static const char *const absent[] = { "istypep",
                                      "multimem",
                                      "clusterlaunchcontrol" };

bool sim_not_implemented(const char *shown)
{
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++) {
        size_t n = strlen(absent[k]);
        if (!strncmp(shown, absent[k], n) && (!shown[n] || shown[n] == '.' || shown[n] == ':')) return true;
    }
    static const char *const later[] = { ".im2col", ".tile::gather4", ".tile::scatter4", ".cta_group::",
      ".cp_mask",
                                         ".swizzle_atomicity" };
    bool copies = !strncmp(shown, "cp.", 3) || !strncmp(shown, "tensormap.", 10);
    for (size_t k = 0; copies && k < sizeof later / sizeof *later; k++) if (strstr(shown,
      later[k])) return true;
    return false;
}

/* --- matching --------------------------------------------------------------------------------- */

static size_t word_length(const char *p, const char *stop) { return strcspn(p, stop); }

/* Rows with the same opcode are linked, so that a statement is compared with those only. */
enum { BUCKETS = 256 };
static int16_t first_form[BUCKETS], next_form[FORMS];
static pthread_once_t indexed = PTHREAD_ONCE_INIT;

static uint32_t opcode_bucket(const char *p, size_t n)
{
    uint32_t h = 0;
    while (n--) h = h * 31 + (unsigned char)*p++;
    return h % BUCKETS;
}

static void index_forms(void)
{
    for (int k = 0; k < BUCKETS; k++) first_form[k] = -1;
    for (int k = FORMS; k-- > 0;) {
        uint32_t b = opcode_bucket(forms[k].name, word_length(forms[k].name, "."));
        next_form[k] = first_form[b];
        first_form[b] = (int16_t)k;
    }
}

static int forms_of(const char *opcode)
{
    pthread_once(&indexed, index_forms);
    return first_form[opcode_bucket(opcode, strlen(opcode))];
}

bool sim_opcode_known(const char *opcode)
{
    size_t n = strlen(opcode);
    for (int k = forms_of(opcode); k >= 0; k = next_form[k])
        if (word_length(forms[k].name, ".") == n && !strncmp(forms[k].name, opcode, n)) return true;
    for (size_t k = 0; k < sizeof absent / sizeof *absent; k++)
        if (word_length(absent[k], ".") == n && !strncmp(absent[k], opcode, n)) return true;
    return false;
}

/* Whether the statement has the modifiers in the form's name. */
static bool name_matches(const sim_form *f, const sim_statement *s, uint32_t *count)
{
    size_t n = word_length(f->name, ".");
    *count = 0;
    if (strlen(s->opcode) != n || strncmp(f->name, s->opcode, n)) return false;
    for (const char *p = f->name + n; *p == '.'; p += n) {
        n = word_length(++p, ".");
        if (!sim_mod(&s->mods, sim_mod_find(p, n))) return false;
        ++*count;
    }
    return true;
}

static bool types_match(const sim_form *f, const sim_statement *s)
{
    if (*f->types == '*') return true;
    const char *p = f->types;
    for (uint32_t k = 0; k < s->type_count; k++) {
        size_t position = word_length(p, ".");
        bool found = false;
        if (!position) return false;
        for (const char *q = p; q < p + position;) {
            size_t n = word_length(q, "|.");
            const char *t = sim_types[s->types[k]].name;
            if (strlen(t) == n && !strncmp(t, q, n)) found = true;
            q += n + 1;
        }
        if (!found) return false;
        p += position;
        if (*p == '.') p++;
    }
    return !*p;
}

static bool word_has(const char *p, size_t n, const sim_mods *mods, int *which, uint32_t *hits)
{
    bool any = false;
    for (const char *e = p + n; p < e;) {
        size_t w = word_length(p, "|?! ");
        bool group = false;
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
            if (strlen(groups[g].name) == w && !strncmp(groups[g].name, p, w)
                && strcmp(groups[g].name, "L1")) {
                any |= word_has(groups[g].members, strlen(groups[g].members), mods, which, hits);
                group = true;
            } else if (w == 2 && !strncmp(p, "L1", 2) && !strcmp(groups[g].name, "L1") && p[2] == '?') {
                any |= word_has(groups[g].members, strlen(groups[g].members), mods, which, hits);
                group = true;
            }
        if (!group) {
            int id = sim_mod_find(p, w);
            if (id != M_NONE && sim_mod(mods, id)) { any = true; which[(*hits)++ & 7] = id; }
        }
        p += w + 1;
    }
    return any;
}

/* How many modifiers are wrong; with `say`, reports them. */
static int check_mods(sim_module *m, const sim_form *f, const sim_statement *s, bool say)
{
    sim_mods left = s->mods;
    int wrong = 0;
    if (*f->mods == '*') return 0;
    for (const char *p = strchr(f->name, '.'); p && *p == '.';) {
        size_t n = word_length(++p, ".");
        sim_mod_clear(&left, sim_mod_find(p, n));
        p += n;
    }
    for (const char *p = f->mods; *p;) {
        size_t n = word_length(p, " "), body = n - 1;
        int which[8];
        uint32_t hits = 0;
        bool any = word_has(p, body, &left, which, &hits), needed = p[body] == '!';
        if (hits > 1) {
            wrong++;
            if (say)
                sim_error(m, s->line, "Modifier '.%s' cannot be combined with modifier '.%s'",
                          sim_mod_name(which[0]), sim_mod_name(which[1]));
        }
        for (uint32_t k = 0; k < hits && k < 8; k++) sim_mod_clear(&left, which[k]);
        if (!any && needed) {
            wrong++;
            if (say) {
                bool rounding = !strncmp(p, "RND", 3) || !strncmp(p, "rn", 2);
                bool approx = rounding
                              && (!strcmp(s->opcode, "div") || !strcmp(s->opcode, "rcp")
                                  || !strcmp(s->opcode, "sqrt"))
                              && s->type_count && s->types[0] == T_F32;
                if (rounding) sim_error(m, s->line, "Rounding modifier %srequired for instruction '%s'",
                                        approx ? "or '.approx' modifier " : "", f->name);
                else if (strstr(p, "CMP") && strstr(p, "CMP") < p + n) {
                    const char *members = NULL;
                    bool other = false;
                    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
                        if (!strncmp(groups[g].name, p, body) && strlen(groups[g].name) == body)
                            members = groups[g].members;
                    for (int id = M_eq; id <= M_nan; id++) other |= sim_mod(&left, id);
                    other |= sim_mod(&left, M_lo) || sim_mod(&left, M_hi);
                    if (other)
                        sim_error(m, s->line,
                                  "Mismatch between instruction type and comparison qualifier (legal: %s)",
                                  members ? members : "");
                    else sim_error(m, s->line, "Comparison modifier required for instruction '%s'", f->name);
                } else
                    sim_error(m, s->line, "One of the modifiers '.%.*s' is required for instruction '%s'",
                              (int)body, p, f->name);
            }
        }
        p += n;
        while (*p == ' ') p++;
    }
    for (int id = 1; id < M_COUNT; id++) {
        if (!sim_mod(&left, id)) continue;
        if (say && wrong && id >= M_eq && id <= M_nan) continue;        /* reported above */
        wrong++;
        if (!say) continue;
        if ((id >= M_rn && id <= M_rpi))
            sim_error(m, s->line, "Illegal rounding modifier '.%s' for instruction '%s'", sim_mod_name(id),
                      f->name);
        else sim_error(m, s->line, "Illegal modifier '.%s' for instruction '%s'", sim_mod_name(id), f->name);
    }
    return wrong;
}

const sim_form *sim_find_form(sim_module *m, sim_statement *s, char *shown, size_t shown_size)
{
    const sim_form *named = NULL, *typed = NULL, *best = NULL;
    uint32_t best_named = 0;
    int best_wrong = 1 << 30;
    (void)shown_size;
    for (int k = forms_of(s->opcode); k >= 0; k = next_form[k]) {
        uint32_t count;
        if (!name_matches(&forms[k], s, &count)) {
            if (!typed && !named && word_length(forms[k].name, ".") == strlen(s->opcode)
                && !strncmp(forms[k].name, s->opcode, strlen(s->opcode))) best = best ? best : &forms[k];
            continue;
        }
        if (!named || count >= best_named) named = &forms[k];
        if (!types_match(&forms[k], s)) continue;
        int wrong = check_mods(m, &forms[k], s, false);
        if (wrong < best_wrong || (wrong == best_wrong && count > best_named)) {
            typed = &forms[k];
            best_wrong = wrong;
            best_named = count;
        }
    }
    if (!named) {
        sim_error(m, s->line, "Modifiers of instruction '%s' choose no form: expected one such as '%s'",
                  shown, best ? best->name : s->opcode);
        return NULL;
    }
    if (!typed) {
        sim_error(m, s->line, "Unexpected instruction types specified for '%s'", named->name);
        return NULL;
    }
    if (best_wrong) { check_mods(m, typed, s, true); return NULL; }
    if (typed->target > m->target)
        sim_error(m, s->line, "Feature '%s' requires .target sm_%u or higher", shown, typed->target);
    if (typed->version > m->version && typed->version > 23)
        sim_error(m, s->line, "Feature '%s' requires PTX ISA .version %u.%u or later", shown,
                  typed->version / 10u, typed->version % 10u);
    return typed;
}
