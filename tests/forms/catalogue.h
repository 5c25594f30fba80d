/* catalogue.h - every instruction of the builder's table that makes one value of others, with all choices of
 * type and modifiers that the builder takes, and the evaluator of each. Include it behind the builder's
 * implementation. */
#ifndef CATALOGUE_H
#define CATALOGUE_H
#include "bridge.h"

enum { MOST = 12000 };

typedef struct shot {
    uint16_t row;
    uint8_t type, src, results, sources;
    ptx_mods mods;
    char name[100];
    bridged b;
} shot;
static shot *shots;
static unsigned shot_count, refused_by_builder, lacking, without;
static char without_name[160]; /* the first form without an evaluator */
static bool of_gpu;            /* not the CPU driver: it has no .u2 and rounds f32x2 to nearest only */

static bool in_scope(const ptx__row *row) {
    if (ptx__allowed(row) >> 63 || !strcmp(row->sig, "t={4c}u")) return !(ptx__allowed(row) >> 63);
    const char *equals = strchr(row->sig, '=');
    return equals != row->sig && equals[1] && !strpbrk(row->sig, "mskbrlgoanvOFGMd{[!q")
           && strncmp(row->name, "mapa", 4) && strncmp(row->name, "getctarank", 10)
           && strncmp(row->name, "movmatrix", 9);
}

static unsigned source_count(const ptx__row *row) {
    unsigned n = 0;
    if (strchr(row->sig, '{')) return 5;
    for (const char *s = strchr(row->sig, '=') + 1; *s; s++) n++;
    return n;
}

static ptx_val of_letter(ptx_kernel *k, ptx_val in, char letter, int n) {
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
static char letter_of(const shot *s, char slot) {
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

static void emit_shot(ptx_kernel *k, const shot *s, const ptx_val *v, unsigned n, ptx_val *out) {
    ptx_opn(k, (ptx_op_id)ptx__rows[s->row].op, s->mods, (ptx_type)s->type, (ptx_type)s->src, n, v,
            s->results, out);
}

/* Whether the builder takes it, and what it then prints. */
static bool try_shot(ptx_module *m, shot *s) {
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

static bool seen_before(const shot *s) {
    for (unsigned i = shot_count; i-- > 0;)
        if (!strcmp(shots[i].name, s->name) && shots[i].results == s->results
            && shots[i].sources == s->sources)
            return true;
    return false;
}

static void one_shot(ptx_module *m, const shot *wanted) {
    shot s = *wanted;
    int at = 0;
    if (!try_shot(m, &s) || seen_before(&s)) return;
    if (strcmp(ptx__rows[s.row].sig, "*_|p=tttip") == 0 && s.results == 2) return;
    while (look_up(s.name, s.sources, s.results, at, &s.b)) {
        if (shot_count < MOST) shots[shot_count++] = s;
        at++;
    }
    if (at) return;
    if (!without++)
        snprintf(without_name, sizeof without_name, "%s, %u sources, %u results", s.name, s.sources,
                 s.results);
}

/* Every choice of modifiers that exclude nothing. */
static void each_choice(ptx_module *m, shot *s, const ptx__row *row, unsigned bit) {
    for (; bit < 62; bit++) {
        ptx_mods one = (ptx_mods)1 << bit;
        if (!(ptx__allowed(row) >> bit & 1)) continue;
        if (!ptx__conflict(s->mods | one | (ptx__allowed(row) & PTX__FAMILY))) {
            shot with = *s;
            with.mods |= one | (ptx__allowed(row) & PTX__FAMILY);
            each_choice(m, &with, row, bit + 1);
        }
    }
    /* A chain of carries is more than one instruction: test_carries. */
    if (s->mods & PTX_CC & ~PTX__FAMILY) return;
    if (!of_gpu && s->type == PTX_F32X2 && s->mods & (PTX_RZ | PTX_RM | PTX_RP) & ~PTX__FAMILY) return;
    for (s->results = 1; s->results <= 2; s->results++) {
        if (s->results == 2 && !strpbrk(row->sig, "|?")) break;
        one_shot(m, s);
    }
}

static void collect(ptx_module *m) {
    shots = calloc(MOST, sizeof *shots);
    for (unsigned r = 0; shots && r < PTX__ROW_COUNT; r++) {
        const ptx__row *row = &ptx__rows[r];
        if (!in_scope(row) || row->op == PTX_ADDC || row->op == PTX_SUBC || row->op == PTX_MADC) continue;
        for (unsigned t = 0; t < PTX__TYPE_COUNT; t++) {
            if (ptx__types_of(row) ? !(ptx__types_of(row) >> t & 1) : t != 0) continue;
            if (!of_gpu && (t == PTX_U2 || t == PTX_S2)) continue;
            for (unsigned c = 0; c < PTX__TYPE_COUNT; c++) {
                if (ptx__sources_of(row) ? !(ptx__sources_of(row) >> c & 1) : c != 0) continue;
                shot s;
                memset(&s, 0, sizeof s);
                s.row = (uint16_t)r;
                s.type = (uint8_t)t;
                s.src = (uint8_t)c;
                each_choice(m, &s, row, 0);
            }
        }
    }
}

#endif
