/* tensor_memory.c - tcgen05: results that are not there yet, operands and columns that are in use, fences.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

#define BLACKWELL PTX_SM_A(100)

enum { D_F32 = 1 << 4, M128 = 8 << 24, N8 = 1 << 17, M64 = 4 << 24, N16 = 2 << 17, B_AT = 4096 };

static ptx_val slot, memory, quarter; /* where alloc writes; tensor memory; this warp's lanes of it */
static ptx_mods group;

static void before(void) { ptx_op0(k, PTX_TCGEN05_FENCE_BEFORE, 0); }
static void after(void) { ptx_op0(k, PTX_TCGEN05_FENCE_AFTER, 0); }
static void wait_load(void) { ptx_op0(k, PTX_TCGEN05_WAIT_LD, 0); }
static void wait_store(void) { ptx_op0(k, PTX_TCGEN05_WAIT_ST, 0); }
static void allocate(int columns) {
    IF(EQ(warp, zero));
    ptx_op2(k, PTX_TCGEN05_ALLOC, group, slot, I(columns));
    END;
}
static void release(int columns) {
    before();
    BAR;
    IF(EQ(warp, zero));
    ptx_op2(k, PTX_TCGEN05_DEALLOC, group, memory, I(columns));
    END;
}
static ptx_val load(ptx_val address) {
    ptx_val v;
    ptx_opn(k, PTX_TCGEN05_LD_32X32B, 0, PTX_NONE, PTX_NONE, 1, &address, 1, &v);
    return ptx_as(v, PTX_U32);
}
static void store(ptx_val address, ptx_val v) {
    ptx_val o[2];
    o[0] = address, o[1] = v;
    PLAIN(PTX_TCGEN05_ST_32X32B, 2, o);
}
/* A K-major matrix without swizzle of rows of 32 bytes. */
static ptx_val matrix(ptx_val tile) {
    return ptx_or(k, ptx_wgmma_descriptor(k, tile, 128, 256, 0), ptx_u64((uint64_t)1 << 46));
}
static void product_of(ptx_val d, ptx_val from, ptx_val b, ptx_val instruction, ptx_val adds) {
    ptx_val o[5];
    o[0] = d, o[1] = from, o[2] = b, o[3] = instruction, o[4] = adds;
    ptx_opn(k, PTX_TCGEN05_MMA_F16, group, PTX_NONE, PTX_NONE, 5, o, 0, NULL);
}
static ptx_val yes(void) { return EQ(zero, U(0)); }
static ptx_val no(void) { return NE(zero, U(0)); }
static void product(void) {
    product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8), no());
}
static void commit(void) { ptx_op1(k, PTX_TCGEN05_COMMIT, group, bar); }

static void fill(void) {
    int j, word;
    for (j = 0; j < 3; j++)
        for (word = 0; word < 4; word++) ST(ptx_off(wide, 2048 * j), 4 * word, n);
}
/* Operands in shared memory, tensor memory, an mbarrier for one arrival. */
static void begin(int columns) {
    group = 0;
    slot = ptx_shared(k, "slot", PTX_U32, 1, 4);
    init_mbarriers(1, 1);
    fill();
    proxy_fence();
    allocate(columns);
    before();
    BAR;
    memory = LD(slot, 0);
    quarter = ADD(memory, SHL(warp, 21));
}
static void result(void) {
    x = load(quarter);
    wait_load();
    out(x);
}

static void results(void) {
    /* The result is read at once. */
    PAIR(BLACKWELL, "async-read") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        if (!bad) wait_parity(bar, U(0)), after();
        result();
        if (bad) wait_parity(bar, U(0));
        release(32);
    }
    /* No fence stands between the wait and the load. */
    PAIR(BLACKWELL, "missing-fence") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        wait_parity(bar, U(0));
        if (!bad) after();
        result();
        release(32);
    }
    /* The commit stands before the product. */
    PAIR(BLACKWELL, "async-read") {
        begin(32);
        IF(one);
        if (bad) commit();
        product();
        if (!bad) commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* Another thread commits than the one that issues. */
    PAIR(BLACKWELL, "async-read") {
        begin(32);
        IF(one);
        product();
        END;
        before();
        BAR;
        after();
        IF(EQ(tid, bad ? U(32) : U(0)));
        commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* Nobody waits for the last product. */
    PAIR(BLACKWELL, "async-unwaited") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        if (!bad) wait_parity(bar, U(0));
        release(32);
    }
    /* The mbarrier expects an arrival that nobody makes. */
    PAIR(BLACKWELL, "deadlock") {
        begin(32);
        y = ptx_off(bar, 16);
        IF(one);
        ptx_mbarrier_init(k, y, I(bad ? 2 : 1));
        product(), ptx_op1(k, PTX_TCGEN05_COMMIT, 0, y);
        END;
        BAR;
        wait_parity(y, U(0)), after();
        result();
        release(32);
    }
    /* A register is read before the load of it is waited for: the builder tells. */
    PAIR(BLACKWELL, "!async") {
        begin(32);
        x = load(quarter);
        if (bad) out(x);
        wait_load();
        out(x);
        release(32);
    }
    /* A cell that nothing has written is stored. */
    PAIR(BLACKWELL, "uninitialised-read") {
        begin(32);
        if (!bad) store(quarter, n), wait_store();
        result();
        release(32);
    }
    /* The first product adds to what nothing has written. */
    PAIR(BLACKWELL, "uninitialised-read") {
        begin(32);
        IF(one);
        product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8), bad ? yes() : no());
        commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
}

static void operands(void) {
    /* Ordinary stores, and no proxy fence before the product reads them. */
    PAIR(BLACKWELL, "missing-proxy-fence") {
        begin(32);
        fill();
        if (!bad) proxy_fence();
        BAR;
        IF(one);
        product(), commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* A stage is stored to again while the product may still read it. */
    PAIR(BLACKWELL, "async-write") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        if (!bad) wait_parity(bar, U(0));
        fill();
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* A bulk copy fills it again. */
    PAIR(BLACKWELL, "async-write") {
        begin(32);
        IF(one);
        product(), commit();
        if (!bad) wait_parity(bar, U(0));
        fetch(sh, ptx_off(bar, 8));
        END;
        wait_parity(ptx_off(bar, 8), U(0));
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* The copy of the operand is not waited for. */
    PAIR(BLACKWELL, "async-read") {
        begin(32);
        IF(one);
        fetch(sh, ptx_off(bar, 8));
        if (!bad) wait_parity(ptx_off(bar, 8), U(0));
        product(), commit();
        END;
        wait_parity(ptx_off(bar, 8), U(0));
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* The constant of the descriptor is wgmma's. */
    PAIR(BLACKWELL, "matrix-descriptor") {
        begin(32);
        IF(one);
        x = matrix(sh);
        if (bad) x = ptx_xor(k, x, ptx_u64((uint64_t)1 << 46));
        product_of(memory, x, matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8), no());
        commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* The types of A and B, of D, M, N, a reserved bit. */
    {
        static const uint32_t wrong[] = {1 << 7,  2 << 4,  3 << 24, 32 << 17, 1 << 6,
                                         1 << 23, 1 << 29, 1 << 2,  1 << 3,   1};
        size_t j;
        for (j = 0; j < sizeof wrong / sizeof *wrong; j++) PAIR(BLACKWELL, "instruction-descriptor") {
                uint32_t x32 = D_F32 | M128 | N8;
                if (bad)
                    x32 = (wrong[j] >= 1 << 24 && wrong[j] < 1 << 29 ? x32 & ~(uint32_t)(31 << 24) : x32)
                          ^ wrong[j];
                begin(32);
                IF(one);
                product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(x32), no());
                commit();
                END;
                wait_parity(bar, U(0)), after();
                result();
                release(32);
            }
    }
}

static void order(void) {
    /* Stores to tensor memory are not waited for before a product adds to them. */
    PAIR(BLACKWELL, "async-write") {
        uint32_t j;
        begin(32);
        for (j = 0; j < 8; j++) store(ADD(quarter, U(j)), n);
        if (!bad) wait_store();
        before();
        BAR;
        IF(one);
        after();
        product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8), yes());
        commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        release(32);
    }
    /* A fence is missing, before the barrier or behind it. */
    {
        int behind;
        for (behind = 0; behind < 2; behind++) PAIR(BLACKWELL, "missing-fence") {
                uint32_t j;
                begin(32);
                for (j = 0; j < 8; j++) store(ADD(quarter, U(j)), n);
                wait_store();
                if (!bad || behind) before();
                BAR;
                IF(one);
                if (!bad || !behind) after();
                product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8), yes());
                commit();
                END;
                wait_parity(bar, U(0)), after();
                result();
                release(32);
            }
    }
    /* Products of two threads into one accumulator: without order, without a fence. */
    {
        int how;
        for (how = 0; how < 3; how++) PAIR(BLACKWELL, how ? "missing-fence" : "race") {
                begin(32);
                IF(one);
                product(), commit();
                if (!bad || how != 1) before();
                END;
                if (!bad || how) BAR;
                IF(EQ(tid, U(32)));
                if (!bad || how != 2) after();
                product(), ptx_op1(k, PTX_TCGEN05_COMMIT, 0, ptx_off(bar, 8));
                END;
                wait_parity(bar, U(0)), wait_parity(ptx_off(bar, 8), U(0)), after();
                result();
                release(32);
            }
    }
    /* All threads of a warp issue the product. */
    PAIR(BLACKWELL, "race") {
        begin(32);
        IF(EQ(warp, zero));
        if (!bad) IF(ptx_elect(k, FULL));
        product();
        if (!bad) END;
        END;
        before();
        BAR;
        after();
        IF(one);
        commit();
        END;
        if (!bad) wait_parity(bar, U(0)), after();
        if (!bad) result();
        if (bad) wait_parity(bar, U(0));
        release(32);
    }
    /* The next product overwrites what is still being loaded. */
    PAIR(BLACKWELL, "async-write") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        wait_parity(bar, U(0)), after();
        x = load(quarter);
        if (!bad) wait_load();
        before();
        BAR;
        IF(one);
        after();
        product(), ptx_op1(k, PTX_TCGEN05_COMMIT, 0, ptx_off(bar, 8));
        END;
        wait_parity(ptx_off(bar, 8), U(0));
        wait_load();
        out(x);
        release(32);
    }
    /* The accumulator is overwritten before the other warps have loaded it. */
    PAIR(BLACKWELL, "race") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        wait_parity(bar, U(0)), after();
        result();
        before();
        if (!bad) BAR;
        IF(EQ(tid, U(96)));
        after();
        product(), ptx_op1(k, PTX_TCGEN05_COMMIT, 0, ptx_off(bar, 8));
        END;
        wait_parity(ptx_off(bar, 8), U(0));
        release(32);
    }
    /* A product reads A from what another one has not written yet. */
    PAIR(BLACKWELL, "async-read") {
        ptx_val o[5];
        begin(32);
        IF(one);
        product(), commit();
        if (!bad) wait_parity(bar, U(0)), after();
        o[0] = ADD(memory, U(8)), o[1] = memory, o[2] = matrix(ptx_off(sh, B_AT)),
        o[3] = U(D_F32 | M128 | N8), o[4] = no();
        PLAIN(PTX_TCGEN05_MMA_A_F16, 5, o);
        ptx_op1(k, PTX_TCGEN05_COMMIT, 0, ptx_off(bar, 8));
        END;
        wait_parity(ptx_off(bar, 8), U(0)), after();
        result();
        wait_parity(bar, U(0));
        release(32);
    }
    /* A product of another shape into the same columns. */
    PAIR(BLACKWELL, "async-write") {
        begin(32);
        IF(one);
        product(), commit();
        if (!bad) wait_parity(bar, U(0)), after();
        product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N16), no());
        ptx_op1(k, PTX_TCGEN05_COMMIT, 0, ptx_off(bar, 8));
        END;
        wait_parity(ptx_off(bar, 8), U(0)), after();
        result();
        wait_parity(bar, U(0));
        release(32);
    }
    /* A load of what the same warp has stored. */
    PAIR(BLACKWELL, "async-read") {
        begin(32);
        store(quarter, n);
        if (!bad) wait_store();
        result();
        wait_store();
        release(32);
    }
}

static void memory_use(void) {
    /* A column behind the allocation; freed columns; an address that lacks the warp's lanes. */
    PAIR(BLACKWELL, "tensor-memory") {
        begin(32);
        store(ADD(quarter, U(bad ? 32 : 31)), n), wait_store();
        release(32);
    }
    PAIR(BLACKWELL, "tensor-memory") {
        begin(32);
        if (!bad) store(quarter, n), wait_store();
        release(32);
        BAR;
        if (bad) store(quarter, n), wait_store();
    }
    PAIR(BLACKWELL, "tensor-memory") {
        begin(32);
        store(bad ? memory : quarter, n), wait_store();
        release(32);
    }
    /* The lanes of a warp give different addresses. */
    PAIR(BLACKWELL, "tensor-memory") {
        begin(32);
        store(bad ? ADD(quarter, low(tid, 1)) : quarter, n), wait_store();
        release(32);
    }
    /* N columns from the middle of an allocation on leave it. */
    PAIR(BLACKWELL, "tensor-memory") {
        begin(32);
        IF(one);
        product_of(ADD(memory, U(bad ? 28 : 24)), matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | M128 | N8),
                   no());
        commit();
        END;
        wait_parity(bar, U(0));
        release(32);
    }
    /* Columns are not freed; freed twice; freed by another number. */
    PAIR(BLACKWELL, "tensor-allocation") {
        begin(64);
        if (!bad) release(64);
    }
    PAIR(BLACKWELL, "tensor-memory") {
        begin(64);
        release(64);
        if (bad) release(64);
    }
    PAIR(BLACKWELL, "tensor-memory") {
        begin(64);
        release(bad ? 32 : 64);
    }
    /* An allocation after the permit was given back; one that is larger than the one before. */
    PAIR(BLACKWELL, "tensor-allocation") {
        uint32_t j;
        begin(32);
        for (j = 0; j < 2; j++) {
            IF(EQ(warp, zero));
            if (bad == (j == 0)) ptx_op0(k, PTX_TCGEN05_RELINQUISH, 0);
            END;
            if (j == 0) release(32), allocate(32), BAR;
        }
        release(32);
    }
    PAIR(BLACKWELL, "tensor-allocation") {
        begin(32);
        release(32), BAR;
        allocate(bad ? 64 : 32), BAR;
        memory = LD(slot, 0);
        release(bad ? 64 : 32);
    }
    /* More columns than there are. */
    PAIR(BLACKWELL, "deadlock") {
        begin(512);
        if (!bad) release(512);
        BAR;
        allocate(32), BAR;
        memory = LD(slot, 0);
        if (!bad) release(32);
    }
    /* The columns are freed while a product may still write them. */
    PAIR(BLACKWELL, "tensor-allocation") {
        begin(32);
        IF(one);
        product(), commit();
        END;
        if (!bad) wait_parity(bar, U(0));
        release(32);
        if (bad) wait_parity(bar, U(0));
    }
    /* One warp frees them before the others have loaded. */
    PAIR(BLACKWELL, "tensor-allocation") {
        begin(32);
        store(quarter, n), wait_store();
        result();
        if (!bad) BAR;
        IF(EQ(warp, U(3)));
        ptx_op2(k, PTX_TCGEN05_DEALLOC, 0, memory, I(32));
        END;
    }
    /* shift says nothing of the last lane. */
    PAIR(BLACKWELL, "uninitialised-read") {
        uint32_t j;
        begin(32);
        for (j = 0; j < 8; j++) store(ADD(quarter, U(j)), n);
        wait_store(), before();
        BAR;
        IF(one);
        after();
        ptx_op1(k, PTX_TCGEN05_SHIFT_DOWN, 0, memory), commit();
        END;
        wait_parity(bar, U(0)), after();
        x = load(quarter);
        wait_load();
        IF(LT(tid, U(bad ? 32 : 31)));
        out(x);
        END;
        release(32);
    }
}

static void pairs(void) {
    /* A commit for blocks that the cluster does not have. */
    PAIR(BLACKWELL, "multicast-mask") {
        begin(32);
        IF(one);
        product();
        ptx_op2(k, PTX_TCGEN05_COMMIT_MULTICAST, 0, bar, ptx_mov(k, ptx_u16(bad ? 3 : 1)));
        END;
        wait_parity(bar, U(0));
        release(32);
    }
    /* The other block of the pair allocates nothing; another number. */
    {
        int how;
        for (how = 0; how < 2; how++) PAIR(BLACKWELL, how ? "tensor-memory" : "deadlock") {
                ptx_val rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
                CLUSTER(2);
                slot = ptx_shared(k, "slot", PTX_U32, 1, 4);
                group = PTX_CTA_GROUP_2;
                if (bad && !how) IF(EQ(rank, zero));
                IF(EQ(warp, zero));
                ptx_op2(k, PTX_TCGEN05_ALLOC, group, slot, bad && how ? ADD(U(32), SHL(rank, 5)) : U(32));
                END;
                if (bad && !how) END;
                BAR;
                memory = LD(slot, 0);
                if (!bad) release(32);
                cluster_sync();
            }
    }
    /* A product of the pair while the other block may not have its operands yet. */
    PAIR(BLACKWELL, "race") {
        ptx_val rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
        CLUSTER(2);
        group = PTX_CTA_GROUP_2;
        slot = ptx_shared(k, "slot", PTX_U32, 1, 4);
        init_mbarriers(1, 1);
        allocate(32);
        before();
        if (!bad) fill(), proxy_fence();
        cluster_sync();
        if (bad) fill(), proxy_fence(), BAR;
        memory = LD(slot, 0);
        quarter = ADD(memory, SHL(warp, 21));
        IF(ptx_and(k, EQ(rank, zero), one));
        after();
        product_of(memory, matrix(sh), matrix(ptx_off(sh, B_AT)), U(D_F32 | 2 * M128 | N16), no());
        ptx_op2(k, PTX_TCGEN05_COMMIT_MULTICAST, group, bar, ptx_mov(k, ptx_u16(3)));
        END;
        wait_parity(bar, U(0)), after();
        x = load(quarter);
        wait_load();
        out(x);
        release(32);
        cluster_sync();
    }
}

/* A kernel is for one block, or for two: not for both. */
static void groups(void) {
    group = PTX_CTA_GROUP_1;
    PAIR(BLACKWELL, "load") {
        slot = sh;
        allocate(32);
        BAR;
        memory = LD(slot, 0);
        if (bad) group = PTX_CTA_GROUP_2;
        release(32);
        group = PTX_CTA_GROUP_1;
    }
}

int main(void) {
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    if (!open_cpu_driver()) return check_end();
    results();
    operands();
    order();
    memory_use();
    pairs();
    groups();
    return check_end();
}
