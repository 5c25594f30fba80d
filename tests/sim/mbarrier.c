/* mbarrier.c - mbarrier objects in shared memory, and cp.async.mbarrier.arrive.
 *
 * The state is in the object's 64 bits: expected and pending arrivals (20 bits each), the transaction count in bytes
 * (21 bits, two's complement), the phase's parity, and a mark. A record beside it keeps the value that the last
 * mbarrier instruction stored, so that ordinary stores to a live object are noticed. */
#include "async.h"
#include "race.h"

enum { COUNT_MOST = (1 << 20) - 1 };
#define MARK (UINT64_C(2) << 62)

typedef struct sim_mbarrier_record {
    uint32_t address;
    uint64_t value;
} record;

typedef struct state {
    uint32_t expected, pending, phase;
    int32_t bytes;
} state;

static uint64_t pack(const state *s) {
    return MARK | (uint64_t)(s->phase & 1) << 61 | ((uint64_t)(uint32_t)s->bytes & 0x1fffff) << 40
           | (uint64_t)s->pending << 20 | s->expected;
}

static state unpack(uint64_t v) {
    state s = {(uint32_t)v & COUNT_MOST, (uint32_t)(v >> 20) & COUNT_MOST, (uint32_t)(v >> 61) & 1,
               (int32_t)((v >> 40 & 0x1fffff) << 11) >> 11};
    return s;
}

/* --- records ---------------------------------------------------------------------------------- */

static record *find(const sim_block *b, uint32_t address) {
    for (uint32_t k = 0; k < b->mbarrier_count; k++)
        if (b->mbarriers[k].address == address) return &b->mbarriers[k];
    return NULL;
}

bool sim_mbarrier_known(const sim_block *b, uint32_t address) { return find(b, address) != NULL; }

/* Reports plain loads of an mbarrier that still holds its value; after other stores its bytes may be reused. */
void sim_mbarrier_read(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *b,
                       uint32_t bytes) {
    if (!sim_option.async) return;
    for (uint32_t k = 0; k < b->mbarrier_count; k++) {
        const record *r = &b->mbarriers[k];
        SIM_EACH_LANE(l, m) {
            if (at[l] >= r->address + 8u || at[l] + bytes <= r->address) continue;
            if (memcmp(b->shared + (r->address - b->shared_lo), &r->value, 8)) break;
            sim_report_at(w, i, "mbarrier-read", l,
                          "read of the mbarrier at shared address 0x%x by something other than an mbarrier "
                          "instruction", r->address);
            return;
        }
    }
}

static record *record_of(sim_block *b, uint32_t address) {
    record *r = find(b, address);
    if (r) return r;
    if (b->mbarrier_count == b->mbarrier_capacity) {
        uint32_t wanted = b->mbarrier_capacity * 2 + 16;
        record *grown = realloc(b->mbarriers, wanted * sizeof *grown);
        if (!grown) return NULL;
        b->mbarriers = grown;
        b->mbarrier_capacity = wanted;
    }
    r = &b->mbarriers[b->mbarrier_count++];
    r->address = address;
    return r;
}

static void forget(sim_block *b, record *r) { *r = b->mbarriers[--b->mbarrier_count]; }

/* The lanes of m release to their objects, or acquire from them: the lanes of one object together. */
static void synchronise_lanes(sim_warp *w, uint32_t m, uint64_t keys[SIM_LANES], bool acquire) {
    while (m && w->launch->races) {
        uint64_t key = keys[sim_lowest(m)];
        uint32_t group = 0;
        SIM_EACH_LANE(l, m) if (keys[l] == key) group |= 1u << l;
        if (acquire)
            sim_race_acquire(w, group, sim_race_key_done(key));
        else
            sim_race_release(w, group, key);
        m &= ~group;
    }
}

static uint64_t key_of(const sim_warp *w, const sim_block *b, uint32_t address) {
    return w->launch->races ? sim_race_key(&b->warps[0], SP_SHARED, address) : 0;
}

/* --- the object of one lane ------------------------------------------------------------------- */

typedef struct object {
    sim_block *block;
    record *record;
    uint8_t *at;
    uint32_t address;
    bool over; /* its phase has just completed */
    state s;
} object;

static uint8_t *bytes_of(sim_block *b, uint32_t address) { return b->shared + (address - b->shared_lo); }

static void store_object(object *o) {
    o->record->value = pack(&o->s);
    memcpy(o->at, &o->record->value, 8);
    o->block->cluster->changes++;
    sim_changed(o->block->launch);
}

/* Finds the object and checks that it is initialised; false after a fault, or a report after which to skip it. */
static bool find_checked(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint32_t address, object *o) {
    uint64_t now;
    o->block = b;
    o->address = address;
    o->over = false;
    o->at = bytes_of(b, address);
    o->record = find(b, address);
    memcpy(&now, o->at, 8);
    if (!o->record) {
        sim_report_at(w, i, "mbarrier-uninitialised", lane,
                      "no mbarrier.init has made an mbarrier at shared address 0x%x", address);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    if (now != o->record->value) {
        sim_report_at(w, i, "mbarrier-overwritten", lane,
                      "the mbarrier at shared address 0x%x was written over by something other than an "
                      "mbarrier instruction",
                      address);
        memcpy(o->at, &o->record->value, 8);
    }
    o->s = unpack(o->record->value);
    return true;
}

/* The block and shared address of a lane's operand. NULL after a fault. */
static sim_block *resolve_address(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t *address) {
    uint64_t a = (i->q ? sim_slot64(w, i->a)[lane] : sim_slot(w, i->a)[lane]) + (uint64_t)i->imm;
    if (!i->q) a = (uint32_t)a;
    if (a & 7) {
        sim_report_at(w, i, "misaligned", lane, "an mbarrier at address 0x%llx, which is no multiple of 8",
                      (unsigned long long)a);
        sim_warp_fault(w, SIM_ERROR_MISALIGNED);
        return NULL;
    }
    if (i->space == SP_GENERIC) {
        if (a - SIM_SHARED_WINDOW >= SIM_WINDOW_SIZE) {
            sim_report_at(w, i, "out-of-bounds", lane,
                          "an mbarrier at generic address 0x%llx, which is not in shared memory",
                          (unsigned long long)a);
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
            return NULL;
        }
        a -= SIM_SHARED_WINDOW;
    }
    if (a >> SIM_RANK_SHIFT && !(i->x & X_CLUSTER) && i->space == SP_SHARED) {
        sim_report_at(w, i, "out-of-bounds", lane,
                      "shared::cta address 0x%llx is another block's: this form takes the own block's only",
                      (unsigned long long)a);
        sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
        return NULL;
    }
    uint64_t full = a;
    sim_block *b = sim_cluster_peer(w->block, &a);
    bool lives = b && find(b, (uint32_t)a); /* others get a finding of their own */
    *address = (uint32_t)a;
    return sim_reach(w, i, lane, full, SP_SHARED, 8, lives ? SIM_UPDATE : SIM_WRITE) ? b : NULL;
}

/* --- phases ----------------------------------------------------------------------------------- */

static void complete_phase_if_done(object *o) {
    if (o->s.pending || o->s.bytes) return;
    o->s.pending = o->s.expected;
    o->s.phase ^= 1;
    o->over = true;
    o->block->cluster->events++;
}

static void arrive(sim_warp *w, const sim_ins *i, uint32_t lane, object *o, uint32_t count,
                   bool may_complete) {
    if (count > o->s.pending || !count) {
        sim_report_at(w, i, "mbarrier-overflow", lane,
                      "%u arrivals at the mbarrier at shared address 0x%x, which expects %u more in this "
                      "phase (of %u)",
                      count, o->address, o->s.pending, o->s.expected);
        count = o->s.pending;
    }
    o->s.pending -= count;
    if (!may_complete && !o->s.pending && !o->s.bytes)
        sim_report_at(
            w, i, "mbarrier-overflow", lane,
            "an arrival with .noComplete completes the phase of the mbarrier at shared address 0x%x",
            o->address);
    complete_phase_if_done(o);
}

static void add_pending_bytes(sim_warp *w, const sim_ins *i, uint32_t lane, object *o, int64_t bytes) {
    int64_t sum = o->s.bytes + bytes;
    if (sum > COUNT_MOST || sum < -COUNT_MOST) {
        sim_report_at(w, i, "mbarrier-overflow", lane,
                      "the transaction count of the mbarrier at shared address 0x%x leaves its range of "
                      "-%d..%d bytes",
                      o->address, COUNT_MOST, COUNT_MOST);
        sum = sum > 0 ? COUNT_MOST : -COUNT_MOST;
    }
    o->s.bytes = (int32_t)sum;
}

bool sim_mbarrier_complete(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint32_t address,
                           uint32_t bytes) {
    object o;
    if (!find_checked(w, i, lane, b, address, &o)) return false;
    add_pending_bytes(w, i, lane, &o, -(int64_t)bytes);
    complete_phase_if_done(&o);
    store_object(&o);
    if (o.over) sim_race_phase(w->launch, key_of(w, b, address));
    return true;
}

/* --- instructions ----------------------------------------------------------------------------- */

static bool init(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint32_t address,
                 uint32_t count) {
    object o = {.block = b, .address = address, .at = bytes_of(b, address)};
    if (count < 1 || count > COUNT_MOST) {
        sim_report_at(w, i, "mbarrier-overflow", lane, "an mbarrier for %u arrivals: 1 to %d are possible",
                      count, COUNT_MOST);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    const record *old = find(b, address);
    if (old && !memcmp(o.at, &old->value, 8))
        sim_report_at(w, i, "mbarrier-live", lane, "there is an mbarrier at shared address 0x%x already: "
                      "mbarrier.inval, or other use of its bytes, has to end it first", address);
    o.record = record_of(b, address);
    if (!o.record) {
        sim_warp_fault(w, 2);
        return false;
    }
    o.s.expected = o.s.pending = count;
    store_object(&o);
    return true;
}

/* The token of an arrival: the state before it, with the mbarrier's address in place of the transaction count. */
static uint64_t token_of(uint64_t before, uint32_t address) {
    return (before & ~(UINT64_C(0x1fffff) << 40)) | (uint64_t)(address >> 3 & 0x1fffff) << 40;
}

/* i->op: MB_; i->b: count or bytes (if i->width says that there is one); i->c: bytes of arrive.expect_tx; i->d, i->e:
 * where the token goes (e: there is one); i->count: 1 with .noComplete */
void sim_mbarrier(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint64_t keys[SIM_LANES];
    uint32_t ended = 0; /* lanes that completed a phase */
    bool arrives = i->op == MB_ARRIVE || i->op == MB_DROP;
    SIM_EACH_LANE(l, m) keys[l] = 0;
    SIM_EACH_LANE(l, m) {
        uint32_t address, n = i->width & 1 ? sim_slot(w, i->b)[l] : 1;
        object o;
        sim_block *b = resolve_address(w, i, l, &address);
        if (!b) return;
        if (i->op == MB_INIT) {
            if (!init(w, i, l, b, address, n)) return;
            continue;
        }
        if (!find_checked(w, i, l, b, address, &o)) return;
        uint64_t before = o.record->value;
        switch (i->op) {
        case MB_INVAL: forget(b, o.record); continue;
        case MB_EXPECT: add_pending_bytes(w, i, l, &o, n); break;
        case MB_COMPLETE:
            add_pending_bytes(w, i, l, &o, -(int64_t)n);
            complete_phase_if_done(&o);
            break;
        default:
            if (i->width & 2) {
                add_pending_bytes(w, i, l, &o, sim_slot(w, i->b)[l]);
                n = 1;
            }
            if (i->op == MB_DROP) o.s.expected -= n > o.s.expected ? o.s.expected : n;
            arrive(w, i, l, &o, n, !i->count);
            break;
        }
        store_object(&o);
        if (i->e) sim_slot64(w, i->d)[l] = token_of(before, address);
        keys[l] = key_of(w, b, address);
        ended |= (uint32_t)o.over << l;
    }
    if (arrives) synchronise_lanes(w, m, keys, false);
    SIM_EACH_LANE(l, ended) sim_race_phase(w->launch, keys[l]);
}

bool sim_mbarrier_signal(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, const sim_clock_entry *counts,
                         uint32_t n) {
    uint32_t address;
    object o;
    sim_block *first = resolve_address(w, i, lane, &address);
    if (!first) return false;
    if (b && b != first && !sim_reach(w, i, lane, sim_in_block(address, b->rank), SP_SHARED, 8, SIM_UPDATE))
        return false;
    if (!b) b = first;
    if (!find_checked(w, i, lane, b, address, &o)) return false;
    arrive(w, i, lane, &o, 1, true);
    store_object(&o);
    uint64_t key = key_of(w, b, address);
    sim_clock_publish(w, lane, counts, n, key);
    if (o.over) sim_race_phase(w->launch, key);
    return true;
}

void sim_mbarrier_pending(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        uint64_t token = sim_slot64(w, i->a)[l];
        if (token >> 62 != MARK >> 62)
            sim_report_at(w, i, "mbarrier-token", l, "0x%llx is not what an mbarrier.arrive has given",
                          (unsigned long long)token);
        sim_slot(w, i->d)[l] = unpack(token).pending;
    }
}

static uint32_t token_parity(sim_warp *w, const sim_ins *i, uint32_t lane, const object *o) {
    uint64_t token = sim_slot64(w, i->b)[lane];
    if (token >> 62 != MARK >> 62) {
        sim_report_at(w, i, "mbarrier-token", lane, "0x%llx is not what an mbarrier.arrive has given",
                      (unsigned long long)token);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
    } else if (token_of(token, o->address) != token)
        sim_report_at(w, i, "mbarrier-token", lane,
                      "a wait at the mbarrier at shared address 0x%x with the token of another one",
                      o->address);
    return unpack(token).phase;
}

static uint32_t read_parity(sim_warp *w, const sim_ins *i, uint32_t lane) {
    uint32_t parity = sim_slot(w, i->b)[lane];
    if (parity > 1)
        sim_report_at(w, i, "mbarrier-parity", lane, "the parity of a phase is 0 or 1, not %u", parity);
    return parity & 1;
}

/* The lanes whose phase is complete. i->op: 1 with .parity */
static uint32_t lanes_with_complete_phase(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t result = 0;
    uint64_t keys[SIM_LANES];
    SIM_EACH_LANE(l, m) {
        uint32_t address, parity;
        object o;
        sim_block *b = resolve_address(w, i, l, &address);
        if (!b || !find_checked(w, i, l, b, address, &o)) return result;
        parity = i->op ? read_parity(w, i, l) : token_parity(w, i, l, &o);
        if (w->fault) return result;
        if (o.s.phase != parity) result |= 1u << l;
        keys[l] = key_of(w, b, address);
    }
    synchronise_lanes(w, result, keys, true);
    return result;
}

/* A thread polls: one of the pending copies arrives at every fourth poll. */
static void poll(sim_cluster *c) {
    if (c->pending_count && !(++c->polls & 3)) sim_copy_complete_random(c);
}

void sim_mbarrier_test(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t done = lanes_with_complete_phase(w, i, m);
    if (w->fault) return;
    if (done != m) poll(w->block->cluster);
    sim_pred_write(w, i->d, done, m);
}

/* try_wait may return false at any time, and code that does not retry is wrong: so a lane's first try_wait in an
 * incomplete phase returns false. Lanes that retry are parked, unless their time is up; lanes that alternate between
 * two try_wait instructions poll. */
void sim_mbarrier_wait(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t done = lanes_with_complete_phase(w, i, m), first = 0;
    bool polls = false;
    if (w->fault) return;
    SIM_EACH_LANE(l, m) {
        if (done >> l & 1)
            w->last_try_wait[l] = NULL;
        else if (w->last_try_wait[l] != i) {
            polls |= w->last_try_wait[l] != NULL;
            w->last_try_wait[l] = i;
            first |= 1u << l;
        }
    }
    if (polls) poll(w->block->cluster);
    w->waiting_lanes = w->force ? 0 : m & ~done & ~first;
    sim_pred_write(w, i->d, done, m & ~w->waiting_lanes);
}

/* The thread's cp.async copies arrive now, and make an arrival at the barrier: with .noinc (i->op) one of the
 * expected ones, otherwise one more. */
void sim_mbarrier_cp_async(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint64_t keys[SIM_LANES];
    uint32_t ended = 0;
    sim_async_finish(w, m);
    SIM_EACH_LANE(l, m) {
        uint32_t address;
        object o;
        sim_block *b = resolve_address(w, i, l, &address);
        if (!b || !find_checked(w, i, l, b, address, &o)) return;
        if (!i->op) {
            if (o.s.pending == COUNT_MOST)
                sim_report_at(w, i, "mbarrier-overflow", l,
                              "the mbarrier at shared address 0x%x cannot expect one more arrival", address);
            else
                o.s.pending++;
        }
        arrive(w, i, l, &o, 1, true);
        store_object(&o);
        keys[l] = key_of(w, b, address);
        ended |= (uint32_t)o.over << l;
    }
    synchronise_lanes(w, m, keys, false);
    SIM_EACH_LANE(l, ended) sim_race_phase(w->launch, keys[l]);
}

/* For deadlock reports: what the barrier that a lane waits for still lacks. */
void sim_mbarrier_describe(const sim_warp *w, const sim_ins *i, uint32_t lane, char *out, size_t size) {
    uint64_t a = (i->q ? sim_slot64(w, i->a)[lane] : sim_slot(w, i->a)[lane]) + (uint64_t)i->imm;
    if (!i->q) a = (uint32_t)a;
    if (i->space == SP_GENERIC) a -= SIM_SHARED_WINDOW;
    const sim_block *b = sim_cluster_peer(w->block, &a);
    const record *r = b ? find(b, (uint32_t)a) : NULL;
    if (!r) {
        snprintf(out, size, "the mbarrier at 0x%llx is gone", (unsigned long long)a);
        return;
    }
    state s = unpack(r->value);
    snprintf(out, size,
             "the mbarrier at shared address 0x%llx lacks %u of %u arrivals and %d bytes in its phase of "
             "parity %u",
             (unsigned long long)a, s.pending, s.expected, s.bytes, s.phase);
}
