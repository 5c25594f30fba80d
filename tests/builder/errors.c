/* The builder: every mistake ends in its own located error, every near miss passes, the text is deterministic
   and what ptxas accepts, memory can run out anywhere.

     make build/tests/builder/errors

   It uses ptxas where that is on the PATH. */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- a kernel with one value of each kind, and what must become of it -- */

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, u, s, f, h, b, d, w, i16, c, sh, blk, zero;
static int at_line, serial;
#define L at_line = __LINE__; /* the mistake is made in this line */
#define ANY PTX_E_COUNT
/* A value outside of an enumeration: C takes any, in C++ it must fit the bits of the largest. */
#ifdef __cplusplus
#define WILD(type, count) ((type)(count))
#else
#define WILD(type, count) ((type)((count) + 9000))
#endif

static char *bodies[4096]; /* accepted kernels, for ptxas */
static uint32_t body_sm[4096];
static size_t body_count;

static ptx_module *new_module(uint32_t sm, uint32_t cap, uint32_t comments) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM(sm);
    desc.max_version = cap;
    desc.comments = comments;
    return ptx_module_new(&desc);
}
static void bare(uint32_t sm, uint32_t cap) {
    char name[32];
    sprintf(name, "k%d", serial++);
    at_line = 0;
    m = new_module(sm, cap, 0);
    k = ptx_entry(m, name);
}
static void start(uint32_t sm) {
    bare(sm, 0);
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    u = ptx_param(k, "u", PTX_U32);
    s = ptx_param(k, "s", PTX_S32);
    f = ptx_param(k, "f", PTX_F32);
    h = ptx_param(k, "h", PTX_F16);
    b = ptx_param(k, "b", PTX_BF16);
    d = ptx_param(k, "d", PTX_F64);
    w = ptx_param(k, "w", PTX_U64);
    i16 = ptx_param(k, "i16", PTX_U16);
    blk = ptx_param_bytes(k, "blk", 16, 8);
    sh = ptx_shared(k, "sh", PTX_U32, 64, 0);
    c = ptx_setp(k, PTX_LT, u, ptx_imm(5));
}
/* Values of the second kernel or module must not outlive a test: a file-wide handle always belongs to k. */
static void done(void) {
    ptx_module_free(m);
    m = NULL;
    k = NULL;
}

/* words: what the message must contain, separated by '|' */
static void wrong_(int line, const char *name, ptx_code code, const char *words) {
    char where[300], tag[64];
    const char *message, *text = ptx_text(m, NULL);
    const ptx_error *e = ptx_get_error(m);
    CHECK_AT(text == NULL, line, name, "accepted");
    message = e->message;
    if (code == ANY)
        CHECK_AT(text || e->code != PTX_E_NONE, line, name, "no code");
    else {
        sprintf(tag, "[%s]", ptx_error_name(code));
        CHECK_AT(e->code == code && strstr(message, tag), line, name, message);
    }
    if (at_line && !text) {
        sprintf(where, "%.255s:%d", __FILE__, at_line);
        CHECK_AT(strncmp(message, where, strlen(where)) == 0 && strstr(message, ": error: "), line,
               "place of error", message);
        CHECK_AT(strcmp(e->site, where) == 0, line, "ptx_error.site", e->site);
    }
    while (*words && !text) {
        size_t n = strcspn(words, "|");
        char word[100];
        sprintf(word, "%.*s", (int)n, words);
        CHECK_AT(strstr(message, word) != NULL, line, word, message);
        words += n + (words[n] == '|');
    }
    done();
}
#define WRONG(name, code, words) wrong_(__LINE__, name, code, words)

/* Keep what stands behind the header, to assemble it with all others. */
static void keep_body(const char *text, uint32_t sm) {
    const char *body = text ? strstr(text, ".address_size 64\n") : NULL;
    if (!body || body_count == sizeof bodies / sizeof *bodies) return;
    body += strlen(".address_size 64\n");
    bodies[body_count] = (char *)malloc(strlen(body) + 1);
    if (!bodies[body_count]) return;
    strcpy(bodies[body_count], body);
    body_sm[body_count++] = sm;
}
static void fine_(int line, const char *name) {
    const char *text = ptx_text(m, NULL);
    CHECK_AT(text != NULL, line, name, ptx_get_error(m)->message);
    keep_body(text, ptx_module_target(m) & 0xfff);
    done();
}
#define FINE(name) fine_(__LINE__, name)

/* The text of the kernel so far has this. */
static void prints_(int line, const char *what) {
    const char *text;
    ptx_ret(k);
    text = ptx_text(m, NULL);
    CHECK_AT(text && strstr(text, what), line, what, text ? text : ptx_get_error(m)->message);
    keep_body(text, ptx_module_target(m) & 0xfff);
    done();
}
#define PRINTS(what) prints_(__LINE__, what)

/* -- the mistakes -- */

static void types(void) {
    start(75), L ptx_add(k, u, s), WRONG("u32 + s32", PTX_E_TYPE, "operand 2|add|s32|u32");
    start(75), L ptx_add(k, h, b),
    WRONG("f16 + bf16", PTX_E_TYPE, "operand 2|add|bf16|f16|ptx_cvt(k, PTX_F16, x)");
    start(75), L ptx_add(k, f, u),
    WRONG("f32 + u32", PTX_E_TYPE,
          "operand 2|add|f32|u32|ptx_cvt(k, PTX_F32, x) converts|ptx_as(x, PTX_F32)");
    start(75), L ptx_add(k, f, ptx_f64(1)),
    WRONG("f32 + f64 immediate", PTX_E_TYPE, "f64|f32|write ptx_f32(number)");
    start(75), L ptx_add(k, u, ptx_f32(1)),
    WRONG("u32 + f32 immediate", PTX_E_TYPE, "f32|u32|write ptx_u32(number)");
    start(75), L ptx_add(k, f, ptx_imm(1)),
    WRONG("f32 + integer immediate", PTX_E_TYPE, "integer immediate, expected f32: write ptx_f32(number)");
    start(75), L ptx_add(k, u, c), WRONG("predicate as a value", PTX_E_TYPE, "operand 2|pred|u32|ptx_selp");
    start(75), L ptx_if(k, u), WRONG("if on a u32", PTX_E_TYPE, "u32|pred|ptx_setp");
    start(75), ptx_loop(k), L ptx_while(k, f), WRONG("while on an f32", PTX_E_TYPE, "f32|pred");
    start(75), L ptx_guard(k, u), WRONG("guard on a u32", PTX_E_TYPE, "u32|pred");
    start(75), L ptx_selp(k, u, u, u), WRONG("selp on a u32", PTX_E_TYPE, "operand 3|selp|u32|pred");
    start(75), L ptx_selp(k, f, ptx_imm(1), c),
    WRONG("selp of an f32 and an integer immediate", PTX_E_TYPE,
          "operand 2 of selp is an integer immediate, expected f32: write ptx_f32(number)");
    start(75), L ptx_selp(k, ptx_imm(0), h, c),
    WRONG("selp of an integer immediate and an f16", PTX_E_TYPE,
          "operand 1 of selp|f16|write ptx_f16(number)");
    start(75), ptx_selp(k, ptx_as(u, PTX_F16X2), ptx_imm(1), c), ptx_ret(k), FINE("selp of bits of an f16x2");
    start(75), L ptx_selp(k, ptx_imm(1), ptx_imm(0), c),
    WRONG("selp of immediates without a type", PTX_E_TYPE, "no operand has a type|ptx_u32()");
    start(75), L ptx_selp(k, c, u, u),
    WRONG("selp, its predicate first", PTX_E_FORM, "pred|ptx_selp(k, a, b, p)");
    start(75), L ptx_fma(k, u, u, u), WRONG("fma of integers", PTX_E_FORM, "fma|u32|ptx_mad is for integers");
    start(75), L ptx_mad(k, f, f, f), WRONG("mad of floats", PTX_E_FORM, "mad|f32|ptx_fma is for floats");
    start(75), L ptx_cvt(k, PTX_U32, c),
    WRONG("cvt of a predicate", PTX_E_FORM, "cvt|pred|ptx_selp(k, one, zero, p)");
    start(75), L ptx_cvt(k, PTX_PRED, u), WRONG("cvt to a predicate", PTX_E_FORM, "cvt|pred|ptx_setp");
    start(75), L ptx_cvt(k, PTX_F16X2, f),
    WRONG("cvt of one f32 to a pair", PTX_E_FORM, "f16x2|ptx_cvt_pair");
    start(75), L ptx_sqrt(k, u),
    WRONG("sqrt of a u32", PTX_E_FORM, "sqrt|u32|ptx_cvt(k, PTX_F32, x) converts");
    start(75), L ptx_neg(k, u),
    WRONG("neg of a u32", PTX_E_FORM, "neg|u32|ptx_as reads the same bits as signed");
    start(75), L ptx_add(k, ptx_as(u, PTX_B32), ptx_as(u, PTX_B32)),
    WRONG("b32 + b32", PTX_E_FORM, "add|b32|ptx_as says what the bits are");
    start(75), L ptx_exp(k, ptx_imm(1)),
    WRONG("exp of an integer immediate", PTX_E_TYPE,
          "integer immediate, needs f32 or f64; write ptx_f32(number)");
    start(75), L ptx_surface_store_1d(k, 0, PTX_F32, d, u, ptx_imm(1)),
    WRONG("an integer immediate for a surface of f32", PTX_E_TYPE, "integer immediate: write ptx_f32(number)");
    start(75), L ptx_surface_store_1d(k, 0, PTX_F32, w, u, u),
    WRONG("a u32 for a surface of f32", PTX_E_TYPE, "f32 is needed|u32|ptx_cvt(k, PTX_F32, x) converts");
    start(75), ptx_surface_store_1d(k, 0, PTX_F32, w, u, ptx_as(u, PTX_B32)), ptx_ret(k);
    FINE("bits for a surface of f32");
    start(75), L ptx_add(k, f, ptx_as(ptx_imm(1), PTX_F32)),
    WRONG("ptx_as of an immediate", PTX_E_HANDLE, "write an immediate in its type");
    start(75), L ptx_add(k, p, u), WRONG("address + u32", PTX_E_TYPE, "operand 2|add|u32|u64|ptx_ptr_add");
    start(75), L ptx_atom(k, PTX_ADD, ptx_at(p, 0), u),
    WRONG("atom with the name of an instruction", PTX_E_MODIFIER, "atom needs an operation: PTX_ATOM_ADD");
    start(75), L ptx_shl(k, u, w),
    WRONG("64-bit shift count", PTX_E_TYPE, "operand 2|shl|u64|u32: ptx_cvt(k, PTX_U32, x) converts it");
    start(75), L ptx_shl(k, w, w),
    WRONG("64-bit shift count of 64 bits", PTX_E_TYPE, "operand 2|shl|u64|u32");
    start(75), L ptx_shr(k, u, f), WRONG("f32 shift count", PTX_E_TYPE, "operand 2|shr|f32|u32");
    start(75), L ptx_add(k, ptx_as(w, PTX_U32), u),
    WRONG("ptx_as to another width", PTX_E_HANDLE, "operand 1");
    start(75), L ptx_mad_wide(k, u, u, u), WRONG("mad.wide with a narrow addend", PTX_E_TYPE,
                                                 "operand 3|mad|u32|u64");
    start(75), L ptx_add(k, ptx_imm(1), ptx_imm(2)), WRONG("no operand has a type", PTX_E_TYPE, "add");
    start(75), L ptx_st(k, PTX_F32, ptx_at(p, 0), u),
    WRONG("st of another type", PTX_E_TYPE, "operand 2|st|u32|f32");
    start(75), L ptx_ld(k, PTX_PRED, ptx_at(p, 0)), WRONG("ld of a predicate", PTX_E_TYPE, "pred");
    start(75), L ptx_ld_if(k, c, PTX_F32, ptx_at(p, 0), ptx_f64(0)),
    WRONG("ld_if, f64 else", PTX_E_TYPE, "f32|f64");
    start(75), L ptx_ld_if(k, c, PTX_F32, ptx_at(p, 0), ptx_u32(7)),
    WRONG("ld_if, u32 else", PTX_E_TYPE, "f32|u32");
    start(75), L ptx_ld_if(k, c, PTX_F32, ptx_at(p, 0), ptx_imm(1)),
    WRONG("ld_if, integer else", PTX_E_TYPE, "f32");
    start(75);
    {
        ptx_var v = ptx_var_new(k, u);
        L ptx_set(k, v, f);
    }
    WRONG("ptx_set of another type", PTX_E_TYPE, "u32|f32");
    start(75);
    {
        ptx_var v = ptx_var_new(k, u);
        L ptx_set(k, v, ptx_f32(1));
    }
    WRONG("ptx_set of an f32 immediate to a u32", PTX_E_TYPE, "u32|f32");
    start(75);
    {
        ptx_var v = ptx_var_new(k, f);
        L ptx_set(k, v, ptx_imm(1));
    }
    WRONG("ptx_set of an integer to an f32", PTX_E_TYPE, "f32|integer immediate");
    start(75), L ptx_var_new(k, ptx_imm(1)), WRONG("variable without a type", PTX_E_TYPE, "mov");
    start(75), L ptx_ptr_add(k, p, f, 4), WRONG("f32 index", ANY, "f32");
    start(75), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), ptx_imm(1)),
    WRONG("atom without a type", PTX_E_TYPE, "atom");
    start(75), L ptx_atom_cas(k, ptx_at(p, 0), u, w), WRONG("cas of two types", PTX_E_TYPE, "u64");
    start(75), L ptx_cvt(k, WILD(ptx_type, PTX__TYPE_COUNT), u), WRONG("cvt to no type", ANY, "");
    start(75), L ptx_param(k, "q", PTX_PRED), WRONG("predicate parameter", PTX_E_TYPE, "pred");
    start(75);
    {
        ptx_for(k, ptx_u32(0), u, s);
        L ptx_end(k);
    }
    at_line = 0;
    WRONG("for with a step of another type", PTX_E_TYPE, "s32|u32");
    start(75), L ptx_for(k, s, u, ptx_imm(1)),
    WRONG("for with a limit of another type", PTX_E_TYPE, "s32|u32");
    /* near misses */
    start(75), ptx_add(k, u, ptx_as(s, PTX_U32)), ptx_ret(k), FINE("ptx_as of the same width");
    start(75), ptx_add(k, u, ptx_as(s, PTX_B32)), ptx_ret(k), FINE("b32 fits a u32 slot");
    start(75), ptx_mad_wide(k, u, u, w), ptx_ret(k), FINE("mad.wide");
    start(75), ptx_shl(k, w, u), ptx_shr(k, i16, s), ptx_ret(k), FINE("32-bit shift counts");
    start(75), ptx_and(k, f, u), ptx_ret(k), FINE("and of any 32 bits");
    start(75), ptx_selp(k, f, ptx_f32(0), ptx_inv(c)), ptx_ret(k), FINE("selp by an inverted predicate");
    start(75), ptx_ld_if(k, c, PTX_U32, ptx_at(p, 0), ptx_imm(1)), ptx_ret(k), FINE("ld_if, integer");
    start(75), ptx_st_if(k, c, PTX_F32, ptx_elem(k, PTX_F32, p, u), f), PRINTS("@%p0 st.global.f32 ");
    start(75), ptx_st_if(k, c, PTX_F64, ptx_at(p, 8), ptx_f64(1)), PRINTS("@%p0 st.global.f64 ");
    start(75), L ptx_st_if(k, u, PTX_F32, ptx_at(p, 0), f), WRONG("st_if on a u32", PTX_E_TYPE, "u32|pred");
    start(75), L ptx_st_if(k, c, PTX_F32, ptx_at(p, 0), ptx_imm(1)),
    WRONG("st_if of an integer immediate", PTX_E_TYPE, "integer immediate|write ptx_f32(number)");
}

static void forms(void) {
    start(75), L ptx_fma(k, u, u, u), WRONG("fma of integers", PTX_E_FORM, "fma|u32");
    start(75), L ptx_mad(k, f, f, f), WRONG("mad of floats", PTX_E_FORM, "mad|f32");
    start(75), L ptx_ex2(k, d),
    WRONG("ex2 of f64", PTX_E_FORM, "ex2|has no form for type f64: it has f16|f32");
    start(75), L ptx_rem(k, f, f), WRONG("rem of f32", PTX_E_FORM, "rem|f32");
    start(75), L ptx_div(k, h, h), WRONG("div of f16", PTX_E_FORM, "div|f16: it has|u16|f32 or f64");
    start(75), L ptx_neg(k, u), WRONG("neg of u32", PTX_E_FORM, "neg|u32");
    start(75), L ptx_popc(k, i16), WRONG("popc of 16 bits", PTX_E_FORM, "popc|b16");
    start(75), L ptx_add(k, c, c), WRONG("add of predicates", PTX_E_FORM, "add|pred");
    start(75), L ptx_shl(k, c, u), WRONG("shl of a predicate", PTX_E_FORM, "shl|pred");
    start(75), L ptx_lop3(k, w, w, w, ptx_imm(1)), WRONG("lop3 of 64 bits", PTX_E_FORM, "lop3|b64");
    start(75), L ptx_cvt(k, PTX_PRED, u), WRONG("cvt to a predicate", PTX_E_FORM, "cvt|u32|pred");
    start(80), L ptx_op2(k, PTX_REDUX_ADD, 0, f, ptx_imm(-1)), WRONG("redux of f32", PTX_E_FORM, "redux|f32");
    start(75), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), i16),
    WRONG("atom.add of 16 bits", PTX_E_FORM, "atom|u16");
    start(75), L ptx_op0(k, PTX_BRA, 0), ptx_ret(k), WRONG("bra without a label", ANY, "bra");
    start(75), L ptx_op2(k, PTX_RED, PTX_ATOM_ADD, ptx_imm(8), u), ptx_ret(k),
    WRONG("red without memory", ANY, "red");
    start(75), L ptx_op2(k, PTX_ADD, 0, u, u), ptx_op3(k, PTX_ADD, 0, u, u, u);
    WRONG("three operands to add", PTX_E_ARGUMENT, "add|2|3");
    start(75), L ptx_op1(k, WILD(ptx_op_id, PTX__OP_COUNT), 0, u),
    WRONG("no such instruction", PTX_E_ARGUMENT, "table");
    start(75), L ptx_sreg(k, WILD(ptx_special, PTX__SPECIAL_COUNT)),
    WRONG("no such special register", PTX_E_ARGUMENT, "");
    start(75), ptx_mul_wide(k, i16, ptx_imm(3)), ptx_abs(k, s), ptx_rem(k, u, u), ptx_ret(k),
    FINE("forms that are");
}

static void modifiers(void) {
    ptx_val fragment[8];
    start(75), L ptx_op2(k, PTX_ADD, PTX_HI, u, u), WRONG("add.hi", PTX_E_MODIFIER, "add|.hi");
    start(75), L ptx_op2(k, PTX_ADD, PTX_SAT, u, u), WRONG("add.sat.u32", PTX_E_MODIFIER, "add|.sat");
    start(75), L ptx_op2(k, PTX_ADD, PTX_RN | PTX_RZ, f, f),
    WRONG("two roundings", PTX_E_MODIFIER, "add|exclude");
    start(75), L ptx_op2(k, PTX_MUL, PTX_LO | PTX_HI, u, u),
    WRONG("two halves", PTX_E_MODIFIER, "mul|exclude");
    start(75), L ptx_op2(k, PTX_SETP, 0, u, u),
    WRONG("setp without comparison", PTX_E_MODIFIER, "setp|needs");
    start(75), L ptx_op2(k, PTX_SETP, PTX_LT | PTX_GT, u, u),
    WRONG("two comparisons", PTX_E_MODIFIER, "setp|exclude");
    start(75), L ptx_setp(k, PTX_LTU, u, u), WRONG("NaN comparison of integers", PTX_E_MODIFIER, "setp|.ltu");
    start(75), L ptx_op3(k, PTX_SETP, PTX_BOOL_AND, u, u, c), ptx_ret(k),
    WRONG("and alone", PTX_E_MODIFIER, "setp");
    start(75), L ptx_op2(k, PTX_ADD, PTX_CS, u, u),
    WRONG("memory modifier on add", PTX_E_MODIFIER, "add|.cs");
    start(75), L ptx_op2(k, PTX_ADD, PTX_RN & ~PTX__FAMILY, f, f),
    WRONG("a modifier of no family", PTX_E_MODIFIER, "add|0x400000 is no modifier");
    start(75), L ptx_opn(k, PTX_WMMA_LOAD_B_M32N8K16, PTX_COL & ~PTX__FAMILY, PTX_F16, PTX_NONE, 1, &w, 8, fragment),
    WRONG("a layout of no family", PTX_E_MODIFIER, "wmma|is no modifier");
    start(75), L ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_RZ)), ptx_ret(k);
    WRONG("rounding on ld", PTX_E_MODIFIER, "ld");
    start(75), L ptx_ld(k, PTX_U32, ptx_with(ptx_at(w, 0), PTX_HI)), ptx_ret(k);
    WRONG(".hi on a generic ld", PTX_E_MODIFIER, "ld");
    start(75), L ptx_st(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_HI), u), ptx_ret(k);
    WRONG(".hi on st", PTX_E_MODIFIER, "st");
    start(75), L ptx_st(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_NC), u),
    WRONG("st.nc", PTX_E_MODIFIER, "st|.nc");
    start(75), L ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_CA | PTX_CG)),
    WRONG("ld.ca.cg", PTX_E_MODIFIER, "ld");
    start(75), L ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_ATOM_ADD)),
    WRONG("ld.add", PTX_E_MODIFIER, "ld|.add");
    start(75), L ptx_atom(k, PTX_ATOM_INC, ptx_at(p, 0), s),
    WRONG("atom.inc of s32", PTX_E_MODIFIER, "atom|s32");
    start(75), L ptx_atom(k, PTX_ATOM_MAX, ptx_at(p, 0), f);
    WRONG("atom.max of f32", PTX_E_MODIFIER, ".max; a loop with ptx_atom_cas");
    start(75), L ptx_atom(k, PTX_NOFTZ, ptx_at(p, 0), h), ptx_ret(k),
    WRONG("atom.noftz", PTX_E_MODIFIER, "atom");
    start(75), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), h),
    WRONG("f16 without noftz", PTX_E_MODIFIER, "atom|.noftz");
    start(75), L ptx_atom(k, 0, ptx_at(p, 0), u), WRONG("atom of nothing", PTX_E_MODIFIER, "atom");
    start(75), L ptx_red(k, PTX_ATOM_CAS, ptx_at(p, 0), u), WRONG("red.cas", PTX_E_MODIFIER, "red|.cas");
    start(75), L ptx_cvt_with(k, PTX_RZ, PTX_U64, u), WRONG("cvt.rz of integers", PTX_E_MODIFIER, "cvt|.rz");
    start(75), L ptx_op0(k, PTX_FENCE, PTX_RELAXED | PTX_GPU),
    WRONG("fence.relaxed", PTX_E_MODIFIER, "fence|.relaxed");
    start(75), ptx_op2(k, PTX_ADD, PTX_RZ | PTX_FTZ | PTX_SAT, f, f), ptx_ret(k), FINE("add.rz.ftz.sat");
    start(75), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_NC | PTX_L1_NO_ALLOCATE | PTX_L2_128B)),
    ptx_ret(k);
    FINE("ld.nc with hints");
    start(75), ptx_atom(k, PTX_ATOM_ADD | PTX_NOFTZ, ptx_at(p, 0), h), ptx_ret(k), FINE("atom.add.noftz.f16");
}

static void ranges(void) {
    start(75), L ptx_add(k, u, ptx_u32(0x1FFFFFFFFull)),
    WRONG("33 bits", PTX_E_RANGE, "operand 2|8589934591|u32");
    start(75), L ptx_add(k, i16, ptx_u16(70000)), WRONG("17 bits", PTX_E_RANGE, "operand 2|70000|u16");
    start(75), L ptx_add(k, s, ptx_s32(0x80000000ll)), WRONG("2^31 as s32", PTX_E_RANGE, "2147483648|s32");
    start(75), L ptx_add(k, ptx_s16(-32769), ptx_s16(1)), WRONG("-32769 as s16", PTX_E_RANGE, "-32769|s16");
    start(75), L ptx_add(k, u, ptx_imm(-1)), WRONG("-1 in a u32 slot", PTX_E_RANGE, "operand 2|-1|u32");
    start(75), L ptx_add(k, i16, ptx_imm(65536)), WRONG("65536 in a u16 slot", PTX_E_RANGE, "65536|u16");
    start(75), L ptx_add(k, f, ptx_f32(1e300)), WRONG("1e300 as f32", PTX_E_RANGE, "1e+300|f32");
    start(75), L ptx_add(k, f, ptx_f32(-3.5e38)), WRONG("-3.5e38 as f32", PTX_E_RANGE, "-3.5e+38|f32");
    start(75), L ptx_add(k, h, ptx_f16(1e6)), WRONG("1e6 as f16", PTX_E_RANGE, "1e+06|f16");
    start(75), L ptx_add(k, h, ptx_f16(65520)), WRONG("65520 as f16", PTX_E_RANGE, "65520|f16");
    start(90), L ptx_add(k, b, ptx_bf16(3.4e38)), WRONG("3.4e38 as bf16", PTX_E_RANGE, "3.4e+38|bf16");
    start(75), L ptx_lop3(k, u, u, u, ptx_imm(0x196)),
    WRONG("lop3 table 0x196", PTX_E_RANGE, "operand 4|lop3|406");
    start(75), L ptx_lop3(k, u, u, u, u), WRONG("lop3 table in a register", ANY, "operand 4|lop3");
    start(75), L ptx_bar_sync(k, ptx_imm(16)), WRONG("barrier 16", PTX_E_RANGE, "16|15");
    start(75), L ptx_bar_sync(k, ptx_imm(-1)), WRONG("barrier -1", PTX_E_RANGE, "-1|15");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(p, 1ll << 33)), WRONG("offset 2^33", PTX_E_RANGE, "8589934592");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(p, -2147483652ll)),
    WRONG("offset -2^31-4", PTX_E_RANGE, "-2147483652");
    start(75), L ptx_st(k, PTX_U8, ptx_at(p, 0), ptx_imm(300)), ptx_ret(k),
    WRONG("300 as u8", PTX_E_RANGE, "300");
    start(75), ptx_add(k, u, ptx_u32(0xFFFFFFFFu)), ptx_add(k, s, ptx_imm(-2147483647 - 1)), ptx_ret(k),
    FINE("32 bits");
    start(75), ptx_bar_sync(k, ptx_imm(15)), ptx_lop3(k, u, u, u, ptx_imm(0xff)), ptx_ret(k), FINE("largest");
    start(75), ptx_ld(k, PTX_U32, ptx_at(p, 2147483644)), ptx_ld(k, PTX_U32, ptx_at(p, -2147483647 - 1)),
    ptx_ret(k);
    FINE("31-bit offsets");
    start(75), ptx_add(k, f, ptx_f32(3.4028234663852886e38)), ptx_add(k, h, ptx_f16(65504)), ptx_ret(k),
    FINE("floats");
    start(75), ptx_add(k, f, ptx_f32((double)INFINITY)), ptx_ret(k), FINE("infinity that was asked for");
}

static void handles(void) {
    ptx_module *other;
    ptx_kernel *k2;
    ptx_val x;
    ptx_label label, nowhere;
    ptx_var v;
    memset(&nowhere, 0, sizeof nowhere);
    memset(&v, 0, sizeof v);
    start(75), L ptx_add(k, u, zero), WRONG("zero handle", PTX_E_HANDLE, "operand 2|no value");
    start(75), L ptx_add(k, zero, zero), WRONG("two zero handles", PTX_E_HANDLE, "no value");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(zero, 0)), WRONG("zero address", PTX_E_HANDLE, "address|no value");
    start(75), L ptx_if(k, zero), WRONG("zero condition", PTX_E_HANDLE, "condition|no value");
    start(75), L ptx_set(k, v, u), WRONG("zero variable, set", PTX_E_HANDLE, "variable");
    start(75), L ptx_get(k, v), WRONG("zero variable, get", PTX_E_HANDLE, "no value");
    start(75), L ptx_bra(k, nowhere), WRONG("zero label", PTX_E_HANDLE, "label");
    start(75), L ptx_cvt(k, PTX_F32, ptx_imm(1)),
    WRONG("cvt of an immediate", PTX_E_HANDLE, "cvt|immediate|ptx_mov(k, x)");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(ptx_u64(64), 0)),
    WRONG("immediate address", PTX_E_HANDLE, "address|an immediate of type u64|ptx_mov");
    start(75), L ptx_if(k, ptx_imm(1)), WRONG("condition of the host", PTX_E_TYPE, "immediate|an if of C");
    start(75), L ptx_guard(k, ptx_u32(1)), WRONG("guard of the host", PTX_E_TYPE, "u32|an if of C");
    start(75), k2 = ptx_entry(m, "second"), x = ptx_param(k2, "x", PTX_U32);
    L ptx_add(k, u, x), WRONG("value of another kernel", PTX_E_FOREIGN, "operand 2|u32|another kernel");
    start(75), k2 = ptx_entry(m, "second"), label = ptx_label_new(k2);
    L ptx_place(k, label), WRONG("label of another kernel", PTX_E_FOREIGN, "label");
    start(75), k2 = ptx_entry(m, "second"), x = ptx_param_bytes(k2, "x", 16, 4);
    L ptx_ld(k, PTX_U32, ptx_at(x, 0)),
    WRONG("block of another kernel", PTX_E_FOREIGN, "address|another kernel");
    other = new_module(75, 0, 0);
    k2 = ptx_entry(other, "k"), x = ptx_param(k2, "x", PTX_U32);
    start(75), L ptx_add(k, x, u), WRONG("value of another module", PTX_E_FOREIGN, "operand 1|u32");
    ptx_module_free(other);
    start(75), x = u, ptx_module_reset(m), k = ptx_entry(m, "k"), ptx_param(k, "u", PTX_U32);
    L ptx_add(k, x, x), WRONG("value of before a reset", PTX_E_FOREIGN, "operand 1|u32");
    start(75), x = c, ptx_module_reset(m), k = ptx_entry(m, "k");
    L ptx_guard(k, x), WRONG("condition of before a reset", PTX_E_FOREIGN, "condition|pred");
    start(75), k2 = ptx_entry(m, "beside"), ptx_add(k, u, u), ptx_ret(k), ptx_ret(k2);
    FINE("two open kernels");
}

static void names(void) {
    char longname[301];
    memset(longname, 'x', 300);
    longname[300] = 0;
    start(75), L ptx_entry(m, "1k"),
    WRONG("digit first", PTX_E_NAME,
          "'1k' is not a name: 1 to 255 letters, digits and _, the first no digit");
    start(75), L ptx_entry(m, "na\xc3\xafve"), WRONG("not ASCII", PTX_E_NAME, "na");
    start(75), L ptx_entry(m, "_"), WRONG("underscore alone", PTX_E_NAME, "'_'");
    start(75), L ptx_entry(m, "WARP_SZ"), WRONG("WARP_SZ", PTX_E_NAME, "WARP_SZ");
    start(75), L ptx_entry(m, ""), WRONG("empty name", PTX_E_NAME, "''");
    start(75), L ptx_entry(m, NULL), WRONG("NULL name", PTX_E_NAME, "null");
    start(75), L ptx_entry(m, longname), WRONG("300 characters", PTX_E_NAME, "xxxxxxxx");
    start(75), L ptx_entry(m, "a b"), WRONG("space inside", PTX_E_NAME, "a b");
    start(75), L ptx_param(k, "a-b", PTX_U32), WRONG("parameter's name", PTX_E_NAME, "a-b");
    start(75), L ptx_param(k, NULL, PTX_U32), WRONG("parameter without a name", PTX_E_NAME, "null");
    start(75), L ptx_shared(k, "9", PTX_U32, 1, 0), WRONG("shared name", PTX_E_NAME, "'9'");
    start(75), L ptx_shared(k, NULL, PTX_U32, 4, 0), ptx_ret(k),
    WRONG("shared without a name", PTX_E_NAME, "null");
    start(75), ptx_entry(m, "twice"), L ptx_entry(m, "twice"),
    WRONG("kernel twice", PTX_E_NAME_TAKEN, "twice");
    start(75), L ptx_param(k, "u", PTX_U32), WRONG("parameter twice", PTX_E_NAME_TAKEN, "'u'");
    start(75), L ptx_shared(k, "sh", PTX_U32, 1, 0), WRONG("shared twice", PTX_E_NAME_TAKEN, "'sh'");
    start(75), L ptx_shared(k, "p", PTX_U32, 1, 0), WRONG("shared like a parameter", PTX_E_NAME_TAKEN, "'p'");
    start(75), L ptx_param(k, "sh", PTX_U32), WRONG("parameter like shared", PTX_E_NAME_TAKEN, "'sh'");
    start(75), longname[255] = 0, ptx_shared(k, longname, PTX_U32, 1, 0), ptx_param(k, "_1", PTX_U32),
    ptx_ret(k);
    FINE("255 characters, _1");
    bare(75, 0), ptx_entry(m, "x"), L ptx_shared_dynamic(k), ptx_ret(k), at_line = 0;
    {
        char name[64];
        sprintf(name, "k%d_dynamic", serial - 1);
        ptx_module_reset(m);
        sprintf(longname, "k%d", serial - 1);
        k = ptx_entry(m, longname);
        ptx_shared_dynamic(k), ptx_ret(k);
        k = ptx_entry(m, name), ptx_ret(k);
    }
    if (ptx_text(m, NULL)) /* legal only when the two symbols differ */
        FINE("dynamic shared memory beside a kernel called <name>_dynamic");
    else
        WRONG("dynamic shared memory beside a kernel called <name>_dynamic", PTX_E_NAME_TAKEN, "_dynamic");
}

static void addresses(void) {
    ptx_val v[4];
    ptx_var var;
    v[0] = v[1] = v[2] = v[3] = zero;
    start(75), L ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(w, PTX_SHARED), 0));
    WRONG("64 bits as a shared address", PTX_E_ADDRESS, "ld|shared|32|u64");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(u, PTX_GLOBAL), 0));
    WRONG("32 bits as a global address", PTX_E_ADDRESS, "ld|global|64|u32");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(u, 0)),
    WRONG("32 bits, generic", PTX_E_ADDRESS, "generic|64|u32|ptx_param_ptr()|ptx_ptr(x, PTX_SH");
    start(75), L ptx_elem(k, PTX_F32, f, u), WRONG("f32 as a base", PTX_E_ADDRESS, "f32|ptx_param_ptr()");
    start(75), L ptx_elem(k, PTX_F32, p, ptx_f32(1)), WRONG("index 1.0", PTX_E_TYPE, "f32: write ptx_u32(");
    start(75), L ptx_elem(k, PTX_F32, p, f), WRONG("f32 as an index", PTX_E_TYPE, "f32: ptx_cvt(k, PTX_U32");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(f, 0)), WRONG("f32 as an address", PTX_E_ADDRESS, "ld|f32");
    start(75), L ptx_st(k, PTX_U32, ptx_at(d, 0), u), WRONG("f64 as an address", PTX_E_ADDRESS, "st|f64");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(blk, 16)), WRONG("behind the block", PTX_E_ADDRESS, "blk|16|19");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(blk, -4)), WRONG("before the block", PTX_E_ADDRESS, "blk|-4");
    start(75), L ptx_ld(k, PTX_U64, ptx_at(blk, 12)), WRONG("half behind the block", ANY, "blk");
    start(75), L ptx_st(k, PTX_U32, ptx_at(blk, 0), u), ptx_ret(k),
    WRONG("store to a parameter", ANY, "st|param");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(blk, PTX_GLOBAL), 0)), ptx_ret(k),
    WRONG("global block", ANY, "");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(p, WILD(ptx_space, PTX_PARAM + 1)), 0)), ptx_ret(k),
    WRONG("space 77", ANY, "");
    start(75), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(ptx_ptr(w, PTX_LOCAL), 0), u);
    WRONG("atomic in local space", PTX_E_MODIFIER, "atom|.local");
    start(75), var = ptx_var_new(k, p), L ptx_set(k, var, w), WRONG("space lost", PTX_E_ADDRESS, "spaces");
    /* alignment */
    start(75), L ptx_ld_vec(k, PTX_U32, 4, ptx_at(sh, 0), v),
    WRONG("v4 from a 4-aligned array", PTX_E_ALIGN, "16|4");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(sh, 1)), WRONG("odd offset", PTX_E_ALIGN, "4|offset 1");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(sh, -2)), WRONG("odd negative offset", PTX_E_ALIGN, "4|-2");
    start(75), L ptx_ld(k, PTX_U32, ptx_at(blk, 2)),
    WRONG("odd offset in a parameter", PTX_E_ALIGN, "4|offset 2");
    start(75), L ptx_ld_vec(k, PTX_U32, 4, ptx_at(blk, 0), v),
    WRONG("v4, 8-aligned parameter", PTX_E_ALIGN, "16|8");
    start(75), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(sh, 2), u), WRONG("odd atomic", PTX_E_ALIGN, "4|offset 2");
    start(75), L ptx_shared(k, "t", PTX_U32, 1, 12), WRONG("alignment of 12", PTX_E_ARGUMENT, "12");
    start(75), L ptx_shared(k, "t", PTX_U32, 1, 3), WRONG("alignment of 3", PTX_E_ARGUMENT, "aligned to 3");
    start(75), L ptx_local(k, "t", PTX_U32, 1, 3), WRONG("local alignment of 3", PTX_E_ARGUMENT, "to 3");
    start(75), ptx_st(k, PTX_U32, ptx_at(ptx_shared(k, "t", PTX_U32, 1, 2), 0), u), ptx_ret(k),
    FINE("an alignment below the element's");
    start(75), L ptx_shared(k, "t", PTX_U32, 0, 0), WRONG("shared of nothing", PTX_E_ARGUMENT, "0 elements");
    start(75), L ptx_param_bytes(k, "t", 16, 128), WRONG("parameter alignment", PTX_E_ARGUMENT, "128");
    start(75), L ptx_param_bytes(k, "t", 0, 4), WRONG("parameter of nothing", PTX_E_ARGUMENT, "");
    /* vectors */
    start(75), L ptx_ld_vec(k, PTX_U32, 3, ptx_at(p, 0), v), WRONG("3 elements", PTX_E_VECTOR, "3|u32");
    start(75), L ptx_ld_vec(k, PTX_U32, 0, ptx_at(p, 0), v), WRONG("0 elements", PTX_E_VECTOR, "0|u32");
    start(75), L ptx_ld_vec(k, PTX_F64, 4, ptx_at(p, 0), v), WRONG("32 bytes", PTX_E_VECTOR, "4|f64|16");
    start(75), v[0] = v[1] = v[2] = u, L ptx_st_vec(k, PTX_U32, 3, ptx_at(p, 0), v);
    WRONG("3 elements stored", PTX_E_VECTOR, "3|u32");
    start(75), L ptx_ld_vec(k, PTX_U32, 4, ptx_at(p, 0), NULL), WRONG("NULL vector", PTX_E_ARGUMENT, "NULL");
    start(75), L ptx_pack(k, PTX_U64, 4, v), WRONG("4 x 32 in 64", ANY, "");
    start(75), v[0] = v[1] = u, L ptx_pack(k, PTX_U32, 2, v), WRONG("2 x 32 in 32", PTX_E_VECTOR, "2|u32");
    start(75), v[0] = u, v[1] = f, L ptx_pack(k, PTX_U64, 2, v), ptx_ret(k), FINE("two parts of one width");
    /* immediates beside a part of the other kind */
    start(75), v[0] = u, v[1] = ptx_f32(1.5), ptx_pack(k, PTX_U64, 2, v), PRINTS(", 0f3FC00000;\n");
    start(75), v[0] = ptx_f32(1.5), v[1] = u, ptx_pack(k, PTX_B64, 2, v), PRINTS(", 0f3FC00000;\n");
    start(75), v[0] = ptx_u32(1), v[1] = ptx_f32(1.5), ptx_pack(k, PTX_F64, 2, v), PRINTS(", 0f3FC00000;\n");
    start(75), v[0] = f, v[1] = ptx_f32(1.5), ptx_pack(k, PTX_B64, 2, v), PRINTS(", 0f3FC00000};\n");
    start(75), v[0] = v[1] = ptx_f32(2), ptx_pack(k, PTX_B64, 2, v), PRINTS("{0f40000000, 0f40000000};\n");
    start(75), L ptx_unpack(k, PTX_U16, 4, u, v), WRONG("4 x 16 out of 32", PTX_E_VECTOR, "4|u16|u32");
    /* near misses */
    start(75), ptx_ld_vec(k, PTX_U32, 4, ptx_at(ptx_shared(k, "t", PTX_U32, 8, 16), 16), v), ptx_ret(k);
    FINE("v4 from a 16-aligned array");
    start(75), ptx_ld(k, PTX_U32, ptx_at(blk, 12)), ptx_ld(k, PTX_U64, ptx_at(blk, 8)), ptx_ret(k),
    FINE("the block's end");
    start(75), ptx_ld_vec(k, PTX_U64, 2, ptx_at(p, 16), v), ptx_st_vec(k, PTX_U64, 2, ptx_at(p, 0), v),
    ptx_ret(k);
    FINE("16 bytes");
    start(75), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr(w, PTX_GLOBAL), 3)), ptx_ret(k), FINE("unknown alignment");
    start(75), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, sh, u, 4), 4)), ptx_ret(k), FINE("shared sum");
}

static void guards(void) {
    ptx_label label;
    ptx_var var;
    start(75), ptx_guard(k, c), L ptx_add(k, u, u), WRONG("guard before a value", PTX_E_GUARD, "add");
    start(75), ptx_guard(k, c), L ptx_ld(k, PTX_U32, ptx_at(p, 0)),
    WRONG("guard before ld", PTX_E_GUARD, "ld");
    start(75), ptx_guard(k, c), L ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 0), u),
    WRONG("before atom", PTX_E_GUARD, "atom");
    start(75), var = ptx_var_new(k, u), ptx_guard(k, c);
    L ptx_st(k, PTX_U32, ptx_at(p, 12), ptx_get(k, var));
    WRONG("guard before the value of a store", PTX_E_GUARD, "mov|make it before ptx_guard");
    start(75), ptx_guard(k, c), L ptx_var_new(k, u), WRONG("guard before a variable", PTX_E_GUARD, "mov");
    start(75), ptx_guard(k, c), L ptx_sreg(k, PTX_TID_X), WRONG("guard before sreg", PTX_E_GUARD, "mov");
    start(75), label = ptx_label_new(k), ptx_guard(k, c), L ptx_place(k, label);
    WRONG("guard before a label", PTX_E_GUARD, "label");
    start(75), ptx_guard(k, c), L ptx_guard(k, c), WRONG("two guards", PTX_E_GUARD, "two guards");
    start(75), ptx_guard(k, c), L ptx_if(k, c), WRONG("guard before if", PTX_E_GUARD, "scope");
    start(75), ptx_guard(k, c), L ptx_loop(k), WRONG("guard before loop", PTX_E_GUARD, "scope");
    start(75), ptx_loop(k), ptx_guard(k, c), L ptx_while(k, c),
    WRONG("guard before while", PTX_E_GUARD, "guard");
    start(75), ptx_if(k, c), ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), u), ptx_guard(k, c), L ptx_else(k);
    ptx_end(k), ptx_ret(k), WRONG("guard before else", PTX_E_GUARD, "guard");
    start(75), ptx_if(k, c), ptx_guard(k, c), L ptx_end(k), ptx_ret(k),
    WRONG("guard before end", PTX_E_GUARD, "guard");
    start(75), ptx_loop(k), ptx_guard(k, c), L ptx_end(k), ptx_ret(k),
    WRONG("before loop end", PTX_E_GUARD, "guard");
    start(75), ptx_guard(k, c), L ptx_param(k, "q", PTX_U32),
    WRONG("before a parameter", PTX_E_GUARD, "parameter");
    start(75), ptx_guard(k, c), L ptx_shared(k, "q", PTX_U32, 1, 0),
    WRONG("before shared", PTX_E_GUARD, "shared");
    start(75), ptx_ret(k), L ptx_guard(k, c), WRONG("dangling guard", PTX_E_GUARD, "before nothing");
    start(75), ptx_guard(k, c), ptx_st(k, PTX_F16, ptx_at(p, 0), ptx_f16(1)), ptx_guard(k, ptx_inv(c)),
    ptx_ret(k);
    ptx_guard(k, c), ptx_comment(k, "waits"), ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), u), ptx_ret(k);
    FINE("guarded store, ret, red");
    start(75);
    {
        ptx_var v = ptx_var_new(k, u);
        ptx_guard(k, c), ptx_set(k, v, ptx_imm(3)), ptx_get(k, v), ptx_ret(k);
    }
    FINE("guarded ptx_set");
}

static void targets(void) {
    char text[32];
    start(75), L ptx_max(k, h, h), WRONG("f16 max on sm_75", PTX_E_TARGET, "max.f16|sm_80|sm_75");
    start(75), L ptx_op2(k, PTX_REDUX_ADD, 0, u, ptx_imm(-1)),
    WRONG("redux on sm_75", PTX_E_TARGET, "redux|sm_80|sm_75");
    start(75), L ptx_cvt_pair(k, PTX_F16X2, f, f),
    WRONG("cvt of a pair, sm_75", PTX_E_TARGET, "cvt|f16x2|sm_80|sm_75");
    start(80), L ptx_add(k, b, b), WRONG("bf16 add on sm_80", PTX_E_TARGET, "add.bf16|sm_90|sm_80");
    start(75), L ptx_op2(k, PTX_MIN, PTX_NAN, f, f),
    WRONG("min.NaN on sm_75", PTX_E_TARGET, "min.NaN.f32|sm_80|sm_75");
    start(80), L ptx_fence(k, PTX_SC | PTX_CLUSTER),
    WRONG("cluster on sm_80", PTX_E_TARGET, "fence|sm_90|sm_80");
    start(75), L ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_L2_256B)),
    WRONG("256B", PTX_E_TARGET, "sm_80|sm_75");
    start(80), ptx_max(k, h, h), ptx_op2(k, PTX_REDUX_ADD, 0, u, ptx_imm(-1)),
    ptx_cvt_pair(k, PTX_BF16X2, f, f);
    ptx_ret(k), FINE("what sm_80 has");
    start(90), ptx_add(k, b, b), ptx_fence(k, PTX_SC | PTX_CLUSTER), ptx_ret(k), FINE("what sm_90 has");
    bare(90, 70), WRONG("sm_90 below its version", PTX_E_VERSION, "sm_90|7.8|7.0");
    bare(99, 0), WRONG("sm_99", PTX_E_TARGET, "sm_99");
    bare(75, 63), p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    L ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_L1_NO_ALLOCATE)),
    WRONG("cap 6.3", PTX_E_VERSION, "7.4|6.3");
    bare(75, 74), p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_L1_NO_ALLOCATE)), ptx_ret(k);
    CHECK(ptx_version(m) == 74);
    FINE("cap 7.4");
    m = new_module(75, 0, 0), at_line = 0, WRONG("empty module", PTX_E_EMPTY, "no kernel");
    {
        static const struct {
            uint32_t sm, version;
        } lowest[] = {{75, 63}, {80, 70}, {86, 71}, {87, 74}, {89, 78}, {90, 78}, {100, 86}, {103, 88},
        {120, 87}, {121, 88}};
        size_t i;
        for (i = 0; i < sizeof lowest / sizeof *lowest; i++) {
            start(lowest[i].sm), ptx_add(k, u, u), ptx_ret(k);
            sprintf(text, "%u.%u\n", lowest[i].version / 10, lowest[i].version % 10);
            CHECK(ptx_text(m, NULL) && strncmp(ptx_text(m, NULL), ".version ", 9) == 0
                  && strncmp(ptx_text(m, NULL) + 9, text, strlen(text)) == 0);
            CHECK(ptx_version(m) == lowest[i].version);
            FINE("plain kernel");
        }
    }
    start(75), ptx_ex2(k, h), ptx_ret(k);
    CHECK(ptx_version(m) == 70);
    FINE("ex2.approx.f16");
}

static void scopes(void) {
    static char open_at[300];
    ptx_label label;
    start(75), L ptx_else(k), WRONG("else without if", PTX_E_SCOPE, "else");
    start(75), ptx_loop(k), L ptx_else(k), WRONG("else in a loop", PTX_E_SCOPE, "else|opened at");
    start(75), ptx_if(k, c), ptx_else(k), L ptx_else(k), WRONG("else twice", PTX_E_SCOPE, "else");
    start(75), L ptx_end(k), WRONG("end without open", PTX_E_SCOPE, "end");
    start(75), L ptx_break(k), WRONG("break outside", PTX_E_SCOPE, "break");
    start(75), ptx_if(k, c), L ptx_continue(k), WRONG("continue in an if", PTX_E_SCOPE, "continue");
    start(75), L ptx_while(k, c), WRONG("while outside", PTX_E_SCOPE, "while");
    start(75), L ptx_if(k, c);
    ptx_ret(k);
    sprintf(open_at, "opened at %.200s:%d", __FILE__, at_line);
    WRONG("if left open", PTX_E_SCOPE, open_at);
    start(75), L ptx_for(k, ptx_u32(0), u, ptx_imm(1));
    ptx_ret(k);
    sprintf(open_at, "opened at %.200s:%d", __FILE__, at_line);
    WRONG("for left open", PTX_E_SCOPE, open_at);
    /* labels */
    start(75), label = ptx_label_new(k), L ptx_bra(k, label),
    WRONG("label nowhere", PTX_E_LABEL, "label|placed");
    start(75), label = ptx_label_new(k), ptx_place(k, label), L ptx_place(k, label),
    WRONG("twice", PTX_E_LABEL, "already");
    start(75), label = ptx_label_new(k), ptx_place(k, label), ptx_ret(k), FINE("label placed but unused");
    start(75), label = ptx_label_new(k), ptx_ret(k), FINE("label made but nowhere placed nor used");
    start(75), label = ptx_label_new(k), ptx_guard(k, c), ptx_bra(k, label), ptx_trap(k),
    ptx_place(k, label), ptx_ret(k);
    FINE("branch over a trap");
}

static void flow(void) {
    ptx_val x, y;
    ptx_var v;
    ptx_label a, e, z;
    start(75), ptx_if(k, c), x = ptx_add(k, u, u), ptx_end(k), L ptx_add(k, x, u), ptx_ret(k);
    WRONG("made in one branch", PTX_E_UNDEFINED, "every path|made at");
    start(75), ptx_if(k, c), x = ptx_add(k, u, u), ptx_else(k), L ptx_add(k, x, u), ptx_end(k), ptx_ret(k);
    WRONG("made in the other branch", PTX_E_UNDEFINED, "every path");
    start(75), ptx_loop(k), ptx_while(k, c), x = ptx_add(k, u, u), ptx_end(k), L ptx_add(k, x, u), ptx_ret(k);
    WRONG("made in a loop that may be skipped", PTX_E_UNDEFINED, "every path");
    start(75), ptx_for(k, ptx_u32(0), u, ptx_imm(1)), x = ptx_add(k, u, u), ptx_end(k), L ptx_add(k, x, u),
    ptx_ret(k);
    WRONG("made in a for that may be skipped", PTX_E_UNDEFINED, "every path");
    start(75), a = ptx_label_new(k), e = ptx_label_new(k), z = ptx_label_new(k), ptx_bra(k, e),
    ptx_place(k, a);
    x = ptx_add(k, u, u), ptx_bra(k, z), ptx_place(k, e);
    L ptx_add(k, x, u);
    ptx_bra(k, a), ptx_place(k, z), ptx_ret(k),
    WRONG("defined behind a backward branch", PTX_E_UNDEFINED, "every path");
    start(75), ptx_if(k, c), x = ptx_setp(k, PTX_LT, u, u), ptx_end(k), ptx_guard(k, x);
    L ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), u), ptx_ret(k),
    WRONG("undefined guard", PTX_E_UNDEFINED, "every path");
    start(75), ptx_if(k, c), x = ptx_ptr_add(k, p, u, 4), ptx_end(k), L ptx_st(k, PTX_U32, ptx_at(x, 0), u),
    ptx_ret(k);
    WRONG("undefined address", PTX_E_UNDEFINED, "every path");
    start(75), ptx_if(k, c), v = ptx_var_new(k, u), ptx_end(k), L ptx_get(k, v), ptx_ret(k);
    WRONG("variable declared in one branch", PTX_E_UNDEFINED, "every path");
    /* near misses */
    start(75), x = ptx_add(k, u, u), ptx_if(k, c), y = ptx_add(k, x, u), ptx_add(k, y, x), ptx_end(k),
    ptx_ret(k);
    FINE("made before, used inside");
    start(75), v = ptx_var_new(k, ptx_u32(0)), ptx_if(k, c), ptx_set(k, v, u), ptx_else(k),
    ptx_set(k, v, ptx_imm(2));
    ptx_end(k), ptx_add(k, ptx_get(k, v), u), ptx_ret(k), FINE("variable set in both branches");
    start(75), ptx_loop(k), x = ptx_add(k, u, u), y = ptx_setp(k, PTX_LT, x, u), ptx_while(k, y), ptx_end(k);
    ptx_add(k, x, u), ptx_ret(k), FINE("made before the loop can be left");
    start(75), ptx_if(k, c), ptx_ret(k), ptx_else(k), x = ptx_add(k, u, u), ptx_end(k), ptx_add(k, x, u),
    ptx_ret(k);
    FINE("the other branch returns");
    start(75), a = ptx_label_new(k), e = ptx_label_new(k), ptx_bra(k, a), ptx_place(k, e), ptx_ret(k),
    ptx_place(k, a);
    x = ptx_add(k, u, u), ptx_add(k, x, x), ptx_bra(k, e), FINE("backward branch");
    /* unreachable, falling off */
    start(75), ptx_ret(k), L ptx_add(k, u, u), ptx_ret(k),
    WRONG("code after ret", PTX_E_UNREACHABLE, "no path");
    start(75), a = ptx_label_new(k), ptx_place(k, a), ptx_bra(k, a), L ptx_ret(k);
    WRONG("code after an endless loop", PTX_E_UNREACHABLE, "no path");
    start(75), ptx_loop(k), ptx_break(k), L ptx_add(k, u, u), ptx_end(k), ptx_ret(k);
    WRONG("code after break", PTX_E_UNREACHABLE, "no path");
    start(75), L ptx_add(k, u, u), WRONG("no ret", PTX_E_FALL_OFF, "ptx_ret");
    start(75), ptx_guard(k, c), L ptx_ret(k);
    WRONG("guarded ret at the end", PTX_E_FALL_OFF, "guard is false|ptx_ret");
    start(75), ptx_if(k, c), ptx_ret(k), L ptx_end(k), WRONG("ret in one branch", PTX_E_FALL_OFF, "ptx_ret");
    L bare(75, 0), at_line = 0, WRONG("empty kernel", PTX_E_FALL_OFF, "empty");
    start(75), ptx_guard(k, c), ptx_ret(k), ptx_exit(k), FINE("guarded ret, exit");
    start(75), ptx_if(k, c), ptx_ret(k), ptx_else(k), ptx_ret(k), ptx_end(k), FINE("ret in both branches");
    start(75), L ptx_loop(k), ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), u), ptx_end(k);
    WRONG("endless loop at the end", PTX_E_ENDLESS, "no way out");
    start(75), ptx_loop(k), ptx_trap(k), ptx_end(k), FINE("a loop that a trap ends");
    start(75), ptx_if(k, c), ptx_if(k, c), ptx_ret(k), ptx_else(k), ptx_ret(k), ptx_end(k), ptx_else(k);
    ptx_red(k, PTX_ATOM_ADD, ptx_at(p, 0), u), ptx_end(k), ptx_ret(k),
    FINE("ret in both of a nested if, then else");
    start(75), ptx_loop(k), ptx_if(k, c), ptx_break(k), ptx_else(k), ptx_continue(k), ptx_end(k),
    ptx_end(k), ptx_ret(k);
    FINE("loop whose if breaks or continues");
    start(75), ptx_for(k, ptx_u32(0), u, ptx_imm(1)), ptx_if(k, c), ptx_break(k), ptx_else(k), ptx_ret(k),
    ptx_end(k);
    ptx_end(k), ptx_ret(k), FINE("for whose body never ends");
    start(75), m->comments = 1, ptx_if(k, c), ptx_ret(k), ptx_comment(k, "so far"), ptx_else(k), ptx_end(k),
    ptx_ret(k);
    FINE("comment behind ret, before else");
    start(75), m->comments = 1, ptx_ret(k), ptx_comment(k, "behind"), FINE("comment behind ret");
    start(75), m->comments = 1, ptx_comment(k, "na\xc3\xafve\nret;\t\x7f"), ptx_ret(k);
    CHECK(ptx_text(m, NULL) && strstr(ptx_text(m, NULL), "\t// na??ve?ret;??\n"));
    FINE("comment that is not ASCII");
}

/* Numbers that are formats of weights, and others that are none, where a type is wanted. */
static void no_types(void) {
    static const uint32_t none[] = {1, 5, 8, 15, PTX__TYPE_COUNT, 0xffffffffu};
    size_t i;
    for (i = 0; i < sizeof none / sizeof *none; i++) {
        const ptx_type t = (ptx_type)none[i];
        CHECK(strcmp(ptx_type_name(t), "?") == 0 && ptx_type_bytes(t) == 0);
        start(75), L ptx_param(k, "q", t), WRONG("parameter of no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_cvt(k, t, u), WRONG("cvt to no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_ld(k, t, ptx_at(p, 0)), WRONG("ld of no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_ld_elem(k, t, p, u), WRONG("element of no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_shared(k, "q", t, 4, 0);
        WRONG("shared of no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_local(k, "q", t, 4, 0), WRONG("local of no type", PTX_E_ARGUMENT, "is no ptx_type");
        start(75), L ptx_opn(k, PTX_ADD, 0, t, PTX_NONE, 2, &u, 1, &w);
        WRONG("add of no type", PTX_E_ARGUMENT, "add|is no ptx_type");
    }
}

/* The short words emit what the long ones do. */
typedef struct particle {
    uint16_t kind;
    float mass;
    double position[3];
} particle;
static void words(void) {
    char text[2][4096];
    const char *whole;
    ptx_val i;
    int way;
    for (way = 0; way < 2; way++) {
        start(75);
        if (way) {
            i = ptx_global_y(k);
            f = ptx_ld_elem(k, PTX_F32, p, i); /* not in the call below: C leaves open which comes first */
            ptx_st_elem(k, PTX_F32, p, i, f);
            ptx_st(k, PTX_U16, ptx_elem(k, PTX_U16, p, u), i16);
            f = ptx_ld_field(k, PTX_F32, p, particle, mass);
            ptx_st_field(k, PTX_F32, p, particle, mass, f);
            ptx_st(k, PTX_F64, ptx_at(ptx_field(p, particle, position), 8), d);
        } else {
            ptx_val block = ptx_ctaid_y(k);
            ptx_val threads = ptx_ntid_y(k);
            ptx_val thread = ptx_tid_y(k);
            ptx_mem at;
            i = ptx_mad(k, block, threads, thread);
            f = ptx_ld(k, PTX_F32, ptx_at(ptx_ptr_add(k, p, i, 4), 0));
            at = ptx_at(ptx_ptr_add(k, p, i, 4), 0);
            ptx_st(k, PTX_F32, at, f);
            ptx_st(k, PTX_U16, ptx_at(ptx_ptr_add(k, p, u, 2), 0), i16);
            f = ptx_ld(k, PTX_F32, ptx_at(p, 4));
            ptx_st(k, PTX_F32, ptx_at(p, 4), f);
            ptx_st(k, PTX_F64, ptx_at(p, 16), d);
        }
        ptx_ret(k);
        whole = ptx_text(m, NULL);
        CHECK_MORE(whole != NULL && strlen(whole) < sizeof text[0], ptx_get_error(m)->message);
        sprintf(text[way], "%.4000s", whole ? strchr(whole, '{') : "");
        FINE("words");
    }
    CHECK_MORE(strcmp(text[0], text[1]) == 0 && strstr(text[1], "%ctaid.y"), text[1]);
    start(75), L ptx_elem(k, PTX_PRED, p, u), WRONG("predicates in memory", PTX_E_TYPE, "pred have no size");
    start(75), L ptx_ld_field(k, PTX_F64, p, particle, mass);
    WRONG("a field of 4 bytes as f64", PTX_E_TYPE, "the field has 4 bytes, f64 has 8");
    {
        ptx_launch g = ptx_launch_1d(1000, 256);
        CHECK(g.entry == 0 && g.grid[0] == 4 && g.grid[1] == 1 && g.grid[2] == 1 && g.block[0] == 256);
        CHECK(g.block[1] == 1 && g.block[2] == 1 && g.shared_bytes == 0 && g.cluster[0] == 0);
        CHECK(ptx_launch_1d(1024, 256).grid[0] == 4 && ptx_launch_1d(1025, 256).grid[0] == 5);
        g = ptx_launch_2d(1000, 30, 32, 8);
        CHECK(g.grid[0] == 32 && g.grid[1] == 4 && g.grid[2] == 1 && g.block[0] == 32 && g.block[1] == 8);
        CHECK(g.block[2] == 1 && g.entry == 0 && ptx_launch_2d(1, 9, 1, 8).grid[1] == 2);
        CHECK(ptx_launch_1d(7, 0).grid[0] == 0 && ptx_launch_1d(UINT64_MAX, 1).grid[0] == UINT32_MAX);
    }
}

/* A call site that a caller makes up stays inside its comment, and its file's name inside the quotes. */
static void sites(void) {
    const char *const site = "evil.c\n\tmov.u32 %r0, 1; // \"\\\r\xff:7";
    const char *text;
    uint32_t comments, plain = 0, lines, i;
    for (comments = 0; comments < 4; comments++) {
        ptx_place place;
        m = new_module(75, 0, comments);
        k = ptx_entry_(m, site, "k");
        ptx_op0_(k, site, PTX_TRAP, 0);
        ptx_op0_(k, site, PTX_RET, 0);
        text = ptx_text(m, NULL);
        CHECK_MORE(text != NULL, ptx_get_error(m)->message);
        if (!text) break;
        for (lines = i = 0; text[i]; i++) {
            lines += text[i] == '\n';
            CHECK(text[i] == '\n' || text[i] == '\t' || (text[i] >= 32 && text[i] <= 126));
        }
        if (!comments) plain = lines;
        CHECK(lines == plain + (comments & 2 ? 3 : 0)); /* two .loc, one .file */
        CHECK(!strstr(text, "\n\tmov") && (comments & 1) == !!strstr(text, "// evil.c??mov.u32"));
        for (i = 1; i <= lines; i++)
            if (ptx_locate(m, i, &place)) CHECK(strcmp(place.site, site) == 0 && place.instruction < 2);
        done();
    }
}

/* Calls that give no site have the one that their kernel was started with, in errors and in texts. */
#undef PTX__AT
#define PTX__AT NULL
static void unsited_mistake(int which) {
    ptx_val lane = ptx_laneid(k), small = ptx_setp(k, PTX_LT, lane, ptx_imm(5)), x;
    ptx_label label = ptx_label_new(k);
    ptx_module *other;
    switch (which) {
    case 0: (void)ptx_add(k, lane, small); break;
    case 1: ptx_if(k, small), ptx_ret(k); break;
    case 2: ptx_place(k, label), ptx_place(k, label); break;
    case 3: ptx_guard(k, small), ptx_guard(k, small); break;
    case 4: ptx_bra(k, label); break;
    case 5: ptx_loop(k), ptx_else(k); break;
    case 6: ptx_guard(k, small); break;
    case 7:
        ptx_if(k, small), x = ptx_add(k, lane, lane), ptx_end(k);
        (void)ptx_add(k, x, x), ptx_ret(k);
        break;
    case 8: ptx_if(k, small), ptx_bar_sync(k, ptx_imm(0)), ptx_end(k), ptx_ret(k); break;
    case 9: (void)ptx_shared(k, "s", PTX_F32, 49153, 0), ptx_ret(k); break;
    case 10: (void)ptx_param(k, "a", PTX_U32), (void)ptx_param(k, "a", PTX_U32); break;
    case 11: ptx_launch_bounds(k, 2048, 0); break;
    case 12: (void)ptx_entry(m, "k"); break; /* a call on the module: it has no site */
    default: /* a handle of another kernel */
        other = new_module(75, 0, 0);
        x = ptx_laneid(ptx_entry_(other, "other.c:1", "k"));
        (void)ptx_add(k, x, x);
        ptx_module_free(other);
    }
}
static void no_sites(void) {
    static const char *const named[14] = {
        "", "opened at", "already, at", "the first at", "", "opened at", "", "made at", "condition at",
        "", "",          "",            "started at",   ""};
    char want[80];
    const char *text;
    uint32_t comments, i;
    int which;
    ptx_place place;
    ptx_pressure_info peak;
    for (which = 0; which < 14; which++) {
        const ptx_error *e;
        m = new_module(75, 0, 0);
        k = ptx_entry_(m, "caller.c:9", "k");
        unsited_mistake(which);
        e = ptx_get_error(m);
        CHECK(ptx_verify(m) != PTX_E_NONE);
        sprintf(want, "%s caller.c:9", named[which]);
        CHECK_MORE(strcmp(e->site, which == 12 ? "" : "caller.c:9") == 0, e->message);
        CHECK_MORE(!*named[which] || strstr(e->message, want) != NULL, e->message);
        CHECK_MORE(strstr(e->message, "(null)") == NULL, e->message);
        done();
    }
    for (which = 0; which < 2; which++) /* the kernel's site may be NULL too: nothing is shown then */
        for (comments = 0; comments < 4; comments++) {
            const char *site = which ? NULL : "caller.c:9";
            m = new_module(75, 0, comments);
            k = ptx_entry_(m, site, "k");
            (void)ptx_add(k, ptx_laneid(k), ptx_imm(1));
            ptx_ret(k);
            text = ptx_text(m, NULL);
            if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) break;
            CHECK((site && comments & 1) == !!strstr(text, "ret; // caller.c:9\n"));
            CHECK((site && comments & 2) == !!strstr(text, "\t.loc 1 9 0\n\tret;"));
            for (i = 1; i < 20; i++)
                if (ptx_locate(m, i, &place)) CHECK(strcmp(place.site, site ? site : "") == 0);
            CHECK(ptx_pressure(m, 0, &peak) && strcmp(peak.site, site ? site : "") == 0);
            done();
        }
}
#undef PTX__AT
#define PTX__AT __FILE__ ":" PTX__STR(__LINE__)

static void limits(void) {
    start(75), L ptx_shared(k, "big", PTX_F32, 12288, 0), WRONG("48 KiB and 256 bytes", PTX_E_SHARED_LIMIT,
                                                                "big|49408|49152");
    start(75), L ptx_shared(k, "big", PTX_F64, 0xffffffffu, 0),
    WRONG("32 GiB", PTX_E_SHARED_LIMIT, "big|49152");
    bare(75, 0), ptx_shared(k, "big", PTX_F32, 12288, 0), ptx_ret(k), FINE("48 KiB");
    bare(75, 0), L ptx_param_bytes(k, "t", 32765, 1),
    WRONG("32765 bytes", PTX_E_PARAM_LIMIT, "'t'|32765|32764");
    bare(75, 80), L ptx_param_bytes(k, "t", 4353, 1),
    WRONG("4353 before 8.1", PTX_E_PARAM_LIMIT, "'t'|4353|4352|8.1");
    bare(75, 80), ptx_param_bytes(k, "t", 4349, 1), L ptx_param(k, "x", PTX_U32);
    WRONG("a few bytes more, aligned", PTX_E_PARAM_LIMIT, "'x'|4352");
    bare(75, 0), ptx_param_bytes(k, "t", 32764, 1), ptx_ret(k);
    CHECK(ptx_version(m) == 81);
    FINE("32764 bytes");
    bare(75, 80), ptx_param_bytes(k, "t", 4352, 1), ptx_ret(k);
    CHECK(ptx_version(m) == 63);
    FINE("4352 bytes");
    start(75), L ptx_shfl_down(k, ptx_mov(k, ptx_f64(1)), ptx_imm(1), ptx_imm(31), ptx_imm(-1)),
    WRONG("a shuffle of 64 bits", PTX_E_FORM, "no form for type |: it has b32; ptx_unpack makes two of 64 bits [");
    start(75), L ptx_launch_bounds(k, 2048, 0),
    WRONG("2048 threads", PTX_E_LAUNCH_LIMIT, "2048 threads and 0 blocks: must be 1 to 1024, blocks at most 32 [");
    start(75), L ptx_require_block(k, 8, 8, 65),
    WRONG("65 deep", PTX_E_LAUNCH_LIMIT, "8, 8, 65 threads: must be 1 to 1024 in all, the third at most 64 [");
    start(90), L ptx_require_cluster(k, 4, 4, 2),
    WRONG("32 blocks", PTX_E_LAUNCH_LIMIT, "blocks: must be 1 to 16 in all [");
    start(90), L ptx_max_registers(k, 16), WRONG("16 registers", PTX_E_LAUNCH_LIMIT, "registers: must be 24 to 255 [");
    start(75), L ptx_launch_bounds(k, 0, 1), WRONG("no threads", PTX_E_LAUNCH_LIMIT, "0 threads");
    start(75), L ptx_launch_bounds(k, 128, 33), WRONG("33 blocks", PTX_E_LAUNCH_LIMIT, "33 blocks");
    start(75), ptx_launch_bounds(k, 1024, 1), ptx_ret(k);
    CHECK(strstr(ptx_text(m, NULL), ".maxntid 1024, 1, 1\n.minnctapersm 1\n") != NULL);
    FINE("1024 threads");
    CHECK(sizeof(ptx_val) == 8 && sizeof(ptx_mem) == 16);
}

/* -- printing -- */

static void immediate16(double value, int bf16, unsigned want) {
    char line[40];
    start(90);
    if (bf16)
        ptx_add(k, b, ptx_bf16(value));
    else
        ptx_add(k, h, ptx_f16(value));
    sprintf(line, ", 0x%04X;\n", want);
    prints_(__LINE__, line);
}

static void printing(void) {
    double inf = (double)INFINITY, nan = (double)NAN;
    start(75), ptx_add(k, s, ptx_imm(-7)), PRINTS(", -7;\n");
    start(75), ptx_add(k, s, ptx_s32(-2147483647 - 1)), PRINTS(", -2147483648;\n");
    start(75), ptx_add(k, w, ptx_u64(0xffffffffffffffffull)), PRINTS(", 18446744073709551615;\n");
    start(75), ptx_add(k, ptx_as(w, PTX_S64), ptx_s64(INT64_MIN)), PRINTS(", -9223372036854775808;\n");
    start(75), ptx_add(k, f, ptx_f32(1.5)), PRINTS(", 0f3FC00000;\n");
    start(75), ptx_add(k, f, ptx_f32(-0.0)), PRINTS(", 0f80000000;\n");
    start(75), ptx_add(k, f, ptx_f32(1e-45)), PRINTS(", 0f00000001;\n");
    start(75), ptx_red(k, PTX_ATOM_ADD | PTX_NOFTZ, ptx_at(p, 0), ptx_f16(1.5)), PRINTS(", 0x3E00;\n");
    start(75), ptx_op3(k, PTX_SLCT, 0, f, f, ptx_s32(-1)), PRINTS("slct.b32.s32 ");
    start(75), ptx_ld(k, PTX_U32, ptx_with(ptx_at(p, 0), PTX_WEAK | PTX_CG)), PRINTS("ld.weak.global.cg.");
    start(75), ptx_ld(k, PTX_U32, ptx_with(ptx_at(blk, 0), PTX_WEAK)), PRINTS("ld.weak.param.u32 ");
    start(75), ptx_add(k, f, ptx_f32(-inf)), PRINTS(", 0fFF800000;\n");
    start(75), ptx_add(k, f, ptx_f32(nan)), PRINTS(", 0f7FFFFFFF;\n");
    start(75), ptx_add(k, f, ptx_f32(-nan)), PRINTS(", 0f7FFFFFFF;\n");
    start(75), ptx_add(k, d, ptx_f64(0.1)), PRINTS(", 0d3FB999999999999A;\n");
    start(75), ptx_add(k, d, ptx_f64(-nan)), PRINTS(", 0d7FFFFFFFFFFFFFFF;\n");
    start(75), ptx_ld(k, PTX_U32, ptx_at(p, -4)), PRINTS("+-4];\n");
    start(75), ptx_ld(k, PTX_U32, ptx_at(p, 2147483644)), PRINTS("+2147483644];\n");
    start(75), ptx_guard(k, ptx_inv(c)), ptx_red(k, PTX_ATOM_MAX | PTX_RELAXED | PTX_GPU, ptx_at(p, 0), u);
    PRINTS("\t@!%p0 red.relaxed.gpu.global.max.u32 [");
    start(75), ptx_ld(k, PTX_U8, ptx_with(ptx_at(p, 0), PTX_NC)), PRINTS("ld.global.nc.u8 %r");
    start(75), ptx_st(k, PTX_F16, ptx_at(sh, 2), h), PRINTS("st.shared.b16 [");
    start(75), ptx_op2(k, PTX_MUL, PTX_RZ | PTX_FTZ, f, f), PRINTS("mul.rz.ftz.f32 %r");
    start(75), ptx_cvt(k, PTX_S32, f), PRINTS("cvt.rzi.s32.f32 %r");
    start(75), ptx_sreg(k, PTX_TID_Y), PRINTS(", %tid.y;\n");
    start(75), ptx_op3(k, PTX_SETP, PTX_GE | PTX_BOOL_OR, f, f, ptx_inv(c)), PRINTS("setp.ge.or.f32 %p1, %r");
    /* 16-bit floats: to nearest even, against known values */
    immediate16(1, 0, 0x3c00), immediate16(-2, 0, 0xc000), immediate16(65504, 0, 0x7bff),
    immediate16(65519, 0, 0x7bff);
    immediate16(65519.999, 0, 0x7bff), immediate16(ldexp(1, -24), 0, 0x0001),
    immediate16(ldexp(1, -25), 0, 0x0000);
    immediate16(ldexp(1 + 0x000001 / 16777216.0, -25), 0, 0x0001),
    immediate16(ldexp(1 + 0x8 / 16.0, -24), 0, 0x0002),
    immediate16(ldexp(1, -14), 0, 0x0400);
    immediate16(ldexp(1 + 0xff8 / 4096.0, -15), 0, 0x03ff),
    immediate16(ldexp(1 + 0xffc / 4096.0, -15), 0, 0x0400), immediate16(ldexp(1, -60), 0, 0x0000);
    immediate16(-ldexp(1, -300), 0, 0x8000), immediate16(5e-324, 0, 0x0000),
    immediate16(ldexp(1 + 0x002 / 4096.0, 0), 0, 0x3c00);
    immediate16(ldexp(1 + 0x006 / 4096.0, 0), 0, 0x3c02),
    immediate16(ldexp(1 + 0x0020001 / 268435456.0, 0), 0, 0x3c01), immediate16(inf, 0, 0x7c00);
    immediate16(-inf, 0, 0xfc00), immediate16(nan, 0, 0x7fff), immediate16(-nan, 0, 0x7fff),
    immediate16(-0.0, 0, 0x8000);
    immediate16(1, 1, 0x3f80), immediate16(ldexp(1 + 0x01 / 256.0, 0), 1, 0x3f80),
    immediate16(ldexp(1 + 0x03 / 256.0, 0), 1, 0x3f82);
    immediate16(ldexp(1 + 0xfe / 256.0, 127), 1, 0x7f7f),
    immediate16(ldexp(1 + 0xfefff / 1048576.0, 127), 1, 0x7f7f),
    immediate16(ldexp(1, -133), 1, 0x0001);
    immediate16(ldexp(1, -134), 1, 0x0000), immediate16(ldexp(1 + 0x8 / 16.0, -133), 1, 0x0002),
    immediate16(-inf, 1, 0xff80);
    immediate16(nan, 1, 0x7fff), immediate16(ldexp(1, -126), 1, 0x0080);
}

/* -- a program that uses everything -- */

static void everything(ptx_module *to) {
    ptx_kernel *q = ptx_entry(to, "everything");
    ptx_val x, y, n, v[4], address, i, pred, bytes, block, shared, tid;
    ptx_var sum, count;
    ptx_label again, out;
    ptx_launch_bounds(q, 256, 2);
    x = ptx_param_ptr(q, "x", PTX_GLOBAL);
    n = ptx_param(q, "n", PTX_U32);
    block = ptx_param_bytes(q, "block", 64, 16);
    shared = ptx_shared(q, "shared", PTX_F32, 64, 16);
    tid = ptx_tid_x(q);
    ptx_comment(q, "structured");
    sum = ptx_var_new(q, ptx_f32(0));
    i = ptx_for(q, ptx_u32(0), n, ptx_imm(4));
    {
        address = ptx_ptr_add(q, x, i, 4);
        ptx_ld_vec(q, PTX_F32, 4, ptx_with(ptx_at(address, 16), PTX_NC | PTX_L1_NO_ALLOCATE), v);
        y = ptx_get(q, sum);
        y = ptx_fma(q, v[0], v[1], y);
        ptx_set(q, sum, y);
        pred = ptx_setp(q, PTX_GT, y, ptx_f32(100));
        ptx_if(q, pred);
        ptx_break(q);
        ptx_end(q);
        pred = ptx_setp(q, PTX_LT, v[2], v[3]);
        ptx_if(q, pred);
        ptx_continue(q);
        ptx_else(q);
        ptx_st_vec(q, PTX_F32, 2, ptx_at(shared, 8), v);
        ptx_end(q);
    }
    ptx_end(q);
    ptx_bar_sync(q, ptx_imm(0));
    count = ptx_var_new(q, ptx_u32(10));
    ptx_loop(q);
    {
        y = ptx_get(q, count);
        pred = ptx_setp(q, PTX_GT, y, ptx_imm(0));
        ptx_while(q, pred);
        y = ptx_sub(q, y, ptx_imm(1));
        ptx_set(q, count, y);
    }
    ptx_end(q);
    ptx_comment(q, "labels");
    again = ptx_label_new(q);
    out = ptx_label_new(q);
    ptx_place(q, again);
    y = ptx_get(q, count);
    y = ptx_add(q, y, tid);
    ptx_set(q, count, y);
    pred = ptx_setp(q, PTX_GE, y, n);
    ptx_guard(q, pred);
    ptx_bra(q, out);
    ptx_bra(q, again);
    ptx_place(q, out);
    y = ptx_ld(q, PTX_F32, ptx_at(block, 4));
    y = ptx_add(q, y, ptx_get(q, sum));
    bytes = ptx_ld_if(q, pred, PTX_U8, ptx_at(x, 3), ptx_imm(0));
    v[0] = y;
    v[1] = bytes;
    v[0] = ptx_pack(q, PTX_B64, 2, v);
    ptx_unpack(q, PTX_U16, 4, v[0], v);
    v[0] = ptx_cvt(q, PTX_F32, v[0]);
    v[1] = ptx_cvt(q, PTX_F16, v[0]);
    v[1] = ptx_mul(q, v[1], ptx_f16(0.5));
    ptx_guard(q, ptx_inv(pred));
    ptx_st(q, PTX_F16, ptx_at(x, 2), v[1]);
    ptx_atom(q, PTX_ATOM_ADD, ptx_at(x, 0), v[0]);
    ptx_red(q, PTX_ATOM_MAX, ptx_at(x, 0), bytes);
    ptx_atom_cas(q, ptx_at(x, 0), bytes, ptx_u32(1));
    ptx_shfl_bfly(q, y, ptx_imm(16), ptx_imm(31), ptx_imm(-1));
    ptx_fence(q, PTX_ACQ_REL | PTX_GPU);
    ptx_ret(q);
    q = ptx_entry(to, "second");
    x = ptx_param_ptr(q, "x", PTX_GLOBAL);
    address = ptx_shared_dynamic(q);
    y = ptx_ld(q, PTX_U32, ptx_at(address, 4));
    ptx_st(q, PTX_U32, ptx_at(x, 0), y);
    ptx_exit(q);
}

/* An allocator that counts, checks the old sizes, and fails at one call. */
typedef struct counting {
    long calls, fail_at, live, bytes, mismatches;
} counting;
typedef union block_head {
    size_t size;
    double align[2];
} block_head;
static void *counting_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    counting *n = (counting *)user;
    block_head *old = block ? (block_head *)block - 1 : NULL, *fresh;
    if ((old ? old->size : 0) != old_size) n->mismatches++;
    if (new_size == 0) {
        if (old) n->live--, n->bytes -= (long)old_size;
        free(old);
        return NULL;
    }
    if (n->calls++ == n->fail_at) return NULL;
    fresh = (block_head *)malloc(sizeof *fresh + new_size); /* always moves: stale pointers show */
    if (!fresh) return NULL;
    fresh->size = new_size;
    memset(fresh + 1, 0xa5, new_size);
    if (old) {
        memcpy(fresh + 1, block, old_size < new_size ? old_size : new_size);
        memset(block, 0x5a, old_size);
        n->live--, n->bytes -= (long)old_size;
        free(old);
    }
    n->live++, n->bytes += (long)new_size;
    return fresh + 1;
}

static void memory(void) {
    counting n;
    ptx_module_desc desc;
    ptx_module *mem;
    char *first;
    const char *text;
    size_t length, i;
    long calls, at;
    int ok = 1, stable = 1;
    memset(&desc, 0, sizeof desc);
    memset(&n, 0, sizeof n);
    n.fail_at = -1;
    desc.alloc = counting_alloc;
    desc.alloc_user = &n;
    desc.comments = 1;
    /* the same calls give the same bytes; after a reset too, and then without a further allocation */
    mem = ptx_module_new(&desc);
    everything(mem);
    text = ptx_text(mem, &length);
    CHECK_MORE(text != NULL, ptx_get_error(mem)->message);
    if (!text) return;
    CHECK(strlen(text) == length);
    first = (char *)malloc(length + 1);
    if (!first) return;
    memcpy(first, text, length + 1);
    for (i = 0; i < length; i++)
        if ((unsigned char)first[i] > 126) ok = 0;
    CHECK(ok);
    keep_body(text, 75);
    text = ptx_text(mem, NULL);
    CHECK(text && strcmp(text, first) == 0);
    calls = n.calls;
    for (i = 0; i < 300; i++) {
        ptx_module_reset(mem);
        CHECK(i > 0 || (ptx_entry_count(mem) == 0 && ptx_get_error(mem)->code == PTX_E_NONE));
        everything(mem);
        text = ptx_text(mem, NULL);
        if (!text || strcmp(text, first) != 0) stable = 0;
    }
    CHECK(stable);
    CHECK(n.calls == calls); /* 300 rounds, no allocation */
    /* an error, then a reset */
    ptx_module_reset(mem);
    ptx_entry(mem, "1");
    CHECK(ptx_text(mem, NULL) == NULL);
    ptx_module_reset(mem);
    everything(mem);
    text = ptx_text(mem, NULL);
    CHECK(text && strcmp(text, first) == 0);
    ptx_module_free(mem);
    CHECK(n.live == 0 && n.bytes == 0 && n.mismatches == 0);
    /* every allocation fails once */
    for (at = 0; at < 10000; at++) {
        ptx_code code = PTX_E_NONE;
        memset(&n, 0, sizeof n);
        n.fail_at = at;
        mem = ptx_module_new(&desc);
        everything(mem);
        text = ptx_text(mem, NULL);
        if (mem) code = ptx_get_error(mem)->code;
        if (text && strcmp(text, first) != 0) ok = 0;
        if (!text && mem && code != PTX_E_MEMORY) ok = 0;
        if (!mem && ptx_get_error(mem)->code != PTX_E_MEMORY) ok = 0;
        if (!text && mem && n.calls > at) { /* memory is back: the module works after a reset */
            ptx_module_reset(mem);
            everything(mem);
            if (!ptx_text(mem, NULL) || strcmp(ptx_text(mem, NULL), first) != 0) ok = 0;
        }
        ptx_module_free(mem);
        if (n.live || n.bytes || n.mismatches) ok = 0;
        if (!ok) {
            printf("%s:%d: failed: out of memory at call %ld: code %s, %ld blocks live, %ld sizes wrong\n",
                   __FILE__, __LINE__, at, ptx_error_name(code), n.live, n.mismatches);
            break;
        }
        if (text) break;
    }
    CHECK(ok && at > 10 && at < 10000);
    free(first);
}

static void output(void) {
    const char *text;
    size_t length;
    ptx_entry_info info;
    m = new_module(75, 0, 0);
    everything(m);
    text = ptx_text(m, &length);
    CHECK(text != NULL && strlen(text) == length);
    if (!text) return;
    CHECK(strncmp(ptx_text(m, NULL), ".version 7.4\n.target sm_75\n", 27) == 0);
    /* L1::no_allocate needs 7.4 */
    CHECK(ptx_entry_count(m) == 2 && ptx_entry_get(m, 2, &info) == 0 && ptx_entry_get(m, 0, NULL) == 0);
    CHECK(ptx_entry_get(m, 0, &info) && strcmp(info.name, "everything") == 0 && info.param_count == 3
          && info.param_bytes == 80 && info.shared_bytes == 256 && info.max_threads == 256);
    CHECK(strcmp(info.params[1].name, "n") == 0 && info.params[1].offset == 8 && info.params[1].bytes == 4
          && info.params[0].space == PTX_GLOBAL);
    CHECK(info.params[2].offset == 16 && info.params[2].bytes == 64 && info.params[2].type == PTX_B8);
    done();
    m = new_module(75, 0, 0);
    CHECK(!ptx_text(m, &length) && length == 0 && ptx_get_error(m)->code == PTX_E_EMPTY);
    done();
}

/* Functions that write several results: after an error, these are "no value". */
static void no_results(void) {
    ptx_val v[9], out[16];
    int call, i;
    for (call = 0; call < 12; call++) {
        ptx_kernel *other;
        int results = 4;
        start(80);
        for (i = 0; i < 9; i++) v[i] = f;
        for (i = 0; i < 16; i++) out[i].handle = 1;
        other = call < 8 ? NULL : k;
        if (call >= 8) ptx_add(k, f, w); /* the error */
        switch (call % 8) {
        case 0: ptx_mma(other, PTX_MMA_M16N8K8_F32, PTX_F16, PTX_F16, out, v, v, v); break;
        case 1: ptx_philox(other, v, v, out); break;
        case 2: ptx_unpack_rgba8(other, w, out); break;
        case 3: results = 2, ptx_unpack_half(other, w, out); break;
        case 4: results = 3, ptx_cross(other, v, v, out); break;
        case 5: ptx_normalize(other, 4, v, out); break;
        case 6: ptx_lerp(other, 4, v, v, f, out); break;
        case 7: results = 9, ptx_mat_mul(other, 3, v, v, out); break;
        }
        for (i = 0; i < results; i++) CHECK(out[i].handle == 0);
        CHECK(out[results].handle == 1);
        done();
    }
    start(80);
    for (i = 0; i < 5; i++) out[i].handle = 1;
    L ptx_mma(k, PTX_MMA_M16N8K8_F32, PTX_F16, PTX_F16, out, v, NULL, v);
    for (i = 0; i < 4; i++) CHECK(out[i].handle == 0);
    CHECK(out[4].handle == 1);
    WRONG("a matrix product without b", PTX_E_ARGUMENT, "an array is NULL");
}

/* ptx_tex: counts of coordinates; padding is left out in all groups or in none. */
static void textures(void) {
    ptx_val at[12], out[4];
    int i;
    start(75);
    for (i = 0; i < 12; i++) at[i] = f;
    out[3].handle = 1;
    L ptx_tex(k, PTX_TEX_2D, PTX_F32, w, 1, at, out);
    CHECK(out[3].handle == 0);
    WRONG("one coordinate of two", PTX_E_ARGUMENT, "takes 2 values behind the texture, 1 given");
    start(75);
    for (i = 0; i < 12; i++) at[i] = f;
    L ptx_tex(k, PTX_TEX_1D, PTX_F32, w, 2, at, out);
    WRONG("two coordinates of one", PTX_E_ARGUMENT, "takes 1 value behind the texture, 2 given");
    start(75);
    for (i = 0; i < 12; i++) at[i] = f;
    L ptx_tex(k, PTX_TEX_GRAD_3D, PTX_F32, w, 10, at, out);
    WRONG("padding of one group", PTX_E_ARGUMENT, "takes 9 values behind the texture, 10 given");
    start(75);
    for (i = 0; i < 12; i++) at[i] = f;
    ptx_tex(k, PTX_TEX_GRAD_3D, PTX_F32, w, 9, at, out), ptx_tex(k, PTX_TEX_GRAD_3D, PTX_F32, w, 12, at, out);
    ptx_ret(k), FINE("no padding, all padding");
    out[3].handle = 1;
    ptx_tex(NULL, PTX_TEX_2D, PTX_F32, w, 2, at, out);
    CHECK(out[3].handle == 0);
}

/* The first error stays; NULL is harmless everywhere. */
static void harmless(void) {
    ptx_val v[4], x;
    ptx_var var;
    ptx_label label;
    char message[800];
    size_t length = 77;
    ptx_kernel *q = NULL;
    memset(v, 0, sizeof v);
    start(75);
    ptx_add(k, u, s);
    CHECK(ptx_get_error(m)->code == PTX_E_TYPE);
    strcpy(message, ptx_get_error(m)->message);
    x = ptx_add(k, f, u);
    CHECK(x.handle == 0 && ptx_type_of(x) == PTX_NONE);
    ptx_else(k), ptx_end(k), ptx_break(k), ptx_entry(m, "1"), ptx_ret(k), ptx_guard(k, u);
    CHECK(ptx_entry(m, "good") == NULL);
    CHECK(ptx_fail(m, PTX_E_DESC, "a:1", "another %d", 1) == PTX_E_TYPE);
    CHECK(ptx_verify(m) == PTX_E_TYPE && ptx_text(m, &length) == NULL && length == 0);
    CHECK(strcmp(message, ptx_get_error(m)->message) == 0 && strncmp(ptx_get_error(m)->kernel, "k", 1) == 0);
    CHECK(ptx_get_error(m)->instruction == k->ins.count);
    done();
    start(75);
    CHECK(ptx_fail(m, PTX_E_DESC, "there.c:12", "head_dim %d", 7) == PTX_E_DESC);
    CHECK(strcmp(ptx_get_error(m)->message, "there.c:12: error: head_dim 7 [desc]") == 0);
    done();
    /* a code that is none of an error */
    start(75);
    CHECK(ptx_fail(m, PTX_E_NONE, "there.c:12", "x") == PTX_E_ARGUMENT);
    CHECK(strcmp(ptx_get_error(m)->message, "there.c:12: error: x [argument]") == 0);
    done();
    start(75);
    CHECK(ptx_fail(m, PTX_E_COUNT, "", "x") == PTX_E_ARGUMENT);
    done();
    start(75);
    CHECK(ptx_fail(m, WILD(ptx_code, ANY), "", "x") == PTX_E_ARGUMENT);
    done();
    { /* the address of a parameter block is in no register */
        ptx_var cell;
        ptx_val out[2];
        start(75), cell.cell = ptx_param_bytes(k, "block", 16, 8), L ptx_set(k, cell, ptx_u64(1));
        WRONG("set of a block", PTX_E_TYPE, "the variable is the address of a parameter block");
        start(75), x = ptx_param_bytes(k, "block", 16, 8), L ptx_unpack(k, PTX_U32, 2, x, out);
        WRONG("unpack of a block", PTX_E_TYPE, "the operand of mov is the address of a parameter block");
        start(75), x = ptx_param_bytes(k, "block", 16, 8), L ptx_call_indirect(k, x, PTX_NONE, 0, NULL);
        WRONG("call of a block", PTX_E_TYPE, "the function's address is the address of a parameter block");
    }
    { /* a variable of 4 GiB */
        ptx_variable_desc large;
        memset(&large, 0, sizeof large);
        large.name = "large", large.space = PTX_GLOBAL, large.type = PTX_U64, large.count = 0x20000000;
        start(75), L ptx_variable(m, &large);
        WRONG("4 GiB", PTX_E_ARGUMENT, "536870912 elements of type u64|less than 2 GiB");
        start(75), L ptx_variable(m, NULL), WRONG("no description", PTX_E_ARGUMENT, "0 elements");
    }
    { /* the function behind ptx_tex_2d and its like */
        ptx_val out[4], texture = (start(75), ptx_param(k, "t", PTX_U64));
        ptx_tex_at_(k, "there.c:12", PTX_TEX_2D, PTX_F32, texture, 4, f, f, f, out);
        CHECK(ptx_get_error(m)->code == PTX_E_ARGUMENT && !out[0].handle && !out[3].handle);
        CHECK(strstr(ptx_get_error(m)->message, "1 to 3 values behind the texture, 4 given"));
        done();
    }
    CHECK(strcmp(ptx_error_name(PTX_E_UNREACHABLE), "unreachable") == 0);
    CHECK(strcmp(ptx_error_name(ANY), "?") == 0);
    CHECK(ptx_get_error(NULL)->code == PTX_E_MEMORY && ptx_text(NULL, &length) == NULL);
    CHECK(ptx_verify(NULL) == PTX_E_MEMORY && length == 0);
    CHECK(ptx_version(NULL) == 0);
    CHECK(ptx_entry(NULL, "k") == NULL && ptx_entry_count(NULL) == 0 && ptx_module_target(NULL) == 0);
    CHECK(ptx_show_comments(NULL, 1) == 0);
    CHECK(ptx_fail(NULL, PTX_E_DESC, "", "x") == PTX_E_MEMORY && ptx_kernel_module(NULL) == NULL);
    ptx_module_free(NULL), ptx_module_reset(NULL), ptx_launch_bounds(q, 1, 1);
    x = ptx_param(q, "x", PTX_U32);
    CHECK(x.handle == 0);
    ptx_param_ptr(q, "x", PTX_GLOBAL), ptx_param_bytes(q, "x", 4, 4), ptx_shared(q, "x", PTX_U32, 4, 0);
    ptx_shared_dynamic(q), ptx_op0(q, PTX_TRAP, 0), ptx_op1(q, PTX_MOV, 0, x), ptx_add(q, x, x),
    ptx_fma(q, x, x, x);
    ptx_lop3(q, x, x, x, x), ptx_cvt(q, PTX_F32, x), ptx_cvt_pair(q, PTX_F16X2, x, x),
    ptx_ld(q, PTX_U32, ptx_at(x, 0));
    ptx_ld_if(q, x, PTX_U32, ptx_at(x, 0), x), ptx_ld_vec(q, PTX_U32, 4, ptx_at(x, 0), v), ptx_ret(q);
    ptx_ld_vec_if(q, x, PTX_U32, 4, ptx_at(x, 0), x, v), ptx_st(q, PTX_U32, ptx_at(x, 0), x);
    ptx_st_vec(q, PTX_U32, 4, ptx_at(x, 0), v), ptx_atom(q, PTX_ATOM_ADD, ptx_at(x, 0), x);
    ptx_atom_cas(q, ptx_at(x, 0), x, x), ptx_red(q, PTX_ATOM_ADD, ptx_at(x, 0), x), ptx_ptr_add(q, x, x, 4);
    ptx_pack(q, PTX_U64, 2, v), ptx_unpack(q, PTX_U32, 2, x, v), ptx_tid_x(q), var = ptx_var_new(q, x);
    ptx_set(q, var, x), ptx_get(q, var), ptx_if(q, x), ptx_else(q), ptx_end(q), ptx_loop(q), ptx_while(q, x);
    ptx_for(q, x, x, x), ptx_break(q), ptx_continue(q), label = ptx_label_new(q), ptx_place(q, label);
    ptx_bra(q, label), ptx_exit(q), ptx_guard(q, x), ptx_comment(q, "x");
    x = ptx_inv(ptx_as(ptx_ptr(x, PTX_SHARED), PTX_F32));
    CHECK(x.handle == 0 && ptx_type_bytes(PTX_F64) == 8);
    CHECK(ptx_type_bytes(WILD(ptx_type, PTX__TYPE_COUNT)) == 0);
    CHECK(strcmp(ptx_type_name(PTX_BF16X2), "bf16x2") == 0);
    CHECK(strcmp(ptx_type_name(WILD(ptx_type, PTX__TYPE_COUNT)), "?") == 0);
}

/* -- every row of the table -- */

static ptx_val of_type[PTX__TYPE_COUNT];
static char row_used[PTX__ROW_COUNT];

static void row_kernel(const char *name) {
    int t;
    k = ptx_entry(m, name);
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    w = ptx_param(k, "w", PTX_U64);
    blk = ptx_param_bytes(k, "blk", 64, 16);
    sh = ptx_shared(k, "sh", PTX_U64, 256, 128);
    memset(of_type, 0, sizeof of_type);
    for (t = PTX_B16; t < PTX__TYPE_COUNT; t++)
        if (ptx_type_bytes((ptx_type)t) > 1) of_type[t] = ptx_ld(k, (ptx_type)t, ptx_at(p, 0));
    of_type[PTX_PRED] = ptx_setp(k, PTX_NE, of_type[PTX_U32], ptx_imm(0));
    {
        ptx_val two[2];
        ptx_unpack(k, PTX_E2M1X2, 2, of_type[PTX_U16], two);
        of_type[PTX_E2M1X2] = two[0];
    }
}

#define FAMILY ((ptx_mods)1 << 63) /* of the memory modifiers */

/* A legal operand for a letter of the table. */
static ptx_val operand(char letter, unsigned type, unsigned src, ptx_val memory) {
    size_t i;
    switch (letter) {
    case 't': return of_type[ptx__in_register(type)];
    case 'w': return of_type[ptx__wider(type)];
    case 'c': return of_type[ptx__in_register(src)];
    case 'p': return of_type[PTX_PRED];
    case 'u': return of_type[PTX_U32];
    case 'S':
    case 'y': return of_type[PTX_S32];
    case 'd': return w;
    case 'h': return of_type[PTX_U16];
    case 'f': return of_type[PTX_F32];
    case 'z': return of_type[PTX_F64];
    case 'q': return of_type[PTX_B128];
    case 'x': return of_type[PTX_B32];
    case 'm': return memory;
    case 'g': return ptx_ptr(w, PTX_GLOBAL);
    case 'o':
    case 'n': return w;
    case 'a': return of_type[PTX_U32];
    default: break;
    }
    for (i = 0; i < sizeof ptx__slot_limits / sizeof *ptx__slot_limits; i++)
        if (ptx__slot_limits[i].letter == letter)
            return ptx_imm(letter == 'O' ? -1 : ptx__slot_limits[i].low);
    return sh;
}

static int own_kind(int op) {
    return op == PTX_LD || op == PTX_ST || op == PTX_ATOMIC || op == PTX_ATOMIC_BITS || op == PTX_ATOMIC_CAS
        || op == PTX_RED || op == PTX_RED_BITS;
}

/* One use of a row, in the kernel k. space: 0 generic, or a ptx_space */
static void use_row(const ptx__row *row, unsigned type, unsigned src, ptx_mods mods, unsigned space) {
    ptx_val v[160], out[160], memory = space == PTX_SHARED           ? sh
                                     : space == PTX_PARAM          ? blk
                                     : space == PTX_SHARED_CLUSTER ? ptx_ptr(sh, PTX_SHARED_CLUSTER)
                                     : space                       ? ptx_ptr(w, (ptx_space)space)
                                                                   : w;
    ptx_mem mem = ptx_at(memory, 0);
    static ptx_var vars[160];
    char program[PTX__SIGNATURE_MAX], *slot;
    unsigned n = 0, results, sources, length;
    if (own_kind(row->op)) {
        ptx_mods what = mods & (PTX__ATOM | PTX_NOFTZ) & ~FAMILY;
        unsigned count = ptx__needed(row) & PTX__VEC32 & ~FAMILY ? 32 / ptx_type_bytes((ptx_type)type) : 1;
        for (n = 0; n < 8; n++) v[n] = of_type[ptx__in_register(type)];
        if (mods & PTX_L2_CACHE_HINT & ~FAMILY) mem = ptx_cached(mem, w);
        if (row->op == PTX_LD)
            ptx_ld_vec(k, (ptx_type)type, count, ptx_with(mem, mods & ~(PTX__VEC32 & ~FAMILY)), out);
        else if (row->op == PTX_ST)
            ptx_st_vec(k, (ptx_type)type, count, ptx_with(mem, mods & ~(PTX__VEC32 & ~FAMILY)), v);
        else if (row->op == PTX_ATOMIC_CAS)
            ptx_atom_cas(k, ptx_with(mem, mods & ~what), of_type[type], of_type[type]);
        else if (row->op == PTX_RED || row->op == PTX_RED_BITS)
            ptx_red(k, what | FAMILY, ptx_with(mem, mods & ~what), of_type[type]);
        else
            ptx_atom(k, what | FAMILY, ptx_with(mem, mods & ~what), of_type[type]);
        return;
    }
    for (length = 1; length <= 128; length++)
        if (ptx__expand_signature(row->sig, length, strchr(row->sig, '?') != NULL, program, &results, &sources))
            break;
    for (slot = strchr(program, '=') + 1; *slot; slot++)
        if (!strchr("{}[]|_", *slot)) v[n++] = operand(*slot, type, src, memory);
    if (row->op == PTX_ADDC || row->op == PTX_SUBC || row->op == PTX_MADC)
        ptx_add_cc(k, of_type[PTX_U32], of_type[PTX_U32]);
    if (row->op == PTX_SETMAXNREG_INC || row->op == PTX_SETMAXNREG_DEC) ptx_max_registers(k, 128);
    if (*row->sig == '!') {
        for (n = 0; n < results; n++) vars[n] = ptx_var_new(k, of_type[PTX_B32]);
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        ptx__emit(k, PTX__AT, row->op, mods, type, src, v, sources, NULL, results, vars);
    } else
        ptx_opn(k, (ptx_op_id)row->op, mods, (ptx_type)type, (ptx_type)src, n, v, results, out);
}

typedef struct row_use {
    const ptx__row *row;
    ptx_mods mods;
    unsigned type, src, space;
} row_use;
static row_use uses[200000];
static size_t use_count;

/* Try in a kernel of its own; keep what the builder takes. */
static void try_row(const ptx__row *row, unsigned type, unsigned src, ptx_mods mods, unsigned space) {
    row_use *r = &uses[use_count];
    if (use_count == sizeof uses / sizeof *uses) return;
    ptx_module_reset(m);
    row_kernel("k");
    use_row(row, type, src, mods, space);
    if (ptx_get_error(m)->code) return;
    r->row = row, r->mods = mods, r->type = type, r->src = src, r->space = space;
    use_count++;
}

static void try_mods(const ptx__row *row, unsigned type, unsigned src, ptx_mods base, unsigned space,
                     int pairs) {
    ptx_mods family = ptx__allowed(row) & (ptx_mods)1 << 63,
             skip = PTX__VEC | PTX__VEC32 | (strchr(row->sig, 'm') ? PTX__SPACE : 0);
    unsigned i, j;
    ptx_mods one, two;
    try_row(row, type, src, base, space);
    for (i = 0; i < 63; i++) {
        one = (ptx_mods)1 << i;
        if (!(ptx__allowed(row) & one) || (base & one) || (family && (skip & one))) continue;
        try_row(row, type, src, base | one | family, space);
        for (j = i + 1; pairs && j < 63; j++) {
            two = (ptx_mods)1 << j;
            if ((ptx__allowed(row) & two) && !(base & two) && !(family && (skip & two)))
                try_row(row, type, src, base | one | two | family, space);
        }
    }
}

static void show_line(const char *name, long number) {
    char line[400];
    FILE *in;
    sprintf(line, "%.200s.ptx", name);
    in = fopen(line, "r");
    while (in && number > 0 && fgets(line, sizeof line, in)) number--;
    if (in) printf("    %s", line), fclose(in);
}
static int run_ptxas(const char *name, const char *sm) {
    char command[800], line[400];
    int status, shown = 0;
    FILE *log;
    sprintf(command, "ptxas -O0 -arch=sm_%s %.200s.ptx -o %.200s.cubin >%.200s.log 2>&1", sm, name, name,
            name);
    status = system(command);
    sprintf(line, "%.200s.log", name);
    log = fopen(line, "r");
    while (status && log && fgets(line, sizeof line, log))
        if ((strstr(line, "error") || strstr(line, "fatal")) && shown++ < (getenv("ALL") ? 1000000 : 30)) {
            const char *at = strstr(line, "line ");
            printf("  sm_%s: %s", sm, at ? at : line);
            if (at) show_line(name, strtol(at + 5, NULL, 10));
        }
    if (shown > 30 && !getenv("ALL")) printf("  ... and %d more\n", shown - 30);
    if (log) fclose(log);
    sprintf(line, "%.200s.log", name), remove(line);
    sprintf(line, "%.200s.cubin", name), remove(line);
    return status == 0;
}

static const uint32_t all_targets[] = {75, 80, 90, 120};
/* Those of the table: with suffix only for what the others lack. */
static const char *const table_targets[] = {"75", "80", "90", "120", "90a", "100a", "103a", "120a"};

static void table(int have_ptxas, const char *base) {
    static const unsigned spaces[] = {PTX_GENERIC, PTX_GLOBAL, PTX_SHARED,        PTX_PARAM,
                                      PTX_LOCAL,   PTX_CONST,  PTX_SHARED_CLUSTER};
    size_t r, t, i;
    unsigned type, src, bit;
    for (t = 0; t < sizeof table_targets / sizeof *table_targets; t++) {
        char name[300], kernel[40];
        ptx_module_desc desc;
        const char *text;
        size_t n = 0, in_kernel;
        int pair, last = t + 1 == sizeof table_targets / sizeof *table_targets;
        memset(&desc, 0, sizeof desc);
        desc.target = ptx_target_parse(table_targets[t]);
        use_count = 0;
        m = ptx_module_new(&desc);
        for (r = 0; r < PTX__ROW_COUNT; r++) {
            const ptx__row *row = &ptx__rows[r];
            int memory_row = strchr(row->sig, 'm') != NULL;
            if (row->op == PTX_BRA || row->op == PTX_RET || row->op == PTX_EXIT || row->op == PTX_RAW
                || row->op == PTX_BRX_EDGE)
                continue;
            if (desc.target > 0xfff && row->sm < 100) continue;
            for (type = 0; type < PTX__TYPE_COUNT; type++) {
                if (ptx__types_of(row) ? !(ptx__types_of(row) >> type & 1) : type != 0) continue;
                for (src = 0; src < PTX__TYPE_COUNT; src++) {
                    if (ptx__sources_of(row) ? !(ptx__sources_of(row) >> src & 1) : src != 0) continue;
                    if (row->op == PTX_CVT && ptx__types[src].bits == 8 && ptx__types[src].kind != 'x')
                        continue;
                    for (i = 0; i < (memory_row ? sizeof spaces / sizeof *spaces : 1); i++) {
                        int pairs = !own_kind(row->op) || type == PTX_U32 || type == PTX_F16;
                        if (ptx__default(row) || !ptx__needed(row))
                            try_mods(row, type, src, ptx__default(row), spaces[i], pairs);
                        for (bit = 0; bit < 63; bit++)
                            if (ptx__needed(row) & ~ptx__default(row) & (ptx_mods)1 << bit)
                                try_mods(row, type, src,
                                         (ptx_mods)1 << bit | (ptx__needed(row) & (ptx_mods)1 << 63), spaces[i],
                                         pairs);
                    }
                }
            }
        }
        /* all that was taken, 400 uses a kernel */
        ptx_module_reset(m);
        for (pair = 0, in_kernel = 0; pair < 2; pair++) { /* a kernel uses one CTA of a pair, or both */
            for (i = 0; i < use_count; i++) {
                ptx_mods both = PTX_CTA_GROUP_2 & ~PTX__FAMILY;
                if (((ptx__allowed(uses[i].row) & PTX_CTA_GROUP_2) == PTX_CTA_GROUP_2 && uses[i].mods & both)
                    != pair)
                    continue;
                if (in_kernel % 400 == 0) {
                    if (in_kernel) ptx_ret(k);
                    sprintf(kernel, "rows%u_%d", (unsigned)i, pair);
                    row_kernel(kernel);
                }
                in_kernel++;
                use_row(uses[i].row, uses[i].type, uses[i].src, uses[i].mods, uses[i].space);
            }
            in_kernel = (in_kernel + 399) / 400 * 400;
        }
        ptx_ret(k);
        text = ptx_text(m, NULL);
        CHECK_MORE(text != NULL, ptx_get_error(m)->message);
        CHECK(use_count < sizeof uses / sizeof *uses);
        for (i = 0; i < use_count; i++) row_used[uses[i].row - ptx__rows] = 1;
        for (r = 0; last && r < PTX__ROW_COUNT; r++) {
            int op = ptx__rows[r].op;
            int usable = row_used[r] || op == PTX_BRA || op == PTX_EXIT || op == PTX_RAW || op == PTX_RET
                         || op == PTX_BRX_EDGE;
            sprintf(name, "row %lu of the table: %s", (unsigned long)r, ptx__rows[r].name);
            n += (size_t)CHECK_AT(usable, __LINE__, name, ptx__rows[r].sig);
        }
        if (last) CHECK(n == PTX__ROW_COUNT);
        if (text && have_ptxas) {
            FILE *out;
            sprintf(name, "%.200s_table", base);
            strcat(name, ".ptx");
            out = fopen(name, "w");
            CHECK(out != NULL);
            if (out) {
                fputs(text, out);
                fclose(out);
                sprintf(name, "%.200s_table", base);
                CHECK_AT(run_ptxas(name, table_targets[t]), __LINE__, "ptxas accepts what the builder takes",
                       "");
                if (!getenv("KEEP")) strcat(name, ".ptx"), remove(name);
            }
        }
        done();
    }
}

static void assemble(const char *base) {
    size_t t, i;
    char name[300];
    for (t = 0; t < sizeof all_targets / sizeof *all_targets; t++) {
        FILE *out;
        sprintf(name, "%.200s_all.ptx", base);
        out = fopen(name, "w");
        CHECK(out != NULL);
        if (!out) return;
        fprintf(out, ".version 8.7\n.target sm_%u\n.address_size 64\n", all_targets[t]);
        for (i = 0; i < body_count; i++)
            if (body_sm[i] <= all_targets[t]) fputs(bodies[i], out);
        fclose(out);
        sprintf(name, "%.200s_all", base);
        {
            char arch[16];
            sprintf(arch, "%u", all_targets[t]);
            CHECK_AT(run_ptxas(name, arch), __LINE__, "ptxas accepts every near miss", "");
        }
        if (!getenv("KEEP")) strcat(name, ".ptx"), remove(name);
    }
}

/* Handles whose bytes are anything: uninitialised memory, or good ones with a byte changed. Whatever is done
   with them ends in an error or in text, never in a crash. */
static void garbage(void) {
    uint32_t round, state = 12345;
    int refused = 0;
    for (round = 0; round < 6000; round++) {
        ptx_module *module = ptx_module_new(NULL);
        ptx_kernel *kernel = ptx_entry(module, "k");
        ptx_val o = ptx_param_ptr(kernel, "o", PTX_GLOBAL);
        ptx_val count = ptx_param(kernel, "u", PTX_U32), z, two[4];
        unsigned char *bytes = (unsigned char *)&z;
        ptx_var var;
        ptx_label label;
        size_t i;
        z = o;
        for (i = 0; i < sizeof z; i++) {
            state = state * 1664525u + 1013904223u;
            if (round < 256) bytes[i] = (unsigned char)round;
            else if (round < 3000 || i == (state >> 20) % sizeof z) bytes[i] = (unsigned char)(state >> 24);
        }
        if (round >= 4500) bytes[sizeof z - 1] = (unsigned char)(state >> 16);
        memcpy(&var, &z, sizeof var);
        memcpy(&label, &z, sizeof label);
        two[0] = two[1] = two[2] = two[3] = z;
        switch (round % 20) {
        case 0: ptx_st(kernel, PTX_U32, ptx_at(o, 0), z); break;
        case 1: ptx_ld(kernel, PTX_U32, ptx_at(z, 0)); break;
        case 2: ptx_add(kernel, z, count); break;
        case 3: ptx_add(kernel, count, z); break;
        case 4: ptx_cvt(kernel, PTX_F32, z); break;
        case 5: ptx_get(kernel, var); break;
        case 6: ptx_set(kernel, var, count); break;
        case 7: ptx_if(kernel, z); break;
        case 8: ptx_ptr_add(kernel, o, z, 4); break;
        case 9: ptx_ptr_add(kernel, z, count, 4); break;
        case 10: ptx_atom(kernel, PTX_ATOM_ADD, ptx_at(o, 0), z); break;
        case 11: ptx_pack(kernel, PTX_B64, 2, two); break;
        case 12: ptx_unpack(kernel, PTX_U32, 2, z, two); break;
        case 13: ptx_for(kernel, z, count, ptx_imm(1)); break;
        case 14: ptx_ld_if(kernel, z, PTX_U32, ptx_at(o, 0), ptx_imm(0)); break;
        case 15: ptx_shl(kernel, count, z); break;
        case 16: ptx_bra(kernel, label); break;
        case 17: ptx_mov(kernel, ptx_as(z, PTX_U32)); break;
        case 18: ptx_mov(kernel, z); break;
        default: ptx_selp(kernel, count, count, z); break;
        }
        ptx_ret(kernel);
        refused += ptx_text(module, NULL) == NULL;
        ptx_module_free(module);
    }
    CHECK(refused > 3000);
}

int main(int argc, char **argv) {
    int have_ptxas = system("ptxas --version >/dev/null 2>&1") == 0;
    char base[256];
    size_t i;
    sprintf(base, "%.200s", argc > 1 ? argv[1] : argv[0]);
    types(), forms(), modifiers(), ranges(), handles(), names(), addresses(), guards(), targets(), scopes(),
    flow(), no_types(), words(), sites(), no_sites();
    limits(), printing(), memory(), output(), textures(), no_results(), harmless(), garbage(), table(have_ptxas, base);
    if (have_ptxas)
        assemble(base);
    else
        printf("skip: there is no ptxas: the text of %lu kernels is not assembled\n",
               (unsigned long)body_count);
    for (i = 0; i < body_count; i++) free(bodies[i]);
    return check_end();
}
