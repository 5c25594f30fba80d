/* pace.h - how workers share the machine, and when a launch has run for too long (pace.c). */
#ifndef SIM_PACE_H
#define SIM_PACE_H
#include "sim.h"

SIM_PRIVATE_BEGIN

#define SIM_GONE UINT64_MAX            /* in l->late: the worker has no part in the launch */
/* How much a worker does between looks at the clock: instructions of warps; beginning a block counts as some. */
enum { SIM_WATCHED_WORK = 65536, SIM_BLOCK_WORK = 256 };

int  sim_watchdog(void);                                      /* seconds that a launch may run; 0: any */
void sim_pace_begin(sim_worker *w, sim_launch *l);
void sim_pace_end(sim_worker *w, sim_launch *l);
bool sim_pace_late(sim_worker *w, sim_launch *l);             /* it is time to give the launch up */
void sim_pace_progress(sim_worker *w, sim_launch *l);         /* tell a terminal how far a long launch is */
void sim_pace_vain(sim_worker *w, const sim_launch *l);       /* all its blocks poll and found nothing */

SIM_PRIVATE_END
#endif
