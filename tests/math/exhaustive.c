/* exhaustive.c - the f32 functions of one operand over all 2^32 operands: the kernels' texts as C (twin.h), against
 * the C library in double.
 *
 *   exhaustive [STRIDE] [NAME ...]    every STRIDE-th operand (default 4999) of these functions, or of all
 *
 * Where approximate instructions are, they err by their documented bound: not at all, up, down, and rcp and rsqrt
 * the other way than the rest. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../check.h"
#include "functions.h"

#include <pthread.h>

enum { BLOCK = 4096, MODES = 5 };
static const int shares[MODES] = {0, 1, -1, 1, -1}, signs[MODES] = {1, 1, 1, -1, -1};
static uint32_t threads = 2; /* PTXGEN_MATH_THREADS */
enum { MOST_THREADS = 64 };

typedef void run_fn(uint64_t first, uint64_t stride, uint32_t n, uint32_t *out);
typedef void exact_fn(const float *x, double *y, uint32_t n);
typedef struct search {
    run_fn *run[MODES];
    exact_fn *exact;
    uint64_t stride;
    uint32_t modes, id, is_lgamma, worst_at[MODES];
    double worst[MODES];
    pthread_t thread;
} search;

/* The largest error of one block where it is above `worst`; its place. x: the operands of lgamma, else NULL. */
static double block_error(const float *x, const uint32_t *got, const double *exact, uint32_t n, double worst,
                          uint32_t *at)
{
    for (uint32_t i = 0; i < n; i++) {
        double y = (double)float_of(got[i]), e = exact[i], error;
        uint64_t bits, unit;
        memcpy(&bits, &e, sizeof bits);
        unit = bits >> 52 & 0x7ff;
        unit = (2 * 1023 + 23 - (unit < 1023 - 126 ? 1023 - 126 : unit)) << 52; /* 2^23 to the exponent of e */
        memcpy(&error, &unit, sizeof error);
        error *= fabs(y - e);
        if (error <= worst && (bits >> 63) == got[i] >> 31) continue; /* the usual ones, in a hurry */
        error = ulp_error(float_of(got[i]), e);
        if (x && x[i] < -2 && error < 1e9) error *= lgamma_share((double)x[i]);
        if (error > worst) worst = error, *at = i;
    }
    return worst;
}

static void *search_run(void *user)
{
    search *s = (search *)user;
    static _Thread_local float x[BLOCK];
    static _Thread_local double exact[BLOCK];
    static _Thread_local uint32_t got[BLOCK];
    uint64_t total = ((UINT64_C(1) << 32) + s->stride - 1) / s->stride;
    for (uint64_t first = (uint64_t)s->id * BLOCK; first < total; first += (uint64_t)threads * BLOCK) {
        uint32_t n = total - first < BLOCK ? (uint32_t)(total - first) : BLOCK, at = 0;
        for (uint32_t i = 0; i < n; i++) x[i] = float_of((first + i) * s->stride);
        s->exact(x, exact, n);
        for (uint32_t mode = 0; mode < s->modes; mode++) {
            double worst;
            s->run[mode](first * s->stride, s->stride, n, got);
            worst = block_error(s->is_lgamma ? x : NULL, got, exact, n, s->worst[mode], &at);
            if (worst > s->worst[mode]) s->worst[mode] = worst, s->worst_at[mode] = bits_of(x[at]);
        }
    }
    return NULL;
}

/* Half of all operands, for which the C library is slow. */
static int negative_is_nan(const char *name) { return !strncmp(name, "log", 3); }

/* Whether the command line names the function, or none. */
static int is_wanted(const math_function *f, int argc, char **argv)
{
    int wanted = argc < 3;
    for (int j = 2; j < argc; j++) wanted |= !strcmp(argv[j], f->name);
    return wanted && f->operands == 1;
}

/* The twins' file is compiled once for each mode: with its errors constant, a loop over operands runs several at
 * once. */
static void write_functions(FILE *twins, FILE *references, int argc, char **argv)
{
    fputs("#define NAME__(i, mode) run##i##_##mode\n#define NAME_(i, mode) NAME__(i, mode)\n"
          "#define NAME(i) NAME_(i, TWIN_MODE)\n", twins);
    fputs("#include \"tests/math/twin_prelude.h\"\n", twins);
    fputs("#include <math.h>\n", references);
    fputs("static void exact_nan(double *y, unsigned n) { while (n--) y[n] = __builtin_nan(\"\"); }\n", references);
    for (int i = 0; i < MATH_RESULTS; i++) {
        const math_function *f = math_function_at(i);
        ptx_module *m = math_kernel(f, PTX_F32);
        const char *text = is_wanted(f, argc, argv) ? ptx_text(m, NULL) : NULL;
        char name[32];
        snprintf(name, sizeof name, "twin%d", i);
        if (text) {
            fprintf(twins, "#if %d || TWIN_MODE == 0\n", strstr(text, ".approx") != NULL);
            twin_write(twins, text, name);
            fprintf(twins,
                    "void NAME(%d)(uint64_t first, uint64_t stride, uint32_t n, uint32_t *out) {\n"
                    "  for (uint32_t i = 0; i < n; i++) {\n"
                    "    uint64_t x = (uint32_t)(first + i * stride), y[2]; %s(&x, y); out[i] = (uint32_t)y[%d]; } }\n"
                    "#endif\n",
                    i, name, math_result(f));
            fprintf(references, "void exact%d(const float *x, double *y, unsigned n)\n"
                    "{ %s for (unsigned i = 0; i < n; i++) y[i] = %s((double)x[i]); }\n",
                    i, negative_is_nan(f->name) ? "if (x[0] < -1 && x[n - 1] < -1) { exact_nan(y, n); return; }" : "",
                    math_reference(f));
        }
        ptx_module_free(m);
    }
}

static void *function_of(void *library, const char *name, int i)
{
    char full[32];
    snprintf(full, sizeof full, "%s%d", name, i);
    return dlsym(library, full);
}

int main(int argc, char **argv)
{
    char path[] = "/tmp/ptxgen_math_XXXXXX", twins[64], references[64], command[900], name[32];
    const char *wish = getenv("PTXGEN_MATH_THREADS");
    uint64_t stride = argc > 1 ? strtoull(argv[1], NULL, 0) : 4999;
    FILE *a, *b;
    void *library;
    int compiled = 1;
    if (wish && atoi(wish) > 0 && atoi(wish) <= MOST_THREADS) threads = (uint32_t)atoi(wish);
    if (!CHECK(mkdtemp(path) != NULL) || !CHECK(stride > 0)) return check_end();
    snprintf(twins, sizeof twins, "%s/twins.c", path);
    snprintf(references, sizeof references, "%s/exact.c", path);
    a = fopen(twins, "w"), b = fopen(references, "w");
    if (!CHECK(a && b)) return check_end();
    write_functions(a, b, argc, argv);
    fclose(a);
    fclose(b);
    /* -ffast-math only lets the compiler take the vector forms of the references, good to 4 ulp of a double. */
    for (int mode = 0; mode < MODES; mode++) {
        snprintf(command, sizeof command,
                 "p=$PWD && cd %s && ${CC:-cc} -std=gnu11 -O3 -march=native -ffp-contract=off -fno-math-errno "
                 "-fno-trapping-math -I$p -fPIC -DTWIN_MODE=%d -DTWIN_SHARE=%d -DTWIN_SIGN=%d -c twins.c -o %d.o",
                 path, mode, shares[mode], signs[mode], mode);
        compiled &= CHECK_MORE(system(command) == 0, command);
    }
    snprintf(command, sizeof command,
             "cd %s && ${CC:-cc} -O3 -march=native -ffast-math -D_GNU_SOURCE -fPIC -c exact.c && "
             "${CC:-cc} -shared -o f.so *.o -lm",
             path);
    compiled &= CHECK_MORE(system(command) == 0, command);
    if (!compiled) puts("the functions do not compile; is the current folder the repository's?");
    snprintf(command, sizeof command, "%s/f.so", path);
    library = compiled ? dlopen(command, RTLD_NOW) : NULL;
    CHECK_MORE(!compiled || library, compiled && !library ? dlerror() : "");
    for (int i = 0; library && i < MATH_RESULTS; i++) {
        const math_function *f = math_function_at(i);
        search s[MOST_THREADS];
        if (!is_wanted(f, argc, argv)) continue;
        ptx_module *m = math_kernel(f, PTX_F32);
        const char *text = ptx_text(m, NULL);
        memset(s, 0, sizeof s);
        for (uint32_t t = 0; t < threads; t++) {
            void *exact = function_of(library, "exact", i);
            for (int mode = 0; mode < MODES; mode++) {
                snprintf(name, sizeof name, "run%d_%d", i, mode);
                void *run = dlsym(library, name);
                memcpy(&s[t].run[mode], &run, sizeof run);
            }
            memcpy(&s[t].exact, &exact, sizeof exact);
            s[t].stride = stride;
            s[t].id = t;
            s[t].is_lgamma = !strcmp(f->name, "lgamma");
            s[t].modes = text && strstr(text, ".approx") ? MODES : 1;
            CHECK(pthread_create(&s[t].thread, NULL, search_run, &s[t]) == 0);
        }
        for (uint32_t t = 0; t < threads; t++) pthread_join(s[t].thread, NULL);
        printf("%-8s", f->name);
        for (uint32_t mode = 0; mode < s[0].modes; mode++) {
            const search *worst = &s[0];
            for (uint32_t t = 1; t < threads; t++)
                if (s[t].worst[mode] > worst->worst[mode]) worst = &s[t];
            printf(" %.4f at %a%s", worst->worst[mode], (double)float_of(worst->worst_at[mode]),
                   mode + 1 < s[0].modes ? "," : "\n");
            if (!CHECK_MORE(worst->worst[mode] <= f->ulp, f->name)) printf("  declared: %g ulp\n", f->ulp);
        }
        fflush(stdout);
        ptx_module_free(m);
    }
    snprintf(command, sizeof command, "rm -r %s", path);
    CHECK(system(command) == 0);
    return check_end();
}
