/* lower_tcgen05.c - lowering of tcgen05.
 *
 * As for other matrix instructions the statement keeps its dotted name as written. A row of `forms` lists the
 * modifiers of an instruction, in groups: one of "a|b" is required (!) or allowed (?). */
#include "lower.h"
#include "tensor_memory.h"
#include "async.h"

/* --- modifiers -------------------------------------------------------------------------------- */

#define GROUP "cta_group::1|cta_group::2! "
#define ALIGNED "sync! aligned! "
#define COUNT "x1|x2|x4|x8|x16|x32|x64|x128! "
#define SHAPES "32x32b|16x64b|16x128b|16x256b|16x32bx2! "
#define COLLECTOR(buffer, use) buffer "::fill|" buffer "::use|" buffer "::lastuse|" buffer "::discard" use
#define KINDS "kind::f16|kind::tf32|kind::f8f6f4|kind::i8|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4! "

enum {
    TC_ALLOC,
    TC_DEALLOC,
    TC_RELINQUISH,
    TC_LD,
    TC_ST,
    TC_WAIT_LD,
    TC_WAIT_ST,
    TC_CP,
    TC_SHIFT,
    TC_MMA,
    TC_COMMIT,
    TC_BEFORE,
    TC_AFTER
};

static const struct {
    const char *name, *words;
    uint8_t least, most; /* operands */
} forms[] = {
    [TC_ALLOC] = {"alloc", GROUP ALIGNED "shared::cta? b32! ", 2, 2},
    [TC_DEALLOC] = {"dealloc", GROUP ALIGNED "b32! ", 2, 2},
    [TC_RELINQUISH] = {"relinquish_alloc_permit", GROUP ALIGNED, 0, 0},
    [TC_LD] = {"ld", ALIGNED SHAPES COUNT "pack::16b? red? min|max? abs? NaN? b32|f32|u32|s32! ", 2, 4},
    [TC_ST] = {"st", ALIGNED SHAPES COUNT "unpack::16b? b32! ", 2, 3},
    [TC_WAIT_LD] = {"wait::ld", ALIGNED, 0, 0},
    [TC_WAIT_ST] = {"wait::st", ALIGNED, 0, 0},
    [TC_CP] = {"cp",
               GROUP "128x256b|128x128b|4x256b|64x128b|32x128b! warpx2::02_13|warpx2::01_23|warpx4? "
                     "b8x16? b6x16_p32|b4x16_p64? ",
               2, 2},
    [TC_SHIFT] = {"shift", GROUP "down! ", 1, 1},
    [TC_MMA] = {"mma",
                GROUP KINDS "ws? sp? block_scale? scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32? "
                            "ashift? " COLLECTOR("collector::a", "|") COLLECTOR("collector::b0", "|")
                                COLLECTOR("collector::b1", "|") COLLECTOR("collector::b2", "|")
                                    COLLECTOR("collector::b3", "? "),
                5, 9},
    [TC_COMMIT] = {"commit", GROUP "mbarrier::arrive::one! shared::cluster? multicast::cluster? b64! ", 1, 2},
    [TC_BEFORE] = {"fence::before_thread_sync", "", 0, 0},
    [TC_AFTER] = {"fence::after_thread_sync", "", 0, 0},
};
enum { FORMS = sizeof forms / sizeof *forms, MOST_WORDS = 16 };

typedef struct words {
    struct {
        const char *text;
        uint32_t length;
        bool used;
    } at[MOST_WORDS];
    uint32_t count;
} words;

static bool is(const char *text, size_t length, const char *word) {
    return strlen(word) == length && !strncmp(text, word, length);
}

static bool has(const words *o, const char *word) {
    for (uint32_t k = 0; k < o->count; k++)
        if (is(o->at[k].text, o->at[k].length, word)) return true;
    return false;
}

/* The index in "a|b|c" of the modifier that is present; -1: none. */
static int index_of_modifier(const words *o, const char *list) {
    int n = 0;
    for (const char *p = list; *p; n++) {
        size_t length = strcspn(p, "|");
        for (uint32_t k = 0; k < o->count; k++)
            if (o->at[k].length == length && !strncmp(o->at[k].text, p, length)) return n;
        p += length + (p[length] == '|');
    }
    return -1;
}

static bool read_group(sim_lower *lw, words *o, const char *group, size_t n) {
    bool needed = group[n] == '!';
    uint32_t found = 0;
    for (size_t at = 0; at < n;) {
        size_t length = strcspn(group + at, "|!?");
        for (uint32_t k = 0; k < o->count; k++) {
            if (o->at[k].used || o->at[k].length != length || strncmp(o->at[k].text, group + at, length))
                continue;
            o->at[k].used = true;
            found++;
        }
        at += length + 1;
    }
    if (found > 1 || (needed && !found)) {
        sim_reject(lw,
                             found ? "Only one of the modifiers '.%.*s' can be used in instruction '%s'"
                        : "One of the modifiers '.%.*s' is required for instruction '%s'",
                             (int)n, group, lw->full);
        return false;
    }
    return true;
}

/* The statement's row of `forms`; -1 after a message. */
static int read_words(sim_lower *lw, const sim_statement *s, words *o) {
    int form = -1;
    memset(o, 0, sizeof *o);
    snprintf(lw->full, sizeof lw->full, "%s%s", s->opcode, s->words ? s->words : "");
    for (const char *p = s->words; p && *p == '.';) {
        size_t n = strcspn(++p, ".");
        if (p == s->words + 1)
            for (int k = 0; k < FORMS; k++) form = is(p, n, forms[k].name) ? k : form;
        else if (o->count < MOST_WORDS) {
            o->at[o->count].text = p;
            o->at[o->count++].length = (uint32_t)n;
        }
        p += n;
    }
    if (form < 0) {
        sim_reject(lw, "Instruction '%s' is none of tcgen05", lw->full);
        return -1;
    }
    for (const char *p = forms[form].words; *p;) {
        size_t n = strcspn(p, "!?");
        if (!read_group(lw, o, p, n)) return -1;
        p += n + 1 + (p[n + 1] == ' ');
    }
    for (uint32_t k = 0; k < o->count; k++) {
        if (o->at[k].used) continue;
        sim_reject(lw, "Illegal modifier '.%.*s' for instruction '%s'", (int)o->at[k].length, o->at[k].text,
                             lw->full);
        return -1;
    }
    return sim_operands_between(lw, forms[form].least, forms[form].most) ? form : -1;
}

/* --- targets ---------------------------------------------------------------------------------- */

enum {
    ON_100A = 1,
    ON_100F = 2,
    ON_103A = 4,
    ON_110A = 8,
    ON_ALL = 15
}; /* 100F: 100f, 103f; 110A: 110a, 110f */

static void gate(sim_lower *lw, const char *what, uint32_t on, uint32_t version) {
    const sim_module *m = lw->m;
    char suffix = m->target_suffix;
    uint32_t own = m->target == 100 && suffix == 'a'                         ? ON_100A
                   : m->target == 103 && suffix == 'a'                       ? ON_103A
                   : (m->target == 100 || m->target == 103) && suffix == 'f' ? ON_100F
                   : (m->target == 110 || m->target == 101) && suffix        ? ON_110A
                                                                             : 0;
    if (!(own & on))
        sim_reject(lw, "Feature '%s' not supported on .target 'sm_%u%.1s'", what, m->target,
                             suffix ? &suffix : "");
    if (own != ON_100A && version < 88) version = 88;
    sim_require_version(lw, what, version, 0);
}

/* --- operands --------------------------------------------------------------------------------- */

/* An address in tensor memory, in brackets. */
static bool tensor_address(sim_lower *lw, uint32_t index, sim_tensor_address *out) {
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind != O_ADDRESS || o->count) {
        sim_mismatch(lw, index, "expected an address of tensor memory in brackets");
        return false;
    }
    out->slot = sim_source_of(lw, &o->items[0], index, T_B32, 0);
    out->offset = (uint32_t)o->value;
    return true;
}

static uint32_t new_watch_list(sim_lower *lw, uint32_t count) {
    uint32_t list = sim_list_begin(lw, count);
    for (uint32_t n = 0; n < count; n++) lw->k->lists[list + n] = UINT32_MAX;
    return list;
}

static bool registers(sim_lower *lw, uint32_t index, uint32_t count, bool destination, sim_type t,
                      uint32_t *list) {
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind != O_VECTOR) {
        sim_mismatch(lw, index, "expected a vector of %u", count);
        return false;
    }
    if (o->count != count) {
        sim_reject(lw, "Vector of size %u is expected for argument %u of instruction '%s' (it has %u)", count,
                             index, lw->full, o->count);
        return false;
    }
    *list = sim_list_begin(lw, count);
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = &o->items[k];
        if (!destination && e->kind != O_REG) {
            sim_mismatch(lw, index, "element %u is no register", k);
            return false;
        }
        sim_type own = e->kind == O_REG && e->type == T_F32 ? T_F32 : t;
        uint32_t slot = destination ? sim_dest_of(lw, e, index, own, 0) : sim_source_of(lw, e, index, own, 0);
        lw->k->lists[*list + k] = slot;
    }
    return true;
}

static sim_ins *emit(sim_lower *lw, sim_handler fn, sim_flow flow, const sim_tcgen05 *t) {
    sim_tcgen05 *kept = sim_alloc(lw->m, sizeof *kept);
    *kept = *t;
    uint32_t everybody = flow == F_SYNC ? sim_constant(lw, SIM_FULL, 1) : 0;
    sim_ins *i = sim_emit(lw, fn, flow);
    i->e = everybody;
    i->imm = (int64_t)(uintptr_t)kept;
    if (flow == F_WAIT) i->x = X_ALIGNED;
    return i;
}

/* --- alloc, dealloc --------------------------------------------------------------------------- */

static bool columns(sim_lower *lw, uint32_t *slot) {
    const sim_operand *o = &lw->s->operands[1];
    if (o->kind == O_INT && (o->value < 32 || o->value > 512 || (o->value & (o->value - 1)))) {
        sim_reject(
            lw,
            "Argument 1 of instruction '%s': value '%lld', expected to be a power of 2 in range [32..512]",
            lw->full, (long long)o->value);
        return false;
    }
    *slot = sim_source(lw, 1, T_B32, 0);
    return true;
}

static void lower_alloc(sim_lower *lw, const words *o, sim_tcgen05 *t) {
    sim_place a;
    uint32_t b;
    if (!sim_lower_place(lw, 0, has(o, "shared::cta") ? SP_SHARED : SP_GENERIC, &a) || !columns(lw, &b))
        return;
    t->wide = a.wide;
    t->d.offset = (uint32_t)a.offset;
    sim_ins *i = emit(lw, sim_tcgen05_alloc, F_WAIT, t);
    i->a = a.slot;
    i->b = b;
    i->space = (uint8_t)a.space;
}

static void lower_dealloc(sim_lower *lw, sim_tcgen05 *t) {
    uint32_t b;
    t->d.slot = sim_source(lw, 0, T_B32, 0);
    if (!columns(lw, &b)) return;
    emit(lw, sim_tcgen05_dealloc, F_SYNC, t)->b = b;
}

/* --- ld, st ----------------------------------------------------------------------------------- */

static void lower_access(sim_lower *lw, const words *o, bool load, sim_tcgen05 *t) {
    static const uint8_t per[] = {1, 1, 2, 4, 1};
    uint32_t count = 1u << index_of_modifier(o, "x1|x2|x4|x8|x16|x32|x64|x128"), index = 0;
    bool reduce = has(o, "red"), good = true;
    t->shape = (uint8_t)index_of_modifier(o, "32x32b|16x64b|16x128b|16x256b|16x32bx2");
    if (count * per[t->shape] > 128) {
        sim_reject(lw, "Too many registers for instruction '%s'", lw->full);
        return;
    }
    t->regs = (uint8_t)(count * per[t->shape]);
    t->pack = has(o, load ? "pack::16b" : "unpack::16b");
    if (load) {
        int type = index_of_modifier(o, "b32|f32|u32|s32");
        t->reduce = (uint8_t)(index_of_modifier(o, "min|max") + 1);
        t->abs = has(o, "abs");
        t->nan = has(o, "NaN");
        t->reduce_type = type == 1 ? T_F32 : type == 2 ? T_U32 : T_S32;
        if (reduce != (t->reduce != 0) || reduce != (type != 0) || ((t->abs || t->nan) && type != 1)
            || (reduce && (t->pack || count < 2 || (t->shape != TS_32X32B && t->shape != TS_16X32BX2)))) {
            sim_reject(lw, "Modifiers do not go together in instruction '%s'", lw->full);
            return;
        }
        if (reduce) gate(lw, lw->full, ON_103A | ON_100F | ON_110A, 88);
        if (reduce && lw->m->target == 100) gate(lw, lw->full, 0, 88);
    }
    uint32_t operands = 2u + reduce + (t->shape == TS_16X32BX2);
    if (!sim_operands_between(lw, operands, operands)) return;
    uint32_t at = load ? 1u + reduce : 0, list = load ? 0 : t->shape == TS_16X32BX2 ? 2 : 1;
    sim_type type = t->reduce ? (sim_type)t->reduce_type : T_B32;
    index = at + 1;
    good &= tensor_address(lw, at, &t->d);
    if (t->shape == TS_16X32BX2) {
        int64_t split = 0;
        good &= sim_constant_operand(lw, load ? index : 1, 0, 511, &split);
        t->split = (uint32_t)split;
    }
    good &= registers(lw, list, t->regs, load, type, &t->list);
    if (reduce) t->result = sim_dest(lw, 1, type, 0);
    if (!good) return;
    if (load) t->touched = new_watch_list(lw, t->regs + 1u);
    emit(lw, load ? sim_tcgen05_ld : sim_tcgen05_st, F_SYNC, t);
}

/* --- cp ---------------------------------------------------------------------------------------- */

static void lower_cp(sim_lower *lw, const words *o, sim_tcgen05 *t) {
    static const uint8_t shapes[] = {TS_128X256B, TS_128X128B, TS_4X256B, TS_64X128B_02, TS_32X128B};
    int shape = index_of_modifier(o, "128x256b|128x128b|4x256b|64x128b|32x128b"),
        spread = index_of_modifier(o, "warpx2::02_13|warpx2::01_23|warpx4"), 
             packed = index_of_modifier(o, "b6x16_p32|b4x16_p64");
    bool two = spread == 0 || spread == 1;
    if ((shape == 3) != two || (shape == 4) != (spread == 2) || has(o, "b8x16") != (packed >= 0)) {
        sim_reject(lw, "Modifiers do not go together in instruction '%s'", lw->full);
        return;
    }
    t->shape = spread == 1 ? TS_64X128B_01 : shapes[shape];
    t->bits = packed < 0 ? 8 : packed ? 4 : 6;
    if (!tensor_address(lw, 0, &t->d)) return;
    t->a_descriptor = sim_source(lw, 1, T_B64, 0);
    emit(lw, sim_tcgen05_cp, F_MEMORY, t);
    lw->k->bulk_stores = true;
}

/* --- mma --------------------------------------------------------------------------------------- */

/* Sets the number of scale factors along K; false after a message. */
static bool block_scale(sim_lower *lw, const words *o, sim_tcgen05 *t) {
    bool scaled = t->kind >= TK_MXF8F6F4, nv = t->kind == TK_MXF4NVF4;
    int vector = index_of_modifier(o, "scale_vec::1X|scale_vec::2X|scale_vec::4X|block16|block32");
    if (scaled != has(o, "block_scale") || (!scaled && vector >= 0)) {
        sim_reject(lw,
                             scaled ? "Modifier '.block_scale' required for instruction '%s'"
                         : "Scale factors are not for this kind: instruction '%s'",
                             lw->full);
        return false;
    }
    if (!scaled) return true;
    uint32_t usual = t->kind == TK_MXF8F6F4 ? 1 : 2;
    t->vectors = (uint8_t)(vector == 0 ? 1 : vector == 1 ? 2 : vector == 2 || vector == 3 ? 4 : usual);
    if ((nv && vector < 0) || (t->vectors != usual && !(nv && t->vectors == 4))) {
        sim_reject(lw, "Illegal or missing size of scale vectors for instruction '%s'", lw->full);
        return false;
    }
    if (vector >= 0 && vector < 3)
        gate(lw, lw->full, ON_100A | ON_103A | ON_110A, nv ? 87 : 86);
    else
        gate(lw, lw->full, ON_ALL, 88);
    return true;
}

static void lower_mma(sim_lower *lw, const words *o, sim_tcgen05 *t) {
    const sim_statement *s = lw->s;
    t->kind = (uint8_t)index_of_modifier(
        o, "kind::f16|kind::tf32|kind::f8f6f4|kind::i8|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4");
    t->ws = has(o, "ws");
    t->sparse = has(o, "sp");
    t->shifts = has(o, "ashift");
    t->a_in_memory = s->operands[1].kind == O_ADDRESS;
    bool fill = has(o, "collector::a::fill") || has(o, "collector::a::use"),
         of_a = fill || has(o, "collector::a::lastuse") || has(o, "collector::a::discard"), of_b = false;
    for (uint32_t k = 0; k < o->count; k++) of_b |= !strncmp(o->at[k].text, "collector::b", 12);
    if (!block_scale(lw, o, t)) return;
    bool scaled = t->vectors;
    if ((t->ws && (scaled || t->group == 2 || of_a)) || (!t->ws && of_b)
        || (t->shifts && (!t->a_in_memory || fill || t->ws))) {
        sim_reject(lw, "Modifiers do not go together in instruction '%s'", lw->full);
        return;
    }
    if (t->kind == TK_I8) gate(lw, lw->full, ON_100A | ON_110A, 86);
    if (t->sparse && (t->kind == TK_MXF4 || t->kind == TK_MXF4NVF4))
        gate(lw, lw->full, ON_100A | ON_103A | ON_110A, 86);
    uint32_t at = 3, needed = 5u + t->sparse + (scaled ? 2 : 0);
    if (!sim_operands_between(lw, needed, needed + (scaled ? 0 : t->ws ? 1 : 2))) return;
    bool good = tensor_address(lw, 0, &t->d);
    if (t->a_in_memory)
        good &= tensor_address(lw, 1, &t->a);
    else
        t->a_descriptor = sim_source(lw, 1, T_B64, 0);
    t->b_descriptor = sim_source(lw, 2, T_B64, 0);
    if (t->sparse) good &= tensor_address(lw, at++, &t->metadata);
    t->instruction = sim_source(lw, at++, T_B32, 0);
    for (uint32_t n = 0; n < 2 && scaled; n++) good &= tensor_address(lw, at++, &t->scale[n]);
    if (s->operands[at].kind == O_VECTOR) {
        t->mask_count = t->group * 4u;
        if (scaled || t->ws) {
            sim_mismatch(lw, at, "this form has no mask of lanes");
            return;
        }
        good &= registers(lw, at++, t->mask_count, false, T_B32, &t->masks);
    }
    if (at >= s->operand_count) {
        sim_reject(lw, "Arguments mismatch for instruction '%s'", lw->full);
        return;
    }
    const sim_operand *enable = &s->operands[at];
    if (enable->kind == O_INT) {
        t->enable = enable->value ? 0 : SIM_PRED_NOT; /* predicate 0 is always true */
        at++;
    } else
        t->enable = sim_source_pred(lw, at++);
    if (at < s->operand_count && t->ws) {
        t->zero_mask = sim_source(lw, at++, T_B64, 0);
        t->has_zero_mask = true;
    } else if (at < s->operand_count) {
        int64_t v = 0;
        good &= sim_constant_operand(lw, at++, 0, 15, &v);
        t->scale_d = (uint8_t)v;
        gate(lw, lw->full, ON_100A | ON_100F | ON_103A, 86);
        if (t->kind != TK_F16 && t->kind != TK_TF32) {
            sim_reject(lw, "Instruction '%s': only kind::f16 and kind::tf32 scale D", lw->full);
            return;
        }
    }
    if (at != s->operand_count) {
        sim_reject(lw, "Arguments mismatch for instruction '%s'", lw->full);
        return;
    }
    if (!good) return;
    emit(lw, sim_tcgen05_mma, F_MEMORY, t);
    lw->k->bulk_stores = true;
}

/* --- commit ------------------------------------------------------------------------------------ */

static void lower_commit(sim_lower *lw, const words *o) {
    bool multicast = has(o, "multicast::cluster");
    sim_place a;
    if (!sim_operands_between(lw, 1u + multicast, 1u + multicast)
        || !sim_lower_place(lw, 0, has(o, "shared::cluster") ? SP_SHARED : SP_GENERIC, &a))
        return;
    uint32_t mask = UINT32_MAX;
    if (multicast) {
        if (lw->s->operands[1].kind != O_REG) {
            sim_mismatch(lw, 1, "expected a .b16 register");
            return;
        }
        mask = sim_source(lw, 1, T_B16, 0);
    }
    sim_ins *i = sim_emit(lw, sim_tcgen05_commit, F_MEMORY);
    i->a = a.slot;
    i->q = a.wide;
    i->imm = a.offset;
    i->c = mask;
    i->space = (uint8_t)a.space;
    i->x = X_CLUSTER;
}

void sim_lower_tcgen05(sim_lower *lw, const sim_statement *s) {
    words o;
    sim_tcgen05 t;
    int form = read_words(lw, s, &o);
    if (form < 0) return;
    memset(&t, 0, sizeof t);
    gate(lw, lw->full, form == TC_SHIFT ? ON_100A | ON_103A | ON_110A : ON_ALL, 86);
    t.group = (uint8_t)(index_of_modifier(&o, "cta_group::1|cta_group::2") + 1);
    if (t.group && lw->k->tensor_group && t.group != lw->k->tensor_group) {
        sim_reject(
            lw,
            "Instruction '%s': the kernel uses single CTA and CTA pair granularity, and that is not allowed",
            lw->full);
        return;
    }
    if (t.group) lw->k->tensor_group = t.group;
    lw->k->tensor_memory = true;
    switch (form) {
    case TC_ALLOC: lower_alloc(lw, &o, &t); break;
    case TC_DEALLOC: lower_dealloc(lw, &t); break;
    case TC_RELINQUISH: emit(lw, sim_tcgen05_relinquish, F_SYNC, &t); break;
    case TC_LD:
    case TC_ST: lower_access(lw, &o, form == TC_LD, &t); break;
    case TC_WAIT_LD:
    case TC_WAIT_ST: emit(lw, sim_tcgen05_wait, F_SYNC, &t)->op = form == TC_WAIT_ST; break;
    case TC_CP: lower_cp(lw, &o, &t); break;
    case TC_SHIFT:
        if (tensor_address(lw, 0, &t.d)) emit(lw, sim_tcgen05_shift, F_MEMORY, &t);
        break;
    case TC_MMA: lower_mma(lw, &o, &t); break;
    case TC_COMMIT: lower_commit(lw, &o); break;
    default: emit(lw, sim_tcgen05_fence, F_MEMORY, &t)->op = form == TC_AFTER; break;
    }
}
