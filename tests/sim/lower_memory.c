/* lower_memory.c - lowering of loads, stores, atomics, asynchronous copies, conversions and warp-wide
 * instructions. */
#include "sim.h"
#include "lower.h"
#include "race.h"

static void refuse(sim_lower *lw, const char *a, const char *b)
{
    sim_reject(lw, "Modifier '.%s' cannot be combined with modifier '.%s'", a, b);
}

/* --- addresses -------------------------------------------------------------------------------- */

static sim_space space_of(const sim_statement *s)
{
    if (sim_has(s, M_global)) return SP_GLOBAL;
    if (sim_has(s, M_shared) || sim_has(s, M_shared_cta) || sim_has(s, M_shared_cluster)) return SP_SHARED;
    if (sim_has(s, M_local)) return SP_LOCAL;
    if (sim_has(s, M_const)) return SP_CONST;
    if (sim_has(s, M_param) || sim_has(s, M_param_entry) || sim_has(s, M_param_func)) return SP_PARAM;
    return SP_GENERIC;
}

typedef struct address {
    uint32_t slot;
    bool wide, is_static;
    int64_t offset;
    sim_space space;
    const sim_symbol *symbol;
} address;

static void complete_address(sim_lower *lw, address *a)
{
    if (a->slot != UINT32_MAX) return;
    a->slot = sim_constant(lw, (uint64_t)a->offset, 2);
    a->offset = 0;
}

static bool lower_address(sim_lower *lw, uint32_t index, sim_space space, address *out)
{
    const sim_operand *o = &lw->s->operands[index];
    memset(out, 0, sizeof *out);
    out->space = space;
    bool element = o->kind == O_SYMBOL && o->indexed
                && (lw->s->form->lower == sim_lower_ld || lw->s->form->lower == sim_lower_st);
    if (!element && o->kind != O_ADDRESS) {
        sim_mismatch(lw, index, "expected an address in brackets");
        return false;
    }
    if (o->count && !sim_mod(&lw->s->mods, M_tensor)) {
        sim_mismatch(lw, index, "an address with coordinates is a tensor copy's");
        return false;
    }
    const sim_operand *b = element ? o : &o->items[0];
    out->offset = o->value;
    if (b->kind == O_REG) {
        const sim_type_info *t = &sim_types[b->type];
        if (t->kind == K_FLOAT || t->kind == K_PRED || t->kind == K_PACKED) {
            sim_reject(lw,
                       "Illegal to use symbol '%s' of type .%s as address operand. Use integer or bit only.",
                       b->name, t->name);
            return false;
        }
        if (t->bytes > 8) {
            sim_mismatch(lw, index, "an address has 64 bits or fewer");
            return false;
        }
        if (t->bytes < 8 && (space == SP_GENERIC || space == SP_GLOBAL)) {
            sim_reject(lw, "Program uses 32-bit address '%s' which is conflicting with .address_size 64",
                       b->name);
            return false;
        }
        if (space == SP_PARAM && !lw->frame->function->is_entry)
            out->space = SP_LOCAL; /* parameters of calls are in local memory */
        out->wide = t->bytes == 8;
        out->slot = sim_register_slot(lw, b->reg);
        sim_note(lw, out->slot, false, false, b->name);
        return true;
    }
    if (b->kind == O_INT) {
        if (space != SP_LOCAL) {
            sim_reject(lw, "Immediate addresses allowed only for .local state space");
            return false;
        }
        out->wide = true;
        out->offset = 0;
        out->slot = sim_constant(lw, (uint64_t)b->value, 2);
        return true;
    }
    uint64_t at;
    sim_space where;
    const sim_symbol *y = b->kind == O_SYMBOL ? b->symbol : NULL;
    while (y && y->alias) y = y->alias;
    if (!y || y->kind != SYM_VAR) {
        sim_mismatch(lw, index, "expected the address of a variable");
        return false;
    }
    sim_space declared = (sim_space)y->space;
    bool generic = space == SP_GENERIC && (declared == SP_SHARED || declared == SP_LOCAL),
         only_generic = generic && !strcmp(lw->s->opcode, "prefetchu"),
         barrier = declared == SP_GLOBAL && space == SP_GENERIC && !strcmp(lw->s->opcode, "mbarrier");
    if ((space != declared && !generic && !(space == SP_GENERIC && declared == SP_GLOBAL)) || only_generic || barrier) {
        sim_reject(lw, "State space mismatch between instruction and address in instruction '%s' ('%s')",
                   lw->full, y->name);
        return false;
    }
    if (!sim_symbol_address(lw, y, &at, &where)) {
        sim_mismatch(lw, index, "'%s' has no address", y->name);
        return false;
    }
    out->space = space == SP_GENERIC ? SP_GENERIC : where;
    out->symbol = y;
    out->is_static = true;
    out->wide = true;
    out->offset = (int64_t)(at + (uint64_t)out->offset);
    out->slot = UINT32_MAX; /* set by settle_address if it is needed */
    if (sim_on_stack(lw, y)) out->slot = lw->k->frame_pointer;
    if (element && o->items) {
        uint32_t bytes = sim_index_offset(lw, o, index);
        out->slot = out->slot == UINT32_MAX ? bytes : sim_add_64(lw, out->slot, bytes);
    }
    if (generic) {                                            /* converts the address to a generic one */
        complete_address(lw, out);
        sim_ins *i = sim_emit(lw, sim_cvta, F_PLAIN);
        i->a = out->slot;
        i->space = (uint8_t)where;
        out->slot = i->d = sim_temporary(lw, 2);
    }
    out->is_static = out->slot == UINT32_MAX;
    return true;
}

static void use_address(sim_lower *lw, address *a, sim_ins *i)
{
    i->a = a->slot;
    i->imm = a->offset;
    i->q = a->wide;
    i->space = (uint8_t)a->space;
    (void)lw;
}

/* lower_address and settle_address, for lower_async.c. */
bool sim_lower_place(sim_lower *lw, uint32_t index, sim_space space, sim_place *out)
{
    address a;
    if (!lower_address(lw, index, space, &a)) return false;
    complete_address(lw, &a);
    *out = (sim_place){ a.slot, a.wide, a.offset, a.space };
    return true;
}

/* Order and scope of an access: X_VOLATILE if it is strong, and the bits of race.h. */
static uint32_t order_bits(const sim_statement *s, bool atomic)
{
    bool strong = atomic || sim_has(s, M_volatile) || sim_has(s, M_mmio) || sim_has(s, M_relaxed)
                  || sim_has(s, M_acquire) || sim_has(s, M_release) || sim_has(s, M_acq_rel);
    uint32_t scope = sim_has(s, M_cta) ? SCOPE_CTA : sim_has(s, M_cluster) ? SCOPE_CLUSTER : SCOPE_GPU;
    return (strong ? X_VOLATILE | scope << X_SCOPE_SHIFT : 0)
           | (sim_has(s, M_acquire) || sim_has(s, M_acq_rel) ? X_ACQUIRE : 0)
           | (sim_has(s, M_release) || sim_has(s, M_acq_rel) ? X_RELEASE : 0);
}

/* cp.async.commit_group, wait_group, wait_all */
void sim_lower_cp_group(sim_lower *lw, const sim_statement *s)
{
    uint32_t n = s->form->sub == 1;
    if (!sim_operands_between(lw, n, n)) return;
    const sim_operand *o = &s->operands[0];
    if (n && (o->kind != O_INT || o->value < 0)) {
        sim_mismatch(lw, 0, "expected a number of groups");
        return;
    }
    sim_ins *i = sim_emit(lw, sim_async_group, F_PLAIN);
    i->op = s->form->sub;
    i->imm = n ? o->value : 0;
}

void sim_lower_fence(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 0, 0)) return;
    sim_ins *i = sim_emit(lw, sim_fence, F_PLAIN);
    i->x = (sim_has(s, M_cta) ? SCOPE_CTA : sim_has(s, M_cluster) ? SCOPE_CLUSTER : SCOPE_GPU) << X_SCOPE_SHIFT;
    if (strcmp(s->opcode, "fence")) return;
    if (sim_has(s, M_acquire)) i->x |= X_ACQUIRE;                 /* one-sided */
    if (sim_has(s, M_release)) i->x |= X_RELEASE;
}

/* --- ld, st ----------------------------------------------------------------------------------- */

static uint32_t vector_count(const sim_statement *s)
{
    return sim_has(s, M_v2) ? 2 : sim_has(s, M_v4) ? 4 : sim_has(s, M_v8) ? 8 : 1;
}

static void refuse_state_space(sim_lower *lw, const sim_statement *s, int mod, sim_space space)
{
    static const char *const spaces[] = { "generic", "global", "shared", "local", "const", "param" };
    sim_reject(lw, "Modifier '.%s' cannot be applied to '.%s' space for instruction '%s'", sim_mod_name(mod),
               spaces[space], s->opcode);
}

static void require_global(sim_lower *lw, const sim_statement *s, sim_space space, int mod)
{
    if (space != SP_GLOBAL && space != SP_GENERIC) refuse_state_space(lw, s, mod, space);
}

static void check_memory_mods(sim_lower *lw, const sim_statement *s, sim_space space, sim_type t,
                              uint32_t count)
{
    static const uint16_t cops[] = { M_ca, M_cg, M_cs, M_lu, M_cv, M_wb, M_wt };
    bool ordered = sim_has(s, M_relaxed) || sim_has(s, M_acquire) || sim_has(s, M_release);
    bool scope = sim_has(s, M_cta) || sim_has(s, M_gpu) || sim_has(s, M_sys) || sim_has(s, M_cluster);
    uint32_t bytes = count * sim_types[t].bytes;
    if (sim_has(s, M_weak) || ordered) sim_require_version(lw, "memory consistency model", 60, 70);
    if (ordered && !scope) {
        sim_reject(lw, "Scope modifier required for instruction '%s'", lw->full);
    }
    if (!ordered && scope) {
        sim_reject(lw, "Scope modifier without .relaxed, .acquire or .release for instruction '%s'", lw->full);
    }
    if (sim_has(s, M_cluster)) sim_require_version(lw, ".cluster", 78, 90);
    if (sim_has(s, M_mmio)) sim_require_version(lw, ".mmio", 82, 70);
    if (sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cluster", 78, 90);
    if (sim_has(s, M_shared_cta)) sim_require_version(lw, "shared::cta", 78, 20);
    if (sim_has(s, M_param_entry) || sim_has(s, M_param_func)) sim_require_version(lw, "param::entry", 83, 20);
    for (size_t k = 0; k < sizeof cops / sizeof *cops; k++) {
        if (!sim_has(s, cops[k])) continue;
        const char *name = sim_mod_name(cops[k]);
        if (sim_has(s, M_volatile)) refuse(lw, "volatile", name);
        if (ordered)
            refuse(lw, sim_has(s, M_relaxed) ? "relaxed" : sim_has(s, M_acquire) ? "acquire" : "release", name);
    }
    if (sim_has(s, M_nc)) {
        sim_require_version(lw, ".nc", 31, 32);
        if (space != SP_GLOBAL) {
            sim_reject(lw, "Modifier '.nc' requires state space .global in instruction '%s'", lw->full);
        }
        if (sim_has(s, M_volatile)) refuse(lw, "volatile", "nc");
        if (ordered) refuse(lw, "relaxed or acquire", "nc");
    }
    for (int id = M_L1_evict_normal; id <= M_L1_no_allocate; id++) {
        if (!sim_has(s, id)) continue;
        sim_require_version(lw, sim_mod_name(id), 74, 70);
        require_global(lw, s, space, id);
        for (size_t k = 0; k < sizeof cops / sizeof *cops; k++)
            if (sim_has(s, cops[k])) refuse(lw, sim_mod_name(id), sim_mod_name(cops[k]));
        if (sim_has(s, M_volatile)) refuse(lw, sim_mod_name(id), "volatile");
    }
    for (int id = M_L2_64B; id <= M_L2_256B; id++) if (sim_has(s, id)) require_global(lw, s, space, id);
    if (sim_has(s, M_L2_cache_hint)) {
        require_global(lw, s, space, M_L2_cache_hint);
        if (sim_has(s, M_volatile)) refuse(lw, "L2::cache_hint", "volatile");
    }
    if (sim_has(s, M_mmio)) {
        require_global(lw, s, space, M_mmio);
        if (!sim_has(s, M_sys)) refuse(lw, "mmio", "cta, .cluster or .gpu");
        if (!sim_has(s, M_relaxed) && !sim_has(s, M_async))
            sim_reject(lw, "Modifier '.mmio' requires modifier '.relaxed' for instruction '%s'", lw->full);
    }
    static const uint16_t strong[] = { M_volatile, M_relaxed, M_acquire, M_release };
    for (size_t k = 0; k < sizeof strong / sizeof *strong; k++)
        if (sim_has(s, strong[k]) && (space == SP_CONST || space == SP_LOCAL || space == SP_PARAM))
            refuse_state_space(lw, s, strong[k], space);
    if (sim_has(s, M_weak) && (sim_has(s, M_volatile) || sim_has(s, M_nc) || ordered))
        refuse(lw, "weak", sim_has(s, M_nc) ? "nc" : sim_has(s, M_volatile) ? "volatile" : "relaxed and such");
    if (sim_has(s, M_L2_64B) || sim_has(s, M_L2_128B)) sim_require_version(lw, "L2::128B", 74, 75);
    if (sim_has(s, M_L2_256B)) sim_require_version(lw, "L2::256B", 74, 80);
    if (sim_has(s, M_L2_cache_hint)) sim_require_version(lw, "L2::cache_hint", 74, 80);
    if (sim_has(s, M_L2_evict_last) || sim_has(s, M_L2_evict_normal) || sim_has(s, M_L2_evict_first)) {
        sim_require_version(lw, "L2 eviction priority", 88, 100);
        if (bytes != 32) {
            sim_reject(lw, "L2 eviction priority requires .v8.b32 or .v4.b64 in instruction '%s'", lw->full);
        }
    }
    if (t == T_B128) sim_require_version(lw, ".b128", 83, 70);
    if (bytes > 16) {
        sim_require_version(lw, "256 bit wide load/store", 88, 100);
        if (bytes > 32 || t == T_B128) {
            sim_reject(lw, "Vector of %u bytes is too wide for instruction '%s'", bytes, lw->full);
        }
        if (space != SP_GLOBAL && space != SP_GENERIC) {
            sim_reject(lw, "256 bit wide accesses require state space .global");
        }
    } else if (count == 8) {
        sim_reject(lw, "Vector type .v8 needs 32-bit elements in instruction '%s'", lw->full);
    }
}

/* Lowers the registers of a load, or the values of a store, to a list of slots. */
static bool lower_elements(sim_lower *lw, uint32_t index, uint32_t count, sim_type t, bool destination,
                           uint32_t *list)
{
    int flags = lw->s->form->lower == sim_lower_atom ? 0 : WIDER_OK;
    const sim_operand *o = &lw->s->operands[index];
    uint32_t n = o->kind == O_VECTOR ? o->count : 1;
    if (o->kind == O_VECTOR && n != 1 && n != 2 && n != 4 && n != 8) {
        sim_reject(lw, "Illegal vector size: %u", n);
    }
    if (n != count || (count > 1 && o->kind != O_VECTOR)) {
        if (count > 1 && o->kind != O_VECTOR)
            sim_reject(lw, "%s vector expected", destination ? "Result" : "Source");
        sim_reject(lw, "Argument vector size mismatch for instruction '%s' (%u, expected %u)", lw->full, n,
                   count);
        return false;
    }
    *list = sim_list_begin(lw, count);
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = o->kind == O_VECTOR ? &o->items[k] : o;
        uint32_t slot;
        sim_type narrow = t;
        if (destination && e->kind == O_SINK && o->kind == O_VECTOR) {
            lw->k->lists[*list + k] = UINT32_MAX;
            continue;
        }
        if (destination) slot = sim_dest_of(lw, e, index, narrow, flags);
        else if (e->kind == O_REG && sim_types[e->type].bytes == 8 && sim_types[t].bytes < 8) {
            slot = sim_source_of(lw, e, index, t, flags);
        } else slot = sim_source_of(lw, e, index, t, flags);
        bool wide = destination ? e->kind == O_REG && sim_types[e->type].bytes == 8 : sim_types[t].bytes == 8;
        lw->k->lists[*list + k] = slot | (wide ? SIM_WIDE : 0);
    }
    return true;
}

/* A load of a kernel parameter at a constant offset copies it from the launch's constants. */
static bool lower_parameter(sim_lower *lw, const address *a, sim_type t, uint32_t count, uint32_t list)
{
    uint32_t bytes = sim_types[t].bytes;
    if (a->offset < 0 || bytes > 8 || (uint64_t)a->offset + count * bytes > lw->k->function->param_bytes
        || a->offset % (bytes * count))
        return false;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t d = lw->k->lists[list + k];
        if (d == UINT32_MAX) continue;
        uint32_t width = d & SIM_WIDE ? 2 : 1;
        sim_kernel *kernel = lw->k;
        if (kernel->param_fill_count == lw->param_capacity) {
            uint32_t capacity = lw->param_capacity * 2 + 16;
            sim_param_fill *grown = realloc(kernel->params, capacity * sizeof *grown);
            if (!grown) { lw->m->out_of_memory = true; longjmp(*lw->m->bail, 1); }
            kernel->params = grown;
            lw->param_capacity = capacity;
        }
        kernel->params[kernel->param_fill_count++] =
            (sim_param_fill){ kernel->const_slots, (uint32_t)a->offset + k * bytes, (uint8_t)bytes,
                              sim_types[t].kind == K_SINT, (uint8_t)width };
        sim_ins *i = sim_emit(lw, sim_op_handler(width == 2 ? OP_mov_64 : OP_mov_32), F_PLAIN);
        i->d = d & ~SIM_WIDE;
        i->a = SIM_CONST_BANK | kernel->const_slots;
        kernel->const_slots += width;
    }
    return true;
}

/* A load extends a signed value to 32 bits; registers of 16 bits keep zeros above their own. */
static void truncate_to_registers(sim_lower *lw, uint32_t count, uint32_t list)
{
    const sim_operand *o = &lw->s->operands[0];
    for (uint32_t k = 0; k < count; k++) {
        const sim_operand *e = o->kind == O_VECTOR ? &o->items[k] : o;
        if (e->kind != O_REG || sim_types[e->type].bytes != 2) continue;
        sim_ins *i = sim_emit(lw, sim_op_handler(OP_zext_16), F_PLAIN);
        i->d = i->a = lw->k->lists[list + k];
    }
}

void sim_lower_ld(sim_lower *lw, const sim_statement *s)
{
    bool ldu = !strcmp(s->opcode, "ldu"), hint = sim_has(s, M_L2_cache_hint);
    sim_type t = (sim_type)s->types[0];
    uint32_t count = vector_count(s), list;
    address a;
    if (!sim_operands_between(lw, hint ? 3 : 2, hint ? 3 : 2)) return;
    sim_space space = ldu && !sim_has(s, M_global) ? SP_GENERIC : space_of(s);
    check_memory_mods(lw, s, space, t, count);
    bool good = lower_address(lw, 1, space, &a);
    if (hint) (void)sim_source(lw, 2, T_U64, 0);
    if (!lower_elements(lw, 0, count, t, true, &list) || !good) return;
    bool is_signed = sim_types[t].kind == K_SINT;
    if (a.is_static && a.space == SP_PARAM && lower_parameter(lw, &a, t, count, list)) {
        if (is_signed) truncate_to_registers(lw, count, list);
        return;
    }
    complete_address(lw, &a);
    sim_ins *i = sim_emit(lw, sim_ld, F_MEMORY);
    use_address(lw, &a, i);
    i->list = list;
    i->size = sim_types[t].bytes;
    i->count = (uint8_t)count;
    i->type = (uint8_t)t;
    i->x = (is_signed ? X_SIGNED : 0) | order_bits(s, false);
    if (sim_has(s, M_shared_cluster)) i->x |= X_CLUSTER;
    if (sim_has(s, M_nc) || ldu) i->x |= X_NC;
    if (space == SP_PARAM) i->x |= X_PARAM;
    i->d = lw->k->lists[list];
    if (is_signed) truncate_to_registers(lw, count, list);
}

void sim_lower_st(sim_lower *lw, const sim_statement *s)
{
    bool hint = sim_has(s, M_L2_cache_hint);
    sim_type t = (sim_type)s->types[0];
    uint32_t count = vector_count(s), list;
    address a;
    if (!sim_operands_between(lw, hint ? 3 : 2, hint ? 3 : 2)) return;
    sim_space space = space_of(s);
    check_memory_mods(lw, s, space, t, count);
    bool good = lower_address(lw, 0, space, &a);
    if (hint) (void)sim_source(lw, 2, T_U64, 0);
    if (!lower_elements(lw, 1, count, t, false, &list) || !good) return;
    if (space == SP_PARAM && a.symbol && a.symbol->is_formal
        && (a.symbol->function->is_entry || a.symbol->function != lw->frame->function)) {
        sim_reject(lw, "Illegal to write to function input parameter '%s'", a.symbol->name);
        return;
    }
    if (space == SP_PARAM && s->guard >= 0 && a.symbol) {
        sim_reject(lw, "Illegal to predicate instruction 'st.param' with operand '%s'", a.symbol->name);
        return;
    }
    complete_address(lw, &a);
    sim_ins *i = sim_emit(lw, sim_st, F_MEMORY);
    use_address(lw, &a, i);
    i->list = list;
    i->size = sim_types[t].bytes;
    i->count = (uint8_t)count;
    i->type = (uint8_t)t;
    i->x = order_bits(s, false);
    if (sim_has(s, M_shared_cluster)) i->x |= X_CLUSTER;
    i->b = lw->k->lists[list];
}

void sim_lower_hint(sim_lower *lw, const sim_statement *s)
{
    uint32_t n = s->form->sub ? 2 : 1;
    address a;
    if (!sim_operands_between(lw, n, n)) return;
    if (!lower_address(lw, 0, sim_has(s, M_global) ? SP_GLOBAL : sim_has(s, M_local) ? SP_LOCAL : SP_GENERIC, &a))
        return;
    if (n == 2 && (s->operands[1].kind != O_INT || s->operands[1].value != 128))
        sim_mismatch(lw, 1, "expected 128");
    if (n == 1) {
        sim_emit(lw, sim_nop, F_PLAIN);
        return;
    }
    complete_address(lw, &a);
    sim_ins *i = sim_emit(lw, sim_cache_line, F_MEMORY);
    use_address(lw, &a, i);
    i->op = s->form->sub == 2;
}

void sim_lower_cp_async(sim_lower *lw, const sim_statement *s)
{
    bool hint = sim_has(s, M_L2_cache_hint), cg = sim_has(s, M_cg);
    address to, from;
    if (!sim_operands_between(lw, hint ? 4 : 3, hint ? 5 : 4)) return;
    if (sim_has(s, M_L2_64B) || sim_has(s, M_L2_128B) || sim_has(s, M_L2_256B))
        sim_require_version(lw, "cp.async with .level::prefetch_size", 74, 80);
    if (hint) sim_require_version(lw, "cp.async with .level::cache_hint", 74, 80);
    bool good = lower_address(lw, 0, SP_SHARED, &to);
    good &= lower_address(lw, 1, SP_GLOBAL, &from);
    const sim_operand *size = &s->operands[2];
    if (size->kind != O_INT
        || (cg ? size->value != 16 : size->value != 4 && size->value != 8 && size->value != 16)) {
        sim_reject(lw, "Argument 2 of instruction 'cp.async': unexpected value '%lld', expected to be %s",
                   (long long)size->value, cg ? "16" : "4 or 8 or 16");
        return;
    }
    uint32_t fourth = 0, kind = 0, n = s->operand_count - (hint ? 1u : 0u);
    if (n == 4) {
        const sim_operand *o = &s->operands[3];
        if (o->kind == O_REG && o->type == T_PRED) {
            sim_require_version(lw, "cp.async with ignore-src", 75, 80);
            fourth = sim_source_pred(lw, 3);
            kind = 2;
        } else {
            fourth = sim_source(lw, 3, T_U32, 0);
            kind = 1;
        }
    }
    if (hint) (void)sim_source(lw, s->operand_count - 1u, T_U64, 0);
    if (!good) return;
    complete_address(lw, &to);
    complete_address(lw, &from);
    sim_ins *i = sim_emit(lw, sim_cp_async, F_MEMORY);
    i->a = from.slot; /* c: src-size or ignore-src; imm, e: offsets in global, shared memory */
    i->b = to.slot;
    i->imm = from.offset;
    i->e = (uint32_t)to.offset;
    i->q = from.wide;
    i->width = to.wide;
    i->c = fourth;
    i->op = (uint8_t)kind;
    i->size = (uint8_t)size->value;
    i->count = 1;
    i->space = SP_GLOBAL;
}

/* --- atomics ---------------------------------------------------------------------------------- */

void sim_lower_atom(sim_lower *lw, const sim_statement *s)
{
    static const struct { uint16_t mod; uint8_t op; const char *types;
    } ops[] = { { M_add, A_ADD, " u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2 " },
                { M_min, A_MIN, " u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 " },
                { M_max, A_MAX, " u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 " },
                { M_inc, A_INC, " u32 " },
                { M_dec, A_DEC, " u32 " },
                { M_and, A_AND, " b32 b64 " },
                { M_or, A_OR, " b32 b64 " },
                { M_xor, A_XOR, " b32 b64 " },
                { M_exch, A_EXCH, " b32 b64 b128 " },
                { M_cas, A_CAS, " b16 b32 b64 b128 " } };
    bool red = !strcmp(s->opcode, "red"), hint = sim_has(s, M_L2_cache_hint);
    uint32_t k = 0, count = vector_count(s), n, list = 0, values;
    sim_type t = s->type_count == 1 ? (sim_type)s->types[0] : T_NONE;
    char word[16];
    address a;
    while (!sim_has(s, ops[k].mod)) k++;
    snprintf(word, sizeof word, " %s ", sim_types[t].name);
    bool half = t == T_F16 || t == T_BF16 || t == T_F16X2 || t == T_BF16X2;
    if (t == T_NONE || !strstr(ops[k].types, word) || (half && ops[k].op != A_ADD && count == 1)) {
        sim_reject(lw, "Unexpected instruction types specified for '%s.%s'", s->opcode,
                   sim_mod_name(ops[k].mod));
        return;
    }
    if (half != sim_has(s, M_noftz)) {
        sim_reject(lw,
                   half ? "Modifier '.noftz' required for instruction '%s'"
                       : "Illegal modifier '.noftz' for instruction '%s'",
                   s->opcode);
    }
    sim_space space = space_of(s);
    uint32_t bytes = sim_types[t].bytes;
    if (count > 1) {
        sim_require_version(lw, "vector atomics", 81, 90);
        if ((space != SP_GLOBAL && space != SP_GENERIC) || !(half || t == T_F32) || count * bytes > 16) {
            sim_reject(lw, "Illegal vector form of instruction '%s'", s->opcode);
        }
    } else if (t == T_F64) sim_require_version(lw, "atom.add.f64", 50, 60);
    else if (t == T_F16) sim_require_version(lw, "atom.add.noftz.f16", 63, 70);
    else if (t == T_F16X2) sim_require_version(lw, "atom.add.noftz.f16x2", 62, 60);
    else if (t == T_BF16 || t == T_BF16X2) sim_require_version(lw, "atom.add.noftz.bf16", 78, 90);
    else if (bytes == 8 && ops[k].op >= A_MIN && ops[k].op <= A_XOR)
        sim_require_version(lw, "64-bit atom.min and such", 31, 32);
    if (t == T_B16) sim_require_version(lw, "atom.cas.b16", 63, 70);
    if (t == T_B128) sim_require_version(lw, "atom.b128", 83, 90);
    if (sim_has(s, M_relaxed) || sim_has(s, M_acquire) || sim_has(s, M_release) || sim_has(s, M_acq_rel))
        sim_require_version(lw, "memory consistency model", 60, 70);
    if (sim_has(s, M_cta) || sim_has(s, M_gpu) || sim_has(s, M_sys)) sim_require_version(lw, "atomic scopes", 50, 60);
    if (sim_has(s, M_cluster)) sim_require_version(lw, ".cluster", 78, 90);
    if (sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cluster", 78, 90);
    if (hint) sim_require_version(lw, "L2::cache_hint", 74, 80);
    n = (red ? 2u : 3u) + (ops[k].op == A_CAS) + hint;
    if (!sim_operands_between(lw, n, n)) return;
    uint32_t at = red ? 0 : 1;
    bool good = lower_address(lw, at, space, &a);
    good &= lower_elements(lw, at + 1, count, t, false, &values);
    uint32_t c = ops[k].op == A_CAS ? sim_source(lw, at + 2, t, 0) : 0;
    if (hint) (void)sim_source(lw, n - 1, T_U64, 0);
    bool sink = !red && s->operands[0].kind == O_SINK;
    if (!red && !sink) good &= lower_elements(lw, 0, count, t, true, &list);
    if (!good) return;
    complete_address(lw, &a);
    sim_ins *i = sim_emit(lw, sim_atom, F_MEMORY);
    use_address(lw, &a, i);
    i->list = values;
    i->d = red || sink ? UINT32_MAX : list;
    i->c = c;
    i->op = ops[k].op;
    i->x = order_bits(s, true);
    i->type = (uint8_t)t;
    i->size = (uint8_t)bytes;
    i->count = (uint8_t)count;
    if (sim_has(s, M_shared_cluster)) i->x |= X_CLUSTER;
}

/* --- addresses as values ---------------------------------------------------------------------- */

void sim_lower_cvta(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 2, 2)) return;
    sim_type t = s->type_count ? (sim_type)s->types[0] : T_U64;
    sim_space space = space_of(s);
    if (sim_has(s, M_param)) sim_require_version(lw, "cvta.param", 77, 70);
    if (sim_has(s, M_param_entry)) sim_require_version(lw, "param::entry", 83, 70);
    if (sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cluster", 78, 90);
    if (sim_has(s, M_shared_cta)) sim_require_version(lw, "shared::cta", 78, 30);
    if (t != T_U64) {
        sim_reject(lw, "cvta.u32 conflicts with .address_size 64");
        return;
    }
    uint32_t a;
    const sim_operand *o = &s->operands[1];
    if (o->kind == O_SYMBOL) {
        uint64_t at;
        sim_space where;
        const sim_symbol *y = o->symbol;
        while (y->alias) y = y->alias;
        if (!sim_symbol_address(lw, y, &at, &where) || sim_has(s, M_to)) {
            sim_mismatch(lw, 1, "expected a variable's address");
            return;
        }
        if ((sim_space)y->space != space) {
            sim_reject(lw, "State space mismatch between instruction and address in instruction 'cvta' ('%s')",
                       o->name);
            return;
        }
        a = sim_address_value(lw, o, 1, T_U64);
    } else a = sim_source(lw, 1, T_U64, 0);
    uint32_t d = sim_dest(lw, 0, T_U64, 0);
    sim_ins *i = sim_emit(lw, sim_cvta, F_PLAIN);
    i->d = d;
    i->a = a;
    i->space = (uint8_t)space;
    i->op = sim_has(s, M_to);
}

void sim_lower_isspacep(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 2, 2)) return;
    if (sim_has(s, M_param)) sim_require_version(lw, "isspacep.param", 77, 70);
    if (sim_has(s, M_param_entry)) sim_require_version(lw, "param::entry", 83, 70);
    if (sim_has(s, M_shared_cluster)) sim_require_version(lw, "shared::cluster", 78, 90);
    if (sim_has(s, M_const)) sim_require_version(lw, "isspacep.const", 31, 20);
    uint32_t d = sim_dest_pred(lw, &s->operands[0], 0), a = sim_source(lw, 1, T_U64, 0);
    sim_ins *i = sim_emit(lw, sim_isspacep, F_PLAIN);
    i->d = d;
    i->a = a;
    i->space = (uint8_t)space_of(s);
}

/* --- conversions ------------------------------------------------------------------------------ */

static void check_rounding(sim_lower *lw, const sim_statement *s, const char *needed, bool optional)
{
    static const char *const names[] = { "rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi" };
    int found = 0, wrong = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!sim_has(s, M_rn + (int)k)) continue;
        found++;
        size_t n = strlen(names[k]);
        bool legal = false;
        for (const char *p = needed; (p = strstr(p, names[k])); p += n)
            if ((p == needed || p[-1] == ' ') && (!p[n] || p[n] == ' ')) legal = true;
        if (!legal) wrong++;
    }
    if (wrong || found > 1) {
        sim_reject(lw, "Illegal rounding modifier for instruction 'cvt' (legal: %s)",
                   *needed ? needed : "none");
    } else if (!found && !optional) {
        sim_reject(lw, "Rounding modifier required for instruction 'cvt' (one of %s)", needed);
    }
}

static bool allow_modifiers(sim_lower *lw, const sim_statement *s, const char *allowed)
{
    for (int id = M_rpi + 1; id < M_COUNT; id++) {
        if (!sim_has(s, id)) continue;
        const char *name = sim_mod_name(id), *p = strstr(allowed, name);
        size_t n = strlen(name);
        while (p && !((p == allowed || p[-1] == ' ') && (!p[n] || p[n] == ' '))) p = strstr(p + 1, name);
        if (p) continue;
        sim_reject(lw, "Illegal modifier '.%s' for instruction 'cvt' of these types", name);
        return false;
    }
    return true;
}

/* The rules of cvt for each pair of types; false after a message. */
static bool check_cvt(sim_lower *lw, const sim_statement *s, sim_type d, sim_type a)
{
    uint32_t before = lw->errors;
    bool df = sim_types[d].kind == K_FLOAT, af = sim_types[a].kind == K_FLOAT,
         di = sim_types[d].kind == K_UINT || sim_types[d].kind == K_SINT;
    bool ai = sim_types[a].kind == K_UINT || sim_types[a].kind == K_SINT;
    bool fine = ((di && sim_types[d].bytes) || d == T_F16 || d == T_BF16 || d == T_F32 || d == T_F64)
             && ((ai && sim_types[a].bytes) || a == T_F16 || a == T_BF16 || a == T_F32 || a == T_F64);
    bool single = d == T_F32 || a == T_F32, bf16 = d == T_BF16 || a == T_BF16;
    char allowed[40];
    snprintf(allowed, sizeof allowed, "%s%s%s", single ? "ftz " : "", bf16 ? "" : "sat ",
             (d == T_F16 || d == T_BF16) && a == T_F32 ? "relu satfinite " : "");
    if (d == T_TF32 && a == T_F32) {
        check_rounding(lw, s, "rn rz rna", false);
        if (sim_has(s, M_rna)) sim_require_version(lw, "cvt.rna.tf32", sim_has(s, M_satfinite) ? 81 : 70, 80);
        else
            sim_require_version(lw, "cvt.rn.tf32", sim_has(s, M_satfinite) ? 86 : 78,
                                sim_has(s, M_satfinite) ? 100 : 90);
        allow_modifiers(lw, s, "relu satfinite");
    } else if ((d == T_F16X2 || d == T_BF16X2) && a == T_F32) {
        check_rounding(lw, s, "rn rz", false);
        sim_require_version(lw, "cvt to .f16x2", sim_has(s, M_satfinite) ? 81 : 70, 80);
        allow_modifiers(lw, s, "relu satfinite");
    } else if ((d == T_E4M3X2 || d == T_E5M2X2) && (a == T_F32 || a == T_F16X2)) {
        check_rounding(lw, s, "rn", false);
        sim_require_version(lw, "cvt to .e4m3x2", lw->m->target >= 90 ? 78 : 81, 89);
        allow_modifiers(lw, s, "relu satfinite");
        if (!sim_has(s, M_satfinite)) {
            sim_reject(lw, "Modifier '.satfinite' required for instruction 'cvt'");
        }
    } else if (d == T_F16X2 && (a == T_E4M3X2 || a == T_E5M2X2)) {
        check_rounding(lw, s, "rn", false);
        sim_require_version(lw, "cvt from .e4m3x2", lw->m->target >= 90 ? 78 : 81, 89);
        allow_modifiers(lw, s, "relu");
    } else if (!fine) {
        sim_reject(lw, "Unexpected instruction types specified for 'cvt'");
    } else if (!df && !af) { check_rounding(lw, s, "", true); allow_modifiers(lw, s, allowed); }
    else if (df && !af) {
        check_rounding(lw, s, "rn rz rm rp", false);
        if (d == T_BF16) sim_require_version(lw, "cvt with .bf16", 78, 90);
        allow_modifiers(lw, s, allowed);
    } else if (!df && af) {
        check_rounding(lw, s, "rni rzi rmi rpi", false);
        if (a == T_BF16) sim_require_version(lw, "cvt with .bf16", 78, 90);
        allow_modifiers(lw, s, allowed);
    } else if (d == a) {
        check_rounding(lw, s, "rni rzi rmi rpi", true);
        if (a == T_BF16) sim_require_version(lw, "cvt with .bf16", 78, 90);
        allow_modifiers(lw, s, allowed);
    } else if (a == T_BF16 && d == T_F32) {
        check_rounding(lw, s, "", true);
        sim_require_version(lw, "cvt.f32.bf16", sim_has(s, M_ftz) || sim_has(s, M_sat) ? 78 : 71,
                            sim_has(s, M_ftz) || sim_has(s, M_sat) ? 90 : 80);
        allow_modifiers(lw, s, allowed);
    } else if (sim_types[d].bytes == sim_types[a].bytes) { /* f16 to bf16, or the reverse */
        check_rounding(lw, s, "rn rz rm rp", true);
        sim_require_version(lw, "cvt with .bf16", 78, 90);
        allow_modifiers(lw, s, allowed);
    } else if (sim_types[d].bytes > sim_types[a].bytes) {
        check_rounding(lw, s, "", true);
        if (a == T_BF16) sim_require_version(lw, "cvt with .bf16", 78, 90);
        allow_modifiers(lw, s, allowed);
    } else {
        check_rounding(lw, s, "rn rz rm rp", false);
        if (d == T_BF16 && a == T_F32) sim_require_version(lw, "cvt.bf16.f32", 70, 80);
        else if (d == T_BF16 || a == T_BF16) sim_require_version(lw, "cvt with .bf16", 78, 90);
        if (sim_has(s, M_relu)) sim_require_version(lw, "cvt with .relu", 70, 80);
        if (sim_has(s, M_satfinite)) sim_require_version(lw, "cvt with .satfinite", 81, 80);
        allow_modifiers(lw, s, allowed);
    }
    return lw->errors == before;
}

static int fast_conversion(sim_type d, sim_type a, uint32_t x)
{
    bool ai = sim_types[a].kind == K_UINT || sim_types[a].kind == K_SINT,
         di = sim_types[d].kind == K_UINT || sim_types[d].kind == K_SINT;
    bool is_signed = sim_types[a].kind == K_SINT;
    if (x == (X_INTROUND | R_RZ << X_ROUND_SHIFT) && d == T_S32 && a == T_F32) return OP_cvt_rzi_s32_f32;
    if (x) return SIM_NO_OP;
    if (ai && di) {
        if (sim_types[d].bytes == 8)
            return sim_types[a].bytes == 8 ? OP_mov_64
                   : a == T_S32            ? OP_sext_64
                   : is_signed             ? SIM_NO_OP
                   : a == T_U32            ? OP_zext_64
                                           : SIM_NO_OP;
        if (sim_types[d].bytes == 4) switch (a) {
            case T_U8: return OP_zext_8;
            case T_S8: return OP_sext_8;
            case T_U16: return OP_zext_16;
            case T_S16: return OP_sext_16;
            case T_U64: case T_S64: return OP_low_half;
            default: return OP_mov_32;
        }
        return SIM_NO_OP;
    }
    if (d == T_F32)
        return a == T_S32    ? OP_cvt_f32_s32
               : a == T_U32  ? OP_cvt_f32_u32
               : a == T_F16  ? OP_cvt_f32_f16
               : a == T_BF16 ? OP_cvt_f32_bf16
                             : SIM_NO_OP;
    if (d == T_F64) return a == T_S32 ? OP_cvt_f64_s32 : a == T_F32 ? OP_cvt_f64_f32 : SIM_NO_OP;
    if (a == T_F32) return d == T_F16 ? OP_cvt_f16_f32 : d == T_BF16 ? OP_cvt_bf16_f32 : SIM_NO_OP;
    return SIM_NO_OP;
}

/* Types that cvt only takes in registers of exactly their size. */
static bool needs_exact_register(sim_type t)
{
    return t == T_BF16 || t == T_BF16X2 || t == T_TF32
           || (sim_types[t].kind == K_PACKED && t != T_F16X2 && sim_types[t].bytes <= 4);
}

void sim_lower_cvt(sim_lower *lw, const sim_statement *s)
{
    if (sim_lower_narrow_cvt(lw, s)) return;
    if (s->type_count != 2) {
        sim_reject(lw, "Unexpected instruction types specified for 'cvt'");
        return;
    }
    sim_type d = (sim_type)s->types[0], a = (sim_type)s->types[1];
    if (!check_cvt(lw, s, d, a)) return;
    bool pack = a == T_F32 && sim_types[d].kind == K_PACKED;
    if (!sim_operands_between(lw, pack ? 3 : 2, pack ? 3 : 2)) return;
    int flags = needs_exact_register(d) || needs_exact_register(a) ? 0 : WIDER_OK;
    uint32_t slot_a = sim_source(lw, 1, a, flags), slot_b = pack ? sim_source(lw, 2, a, flags) : 0;
    const sim_operand *o = &s->operands[0];
    uint32_t slot_d = sim_dest(lw, 0, d, flags), to = slot_d, x = sim_flags_of(s);
    uint32_t dest_bytes = o->kind == O_REG ? sim_types[o->type].bytes : sim_types[d].bytes;
    bool widen = dest_bytes == 8 && sim_types[d].bytes < 8,
         cut = dest_bytes == 2 && sim_types[d].kind == K_SINT;
    if (widen || cut) to = sim_temporary(lw, 1);
    int quick = pack ? (x               ? SIM_NO_OP
                        : d == T_F16X2  ? OP_cvt_f16x2_f32
                        : d == T_BF16X2 ? OP_cvt_bf16x2_f32
                                        : SIM_NO_OP)
                     : fast_conversion(d, a, x);
    sim_ins *i = sim_emit(lw, sim_op_handler(quick == SIM_NO_OP ? OP_cvt_any : quick), F_PLAIN);
    i->d = to;
    i->a = slot_a;
    i->b = slot_b;
    i->x = x;
    i->type = (uint8_t)d;
    i->op = (uint8_t)a;
    i->count = sim_types[d].kind == K_PACKED ? 2 : 1;
    if (widen || cut) {
        i = sim_emit(lw,
                     sim_op_handler(cut                           ? OP_zext_16
                                    : sim_types[d].kind == K_SINT ? OP_sext_64
                                                                  : OP_zext_64),
                     F_PLAIN);
        i->d = slot_d;
        i->a = to;
    }
}

void sim_lower_cvt_pack(sim_lower *lw, const sim_statement *s)
{
    sim_type t = (sim_type)s->types[0];
    uint32_t n = s->type_count == 3 ? 4 : 3, bits = t == T_U4 || t == T_S4 ? 4 : sim_types[t].bytes * 8u;
    if (!sim_operands_between(lw, n, n)) return;
    uint32_t d = sim_dest(lw, 0, sim_types[t].kind == K_SINT ? T_S32 : T_U32, 0),
             a = sim_source(lw, 1, T_S32, 0), b = sim_source(lw, 2, T_S32, 0),
             c = n == 4 ? sim_source(lw, 3, T_B32, 0) : 0;
    bool is_signed = sim_types[t].kind == K_SINT;
    sim_ins *i = sim_emit(lw, sim_op_handler(OP_cvt_pack), F_PLAIN);
    i->d = d; i->a = a; i->b = b; i->c = c;
    i->size = (uint8_t)bits;
    i->imm = (1 << (is_signed ? bits - 1 : bits)) - 1;
    i->x = is_signed ? X_SIGNED : 0;
}

/* --- warp-wide -------------------------------------------------------------------------------- */

/* bar.warp.sync. i->e is the membermask, as in every F_SYNC instruction. */
void sim_lower_warp_sync(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (!sim_operands_between(lw, 1, 1)) return;
    uint32_t e = sim_source(lw, 0, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_nop, F_SYNC);
    i->e = e;
    i->op = 1;                                                /* lanes may wait at different bar.warp.sync */
}

void sim_lower_shfl(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 5, 5)) return;
    const sim_operand *o = &s->operands[0];
    bool pair = o->kind == O_PAIR;
    uint32_t d = sim_dest_of(lw, pair ? &o->items[0] : o, 0, T_B32, 0),
             q = pair ? sim_dest_pred(lw, &o->items[1], 0) + 1 : 0;
    uint32_t a = sim_source(lw, 1, T_B32, 0), b = sim_source(lw, 2, T_B32, 0),
             c = sim_source(lw, 3, T_B32, 0), e = sim_source(lw, 4, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_shfl, F_SYNC);
    i->d = d; i->q = q; i->a = a; i->b = b; i->c = c; i->e = e;
    i->op = sim_mod(&s->mods, M_up) ? 0 : sim_mod(&s->mods, M_down) ? 1 : sim_mod(&s->mods, M_bfly) ? 2 : 3;
}

void sim_lower_vote(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 3, 3)) return;
    bool ballot = s->form->sub == 3;
    uint32_t d = ballot ? sim_dest(lw, 0, T_B32, 0) : sim_dest_pred(lw, &s->operands[0], 0),
             a = sim_source_pred(lw, 1), e = sim_source(lw, 2, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_vote, F_SYNC);
    i->d = d; i->a = a; i->e = e;
    i->op = ballot ? 3 : sim_has(s, M_all) ? 0 : sim_has(s, M_any) ? 1 : 2;
}

void sim_lower_match(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 3, 3)) return;
    const sim_operand *o = &s->operands[0];
    bool pair = o->kind == O_PAIR;
    if (pair && s->form->sub == 0) { sim_mismatch(lw, 0, "match.any gives no predicate"); return; }
    sim_type t = (sim_type)s->types[0];
    uint32_t d = sim_dest_of(lw, pair ? &o->items[0] : o, 0, T_B32, 0),
             q = pair ? sim_dest_pred(lw, &o->items[1], 0) + 1 : 0;
    uint32_t a = sim_source(lw, 1, t, 0), e = sim_source(lw, 2, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_match, F_SYNC);
    i->d = d; i->q = q; i->a = a; i->e = e;
    i->op = s->form->sub;
    i->width = (uint8_t)sim_slots_of(t);
}

void sim_lower_redux(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 3, 3)) return;
    sim_type t = (sim_type)s->types[0];
    uint32_t d = sim_dest(lw, 0, t, 0), a = sim_source(lw, 1, t, 0), e = sim_source(lw, 2, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_redux, F_SYNC);
    i->d = d; i->a = a; i->e = e;
    i->x = t == T_S32 ? X_SIGNED : 0;
    i->op = sim_has(s, M_add)   ? A_ADD
            : sim_has(s, M_min) ? A_MIN
            : sim_has(s, M_max) ? A_MAX
            : sim_has(s, M_and) ? A_AND
            : sim_has(s, M_or)  ? A_OR
                            : A_XOR;
}

void sim_lower_elect(sim_lower *lw, const sim_statement *s)
{
    if (!sim_operands_between(lw, 2, 2)) return;
    const sim_operand *o = &s->operands[0];
    if (o->kind != O_PAIR) { sim_mismatch(lw, 0, "expected d|p"); return; }
    uint32_t d = sim_dest_of(lw, &o->items[0], 0, T_B32, 0), q = sim_dest_pred(lw, &o->items[1], 0) + 1,
             e = sim_source(lw, 1, T_U32, 0);
    sim_ins *i = sim_emit(lw, sim_elect, F_SYNC);
    i->d = d; i->q = q; i->e = e;
}

void sim_lower_activemask(sim_lower *lw, const sim_statement *s)
{
    (void)s;
    if (!sim_operands_between(lw, 1, 1)) return;
    uint32_t d = sim_dest(lw, 0, T_B32, 0);
    sim_emit(lw, sim_activemask, F_PLAIN)->d = d;
}

/* Lowers an address, for lower_tensor.c. */
bool sim_row_address(sim_lower *lw, uint32_t index, sim_space space, uint32_t *slot, int64_t *offset,
                     bool *wide)
{
    address a;
    if (!lower_address(lw, index, space, &a)) return false;
    complete_address(lw, &a);
    *slot = a.slot;
    *offset = a.offset;
    *wide = a.wide;
    return true;
}
