/* sass.c - the machine instructions of sm_90 that each function of [MATH] costs, by ptxas, beside those of CUDA's
 * libdevice (13.0, nvcc -O3): all of them, and those of the usual path, on which no guard leads away. Counted as what
 * a kernel y[i] = f(x[i]) has beyond y[i] = x[i]. Skips where there is no ptxas. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../kerneltest.h"
#include "../sass.h"
#include "functions.h"

/* libdevice's counts. The usual path leaves out guards, and the slow paths behind them. */
typedef struct yardstick {
    const char *name;
    unsigned total, usual, total64, usual64;
} yardstick;
static const yardstick libdevice[] = {
    {"sin", 94, 24, 201, 36},    {"cos", 95, 25, 205, 37},     {"sincos", 146, 32, 234, 66}, {"tan", 92, 22, 244, 76},
    {"asin", 25, 25, 118, 43},   {"acos", 26, 26, 129, 52},    {"atan", 21, 19, 82, 68},     {"sinh", 25, 25, 216, 89},
    {"cosh", 16, 16, 61, 54},    {"tanh", 17, 17, 100, 58},    {"exp", 10, 10, 61, 44},      {"exp2", 4, 4, 62, 43},
    {"exp10", 10, 10, 69, 50},   {"expm1", 29, 29, 71, 58},    {"log", 28, 25, 84, 64},      {"log2", 30, 27, 90, 70},
    {"log10", 29, 26, 90, 70},   {"log1p", 33, 24, 233, 71},   {"cbrt", 16, 16, 42, 32},     {"erf", 30, 27, 123, 123},
    {"erfc", 48, 48, 170, 158},  {"tgamma", 162, 89, 932, 215}, {"lgamma", 216, 40, 703, 127},
    {"atan2", 156, 44, 211, 102}, {"hypot", 51, 25, 44, 44},   {"pow", 95, 60, 251, 158},
};

static unsigned char image[1 << 16];

/* Instructions of kernel "f" of that text, the jump behind its end and what fills up not counted; of the functions of
 * the module too. */
static uint32_t count(const char *text)
{
    uint32_t n = 0, total = 0, i;
    const unsigned char *code;
    if (!sass_assemble(text, image, sizeof image) || !(code = sass_code(image, "f", &n))) return 0;
    for (i = 0; i < n; i++) {
        uint32_t op = (uint32_t)sass_word(code + 16 * i, 2) & 0xfff;
        total += op != SASS_NOP;
    }
    return total;
}

/* The text with every guarded branch taken: those of [MATH] lead round the unusual. */
static char *usual_path(const char *text)
{
    char *copy = (char *)malloc(strlen(text) + 1), *to = copy;
    if (!copy) abort();
    while (*text) {
        if (!strncmp(text, "\t@!%p", 5)) {
            text = strchr(text, ' ') + 1;
            *to++ = '\t';
        }
        while (*text && (*to++ = *text++) != '\n') {
        }
    }
    *to = 0;
    return copy;
}

int main(void)
{
    static const math_function nothing = {"trunc", 1, 0, 0, NULL, NULL, NULL, NULL};
    uint32_t base[2][3];
    if (!sass_possible("math/sass")) return check_end();
    printf("%-8s   %5s %5s %5s %5s   %5s %5s %5s %5s\n", "", "f32", "usual", "CUDA", "usual", "f64", "usual", "CUDA",
           "usual");
    for (int wide = 0; wide < 2; wide++)
        for (unsigned operands = 1; operands < 3; operands++) {
            math_function f = nothing;
            ptx_module *m;
            f.name = operands == 1 ? "trunc" : "step"; /* one instruction; two */
            f.operands = operands;
            m = math_kernel(&f, wide ? PTX_F64 : PTX_F32);
            base[wide][operands] = count(ptx_text(m, NULL)) - operands;
            ptx_module_free(m);
        }
    for (int i = 0; i < MATH_FUNCTIONS; i++) {
        const math_function *f = math_functions + i;
        const yardstick *y = libdevice;
        while (strcmp(y->name, f->name)) y++;
        printf("%-8s", f->name);
        for (int wide = 0; wide < 2; wide++) {
            ptx_module *m;
            char *usual;
            uint32_t all, path, theirs = wide ? y->usual64 : y->usual;
            m = math_kernel(f, wide ? PTX_F64 : PTX_F32);
            usual = usual_path(ptx_text(m, NULL));
            all = count(ptx_text(m, NULL)) - base[wide][f->operands];
            path = count(usual) - base[wide][f->operands];
            printf("   %5u %5u %5u %5u", all, path, wide ? y->total64 : y->total, theirs);
            CHECK_MORE(path * 10 <= theirs * 11, f->name);
            free(usual);
            ptx_module_free(m);
        }
        printf("\n");
    }
    return check_end();
}
