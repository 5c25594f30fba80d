/* check.c - findings: their wording, counting, printing and storage.
 *
 * A finding names its kind, the kernel, the PTX line with its text, block and thread. The same kind at
 * the same line of the same launch is reported once and counted; it names the first of the blocks that have it,
 * and findings are listed in the order of their blocks: so it does not matter which worker came first. Findings over
 * pairs of accesses are not counted, because the number of pairs that meet does depend on that. A new check calls
 * sim_report_at; a check over pairs of accesses (race.c) has a shadow of its own beside the `written` shadow of
 * memory.c. */
#include "race.h"
#include <stdarg.h>
#include <time.h>

enum { MAX_FINDINGS = 256 };

typedef struct finding {
    char *text;
    const char *kind;
    uint32_t line, other_line;
    uint64_t launch;
    uint64_t count;
    sim_finding_place place;
    uint64_t order;                    /* when it was reported */
} finding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static finding findings[MAX_FINDINGS];
static unsigned finding_count, dropped;
static finding withdrawn[MAX_FINDINGS];        /* of a launch that is run again (race.c) */
static unsigned withdrawn_count;
static uint64_t finding_order;

sim_options sim_option = { .bounds = 1, .align = 1, .uninitialised = 1, .registers = 1, .barriers = 1,
                           .sync_masks = 1, .watchdog = -1, .suspects = 1, .stack = 65536, .heap = 8 << 20,
                           .barrier_places = 1, .fifo = 1 << 20, .races = 1, .async = 1, .seed = -1 };

sim_finding_place sim_pair_place(const sim_site *at, const sim_site *other)
{ return (sim_finding_place){ at->block, other ? other->block : 0, at->thread, other ? other->thread : 0 }; }

bool sim_place_precedes(const sim_finding_place *a, const sim_finding_place *b)
{
    if (a->block != b->block) return a->block < b->block;
    if (a->thread != b->thread) return a->thread < b->thread;
    if (a->other_block != b->other_block) return a->other_block < b->other_block;
    return a->other_thread < b->other_thread;
}

/* The same finding again: it names the first place. */
static void merge_finding(finding *f, const sim_finding_place *place, bool pair, const char *text)
{
    bool first = pair ? sim_place_precedes(place, &f->place) : place->block < f->place.block;
    char *copy = first ? malloc(strlen(text) + 1) : NULL;
    if (!pair) f->count++;
    if (!copy) return;
    free(f->text);
    f->text = strcpy(copy, text);
    f->place = *place;
    f->order = ++finding_order;
}

static int listed(const void *a, const void *b)
{
    const finding *x = a, *y = b;
    if (x->launch != y->launch || !x->launch || x->place.block == y->place.block)
        return x->order < y->order ? -1 : x->order > y->order;
    return x->place.block < y->place.block ? -1 : 1;
}

static bool was_printed(const char *text)
{
    for (unsigned k = 0; k < withdrawn_count; k++) if (!strcmp(withdrawn[k].text, text)) return true;
    return false;
}

static void store_finding(const char *kind, uint32_t line, uint32_t other_line, uint64_t launch,
                          const sim_finding_place *place, const char *text)
{
    pthread_mutex_lock(&lock);
    for (unsigned k = finding_count; k-- > 0 && launch;) {
        if (findings[k].launch != launch || findings[k].line != line
            || findings[k].other_line != other_line || strcmp(findings[k].kind, kind))
            continue;
        merge_finding(&findings[k], place, other_line != 0, text);
        pthread_mutex_unlock(&lock);
        return;
    }
    if (finding_count < MAX_FINDINGS) {
        finding *f = &findings[finding_count];
        f->text = malloc(strlen(text) + 1);
        if (f->text) {
            strcpy(f->text, text);
            f->kind = kind;
            f->line = line;
            f->other_line = other_line;
            f->launch = launch;
            f->count = 1;
            f->place = *place;
            f->order = ++finding_order;
            finding_count++;
        }
    } else dropped++;
    if (!sim_option.quiet && !getenv("PTXSIM_QUIET") && !was_printed(text))
        fprintf(stderr, "ptxsim: %s\n", text);
    pthread_mutex_unlock(&lock);
}

/* Sets aside the findings of a launch that is about to run again. */
void sim_report_withdraw(uint64_t launch)
{
    unsigned left = 0;
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < finding_count; k++) {
        if (findings[k].launch == launch) withdrawn[withdrawn_count++] = findings[k];
        else findings[left++] = findings[k];
    }
    finding_count = left;
    pthread_mutex_unlock(&lock);
}

/* The launch has run again. Restores findings of the first attempt: all if the second found nothing, its races if the
 * second met none. */
void sim_report_settle(uint64_t launch)
{
    bool raced = false, any = false;
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < finding_count; k++) {
        if (findings[k].launch != launch) continue;
        any = true;
        raced |= !strcmp(findings[k].kind, "race");
    }
    for (unsigned k = 0; k < withdrawn_count; k++) {
        bool stands = !any || (!raced && !strcmp(withdrawn[k].kind, "race"));
        if (stands && finding_count < MAX_FINDINGS) findings[finding_count++] = withdrawn[k];
        else free(withdrawn[k].text);
    }
    withdrawn_count = 0;
    pthread_mutex_unlock(&lock);
}

/* --- source lines of an instruction ------------------------------------------------------------- */

static size_t length_of(const char *line) { return strcspn(line, "\n"); }
static const char *text_at(const char *line) { return line + strspn(line, " \t"); }

/* Finds "file.c:12" after // at the end of a line, as ptxgen prints it. Its length, or 0. */
static int comment_site(const char *line, size_t length, const char **site)
{
    size_t end = length, at;
    while (end && (line[end - 1] == ' ' || line[end - 1] == '\r')) end--;
    for (at = end; at && line[at - 1] >= '0' && line[at - 1] <= '9'; at--) {}
    if (at == end || !at || line[at - 1] != ':') return 0;
    while (at && line[at - 1] != ' ') at--;
    if (at < 3 || strncmp(line + at - 3, "// ", 3)) return 0;
    *site = line + at;
    return end - at > 120 ? 0 : (int)(end - at);
}

/* The module's .loc and .file lines, read when its first finding is reported. */
struct sim_places {
    uint32_t *loc;                     /* by line: the line of the .loc that applies, or 0 */
    uint32_t *files, file_count;       /* lines of .file */
};

static bool directive(const char *p, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(p, name, n) && (p[n] == ' ' || p[n] == '\t');
}

static struct sim_places *make_places(const sim_module *m)
{
    struct sim_places *x = calloc(1, sizeof *x);
    uint32_t loc = 0;
    if (x) x->loc = malloc((m->line_count + 1u) * sizeof *x->loc);
    if (x) x->files = malloc((m->line_count + 1u) * sizeof *x->files);
    if (!x || !x->loc || !x->files) {
        sim_places_free(x);
        return NULL;
    }
    for (uint32_t n = 1; n <= m->line_count; n++) {
        const char *p = text_at(m->lines[n - 1]);
        if (*p == '.') {
            if (directive(p, ".visible") || directive(p, ".entry") || directive(p, ".func")) loc = 0;
            else if (directive(p, ".loc")) loc = n;
            else if (directive(p, ".file")) x->files[x->file_count++] = n;
        }
        x->loc[n] = loc;
    }
    return x;
}

void sim_places_free(struct sim_places *x)
{
    if (!x) return;
    free(x->loc);
    free(x->files);
    free(x);
}

/* Writes "file.c:34" for line `at` of this .file. */
static int file_site(const sim_module *m, unsigned long file, unsigned long at, char *out, size_t cap)
{
    const struct sim_places *x = m->places;
    char *end;
    for (uint32_t n = 0; n < x->file_count; n++) {
        const char *p = text_at(m->lines[x->files[n] - 1]) + 5;
        if (strtoul(p, &end, 10) != file) continue;
        p = end + strspn(end, " \t");
        if (*p++ != '"') continue;
        size_t length = strcspn(p, "\"\n");
        return length > 120 ? 0 : snprintf(out, cap, "%.*s:%lu", (int)length, p, at);
    }
    return 0;
}

/* Reads "file line column". */
static const char *read_place(const char *p, unsigned long place[3])
{
    for (int k = 0; k < 3; k++) {
        char *end;
        place[k] = strtoul(p, &end, 10);
        p = end;
    }
    return p;
}

/* Where the code of this .loc was inlined, at the outermost level, by the .loc lines before it. */
static bool inlined_at(const sim_module *m, uint32_t loc, unsigned long outer[3])
{
    enum { MOST_LINES = 10000 };
    bool found = false;
    for (uint32_t n = loc, steps = 0; n && steps < MOST_LINES; n--, steps++) {
        const char *p = text_at(m->lines[n - 1]);
        unsigned long place[3];
        if (directive(p, ".entry") || directive(p, ".visible") || directive(p, ".func")) break;
        if (!directive(p, ".loc")) continue;
        p = read_place(p + 4, place);
        if (found && (place[0] != outer[0] || place[1] != outer[1] || place[2] != outer[2])) continue;
        size_t length = length_of(p);
        const char *at = strstr(p, "inlined_at ");
        if (!at || at > p + length) break;
        (void)read_place(at + 11, outer);
        found = true;
    }
    return found;
}

/* Writes "file.c:34" from the .loc before the line, or from where that was inlined. */
static int loc_site(const sim_module *m, uint32_t number, char *out, size_t cap)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&making);
    if (!m->places) ((sim_module *)(uintptr_t)m)->places = make_places(m);
    const struct sim_places *x = m->places;
    pthread_mutex_unlock(&making);
    if (!x || number > m->line_count || !x->loc[number]) return 0;
    unsigned long place[3];
    char outer[140];
    (void)read_place(text_at(m->lines[x->loc[number] - 1]) + 4, place);
    int n = file_site(m, place[0], place[1], out, cap);
    if (n && inlined_at(m, x->loc[number], place) && file_site(m, place[0], place[1], outer, sizeof outer))
        n += snprintf(out + n, cap - (size_t)n, " inlined at %s", outer);
    return n;
}

/* Writes "line 12", or "line 12, file.c:34" if a comment or a .loc says so; *text: the line without that comment. */
static void place_text(const sim_module *m, uint32_t number, char *out, size_t cap, const char **text, int *length)
{
    const char *line = number >= 1 && number <= m->line_count ? m->lines[number - 1] : "", *site;
    int n = comment_site(line, length_of(line), &site), used = snprintf(out, cap, "line %u", number);
    char place[320];
    *text = text_at(line);
    *length = n ? (int)(site - 3 - *text) : (int)length_of(*text);
    while (*length > 0 && (*text)[*length - 1] == ' ') --*length;
    if (n) snprintf(out + used, cap - (size_t)used, ", %.*s", n, site);
    else if (loc_site(m, number, place, sizeof place)) snprintf(out + used, cap - (size_t)used, ", %s", place);
}

const char *sim_line_text(const sim_module *m, uint32_t line, char out[SIM_LINE_TEXT])
{
    const char *text;
    int length;
    place_text(m, line, out, SIM_LINE_TEXT, &text, &length);
    return out;
}

void sim_report_at(sim_warp *w, const sim_ins *i, const char *kind, uint32_t lane, const char *format, ...)
{
    char detail[800], text[1700];
    va_list a;
    va_start(a, format);
    vsnprintf(detail, sizeof detail, format, a);
    va_end(a);
    char place[SIM_LINE_TEXT];
    const char *line;
    int length;
    place_text(w->kernel->module, i->line, place, sizeof place, &line, &length);
    const uint32_t *n = w->launch->block;
    uint32_t t = sim_thread_of(w, lane);
    snprintf(text, sizeof text, "%s: kernel '%s', %s: %.*s\n    block (%u,%u,%u), thread (%u,%u,%u): %s", kind,
             w->kernel->function->name, place, length > 300 ? 300 : length, line, w->block->ctaid[0],
             w->block->ctaid[1], w->block->ctaid[2], t % n[0], t / n[0] % n[1], t / (n[0] * n[1]), detail);
    const sim_finding_place first = { sim_block_index(w->block), 0, t, 0 };
    store_finding(kind, i->line, 0, w->launch->launch_serial, &first, text);
    if (strcmp(kind, "timeout")) sim_request_rerun(w->launch);    /* a timeout would take as long again */
}

static int where(const sim_launch *l, const sim_site *s, char *out, size_t cap)
{
    uint64_t b = s->block;
    uint32_t t = s->thread;
    const uint32_t *g = l->grid, *n = l->block;
    return snprintf(out, cap, "block (%llu,%llu,%llu), thread (%u,%u,%u)", (unsigned long long)(b % g[0]),
                    (unsigned long long)(b / g[0] % g[1]), (unsigned long long)(b / g[0] / g[1]), t % n[0],
                    t / n[0] % n[1], t / (n[0] * n[1]));
}

/* "at line 12 (st.shared.u32 [%r1], %r2) by block (0,0,0), thread (3,0,0)" */
void sim_site_text(const sim_launch *l, const sim_site *s, char *out, size_t cap)
{
    const char *line;
    char thread[120], place[SIM_LINE_TEXT];
    int length;
    place_text(l->kernel->module, s->ins->line, place, sizeof place, &line, &length);
    where(l, s, thread, sizeof thread);
    snprintf(out, cap, "at %s (%.*s) by %s", place, length > 240 ? 240 : length, line, thread);
}

void sim_report_pair(const sim_launch *l, const char *kind, const sim_site *at, const sim_site *other,
                     const char *detail)
{
    const char *line;
    char text[1600], thread[120], place[SIM_LINE_TEXT];
    int length;
    place_text(l->kernel->module, at->ins->line, place, sizeof place, &line, &length);
    where(l, at, thread, sizeof thread);
    snprintf(text, sizeof text, "%s: kernel '%s', %s: %.*s\n    %s: %s", kind, l->kernel->function->name, place,
             length > 240 ? 240 : length, line, thread, detail);
    const sim_finding_place first = sim_pair_place(at, other);
    store_finding(kind, at->ins->line, other ? other->ins->line : 0, l->launch_serial, &first, text);
    sim_request_rerun(l);
}

void sim_report_host(const char *kind, const char *format, ...)
{
    char detail[600], text[700];
    va_list a;
    va_start(a, format);
    vsnprintf(detail, sizeof detail, format, a);
    va_end(a);
    snprintf(text, sizeof text, "%s: %s", kind, detail);
    const sim_finding_place place = { 0, 0, 0, 0 };
    store_finding(kind, 0, 0, 0, &place, text);
}

enum { PADDING = 32, SMALL = 64, STRIDE = 256 };

static bool unwritten_at(const uint8_t *shadow, uint64_t at) { return !(shadow[at >> 3] >> (at & 7) & 1); }

static uint64_t gap_end(const uint8_t *shadow, uint64_t at, uint64_t end)
{
    while (at < end && unwritten_at(shadow, at)) at++;
    return at;
}

/* Whether there is another gap of the same length nearby, as padding repeats in an array of structs. */
static bool has_equal_gap(const uint8_t *shadow, uint64_t first, uint64_t end, uint64_t from, uint64_t length)
{
    uint64_t low = from - first > STRIDE ? from - STRIDE : first,
             high = end - from > STRIDE + length ? from + STRIDE + length : end;
    for (uint64_t at = from + length; at < high; at++) {
        uint64_t to = gap_end(shadow, at, high);
        if (to - at == length) return true;
        if (to > at) at = to;
    }
    for (uint64_t at = low; at < from; at++) {
        uint64_t to = gap_end(shadow, at, from);
        if (to - at == length) return true;
        if (to > at) at = to;
    }
    return false;
}

/* Whether there is a gap that is not padding: of `most` bytes or more, or, in a large range, one without an equal
 * gap nearby. */
static bool has_unusual_gap(const uint8_t *shadow, uint64_t first, uint64_t end, uint64_t most)
{
    if (gap_end(shadow, first, end) == end) return true;
    for (uint64_t at = first; at < end; at++) {
        uint64_t to = gap_end(shadow, at, end);
        if (to == at) continue;
        if (to - at >= most) return true;
        if (end - first > SMALL && !has_equal_gap(shadow, first, end, at, to - at)) return true;
        at = to;
    }
    return false;
}

void sim_host_read(uint64_t address, uint64_t size)
{
    const sim_allocation *a = sim_option.uninitialised ? sim_memory_find(address) : NULL;
    if (!a || !a->shadow || address - a->base > a->size - size) return;
    uint64_t first = address - a->base, end = first + size, count = 0;
    char where[200];
    if (sim_shadow_all(a->shadow, first, size)) return;
    /* Structs that kernels copied whole, or wrote by member: padding is smaller than the widest member. */
    if (!has_unusual_gap(a->shadow, first, end, atomic_load(&a->padded) ? PADDING : atomic_load(&a->widest))) return;
    while (a->shadow[first >> 3] >> (first & 7) & 1) first++;
    for (uint64_t k = first; k < end; k++) count += !(a->shadow[k >> 3] >> (k & 7) & 1);
    sim_memory_describe(a->base + first, 1, where, sizeof where);
    sim_report_host("uninitialised-read",
                    "a copy to the host of %llu bytes from 0x%llx takes %llu bytes that were "
                    "never written; the first is %s",
                    (unsigned long long)size, (unsigned long long)address, (unsigned long long)count, where);
}

/* Sorts the findings of each launch; launches and host findings keep their order. */
static void list_findings(void)
{
    for (unsigned from = 0, to; from < finding_count; from = to) {
        for (to = from + 1; to < finding_count && findings[to].launch == findings[from].launch; to++) {}
        qsort(findings + from, to - from, sizeof *findings, listed);
    }
}

SIM_EXPORT size_t ptxsim_report(char *buf, size_t cap)
{
    size_t total = 0;
    pthread_mutex_lock(&lock);
    list_findings();
    for (unsigned k = 0; k < finding_count + (dropped != 0); k++) {
        char tail[80] = "\n";
        const char *text = "more findings were not kept";
        if (k < finding_count) {
            text = findings[k].text;
            if (findings[k].count > 1)
                snprintf(tail, sizeof tail, "\n    (%llu times)\n", (unsigned long long)findings[k].count);
        }
        for (int part = 0; part < 2; part++)
            for (const char *p = part ? tail : text; *p; p++, total++)
                if (buf && total + 1 < cap) buf[total] = *p;
    }
    if (buf && cap) buf[total < cap ? total : cap - 1] = 0;
    pthread_mutex_unlock(&lock);
    return total;
}

SIM_EXPORT unsigned ptxsim_report_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = finding_count + dropped;
    pthread_mutex_unlock(&lock);
    return n;
}

SIM_EXPORT void ptxsim_report_clear(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned k = 0; k < finding_count; k++) free(findings[k].text);
    finding_count = dropped = 0;
    pthread_mutex_unlock(&lock);
    sim_contexts_revive();
}

SIM_EXPORT void ptxsim_set(const char *option, int value)
{
    static const struct { const char *name; int *at;
    } options[] = { { "bounds", &sim_option.bounds },
                    { "align", &sim_option.align },
                    { "uninitialised", &sim_option.uninitialised },
                    { "registers", &sim_option.registers },
                    { "barriers", &sim_option.barriers },
                    { "sync-masks", &sim_option.sync_masks },
                    { "threads", &sim_option.threads },
                    { "quiet", &sim_option.quiet },
                    { "watchdog", &sim_option.watchdog },
                    { "barrier-places", &sim_option.barrier_places },
                    { "perturb", &sim_option.perturb },
                    { "contract", &sim_option.contract },
                    { "exact-sums", &sim_option.exact_sums },
                    { "suspects", &sim_option.suspects },
                    { "budget", &sim_option.budget },
                    { "profile", &sim_option.profile },
                    { "stack", &sim_option.stack },
                    { "heap", &sim_option.heap },
                    { "fifo", &sim_option.fifo },
                    { "races", &sim_option.races },
                    { "race-strict", &sim_option.race_strict },
                    { "async", &sim_option.async },
                    { "seed", &sim_option.seed } };
    for (size_t k = 0; option && k < sizeof options / sizeof *options; k++)
        if (!strcmp(options[k].name, option)) *options[k].at = value;
    if (option) sim_driver_set(option, value);
}

uint64_t sim_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
