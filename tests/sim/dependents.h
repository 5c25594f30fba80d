/* dependents.h - programmatic dependent launch: kernels that may begin before the one before ends (dependents.c). */
#ifndef SIM_DEPENDENTS_H
#define SIM_DEPENDENTS_H
#include "sim.h"

SIM_PRIVATE_BEGIN

struct sim_work;
void sim_grid_begin(const struct sim_work *w, sim_launch *l); /* sets l->flight if griddepcontrol concerns it */
void sim_grid_attempt(sim_launch *l);                         /* the launch runs, perhaps again, from the start */
void sim_grid_end(const struct sim_work *w, sim_launch *l);
void sim_grid_leave(const sim_block *b); /* the block has ended */
void sim_grid_touch(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t bytes,
                    sim_access access);
void sim_grids_shutdown(void);

SIM_PRIVATE_END
#endif
