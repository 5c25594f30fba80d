/* driver.c - the mathematics of ptxgen.h, run on the CPU driver: on special values and random ones the same bits
 * as the kernel's text compiled as C, and as near to the exact value as the declarations say; the same with
 * approximate instructions that err as much as they may. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen.h"
#include "../kerneltest.h"
#include "functions.h"

enum { SPECIAL = 64, MOST = 1 << 20 };
static uint32_t count = 1 << 14; /* operands of each function; PTXGEN_MATH_COUNT */
static uint32_t x[2][MOST + 2 * SPECIAL * SPECIAL], y[2 * (MOST + 2 * SPECIAL * SPECIAL)];

static const float special[] = {
    0.0f, 0x1p-149f, 0x1.8p-149f, 0x1p-140f, 0x1.fffffcp-127f, 0x1p-126f, 0x1p-60f, 0x1p-24f, 0x1p-12f, 0.25f,
    0.5f, 0x1.fffffep-2f, 0x1.555556p-1f, 0x1.6a09e6p-1f, 0.75f, 0x1.fffffep-1f, 1.0f, 0x1.000002p0f, 1.25f,
    1.5f, 0x1.921fb6p0f, 2.0f, 0x1.5bf0a8p1f, 3.0f, 0x1.921fb6p1f, 4.0f, 5.5f, 9.0f, 10.0f, 32.0f, 37.75f,
    38.6f, 45.0f, 87.0f, 88.0f, 88.75f, 89.0f, 89.5f, 104.0f, 126.0f, 128.0f, 150.0f, 1000.0f, 33.0f,
    105615.0f, 105616.0f, 0x1p22f, 0x1.000001p23f, 0x1.fffffep23f, 0x1p24f, 0x1p30f, 0x1p31f, 0x1p63f, 0x1p64f,
    0x1p100f, 0x1p126f, 0x1.fffffep127f, INFINITY, NAN};
enum { SPECIALS = sizeof special / sizeof *special };

static float any_float(unsigned kind) {
    uint32_t bits = random_u32();
    switch (kind % 4) {
    case 0: return float_of(bits);
    case 1: return (float)random_within(10);
    case 2: return (float)random_within(1);
    default: return (float)(exp(random_within(87)) * (bits & 1 ? -1 : 1));
    }
}

/* Special values, of two operands all pairs; then random ones. Returns how many. */
static uint32_t make_operands(const math_function *f) {
    uint32_t n = 0, i, j;
    for (i = 0; i < 2 * SPECIALS; i++)
        for (j = 0; j < (f->operands == 2 ? 2 * SPECIALS : 1u); j++, n++) {
            x[0][n] = bits_of(special[i / 2]) | (i & 1) << 31;
            x[1][n] = bits_of(special[j / 2]) | (j & 1) << 31;
        }
    for (i = 0; i < count; i++, n++) {
        x[0][n] = bits_of(any_float(i));
        x[1][n] = bits_of(any_float(i + random_below(4) / 3));
        if (f->operands == 2 && i % 8 == 7) { /* of the same size; powers that are finite */
            float v = fabsf(any_float(3));
            x[0][n] = bits_of(v);
            x[1][n] = bits_of(i & 8 ? v * (float)(1 + random_within(0.99))
                                    : (float)(random_within(88) / log((double)v)));
        }
    }
    return n;
}

static void launch(const char *text, uint32_t n, int both) {
    struct {
        uint64_t x, y, z, to;
        uint32_t n, pad;
    } args;
    void *module = load_text(text), *function = NULL, *params[5];
    args.x = upload(x[0], 4 * n);
    args.y = args.z = upload(x[1], 4 * n);
    args.to = upload(NULL, 0);
    CHECK(cu.cuMemFree(args.to) == 0 && cu.cuMemAlloc(&args.to, 8 * (size_t)n) == 0);
    args.n = n;
    params[0] = &args.x, params[1] = &args.y, params[2] = &args.z, params[3] = &args.to, params[4] = &args.n;
    if (CHECK(module && cu.cuModuleGetFunction(&function, module, "f") == 0)) {
        CHECK(cu.cuLaunchKernel(function, n / 32, 1, 1, 32, 1, 1, 0, NULL, params, NULL) == 0);
        CHECK(cu.cuMemcpyDtoH(y, args.to, (both ? 8 : 4) * (size_t)n) == 0);
    }
    check_reports();
    CHECK(cu.cuMemFree(args.x) == 0 && cu.cuMemFree(args.y) == 0 && cu.cuMemFree(args.to) == 0);
    if (module) CHECK(cu.cuModuleUnload(module) == 0);
}

/* NaN, or the same bits, `slack` units in the last place aside. */
static int agree(uint32_t a, uint32_t b, uint32_t slack) {
    return (isnan(float_of(a)) && isnan(float_of(b))) || (a < b ? b - a : a - b) <= slack;
}

/* The largest error of the results, where they are not those of the twin by the bit. */
static void compare(const math_function *f, twin_fn *twin, uint32_t slack, uint32_t n, const char *how) {
    double worst = 0;
    uint32_t i, at = 0, differ = 0, where = 0;
    int both = !strcmp(f->name, "sincos");
    for (i = 0; i < n; i++) {
        double a = (double)float_of(x[0][i]), b = (double)float_of(x[1][i]);
        double error = ulp_error(float_of(y[i]), f->two ? f->two(a, b) : f->one(a));
        if (both) error = fmax(error, ulp_error(float_of(y[n + i]), cos(a)));
        if (error > worst) worst = error, at = i;
        if (twin) {
            uint64_t in[3], out[2] = {0, 0};
            in[0] = x[0][i], in[1] = in[2] = x[1][i];
            twin(in, out);
            if (!agree((uint32_t)out[0], y[i], slack) || (both && !agree((uint32_t)out[1], y[n + i], slack)))
                differ++, where = i;
        }
    }
    printf("%-8s%s %.3f ulp at %a", f->name, how, worst, (double)float_of(x[0][at]));
    if (f->two) printf(", %a", (double)float_of(x[1][at]));
    printf("\n");
    if (!CHECK_MORE(worst <= f->ulp, f->name)) printf("  %g ulp, declared %g\n", worst, f->ulp);
    if (!CHECK_MORE(!differ, f->name))
        printf("  %u results differ from the twin's, the last at %a, %a: %a\n", differ, (double)float_of(x[0][where]),
               (double)float_of(x[1][where]), (double)float_of(y[where]));
}

int main(void) {
    const char *wanted = getenv("PTXGEN_MATH_COUNT");
    char path[] = "/tmp/ptxgen_math_XXXXXX", name[32];
    ptx_module *modules[MATH_FUNCTIONS];
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
    for (i = 0; i < MATH_FUNCTIONS; i++) {
        const char *text;
        modules[i] = math_kernel(math_functions + i, PTX_F32);
        text = ptx_text(modules[i], NULL);
        snprintf(name, sizeof name, "twin%d", i);
        if (text) twin_write(source, text, name);
        fprintf(source, "void t%d(const uint64_t *x, uint64_t *y) { %s(x, y); }\n", i, name);
    }
    fclose(source);
    library = load_twins(path);
    for (i = 0; i < MATH_FUNCTIONS; i++) {
        const math_function *f = math_functions + i;
        uint32_t n = make_operands(f) & ~31u;
        const char *text = ptx_text(modules[i], NULL);
        twin_fn *twin = NULL;
        snprintf(name, sizeof name, "t%d", i);
        symbol = library ? dlsym(library, name) : NULL;
        memcpy(&twin, &symbol, sizeof twin);
        if (!text) continue;
        if (cu.ptxsim_set) cu.ptxsim_set("perturb", 0);
        launch(text, n, !strcmp(f->name, "sincos"));
        /* The driver's ex2 and lg2 are not rounded correctly, as those of C here are. */
        compare(f, cu.ptxsim_report ? twin : NULL, strstr(text, "\tex2") || strstr(text, "\tlg2"), n, "          ");
        if (!cu.ptxsim_set) continue;
        cu.ptxsim_set("perturb", 1 + (int)random_below(1000));
        launch(text, n, !strcmp(f->name, "sincos"));
        compare(f, NULL, 0, n, " perturbed");
    }
    for (i = 0; i < MATH_FUNCTIONS; i++) ptx_module_free(modules[i]);
    remove(path);
    return check_end();
}
