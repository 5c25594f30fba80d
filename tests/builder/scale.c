/* A kernel of a million instructions costs as much an instruction as one of ten thousand, in time and in
   memory, and built again takes no memory at all. Nor is one of many functions, variables or arrays dearer
   than one of a few.

     make build/tests/builder/scale */
#include "../../ptxgen.h"
#include "../check.h"
#include "../scale.h"

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

/* Many of one kind in a module: seconds for each. */
enum { MANY_ENTRIES, MANY_FUNCTIONS, MANY_VARIABLES, MANY_LOCALS, MANY_POINTERS, MANY };
static const char *const many_names[MANY] = {"entries", "functions", "variables", "local arrays", "pointers"};
static double many(int what, uint32_t count) {
    ptx_module_desc desc = {PTX_SM(90), 0, 0, NULL, NULL, 0};
    ptx_variable_desc v;
    ptx_module *m = ptx_module_new(&desc);
    ptx_kernel *k = NULL, *last = NULL;
    ptx_symbol *made = (ptx_symbol *)calloc(count, sizeof *made), table = {0, 0};
    ptx_entry_info info;
    double t = scale_now();
    char name[32];
    uint32_t i;
    memset(&v, 0, sizeof v);
    v.name = name;
    v.type = PTX_U64;
    v.count = 1;
    v.space = PTX_GLOBAL;
    if (what == MANY_LOCALS) k = ptx_entry(m, "all");
    for (i = 0; i < count && made; i++) {
        sprintf(name, "x%lu", (unsigned long)i);
        if (what == MANY_ENTRIES || what == MANY_FUNCTIONS) {
            k = what == MANY_ENTRIES ? ptx_entry(m, name) : ptx_func(m, name, PTX_NONE);
            ptx_param(k, "p", PTX_U32);
            if (last && what == MANY_FUNCTIONS) { /* a chain of calls as long as that */
                ptx_val n = ptx_mov(k, ptx_u32(i));
                ptx_call(k, last, 1, &n);
            }
            ptx_ret(k);
            last = k;
        } else if (what == MANY_LOCALS)
            ptx_local(k, name, PTX_U32, 1, 4);
        else
            made[i] = ptx_variable(m, &v);
    }
    v.name = "table";
    v.count = count;
    if (what == MANY_POINTERS) table = ptx_variable(m, &v);
    for (i = 0; i < count && what == MANY_POINTERS; i++) ptx_point(m, table, i, made[i], 0);
    if (what != MANY_ENTRIES) {
        if (what != MANY_LOCALS) k = ptx_entry(m, "all");
        ptx_ret(k);
    }
    CHECK_AT(ptx_text(m, NULL) != NULL, __LINE__, many_names[what], ptx_get_error(m)->message);
    for (i = 0; i < ptx_entry_count(m) && ptx_entry_get(m, i, &info); i++) continue;
    CHECK(i == (what == MANY_ENTRIES ? count : 1));
    t = (scale_now() - t) / count;
    ptx_module_free(m);
    free(made);
    return t;
}
static void test_many(void) {
    int what, run;
    for (what = 0; what < MANY; what++) {
        double few = 1, lots = 1, each;
        for (run = 0; run < 3; run++) {
            if ((each = many(what, 4000)) < few) few = each;
            if ((each = many(what, 64000)) < lots) lots = each;
        }
        printf("%-16s %6.1f ns each of 4,000, %6.1f of 64,000\n", many_names[what], 1e9 * few, 1e9 * lots);
        CHECK(lots < ALLOWED * few); /* 16 times, if it were quadratic */
    }
}

int main(void) {
    size small, large;
    uint32_t step;
    int ok = measure(SMALL, 20, 3, &small) && measure(LARGE, 1, 2, &large);
    CHECK(ok);
    test_many();
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
