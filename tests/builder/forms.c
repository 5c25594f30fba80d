/* Every instruction form that tests/data/forms.tsv measured: emitted through the builder, refused one target
   and one version below what the table says, and accepted by ptxas for just these. Then what no line of the
   table is: variables, functions, switches, raw text.

     make build/tests/builder/forms      from the repository's root

   It uses ptxas where that is on the PATH. */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ptx_module *m;
static ptx_kernel *k;
static ptx_val of_type[PTX__TYPE_COUNT], w, sh, blk;

static void kernel(const char *name) {
    static const ptx_type types[] = {PTX_B16, PTX_B32, PTX_B64, PTX_U16,  PTX_U32, PTX_U64,   PTX_S16,
                                     PTX_S32, PTX_S64, PTX_F16, PTX_BF16, PTX_F32, PTX_F64};
    size_t i;
    unsigned t;
    ptx_val p, two[2];
    k = ptx_entry(m, name);
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    w = ptx_param(k, "w", PTX_U64);
    blk = ptx_param_bytes(k, "blk", 128, 64);
    sh = ptx_shared(k, "sh", PTX_U64, 256, 128);
    memset(of_type, 0, sizeof of_type);
    for (i = 0; i < sizeof types / sizeof *types; i++) of_type[types[i]] = ptx_ld(k, types[i], ptx_at(p, 0));
    for (t = PTX_F16X2; t < PTX__TYPE_COUNT; t++) { /* the packed ones are other names of the same bits */
        uint32_t bytes = ptx_type_bytes((ptx_type)t);
        ptx_val bits = of_type[bytes == 2 ? PTX_B16 : bytes == 4 ? PTX_B32 : PTX_B64];
        if (bytes == 2 || bytes == 4 || bytes == 8) of_type[t] = ptx_as(bits, (ptx_type)t);
    }
    ptx_unpack(k, PTX_E2M1X2, 2, of_type[PTX_U16], two);
    of_type[PTX_E2M1X2] = two[0];
    of_type[PTX_PRED] = ptx_setp(k, PTX_NE, of_type[PTX_U32], ptx_imm(0));
}
static void need_b128(void) {
    ptx_val two[2];
    two[0] = two[1] = w;
    of_type[PTX_B128] = ptx_pack(k, PTX_B128, 2, two);
}

/* -- a form of the file -- */

typedef struct form {
    char stem[80], family[16], text[3000];
    uint32_t version, min_version;
    const ptx__row *row;
    unsigned type, src, count;
    ptx_mods mods;
    unsigned space;
    char values[200][24]; /* the operands as they stand in the text, results first */
    unsigned values_count, results;
    char target[12], below[12], targets[80];
} form;

#define PARTS 40
/* Parts between dots; "shared::cta" is but another name of "shared". */
static unsigned split(const char *text, char parts[PARTS][48]) {
    unsigned n = 0, used = 0;
    for (; *text && n < PARTS; text++) {
        if (*text == '.') {
            parts[n++][used] = 0;
            used = 0;
        } else if (used < 47)
            parts[n][used++] = *text;
    }
    if (n < PARTS) parts[n++][used] = 0;
    for (used = 0; used < n; used++)
        if (strcmp(parts[used], "shared::cta") == 0) parts[used][6] = 0;
    return n;
}
/* A part with a % in it stands for a number. */
static int same_part(const char *pattern, const char *part) {
    for (; *pattern; pattern++) {
        if (*pattern == '%' && strchr("124hq", pattern[1])) {
            if (*part < '0' || *part > '9') return 0;
            while (*part >= '0' && *part <= '9') part++;
            pattern++;
        } else if (*pattern++ != *part++)
            return 0;
        else
            pattern--;
    }
    return !*part;
}

/* The operands with every value as a dot: "{..}=[.]." of both, without the '='. */
static void shape_of_text(const char *text, char *shape, form *f) {
    f->values_count = 0;
    for (; *text && *text != ';'; text++) {
        if (strchr("{}[]|", *text)) *shape++ = *text;
        else if (*text == '_' && strchr(" ,|}", text[1]) && strchr(" ,{", text[-1]))
            *shape++ = '_';
        else if (!strchr(" ,", *text)) {
            char *value = f->values[f->values_count++];
            size_t n = strcspn(text, " ,;{}[]|");
            sprintf(value, "%.*s", (int)(n < 23 ? n : 23), text);
            *shape++ = *value == '!' || (*value == 'p' && value[1] >= '0' && value[1] <= '9') ? '!' : '.';
            text += n - 1;
        }
    }
    *shape = 0;
}
static unsigned shape_of_program(const char *program, unsigned type, char *shape) {
    unsigned results = 0, seen = 0;
    for (; *program; program++) {
        if (*program == '=') {
            results = seen;
            continue;
        }
        if (strchr("{}[]|_", *program)) *shape++ = *program;
        else if (strchr("mskbrlgoa", *program))
            strcpy(shape, "[.]"), shape += 3, seen++;
        else
            *shape++ = *program == 'p' || (*program == 't' && type == PTX_PRED) ? '!' : '.', seen++;
    }
    *shape = 0;
    return results;
}

static unsigned type_named(const char *name) {
    unsigned t;
    for (t = 1; t < PTX__TYPE_COUNT; t++)
        if (strcmp(ptx__types[t].name, name) == 0) return t;
    return 0;
}

static int own_kind(int op) {
    return op == PTX_LD || op == PTX_ST || op == PTX_ATOMIC || op == PTX_ATOMIC_BITS || op == PTX_ATOMIC_CAS
           || op == PTX_RED || op == PTX_RED_BITS;
}

/* Whether the text is a use of that row; then how. */
static int matches(form *f, const ptx__row *row, const char *mnemonic, const char *shape) {
    static const char *const spaces[] = {"",      "global", "shared",         "local",
                                         "const", "param",  "shared::cluster"};
    static char parts[PARTS][48], fixed[PARTS][48];
    char program[PTX__SIGNATURE_MAX], own[1400], name[300], *out = name;
    const char *p;
    unsigned n, fixed_count, i, j, c, results, sources, pair, vector = 1;
    int placed_type = !strchr(row->name, '%'), has_memory = strchr(row->sig, 'm') != NULL, t_uses = 0,
        s_uses = 0;
    n = split(mnemonic, parts);
    for (p = row->name; *p; p++) {
        if (*p == '%' && strchr("mtsl", p[1])) {
            t_uses += p[1] == 't';
            s_uses += p[1] == 's';
            p++;
        } else
            *out++ = *p;
    }
    *out = 0;
    if (placed_type) t_uses = ptx__types_of(row) != 0, s_uses = ptx__sources_of(row) != 0;
    fixed_count = split(name, fixed);
    for (i = 0; i < fixed_count; i++) {
        for (j = 0; j < n; j++)
            if (*parts[j] && same_part(fixed[i], parts[j])) break;
        if (j == n) return 0;
        parts[j][0] = 0;
    }
    f->mods = 0;
    f->space = 0;
    f->type = f->src = 0;
    for (j = 0; j < n; j++) {
        const char *part = parts[j];
        unsigned bit;
        if (!*part) continue;
        if (own_kind(row->op) && part[0] == 'v' && strchr("248", part[1]) && !part[2]) {
            vector = (unsigned)(part[1] - '0');
            continue;
        }
        for (i = 1; i < 7 && has_memory; i++)
            if (strcmp(part, spaces[i]) == 0) break;
        if (has_memory && i < 7) {
            f->space = i;
            continue;
        }
        for (bit = 0; bit < 62; bit++)
            if (ptx__allowed(row) >> bit & 1 && !(f->mods >> bit & 1) && ptx__mod(ptx__allowed(row), bit).text
                && strcmp(ptx__mod(ptx__allowed(row), bit).text + 1, part) == 0
                && !ptx__conflict(f->mods | (ptx_mods)1 << bit | (ptx__allowed(row) & PTX__FAMILY)))
                break;
        /* the layouts of A and B are one modifier of two parts, and so is xorsign.abs */
        if (ptx__allowed(row) >> 62 & 1 && ptx__allowed(row) & PTX__LAYOUTS & ~PTX__FAMILY && j + 1 < n
            && (strcmp(part, "row") == 0 || strcmp(part, "col") == 0)) {
            f->mods |= (PTX_ROW_ROW & ~PTX__FAMILY) << (2 * (*part == 'c') + (*parts[j + 1] == 'c'))
                       | (PTX_ROW_ROW & PTX__FAMILY);
            parts[j + 1][0] = 0;
            continue;
        }
        if (bit == 62 && strcmp(part, "xorsign") == 0 && ptx__allowed(row) & PTX_XORSIGN_ABS & ~PTX__FAMILY) {
            for (i = 0; i < n; i++)
                if (strcmp(parts[i], "abs") == 0) parts[i][0] = 0;
            f->mods |= PTX_XORSIGN_ABS;
            continue;
        }
        if (bit < 62) {
            f->mods |= (ptx_mods)1 << bit | (ptx__allowed(row) & PTX__FAMILY);
            continue;
        }
        i = type_named(part);
        if (!i) return 0;
        if (t_uses > 0 && (!f->type || f->type == i || s_uses <= 0)) {
            if (f->type && f->type != i) return 0;
            f->type = i;
            t_uses--;
        } else if (s_uses > 0) {
            if (f->src && f->src != i) return 0;
            f->src = i;
            s_uses--;
        } else
            return 0;
    }
    if (t_uses > 0 || s_uses > 0) return 0;
    while (ptx__types_of(row) && !placed_type && !strstr(row->name, "%t") && f->type < PTX__TYPE_COUNT
           && !(ptx__types_of(row) >> f->type & 1))
        f->type++; /* wmma of f16, whose type is not in the name */
    if (ptx__types_of(row) && f->type && ptx__types[f->type].kind != 'm' && row->sig[0] == '*'
        && !(ptx__types_of(row) >> f->type & 1))
        f->type = ptx__as_bits(f->type);
    if (ptx__types_of(row) && !(ptx__types_of(row) >> f->type & 1)) return 0;
    if (ptx__sources_of(row) && !(ptx__sources_of(row) >> f->src & 1)) return 0;
    f->count = vector;
    if (own_kind(row->op)) return vector == 1 || row->op == PTX_LD || row->op == PTX_ST;
    for (c = 1; c <= 128; c++)
        for (pair = 0; pair < 2; pair++) {
            if (!ptx__expand_signature(row->sig, c, (int)pair, program, &results, &sources)) continue;
            f->results = shape_of_program(program, f->type, own);
            if (strcmp(own, shape) == 0) return 1;
        }
    return 0;
}

static ptx_val literal(const char *text, ptx_val otherwise, int f32) {
    char *end;
    if (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) {
        if (strchr(text, '.')) return f32 ? ptx_f32(strtod(text, NULL)) : otherwise;
        return ptx_imm(strtoll(text, &end, 0));
    }
    return otherwise;
}
static ptx_val operand(char letter, const form *f, const char *text, ptx_val memory) {
    size_t i;
    switch (letter) {
    case 't': return literal(text, of_type[ptx__in_register(f->type)], 0);
    case 'w': return of_type[ptx__wider(f->type)];
    case 'c': return of_type[ptx__in_register(f->src)];
    case 'p': return of_type[PTX_PRED];
    case 'u': return literal(text, of_type[PTX_U32], 0);
    case 'S':
    case 'y': return of_type[PTX_S32];
    case 'd': return literal(text, w, 0);
    case 'h': return literal(text, of_type[PTX_U16], 0);
    case 'f': return literal(text, of_type[PTX_F32], 1);
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
        if (ptx__slot_limits[i].letter == letter) {
            /* -1 as a mask is 0xffffffff; a register where one may stand */
            if (strcmp(text, "0xffffffff") == 0) return ptx_imm(-1);
            if (letter == 'F' || letter == 'G') return literal(text, ptx_uniform(k, of_type[PTX_U32]), 0);
            return literal(text, of_type[PTX_U32], 0);
        }
    return sh;
}

/* Emit a form that a row matched. */
static void emit(const form *f) {
    ptx_val v[160], out[160];
    static ptx_var vars[160];
    ptx_val memory = f->space == PTX_SHARED           ? sh
                     : f->space == PTX_PARAM          ? blk
                     : f->space == PTX_SHARED_CLUSTER ? ptx_ptr(sh, PTX_SHARED_CLUSTER)
                     : f->space                       ? ptx_ptr(w, (ptx_space)f->space)
                                                      : w;
    ptx_mem mem = ptx_at(memory, 0);
    ptx_mods what = f->mods & (PTX__ATOM | PTX_NOFTZ) & ~PTX__FAMILY, rest = f->mods & ~what;
    char program[PTX__SIGNATURE_MAX], own[1400], shape[3100];
    const char *slot;
    unsigned n = 0, c, pair, results, sources, i;
    static form copy;
    if (strstr(f->row->sig, "q") || f->type == PTX_B128) need_b128();
    if (own_kind(f->row->op)) {
        if (f->mods & PTX_L2_CACHE_HINT & ~PTX__FAMILY) mem = ptx_cached(mem, w);
        for (i = 0; i < 8; i++) v[i] = of_type[ptx__in_register(f->type)];
        if (f->row->op == PTX_LD)
            ptx_ld_vec(k, (ptx_type)f->type, f->count, ptx_with(mem, f->mods), out);
        else if (f->row->op == PTX_ST)
            ptx_st_vec(k, (ptx_type)f->type, f->count, ptx_with(mem, f->mods), v);
        else if (f->row->op == PTX_ATOMIC_CAS)
            ptx_atom_cas(k, ptx_with(mem, rest), v[0], v[0]);
        else if (f->row->op == PTX_RED || f->row->op == PTX_RED_BITS)
            ptx_red(k, what | (PTX__M(0) & ~(ptx_mods)1), ptx_with(mem, rest), v[0]);
        else
            ptx_atom(k, what | (PTX__M(0) & ~(ptx_mods)1), ptx_with(mem, rest), v[0]);
        return;
    }
    copy = *f;
    shape_of_text(f->text + strcspn(f->text, " ;"), shape, &copy);
    for (c = 1; c <= 128; c++)
        for (pair = 0; pair < 2; pair++) {
            if (!ptx__expand_signature(f->row->sig, c, (int)pair, program, &results, &sources)) continue;
            shape_of_program(program, f->type, own);
            if (strcmp(own, shape) == 0) goto found;
        }
    return;
found:
    i = results;
    for (slot = strchr(program, '=') + 1; *slot; slot++)
        if (!strchr("{}[]|_", *slot)) v[n++] = operand(*slot, f, f->values[i++], memory);
    if (f->row->op == PTX_ADDC || f->row->op == PTX_SUBC || f->row->op == PTX_MADC)
        ptx_add_cc(k, of_type[PTX_U32], of_type[PTX_U32]);
    if (f->row->op == PTX_SETMAXNREG_INC || f->row->op == PTX_SETMAXNREG_DEC) ptx_max_registers(k, 128);
    if (*f->row->sig == '!') {
        for (i = 0; i < results; i++) vars[i] = ptx_var_new(k, of_type[PTX_B32]);
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        ptx_wgmma(k, (ptx_op_id)f->row->op, f->mods, (ptx_type)f->type, (ptx_type)f->src, results, vars, n,
                  v);
    } else
        ptx_opn(k, (ptx_op_id)f->row->op, f->mods, (ptx_type)f->type, (ptx_type)f->src, n, v, results, out);
}

/* -- the file -- */

static const uint32_t versions[] = {63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80,
                                    81, 82, 83, 84, 85, 86, 87, 88, 90};
static const uint32_t chips[] = {75, 80, 86, 89, 90, 100, 103, 110, 120};

static uint32_t lowest_version(const char *target) {
    size_t i;
    for (i = 0; i < sizeof ptx__chips / sizeof *ptx__chips; i++)
        if (ptx__chip_target(&ptx__chips[i]) == ptx_target_parse(target)) return ptx__chips[i].version;
    return 0;
}
/* "90+" or "100a,100f": the first target, and the one below. */
static void targets_of(form *f) {
    unsigned number = (unsigned)strtoul(f->targets, NULL, 10), i;
    if (strchr(f->targets, '+')) {
        if (number < 75) number = 75;
        (void)snprintf(f->target, sizeof f->target, "%u", number);
        f->below[0] = 0;
        for (i = 1; i < sizeof chips / sizeof *chips; i++)
            if (chips[i] == number) (void)snprintf(f->below, sizeof f->below, "%u", chips[i - 1]);
    } else {
        size_t n = strcspn(f->targets, ",");
        memcpy(f->target, f->targets, n < 7 ? n : 7);
        sprintf(f->below, "%u", number % 1000u);
    }
    if (f->version < lowest_version(f->target)) f->version = lowest_version(f->target);
}

static int begin(const char *target, uint32_t cap) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = ptx_target_parse(target);
    desc.max_version = cap;
    m = ptx_module_new(&desc);
    kernel("k");
    return m != NULL;
}

/* What is left out, and why. */
static const struct {
    const char *instruction, *reason;
} left_out[] = {
    {"mad.rn.f32", "fma.rn.f32 is the same instruction"},
    {"setp.lo.u32", "setp.lt.u32 is the same instruction"},
    {"ld.global.u32 r0, [d0].unified", ".unified changes nothing"},
    {"ld.param::entry", "ld.param is the same instruction"},
    {"isspacep.param::entry", "isspacep.param is the same instruction"},
    {"cvta.param::entry", "cvta.param is the same instruction"},
    {"ld.shared::cta", ".shared is the same space"},
    {"ldmatrix.sync.aligned.m8n8.x4.shared::cta", ".shared is the same space"},
    {"st.async.weak", ".weak is what it is without"},
    {"atom.global.add.u32 _", "red.global.add.u32 is the same instruction"},
    {"barrier.cta.", "barrier is the same instruction"},
    {"bar.cta.", "bar is the same instruction"}};

static int is_left_out(const char *text) {
    size_t i;
    for (i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strncmp(text, left_out[i].instruction, strlen(left_out[i].instruction)) == 0) return 1;
    return 0;
}

static form forms[800];
static size_t form_count, covered, skipped;

static void read_forms(void) {
    FILE *in = fopen("tests/data/forms.tsv", "r");
    char line[3400];
    CHECK(in != NULL);
    if (!in) return;
    if (!fgets(line, sizeof line, in)) line[0] = 0;
    while (fgets(line, sizeof line, in) && form_count < sizeof forms / sizeof *forms) {
        form *f = &forms[form_count];
        char version[16];
        if (sscanf(line, "%79[^\t]\t%15[^\t]\t%15[^\t]\t%79[^\t]\t%2999[^\n]", f->stem, f->family, version,
                   f->targets, f->text)
            != 5)
            continue;
        f->min_version = f->version = (uint32_t)(10 * (version[0] - '0') + version[2] - '0');
        targets_of(f);
        form_count++;
    }
    fclose(in);
}

static void below(form *f) {
    size_t i;
    if (f->below[0] && begin(f->below, 0)) {
        emit(f);
        CHECK_AT(ptx_get_error(m)->code == PTX_E_TARGET
                   || (ptx_get_error(m)->code == PTX_E_VECTOR && strstr(ptx_get_error(m)->message, "sm_")),
               __LINE__, "refused one target below",
               ptx_get_error(m)->code ? ptx_get_error(m)->message : f->text);
        ptx_module_free(m);
    }
    for (i = 1; i < sizeof versions / sizeof *versions; i++)
        if (versions[i] == f->version) {
            begin(f->target, versions[i - 1]);
            emit(f);
            CHECK_AT(ptx_get_error(m)->code == PTX_E_VERSION, __LINE__, "refused one version below",
                   ptx_get_error(m)->code ? ptx_get_error(m)->message : f->text);
            ptx_module_free(m);
        }
}

static int run_ptxas(const char *name, const char *target) {
    char command[800], line[300];
    int status;
    sprintf(command, "ptxas -O0 -arch=sm_%s %.200s.ptx -o %.200s.cubin >%.200s.log 2>&1", target, name, name,
            name);
    status = system(command);
    if (status) {
        FILE *log;
        sprintf(line, "%.200s.log", name);
        log = fopen(line, "r");
        while (log && fgets(line, sizeof line, log)) {
            const char *at = strstr(line, "line ");
            printf("  sm_%s: %s", target, line);
            if (at) {
                long number = strtol(at + 5, NULL, 10);
                char path[300], text[2000];
                FILE *in;
                sprintf(path, "%.200s.ptx", name);
                in = fopen(path, "r");
                while (in && number > 0 && fgets(text, sizeof text, in)) number--;
                if (in) printf("    %.160s\n", text), fclose(in);
            }
        }
        if (log) fclose(log);
    }
    sprintf(line, "%.200s.log", name), remove(line);
    sprintf(line, "%.200s.cubin", name), remove(line);
    return status == 0;
}
static int assemble(const char *base, const char *text, const char *target) {
    char name[300];
    FILE *out;
    int ok;
    sprintf(name, "%.200s_forms.ptx", base);
    out = fopen(name, "w");
    if (!out) return 0;
    fputs(text, out);
    fclose(out);
    sprintf(name, "%.200s_forms", base);
    ok = run_ptxas(name, target);
    if (!getenv("KEEP")) strcat(name, ".ptx"), remove(name);
    return ok;
}

/* All forms of one target and version in one module, a kernel each. */
static void together(int have_ptxas, const char *base) {
    size_t i, j;
    static char done[800];
    for (i = 0; i < form_count; i++) {
        ptx_module_desc desc;
        const char *text;
        char *at;
        if (done[i] || !forms[i].row) continue;
        memset(&desc, 0, sizeof desc);
        desc.target = ptx_target_parse(forms[i].target);
        desc.max_version = forms[i].version;
        m = ptx_module_new(&desc);
        for (j = i; j < form_count; j++) {
            char name[32];
            if (!forms[j].row || forms[j].version != forms[i].version
                || strcmp(forms[j].target, forms[i].target))
                continue;
            done[j] = 1;
            sprintf(name, "k%u", (unsigned)j);
            kernel(name);
            emit(&forms[j]);
            ptx_ret(k);
        }
        text = ptx_text(m, NULL);
        CHECK_MORE(text != NULL, ptx_get_error(m)->message);
        if (text && have_ptxas) {
            char version[24];
            sprintf(version, ".version %u.%u\n", forms[i].version / 10, forms[i].version % 10);
            at = (char *)malloc(strlen(text) + 32);
            if (at) {
                sprintf(at, "%s%s", version, strchr(text, '\n') + 1);
                CHECK_AT(assemble(base, at, forms[i].target), __LINE__, "ptxas accepts the forms", version);
                free(at);
            }
        }
        ptx_module_free(m);
    }
}

/* "mov.u32 r0, %laneid;" */
static void special_register(const form *f) {
    unsigned i, down;
    char name[48];
    sprintf(name, "%.*s", (int)strcspn(strchr(f->text, '%'), ";"), strchr(f->text, '%'));
    for (i = 0; i < PTX__SPECIAL_COUNT && strcmp(ptx__specials[i].name, name) != 0;) i++;
    CHECK_AT(i < PTX__SPECIAL_COUNT, __LINE__, "special register", name);
    if (i == PTX__SPECIAL_COUNT) return;
    covered++;
    for (down = 0; down < 2; down++) {
        if (down && !f->below[0]) break;
        begin(down ? f->below : f->target, down ? 0 : f->version);
        ptx_sreg(k, (ptx_special)i);
        CHECK_AT(ptx_get_error(m)->code == (down ? PTX_E_TARGET : PTX_E_NONE), __LINE__, name,
               ptx_get_error(m)->message);
        ptx_module_free(m);
    }
}

/* Rows that are no instruction of the table: what in the builder makes them, tested below; or why not. */
static const struct {
    const char *stem;
    int made;
    const char *how;
} others[] = {
    {"190", 1, "ptx_var_new, ptx_mov"},
    {"191", 1, "ptx_var_new, ptx_mov"},
    {"192", 0, "a constant predicate has no use"},
    {"193", 1, "ptx_pack"},
    {"194", 1, "ptx_unpack"},
    {"195", 0, "ptx_unpack; a part that nobody reads costs nothing"},
    {"196", 1, "ptx_pack"},
    {"197", 1, "ptx_unpack"},
    {"198", 1, "ptx_pack of e2m1x2"},
    {"199", 1, "ptx_pack of e2m1x2"},
    {"200", 1, "ptx_pack"},
    {"201", 1, "ptx_unpack"},
    {"202", 1, "ptx_shared"},
    {"203", 1, "ptx_address"},
    {"204", 0, "ptx_at adds the offset where it is used"},
    {"205", 1, "ptx_cvta of a parameter block"},
    {"206", 1, "ptx_cvta"},
    {"233", 1, "ptx_cvt"},
    {"724", 0, "bra; .uni is only a hint"},
    {"725", 1, "ptx_guard, ptx_bra"},
    {"726", 1, "ptx_guard, ptx_set"},
    {"728", 1, "ptx_call"},
    {"729", 1, "ptx_call_indirect"},
    {"735", 1, "ptx_pragma"},
    {"736", 1, "ptx_pragma"},
    {"737", 1, "comments = 2"},
    {"739", 1, "ptx_raw"},
    {"740", 1, "ptx_local"},
    {"741", 1, "ptx_shared"},
    {"742", 1, "ptx_launch_bounds"},
    {"743", 0, "ptx_launch_bounds: only the product counts"},
    {"744", 1, "ptx_require_block"},
    {"745", 1, "ptx_launch_bounds"},
    {"746", 1, "ptx_max_registers"},
    {"748", 1, "ptx_require_cluster"},
    {"749", 0, "implied by .reqnctapercluster"},
    {"750", 1, "ptx_max_cluster"},
    {"751", 1, "ptx_blocks_are_clusters"},
    {"752", 1, "ptx_noreturn"},
    {"753", 0, "register conventions are for compilers"},
    {"754", 1, "ptx_pragma"},
    {"755", 1, "ptx_pragma"},
    {"756", 1, "ptx_shared_dynamic"},
    {"757", 1, "ptx_variable"},
    {"758", 1, "ptx_variable"},
    {"759", 1, "ptx_point"},
    {"760", 0, "bytes of an address: no use in a module made at run time"},
    {"761", 0, "linking: one module is one unit here"},
    {"762", 0, "linking: one module is one unit here"},
    {"763", 0, "managed memory comes from the host"},
    {"765", 0, "linking: one module is one unit here"},
    {"766", 0, "ptx_param_ptr gives the space by cvta"},
    {"767", 1, "ptx_param_bytes"},
    {"768", 1, "ptx_param_bytes"},
    {"769", 1, "ptx_param_bytes"},
    {"771", 1, "ptx_param_bytes, ptx_cvta"},
    {"772", 0, "textures are by 64-bit handle"},
    {"773", 0, "textures are by 64-bit handle"},
    {"774", 0, "debug sections are for compilers"},
    {"775", 0, "ptx_call passes in .param space"},
    {"776", 0, "a declaration without a use; printf is ptx_printf"},
    {"777", 1, "ptx_printf"},
    {"778", 0, "labels are made by the builder"}};
static size_t made_by_hand, not_made;

static int by_hand_or_left_out(const form *f) {
    size_t i;
    for (i = 0; i < sizeof others / sizeof *others; i++)
        if (strncmp(f->stem, others[i].stem, 3) == 0) break;
    if (i < sizeof others / sizeof *others) {
        if (others[i].made) made_by_hand++;
        else
            not_made++;
    }
    return i < sizeof others / sizeof *others;
}

/* The instruction just recorded has the parts of that mnemonic, in any order. */
static int same_mnemonic(const char *mnemonic) {
    static char a[PARTS][48], b[PARTS][48];
    const ptx__form *used = &m->forms.at[k->ins.at[k->ins.count - 1].form];
    char text[400];
    unsigned i, j, n, left;
    sprintf(text, "%.*s", (int)used->text_length, m->chars.at + used->text);
    n = split(text, a);
    left = split(mnemonic, b);
    if (n != left) return 0;
    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++)
            if (strcmp(a[i], b[j]) == 0
                || (*used->row->sig == '*' && type_named(a[i])
                    && type_named(a[i]) == ptx__as_bits(type_named(b[j])))) /* selp.f32 is selp.b32 */
                break;
        if (j == n) return 0;
        strcpy(b[j], "-");
    }
    return 1;
}

static void all_forms(int have_ptxas, const char *base) {
    size_t i, r;
    char shape[3100];
    read_forms();
    CHECK(form_count > 700);
    for (i = 0; i < form_count; i++) {
        form *f = &forms[i];
        size_t n = strcspn(f->text, " ;");
        char mnemonic[300];
        const ptx__row *first = NULL;
        if (strcmp(f->family, "mov") == 0 && strchr(f->text, '%')) {
            special_register(f);
            continue;
        }
        if (by_hand_or_left_out(f)) continue;
        if (is_left_out(f->text)) {
            skipped++;
            continue;
        }
        sprintf(mnemonic, "%.*s", (int)(n < 299 ? n : 299), f->text);
        shape_of_text(f->text + n, shape, f);
        for (r = 0; r < PTX__ROW_COUNT && !f->row; r++) {
            const ptx__row *row = &ptx__rows[r];
            if (!matches(f, row, mnemonic, shape)) continue;
            first = row;
            f->row = row;
            begin(f->target, f->version);
            emit(f);
            if (ptx_get_error(m)->code || !same_mnemonic(mnemonic)) f->row = NULL;
            ptx_module_free(m);
        }
        if (CHECK_AT(f->row != NULL, __LINE__, "a row of the table gives", f->text)) {
            covered++;
            below(f);
        } else {
            if (first) {
                f->row = first;
                matches(f, first, mnemonic, shape);
                begin(f->target, f->version);
                emit(f);
                printf("    %s\n", ptx_get_error(m)->message);
                ptx_module_free(m);
                f->row = NULL;
            }
        }
    }
    together(have_ptxas, base);
    CHECK(covered + made_by_hand + not_made + skipped == form_count);
    printf("%lu forms: %lu through the table, %lu made by other functions, %lu left out for a reason\n",
           (unsigned long)form_count, (unsigned long)covered, (unsigned long)made_by_hand,
           (unsigned long)(skipped + not_made));
}

/* -- what is no line of the table -- */

static char *texts[200];
static char text_targets[200][8];
static unsigned text_count;

static void open_module(const char *target, uint32_t cap) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = ptx_target_parse(target);
    desc.max_version = cap;
    m = ptx_module_new(&desc);
}
/* The module prints, its text has these pieces (separated by a newline), and is kept for ptxas. */
static void prints_(int line, const char *target, const char *pieces) {
    const char *text = ptx_text(m, NULL);
    char piece[400];
    CHECK_AT(text != NULL, line, "prints", ptx_get_error(m)->message);
    while (text && *pieces) {
        size_t n = strcspn(pieces, "\n");
        sprintf(piece, "%.*s", (int)(n < 399 ? n : 399), pieces);
        CHECK_AT(strstr(text, piece) != NULL, line, piece, text);
        pieces += n + (pieces[n] == '\n');
    }
    if (text && text_count < 200) {
        texts[text_count] = (char *)malloc(strlen(text) + 1);
        if (texts[text_count]) strcpy(texts[text_count], text);
        sprintf(text_targets[text_count++], "%.7s", target);
    }
    ptx_module_free(m);
}
#define PRINTS(target, pieces) prints_(__LINE__, target, pieces)
static void wrong_(int line, ptx_code code, const char *words) {
    const char *text = ptx_text(m, NULL);
    CHECK_AT(text == NULL && ptx_get_error(m)->code == code
               && strstr(ptx_get_error(m)->message, words),
           line, words, ptx_get_error(m)->message);
    ptx_module_free(m);
}
#define WRONG(code, words) wrong_(__LINE__, code, words)

static void variables(void) {
    static const float table[4] = {1, 2, 3, 4};
    static const char bytes[5] = {1, 2, 3, 4, 5};
    ptx_variable_desc v;
    ptx_symbol t, p, b;
    ptx_val x;
    memset(&v, 0, sizeof v);
    open_module("75", 0);
    v.name = "tab", v.space = PTX_CONST, v.type = PTX_F32, v.count = 4, v.data = table;
    t = ptx_variable(m, &v);
    v.name = "raw", v.space = PTX_GLOBAL, v.type = PTX_U8, v.count = 5, v.data = bytes, v.align = 16;
    v.exported = 1;
    b = ptx_variable(m, &v);
    v.name = "list", v.type = PTX_U64, v.count = 3, v.data = NULL, v.align = 0;
    p = ptx_variable(m, &v);
    ptx_point(m, p, 1, b, 0);
    ptx_point(m, p, 2, b, 4);
    k = ptx_entry(m, "k");
    x = ptx_ld(k, PTX_F32, ptx_at(ptx_address(k, t), 8));
    ptx_st(k, PTX_F32, ptx_at(ptx_address(k, p), 0), x);
    ptx_ret(k);
    PRINTS("75", ".const .align 4 .b32 tab[4] = {1065353216,1073741824,1077936128,1082130432};\n"
                 ".visible .global .align 16 .b8 raw[5] = {1,2,3,4,5};\n"
                 "list[3] = {0,generic(raw),generic(raw)+4};\nld.const.f32 %r0, [%d0+8]");
    open_module("75", 0);
    v.name = "big", v.space = PTX_CONST, v.type = PTX_U32, v.count = 16385;
    ptx_variable(m, &v);
    WRONG(PTX_E_CONST_LIMIT, "big");
    open_module("75", 0);
    v.count = 16384;
    ptx_variable(m, &v);
    k = ptx_entry(m, "k"), ptx_ret(k);
    PRINTS("75", ".b32 big[16384]");
    open_module("75", 0);
    ptx_variable(m, &v), ptx_variable(m, &v);
    WRONG(PTX_E_NAME_TAKEN, "big");
    open_module("75", 0);
    k = ptx_entry(m, "k");
    ptx_address(k, t);
    WRONG(PTX_E_FOREIGN, "variable");
    open_module("75", 0);
    k = ptx_entry(m, "k");
    x = ptx_local(k, "scratch", PTX_U32, 16, 16);
    ptx_st(k, PTX_U32, ptx_at(x, 60), ptx_imm(7));
    ptx_st(k, PTX_U32, ptx_at(ptx_cvta(k, x), 0), ptx_imm(8));
    ptx_ret(k);
    PRINTS("75", ".local .align 16 .b8 scratch[64];\nst.local.u32 [%d0+60], 7\ncvta.local.u64");
    open_module("75", 0);
    k = ptx_entry(m, "k");
    ptx_ld(k, PTX_U64, ptx_at(ptx_local(k, "scratch", PTX_U32, 16, 4), 4));
    WRONG(PTX_E_ALIGN, "8 bytes");
}

static void functions(void) {
    ptx_kernel *square, *nothing, *last;
    ptx_val x, args[3], address;
    open_module("75", 0);
    square = ptx_func(m, "square", PTX_F32);
    x = ptx_param(square, "x", PTX_F32);
    x = ptx_mul(square, x, x);
    ptx_return(square, x);
    nothing = ptx_func(m, "nothing", PTX_NONE);
    ptx_param(nothing, "a", PTX_F16), ptx_param(nothing, "b", PTX_U64), ptx_param(nothing, "c", PTX_S32);
    ptx_ret(nothing);
    k = ptx_entry(m, "k");
    args[0] = ptx_param(k, "x", PTX_F32);
    x = ptx_call(k, square, 1, args);
    CHECK(ptx_type_of(x) == PTX_F32);
    args[0] = ptx_f16(1), args[1] = ptx_imm(2), args[2] = ptx_imm(-3);
    ptx_call(k, nothing, 3, args);
    address = ptx_func_address(k, square);
    x = ptx_call_indirect(k, address, PTX_F32, 1, &x);
    args[0] = x, args[1] = ptx_imm(4), args[2] = ptx_u64(5);
    ptx_printf(k, "%f %d %llu\n", 3, args);
    ptx_printf(k, "none\n", 0, NULL);
    ptx_ret(k);
    CHECK(ptx_entry_count(m) == 1);
    PRINTS("75", ".func (.param .b32 square$result) square(.param .b32 x);\n.func nothing(\n"
                 "call.uni ($r), square, ($a0);\nst.param.b32 [square$result], %r\n.callprototype\nvprintf");
    open_module("75", 0);
    square = ptx_func(m, "square", PTX_F32), ptx_return(square, ptx_f32(1));
    k = ptx_entry(m, "k"), x = ptx_param(k, "x", PTX_U32);
    ptx_call(k, square, 1, &x);
    WRONG(PTX_E_ARGUMENT, "takes 0 arguments, 1 given");
    open_module("75", 0);
    square = ptx_func(m, "square", PTX_F32), ptx_param(square, "x", PTX_F32), ptx_return(square, ptx_f32(1));
    k = ptx_entry(m, "k"), x = ptx_param(k, "x", PTX_U32);
    ptx_call(k, square, 1, &x);
    WRONG(PTX_E_TYPE, "argument 1");
    open_module("75", 0);
    k = ptx_entry(m, "k"), ptx_return(k, ptx_f32(1));
    WRONG(PTX_E_ARGUMENT, "ptx_ret");
    open_module("75", 0);
    square = ptx_func(m, "square", PTX_F32), ptx_return(square, ptx_u32(1));
    WRONG(PTX_E_TYPE, "ptx_return");
    open_module("75", 0);
    square = ptx_func(m, "f", PTX_NONE), ptx_call(square, square, 0, NULL);
    WRONG(PTX_E_RECURSION, "calls itself");
    open_module("75", 0);
    last = ptx_func(m, "die", PTX_NONE);
    ptx_noreturn(last), ptx_trap(last), ptx_exit(last);
    k = ptx_entry(m, "k"), ptx_call(k, last, 0, NULL), ptx_ret(k);
    PRINTS("75", "die() .noreturn");
    open_module("75", 0);
    ptx_func(m, "f", PTX_NONE);
    WRONG(PTX_E_EMPTY, "no kernel");
}

static void switches(void) {
    ptx_val i, p;
    ptx_var v;
    int round;
    for (round = 0; round < 3; round++) { /* with a default, without one, with cases missing */
        open_module("75", 0);
        k = ptx_entry(m, "k");
        p = ptx_param_ptr(k, "p", PTX_GLOBAL), i = ptx_param(k, "i", PTX_U32);
        v = ptx_var_new(k, ptx_u32(0));
        ptx_switch(k, i, 3);
        ptx_case(k, 0), ptx_set(k, v, ptx_imm(10));
        ptx_case(k, 2), ptx_set(k, v, ptx_imm(30));
        if (round == 0) ptx_case(k, 1), ptx_st(k, PTX_U32, ptx_at(p, 4), i);
        if (round != 1) ptx_default(k), ptx_set(k, v, ptx_imm(40));
        ptx_end(k);
        ptx_st(k, PTX_U32, ptx_at(p, 0), ptx_get(k, v));
        ptx_ret(k);
        PRINTS("75", ".branchtargets $L\nbrx.idx %r");
    }
    open_module("75", 0);
    k = ptx_entry(m, "k"), i = ptx_param(k, "i", PTX_U32);
    ptx_switch(k, i, 2), ptx_case(k, 0), p = ptx_add(k, i, i), ptx_end(k), ptx_add(k, p, i), ptx_ret(k);
    WRONG(PTX_E_UNDEFINED, "every path");
    open_module("75", 0);
    k = ptx_entry(m, "k"), i = ptx_param(k, "i", PTX_U32);
    ptx_switch(k, i, 2), ptx_case(k, 2);
    WRONG(PTX_E_SCOPE, "case 2");
    open_module("75", 0);
    k = ptx_entry(m, "k"), i = ptx_param(k, "i", PTX_U32);
    ptx_switch(k, i, 2), ptx_case(k, 1), ptx_case(k, 1);
    WRONG(PTX_E_LABEL, "already");
    open_module("75", 0);
    k = ptx_entry(m, "k"), i = ptx_param(k, "i", PTX_U32);
    ptx_switch(k, i, 2), ptx_ret(k);
    WRONG(PTX_E_SCOPE, "not closed");
}

static void raw(void) {
    ptx_val x, out[2], v[2];
    ptx_type types[2] = {PTX_U32, PTX_U32};
    open_module("75", 0);
    k = ptx_entry(m, "k"), x = ptx_param(k, "x", PTX_U32);
    v[0] = x, v[1] = ptx_imm(5);
    ptx_raw(k, "{ .reg .u32 t; add.u32 t, $1, $2; mov.u32 $0, t; } // 1$$", 2, v, 1, types, out);
    CHECK(ptx_type_of(out[0]) == PTX_U32);
    ptx_add(k, out[0], x);
    ptx_pragma(k, "nounroll");
    ptx_ret(k);
    PRINTS("75", "{ .reg .u32 t; add.u32 t, %r0, 5; mov.u32 %r1, t; } // 1$\n.pragma \"nounroll\";");
    open_module("75", 0);
    k = ptx_entry(m, "k");
    ptx_raw(k, "mov.u32 $1, 5;", 0, NULL, 1, types, out);
    WRONG(PTX_E_ARGUMENT, "$1");
    open_module("75", 0);
    k = ptx_entry(m, "k"), x = ptx_param(k, "x", PTX_U32);
    ptx_if(k, ptx_setp(k, PTX_LT, x, ptx_imm(3)));
    ptx_raw(k, "mov.u32 $0, 5;", 0, NULL, 1, types, out);
    ptx_end(k);
    ptx_raw(k, "st.global.u32 [$0], $1;", 1, out, 0, NULL, NULL);
    WRONG(PTX_E_ARGUMENT, "$1");
    open_module("75", 0);
    k = ptx_entry(m, "k"), x = ptx_param(k, "x", PTX_U32);
    ptx_if(k, ptx_setp(k, PTX_LT, x, ptx_imm(3)));
    ptx_raw(k, "mov.u32 $0, 5;", 0, NULL, 1, types, out);
    ptx_end(k);
    ptx_raw(k, "add.u32 $0, $1, 1;", 1, out, 1, types, out + 1), ptx_ret(k);
    WRONG(PTX_E_UNDEFINED, "every path");
    open_module("75", 0);
    k = ptx_entry(m, "k");
    memset(v, 0, sizeof v);
    ptx_raw(k, "add.u32 $0, $1, 1;", 1, v, 1, types, out);
    WRONG(PTX_E_HANDLE, "no value");
}

static void directives(void) {
    open_module("75", 0);
    k = ptx_entry(m, "k"), ptx_require_block(k, 16, 16, 4), ptx_max_registers(k, 64), ptx_ret(k);
    PRINTS("75", ".reqntid 16, 16, 4\n.maxnreg 64");
    open_module("90", 0);
    k = ptx_entry(m, "k"), ptx_require_cluster(k, 2, 1, 1), ptx_ret(k);
    PRINTS("90", ".reqnctapercluster 2, 1, 1");
    open_module("90", 0);
    k = ptx_entry(m, "k"), ptx_max_cluster(k, 8), ptx_ret(k);
    PRINTS("90", ".maxclusterrank 8");
    open_module("90", 0);
    k = ptx_entry(m, "k"), ptx_blocks_are_clusters(k), ptx_require_block(k, 128, 1, 1);
    ptx_require_cluster(k, 2, 1, 1), ptx_ret(k);
    CHECK(ptx_version(m) == 90);
    PRINTS("90", ".blocksareclusters");
    open_module("80", 0), k = ptx_entry(m, "k"), ptx_require_cluster(k, 2, 1, 1);
    WRONG(PTX_E_TARGET, "sm_90");
    open_module("90", 0), k = ptx_entry(m, "k"), ptx_require_cluster(k, 17, 1, 1);
    WRONG(PTX_E_LAUNCH_LIMIT, "cluster");
    open_module("90", 0), k = ptx_entry(m, "k"), ptx_require_block(k, 64, 32, 1);
    WRONG(PTX_E_LAUNCH_LIMIT, "1024");
    open_module("90", 0), k = ptx_entry(m, "k"), ptx_max_registers(k, 300);
    WRONG(PTX_E_LAUNCH_LIMIT, "255");
    open_module("90", 80), k = ptx_entry(m, "k"), ptx_blocks_are_clusters(k);
    WRONG(PTX_E_VERSION, "9.0");
    open_module("75", 0), k = ptx_entry(m, "k"), ptx_sreg(k, PTX_CLUSTERID_X);
    WRONG(PTX_E_TARGET, "%clusterid.x needs sm_90");
    {
        ptx_module_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.comments = 2;
        m = ptx_module_new(&desc);
        k = ptx_entry(m, "k"), ptx_ret(k);
        PRINTS("75", "\t.loc 1 \n.file 1 \"");
    }
}

static void special_registers(void) {
    static const char *const targets[] = {"75", "90"};
    unsigned t, i;
    for (t = 0; t < 2; t++) {
        open_module(targets[t], 0);
        k = ptx_entry(m, "k");
        for (i = 0; i < PTX__SPECIAL_COUNT; i++)
            if (ptx__specials[i].sm <= ptx_target_parse(targets[t])) ptx_sreg(k, (ptx_special)i);
        ptx_ret(k);
        PRINTS(targets[t], "%laneid");
    }
}

static void moves(void) {
    ptx_val out[4], q;
    begin("75", 83);
    need_b128();
    ptx_unpack(k, PTX_B64, 2, of_type[PTX_B128], out);
    q = ptx_pack(k, PTX_B128, 2, out);
    ptx_st(k, PTX_B128, ptx_at(ptx_ptr(w, PTX_GLOBAL), 0), q);
    ptx_unpack(k, PTX_U16, 4, w, out), ptx_pack(k, PTX_U64, 4, out);
    ptx_unpack(k, PTX_E2M1X2, 4, of_type[PTX_U32], out), ptx_pack(k, PTX_U32, 4, out);
    ptx_unpack(k, PTX_E2M1X2, 2, of_type[PTX_U16], out), ptx_pack(k, PTX_U16, 2, out);
    ptx_pragma(k, "used_bytes_mask 0x0fff");
    ptx_ret(k);
    PRINTS("75", "mov.b128 {%d\nmov.b128 %q\nmov.b16 {%e\nst.global.b128 [%d");
    begin("75", 82), need_b128();
    WRONG(PTX_E_VERSION, "8.3");
}

/* The everyday names of what is new, and the checks of their operands. */
static void everyday(void) {
    ptx_val bar, tile, out[4], a[4], b[2], c[4], d[4], x, desc[2], w64, state, g, q;
    ptx_var sums[4];
    uint32_t count[4], i;
    begin("90a", 0);
    x = of_type[PTX_U32], w64 = w, g = ptx_ptr(w, PTX_GLOBAL);
    bar = ptx_shared(k, "bar", PTX_U64, 2, 8), tile = ptx_shared(k, "tile", PTX_B8, 4096, 128);
    ptx_mbarrier_init(k, bar, ptx_imm(1));
    ptx_mbarrier_init(k, ptx_off(bar, 8), x);
    ptx_mbarrier_arrive_expect(k, bar, ptx_imm(4096));
    ptx_bulk_load(k, tile, g, ptx_imm(4096), bar);
    ptx_cp_async_16(k, tile, ptx_off(g, 32)), ptx_cp_async_16_zfill(k, tile, g, x);
    ptx_cp_async(k, ptx_off(tile, 4), g, ptx_imm(4));
    ptx_cp_async_commit(k), ptx_cp_async_wait(k, 0), ptx_cp_async_wait_all(k);
    state = ptx_mbarrier_arrive(k, bar);
    ptx_mbarrier_test_wait(k, bar, state), ptx_mbarrier_try_wait(k, bar, ptx_imm(0));
    ptx_ldmatrix(k, 4, tile, a), ptx_ldmatrix_trans(k, 2, ptx_off(tile, 16), b);
    for (i = 0; i < 4; i++) c[i] = ptx_f32(0), c[i] = ptx_mov(k, c[i]);
    CHECK(ptx_mma_shape(PTX_MMA_M16N8K16_F32, PTX_F16, count) && count[0] == 4 && count[1] == 4
          && count[2] == 2 && count[3] == 4);
    CHECK(ptx_mma_shape(PTX_MMA_M16N8K16_F32, PTX_E4M3, count) && count[1] == 2 && count[2] == 1);
    CHECK(!ptx_mma_shape(PTX_MMA_M16N8K16_F32, PTX_S8, count) && !ptx_mma_shape(PTX_ADD, PTX_F32, count));
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, d, a, b, c);
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_BF16, PTX_BF16, d, a, b, d);
    CHECK(ptx_type_of(d[3]) == PTX_F32);
    for (i = 0; i < 4; i++) sums[i] = ptx_var_new(k, ptx_f32(0));
    desc[0] = ptx_wgmma_descriptor(k, tile, 128, 256, 128), desc[1] = desc[0];
    {
        ptx_val o[7];
        o[0] = desc[0], o[1] = desc[1], o[2] = of_type[PTX_PRED], o[3] = o[4] = ptx_imm(1);
        o[5] = o[6] = ptx_imm(0);
        ptx_op0(k, PTX_WGMMA_FENCE, 0);
        ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
        ptx_wgmma_f32(k, PTX_F16, PTX_F16, 4, sums, desc[0], desc[1], of_type[PTX_PRED]);
        ptx_wgmma_f32(k, PTX_TF32, PTX_TF32, 4, sums, desc[0], desc[1], of_type[PTX_PRED]);
        ptx_wgmma_f32(k, PTX_E4M3, PTX_E5M2, 4, sums, desc[0], desc[1], of_type[PTX_PRED]);
        ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0), ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, ptx_imm(0));
    }
    {
        ptx_ring ring = ptx_ring_new(k, 3);
        ptx_val map = ptx_cvta(k, blk), y = of_type[PTX_S32];
        ptx_mbarrier_wait(k, bar, ptx_get(k, ring.parity));
        ptx_tensor_load_2d(k, tile, map, ptx_get(k, ring.stage), y, bar);
        ptx_tensor_store_2d(k, map, y, y, tile);
        ptx_ring_next(k, ring);
    }
    x = ptx_mapa(k, tile, ptx_imm(1)), ptx_ld(k, PTX_U32, ptx_at(x, 4));
    ptx_cluster_arrive(k), ptx_cluster_wait(k);
    q = ptx_elect(k, ptx_imm(-1)), ptx_guard(k, q), ptx_mbarrier_inval(k, bar);
    ptx_st(k, PTX_U32, ptx_cached(ptx_at(g, 0), ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST)), ptx_imm(1));
    ptx_ballot(k, q, ptx_imm(-1)), ptx_activemask(k), ptx_bar_warp_sync(k, ptx_imm(-1));
    a[0] = ptx_add_cc(k, of_type[PTX_U32], of_type[PTX_U32]);
    ptx_addc(k, a[0], ptx_imm(0));
    CHECK(ptx_type_of(ptx_dp4a(k, of_type[PTX_S32], of_type[PTX_U32], of_type[PTX_S32])) == PTX_S32);
    ptx_cvta(k, tile), ptx_cvta(k, blk), ptx_cvta_to(k, PTX_SHARED, w64);
    {
        ptx_val src[2];
        src[0] = of_type[PTX_U32], src[1] = ptx_imm(3);
        ptx_opn(k, PTX_SETP, PTX_LT, PTX_NONE, PTX_NONE, 2, src, 2, out);
        CHECK(ptx_type_of(out[1]) == PTX_PRED);
    }
    ptx_ret(k);
    PRINTS("90a", "mbarrier.init.shared.b64 [%r\nm64n8k8.f32.tf32.tf32 {\nm64n8k32.f32.e4m3.e5m2 {\n"
                  "mbarrier.try_wait.parity.shared::cta.b64 %p\nxor.b32 %r\nselp.b32 %r\n"
                  "ld.shared::cluster.u32 %r\n.L2::cache_hint.u32 [%d");
    begin("90a", 0), ptx_ring_new(k, 0), WRONG(PTX_E_ARGUMENT, "at least one stage");
    begin("90a", 0), ptx_op0(k, PTX_WGMMA_F32, 0), WRONG(PTX_E_ARGUMENT, "own kind: call ptx_wgmma [");
    begin("75", 0), ptx_op0(k, PTX_RAW, 0), WRONG(PTX_E_ARGUMENT, "own kind: call ptx_raw [");
    begin("75", 0), ptx_local(k, "l", PTX_U32, 0, 4), WRONG(PTX_E_ARGUMENT, " local memory of 0 elements");
    begin("75", 0), ptx_shared(k, "s", PTX_U32, 1, 3), WRONG(PTX_E_ARGUMENT, " shared memory of 1 elements");
    begin("90a", 0), ptx_mbarrier_wait(k, w, ptx_imm(0)), WRONG(PTX_E_ADDRESS, "shared space");
    begin("75", 0), ptx_op1(k, PTX_MBARRIER_INVAL, 0, sh), WRONG(PTX_E_TARGET, "sm_80");
    begin("90", 0), ptx_op0(k, PTX_WGMMA_FENCE, 0), WRONG(PTX_E_TARGET, "needs sm_90a, the target is sm_90");
    begin("90", 0), ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0), WRONG(PTX_E_TARGET, "one of sm_100a");
    begin("90", 0), ptx_mbarrier_init(k, w, ptx_imm(1)),
        WRONG(PTX_E_ADDRESS, "shared space, this is in generic");
    begin("90", 0), ptx_mbarrier_init(k, ptx_off(sh, 4), ptx_imm(1)), WRONG(PTX_E_ALIGN, "8 bytes");
    begin("90", 0), ptx_mbarrier_init(k, sh, ptx_imm(0)), WRONG(PTX_E_RANGE, "1 to 2^20 - 1");
    begin("90", 0), ptx_mbarrier_init(k, ptx_off(sh, 1ll << 40), ptx_imm(1)), WRONG(PTX_E_RANGE, "24 bits");
    begin("90", 0), ptx_bulk_store(k, ptx_ptr(w, PTX_GLOBAL), sh, ptx_imm(24)),
        WRONG(PTX_E_RANGE, "multiple of 16");
    begin("90", 0), ptx_cp_async(k, sh, ptx_ptr(w, PTX_GLOBAL), ptx_imm(12)),
        WRONG(PTX_E_RANGE, "4, 8 or 16");
    begin("90", 0), ptx_cp_async(k, sh, ptx_ptr(w, PTX_GLOBAL), of_type[PTX_U32]),
        WRONG(PTX_E_TYPE, "immediate");
    begin("90a", 0), ptx_op1(k, PTX_SETMAXNREG_INC, 0, ptx_imm(41)), WRONG(PTX_E_RANGE, "multiple of 8");
    begin("90", 0), ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(33)),
        WRONG(PTX_E_RANGE, "multiple of 32");
    begin("90", 0), ptx_ballot(k, of_type[PTX_PRED], ptx_imm(0)), WRONG(PTX_E_RANGE, "member mask");
    begin("90", 0), ptx_ldmatrix(k, 3, sh, out), WRONG(PTX_E_ARGUMENT, "ldmatrix");
    begin("90", 0), ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_S8, PTX_S8, d, a, b, c), WRONG(PTX_E_FORM, "s8");
    begin("90", 0), ptx_op2(k, PTX_MMA_M16N8K16_F32, 0, w, w), WRONG(PTX_E_TYPE, "ptx_opn");
    begin("90", 0), ptx_op1(k, PTX_NEG, 0, ptx_imm(1)), WRONG(PTX_E_TYPE, "ptx_u32");
    begin("90", 0), ptx_ld(k, PTX_U32, ptx_with(ptx_at(w, 0), PTX_L2_CACHE_HINT)),
        WRONG(PTX_E_HANDLE, "policy");
    begin("90", 0), ptx_op1(k, PTX_POPC, 0, ptx_off(w, 8)), ptx_ret(k);
    PRINTS("90", "add.u64 %d"); /* the sum, then */
}

/* wmma: each row of the table with each type, layout, space, and with a stride (a number, a register) and
   without, for the lowest target that has it. The rows that one target has go to ptxas in one text. */
static void wmma_row(const ptx__row *row, unsigned type, ptx_mods mods) {
    char program[PTX__SIGNATURE_MAX], *p;
    ptx_val v[40], out[8];
    unsigned stride, space, results, sources, n, store = strstr(row->name, "store") != NULL;
    int memory = strchr(row->sig, 'm') != NULL;
    for (space = 0; space < (memory ? 3u : 1u); space++)
        for (stride = 0; stride < (memory ? 3u : 1u); stride++) {
            ptx__expand_signature(row->sig, 1, stride != 0, program, &results, &sources);
            for (n = 0, p = strchr(program, '=') + 1; *p; p++) {
                if (!ptx__is_slot(*p)) continue;
                v[n] = *p == 'm'   ? (space == 0   ? w
                                      : space == 1 ? ptx_ptr(w, PTX_GLOBAL)
                                                   : sh)
                       : *p == 't' ? of_type[type]
                       : *p == 'f' ? of_type[PTX_F32]
                       : *p == 'z' ? of_type[PTX_F64]
                       : *p == 'S' ? of_type[PTX_S32]
                       : *p == 'u' ? (stride == 1 ? ptx_imm(256) : of_type[PTX_U32])
                                   : of_type[PTX_B32];
                n++;
            }
            ptx_opn(k, (ptx_op_id)row->op, mods, (ptx_type)type, PTX_NONE, n, v, results, store ? NULL : out);
        }
}

static void wmma_row_layouts(const ptx__row *row, unsigned type) {
    unsigned i;
    int one = 0;
    for (i = 0; i < 4; i++)
        if (ptx__allowed(row) >> 62 & 1 && ptx__allowed(row) & PTX__LAYOUTS & ~PTX__FAMILY)
            wmma_row(row, type, ((PTX_ROW_ROW & ~PTX__FAMILY) << i) | (PTX_ROW_ROW & PTX__FAMILY)), one = 1;
    for (i = 0; i < 2; i++)
        if (ptx__allowed(row) >> 63 & 1 && ptx__allowed(row) & PTX__LAYOUT & ~PTX__FAMILY)
            wmma_row(row, type, i ? PTX_ROW : PTX_COL), one = 1;
    if (!one || ptx__default(row)) wmma_row(row, type, 0);
    if (ptx__allowed(row) >> 62 & 1 && ptx__allowed(row) & PTX_SATFINITE & ~PTX__FAMILY)
        wmma_row(row, type, PTX_SATFINITE);
    if (ptx__allowed(row) >> 62 & 1 && ptx__allowed(row) & PTX_RP & ~PTX__FAMILY) wmma_row(row, type, PTX_RP);
}

static void wmma(void) {
    static const char *const targets[] = {"75", "80"};
    unsigned t, type, rows = 0;
    size_t r;
    for (t = 0; t < 2; t++) {
        begin(targets[t], 0);
        for (r = 0; r < PTX__ROW_COUNT; r++) {
            const ptx__row *row = &ptx__rows[r];
            if (strncmp(row->name, "wmma", 4) || (row->sm > 75) != (t != 0)) continue;
            for (type = 0; type < PTX__TYPE_COUNT; type++)
                if (ptx__types_of(row) ? ptx__types_of(row) >> type & 1 : !type) wmma_row_layouts(row, type), rows++;
        }
        ptx_ret(k);
        PRINTS(targets[t],
               t ? "wmma.mma.sync.aligned.row.col.m8n8k4.rp.f64.f64.f64.f64\nwmma.mma.and.popc.sync"
                 : "wmma.load.a.sync.aligned.col.m32n8k16.shared.s8 {%r\nwmma.store.d.sync.aligned"
                   ".col.m8n32k16.f32 [%d2], {%r");
    }
    CHECK(rows > 80);
    {
        ptx_val v[40], d[8];
        begin("75", 0), wmma_row(&ptx__rows[m->first_row[PTX_WMMA_LOAD_A_M16N16K8]], PTX_TF32, 0);
        WRONG(PTX_E_TARGET, "sm_80");
        begin("80", 0), v[0] = sh;
        ptx_opn(k, PTX_WMMA_LOAD_A_M8N8K32, PTX_COL, PTX_S4, PTX_NONE, 1, v, 1, d); /* A lies in rows */
        WRONG(PTX_E_MODIFIER, ".col");
        begin("80", 0), v[0] = ptx_ptr(w, PTX_CONST);
        ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, 0, PTX_F16, PTX_NONE, 1, v, 8, d);
        WRONG(PTX_E_MODIFIER, ".const");
        begin("80", 0), v[0] = sh;
        ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, 0, PTX_F16, PTX_NONE, 1, v, 4, d);
        WRONG(PTX_E_ARGUMENT, "does not take");
        begin("80", 0);
        ptx_opn(k, PTX_WMMA_LOAD_A_M16N16K16, PTX_ROW | PTX_COL, PTX_F16, PTX_NONE, 1, v, 8, d);
        WRONG(PTX_E_MODIFIER, "exclude");
        begin("80", 0);
        for (type = 0; type < 40; type++) v[type] = of_type[PTX_F32];
        ptx_mma(k, PTX_WMMA_M16N16K16_F32, PTX_F16, PTX_F16, d, v, v, v);
        WRONG(PTX_E_TYPE, "expected 32 bits of f16");
    }
}

/* Every function takes a NULL kernel and handles that nobody made. */
static void harmless(void) {
    uint32_t round, state = 1;
    ptx_val v[16], out[8];
    ptx_var vars[4];
    ptx_type types[1] = {PTX_U32};
    ptx_symbol symbol;
    ptx_label labels[2];
    memset(v, 0, sizeof v), memset(&symbol, 0, sizeof symbol), memset(labels, 0, sizeof labels);
    memset(vars, 0, sizeof vars);
    for (round = 0; round < 4000; round++) {
        unsigned at = round % 4;
        unsigned char *bytes = (unsigned char *)&v[at];
        size_t i;
        k = NULL;
        if (round % 2) {
            open_module("90a", 0);
            k = ptx_entry(m, "k");
            v[at] = round % 3 ? ptx_param(k, "x", PTX_U64) : ptx_off(ptx_shared(k, "x", PTX_U64, 1, 0), 8);
        }
        for (i = 0; i < sizeof v[0]; i++) {
            state = state * 1664525u + 1013904223u;
            if (i == (state >> 20) % 16 || round % 7 == 0) bytes[i] = (unsigned char)(state >> 24);
        }
        memcpy(&symbol, &v[at], sizeof symbol), memcpy(labels, v, sizeof labels),
            memcpy(vars, v, sizeof vars);
        switch (round / 2 % 16) {
        case 0: ptx_opn(k, PTX_BULK_G2S, 0, PTX_NONE, PTX_NONE, 4, v, 0, NULL); break;
        case 1: ptx_ldmatrix(k, 4, v[at], out); break;
        case 2: ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, vars, 7, v); break;
        case 3: ptx_raw(k, "mov.u32 $0, $1;", 1, v + at, 1, types, out); break;
        case 4: ptx_address(k, symbol); break;
        case 5: ptx_cvta(k, v[at]); break;
        case 6: ptx_cvta_to(k, (ptx_space)(round % 7), v[at]); break;
        case 7: ptx_printf(k, "%d", 1, v + at); break;
        case 8: ptx_call_indirect(k, v[at], PTX_U32, 1, v); break;
        case 9: ptx_brx(k, v[at], 2, labels, labels[0]); break;
        case 10: ptx_switch(k, v[at], 3), ptx_case(k, 1), ptx_end(k); break;
        case 11: ptx_mbarrier_init(k, v[at], v[0]); break;
        case 12: ptx_wgmma_descriptor(k, v[at], 16, 16, 32); break;
        case 13: ptx_st(k, PTX_U32, ptx_cached(ptx_at(v[0], 0), v[at]), v[1]); break;
        case 14: ptx_mma(k, PTX_MMA_M16N8K8_F16, PTX_F16, PTX_F16, out, v, v, v); break;
        default: ptx_local(k, "l", PTX_U32, round, round), ptx_mapa(k, v[at], ptx_imm(0)); break;
        }
        if (!k) continue;
        ptx_ret(k);
        ptx_text(m, NULL);
        ptx_module_free(m);
    }
    ptx_func(NULL, "f", PTX_U32), ptx_return(NULL, v[0]), ptx_call(NULL, NULL, 0, NULL);
    ptx_func_address(NULL, NULL), ptx_pragma(NULL, "x"), ptx_require_block(NULL, 1, 1, 1);
    ptx_variable(NULL, NULL), ptx_point(NULL, symbol, 0, symbol, 0);
    ptx_ring_new(NULL, 0), ptx_default(NULL), ptx_opn(NULL, PTX_ADD, 0, PTX_NONE, PTX_NONE, 0, NULL, 0, NULL);
    CHECK(ptx_target_name(PTX_SM_A(90), NULL, 0) == 3);
}

static void targets(void) {
    CHECK(ptx_target_parse("sm_90a") == PTX_SM_A(90) && ptx_target_parse("100f") == PTX_SM_F(100));
    CHECK(ptx_target_parse("sm_90b") == 0 && ptx_target_parse("99") == 0 && ptx_target_parse(NULL) == 0);
}

static void assemble_texts(int have_ptxas, const char *base) {
    unsigned i;
    for (i = 0; i < text_count; i++) {
        if (have_ptxas)
            CHECK_AT(assemble(base, texts[i], text_targets[i]), __LINE__, "ptxas accepts", texts[i]);
        free(texts[i]);
    }
}

int main(int argc, char **argv) {
    int have_ptxas = system("ptxas --version >/dev/null 2>&1") == 0;
    char base[256];
    sprintf(base, "%.200s", argc > 1 ? argv[1] : argv[0]);
    all_forms(have_ptxas, base);
    variables(), functions(), switches(), raw(), directives(), special_registers(), everyday(), wmma(),
        moves(), harmless(), targets();
    assemble_texts(have_ptxas, base);
    if (!have_ptxas) printf("skip: there is no ptxas: the forms are not assembled\n");
    return check_end();
}
