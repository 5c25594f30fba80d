/* order.c - races between streams, and between the host's calls and streams.
 *
 * Each allocation remembers the pieces of work that touched it, with their ranges, while something may
 * still be unordered with them. A later toucher whose clock does not cover an earlier one races with it,
 * if one of the two writes and their bytes overlap. The ranges of copies are known; kernels note the span
 * they read and the span they wrote in each allocation, and only while several streams have work. */
#include "driver.h"

typedef struct use {
    uint64_t seq, lo, hi;
    size_t pitch, width;               /* rows: `width` bytes, `pitch` apart; 0: all of [lo, hi) */
    uint32_t id;
    bool write, synchronous;
    char label[160];
} use;
typedef struct sim_uses {
    uint32_t count, capacity, told;
    uint64_t cleared, last[4];         /* the findings that were kept then; the pair told last */
    use list[];
} sim_uses;
enum { MOST_USES = 256, MOST_TOLD = 4 };

uint64_t sim_order_writes;             /* grows with each piece of work that wrote */

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

static bool overlap(const use *a, const use *b)
{
    if (!spans_meet(a->lo, a->hi, b->lo, b->hi)) return false;
    if (!b->pitch) return rows_meet(a, b->lo, b->hi);
    for (uint64_t at = b->lo; at < b->hi; at += b->pitch)
        if (rows_meet(a, at, at + b->width)) return true;
    return false;
}

/* --- remembering ------------------------------------------------------------------------------ */

/* Another stream has work that is not ordered before this. */
static bool others(const sim_work *w)
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

/* What nothing can race with any more: the host has waited for it, and this work, the only one left, too. */
static void forget(sim_uses *u, const sim_work *w)
{
    uint32_t n = 0;
    if (w->stream->context->pending > 1) return;
    for (uint32_t k = 0; k < u->count; k++)
        if (!sim_host_knows(u->list[k].id, u->list[k].seq)
            || !sim_clock_covers(w->clock, u->list[k].id, u->list[k].seq))
            u->list[n++] = u->list[k];
    u->count = n;
}

static void remember(sim_allocation *a, const use *entry)
{
    sim_uses *u = a->uses;
    for (uint32_t k = 0; u && k < u->count; k++) {            /* the same bytes again: the later one counts */
        use *old = &u->list[k];
        if (old->id != entry->id || old->write != entry->write || old->lo != entry->lo || old->hi != entry->hi
            || old->pitch != entry->pitch || old->width != entry->width)
            continue;
        *old = *entry;
        return;
    }
    if (!u || u->count == u->capacity) {
        uint32_t wanted = u ? u->capacity * 2 : 8;
        if (wanted > MOST_USES) {
            memmove(&u->list[0], &u->list[1], --u->count * sizeof *u->list);
        } else {
            sim_uses *grown = realloc(u, sizeof *grown + wanted * sizeof *grown->list);
            if (!grown) return;
            if (!u) memset(grown, 0, sizeof *grown);
            grown->capacity = wanted;
            a->uses = u = grown;
        }
    }
    u->list[u->count++] = *entry;
}

static void tell(const sim_allocation *a, const use *now, const use *before)
{
    char what[200];
    const char *kind = now->synchronous || before->synchronous ? "host-race" : "stream-race";
    if (!(*kind == 'h' ? sim_driver_option.host_races : sim_driver_option.stream_races)) return;
    if (a->label) snprintf(what, sizeof what, "variable '%.100s' (%llu bytes)", a->label, (unsigned long long)a->size);
    else
        snprintf(what, sizeof what, "%llu-byte allocation at 0x%llx (%s, call %llu)", (unsigned long long)a->size,
                 (unsigned long long)a->base, sim_entry_name(a->entry), (unsigned long long)a->call);
    uint64_t lo = now->lo > before->lo ? now->lo : before->lo, hi = now->hi < before->hi ? now->hi : before->hi;
    sim_report_host(kind, "%s %s and %s %s the same bytes, between %llu and %llu of the %s; nothing orders them",
                    before->label, before->write ? "writes" : "reads", now->label,
                    now->write ? "writes" : "reads", (unsigned long long)(lo - a->base),
                    (unsigned long long)(hi - a->base), what);
}

void sim_order_range(const sim_work *w, sim_allocation *a, uint64_t lo, uint64_t hi, size_t pitch, size_t width,
                     bool write)
{
    if (write) a->written_at = ++sim_order_writes;
    if (!a->uses && !others(w)) return;
    use now = { .seq = w->seq, .lo = lo, .hi = hi, .id = w->stream->id, .write = write,
                .synchronous = w->synchronous };
    if (pitch > width && hi - lo > width) { now.pitch = pitch; now.width = width; }
    sim_label(w, now.label, sizeof now.label);
    if (a->uses) forget(a->uses, w);
    if (a->uses && a->uses->cleared != sim_cleared) { a->uses->cleared = sim_cleared; a->uses->told = 0; }
    for (uint32_t k = 0; a->uses && k < a->uses->count && a->uses->told < MOST_TOLD; k++) {
        const use *before = &a->uses->list[k];
        if (before->id == now.id || !(before->write || write) || !overlap(before, &now)) continue;
        if (sim_clock_covers(w->clock, before->id, before->seq)) continue;
        const uint64_t pair[4] = { before->id, before->seq, now.id, now.seq };
        if (!memcmp(pair, a->uses->last, sizeof pair)) continue;
        memcpy(a->uses->last, pair, sizeof pair);
        tell(a, &now, before);
        a->uses->told++;
    }
    if (others(w)) remember(a, &now);
}

void sim_order_freed(sim_allocation *a)
{
    free(a->uses);
    a->uses = NULL;
}

/* --- what a kernel touches -------------------------------------------------------------------- */

typedef struct touch { sim_allocation *a; uint64_t lo[2], hi[2]; } touch;       /* read, written */
typedef struct sim_touches { uint32_t count, capacity, last; touch *list; } sim_touches;

static pthread_mutex_t merging = PTHREAD_MUTEX_INITIALIZER;

bool sim_order_wants(const sim_work *w) { return sim_checked_copies || others(w); }

sim_touches *sim_touches_new(void) { return calloc(1, sizeof(sim_touches)); }

void sim_touches_free(sim_touches *t)
{
    if (t) free(t->list);
    free(t);
}

static touch *touched(sim_touches *t, sim_allocation *a)
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
    *e = (touch){ a, { UINT64_MAX, UINT64_MAX }, { 0, 0 } };
    return e;
}

void sim_touch(sim_worker *w, sim_allocation *a, const uint64_t *at, uint32_t m, uint32_t bytes, bool write)
{
    touch *e = touched(w->touches, a);
    uint64_t lo = UINT64_MAX, hi = 0;
    if (!e) return;
    SIM_EACH_LANE(l, m) {
        if (at[l] < lo) lo = at[l];
        if (at[l] > hi) hi = at[l];
    }
    if (lo < e->lo[write]) e->lo[write] = lo;
    if (hi + bytes > e->hi[write]) e->hi[write] = hi + bytes;
}

void sim_touch_merge(sim_worker *w, sim_launch *l)
{
    sim_touches *from = w->touches;
    if (!from) return;
    w->touches = NULL;
    pthread_mutex_lock(&merging);
    for (uint32_t k = 0; k < from->count; k++) {
        touch *e = touched(l->touches, from->list[k].a);
        for (int n = 0; e && n < 2; n++) {
            if (from->list[k].lo[n] < e->lo[n]) e->lo[n] = from->list[k].lo[n];
            if (from->list[k].hi[n] > e->hi[n]) e->hi[n] = from->list[k].hi[n];
        }
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
    if (!l->touches) return;
    if (l->touches->count) qsort(l->touches->list, l->touches->count, sizeof *l->touches->list, by_base);
    for (uint32_t k = 0; k < l->touches->count; k++) {
        const touch *e = &l->touches->list[k];
        if (e->a->kind == MEM_CONST) continue;
        if (e->hi[1]) sim_order_range(w, e->a, e->lo[1], e->hi[1], 0, 0, true);
        if (e->hi[0]) sim_order_range(w, e->a, e->lo[0], e->hi[0], 0, 0, false);
    }
    sim_touches_free(l->touches);
    l->touches = NULL;
}
