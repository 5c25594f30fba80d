/* functions.h - the functions of ptxgen.h's [MATH], each with its C reference and the error that its declaration
 * states; kernels of them, and those kernels as C (twin.h), compiled and loaded.
 *
 * Include it behind _POSIX_C_SOURCE, ptxgen.h and check.h. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "twin.h"

#include <dlfcn.h>
#include <math.h>

typedef struct math_function {
    const char *name;
    unsigned operands;
    double ulp, ulp64; /* as declared of f32 and f64 */
    double (*one)(double);
    double (*two)(double, double);
    long double (*one64)(long double);
    long double (*two64)(long double, long double);
} math_function;

static inline double exact_exp10(double x) { return (double)powl(10, x); }
static inline long double exact_exp10l(long double x) { return powl(10, x); }
/* glibc's powl(-inf, -2^63) is infinite. */
static inline long double exact_powl(long double x, long double y)
{
    return isinf(x) || x == 0 || fabsl(y) >= 0x1p62L ? (long double)pow((double)x, (double)y) : powl(x, y);
}
#define ONE(name, ulp, ulp64) {#name, 1, ulp, ulp64, name, NULL, name##l, NULL}
#define TWO(name, ulp, ulp64) {#name, 2, ulp, ulp64, NULL, name, NULL, name##l}
static const math_function math_functions[] = {
    ONE(sin, 1.6, 1.6),
    ONE(cos, 1.7, 1.7),
    {"sincos", 1, 1.7, 1.7, sin, NULL, sinl, NULL}, /* and the cosine */
    ONE(tan, 2.0, 1.8),
    ONE(asin, 2.0, 1.7),
    ONE(acos, 1.2, 1.3),
    ONE(atan, 1.9, 1.6),
    ONE(sinh, 1.7, 1.8),
    ONE(cosh, 1.4, 1.4),
    ONE(tanh, 1.9, 1.8),
    ONE(exp, 2.0, 1.0),
    ONE(exp2, 2.5, 1.0), /* f32: 2 of the instruction, from the correctly rounded result */
    {"exp10", 1, 2.0, 1.1, exact_exp10, NULL, exact_exp10l, NULL},
    ONE(expm1, 1.6, 1.9),
    ONE(log, 1.0, 0.6),
    ONE(log2, 1.8, 0.6),
    ONE(log10, 1.9, 0.6),
    ONE(log1p, 1.4, 1.5),
    ONE(cbrt, 0.9, 0.8),
    ONE(erf, 1.8, 1.2),
    ONE(erfc, 4.0, 1.7),
    ONE(tgamma, 4.0, 1.8),
    ONE(lgamma, 4.0, 1.8), /* below -2 in units of lgamma(-x), or 1 */
    TWO(atan2, 1.8, 1.7),
    TWO(hypot, 1.2, 1.2),
    {"pow", 2, 2.0, 1.6, NULL, pow, NULL, exact_powl},
};
enum { MATH_FUNCTIONS = sizeof math_functions / sizeof *math_functions, MATH_RESULTS };

/* The functions; behind them the cosine of sincos. Which result of the kernel that is, and C's name for it. */
static inline const math_function *math_function_at(int i)
{
    static const math_function cosine = {"sincos", 1, 1.7, 1.7, cos, NULL, cosl, NULL};
    return i < MATH_FUNCTIONS ? math_functions + i : &cosine;
}
static inline int math_result(const math_function *f) { return f->one == cos && f->name[0] == 's'; }
static inline const char *math_reference(const math_function *f)
{
    return strcmp(f->name, "sincos") != 0 ? f->name : math_result(f) ? "cos" : "sin";
}

/* The kernel: entry "f" of operands x[n], y[n] and results to[n], to[n + i] the second. */
static ptx_module *math_kernel(const math_function *f, ptx_type type)
{
    ptx_module *m = ptx_module_new(NULL);
    ptx_kernel *k = ptx_entry(m, "f");
    ptx_val from[3], v[3], to, i, n, r, behind, second;
    unsigned j;
    for (j = 0; j < 3; j++) {
        from[j] = ptx_param_ptr(k, j == 0 ? "x" : j == 1 ? "y" : "z", PTX_GLOBAL);
        v[j] = ptx_imm(0);
    }
    to = ptx_param_ptr(k, "to", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    i = ptx_global_x(k);
    behind = ptx_add(k, i, n);
    for (j = 0; j < f->operands; j++) v[j] = ptx_ld_elem(k, type, from[j], i);
    if (!strcmp(f->name, "sincos"))
        ptx_sincos(k, v[0], &r, &second);
    else
        r = ptx_math_(k, PTX__AT, f->name, f->operands, v[0], v[1], v[2]);
    ptx_st_elem(k, type, to, i, r);
    if (!strcmp(f->name, "sincos")) ptx_st_elem(k, type, to, behind, second);
    ptx_ret(k);
    CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
    return m;
}

typedef void twin_fn(const uint64_t *x, uint64_t *y);

/* Compiles the twins, functions t0, t1 ... that `source` has, and loads them. They are exact but for `twin_share`
 * (twin_prelude.h). `libraries`: what else to link. NULL: no compiler; a failed check: it refuses them. */
static void *load_twins(const char *source, const char *libraries)
{
    char command[800];
    void *library;
    snprintf(command, sizeof command,
             "${CC:-cc} -std=gnu11 -O2 -march=native -ffp-contract=off -fno-math-errno "
             "-w -Werror=implicit-function-declaration -shared -fPIC -I. -xc -o %s.so %s %s -lm",
             source, source, libraries);
    if (!CHECK_MORE(system(command) == 0, command)) return NULL;
    snprintf(command, sizeof command, "%s.so", source);
    library = dlopen(command, RTLD_NOW);
    CHECK_MORE(library != NULL, library ? "" : dlerror());
    remove(command);
    return library;
}

static inline float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float v;
    memcpy(&v, &low, sizeof v);
    return v;
}
static inline uint32_t bits_of(float v)
{
    uint32_t x;
    memcpy(&x, &v, sizeof x);
    return x;
}

static inline uint64_t bits64_of(double v)
{
    uint64_t x;
    memcpy(&x, &v, sizeof x);
    return x;
}
static inline double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* |y - exact| in units of the exact value's last place, of f32 or f64; 1e9 where NaN, an infinity or a sign is
 * wrong. */
static inline double ulp_error_of(int wide, double y, long double exact)
{
    long double size = fabsl(exact), value = y, limit = wide ? 0x1p1024L : 0x1p128L;
    int exponent, digits = wide ? 53 : 24, least = wide ? -1074 : -149;
    if (exact != exact || y != y) return exact != exact && y != y ? 0 : 1e9;
    if (!signbit(y) != !signbit(exact)) return 1e9;
    if (size == 0) return y == 0 ? 0 : 1e9;
    if (size >= limit) return isinf(y) ? 0 : 1e9;
    if (isinf(y)) value = copysignl(limit, exact);
    frexpl(size, &exponent);
    exponent = exponent - digits < least ? least : exponent - digits;
    return (double)ldexpl(fabsl(value - exact), -exponent);
}
static inline double ulp_error(float y, double exact) { return ulp_error_of(0, (double)y, exact); }

/* lgamma has zeros between its poles: its error below -2 counts in units of the last place of lgamma(-x) or 1, where
 * those are larger. By this an error in its own units is multiplied. */
static inline double lgamma_share(double x) { return fmin(1, fabs(lgamma(x)) / fmax(1, lgamma(-x))); }
#endif
