/* memory.c - ld, st, atom, red, cp.async, cvta, isspacep.
 *
 * A warp's request is turned into addresses, which are grouped by state space and by the region (allocation,
 * shared memory, the warp's local memory, parameters) that they lie in. Each group of lanes is checked, counted and
 * carried out; usually there is only one. Requests of consecutive addresses take a fast path. */
#include "sim.h"
#include "arith.h"
#include "async.h"
#include "race.h"
#include "texture.h"
#include "unwritten.h"

typedef struct region {
    uint8_t *host, *shadow;
    uint64_t base, size;
    sim_space space;
    sim_allocation *a;                 /* global memory */
    const sim_block *owner;            /* shared memory */
} region;
typedef void (*action)(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r);

static void addresses(const sim_warp *w, const sim_ins *i, uint32_t slot, bool wide, int64_t offset,
                      uint64_t *at)
{
    (void)i;
    if (wide) {
        const uint64_t *a = sim_slot64(w, slot);
        for (uint32_t l = 0; l < SIM_LANES; l++) at[l] = a[l] + (uint64_t)offset;
    } else {
        const uint32_t *a = sim_slot(w, slot), o = (uint32_t)offset;
        for (uint32_t l = 0; l < SIM_LANES; l++) at[l] = (uint32_t)(a[l] + o);
    }
}

static bool contiguous(const uint64_t *at, uint64_t step)
{
    uint64_t different = 0;
    for (uint32_t l = 0; l < SIM_LANES; l++) different |= at[l] ^ (at[0] + l * step);
    return !different;
}

static bool uniform(const uint64_t *at)
{
    uint64_t different = 0;
    for (uint32_t l = 0; l < SIM_LANES; l++) different |= at[l] ^ at[0];
    return !different;
}

/* --- finding and checking --------------------------------------------------------------------- */

static const char *verb(const sim_ins *i)
{
    return i->fn == sim_st ? "write" : i->fn == sim_atom ? "atomic" : i->cls == C_MEMORY ? "read" : "access";
}

static void out_of_bounds(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, uint32_t bytes,
                          sim_space space)
{
    char where[256] = "";
    uint64_t shown = address;
    const char *kind = "out-of-bounds";
    if (space == SP_SHARED) {
        const sim_block *b = w->block;
        const sim_kernel *k = w->kernel;
        const sim_shared_symbol *nearest = NULL;
        for (uint32_t n = 0; n < k->shared_symbol_count; n++)
            if (k->shared_symbols[n].offset <= address
                && (!nearest || k->shared_symbols[n].offset >= nearest->offset))
                nearest = &k->shared_symbols[n];
        snprintf(where, sizeof where, "shared memory spans 0x%x..0x%x%s%s", b->shared_lo, b->shared_hi,
                 nearest ? "; nearest symbol: " : "", nearest ? nearest->name : "");
    } else if (space == SP_LOCAL)
        snprintf(where, sizeof where, "the thread has %u bytes of local memory", w->kernel->local_bytes);
    else if (space == SP_PARAM)
        snprintf(where, sizeof where, "the kernel has %u bytes of parameters", w->launch->param_bytes);
    else {
        sim_memory_describe(address, bytes, where, sizeof where);
        if (strstr(where, "freed")) kind = "use-after-free";
    }
    if (sim_option.bounds)
        sim_report_at(w, i, kind, lane, "%s of %u bytes at %s address 0x%llx: %s", verb(i), bytes,
                      space == SP_SHARED  ? "shared"
                      : space == SP_LOCAL ? "local"
                      : space == SP_PARAM ? "parameter"
                                          : "global",
                      (unsigned long long)shown, where);
    sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
}

static void misaligned(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, uint32_t bytes)
{
    if (sim_option.align)
        sim_report_at(w, i, "misaligned", lane,
                      "%s of %u bytes at address 0x%llx, which is no multiple of %u", verb(i), bytes,
                      (unsigned long long)address, bytes);
    sim_warp_fault(w, SIM_ERROR_MISALIGNED);
}

static bool aligned(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t bytes)
{
    uint64_t low = 0;
    if (m == SIM_FULL) for (uint32_t l = 0; l < SIM_LANES; l++) low |= at[l];
    else SIM_EACH_LANE(l, m) low |= at[l];
    if (!(low & (bytes - 1))) return true;
    SIM_EACH_LANE(lane, m) if (at[lane] & (bytes - 1)) { misaligned(w, i, lane, at[lane], bytes); break; }
    return false;
}

/* Sectors of a local access. The chip interleaves local memory by words: a word of all lanes is contiguous. `at`:
 * offset in the warp's local memory, where each lane has `each` bytes. */
static uint32_t local_sectors(const uint64_t *at, uint32_t m, uint32_t bytes, uint32_t each)
{
    uint32_t n = 0, done = 0;
    for (uint32_t left = m; left; left &= ~done) {            /* lanes at the same offset, group by group */
        uint32_t first = sim_lowest(left), groups = 0;
        uint64_t offset = at[first] - (uint64_t)first * each;
        done = 0;
        SIM_EACH_LANE(l, left) if (at[l] - (uint64_t)l * each == offset) done |= 1u << l;
        for (uint32_t lane = 0; lane < SIM_LANES; lane += 8) groups += (done >> lane & 0xff) != 0;
        n += groups * (uint32_t)(((offset + bytes - 1) >> 2) - (offset >> 2) + 1);
    }
    return n;
}

static void report_ended_block(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b)
{
    sim_report_at(w, i, "ended-block", lane, "%s of shared memory of block %u of the cluster, which ended",
                  verb(i), b->rank);
    sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
}

static void shared_region(const sim_block *b, region *r)
{
    r->host = b->shared;
    r->shadow = b->shared_shadow;
    r->base = b->shared_lo;
    r->size = b->shared_hi - b->shared_lo;
    r->owner = b;
}

/* Reports accesses to bulk copies in flight, and records writes that bulk copies may read (bulk.c). */
static void check_bulk_copies(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r,
                    const sim_block *b, uint32_t bytes)
{
    bool write = i->fn != sim_ld;
    uint64_t low = UINT64_MAX, high = 0;
    SIM_EACH_LANE(l, m) {
        if (at[l] < low) low = at[l];
        if (at[l] > high) high = at[l];
    }
    bool near = sim_copy_overlaps(w->block->cluster, r->host + (low - r->base), high - low + bytes);
    SIM_EACH_LANE(l, m) {
        if (near) sim_copies_check_access(w, i, l, r->host + (at[l] - r->base), bytes, write);
        if (write && r->space == SP_SHARED) sim_proxy_write(w, i, l, b, at[l] - r->base, bytes);
    }
}

/* Carries out `act` for shared::cluster addresses, block by block. */
static void in_cluster(sim_warp *w, const sim_ins *i, uint32_t m, uint64_t *at, uint32_t bytes, action act)
{
    bool allowed = i->space == SP_GENERIC || i->x & X_CLUSTER;
    while (m && !w->fault) {
        uint32_t first = sim_lowest(m), group = 0;
        uint64_t high = at[first] >> SIM_RANK_SHIFT, address = at[first];
        sim_block *b = allowed || !high ? sim_cluster_peer(w->block, &address) : NULL;
        region r = { .space = SP_SHARED };
        if (!b) { out_of_bounds(w, i, first, at[first], bytes, SP_SHARED); return; }
        if (b->ended) { report_ended_block(w, i, first, b); return; }
        shared_region(b, &r);
        SIM_EACH_LANE(l, m) {
            if (at[l] >> SIM_RANK_SHIFT != high) continue;
            at[l] &= SIM_RANK_MASK;
            if (at[l] < r.base || at[l] - r.base + bytes > r.size) {
                out_of_bounds(w, i, l, at[l], bytes, SP_SHARED);
                return;
            }
            group |= 1u << l;
        }
        if (SIM_UNLIKELY(b->watched)) check_bulk_copies(w, i, group, at, &r, b, bytes);
        sim_cluster_record_access(w, i, first, b);
        act(w, i, group, at, &r);
        m &= ~group;
    }
}

static void load(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r);
static void copy_in(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r);
static void store(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r);

/* Records the access for order.c. A strong access counts as an atomic: it is meant to meet those of others. */
static void record_touch(sim_warp *w, const sim_ins *i, sim_allocation *a, uint32_t m, const uint64_t *at,
                         uint32_t bytes, action act)
{
    bool strong = (act == load || act == store) && i->x & X_VOLATILE;
    sim_access access = strong ? SIM_UPDATE : act == load || act == copy_in ? SIM_READ
                      : act == store ? SIM_WRITE : SIM_UPDATE;
    sim_touch(w, i, a, at, m, bytes, access);
}

/* Carries out `act` for lanes in one state space, region by region. */
static void in_space(sim_warp *w, const sim_ins *i, uint32_t m, uint64_t *at, sim_space space, uint32_t bytes,
                     action act)
{
    region r;
    r.space = space;
    r.a = NULL;
    r.owner = NULL;
    if (!aligned(w, i, m, at, bytes)) return;
    if (space == SP_SHARED || space == SP_PARAM) {
        const sim_block *b = w->block;
        if (space == SP_SHARED) {
            r.host = b->shared;
            r.shadow = b->shared_shadow;
            r.base = b->shared_lo;
            r.size = b->shared_hi - b->shared_lo;
            r.owner = b;
        } else {
            r.host = w->launch->params;
            r.shadow = NULL;
            r.base = 0;
            r.size = w->launch->param_bytes;
        }
        SIM_EACH_LANE(lane, m)
        if (SIM_UNLIKELY(at[lane] < r.base || at[lane] - r.base + bytes > r.size)) {
            if (space == SP_SHARED) in_cluster(w, i, m, at, bytes, act);
            else out_of_bounds(w, i, lane, at[lane], bytes, space);
            return;
        }
        if (SIM_UNLIKELY(b->watched) && space == SP_SHARED) check_bulk_copies(w, i, m, at, &r, b, bytes);
        act(w, i, m, at, &r);
        return;
    }
    if (space == SP_LOCAL) { /* the warp's local memory: one thread's after the other's */
        const sim_block *b = w->block;
        uint32_t each = w->kernel->local_bytes;
        r.host = each ? b->local + (size_t)w->index * SIM_LANES * each : NULL;
        r.shadow = each ? b->local_shadow + (size_t)w->index * SIM_LANES * each / 8 : NULL;
        r.base = 0;
        r.size = (uint64_t)each * SIM_LANES;
        SIM_EACH_LANE(lane, m) {
            if (SIM_UNLIKELY(at[lane] + bytes > each || at[lane] > each)) {
                out_of_bounds(w, i, lane, at[lane], bytes, space);
                return;
            }
            at[lane] += (uint64_t)lane * each;
        }
        w->worker->counts.c.local_requests++;
        w->worker->counts.c.local_sectors += local_sectors(at, m, bytes, each);
        w->worker->counts.c.local_bytes += (uint64_t)sim_popcount(m) * bytes;
        act(w, i, m, at, &r);
        return;
    }
    while (m) {
        uint32_t first = sim_lowest(m), group;
        sim_allocation *a = w->worker->cached;
        if (!a || at[first] - a->base >= a->size) a = w->worker->cached = sim_memory_find(at[first]);
        if (SIM_UNLIKELY(!a || a->size < bytes)) {
            out_of_bounds(w, i, first, at[first], bytes, SP_GLOBAL);
            return;
        }
        uint64_t last = a->size - bytes;
        if (m == SIM_FULL) {
            uint32_t outside = 0;
            for (uint32_t l = 0; l < SIM_LANES; l++) outside |= at[l] - a->base > last;
            group = m;
            if (outside) { group = 0; SIM_EACH_LANE(l, m) if (at[l] - a->base <= last) group |= 1u << l; }
        } else { group = 0; SIM_EACH_LANE(l, m) if (at[l] - a->base <= last) group |= 1u << l; }
        if (SIM_UNLIKELY(!(group >> first & 1))) {
            out_of_bounds(w, i, first, at[first], bytes, SP_GLOBAL);
            return;
        }
        r.host = a->host; r.shadow = a->shadow; r.base = a->base; r.size = a->size; r.a = a;
        if (SIM_UNLIKELY(w->block->watched)) check_bulk_copies(w, i, group, at, &r, w->block, bytes);
        if (SIM_UNLIKELY(w->worker->touches != NULL)) record_touch(w, i, a, group, at, bytes, act);
        act(w, i, group, at, &r);
        m &= ~group;
    }
}

static void access_memory(sim_warp *w, const sim_ins *i, uint32_t m, uint64_t *at, uint32_t bytes, action act)
{
    if (i->space != SP_GENERIC) {
        in_space(w, i, m, at, i->space == SP_CONST ? SP_GLOBAL : (sim_space)i->space, bytes, act);
        return;
    }
    uint64_t high = 0;
    SIM_EACH_LANE(l, m) high |= at[l] >> 48;
    if (!high) { in_space(w, i, m, at, SP_GLOBAL, bytes, act); return; }
    static const struct { uint64_t base; sim_space space; } windows[] = {
        { SIM_SHARED_WINDOW, SP_SHARED }, { SIM_LOCAL_WINDOW, SP_LOCAL }, { SIM_PARAM_WINDOW, SP_PARAM } };
    for (uint32_t k = 0; k < 3 && m && !w->fault; k++) {
        uint32_t group = 0;
        SIM_EACH_LANE(l, m) if (at[l] - windows[k].base < SIM_WINDOW_SIZE)
        {
            group |= 1u << l;
            at[l] -= windows[k].base;
        }
        if (group) in_space(w, i, group, at, windows[k].space, bytes, act);
        m &= ~group;
    }
    if (m && !w->fault) in_space(w, i, m, at, SP_GLOBAL, bytes, act);
}

/* --- counting --------------------------------------------------------------------------------- */

static uint32_t sectors(const uint64_t *at, uint32_t m, uint32_t bytes)
{
    uint64_t seen[64], last = UINT64_MAX;
    uint32_t n = 0;
    SIM_EACH_LANE(l, m) {
        for (uint64_t sector = at[l] >> 5; sector <= (at[l] + bytes - 1) >> 5; sector++) {
            if (sector == last) continue;
            last = sector;
            uint32_t k = 0;
            while (k < n && seen[k] != sector) k++;
            if (k == n && n < 64) seen[n++] = sector;
        }
    }
    return n;
}

/* Counts passes over the 32 banks: lanes are grouped so that their requests make up 128 bytes; lanes that access
 * the same word share it. */
static void count_banks(sim_counts *c, const uint64_t *at, uint32_t m, uint32_t bytes)
{
    uint32_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : bytes == 16 ? 8 : 4, wavefronts = 0, ideal = 0;
    for (uint32_t first = 0; first < SIM_LANES; first += lanes) {
        uint32_t group = m & (lanes == 32 ? SIM_FULL : ((1u << lanes) - 1) << first), depth[32] = { 0 },
                 worst = 0;
        uint64_t words[32 * 2];
        uint32_t n = 0;
        if (!group) continue;
        ideal++;
        SIM_EACH_LANE(l, group) {
            for (uint64_t word = at[l] >> 2; word <= (at[l] + bytes - 1) >> 2; word++) {
                uint32_t k = 0;
                while (k < n && words[k] != word) k++;
                if (k < n || n >= 64) continue;
                words[n++] = word;
                if (++depth[word & 31] > worst) worst = depth[word & 31];
            }
        }
        wavefronts += worst;
    }
    c->c.shared_wavefronts += wavefronts;
    c->c.shared_bank_conflicts += wavefronts - ideal;
}

static void count_request(sim_warp *w, const uint64_t *at, uint32_t m, uint32_t bytes, sim_space space,
                          bool store, int shape)
{
    sim_counts *c = &w->worker->counts;
    uint64_t asked = (uint64_t)(m == SIM_FULL ? SIM_LANES : sim_popcount(m)) * bytes;
    if (space == SP_GLOBAL) {
        if (SIM_UNLIKELY(w->worker->profile != NULL))
            sim_profile_touch(w->worker->profile, at, m, bytes, shape == 1, store ? SIM_WRITE : SIM_READ);
        uint64_t n = shape == 1 ? ((at[0] + (uint64_t)SIM_LANES * bytes - 1) >> 5) - (at[0] >> 5) + 1
                   : shape == 2 ? ((at[0] + bytes - 1) >> 5) - (at[0] >> 5) + 1 : sectors(at, m, bytes);
        if (store) {
            c->c.global_store_requests++;
            c->c.global_store_bytes += asked;
            c->c.global_store_sectors += n;
        } else {
            c->c.global_load_requests++;
            c->c.global_load_bytes += asked;
            c->c.global_load_sectors += n;
        }
    } else if (space == SP_SHARED) {
        if (store) { c->c.shared_store_requests++; c->c.shared_store_bytes += asked; }
        else { c->c.shared_load_requests++; c->c.shared_load_bytes += asked; }
        if (shape == 2) c->c.shared_wavefronts++;
        else if (shape == 1) c->c.shared_wavefronts += bytes <= 4 ? 1 : bytes / 4;
        else count_banks(c, at, m, bytes);
    }
}

/* Whether other threads may access this region. */
static inline bool may_race(const sim_warp *w, const region *r)
{
    if (!w->launch->races || r->space > SP_SHARED) return false;
    if (r->owner) return true;
    return r->a && r->a->kind != MEM_CONST;
}

static uint32_t strength(const sim_ins *i)
{
    return (i->x & X_VOLATILE ? REC_STRONG : 0) | (i->x >> X_SCOPE_SHIFT & 3 ? REC_WIDE : 0);
}

/* Whether an asynchronous copy in flight covers the bytes; if so, that is reported. */
static bool report_pending_async(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r,
                                 uint32_t bytes, bool write)
{
    return r->space == SP_SHARED && r->host == w->block->shared && sim_async_pending(w->block)
           && sim_async_touch(w, i, m, at, bytes, write);
}

static void strong_after(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r)
{
    if (w->kernel->clocks && i->x & X_VOLATILE && may_race(w, r)) sim_order_after(w, i, m, at, r->owner);
}

/* While a launch is suspected of spinning for ever: keeps the old bytes for compare(). */
static bool hold_old_bytes(const sim_warp *w, const region *r, uint32_t m, const uint64_t *at, uint32_t bytes,
                           uint8_t held[SIM_LANES][32])
{
    if (!sim_suspect(w->launch)) return false;
    SIM_EACH_LANE(l, m) memcpy(held[l], r->host + (at[l] - r->base), bytes);
    return true;
}

static void compare(const sim_warp *w, const region *r, uint32_t m, const uint64_t *at, uint32_t bytes,
                    uint8_t held[SIM_LANES][32])
{
    bool same = true;
    SIM_EACH_LANE(l, m) same &= !memcmp(held[l], r->host + (at[l] - r->base), bytes);
    if (!same) sim_changed(w->launch);
}

/* --- loads ------------------------------------------------------------------------------------ */

static bool shadow_full(const uint8_t *shadow, uint64_t offset, uint64_t bytes)
{
    if ((offset | bytes) & 7) return sim_shadow_all(shadow, offset, bytes);
    const uint8_t *p = shadow + (offset >> 3);
    uint64_t n = bytes >> 3, all = UINT64_MAX;
    for (; n >= 8; n -= 8, p += 8) { uint64_t v; memcpy(&v, p, 8); all &= v; }
    for (; n; n--, p++) all &= *p | UINT64_C(0xffffffffffffff00);
    return all == UINT64_MAX;
}

static void uninitialised(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r,
                          uint32_t bytes)
{
    SIM_EACH_LANE(lane, m) {
        uint64_t offset = at[lane] - r->base;
        if (sim_shadow_all(r->shadow, offset, bytes)) continue;
        uint32_t k = 0;
        while (r->shadow[(offset + k) >> 3] >> ((offset + k) & 7) & 1) k++;
        char where[200] = "";
        uint64_t shown = at[lane];
        if (r->space == SP_LOCAL) shown %= w->kernel->local_bytes;
        if (r->space == SP_GLOBAL) sim_memory_describe(at[lane] + k, 1, where, sizeof where);
        sim_report_at(w, i, "uninitialised-read", lane,
                      "read of %u bytes at %s address 0x%llx: byte %u was never written%s%s", bytes,
                      r->space == SP_SHARED  ? "shared"
                      : r->space == SP_LOCAL ? "local"
                                             : "global",
                      (unsigned long long)shown, k, *where ? "; " : "", where);
        return;
    }
}

static inline uint64_t read_value(const uint8_t *p, uint32_t size, bool is_signed)
{
    uint64_t v = 0;
    switch (size) {
    case 1: return is_signed ? (uint64_t)(int64_t)(int8_t)*p : *p;
    case 2: { uint16_t x; memcpy(&x, p, 2); return is_signed ? (uint64_t)(int64_t)(int16_t)x : x; }
    case 4: { uint32_t x; memcpy(&x, p, 4); return is_signed ? (uint64_t)(int64_t)(int32_t)x : x; }
    default: memcpy(&v, p, 8); return v;
    }
}

static sim_unwritten_place unwritten_place(const region *r, const uint64_t *at)
{ return (sim_unwritten_place){ r->shadow, at, r->base, r->space, r->a, r->owner }; }

static void load(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r)
{
    const uint32_t *list = w->kernel->lists + i->list;
    uint32_t size = i->size, count = i->count, bytes = size * count;
    int shape = m != SIM_FULL ? 0 : contiguous(at, bytes) ? 1 : uniform(at) ? 2 : 0;
    if (i->space != SP_CONST) count_request(w, at, m, bytes, r->space, false, shape);
    bool early = report_pending_async(w, i, m, at, r, bytes, false);
    if (r->owner && SIM_UNLIKELY(r->owner->mbarrier_count)) sim_mbarrier_read(w, i, m, at, r->owner, bytes);
    if (SIM_UNLIKELY(i->x & X_NC) && w->kernel->bulk_stores) sim_check_stale_load(w, i, m, at, r->host, r->base, bytes);
    bool fine = true;
    if (r->shadow && sim_option.uninitialised && !early) {
        if (shape == 1) fine = shadow_full(r->shadow, at[0] - r->base, (uint64_t)bytes * SIM_LANES);
        else if (shape == 2) fine = sim_shadow_all(r->shadow, at[0] - r->base, bytes);
        else SIM_EACH_LANE(l, m) fine &= sim_shadow_all(r->shadow, at[l] - r->base, bytes);
    }
    if (SIM_UNLIKELY(!fine)) {
        sim_unwritten_place place = unwritten_place(r, at);
        if (!sim_unwritten_load(w, i, m, &place)) uninitialised(w, i, m, at, r, bytes);
    } else if (SIM_UNLIKELY(w->unwritten) && i->x & X_PARAM) sim_unwritten_loaded(w, i, m);
    if (may_race(w, r)) sim_race_access(w, i, shape == 2 ? 3 : m, at, r->owner, r->a, bytes, strength(i),
                                        shape == 1);
    for (uint32_t k = 0; k < count; k++) {
        if (list[k] == UINT32_MAX) continue;
        bool wide = list[k] & SIM_WIDE;
        uint32_t slot = list[k] & ~SIM_WIDE;
        if (size == 16) {
            uint64_t *d = sim_slot64(w, slot), *e = sim_slot64(w, slot + 2);
            SIM_EACH_LANE(l, m)
            {
                const uint8_t *p = r->host + (at[l] - r->base);
                memcpy(&d[l], p, 8);
                memcpy(&e[l], p + 8, 8);
            }
            continue;
        }
        if (size == 4 && !wide) {
            uint32_t *d = sim_slot(w, slot);
            if (shape == 1) {
                const uint8_t *p = r->host + (at[0] - r->base) + k * 4;
                if (count == 1) memcpy(d, p, SIM_LANES * 4);
                else for (uint32_t l = 0; l < SIM_LANES; l++) memcpy(&d[l], p + l * bytes, 4);
            } else if (shape == 2) {
                uint32_t v;
                memcpy(&v, r->host + (at[0] - r->base) + k * 4, 4);
                for (uint32_t l = 0; l < SIM_LANES; l++) d[l] = v;
            } else SIM_EACH_LANE(l, m) memcpy(&d[l], r->host + (at[l] - r->base) + k * 4, 4);
            continue;
        }
        bool is_signed = i->x & X_SIGNED;
        if (wide) {
            uint64_t *d = sim_slot64(w, slot);
            SIM_EACH_LANE(l, m) d[l] = read_value(r->host + (at[l] - r->base) + k * size, size, is_signed);
        } else {
            uint32_t *d = sim_slot(w, slot);
            if (size == 2 && !is_signed) SIM_EACH_LANE(l, m)
                {
                    uint16_t v;
                    memcpy(&v, r->host + (at[l] - r->base) + k * 2, 2);
                    d[l] = v;
                }
            else
                SIM_EACH_LANE(l, m)
                d[l] = (uint32_t)read_value(r->host + (at[l] - r->base) + k * size, size, is_signed);
        }
    }
    strong_after(w, i, m, at, r);
}

void sim_ld(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint64_t at[SIM_LANES];
    addresses(w, i, i->a, i->q, i->imm, at);
    if (i->x & X_VOLATILE) w->worker->counts.polls++;
    access_memory(w, i, m, at, (uint32_t)i->size * i->count, load);
}

/* --- stores ----------------------------------------------------------------------------------- */

static void mark_written(const region *r, uint64_t offset, uint64_t bytes)
{
    if (!r->shadow) return;
    if (bytes == 4 || bytes == 8 || bytes == 16) {            /* usual sizes: often set already */
        if (sim_shadow_all(r->shadow, offset, bytes)) return;
    }
    if (r->space == SP_LOCAL && (offset & 7) + bytes <= 8) {  /* local: no other worker writes it */
        r->shadow[offset >> 3] |= (uint8_t)(((1u << bytes) - 1) << (offset & 7));
        return;
    }
    sim_shadow_set(r->shadow, offset, bytes);
}

static void store(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r)
{
    const uint32_t *list = w->kernel->lists + i->list;
    uint32_t size = i->size, count = i->count, bytes = size * count;
    int shape = m == SIM_FULL && contiguous(at, bytes) ? 1 : 0;
    if (r->space == SP_PARAM) {
        out_of_bounds(w, i, sim_lowest(m), at[sim_lowest(m)], bytes, SP_PARAM);
        return;
    }
    count_request(w, at, m, bytes, r->space, true, shape);
    report_pending_async(w, i, m, at, r, bytes, true);
    uint8_t held[SIM_LANES][32];
    bool suspect = hold_old_bytes(w, r, m, at, bytes, held);
    if (may_race(w, r)) {
        sim_race_access(w, i, m, at, r->owner, r->a, bytes, REC_WRITE | strength(i), shape == 1);
        if (w->kernel->clocks && i->x & X_VOLATILE) sim_order_before(w, i, m, at, r->owner);
    }
    for (uint32_t k = 0; k < count; k++) {
        uint32_t slot = list[k] & ~SIM_WIDE;
        if (list[k] & SIM_CONST_BANK && list[k] != UINT32_MAX) slot = (list[k] & ~SIM_WIDE);
        if (size == 16) {
            const uint64_t *d = sim_slot64(w, slot), *e = sim_slot64(w, slot + 2);
            SIM_EACH_LANE(l, m)
            {
                uint8_t *p = r->host + (at[l] - r->base);
                memcpy(p, &d[l], 8);
                memcpy(p + 8, &e[l], 8);
            }
        } else if (size == 8) {
            const uint64_t *d = sim_slot64(w, slot);
            SIM_EACH_LANE(l, m) memcpy(r->host + (at[l] - r->base) + k * 8, &d[l], 8);
        } else {
            const uint32_t *d = sim_slot(w, slot);
            if (size == 4 && shape == 1 && count == 1) memcpy(r->host + (at[0] - r->base), d, SIM_LANES * 4);
            else if (size == 4) SIM_EACH_LANE(l, m) memcpy(r->host + (at[l] - r->base) + k * 4, &d[l], 4);
            else SIM_EACH_LANE(l, m) {
                uint16_t v = (uint16_t)d[l];
                uint8_t b = (uint8_t)d[l];
                if (size == 2) memcpy(r->host + (at[l] - r->base) + k * 2, &v, 2);
                else memcpy(r->host + (at[l] - r->base) + k, &b, 1);
            }
        }
    }
    if (SIM_UNLIKELY(suspect)) compare(w, r, m, at, bytes, held);
    bool done = false;
    if (SIM_UNLIKELY(w->unwritten)) {
        sim_unwritten_place place = unwritten_place(r, at);
        done = sim_unwritten_store(w, i, m, &place);
    }
    if (r->a && SIM_UNLIKELY(atomic_load_explicit(&r->a->widest, memory_order_relaxed) < size))
        atomic_store_explicit(&r->a->widest, (unsigned char)size, memory_order_relaxed);
    if (r->shadow && !done) {
        if (shape == 1) {
            uint64_t offset = at[0] - r->base, total = (uint64_t)bytes * SIM_LANES;
            if (!shadow_full(r->shadow, offset, total)) sim_shadow_set(r->shadow, offset, total);
        } else SIM_EACH_LANE(l, m) mark_written(r, at[l] - r->base, bytes);
    }
}

void sim_st(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint64_t at[SIM_LANES];
    addresses(w, i, i->a, i->q, i->imm, at);
    access_memory(w, i, m, at, (uint32_t)i->size * i->count, store);
}

/* --- atomics ---------------------------------------------------------------------------------- */

static u64 combine(const sim_ins *i, u64 old, u64 v, u64 compare, bool global)
{
    s64 x = (s64)old, y = (s64)v;
    if (i->type == T_S32) { x = (s32)old; y = (s32)v; }
    switch (i->op) {
    case A_ADD:
        switch (i->type) {
        case T_F32: {
            u32 r = global ? cz(Fz((u32)old) + Fz((u32)v)) : c32(F((u32)old) + F((u32)v));
            return r;
        }
        case T_F64:    return UD(D(old) + D(v));
        case T_F16:    return h16(H((u32)old) + H((u32)v));
        case T_F16X2:  return pair16(h16(H((u32)old) + H((u32)v)), h16(H((u32)old >> 16) + H((u32)v >> 16)));
        case T_BF16:   return b16(Bf((u32)old) + Bf((u32)v));
        case T_BF16X2:
            return pair16(b16(Bf((u32)old) + Bf((u32)v)), b16(Bf((u32)old >> 16) + Bf((u32)v >> 16)));
        default:       return old + v;
        }
    case A_MIN: case A_MAX:
        switch (i->type) {
        case T_F16: case T_BF16: {
            u32 inf = i->type == T_F16 ? 0x7c00 : 0x7f80;
            return i->op == A_MIN ? min16((u32)old, (u32)v, inf) : max16((u32)old, (u32)v, inf);
        }
        case T_F16X2: case T_BF16X2: {
            u32 inf = i->type == T_F16X2 ? 0x7c00 : 0x7f80, a = (u32)old, b = (u32)v;
            return i->op == A_MIN ? pair16(min16(a & 0xffff, b & 0xffff, inf), min16(a >> 16, b >> 16, inf))
                                  : pair16(max16(a & 0xffff, b & 0xffff, inf), max16(a >> 16, b >> 16, inf));
        }
        case T_S32: case T_S64: return (i->op == A_MIN) == (x < y) ? old : v;
        default: return (i->op == A_MIN) == (old < v) ? old : v;
        }
    case A_INC:  return (u32)old >= (u32)v ? 0 : old + 1;
    case A_DEC:  return (u32)old == 0 || (u32)old > (u32)v ? v : old - 1;
    case A_AND:  return old & v;
    case A_OR:   return old | v;
    case A_XOR:  return old ^ v;
    case A_EXCH: return v;
    default: return old == compare ? v : old; /* cas: the list holds the comparand, i->c the new value */
    }
}

static pthread_mutex_t wide_lock = PTHREAD_MUTEX_INITIALIZER; /* 128-bit atomics */

#if defined(__GNUC__)
#define SIM_CAS(type) \
    do { \
        type old_ = __atomic_load_n((type *)(void *)p, __ATOMIC_SEQ_CST), new_; \
        do new_ = (type)combine(i, old_, value, compare, global); \
        while (!__atomic_compare_exchange_n((type *)(void *)p, &old_, new_, 0, __ATOMIC_SEQ_CST, \
                                            __ATOMIC_SEQ_CST)); \
        old = old_; \
        changes |= new_ != old_; \
    } while (0)
#else
#define SIM_CAS(type) \
    do { \
        type old_, new_; \
        pthread_mutex_lock(&wide_lock); \
        memcpy(&old_, p, sizeof old_); \
        new_ = (type)combine(i, old_, value, compare, global); \
        memcpy(p, &new_, sizeof new_); \
        pthread_mutex_unlock(&wide_lock); \
        old = old_; \
        changes |= new_ != old_; \
    } while (0)
#endif

static void atomic_wide(sim_warp *w, const sim_ins *i, uint32_t lane, uint8_t *p, uint32_t source,
                        uint32_t target)
{
    uint64_t old[2], v[2] = { sim_slot64(w, source)[lane], sim_slot64(w, source + 2)[lane] };
    pthread_mutex_lock(&wide_lock);
    memcpy(old, p, 16);
    if (i->op == A_EXCH) memcpy(p, v, 16);
    else if (old[0] == v[0] && old[1] == v[1]) {
        uint64_t n[2] = { sim_slot64(w, i->c)[lane], sim_slot64(w, i->c + 2)[lane] };
        memcpy(p, n, 16);
    }
    pthread_mutex_unlock(&wide_lock);
    if (target == UINT32_MAX) return;
    sim_slot64(w, target & ~SIM_WIDE)[lane] = old[0];
    sim_slot64(w, (target & ~SIM_WIDE) + 2)[lane] = old[1];
}

static void atomic(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r)
{
    const uint32_t *values = w->kernel->lists + i->list,
                   *results = i->d == UINT32_MAX ? NULL : w->kernel->lists + i->d;
    uint32_t size = i->size, bytes = size * i->count;
    bool global = r->space == SP_GLOBAL, changes = size == 16;
    sim_counts *c = &w->worker->counts;
    c->c.atomics++;
    c->c.atomic_operations += sim_popcount(m);
    report_pending_async(w, i, m, at, r, bytes, true);
    uint8_t held[SIM_LANES][32];
    bool suspect = hold_old_bytes(w, r, m, at, bytes, held);
    if (global && SIM_UNLIKELY(w->worker->profile != NULL))
        sim_profile_touch(w->worker->profile, at, m, bytes, false, SIM_UPDATE);
    if (r->shadow && sim_option.uninitialised && i->op != A_EXCH) {
        bool fine = true;
        SIM_EACH_LANE(l, m) fine &= sim_shadow_all(r->shadow, at[l] - r->base, bytes);
        if (!fine) uninitialised(w, i, m, at, r, bytes);
    }
    if (may_race(w, r)) {
        sim_race_access(w, i, m, at, r->owner, r->a, bytes, REC_WRITE | REC_ATOMIC | strength(i),
                        false);
        if (w->kernel->clocks) sim_order_before(w, i, m, at, r->owner);
    }
    SIM_EACH_LANE(l, m) {
        for (uint32_t k = 0; k < i->count; k++) {
            uint8_t *p = r->host + (at[l] - r->base) + k * size;
            uint32_t source = values[k] & ~SIM_WIDE, target = results ? results[k] : UINT32_MAX;
            if (size == 16) { atomic_wide(w, i, l, p, source, target); continue; }
            uint64_t value = size == 8 ? sim_slot64(w, source)[l] : sim_slot(w, source)[l], compare = 0, old;
            if (i->op == A_CAS) {
                compare = value;
                value = size == 8 ? sim_slot64(w, i->c)[l] : sim_slot(w, i->c)[l];
            }
            if (size == 2) { compare &= 0xffff; SIM_CAS(uint16_t); }
            else if (size == 4) SIM_CAS(uint32_t);
            else SIM_CAS(uint64_t);
            if (target == UINT32_MAX) continue;
            if (target & SIM_WIDE) sim_slot64(w, target & ~SIM_WIDE)[l] = old;
            else sim_slot(w, target)[l] = (uint32_t)old;
        }
        mark_written(r, at[l] - r->base, bytes);
    }
    if (changes) c->effective_atomics++; else c->polls++;
    if (SIM_UNLIKELY(suspect)) compare(w, r, m, at, bytes, held);
    strong_after(w, i, m, at, r);
}

/* One element of a reduction that another file carries out: how->op and how->type define it. */
void sim_combine(const sim_ins *how, uint8_t *p, uint32_t size, uint64_t value, bool global)
{
    const sim_ins *i = how;
    uint64_t old = 0, compare = 0;
    bool changes = false;
    if (size == 2) SIM_CAS(uint16_t);
    else if (size == 4) SIM_CAS(uint32_t);
    else SIM_CAS(uint64_t);
    (void)old;
    (void)changes;
}

void sim_atom(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint64_t at[SIM_LANES];
    addresses(w, i, i->a, i->q, i->imm, at);
    access_memory(w, i, m, at, (uint32_t)i->size * i->count, atomic);
}

/* --- cp.async: see cp_async.c ----------------------------------------------------------------- */

static void copy_in(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const region *r)
{
    uint32_t size = i->size;
    sim_block *b = w->block;
    uint64_t to[SIM_LANES];
    sim_counts *c = &w->worker->counts;
    addresses(w, i, i->b, i->width, (int32_t)i->e, to);
    int shape = m == SIM_FULL && contiguous(at, size);
    count_request(w, at, m, size, SP_GLOBAL, false, shape);
    c->c.async_copies += sim_popcount(m);
    c->c.async_copy_bytes += (uint64_t)sim_popcount(m) * size;
    SIM_EACH_LANE(l, m) {
        uint32_t n = size;
        if (i->op == 1 && sim_slot(w, i->c)[l] < n) n = sim_slot(w, i->c)[l];
        if (i->op == 2 && sim_pred(w, i->c) >> l & 1) n = 0;
        uint64_t from = at[l] - r->base;
        uint32_t unwritten = 0;                               /* a bit for each byte */
        if (r->shadow && sim_option.uninitialised && !sim_shadow_all(r->shadow, from, n))
            for (uint32_t k = 0; k < n; k++)
                unwritten |= (uint32_t)!(r->shadow[(from + k) >> 3] >> ((from + k) & 7) & 1) << k;
        sim_async_issue(w, i, l, (uint32_t)(to[l] - b->shared_lo), r->a, at[l], n, unwritten);
    }
}

void sim_cp_async(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint64_t at[SIM_LANES], to[SIM_LANES];
    const sim_block *b = w->block;
    addresses(w, i, i->a, i->q, i->imm, at);
    addresses(w, i, i->b, i->width, (int32_t)i->e, to);
    if (!aligned(w, i, m, to, i->size)) return;
    uint32_t empty = 0, part = 0;
    SIM_EACH_LANE(l, i->op == 1 ? m : 0)
        if (sim_slot(w, i->c)[l] > i->size) {
            sim_report_at(w, i, "async-size", l, "%u bytes to read, more than the %u of the copy",
                          sim_slot(w, i->c)[l], i->size);
            break;
        }
    SIM_EACH_LANE(l, m) {
        if (to[l] < b->shared_lo || to[l] + i->size > b->shared_hi || to[l] > b->shared_hi) {
            out_of_bounds(w, i, l, to[l], i->size, SP_SHARED);
            return;
        }
        if ((i->op == 1 && sim_slot(w, i->c)[l] == 0) || (i->op == 2 && sim_pred(w, i->c) >> l & 1))
            empty |= 1u << l;
        else if (i->op == 1 && sim_slot(w, i->c)[l] < i->size) part |= 1u << l;
    }
    SIM_EACH_LANE(l, empty)
    sim_async_issue(w, i, l, (uint32_t)(to[l] - b->shared_lo), NULL, 0, 0,
                    0); /* the source address may be invalid */
    if (part && !aligned(w, i, part, at, i->size)) return;
    SIM_EACH_LANE(l, part) /* no more than src-size is read */
    if (!w->fault) access_memory(w, i, 1u << l, at, sim_slot(w, i->c)[l], copy_in);
    m &= ~(empty | part);
    if (m && !w->fault) access_memory(w, i, m, at, i->size, copy_in);
}

/* --- accesses of one thread, for instructions in other files ---------------------------------- */

/* The host address of the bytes at `address`, checked like ld and st: bounds, unwritten bytes, races. NULL after a
 * fault. `bytes` of a generic address lie in one state space. The caller checks alignment, by its instruction's
 * rule. */
uint8_t *sim_reach(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, sim_space space,
                   uint32_t bytes, sim_access access)
{
    const sim_block *b = w->block;
    region r = { .space = space == SP_CONST ? SP_GLOBAL : space };
    uint64_t at[SIM_LANES];
    if (space == SP_GENERIC) {
        uint64_t offset = address - SIM_SHARED_WINDOW;
        r.space = offset < SIM_WINDOW_SIZE                                 ? SP_SHARED
                  : address - SIM_LOCAL_WINDOW < SIM_WINDOW_SIZE ? SP_LOCAL
                  : address - SIM_PARAM_WINDOW < SIM_WINDOW_SIZE ? SP_PARAM
                                                                 : SP_GLOBAL;
        if (r.space != SP_GLOBAL) address = (uint32_t)address;
    }
    if (r.space == SP_SHARED) {
        uint64_t own = address;
        const sim_block *peer = sim_cluster_peer(b, &own);    /* the lowering checks which forms may address peers */
        if (peer && peer->ended) { report_ended_block(w, i, lane, peer); return NULL; }
        if (peer) { b = peer; address = own; }
        shared_region(b, &r);
    } else if (r.space == SP_PARAM) {
        r.host = w->launch->params;
        r.size = access == SIM_READ ? w->launch->param_bytes : 0;
    } else if (r.space == SP_LOCAL) {
        size_t start = (size_t)sim_thread_of(w, lane) * w->kernel->local_bytes;
        r.host = b->local ? b->local + start : NULL;          /* NULL: nothing is in bounds */
        r.shadow = b->local ? b->local_shadow + start / 8 : NULL;
        r.size = w->kernel->local_bytes;
    } else {
        sim_allocation *a = w->worker->cached;
        if (!a || address - a->base >= a->size) a = w->worker->cached = sim_memory_find(address);
        if (a) { r.host = a->host; r.shadow = a->shadow; r.base = a->base; r.size = a->size; r.a = a; }
        if (SIM_UNLIKELY(w->worker->touches != NULL) && a) {
            at[lane] = address;
            if (address - a->base + bytes <= a->size) sim_touch(w, i, a, at, 1u << lane, bytes, access);
        }
    }
    if (address < r.base || r.size < bytes || address - r.base > r.size - bytes) {
        out_of_bounds(w, i, lane, address, bytes, r.space);
        return NULL;
    }
    at[lane] = address;
    if (r.space == SP_GLOBAL && SIM_UNLIKELY(w->worker->profile != NULL))
        sim_profile_touch(w->worker->profile, at, 1u << lane, bytes, false, access);
    report_pending_async(w, i, 1u << lane, at, &r, bytes, access != SIM_READ);
    if (access != SIM_READ) sim_changed(w->launch);
    if (r.shadow && access != SIM_WRITE && sim_option.uninitialised
        && !sim_shadow_all(r.shadow, address - r.base, bytes))
        uninitialised(w, i, 1u << lane, at, &r, bytes);
    if (SIM_UNLIKELY(b->watched)) {
        sim_copies_check_access(w, i, lane, r.host + (address - r.base), bytes, access != SIM_READ);
        if (access != SIM_READ && r.space == SP_SHARED)
            sim_proxy_write(w, i, lane, b, address - r.base, bytes);
    }
    if (may_race(w, &r))
        sim_race_access(w, i, 1u << lane, at, r.owner, r.a, bytes,
                        access == SIM_READ    ? 0
                        : access == SIM_WRITE ? REC_WRITE
                                              : REC_WRITE | REC_ATOMIC | REC_STRONG | REC_WIDE,
                        false);
    if (r.shadow && access != SIM_READ) sim_shadow_set(r.shadow, address - r.base, bytes);
    return r.host + (address - r.base);
}

/* The same for texels of textures and surfaces, at an offset that texture.c has computed. */
uint8_t *sim_reach_texel(sim_warp *w, const sim_ins *i, uint32_t lane, sim_allocation *a, uint64_t offset,
                         uint32_t bytes, sim_access access, bool *unwritten)
{
    region r = { .host = a->host, .shadow = a->shadow, .base = a->base, .size = a->size, .space = SP_GLOBAL, .a = a };
    uint64_t at[SIM_LANES];
    at[lane] = a->base + offset;
    if (r.size < bytes || offset > r.size - bytes) return NULL;
    if (SIM_UNLIKELY(w->worker->touches != NULL)) sim_touch(w, i, a, at, 1u << lane, bytes, access);
    if (SIM_UNLIKELY(w->worker->profile != NULL))
        sim_profile_touch(w->worker->profile, at, 1u << lane, bytes, false, access);
    if (access != SIM_READ) sim_changed(w->launch);
    if (r.shadow && access != SIM_WRITE && sim_option.uninitialised
        && !sim_shadow_all(r.shadow, offset, bytes))
        *unwritten = true;
    /* An array can be written in the launch only by surface stores, and only through a surface object of it. */
    if (may_race(w, &r) && (a->kind != MEM_ARRAY || (w->kernel->surface_stores && a->surfaced)))
        sim_race_access(w, i, 1u << lane, at, NULL, a, bytes,
                        access == SIM_READ    ? 0
                        : access == SIM_WRITE ? REC_WRITE
                                              : REC_WRITE | REC_ATOMIC | REC_STRONG | REC_WIDE,
                        false);
    if (r.shadow && access != SIM_READ) sim_shadow_set(r.shadow, offset, bytes);
    return r.host + offset;
}

/* applypriority, or with i->op 1 discard, of a cache line. Discarded bytes become unwritten. */
void sim_cache_line(sim_warp *w, const sim_ins *i, uint32_t m)
{
    enum { LINE = 128 };
    SIM_EACH_LANE(l, m) {
        uint64_t at = (i->q ? sim_slot64(w, i->a)[l] : sim_slot(w, i->a)[l]) + (uint64_t)i->imm;
        if (at & (LINE - 1)) { misaligned(w, i, l, at, LINE); return; }
        if (!i->op) continue;
        sim_allocation *a = sim_memory_find(at);
        if (!a || a->size < LINE || at - a->base > a->size - LINE) {
            (void)sim_reach(w, i, l, at, (sim_space)i->space, LINE, SIM_WRITE); /* reports the finding */
            return;
        }
        if (a->shadow) sim_shadow_clear(a->shadow, at - a->base, LINE);
    }
}

/* --- addresses as values ---------------------------------------------------------------------- */

static uint64_t window_of(uint32_t space)
{
    return space == SP_SHARED  ? SIM_SHARED_WINDOW
           : space == SP_LOCAL ? SIM_LOCAL_WINDOW
           : space == SP_PARAM ? SIM_PARAM_WINDOW
                               : 0;
}

void sim_cvta(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint64_t *a = sim_slot64(w, i->a);
    uint64_t *d = sim_slot64(w, i->d), base = window_of(i->space);
    SIM_EACH_LANE(l, m) d[l] = i->op ? a[l] - base : a[l] + base;
}

void sim_isspacep(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint64_t *a = sim_slot64(w, i->a);
    uint64_t base = window_of(i->space);
    uint32_t r = 0;
    SIM_EACH_LANE(l, m) {
        bool in;
        if (base) in = a[l] - base < SIM_WINDOW_SIZE;
        else {
            const sim_allocation *x = a[l] >> 48 ? NULL : sim_memory_find(a[l]);
            in = i->space == SP_CONST ? x && x->kind == MEM_CONST
                                      : !(a[l] >> 48) && !(x && x->kind == MEM_CONST);
        }
        r |= (uint32_t)in << l;
    }
    sim_pred_write(w, i->d, r, m);
}

/* --- accesses of a warp, for matrix instructions ---------------------------------------------- */

/* Whether each eight rows of 16 bytes fill all banks: the usual case of ldmatrix, counted without conflicts. */
static bool rows_fill_banks(const uint64_t *at)
{
    uint32_t good = 0;
    for (uint32_t first = 0; first < SIM_LANES; first += 8) {
        uint32_t seen = 0;
        for (uint32_t l = first; l < first + 8; l++) seen |= 1u << (at[l] >> 4 & 7);
        good += seen == 0xff;
    }
    return good == SIM_LANES / 8;
}

bool sim_aligned_all(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t align)
{ return aligned(w, i, m, at, align); }

/* sim_reach for the lanes of m, counted as one request; false after a fault. */
bool sim_reach_all(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, sim_space space,
                   uint32_t bytes, uint32_t align, sim_access access, uint8_t **where)
{
    uint64_t in_window[SIM_LANES], first = m ? at[sim_lowest(m)] : 0;
    sim_space counted = space;
    if (!aligned(w, i, m, at, align)) return false;
    SIM_EACH_LANE(l, m)
        if (!(where[l] = sim_reach(w, i, l, at[l], space, bytes, access))) return false;
    for (uint32_t l = 0; l < SIM_LANES; l++) in_window[l] = space == SP_GENERIC ? (uint32_t)at[l] : at[l];
    if (space == SP_GENERIC)
        counted = first - SIM_SHARED_WINDOW < SIM_WINDOW_SIZE ? SP_SHARED
                  : first >> 48                               ? SP_LOCAL
                                                              : SP_GLOBAL;
    if (counted == SP_SHARED) at = in_window;
    bool quick = m == SIM_FULL && counted == SP_SHARED && bytes == 16 && rows_fill_banks(at);
    if (m) count_request(w, at, m, bytes, counted, access != SIM_READ, quick);
    return true;
}
