/* ptxsim.h - what the CPU driver offers beyond the CUDA Driver API.
 *
 * The library exports the driver's own entry points (cuInit, cuLaunchKernel, ...) with their real ABI; a
 * program that opens "libcuda.so.1" opens this library instead. The functions below are found with
 * dlsym:
 *
 *     int (*get)(ptxsim_counters *, size_t) = dlsym(lib, "ptxsim_counters_get");
 *
 * Environment: PTXSIM_DEVICE=sm_75|sm_80|sm_86|sm_87|sm_89|sm_90|sm_100|sm_103|sm_120|sm_121 (an 'a' may
 * follow; default sm_90) or the path of a device description (README.md), PTXSIM_LAG=0|1|2 (the option
 * "lag" below), PTXSIM_THREADS=n, PTXSIM_SEED=n (an adversarial order), PTXSIM_PROFILE (see ptxsim_profile),
 * PTXSIM_QUIET=1 (no reports on stderr), PTXSIM_MEMORY=bytes (device memory).
 * All functions may be called from any thread. */
#ifndef PTXSIM_H
#define PTXSIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What ran since the last reset. New fields are only ever appended; `size` of ptxsim_counters_get is the size of
 * the caller's struct. */
typedef struct ptxsim_counters {
    uint64_t launches;                 /* kernels started */
    uint64_t blocks;                   /* thread blocks run */
    uint64_t warp_instructions;        /* instructions issued to a warp, also those with no active lane */
    uint64_t thread_instructions;      /* the same, times the active lanes */
    uint64_t warp_integer, warp_float, warp_half, warp_double, warp_convert, warp_move; /* by class */
    uint64_t warp_control, warp_memory, warp_special, warp_warpwide, warp_tensor;
    uint64_t thread_integer, thread_float, thread_half, thread_double, thread_convert, thread_move;
    uint64_t thread_control, thread_memory, thread_special, thread_warpwide, thread_tensor;
    uint64_t global_load_requests;     /* warp-wide global loads (generic ones that access global memory too) */
    uint64_t global_load_bytes;        /* bytes that the threads asked for */
    uint64_t global_load_sectors;      /* distinct 32-byte sectors, summed over requests */
    uint64_t global_store_requests, global_store_bytes, global_store_sectors;
    uint64_t shared_load_requests, shared_load_bytes;
    uint64_t shared_store_requests, shared_store_bytes;
    uint64_t shared_wavefronts;        /* passes over the 32 banks of 4 bytes that the accesses need */
    uint64_t shared_bank_conflicts;    /* wavefronts beyond the fewest possible for that number of bytes */
    uint64_t local_requests, local_bytes;
    uint64_t atomics;                  /* warp-wide atom and red requests */
    uint64_t atomic_operations;        /* the same, times lanes */
    uint64_t barriers;                 /* warps that arrived at a block barrier */
    uint64_t divergent_branches;       /* branches that split a warp */
    uint64_t async_copies, async_copy_bytes;   /* cp.async and bulk copies, per thread */
    uint64_t tensor_operations;        /* mma, wmma, wgmma: two for each multiply-add of the shape */
    uint64_t local_sectors;            /* lanes are interleaved word by word: 4 for a word of 32 lanes */
} ptxsim_counters;

/* Copies at most `size` bytes of the counters to `out`; returns 0, or 1 (CUDA_ERROR_INVALID_VALUE) if `out` is NULL. */
int  ptxsim_counters_get(ptxsim_counters *out, size_t size);
void ptxsim_counters_reset(void);

/* The findings since the last clear, as text, one paragraph each. Writes at most cap - 1 characters and a NUL.
 * Returns the length of the whole text without the NUL; a call with (NULL, 0) only asks for it. */
size_t   ptxsim_report(char *buf, size_t cap);
unsigned ptxsim_report_count(
    void); /* findings (the same one at the same line of the same launch counts once) */
void ptxsim_report_clear(void); /* forgets them, and makes contexts usable again that a fault poisoned */

/* For a library beside the driver, such as tests/nccl: a host function (cuLaunchHostFunc) that cannot do its work
 * calls this with the reason. It becomes a finding, and the stream's work ends with CUDA_ERROR_LAUNCH_TIMEOUT. */
void ptxsim_fault(const char *text);

/* How often the driver function of that name was called since the library was loaded; 0 for an unknown
 * name. */
uint64_t ptxsim_calls(const char *driver_function);

/* Makes the nth call from now (1 = the next) of that driver function return `code` and do nothing; nth = 0 or
 * code = 0 cancels this. Returns 0, or 1 for an unknown name. */
int ptxsim_fail(const char *driver_function, unsigned nth, int code);

/* Options. Checks, on (1) unless set to 0: "bounds", "align", "uninitialised", "registers", "barriers",
 * "sync-masks", "races", "async" (cp.async touched before its wait, overwritten, never waited for),
 * "suspects" (found when a module is loaded), "host-races", "stream-races", "leaks", "stale-handles".
 * "lag": when the work of streams runs: 0 at the call, 1 when it is waited for or when the host has made no call
 * for a while (default), 2 only when it is waited for. "race-strict" (default 0): 1 reports two plain writes of the
 * same value as a race too. "seed": 0 runs blocks, warps and paths in turn; another number chooses their order and
 * speed, and whether copies are early or late; -1 (default): PTXSIM_SEED, else 0. "threads": how many threads run
 * blocks (0: one for each processor). "quiet": no reports on stderr. "watchdog": seconds of a thread's own time
 * after which a launch ends with CUDA_ERROR_LAUNCH_TIMEOUT (0: never; -1, the default: PTXSIM_WATCHDOG, else 300).
 * "budget": warp instructions after which it ends in the same way (default 0: no limit). "profile": 1 keeps a
 * record of every launch from now on, 2 also by PTX line (default 0: no profile, at no cost). In bytes: "stack" (a
 * thread's, for recursion and calls through pointers, default 65536), "heap" (malloc in kernels, default 8 MiB),
 * "fifo" (vprintf's output until the host synchronises, default 1 MiB; the oldest text is lost).
 *
 * Three more act on modules that are loaded afterwards, 0 unless set. "perturb": a seed; moves the results of
 * approximate instructions (ex2, lg2, sin, cos, rcp, rsqrt, sqrt, div .approx and .full, tanh) inside their
 * documented error bounds. "contract": 1 fuses mul and add without a rounding modifier into one fma where the
 * assembler may. "exact-sums": 1 adds the products of mma, wmma and wgmma exactly and rounds once, instead of
 * adding them as the described chip's tensor cores do. The environment sets them too: PTXSIM_PERTURB,
 * PTXSIM_CONTRACT, PTXSIM_EXACT_SUMS. */
void ptxsim_set(const char *option, int value);

/* The records of the launches that were profiled, oldest first, as a table (format 0; equal launches in a row are
 * shown once) or as JSON (format 1). Lengths as for ptxsim_report. In the JSON
 *
 *     { "device", "launches_not_kept", "launches": [ { "launch", "kernel", "grid": [x,y,z], "block": [x,y,z],
 *       "static_shared", "dynamic_shared", "error", "host_ns", every counter of ptxsim_counters by its name,
 *       "distinct_bytes_read", "distinct_bytes_written", "distinct_bytes", "distinct_complete",
 *       "estimate": { "estimate_not_measurement": true, "bounds_ns": { part of the chip: ns }, "limiter" },
 *       "lines": [ { "line", "issues", "lanes", "global_requests", ..., "text" } ] } ] }
 *
 * distinct bytes are those of device memory that the launch touched at least once (distinct_complete: false
 * if memory ran out before all were noted); `error` is 0 or the CUresult that ended the launch; host_ns is how
 * long the launch took here. "lines" is present for launches profiled with 2. Everything but host_ns is the
 * same for any number of threads. The estimate is the least time that each part of the described chip needs if
 * nothing else delays it: arithmetic over the counters, not a measurement.
 *
 * PTXSIM_PROFILE=table|json|lines|lines-json[:path] in the environment profiles a program without changes: the
 * report is written to the path, or to stderr, when the library is unloaded. */
size_t ptxsim_profile(int format, char *buf, size_t cap);
void   ptxsim_profile_clear(void);

#ifdef __cplusplus
}
#endif
#endif
