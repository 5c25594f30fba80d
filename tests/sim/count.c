/* count.c - the counters: each worker has its own; they are added to the total when it leaves a launch. */
#include "sim.h"

pthread_mutex_t sim_count_lock = PTHREAD_MUTEX_INITIALIZER;
static ptxsim_counters total;

void sim_count_add(ptxsim_counters *sum, const sim_counts *c)
{
    enum { FIELDS = sizeof(ptxsim_counters) / sizeof(uint64_t) };
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)&c->c;
    uint64_t warps = 0, threads = 0;
    for (size_t k = 0; k < FIELDS; k++) to[k] += from[k];
    for (int k = 0; k < C_COUNT; k++) { warps += c->warp[k]; threads += c->thread[k]; }
    sum->warp_instructions += warps;
    sum->thread_instructions += threads;
#define CLASS(id, field) sum->warp_##field += c->warp[id]; sum->thread_##field += c->thread[id]
    CLASS(C_INT, integer);
    CLASS(C_FLOAT, float);
    CLASS(C_HALF, half);
    CLASS(C_DOUBLE, double);
    CLASS(C_CONVERT, convert);
    CLASS(C_MOVE, move); CLASS(C_CONTROL, control); CLASS(C_MEMORY, memory); CLASS(C_SPECIAL, special);
    CLASS(C_WARP, warpwide); CLASS(C_TENSOR, tensor);
#undef CLASS
}

void sim_count_merge(const sim_counts *c)
{
    pthread_mutex_lock(&sim_count_lock);
    sim_count_add(&total, c);
    pthread_mutex_unlock(&sim_count_lock);
}

void sim_count_restore(const ptxsim_counters *to)
{
    pthread_mutex_lock(&sim_count_lock);
    total = *to;
    pthread_mutex_unlock(&sim_count_lock);
}

SIM_EXPORT int ptxsim_counters_get(ptxsim_counters *out, size_t size)
{
    if (!out) return 1;
    pthread_mutex_lock(&sim_count_lock);
    memcpy(out, &total, size < sizeof total ? size : sizeof total);
    pthread_mutex_unlock(&sim_count_lock);
    return 0;
}

SIM_EXPORT void ptxsim_counters_reset(void)
{
    pthread_mutex_lock(&sim_count_lock);
    memset(&total, 0, sizeof total);
    pthread_mutex_unlock(&sim_count_lock);
}
