/* handles.c - what a handle of 8 bytes and a memory operand of 16 can say: numbers of 64 bits, offsets,
 * modifiers and policies come out as they went in, or are refused with what to write instead.
 *
 *   make build/tests/builder/handles && build/tests/builder/handles */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../check.h"

#include <string.h>

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, w, d;

static void start(void) {
    ptx_module_desc desc = PTX_ZERO;
    desc.target = PTX_SM(100);
    ptx_module_free(m);
    m = ptx_module_new(&desc);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    w = ptx_param(k, "w", PTX_U64);
    d = ptx_param(k, "d", PTX_F64);
}
static int prints(const char *text) {
    const char *s;
    ptx_ret(k);
    s = ptx_text(m, NULL);
    return s && strstr(s, text) != NULL;
}
static int refused(ptx_code code, const char *words) {
    const ptx_error *e = ptx_get_error(m);
    return e->code == code && strstr(e->message, words) != NULL;
}
#define WRONG(code, words) CHECK_MORE(refused(PTX_E_##code, words), ptx_get_error(m)->message)

/* A number in an instruction: printed exactly, or refused, and then ptx_wide prints it. */
static int integer(int is_signed, uint64_t bits) {
    char text[64];
    ptx_val v = is_signed ? ptx_s64((int64_t)bits) : ptx_u64(bits);
    int fits = v.handle >> 61 != PTX__H_NOTHING;
    if (is_signed)
        snprintf(text, sizeof text, "add.s64 %%d4, %%d2, %lld;", (long long)bits);
    else
        snprintf(text, sizeof text, "add.u64 %%d4, %%d2, %llu;", (unsigned long long)bits);
    start();
    CHECK(ptx_type_of(v) == (fits ? is_signed ? PTX_S64 : PTX_U64 : PTX_NONE));
    ptx_add(k, ptx_as(w, is_signed ? PTX_S64 : PTX_U64), v);
    if (fits)
        CHECK_MORE(prints(text), text);
    else
        CHECK_MORE(refused(PTX_E_RANGE, "ptx_wide"), text);
    start();
    v = ptx_wide(k, is_signed ? PTX_S64 : PTX_U64, bits);
    CHECK(ptx_type_of(v) == (is_signed ? PTX_S64 : PTX_U64));
    ptx_add(k, ptx_as(w, is_signed ? PTX_S64 : PTX_U64), v);
    CHECK_MORE(prints(text), text);
    return fits;
}
static int floating(uint64_t bits) {
    char text[64];
    double value;
    ptx_val v;
    int fits;
    memcpy(&value, &bits, sizeof bits);
    v = ptx_f64(value);
    fits = v.handle >> 61 != PTX__H_NOTHING;
    if (value != value) bits = INT64_MAX;
    snprintf(text, sizeof text, ", 0d%016llX;", (unsigned long long)bits);
    start(), ptx_add(k, d, v);
    if (fits)
        CHECK_MORE(prints(text), text);
    else
        CHECK_MORE(refused(PTX_E_RANGE, "ptx_wide"), text);
    start(), ptx_add(k, d, ptx_wide(k, PTX_F64, bits)), CHECK_MORE(prints(text), text);
    return fits;
}
static void numbers(void) {
    static const double doubles[] = {
        0.1, -1.0 / 3, 3.141592653589793, 1e-60, 1e70, 2.2250738585072014e-308, 1e22, 0.0, -0.0};
    uint32_t i;
    uint64_t bits;
    for (i = 0; i < 2000; i++) {
        const uint32_t shift = random_below(64), drop = random_below(2) ? random_below(64) : 0;
        bits = ((uint64_t)random_u32() << 32 | random_u32()) >> shift << drop;
        if (random_below(2)) bits = 0 - bits;
        integer(i & 1, bits), floating(bits);
    }
    for (i = 0; i < 64; i++) {
        CHECK(integer(0, (uint64_t)1 << i) && integer(1, (uint64_t)1 << i));
        CHECK(integer(0, ~(uint64_t)0 << i) && integer(1, ~(uint64_t)0 << i));
        CHECK(integer(i & 1, ((uint64_t)1 << i) - 1) == (i < 55));
    }
    for (i = 0; i < sizeof doubles / sizeof *doubles; i++)
        memcpy(&bits, &doubles[i], sizeof bits), CHECK(floating(bits));
    CHECK(!floating(0x7fefffffffffffff) && floating(0x7ff0000000000000) && floating(0x7ff0000000000001));
    /* floats are rounded once, from all bits of the double */
    start(), ptx_mov(k, ptx_f32(1.0 + 0x1p-24 + 0x1p-52)), CHECK(prints("0f3F800001"));
    start(), ptx_mov(k, ptx_f32(1.0 + 0x1p-24)), CHECK(prints("0f3F800000"));
    start(), ptx_mov(k, ptx_f16(1.0 + 0x1p-11 + 0x1p-50)), CHECK(prints("0x3C01"));
    start(), ptx_wide(k, PTX_U32, 1), WRONG(TYPE, "not of u32");
    start(), ptx_mov(k, ptx_u64(0x9e3779b97f4a7c15)), WRONG(RANGE, "ptx_wide");
    {
        ptx_kernel *other = (start(), ptx_entry(m, "other"));
        ptx_add(k, w, ptx_wide(other, PTX_U64, 7)), WRONG(FOREIGN, "another kernel");
    }
}

static void offsets(void) {
    uint32_t i;
    char text[64];
    for (i = 0; i < 500; i++) {
        const int64_t a = (int64_t)random_below(1u << 24) - (1 << 23), b = (int64_t)(int32_t)random_u32();
        const int64_t sum = a + b;
        ptx_val q;
        start(), q = ptx_off(ptx_off(p, a - a / 3), a / 3);
        CHECK(ptx_type_of(q) == PTX_U64 && ptx_space_of(q) == PTX_GLOBAL);
        ptx_ld(k, PTX_U8, ptx_at(q, b));
        snprintf(text, sizeof text, sum ? "[%%d1+%lld];" : "[%%d1];", (long long)sum);
        if (sum > INT32_MAX || sum < INT32_MIN)
            snprintf(text, sizeof text, "%lld", (long long)sum), WRONG(RANGE, text);
        else
            CHECK_MORE(prints(text), text);
    }
    start(), ptx_ld(k, PTX_U8, ptx_at(ptx_off(p, -(1 << 23)), 0)), CHECK(prints("[%d1+-8388608];"));
    start(), ptx_ld(k, PTX_U8, ptx_at(ptx_off(p, 1 << 23), 0)), WRONG(RANGE, "ptx_ptr_add takes: 8388608");
    {
        ptx_kernel *other = (start(), ptx_entry(m, "other"));
        ptx_val q = ptx_off(p, 16);
        CHECK(ptx_type_of(ptx_as(q, PTX_S64)) == PTX_S64 && !ptx_type_of(ptx_as(q, PTX_F64)));
        CHECK(ptx_space_of(ptx_ptr(q, PTX_LOCAL)) == PTX_LOCAL);
        ptx_ld(other, PTX_U32, ptx_at(q, 0)), WRONG(FOREIGN, "another kernel");
    }
}

/* Modifiers of one operand: kept exactly, alone and or'ed in by two calls; of more than can be, four are. */
static void modifiers(void) {
    uint32_t i, n, bits;
    for (i = 0; i < 20000; i++) {
        ptx_mods mods = 0, first;
        uint64_t access;
        for (n = random_below(7); n; n--) mods |= PTX__M(random_below(61));
        first = mods & ((uint64_t)random_u32() << 32 | random_u32() | PTX__FAMILY);
        access = ptx__with_mods(ptx__with_mods(0x12345678, first), mods);
        first = ptx__access_mods(access);
        CHECK((uint32_t)access == 0x12345678);
        for (n = 0, bits = 0; n < 62; n++) bits += (uint32_t)(mods >> n & 1);
        if (bits <= 4)
            CHECK(first == mods);
        else
            CHECK(first == mods || (!(first & ~mods) && access & PTX__A_LIST));
    }
    start(), ptx_st(k, PTX_U32, ptx_with(ptx_with(ptx_at(p, 4), PTX_RELAXED), PTX_GPU | PTX_L1_EVICT_LAST),
                    ptx_imm(1));
    CHECK(prints("st.relaxed.gpu.global.L1::evict_last.u32 [%d1+4], 1;"));
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_FTZ)), WRONG(MODIFIER, ".ftz");
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_CA | PTX_CG)), WRONG(MODIFIER, "exclude");
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_RELAXED)), WRONG(MODIFIER, "needs a scope");
}
static void policies(void) {
    ptx_val policy;
    ptx_kernel *other;
    start(), policy = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
    ptx_ld(k, PTX_U32, ptx_with(ptx_cached(ptx_at(p, 4), policy), PTX_NC | PTX_L2_128B));
    CHECK(prints("ld.global.nc.L2::cache_hint.L2::128B.u32 %r0, [%d1+4], %d4;"));
    start(), ptx_ld(k, PTX_U32, ptx_cached(ptx_at(p, 0), ptx_u64(1))), WRONG(HANDLE, "policy");
    start(), ptx_ld(k, PTX_U32, ptx_cached(ptx_at(p, 0), ptx_mov(k, ptx_u32(1)))), WRONG(TYPE, "policy");
    start(), ptx_ld(k, PTX_U32, ptx_cached(ptx_at(p, 0), p)), WRONG(TYPE, "policy");
    start(), other = ptx_entry(m, "other"), policy = ptx_op0(other, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
    ptx_ld(k, PTX_U32, ptx_cached(ptx_at(p, 0), policy)), WRONG(FOREIGN, "policy");
    ptx_module_reset(m), start();
    ptx_ld(k, PTX_U32, ptx_cached(ptx_at(ptx_off(p, 8), 0), policy)), WRONG(FOREIGN, "policy");
    start(), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_L2_CACHE_HINT)), WRONG(HANDLE, "policy");
}

int main(void) {
    start_random();
    numbers();
    offsets();
    modifiers();
    policies();
    ptx_module_free(m);
    return check_end();
}
