/* profile.c - the profile of each launch: its counters, the distinct bytes it touched, on request the same by PTX
 * line, and an estimate of what bounds it on the chip.
 *
 * A profiled launch has a record; each worker fills a part of its own and adds it to the record when
 * it leaves, so the numbers do not depend on the number of workers. What each instruction did is the
 * growth of the counters until the next instruction. An instruction that counts in ptxsim_counters
 * therefore appears here without code of its own. */
#include "sim.h"
#include <stdarg.h>

enum { PAGE_BITS = 12, PAGE_WORDS = (1 << PAGE_BITS) / 64, MAX_RECORDS = 1 << 16, MAX_LINES = 1 << 18 };

#define FIELD(name) { #name, offsetof(ptxsim_counters, name) }
static const struct { const char *name; size_t offset;
} fields[] = {
    FIELD(blocks), FIELD(warp_instructions), FIELD(thread_instructions), FIELD(warp_integer),
    FIELD(warp_float), FIELD(warp_half), FIELD(warp_double), FIELD(warp_convert), FIELD(warp_move),
    FIELD(warp_control), FIELD(warp_memory), FIELD(warp_special), FIELD(warp_warpwide), FIELD(warp_tensor),
    FIELD(thread_integer), FIELD(thread_float), FIELD(thread_half), FIELD(thread_double),
    FIELD(thread_convert), FIELD(thread_move), FIELD(thread_control), FIELD(thread_memory),
    FIELD(thread_special), FIELD(thread_warpwide), FIELD(thread_tensor), FIELD(global_load_requests),
    FIELD(global_load_bytes), FIELD(global_load_sectors), FIELD(global_store_requests),
    FIELD(global_store_bytes), FIELD(global_store_sectors), FIELD(shared_load_requests),
    FIELD(shared_load_bytes), FIELD(shared_store_requests), FIELD(shared_store_bytes),
    FIELD(shared_wavefronts), FIELD(shared_bank_conflicts), FIELD(local_requests), FIELD(local_bytes),
    FIELD(atomics), FIELD(atomic_operations), FIELD(barriers), FIELD(divergent_branches),
    FIELD(async_copies), FIELD(async_copy_bytes), FIELD(tensor_operations), FIELD(local_sectors)
};
enum { FIELDS = sizeof fields / sizeof *fields };
_Static_assert(FIELDS + 1 == sizeof(ptxsim_counters) / sizeof(uint64_t),
               "a row for every counter but launches");

static uint64_t field(const ptxsim_counters *c, size_t k)
{
    uint64_t v;
    memcpy(&v, (const char *)c + fields[k].offset, sizeof v);
    return v;
}

/* The counters shown for a line, besides issues and lanes. */
#define LINE_FIELDS(X) \
    X(global_requests, global_load_requests + c->global_store_requests) \
    X(global_sectors, global_load_sectors + c->global_store_sectors) \
    X(shared_requests, shared_load_requests + c->shared_store_requests) \
    X(shared_wavefronts, shared_wavefronts) \
    X(shared_bank_conflicts, shared_bank_conflicts) \
    X(local_requests, local_requests) X(local_sectors, local_sectors) X(atomics, atomics) \
    X(divergent_branches, divergent_branches) X(barriers, barriers)
enum {
#define X(name, sum) LINE_##name,
    LINE_FIELDS(X)
#undef X
    LINE_COUNT
};
static const char *const line_names[] = {
#define X(name, sum) #name,
    LINE_FIELDS(X)
#undef X
};

typedef struct line_counts {
    uint64_t issues, lanes, v[LINE_COUNT];
} line_counts;

/* For 4 KiB of device memory: a bit for each byte that was read, and for each that was written. */
typedef struct page {
    uint64_t number, bits[2][PAGE_WORDS];
} page;
typedef struct page_set {
    page **slots;
    size_t capacity, count;
    page *last;
    bool incomplete;
} page_set;

typedef struct sim_profile_part {
    page_set pages;
    line_counts *lines; /* by pc; NULL: not requested */
    uint32_t at;        /* the pc that the growth of the counters is added to */
    uint64_t seen[LINE_COUNT];
} sim_profile_part;

typedef struct line_record {
    uint32_t line;
    char *text;
    line_counts n;
} line_record;

typedef struct sim_profile {
    char *kernel;
    uint64_t number;
    uint32_t grid[3], block[3], static_shared, dynamic_shared, warps;
    ptxsim_counters c;
    page_set pages;
    uint64_t distinct_read, distinct_written, distinct;
    line_counts *lines;
    line_record *line_records;
    uint32_t line_record_count;
    bool lines_dropped;
    uint64_t host_ns;
    int error;
} sim_profile;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the records, and of adding parts */
static sim_profile **records;
static size_t record_count, record_capacity, dropped, line_total;

/* --- distinct bytes --------------------------------------------------------------------------- */

static size_t slot_of(const page_set *s, uint64_t number)
{
    size_t k = (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (s->capacity - 1);
    while (s->slots[k] && s->slots[k]->number != number) k = (k + 1) & (s->capacity - 1);
    return k;
}

static bool grow(page_set *s)
{
    page_set wider = { .capacity = s->capacity ? s->capacity * 2 : 64, .count = s->count };
    if (!(wider.slots = calloc(wider.capacity, sizeof *wider.slots))) return false;
    for (size_t k = 0; k < s->capacity; k++)
        if (s->slots[k]) wider.slots[slot_of(&wider, s->slots[k]->number)] = s->slots[k];
    free(s->slots);
    s->slots = wider.slots;
    s->capacity = wider.capacity;
    return true;
}

/* The slot of the page, or where it belongs; NULL: out of memory. */
static page **page_slot(page_set *s, uint64_t number)
{
    if (s->count * 2 >= s->capacity && !grow(s)) {
        s->incomplete = true;
        return NULL;
    }
    return &s->slots[slot_of(s, number)];
}

static page *page_of(page_set *s, uint64_t number)
{
    if (s->last && s->last->number == number) return s->last;
    page **slot = page_slot(s, number);
    if (!slot) return NULL;
    if (!*slot) {
        if (!(*slot = calloc(1, sizeof **slot))) {
            s->incomplete = true;
            return NULL;
        }
        (*slot)->number = number;
        s->count++;
    }
    return s->last = *slot;
}

static void set_bits(uint64_t *words, uint32_t at, uint32_t n)
{
    while (n) {
        uint32_t bit = at & 63, here = 64 - bit < n ? 64 - bit : n;
        words[at >> 6] |= (here == 64 ? UINT64_MAX : (UINT64_C(1) << here) - 1) << bit;
        at += here;
        n -= here;
    }
}

static void mark_pages(page_set *s, uint64_t address, uint64_t bytes, sim_access access)
{
    while (bytes) {
        uint32_t at = (uint32_t)address & ((1u << PAGE_BITS) - 1), room = (1u << PAGE_BITS) - at,
                 n = bytes < room ? (uint32_t)bytes : room;
        page *p = page_of(s, address >> PAGE_BITS);
        if (!p) return;
        if (access != SIM_WRITE) set_bits(p->bits[0], at, n);
        if (access != SIM_READ) set_bits(p->bits[1], at, n);
        address += n;
        bytes -= n;
    }
}

void sim_profile_touch(sim_profile_part *p, const uint64_t *at, uint32_t mask, uint32_t bytes,
                       bool contiguous, sim_access access)
{
    if (contiguous)
        mark_pages(&p->pages, at[0], (uint64_t)bytes * SIM_LANES, access);
    else
        SIM_EACH_LANE(l, mask) mark_pages(&p->pages, at[l], bytes, access);
}

static void free_pages(page_set *s)
{
    for (size_t k = 0; k < s->capacity; k++) free(s->slots[k]);
    free(s->slots);
    memset(s, 0, sizeof *s);
}

/* Moves the pages of `from` into `to`. */
static void join_pages(page_set *to, page_set *from)
{
    to->incomplete |= from->incomplete;
    for (size_t k = 0; k < from->capacity; k++) {
        page *p = from->slots[k], **slot;
        if (!p || !(slot = page_slot(to, p->number))) continue;
        if (!*slot) {
            *slot = p;
            from->slots[k] = NULL;
            to->count++;
            continue;
        }
        for (int n = 0; n < 2 * PAGE_WORDS; n++)
            (*slot)->bits[n / PAGE_WORDS][n % PAGE_WORDS] |= p->bits[n / PAGE_WORDS][n % PAGE_WORDS];
    }
    free_pages(from);
}

static uint64_t bits_set(uint64_t v) { return sim_popcount((uint32_t)v) + sim_popcount((uint32_t)(v >> 32)); }

static void count_pages(sim_profile *r)
{
    for (size_t k = 0; k < r->pages.capacity; k++) {
        const page *p = r->pages.slots[k];
        for (int n = 0; p && n < PAGE_WORDS; n++) {
            r->distinct_read += bits_set(p->bits[0][n]);
            r->distinct_written += bits_set(p->bits[1][n]);
            r->distinct += bits_set(p->bits[0][n] | p->bits[1][n]);
        }
    }
}

/* --- by line ---------------------------------------------------------------------------------- */

static void snapshot(const ptxsim_counters *c, uint64_t v[LINE_COUNT])
{
#define X(name, sum) v[LINE_##name] = c->sum;
    LINE_FIELDS(X)
#undef X
}

static void add_counts_to_line(sim_profile_part *p, const ptxsim_counters *c)
{
    uint64_t now[LINE_COUNT];
    snapshot(c, now);
    for (int k = 0; k < LINE_COUNT; k++) p->lines[p->at].v[k] += now[k] - p->seen[k];
    memcpy(p->seen, now, sizeof now);
}

void sim_profile_line(sim_worker *w, uint32_t pc, bool counts, uint32_t mask)
{
    sim_profile_part *p = w->profile;
    if (!p || !p->lines) return;
    add_counts_to_line(p, &w->counts.c);
    p->at = pc;
    if (!counts) return;
    p->lines[pc].issues++;
    p->lines[pc].lanes += sim_popcount(mask);
}

static char *line_text(const sim_module *m, uint32_t line)
{
    const char *text = line >= 1 && line <= m->line_count ? m->lines[line - 1] : "";
    while (*text == ' ' || *text == '\t') text++;
    size_t n = strcspn(text, "\r\n");
    char *copy = malloc(n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

/* Adds up the code of each line: a line may have several instructions, and an inlined one several places. */
static void store_line_counts(sim_profile *r, const sim_kernel *k)
{
    uint32_t count = k->module->line_count + 1, used = 0;
    line_counts *by_line = calloc(count, sizeof *by_line);
    for (uint32_t n = 0; by_line && n < k->code_count; n++) {
        const uint64_t *from = &r->lines[n].issues;
        uint64_t *to = &by_line[k->code[n].line < count ? k->code[n].line : 0].issues;
        for (size_t f = 0; f < sizeof *by_line / sizeof *to; f++) to[f] += from[f];
    }
    for (uint32_t n = 0; by_line && n < count; n++) used += by_line[n].issues != 0;
    if (line_total + used > MAX_LINES || !(r->line_records = calloc(used + 1, sizeof *r->line_records))) used = 0;
    r->lines_dropped = !used;
    for (uint32_t n = 0; used && n < count; n++) {
        if (!by_line[n].issues) continue;
        line_record *t = &r->line_records[r->line_record_count++];
        t->line = n;
        t->n = by_line[n];
        t->text = line_text(k->module, n);
    }
    line_total += r->line_record_count;
    free(by_line);
    free(r->lines);
    r->lines = NULL;
}

/* --- records ---------------------------------------------------------------------------------- */

static void free_record(sim_profile *r)
{
    for (uint32_t k = 0; k < r->line_record_count; k++) free(r->line_records[k].text);
    free(r->line_records);
    free(r->lines);
    free(r->kernel);
    free_pages(&r->pages);
    free(r);
}

void sim_profile_begin(sim_launch *l)
{
    const sim_kernel *k = l->kernel;
    l->profile = NULL;
    l->profile_lines = false;
    if (!sim_option.profile) return;
    sim_profile *r = calloc(1, sizeof *r);
    if (!r || !(r->kernel = strdup(k->function->name))) {
        free(r);
        return;
    }
    if (sim_option.profile > 1) r->lines = calloc(k->code_count + 1, sizeof *r->lines);
    memcpy(r->grid, l->grid, sizeof r->grid);
    memcpy(r->block, l->block, sizeof r->block);
    r->static_shared = k->static_shared;
    r->dynamic_shared = l->dynamic_shared;
    r->warps = l->warps;
    r->number = l->launch_serial;
    r->host_ns = sim_now_ns();
    l->profile = r;
    l->profile_lines = r->lines != NULL;
}

void sim_profile_join(sim_worker *w, sim_launch *l)
{
    if (!(w->profile = calloc(1, sizeof *w->profile))) return;
    if (l->profile_lines) w->profile->lines = calloc(l->kernel->code_count + 1, sizeof *w->profile->lines);
    snapshot(&w->counts.c, w->profile->seen);
}

void sim_profile_leave(sim_worker *w, sim_launch *l)
{
    sim_profile *r = l->profile;
    sim_profile_part *p = w->profile;
    pthread_mutex_lock(&lock);
    sim_count_add(&r->c, &w->counts);
    if (!p)
        r->pages.incomplete = true;
    else {
        join_pages(&r->pages, &p->pages);
        if (p->lines) {
            add_counts_to_line(p, &w->counts.c);
            for (uint32_t k = 0; k < l->kernel->code_count; k++) {
                const uint64_t *from = &p->lines[k].issues;
                uint64_t *to = &r->lines[k].issues;
                for (size_t f = 0; f < sizeof *p->lines / sizeof *to; f++) to[f] += from[f];
            }
        }
        free(p->lines);
        free(p);
    }
    w->profile = NULL;
    pthread_mutex_unlock(&lock);
}

void sim_profile_end(sim_launch *l)
{
    sim_profile *r = l->profile;
    r->host_ns = sim_now_ns() - r->host_ns;
    r->error = atomic_load(&l->error);
    count_pages(r);
    pthread_mutex_lock(&lock);
    if (r->lines) store_line_counts(r, l->kernel);
    if (record_count == record_capacity && record_count < MAX_RECORDS) {
        size_t wanted = record_capacity ? record_capacity * 2 : 64;
        sim_profile **grown = realloc(records, wanted * sizeof(sim_profile *));
        if (grown) {
            records = grown;
            record_capacity = wanted;
        }
    }
    if (record_count < record_capacity) {
        bool incomplete = r->pages.incomplete;
        free_pages(&r->pages);
        r->pages.incomplete = incomplete;
        records[record_count++] = r;
    } else {
        dropped++;
        free_record(r);
    }
    pthread_mutex_unlock(&lock);
    l->profile = NULL;
}

SIM_EXPORT void ptxsim_profile_clear(void)
{
    pthread_mutex_lock(&lock);
    for (size_t k = 0; k < record_count; k++) free_record(records[k]);
    free(records);
    records = NULL;
    record_count = record_capacity = dropped = line_total = 0;
    pthread_mutex_unlock(&lock);
}

/* --- the estimate ----------------------------------------------------------------------------- */

typedef struct bound {
    const char *name;
    double ns;
} bound;
enum { BOUNDS = 10 };

/* The least time in ns that each part of the chip needs if it alone were the limit. Launch overhead,
 * latency and idle SMs in the last wave are not considered. */
static int estimate(const sim_profile *r, bound *b)
{
    const sim_device *d = sim_the_device();
    const sim_rates *t = &d->rates;
    const ptxsim_counters *c = &r->c;
    uint64_t blocks = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2],
             sms = blocks < d->sm_count ? blocks : d->sm_count;
    double clocks = (double)sms * d->clock_khz * 1e-6; /* clocks in a nanosecond, of all SMs with work */
    double memory = 2e-6 * d->memory_clock_khz * d->bus_bits / 8; /* bytes in a nanosecond */
    double sectors = 32.0 * (double)(c->global_load_sectors + c->global_store_sectors + c->local_sectors);
    int n = 0;
    b[n++] = (bound) { "device memory, each distinct byte once",
                       (double)(r->distinct_read + r->distinct_written) / memory };
    b[n++] = (bound) { "sectors between SMs and L2", sectors / (clocks * t->l2_bytes) };
    b[n++] = (bound) { "issue slots", (double)c->warp_instructions / (clocks * 4) };
    b[n++] = (bound) { "shared memory wavefronts", (double)c->shared_wavefronts / clocks };
    b[n++] = (bound) { "f32 units", (double)c->thread_float / (clocks * t->fp32) };
    b[n++] = (bound) { "f64 units", (double)c->thread_double / (clocks * t->fp64) };
    b[n++] = (bound) { "f16 units", (double)c->thread_half / (clocks * t->half) };
    b[n++] = (bound) { "integer units", (double)c->thread_integer / (clocks * t->integer) };
    b[n++] = (bound) { "special function units", (double)c->thread_special / (clocks * t->special) };
    b[n++] = (bound) { "tensor units", (double)c->tensor_operations / (clocks * t->tensor * 2) };
    return n;
}

static int largest(const bound *b, int n)
{
    int best = 0;
    for (int k = 1; k < n; k++)
        if (b[k].ns > b[best].ns) best = k;
    return best;
}

/* --- text ------------------------------------------------------------------------------------- */

typedef struct text {
    char *p;
    size_t length, capacity;
} text;

static void append_text(text *t, const char *s, size_t n)
{
    if (t->length + n + 1 > t->capacity) {
        size_t wanted = (t->length + n + 1) * 2;
        char *grown = realloc(t->p, wanted);
        if (!grown) return;
        t->p = grown;
        t->capacity = wanted;
    }
    memcpy(t->p + t->length, s, n);
    t->length += n;
    t->p[t->length] = 0;
}

static void print(text *t, const char *format, ...) SIM_PRINTF(2, 3);
static void print(text *t, const char *format, ...)
{
    char line[512];
    va_list a;
    va_start(a, format);
    int n = vsnprintf(line, sizeof line, format, a);
    va_end(a);
    append_text(t, line, n < 0 ? 0 : n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

#define ULL(x) ((unsigned long long)(x))

/* A number with three decimals and a point, in any locale. */
static const char *decimal(double v, char out[40])
{
    uint64_t thousandths = v > 0 && v < 1e15 ? (uint64_t)(v * 1000 + 0.5) : 0;
    snprintf(out, 40, "%llu.%03llu", ULL(thousandths / 1000), ULL(thousandths % 1000));
    return out;
}

static double ratio(uint64_t a, uint64_t b) { return b ? (double)a / (double)b : 0; }

/* --- the table -------------------------------------------------------------------------------- */

static void table_memory(text *t, const char *what, uint64_t requests, uint64_t sectors, uint64_t bytes,
                         uint64_t distinct, bool has_distinct)
{
    char each[40];
    if (!requests) return;
    print(t, "  %-22s %12llu requests %12llu sectors (%s each) %14llu bytes", what, ULL(requests),
          ULL(sectors), decimal(ratio(sectors, requests), each), ULL(bytes));
    if (has_distinct) print(t, ", %llu distinct", ULL(distinct));
    print(t, "\n");
}

static void table_counters(text *t, const sim_profile *r)
{
    static const char *const classes[] = { "integer", "float",  "half",    "double",   "convert", "move",
                                           "control", "memory", "special", "warpwide", "tensor" };
    const ptxsim_counters *c = &r->c;
    const uint64_t *warp = &c->warp_integer, *thread = &c->thread_integer;
    char lanes[40];
    print(t, "  %-22s %17s %21s %10s\n", "instructions", "warps", "threads", "lanes");
    for (int k = -1; k < 11; k++) {
        uint64_t w = k < 0 ? c->warp_instructions : warp[k], n = k < 0 ? c->thread_instructions : thread[k];
        if (w)
            print(t, "    %-20s %17llu %21llu %10s\n", k < 0 ? "all" : classes[k], ULL(w), ULL(n),
                  decimal(ratio(n, w), lanes));
    }
    table_memory(t, "global loads", c->global_load_requests, c->global_load_sectors, c->global_load_bytes,
                 r->distinct_read, true);
    table_memory(t, "global stores", c->global_store_requests, c->global_store_sectors, c->global_store_bytes,
                 r->distinct_written, true);
    table_memory(t, "local", c->local_requests, c->local_sectors, c->local_bytes, 0, false);
    if (c->shared_load_requests + c->shared_store_requests + c->shared_wavefronts)
        print(t, "  %-22s %12llu loads %12llu stores %12llu wavefronts %8llu bank conflicts\n", "shared",
              ULL(c->shared_load_requests), ULL(c->shared_store_requests), ULL(c->shared_wavefronts),
              ULL(c->shared_bank_conflicts));
    if (c->atomics)
        print(t, "  %-22s %12llu requests %12llu operations\n", "atomics", ULL(c->atomics),
              ULL(c->atomic_operations));
    if (c->async_copies)
        print(t, "  %-22s %12llu copies %12llu bytes\n", "asynchronous copies", ULL(c->async_copies),
              ULL(c->async_copy_bytes));
    if (c->tensor_operations) print(t, "  %-22s %12llu\n", "tensor operations", ULL(c->tensor_operations));
    print(t, "  %-22s %12llu branches that split a warp, %llu arrivals of warps at barriers\n", "control",
          ULL(c->divergent_branches), ULL(c->barriers));
    if (r->pages.incomplete) print(t, "  memory ran short: the distinct bytes are too few\n");
}

static void table_estimate(text *t, const sim_profile *r)
{
    const sim_device *d = sim_the_device();
    bound b[BOUNDS];
    char number[40];
    int n = estimate(r, b), top = largest(b, n);
    print(t, "  ESTIMATE for %s (%u SMs at %u MHz): the least each part needs, in ns; nothing was measured\n",
          d->name, d->sm_count, d->clock_khz / 1000);
    for (int k = 0; k < n; k++)
        if (b[k].ns > 0)
            print(t, "    %-40s %14s%s\n", b[k].name, decimal(b[k].ns, number),
                  k == top ? "   <- the limiter" : "");
}

static void table_lines(text *t, const sim_profile *r)
{
    char lanes[40];
    if (r->lines_dropped) print(t, "  too many lines are kept already: none for this launch\n");
    if (!r->line_record_count) return;
    print(t, "  %6s %11s %7s %11s %11s %11s %9s %11s %9s\n", "line", "issues", "lanes", "requests", "sectors",
          "wavefronts", "conflicts", "atomics", "splits");
    for (uint32_t k = 0; k < r->line_record_count; k++) {
        const line_record *l = &r->line_records[k];
        const uint64_t *v = l->n.v;
        print(t, "  %6u %11llu %7s %11llu %11llu %11llu %9llu %11llu %9llu  %.120s\n", l->line,
              ULL(l->n.issues), decimal(ratio(l->n.lanes, l->n.issues), lanes),
              ULL(v[LINE_global_requests] + v[LINE_shared_requests] + v[LINE_local_requests]),
              ULL(v[LINE_global_sectors] + v[LINE_local_sectors]), ULL(v[LINE_shared_wavefronts]),
              ULL(v[LINE_shared_bank_conflicts]), ULL(v[LINE_atomics]), ULL(v[LINE_divergent_branches]),
              l->text ? l->text : "");
    }
}

static bool same_lines(const sim_profile *a, const sim_profile *b)
{
    if (a->line_record_count != b->line_record_count) return false;
    for (uint32_t k = 0; k < a->line_record_count; k++)
        if (a->line_records[k].line != b->line_records[k].line
            || memcmp(&a->line_records[k].n, &b->line_records[k].n, sizeof a->line_records[k].n))
            return false;
    return true;
}

/* Whether both launches have equal counts. */
static bool is_same_launch(const sim_profile *a, const sim_profile *b)
{
    return !strcmp(a->kernel, b->kernel) && !memcmp(a->grid, b->grid, sizeof a->grid)
           && !memcmp(a->block, b->block, sizeof a->block) && a->static_shared == b->static_shared
           && a->dynamic_shared == b->dynamic_shared && !memcmp(&a->c, &b->c, sizeof a->c)
           && a->distinct_read == b->distinct_read && a->distinct_written == b->distinct_written
           && a->error == b->error && same_lines(a, b);
}

static void table(text *t)
{
    char number[40];
    for (size_t k = 0, next; k < record_count; k = next) {
        const sim_profile *r = records[k];
        uint64_t ns = r->host_ns;
        for (next = k + 1; next < record_count && is_same_launch(r, records[next]); next++)
            ns += records[next]->host_ns;
        print(t, "launch %llu", ULL(r->number));
        if (next > k + 1) print(t, " to %llu, %zu alike, each", ULL(records[next - 1]->number), next - k);
        print(t, ": ");
        append_text(t, r->kernel, strlen(r->kernel));
        print(t, ", grid %ux%ux%u, block %ux%ux%u, shared %u + %u bytes, %s us on the host\n", r->grid[0],
              r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->static_shared,
              r->dynamic_shared, decimal((double)ns / (double)(next - k) / 1000, number));
        if (r->error)
            print(t, "  it ended with error %d; what is counted is what ran until then\n", r->error);
        table_counters(t, r);
        table_estimate(t, r);
        table_lines(t, r);
    }
    if (dropped) print(t, "%zu more launches were not kept\n", dropped);
    if (!record_count) print(t, "no launches\n");
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void quoted(text *t, const char *s)
{
    append_text(t, "\"", 1);
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\')
            print(t, "\\%c", ch);
        else if (ch < 0x20 || ch >= 0x7f)
            print(t, "\\u%04x", ch);
        else
            append_text(t, s, 1);
    }
    append_text(t, "\"", 1);
}

static void json_estimate(text *t, const sim_profile *r)
{
    bound b[BOUNDS];
    char number[40];
    int n = estimate(r, b);
    print(t, "\"estimate\":{\"estimate_not_measurement\":true,\"bounds_ns\":{");
    for (int k = 0; k < n; k++) print(t, "%s\"%s\":%s", k ? "," : "", b[k].name, decimal(b[k].ns, number));
    print(t, "},\"limiter\":\"%s\"}", b[largest(b, n)].name);
}

static void json_lines(text *t, const sim_profile *r)
{
    print(t, ",\n  \"lines\":[");
    for (uint32_t k = 0; k < r->line_record_count; k++) {
        const line_record *l = &r->line_records[k];
        print(t, "%s\n   {\"line\":%u,\"issues\":%llu,\"lanes\":%llu", k ? "," : "", l->line,
              ULL(l->n.issues), ULL(l->n.lanes));
        for (int n = 0; n < LINE_COUNT; n++) print(t, ",\"%s\":%llu", line_names[n], ULL(l->n.v[n]));
        print(t, ",\"text\":");
        quoted(t, l->text ? l->text : "");
        print(t, "}");
    }
    print(t, "]");
}

static void json_record(text *t, const sim_profile *r)
{
    print(t, " {\"launch\":%llu,\"kernel\":", ULL(r->number));
    quoted(t, r->kernel);
    print(t,
          ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"static_shared\":%u,\"dynamic_shared\":%u,\n  "
          "\"error\":%d,\"host_ns\":%llu,\n  ",
          r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->static_shared,
          r->dynamic_shared, r->error, ULL(r->host_ns));
    for (size_t k = 0; k < FIELDS; k++) print(t, "\"%s\":%llu,", fields[k].name, ULL(field(&r->c, k)));
    print(t,
          "\n  \"distinct_bytes_read\":%llu,\"distinct_bytes_written\":%llu,\"distinct_bytes\":%llu,"
          "\"distinct_complete\":%s,\n  ",
          ULL(r->distinct_read), ULL(r->distinct_written), ULL(r->distinct),
          r->pages.incomplete ? "false" : "true");
    json_estimate(t, r);
    if (r->line_record_count) json_lines(t, r);
    print(t, "}");
}

static void json(text *t)
{
    const sim_device *d = sim_the_device();
    print(t, "{\"device\":\"%s\",\"launches_not_kept\":%zu,\"launches\":[", d->name, dropped);
    for (size_t k = 0; k < record_count; k++) {
        print(t, "%s\n", k ? "," : "");
        json_record(t, records[k]);
    }
    print(t, "\n]}\n");
}

SIM_EXPORT size_t ptxsim_profile(int format, char *buf, size_t cap)
{
    text t = { NULL, 0, 0 };
    pthread_mutex_lock(&lock);
    if (format == 1)
        json(&t);
    else
        table(&t);
    pthread_mutex_unlock(&lock);
    if (buf && cap) {
        size_t n = t.length < cap ? t.length : cap - 1;
        if (n) memcpy(buf, t.p, n);
        buf[n] = 0;
    }
    free(t.p);
    return t.length;
}

/* --- PTXSIM_PROFILE=table|json|lines|lines-json[:path] ---------------------------------------- */

#if defined(__GNUC__)
static const struct {
    const char *name;
    int level, format;
} wishes[] = { { "table", 1, 0 }, { "json", 1, 1 }, { "lines", 2, 0 }, { "lines-json", 2, 1 } };

/* The index into `wishes` of the environment's request, or -1; *path: after the colon, or NULL. */
static int requested_format(const char **path)
{
    const char *e = getenv("PTXSIM_PROFILE");
    size_t n = e ? strcspn(e, ":") : 0;
    if (!n) return -1;
    *path = e[n] ? e + n + 1 : NULL;
    for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++)
        if (strlen(wishes[k].name) == n && !strncmp(e, wishes[k].name, n)) return (int)k;
    fprintf(stderr, "ptxsim: PTXSIM_PROFILE is not table, json, lines or lines-json: '%s'\n", e);
    return -1;
}

__attribute__((constructor)) static void at_load(void)
{
    const char *path;
    int k = requested_format(&path);
    if (k >= 0) sim_option.profile = wishes[k].level;
}

__attribute__((destructor)) static void at_unload(void)
{
    const char *path = NULL;
    int k = requested_format(&path);
    if (k >= 0) {
        size_t n = ptxsim_profile(wishes[k].format, NULL, 0);
        char *all = malloc(n + 1);
        FILE *f = path && *path ? fopen(path, "w") : stderr;
        if (all && f) {
            ptxsim_profile(wishes[k].format, all, n + 1);
            fwrite(all, 1, n, f);
        }
        if (path && *path && !f) fprintf(stderr, "ptxsim: the profile cannot be written to '%s'\n", path);
        if (f && f != stderr) fclose(f);
        free(all);
    }
    ptxsim_profile_clear();
}
#endif
