/* check.c - findings: one place that words, counts, prints and keeps them.
 *
 * A finding names its kind, the kernel, the PTX line with its text, block and thread. The same kind at
 * the same line of the same launch is told once and counted. A new check calls sim_report_at; a check
 * over pairs of accesses (races) has its shadow beside the `written` shadow in memory.c and reports from
 * there. */
#include "sim.h"
#include <stdarg.h>
#include <time.h>

enum { MAX_FINDINGS = 256 };

typedef struct finding {
    char *text;
    const char *kind;
    uint32_t line;
    uint64_t launch;
    uint64_t count;
} finding;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static finding findings[MAX_FINDINGS];
static unsigned finding_count, dropped;

sim_options sim_option = { 1, 1, 1, 1, 1, 1, 0, 0, 300 };

static void keep(const char *kind, uint32_t line, uint64_t launch, const char *text)
{
    pthread_mutex_lock(&lock);
    for (unsigned k = finding_count; k-- > 0 && launch;) {
        if (findings[k].launch != launch || findings[k].line != line || strcmp(findings[k].kind, kind))
            continue;
        findings[k].count++;
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
            f->launch = launch;
            f->count = 1;
            finding_count++;
        }
    } else dropped++;
    if (!sim_option.quiet && !getenv("PTXSIM_QUIET")) fprintf(stderr, "ptxsim: %s\n", text);
    pthread_mutex_unlock(&lock);
}

void sim_report_at(sim_warp *w, const sim_ins *i, const char *kind, uint32_t lane, const char *format, ...)
{
    char detail[600], text[1400];
    va_list a;
    va_start(a, format);
    vsnprintf(detail, sizeof detail, format, a);
    va_end(a);
    const sim_module *m = w->kernel->module;
    const char *line = i->line >= 1 && i->line <= m->line_count ? m->lines[i->line - 1] : "";
    int length = (int)strcspn(line, "\n");
    while (length && (*line == ' ' || *line == '\t')) { line++; length--; }
    const uint32_t *n = w->launch->block;
    uint32_t t = w->index * SIM_LANES + lane;
    snprintf(text, sizeof text, "%s: kernel '%s', line %u: %.*s\n    block (%u,%u,%u), thread (%u,%u,%u): %s",
             kind, w->kernel->function->name, i->line, length > 300 ? 300 : length, line, w->block->ctaid[0],
             w->block->ctaid[1], w->block->ctaid[2], t % n[0], t / n[0] % n[1], t / (n[0] * n[1]), detail);
    keep(kind, i->line, w->launch->launch_serial, text);
}

void sim_report_host(const char *kind, const char *format, ...)
{
    char detail[600], text[700];
    va_list a;
    va_start(a, format);
    vsnprintf(detail, sizeof detail, format, a);
    va_end(a);
    snprintf(text, sizeof text, "%s: %s", kind, detail);
    keep(kind, 0, 0, text);
}

SIM_EXPORT size_t ptxsim_report(char *buf, size_t cap)
{
    size_t total = 0;
    pthread_mutex_lock(&lock);
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
                    { "watchdog", &sim_option.watchdog } };
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
