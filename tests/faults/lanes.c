/* lanes.c - lanes of a warp: member masks, lanes that have left, what is taken for uniform;
 * registers of warpgroups.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

static ptx_val from_lane(int from, uint32_t mask) {
    return ptx_as(ptx_shfl_idx(k, tid, I(from), I(31), ptx_b32(mask)), PTX_U32);
}

static void member_masks(void) {
    /* A lane is read that the mask does not name. */
    PAIR(AMPERE, "absent-lane") {
        IF(LT(lane, U(16)));
        out(from_lane(bad ? 20 : 5, 0xffff));
        END;
    }

    /* The partner of a lane is not in the mask. */
    PAIR(AMPERE, "absent-lane") {
        IF(LT(lane, U(16)));
        out(ptx_as(ptx_shfl_bfly(k, tid, I(bad ? 16 : 8), I(31), ptx_b32(0xffff)), PTX_U32));
        END;
    }

    /* The segments of a shuffle are wider than the mask. */
    PAIR(AMPERE, "absent-lane") {
        IF(LT(lane, U(16)));
        out(ptx_as(ptx_shfl_down(k, tid, I(8), I(bad ? 31 : 0x101f), ptx_b32(0xffff)), PTX_U32));
        END;
    }

    /* The mask is that of another condition. */
    PAIR(AMPERE, "membermask") {
        w = ptx_as(ptx_ballot(k, LT(lane, U(8)), FULL), PTX_U32);
        IF(LT(lane, U(bad ? 16 : 8)));
        out(ptx_as(ptx_shfl_idx(k, tid, I(0), I(31), w), PTX_U32));
        END;
    }
}

static void absent_lanes(void) {
    /* A block has half of a warp. */
    PAIR(AMPERE, "absent-lane") {
        BLOCK(bad ? 16u : 32u);
        x = ptx_op1(k, PTX_MOVMATRIX, 0, n);
        out(ptx_as(x, PTX_U32));
    }

    /* Raw PTX lets some lanes leave before a shuffle of all. */
    PAIR(AMPERE, "absent-lane") {
        IF(GE(tid, n));
        if (bad) ptx_raw(k, "ret;", 0, NULL, 0, NULL, NULL);
        END;
        out(warp_sum(n));
    }

    /* What differs by thread is taken for uniform in the block. */
    PAIR(AMPERE, "barrier-divergence") {
        x = ptx_uniform(k, bad ? tid : LD(q, 16));
        IF(EQ(x, n));
        BAR;
        END;
        BAR;
    }

    /* What differs by lane is taken for uniform in the warp. */
    PAIR(AMPERE, "absent-lane") {
        x = ptx_warp_uniform(k, bad ? lane : warp);
        IF(EQ(x, U(1)));
        out(warp_sum(n));
        END;
    }

    /* What an atomic returns is taken for uniform in the block. */
    PAIR(AMPERE, "barrier-divergence") {
        if (bad) {
            x = ptx_uniform(k, ptx_as(ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1)), PTX_U32));
        } else {
            IF(one);
            ST(sh, 0, ptx_as(ptx_atom(k, PTX_ATOM_ADD, ptx_at(p, 4096), U(1)), PTX_U32));
            END;
            BAR;
            x = ptx_uniform(k, LD(sh, 0));
        }
        IF(EQ(x, n));
        BAR;
        END;
        BAR;
    }
}

static void release_registers(int count) { ptx_op1(k, PTX_SETMAXNREG_DEC, 0, I(count)); }
static void take_registers(int count) { ptx_op1(k, PTX_SETMAXNREG_INC, 0, I(count)); }

static void registers_of_warpgroups(void) {
    /* The consumers ask for more registers than the producer has released. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(384), ptx_max_registers(k, 168);
        IF(LT(tid, U(128)));
        release_registers(bad ? 160 : 24);
        ELSE;
        take_registers(240);
        END;
    }

    /* The consumers ask for more registers than there are. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(384), ptx_max_registers(k, 168);
        IF(LT(tid, U(128)));
        release_registers(24);
        ELSE;
        take_registers(bad ? 248 : 240);
        END;
    }

    /* All warpgroups ask for more registers. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(384), ptx_max_registers(k, 168);
        if (!bad) IF(GE(tid, U(128)));
        take_registers(bad ? 240 : 168);
        if (!bad) END;
    }

    /* The registers at entry are not known. */
    PAIR(HOPPER, "setmaxnreg-ignored") {
        if (!bad) BLOCK(128), ptx_max_registers(k, 168);
        release_registers(40);
    }

    /* More registers than the threads have are released: by .maxnreg, and by launch bounds. */
    PAIR(HOPPER, "register-count") BLOCK(128), ptx_max_registers(k, 40), release_registers(bad ? 48 : 40);
    PAIR(HOPPER, "register-count") ptx_launch_bounds(k, 384, 1), release_registers(bad ? 176 : 168);

    /* One of two warpgroups releases too little for the other. */
    PAIR(HOPPER, "deadlock") {
        BLOCK(256), ptx_max_registers(k, 128);
        IF(LT(tid, U(128)));
        release_registers(bad ? 104 : 40);
        ELSE;
        take_registers(216);
        END;
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    member_masks();
    absent_lanes();
    registers_of_warpgroups();
    return check_end();
}
