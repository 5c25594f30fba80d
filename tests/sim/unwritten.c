/* unwritten.c - follows unwritten values through registers and reports their first use.
 *
 * Loading bytes that nothing wrote is no fault yet, nor is moving such a register: compilers copy
 * structs whole, padding included, fill bit fields by reading them first, and compute before they know
 * whether the result is needed. Unwritten bits are marked in a second bank of registers, which a warp has
 * from its first such read on, and each instruction propagates the marks: the registers noted when it was
 * lowered say what it reads and writes, and its own handler, run on several values of the marked bits,
 * shows which bits of the result depend on them. A finding is reported where a marked bit takes effect: a branch,
 * an address, an atomic, a matrix, a computed value in global memory, a result that nobody reads. It names
 * the load, or the instruction that first computed with the register, and the place of the effect.
 *
 * A value that is only moved leaves its destination as unwritten as its source was. For shared and local memory
 * the origin of such bytes is kept word by word beside their shadow; for global memory it is not. */
#include "race.h"
#include "lower.h"
#include "unwritten.h"

#define UNWRITTEN_CELL "nothing has written lane %u of column %u of tensor memory"
enum { MAX_ORIGINS = 0x7ffe, COMPUTED = 0x8000, TRIALS = 8, MAX_USES = 24, HASH = 1 << 12, GAP = 32 };

typedef enum gap { G_PADDING, G_WIDE, G_ALL } gap; /* unwritten bytes in a row: few, GAP or more, all that there are */

/* Why a value is undefined: nothing wrote it, or the instruction leaves it undefined. */
typedef enum why { W_UNWRITTEN, W_ABSENT, W_ZERO, W_OTHER_BITS, W_CELL } why;

typedef struct origin {
    const sim_ins *ins;
    const char *name; /* of a register; NULL: memory, as below */
    uint64_t address;
    uint32_t thread, bytes;
    uint32_t byte; /* W_ABSENT: the lane read; W_OTHER_BITS: operand c; W_CELL: its address */
    sim_space space;
    uint8_t gap; /* G_ */
    bool kept;   /* it has been stored to memory since */
    uint8_t why; /* W_ */
} origin;

/* A warp's marks: unwritten bits by slot and lane, as in its bank; their origins by slot and lane. */
typedef struct marks {
    uint32_t *bits, *preds;
    uint16_t *from, *preds_from;
    uint8_t *has;   /* by slot: whether some lane has marked bits */
    uint32_t count; /* slots and predicates with marks */
} marks;

struct sim_unwritten {
    const sim_kernel *kernel;
    origin *origins;
    uint32_t origin_count, origin_capacity, warps;
    uint16_t hash[HASH];
    uint16_t *shared, *local; /* origins by word */
    marks *of;
};

/* --- while a kernel is lowered ---------------------------------------------------------------- */

static bool one_of(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n])) return true;
    return false;
}

static bool whole_number(sim_type t)
{
    return sim_types[t].kind == K_BITS || sim_types[t].kind == K_UINT || sim_types[t].kind == K_SINT;
}

static sim_effect effect_of(const sim_lower *lw, uint32_t first, uint32_t codes)
{
    const sim_statement *s = lw->s;
    const sim_ins *last = &lw->k->code[first + codes - 1];
    if (!s) return E_BITS; /* a parameter in a register (calls.c) */
    if (s->type_count && s->types[0] == T_B128) return E_USE;
    for (uint32_t k = 0; k < codes; k++) {
        sim_flow flow = (sim_flow)lw->k->code[first + k].flow;
        if (flow == F_CALL || flow == F_RETURN) return E_CALL;
    }
    if (last->fn == sim_ld) return E_LOAD;
    if (last->fn == sim_st) return E_STORE;
    if (last->fn == sim_shfl) return E_SHUFFLE;
    if (last->fn == sim_divide || last->fn == sim_vote || last->fn == sim_match || last->fn == sim_redux) return E_ANY;
    for (uint32_t k = 0; k < codes; k++)
        if (lw->k->code[first + k].flow != F_PLAIN) return E_USE;
    if (one_of(s->opcode, "mov and or xor not lop3 shl shr shf bfe bfi prmt selp brev szext ld"))
        return E_BITS;
    if (!strcmp(s->opcode, "cvt") && s->type_count == 2 && whole_number((sim_type)s->types[0])
        && whole_number((sim_type)s->types[1]) && !sim_mod(&s->mods, M_sat) && !sim_mod(&s->mods, M_pack))
        return E_BITS;
    if (!strcmp(s->opcode, "setp") && codes == 1 && s->type_count && s->types[0] != T_F16X2
        && s->types[0] != T_BF16X2)
        return E_COMPARE;
    if (one_of(s->opcode, "setp set testp")) return E_ANY;
    sim_class c = (sim_class)last->cls;
    return c <= C_MOVE || c == C_SPECIAL ? E_VALUE : E_USE;
}

void sim_unwritten_statement(sim_lower *lw, uint32_t first_note, uint32_t first_code)
{
    sim_kernel *k = lw->k;
    uint32_t codes = k->code_count - first_code, count = lw->note_count - first_note;
    if (!codes || !count || k->broken_uses) return;
    if (k->code_capacity > k->statement_capacity) {
        sim_uses_of *grown = realloc(k->statements, k->code_capacity * sizeof *grown);
        if (!grown) {
            k->broken_uses = true;
            return;
        }
        memset(grown + k->statement_capacity, 0, (k->code_capacity - k->statement_capacity) * sizeof *grown);
        k->statements = grown;
        k->statement_capacity = k->code_capacity;
    }
    if (k->use_count + count > k->use_capacity) {
        uint32_t wanted = (k->use_count + count) * 2;
        sim_use *grown = realloc(k->uses, wanted * sizeof *grown);
        if (!grown) {
            k->broken_uses = true;
            return;
        }
        k->uses = grown;
        k->use_capacity = wanted;
    }
    sim_uses_of *s = &k->statements[first_code];
    s->first = k->use_count;
    s->count = count;
    s->codes = (uint16_t)(codes > 65535 ? 65535 : codes);
    s->effect = (uint8_t)effect_of(lw, first_code, codes);
    s->integers = lw->s && lw->s->type_count && whole_number((sim_type)lw->s->types[0]);
    for (uint32_t n = 0; n < count; n++) {
        const sim_note_entry *e = &lw->notes[first_note + n];
        k->uses[k->use_count++] = (sim_use){e->slot, e->pred, e->write, e->guard, e->name};
    }
}

/* Notes that the slot is a register of one or two bytes. */
void sim_unwritten_narrow(sim_lower *lw, uint32_t slot, uint32_t bytes)
{
    sim_kernel *k = lw->k;
    if (!(k->narrow_count & (k->narrow_count - 1))) { /* a power of two: full, or empty */
        sim_narrow *grown = realloc(k->narrow, (k->narrow_count ? 2 * k->narrow_count : 1) * sizeof *grown);
        if (!grown) {
            k->broken_uses = true;
            return;
        }
        k->narrow = grown;
    }
    k->narrow[k->narrow_count++] = (sim_narrow){slot, (uint8_t)bytes};
}

void sim_unwritten_kernel_free(sim_kernel *k)
{
    free(k->statements);
    free(k->uses);
    free(k->slot_bytes);
    free(k->narrow);
    free(k->unread);
}

/* --- results that nobody reads: found when the first mark is made ------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void through(const sim_kernel *k, uint32_t code, uint64_t *live, uint8_t *unread)
{
    const sim_uses_of *s = &k->statements[code];
    uint32_t base = k->reg_slots;
    bool any = false, all = true;
    if (s->effect == E_INNER) return;
    for (uint32_t n = 0; n < s->count; n++) {
        const sim_use *u = &k->uses[s->first + n];
        uint32_t v = u->pred ? base + u->slot : u->slot;
        if (!u->write) continue;
        any = true;
        all &= !(live[v >> 6] >> (v & 63) & 1);
        if (!k->code[code].guard) live[v >> 6] &= ~(UINT64_C(1) << (v & 63));
    }
    if (unread && any && all) unread[code >> 3] |= (uint8_t)(1u << (code & 7));
    for (uint32_t n = 0; n < s->count; n++) {
        const sim_use *u = &k->uses[s->first + n];
        uint32_t v = u->pred ? base + u->slot : u->slot;
        if (!u->write) live[v >> 6] |= UINT64_C(1) << (v & 63);
    }
}

static bool goes_on(const sim_ins *i)
{
    bool leaves = i->flow == F_BRANCH || i->flow == F_EXIT || i->flow == F_TRAP || i->flow == F_RETURN;
    return !leaves || i->guard;
}

typedef struct liveness {
    uint32_t words, *label; /* of a set; by pc: its label's number, or 0 */
    uint64_t *in, *live;    /* sets: live at each label; live here */
} liveness;

/* One backward pass over the code. True: some label's set has grown. */
static bool walk_back(const sim_kernel *k, liveness *v, uint8_t *unread)
{
    bool grown = false;
    memset(v->live, 0, (size_t)v->words * 8);
    for (uint32_t c = k->code_count; c-- > 0;) {
        const sim_ins *i = &k->code[c];
        if (!goes_on(i)) memset(v->live, 0, (size_t)v->words * 8);
        if ((i->flow == F_BRANCH || i->flow == F_INDEXED) && (uint64_t)i->imm < k->code_count) {
            const uint64_t *there = v->in + (size_t)(v->label[i->imm] - 1) * v->words;
            for (uint32_t n = 0; n < v->words; n++) v->live[n] |= there[n];
        }
        through(k, c, v->live, unread);
        if (!v->label[c]) continue;
        uint64_t *here = v->in + (size_t)(v->label[c] - 1) * v->words;
        for (uint32_t n = 0; n < v->words; n++) {
            grown |= (v->live[n] & ~here[n]) != 0;
            here[n] |= v->live[n];
        }
    }
    return grown;
}

static void find_unread(const sim_kernel *k, uint8_t *unread)
{
    uint32_t labels = 0;
    liveness v = {(k->reg_slots + k->preds + 63) / 64, NULL, NULL, NULL};
    v.label = calloc(k->code_count + 1u, sizeof *v.label);
    v.live = malloc((size_t)v.words * 8 + 8);
    for (uint32_t c = 0; v.label && c < k->code_count; c++) {
        const sim_ins *i = &k->code[c];
        if ((i->flow == F_BRANCH || i->flow == F_INDEXED) && (uint64_t)i->imm < k->code_count
            && !v.label[i->imm])
            v.label[i->imm] = ++labels;
    }
    if ((uint64_t)labels * v.words < 1 << 22) v.in = calloc((size_t)labels * v.words + 1, 8);
    if (v.label && v.live && v.in) {
        while (walk_back(k, &v, NULL)) {}
        walk_back(k, &v, unread);
    }
    free(v.label);
    free(v.in);
    free(v.live);
}

static bool prepare(sim_kernel *k)
{
    pthread_mutex_lock(&lock);
    if (!k->unread && !k->broken_uses) {
        uint8_t *bytes = malloc(k->reg_slots + 1u), *unread = calloc(k->code_count / 8 + 1u, 1);
        sim_uses_of *grown = realloc(k->statements, (k->code_count + 1u) * sizeof *grown);
        if (grown) {
            if (k->statement_capacity < k->code_count)
                memset(grown + k->statement_capacity, 0,
                       (k->code_count - k->statement_capacity) * sizeof *grown);
            k->statements = grown;
            k->statement_capacity = k->code_count;
        }
        if (bytes && unread && grown) {
            memset(bytes, 4, k->reg_slots + 1u);
            for (uint32_t n = 0; n < k->pair_count; n++) bytes[k->pairs[n]] = 8;
            for (uint32_t n = 0; n < k->narrow_count; n++) bytes[k->narrow[n].slot] = k->narrow[n].bytes;
            find_unread(k, unread);
            k->slot_bytes = bytes;
            k->unread = unread;
        } else {
            free(bytes);
            free(unread);
            k->broken_uses = true;
        }
    }
    bool good = k->unread != NULL && !k->broken_uses;
    pthread_mutex_unlock(&lock);
    return good;
}

static bool result_unread(const sim_kernel *k, const sim_ins *i)
{
    uint32_t c = (uint32_t)(i - k->code);
    while (c && k->statements[c].effect == E_INNER) c--;
    return k->unread[c >> 3] >> (c & 7) & 1;
}

static bool wide(const sim_kernel *k, uint32_t slot) { return k->slot_bytes[slot] == 8; }

/* --- marks ------------------------------------------------------------------------------------ */

static void free_marks(struct sim_unwritten *u)
{
    for (uint32_t n = 0; n < u->warps; n++) {
        free(u->of[n].bits);
        free(u->of[n].from);
        free(u->of[n].has);
        free(u->of[n].preds);
        free(u->of[n].preds_from);
    }
    free(u->of);
    free(u->origins);
    free(u->shared);
    free(u->local);
    free(u);
}

void sim_unwritten_free(sim_block *b)
{
    if (b->unwritten) free_marks(b->unwritten);
    b->unwritten = NULL;
}

void sim_unwritten_begin(sim_block *b) { sim_unwritten_free(b); }

/* The warp's marks, made when first needed; NULL: out of memory, unwritten values are not followed. */
static marks *marks_of(sim_warp *w)
{
    sim_block *b = w->block;
    const sim_kernel *k = w->kernel;
    if (!b->unwritten) {
        if (!prepare((sim_kernel *)(uintptr_t)k)) return NULL;
        struct sim_unwritten *u = calloc(1, sizeof *u);
        if (!u) return NULL;
        u->of = calloc(b->warp_count, sizeof *u->of);
        u->origins = malloc(64 * sizeof *u->origins);
        if (!u->of || !u->origins) {
            free_marks(u);
            return NULL;
        }
        u->origin_capacity = 64;
        u->warps = b->warp_count;
        u->kernel = k;
        b->unwritten = u;
    }
    marks *x = &b->unwritten->of[w->index];
    if (!x->bits) {
        size_t n = k->reg_slots + 1u;
        uint32_t *bits = calloc(n * SIM_LANES, sizeof *bits);
        x->from = calloc(n * SIM_LANES, sizeof *x->from);
        x->has = calloc(n, 1);
        x->preds = calloc(k->preds + 1u, sizeof *x->preds);
        x->preds_from = calloc(k->preds + 1u, sizeof *x->preds_from);
        if (!bits || !x->from || !x->has || !x->preds || !x->preds_from) {
            free(bits);
            free(x->from);
            free(x->has);
            free(x->preds);
            free(x->preds_from);
            memset(x, 0, sizeof *x);
            return NULL;
        }
        x->bits = bits;
    }
    return x;
}

static marks *present(const sim_warp *w) { return &w->block->unwritten->of[w->index]; }

static uint64_t get(const sim_warp *w, const marks *x, uint32_t slot, uint32_t lane)
{
    if (slot & SIM_CONST_BANK || !x->has[slot]) return 0;
    const uint32_t *at = x->bits + (size_t)slot * SIM_LANES;
    uint64_t v;
    if (!wide(w->kernel, slot)) return at[lane];
    memcpy(&v, at + 2 * lane, 8);
    return v;
}

static void set_known_bits(const sim_warp *w, marks *x, uint32_t slot, uint32_t lane, uint64_t bits, uint32_t from)
{
    uint32_t *at = x->bits + (size_t)slot * SIM_LANES;
    uint32_t bytes = w->kernel->slot_bytes[slot];
    if (bytes < 8) bits &= (UINT64_C(1) << 8 * bytes) - 1;
    if (bytes == 8)
        memcpy(at + 2 * lane, &bits, 8);
    else
        at[lane] = (uint32_t)bits;
    x->from[(size_t)slot * SIM_LANES + lane] = (uint16_t)from;
}

/* After put: updates the counts of marked slots and w->unwritten. */
static void settle(sim_warp *w, marks *x, uint32_t slot)
{
    const uint32_t *at = x->bits + (size_t)slot * SIM_LANES;
    uint32_t any = 0, n = wide(w->kernel, slot) ? 2 * SIM_LANES : SIM_LANES;
    for (uint32_t k = 0; k < n; k++) any |= at[k];
    x->count += (any != 0) - (uint32_t)x->has[slot];
    x->has[slot] = any != 0;
    w->unwritten = x->count != 0;
}

static void put_pred(sim_warp *w, marks *x, uint32_t p, uint32_t lanes, uint32_t value, uint32_t from)
{
    uint32_t before = x->preds[p] != 0;
    x->preds[p] = (x->preds[p] & ~lanes) | (value & lanes);
    if (value & lanes) x->preds_from[p] = (uint16_t)from;
    x->count += (x->preds[p] != 0) - before;
    w->unwritten = x->count != 0;
}

static void clear(sim_warp *w, marks *x, uint32_t slot, bool pred, uint32_t lanes)
{
    if (pred) {
        if (x->preds[slot]) put_pred(w, x, slot, lanes, 0, 0);
        return;
    }
    if (!x->has[slot]) return;
    SIM_EACH_LANE(l, lanes) set_known_bits(w, x, slot, l, 0, 0);
    settle(w, x, slot);
}

/* Lanes of m that have marked bits in this source. */
static uint32_t marked(const sim_warp *w, const marks *x, uint32_t slot, bool pred, uint32_t m)
{
    uint32_t r = 0;
    if (pred) return x->preds[slot] & m;
    if (!x->has[slot]) return 0;
    SIM_EACH_LANE(l, m) r |= (uint32_t)(get(w, x, slot, l) != 0) << l;
    return r;
}

static uint32_t whence(const marks *x, uint32_t slot, bool pred, uint32_t lane)
{
    return pred ? x->preds_from[slot] | (uint32_t)COMPUTED : x->from[(size_t)slot * SIM_LANES + lane];
}

/* --- origins ---------------------------------------------------------------------------------- */

static uint32_t remember(sim_warp *w, const origin *o)
{
    struct sim_unwritten *u = w->block->unwritten;
    uint64_t h = (o->address + ((uint64_t)(uintptr_t)(o->ins - w->kernel->code) << 20) + o->thread)
                     * UINT64_C(0x9e3779b97f4a7c15)
                 >> 52;
    const origin *same = u->hash[h] ? &u->origins[u->hash[h] - 1] : NULL;
    if (same && same->ins == o->ins && same->address == o->address && same->thread == o->thread
        && same->name == o->name && same->kept == o->kept)
        return u->hash[h];
    if (u->origin_count == u->origin_capacity) {
        uint32_t wanted = u->origin_capacity * 2 > MAX_ORIGINS ? MAX_ORIGINS : u->origin_capacity * 2;
        origin *grown = wanted > u->origin_capacity ? realloc(u->origins, wanted * sizeof *grown) : NULL;
        if (!grown) { /* full: reuse one of the same instruction */
            for (uint32_t n = 0; n < u->origin_count; n++)
                if (u->origins[n].ins == o->ins) return n + 1;
            return 1;
        }
        u->origins = grown;
        u->origin_capacity = wanted;
    }
    u->origins[u->origin_count++] = *o;
    return u->hash[h] = (uint16_t)u->origin_count;
}

static void tell(sim_warp *w, const sim_ins *i, uint32_t from, const char *what)
{
    const struct sim_unwritten *u = w->block->unwritten;
    uint32_t n = from & 0x7fff;
    char where[200] = "", shows[420] = "", place[SIM_LINE_TEXT];
    if (!n || n > u->origin_count) return;
    const origin *o = &u->origins[n - 1];
    sim_warp *reader = &w->block->warps[o->thread / SIM_LANES];
    if (i != o->ins) snprintf(shows, sizeof shows, "; %s %s", sim_line_text(w->kernel->module, i->line, place), what);
    if (o->why == W_ABSENT) {
        if (sim_option.sync_masks)
            sim_report_at(reader, o->ins, "absent-lane", o->thread % SIM_LANES,
                          "reads from lane %u, which does not take part%s", o->byte, shows);
        return;
    }
    if (o->why == W_ZERO) {
        if (sim_option.suspects)
            sim_report_at(reader, o->ins, "division-by-zero", o->thread % SIM_LANES,
                          "the divisor is 0, which leaves the result undefined%s", shows);
        return;
    }
    if (o->why == W_OTHER_BITS) {
        if (sim_option.suspects)
            sim_report_at(reader, o->ins, "count-range", o->thread % SIM_LANES, OTHER_BITS "%s", o->byte, shows);
        return;
    }
    if (o->name) {
        if (sim_option.registers)
            sim_report_at(reader, o->ins, "uninitialised-register", o->thread % SIM_LANES,
                          "register '%s' is read before anything was written to it%s", o->name, shows);
        return;
    }
    if (!sim_option.uninitialised) return;
    if (o->why == W_CELL) {
        sim_report_at(reader, o->ins, "uninitialised-read", o->thread % SIM_LANES, UNWRITTEN_CELL "%s",
                      o->byte >> 16, o->byte & 0xffff, shows);
        return;
    }
    if (o->space == SP_GLOBAL) sim_memory_describe(o->address + o->byte, 1, where, sizeof where);
    sim_report_at(reader, o->ins, "uninitialised-read", o->thread % SIM_LANES,
                  "read of %u bytes at %s address 0x%llx: byte %u was never written%s%s%s", o->bytes,
                  o->space == SP_SHARED  ? "shared"
                  : o->space == SP_LOCAL ? "local"
                                         : "global",
                  (unsigned long long)o->address, o->byte, *where ? "; " : "", where, shows);
}

/* Reports these lanes' unwritten values, and treats them as written from here on. */
static void shows(sim_warp *w, const sim_ins *i, marks *x, uint32_t slot, bool pred, uint32_t lanes,
                  const char *what)
{
    if (!lanes) return;
    tell(w, i, whence(x, slot, pred, sim_lowest(lanes)), what);
    clear(w, x, slot, pred, lanes);
}

/* Marks results that an instruction leaves undefined; out of memory, it reports them at once. */
static void undefined(sim_warp *w, const sim_ins *i, uint32_t slot, uint32_t lanes, why y, const uint32_t *read)
{
    marks *x = marks_of(w);
    SIM_EACH_LANE(l, lanes) {
        origin o = {.ins = i, .thread = sim_thread_of(w, l), .gap = G_WIDE, .why = (uint8_t)y,
                    .byte = read ? read[l] : 0};
        if (x && y != W_ABSENT && get(w, x, slot, l)) continue; /* an operand was unwritten */
        if (x) set_known_bits(w, x, slot, l, UINT64_MAX, remember(w, &o) | COMPUTED);
        else if (y == W_ABSENT) {
            sim_report_at(w, i, "absent-lane", l, "reads from lane %u, which does not take part", o.byte);
            return;
        } else if (y == W_OTHER_BITS) {
            sim_report_at(w, i, "count-range", l, OTHER_BITS, o.byte);
            return;
        } else if (y == W_CELL) {
            sim_report_at(w, i, "uninitialised-read", l, UNWRITTEN_CELL, o.byte >> 16, o.byte & 0xffff);
            return;
        }
    }
    if (x) settle(w, x, slot);
}

/* shfl reads lanes that do not take part. */
void sim_unwritten_absent(sim_warp *w, const sim_ins *i, uint32_t lanes, const uint32_t *from)
{ undefined(w, i, i->d, lanes, W_ABSENT, from); }

/* shfl with meaningless bits in operand c: a warp whose result nobody reads may compute such a clamp. */
void sim_unwritten_other_bits(sim_warp *w, const sim_ins *i, uint32_t lanes, const uint32_t *c)
{ undefined(w, i, i->d, lanes, W_OTHER_BITS, c); }

/* tcgen05.ld of unwritten cells of tensor memory; address: that of the first one. */
void sim_unwritten_cells(sim_warp *w, const sim_ins *i, uint32_t slot, uint32_t lanes, uint32_t address)
{
    uint32_t at[SIM_LANES];
    for (uint32_t l = 0; l < SIM_LANES; l++) at[l] = address;
    undefined(w, i, slot, lanes, W_CELL, at);
}

/* div and rem: the quotient by 0 is undefined. */
void sim_divide(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint64_t *wide_b = sim_slot64(w, i->b);
    const uint32_t *b = sim_slot(w, i->b), cut = i->width ? SIM_FULL : 0xffff;
    uint32_t some = 0, zero = 0;       /* some: in any of the 32 lanes, found quickly */
    if (i->width == 2) for (uint32_t l = 0; l < SIM_LANES; l++) some |= !wide_b[l];
    else for (uint32_t l = 0; l < SIM_LANES; l++) some |= !(b[l] & cut);
    if (SIM_UNLIKELY(some))
        SIM_EACH_LANE(l, m) zero |= (uint32_t)!(i->width == 2 ? wide_b[l] : b[l] & cut) << l;
    sim_op_handler((int)i->imm)(w, i, m);
    if (SIM_UNLIKELY(zero)) undefined(w, i, i->d, zero, W_ZERO, NULL);
}

/* Moves an argument or a result between registers, with its marks. count: slots of 32 bits. */
void sim_pass(sim_warp *w, const sim_ins *i, uint32_t m)
{
    for (uint32_t n = 0; n < i->count; n += 2) {
        if (i->count == 1) sim_op_handler(OP_mov_32)(w, i, m);
        else SIM_EACH_LANE(l, m) sim_slot64(w, i->d + n)[l] = sim_slot64(w, i->a + n)[l];
        if (!w->unwritten) continue;
        marks *x = present(w);
        bool none = i->a & SIM_CONST_BANK || !x->has[i->a + n];
        if (none && !x->has[i->d + n]) continue;
        SIM_EACH_LANE(l, m)
            set_known_bits(w, x, i->d + n, l, none ? 0 : get(w, x, i->a + n, l),
                           none ? 0 : whence(x, i->a + n, false, l));
        settle(w, x, i->d + n);
    }
}

/* An unwritten register is read: marks all its bits. */
void sim_unwritten_register(sim_warp *w, const sim_ins *i, uint32_t slot, bool pred, uint32_t lanes,
                            const char *name)
{
    marks *x = marks_of(w);
    if (!x) {
        sim_report_at(w, i, "uninitialised-register", sim_lowest(lanes),
                      "register '%s' is read before anything was written to it", name ? name : "?");
        return;
    }
    SIM_EACH_LANE(l, lanes) {
        origin o = {.ins = i, .name = name ? name : "?", .thread = sim_thread_of(w, l), .gap = G_WIDE};
        if (pred) {
            put_pred(w, x, slot, 1u << l, SIM_FULL, remember(w, &o));
            continue;
        }
        if (get(w, x, slot, l)) continue; /* marked already */
        set_known_bits(w, x, slot, l, UINT64_MAX, remember(w, &o));
    }
    if (!pred) settle(w, x, slot);
}

/* A finding about a register names the first computation with it, not the moves: updates the origin. */
static uint32_t computed(sim_warp *w, const sim_ins *i, uint32_t from, uint32_t lane)
{
    const struct sim_unwritten *u = w->block->unwritten;
    uint32_t n = from & 0x7fff;
    if (from & COMPUTED || !n || n > u->origin_count || !u->origins[n - 1].name) return from | COMPUTED;
    origin o = u->origins[n - 1];
    o.ins = i;
    o.thread = sim_thread_of(w, lane);
    return remember(w, &o) | COMPUTED;
}

/* --- what a result depends on ----------------------------------------------------------------- */

typedef struct kept {
    uint32_t v[2 * SIM_LANES];
    uint32_t pred;
} kept;

static void save_values(const sim_warp *w, const sim_use *u, kept *k)
{
    if (u->pred)
        k->pred = w->p[u->slot];
    else
        memcpy(k->v, sim_slot(w, u->slot), (wide(w->kernel, u->slot) ? 2 : 1) * SIM_LANES * sizeof *k->v);
}

static void give_back(const sim_warp *w, const sim_use *u, const kept *k)
{
    if (u->pred)
        w->p[u->slot] = k->pred;
    else
        memcpy(sim_slot(w, u->slot), k->v, (wide(w->kernel, u->slot) ? 2 : 1) * SIM_LANES * sizeof *k->v);
}

/* Values for marked bits: trials 0 to 3 set even and odd sources to zeros or ones in all combinations; then random. */
static uint64_t trial(uint32_t t, uint32_t source, uint32_t lane)
{
    if (t < 4) return (t & 1) ^ ((t >> 1) & source & 1) ? UINT64_MAX : 0;
    uint64_t h = (((uint64_t)t << 40) + ((uint64_t)source << 32) + lane + 1) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

static void try_value(const sim_warp *w, const marks *x, const sim_use *u, uint32_t t, uint32_t source,
                      uint32_t m)
{
    if (u->pred) {
        uint32_t bits = x->preds[u->slot] & m, v = 0;
        SIM_EACH_LANE(l, bits) v |= (uint32_t)(trial(t, source, l) >> 7 & 1) << l;
        w->p[u->slot] = (w->p[u->slot] & ~bits) | v;
        return;
    }
    if (!x->has[u->slot]) return;
    SIM_EACH_LANE(l, m) {
        uint64_t bits = get(w, x, u->slot, l), v = trial(t, source, l);
        if (!bits) continue;
        if (wide(w->kernel, u->slot)) {
            uint64_t *at = sim_slot64(w, u->slot) + l;
            *at = (*at & ~bits) | (v & bits);
        } else {
            uint32_t *at = sim_slot(w, u->slot) + l;
            *at = (*at & ~(uint32_t)bits) | ((uint32_t)v & (uint32_t)bits);
        }
    }
}

/* Extends marks of a computed value to whole bytes: a bit may be equal in all trials by chance. */
static uint64_t whole_bytes(uint64_t v)
{
    uint64_t r = 0;
    for (uint32_t n = 0; n < 64; n += 8)
        if (v >> n & 0xff) r |= UINT64_C(0xff) << n;
    return r;
}

/* For each lane, the origin of a marked source; of a computed one, if there is one. */
static void sources_from(sim_warp *w, const sim_ins *i, const marks *x, const sim_uses_of *s, uint32_t m,
                         bool compute, uint32_t *from)
{
    memset(from, 0, SIM_LANES * sizeof *from);
    for (uint32_t n = 0; n < s->count; n++) {
        const sim_use *u = &w->kernel->uses[s->first + n];
        if (u->write || u->guard) continue;
        SIM_EACH_LANE(l, marked(w, x, u->slot, u->pred, m)) {
            uint32_t f = whence(x, u->slot, u->pred, l);
            if (!from[l] || (f & COMPUTED && !(from[l] & COMPUTED))) from[l] = f;
        }
    }
    SIM_EACH_LANE(l, m) if (compute && from[l]) from[l] = computed(w, i, from[l], l);
}

static void mark(sim_warp *w, marks *x, const sim_use *u, uint32_t m, const kept *bits,
                 const uint32_t *from)
{
    if (u->pred) {
        uint32_t some = bits->pred & m;
        put_pred(w, x, u->slot, m, bits->pred, some ? from[sim_lowest(some)] : 0);
        return;
    }
    SIM_EACH_LANE(l, m) {
        uint64_t v = bits->v[l];
        if (wide(w->kernel, u->slot)) memcpy(&v, bits->v + 2 * l, 8);
        set_known_bits(w, x, u->slot, l, v, v ? from[l] : 0);
    }
    settle(w, x, u->slot);
}

/* Marks the result bits that change with the marked source bits, found by running the handlers. */
static void depend(sim_warp *w, const sim_ins *i, marks *x, const sim_uses_of *s, uint32_t m)
{
    const sim_use *uses = w->kernel->uses + s->first;
    kept *before = malloc(3 * s->count * sizeof *before), *first, *differ;
    uint32_t from[SIM_LANES], cc = w->cc;
    if (!before) return;
    first = before + s->count;
    differ = first + s->count;
    memset(differ, 0, s->count * sizeof *differ);
    for (uint32_t n = 0; n < s->count; n++) save_values(w, &uses[n], &before[n]);
    for (uint32_t t = 0; t < TRIALS; t++) {
        for (uint32_t n = 0; n < s->count; n++) give_back(w, &uses[n], &before[n]);
        for (uint32_t n = 0, source = 0; n < s->count; n++)
            if (!uses[n].write && !uses[n].guard) try_value(w, x, &uses[n], t, source++, m);
        w->cc = cc;
        for (uint32_t c = 0; c < s->codes; c++) i[c].fn(w, &i[c], m);
        for (uint32_t n = 0; n < s->count; n++) {
            kept now;
            if (!uses[n].write) continue;
            memset(&now, 0, sizeof now);
            save_values(w, &uses[n], t ? &now : &first[n]);
            if (!t) continue;
            if (uses[n].pred) {
                differ[n].pred |= now.pred ^ first[n].pred;
                continue;
            }
            uint32_t words = wide(w->kernel, uses[n].slot) ? 2 * SIM_LANES : SIM_LANES;
            for (uint32_t k = 0; k < words; k++) differ[n].v[k] |= now.v[k] ^ first[n].v[k];
        }
    }
    for (uint32_t n = 0; n < s->count; n++) give_back(w, &uses[n], &before[n]);
    w->cc = cc;
    sources_from(w, i, x, s, m, s->effect != E_BITS, from);
    for (uint32_t n = 0; n < s->count; n++) {
        if (!uses[n].write) continue;
        if (s->effect != E_BITS && !uses[n].pred)
            for (uint32_t k = 0; k < 2 * SIM_LANES; k++)
                differ[n].v[k] = (uint32_t)whole_bytes(differ[n].v[k]);
        mark(w, x, &uses[n], m, &differ[n], from);
    }
    free(before);
}

/* setp: the lanes whose comparison depends on marked bits. Trials would hardly produce equal values. */
static uint32_t undecided(const sim_warp *w, const marks *x, const sim_ins *i, const sim_uses_of *s,
                          uint32_t m)
{
    uint32_t cmp = (i->x & X_CMP) >> X_CMP_SHIFT, r = 0;
    bool equal = s->integers && (cmp == CMP_EQ || cmp == CMP_NE);
    bool both = !(i->a & SIM_CONST_BANK) && wide(w->kernel, i->a);
    both |= !(i->b & SIM_CONST_BANK) && wide(w->kernel, i->b);
    SIM_EACH_LANE(l, m) {
        uint64_t va = get(w, x, i->a, l), vb = get(w, x, i->b, l), a, b;
        if (!(va | vb)) continue;
        a = both ? sim_slot64(w, i->a)[l] : sim_slot(w, i->a)[l];
        b = both ? sim_slot64(w, i->b)[l] : sim_slot(w, i->b)[l];
        if (equal && (a ^ b) & ~(va | vb)) continue;
        r |= 1u << l;
    }
    return r;
}

static uint32_t joined(uint32_t how, uint32_t r, uint32_t c)
{
    return how == BOOL_AND ? r & c : how == BOOL_OR ? r | c : how == BOOL_XOR ? r ^ c : r;
}

static void compare(sim_warp *w, const sim_ins *i, marks *x, const sim_uses_of *s, uint32_t m)
{
    uint32_t open = undecided(w, x, i, s, m), how = (i->x & X_BOOL) >> X_BOOL_SHIFT, differ[2] = {0, 0},
             from[SIM_LANES], c = how ? sim_pred(w, i->c) : 0,
             open_c = how ? x->preds[i->c & ~SIM_PRED_NOT] & m : 0, p = w->p[i->d],
             q = i->q ? w->p[i->q - 1] : 0;
    sim_ins alone = *i;
    alone.x &= ~(uint32_t)X_BOOL;
    alone.fn(w, &alone, m);
    uint32_t r = w->p[i->d];
    w->p[i->d] = p;
    if (i->q) w->p[i->q - 1] = q;
    for (uint32_t n = 1; n < 4; n++) {
        uint32_t r2 = n & 1 ? r ^ open : r, c2 = n & 2 ? c ^ open_c : c;
        differ[0] |= joined(how, r, c) ^ joined(how, r2, c2);
        differ[1] |= joined(how, ~r, c) ^ joined(how, ~r2, c2);
    }
    sources_from(w, i, x, s, m, true, from);
    put_pred(w, x, i->d, m, differ[0], differ[0] & m ? from[sim_lowest(differ[0] & m)] : 0);
    if (i->q) put_pred(w, x, i->q - 1, m, differ[1], differ[1] & m ? from[sim_lowest(differ[1] & m)] : 0);
}

/* Marks all result bits of lanes with a marked source (warp: of all lanes, if any has one). */
static void spread(sim_warp *w, const sim_ins *i, marks *x, const sim_uses_of *s, uint32_t m, bool warp)
{
    uint32_t from[SIM_LANES], some = 0;
    kept all;
    sources_from(w, i, x, s, m, true, from);
    SIM_EACH_LANE(l, m) if (from[l]) some |= 1u << l;
    if (!some) return;
    if (warp) {
        SIM_EACH_LANE(l, m & ~some) from[l] = from[sim_lowest(some)];
        some = m;
    }
    for (uint32_t n = 0; n < s->count; n++) {
        const sim_use *u = &w->kernel->uses[s->first + n];
        if (!u->write) continue;
        memset(&all, 0, sizeof all);
        all.pred = some;
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            if (!(some >> l & 1)) continue;
            if (wide(w->kernel, u->slot))
                all.v[2 * l] = all.v[2 * l + 1] = SIM_FULL;
            else
                all.v[l] = SIM_FULL;
        }
        mark(w, x, u, m, &all, from);
    }
}

/* --- one instruction, before it is executed ----------------------------------------------------- */

static bool stored(const sim_kernel *k, const sim_ins *i, uint32_t slot)
{
    for (uint32_t n = 0; n < i->count; n++)
        if ((k->lists[i->list + n] & ~SIM_WIDE) == slot) return true;
    return false;
}

static bool called_by(const sim_ins *i, uint32_t codes, const sim_use *u)
{
    for (uint32_t c = 0; c < codes; c++)
        if (i[c].flow == F_CALL && i[c].op && i[c].a == u->slot && !u->pred && !u->write) return true;
    return false;
}

static const char *shown_by(const sim_ins *i)
{
    switch (i->flow) {
    case F_BRANCH:
    case F_INDEXED: return "decides by it where to go";
    default: return "makes use of it";
    }
}

void sim_unwritten_step(sim_warp *w, const sim_ins *i, uint32_t active, uint32_t m)
{
    const sim_kernel *k = w->kernel;
    const sim_uses_of *s = &k->statements[i - k->code];
    marks *x = present(w);
    bool read = false, result = false;
    if (s->effect == E_INNER) return;
    for (uint32_t n = 0; n < s->count; n++) {
        const sim_use *u = &k->uses[s->first + n];
        bool some = u->pred ? x->preds[u->slot] != 0 : x->has[u->slot];
        if (u->guard && some)
            shows(w, i, x, u->slot, true, x->preds[u->slot] & active,
                  i->flow == F_BRANCH ? "decides by it where to go" : "does something or nothing by it");
        else if (u->write)
            result |= some;
        else
            read |= some && marked(w, x, u->slot, u->pred, m);
    }
    if (!m) return;
    uint32_t effect = s->effect;
    if (s->count > MAX_USES && (effect == E_VALUE || effect == E_BITS)) effect = E_ANY;
    if (read) switch (effect) {
        case E_LOAD:
        case E_STORE:
        case E_USE:
            for (uint32_t n = 0; n < s->count; n++) {
                const sim_use *u = &k->uses[s->first + n];
                if (u->write || u->guard || (effect == E_STORE && stored(k, i + s->codes - 1, u->slot)))
                    continue;
                shows(w, i, x, u->slot, u->pred, marked(w, x, u->slot, u->pred, m),
                      effect == E_USE ? shown_by(i) : "takes it as an address");
            }
            break;
        case E_CALL: /* a call uses only its pointer; the rest is passed on */
            for (uint32_t n = 0; n < s->count; n++) {
                const sim_use *u = &k->uses[s->first + n];
                if (called_by(i, s->codes, u)) shows(w, i, x, u->slot, false, marked(w, x, u->slot, false, m),
                                                        "calls with it");
            }
            break;
        case E_SHUFFLE: return; /* see sim_unwritten_shuffle */
        case E_COMPARE: compare(w, i, x, s, m); break;
        case E_ANY: spread(w, i, x, s, m, i->flow == F_SYNC); break;
        default: depend(w, i, x, s, m); break;
        }
    if (effect == E_SHUFFLE || effect == E_CALL) return; /* they set the marks of their results themselves */
    bool carried = read && (effect == E_VALUE || effect == E_BITS || effect == E_COMPARE || effect == E_ANY);
    for (uint32_t n = 0; n < s->count && (carried || result); n++) {
        const sim_use *u = &k->uses[s->first + n];
        if (!u->write) continue;
        if (!carried)
            clear(w, x, u->slot, u->pred, m);
        else if (effect != E_BITS && result_unread(k, i))
            shows(w, i, x, u->slot, u->pred, marked(w, x, u->slot, u->pred, m), "computes with it");
    }
}

void sim_unwritten_shuffle(sim_warp *w, const sim_ins *i, uint32_t m, const uint32_t *from)
{
    marks *x = present(w);
    uint64_t bits[SIM_LANES];
    uint32_t whence_[SIM_LANES];
    if (i->q) clear(w, x, i->q - 1, true, m);
    if (!(i->b & SIM_CONST_BANK))
        shows(w, i, x, i->b, false, marked(w, x, i->b, false, m), "reads a lane by it");
    if (!(i->c & SIM_CONST_BANK))
        shows(w, i, x, i->c, false, marked(w, x, i->c, false, m), "reads a lane by it");
    bool none = i->a & SIM_CONST_BANK || !x->has[i->a];
    if (none) {
        clear(w, x, i->d, false, m);
        return;
    }
    SIM_EACH_LANE(l, m) {
        bits[l] = get(w, x, i->a, from[l]);
        whence_[l] = whence(x, i->a, false, from[l]);
    }
    SIM_EACH_LANE(l, m) set_known_bits(w, x, i->d, l, bits[l], whence_[l]);
    settle(w, x, i->d);
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool bit(const uint8_t *shadow, uint64_t n)
{
    return sim_shadow_byte(shadow + (n >> 3)) >> (n & 7) & 1;
}

/* How many bytes around these are unwritten: no more than padding in a struct, more, or the whole allocation. */
static gap gap_at(const sim_unwritten_place *p, uint64_t offset, uint32_t bytes)
{
    uint64_t first = offset, end = offset + bytes;
    if (!p->a) return G_PADDING;
    while (first && offset - first < GAP && !bit(p->shadow, first - 1)) first--;
    while (end < p->a->size && end - offset < GAP && !bit(p->shadow, end)) end++;
    return !first && end == p->a->size ? G_ALL : end - first >= GAP ? G_WIDE : G_PADDING;
}

static uint16_t *words_of(const sim_warp *w, const sim_unwritten_place *p, bool make)
{
    struct sim_unwritten *u = w->block->unwritten;
    size_t n;
    if (p->space == SP_SHARED) {
        if (p->owner != w->block) return NULL;
        n = w->launch->shared_bytes / 4 + 2;
        if (!u->shared && make) u->shared = calloc(n, sizeof *u->shared);
        return u->shared;
    }
    if (p->space != SP_LOCAL) return NULL;
    n = (size_t)w->kernel->local_bytes * SIM_LANES * w->launch->warps / 4 + 2;
    if (!u->local && make) u->local = calloc(n, sizeof *u->local);
    return u->local ? u->local + (size_t)w->kernel->local_bytes * SIM_LANES * w->index / 4 : NULL;
}

/* A load of partly unwritten bytes: marks what it loads. False: it must be reported at once. */
bool sim_unwritten_load(sim_warp *w, const sim_ins *i, uint32_t m, const sim_unwritten_place *p)
{
    const uint32_t *list = w->kernel->lists + i->list;
    marks *x = marks_of(w);
    if (!x || i->size == 16) return false;
    if (result_unread(w->kernel, i) && !(i->x & (X_VOLATILE | X_PARAM))
        && !(p->space == SP_LOCAL && i->space == SP_GENERIC))
        return false;  /* exceptions: compilers keep volatile loads, -G others, and load whole structs */
    const uint16_t *words = words_of(w, p, false);
    for (uint32_t k = 0; k < i->count; k++) {
        if (list[k] == UINT32_MAX) continue;
        uint32_t slot = list[k] & ~SIM_WIDE, size = i->size;
        SIM_EACH_LANE(l, m) {
            uint64_t offset = p->at[l] - p->base + (uint64_t)k * size, bits = 0;
            uint32_t first = 0, from = 0;
            for (uint32_t n = size; n-- > 0;)
                if (!bit(p->shadow, offset + n)) {
                    bits |= UINT64_C(0xff) << 8 * n;
                    first = n;
                }
            if (size < 8 && i->x & X_SIGNED && bits >> (8 * size - 1) & 1) bits |= UINT64_MAX << 8 * size;
            if (bits && words) from = words[(offset + first) / 4];
            if (bits && !from) {
                uint64_t shown = p->at[l] + (uint64_t)k * size;
                if (p->space == SP_LOCAL) shown %= w->kernel->local_bytes;
                origin o = {i,    NULL,  shown,    sim_thread_of(w, l),
                            size, first, p->space, gap_at(p, offset, size), false, W_UNWRITTEN};
                from = remember(w, &o);
            }
            set_known_bits(w, x, slot, l, bits, from);
        }
        settle(w, x, slot);
    }
    return true;
}

/* Clears the marks of a load's result when all its bytes were written. */
void sim_unwritten_loaded(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *list = w->kernel->lists + i->list;
    for (uint32_t k = 0; k < i->count; k++)
        if (list[k] != UINT32_MAX) clear(w, present(w), list[k] & ~SIM_WIDE, false, m);
}

typedef struct value {
    uint64_t bits;
    uint32_t from, unwritten;
    bool back;
} value; /* unwritten: a bit for each byte; back: stored to the address it was loaded from */

/* Describes an element of a store. A bit field is filled by reading it first: if the element goes back to where it
 * came from, a byte with some known bits counts as written. */
static void describe_element(const sim_warp *w, const marks *x, const sim_ins *i, uint32_t slot, uint32_t lane,
                             uint64_t address, value *v)
{
    const struct sim_unwritten *u = w->block->unwritten;
    memset(v, 0, sizeof *v);
    if (slot & SIM_CONST_BANK) return;
    v->bits = get(w, x, slot, lane);
    v->from = whence(x, slot, false, lane);
    uint32_t n = v->from & 0x7fff;
    const origin *o = n && n <= u->origin_count ? &u->origins[n - 1] : NULL;
    bool back = v->back = o && !o->name && !(v->from & COMPUTED) && address < o->address + o->bytes
                && o->address < address + i->size;
    for (uint32_t k = 0; k < i->size; k++) {
        uint32_t byte = v->bits >> 8 * k & 0xff;
        if (byte == 0xff || (byte && !back)) v->unwritten |= 1u << k;
        if (byte && byte != 0xff && !back) v->from |= COMPUTED;
    }
}

/* Whether lanes store consecutive elements of an array (or all the same one). With gaps between, they may store one
 * member of structs, which may be padding. */
static bool array(const sim_unwritten_place *p, uint32_t m, uint32_t bytes)
{
    uint32_t first = sim_lowest(m);
    bool same = true;
    for (uint32_t l = 0; l < SIM_LANES; l++) {
        if (!(m >> l & 1)) continue;
        same &= p->at[l] == p->at[first];
        SIM_EACH_LANE(k, m) if (p->at[k] == p->at[l] + bytes) return true;
    }
    return same;
}

/* Whether a store is reported. A move within a struct is not: its bytes stay unwritten. */
static bool is_reportable(const sim_warp *w, const sim_unwritten_place *p, const value *v, bool elements, bool whole)
{
    const struct sim_unwritten *u = w->block->unwritten;
    if (p->space == SP_LOCAL || (p->space == SP_SHARED && p->owner == w->block)) return false;
    if (v->from & COMPUTED || !v->from) return true;
    const origin *o = &u->origins[(v->from & 0x7fff) - 1];
    if (o->name && !o->kept) return elements; /* even for half of a pair */
    bool part = v->back && !whole; /* part of a bit field */
    if (o->gap == G_ALL) return !part;
    return elements && ((o->gap == G_WIDE && !part) || (whole && (o->name || o->space == SP_SHARED)));
}

/* A strong store of several values is a flag and its data. Readers of the flag may not use all data (the sum of
 * a part that nobody comes after): a finding is reported where they do. */
static bool message(const sim_ins *i) { return i->x & X_VOLATILE && i->count > 1; }

/* The origin that stands for a register's value once it is in memory. */
static uint32_t in_memory(sim_warp *w, uint32_t from)
{
    const struct sim_unwritten *u = w->block->unwritten;
    uint32_t n = from & 0x7fff;
    if (!n || n > u->origin_count || !u->origins[n - 1].name || u->origins[n - 1].kept) return from;
    origin o = u->origins[n - 1];
    o.kept = true;
    return remember(w, &o) | (from & COMPUTED);
}

static void leave(sim_warp *w, const sim_unwritten_place *p, uint64_t offset, uint32_t size, const value *v)
{
    uint16_t *words = words_of(w, p, true);
    uint32_t from = words && v->unwritten ? in_memory(w, v->from) : 0;
    for (uint32_t k = 0; k < size; k++) {
        if (!(v->unwritten >> k & 1)) {
            sim_shadow_set(p->shadow, offset + k, 1);
            continue;
        }
        sim_shadow_clear(p->shadow, offset + k, 1);
        if (words) words[(offset + k) / 4] = (uint16_t)from;
    }
    if (p->a) atomic_store(&p->a->padded, true);
}

/* A store while some register has marks. False: no stored register has any. */
bool sim_unwritten_store(sim_warp *w, const sim_ins *i, uint32_t m, const sim_unwritten_place *p)
{
    const uint32_t *list = w->kernel->lists + i->list;
    marks *x = present(w);
    bool any = false;
    for (uint32_t k = 0; k < i->count; k++) {
        uint32_t slot = list[k] & ~SIM_WIDE;
        if (slot & SIM_CONST_BANK) continue;
        any |= x->has[slot];
    }
    if (!any || i->size == 16) return false;
    bool elements = array(p, m, (uint32_t)i->size * i->count);
    SIM_EACH_LANE(l, m) {
        value v[8];
        uint32_t all = (1u << i->size) - 1;
        bool whole = true;
        for (uint32_t k = 0; k < i->count && k < 8; k++) {
            uint64_t at = p->space == SP_LOCAL ? p->at[l] % w->kernel->local_bytes : p->at[l];
            describe_element(w, x, i, list[k] & ~SIM_WIDE, l, at + (uint64_t)k * i->size, &v[k]);
            whole &= v[k].unwritten == all;
        }
        for (uint32_t k = 0; k < i->count && k < 8; k++) {
            uint32_t slot = list[k] & ~SIM_WIDE;
            if (v[k].unwritten && !message(i) && is_reportable(w, p, &v[k], elements, whole)) {
                shows(w, i, x, slot, false, marked(w, x, slot, false, 1u << l), "stores it");
                v[k].unwritten = 0;
            }
            if (p->shadow) leave(w, p, p->at[l] - p->base + (uint64_t)k * i->size, i->size, &v[k]);
        }
    }
    return true;
}

/* Parameters or results of a call are copied in local memory, with their origins. */
void sim_unwritten_copied(sim_warp *w, uint32_t lane, uint64_t from, uint64_t to, uint32_t bytes)
{
    struct sim_unwritten *u = w->block->unwritten;
    if (!u || !u->local) return;
    uint64_t start = (uint64_t)sim_thread_of(w, lane) * w->kernel->local_bytes;
    for (uint32_t n = 0; n < bytes; n += 4) u->local[(start + to + n) / 4] = u->local[(start + from + n) / 4];
}

void sim_unwritten_forgotten(sim_warp *w, uint32_t lane, uint64_t from, uint64_t to)
{
    struct sim_unwritten *u = w->block->unwritten;
    if (!u || !u->local) return;
    uint64_t start = (uint64_t)sim_thread_of(w, lane) * w->kernel->local_bytes;
    for (uint64_t n = from; n < to; n++) u->local[(start + n) / 4] = 0;
}

/* An asynchronous copy has written to shared memory: the old origins no longer hold. */
void sim_unwritten_arrived(sim_block *b, uint32_t to, uint32_t bytes)
{
    if (!b->unwritten || !b->unwritten->shared) return;
    for (uint32_t n = 0; n < bytes; n++) b->unwritten->shared[(to + n) / 4] = 0;
}

/* The registers of a re-entered function are restored: they lose their marks. */
void sim_unwritten_restored(sim_warp *w, const sim_routine *r, uint32_t lane)
{
    marks *x = present(w);
    for (uint32_t s = r->slot_lo; s < r->slot_hi; s++) clear(w, x, s, false, 1u << lane);
    for (uint32_t p = r->pred_lo; p < r->pred_hi; p++) clear(w, x, p, true, 1u << lane);
}
