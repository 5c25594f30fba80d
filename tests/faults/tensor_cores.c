/* tensor_cores.c - wgmma: tiles that are not there yet, or no longer.
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

int main(void) {
    if (!open_cpu_driver()) return check_end();
    products();
    return check_end();
}
