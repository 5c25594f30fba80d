/* lower_tensor.c - lowering of matrix instructions.
 *
 * Their names hold too much for the table of forms: a statement keeps its dotted
 * name as written, `read_words` splits it, and the tables below list which shapes exist for which types,
 * and their versions. A new shape is a row. */
#include "lower.h"
#include "tensor_memory.h"
#include <stdarg.h>

/* --- names ------------------------------------------------------------------------------------ */

/* clang-format off */
#define WORDS(X) \
    X(SYNC, "sync") X(ALIGNED, "aligned") X(SATFINITE, "satfinite") X(TRANS, "trans") X(X1, "x1") \
    X(X2, "x2") X(X4, "x4") X(SHARED, "shared") X(SHARED_CTA, "shared::cta") X(GLOBAL, "global") \
    X(SP, "sp") X(SP_ORDERED, "sp::ordered_metadata") X(XOR, "xor") X(AND, "and") X(POPC, "popc") \
    X(RN, "rn") X(RZ, "rz") X(RM, "rm") X(RP, "rp") X(LOAD, "load") X(STORE, "store") X(MMA, "mma") \
    X(A, "a") X(B, "b") X(C, "c") X(D, "d") X(ASYNC, "mma_async") X(FENCE, "fence") \
    X(COMMIT, "commit_group") X(WAIT, "wait_group") X(F8F6F4, "kind::f8f6f4") \
    X(MXF8F6F4, "kind::mxf8f6f4") X(MXF4, "kind::mxf4") X(MXF4NVF4, "kind::mxf4nvf4") \
    X(BLOCK_SCALE, "block_scale") X(VEC_1X, "scale_vec::1X") X(VEC_2X, "scale_vec::2X") \
    X(VEC_4X, "scale_vec::4X") X(SHAPE, "shape") X(LAYOUT, "row or .col")
/* clang-format on */

enum word {
#define X(id, text) N_##id,
    WORDS(X)
#undef X
        N_COUNT
};
#define W(id) (UINT64_C(1) << N_##id)
#define W_KINDS (W(F8F6F4) | W(MXF8F6F4) | W(MXF4) | W(MXF4NVF4))
#define W_WARP (W(SYNC) | W(ALIGNED))

static const char *const word_names[N_COUNT] = {
#define X(id, text) text,
    WORDS(X)
#undef X
};

typedef struct words {
    uint64_t have;
    uint32_t m, n, k;
    uint8_t types[5], type_count, layouts[2], layout_count; /* layouts: 1 for .col */
} words;

bool sim_lower_is_matrix(const char *opcode)
{
    static const char *const names[] = { "ldmatrix", "stmatrix", "movmatrix", "mma", "wmma", "wgmma", "tex", "tld4",
                                         "txq", "suq", "suld", "sust", "sured", "tcgen05" };
    if (!strchr("lsmtw", opcode[0])) return false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcmp(opcode, names[k])) return true;
    return false;
}

static bool read_shape(const char *p, size_t n, words *o)
{
    uint32_t v[3] = { 0, 0, 0 }, at = 0;
    const char *e = p + n, *letters = "mnk";
    while (p < e && at < 3 && *p == letters[at]) {
        const char *digits = ++p;
        while (p < e && *p >= '0' && *p <= '9' && p - digits < 4) v[at] = v[at] * 10 + (uint32_t)(*p++ - '0');
        if (p == digits) return false;
        at++;
    }
    if (p != e || at < 2) return false;
    o->m = v[0];
    o->n = v[1];
    o->k = v[2];
    return true;
}

static bool read_word(const char *p, size_t n, words *o)
{
    bool row = n == 3 && !strncmp(p, "row", 3), col = n == 3 && !strncmp(p, "col", 3);
    if (row || col) {
        if (o->layout_count == 2) return false;
        o->layouts[o->layout_count++] = col;
        o->have |= W(LAYOUT);
        return true;
    }
    for (int k = 0; k < N_SHAPE; k++) {
        if (strncmp(word_names[k], p, n) || word_names[k][n]) continue;
        if (o->have >> k & 1) return false;
        o->have |= UINT64_C(1) << k;
        return true;
    }
    for (int k = 1; k < E_COUNT; k++) {
        if (strncmp(sim_elements[k].name, p, n) || sim_elements[k].name[n]) continue;
        if (o->type_count == 5) return false;
        o->types[o->type_count++] = (uint8_t)k;
        return true;
    }
    if (o->have & W(SHAPE) || !read_shape(p, n, o)) return false;
    o->have |= W(SHAPE);
    return true;
}

/* Reads the statement's modifiers: all of `needed` are required, those of `allowed` are optional, others are errors. */
static bool read_words(sim_lower *lw, const sim_statement *s, uint64_t needed, uint64_t allowed, words *o)
{
    memset(o, 0, sizeof *o);
    snprintf(lw->full, sizeof lw->full, "%s%s", s->opcode, s->words ? s->words : "");
    for (const char *p = s->words; p && *p == '.';) {
        size_t n = strcspn(++p, ".");
        if (!read_word(p, n, o)) {
            sim_reject(lw, "Unknown modifier '.%.*s' in '%s'", (int)n, p, lw->full);
            return false;
        }
        p += n;
    }
    for (int k = 0; k < N_COUNT; k++) {
        uint64_t bit = UINT64_C(1) << k;
        if ((needed & bit) && !(o->have & bit)) {
            sim_reject(lw, "Modifier '.%s' required for instruction '%s'", word_names[k], lw->full);
            return false;
        }
        if ((o->have & bit) && !((needed | allowed) & bit)) {
            sim_reject(lw, "Illegal modifier '.%s' for instruction '%s'", word_names[k], lw->full);
            return false;
        }
    }
    return true;
}

static bool require_one(sim_lower *lw, const words *o, uint64_t group, const char *names)
{
    uint64_t have = o->have & group;
    if (have && !(have & (have - 1))) return true;
    sim_reject(lw,
               have ? "Only one of the modifiers %s can be used in instruction '%s'"
                   : "One of the modifiers %s is required for instruction '%s'",
               names, lw->full);
    return false;
}

/* Refuses targets outside one family of chips: sm_90a; sm_120a, sm_120f, sm_121a, sm_121f. */
static void require_family(sim_lower *lw, uint32_t version, uint32_t least, uint32_t most)
{
    const sim_module *m = lw->m;
    if (m->target < least || m->target > most || !m->target_suffix)
        sim_reject(lw, "Feature '%s' requires .target sm_%ua%s", lw->full, least,
                   most > least ? " or its family" : "");
    sim_require_version(lw, lw->full, version, 0);
}

static bool is_in_list(const char *list, uint8_t type)
{
    const char *name = sim_elements[type].name;
    size_t n = strlen(name);
    for (const char *p = list; (p = strstr(p, name)); p += n)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' ')) return true;
    return false;
}

/* --- operands --------------------------------------------------------------------------------- */

/* A fragment: registers in braces. */
static bool fragment(sim_lower *lw, uint32_t index, uint32_t count, uint8_t type, bool destination,
                     sim_fragment *f)
{
    const sim_operand *o = &lw->s->operands[index];
    sim_type t = type == E_F64 ? T_B64 : T_B32;
    if (o->kind != O_VECTOR) {
        sim_mismatch(lw, index, "expected a vector of %u", count);
        return false;
    }
    if (o->count != count) {
        sim_reject(lw, "Vector of size %u is expected for argument %u of instruction '%s' (it has %u)", count,
                   index, lw->full, o->count);
        return false;
    }
    f->type = type;
    f->regs = (uint8_t)count;
    f->list = sim_list_begin(lw, count);
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = &o->items[k];
        bool floats = type == E_F32 || type == E_F64;
        if ((e->kind == O_REG && e->type == T_F32 && type != E_F32 && type != E_B16 && type != E_B8)
            || (e->kind == O_INT || (e->kind == O_FLOAT && !floats))
            || (e->kind == O_REG && e->type == T_F64 && type != E_F64)) {
            sim_mismatch(lw, index, "element %u does not hold .%s", k, sim_elements[type].name);
            return false;
        }
        if (e->kind == O_FLOAT) t = type == E_F64 ? T_F64 : T_F32;
        uint32_t slot = destination ? sim_dest_of(lw, e, index, t, 0) : sim_source_of(lw, e, index, t, 0);
        lw->k->lists[f->list + k] = slot;
    }
    return true;
}

static sim_ins *emit(sim_lower *lw, sim_handler fn, const sim_tensor *t)
{
    sim_tensor *kept = sim_alloc(lw->m, sizeof *kept);
    *kept = *t;
    uint32_t everybody = sim_constant(lw, SIM_FULL, 1);
    sim_ins *i = sim_emit(lw, fn, F_SYNC);
    i->e = everybody;
    i->imm = (int64_t)(uintptr_t)kept;
    return i;
}

bool sim_constant_operand(sim_lower *lw, uint32_t index, int64_t least, int64_t most, int64_t *out)
{
    const sim_operand *o = &lw->s->operands[index];
    if (o->kind != O_INT) {
        sim_mismatch(lw, index, "expected a constant");
        return false;
    }
    if (o->value < least || o->value > most) {
        sim_reject(lw,
                   "Argument %u of instruction '%s': value '%lld' out of range, expected to be in range "
                   "[%lld..%lld]",
                   index, lw->full, (long long)o->value, (long long)least, (long long)most);
        return false;
    }
    *out = o->value;
    return true;
}

/* --- ldmatrix, stmatrix, movmatrix ------------------------------------------------------------ */

static bool matrix_memory(sim_lower *lw, const sim_statement *s, bool load, sim_tensor *t)
{
    words o;
    memset(t, 0, sizeof *t);
    if (!read_words(lw, s, W_WARP | W(SHAPE), W(TRANS) | W(X1) | W(X2) | W(X4) | W(SHARED) | W(SHARED_CTA),
                    &o)
        || !require_one(lw, &o, W(X1) | W(X2) | W(X4), ".x1, .x2, .x4") || !sim_operands_between(lw, 2, 2))
        return false;
    bool small = o.m == 8 && o.n == 8 && !o.k, trans = o.have & W(TRANS);
    uint8_t type = o.type_count ? o.types[o.type_count - 1] : E_NONE;
    t->count = o.have & W(X1) ? 1 : o.have & W(X2) ? 2 : 4;
    bool good =
        small ? o.type_count == 1 && type == E_B16
        : load
            ? (o.m == 16 && o.n == 16 && !o.k && trans && t->count < 4
               && ((o.type_count == 1 && type == E_B8)
                   || (o.type_count == 2 && o.types[0] == E_B8X16 && (type == E_B6X16 || type == E_B4X16))))
                  || (o.m == 8 && o.n == 16 && !o.k && !trans && o.type_count == 2 && o.types[0] == E_B8X16
                      && (type == E_B6X16 || type == E_B4X16))
            : o.m == 16 && o.n == 8 && !o.k && trans && o.type_count == 1 && type == E_B8;
    if (!good) {
        sim_reject(lw, "Shape, types and .trans do not go together in instruction '%s'", lw->full);
        return false;
    }
    if (!small)
        require_family(lw, 86, 100, 199);
    else
        sim_require_version(lw, lw->full, load ? (o.have & W(SHARED_CTA) ? 78 : 65) : 78, load ? 75 : 90);
    t->m = (uint16_t)o.m;
    t->trans = trans;
    t->space = o.have & (W(SHARED) | W(SHARED_CTA)) ? SP_SHARED : SP_GENERIC;
    t->a.type = type;
    uint32_t regs = o.m == 16 && load ? t->count * 2u : t->count;
    sim_fragment *f = load ? &t->d : &t->a;
    return sim_row_address(lw, load, (sim_space)t->space, &t->address, &t->offset, &t->wide)
           && fragment(lw, !load, regs, small ? E_B16 : E_B8, load, f);
}

void sim_lower_ldmatrix(sim_lower *lw, const sim_statement *s)
{
    sim_tensor t;
    uint8_t type;
    if (!matrix_memory(lw, s, true, &t)) return;
    type = t.a.type;
    t.d.type = type;
    emit(lw, sim_ldmatrix, &t);
}

void sim_lower_stmatrix(sim_lower *lw, const sim_statement *s)
{
    sim_tensor t;
    if (matrix_memory(lw, s, false, &t)) emit(lw, sim_stmatrix, &t);
}

void sim_lower_movmatrix(sim_lower *lw, const sim_statement *s)
{
    words o;
    sim_tensor t = { 0 };
    if (!read_words(lw, s, W_WARP | W(SHAPE) | W(TRANS), 0, &o) || !sim_operands_between(lw, 2, 2)) return;
    if (o.m != 8 || o.n != 8 || o.k || o.type_count != 1 || o.types[0] != E_B16) {
        sim_reject(lw, "Shape and type of instruction '%s' have to be .m8n8 and .b16", lw->full);
        return;
    }
    if (s->operands[1].kind == O_INT) {
        sim_mismatch(lw, 1, "expected a .b32 register");
        return;
    }
    uint32_t a = sim_source(lw, 1, T_B32, 0), d = sim_dest(lw, 0, T_B32, 0);
    sim_ins *i = emit(lw, sim_movmatrix, &t);
    i->a = a;
    i->d = d;
}

/* --- mma -------------------------------------------------------------------------------------- */

typedef struct mma_row {
    uint16_t m, n, k;
    const char *a, *b;   /* element types; b NULL: same as a */
    const char *results; /* types of D and C: "f32 f16" allows either, the same for both */
    uint8_t version, target;
    uint64_t kind;      /* of W_KINDS; nonzero: sm_120 family only */
    const char *scales; /* types of scale factors by vector size: see check_scales */
} mma_row;

#define BYTES "s8 u8"
#define NIBBLES "s4 u4"
#define FP8 "e4m3 e5m2"
#define FP864 "e4m3 e5m2 e3m2 e2m3 e2m1"

/* clang-format off */
static const mma_row dense_rows[] = {
    { 8, 8, 4, "f16", NULL, "f16 f32", 64, 70, 0, NULL },
    { 16, 8, 8, "f16", NULL, "f16 f32", 65, 75, 0, NULL },
    { 16, 8, 16, "f16", NULL, "f16 f32", 70, 80, 0, NULL },
    { 16, 8, 8, "bf16", NULL, "f32", 70, 80, 0, NULL },
    { 16, 8, 16, "bf16", NULL, "f32", 70, 80, 0, NULL },
    { 16, 8, 4, "tf32", NULL, "f32", 70, 80, 0, NULL },
    { 16, 8, 8, "tf32", NULL, "f32", 70, 80, 0, NULL },
    { 8, 8, 4, "f64", NULL, "f64", 70, 80, 0, NULL },
    { 16, 8, 4, "f64", NULL, "f64", 78, 90, 0, NULL },
    { 16, 8, 8, "f64", NULL, "f64", 78, 90, 0, NULL },
    { 16, 8, 16, "f64", NULL, "f64", 78, 90, 0, NULL },
    { 8, 8, 16, BYTES, BYTES, "s32", 65, 75, 0, NULL },
    { 16, 8, 16, BYTES, BYTES, "s32", 70, 80, 0, NULL },
    { 16, 8, 32, BYTES, BYTES, "s32", 70, 80, 0, NULL },
    { 8, 8, 32, NIBBLES, NIBBLES, "s32", 65, 75, 0, NULL },
    { 16, 8, 32, NIBBLES, NIBBLES, "s32", 70, 80, 0, NULL },
    { 16, 8, 64, NIBBLES, NIBBLES, "s32", 70, 80, 0, NULL },
    { 8, 8, 128, "b1", NULL, "s32", 70, 75, 0, NULL },
    { 16, 8, 128, "b1", NULL, "s32", 70, 80, 0, NULL },
    { 16, 8, 256, "b1", NULL, "s32", 70, 80, 0, NULL },
    { 16, 8, 32, FP8, FP8, "f32", 84, 89, 0, NULL },
    { 16, 8, 32, FP8, FP8, "f16", 87, 89, 0, NULL },
    { 16, 8, 16, FP8, FP8, "f16 f32", 87, 89, 0, NULL },
    { 16, 8, 16, FP8, FP8, "f16 f32", 87, 120, W(F8F6F4), NULL },
    { 16, 8, 32, FP864, FP864, "f16 f32", 87, 120, W(F8F6F4), NULL },
    { 16, 8, 32, FP864, FP864, "f32", 87, 120, W(MXF8F6F4), "ue8m0 1" },
    { 16, 8, 64, "e2m1", NULL, "f32", 87, 120, W(MXF4), "ue8m0 2" },
    { 16, 8, 64, "e2m1", NULL, "f32", 87, 120, W(MXF4NVF4), "ue8m0 2 ue4m3 4" },
};

static const mma_row sparse_rows[] = {
    { 16, 8, 16, "f16", NULL, "f16 f32", 71, 80, 0, NULL },
    { 16, 8, 32, "f16", NULL, "f16 f32", 71, 80, 0, NULL },
    { 16, 8, 16, "bf16", NULL, "f32", 71, 80, 0, NULL },
    { 16, 8, 32, "bf16", NULL, "f32", 71, 80, 0, NULL },
    { 16, 8, 8, "tf32", NULL, "f32", 71, 80, 0, NULL },
    { 16, 8, 16, "tf32", NULL, "f32", 71, 80, 0, NULL },
    { 16, 8, 32, BYTES, BYTES, "s32", 71, 80, 0, NULL },
    { 16, 8, 64, BYTES, BYTES, "s32", 71, 80, 0, NULL },
    { 16, 8, 64, NIBBLES, NIBBLES, "s32", 71, 80, 0, NULL },
    { 16, 8, 128, NIBBLES, NIBBLES, "s32", 71, 80, 0, NULL },
    { 16, 8, 64, FP8, FP8, "f32", 84, 89, 0, NULL },
    { 16, 8, 64, FP8, FP8, "f16", 87, 120, 0, NULL },
    { 16, 8, 64, FP864, FP864, "f16 f32", 87, 120, W(F8F6F4), NULL },
    { 16, 8, 64, FP864, FP864, "f32", 87, 120, W(MXF8F6F4), "ue8m0 1" },
    { 16, 8, 128, "e2m1", NULL, "f32", 87, 120, W(MXF4), "ue8m0 2" },
    { 16, 8, 128, "e2m1", NULL, "f32", 87, 120, W(MXF4NVF4), "ue8m0 2 ue4m3 4" },
};

/* clang-format on */

static const mma_row *find_row(const mma_row *rows, size_t count, const words *o, bool *shape)
{
    for (size_t k = 0; k < count; k++) {
        const mma_row *r = &rows[k];
        if (r->m != o->m || r->n != o->n || r->k != o->k || r->kind != (o->have & W_KINDS)) continue;
        *shape = true;
        if (o->type_count < 4 || !is_in_list(r->a, o->types[1]) || !is_in_list(r->results, o->types[0])
            || (r->b ? !is_in_list(r->b, o->types[2]) : o->types[1] != o->types[2]))
            continue;
        bool mixed = r->m == 8 && o->types[1] == E_F16 && o->types[0] == E_F32 && o->types[3] == E_F16;
        if (o->types[0] != o->types[3] && !mixed) continue;
        return r;
    }
    return NULL;
}

/* How many 32-bit registers (f64: elements) of each thread hold a matrix of so many elements. */
static uint32_t registers_of(uint32_t elements, uint8_t type)
{
    uint32_t bits = sim_elements[type].bits;
    return bits == 64 ? elements / SIM_LANES : elements * bits / (32 * SIM_LANES);
}

static bool lower_sparse(sim_lower *lw, uint32_t at, uint32_t k, uint8_t a, sim_tensor *t)
{
    uint32_t bits = sim_elements[a].bits;
    uint32_t threads = k / 2
                       * (bits == 32  ? 4
                          : bits == 4 ? 1
                                      : 2)
                       / 16; /* lanes of each four that provide metadata */
    int64_t selector;
    if (lw->s->operands[at].kind != O_REG) {
        sim_mismatch(lw, at, "expected a .b32 register");
        return false;
    }
    t->metadata = sim_source(lw, at, T_B32, 0);
    if (!sim_constant_operand(lw, at + 1, 0, threads >= 4 ? 0 : threads == 2 ? 1 : 3, &selector)) return false;
    t->selector = (uint8_t)selector;
    t->sparse = true;
    return true;
}

static bool lower_scales(sim_lower *lw, const words *o, const mma_row *row, uint32_t at, sim_tensor *t)
{
    uint8_t type = o->types[4];
    const char *name = strstr(row->scales, sim_elements[type].name);
    uint32_t given = o->have & W(VEC_1X)   ? 1
                     : o->have & W(VEC_2X) ? 2
                     : o->have & W(VEC_4X) ? 4
                                           : 0,
             vectors = name ? (uint32_t)(name[6] - '0') : 0;
    if (!name || (given ? given != vectors : row->kind == W(MXF4NVF4))) {
        sim_reject(lw, "Scale type and vector of instruction '%s' do not go together", lw->full);
        return false;
    }
    t->scale_type = type;
    t->scale_vectors = (uint8_t)vectors;
    for (uint32_t n = 0; n < 2; n++) {
        const sim_operand *pair = &lw->s->operands[at + n * 2 + 1];
        t->scale[n] = sim_source(lw, at + n * 2, T_B32, 0);
        if (pair->kind != O_VECTOR || pair->count != 2) {
            sim_mismatch(lw, at + n * 2 + 1, "expected {byte, thread}");
            return false;
        }
        int64_t most[2] = { vectors == 1 ? 3 : vectors == 2 ? 2 : 0, n ? 3 : 1 };
        for (uint32_t e = 0; e < 2; e++)
            if (pair->items[e].kind == O_INT
                && (pair->items[e].value < 0 || pair->items[e].value > most[e]
                    || (!e && vectors == 2 && pair->items[e].value & 1))) {
                sim_reject(lw, "Argument %u of instruction '%s': value '%lld' out of range", at + n * 2 + 1,
                           lw->full, (long long)pair->items[e].value);
                return false;
            }
        t->scale_byte[n] = sim_source_of(lw, &pair->items[0], at + n * 2 + 1, T_U16, 0);
        t->scale_thread[n] = sim_source_of(lw, &pair->items[1], at + n * 2 + 1, T_U16, 0);
    }
    return true;
}

static uint8_t element_in_kind(uint8_t type, const mma_row *r)
{
    return type == E_E2M1 && r->kind & (W(F8F6F4) | W(MXF8F6F4)) ? E_E2M1_BYTE : type;
}

static bool check_mma_words(sim_lower *lw, const words *o, const mma_row *row, bool sparse)
{
    uint8_t a = o->types[1];
    bool integer = a == E_S8 || a == E_U8 || a == E_S4 || a == E_U4, quads = row->m == 8 && a == E_F16,
         round = o->have & (W(RN) | W(RZ) | W(RM) | W(RP));
    if (o->layout_count != 2) {
        sim_reject(lw, "Both layouts are required for instruction '%s'", lw->full);
        return false;
    }
    if (!quads && (o->layouts[0] || !o->layouts[1])) {
        sim_reject(lw, "The layouts of instruction '%s' have to be .row.col", lw->full);
        return false;
    }
    if ((o->have & W(SATFINITE) && !integer) || (round && a != E_F64)
        || (o->have & (W(XOR) | W(AND) | W(POPC)) && a != E_B1)) {
        sim_reject(lw, "Illegal modifier for instruction '%s' of these types", lw->full);
        return false;
    }
    if (round && !require_one(lw, o, W(RN) | W(RZ) | W(RM) | W(RP), ".rn, .rz, .rm, .rp")) return false;
    if (a == E_B1) {
        if (!require_one(lw, o, W(XOR) | W(AND), ".xor, .and") || !(o->have & W(POPC))) {
            if (!(o->have & W(POPC)))
                sim_reject(lw, "Modifier '.popc' required for instruction '%s'", lw->full);
            return false;
        }
        if (o->have & W(AND)) sim_require_version(lw, lw->full, 71, 80);
    }
    if (row->kind) {
        bool scaled = row->scales != NULL;
        if (scaled != !!(o->have & W(BLOCK_SCALE)) || o->type_count != (scaled ? 5 : 4)
            || (!scaled && o->have & (W(VEC_1X) | W(VEC_2X) | W(VEC_4X)))) {
            sim_reject(lw, "Scaling and kind of instruction '%s' do not go together", lw->full);
            return false;
        }
        if (sparse && !(o->have & W(SP_ORDERED))) {
            sim_reject(lw, "Modifier '.sp::ordered_metadata' required for instruction '%s'", lw->full);
            return false;
        }
        require_family(lw, row->version, 120, 121);
    } else {
        if (o->type_count != 4 || o->have & (W(BLOCK_SCALE) | W(VEC_1X) | W(VEC_2X) | W(VEC_4X))) {
            sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
            return false;
        }
        if (row->target == 120) require_family(lw, row->version, 120, 121);
        else sim_require_version(lw, lw->full, row->version, row->target);
    }
    if (o->have & W(SP_ORDERED)) sim_require_version(lw, lw->full, 85, 80);
    return true;
}

void sim_lower_mma(sim_lower *lw, const sim_statement *s)
{
    words o;
    sim_tensor t = { 0 };
    bool shape = false;
    if (!read_words(lw, s, W_WARP | W(SHAPE) | W(LAYOUT),
                    W(SATFINITE) | W(SP) | W(SP_ORDERED) | W(XOR) | W(AND) | W(POPC) | W(RN) | W(RZ) | W(RM)
                        | W(RP) | W_KINDS | W(BLOCK_SCALE) | W(VEC_1X) | W(VEC_2X) | W(VEC_4X),
                    &o))
        return;
    bool sparse = o.have & (W(SP) | W(SP_ORDERED));
    const mma_row *row = sparse ? find_row(sparse_rows, sizeof sparse_rows / sizeof *sparse_rows, &o, &shape)
                                : find_row(dense_rows, sizeof dense_rows / sizeof *dense_rows, &o, &shape);
    if (!row) {
        if (shape)
            sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        else
            sim_reject(lw, "Shape .m%un%uk%u is not one of instruction '%s'", o.m, o.n, o.k, lw->full);
        return;
    }
    uint32_t count = 4 + (sparse ? 2 : 0) + (row->scales ? 4 : 0);
    if (!check_mma_words(lw, &o, row, sparse) || !sim_operands_between(lw, count, count)) return;
    uint8_t a = element_in_kind(o.types[1], row), b = element_in_kind(o.types[2], row);
    t.m = row->m;
    t.n = row->n;
    t.k = row->k;
    t.quads = row->m == 8 && a == E_F16;
    t.saturate = o.have & W(SATFINITE);
    t.bit_and = o.have & W(AND);
    t.a_col = o.layouts[0];
    t.b_col = o.layouts[1];
    t.rounding = o.have & W(RZ) ? 1 : o.have & W(RM) ? 2 : o.have & W(RP) ? 3 : 0;
    uint32_t results = row->m * row->n,
             na = t.quads ? 2 : registers_of(row->m * row->k / (sparse ? 2u : 1u), a),
             nb = t.quads ? 2 : registers_of(row->k * row->n, b);
    bool good = fragment(lw, 1, na, a, false, &t.a);
    good &= fragment(lw, 2, nb, b, false, &t.b);
    good &= fragment(lw, 3, t.quads ? (o.types[3] == E_F16 ? 4 : 8) : registers_of(results, o.types[3]),
                     o.types[3], false, &t.c);
    if (sparse) good &= lower_sparse(lw, 4, row->k, a, &t);
    if (row->scales) good &= lower_scales(lw, &o, row, sparse ? 6 : 4, &t);
    good &= fragment(lw, 0, t.quads ? (o.types[0] == E_F16 ? 4 : 8) : registers_of(results, o.types[0]),
                     o.types[0], true, &t.d);
    t.sum = sim_sum_rule(&t, SIM_MMA);
    if (good) emit(lw, sim_mma, &t);
}

/* --- wmma ------------------------------------------------------------------------------------- */

typedef struct wmma_row {
    uint8_t m, n, k;
    const char *types, *results;
    uint8_t version, target, a, b; /* registers of A and B */
} wmma_row;

static const wmma_row wmma_rows[] = {
    { 16, 16, 16, "f16", "f16 f32", 60, 70, 8, 8 }, { 8, 32, 16, "f16", "f16 f32", 61, 70, 8, 8 },
    { 32, 8, 16, "f16", "f16 f32", 61, 70, 8, 8 },  { 16, 16, 16, "bf16", "f32", 70, 80, 4, 4 },
    { 8, 32, 16, "bf16", "f32", 70, 80, 2, 8 },     { 32, 8, 16, "bf16", "f32", 70, 80, 8, 2 },
    { 16, 16, 8, "tf32", "f32", 70, 80, 4, 4 },     { 8, 8, 4, "f64", "f64", 70, 80, 1, 1 },
    { 16, 16, 16, "s8 u8", "s32", 63, 72, 2, 2 },   { 8, 32, 16, "s8 u8", "s32", 63, 72, 1, 4 },
    { 32, 8, 16, "s8 u8", "s32", 63, 72, 4, 1 },    { 8, 8, 32, "s4 u4", "s32", 63, 75, 1, 1 },
    { 8, 8, 128, "b1", "s32", 63, 75, 1, 1 },
};

static const wmma_row *find_wmma(sim_lower *lw, const words *o, uint8_t type, bool result)
{
    bool shape = false;
    for (size_t k = 0; k < sizeof wmma_rows / sizeof *wmma_rows; k++) {
        const wmma_row *r = &wmma_rows[k];
        if (r->m != o->m || r->n != o->n || r->k != o->k) continue;
        shape = true;
        if (is_in_list(result ? r->results : r->types, type)) return r;
    }
    if (shape)
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
    else
        sim_reject(lw, "Shape .m%un%uk%u is not one of instruction '%s'", o->m, o->n, o->k, lw->full);
    return NULL;
}

static void lower_wmma_memory(sim_lower *lw, const words *o, bool store)
{
    sim_tensor t = { 0 };
    uint64_t parts = W(A) | W(B) | W(C) | W(D), part = o->have & parts;
    if (!require_one(lw, o, parts, store ? ".d" : ".a, .b, .c")) return;
    if ((part == W(D)) != store) {
        sim_reject(lw, "Illegal matrix for instruction '%s'", lw->full);
        return;
    }
    if (o->type_count != 1 || o->layout_count != 1) {
        sim_reject(lw, "One type and one layout are required for instruction '%s'", lw->full);
        return;
    }
    if (!sim_operands_between(lw, 2, 3)) return;
    bool result = part & (W(C) | W(D));
    uint8_t type = o->types[0];
    const wmma_row *r = find_wmma(lw, o, type, result);
    if (!r) return;
    if (sim_elements[type].bits < 8 && o->layouts[0] != (part == W(B))) {
        sim_reject(lw, "Illegal layout for instruction '%s': .%s is required", lw->full,
                   part == W(B) ? "col" : "row");
        return;
    }
    sim_require_version(lw, lw->full, r->version, r->target);
    t.m = r->m;
    t.n = r->n;
    t.k = r->k;
    t.part = part == W(A) ? 'a' : part == W(B) ? 'b' : 'c';
    t.a_col = o->layouts[0];
    t.space = o->have & W(GLOBAL)                     ? SP_GLOBAL
              : o->have & (W(SHARED) | W(SHARED_CTA)) ? SP_SHARED
                                                      : SP_GENERIC;
    uint32_t regs = part == W(A) ? r->a : part == W(B) ? r->b : registers_of(t.m * t.n, type);
    bool good = sim_row_address(lw, !store, (sim_space)t.space, &t.address, &t.offset, &t.wide);
    good &= fragment(lw, store, regs, type, !store, store ? &t.a : &t.d);
    t.has_stride = lw->s->operand_count == 3;
    if (t.has_stride) t.stride = sim_source(lw, 2, T_U32, 0);
    if (good) emit(lw, store ? sim_wmma_store : sim_wmma_load, &t);
}

static void lower_wmma_mma(sim_lower *lw, words *o)
{
    sim_tensor t = { 0 };
    if (o->type_count == 4 && o->types[1] == E_F16) o->type_count = 0;
    if (o->type_count == 2) { /* f16: only D and C are given */
        o->types[3] = o->types[1];
        o->types[1] = o->types[2] = E_F16;
        o->type_count = 4;
    }
    if (o->type_count != 4 || o->layout_count != 2) {
        sim_reject(lw, "Types or layouts are missing in instruction '%s'", lw->full);
        return;
    }
    const wmma_row *r = find_wmma(lw, o, o->types[1], false);
    if (!r) return;
    uint8_t a = o->types[1];
    bool round = o->have & (W(RN) | W(RZ) | W(RM) | W(RP)), bits = sim_elements[a].bits < 8;
    if (o->types[2] != a || !is_in_list(r->results, o->types[0]) || !is_in_list(r->results, o->types[3])
        || (bits && (o->layouts[0] || !o->layouts[1])) || (round && a != E_F64)
        || (o->have & (W(XOR) | W(AND) | W(POPC)) && a != E_B1)
        || (o->have & W(SATFINITE) && !is_in_list(BYTES " " NIBBLES, a))) {
        sim_reject(lw, "Modifiers and types do not go together in instruction '%s'", lw->full);
        return;
    }
    if (a == E_B1 && (!(o->have & W(POPC)) || !require_one(lw, o, W(XOR) | W(AND), ".xor, .and"))) {
        if (!(o->have & W(POPC))) sim_reject(lw, "Modifier '.popc' required for instruction '%s'", lw->full);
        return;
    }
    if (!sim_operands_between(lw, 4, 4)) return;
    sim_require_version(lw, lw->full, r->version, r->target);
    if (o->have & W(AND)) sim_require_version(lw, lw->full, 71, 80);
    t.m = r->m;
    t.n = r->n;
    t.k = r->k;
    t.saturate = o->have & W(SATFINITE);
    t.bit_and = o->have & W(AND);
    t.rounding = o->have & W(RZ) ? 1 : o->have & W(RM) ? 2 : o->have & W(RP) ? 3 : 0;
    bool good = fragment(lw, 1, r->a, a, false, &t.a);
    good &= fragment(lw, 2, r->b, a, false, &t.b);
    good &= fragment(lw, 3, registers_of(t.m * t.n, o->types[3]), o->types[3], false, &t.c);
    good &= fragment(lw, 0, registers_of(t.m * t.n, o->types[0]), o->types[0], true, &t.d);
    t.sum = sim_sum_rule(&t, SIM_WMMA);
    if (good) emit(lw, sim_mma, &t);
}

void sim_lower_wmma(sim_lower *lw, const sim_statement *s)
{
    words o;
    if (!read_words(lw, s, W_WARP | W(SHAPE) | W(LAYOUT),
                    W(LOAD) | W(STORE) | W(MMA) | W(A) | W(B) | W(C) | W(D) | W(GLOBAL) | W(SHARED)
                        | W(SHARED_CTA) | W(SATFINITE) | W(XOR) | W(AND) | W(POPC) | W(RN) | W(RZ) | W(RM)
                        | W(RP),
                    &o)
        || !require_one(lw, &o, W(LOAD) | W(STORE) | W(MMA), ".load, .store, .mma"))
        return;
    uint64_t memory = W(A) | W(B) | W(C) | W(D) | W(GLOBAL) | W(SHARED) | W(SHARED_CTA),
             product = W(SATFINITE) | W(XOR) | W(AND) | W(POPC) | W(RN) | W(RZ) | W(RM) | W(RP);
    if (o.have & (o.have & W(MMA) ? memory : product)) {
        sim_reject(lw, "Illegal modifier for instruction '%s'", lw->full);
        return;
    }
    sim_require_version(lw, lw->full, 63, 0);                   /* because W_WARP requires .aligned */
    if (o.have & W(MMA))
        lower_wmma_mma(lw, &o);
    else
        lower_wmma_memory(lw, &o, o.have & W(STORE));
}

/* --- wgmma ------------------------------------------------------------------------------------ */

typedef struct wgmma_row {
    const char *types, *results; /* of A and B, which may differ if several; of D */
    uint8_t bytes;               /* N is a multiple of 8, for integer types of 16 */
    bool transposes, scales;
} wgmma_row;

static const wgmma_row wgmma_rows[] = {
    { "f16", "f16 f32", 0, true, true }, { "bf16", "f32", 0, true, true },  { "tf32", "f32", 0, false, true },
    { FP8, "f16 f32", 0, false, true },  { BYTES, "s32", 1, false, false }, { "b1", "s32", 1, false, false },
};

static bool wgmma_order(sim_lower *lw, const words *o)
{
    uint64_t which = o->have & (W(FENCE) | W(COMMIT) | W(WAIT));
    sim_tensor t = { 0 };
    int64_t pending = 0;
    if (o->type_count || o->layout_count || (o->have & ~(W_WARP | which))) {
        sim_reject(lw, "Illegal modifier for instruction '%s'", lw->full);
        return false;
    }
    uint32_t count = which == W(WAIT) ? 1 : 0;
    if (!sim_operands_between(lw, count, count) || (count && !sim_constant_operand(lw, 0, 0, INT32_MAX, &pending)))
        return false;
    if (which == W(WAIT)) {
        sim_ins *gather = sim_emit(lw, sim_wgmma_gather, F_WAIT);
        gather->c = (uint32_t)pending;
        gather->last = 0;
    }
    sim_ins *i = emit(lw, sim_wgmma_order, &t);
    i->op = which == W(FENCE) ? 0 : which == W(COMMIT) ? 1 : 2;
    i->c = (uint32_t)pending;
    return true;
}

static const wgmma_row *find_wgmma(sim_lower *lw, const words *o, bool sparse)
{
    const wgmma_row *row = NULL;
    for (size_t k = 0; k < sizeof wgmma_rows / sizeof *wgmma_rows && o->type_count == 3; k++)
        if (is_in_list(wgmma_rows[k].types, o->types[1]) && is_in_list(wgmma_rows[k].types, o->types[2])
            && is_in_list(wgmma_rows[k].results, o->types[0]))
            row = &wgmma_rows[k];
    if (!row || (sparse && o->types[1] == E_B1)) {
        sim_reject(lw, "Unexpected instruction types specified for '%s'", lw->full);
        return NULL;
    }
    uint32_t k = 256u / sim_elements[o->types[1]].bits * (sparse ? 2 : 1);
    bool steps = !row->bytes || o->n == 8 || o->n == 24 || o->n % 16 == 0;
    if (o->m != 64 || !o->n || o->n > 256 || o->n % 8 || !steps || o->k != k) {
        sim_reject(lw, "Illegal matrix shape '.m%un%uk%u' for instruction '%s'", o->m, o->n, o->k, lw->full);
        return NULL;
    }
    return row;
}

static void lower_wgmma_product(sim_lower *lw, const sim_statement *s, const words *o)
{
    bool sparse = o->have & W(SP), bits = o->type_count == 3 && o->types[1] == E_B1;
    const wgmma_row *row = find_wgmma(lw, o, sparse);
    sim_tensor t = { 0 };
    int64_t v;
    if (!row) return;
    if (o->layout_count
        || (bits ? (o->have & (W(AND) | W(POPC))) != (W(AND) | W(POPC)) : o->have & (W(AND) | W(POPC)))
        || (o->have & W(SATFINITE) && (row->scales || bits))) {
        sim_reject(lw, "Illegal modifiers for instruction '%s'", lw->full);
        return;
    }
    if (sparse) sim_require_version(lw, lw->full, 82, 90);
    uint32_t at = sparse ? 5 : 3;
    bool shared = s->operand_count > 1 && s->operands[1].kind != O_VECTOR;
    uint32_t count = at + 1 + (row->scales ? 2 : 0) + (row->transposes ? (shared ? 2 : 1) : 0);
    if (!sim_operands_between(lw, count, count)) return;
    t.m = 16;
    t.n = (uint16_t)o->n;
    t.k = (uint16_t)o->k;
    t.saturate = o->have & W(SATFINITE);
    t.bit_and = true;
    t.a_shared = shared;
    bool good = true;
    if (shared) {
        t.a_descriptor = sim_source(lw, 1, T_B64, 0);
        t.a.type = o->types[1];
    } else
        good &= fragment(lw, 1, 4, o->types[1], false, &t.a);
    t.b_descriptor = sim_source(lw, 2, T_B64, 0);
    t.b.type = o->types[2];
    if (sparse) good &= lower_sparse(lw, 3, t.k, o->types[1], &t);
    t.scale_d = sim_source_pred(lw, at++);
    for (uint32_t n = 0; n < 2 && row->scales; n++, at++) {
        if (s->operands[at].kind != O_INT || (s->operands[at].value != 1 && s->operands[at].value != -1)) {
            sim_reject(lw, "Argument %u of instruction '%s': expected to be -1 or 1", at, lw->full);
            return;
        }
        *(n ? &t.b_negative : &t.a_negative) = s->operands[at].value < 0;
    }
    for (uint32_t n = shared ? 0 : 1; n < 2 && row->transposes; n++, at++) {
        if (!sim_constant_operand(lw, at, 0, 1, &v)) return;
        *(n ? &t.b_trans : &t.a_trans) = v;
    }
    uint32_t regs = registers_of(16u * t.n, o->types[0]);
    good &= fragment(lw, 0, regs, o->types[0], true, &t.d);
    if (!good) return;
    t.c = t.d; /* watched as written only: scale-d may make C unused */
    t.sum = sim_sum_rule(&t, SIM_WGMMA);
    t.touched_count = t.d.regs + t.a.regs;
    t.touched = sim_list_begin(lw, t.touched_count);
    for (uint32_t n = 0; n < t.touched_count; n++) lw->k->lists[t.touched + n] = UINT32_MAX;
    emit(lw, sim_wgmma, &t);
    lw->k->bulk_stores = true;
}

void sim_lower_wgmma(sim_lower *lw, const sim_statement *s)
{
    words o;
    uint64_t all = W(FENCE) | W(COMMIT) | W(WAIT) | W(ASYNC);
    if (!read_words(lw, s, W(SYNC), W(ALIGNED) | all | W(SHAPE) | W(SP) | W(SATFINITE) | W(AND) | W(POPC), &o)
        || !require_one(lw, &o, all, ".fence, .commit_group, .wait_group, .mma_async"))
        return;
    if (lw->m->target != 90 || lw->m->target_suffix != 'a') {
        sim_reject(lw, "Instruction '%s' not supported on .target 'sm_%u%.1s': it requires sm_90a", lw->full,
                   lw->m->target, lw->m->target_suffix ? &lw->m->target_suffix : "");
        return;
    }
    if (o.have & W(ASYNC))
        lower_wgmma_product(lw, s, &o);
    else
        wgmma_order(lw, &o);
}

/* --- registers that wgmma or tcgen05.ld may still use ----------------------------------------- */

/* Gives every register that a wgmma adds to or reads A from, or that tcgen05.ld loads, a word of the warp's watches,
 * after those of registers.c, where tensor.c keeps its state. word_of: by slot, the word's index + 1. */
void sim_wgmma_watch(sim_lower *lw, uint32_t *word_of)
{
    sim_kernel *k = lw->k;
    k->wgmma_first = k->watch_count;
    for (uint32_t c = 0; c < k->code_count; c++) {
        if (k->code[c].fn == sim_tcgen05_ld) {
            const sim_tcgen05 *o = sim_tcgen05_of(&k->code[c]);
            for (uint32_t n = 0; n < o->regs + (o->reduce ? 1u : 0u); n++) {
                uint32_t slot = n < o->regs ? k->lists[o->list + n] : o->result;
                if (!word_of[slot]) word_of[slot] = ++k->watch_count;
                k->lists[o->touched + n] = word_of[slot] - 1;
            }
            continue;
        }
        if (k->code[c].fn != sim_wgmma) continue;
        const sim_tensor *t = sim_tensor_of(&k->code[c]);
        for (uint32_t n = 0; n < t->touched_count; n++) {
            uint32_t slot = k->lists[n < t->d.regs ? t->d.list + n : t->a.list + n - t->d.regs];
            if (!word_of[slot]) word_of[slot] = ++k->watch_count;
            k->lists[t->touched + n] = word_of[slot] - 1;
        }
    }
    k->wgmma_count = k->watch_count - k->wgmma_first;
}

bool sim_wgmma_used(const sim_kernel *k)
{
    for (uint32_t c = 0; c < k->code_count; c++)
        if (k->code[c].fn == sim_wgmma || k->code[c].fn == sim_tcgen05_ld) return true;
    return false;
}
