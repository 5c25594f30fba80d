/* random_programs.c - random programs (program.h): each ends in a located error of the builder, or in text
 * that the driver loads and whose results are those of an interpreter; ptxas assembles a sample.
 *
 *   random_programs [long | COUNT] 2,000 programs, or 100,000, or so many; PTXGEN_SEED repeats a run
 *   random_programs show FILE      the program of these bytes: its text and what becomes of it */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"

#include "../kerneltest.h"

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#endif
#include "../program.h"

enum { LONGEST = 400, SAMPLE = 50 };

static ptx_module *new_module(void) {
    ptx_module_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.target = capability == 90 || capability == 100 || capability == 103 || capability == 120
                      ? PTX_SM_A(capability)
                      : PTX_SM(capability);
    return ptx_module_new(&desc);
}

static size_t random_bytes(uint8_t *bytes) {
    size_t n = 4 + random_below(LONGEST - 4);
    for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)random_u32();
    return n;
}

static unsigned of_code[PTX_E_COUNT];

static void test_programs(unsigned count, const machine *x) {
    static program p;
    static uint8_t bytes[LONGEST];
    static char why[4000], name[64];
    unsigned counts[4] = {0, 0, 0, 0};
    ptx_module *m = new_module();
    for (unsigned i = 0; i < count; i++) {
        size_t n = random_bytes(bytes);
        int r = try_program(&p, m, x, bytes, n, why, sizeof why);
        counts[r]++;
        if (r == P_ERROR) of_code[ptx_get_error(m)->code]++;
        if (r == P_ERROR && getenv("PTXGEN_SHOW_ERRORS"))
            printf("%d %s\n", p.wild, ptx_get_error(m)->message);
        if (r != P_WRONG) {
            passed++;
            continue;
        }
        if (CHECK_MORE(0, why) || failed > 20) continue;
        snprintf(name, sizeof name, "build/random-%u.bin", i);
        FILE *f = fopen(name, "wb");
        if (!f) continue;
        fwrite(bytes, 1, n, f);
        fclose(f);
        printf("  kept as %s\n", name);
    }
    printf("note: %u programs: %u equal, %u refused, %u not compared, %u wrong\n", count, counts[P_EQUAL],
           counts[P_ERROR], counts[P_LOST], counts[P_WRONG]);
    printf("refused for:");
    for (int c = 0; c < PTX_E_COUNT; c++)
        if (of_code[c]) printf(" %s %u", ptx_error_name((ptx_code)c), of_code[c]);
    printf("\n");
    CHECK(counts[P_EQUAL] * 3 > count);
    CHECK(counts[P_ERROR] * 50 > count);
    ptx_module_free(m);
}

/* The kernels of a sample as ptxas sees them: one file each, one command. */
static void test_assembler(void) {
    static program p;
    static uint8_t bytes[LONGEST];
    ptx_module *m = new_module();
    char command[400];
    unsigned taken = 0;
    if (system("command -v ptxas >/dev/null 2>&1")) {
        printf("skipped: no ptxas, the sample was not assembled\n");
        ptx_module_free(m);
        return;
    }
    if (system("mkdir -p build/random && rm -f build/random/*.ptx")) return;
    while (taken < SAMPLE) {
        size_t n = random_bytes(bytes);
        ptx_module_reset(m);
        build_program(&p, m, bytes, n);
        const char *text = ptx_text(m, NULL);
        if (!text || p.wild) continue;
        snprintf(command, sizeof command, "build/random/%u.ptx", taken++);
        FILE *f = fopen(command, "w");
        if (!f) break;
        fputs(text, f);
        fclose(f);
    }
    char target[8] = "";
    ptx_target_name(ptx_module_target(m), target, sizeof target);
    snprintf(
        command, sizeof command,
        "ls build/random/*.ptx | xargs -P 2 -I{} ptxas -O0 -arch=sm_%s {} -o {}.o >build/random/log 2>&1",
        target);
    if (!CHECK_MORE(system(command) == 0, "ptxas refuses a program of the sample: see build/random")) return;
    printf("note: %u programs assembled by ptxas\n", taken);
    CHECK(system("rm -rf build/random") == 0);
    ptx_module_free(m);
}

static int show(const char *path, const machine *x) {
    static program p;
    static uint8_t bytes[1 << 16];
    static char why[8000];
    FILE *f = fopen(path, "rb");
    if (!f) return 1;
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ptx_module *m = new_module();
    int r = try_program(&p, m, x, bytes, n, why, sizeof why);
    const char *text = ptx_text(m, NULL);
    printf("%s\n%s\n%d %s\n", text ? text : "", ptx_get_error(m)->message, r, why);
    ptx_module_free(m);
    return 0;
}

int main(int argc, char **argv) {
    machine x;
    setenv("PTXSIM_DEVICE", "sm_100", 0);
    setenv("PTXSIM_THREADS", "1", 0);
    if (!open_driver()) return 1;
    start_random();
    random_state = seed_state;
    of_gpu = !cu.ptxsim_report;
    open_bridge();
    ptx_module *m = new_module();
    collect(m);
    ptx_module_free(m);
    open_machine(&x);
    if (argc > 2 && !strcmp(argv[1], "show")) return show(argv[2], &x);
    unsigned count =
        argc > 1 ? !strcmp(argv[1], "long") ? 100000u : (unsigned)strtoul(argv[1], NULL, 0) : 2000u;
    if (argc < 2 && getenv("PTXGEN_LONG")) count = 100000;
    test_programs(count, &x);
    test_assembler();
    free(shots);
    free(forms);
    free(entries);
    return check_end();
}
