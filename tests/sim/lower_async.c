/* lower_async.c - lowering of clusters, mbarriers, bulk and tensor copies. */
#include "async.h"
#include "bulk.h"
#include "lower.h"
#include <stdarg.h>

/* Refuses instructions that need a target with a suffix: sm_90a, sm_100f, ... */
static void require_suffix(sim_lower *lw, const char *what) {
    if (!lw->m->target_suffix)
        sim_reject(lw, "Instruction '%s' is not supported on .target 'sm_%u': it needs sm_%ua", what,
                   lw->m->target, lw->m->target);
}

static sim_space shared_space(const sim_statement *s) {
    return sim_has(s, M_shared) || sim_has(s, M_shared_cta) || sim_has(s, M_shared_cluster) ? SP_SHARED : SP_GENERIC;
}

static uint32_t cluster_bit(const sim_statement *s) { return sim_has(s, M_shared_cluster) ? X_CLUSTER : 0; }

static void set_address(sim_ins *i, const sim_place *a) {
    i->a = a->slot;
    i->q = a->wide;
    i->imm = a->offset;
    i->space = (uint8_t)a->space;
}

/* --- clusters --------------------------------------------------------------------------------- */

/* s->form->sub: 0 mapa, 1 getctarank */
void sim_lower_mapa(sim_lower *lw, const sim_statement *s) {
    bool rank = s->form->sub, wide = s->types[0] == T_U64;
    sim_type t = (sim_type)s->types[0];
    if (!sim_operands_between(lw, rank ? 2 : 3, rank ? 2 : 3)) return;
    const sim_operand *o = &s->operands[1];
    uint32_t a;
    if (o->kind == O_SYMBOL && o->symbol->kind == SYM_VAR) {
        if (o->symbol->space != SP_SHARED)
            sim_reject(lw, "State space mismatch between instruction and address in instruction '%s' ('%s')", lw->full,
                       o->name);
        a = sim_address_value(lw, o, 1, t);
    } else
        a = sim_source(lw, 1, t, 0);
    uint32_t b = rank ? 0 : sim_source(lw, 2, T_U32, 0), d = sim_dest(lw, 0, rank ? T_U32 : t, 0);
    sim_ins *i = sim_emit(lw, rank ? sim_getctarank : sim_mapa, rank ? F_PLAIN : F_MEMORY);
    i->d = d;
    i->a = a;
    i->b = b;
    i->op = wide;
    i->space = wide ? (uint8_t)shared_space(s) : SP_SHARED;   /* a 32-bit address is in shared memory */
}

void sim_lower_cluster_barrier(sim_lower *lw, const sim_statement *s) {
    bool wait = s->form->sub;
    if (!sim_operands_between(lw, 0, 0)) return;
    if (sim_has(s, M_relaxed) || sim_has(s, M_release) || sim_has(s, M_acquire))
        sim_require_version(lw, wait ? "barrier.cluster.wait.acquire" : "barrier.cluster.arrive.release", 80, 90);
    sim_ins *i = sim_emit(lw, wait ? sim_cluster_wait : sim_cluster_arrive, F_WAIT);
    i->x = sim_has(s, M_aligned) ? X_ALIGNED : 0;
    i->op = sim_has(s, M_relaxed);
}

/* st.bulk: operands are the size and the value to store, which must be 0. */
void sim_lower_store_bulk(sim_lower *lw, const sim_statement *s) {
    sim_place a;
    if (!sim_operands_between(lw, 3, 3) || !sim_lower_place(lw, 0, shared_space(s), &a)) return;
    const sim_operand *size = &s->operands[1], *value = &s->operands[2];
    if (size->kind == O_INT && (size->value < 0 || size->value > SIM_STORE_BULK_MOST))
        sim_reject(lw,
                   "Argument 1 of instruction '%s': value '%lld' out of range, "
                   "expected to be in range [0..%d]",
                   lw->full, (long long)size->value, SIM_STORE_BULK_MOST);
    else if (size->kind == O_INT && size->value % 8)
        sim_reject(lw, "Argument 1 of instruction '%s': unexpected value '%lld', expected to be multiple of 8",
                   lw->full, (long long)size->value);
    if (value->kind != O_INT || value->value)
        sim_reject(lw, "Argument 2 of instruction '%s': expected to be zero", lw->full);
    uint32_t b = sim_source(lw, 1, T_B64, 0);
    sim_ins *i = sim_emit(lw, sim_store_bulk, F_MEMORY);
    set_address(i, &a);
    i->b = b;
}

void sim_lower_griddepcontrol(sim_lower *lw, const sim_statement *s) {
    if (!sim_operands_between(lw, 0, 0)) return;
    sim_emit(lw, s->form->sub ? sim_griddep_launch : sim_griddep_wait, F_PLAIN);
    if (s->form->sub) lw->k->triggers = true;
}

void sim_lower_setmaxnreg(sim_lower *lw, const sim_statement *s) {
    const sim_operand *o = &s->operands[0];
    if (!sim_operands_between(lw, 1, 1)) return;
    require_suffix(lw, "setmaxnreg");
    if (o->kind != O_INT) {
        sim_mismatch(lw, 0, "expected a constant");
        return;
    }
    if (o->value < 24 || o->value > 256)
        sim_reject(
            lw,
            "Argument 0 of instruction '%s': value '%lld' out of range, expected to be in range [24..256]",
            lw->full, (long long)o->value);
    else if (o->value % 8)
        sim_reject(lw, "Argument 0 of instruction '%s': unexpected value '%lld', expected to be multiple of 8",
                   lw->full, (long long)o->value);
    sim_ins *i = sim_emit(lw, sim_setmaxnreg, F_WAIT);
    i->c = (uint32_t)o->value;
    i->op = s->form->sub;
    i->x = X_ALIGNED;
    if (i->op && lw->k->most_registers < i->c) lw->k->most_registers = i->c;
}

/* The policy is opaque: a constant stands for it. */
void sim_lower_createpolicy(sim_lower *lw, const sim_statement *s) {
    uint32_t n = s->operand_count;
    bool range = sim_has(s, M_range), convert = sim_has(s, M_cvt);
    sim_place a;
    if (!sim_operands_between(lw, range ? 4 : convert ? 2 : 1, range ? 4 : 2)) return;
    if (range && !sim_lower_place(lw, 1, sim_has(s, M_global) ? SP_GLOBAL : SP_GENERIC, &a)) return;
    if (range) {
        (void)sim_source(lw, 2, T_U32, 0);
        (void)sim_source(lw, 3, T_U32, 0);
    } else if (n > 1)
        (void)sim_source(lw, 1, convert ? T_B64 : T_F32, 0);
    uint32_t d = sim_dest(lw, 0, T_B64, 0);
    sim_ins *i = sim_emit(lw, sim_op_handler(OP_mov_64), F_PLAIN);
    i->d = d;
    i->a = sim_constant(lw, UINT64_C(0x12f0000000000000), 2);
}

/* --- mbarrier --------------------------------------------------------------------------------- */

static void check_order(sim_lower *lw, const sim_statement *s) {
    bool order = sim_has(s, M_release) || sim_has(s, M_acquire) || sim_has(s, M_relaxed),
         scope = sim_has(s, M_cta) || sim_has(s, M_cluster);
    if (order && !scope)
        sim_reject(lw, "Modifier '.relaxed' or '.release' requires scope with '%s' instruction", lw->full);
    if (scope && !order) sim_reject(lw, "Modifier '.cta' requires order with '%s' instruction", lw->full);
    if (order)
        sim_require_version(lw, "mbarrier with memory order",
                            sim_has(s, M_relaxed) && s->form->sub <= MB_DROP ? 86 : 80, 90);
    if (sim_has(s, M_shared_cta) || sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cta", 78, 30);
    if (sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cluster", 80, 90);
}

/* init, inval, arrive, arrive_drop, expect_tx, complete_tx; x of the form: 1 expect_tx, 2 noComplete */
void sim_lower_mbarrier(sim_lower *lw, const sim_statement *s) {
    uint32_t sub = s->form->sub, n = s->operand_count, at = 0, d = 0, b = 0;
    bool token = sub == MB_ARRIVE || sub == MB_DROP, expects = s->form->x & 1, silent = s->form->x & 2;
    uint32_t least = sub == MB_INVAL ? 1
                     : token         ? (expects || silent ? 3 : 2)
                                     : 2,
             most = sub == MB_INVAL ? 1
                    : token         ? 3
                                    : 2;
    sim_place a;
    if (!sim_operands_between(lw, least, most)) return;
    check_order(lw, s);
    if (token) at = 1;
    if (token && sim_has(s, M_shared_cluster) && s->operands[0].kind != O_SINK)
        sim_reject(
            lw, "Sink '_' is expected as a destination operand for instruction '%s' with '.shared::cluster'",
            lw->full);
    if (token && s->operands[0].kind == O_SINK) sim_require_version(lw, "sink destination of mbarrier.arrive", 71, 80);
    bool good = sim_lower_place(lw, at, shared_space(s), &a), counted = n > at + 1;
    if (counted && token && !expects && s->operands[2].kind == O_INT && s->operands[2].value <= 0)
        sim_reject(lw, "Argument 2 of instruction '%s': value '%lld' expected to be a non-zero positive",
                   lw->full, (long long)s->operands[2].value);
    if (counted) b = sim_source(lw, at + 1, T_U32, 0);
    if (counted && token && !silent && !expects)
        sim_require_version(lw, "mbarrier.arrive without .noComplete with count", 78, 90);
    bool sink = !token || s->operands[0].kind == O_SINK;
    if (!sink) d = sim_dest(lw, 0, T_B64, 0);
    if (!good) return;
    sim_ins *i = sim_emit(lw, sim_mbarrier, F_MEMORY);
    set_address(i, &a);
    i->x = cluster_bit(s);
    i->op = (uint8_t)sub;
    i->b = b;
    i->width = (uint8_t)((counted && !(token && expects)) | (expects && token ? 2 : 0));
    i->count = silent;
    i->d = d;
    i->e = !sink;
}

/* s->form->sub: 0 test_wait, 1 try_wait */
void sim_lower_mbarrier_wait(sim_lower *lw, const sim_statement *s) {
    bool parity = sim_has(s, M_parity), patient = s->form->sub;
    sim_place a;
    if (!sim_operands_between(lw, 3, patient ? 4 : 3)) return;
    bool order = sim_has(s, M_acquire) || sim_has(s, M_relaxed), scope = sim_has(s, M_cta) || sim_has(s, M_cluster);
    if (order != scope) sim_reject(lw, "Order and scope of '%s' go together", lw->full);
    if (order)
        sim_require_version(lw, "mbarrier wait with memory order", sim_has(s, M_relaxed) ? 86 : 80,
                            patient || sim_has(s, M_relaxed) ? 90 : 80);
    if (parity) sim_require_version(lw, "mbarrier.test_wait.parity", 71, 80);
    if (sim_has(s, M_shared_cta)) sim_require_version(lw, "shared::cta", 78, 30);
    bool good = sim_lower_place(lw, 1, shared_space(s), &a);
    const sim_operand *phase = &s->operands[2];
    if (parity && phase->kind == O_INT && (phase->value < 0 || phase->value > 1))
        sim_reject(lw, "Argument 2 of instruction '%s': unexpected value '%lld', expected to be 0 or 1",
                   lw->full, (long long)phase->value);
    uint32_t b = sim_source(lw, 2, parity ? T_U32 : T_U64, 0);
    if (s->operand_count == 4) (void)sim_source(lw, 3, T_U32, 0);
    uint32_t d = sim_dest_pred(lw, &s->operands[0], 0);
    if (!good) return;
    sim_ins *i = sim_emit(lw, patient ? sim_mbarrier_wait : sim_mbarrier_test, patient ? F_WAIT : F_MEMORY);
    set_address(i, &a);
    i->d = d;
    i->b = b;
    i->op = parity;
}

void sim_lower_mbarrier_pending(sim_lower *lw, const sim_statement *s) {
    (void)s;
    if (!sim_operands_between(lw, 2, 2)) return;
    uint32_t a = sim_source(lw, 1, T_U64, 0), d = sim_dest(lw, 0, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_mbarrier_pending, F_PLAIN);
    i->d = d;
    i->a = a;
}

void sim_lower_mbarrier_cp_async(sim_lower *lw, const sim_statement *s) {
    sim_place a;
    if (!sim_operands_between(lw, 1, 1) || !sim_lower_place(lw, 0, shared_space(s), &a)) return;
    sim_ins *i = sim_emit(lw, sim_mbarrier_cp_async, F_MEMORY);
    set_address(i, &a);
    i->op = sim_has(s, M_noinc);
}

/* --- bulk copies ------------------------------------------------------------------------------ */

static void store_address(sim_lower *lw, uint32_t list, uint32_t field, const sim_place *a) {
    uint32_t *p = lw->k->lists + list + field;
    p[ADDRESS_SLOT] = a->slot;
    p[ADDRESS_WIDE] = a->wide;
    p[ADDRESS_LOW] = (uint32_t)(uint64_t)a->offset;
    p[ADDRESS_HIGH] = (uint32_t)((uint64_t)a->offset >> 32);
}

static const struct {
    uint16_t mod;
    uint8_t op;
    const char *global, *shared;
} reductions[] = {{M_add, A_ADD, " u32 s32 u64 f32 f64 f16 bf16 ", " u32 s32 u64 "},
                  {M_min, A_MIN, " u32 s32 u64 s64 f16 bf16 ", " u32 s32 "},
                  {M_max, A_MAX, " u32 s32 u64 s64 f16 bf16 ", " u32 s32 "},
                  {M_inc, A_INC, " u32 ", " u32 "},
                  {M_dec, A_DEC, " u32 ", " u32 "},
                  {M_and, A_AND, " b32 b64 ", " b32 "},
                  {M_or, A_OR, " b32 b64 ", " b32 "},
                  {M_xor, A_XOR, " b32 b64 ", " b32 "}};

/* Finds the operation of a reduction; checks the type too, unless the tensor map defines it. */
static bool reduction(sim_lower *lw, const sim_statement *s, bool to_global, bool typed, uint8_t *op) {
    char word[16];
    sim_type t = typed ? (sim_type)s->types[0] : T_NONE;
    snprintf(word, sizeof word, " %s ", sim_types[t].name);
    for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
        if (!sim_has(s, reductions[k].mod)) continue;
        *op = reductions[k].op;
        bool half = t == T_F16 || t == T_BF16;
        if (typed && half && *op == A_ADD && !sim_has(s, M_noftz))
            sim_reject(lw, "Modifier '.noftz' required for instruction '%s'", lw->full);
        if (!typed || strstr(to_global ? reductions[k].global : reductions[k].shared, word)) return true;
        sim_reject(lw, "Incorrect type '.%s' for operation '.%s' in instruction '%s'", sim_types[t].name,
                   sim_mod_name(reductions[k].mod), lw->full);
        return false;
    }
    return false;
}

static void bulk_list(sim_lower *lw, uint32_t *list) {
    *list = sim_list_begin(lw, BULK_FIELDS);
    for (uint32_t k = 0; k < BULK_FIELDS; k++) lw->k->lists[*list + k] = UINT32_MAX;
}

/* Lowers the operands after the addresses: the mask of .multicast, the cache hint. */
static void lower_bulk_modifiers(sim_lower *lw, const sim_statement *s, uint32_t at, uint32_t list) {
    if (sim_has(s, M_multicast_cluster)) {
        uint32_t mask = sim_source(lw, at++, T_U16, 0);
        lw->k->lists[list + BULK_MASK] = mask;
    }
    if (sim_has(s, M_L2_cache_hint)) (void)sim_source(lw, at, T_U64, 0);
}

/* s->form->sub: 0 global to shared, 1 shared to global, 2 shared to another block's, 3 prefetch */
void sim_lower_bulk(sim_lower *lw, const sim_statement *s) {
    uint32_t sub = s->form->sub, list,
             n = (sub == 3   ? 2u
                  : sub == 1 ? 3u
                             : 4u)
                 + sim_has(s, M_multicast_cluster) + sim_has(s, M_L2_cache_hint);
    uint32_t size_at = sub == 3 ? 1 : 2;
    bool reduce = !strncmp(s->form->name, "cp.reduce", 9), good = true;
    uint8_t op = 0;
    sim_place dst, src, bar;
    if (!sim_operands_between(lw, n, n)) return;
    if (sim_has(s, M_shared_cta) && sub == 0)
        sim_require_version(lw, "cp.async.bulk with .shared::cta destination", 86, 90);
    if (reduce && !reduction(lw, s, sub == 1, true, &op)) return;
    bulk_list(lw, &list);
    if (sub == 3)
        good = sim_lower_place(lw, 0, SP_GLOBAL, &src);
    else {
        good = sim_lower_place(lw, 0, sub == 1 ? SP_GLOBAL : SP_SHARED, &dst);
        good &= sim_lower_place(lw, 1, sub == 0 ? SP_GLOBAL : SP_SHARED, &src);
        if (sub != 1) good &= sim_lower_place(lw, 3, SP_SHARED, &bar);
    }
    const sim_operand *o = &s->operands[size_at];
    if (o->kind == O_INT && o->value % 16)
        sim_reject(lw,
                   "Argument %u of instruction '%s': unexpected value '%lld', expected to be multiple of 16",
                   size_at, lw->full, (long long)o->value);
    uint32_t size = sim_source(lw, size_at, T_U32, 0);
    lw->k->lists[list + BULK_SIZE] = size;
    lower_bulk_modifiers(lw, s, sub == 3 ? 2 : sub == 1 ? 3 : 4, list);
    if (!good) return;
    if (sub == 3) {
        sim_emit(lw, sim_nop, F_PLAIN);
        return;
    }
    store_address(lw, list, BULK_DESTINATION, &dst);
    store_address(lw, list, BULK_SOURCE, &src);
    if (sub != 1) store_address(lw, list, BULK_BARRIER, &bar);
    if (sub) lw->k->bulk_stores = true;
    sim_ins *i = sim_emit(lw, sim_bulk, F_MEMORY);
    i->list = list;
    i->space = sub == 1 ? SP_GLOBAL : SP_SHARED;
    i->x = cluster_bit(s);
    i->width = (uint8_t)((sim_has(s, M_multicast_cluster) ? BULK_MULTICAST : 0) | (reduce ? BULK_REDUCE : 0)
                         | (sub == 1 ? BULK_GROUP : 0) | (sub ? BULK_FROM_SHARED : 0));
    i->op = op;
    i->type = reduce ? s->types[0] : T_NONE;
}

void sim_lower_bulk_group(sim_lower *lw, const sim_statement *s) {
    bool wait = s->form->sub;
    if (!sim_operands_between(lw, wait, wait)) return;
    if (wait && s->operands[0].kind != O_INT) {
        sim_mismatch(lw, 0, "expected a constant");
        return;
    }
    sim_ins *i = sim_emit(lw, wait ? sim_bulk_wait : sim_bulk_commit, F_MEMORY);
    if (wait) i->imm = s->operands[0].value;
    i->op = sim_has(s, M_read);
}

/* --- tensors ---------------------------------------------------------------------------------- */

static uint32_t rank_of(const sim_statement *s) {
    for (uint32_t k = 0; k < 5; k++)
        if (sim_has(s, M_dim1 + (int)k)) return k + 1;
    return 0;
}

static bool coordinates(sim_lower *lw, const sim_statement *s, uint32_t index, uint32_t list) {
    const sim_operand *o = &s->operands[index];
    uint32_t rank = rank_of(s);
    if (o->kind != O_ADDRESS || !o->count || o->items[1].kind != O_VECTOR) {
        sim_mismatch(lw, index, "expected [map, {coordinates}]");
        return false;
    }
    if (o->items[1].count != rank) {
        sim_reject(lw, "Argument %u of instruction '%s': Argument vector size mismatch (%u, expected %u)",
                   index, lw->full, o->items[1].count, rank);
        return false;
    }
    for (uint32_t k = 0; k < rank; k++) {
        uint32_t slot = sim_source_of(lw, &o->items[1].items[k], index, T_S32, 0);
        lw->k->lists[list + BULK_COORDINATES + k] = slot;
    }
    return true;
}

/* s->form->sub: 0 load, 1 store or reduction, 3 prefetch. The map's address is generic; it may be a parameter. */
void sim_lower_bulk_tensor(sim_lower *lw, const sim_statement *s) {
    uint32_t sub = s->form->sub, list, map_at = sub == 0,
             n = (sub == 0   ? 3u
                  : sub == 1 ? 2u
                             : 1u)
                 + sim_has(s, M_multicast_cluster) + sim_has(s, M_L2_cache_hint);
    bool reduce = !strncmp(s->form->name, "cp.reduce", 9), good;
    uint8_t op = 0;
    sim_place map, shared, bar;
    if (!sim_operands_between(lw, n, n)) return;
    if (sim_has(s, M_shared_cta) && sub == 0)
        sim_require_version(lw, "cp.async.bulk.tensor with .shared::cta destination", 86, 90);
    if (reduce && !reduction(lw, s, true, false, &op)) return;
    bulk_list(lw, &list);
    good = coordinates(lw, s, map_at, list);
    const sim_operand *base = good ? &s->operands[map_at].items[0] : NULL;
    bool parameter =
        good && base->kind == O_SYMBOL && base->symbol->kind == SYM_VAR && base->symbol->space == SP_PARAM;
    if (good) good = sim_lower_place(lw, map_at, parameter ? SP_PARAM : SP_GENERIC, &map);
    if (good && parameter) { /* the parameter's generic address */
        map.slot = sim_constant(lw, SIM_PARAM_WINDOW, 2);
        map.offset += (int64_t)base->symbol->address;
    }
    if (sub == 0) {
        good &= sim_lower_place(lw, 0, SP_SHARED, &shared);
        good &= sim_lower_place(lw, 2, SP_SHARED, &bar);
    } else if (sub == 1)
        good &= sim_lower_place(lw, 1, SP_SHARED, &shared);
    lower_bulk_modifiers(lw, s, sub == 0 ? 3 : sub == 1 ? 2 : 1, list);
    if (!good) return;
    store_address(lw, list, sub == 1 ? BULK_DESTINATION : BULK_SOURCE, &map);
    if (sub == 0) {
        store_address(lw, list, BULK_DESTINATION, &shared);
        store_address(lw, list, BULK_BARRIER, &bar);
    }
    if (sub == 1) {
        store_address(lw, list, BULK_SOURCE, &shared);
        lw->k->bulk_stores = true;
    }
    sim_ins *i = sim_emit(lw, sub == 3 ? sim_nop : sim_bulk_tensor, sub == 3 ? F_PLAIN : F_MEMORY);
    i->list = list;
    i->count = (uint8_t)rank_of(s);
    i->space = sub == 1 ? SP_GLOBAL : SP_SHARED;
    i->x = cluster_bit(s);
    i->width = (uint8_t)(BULK_TENSOR | (sim_has(s, M_multicast_cluster) ? BULK_MULTICAST : 0)
                         | (reduce ? BULK_REDUCE : 0) | (sub == 1 ? BULK_GROUP | BULK_FROM_SHARED : 0));
    i->op = op;
}

/* Fences that order the generic proxy's writes to shared memory before the asynchronous proxy. */
void sim_lower_proxy_fence(sim_lower *lw, const sim_statement *s) {
    uint32_t n = s->form->sub; /* 2: the tensormap form, with an address and 128 */
    sim_place a;
    if (!sim_operands_between(lw, n, n)) return;
    if (n && !sim_lower_place(lw, 0, SP_GENERIC, &a)) return;
    if (n && (s->operands[1].kind != O_INT || s->operands[1].value != 128)) {
        sim_reject(lw, "Argument 1 of instruction 'fence.proxy': expected to be 128");
        return;
    }
    bool shared = !n && sim_has(s, M_async) && !sim_has(s, M_global);
    sim_emit(lw, shared ? sim_proxy_fence : sim_nop, F_PLAIN);
}

/* st.async; s->form->sub 1: red.async */
void sim_lower_store_async(sim_lower *lw, const sim_statement *s) {
    bool reduce = s->form->sub, good;
    sim_type t = (sim_type)s->types[0];
    uint32_t count = sim_has(s, M_v2) ? 2 : sim_has(s, M_v4) ? 4 : 1, list;
    uint8_t op = 0;
    sim_space space = shared_space(s);
    sim_place dst, bar;
    const sim_operand *o = &s->operands[1];
    if (!sim_operands_between(lw, 3, 3)) return;
    if (sim_types[t].bytes * count > 16) {
        sim_reject(lw, "Vector type too large, exceeds 128 bit limit");
        return;
    }
    if (reduce) {
        for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++)
            if (sim_has(s, reductions[k].mod)) {
                char word[16];
                snprintf(word, sizeof word, " %s ", sim_types[t].name);
                op = reductions[k].op;
                if (!strstr(op == A_ADD ? " u32 s32 u64 s64 " : reductions[k].shared, word))
                    sim_reject(lw, "Incorrect type '.%s' for operation '.%s' in instruction 'red.async'",
                               sim_types[t].name, sim_mod_name(reductions[k].mod));
            }
    }
    bulk_list(lw, &list);
    good = sim_lower_place(lw, 0, space, &dst);
    good &= sim_lower_place(lw, 2, space, &bar);
    if ((count > 1) != (o->kind == O_VECTOR) || (count > 1 && o->count != count)) {
        sim_reject(lw, "Argument vector size mismatch for instruction '%s'", lw->full);
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t slot = sim_source_of(lw, count > 1 ? &o->items[k] : o, 1, t, 0);
        lw->k->lists[list + BULK_COORDINATES + k] = slot;
    }
    if (!good) return;
    store_address(lw, list, BULK_DESTINATION, &dst);
    store_address(lw, list, BULK_BARRIER, &bar);
    sim_ins *i = sim_emit(lw, sim_store_async, F_MEMORY);
    i->list = list;
    i->space = SP_SHARED;
    i->size = sim_types[t].bytes;
    i->count = (uint8_t)count;
    i->x = X_CLUSTER;
    i->width = (uint8_t)(BULK_STORE | (space == SP_GENERIC ? BULK_GENERIC : 0) | (reduce ? BULK_REDUCE : 0));
    i->op = op;
    i->type = reduce ? (uint8_t)(t == T_S64 ? T_U64 : t) : T_NONE;
}

/* --- tensor maps ------------------------------------------------------------------------------ */

/* tensormap.replace: i->op: the field; i->b: its index (i->e: there is one); i->c: the value.
 * tensormap.cp_fenceproxy (s->form->sub 1): from i->a to i->b. */
void sim_lower_tensormap(sim_lower *lw, const sim_statement *s) {
    static const struct {
        uint16_t mod;
        uint8_t indexed, wide;
    } fields[] = {
        {M_global_address, 0, 1}, {M_rank, 0, 0},           {M_box_dim, 1, 0},  {M_global_dim, 1, 0},
        {M_global_stride, 1, 1},  {M_element_stride, 1, 0}, {M_elemtype, 0, 0}, {M_interleave_layout, 0, 0},
        {M_swizzle_mode, 0, 0},   {M_fill_mode, 0, 0}};
    sim_place a, b;
    if (s->form->sub) {
        if (!sim_operands_between(lw, 3, 3) || !sim_lower_place(lw, 0, SP_GLOBAL, &a)
            || !sim_lower_place(lw, 1, SP_SHARED, &b))
            return;
        if (s->operands[2].kind != O_INT || s->operands[2].value != 128) {
            sim_mismatch(lw, 2, "expected 128");
            return;
        }
        sim_ins *i = sim_emit(lw, sim_tensormap_replace, F_MEMORY);
        set_address(i, &a);
        i->b = b.slot;
        i->width = b.wide;
        i->e = (uint32_t)b.offset;
        i->op = 255;
        return;
    }
    require_suffix(lw, "tensormap.replace");
    size_t k = 0;
    while (k < sizeof fields / sizeof *fields && !sim_has(s, fields[k].mod)) k++;
    if (k == sizeof fields / sizeof *fields) {
        sim_reject(lw, "A field is required for instruction 'tensormap.replace'");
        return;
    }
    uint32_t n = 2u + fields[k].indexed, index = 0;
    if (!sim_operands_between(lw, n, n)) return;
    if (s->types[0] != (fields[k].wide ? T_B64 : T_B32)) {
        sim_reject(lw, "Unexpected instruction types specified for 'tensormap.replace'");
        return;
    }
    if (fields[k].indexed) {
        if (s->operands[1].kind != O_INT || s->operands[1].value < 0 || s->operands[1].value > 4) {
            sim_mismatch(lw, 1, "expected a constant from 0 to 4");
            return;
        }
        index = (uint32_t)s->operands[1].value;
    }
    bool good = sim_lower_place(lw, 0, sim_has(s, M_global) ? SP_GLOBAL : shared_space(s), &a);
    uint32_t c = sim_source(lw, n - 1, fields[k].wide ? T_B64 : T_B32, 0);
    if (!good) return;
    sim_ins *i = sim_emit(lw, sim_tensormap_replace, F_MEMORY);
    set_address(i, &a);
    i->c = c;
    i->e = index;
    i->op = (uint8_t)k;
}

void sim_lower_prefetch_map(sim_lower *lw, const sim_statement *s) {
    sim_place a;
    if (!sim_operands_between(lw, 1, 1)) return;
    if (sim_lower_place(lw, 0, sim_has(s, M_param) ? SP_PARAM : SP_GENERIC, &a)) sim_emit(lw, sim_nop, F_PLAIN);
}
