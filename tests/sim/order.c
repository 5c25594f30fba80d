/* order.c - races between streams, and between the host's calls and streams.
 *
 * Each allocation remembers the pieces of work that touched it, with their ranges, while other work may
 * be unordered with them. A later access whose clock does not cover an earlier one races with it
 * if one of the two writes and their bytes overlap; atomics do not race with atomics. The ranges of copies
 * are known. Kernels record what they touch of each allocation, as a range and as a map of 16,384 granules (of
 * four bytes up to 64 KiB, larger in larger allocations), and only while several streams have work. */
#include "driver.h"
#include "dependents.h"

enum { GRANULES = 16384, MAP_WORDS = GRANULES / 64 };

typedef struct use {
    uint64_t seq, lo, hi;
    size_t pitch, width;               /* rows: `width` bytes, `pitch` apart; 0: all of [lo, hi) */
    uint64_t *map;                     /* not NULL: only these granules of [lo, hi) */
    uint32_t id;
    uint8_t access, shift; bool synchronous;  /* shift: log2 of a granule's bytes */
    char label[160];
} use;
typedef struct sim_uses {
    uint32_t count, capacity, reported;
    uint64_t cleared, last[4];         /* cleared: sim_times_cleared of `told`; last: the pair reported last */
    use list[];
} sim_uses;
enum { MOST_USES = 256, MOST_REPORTED = 4 };

uint64_t sim_order_writes;             /* incremented by each piece of work that writes */

/* --- overlap ---------------------------------------------------------------------------------- */

static bool spans_meet(uint64_t a, uint64_t b, uint64_t c, uint64_t d) { return a < d && c < b; }

static bool rows_meet(const use *rows, uint64_t lo, uint64_t hi)
{
    if (!rows->pitch) return spans_meet(rows->lo, rows->hi, lo, hi);
    uint64_t first = lo > rows->lo ? (lo - rows->lo) / rows->pitch : 0;
    for (uint64_t at = rows->lo + first * rows->pitch; at < rows->hi && at < hi; at += rows->pitch)
        if (spans_meet(at, at + rows->width, lo, hi)) return true;
    return false;
}

/* log2 of a granule's bytes. Size 0: an object of the device heap that is being freed. */
static uint32_t shift_of(uint64_t size)
{
    uint32_t shift = 2;
    if (!size) size = SIM_HEAP_SPAN;
    while (size >> shift > GRANULES - 1) shift++;
    return shift;
}

/* Whether one of the granules overlaps the other's bytes. */
static bool granules_overlap(const sim_allocation *a, const use *mapped, const use *other)
{
    uint32_t shift = mapped->shift;
    uint64_t lo = mapped->lo > other->lo ? mapped->lo : other->lo,
             hi = mapped->hi < other->hi ? mapped->hi : other->hi;
    for (uint64_t g = (lo - a->base) >> shift; g <= (hi - 1 - a->base) >> shift; g++) {
        if (!(mapped->map[g >> 6] >> (g & 63) & 1)) continue;
        if (other->map && other->shift == shift
                       ? other->map[g >> 6] >> (g & 63) & 1
                       : rows_meet(other, a->base + (g << shift), a->base + ((g + 1) << shift)))
            return true;
    }
    return false;
}

static bool overlap(const sim_allocation *in, const use *a, const use *b)
{
    if (!spans_meet(a->lo, a->hi, b->lo, b->hi)) return false;
    if (a->map) return granules_overlap(in, a, b);
    if (b->map) return granules_overlap(in, b, a);
    if (!b->pitch) return rows_meet(a, b->lo, b->hi);
    for (uint64_t at = b->lo; at < b->hi; at += b->pitch)
        if (rows_meet(a, at, at + b->width)) return true;
    return false;
}

/* --- the record of accesses ------------------------------------------------------------------- */

/* Whether another stream has work that is not ordered before this. */
static bool has_concurrent_stream(const sim_work *w)
{
    const sim_stream *s = w->stream;
    bool several = false;
    for (const sim_stream *t = s->context->streams; t; t = t->next) {
        if (t == s || t->queued == t->first) continue;
        if (!sim_clock_covers(w->clock, t->id, t->queued)) return true;
        several = true;
    }
    return several && sim_running_early;
}

/* Forgets accesses that the host and this work, the only one queued, are ordered after: nothing can race with them. */
static void forget(sim_uses *u, const sim_work *w)
{
    uint32_t n = 0;
    if (w->stream->context->pending > 1) return;
    for (uint32_t k = 0; k < u->count; k++)
        if (!sim_host_knows(u->list[k].id, u->list[k].seq)
            || !sim_clock_covers(w->clock, u->list[k].id, u->list[k].seq))
            u->list[n++] = u->list[k];
        else free(u->list[k].map);
    u->count = n;
}

/* Records an access; owns its map from then on. */
static void remember(sim_allocation *a, const use *entry)
{
    sim_uses *u = a->uses;
    for (uint32_t k = 0; u && k < u->count; k++) {            /* same bytes again: the later one replaces it */
        use *old = &u->list[k];
        if (old->id != entry->id || old->access != entry->access || old->lo != entry->lo
            || old->hi != entry->hi || old->pitch != entry->pitch || old->width != entry->width
            || !old->map != !entry->map
            || (old->map && memcmp(old->map, entry->map, MAP_WORDS * sizeof *old->map)))
            continue;
        free(old->map);
        *old = *entry;
        return;
    }
    if (!u || u->count == u->capacity) {
        uint32_t wanted = u ? u->capacity * 2 : 8;
        if (wanted > MOST_USES) {
            free(u->list[0].map);
            memmove(&u->list[0], &u->list[1], --u->count * sizeof *u->list);
        } else {
            sim_uses *grown = realloc(u, sizeof *grown + wanted * sizeof *grown->list);
            if (!grown) { free(entry->map); return; }
            if (!u) memset(grown, 0, sizeof *grown);
            grown->capacity = wanted;
            a->uses = u = grown;
        }
    }
    u->list[u->count++] = *entry;
}

static const char *const verbs[] = { "reads", "writes", "updates" };

static void report_race(const sim_allocation *a, const use *now, const use *before)
{
    char what[200];
    const char *kind = now->synchronous || before->synchronous ? "host-race" : "stream-race";
    if (!(*kind == 'h' ? sim_driver_option.host_races : sim_driver_option.stream_races)) return;
    if (a->label)
        snprintf(what, sizeof what, "variable '%.100s' (%llu bytes)", a->label, (unsigned long long)a->size);
    else
        snprintf(what, sizeof what, "%llu-byte allocation at 0x%llx (%s, call %llu)",
                 (unsigned long long)a->size, (unsigned long long)a->base, sim_entry_name(a->entry),
                 (unsigned long long)a->call);
    uint64_t lo = now->lo > before->lo ? now->lo : before->lo,
             hi = now->hi < before->hi ? now->hi : before->hi;
    sim_report_host(kind,
                    "%s %s and %s %s the same bytes, between %llu and %llu of the %s; nothing orders them",
                    before->label, verbs[before->access], now->label, verbs[now->access],
                    (unsigned long long)(lo - a->base), (unsigned long long)(hi - a->base), what);
}

/* Compares an access with those recorded, then records it; owns its map from then on. */
static void order(const sim_work *w, sim_allocation *a, use now)
{
    if (a->uses) forget(a->uses, w);
    if (a->uses && a->uses->cleared != sim_times_cleared) {
        a->uses->cleared = sim_times_cleared;
        a->uses->reported = 0;
    }
    for (uint32_t k = 0; a->uses && k < a->uses->count && a->uses->reported < MOST_REPORTED; k++) {
        const use *before = &a->uses->list[k];
        if (before->id == now.id || !sim_accesses_conflict(before->access, now.access)) continue;
        if (sim_clock_covers(w->clock, before->id, before->seq) || !overlap(a, before, &now)) continue;
        const uint64_t pair[4] = { before->id, before->seq, now.id, now.seq };
        if (!memcmp(pair, a->uses->last, sizeof pair)) continue;
        memcpy(a->uses->last, pair, sizeof pair);
        report_race(a, &now, before);
        a->uses->reported++;
    }
    if (has_concurrent_stream(w)) remember(a, &now);
    else free(now.map);
}

void sim_order_range(const sim_work *w, sim_allocation *a, uint64_t lo, uint64_t hi, size_t pitch,
                     size_t width, bool write)
{
    if (write) a->written_at = ++sim_order_writes;
    if (!a->uses && !has_concurrent_stream(w)) return;
    use now = {.seq = w->seq,
               .lo = lo,
               .hi = hi,
               .id = w->stream->id,
               .access = write ? SIM_WRITE : SIM_READ,
               .synchronous = w->synchronous};
    if (pitch > width && hi - lo > width) { now.pitch = pitch; now.width = width; }
    sim_label(w, now.label, sizeof now.label);
    order(w, a, now);
}

void sim_order_freed(sim_allocation *a)
{
    for (uint32_t k = 0; a->uses && k < a->uses->count; k++) free(a->uses->list[k].map);
    free(a->uses);
    a->uses = NULL;
}

/* --- what a kernel touches -------------------------------------------------------------------- */

typedef struct touch {
    sim_allocation *a;
    uint32_t shift;
    uint64_t lo[3], hi[3], *map[3];    /* by access */
} touch;
typedef struct sim_touches { uint32_t count, capacity, last; touch *list; } sim_touches;

static pthread_mutex_t merging = PTHREAD_MUTEX_INITIALIZER;

bool sim_order_is_checked(const sim_work *w) { return sim_checked_copies || has_concurrent_stream(w); }

sim_touches *sim_touches_new(void) { return calloc(1, sizeof(sim_touches)); }

void sim_touches_free(sim_touches *t)
{
    for (uint32_t k = 0; t && k < t->count; k++) for (int n = 0; n < 3; n++) free(t->list[k].map[n]);
    if (t) free(t->list);
    free(t);
}

static touch *touch_of(sim_touches *t, sim_allocation *a)
{
    if (t->last < t->count && t->list[t->last].a == a) return &t->list[t->last];
    for (uint32_t k = 0; k < t->count; k++) if (t->list[k].a == a) return &t->list[t->last = k];
    if (t->count == t->capacity) {
        uint32_t wanted = t->capacity ? t->capacity * 2 : 8;
        touch *grown = realloc(t->list, wanted * sizeof *grown);
        if (!grown) return NULL;
        t->list = grown;
        t->capacity = wanted;
    }
    touch *e = &t->list[t->last = t->count++];
    *e = (touch){ .a = a, .shift = shift_of(a->size), .lo = { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
    return e;
}

void sim_touch(sim_warp *w, const sim_ins *i, sim_allocation *a, const uint64_t *at, uint32_t m,
               uint32_t bytes, sim_access access)
{
    touch *e = touch_of(w->worker->touches, a);
    if (w->launch->in_flight) sim_grid_touch(w, i, m, at, bytes, access);
    if (!e) return;
    uint64_t lo = e->lo[access], hi = e->hi[access], *map = e->map[access];
    if (!map && !(map = e->map[access] = calloc(MAP_WORDS, sizeof *map))) return;
    SIM_EACH_LANE(l, m) {
        uint64_t first = (at[l] - a->base) >> e->shift, last = (at[l] + bytes - 1 - a->base) >> e->shift;
        if (at[l] < lo) lo = at[l];
        if (at[l] + bytes > hi) hi = at[l] + bytes;
        for (; first <= last; first++) map[first >> 6] |= UINT64_C(1) << (first & 63);
    }
    e->lo[access] = lo;
    e->hi[access] = hi;
}

static void join_touch(touch *to, touch *from)
{
    for (int n = 0; n < 3; n++) {
        if (from->lo[n] < to->lo[n]) to->lo[n] = from->lo[n];
        if (from->hi[n] > to->hi[n]) to->hi[n] = from->hi[n];
        if (!to->map[n]) { to->map[n] = from->map[n]; from->map[n] = NULL; continue; }
        for (int k = 0; from->map[n] && k < MAP_WORDS; k++) to->map[n][k] |= from->map[n][k];
    }
}

void sim_touch_merge(sim_worker *w, sim_launch *l)
{
    sim_touches *from = w->touches;
    if (!from) return;
    w->touches = NULL;
    pthread_mutex_lock(&merging);
    for (uint32_t k = 0; k < from->count; k++) {
        touch *e = touch_of(l->touches, from->list[k].a);
        if (e) join_touch(e, &from->list[k]);
    }
    pthread_mutex_unlock(&merging);
    sim_touches_free(from);
}

static int by_base(const void *a, const void *b)
{
    uint64_t x = ((const touch *)a)->a->base, y = ((const touch *)b)->a->base;
    return (x > y) - (x < y);
}

void sim_order_kernel(const sim_work *w, sim_launch *l)
{
    static const uint8_t first_to_last[] = { SIM_WRITE, SIM_UPDATE, SIM_READ };
    if (!l->touches) return;
    if (l->touches->count) qsort(l->touches->list, l->touches->count, sizeof *l->touches->list, by_base);
    for (uint32_t k = 0; k < l->touches->count; k++) {
        touch *e = &l->touches->list[k];
        if (e->a->kind == MEM_CONST || e->a->base == l->context->grid_workspace) continue;
        if (e->hi[SIM_WRITE] || e->hi[SIM_UPDATE]) e->a->written_at = ++sim_order_writes;
        for (int n = 0; n < 3; n++) {
            int access = first_to_last[n];
            if (!e->hi[access] || (!e->a->uses && !has_concurrent_stream(w))) continue;
            use now = { .seq = w->seq, .lo = e->lo[access], .hi = e->hi[access], .map = e->map[access],
                        .id = w->stream->id, .access = (uint8_t)access, .shift = (uint8_t)e->shift };
            e->map[access] = NULL;
            sim_label(w, now.label, sizeof now.label);
            order(w, e->a, now);
        }
    }
    sim_touches_free(l->touches);
    l->touches = NULL;
}
