/* tensor_cores.c - wgmma: tiles that are not there yet, or no longer; operands that differ.
 * Wrong programs and their right twins, run on the CPU driver: see fault_words.h. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../fault_words.h"

/* A product reads 2 KB of shared memory. */
static void fetch_tile(void) {
    IF(one);
    ptx_mbarrier_arrive_expect(k, bar, I(2048));
    ptx_bulk_load(k, sh, q, I(2048), bar);
    END;
}
static void fill_tile(void) {
    int j;
    for (j = 0; j < 4; j++) ST(wide, 4 * j, n);
}

static void products(void) {
    /* The stage is given back while the product still reads it. */
    PAIR(HOPPER, "async-write") {
        init_sums();
        init_mbarriers(1, 128);
        i = FOR(n);
        IF(one);
        wait_parity(ptx_off(bar, 8), flip(low(i, 1)));
        END;
        fetch_tile();
        wait_parity(bar, low(i, 1));
        start_product(sh);
        product_wait(bad ? 1 : 0);
        ptx_mbarrier_arrive(k, ptx_off(bar, 8));
        END;
        product_wait(0);
        store_sums();
    }

    /* The tile of a product is not waited for. */
    PAIR(HOPPER, "async-read") {
        init_sums();
        init_mbarriers(1, 1);
        fetch_tile();
        if (!bad) wait_parity(bar, U(0));
        start_product(sh);
        product_wait(0);
        store_sums();
        wait_parity(bar, U(0));
    }

    /* The next tile is fetched while the product still reads the stage. */
    PAIR(HOPPER, "async-write") {
        init_sums();
        init_mbarriers(1, 1);
        i = FOR(n);
        fetch_tile();
        wait_parity(bar, low(i, 1));
        start_product(sh);
        if (!bad) product_wait(0);
        BAR;
        END;
        product_wait(0);
        store_sums();
    }

    /* The next tile is stored while the product still reads the stage. */
    PAIR(HOPPER, "async-write") {
        init_sums();
        FOR(n);
        fill_tile();
        proxy_fence();
        BAR;
        start_product(sh);
        if (!bad) product_wait(0);
        BAR;
        END;
        product_wait(0);
        store_sums();
    }

    /* No barrier lies between the stores of all threads and the product that reads them. */
    PAIR(HOPPER, "race") {
        init_sums();
        fill_tile();
        proxy_fence();
        if (!bad) BAR;
        start_product(sh);
        product_wait(0);
        store_sums();
    }
}

static void product_of(ptx_val descriptor, ptx_val scale) {
    ptx_val o[7];
    init_sums();
    fill_tile();
    proxy_fence();
    BAR;
    o[0] = ptx_or(k, ptx_wgmma_descriptor(k, sh, 128, 256, 0), ptx_cvt(k, PTX_U64, descriptor));
    o[1] = ptx_wgmma_descriptor(k, sh, 128, 256, 0), o[2] = scale;
    o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
    product_wait(0);
    store_sums();
}

/* A descriptor, or the predicate that scales D, is not the same in all threads of the warpgroup. */
static void operands(void) {
    PAIR(HOPPER, "warpgroup") product_of(ptx_as(bad ? low(tid, 1) : low(SHR(tid, 7), 1), PTX_U32), LT(n, I(9)));
    PAIR(HOPPER, "warpgroup") product_of(bad ? low(warp, 1) : SHR(warp, 2), LT(n, I(9)));
    PAIR(HOPPER, "warpgroup") product_of(zero, bad ? one : LT(n, I(9)));
}

/* A block has half of a warpgroup. */
static void block_size(void) {
    PAIR(HOPPER, "warpgroup") {
        BLOCK(bad ? 64u : 128u);
        product_of(zero, LT(n, I(9)));
    }
}

int main(void) {
    if (!open_cpu_driver()) return check_end();
    products();
    operands();
    block_size();
    return check_end();
}
