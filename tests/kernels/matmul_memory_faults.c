/* matmul_memory_faults.c - matmul's form for sm_100a, as matmulfaults.h says.
 *
 * Runs on the CPU driver only. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmulfaults.h"

static void take_out(uint32_t type, uint32_t entry, uint32_t out, uint32_t factors)
{
    static const silent_line silent[] = {
        {"fence.mbarrier_init", 1, "the cluster's barrier behind it orders as much here"},
        {"tcgen05.fence::after_thread_sync", 2, "of the multiplying thread's two, either does"},
        {"cp.async.bulk.wait_group.read 0", 1, "at a unit's first box of C: the CPU driver has carried out the stores"},
        {"bar.warp.sync", 2, "tcgen05.wait::ld is the whole warp's; the CPU driver joins lanes behind an if"},
    };
    const uint32_t cluster = entry - PTXK__TENSOR_ONE + 1;
    const fault_shape shapes[] = {{200, 700, 330, cluster, cluster, 0},
                                  {300, 600, 100, cluster, cluster, 1},
                                  {130, 200, 1000, 8 * cluster, cluster, 0}};
    take_out_each(PTX_SM_A(100), type, entry, out, factors, shapes, silent, sizeof silent / sizeof *silent);
}

int main(void)
{
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    if (!open_for_faults(100)) return check_end();
    take_out(PTX_BF16, PTXK__TENSOR_ONE, PTX_BF16, 0);
    take_out(PTX_E4M3, PTXK__TENSOR_PAIR, PTX_F16, 0);
    take_out(PTX_E4M3, PTXK__TENSOR_PAIR, PTX_F16, PTXK_FACTORS_BLOCK);
    printf("note: %u instructions taken out, %u not noticed\n", removed, unnoticed);
    return check_end();
}
