/* cp_async.c - cp.async: the bytes arrive when the thread waits for them, or, with a seed, perhaps at once.
 *
 * A copy waits in the block's list with the contents that its source had at issue; its destination is marked
 * byte by byte. Accesses of marked bytes are reported (`async-read`, or `race` for a write); a source that
 * changed before the wait is a race; a copy that nobody waited for is reported when its thread exits. */
#include "async.h"
#include "race.h"
#include "unwritten.h"

typedef struct copy {
    const sim_ins *ins;
    const uint8_t *from;               /* host address of the source */
    uint64_t address;                  /* of the source */
    sim_allocation *a;                 /* of the source; NULL if nothing is read */
    uint32_t to, thread, group;        /* to: offset in shared memory */
    uint8_t bytes, read;               /* read: bytes from the source, the rest is zero */
    bool reported;
    uint16_t unwritten;                /* a bit for each byte of the source that nothing had written */
    uint8_t held[16];
} copy;

struct sim_async {
    copy *list;
    uint32_t count, capacity, issued;
    uint8_t *marked;                   /* one bit for each byte of shared memory */
    size_t marked_bytes;
    uint32_t *group; uint32_t threads; /* by thread: groups committed */
};

static bool allocate_groups(sim_block *b)
{
    struct sim_async *s = b->async;
    uint32_t threads = b->warp_count * SIM_LANES;
    size_t bytes = (b->shared_hi - b->shared_lo) / 8 + 8;
    if (!s && !(s = b->async = calloc(1, sizeof *s))) return false;
    if (s->marked_bytes < bytes) {
        uint8_t *grown = realloc(s->marked, bytes);
        if (!grown) return false;
        memset(grown + s->marked_bytes, 0, bytes - s->marked_bytes);
        s->marked = grown;
        s->marked_bytes = bytes;
    }
    if (s->threads < threads) {
        uint32_t *grown = realloc(s->group, threads * sizeof *grown);
        if (!grown) return false;
        memset(grown + s->threads, 0, (threads - s->threads) * sizeof *grown);
        s->group = grown;
        s->threads = threads;
    }
    if (s->count == s->capacity) {
        uint32_t wanted = s->capacity ? s->capacity * 2 : 256;
        copy *grown = realloc(s->list, wanted * sizeof *grown);
        if (!grown) return false;
        s->list = grown;
        s->capacity = wanted;
    }
    return true;
}

void sim_async_block_begin(sim_block *b)
{
    struct sim_async *s = b->async;
    if (!s) return;
    if (s->count) memset(s->marked, 0, s->marked_bytes);
    s->count = s->issued = 0;
    memset(s->group, 0, s->threads * sizeof *s->group);
}

void sim_async_block_free(sim_block *b)
{
    struct sim_async *s = b->async;
    if (!s) return;
    free(s->list);
    free(s->marked);
    free(s->group);
    free(s);
    b->async = NULL;
}

bool sim_async_pending(const sim_block *b) { return b->async && b->async->count; }

/* --- issue ------------------------------------------------------------------------------------ */

static void write_bytes(sim_block *b, const copy *c)
{
    memset(b->shared + c->to, 0, c->bytes);
    if (c->read) memcpy(b->shared + c->to, c->from, c->read);
}

/* Issues one thread's copy to offset `to` of shared memory: `read` bytes from `address`, then zeros. */
void sim_async_issue(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t to, sim_allocation *a,
                     uint64_t address, uint32_t read, uint32_t unwritten)
{
    sim_block *b = w->block;
    uint64_t at[SIM_LANES];
    at[lane] = b->shared_lo + to;
    if (sim_async_pending(b)) (void)sim_async_touch(w, i, 1u << lane, at, i->size, true);
    if (b->operands) sim_operands_write(w, i, lane, b, to, i->size);
    if (w->launch->races)
        sim_race_access(w, i, 1u << lane, at, w->block, NULL, i->size, REC_WRITE | REC_ASYNC, false);
    if (w->launch->races && read) {
        at[lane] = address;
        sim_race_access(w, i, 1u << lane, at, NULL, a, read, REC_ASYNC, false);
    }
    if (!allocate_groups(b)) {
        int none = 0;
        w->fault = true;
        atomic_compare_exchange_strong(&w->launch->error, &none, 2);
        return;
    }
    struct sim_async *s = b->async;
    copy *c = &s->list[s->count++];
    *c = (copy){ .ins = i, .address = address, .a = read ? a : NULL, .to = to,
                 .thread = sim_thread_of(w, lane), .bytes = i->size, .read = (uint8_t)read,
                 .unwritten = (uint16_t)unwritten };
    c->group = s->group[c->thread];
    if (read) {
        c->from = a->host + (address - a->base);
        memcpy(c->held, c->from, read);
    }
    sim_shadow_set(s->marked, to, c->bytes);
    if (w->launch->seed && sim_chance(w->launch, sim_block_index(b), c->thread, s->issued++) % 3 == 0)
        write_bytes(b, c);
}

/* --- arrival ---------------------------------------------------------------------------------- */

static void overwritten(sim_warp *w, const copy *c)
{
    char detail[300], where[160];
    sim_memory_describe(c->address, c->read, where, sizeof where);
    snprintf(detail, sizeof detail,
             "the source of this asynchronous copy at global address 0x%llx (%s) was overwritten before the "
             "copy was waited for", (unsigned long long)c->address, where);
    sim_site site = { c->ins, sim_block_index(w->block), c->thread };
    sim_report_pair(w->launch, "race", &site, &site, detail);
}

static void finish_copy(sim_warp *w, copy *c)
{
    sim_block *b = w->block;
    uint64_t at[SIM_LANES];
    uint32_t lane = c->thread % SIM_LANES;
    if (c->read && memcmp(c->held, c->from, c->read) && sim_option.async) overwritten(w, c);
    if (w->launch->races && c->read) {
        at[lane] = c->address;
        sim_race_access(w, c->ins, 1u << lane, at, NULL, c->a, c->read, REC_ASYNC, false);
    }
    if (w->launch->races && !c->reported) {
        at[lane] = b->shared_lo + c->to;
        sim_race_access(w, c->ins, 1u << lane, at, w->block, NULL, c->bytes, REC_WRITE | REC_ASYNC, false);
    }
    write_bytes(b, c);
    sim_changed(w->launch);
    sim_shadow_set(b->shared_shadow, c->to, c->bytes);
    if (c->unwritten) sim_unwritten_arrived(b, c->to, c->read);
    for (uint32_t k = 0; k < c->read && c->unwritten >> k; k++)
        if (c->unwritten >> k & 1) sim_shadow_clear(b->shared_shadow, c->to + k, 1);
    sim_shadow_clear(b->async->marked, c->to, c->bytes);
}

/* The copies of these lanes arrive, except those in each thread's last `newest` groups. */
static void complete_groups(sim_warp *w, uint32_t m, uint32_t newest, bool open_too)
{
    struct sim_async *s = w->block->async;
    uint32_t kept = 0;
    if (!s) return;
    for (uint32_t k = 0; k < s->count; k++) {
        copy *c = &s->list[k];
        uint32_t group = s->group[c->thread];
        bool now = c->thread / SIM_LANES == w->index && m >> c->thread % SIM_LANES & 1
                   && (open_too || (c->group < group && group - c->group > newest));
        if (now) finish_copy(w, c);
        else { if (kept != k) s->list[kept] = *c; kept++; }
    }
    s->count = kept;
}

/* All copies that these lanes have issued arrive (cp.async.mbarrier.arrive). */
void sim_async_finish(sim_warp *w, uint32_t m) { complete_groups(w, m, 0, true); }

void sim_async_group(sim_warp *w, const sim_ins *i, uint32_t m)
{
    struct sim_async *s = w->block->async;
    if (!s || !s->threads) return;
    if (s->threads < w->block->warp_count * SIM_LANES && !allocate_groups(w->block))
        return;                                               /* a larger block than before */
    if (i->op == 0) SIM_EACH_LANE(l, m) s->group[sim_thread_of(w, l)]++;
    else complete_groups(w, m, i->op == 1 ? (uint32_t)i->imm : 0, i->op == 2);
}

void sim_async_exit(sim_warp *w, uint32_t m)
{
    struct sim_async *s = w->block->async;
    for (uint32_t k = 0; k < s->count && sim_option.async; k++) {
        const copy *c = &s->list[k];
        if (c->thread / SIM_LANES == w->index && m >> c->thread % SIM_LANES & 1)
            sim_report_at(w, c->ins, "async-unwaited", c->thread % SIM_LANES,
                          "the thread exits without having waited for this copy");
    }
    complete_groups(w, m, 0, true);
}

/* --- accesses to copies in flight ------------------------------------------------------------- */

static bool any_marked(const uint8_t *marked, uint64_t offset, uint32_t bytes)
{
    for (uint64_t k = offset; k < offset + bytes; k++) if (marked[k >> 3] >> (k & 7) & 1) return true;
    return false;
}

/* Whether some lane accesses a byte whose copy has not been waited for; if so, reports it. */
bool sim_async_touch(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t bytes,
                     bool write) {
    sim_block *b = w->block;
    struct sim_async *s = b->async;
    bool found = false;
    SIM_EACH_LANE(lane, m) {
        uint64_t offset = at[lane] - b->shared_lo;
        if (!any_marked(s->marked, offset, bytes)) continue;
        found = true;
        for (uint32_t k = 0; k < s->count; k++) {
            copy *c = &s->list[k];
            char detail[700], site[420];
            if (c->to >= offset + bytes || offset >= (uint64_t)c->to + c->bytes) continue;
            if (c->reported || !sim_option.async) break;
            c->reported = true;
            sim_site mine = { i, sim_block_index(b), sim_thread_of(w, lane) },
                     theirs = { c->ins, mine.block, c->thread };
            sim_site_text(w->launch, &theirs, site, sizeof site);
            snprintf(detail, sizeof detail,
                     "%s of %u bytes at shared address 0x%llx, where the copy %s has not been waited for",
                     write ? "write" : "read", bytes, (unsigned long long)at[lane], site);
            sim_report_pair(w->launch, write ? "race" : "async-read", &mine, &theirs, detail);
            break;
        }
    }
    return found;
}
