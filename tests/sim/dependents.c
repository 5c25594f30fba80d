/* dependents.c - programmatic dependent launch: griddepcontrol.
 *
 * Kernels run one after another here. On a chip a kernel launched with the attribute for it may begin as
 * soon as every block of the kernel before it has executed griddepcontrol.launch_dependents or ended; what it
 * accesses before griddepcontrol.wait, the other kernel may still be using. So a kernel that executes
 * launch_dependents keeps a record of its accesses (who, by word and kind), and those of its dependent are
 * compared with it: `dependent-race`.
 *
 * A kernel that does not wait may end before the one before it has; so kernels still in flight are passed on:
 * `early` are those that may run when a kernel begins, `late` those that may run after its wait. A thread is behind
 * the wait if it has executed it, or if it is ordered after a thread of its cluster that has.
 *
 * ld.global.nc may only read memory that nothing writes during the whole kernel, which began before the wait: bytes
 * that a kernel of `early` writes must not be read with .nc after the wait either (`nc-written`). */
#include "async.h"
#include "dependents.h"
#include "driver.h"
#include "race.h"

enum {
    PAGE_SHIFT = 10,
    WORDS = 1 << (PAGE_SHIFT - 2),
    BUCKETS = 1024,
    MOST_PAGES = 8192,
    RECENT = 32,
    MOST_FLIGHT = 8
};

typedef struct word { /* by sim_access: the first accessor by block, thread, pc */
    uint64_t block[3];
    uint32_t thread[3], pc[3];
    uint8_t bytes[3];
} word;
typedef struct page {
    struct page *next;
    uint64_t number;
    word w[WORDS];
} page;

typedef struct sim_grid {
    unsigned references;
    uint32_t stream;
    uint64_t seq;
    char label[160];
    uint32_t grid[3], block[3];
    atomic_bool triggered, waited, safe; /* safe: a block waited, and before that did not launch dependents */
    bool keeps;
    pthread_mutex_t lock;
    page *buckets[BUCKETS];
    uint32_t page_count, code_count, skip; /* skip: mask of the pages left out */
    char **text; /* by pc: lines of instructions that are in a page */
    struct sim_grid *early[MOST_FLIGHT], *late[MOST_FLIGHT];
    uint32_t early_count, late_count;
} sim_grid;

static sim_grid *recent[RECENT];
static uint32_t recent_at;

/* --- the record of accesses -------------------------------------------------------------------- */

static void forget_pages(sim_grid *g) {
    for (uint32_t n = 0; n < BUCKETS; n++)
        for (page *p; (p = g->buckets[n]);) {
            g->buckets[n] = p->next;
            free(p);
        }
    g->page_count = g->skip = 0;
}

/* With too many pages only one in 2, 4, 8 ... is kept, chosen by number, so independent of the order of accesses. */
static bool leaves_out(const sim_grid *g, uint64_t number) {
    return number * UINT64_C(0x9e3779b97f4a7c15) >> 40 & g->skip;
}

static void sample_fewer_pages(sim_grid *g) {
    g->skip = g->skip * 2 + 1;
    for (uint32_t n = 0; n < BUCKETS; n++)
        for (page **at = &g->buckets[n], *p; (p = *at);) {
            if (!leaves_out(g, p->number)) {
                at = &p->next;
                continue;
            }
            *at = p->next;
            free(p);
            g->page_count--;
        }
}

static void drop(sim_grid *g);

/* Drops the kernels in flight beside g, which no later kernel can ask for. */
static void drop_concurrent(sim_grid *g) {
    for (uint32_t n = 0; n < g->early_count; n++) drop(g->early[n]);
    for (uint32_t n = 0; n < g->late_count; n++) drop(g->late[n]);
    g->early_count = g->late_count = 0;
}

static void drop(sim_grid *g) {
    if (!g || --g->references) return;
    drop_concurrent(g);
    for (uint32_t n = 0; g->text && n < g->code_count; n++) free(g->text[n]);
    free(g->text);
    forget_pages(g);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static void add(sim_grid **list, uint32_t *count, sim_grid *g) {
    if (*count == MOST_FLIGHT) return;
    g->references++;
    list[(*count)++] = g;
}

static page *page_of(sim_grid *g, uint64_t number, bool make) {
    page **head = &g->buckets[number % BUCKETS], *p = *head;
    while (p && p->number != number) p = p->next;
    if (p || !make) return p;
    while (g->page_count == MOST_PAGES && !leaves_out(g, number)) sample_fewer_pages(g);
    if (leaves_out(g, number) || !(p = calloc(1, sizeof *p))) return NULL;
    p->number = number;
    p->next = *head;
    *head = p;
    g->page_count++;
    return p;
}

static bool comes_first(const word *x, int access, uint64_t block, uint32_t thread, uint32_t pc) {
    if (block != x->block[access]) return block < x->block[access];
    return thread != x->thread[access] ? thread < x->thread[access] : pc < x->pc[access];
}

static void note(sim_grid *g, const sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address,
                 uint32_t bytes, int access) {
    uint64_t block = sim_block_index(w->block), end = address + bytes;
    uint32_t thread = sim_thread_of(w, lane), pc = (uint32_t)(i - w->kernel->code);
    for (uint64_t at = address & ~UINT64_C(3); at < end; at += 4) {
        page *p = page_of(g, at >> PAGE_SHIFT, true);
        if (!p) continue;
        word *x = &p->w[at >> 2 & (WORDS - 1)];
        uint32_t first = at < address ? (uint32_t)(address - at) : 0,
                 past = end - at < 4 ? (uint32_t)(end - at) : 4;
        if (!x->bytes[access] || comes_first(x, access, block, thread, pc)) {
            x->block[access] = block;
            x->thread[access] = thread;
            x->pc[access] = pc;
        }
        x->bytes[access] |= (uint8_t)((1u << past) - (1u << first));
    }
}

/* --- comparing accesses with a record ----------------------------------------------------------- */

static const char *const verbs[] = {"reads", "writes", "updates"};

enum { NO_REPORT, REPORT, REPORT_PAST_WAIT, REPORT_READ_ONLY_LOAD };

static void report_access(const sim_grid *g, sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address,
                          int access, const word *x, int other, int how) {
    char where[200];
    uint64_t b = x->block[other];
    uint32_t t = x->thread[other];
    const uint32_t *n = g->grid, *m = g->block;
    sim_memory_describe(address, 1, where, sizeof where);
    sim_report_at(w, i, how == REPORT_READ_ONLY_LOAD ? "nc-written" : "dependent-race", lane,
                  "%s global address 0x%llx (%s), which %s %s at line %s by block (%llu,%llu,%llu), thread "
                  "(%u,%u,%u); %s",
                  verbs[access], (unsigned long long)address, where, g->label, verbs[other],
                  g->text && g->text[x->pc[other]] ? g->text[x->pc[other]] : "?",
                  (unsigned long long)(b % n[0]), (unsigned long long)(b / n[0] % n[1]),
                  (unsigned long long)(b / n[0] / n[1]), t % m[0], t / m[0] % m[1], t / (m[0] * m[1]),
                  how == REPORT_READ_ONLY_LOAD
                      ? "it may still have run when this kernel began, so .nc may give what was there before"
                  : how == REPORT_PAST_WAIT ? "it may still run, for the kernel between them did not wait for it"
                                       : "it may still run, for no griddepcontrol.wait comes before this");
}

static bool compare(sim_grid *g, sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address,
                    uint32_t bytes, int access, int how) {
    uint64_t end = address + bytes;
    for (uint64_t at = address & ~UINT64_C(3); at < end; at += 4) {
        const page *p = page_of(g, at >> PAGE_SHIFT, false);
        if (!p) continue;
        const word *x = &p->w[at >> 2 & (WORDS - 1)];
        uint32_t first = at < address ? (uint32_t)(address - at) : 0,
                 past = end - at < 4 ? (uint32_t)(end - at) : 4;
        for (int other = SIM_UPDATE; other >= SIM_READ; other--) {
            if (!(x->bytes[other] & ((1u << past) - (1u << first))) || !sim_accesses_conflict(access, other)) continue;
            if (how != NO_REPORT) report_access(g, w, i, lane, at + first, access, x, other, how);
            return true;
        }
    }
    return false;
}

/* Lanes of m that are behind a griddepcontrol.wait: their own, or one in their cluster that they know of. */
static uint32_t lanes_past_wait(const sim_warp *w, uint32_t m) {
    const sim_cluster *c = w->block->cluster;
    uint32_t done = m & w->grid_waited;
    if (done == m || !w->launch->races) return done;
    for (uint32_t r = 0; r < c->size; r++) {
        const sim_block *b = c->blocks[r];
        for (uint32_t n = 0; n < b->warp_count; n++) {
            const sim_warp *other = &b->warps[n];
            if (!other->grid_waited) continue;
            sim_record record = {.block = b->race->index, .era = other->grid_wait_era, .warp = (uint8_t)n};
            SIM_EACH_LANE(l, m & ~done)
            if (sim_order_known_of(w->block->race, w->index, l, &record, other->grid_waited))
                done |= 1u << l;
        }
    }
    return done;
}

void sim_grid_touch(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t bytes,
                    sim_access access) {
    sim_grid *g = w->launch->in_flight;
    SIM_EACH_LANE(l, m) {
        bool early = false; /* those of `late` are in `early` too */
        for (uint32_t n = 0; n < g->early_count && !early; n++)
            early = compare(g->early[n], w, i, l, at[l], bytes, access, NO_REPORT);
        if (!early) continue;
        bool late = lanes_past_wait(w, 1u << l) != 0;
        for (uint32_t n = 0; n < (late ? g->late_count : g->early_count); n++)
            (void)compare(late ? g->late[n] : g->early[n], w, i, l, at[l], bytes, access,
                          late ? REPORT_PAST_WAIT : REPORT);
        for (uint32_t n = 0; late && n < g->early_count && i->x & X_NC && i->cls == C_MEMORY; n++)
            (void)compare(g->early[n], w, i, l, at[l], bytes, access, REPORT_READ_ONLY_LOAD);
    }
    if (!g->keeps) return;
    pthread_mutex_lock(&g->lock);
    SIM_EACH_LANE(l, m) note(g, w, i, l, at[l], bytes, access);
    pthread_mutex_unlock(&g->lock);
}

/* --- the instructions --------------------------------------------------------------------------- */

void sim_griddep_launch(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_grid *g = w->launch->in_flight;
    (void)i;
    if (!g) return;
    atomic_store(&g->triggered, true);
    if (m & ~lanes_past_wait(w, m)) w->grid_unsafe = true;
}

void sim_griddep_wait(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_grid *g = w->launch->in_flight;
    (void)i;
    if (!g) return;
    atomic_store(&g->waited, true);
    if (!w->grid_waited && w->launch->races) w->grid_wait_era = w->block->race->w[w->index].era;
    w->grid_waited |= m;
}

void sim_grid_leave(const sim_block *b) {
    sim_grid *g = b->launch->in_flight;
    bool waited = false, unsafe = false;
    if (!g) return;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        waited |= b->warps[n].grid_waited != 0;
        unsafe |= b->warps[n].grid_unsafe;
    }
    if (waited && !unsafe) atomic_store(&g->safe, true);
}

/* --- launches ----------------------------------------------------------------------------------- */

static sim_grid *find(uint32_t stream, uint64_t seq) {
    for (uint32_t n = 0; n < RECENT && seq; n++)
        if (recent[n] && recent[n]->stream == stream && recent[n]->seq == seq) return recent[n];
    return NULL;
}

/* Sets which kernels may run when the one after `before` begins, and which after its wait. */
static void inherit(sim_grid *g, sim_grid *before) {
    bool early = atomic_load(&before->triggered);
    bool all = early ? !atomic_load(&before->safe) : !atomic_load(&before->waited);
    if (early) add(g->early, &g->early_count, before);
    for (uint32_t n = 0; n < before->early_count; n++) {
        if (all) add(g->early, &g->early_count, before->early[n]);
        if (!atomic_load(&before->waited)) add(g->late, &g->late_count, before->early[n]);
    }
}

void sim_grid_begin(const sim_work *w, sim_launch *l) {
    sim_grid *before = w->programmatic ? find(w->stream->id, w->after) : NULL, *g;
    if (!sim_option.races || (!l->kernel->triggers && !before) || !(g = calloc(1, sizeof *g))) return;
    g->references = 1;
    g->stream = w->stream->id;
    g->seq = w->seq;
    g->keeps = l->kernel->triggers;
    sim_label(w, g->label, sizeof g->label);
    memcpy(g->grid, l->grid, sizeof g->grid);
    memcpy(g->block, l->block, sizeof g->block);
    pthread_mutex_init(&g->lock, NULL);
    if (before) inherit(g, before);
    if (!g->keeps && !g->early_count) {
        drop(g);
        return;
    }
    l->in_flight = g;
    if (!l->touches) l->touches = sim_touches_new();
    if (!l->touches) {
        drop(g);
        l->in_flight = NULL;
    }
}

void sim_grid_attempt(sim_launch *l) {
    sim_grid *g = l->in_flight;
    if (!g) return;
    forget_pages(g);
    atomic_store(&g->triggered, false);
    atomic_store(&g->waited, false);
    atomic_store(&g->safe, false);
}

/* Keeps the text of lines that made accesses: the module may be unloaded when a finding needs them. */
static void keep_text(sim_grid *g, const sim_kernel *k) {
    const sim_module *m = k->module;
    g->text = calloc(k->code_count, sizeof *g->text);
    g->code_count = k->code_count;
    for (uint32_t n = 0; g->text && n < BUCKETS; n++)
        for (const page *p = g->buckets[n]; p; p = p->next)
            for (uint32_t j = 0; j < WORDS * 3; j++) {
                const word *x = &p->w[j / 3];
                uint32_t pc = x->pc[j % 3], number = k->code[pc].line;
                if (!x->bytes[j % 3] || g->text[pc]) continue;
                const char *line = number >= 1 && number <= m->line_count ? m->lines[number - 1] : "";
                line += strspn(line, " \t");
                int length = (int)strcspn(line, "\n");
                size_t room = (size_t)length + 40;
                if ((g->text[pc] = malloc(room)))
                    snprintf(g->text[pc], room, "%u (%.*s)", number, length > 200 ? 200 : length, line);
            }
}

/* No new kernel can directly follow this one. Others may still refer to it, but it drops its own references:
 * otherwise a chain of launches would keep all of them. */
static void retire_grid(uint32_t at) {
    if (recent[at]) drop_concurrent(recent[at]);
    drop(recent[at]);
    recent[at] = NULL;
}

void sim_grid_end(const sim_work *w, sim_launch *l) {
    sim_grid *g = l->in_flight;
    (void)w;
    if (!g) return;
    l->in_flight = NULL;
    if (!atomic_load(&g->triggered))
        forget_pages(g);
    else
        keep_text(g, l->kernel);
    retire_grid(recent_at);
    recent[recent_at] = g;
    recent_at = (recent_at + 1) % RECENT;
    uint32_t pages = 0;
    for (uint32_t n = 1; n <= RECENT; n++) { /* the newest first */
        uint32_t at = (recent_at + RECENT - n) % RECENT;
        if (recent[at]) pages += recent[at]->page_count;
        if (n > 1 && pages > 2 * MOST_PAGES) retire_grid(at);
    }
}

void sim_grids_shutdown(void) {
    for (uint32_t n = 0; n < RECENT; n++) retire_grid(n);
}
