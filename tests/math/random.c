/* random.c - the functions of ptxgen.h's [MATH] that no run over all operands reaches, f64 ones and those of two
 * operands, on random operands: the kernels' texts as C (twin.h), approximate instructions moved anywhere inside
 * their bounds, against the C library in long double (f32: in double).
 *
 *   random [COUNT] [f32 | f64] [NAME ...]    COUNT (default 2^14) operands, or pairs, of these functions, or of all
 *
 * Where libmpfr is installed, each new largest error is taken from it, with 200 bits, and so is that of every 1024th
 * operand; their numbers are printed. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../check.h"
#include "functions.h"

typedef void error_fn(const double *x, double got, double *error);

static uint64_t state;
static uint64_t next(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t v = (state ^ state >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return v ^ v >> 32;
}
static double unit(void) { return (double)(next() >> 11) * 0x1p-53; }

/* Any bits, near 0, within 10, or of any size. */
static double operand(int wide)
{
    uint64_t bits = next();
    double sign = bits & 8 ? -1 : 1;
    switch (bits & 3) {
    case 0: return wide ? double_of(next()) : (double)float_of(next());
    case 1: return 20 * unit() - 10;
    case 2: return 2 * unit() - 1;
    default: return sign * exp((2 * unit() - 1) * (wide ? 700 : 87));
    }
}

static void operands_of(const math_function *f, int wide, double *x)
{
    x[0] = operand(wide), x[1] = operand(wide);
    if (f->operands == 2 && next() % 4 == 0) { /* of the same size; powers that are finite */
        x[0] = fabs(operand(wide));
        x[1] = next() & 1 ? x[0] * (1 + unit()) : (2 * unit() - 1) * (wide ? 745 : 104) / log(x[0]);
    }
    for (int j = 0; !wide && j < 2; j++) {
        volatile float rounded = (float)x[j]; /* volatile: gcc 12 -O2 loses the conversions of a pair of doubles */
        x[j] = (double)rounded;
    }
}

/* In C, "error_fn error<i>_<wide>": the distance in ulp from what libmpfr computes. */
static void write_reference(FILE *out, const math_function *f, int i, int wide)
{
    const char *name = !strcmp(f->name, "tgamma") ? "gamma" : math_reference(f);
    fprintf(out, "void error%d_%d(const double *x, double got, double *error) {\n"
            "mpfr_t a, b, r; int sign = 0; (void)sign;\n"
            "mpfr_inits2(200, a, b, r, (mpfr_ptr)0); mpfr_set_d(a, x[0], 0); mpfr_set_d(b, x[1], 0);\n"
            "mpfr_%s(r, %sa%s, 0); *error = distance(r, got, %d); mpfr_clears(a, b, r, (mpfr_ptr)0); }\n",
            i, wide, name, !strcmp(name, "lgamma") ? "&sign, " : "", f->operands == 2 ? ", b" : "", wide);
}
static const char prelude[] =
    "#if __has_include(<mpfr.h>)\n#include <mpfr.h>\n"
    "static double distance(mpfr_t r, double got, int wide) { mpfr_t d; double error; long e;\n"
    "if (!mpfr_number_p(r) || !(got - got == 0)) return 0; /* the quicker comparison has these */\n"
    "e = mpfr_zero_p(r) ? -5000 : mpfr_get_exp(r); e -= wide ? 53 : 24;\n"
    "if (e < (wide ? -1074 : -149)) e = wide ? -1074 : -149;\n"
    "mpfr_init2(d, 200); mpfr_sub_d(d, r, got, 0); mpfr_abs(d, d, 0); mpfr_mul_2si(d, d, -e, 0);\n"
    "error = mpfr_get_d(d, 0); mpfr_clear(d); return error; }\n";

static void test_function(const math_function *f, int wide, uint64_t count, twin_fn *twin, error_fn *error_mpfr,
                          void (*perturb)(double))
{
    double worst = 0, at[2] = {0, 0}, limit = wide ? f->ulp64 : f->ulp;
    uint64_t asked = 0;
    for (uint64_t i = 0; i < count; i++) {
        double x[2], got, error, share = 1;
        uint64_t in[3], out[2] = {0, 0}, bits;
        operands_of(f, wide, x);
        in[0] = wide ? bits64_of(x[0]) : bits_of((float)x[0]);
        in[1] = in[2] = wide ? bits64_of(x[1]) : bits_of((float)x[1]);
        if (i % 4096 == 0) perturb((double)(i / 4096 % 4) - 1); /* -1, 0, 1, or of each operand its own */
        twin(in, out);
        bits = out[math_result(f)];
        got = wide ? double_of(bits) : (double)float_of(bits);
        error = wide ? ulp_error_of(1, got, f->two64 ? f->two64(x[0], x[1]) : f->one64(x[0]))
                     : ulp_error_of(0, got, f->two ? f->two(x[0], x[1]) : f->one(x[0]));
        if (!strcmp(f->name, "lgamma") && x[0] < -2) share = lgamma_share(x[0]);
        if (error < 1e9 && (error * share > worst - 0.01 || i % 1024 == 0) && error_mpfr) {
            double precise;
            error_mpfr(x, got, &precise);
            asked++;
            if (precise > 0) error = precise;
        }
        if (error < 1e9) error *= share;
        if (error > worst) worst = error, at[0] = x[0], at[1] = x[1];
    }
    printf("%-8s %s %.4f ulp at %a", f->name, wide ? "f64" : "f32", worst, at[0]);
    if (f->operands == 2) printf(", %a", at[1]);
    printf("; %llu operands, %llu of them by libmpfr\n", (unsigned long long)count, (unsigned long long)asked);
    fflush(stdout);
    if (!CHECK_MORE(worst <= limit, f->name)) printf("  declared: %g ulp\n", limit);
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 1 << 14;
    char path[] = "/tmp/ptxgen_math_XXXXXX", name[40];
    int type = argc > 2 && argv[2][0] == 'f' ? atoi(argv[2] + 1) : 0, names = argc < 3 ? argc : type ? 3 : 2;
    int handle = mkstemp(path), have_mpfr;
    void *library, *symbol;
    void (*perturb)(double) = NULL;
    FILE *source;
    if (!CHECK(handle >= 0)) return check_end();
    state = getenv("PTXGEN_SEED") ? strtoull(getenv("PTXGEN_SEED"), NULL, 0) : (uint64_t)time(NULL);
    printf("seed %llu (PTXGEN_SEED)\n", (unsigned long long)state);
    have_mpfr = system("printf '#include <mpfr.h>\\nint main(void) { return !mpfr_get_version(); }' | "
                       "${CC:-cc} -xc - -o /dev/null -lmpfr 2>/dev/null") == 0;
    if (!have_mpfr) printf("skip: no libmpfr; the C library's long double alone\n");
    source = fdopen(handle, "w");
    fprintf(source, "#include \"tests/math/twin_prelude.h\"\nvoid perturb(double share) { twin_share = share; }\n%s",
            have_mpfr ? prelude : "");
    for (int pass = 0; pass < 2; pass++) {
        for (int wide = 0; wide < 2; wide++)
            for (int i = 0; i < MATH_RESULTS; i++) {
                const math_function *f = math_function_at(i);
                int wanted = argc == names;
                for (int j = names; j < argc; j++) wanted |= !strcmp(argv[j], f->name);
                if (!wanted || (type && wide != (type == 64)) || (!wide && f->operands == 1)) continue;
                if (!pass) {
                    ptx_module *m = math_kernel(f, wide ? PTX_F64 : PTX_F32);
                    snprintf(name, sizeof name, "twin%d_%d", i, wide);
                    twin_write(source, ptx_text(m, NULL), name);
                    fprintf(source, "void t%d_%d(const uint64_t *x, uint64_t *y) { %s(x, y); }\n", i, wide, name);
                    if (have_mpfr) write_reference(source, f, i, wide);
                    ptx_module_free(m);
                } else {
                    twin_fn *twin;
                    error_fn *error = NULL;
                    snprintf(name, sizeof name, "t%d_%d", i, wide);
                    symbol = dlsym(library, name);
                    memcpy(&twin, &symbol, sizeof twin);
                    snprintf(name, sizeof name, "error%d_%d", i, wide);
                    symbol = dlsym(library, name);
                    memcpy(&error, &symbol, sizeof error);
                    if (CHECK(twin != NULL)) test_function(f, wide, count, twin, error, perturb);
                }
            }
        if (pass) break;
        if (have_mpfr) fputs("#endif\n", source);
        fclose(source);
        library = load_twins(path, have_mpfr ? "-lmpfr" : "");
        if (!library) break;
        symbol = dlsym(library, "perturb");
        memcpy(&perturb, &symbol, sizeof perturb);
    }
    remove(path);
    return check_end();
}
