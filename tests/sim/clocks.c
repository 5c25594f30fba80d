/* clocks.c - which accesses a thread knows of: barriers, warp syncs, fences, acquire and release (race.h explains
 * the layers).
 *
 * Strong accesses (atomics, volatile, relaxed and stronger) publish to the location that they touch, and acquire
 * from it. A release publishes what the thread knows; a strong write without .release publishes what it knew at its
 * last fence; an acquire takes effect at once; what a strong read without .acquire saw is acquired by the next
 * fence. A location keeps everything that was ever published there: so a read is also ordered after writes whose
 * values it did not see, which may hide a race but never report a false one. A kernel without fences, acquires and
 * releases does not pay for any of this. */
#include "race.h"
#include "async.h"

/* --- vector clocks: sorted, immutable, reference-counted -------------------------------------- */

typedef struct entry { uint64_t key; uint32_t era; } entry;   /* key: block << 16 | unit */
/* Units: UNIT_BLOCK, UNIT_WARP + warp, or a thread; race.h's counters. UNIT_FENCED + thread, FENCED_WARP + warp,
 * FENCED_BLOCK: the eras of these whose writes a proxy fence has ordered. */
enum { UNIT_BLOCK = 0xffff, UNIT_WARP = 0x8000, UNIT_FENCED = 0x2000, FENCED_WARP = 0x2400, FENCED_BLOCK = 0x27ff };
struct sim_clock_vector { atomic_uint refs; uint32_t count; entry e[]; };
typedef sim_clock_vector vc;

static vc *retain(vc *v)
{
    if (v) atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    return v;
}

static void release_clock(vc *v) { if (v && atomic_fetch_sub(&v->refs, 1) == 1) free(v); }

static void replace_clock(vc **at, vc *v) { vc *old = *at; *at = v; release_clock(old); }

static uint32_t era_in_clock(const vc *v, uint64_t key)
{
    uint32_t lo = 0, hi = v->count;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (v->e[mid].key < key) lo = mid + 1; else hi = mid;
    }
    return lo < v->count && v->e[lo].key == key ? v->e[lo].era : 0;
}

static bool contains(const vc *a, const vc *b)
{
    uint32_t k = 0;
    for (uint32_t n = 0; n < b->count; n++) {
        while (k < a->count && a->e[k].key < b->e[n].key) k++;
        if (k == a->count || a->e[k].key != b->e[n].key || a->e[k].era < b->e[n].era) return false;
    }
    return true;
}

/* The maximum of both, as a new reference. Out of memory: a alone. */
static vc *join(vc *a, vc *b)
{
    if (!a || a == b) return retain(b);
    if (!b || contains(a, b)) return retain(a);
    if (contains(b, a)) return retain(b);
    vc *v = malloc(sizeof *v + ((size_t)a->count + b->count) * sizeof *v->e);
    if (!v) return retain(a);
    atomic_init(&v->refs, 1);
    uint32_t i = 0, j = 0, n = 0;
    while (i < a->count || j < b->count) {
        if (j == b->count || (i < a->count && a->e[i].key < b->e[j].key)) v->e[n++] = a->e[i++];
        else if (i == a->count || b->e[j].key < a->e[i].key) v->e[n++] = b->e[j++];
        else {
            v->e[n] = a->e[i++];
            if (b->e[j].era > v->e[n].era) v->e[n].era = b->e[j].era;
            n++;
            j++;
        }
    }
    v->count = n;
    return v;
}

static void join_into(vc **at, vc *v)
{
    if (!v || *at == v) return;
    replace_clock(at, join(*at, v));
}

/* --- what a thread knows ---------------------------------------------------------------------- */

static bool in_clock(const vc *v, const sim_record *r, uint32_t lane)
{
    uint64_t key = r->block << 16;
    return r->era <= era_in_clock(v, key | UNIT_BLOCK) || r->era <= era_in_clock(v, key | UNIT_WARP | r->warp)
           || r->era <= era_in_clock(v, key | (uint32_t)(r->warp * SIM_LANES + lane));
}

bool sim_order_known(const struct sim_race_block *b, uint32_t warp, uint32_t lane, const sim_record *r,
                     uint32_t record_lane)
{
    const sim_warp_order *o = &b->w[warp];
    if (r->block == b->index) {
        if (r->era <= o->base) return true;
        if (r->warp == warp) {
            if (lane == record_lane || r->era <= o->warp_base) return true;
            if (o->lanes && r->era <= o->lanes[lane * SIM_LANES + record_lane]) return true;
        } else if (b->known && r->era <= b->known[warp * b->warps + r->warp]) return true;
    }
    if (b->clock && in_clock(b->clock, r, record_lane)) return true;
    if (o->clock && in_clock(o->clock, r, record_lane)) return true;
    return o->lane && o->lane->clock[lane] && in_clock(o->lane->clock[lane], r, record_lane);
}

typedef struct list { entry e[2 + SIM_LANES * 2 + 2]; uint32_t n; } list;

static void append_entry(list *s, uint64_t key, uint32_t era) { if (era) s->e[s->n++] = (entry){ key, era }; }

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const entry *)a)->key, y = ((const entry *)b)->key;
    return x < y ? -1 : x > y;
}

/* What a thread (whole: any lane of its warp) knows at this view, as a clock; a new reference. */
static vc *clock_of_thread(const struct sim_race_block *b, uint32_t warp, uint32_t lane, bool whole,
                           const sim_view *at)
{
    const sim_warp_order *o = &b->w[warp];
    uint64_t block = b->index << 16;
    list s;
    s.n = 0;
    if (!whole) {
        for (uint32_t l = 0; l < SIM_LANES; l++) {
            uint32_t era = l == lane ? at->era : o->lanes && !at->set ? o->lanes[lane * SIM_LANES + l] : 0;
            append_entry(&s, block | (warp * SIM_LANES + l), era);
        }
    }
    for (uint32_t x = 0; x < b->warps; x++) {
        uint32_t era = b->known && !at->set ? b->known[warp * b->warps + x] : 0;
        if (x == warp) { uint32_t own = whole ? at->era : at->warp_base; if (own > era) era = own; }
        append_entry(&s, block | UNIT_WARP | x, era);
    }
    append_entry(&s, block | UNIT_BLOCK, at->base);
    vc *v = malloc(sizeof *v + s.n * sizeof *v->e);
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->count = s.n;
    memcpy(v->e, s.e, s.n * sizeof *v->e);
    qsort(v->e, v->count, sizeof *v->e, by_key);
    if (at->set) join_into(&v, at->clock);
    else {
        join_into(&v, b->clock);
        join_into(&v, o->clock);
        if (o->lane) {
            if (!whole) join_into(&v, o->lane->clock[lane]);
            else for (uint32_t l = 0; l < SIM_LANES; l++) join_into(&v, o->lane->clock[l]);
        }
    }
    return v;
}

static void tick(struct sim_race_block *b, sim_warp_order *o) { o->era = ++b->era; }

static sim_view current_view(const sim_warp_order *o)
{
    return (sim_view){ .era = o->era, .base = o->base, .warp_base = o->warp_base };
}

static sim_lane_order *lane_order(sim_warp_order *o)
{
    if (!o->lane) o->lane = calloc(1, sizeof *o->lane);
    return o->lane;
}

static void clear_lanes(sim_warp_order *o, bool fences)
{
    if (!o->lane) return;
    for (uint32_t l = 0; l < SIM_LANES; l++) {
        replace_clock(&o->lane->clock[l], NULL);
        if (!fences) continue;
        replace_clock(&o->lane->pending[l], NULL);
        replace_clock(&o->lane->counted[l], NULL);
        replace_clock(&o->lane->fence[l].clock, NULL);
        o->lane->fence[l].set = false;
    }
}

/* --- blocks ----------------------------------------------------------------------------------- */

void sim_order_block_begin(struct sim_race_block *b, uint64_t index, uint32_t warps)
{
    b->index = index;
    b->warps = warps;
    replace_clock(&b->clock, NULL);
    free(b->known);
    free(b->gathered);
    b->known = b->gathered = NULL;
    b->fenced = false;
    if (b->era > UINT32_MAX / 2) b->era = 0;
    for (uint32_t id = 0; id < 16; id++) replace_clock(&b->gathered_clock[id], NULL);
    uint32_t base = b->era++;
    for (uint32_t n = 0; n < warps; n++) {
        sim_warp_order *o = &b->w[n];
        replace_clock(&o->clock, NULL);
        clear_lanes(o, true);
        free(o->lanes);
        o->lanes = NULL;
        o->base = o->warp_base = base;
        o->era = b->era;
    }
}

void sim_order_block_free(struct sim_race_block *b)
{
    replace_clock(&b->clock, NULL);
    for (uint32_t id = 0; id < 16; id++) replace_clock(&b->gathered_clock[id], NULL);
    for (uint32_t n = 0; n < b->capacity; n++) {
        sim_warp_order *o = &b->w[n];
        replace_clock(&o->clock, NULL);
        clear_lanes(o, true);
        free(o->lane);
        free(o->lanes);
    }
    free(b->w);
    free(b->known);
    free(b->gathered);
}

/* --- block barriers --------------------------------------------------------------------------- */

/* A barrier of the whole block: every thread knows everything. Two extensions of the PTX memory model, which CUDA's
 * own samples need. A fence before the barrier counts for what is published after it: __threadfence();
 * __syncthreads(); one thread sets the flag. What came with the old value of an atom is acquired without a fence:
 * ticket = atomicInc(..); __syncthreads(); the last block adds up. */
static void full_barrier(struct sim_race_block *b)
{
    uint32_t base = b->era;
    b->era++;
    for (uint32_t n = 0; n < b->warps; n++) {
        sim_warp_order *o = &b->w[n];
        if (o->clock) { join_into(&b->clock, o->clock); replace_clock(&o->clock, NULL); }
        if (o->lane) {
            for (uint32_t l = 0; l < SIM_LANES; l++) {
                join_into(&b->clock, o->lane->clock[l]);
                join_into(&b->clock, o->lane->counted[l]);
                replace_clock(&o->lane->counted[l], NULL);
            }
            clear_lanes(o, false);
        }
        o->base = o->warp_base = base;
        o->era = b->era;
    }
    if (!b->fenced) return;
    b->fenced = false;
    for (uint32_t n = 0; n < b->warps; n++) {
        sim_lane_order *s = lane_order(&b->w[n]);
        for (uint32_t l = 0; s && l < SIM_LANES; l++) {
            replace_clock(&s->fence[l].clock, retain(b->clock));
            s->fence[l].era = s->fence[l].base = s->fence[l].warp_base = base;
            s->fence[l].set = s->fence[l].wide = true;
        }
    }
}

static uint32_t lanes_waiting_at(const sim_warp *w, uint32_t id)
{
    uint32_t m = 0;
    for (uint32_t k = 0; k < w->path_count; k++)
        if (w->paths[k].state == P_BARRIER && w->paths[k].barrier == id) m |= w->paths[k].mask;
    return m;
}

static bool allocate_era_matrix(struct sim_race_block *b)
{
    if (!b->known) b->known = calloc((size_t)b->warps * b->warps, 4);
    if (!b->gathered) b->gathered = calloc((size_t)b->warps * 16, 4);
    return b->known && b->gathered;
}

static void raise_era(uint32_t *at, uint32_t era) { if (era > *at) *at = era; }

/* Adds what the warp knows to the barrier's row of eras by warp. */
static void join_warp_into_barrier(struct sim_race_block *b, uint32_t warp, uint32_t id)
{
    const sim_warp_order *o = &b->w[warp];
    uint32_t *row = b->gathered + (size_t)id * b->warps;
    for (uint32_t x = 0; x < b->warps; x++) {
        raise_era(&row[x], o->base);
        raise_era(&row[x], b->known[warp * b->warps + x]);
    }
    raise_era(&row[warp], o->era);
    join_into(&b->gathered_clock[id], o->clock);
    if (o->lane)
        for (uint32_t l = 0; l < SIM_LANES; l++) join_into(&b->gathered_clock[id], o->lane->clock[l]);
}

void sim_race_arrive(sim_warp *w, uint32_t id)
{
    struct sim_race_block *b = w->block->race;
    if (!w->launch->races || !allocate_era_matrix(b)) return;
    join_warp_into_barrier(b, w->index, id);
    tick(b, &b->w[w->index]);
}

void sim_race_barrier(sim_block *block, uint32_t id)
{
    struct sim_race_block *b = block->race;
    if (!block->launch->races) return;
    /* Warps that have ended do not count. A warp that only arrived (bar.arrive) published what it did before. */
    bool all = true;
    for (uint32_t n = 0; n < b->warps && all; n++)
        all = !(block->warps[n].live & ~lanes_waiting_at(&block->warps[n], id))
              && !(b->gathered && b->gathered[id * b->warps + n]);
    if (all) { full_barrier(b); return; }
    if (!allocate_era_matrix(b)) return;
    for (uint32_t n = 0; n < b->warps; n++)
        if (lanes_waiting_at(&block->warps[n], id)) join_warp_into_barrier(b, n, id);
    uint32_t *row = b->gathered + (size_t)id * b->warps;
    for (uint32_t n = 0; n < b->warps; n++) {
        sim_warp_order *o = &b->w[n];
        if (!lanes_waiting_at(&block->warps[n], id)) continue;
        for (uint32_t x = 0; x < b->warps; x++) raise_era(&b->known[n * b->warps + x], row[x]);
        raise_era(&o->warp_base, o->era);
        join_into(&o->clock, b->gathered_clock[id]);
        tick(b, o);
    }
    memset(row, 0, b->warps * sizeof *row);
    replace_clock(&b->gathered_clock[id], NULL);
}

/* --- warp syncs ------------------------------------------------------------------------------- */

void sim_race_warp_sync(sim_warp *w, uint32_t m)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    if (o->lane) {                                            /* all lanes learn what any of them acquired */
        vc *all = NULL;
        SIM_EACH_LANE(l, m) join_into(&all, o->lane->clock[l]);
        if (!(w->live & ~m)) { join_into(&o->clock, all); clear_lanes(o, false); }
        else SIM_EACH_LANE(l, m) replace_clock(&o->lane->clock[l], retain(all));
        release_clock(all);
    }
    if (!(w->live & ~m)) { o->warp_base = o->era; tick(b, o); return; }
    if (!o->lanes && !(o->lanes = calloc(SIM_LANES * SIM_LANES, 4))) return;
    uint32_t row[SIM_LANES] = { 0 };
    SIM_EACH_LANE(l, m) for (uint32_t k = 0; k < SIM_LANES; k++) raise_era(&row[k], o->lanes[l * SIM_LANES + k]);
    SIM_EACH_LANE(l, m) row[l] = o->era;
    SIM_EACH_LANE(l, m) memcpy(o->lanes + l * SIM_LANES, row, sizeof row);
    tick(b, o);
}

/* shfl does not order accesses of its lanes. But what a lane has acquired goes along with its value: in CUDA's
 * cooperative groups one lane of a warp polls a flag, and shfl tells the others. */
void sim_race_shuffle(sim_warp *w, uint32_t m, const uint32_t *from)
{
    if (!w->launch->races) return;
    sim_lane_order *o = w->block->race->w[w->index].lane;
    vc *had[SIM_LANES];
    if (!o) return;
    for (uint32_t l = 0; l < SIM_LANES; l++) had[l] = retain(o->clock[l]);
    SIM_EACH_LANE(l, m) join_into(&o->clock[l], had[from[l]]);
    for (uint32_t l = 0; l < SIM_LANES; l++) release_clock(had[l]);
}

/* --- strong locations ------------------------------------------------------------------------- */

typedef struct object {
    uint64_t key, narrow_block;        /* narrow: published at block scope, for that block only */
    vc *wide, *narrow;
    struct object *next;
} object;

enum { BUCKETS = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *buckets[BUCKETS];
static atomic_bool any_object;          /* read without the lock */

static object *find_object(uint64_t key, bool make)
{
    object **head = &buckets[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 52], *o;
    for (o = *head; o; o = o->next) if (o->key == key) return o;
    if (!make || !(o = calloc(1, sizeof *o))) return NULL;
    o->key = key;
    o->narrow_block = UINT64_MAX;
    o->next = *head;
    any_object = true;
    return *head = o;
}

static void publish(uint64_t key, const struct sim_race_block *b, bool wide, vc *v)
{
    if (!v) return;
    pthread_mutex_lock(&lock);
    object *o = find_object(key, true);
    if (o && wide) join_into(&o->wide, v);
    if (o && !wide) {
        if (o->narrow_block != b->index) replace_clock(&o->narrow, NULL);
        o->narrow_block = b->index;
        join_into(&o->narrow, v);
    }
    pthread_mutex_unlock(&lock);
    release_clock(v);
}

static void acquire_from(uint64_t key, const struct sim_race_block *b, bool wide, vc **into)
{
    pthread_mutex_lock(&lock);
    const object *o = find_object(key, false);
    if (o && wide) join_into(into, o->wide);
    if (o && o->narrow_block == b->index) join_into(into, o->narrow);
    pthread_mutex_unlock(&lock);
}

void sim_order_launch_end(void)
{
    if (!any_object) return;
    for (uint32_t k = 0; k < BUCKETS; k++)
        for (object *o; (o = buckets[k]);) {
            buckets[k] = o->next;
            release_clock(o->wide);
            release_clock(o->narrow);
            free(o);
        }
    any_object = false;
}

uint64_t sim_race_key_in(const sim_block *b, uint64_t address)
{
    return UINT64_C(1) << 63 | sim_block_index(b) << 24 | (address & 0xfffffc);
}

uint64_t sim_race_key(const sim_warp *w, sim_space space, uint64_t address)
{
    return space == SP_SHARED ? sim_race_key_in(w->block, address) : address & ~UINT64_C(3);
}

static uint64_t key_of_location(const sim_block *owner, uint64_t address)
{ return owner ? sim_race_key_in(owner, address) : address & ~UINT64_C(3); }

void sim_race_release(sim_warp *w, uint32_t m, uint64_t key)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    sim_view v = current_view(o);
    if (!(w->live & ~m)) publish(key, b, true, clock_of_thread(b, w->index, 0, true, &v));
    else SIM_EACH_LANE(l, m) publish(key, b, true, clock_of_thread(b, w->index, l, false, &v));
    tick(b, o);
}

/* Ends a phase: threads that wait for it acquire what was published so far, but nothing of later phases. */
void sim_race_phase(const sim_launch *l, uint64_t key)
{
    if (!l->races) return;
    pthread_mutex_lock(&lock);
    const object *from = find_object(key, false);
    object *to = from ? find_object(sim_race_key_done(key), true) : NULL;
    if (to) replace_clock(&to->wide, retain(from->wide));
    pthread_mutex_unlock(&lock);
}

void sim_race_release_fenced(sim_warp *w, uint32_t m, uint64_t key)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    const sim_warp_order *o = &b->w[w->index];
    if (!o->lane) return;
    SIM_EACH_LANE(l, m) {
        const sim_view *f = &o->lane->fence[l];
        if (f->set && f->wide) publish(key, b, true, clock_of_thread(b, w->index, l, false, f));
    }
}

void sim_race_acquire(sim_warp *w, uint32_t m, uint64_t key)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    if (!(w->live & ~m)) { acquire_from(key, b, true, &o->clock); return; }
    if (lane_order(o)) SIM_EACH_LANE(l, m) acquire_from(key, b, true, &o->lane->clock[l]);
}

static bool wide_scope(const sim_ins *i) { return (i->x >> X_SCOPE_SHIFT & 3) != SCOPE_CTA; }

/* Called before a strong write changes memory: who sees the value must find what the write publishes. */
void sim_order_before(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner)
{
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    bool wide = wide_scope(i);
    if (i->x & X_RELEASE) {
        sim_view v = current_view(o);
        SIM_EACH_LANE(l, m)
            publish(key_of_location(owner, at[l]), b, wide, clock_of_thread(b, w->index, l, false, &v));
        tick(b, o);
        return;
    }
    if (!o->lane) return;
    SIM_EACH_LANE(l, m) {
        const sim_view *f = &o->lane->fence[l];
        if (f->set)
            publish(key_of_location(owner, at[l]), b, wide && f->wide,
                    clock_of_thread(b, w->index, l, false, f));
    }
}

/* Called after a strong read. */
void sim_order_after(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner)
{
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    bool wide = wide_scope(i);
    if (!any_object || !lane_order(o)) return;
    SIM_EACH_LANE(l, m)
        acquire_from(key_of_location(owner, at[l]), b, wide,
                     i->x & X_ACQUIRE       ? &o->lane->clock[l]
                     : i->fn == sim_atom ? &o->lane->counted[l]
                                 : &o->lane->pending[l]);
}

/* fence, membar: i->x holds the scope and, for fence.acquire and fence.release, X_ACQUIRE or X_RELEASE. */
void sim_fence(sim_warp *w, const sim_ins *i, uint32_t m)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    sim_lane_order *s = lane_order(o);
    if (!s) return;
    SIM_EACH_LANE(l, m) {
        if (!(i->x & X_RELEASE)) { 
            join_into(&s->clock[l], s->pending[l]);
            join_into(&s->clock[l], s->counted[l]);
            replace_clock(&s->pending[l], NULL);
            replace_clock(&s->counted[l], NULL);
        }
        if (i->x & X_ACQUIRE) continue;
        sim_view v = current_view(o);
        v.wide = wide_scope(i);
        vc *clock = NULL;
        if (b->known || o->lanes) clock = clock_of_thread(b, w->index, l, false, &v);
        else if (b->clock || o->clock || s->clock[l]) {
            clock = join(b->clock, o->clock);
            join_into(&clock, s->clock[l]);
        }
        v.clock = clock;
        v.set = true;
        release_clock(s->fence[l].clock);
        s->fence[l] = v;
    }
    if (!(i->x & X_ACQUIRE)) { b->fenced |= wide_scope(i); tick(b, o); }
}

/* --- proxy fences ------------------------------------------------------------------------------- */

static vc *fenced_copy(const vc *known)
{
    vc *v = known ? malloc(sizeof *v + known->count * sizeof *v->e) : NULL;
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->count = 0;
    for (uint32_t n = 0; n < known->count; n++) {           /* the new keys stay sorted */
        uint32_t unit = known->e[n].key & 0xffff;
        uint32_t to = unit == UNIT_BLOCK ? FENCED_BLOCK
                      : unit & UNIT_WARP ? FENCED_WARP + (unit & 0xff)
                      : unit < 1024      ? UNIT_FENCED + unit
                                         : 0;
        if (to) v->e[v->count++] = (entry){ (known->e[n].key & ~UINT64_C(0xffff)) | to, known->e[n].era };
    }
    return v;
}

void sim_clock_fence_proxy(sim_warp *w, uint32_t m)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_warp_order *o = &b->w[w->index];
    bool whole = !(w->live & ~m);
    sim_view v = current_view(o);
    for (uint32_t l = 0; l < SIM_LANES && lane_order(o); l++) {
        if (whole ? l : !(m >> l & 1)) continue;
        vc *known = clock_of_thread(b, w->index, l, whole, &v), *past_barrier = fenced_copy(known);
        join_into(whole ? &o->clock : &o->lane->clock[l], past_barrier);
        release_clock(known);
        release_clock(past_barrier);
    }
    tick(b, o);
}

bool sim_clock_fenced(const sim_warp *w, uint32_t m, uint64_t block, uint32_t era, uint32_t thread)
{
    const struct sim_race_block *b = w->block->race;
    const sim_warp_order *o = &b->w[w->index];
    const uint32_t units[3] = { UNIT_FENCED + thread, FENCED_WARP + thread / SIM_LANES, FENCED_BLOCK };
    for (uint32_t k = 0; k < 3; k++) {
        if (sim_clock_seen(b->clock, block, units[k], era) || sim_clock_seen(o->clock, block, units[k], era))
            return true;
        if (o->lane) SIM_EACH_LANE(l, m) if (sim_clock_seen(o->lane->clock[l], block, units[k], era)) return true;
    }
    return false;
}

/* --- counters of asynchronous operations ------------------------------------------------------ */

/* At most four counters, with keys in ascending order, as a clock. */
static vc *counts_of(const struct sim_race_block *b, const sim_clock_entry *c, uint32_t n)
{
    vc *v = malloc(sizeof *v + n * sizeof *v->e);
    if (!v) return NULL;
    atomic_init(&v->refs, 1);
    v->count = 0;
    for (uint32_t k = 0; k < n; k++)
        if (c[k].value) v->e[v->count++] = (entry){ b->index << 16 | c[k].what, c[k].value };
    return v;
}

void sim_clock_note(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    sim_lane_order *o = lane_order(&b->w[w->index]);
    vc *v = counts_of(b, c, n);
    if (o) join_into(&o->clock[lane], v);
    release_clock(v);
}

void sim_clock_publish(sim_warp *w, uint32_t lane, const sim_clock_entry *c, uint32_t n, uint64_t key)
{
    if (!w->launch->races) return;
    struct sim_race_block *b = w->block->race;
    vc *v = counts_of(b, c, n);
    sim_clock_see(w, 1u << lane, &v);
    publish(key, b, true, v);
}

void sim_clock_see(const sim_warp *w, uint32_t m, vc **seen)
{
    if (!w->launch->races) return;
    const struct sim_race_block *b = w->block->race;
    const sim_warp_order *o = &b->w[w->index];
    join_into(seen, b->clock);
    join_into(seen, o->clock);
    if (o->lane) SIM_EACH_LANE(l, m) join_into(seen, o->lane->clock[l]);
}

bool sim_clock_seen(const vc *seen, uint64_t block, uint32_t what, uint32_t value)
{ return seen && era_in_clock(seen, block << 16 | what) >= value; }

bool sim_clock_knows(const sim_warp *w, uint64_t block, uint32_t what, uint32_t value)
{
    const struct sim_race_block *b = w->block->race;
    const sim_warp_order *o = &b->w[w->index];
    if (sim_clock_seen(b->clock, block, what, value) || sim_clock_seen(o->clock, block, what, value)) return true;
    for (uint32_t l = 0; o->lane && l < SIM_LANES; l++)
        if (sim_clock_seen(o->lane->clock[l], block, what, value)) return true;
    return false;
}

void sim_clock_forget(vc **seen) { replace_clock(seen, NULL); }

/* Whether the kernel orders accesses by anything but barriers. */
bool sim_order_uses_clocks(const sim_kernel *k)
{
    if (k->tensor_memory) return true;
    for (uint32_t n = 0; n < k->code_count; n++) {
        const sim_ins *i = &k->code[n];
        bool access = i->fn == sim_ld || i->fn == sim_st || i->fn == sim_atom;
        if (i->fn == sim_mbarrier || i->fn == sim_mbarrier_cp_async || i->fn == sim_cluster_arrive)
            return true;
        if (i->fn == sim_fence || (access && i->x & (X_ACQUIRE | X_RELEASE))) return true;
    }
    return false;
}
