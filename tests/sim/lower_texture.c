/* lower_texture.c - lowering of tex, tld4, txq, suld, sust, sured and suq with 64-bit object handles. */
#include "texture.h"
#include "lower.h"

/* The modifiers and types of an instruction. Only the order of the types among themselves matters. */
typedef struct words {
    const char *text;
    sim_lower *lw;
    uint32_t used; /* a bit for each word that was read */
} words;

/* Takes a word if it is present. */
static bool word_is(words *p, const char *text) {
    size_t n = strlen(text);
    uint32_t bit = 1;
    for (const char *w = p->text; *w == '.'; w += 1 + strcspn(w + 1, "."), bit <<= 1) {
        if (p->used & bit || strcspn(w + 1, ".") != n || strncmp(w + 1, text, n)) continue;
        p->used |= bit;
        return true;
    }
    return false;
}

static int one_of(words *p, const char *const *list, int count) {
    for (int k = 0; k < count; k++)
        if (word_is(p, list[k])) return k;
    return -1;
}

static const char *const geometries[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};

static int geometry(words *p, uint32_t allowed) {
    if (word_is(p, "2dms") || word_is(p, "a2dms")) {
        sim_reject(p->lw, "Multi-sample textures ('%s') are not implemented by this CPU driver", p->lw->full);
        return -1;
    }
    int g = one_of(p, geometries, GEO_COUNT);
    if (g < 0 || !(allowed >> g & 1)) {
        sim_reject(p->lw, "Geometry missing or illegal in instruction '%s'", p->lw->full);
        return -1;
    }
    return g;
}

static sim_type type_word(words *p) {
    uint32_t bit = 1;
    for (const char *w = p->text; *w == '.'; w += 1 + strcspn(w + 1, "."), bit <<= 1) {
        sim_type t = sim_type_find(w + 1, strcspn(w + 1, "."));
        if (p->used & bit || t == T_NONE) continue;
        p->used |= bit;
        return t;
    }
    return T_NONE;
}

static bool check_all_used(const words *p) {
    uint32_t bit = 1;
    for (const char *w = p->text; *w == '.'; w += 1 + strcspn(w + 1, "."), bit <<= 1) {
        if (p->used & bit) continue;
        sim_reject(p->lw, "Illegal modifier '.%.*s' for instruction '%s'", (int)strcspn(w + 1, "."), w + 1,
                   p->lw->full);
        return false;
    }
    return true;
}

static bool is_type_of(sim_type t, sim_type a, sim_type b, sim_type c) { return t == a || t == b || t == c; }

static void set_list_entry(sim_lower *lw, uint32_t list, uint32_t entry, uint32_t slot) {
    lw->k->lists[list + entry] = slot;
}

/* [object] or [object, coordinates]; *coordinates is NULL in the first case. */
static bool object_operand(sim_lower *lw, uint32_t index, uint32_t list, const sim_operand **coordinates) {
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind != O_ADDRESS || o->value || (o->count != 0) != (coordinates != NULL)) {
        sim_mismatch(lw, index, coordinates ? "expected [object, {coordinates}]" : "expected [object]");
        return false;
    }
    const sim_operand *base = &o->items[0];
    if (base->kind != O_REG) {
        sim_reject(
            lw,
            "Argument %u of instruction '%s': textures and surfaces by name are not implemented by this CPU "
            "driver, only by 64-bit objects in registers",
            index, lw->full);
        return false;
    }
    set_list_entry(lw, list, T_OBJECT, sim_source_of(lw, base, index, T_U64, 0));
    if (coordinates) *coordinates = &o->items[1];
    return true;
}

/* One to four elements, not three: a fourth is ignored. `needed`: how many are used. */
static bool elements(sim_lower *lw, uint32_t index, const sim_operand *o, uint32_t needed, uint32_t list,
                     uint32_t entry, const sim_type *types, int flags) {
    uint32_t count = o->kind == O_VECTOR ? o->count : 1;
    if (count < needed || count > 4 || count == 3) {
        sim_reject(lw, "Argument %u of instruction '%s': Argument vector size mismatch (%u, expected %u)",
                   index, lw->full, count, needed == 3 ? 4 : needed);
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = o->kind == O_VECTOR ? &o->items[k] : o;
        uint32_t slot = sim_source_of(lw, e, index, types[k], flags);
        if (k < needed) set_list_entry(lw, list, entry + k, slot);
    }
    return true;
}

static bool coordinates(sim_lower *lw, uint32_t index, const sim_operand *o, int g, sim_type t,
                        uint32_t list) {
    static const uint8_t needed[GEO_COUNT] = {1, 2, 3, 2, 3, 3, 4};
    bool layered = g == GEO_A1D || g == GEO_A2D || g == GEO_ACUBE;
    const sim_type types[4] = {layered ? T_B32 : t, t, t, t};
    return elements(lw, index, o, needed[g], list, T_COORD, types, 0);
}

static bool results(sim_lower *lw, const sim_operand *o, uint32_t count, sim_type t, uint32_t list,
                    int flags) {
    uint32_t n = o->kind == O_VECTOR ? o->count : 1;
    if (n != count || (count > 1 && o->kind != O_VECTOR)) {
        sim_reject(lw, "Argument vector size mismatch for instruction '%s' (%u, expected %u)", lw->full, n,
                   count);
        return false;
    }
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = o->kind == O_VECTOR ? &o->items[k] : o;
        if (e->kind == O_SINK) {
            set_list_entry(lw, list, T_RESULTS + k, UINT32_MAX);
            continue;
        }
        uint32_t slot = sim_dest_of(lw, e, 0, t, flags);
        bool wide = e->kind == O_REG && sim_types[e->type].bytes == 8;
        set_list_entry(lw, list, T_RESULTS + k, slot | (wide ? SIM_WIDE : 0));
    }
    return true;
}

/* The offset and the depth-compare operand after the coordinates. */
static bool offset_and_depth(sim_lower *lw, const sim_statement *s, uint32_t index, int g, uint32_t list,
                             uint32_t *x) {
    static const sim_type whole[4] = {T_S32, T_S32, T_S32, T_S32};
    static const uint8_t axes[GEO_COUNT] = {1, 2, 3, 1, 2, 0, 0};
    const sim_operand *o = index < s->operand_count ? &s->operands[index] : NULL;
    bool scalar_offset = o && (g == GEO_1D || g == GEO_A1D)
                         && ((o->kind == O_REG && sim_types[o->type].kind != K_FLOAT) || o->kind == O_INT);
    if (o && (o->kind == O_VECTOR || scalar_offset)) {
        sim_require_version(lw, "texture offset", 43, 20);
        if (!axes[g]) {
            sim_reject(lw, "Offsets are not allowed for geometry .%s in instruction '%s'", geometries[g],
                       lw->full);
            return false;
        }
        if (!elements(lw, index, o, axes[g], list, T_OFFSET, whole, 0)) return false;
        *x |= X_OFFSET;
        index++;
    }
    if (index == s->operand_count) return true;
    sim_reject(lw,
               "Depth comparison ('%s' with operand %u) is not implemented by this CPU driver: the comparison "
               "function is "
               "documented nowhere",
               lw->full, index);
    return false;
}

static uint32_t begin_list(sim_lower *lw) { return sim_list_begin(lw, T_LIST); }

static sim_ins *emit(sim_lower *lw, sim_handler fn, uint32_t list, int g, uint32_t x) {
    sim_ins *i = sim_emit(lw, fn, F_MEMORY);
    i->list = list;
    i->op = (uint8_t)g;
    i->x = x;
    return i;
}

void sim_lower_tex(sim_lower *lw, const sim_statement *s) {
    words p = {s->words, lw, 0};
    static const char *const channels[] = {"r", "g", "b", "a"};
    bool gather = !strcmp(s->opcode, "tld4"), good;
    int mode = gather                 ? TEX_GATHER
               : word_is(&p, "level") ? TEX_LEVEL
               : word_is(&p, "grad")  ? TEX_GRAD
                                      : TEX_BASE;
    int channel = gather ? one_of(&p, channels, 4) : 0, g;
    if (mode == TEX_BASE) (void)word_is(&p, "base");
    if (channel < 0) {
        sim_reject(lw, "Component .r, .g, .b or .a required for instruction '%s'", lw->full);
        return;
    }
    g = geometry(&p, gather ? 1u << GEO_2D | 1u << GEO_A2D | 1u << GEO_CUBE | 1u << GEO_ACUBE
                            : (1u << GEO_COUNT) - 1);
    if (g < 0) return;
    uint32_t count = word_is(&p, "v4") ? 4 : word_is(&p, "v2") ? 2 : 0, at = 2, x = X_NC;
    sim_type d = type_word(&p), c = type_word(&p);
    bool cube = g == GEO_CUBE || g == GEO_ACUBE, is_float = c == T_F32;
    bool half = !gather && (d == T_F16 || d == T_F16X2);
    if (!(is_type_of(d, T_U32, T_S32, T_F32) || half) || count != (d == T_F16X2 ? 2u : 4u)
        || !(is_float || (c == T_S32 && !cube && !gather && mode != TEX_GRAD))) {
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        return;
    }
    if (!check_all_used(&p)) return;
    if (half) sim_require_version(lw, ".f16 texture results", 42, 53);
    if (gather && g != GEO_2D) sim_require_version(lw, "tld4 of layers and cubes", 43, 20);
    if (mode == TEX_GRAD && cube) {
        sim_reject(lw, "'%s' (gradients of cube maps) is not implemented by this CPU driver", lw->full);
        return;
    }
    const uint32_t least = mode == TEX_LEVEL ? 3 : mode == TEX_GRAD ? 4 : 2;
    if (!sim_operands_between(lw, least, least + 2)) return;
    uint32_t list = begin_list(lw), predicate = 0;
    const sim_operand *r = &s->operands[0], *place;
    if (r->kind == O_PAIR) {
        sim_require_version(lw, "sparse texture fetches", 71, 60);
        predicate = sim_dest_pred(lw, &r->items[1], 0) + 1;
        r = &r->items[0];
    }
    good = object_operand(lw, 1, list, &place) && coordinates(lw, 1, place, g, c, list);
    if (good && mode == TEX_LEVEL) set_list_entry(lw, list, T_LOD, sim_source(lw, at++, c, 0));
    if (good && mode == TEX_GRAD) {
        static const sim_type floats[4] = {T_F32, T_F32, T_F32, T_F32};
        uint32_t n = g == GEO_3D ? 3 : g == GEO_2D || g == GEO_A2D ? 2 : 1;
        good = elements(lw, 2, &s->operands[2], n, list, T_GRAD_X, floats, 0)
               && elements(lw, 3, &s->operands[3], n, list, T_GRAD_Y, floats, 0);
        at = 4;
    }
    good = good && offset_and_depth(lw, s, at, g, list, &x);
    if (!good || !results(lw, r, count, d, list, 0)) return;
    sim_ins *i = emit(lw, sim_tex, list, g, x | (is_float ? X_FLOAT_COORD : 0));
    i->width = (uint8_t)mode;
    i->type = (uint8_t)d;
    i->count = (uint8_t)count;
    i->space = (uint8_t)channel;
    i->q = predicate;
}

/* txq; s->form->sub 1: suq */
void sim_lower_texture_query(sim_lower *lw, const sim_statement *s) {
    static const char *const names[] = {"width",         "height",
                                        "depth",         "channel_data_type",
                                        "channel_order", "normalized_coords",
                                        "array_size",    "num_mipmap_levels",
                                        "num_samples",   "filter_mode",
                                        "addr_mode_0",   "addr_mode_1",
                                        "addr_mode_2",   "force_unnormalized_coords",
                                        "memory_layout"};
    words p = {s->words, lw, 0};
    bool surface = s->form->sub, level = !surface && word_is(&p, "level");
    int q = one_of(&p, names, Q_COUNT);
    bool of_surfaces = q <= Q_ORDER || q == Q_ARRAY_SIZE || q == Q_LAYOUT, of_levels = q <= Q_DEPTH;
    if (q < 0 || (surface && !of_surfaces) || (level && !of_levels)) {
        sim_reject(lw, "Unknown query in instruction '%s'", lw->full);
        return;
    }
    if (!word_is(&p, "b32")) {
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        return;
    }
    if (!check_all_used(&p)) return;
    if (level) sim_require_version(lw, "txq.level", 43, 30);
    if (q == Q_ARRAY_SIZE || q == Q_LEVELS || q == Q_SAMPLES) sim_require_version(lw, "array sizes and levels", 41, 20);
    if (!sim_operands_between(lw, level ? 3 : 2, level ? 3 : 2)) return;
    uint32_t list = begin_list(lw), d;
    if (!object_operand(lw, 1, list, NULL)) return;
    if (level) set_list_entry(lw, list, T_LOD, sim_source(lw, 2, T_B32, 0));
    d = sim_dest(lw, 0, T_B32, 0);
    sim_ins *i = emit(lw, sim_texture_query, list, q, level ? X_OFFSET : 0);
    i->d = d;
    i->width = surface;
}

static int clamp_word(words *p) {
    static const char *const names[] = {"trap", "clamp", "zero"};
    int k = one_of(p, names, 3);
    if (k < 0)
        sim_reject(p->lw, "One of the modifiers '.trap', '.clamp', '.zero' is required for instruction '%s'",
                   p->lw->full);
    return k;
}

/* s->form->sub: 0 suld, 1 sust */
void sim_lower_surface(sim_lower *lw, const sim_statement *s) {
    static const char *const cached[] = {"ca", "cg", "cs", "cv"}, *const stored[] = {"wb", "cg", "cs", "wt"};
    words p = {s->words, lw, 0};
    bool store = s->form->sub, formatted = store && word_is(&p, "p");
    if (!formatted && !word_is(&p, "b")) {
        sim_reject(lw, "Modifier '.b'%s required for instruction '%s'", store ? " or '.p'" : "", lw->full);
        return;
    }
    int g = geometry(&p, (1u << GEO_CUBE) - 1);
    if (g < 0) return;
    (void)one_of(&p, store ? stored : cached, 4);
    uint32_t count = word_is(&p, "v2") ? 2 : word_is(&p, "v4") ? 4 : 1;
    sim_type t = type_word(&p);
    bool known = t == T_B32 || (!formatted && (t == T_B8 || t == T_B16 || t == T_B64));
    if (!known || count * sim_types[t].bytes > 16) {
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        return;
    }
    int bounds = clamp_word(&p);
    if (bounds < 0 || !check_all_used(&p) || !sim_operands_between(lw, 2, 2)) return;
    uint32_t list = begin_list(lw), at = store ? 0 : 1;
    const sim_operand *place, *v = &s->operands[store ? 1 : 0];
    if (!object_operand(lw, at, list, &place) || !coordinates(lw, at, place, g, T_S32, list)) return;
    if (!store) {
        if (!results(lw, v, count, t, list, WIDER_OK)) return;
    } else {
        const sim_type types[4] = {t, t, t, t};
        uint32_t n = v->kind == O_VECTOR ? v->count : 1;
        if (n != count) {
            sim_reject(lw, "Argument vector size mismatch for instruction '%s' (%u, expected %u)", lw->full, n,
                       count);
            return;
        }
        if (!elements(lw, 1, v, count, list, T_VALUES, types, WIDER_OK)) return;
        for (uint32_t k = 0; k < count && t == T_B64; k++) lw->k->lists[list + T_VALUES + k] |= SIM_WIDE;
        lw->k->surface_stores = true;
    }
    sim_ins *i = emit(lw, store ? sim_surface_store : sim_surface_load, list, g,
                      (formatted ? X_FORMATTED : 0) | (store ? 0 : X_NC));
    i->size = sim_types[t].bytes;
    i->count = (uint8_t)count;
    i->type = (uint8_t)t;
    i->space = (uint8_t)bounds;
}

void sim_lower_sured(sim_lower *lw, const sim_statement *s) {
    static const char *const ops[] = {"add", "min", "max", "and", "or"};
    static const uint8_t codes[] = {A_ADD, A_MIN, A_MAX, A_AND, A_OR};
    words p = {s->words, lw, 0};
    bool formatted = word_is(&p, "p");
    if (!formatted && !word_is(&p, "b")) {
        sim_reject(lw, "Modifier '.b' or '.p' required for instruction '%s'", lw->full);
        return;
    }
    int op = one_of(&p, ops, 5), g = op < 0 ? -1 : geometry(&p, (1u << GEO_A1D) - 1);
    if (op < 0) sim_reject(lw, "Operation missing in instruction '%s'", lw->full);
    if (g < 0) return;
    sim_type t = type_word(&p);
    bool order = op == 1 || op == 2, bits = op > 2, wide = t == T_U64 || t == T_S64 || t == T_B64;
    bool known = formatted ? t == T_B32 || (t == T_B64 && order)
                 : bits    ? t == T_B32
                 : order   ? is_type_of(t, T_U32, T_S32, T_U64) || t == T_S64
                           : is_type_of(t, T_U32, T_S32, T_U64);
    if (!known) {
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        return;
    }
    if (wide && order) sim_require_version(lw, "64-bit min and max of surfaces", 81, 50);
    int bounds = clamp_word(&p);
    if (bounds < 0 || !check_all_used(&p) || !sim_operands_between(lw, 2, 2)) return;
    if (formatted && wide) {
        sim_reject(lw, "'%s' is not implemented by this CPU driver: no surface format has 64 bits", lw->full);
        return;
    }
    uint32_t list = begin_list(lw);
    const sim_operand *place;
    if (!object_operand(lw, 0, list, &place) || !coordinates(lw, 0, place, g, T_S32, list)) return;
    set_list_entry(lw, list, T_VALUES, sim_source(lw, 1, t, 0) | (wide ? SIM_WIDE : 0));
    sim_ins *i = emit(lw, sim_surface_reduce, list, g, formatted ? X_FORMATTED : 0);
    i->size = sim_types[t].bytes;
    i->count = 1;
    i->type = (uint8_t)t;
    i->imm = codes[op];
    i->space = (uint8_t)bounds;
    lw->k->surface_stores = true;
}
