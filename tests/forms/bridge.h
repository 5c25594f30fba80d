/* bridge.h - from an instruction as the builder prints it to its evaluator in integer.h, float.h and
 * convert.h.
 *
 * Those name their forms by text: "add.rn.ftz.f32 D, A, B;". An instruction is looked up by the parts of its
 * name, in any order but that of its types, and by its number of sources. What they write only once for
 * several instructions - the types of set, the third operand of setp, the untyped shifts - is varied here. */
#ifndef BRIDGE_H
#define BRIDGE_H
#include "cases.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "integer.h"
#include "float.h"
#include "convert.h"

typedef struct bridged {
    form f;
    char args[5][8]; /* A, B, !C or a number: the sources in order */
    int arg_count;
    int wanted;   /* which result: 0 or 1 */
    int logic;    /* 1 and, 2 or, 3 xor with the last predicate */
    uint64_t one; /* of set */
} bridged;

/* --- what the tables of the CPU driver's test do not have -------------------------------------- */

static uint64_t eval_slct(const form *p, const uint64_t *v) /* op 0: by an s32, 1: by an f32 */
{
    bool first = p->op == 0 ? !(v[2] >> 31) : v[2] <= 0x7f800000 || v[2] == 0x80000000;
    if (p->flags & FTZ && v[2] > 0x80000000 && v[2] < 0x80800000) first = true;
    return first ? v[0] : v[1];
}

static uint64_t eval_copy(const form *p, const uint64_t *v) {
    (void)p;
    return v[0];
}

/* The coarse ones of f64: a relative error of 2^-17 would be a wrong one. */
static bool roughly(const form *p, const uint64_t *v, uint64_t have, uint64_t want) {
    (void)want;
    uint64_t a = p->flags & FTZ ? flushed(&F64, v[0]) : v[0];
    if ((a >> 32 & 0xfffff) == 0) a = a >> 32 << 32; /* only the upper half is read */
    double x = double_of(&F64, a), h = double_of(&F64, have), r = p->op ? 1 / sqrt(x) : 1 / x;
    if ((x != 0 && fabs(x) < ldexp(1, -1000)) || fabs(x) > ldexp(1, 1000)) return true; /* may be flushed */
    if (isnan(r)) return get(&F64, have).kind == NAN_;
    if (isinf(r) || r == 0) return h == r;
    return fabs(h - r) <= fabs(r) * ldexp(1, -17);
}

/* rsqrt.approx.f64 is refined: one ulp, subnormals too. */
static bool one_ulp(const form *p, const uint64_t *v, uint64_t have, uint64_t want) {
    (void)p, (void)want;
    double r = (double)(1 / sqrtl((long double)double_of(&F64, v[0])));
    if (isnan(r)) return get(&F64, have).kind == NAN_;
    uint64_t bits;
    memcpy(&bits, &r, 8);
    return isinf(r) ? have == bits : have - bits + 1 <= 2;
}

static uint64_t eval_never(const form *p, const uint64_t *v) {
    (void)p;
    return ~v[0];
}

static uint64_t eval_two_bits(const form *p, const uint64_t *v) {
    uint64_t a = (uint64_t)clamp128((int32_t)v[0], 2, p->s) & 3,
             b = (uint64_t)clamp128((int32_t)v[1], 2, p->s) & 3;
    return W(v[2] << 4 | a << 2 | b);
}

static void bridge_forms(void) {
    static const char letters[] = "hwx";
    for (int w = 0; w < 3; w++) {
        char sig[8] = {letters[w], ':', letters[w], 0};
        add_form(sig, eval_copy, "mov.b%d D, A;", 16 << w);
        for (int k = 0; k < 3; k++) {
            char three[8] = {letters[w], ':', letters[w], letters[w], k ? 'f' : 'w', 0};
            form *p = add_form(three, eval_slct, "slct%s.b%d.%s D, A, B, C;", k == 2 ? ".ftz" : "", 16 << w,
                               k ? "f32" : "s32");
            p->op = k != 0;
            p->flags = k == 2 ? FTZ : 0;
        }
    }
    static const char *const rough[] = {"rcp.approx.ftz.f64", "rsqrt.approx.f64", "rsqrt.approx.ftz.f64"};
    for (int k = 0; k < 3; k++) {
        form *p = add_form("g:g", eval_never, "%s D, A;", rough[k]);
        p->op = k > 0;
        p->flags = k != 1 ? FTZ : 0;
        p->good = k == 1 ? one_ulp : roughly;
    }
    for (int i = 0; i < 8; i++) /* to an integer: .sat says what is so anyway */
        for (int mode = 0; mode < 4; mode++)
            for (int ftz = 0; ftz < 2; ftz++) {
                char sig[8] = {integers[i].letter, ':', 'f', 0};
                form *p = add_form(sig, eval_to_integer, "cvt.%si.%s.%s.f32 D, A;", roundings[mode],
                                   ftz ? "ftz" : "sat", integers[i].name);
                p->f = &F32;
                p->bits = integers[i].bits;
                p->s = integers[i].s;
                p->mode = mode;
                p->flags = ftz ? FTZ : 0;
            }
    for (int flags = 0; flags < 8; flags++) { /* those of f32 that the table there leaves out */
        static const char *const whole[] = {"", ".rni", ".rzi", ".rpi"};
        form *p = add_form("f:f", eval_floats, "cvt%s%s%s.f32.f32 D, A;", whole[flags >> 1], ".ftz",
                           flags & 1 ? ".sat" : "");
        p->f = p->g = &F32;
        p->flags = FTZ | (flags & 1 ? SAT : 0);
        p->mode = flags >> 1 == 1 ? RN : flags >> 1 == 2 ? RZ : RP;
        p->op = flags > 1;
    }
    static const char *const directed[] = {".rz", ".rm", ".rp"};
    for (int k = 0; k < 12; k++) {
        int mode = k % 3, sat = k / 3 % 2, half = k / 6;
        form *p = add_form(half ? "k:f" : "f:g", eval_floats, "cvt%s.ftz%s.%s D, A;", directed[mode],
                           sat ? ".sat" : "", half ? "f16.f32" : "f32.f64");
        p->f = half ? &F16 : &F32;
        p->g = half ? &F32 : &F64;
        p->mode = mode == 0 ? RZ : mode == 1 ? RM : RP;
        p->flags = FTZ | (sat ? SAT : 0);
    }
    static const char *const ops[] = {"add", "sub", "mul", "fma"};
    for (int k = 0; k < 24; k++)
        float_form('q',
                   k / 6 == 3   ? O_FMA
                   : k / 6 == 2 ? O_MUL
                   : k / 6      ? O_SUB
                                : O_ADD,
                   1 + k % 3, k / 3 % 2, ops[k / 6], "f32x2", k / 6 == 3 ? "A, B, C" : "A, B");
    for (int k = 0; k < 4; k++)
        float_form(k & 1 ? 'K' : 'k', k & 2 ? O_ABS : O_NEG, 4, FTZ, k & 2 ? "abs" : "neg",
                   k & 1 ? "f16x2" : "f16", "A");
    for (int s = 0; s < 2; s++)
        add_form("w:www", eval_two_bits, "cvt.pack.sat.%c2.s32.b32 D, A, B, C;", s ? 's' : 'u')->s = s;
    form *p = add_form("f:f", eval_floats, "cvt.sat.f32.f32 D, A;");
    p->f = p->g = &F32;
    p->flags = SAT;
}

/* --- the key ---------------------------------------------------------------------------------- */

static bool names_a_type(const char *part) {
    if (!strcmp(part, "pred")) return true;
    if (strchr("bsuf", part[0]) && part[1] >= '0' && part[1] <= '9')
        return strcmp(part, "f4e") && strcmp(part, "b4e");
    return !strncmp(part, "bf16", 4) || !strncmp(part, "tf32", 4) || !strncmp(part, "ue8m0", 5)
           || (part[0] == 'e' && part[1] >= '0' && part[1] <= '9');
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* "setp.lt.and.u32" of 3 sources: the key "setp lt :u32/2", logic 1, the types. */
static void make_key(const char *mnemonic, int sources, char key[160], int *logic, char types[3][12]) {
    char copy[128], *parts[16], *sorted[16], *save = NULL;
    int n = 0, m = 0, t = 0;
    snprintf(copy, sizeof copy, "%s", mnemonic);
    for (char *s = strtok_r(copy, ".", &save); s && n < 16; s = strtok_r(NULL, ".", &save)) parts[n++] = s;
    if (!n) parts[n++] = copy;
    bool compares = !strcmp(parts[0], "setp") || !strcmp(parts[0], "set");
    *logic = 0;
    types[0][0] = types[1][0] = types[2][0] = 0;
    for (int k = 1; k < n; k++) {
        if (names_a_type(parts[k]) && t < 3)
            snprintf(types[t++], 12, "%s", parts[k]);
        else if (compares
                 && (!strcmp(parts[k], "and") || !strcmp(parts[k], "or") || !strcmp(parts[k], "xor")))
            *logic = parts[k][0] == 'a' ? 1 : parts[k][0] == 'o' ? 2 : 3;
        else
            sorted[m++] = parts[k];
    }
    qsort(sorted, (size_t)m, sizeof *sorted, by_text);
    bool shift = !strcmp(parts[0], "shr") && types[0][0] == 'b';
    char *to = key + sprintf(key, "%s", parts[0]);
    for (int k = 0; k < m; k++) to += sprintf(to, " %s", sorted[k]);
    for (int k = parts[0][3] == 0 && !strcmp(parts[0], "set"); k < t; k++)
        to += sprintf(to, ":%s%s", shift ? "u" : "", types[k] + shift);
    sprintf(to, "/%d", sources - (*logic != 0));
}

/* Takes "add.u32 D, A, B;" apart; false for what is more than one instruction. */
static bool take_apart(const char *text, char mnemonic[128], bridged *b, char *result) {
    const char *end = strchr(text, ';'), *p = strchr(text, ' ');
    int n = 0;
    if (!end || end[1] || !p || *text == '{' || p - text > 120) return false;
    memcpy(mnemonic, text, (size_t)(p - text));
    mnemonic[p - text] = 0;
    for (p++; p < end; n++) {
        char token[24];
        size_t length = strcspn(p, " ,;{}");
        if (!length) {
            p++;
            n--;
            continue;
        }
        if (length > 20) return false;
        memcpy(token, p, length);
        token[length] = 0;
        p += length;
        if (n == 0)
            strcpy(result, strchr(token, '.') ? "" : token);
        else if (n > 5 || length > 7 || strchr("[P%", token[0]) || strchr(token, '.')
                 || (*token == '-' && token[1] > '9'))
            return false;
        else
            strcpy(b->args[n - 1], token);
    }
    b->arg_count = n - 1;
    return n > 1 && *result;
}

static struct entry {
    char key[160];
    int form;
} * entries;
static int entry_count;

static void index_forms(void) {
    entries = calloc((size_t)form_count, sizeof *entries);
    for (int k = 0; entries && k < form_count; k++) {
        char mnemonic[128], result[24], types[3][12];
        bridged b;
        int logic;
        if (!take_apart(forms[k].text, mnemonic, &b, result)) continue;
        make_key(mnemonic, b.arg_count, entries[entry_count].key, &logic, types);
        entries[entry_count++].form = k;
    }
}

static void open_bridge(void) {
    forms = calloc(MAX_FORMS, sizeof *forms);
    if (!forms) exit(2);
    integer_forms();
    float_forms();
    conversion_forms();
    bridge_forms();
    index_forms();
}

/* The video instructions without selectors: "vadd2.u32.s32.u32.sat". */
static bool look_up_video(const char *mnemonic, int sources, bridged *b) {
    static const char *const names[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax",
                                        "vshl", "vshr", "vset",     "vavrg"};
    size_t n = strspn(mnemonic, "abcdefghijklmnopqrstuvwxyz");
    const char *rest = mnemonic + n;
    memset(b, 0, sizeof *b);
    for (int k = 0; k < sources; k++) b->args[k][0] = "ABC"[k];
    b->arg_count = sources;
    strcpy(b->f.sig, "w:www");
    b->f.sig[2 + sources] = 0;
    snprintf(b->f.text, sizeof b->f.text, "%s", mnemonic);
    bool sat = strstr(rest, ".sat") != NULL, po = strstr(rest, ".po") != NULL;
    if (!strncmp(mnemonic, "vmad.", 5)) {
        b->f.eval = eval_vmad;
        b->f.s = mnemonic[9] == 's';
        b->f.s2 = mnemonic[13] == 's';
        b->f.flags = sat + 2 * po;
        b->f.mode = strstr(rest, ".shr7") ? 7 : strstr(rest, ".shr15") ? 15 : 0;
        return true;
    }
    for (int op = 0; op < 9; op++) {
        if (strncmp(mnemonic, names[op], n) || names[op][n]) continue;
        if (video_count == sizeof video_forms / sizeof *video_forms) return false;
        video_form *f = &video_forms[video_count];
        char types[3];
        int t = 0;
        memset(f, 0, sizeof *f);
        f->op = op;
        f->lanes = *rest == '2' ? 2 : *rest == '4' ? 4 : 1;
        for (const char *c = rest; t < 3 && (c = strstr(c, "32.")) != NULL; c++) types[t++] = c[-1];
        if (t < 3 && !strcmp(rest + strlen(rest) - 2, "32")) types[t++] = rest[strlen(rest) - 3];
        f->d = op != VSET && types[0] == 's';
        f->a = types[op != VSET] == 's';
        f->b = types[op != VSET ? 2 : 1] == 's';
        f->sat = sat;
        f->wrap = strstr(rest, ".wrap") != NULL;
        f->second = strstr(rest, ".add") ? 1 : f->lanes == 1 && sources > 2 ? 1 : 0;
        f->ds = f->as = f->bs = "";
        for (int k = 0; k < 6; k++)
            if (op == VSET && strstr(rest, relations[k])) f->relation = k;
        b->f.eval = eval_video;
        b->f.op = video_count++;
        return true;
    }
    return false;
}

/* The at-th way to evaluate an instruction with so many sources and results; false: there is none. */
static bool look_up(const char *mnemonic, int sources, int results, int at, bridged *b) {
    char key[160], types[3][12], own[128], result[24], dummy[3][12];
    int logic, own_logic;
    if (*mnemonic == 'v') return at == 0 && look_up_video(mnemonic, sources, b);
    make_key(mnemonic, sources, key, &logic, types);
    for (int k = 0; k < entry_count; k++) {
        if (strcmp(entries[k].key, key)) continue;
        const form *p = &forms[entries[k].form];
        memset(b, 0, sizeof *b);
        take_apart(p->text, own, b, result);
        make_key(own, b->arg_count, key, &own_logic, dummy);
        b->f = *p;
        b->wanted = strchr(result, '|') && result[strlen(result) - 1] == 'D';
        bool compares = p->eval == eval_setp || p->eval == eval_float_setp,
             lop = !strncmp(mnemonic, "lop3", 4);
        if (results == 1 && compares && p->mode) { /* the first predicate by itself */
            b->f.mode = 0;
            b->wanted = 0;
        } else if (!lop && strchr(result, '|') == NULL && results == 2) {
            if (!compares) continue;
        }
        if (lop && results == 2 && !strchr(result, '|')) continue;
        if (lop && results == 1) b->wanted = 0;
        if (p->eval == eval_setp || p->eval == eval_set) b->f.flags = 0;
        if (p->eval == eval_set) b->f.g = !strcmp(types[0], "f32") ? &F32 : NULL;
        if (p->eval == eval_float_set) {
            b->f.s = strchr("bf", types[0][0]) != NULL;
            b->f.g = !strcmp(types[0], "f32") ? NULL : p->f;
            b->f.bits2 = strstr(types[0], "16") || p->bits == 2 ? 16 : 32;
            b->f.sig[0] = !strcmp(types[0] + 1, "16") || !strcmp(types[0], "bf16") ? 'h' : 'w';
        }
        if (p->eval == eval_set) b->f.sig[0] = 'w';
        if (compares || p->eval == eval_set || p->eval == eval_float_set) {
            b->logic = logic;
            b->one = !strcmp(types[0], "f32") ? 0x3f800000 : 0xffffffff;
            if (p->eval == eval_float_set && b->f.g && b->f.s) b->one = one_of(b->f.g);
            else if (p->eval == eval_float_set && b->f.bits2 == 16)
                b->one = 0xffff;
            b->arg_count = 2 + (logic != 0);
            strcpy(b->args[2], "C");
            b->f.sig[4] = logic ? 'p' : 0;
            b->f.sig[5] = 0;
        }
        if (at-- == 0) return true;
        make_key(mnemonic, sources, key, &logic, types);
    }
    return false;
}

static uint64_t evaluated(const bridged *b, const uint64_t *v) {
    uint64_t r = b->f.eval(&b->f, v);
    if (!b->logic) return r;
    bool two = b->f.eval == eval_float_set && b->f.bits == 2, c = v[2]; /* each half by itself */
    uint64_t all = 0;
    for (int half = 0; half <= two; half++) {
        bool t = two ? r >> 16 * half & 0xffff : r != 0;
        t = b->logic == 1 ? t && c : b->logic == 2 ? t || c : t != c;
        if (t) all |= (b->f.sig[0] == 'p' ? 1 : b->one) << 16 * half;
    }
    return all;
}

#endif
