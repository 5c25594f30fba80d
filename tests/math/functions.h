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
    double ulp; /* as declared, of f32 */
    double (*one)(double);
    double (*two)(double, double);
} math_function;

static inline double exact_exp10(double x) { return (double)powl(10, x); }
static const math_function math_functions[] = {
    {"sin", 1, 1.6, sin, NULL},
    {"cos", 1, 1.7, cos, NULL},
    {"sincos", 1, 1.7, sin, NULL}, /* and the cosine */
    {"tan", 1, 2.0, tan, NULL},
    {"asin", 1, 2.0, asin, NULL},
    {"acos", 1, 1.2, acos, NULL},
    {"atan", 1, 1.8, atan, NULL},
    {"sinh", 1, 1.7, sinh, NULL},
    {"cosh", 1, 1.4, cosh, NULL},
    {"tanh", 1, 1.8, tanh, NULL},
    {"exp", 1, 2.0, exp, NULL},
    {"exp2", 1, 2.5, exp2, NULL}, /* 2 of the instruction, from the correctly rounded result */
    {"exp10", 1, 1.0, exact_exp10, NULL},
    {"expm1", 1, 1.6, expm1, NULL},
    {"log", 1, 1.0, log, NULL},
    {"log2", 1, 1.7, log2, NULL},
    {"log10", 1, 1.2, log10, NULL},
    {"log1p", 1, 1.4, log1p, NULL},
    {"cbrt", 1, 0.9, cbrt, NULL},
    {"erf", 1, 1.7, erf, NULL},
    {"atan2", 2, 1.8, NULL, atan2},
    {"hypot", 2, 1.2, NULL, hypot},
    {"pow", 2, 1.6, NULL, pow},
};
enum { MATH_FUNCTIONS = sizeof math_functions / sizeof *math_functions };

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
 * (twin_prelude.h). NULL: no compiler; a failed check: it refuses them. */
static void *load_twins(const char *source)
{
    char command[800];
    void *library;
    snprintf(command, sizeof command,
             "${CC:-cc} -std=gnu11 -O2 -march=native -ffp-contract=off -fno-math-errno "
             "-Werror=implicit-function-declaration -shared -fPIC -I. -xc -o %s.so %s -lm",
             source, source);
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

/* |y - exact| in units of the exact value's last place, 1e9 where NaN, an infinity or a sign is wrong. */
static double ulp_error(float y, double exact)
{
    double size = fabs(exact), y_wide = (double)y;
    int exponent;
    if (exact != exact || y != y) return exact != exact && y != y ? 0 : 1e9;
    if (!signbit(y) != !signbit(exact)) return 1e9;
    if (size == 0) return y == 0 ? 0 : 1e9;
    if (size >= 0x1p128) return isinf(y) ? 0 : 1e9;
    if (isinf(y)) y_wide = copysign(0x1p128, exact);
    frexp(size, &exponent);
    exponent = exponent - 24 < -149 ? -149 : exponent - 24;
    return ldexp(fabs(y_wide - exact), -exponent);
}
#endif
