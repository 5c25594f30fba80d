/* driver.c - the mathematics of ptxgen.h, run on the CPU driver: on special values and random ones the same bits
 * as the kernel's text compiled as C, and as near to the exact value as the declarations say; the same with
 * approximate instructions that err as much as they may. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../kerneltest.h"
#include "functions.h"

static const double special[] = {
    0.0, 0x1p-149, 0x1.8p-149, 0x1p-140, 0x1.fffffcp-127, 0x1p-126, 0x1p-60, 0x1p-24, 0x1p-12, 0.25, 0.5,
    0x1.fffffep-2, 0x1.555556p-1, 0x1.6a09e6p-1, 0.75, 0x1.fffffep-1, 1.0, 0x1.000002p0, 1.25, 1.5,
    0x1.921fb6p0, 2.0, 0x1.5bf0a8p1, 3.0, 0x1.921fb6p1, 4.0, 5.5, 9.0, 10.0, 32.0, 37.75, 38.6, 45.0, 87.0,
    88.0, 88.75, 89.0, 89.5, 104.0, 126.0, 128.0, 150.0, 1000.0, 33.0, 105615.0, 105616.0, 0x1p22,
    0x1.000001p23, 0x1.fffffep23, 0x1p24, 0x1p30, 0x1p31, 0x1p63, 0x1p64, 0x1p100, 0x1p126, 0x1.fffffep127,
    0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp-1, 0x1.0000000000001p0, 0x1p-54, 709.5,
    710, 745, 746, 1022.5, 1074.5, 308, 323.5, 0x1p52, 0x1p53, 0x1p1000, 5e5, INFINITY, NAN};
enum { SPECIALS = sizeof special / sizeof *special, PAIRS = 4 * SPECIALS * SPECIALS, MOST = 1 << 20 };
static uint32_t count = 1 << 14; /* random operands of each function; PTXGEN_MATH_COUNT: up to 2^20 */
static union {
    uint32_t narrow[MOST + PAIRS];
    uint64_t wide[MOST + PAIRS];
} x[2];
static union {
    uint32_t narrow[2 * (MOST + PAIRS)];
    uint64_t wide[2 * (MOST + PAIRS)];
} y;
static int wide; /* f64, not f32 */

static double value_of(uint64_t bits) { return wide ? double_of(bits) : (double)float_of(bits); }
static uint64_t operand(int which, uint32_t i) { return wide ? x[which].wide[i] : x[which].narrow[i]; }
static uint64_t result(uint32_t i) { return wide ? y.wide[i] : y.narrow[i]; }
static void set_operand(int which, uint32_t i, double v) {
    if (wide)
        memcpy(&x[which].wide[i], &v, sizeof v);
    else
        x[which].narrow[i] = bits_of((float)v);
}

static double any_float(unsigned kind) {
    uint32_t bits = random_u32();
    switch (kind % 4) {
    case 0: return wide ? double_of((uint64_t)bits << 32 | random_u32()) : (double)float_of(bits);
    case 1: return random_within(10) + random_within(1e-9);
    case 2: return random_within(1) + random_within(1e-9);
    default: return exp(random_within(wide ? 700 : 87)) * (bits & 1 ? -1 : 1);
    }
}

/* Special values, of two operands all pairs; then random ones. Returns how many. */
static uint32_t make_operands(const math_function *f) {
    uint32_t n = 0, i, j;
    for (i = 0; i < 2 * SPECIALS; i++)
        for (j = 0; j < (f->operands == 2 ? 2 * SPECIALS : 1u); j++, n++) {
            set_operand(0, n, i & 1 ? -special[i / 2] : special[i / 2]);
            set_operand(1, n, j & 1 ? -special[j / 2] : special[j / 2]);
        }
    for (i = 0; i < count; i++, n++) {
        double a = any_float(i), b = any_float(i + random_below(4) / 3);
        if (f->operands == 2 && i % 8 == 7) { /* of the same size; powers that are finite */
            a = fabs(any_float(3));
            b = i & 8 ? a * (1 + random_within(0.99)) : random_within(wide ? 708 : 88) / log(a);
        }
        set_operand(0, n, a);
        set_operand(1, n, b);
    }
    return n & ~31u;
}

static void launch(const char *text, uint32_t n, int both) {
    struct {
        uint64_t x, y, z, to;
        uint32_t n, pad;
    } args;
    size_t size = wide ? 8 : 4;
    void *module = load_text(text), *function = NULL, *params[5];
    args.x = upload(&x[0], size * n);
    args.y = args.z = upload(&x[1], size * n);
    CHECK(cu.cuMemAlloc(&args.to, 2 * size * n) == 0);
    args.n = n;
    params[0] = &args.x, params[1] = &args.y, params[2] = &args.z, params[3] = &args.to, params[4] = &args.n;
    if (CHECK(module && cu.cuModuleGetFunction(&function, module, "f") == 0)) {
        CHECK(cu.cuLaunchKernel(function, n / 32, 1, 1, 32, 1, 1, 0, NULL, params, NULL) == 0);
        CHECK(cu.cuMemcpyDtoH(&y, args.to, (both ? 2 : 1) * size * n) == 0);
    }
    check_reports();
    CHECK(cu.cuMemFree(args.x) == 0 && cu.cuMemFree(args.y) == 0 && cu.cuMemFree(args.to) == 0);
    if (module) CHECK(cu.cuModuleUnload(module) == 0);
}

/* NaN, or the same bits, `slack` units in the last place aside. */
static int agree(uint64_t a, uint64_t b, uint64_t slack) {
    double v = value_of(a), w = value_of(b);
    return (v != v && w != w) || (a < b ? b - a : a - b) <= slack;
}

static double error_of(const math_function *f, uint32_t i, uint32_t n) {
    double a = value_of(operand(0, i)), b = value_of(operand(1, i)), error, got = value_of(result(i));
    if (wide)
        error = ulp_error_of(1, got, f->two64 ? f->two64(a, b) : f->one64(a));
    else
        error = ulp_error_of(0, got, f->two ? f->two(a, b) : f->one(a));
    if (!strcmp(f->name, "lgamma") && a < -2 && error < 1e9) error *= lgamma_share(a);
    if (!strcmp(f->name, "sincos")) error = fmax(error, ulp_error_of(wide, value_of(result(n + i)), cosl(a)));
    return error;
}

/* The largest error of the results, and where they are not those of the twin by the bit. */
static void compare(const math_function *f, twin_fn *twin, uint32_t slack, uint32_t n, const char *how) {
    double worst = 0, limit = wide ? f->ulp64 : f->ulp;
    uint32_t i, at = 0, differ = 0, where = 0;
    int both = !strcmp(f->name, "sincos");
    for (i = 0; i < n; i++) {
        double error = error_of(f, i, n);
        if (error > worst) worst = error, at = i;
        if (twin) {
            uint64_t in[3], out[2] = {0, 0};
            in[0] = operand(0, i), in[1] = in[2] = operand(1, i);
            twin(in, out);
            if (!wide) out[0] = (uint32_t)out[0], out[1] = (uint32_t)out[1];
            if (!agree(out[0], result(i), slack) || (both && !agree(out[1], result(n + i), slack))) differ++, where = i;
        }
    }
    printf("%-8s %s%s %.3f ulp at %a", f->name, wide ? "f64" : "f32", how, worst, value_of(operand(0, at)));
    if (f->operands == 2) printf(", %a", value_of(operand(1, at)));
    printf("\n");
    if (!CHECK_MORE(worst <= limit, f->name)) printf("  %g ulp, declared %g\n", worst, limit);
    if (!CHECK_MORE(!differ, f->name))
        printf("  %u results differ from the twin's, the last at %a, %a: %a\n", differ, value_of(operand(0, where)),
               value_of(operand(1, where)), value_of(result(where)));
}

static void test_function(const math_function *f, const char *text, twin_fn *twin) {
    uint32_t n = make_operands(f);
    int both = !strcmp(f->name, "sincos");
    if (cu.ptxsim_set) cu.ptxsim_set("perturb", 0);
    launch(text, n, both);
    /* The driver's ex2 and lg2 are not rounded correctly, as those of C here are, its rcp of f64 is another. */
    compare(f, cu.ptxsim_report ? twin : NULL,
            strstr(text, "\tex2") || strstr(text, "\tlg2") || strstr(text, "\trcp.approx.ftz.f64"), n, "          ");
    if (!cu.ptxsim_set || wide) return;
    cu.ptxsim_set("perturb", 1 + (int)random_below(1000));
    launch(text, n, both);
    compare(f, NULL, 0, n, " perturbed");
}

int main(void) {
    const char *wanted = getenv("PTXGEN_MATH_COUNT");
    char path[] = "/tmp/ptxgen_math_XXXXXX", name[32];
    ptx_module *modules[2][MATH_FUNCTIONS];
    void *library, *symbol;
    FILE *source;
    int handle = mkstemp(path), i;
    if (wanted) count = (uint32_t)strtoul(wanted, NULL, 0);
    if (count > MOST) count = MOST;
    start_random();
    setenv("PTXSIM_PERTURB", "0", 1);
    if (!open_driver() || !CHECK(handle >= 0)) return check_end();
    source = fdopen(handle, "w");
    fprintf(source, "#include \"tests/math/twin_prelude.h\"\n");
    for (wide = 0; wide < 2; wide++)
        for (i = 0; i < MATH_FUNCTIONS; i++) {
            const char *text;
            modules[wide][i] = math_kernel(math_functions + i, wide ? PTX_F64 : PTX_F32);
            text = ptx_text(modules[wide][i], NULL);
            snprintf(name, sizeof name, "twin%d_%d", i, wide);
            if (!text) continue;
            twin_write(source, text, name);
            fprintf(source, "void t%d_%d(const uint64_t *x, uint64_t *y) { %s(x, y); }\n", i, wide, name);
        }
    fclose(source);
    library = load_twins(path, "");
    for (wide = 0; wide < 2; wide++)
        for (i = 0; i < MATH_FUNCTIONS; i++) {
            const char *text = modules[wide][i] ? ptx_text(modules[wide][i], NULL) : NULL;
            twin_fn *twin = NULL;
            snprintf(name, sizeof name, "t%d_%d", i, wide);
            symbol = library ? dlsym(library, name) : NULL;
            memcpy(&twin, &symbol, sizeof twin);
            if (text) test_function(math_functions + i, text, twin);
        }
    for (i = 0; i < 2 * MATH_FUNCTIONS; i++) ptx_module_free(modules[i / MATH_FUNCTIONS][i % MATH_FUNCTIONS]);
    remove(path);
    return check_end();
}
