/* bench - emission speed and launch overhead, as ratios and differences within one run.

   EMISSION  Every example of ptxgen_kernels.h is built, verified and printed, one thread, memory kept by
             reset; beside it a loop that formats the same lines from a ready array with no checks. The two
             take turns; the figure is the median of the rounds' ratios.
   LENGTH    One kernel of 10,000 and one of 1,000,000 instructions: time and memory for each instruction.
   LAUNCH    ptxcu_operation (a hit) + ptxcu_run of an operation with one empty kernel, against the driver's
             cuLaunchKernel called bare; batches take turns, the figure is the median of their differences.
             Once with the handle's context current, once with none, which is pushed and popped each time.
   What is promised is a gate: its figure, its limit, and "held" or "MISSED". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../../examples/operation_examples.h"
#include "../scale.h"

#define ROUNDS 15
#define LENGTH_ROUNDS 100

static double seconds(void) {
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the processor, which others that want it too do not stretch. */
static double busy(void) { return (double)clock() / CLOCKS_PER_SEC; }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(double *v, size_t n) {
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

/* A promise beside what came of it. */
static void gate(const char *what, double figure, int at_least, double limit) {
    int held = at_least ? figure >= limit : figure <= limit;
    printf("  gate: %-46s %8.2f  at %s %.4g  %s\n", what, figure, at_least ? "least" : "most", limit,
           held ? "held" : "MISSED");
}

/* -- emission -- */

typedef union description {
    uint64_t align;
    unsigned char bytes[256];
} description;

/* All examples through one reused module: the bytes printed; instructions if wanted; 0 on an error. */
static size_t emit_all(ptx_module *m, char *copy, uint64_t *instructions) {
    uint32_t op, variant, e;
    size_t total = 0, length;
    description d;
    for (op = 0; op < ptxk_operation_count(); op++)
        for (variant = 0; operation_example(op, variant, &d, sizeof d, NULL); variant++) {
            const char *text;
            ptx_module_reset(m);
            ptxk_operation_get(op)->emit(m, PTX__AT, &d);
            text = ptx_text(m, &length);
            if (!text) {
                fprintf(stderr, "bench: %s\n", ptx_get_error(m)->message);
                return 0;
            }
            if (copy) memcpy(copy + total, text, length);
            total += length;
            for (e = 0; instructions && e < ptx_entry_count(m); e++) {
                ptx_entry_info info;
                ptx_entry_get(m, e, &info);
                *instructions += info.instructions;
            }
        }
    return total;
}

/* The ready array: lines of a mnemonic and operands. An operand is a register, or text as it stands. */
typedef struct operand {
    const char *text; /* NULL: a register */
    uint32_t length, number;
    char letter;
} operand;
typedef struct line {
    const char *text; /* up to the first operand */
    uint32_t length, operands;
} line;

static int is_register(const char *s) {
    return s[0] == '%' && s[1] && strchr("phrd", s[1]) && s[2] >= '0' && s[2] <= '9';
}

/* Take text apart; with out and ops NULL only count. Returns the lines. */
static size_t make_lines(const char *s, line *out, operand *ops, size_t *operands) {
    size_t lines = 0, n = 0;
    while (*s) {
        const char *start = s;
        size_t first = n;
        while (*s != '\n' && !is_register(s)) s++;
        if (out) {
            out[lines].text = start;
            out[lines].length = (uint32_t)(s - start);
        }
        while (*s != '\n') {
            operand op = {NULL, 0, 0, 0};
            if (is_register(s)) {
                op.letter = s[1];
                for (s += 2; *s >= '0' && *s <= '9'; s++) op.number = op.number * 10 + (uint32_t)(*s - '0');
            } else {
                op.text = s;
                while (*s != '\n' && !is_register(s)) s++;
                op.length = (uint32_t)(s - op.text);
            }
            if (ops) ops[n] = op;
            n++;
        }
        if (out) out[lines].operands = (uint32_t)(n - first);
        lines++;
        s++;
    }
    *operands = n;
    return lines;
}

static size_t format_lines(const line *l, size_t n, const operand *op, char *out) {
    char *at = out;
    for (; n--; l++) {
        uint32_t i;
        memcpy(at, l->text, l->length);
        at += l->length;
        for (i = 0; i < l->operands; i++, op++) {
            if (op->text) {
                memcpy(at, op->text, op->length);
                at += op->length;
            } else {
                uint32_t value = op->number;
                char digit[10];
                int k = 0;
                *at++ = '%';
                *at++ = op->letter;
                do digit[k++] = (char)('0' + value % 10);
                while (value /= 10);
                while (k) *at++ = digit[--k];
            }
        }
        *at++ = '\n';
    }
    return (size_t)(at - out);
}

static int bench_emission(void) {
    ptx_module_desc desc = {PTX_SM(90), 0, 0, NULL, NULL, 0};
    ptx_module *m = ptx_module_new(&desc);
    uint64_t instructions = 0;
    size_t bytes = emit_all(m, NULL, &instructions), lines, operands;
    char *text = (char *)malloc(bytes + 1), *again = (char *)malloc(bytes + 1);
    line *ready;
    operand *ops;
    double ours[ROUNDS], bare[ROUNDS], ratio[ROUNDS];
    int round, i, repeat = 4;
    if (!bytes || !text || !again) return 1;
    emit_all(m, text, NULL);
    text[bytes] = 0;
    lines = make_lines(text, NULL, NULL, &operands);
    ready = (line *)malloc(lines * sizeof *ready);
    ops = (operand *)malloc(operands * sizeof *ops);
    if (!ready || !ops) return 1;
    make_lines(text, ready, ops, &operands);
    if (format_lines(ready, lines, ops, again) != bytes || memcmp(text, again, bytes)) {
        fprintf(stderr, "bench: the bare loop printed something else\n");
        return 1;
    }
    for (round = 0; round < ROUNDS; round++) {
        double t0 = busy(), t1;
        for (i = 0; i < repeat; i++) emit_all(m, NULL, NULL);
        t1 = busy();
        ours[round] = (t1 - t0) / repeat;
        for (i = 0; i < repeat; i++) format_lines(ready, lines, ops, again);
        bare[round] = (busy() - t1) / repeat;
        ratio[round] = bare[round] / ours[round];
    }
    printf("emission: %.2f MB of PTX, %llu instructions recorded\n", (double)bytes / 1e6,
           (unsigned long long)instructions);
    printf("  build, verify, print  %7.0f MB/s  %5.1f ns an instruction\n",
           (double)bytes / 1e6 / median(ours, ROUNDS), 1e9 * median(ours, ROUNDS) / (double)instructions);
    printf("  bare formatting loop  %7.0f MB/s\n", (double)bytes / 1e6 / median(bare, ROUNDS));
    gate("build, verify, print by the bare loop", median(ratio, ROUNDS), 1, 0.6);
    ptx_module_free(m);
    free(text);
    free(again);
    free(ready);
    free(ops);
    return 0;
}

/* -- length -- */

/* The short kernels and the long one take turns, for 8 seconds. The figure is the median of their ratios.
   Other programs slow down the long one more, which needs more of the caches: measure on a quiet machine.
   The first round, which allocates, does not count. */
static int bench_length(void) {
    static const uint32_t length[2] = {10000, 1000000}, kernels[2] = {100, 1};
    double best[2][SCALE_STEPS], spent[SCALE_STEPS], ratio[LENGTH_ROUNDS], each[2], start = seconds();
    scale_memory memory[2] = {{0, 0, 0}, {0, 0, 0}};
    uint32_t count[2] = {1, 1};
    ptx_module *m[2];
    size_t calls, again = 0;
    int which, round, step;
    for (which = 0; which < 2; which++) {
        ptx_module_desc desc = {PTX_SM(90), 0, 0, scale_alloc, NULL, 0};
        desc.alloc_user = &memory[which];
        m[which] = ptx_module_new(&desc);
    }
    for (round = -1; round < 4 || (round < LENGTH_ROUNDS && seconds() - start < 8); round++) {
        for (which = 0; which < 2; which++) {
            double instructions;
            calls = memory[which].calls;
            count[which] = scale_run(m[which], length[which], kernels[which], spent);
            if (!count[which]) {
                fprintf(stderr, "bench: %s\n", ptx_get_error(m[which])->message);
                return 1;
            }
            if (round >= 0) again += memory[which].calls - calls;
            instructions = (double)count[which] * kernels[which];
            for (step = 0; step < SCALE_STEPS; step++) {
                double ns = 1e9 * spent[step] / instructions;
                if (round < 0 || ns < best[which][step]) best[which][step] = ns;
            }
            each[which] = (spent[SCALE_BUILD] + spent[SCALE_TEXT]) / instructions;
        }
        if (round >= 0) ratio[round] = each[1] / each[0];
    }
    printf("a kernel of       10,000   1,000,000 instructions: ns each\n");
    for (step = 0; step < SCALE_STEPS; step++)
        printf("  %-16s %5.1f %11.1f\n", scale_names[step], best[0][step], best[1][step]);
    printf("  bytes each       %5.0f %11.0f\n", (double)memory[0].peak / count[0],
           (double)memory[1].peak / count[1]);
    gate("build, verify, print: the long by the short", median(ratio, (size_t)round), 0, 1.3);
    gate("allocations after a reset", (double)again, 0, 0);
    for (which = 0; which < 2; which++) ptx_module_free(m[which]);
    return 0;
}

/* -- launch -- */

typedef struct empty_args {
    uint64_t a, b;
} empty_args;

static ptx_code emit_empty(ptx_module *m, const char *site, const void *desc) {
    ptx_kernel *k = ptx_entry(m, "empty");
    (void)site;
    (void)desc;
    ptx_param_bytes(k, "args", sizeof(empty_args), 8);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                         void **, void **);
typedef int (*load_fn)(void **, const void *);
typedef int (*find_fn)(void **, void *, const char *);
typedef int (*current_fn)(void *);

static int bench_launch(void) {
    static const uint32_t desc = 0;
    enum { BATCH = 4000 };
    ptx_operation op = {"empty", sizeof desc, emit_empty};
    ptx_plan plan;
    empty_args args = {0, 0};
    void *params[1], *symbol[4], *module = NULL, *function = NULL;
    launch_fn bare_launch;
    load_fn load;
    find_fn find;
    current_fn set_current;
    ptxcu *cu = NULL;
    ptxcu_program *program = NULL;
    ptx_module *m = NULL;
    double ours[ROUNDS], pushed[ROUNDS], bare[ROUNDS], extra[ROUNDS], push_extra[ROUNDS];
    int round, i, push;
    unsigned failed;
    memset(&plan, 0, sizeof plan);
    plan.launches = 1;
    plan.args_bytes = sizeof args;
    for (i = 0; i < 3; i++) plan.launch[0].grid[i] = plan.launch[0].block[i] = 1;
    params[0] = &args;

    failed = ptxcu_open(&cu, NULL);
    symbol[0] = ptxcu_symbol(cu, "cuLaunchKernel");
    symbol[1] = ptxcu_symbol(cu, "cuModuleLoadData");
    symbol[2] = ptxcu_symbol(cu, "cuModuleGetFunction");
    memcpy(&bare_launch, &symbol[0], sizeof symbol[0]);
    memcpy(&load, &symbol[1], sizeof symbol[1]);
    memcpy(&find, &symbol[2], sizeof symbol[2]);
    symbol[3] = ptxcu_symbol(cu, "cuCtxSetCurrent");
    memcpy(&set_current, &symbol[3], sizeof symbol[3]);
    m = ptx_module_new(NULL);
    emit_empty(m, PTX__AT, NULL);
    if (!failed) failed = ptxcu_operation(cu, &op, &desc, &program);
    if (!failed) failed = (unsigned)set_current(ptxcu_get_context(cu));
    if (!failed) failed = load(&module, ptx_text(m, NULL)) || find(&function, module, "empty");
    for (round = 0; round < ROUNDS && !failed; round++) {
        double t0, t1 = 0;
        for (push = 1; push >= 0; push--) {
            failed |= (unsigned)set_current(push ? NULL : ptxcu_get_context(cu));
            t0 = seconds();
            for (i = 0; i < BATCH; i++) {
                failed |= (unsigned)ptxcu_operation(cu, &op, &desc, &program);
                failed |= (unsigned)ptxcu_run(cu, program, &plan, &args, sizeof args, NULL);
            }
            ptxcu_sync(cu);
            t1 = seconds();
            (push ? pushed : ours)[round] = 1e9 * (t1 - t0) / BATCH;
        }
        for (i = 0; i < BATCH; i++)
            failed |= (unsigned)bare_launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
        ptxcu_sync(cu);
        bare[round] = 1e9 * (seconds() - t1) / BATCH;
        extra[round] = ours[round] - bare[round];
        push_extra[round] = pushed[round] - bare[round];
    }
    if (failed)
        fprintf(stderr, "bench: %s\n", ptxcu_get_error(cu)->message);
    else {
        printf("launch of an empty kernel on %s\n", ptxcu_device_info(cu)->name);
        printf("  found again and run   %7.0f ns\n", median(ours, ROUNDS));
        printf("  bare driver call      %7.0f ns\n", median(bare, ROUNDS));
        gate("difference, ns", median(extra, ROUNDS), 0, 300);
        gate("difference where no context is current, ns", median(push_extra, ROUNDS), 0, 300);
    }
    ptx_module_free(m);
    ptxcu_close(cu);
    return failed != 0;
}

int main(void) { return bench_emission() || bench_length() || bench_launch(); }
