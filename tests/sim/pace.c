/* pace.c - how workers share the machine, and when a launch has run for too long.
 *
 * A worker whose blocks all poll has nothing to do until another worker's block writes: it gives its core
 * away, for longer the longer that lasts, for there may be more workers than cores. The watchdog counts the
 * time that a worker has had (on a core, or asleep because its blocks polled) for the launch, and fires when
 * all workers are over the limit: a loaded machine makes a launch slow, not late. Each worker looks at the
 * clock after so much work (SIM_WATCHED_WORK), whether one block did it or a thousand. */
#include "pace.h"
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { VAIN_YIELDS = 16, VAIN_NAPS = 64, NAP_NS = 50000, LONG_NAP_NS = 500000,
       WATCHDOG = 300, LONG_LAUNCH_S = 2 };

int sim_watchdog(void)
{
    const char *text = sim_option.watchdog < 0 ? getenv("PTXSIM_WATCHDOG") : NULL;
    int seconds = text ? atoi(text) : sim_option.watchdog;
    return seconds < 0 ? WATCHDOG : seconds;
}

static uint64_t own_time(const sim_worker *w)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return sim_now_ns();
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + w->slept_ns;
}

void sim_pace_begin(sim_worker *w, sim_launch *l)
{
    w->vain = 0;
    w->slept_ns = 0;
    w->unwatched = 0;
    w->watched_from = own_time(w);
    atomic_store(&l->late[w->index], 0);
}

void sim_pace_end(sim_worker *w, sim_launch *l)
{
    atomic_store(&l->late[w->index], SIM_GONE);
    if (w->index == 0 && l->told_ns) fputc('\n', stderr);
}

/* The first worker tells, once a second, how far a launch is that takes more than two. On a terminal, or where
 * PTXSIM_PROGRESS is 1, and then from the beginning. */
void sim_pace_progress(sim_worker *w, sim_launch *l)
{
    const char *wish = getenv("PTXSIM_PROGRESS");
    bool always = wish && *wish == '1';
    if (w->index || (wish && *wish == '0') || (!always && (sim_option.quiet || !isatty(2)))) return;
    uint64_t now = sim_now_ns(), second = 1000000000;
    if (!l->begun_ns) l->begun_ns = now;
    if (!always && now - l->begun_ns < LONG_LAUNCH_S * second) return;
    if (l->told_ns && now - l->told_ns < second) return;
    l->told_ns = now;
    uint64_t next = atomic_load(&l->next_block) * l->cluster_size;
    fprintf(stderr, "\r%s: %llu of %llu blocks begun, %llu s", l->kernel->function->name,
            (unsigned long long)(next < l->block_count ? next : l->block_count),
            (unsigned long long)l->block_count, (unsigned long long)((now - l->begun_ns) / second));
    fflush(stderr);
}

bool sim_pace_late(sim_worker *w, sim_launch *l)
{
    if (!l->limit_ns || own_time(w) - w->watched_from < l->limit_ns) return false;
    atomic_store(&l->late[w->index], 1);
    for (uint32_t n = 0; n < l->workers; n++) if (!atomic_load(&l->late[n])) return false;
    return true;
}

void sim_pace_vain(sim_worker *w, const sim_launch *l)
{
    if (l->workers == 1) return;                              /* there is nobody to wait for */
    if (++w->vain <= VAIN_YIELDS) { sched_yield(); return; }
    struct timespec nap = { 0, w->vain <= VAIN_NAPS ? NAP_NS : LONG_NAP_NS };
    nanosleep(&nap, NULL);
    w->slept_ns += (uint64_t)nap.tv_nsec;
}
