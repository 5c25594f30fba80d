/* calls.c - functions: what is called through a pointer, who comes back; raw text.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

/* A pointer to a function of another prototype: a wider argument, none, a wider result. */
static void pointers(void) {
    ptx_kernel *f;
    int which;
    for (which = 0; which < 3; which++) PAIR(AMPERE, "call-target") {
            f = ptx_func(m, "f", PTX_U32);
            ptx_return(f, ptx_param(f, "x", PTX_U32));
            x = ptx_func_address(k, f);
            y = bad && which == 0 ? ptx_cvt(k, PTX_U64, n) : n;
            y = ptx_call_indirect(k, x, bad && which == 2 ? PTX_U64 : PTX_U32, bad && which == 1 ? 0 : 1, &y);
            ST(AT(p, tid), 0, bad && which == 2 ? n : y);
        }
}

/* Lanes that end in a function; two arrays that a block has no room for together. */
static void left_behind(void) {
    ptx_kernel *f;
    PAIR(AMPERE, "absent-lane") {
        f = ptx_func(m, "f", PTX_NONE);
        ptx_guard(f, ptx_setp(f, PTX_LT, ptx_tid_x(f), I(3)));
        bad ? ptx_exit(f) : ptx_ret(f);
        ptx_ret(f);
        ptx_call(k, f, 0, NULL);
        out(ptx_as(ptx_shfl_bfly(k, n, I(1), I(31), FULL), PTX_U32));
    }
    PAIR(AMPERE, "load") {
        f = ptx_func(m, "f", PTX_NONE);
        x = ptx_shared(f, "in_f", PTX_U8, bad ? 32768 : 16384, 4);
        ptx_st(f, PTX_U8, ptx_at(x, 0), U(0));
        ptx_ret(f);
        ptx_call(k, f, 0, NULL);
        ST(mine, 0, n);
        out(LD(mine, 0));
    }
}

/* Raw text that is not finished, or defines nothing. */
static void raw_text(void) {
    static const ptx_type types[1] = {PTX_U32};
    static const char *const unfinished[][2] = {{"{ membar.gl;", "{ membar.gl; }"},
                                                {"membar.gl; }", "{ { membar.gl; } }"},
                                                {"membar.gl; /* {", "membar.gl; /* { */"},
                                                {".pragma \"a;", ".pragma \"nounroll\"; // {"},
                                                {"{ membar.gl; ) }", "{ membar.gl; // )\n}"},
                                                {"membar.gl", "membar.gl;"},
                                                {"membar.gl; membar", "membar.gl; membar.gl;"}};
    unsigned c;
    for (c = 0; c < sizeof unfinished / sizeof *unfinished; c++)
        PAIR(AMPERE, "load") ptx_raw(k, unfinished[c][!bad], 0, NULL, 0, NULL, NULL);
    PAIR(AMPERE, "uninitialised-register") {
        ptx_raw(k, bad ? "prefetch.global.L2 [$1];" : "ld.global.u32 $0, [$1];", 1, &q, 1, types, &x);
        out(x);
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    pointers();
    left_behind();
    raw_text();
    return check_end();
}
