/* A kernel of a million instructions costs as much an instruction as one of ten thousand, in time and in
   memory, and built again takes no memory at all.

     cc -std=c99 tests/test_scale.c -o test_scale -lm && ./test_scale */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "check.h"
#include "scale.h"

#include <stdio.h>

/* The promise is 1.5. A quadratic step would make it 100; caches and a busy machine never make it this: */
#define ALLOWED 4.0
#define SMALL 10000u
#define LARGE 1000000u

typedef struct size {
    double seconds[SCALE_STEPS]; /* an instruction, the least of the runs */
    double bytes;                /* an instruction */
} size;

static int measure(uint32_t instructions, uint32_t kernels, int runs, size *s) {
    scale_memory memory = {0, 0, 0};
    ptx_module_desc desc;
    ptx_module *m;
    double seconds[SCALE_STEPS];
    uint32_t count = 0, step;
    size_t calls;
    int run;
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM(90);
    desc.alloc = scale_alloc;
    desc.alloc_user = &memory;
    m = ptx_module_new(&desc);
    if (!m) return 0;
    for (run = 0; run < runs; run++) {
        calls = memory.calls;
        count = scale_run(m, instructions, kernels, seconds);
        if (!count) {
            printf("%s\n", ptx_get_error(m)->message);
            break;
        }
        if (run) CHECK(memory.calls == calls);
        for (step = 0; step < SCALE_STEPS; step++) {
            double each = seconds[step] / ((double)count * kernels);
            if (!run || each < s->seconds[step]) s->seconds[step] = each;
        }
    }
    s->bytes = count ? (double)memory.peak / count : 0;
    ptx_module_free(m);
    CHECK(memory.bytes == 0);
    return count != 0;
}

int main(void) {
    size small, large;
    uint32_t step;
    int ok = measure(SMALL, 20, 3, &small) && measure(LARGE, 1, 2, &large);
    CHECK(ok);
    for (step = 0; ok && step < SCALE_STEPS; step++) {
        double times = large.seconds[step] / (small.seconds[step] > 1e-10 ? small.seconds[step] : 1e-10);
        printf("%-16s %6.1f ns an instruction of 10,000, %6.1f of 1,000,000\n", scale_names[step],
               1e9 * small.seconds[step], 1e9 * large.seconds[step]);
        CHECK(times < ALLOWED);
    }
    if (ok) {
        printf("%-16s %6.1f bytes an instruction of 10,000, %6.1f of 1,000,000\n", "memory", small.bytes,
               large.bytes);
        CHECK(large.bytes < 2 * small.bytes);
    }
    return check_end();
}
