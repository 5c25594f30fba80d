/* immediates.c - typed immediates as operands of the mathematics: each function takes them in every place, and
   refuses NULL for an array. Needs no driver. */
#include "../../ptxgen.h"

#include "../check.h"

static ptx_module *m;
static ptx_kernel *k;
static ptx_val to, x32, x64, count;

static void begin(void) {
    m = ptx_module_new(NULL);
    k = ptx_entry(m, "k");
    to = ptx_param_ptr(k, "to", PTX_GLOBAL);
    x32 = ptx_param(k, "x32", PTX_F32);
    x64 = ptx_param(k, "x64", PTX_F64);
    count = ptx_param(k, "count", PTX_U32);
}

static void end(const char *name) {
    ptx_ret(k);
    CHECK_MORE(ptx_text(m, NULL) != NULL, name);
    ptx_module_free(m);
}

/* Operand i: an immediate where bit i is set. */
static ptx_val operand(ptx_type type, unsigned immediates, unsigned i) {
    if (immediates >> i & 1) return type == PTX_F64 ? ptx_f64(0.3 + i) : ptx_f32(0.3f + (float)i);
    return type == PTX_F64 ? x64 : x32;
}

static void test_functions(ptx_type type) {
    static const char *const one[] = {"floor", "ceil",  "round", "trunc", "fract", "sign", "sin",  "cos",  "tan",
                                      "asin",  "acos",  "atan",  "sinh",  "cosh",  "tanh", "exp",  "exp2", "exp10",
                                      "expm1", "log",   "log2",  "log10", "log1p", "cbrt", "erf",  "erfc",
                                      "tgamma", "lgamma"};
    static const char *const only_f32[] = {"srgb_to_linear", "linear_to_srgb"};
    static const char *const two[] = {"step", "mod", "atan2", "hypot", "pow"};
    static const char *const three[] = {"clamp", "mix", "smoothstep"};
    size_t i;
    unsigned set;
    for (i = 0; i < sizeof one / sizeof *one; i++) {
        begin();
        ptx_st(k, type, ptx_at(to, 0), ptx_math1(k, one[i], operand(type, 1, 0)));
        end(one[i]);
    }
    for (i = 0; type == PTX_F32 && i < sizeof only_f32 / sizeof *only_f32; i++) {
        begin();
        ptx_st(k, type, ptx_at(to, 0), ptx_math1(k, only_f32[i], operand(type, 1, 0)));
        end(only_f32[i]);
    }
    for (i = 0; i < sizeof two / sizeof *two; i++)
        for (set = 1; set < 4; set++) {
            begin();
            ptx_st(k, type, ptx_at(to, 0), ptx_math2(k, two[i], operand(type, set, 0), operand(type, set, 1)));
            end(two[i]);
        }
    for (i = 0; i < sizeof three / sizeof *three; i++)
        for (set = 1; set < 8; set++) {
            begin();
            ptx_st(k, type, ptx_at(to, 0),
                   ptx_math3(k, three[i], operand(type, set, 0), operand(type, set, 1), operand(type, set, 2)));
            end(three[i]);
        }
}

static void test_groups(unsigned immediates) {
    ptx_val a[4], b[4], n[4], key[2], out[4];
    unsigned i;
    begin();
    for (i = 0; i < 4; i++) {
        a[i] = operand(PTX_F32, immediates, i);
        b[i] = operand(PTX_F32, ~immediates, i);
        n[i] = immediates >> i & 1 ? ptx_u32(i) : count;
    }
    key[0] = immediates & 1 ? count : ptx_u32(1);
    key[1] = immediates & 1 ? ptx_u32(2) : count;
    ptx_philox(k, n, key, out);
    ptx_st(k, PTX_U32, ptx_at(to, 0), out[3]);
    ptx_cross(k, a, b, out);
    ptx_reflect(k, 3, out, a, out);
    ptx_st(k, PTX_F32, ptx_at(to, 4), ptx_dot(k, 3, out, b));
    ptx_st(k, PTX_F32, ptx_at(to, 8), ptx_simplex_noise(k, 3, a, n[0]));
    ptx_st(k, PTX_U32, ptx_at(to, 12), ptx_pack_rgba8(k, a));
    ptx_st(k, PTX_U32, ptx_at(to, 16), ptx_pack_half(k, a[0], a[1]));
    ptx_unpack_half(k, n[1], out);
    ptx_unpack_rgba8(k, n[2], out);
    ptx_sincos(k, a[3], &out[0], &out[1]);
    end("groups");
}

static void test_null(void) {
    static const char *const names[] = {"dot", "length", "normalize", "philox", "pack_rgba8", "simplex_noise"};
    char name[40];
    unsigned i;
    for (i = 0; i < 6; i++) {
        ptx_val out[4];
        begin();
        if (i == 0) (void)ptx_dot(k, 3, NULL, NULL);
        if (i == 1) (void)ptx_length(k, 3, NULL);
        if (i == 2) ptx_normalize(k, 3, NULL, out);
        if (i == 3) ptx_philox(k, NULL, NULL, out);
        if (i == 4) (void)ptx_pack_rgba8(k, NULL);
        if (i == 5) (void)ptx_simplex_noise(k, 2, NULL, count);
        CHECK_MORE(ptx_text(m, NULL) == NULL, names[i]);
        snprintf(name, sizeof name, "error: ptx_%s: ", names[i]);
        CHECK_MORE(strstr(ptx_get_error(m)->message, name) != NULL, ptx_get_error(m)->message);
        ptx_module_free(m);
    }
}

int main(void) {
    unsigned i;
    test_functions(PTX_F32);
    test_functions(PTX_F64);
    for (i = 0; i < 16; i++) test_groups(i);
    test_null();
    return check_end();
}
