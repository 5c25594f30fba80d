/* pace.c - how workers share the machine, and when a launch has run for too long.
 *
 * A worker whose blocks all poll has nothing to do until another worker's block writes: it gives its core
 * away, for longer the longer that lasts, for there may be more workers than cores. The watchdog counts the
 * time that a worker has had (on a core, or asleep because its blocks polled) since any block of the grid
 * ended, and fires when all workers are over the limit: a loaded machine makes a launch slow, not late. */
#include "pace.h"
#include <sched.h>
#include <time.h>

enum { VAIN_YIELDS = 16, VAIN_NAPS = 64, NAP_NS = 50000, LONG_NAP_NS = 500000 };

static uint64_t own_time(const sim_worker *w)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t)) return sim_now_ns();
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + w->slept_ns;
}

static void start_watch(sim_worker *w, uint64_t ended)
{
    w->watched_from = own_time(w);
    w->watched_ended = ended;
}

void sim_pace_begin(sim_worker *w, sim_launch *l)
{
    w->vain = 0;
    w->slept_ns = 0;
    start_watch(w, atomic_load(&l->ended));
    atomic_store(&l->late[w->index], 0);
}

void sim_pace_end(sim_worker *w, sim_launch *l) { atomic_store(&l->late[w->index], SIM_GONE); }

void sim_pace_ended(sim_launch *l) { atomic_fetch_add(&l->ended, 1); }

bool sim_pace_late(sim_worker *w, sim_launch *l)
{
    if (!l->limit_ns) return false;
    uint64_t ended = atomic_load(&l->ended);
    if (ended != w->watched_ended) { start_watch(w, ended); return false; }
    if (own_time(w) - w->watched_from < l->limit_ns) return false;
    atomic_store(&l->late[w->index], ended + 1);
    for (uint32_t n = 0; n < l->workers; n++) {
        uint64_t late = atomic_load(&l->late[n]);
        if (late != SIM_GONE && late != ended + 1) return false;
    }
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
