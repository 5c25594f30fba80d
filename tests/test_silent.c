/* test_silent.c - no operation's kernel gets advice, for any target and any of the examples: what is right is
 * left alone. Contraction and register pressure are told of, because they may be meant.
 *
 *   make build/test_silent */
#include "../ptxgen_kernels.h"
#include "check.h"

#include <string.h>

static int is_meant(ptx_advice_code code) {
    return code == PTX_ADVICE_CONTRACTION || code == PTX_ADVICE_PRESSURE;
}

static void look_at(ptx_target target, uint32_t operation, const void *desc, const char *label) {
    ptx_module_desc module_desc;
    ptx_module *m;
    ptx_advice advice;
    uint32_t i, count;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = target;
    m = ptx_module_new(&module_desc);
    ptxk_operation_get(operation)->emit(m, PTX__AT, desc);
    count = ptx_advise(m);
    CHECK_AT(!ptx_get_error(m)->code, __LINE__, label, ptx_get_error(m)->message);
    for (i = 0; i < count; i++) {
        if (!ptx_advice_get(m, i, &advice) || is_meant(advice.code)) continue;
        CHECK_AT(0, __LINE__, label, advice.message);
    }
    ptx_module_free(m);
}

int main(void) {
    static const ptx_target targets[] = {PTX_SM(75), PTX_SM(80), PTX_SM_A(90), PTX_SM(120)};
    uint32_t t, i, v;
    const char *label;
    for (t = 0; t < sizeof targets / sizeof *targets; t++)
        for (i = 0; i < ptxk_operation_count(); i++) {
            unsigned char desc[256];
            for (v = 0; ptxk_operation_example(i, v, desc, sizeof desc, &label); v++)
                look_at(targets[t], i, desc, label);
        }
    return check_end();
}
