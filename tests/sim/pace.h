/* pace.h - workers that poll give up their core; the watchdog; progress of long launches (pace.c). */
#ifndef SIM_PACE_H
#define SIM_PACE_H
#include "sim.h"

SIM_PRIVATE_BEGIN

#define SIM_GONE UINT64_MAX            /* value in l->late: the worker takes no part in the launch */
/* Work between two looks at the clock, in warp instructions; the beginning of a block counts as some. */
enum { SIM_WATCHED_WORK = 65536, SIM_BLOCK_WORK = 256 };

int  sim_watchdog(void);                                      /* seconds that a launch may run; 0: no limit */
void sim_pace_begin(sim_worker *w, sim_launch *l);
void sim_pace_end(sim_worker *w, sim_launch *l);
bool sim_pace_is_over_limit(sim_worker *w, sim_launch *l);    /* true: the launch has exceeded its limit */
void sim_pace_progress(sim_worker *w, sim_launch *l);         /* prints how far a long launch is */
void sim_pace_yield(sim_worker *w, const sim_launch *l);      /* after a turn in which all its blocks only polled */

SIM_PRIVATE_END
#endif
