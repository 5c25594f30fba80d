/* matmul_dense_faults.c - matmul's form for sm_90a, as matmulfaults.h says.
 *
 * Runs on the CPU driver only. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmulfaults.h"

static void take_out(uint32_t type, uint32_t entry, uint32_t out)
{
    static const fault_shape shapes[] = {{200, 500, 330, 2, 2, 1}, {150, 600, 850, 1, 1, 0}, {130, 200, 1000, 8, 2, 0}};
    const silent_line silent[] = {
        {"setmaxnreg.inc", 1, "the CPU driver has no machine registers; ptxas would spill"},
        {"wgmma.fence", entry == PTXK__WARPGROUP_WIDE ? 3 : 5,
         "products of one shape follow each other without; ptxas puts it in, and says so"},
        {"cp.async.bulk.wait_group.read 0", 1, "at a unit's first box of C: the CPU driver has carried out the stores"},
        {"bar.warp.sync", 1, "the CPU driver joins lanes behind an if; PTX does not promise it"},
    };
    take_out_each(PTX_SM_A(90), type, entry, out, 0, shapes, silent, sizeof silent / sizeof *silent);
}

int main(void)
{
    if (!open_for_faults(90)) return check_end();
    take_out(PTX_BF16, PTXK__WARPGROUP_WIDE, PTX_BF16);
    take_out(PTX_F16, PTXK__WARPGROUP_ALTERNATE, PTX_F32);
    take_out(PTX_E4M3, PTXK__WARPGROUP_WIDE, PTX_F16);
    printf("note: %u instructions taken out, %u not noticed\n", removed, unnoticed);
    return check_end();
}
