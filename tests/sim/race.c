/* race.c - data races: the shadow of accesses, and the finding `race`.
 *
 * Memory that threads share has pages of 1 KB with cells: of 4 bytes until something smaller is accessed,
 * then of 2 or 1. A cell keeps its last write and up to two reads since (of different blocks, else of
 * different warps, else of different lanes: with barriers and warp syncs alone two are as good as all). An
 * entry is an index into the page's list of records (instruction, block, warp, era) and a lane. Two accesses
 * race when the later one's thread does not know the earlier one (clocks.c), one is a write, and they are not both
 * strong at a scope that holds both threads.
 *
 * Not reported: two plain writes of the same value ("race-strict" reports them), and a load that only
 * guesses the old value for a compare-and-swap: of the same address register, or of the same location by the
 * same thread (guess.c). Once another atomic of the thread has followed the load, its entry is FIRM. */
#include "async.h"
#include "race.h"
#include "tensor_memory.h"
#include <sched.h>

enum { PAGE_SHIFT = 10, PAGE = 1 << PAGE_SHIFT, ENTRY_LANE = 31, FIRM = 1u << 30, CROSS = 1u << 31 };
#define PAGE_LIMIT 400000u             /* of a launch; memory beyond them is not checked */

typedef struct sim_race_page {
    atomic_flag busy;
    bool shared;
    uint8_t shift;                     /* log2 of a cell's bytes */
    atomic_uint common;                /* a bit for each 32 bytes, read without the lock: see read_by_all */
    uint32_t count, capacity;          /* records; record 0 means "no access" */
    sim_record *records;
    _Atomic(uint32_t *) cells;         /* all writes, then all first reads, then all second reads */
    uint64_t serial;                   /* shared memory: the block that it belongs to */
    struct sim_race_page *next;
    _Atomic(struct sim_race_page *) *home;
    uint8_t *kept;                     /* memory and shadow before the launch wrote here: see put_back */
    uint8_t *host, *written;
    uint32_t bytes;                    /* in `kept`; 0: nothing has written here */
} page;

static struct {
    pthread_mutex_t lock;
    page *touched, *pool;
    uint32_t count, pooled;
    bool threads;                      /* several workers */
    atomic_bool undo, again;           /* undo: the launch can be undone; again: it is to be, and to run again */
    atomic_ullong serial;
} races = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef struct access {                /* one instruction of a warp, while it updates the cells */
    sim_warp *w;
    const sim_ins *ins;
    const struct sim_race_block *b;
    const sim_block *owner;            /* the block whose shared memory it is */
    const uint64_t *at;
    sim_space space;
    uint32_t mask, bytes, flags, warp, me;
    uint8_t *host;                     /* the page's bytes */
    uint64_t base;                     /* address of the page */
    bool clocks;
    struct { uint32_t index; uint8_t what; } seen[8];
} access;
enum { SEEN_NOTHING, SEEN_KNOWN, SEEN_OWN_WARP, SEEN_UNKNOWN };

/* --- pages ------------------------------------------------------------------------------------ */

static void free_page(page *p)
{
    free(p->records);
    free(atomic_load(&p->cells));
    free(p->kept);
    free(p);
}

static void clear_page(page *p)
{
    atomic_store_explicit(&p->common, 0, memory_order_relaxed);
    memset(atomic_load(&p->cells), 0, (size_t)(PAGE >> p->shift) * 12);
    p->count = 1;
    p->bytes = 0;
}

static page *new_page(void)
{
    page *p = races.pool;
    if (p) { races.pool = p->next; races.pooled--; clear_page(p); return p; }
    if (!(p = calloc(1, sizeof *p))) return NULL;
    p->shift = 2;
    p->capacity = 16;
    p->count = 1;
    p->records = malloc(p->capacity * sizeof *p->records);
    atomic_store(&p->cells, calloc(PAGE >> 2, 12));
    atomic_flag_clear(&p->busy);
    if (!p->records || !atomic_load(&p->cells)) { free_page(p); return NULL; }
    return p;
}

static page *global_page(sim_allocation *a, uint64_t offset)
{
    _Atomic(page *) *homes = atomic_load_explicit(&a->races, memory_order_acquire);
    page *p;
    if (homes && (p = atomic_load_explicit(&homes[offset >> PAGE_SHIFT], memory_order_acquire))) return p;
    pthread_mutex_lock(&races.lock);
    homes = atomic_load(&a->races);
    if (!homes && (homes = calloc((size_t)(a->size >> PAGE_SHIFT) + 1, sizeof *homes)))
        atomic_store(&a->races, homes);
    p = homes ? atomic_load(&homes[offset >> PAGE_SHIFT]) : NULL;
    if (homes && !p && races.count < PAGE_LIMIT && (p = new_page())) {
        races.count++;
        p->home = &homes[offset >> PAGE_SHIFT];
        p->next = races.touched;
        races.touched = p;
        atomic_store_explicit(p->home, p, memory_order_release);
    }
    pthread_mutex_unlock(&races.lock);
    return p;
}

/* --- a launch with findings is run again -------------------------------------------------------
 *
 * With races, the results, the pairs of accesses that conflict and the lines reported depend on which worker came
 * first. So may other findings: which block first uses an unwritten value, which fault ends the launch. Therefore
 * a launch of several workers stops at its first finding, memory is restored, and one worker runs the launch from
 * the start: its results and findings are then the same for any number of threads. */

static void save_page(page *p, sim_allocation *a, uint64_t offset)
{
    if (p->bytes) return;
    if (!p->kept && !(p->kept = malloc(PAGE + PAGE / 8))) { atomic_store(&races.undo, false); return; }
    p->bytes = (uint32_t)(a->size - offset < PAGE ? a->size - offset : PAGE);
    p->host = a->host + offset;
    p->written = a->shadow ? a->shadow + (offset >> 3) : NULL;
    memcpy(p->kept, p->host, p->bytes);
    if (p->written) memcpy(p->kept + PAGE, p->written, (p->bytes + 7) / 8);
}

static void restore_page(const page *p)
{
    if (!p->bytes) return;
    memcpy(p->host, p->kept, p->bytes);
    if (p->written) memcpy(p->written, p->kept + PAGE, (p->bytes + 7) / 8);
}

/* Whether everything that the kernel can change is a worker's own or saved by `keep`. */
static bool can_be_undone(const sim_launch *l)
{
    const sim_kernel *k = l->kernel;
    if (k->cannot_undo || l->profile) return false;
    for (uint32_t n = 0; n < k->code_count; n++) {
        sim_handler fn = k->code[n].fn;
        if (fn == sim_bulk || fn == sim_bulk_tensor || fn == sim_store_async || fn == sim_tensormap_replace)
            return false;
    }
    return true;
}

void sim_request_rerun(const sim_launch *l)
{
    int none = 0;
    sim_launch *running = (sim_launch *)(uintptr_t)l;
    if (!l->races || !races.threads || !atomic_load(&races.undo)) return;
    if (atomic_compare_exchange_strong(&running->error, &none, SIM_ERROR_AGAIN))
        atomic_store(&races.again, true);
}

static page *shared_page(struct sim_race_block *b, uint64_t offset)
{
    uint32_t n = (uint32_t)(offset >> PAGE_SHIFT);
    if (n >= b->page_count) return NULL;
    page *p = b->pages[n];
    if (!p) {
        pthread_mutex_lock(&races.lock);
        p = new_page();
        pthread_mutex_unlock(&races.lock);
        if (!p) return NULL;
        p->shared = true;
        b->pages[n] = p;
    } else if (p->serial != b->serial) clear_page(p);
    p->serial = b->serial;
    return p;
}

static void lock_page(const access *c, page *p)
{
    if (!races.threads || (p->shared && c->space == SP_SHARED)) return;
    for (unsigned turns = 1; atomic_flag_test_and_set_explicit(&p->busy, memory_order_acquire); turns++)
        if (turns % 64 == 0) sched_yield();                   /* the thread that holds the lock may not be running */
}

static void unlock_page(const access *c, page *p)
{
    if (!races.threads || (p->shared && c->space == SP_SHARED)) return;
    atomic_flag_clear_explicit(&p->busy, memory_order_release);
}

/* Splits the cells; each part keeps the entries of the whole. */
static bool split_cells(page *p, uint32_t shift)
{
    uint32_t n = PAGE >> shift, *from = atomic_load(&p->cells), *to = malloc((size_t)n * 12);
    if (!to) return false;
    uint32_t factor = p->shift - shift, old = PAGE >> p->shift;
    for (uint32_t part = 0; part < 3; part++)
        for (uint32_t k = 0; k < n; k++) to[part * n + k] = from[part * old + (k >> factor)];
    if (!p->shared) {                                         /* now as large as two or four pages */
        pthread_mutex_lock(&races.lock);
        races.count += shift ? 1 : 3;
        pthread_mutex_unlock(&races.lock);
    }
    atomic_store(&p->cells, to);
    free(from);
    p->shift = (uint8_t)shift;
    return true;
}

/* Drops records that no cell refers to; doubles the list if most are referred to. */
static bool collect(page *p)
{
    uint32_t n = (PAGE >> p->shift) * 3, *cells = atomic_load(&p->cells), live = 1;
    uint16_t *to = calloc(p->capacity, sizeof *to);
    if (!to) return false;
    for (uint32_t k = 0; k < n; k++) to[cells[k] >> 5 & 0xffff] = 1;
    to[0] = 0;
    for (uint32_t k = 1; k < p->count; k++) {
        if (!to[k]) continue;
        p->records[live] = p->records[k];
        to[k] = (uint16_t)live++;
    }
    for (uint32_t k = 0; k < n; k++)
        cells[k] = (cells[k] & (CROSS | FIRM | ENTRY_LANE)) | (uint32_t)to[cells[k] >> 5 & 0xffff] << 5;
    free(to);
    p->count = live;
    if (live > p->capacity / 2) {
        sim_record *grown = realloc(p->records, (size_t)p->capacity * 2 * sizeof *grown);
        if (!grown) return live < p->capacity;
        p->records = grown;
        p->capacity *= 2;
    }
    return true;
}

/* The index of this access's record in the page; 0: out of memory. */
static uint32_t record(access *c, page *p)
{
    uint32_t era = c->b->w[c->warp].era, last = p->count > 5 ? p->count - 4 : 1;
    for (uint32_t k = p->count; k-- > last;) {
        const sim_record *r = &p->records[k];
        if (r->ins == c->ins && r->era == era && r->warp == c->warp && r->block == c->b->index
            && r->flags == c->flags)
            return k;
    }
    if (p->count == p->capacity) {
        memset(c->seen, 0, sizeof c->seen);
        if (!collect(p)) return 0;
    }
    p->records[p->count] =
        (sim_record){ c->b->index, c->ins, era, (uint8_t)c->warp, (uint8_t)c->flags };
    return p->count++;
}

/* --- the finding ------------------------------------------------------------------------------ */

static const char *verb(uint32_t flags)
{
    return flags & REC_ASYNC ? (flags & REC_WRITE ? "write by the asynchronous copy" : "asynchronous read")
         : flags & REC_ATOMIC ? "atomic"
         : flags & REC_WRITE  ? (flags & REC_STRONG ? "strong write" : "write")
                              : (flags & REC_STRONG ? "strong read" : "read");
}

/* Orders the two accesses for the report: the one on the later line heads it (on one line, that of the earlier
 * block), whichever came second. True: b heads it. */
static bool order_for_report(const sim_conflict *x, const sim_site **head, const sim_site **other)
{
    sim_finding_place here = sim_pair_place(&x->a, &x->b), there = sim_pair_place(&x->b, &x->a);
    uint32_t a = x->a.ins->line, b = x->b.ins->line;
    bool swap = b > a || (b == a && sim_place_precedes(&there, &here));
    *head = swap ? &x->b : &x->a;
    *other = swap ? &x->a : &x->b;
    return swap;
}

/* Whether the pair was reported already, at a place that is not after this one. */
static bool was_reported(const sim_launch *l, const sim_conflict *x)
{
    static _Thread_local struct {
        uint64_t launch;
        uint32_t workers, a, b;
        sim_finding_place place;
    } reported[16];
    const sim_site *head, *other;
    order_for_report(x, &head, &other);
    sim_finding_place place = sim_pair_place(head, other);
    uint32_t a = head->ins->line, b = other->ins->line, k = (a * 31 + b) & 15;
    if (reported[k].launch == l->launch_serial && reported[k].workers == l->workers && reported[k].a == a
        && reported[k].b == b && !sim_place_precedes(&place, &reported[k].place))
        return true;
    reported[k].launch = l->launch_serial;
    reported[k].workers = l->workers;
    reported[k].a = a;
    reported[k].b = b;
    reported[k].place = place;
    return false;
}

static void describe_place(const sim_launch *l, const sim_conflict *x, char *out, size_t cap)
{
    if (!x->shared) { sim_memory_describe(x->address, x->bytes, out, cap); return; }
    const sim_kernel *k = l->kernel;
    const sim_shared_symbol *s = NULL;
    char peer[40] = "";
    for (uint32_t n = 0; n < k->shared_symbol_count; n++)
        if (k->shared_symbols[n].offset <= x->address && (!s || k->shared_symbols[n].offset >= s->offset))
            s = &k->shared_symbols[n];
    if (l->cluster_size > 1) snprintf(peer, sizeof peer, " of block rank %u", x->rank);
    if (s) snprintf(out, cap, "byte %u of '%s'%s", (uint32_t)x->address - s->offset, s->name, peer);
    else snprintf(out, cap, "shared memory%s", peer);
}

void sim_race_report(const sim_launch *l, const sim_conflict *x)
{
    const sim_site *head, *other;
    bool swap = order_for_report(x, &head, &other);
    uint32_t flags = swap ? x->b_flags : x->a_flags, other_flags = swap ? x->a_flags : x->b_flags;
    char where[200], site[420], detail[900];
    describe_place(l, x, where, sizeof where);
    sim_site_text(l, other, site, sizeof site);
    bool narrow = flags & other_flags & REC_STRONG;
    snprintf(detail, sizeof detail, "%s at %s address 0x%llx (%s) %s the %s %s%s", verb(flags),
             x->shared ? "shared" : "global", (unsigned long long)x->address, where,
             narrow ? "has too narrow a scope for its order with" : "is not ordered with", verb(other_flags),
             site, x->more);
    sim_report_pair(l, "race", head, other, detail);
}

/* Whether a plain read that conflicts with an atomic may be a guess for a compare-and-swap still to come. */
static bool may_be_guess(const sim_ins *i, uint32_t flags, uint32_t other_flags)
{
    return !flags && i->fn == sim_ld && i->size * i->count <= 8 && other_flags & REC_ATOMIC;
}

static void report_conflict(access *c, page *p, uint32_t lane, uint32_t entry, uint32_t k, const char *more)
{
    const sim_record *r = &p->records[entry >> 5 & 0xffff];
    sim_conflict x = { .a = { c->ins, c->b->index, c->warp * SIM_LANES + lane },
                       .b = { r->ins, r->block, (uint32_t)r->warp * SIM_LANES + (entry & ENTRY_LANE) },
                       .a_flags = (uint8_t)c->flags, .b_flags = r->flags, .bytes = c->bytes, .more = more,
                       .shared = c->space == SP_SHARED, .rank = c->space == SP_SHARED ? c->owner->rank : 0,
                       .address = c->base + (k << p->shift) };
    if (x.address < c->at[lane]) x.address = c->at[lane];     /* the first byte that both access */
    x.place = sim_guess_place(c->space == SP_SHARED ? c->owner : NULL, x.address);
    if (may_be_guess(c->ins, c->flags, r->flags)) { sim_guess_store(&x, &x.a, &x.b); return; }
    if (!(entry & FIRM) && may_be_guess(r->ins, r->flags, c->flags)) { sim_guess_store(&x, &x.b, &x.a); return; }
    if (!was_reported(c->w->launch, &x)) sim_race_report(c->w->launch, &x);
}

/* The bytes that the lane stores, if they are known. */
static bool stored_bytes(const access *c, uint32_t lane, uint8_t *out)
{
    const sim_ins *i = c->ins;
    const uint32_t *list = c->w->kernel->lists + i->list;
    if (i->fn != sim_st || i->size > 8) return false;
    for (uint32_t k = 0; k < i->count; k++) {
        uint32_t slot = list[k] & ~SIM_WIDE;
        uint64_t v = i->size == 8 ? sim_slot64(c->w, slot)[lane] : sim_slot(c->w, slot)[lane];
        memcpy(out + k * i->size, &v, i->size);
    }
    return true;
}

/* Whether two plain writes store the same value; memory still holds the earlier one. */
static bool same_value(const access *c, uint32_t lane, uint32_t cell_at, uint32_t cell_bytes)
{
    uint8_t v[64];
    uint64_t first = c->at[lane];
    if (sim_option.race_strict || !stored_bytes(c, lane, v)) return false;
    uint64_t lo = c->base + cell_at, hi = lo + cell_bytes;
    if (lo < first) lo = first;
    if (hi > first + c->bytes) hi = first + c->bytes;
    return hi <= lo || !memcmp(v + (lo - first), c->host + (lo - c->base), (size_t)(hi - lo));
}

/* --- cells ------------------------------------------------------------------------------------ */

/* Whether this lane knows the access that the entry stands for. */
static inline bool is_known(access *c, const page *p, uint32_t entry, uint32_t lane)
{
    uint32_t index = entry >> 5 & 0xffff, k = index & 7;
    if (SIM_UNLIKELY(c->seen[k].index != index || !c->seen[k].what)) {
        const sim_record *r = &p->records[index];
        const sim_warp_order *o = &c->b->w[c->warp];
        bool own = r->block == c->b->index && r->warp == c->warp;
        c->seen[k].index = index;
        c->seen[k].what = r->block == c->b->index && (r->era <= o->base || (own && r->era <= o->warp_base))
                              ? SEEN_KNOWN
                          : own ? SEEN_OWN_WARP
                                : SEEN_UNKNOWN;
    }
    if (c->seen[k].what == SEEN_KNOWN) return true;
    if (c->seen[k].what == SEEN_OWN_WARP && (entry & ENTRY_LANE) == lane) return true;
    if (!c->clocks) return false;
    return sim_order_known(c->b, c->warp, lane, &p->records[index], entry & ENTRY_LANE);
}

static bool both_strong(const access *c, const page *p, uint32_t entry)
{
    const sim_record *r = &p->records[entry >> 5 & 0xffff];
    if (!(r->flags & c->flags & REC_STRONG)) return false;
    return r->block == c->b->index || (r->flags & c->flags & REC_WIDE);
}

static inline bool is_own_entry(const access *c, const page *p, uint32_t entry, uint32_t lane)
{
    const sim_record *r = &p->records[entry >> 5 & 0xffff];
    return (entry & ENTRY_LANE) == lane && r->warp == c->warp && r->block == c->b->index;
}

static inline uint32_t entry_of_lane(const access *c, uint32_t lane) { return c->me << 5 | lane; }

static void add_reader(access *c, page *p, uint32_t *cell, uint32_t lane)
{
    const uint32_t R = PAGE >> p->shift, S = R * 2;
    const sim_record *r = &p->records[cell[R] >> 5 & 0xffff], *s = &p->records[cell[S] >> 5 & 0xffff];
    if (is_own_entry(c, p, cell[R], lane) || is_known(c, p, cell[R], lane)) {
        cell[R] = entry_of_lane(c, lane);
        if (cell[S] && is_known(c, p, cell[S], lane)) cell[S] = 0;
        else cell[S] &= ~CROSS;
        s = &p->records[cell[S] >> 5 & 0xffff];
        if (cell[S] && s->block != c->b->index) cell[S] |= CROSS;
        return;
    }
    if (!cell[S] || is_known(c, p, cell[S], lane) || (s->flags & ~c->flags & REC_STRONG)) {
        cell[S] = entry_of_lane(c, lane) | (r->block != c->b->index && !(r->flags & REC_STRONG) ? CROSS : 0);
        return;
    }
    if (r->block != s->block) return;                         /* two blocks: any writer conflicts with one of them */
    if (r->block != c->b->index) cell[S] = entry_of_lane(c, lane) | CROSS;
    else if (r->warp == s->warp && r->warp != c->warp) cell[S] = entry_of_lane(c, lane);
}

/* Whether an entry stays after a strong write, which orders nothing: a weak access does until all threads know it. */
static bool outlives_strong_write(const access *c, const page *p, uint32_t entry)
{
    const sim_record *r = &p->records[entry >> 5 & 0xffff];
    return !(r->flags & REC_STRONG)
           && (c->space != SP_SHARED || r->block != c->b->index || r->era > c->b->w[c->warp].base);
}

/* Reports a load by the read-only path, or a fetch through the texture cache, of what this kernel has written. */
static void report_stale_read(const access *c, const page *p, uint32_t entry, uint32_t lane, uint32_t k)
{
    const sim_record *r = &p->records[entry >> 5 & 0xffff];
    sim_site other = { r->ins, r->block, (uint32_t)r->warp * SIM_LANES + (entry & ENTRY_LANE) },
             here = { c->ins, c->b->index, c->warp * SIM_LANES + lane };
    char detail[700], site[420];
    if (!(r->flags & REC_WRITE)) return;
    sim_site_text(c->w->launch, &other, site, sizeof site);
    bool fetch = c->ins->fn != sim_ld;
    snprintf(detail, sizeof detail, fetch
             ? "texture or surface read at global address 0x%llx, which this kernel has written %s: what is read "
               "there is undefined until the next launch"
             : "read with .nc at global address 0x%llx, which this kernel has written %s",
             (unsigned long long)(c->base + (k << p->shift)), site);
    sim_report_pair(c->w->launch, fetch ? "texture-written" : "nc-written", &here, &other, detail);
}

static inline void read_cell(access *c, page *p, uint32_t *cell, uint32_t lane, uint32_t k)
{
    const uint32_t R = PAGE >> p->shift, S = R * 2;
    if (cell[0] && !is_known(c, p, cell[0], lane) && !both_strong(c, p, cell[0])) {
        report_conflict(c, p, lane, cell[0], k, "");
        return;
    }
    if (SIM_UNLIKELY(c->ins->x & X_NC) && cell[0] && c->ins->cls == C_MEMORY) report_stale_read(c, p, cell[0], lane, k);
    if (SIM_UNLIKELY(cell[0] && cell[S]) && p->records[cell[S] >> 5 & 0xffff].flags & REC_WRITE) {
        if (!is_known(c, p, cell[S], lane)) report_conflict(c, p, lane, cell[S], k, "");
        if (!cell[R]) cell[R] = entry_of_lane(c, lane);
        return;
    }
    if (cell[R] == entry_of_lane(c, lane) || cell[S] & CROSS) return;
    if (!cell[R]) cell[R] = entry_of_lane(c, lane);
    else add_reader(c, p, cell, lane);
}

/* Whether another lane of the same instruction has just written here. */
static bool is_overlapping_lane(const access *c, uint32_t lane, uint32_t other)
{
    return other < lane && c->mask >> other & 1 && c->at[other] < c->at[lane] + c->bytes
           && c->at[lane] < c->at[other] + c->bytes;
}

static void check_same_store(access *c, page *p, uint32_t lane, uint32_t entry, uint32_t k)
{
    uint8_t a[64], b[64];
    uint32_t other = entry & ENTRY_LANE;
    if (c->flags & REC_STRONG || c->at[other] != c->at[lane]) return;
    bool are_known = stored_bytes(c, lane, a) && stored_bytes(c, other, b);
    if (are_known && (sim_option.race_strict || memcmp(a, b, c->bytes)))
        report_conflict(c, p, lane, entry, k, ", in the same instruction");
}

/* The thread's own plain read before this atomic. A compare-and-swap clears it as a guess (true); any other atomic
 * makes it FIRM. */
static bool settle_own_guess(const access *c, const page *p, uint32_t *cell, uint32_t part)
{
    const uint32_t R = PAGE >> p->shift;
    if (p->records[cell[part] >> 5 & 0xffff].flags) return false;
    if (c->ins->fn != sim_atom || c->ins->op != A_CAS) cell[part] |= FIRM;
    if (cell[part] & FIRM) return false;
    cell[part] = 0;
    cell[2 * R] &= ~CROSS;
    return true;
}

static inline void write_cell(access *c, page *p, uint32_t *cell, uint32_t lane, uint32_t k)
{
    const uint32_t R = PAGE >> p->shift;
    uint32_t e = cell[0];
    if (e && e != entry_of_lane(c, lane)) {
        if (e >> 5 == c->me && is_overlapping_lane(c, lane, e & ENTRY_LANE)) check_same_store(c, p, lane, e, k);
        else if (!is_known(c, p, e, lane) && !both_strong(c, p, e)
                 && ((c->flags | p->records[e >> 5 & 0xffff].flags) & REC_STRONG
                     || !same_value(c, lane, k << p->shift, 1u << p->shift)))
            report_conflict(c, p, lane, e, k, "");
    }
    for (uint32_t n = 1; n < 3; n++) {
        e = cell[n * R];
        if (!e) continue;
        if (SIM_UNLIKELY(c->flags & REC_ATOMIC) && is_own_entry(c, p, e, lane)) {
            if (settle_own_guess(c, p, cell, n * R)) continue;
            e = cell[n * R];
        }
        if (!is_known(c, p, e, lane) && !both_strong(c, p, e)) report_conflict(c, p, lane, e, k, "");
        cell[n * R] = c->flags & REC_STRONG && outlives_strong_write(c, p, e) ? e & ~CROSS : 0;
    }
    if (c->flags & REC_STRONG && cell[0] && outlives_strong_write(c, p, cell[0])) cell[2 * R] = cell[0];
    cell[0] = entry_of_lane(c, lane);
}

/* --- a full warp with consecutive addresses --------------------------------------------------- */

enum { ALL_NONE, ALL_KNOWN, ALL_UNKNOWN, ALL_CROSS, ALL_MIXED };

/* n cells that the lanes from `first` on access, 1 << step cells each. */
typedef struct row { uint32_t *cells, n, first, step; } row;

/* What the cells of a row (part 0: their writes, 1, 2: their reads) have in common. */
static int common_entry(access *c, const page *p, const row *x, uint32_t part, uint32_t *record_index)
{
    const uint32_t *cells = x->cells + part * (PAGE >> p->shift), first = x->first, step = x->step;
    uint32_t any = 0, different = 0, cross = CROSS, head = (cells[0] & ~CROSS) - first;
    if (x->n == 32) {                                         /* a loop that compilers vectorise */
        for (uint32_t k = 0; k < 32; k++) {
            any |= cells[k];
            cross &= cells[k];
            different |= ((cells[k] & ~CROSS) - (first + (k >> step))) ^ head;
        }
    } else {
        for (uint32_t k = 0; k < x->n; k++) {
            any |= cells[k];
            cross &= cells[k];
            different |= ((cells[k] & ~CROSS) - (first + (k >> step))) ^ head;
        }
    }
    if (!any) return ALL_NONE;
    if (cross) return ALL_CROSS;
    if (different || head & ENTRY_LANE) return ALL_MIXED;
    *record_index = head >> 5;
    if (!is_known(c, p, head | first, first)) return ALL_UNKNOWN;
    return c->seen[head >> 5 & 7].what == SEEN_UNKNOWN ? ALL_MIXED : ALL_KNOWN; /* known by clocks: lane by lane */
}

static void write_entries(const access *c, const page *p, const row *x, uint32_t part)
{
    uint32_t *cells = x->cells + part * (PAGE >> p->shift), me = c->me << 5 | x->first, step = x->step;
    if (x->n == 32) for (uint32_t k = 0; k < 32; k++) cells[k] = me + (k >> step);
    else for (uint32_t k = 0; k < x->n; k++) cells[k] = me + (k >> step);
}

static void clear(const page *p, const row *x, uint32_t part)
{
    memset(x->cells + part * (PAGE >> p->shift), 0, x->n * sizeof *x->cells);
}

/* True: the row is done; else its cells are processed one by one. */
static bool read_row(access *c, page *p, const row *x)
{
    uint32_t wi = 0, ri = 0, si = 0;
    int write = common_entry(c, p, x, 0, &wi), r, s;
    if (write && SIM_UNLIKELY(c->ins->x & X_NC)) return false;
    if (write > ALL_KNOWN) return false;
    r = common_entry(c, p, x, 1, &ri);
    if (r == ALL_MIXED || r == ALL_CROSS) return false;
    s = common_entry(c, p, x, 2, &si);
    if (write == ALL_NONE && s == ALL_CROSS) return true;
    if (s == ALL_MIXED || s == ALL_CROSS) return false;
    const sim_record *a = &p->records[ri], *b = &p->records[si];
    if (s && b->flags & REC_WRITE) return false;              /* a write that stays() kept */
    if (r <= ALL_KNOWN && s <= ALL_KNOWN) {
        if (!(r == ALL_KNOWN && ri == c->me)) write_entries(c, p, x, 1);
        if (s) clear(p, x, 2);
        return true;
    }
    if (r != ALL_UNKNOWN || (a->flags | c->flags) & REC_STRONG || a->block != c->b->index) return false;
    if (s == ALL_NONE) { write_entries(c, p, x, 2); return true; }
    return !(b->flags & REC_STRONG) && b->block == a->block && b->warp != a->warp
           && (s == ALL_UNKNOWN || si == c->me);
}

static bool write_row(access *c, page *p, const row *x)
{
    uint32_t index;
    int s[3];
    for (uint32_t n = 0; n < 3; n++) if ((s[n] = common_entry(c, p, x, n, &index)) > ALL_KNOWN) return false;
    write_entries(c, p, x, 0);
    for (uint32_t n = 1; n < 3; n++) if (s[n]) clear(p, x, n);
    return true;
}

/* Updates p->common: the 32-byte pieces that two blocks have read and none has written. Holds the page's lock. */
static void update_read_by_all(const access *c, page *p, uint32_t offset, uint32_t bytes)
{
    uint32_t now = atomic_load_explicit(&p->common, memory_order_relaxed), next = now, each = 32u >> p->shift;
    const uint32_t *cells = atomic_load_explicit(&p->cells, memory_order_relaxed), R = PAGE >> p->shift;
    if (p->shared) return;
    for (uint32_t n = offset >> 5; n <= (offset + bytes - 1) >> 5; n++) {
        uint32_t first = n * each, writes = 0, crossed = cells[2 * R + first] & CROSS;
        if (c->flags & REC_WRITE) crossed = 0;
        for (uint32_t k = first; crossed && k < first + each; k++) {
            writes |= cells[k];
            crossed &= cells[2 * R + k];
        }
        next = crossed && !writes ? next | 1u << n : next & ~(1u << n);
    }
    if (next != now) atomic_store_explicit(&p->common, next, memory_order_release);
}

/* Consecutive lanes within one page, in rows of at most 32 cells. */
static void touch_lanes(access *c, page *p, uint32_t offset, uint32_t lane, uint32_t lanes)
{
    uint32_t step = c->bytes == 4 ? 0 : c->bytes == 8 ? 1 : 2, count = lanes << step, k = offset >> 2,
             bytes = count * 4;
    uint32_t *cells = atomic_load_explicit(&p->cells, memory_order_relaxed);
    while (count) {
        row x = { cells + k, count < 32 ? count : 32, lane, step };
        bool done = c->flags & REC_WRITE ? write_row(c, p, &x) : read_row(c, p, &x);
        for (uint32_t n = 0; n < x.n && !done; n++) {
            if (c->flags & REC_WRITE) write_cell(c, p, x.cells + n, lane + (n >> step), k + n);
            else read_cell(c, p, x.cells + n, lane + (n >> step), k + n);
        }
        count -= x.n;
        k += x.n;
        lane += x.n >> step;
    }
    update_read_by_all(c, p, offset, bytes);
}

/* --- accesses --------------------------------------------------------------------------------- */

/* Whether the access is recorded. What wgmma and tcgen05 read, and what bulk copies access, is only checked against
 * earlier accesses: later ones must know of the wait, not of the issue (operands.c, bulk.c). */
static bool is_recorded(const sim_ins *i)
{
    return i->fn != sim_wgmma && i->fn != sim_tcgen05_mma && i->fn != sim_tcgen05_cp && i->fn != sim_bulk
           && i->fn != sim_bulk_tensor && i->fn != sim_store_async;
}

static void check_page(access *c, page *p, uint32_t lane, uint32_t offset, uint32_t bytes)
{
    const uint32_t *cells = atomic_load_explicit(&p->cells, memory_order_relaxed), R = PAGE >> p->shift;
    for (uint32_t k = offset >> p->shift; k <= (offset + bytes - 1) >> p->shift; k++)
        for (uint32_t part = 0; part < (c->flags & REC_WRITE ? 3u : 1u); part++) {
            uint32_t entry = cells[part * R + k];
            if (entry && !is_known(c, p, entry, lane)) report_conflict(c, p, lane, entry, k, "");
        }
}

static void access_page(access *c, page *p, uint32_t lane, uint32_t offset, uint32_t bytes)
{
    uint32_t low = offset | bytes;
    if (SIM_UNLIKELY(low & ((1u << p->shift) - 1)) && !split_cells(p, low & 1 ? 0 : 1)) return;
    uint32_t *cells = atomic_load_explicit(&p->cells, memory_order_relaxed);
    uint32_t end = (offset + bytes) >> p->shift;
    if (c->flags & REC_WRITE)
        for (uint32_t k = offset >> p->shift; k < end; k++) write_cell(c, p, cells + k, lane, k);
    else for (uint32_t k = offset >> p->shift; k < end; k++) read_cell(c, p, cells + k, lane, k);
    update_read_by_all(c, p, offset, bytes);
}

/* Whether two blocks have read the bytes already and none has written them: the read adds nothing. Without the
 * page's lock: a value that was true a moment ago will do, for any writer conflicts with one of the two readers. */
static bool read_by_all(page *p, uint32_t offset, uint32_t bytes)
{
    uint32_t first = offset >> 5, last = (offset + bytes - 1) >> 5,
             all = (SIM_FULL >> (31 - last)) & (SIM_FULL << first);
    return (atomic_load_explicit(&p->common, memory_order_acquire) & all) == all;
}

void sim_race_access(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner,
                     sim_allocation *a, uint32_t bytes, uint32_t flags, bool side_by_side)
{
    struct sim_race_block *b = w->block->race;
    sim_space space = owner ? SP_SHARED : SP_GLOBAL;
    uint64_t base = owner ? owner->shared_lo : a->base, here = UINT64_MAX;
    page *p = NULL;
    access c = { .w = w, .ins = i, .b = b, .owner = owner, .at = at, .space = space, .mask = m,
                 .bytes = bytes, .flags = flags, .warp = w->index };
    c.clocks = w->kernel->clocks || b->known || b->clock || b->w[w->index].lanes || b->w[w->index].lane
               || b->w[w->index].clock;
    bool shareable = !(flags & (REC_WRITE | REC_STRONG)) && space != SP_SHARED && !w->kernel->clocks;
    side_by_side &= bytes == 4 || bytes == 8 || bytes == 16;
    if (i->x & X_GUESS && i->fn == sim_ld) c.flags |= REC_STRONG | REC_WIDE;
    SIM_EACH_LANE(lane, m) {
        uint64_t offset = at[lane] - base, end = offset + bytes;
        while (offset < end) {
            uint32_t n = (uint32_t)(end - offset), in = (uint32_t)offset & (PAGE - 1);
            if (n > PAGE - in) n = PAGE - in;
            uint32_t lanes = side_by_side ? (PAGE - in) / bytes : 1; /* lanes in this page */
            if (lanes > SIM_LANES - lane) lanes = SIM_LANES - lane;
            bool together = side_by_side && lanes;
            if (offset >> PAGE_SHIFT != here) {
                if (p) unlock_page(&c, p);
                here = offset >> PAGE_SHIFT;
                p = owner ? shared_page(owner->race, offset) : global_page(a, offset);
                if (!p) {
                    if (!owner) atomic_store(&races.undo, false);
                    return;
                }
                c.host = (owner ? owner->shared : a->host) + (offset - in);
                c.base = base + offset - in;
                c.me = 0;
                if (shareable && read_by_all(p, in, together ? lanes * bytes : n)) {
                    here = UINT64_MAX;
                    p = NULL;
                    if (together) { left_ &= SIM_FULL << (lane + lanes - 1); break; }
                    goto next;
                }
                lock_page(&c, p);
                if (!owner && races.threads && flags & REC_WRITE
                    && atomic_load_explicit(&races.undo, memory_order_relaxed))
                    save_page(p, a, offset - in);
                memset(c.seen, 0, sizeof c.seen);
            }
            if (!c.me && !(c.me = record(&c, p))) { unlock_page(&c, p); return; }
            if (together && p->shift == 2) {
                touch_lanes(&c, p, in, lane, lanes);
                left_ &= SIM_FULL << (lane + lanes - 1);      /* SIM_EACH_LANE clears the last one */
                break;
            }
            if (SIM_UNLIKELY(!is_recorded(i))) check_page(&c, p, lane, in, n);
            else access_page(&c, p, lane, in, n);
next:
            offset += n;
        }
    }
    if (p) unlock_page(&c, p);
    if (flags & REC_ATOMIC && i->fn == sim_atom) sim_guess_settle(w, i, m, at, owner, bytes);
}

/* --- launches and blocks ---------------------------------------------------------------------- */

/* Finds whether clocks are needed, and the loads that guess for a compare-and-swap. */
void sim_race_prepare(sim_kernel *k)
{
    k->clocks = sim_order_uses_clocks(k);
    for (uint32_t n = 0; n < k->code_count; n++) {
        const sim_ins *cas = &k->code[n];
        if (cas->fn != sim_atom || cas->op != A_CAS) continue;
        for (uint32_t j = 0; j < n; j++) {                    /* a load after it is no guess for it */
            sim_ins *i = &k->code[j];
            if (i->fn == sim_ld && i->a == cas->a && i->imm == cas->imm && i->size == cas->size)
                i->x |= X_GUESS;
        }
    }
}

void sim_race_launch_begin(sim_launch *l, uint32_t workers)
{
    /* One thread alone may read texels that it has written itself: see stale(). */
    l->races = sim_option.races && (l->threads > 1 || l->block_count > 1 || l->kernel->surface_stores);
    races.threads = workers > 1;
    atomic_store(&races.again, false);
    atomic_store(&races.undo, l->races && workers > 1 && can_be_undone(l));
}

enum { POOL_LIMIT = 8192 };

/* True: memory is as before the launch, which has to run again. */
bool sim_race_launch_end(sim_launch *l)
{
    if (!l->races) return false;
    sim_guess_launch_end(l);
    bool again = atomic_load(&races.again);
    if (again && !atomic_load(&races.undo)) {
        again = false;
        atomic_store(&l->error, 2);
    }
    for (page *p = races.touched, *next; p; p = next) {
        next = p->next;
        atomic_store(p->home, NULL);
        if (again) restore_page(p);
        if (races.pooled < POOL_LIMIT) { p->next = races.pool; races.pool = p; races.pooled++; }
        else free_page(p);
    }
    races.touched = NULL;
    races.count = 0;
    sim_order_launch_end();
    return again;
}

bool sim_race_block_begin(sim_block *block, uint64_t index)
{
    if (!block->launch->races) return true;
    struct sim_race_block *b = block->race;
    uint32_t warps = block->warp_count, n = (block->shared_hi - block->shared_lo + PAGE - 1) >> PAGE_SHIFT;
    if (!b && !(b = block->race = calloc(1, sizeof *b))) return false;
    if (warps > b->capacity) {
        sim_warp_order *grown = realloc(b->w, warps * sizeof *grown);
        if (!grown) return false;
        memset(grown + b->capacity, 0, (warps - b->capacity) * sizeof *grown);
        b->w = grown;
        b->capacity = warps;
    }
    if (n > b->page_count) {
        struct sim_race_page **grown = realloc(b->pages, n * sizeof *grown);
        if (!grown) return false;
        memset(grown + b->page_count, 0, (n - b->page_count) * sizeof *grown);
        b->pages = grown;
        b->page_count = n;
    }
    b->serial = atomic_fetch_add(&races.serial, 1) + 1;
    sim_order_block_begin(b, index, warps);
    return true;
}

void sim_race_block_free(sim_block *block)
{
    struct sim_race_block *b = block->race;
    if (!b) return;
    for (uint32_t n = 0; n < b->page_count; n++) if (b->pages[n]) free_page(b->pages[n]);
    free(b->pages);
    sim_order_block_free(b);
    free(b);
    block->race = NULL;
}

void sim_race_shutdown(void)
{
    for (page *p; (p = races.pool);) { races.pool = p->next; free_page(p); }
}
