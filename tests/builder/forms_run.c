/* forms_run.c - every form of the table that computes one value from others: emitted by the builder, run
 * on the driver, compared with an evaluation in integers (tests/forms) on edge values and random ones; then
 * the rest of the interface, run and not only assembled.
 *
 * Forms are enumerated from the table: a row that neither has an evaluator nor is run below must stand in
 * `reasons` at the end. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../kerneltest.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

static unsigned char row_run[PTX__ROW_COUNT];

/* Which rows the module used. */
static void mark_rows(const ptx_module *m) {
    for (uint32_t i = 0; i < m->forms.count; i++) row_run[m->forms.at[i].row - ptx__rows] = 1;
}

static ptx_module *new_module(void) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = capability == 90 || capability == 100 || capability == 103 || capability == 120
                      ? PTX_SM_A(capability)
                      : PTX_SM(capability);
    return ptx_module_new(&desc);
}

#include "../forms/catalogue.h"

/* --- one value of others ---------------------------------------------------------------------- */

enum { TRIED = 256, EACH = 100 };
static uint64_t values[TRIED][INPUTS], have[TRIED];

static void shot_kernel(ptx_module *m, const shot *s, unsigned n) {
    char name[16];
    ptx_val v[8], loaded[4], out[2], r;
    sprintf(name, "k%u", n);
    ptx_kernel *k = ptx_entry(m, name);
    ptx_val in = ptx_param_ptr(k, "in", PTX_GLOBAL), to = ptx_param_ptr(k, "out", PTX_GLOBAL);
    ptx_val t = ptx_tid_x(k);
    in = ptx_ptr_add(k, in, t, 64);
    to = ptx_ptr_add(k, to, t, 8);
    memset(loaded, 0, sizeof loaded);
    for (int i = 0; s->b.f.sig[2 + i]; i++) loaded[i] = of_letter(k, in, s->b.f.sig[2 + i], i);
    for (int i = 0; i < s->b.arg_count; i++) {
        const char *a = s->b.args[i];
        bool opposite = *a == '!';
        if ((*a >= '0' && *a <= '9') || *a == '-')
            v[i] = strncmp(s->name, "cvt.rs", 6) ? ptx_imm(strtoll(a, NULL, 0)) : ptx_mov(k, ptx_b32(0));
        else {
            v[i] = loaded[strchr("ABCE", a[opposite]) - "ABCE"];
            if (opposite) v[i] = ptx_inv(v[i]);
        }
    }
    emit_shot(k, s, v, (unsigned)s->b.arg_count, out);
    r = out[s->b.wanted];
    switch (ptx__types[ptx_type_of(r)].bits) {
    case 1: ptx_st(k, PTX_U32, ptx_at(to, 0), ptx_selp(k, ptx_u32(1), ptx_u32(0), r)); break;
    case 8:
        if (ptx__types[ptx_type_of(r)].kind == 'x') {
            out[0] = out[1] = r;
            r = ptx_pack(k, PTX_B16, 2, out);
            ptx_st(k, PTX_U16, ptx_at(to, 0), ptx_and(k, ptx_as(r, PTX_U16), ptx_u16(255)));
        } else
            ptx_st(k, PTX_B32, ptx_at(to, 0), r);
        break;
    case 16: ptx_st(k, PTX_B16, ptx_at(to, 0), ptx_as(r, PTX_B16)); break;
    case 64: ptx_st(k, PTX_B64, ptx_at(to, 0), ptx_as(r, PTX_B64)); break;
    default: ptx_st(k, PTX_B32, ptx_at(to, 0), ptx_as(r, PTX_B32)); break;
    }
    ptx_ret(k);
}

static void run_shot(void *module, const shot *s, unsigned n, device_ptr in, device_ptr out) {
    char name[16], what[600];
    void *function = NULL, *params[2];
    const form *p = &s->b.f;
    int inputs = (int)strlen(p->sig + 2), wrong = 0;
    const fmt *of_result = float_of(*p->sig);
    sprintf(name, "k%u", n);
    params[0] = &in;
    params[1] = &out;
    for (int i = 0; i < TRIED; i++)
        for (int k = 0; k < INPUTS; k++)
            values[i][k] = k < inputs ? pool(p->sig[2 + k], i * 4 + (int)(random64() & 3), inputs == 1) : 0;
    for (int i = 0; i < TRIED && p->eval == eval_integer && (p->op == I_DIV || p->op == I_REM); i++)
        if (!(values[i][1] & mask_of(p->bits))) values[i][1] = 1; /* a quotient by 0 is a finding */
    memset(have, 0, sizeof have);
    if (!CHECK(cu.cuModuleGetFunction(&function, module, name) == 0)) return;
    CHECK(cu.cuMemcpyHtoD(in, values, sizeof values) == 0);
    CHECK(cu.cuMemcpyHtoD(out, have, sizeof have) == 0);
    if (!CHECK_MORE(cu.cuLaunchKernel(function, 1, 1, 1, TRIED, 1, 1, 0, NULL, params, NULL) == 0
                        && cu.cuCtxSynchronize() == 0,
                    s->name))
        return;
    CHECK(cu.cuMemcpyDtoH(have, out, sizeof have) == 0);
    for (int i = 0; i < TRIED; i++) {
        skip_case = false;
        uint64_t want = evaluated(&s->b, values[i]);
        if (skip_case || have[i] == want) continue;
        if (of_result == &F64 && get(&F64, have[i]).kind == NAN_ && get(&F64, want).kind == NAN_) continue;
        if (p->good && p->good(p, values[i], have[i], want)) continue;
        if (wrong++ < 2)
            printf("%s of %llx %llx %llx %llx gives %llx, expected %llx\n", s->name,
                   (unsigned long long)values[i][0], (unsigned long long)values[i][1],
                   (unsigned long long)values[i][2], (unsigned long long)values[i][3],
                   (unsigned long long)have[i], (unsigned long long)want);
    }
    snprintf(what, sizeof what, "%s (%s)", s->name, p->text);
    CHECK_MORE(wrong == 0, what);
    row_run[s->row] = 1;
}

static void test_table(void) {
    device_ptr in = upload(values, sizeof values), out = upload(have, sizeof have);
    ptx_module *m = new_module();
    of_gpu = !cu.ptxsim_report;
    collect(m);
    CHECK_MORE(without == 0, without_name);
    CHECK(shot_count < MOST);
    for (unsigned first = 0; first < shot_count; first += EACH) {
        unsigned last = first + EACH < shot_count ? first + EACH : shot_count;
        ptx_module_reset(m);
        for (unsigned i = first; i < last; i++) {
            shot_kernel(m, &shots[i], i);
            if (ptx_get_error(m)->code && !CHECK_MORE(0, shots[i].name))
                printf("  %s\n", ptx_get_error(m)->message);
            if (ptx_get_error(m)->code) return;
        }
        const char *text = ptx_text(m, NULL);
        if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) continue;
        if (getenv("PTXGEN_KEEP")) { /* for ptxas: the same text as files */
            char path[300];
            snprintf(path, sizeof path, "%s/forms-%u.ptx", getenv("PTXGEN_KEEP"), first);
            FILE *f = fopen(path, "w");
            if (f) {
                fputs(text, f);
                fclose(f);
            }
        }
        void *module = load_text(text);
        for (unsigned i = first; module && i < last; i++) run_shot(module, &shots[i], i, in, out);
        if (module) cu.cuModuleUnload(module);
    }
    printf("note: %u forms of one value executed, %d cases each; %u choices of modifiers refused, %u not on "
           "this target\n",
           shot_count, TRIED, refused_by_builder, lacking);
    CHECK(capability < 100 || shot_count > 1500);
    ptx_module_free(m);
    cu.cuMemFree(in);
    cu.cuMemFree(out);
    free(shots);
}

#include "../forms/interface.h"
#include "../forms/wmma.h"

/* Rows that nothing here runs, by the beginning of their name. */
static const char *const reasons[][2] = {
    {"mma", "other shapes and types: tests/driver/tensor.c runs them as text"},
    {"wgmma", "tests/driver/tensor.c runs them as text"},
    {"ldmatrix", "sub-byte rows: tests/driver/tensor.c runs them as text"},
    {"stmatrix.sync.aligned.m16n8", "tests/driver/tensor.c runs them as text"},
    {"tcgen05", "tests/driver/tcgen05.c runs them as text"},
    {"tex.", "tier 2"},
    {"tld4", "tier 2"},
    {"txq", "tier 2"},
    {"suld", "tier 2"},
    {"sust", "tier 2"},
    {"sured", "tier 2"},
    {"suq", "tier 2"},
    {"istypep", "tier 2"},
    {"tensormap", "tests/driver/hopper.c runs them as text"},
    {"cp.async.bulk", "tests/driver/hopper.c runs them as text"},
    {"cp.reduce", "tests/driver/hopper.c runs them as text"},
    {"mbarrier", "tests/driver/hopper.c runs them as text"},
    {"st.async", "tests/driver/hopper.c runs them as text"},
    {"st.bulk", "tests/driver/hopper.c runs them as text"},
    {"red.async", "tests/driver/hopper.c runs them as text"},
    {"clusterlaunchcontrol", "tests/driver/hopper.c runs them as text"},
    {"setmaxnreg", "tests/driver/hopper.c runs them as text"},
    {"multimem", "needs several devices behind one address"},
    {"cp.async.",
     "with a size, a policy or a predicate: tests/driver/core.c and tests/driver/hopper.c run them as text"},
    {"barrier.arrive", "one side of a pair: tests/driver/core.c"},
    {"bar.arrive", "one side of a pair: tests/driver/core.c"},
    {"fence", "tests/driver/hopper.c runs them as text"},
    {"isspacep", "the spaces of a window: integer.h as text"},
    {"cvta", "the spaces of a window: integer.h as text"},
    {"mapa.u64", "tests/driver/hopper.c runs them as text"},
    {"getctarank", "tests/driver/hopper.c runs them as text"},
    {"prefetch%m.tensormap", "tests/driver/hopper.c runs them as text"},
    {"alloca", "tests/driver/calls.c"},
    {"stacksave", "tests/driver/calls.c"},
    {"stackrestore", "tests/driver/calls.c"},
    {"ldu", "integer.h as text"},
    {"ld", "b128 and 32 bytes at once: integer.h as text"},
    {"st", "b128 and 32 bytes at once: integer.h as text"},
    {"atom", "b128: integer.h as text"},
    {"mov", "b128: integer.h as text"},
    {"redux", "of floats: tests/driver/forms.c as text"},
    {"discard", "leaves memory undefined"},
    {"createpolicy", "a hint: no result to compare"},
    {"trap", "ends the context"},
    {"brkpt", "ends the context"},
    {"exit", "random_programs.c"},
};

static void test_rows(void) {
    unsigned run = 0, left = 0;
    char text[160];
    for (unsigned r = 0; r < PTX__ROW_COUNT; r++) {
        const ptx__row *row = &ptx__rows[r];
        size_t i, n = sizeof reasons / sizeof *reasons;
        run += row_run[r];
        if (row_run[r]) continue;
        for (i = 0; i < n; i++)
            if (!strncmp(row->name, reasons[i][0], strlen(reasons[i][0]))
                && (reasons[i][0][strlen(reasons[i][0]) - 1] == '.'
                    || strchr(".%", row->name[strlen(reasons[i][0])])))
                break; /* strchr finds the end too */
        left++;
        snprintf(text, sizeof text, "%s %s", row->name, row->sig);
        CHECK_MORE(i < n, text);
    }
    printf("note: %u rows of the table run, %u left out by name, with a reason each\n", run, left);
}

int main(void) {
    setenv("PTXSIM_DEVICE", "sm_100", 0);
    if (!open_driver()) return 1;
    start_random();
    random_state = seed_state;
    open_bridge();
    test_table();
    test_interface();
    test_wmma();
    if (capability >= 100 && !of_gpu) test_rows();
    free(forms);
    free(entries);
    return check_end();
}
