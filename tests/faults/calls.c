/* calls.c - functions: what is called through a pointer, what a call leaves behind.
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

int main(void) {
    if (!open_cpu_driver()) return check_end();
    pointers();
    return check_end();
}
