/* test_run_forms.c - every form of the table that computes one value from others: emitted by the builder, run on
 * the driver, compared with an evaluation in integers (tests/forms) on edge values and random ones; then the
 * rest of the interface, run and not only assembled.
 *
 * Forms are enumerated from the table: a row that neither has an evaluator nor is run below must stand in
 * `reasons` at the end. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "kerneltest.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "forms/bridge.h"

static unsigned char row_run[PTX__ROW_COUNT];

/* Which rows the module used. */
static void mark_rows(const ptx_module *m)
{
    for (uint32_t i = 0; i < m->forms.count; i++) row_run[m->forms.at[i].row - ptx__rows] = 1;
}

static ptx_module *new_module(void)
{
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = capability == 90 || capability == 100 || capability == 103 || capability == 120
                      ? PTX_SM_A(capability)
                      : PTX_SM(capability);
    return ptx_module_new(&desc);
}

/* --- one value of others ---------------------------------------------------------------------- */

enum { TRIED = 256, EACH = 100, MOST = 12000 };

typedef struct shot {
    uint16_t row;
    uint8_t type, src, results, sources;
    ptx_mods mods;
    char name[100];
    bridged b;
} shot;
static shot *shots;
static unsigned shot_count, refused_by_builder, lacking;

static bool in_scope(const ptx__row *row)
{
    if (row->allow >> 63 || !strcmp(row->sig, "t={4c}u")) return !(row->allow >> 63);
    const char *equals = strchr(row->sig, '=');
    return equals != row->sig && equals[1] && !strpbrk(row->sig, "mskbrlgoanvOFGMd{[!q")
           && strncmp(row->name, "mapa", 4) && strncmp(row->name, "getctarank", 10)
           && strncmp(row->name, "movmatrix", 9);
}

static unsigned source_count(const ptx__row *row)
{
    unsigned n = 0;
    if (strchr(row->sig, '{')) return 5;
    for (const char *s = strchr(row->sig, '=') + 1; *s; s++) n++;
    return n;
}

static ptx_val of_letter(ptx_kernel *k, ptx_val in, char letter, int n)
{
    ptx_val v = in;
    ptx_mem at = ptx_at(in, 8 * n);
    switch (letter) {
    case 'p': v = ptx_ld(k, PTX_U32, at); return ptx_setp(k, PTX_NE, v, ptx_imm(0));
    case 'c': {
        ptx_val two[2];
        v = ptx_ld(k, PTX_B16, at);
        ptx_unpack(k, PTX_E2M1X2, 2, v, two);
        return two[0];
    }
    default:
        return ptx_ld(k, width_of(letter) == 16 ? PTX_B16 : width_of(letter) == 32 ? PTX_B32 : PTX_B64, at);
    }
}

/* The letter of an operand as a slot of the row has it, where no evaluator says more. */
static char letter_of(const shot *s, char slot)
{
    unsigned type = slot == 'c' ? s->src : s->type;
    if (slot == 'p') return 'p';
    if (slot == 'u' || slot == 'x' || slot == 'f' || slot == 'S' || slot == 'y') return 'w';
    if (slot == 'z') return 'x';
    if (slot == 'h') return 'h';
    unsigned bits = ptx__types[type].bits * (slot == 'w' ? 2u : 1u);
    if (type == PTX_PRED) return 'p';
    if (type == PTX_E2M1X2) return 'c';
    if (ptx__types[type].kind != 'x' && bits == 8) return 'w';
    return bits == 16 ? 'h' : bits == 64 ? 'x' : 'w';
}

static void emit_shot(ptx_kernel *k, const shot *s, const ptx_val *v, unsigned n, ptx_val *out)
{
    ptx_opn(k, (ptx_op_id)ptx__rows[s->row].op, s->mods, (ptx_type)s->type, (ptx_type)s->src, n, v, s->results,
            out);
}

/* Whether the builder takes it, and what it then prints. */
static bool try_shot(ptx_module *m, shot *s)
{
    const ptx__row *row = &ptx__rows[s->row];
    ptx_val v[8], out[4];
    unsigned n = 0;
    ptx_module_reset(m);
    ptx_kernel *k = ptx_entry(m, "k");
    ptx_val in = ptx_param_ptr(k, "in", PTX_GLOBAL);
    for (const char *slot = strchr(row->sig, '=') + 1; *slot && n < 8; slot++) {
        if (*slot == '{') {
            for (int c = 0; c < 4; c++) v[n++] = of_letter(k, in, 'w', c);
            slot += 3;
        } else if (*slot == 'i')
            v[n++] = ptx_imm(0x96);
        else {
            v[n] = of_letter(k, in, letter_of(s, *slot), (int)n);
            n++;
        }
    }
    if (ptx_get_error(m)->code) {
        CHECK_MORE(0, ptx_get_error(m)->message);
        return false;
    }
    emit_shot(k, s, v, n, out);
    ptx_code code = ptx_get_error(m)->code;
    if (code) {
        if (code == PTX_E_TARGET || code == PTX_E_VERSION)
            lacking++;
        else
            refused_by_builder++;
        return false;
    }
    const ptx__form *f = &m->forms.at[m->forms.count - 1];
    for (uint32_t i = 0; i < m->forms.count; i++) /* it may be one of those that made its operands */
        if (m->forms.at[i].row->op == row->op && m->forms.at[i].asked == s->mods
            && !strncmp(m->chars.at + m->forms.at[i].text, row->name, strcspn(row->name, "%")))
            f = &m->forms.at[i];
    snprintf(s->name, sizeof s->name, "%.*s", (int)f->text_length, m->chars.at + f->text);
    s->name[strcspn(s->name, " ")] = 0;
    s->sources = (uint8_t)n;
    if (f->row != row) s->row = (uint16_t)(f->row - ptx__rows);
    return true;
}

static bool seen_before(const shot *s)
{
    for (unsigned i = shot_count; i-- > 0;)
        if (!strcmp(shots[i].name, s->name) && shots[i].results == s->results && shots[i].sources == s->sources)
            return true;
    return false;
}

static unsigned without;

static void one_shot(ptx_module *m, const shot *wanted)
{
    shot s = *wanted;
    int at = 0;
    if (!try_shot(m, &s) || seen_before(&s)) return;
    if (strcmp(ptx__rows[s.row].sig, "*_|p=tttip") == 0 && s.results == 2) return;
    while (look_up(s.name, s.sources, s.results, at, &s.b)) {
        if (shot_count < MOST) shots[shot_count++] = s;
        at++;
    }
    if (at) return;
    without++;
    if (!CHECK_MORE(0, "a form without an evaluator")) printf("  %s, %u sources, %u results\n", s.name, s.sources, s.results);
}

/* Every choice of modifiers that exclude nothing. */
static void each_choice(ptx_module *m, shot *s, const ptx__row *row, unsigned bit)
{
    for (; bit < 62; bit++) {
        ptx_mods one = (ptx_mods)1 << bit;
        if (!(row->allow >> bit & 1)) continue;
        if (!ptx__conflict(s->mods | one | (row->allow & PTX__FAMILY))) {
            shot with = *s;
            with.mods |= one | (row->allow & PTX__FAMILY);
            each_choice(m, &with, row, bit + 1);
        }
    }
    /* A chain of carries is more than one instruction: test_carries. */
    if (s->mods & PTX_CC & ~PTX__FAMILY) return;
    for (s->results = 1; s->results <= 2; s->results++) {
        if (s->results == 2 && !strpbrk(row->sig, "|?")) break;
        one_shot(m, s);
    }
}

static void collect(void)
{
    ptx_module *m = new_module();
    shots = calloc(MOST, sizeof *shots);
    for (unsigned r = 0; shots && r < PTX__ROW_COUNT; r++) {
        const ptx__row *row = &ptx__rows[r];
        if (!in_scope(row) || row->op == PTX_ADDC || row->op == PTX_SUBC || row->op == PTX_MADC) continue;
        for (unsigned t = 0; t < PTX__TYPE_COUNT; t++) {
            if (row->types ? !(row->types >> t & 1) : t != 0) continue;
            for (unsigned c = 0; c < PTX__TYPE_COUNT; c++) {
                if (row->src ? !(row->src >> c & 1) : c != 0) continue;
                shot s;
                memset(&s, 0, sizeof s);
                s.row = (uint16_t)r;
                s.type = (uint8_t)t;
                s.src = (uint8_t)c;
                each_choice(m, &s, row, 0);
            }
        }
    }
    CHECK(shot_count < MOST);
    ptx_module_free(m);
}

static void shot_kernel(ptx_module *m, const shot *s, unsigned n)
{
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
            v[i] = ptx_imm(strtoll(a, NULL, 0));
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

static uint64_t values[TRIED][INPUTS], have[TRIED];

static void run_shot(void *module, const shot *s, unsigned n, device_ptr in, device_ptr out)
{
    char name[16], what[200];
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

static void test_table(void)
{
    device_ptr in = upload(NULL, sizeof values), out = upload(NULL, sizeof have);
    collect();
    ptx_module *m = new_module();
    for (unsigned first = 0; first < shot_count; first += EACH) {
        unsigned last = first + EACH < shot_count ? first + EACH : shot_count;
        ptx_module_reset(m);
        for (unsigned i = first; i < last; i++) {
            shot_kernel(m, &shots[i], i);
            if (ptx_get_error(m)->code && !CHECK_MORE(0, shots[i].name)) printf("  %s\n", ptx_get_error(m)->message);
            if (ptx_get_error(m)->code) return;
        }
        const char *text = ptx_text(m, NULL);
        if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) continue;
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

int main(void)
{
    setenv("PTXSIM_DEVICE", "sm_100", 0);
    if (!open_driver()) return 1;
    start_random();
    random_state = seed_state;
    open_bridge();
    test_table();
    free(forms);
    free(entries);
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
