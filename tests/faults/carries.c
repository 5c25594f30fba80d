/* carries.c - the carry flag: who sets it, who reads it.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

int main(void) {
    ptx_kernel *f;
    int which;
    if (!open_cpu_driver()) return check_end();

    /* An addition reads the flag that a subtraction has set. */
    PAIR(AMPERE, "carry-flag") {
        x = ptx_sub_cc(k, n, tid);
        y = bad ? ptx_addc(k, n, tid) : ptx_subc(k, n, tid);
        out(ADD(x, y));
    }

    /* A subtraction reads the flag that an addition has set. */
    PAIR(AMPERE, "carry-flag") {
        x = ptx_add_cc(k, n, tid);
        y = bad ? ptx_subc(k, n, tid) : ptx_addc(k, n, tid);
        out(ADD(x, y));
    }

    /* The flag is read behind a branch. */
    PAIR(AMPERE, "carry-flag") {
        a = ptx_var_new(k, U(0));
        x = ptx_add_cc(k, n, tid);
        if (!bad) z = ptx_addc(k, n, U(1));
        IF(GT(n, U(3)));
        SET(a, bad ? ptx_addc(k, n, U(1)) : z);
        END;
        out(ADD(x, GET(a)));
    }

    /* No instruction sets the flag; one on another path does; a call comes between. */
    for (which = 0; which < 3; which++) PAIR(AMPERE, "carry-flag") {
            f = ptx_func(m, "f", PTX_NONE);
            ptx_ret(f);
            if (which == 1) IF(GT(n, U(3)));
            if (which || !bad) x = ptx_add_cc(k, n, tid);
            if (which == 1) END;
            if (which == 1 && !bad) x = ptx_add_cc(k, n, tid);
            if (which == 2 && bad) ptx_call(k, f, 0, NULL);
            y = ptx_addc(k, n, tid);
            if (!bad) ptx_call(k, f, 0, NULL);
            out(y);
        }
    return check_end();
}
