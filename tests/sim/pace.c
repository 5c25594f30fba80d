/* pace.c - workers that poll give up their core; the watchdog; progress of long launches.
 *
 * A worker whose blocks all poll waits for a write by another worker's block, and there may be more workers than
 * cores: it yields its core, then sleeps, for longer the longer it has polled. The watchdog counts the time that
 * each worker spent on the launch (on a core, or asleep because its blocks polled) and fires when all workers are
 * over the limit: on a loaded machine a launch is slow, but does not time out. Each worker reads the clock after a
 * fixed amount of work (SIM_WATCHED_WORK), done by one block or by many. */
#include "pace.h"
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { YIELDS = 16, SHORT_NAPS = 64, NAP_NS = 50000, LONG_NAP_NS = 500000,
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
    w->poll_turns = 0;
    w->slept_ns = 0;
    w->work_since_check = 0;
    w->watched_from = own_time(w);
    atomic_store(&l->late[w->index], 0);
}

void sim_pace_end(sim_worker *w, sim_launch *l)
{
    atomic_store(&l->late[w->index], SIM_GONE);
    if (w->index == 0 && l->progress_ns) fputc('\n', stderr);
}

/* Worker 0 prints once a second how far the launch is: after two seconds and on a terminal, or, with
 * PTXSIM_PROGRESS=1, from the beginning and wherever stderr goes. */
void sim_pace_progress(sim_worker *w, sim_launch *l)
{
    const char *wish = getenv("PTXSIM_PROGRESS");
    bool always = wish && *wish == '1';
    if (w->index || (wish && *wish == '0') || (!always && (sim_option.quiet || !isatty(2)))) return;
    uint64_t now = sim_now_ns(), second = 1000000000;
    if (!l->begun_ns) l->begun_ns = now;
    if (!always && now - l->begun_ns < LONG_LAUNCH_S * second) return;
    if (l->progress_ns && now - l->progress_ns < second) return;
    l->progress_ns = now;
    uint64_t next = atomic_load(&l->next_block) * l->cluster_size;
    fprintf(stderr, "\r%s: %llu of %llu blocks begun, %llu s", l->kernel->function->name,
            (unsigned long long)(next < l->block_count ? next : l->block_count),
            (unsigned long long)l->block_count, (unsigned long long)((now - l->begun_ns) / second));
    fflush(stderr);
}

bool sim_pace_is_over_limit(sim_worker *w, sim_launch *l)
{
    if (!l->limit_ns || own_time(w) - w->watched_from < l->limit_ns) return false;
    atomic_store(&l->late[w->index], 1);
    for (uint32_t n = 0; n < l->workers; n++) if (!atomic_load(&l->late[n])) return false;
    return true;
}

void sim_pace_yield(sim_worker *w, const sim_launch *l)
{
    if (l->workers == 1) return;                              /* there is nobody to wait for */
    if (++w->poll_turns <= YIELDS) { sched_yield(); return; }
    struct timespec nap = { 0, w->poll_turns <= SHORT_NAPS ? NAP_NS : LONG_NAP_NS };
    nanosleep(&nap, NULL);
    w->slept_ns += (uint64_t)nap.tv_nsec;
}
