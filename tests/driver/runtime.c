/* runtime.c - PTX out of fat binaries, and whole programs of nvcc over the CUDA runtime of
 * tests/cudart, where the toolkit is. */
#include "../simtest.h"

/* --- fat binaries ---------------------------------------------------------------------------------- */

static _Alignas(8) uint8_t fat[8192];
static size_t used;

static void put(size_t at, uint64_t value, size_t bytes) { memcpy(fat + at, &value, bytes); }

static void begin(void) {
    memset(fat, 0, sizeof fat);
    put(0, 0xba55ed50u, 4), put(4, 1, 2), put(6, 16, 2);
    used = 16;
}

/* A kernel that writes `value`, or that is no PTX at all. */
static const char *suffix = "";
static void image(unsigned kind, unsigned sm, unsigned value, unsigned flags) {
    char ptx[600];
    snprintf(
        ptx, sizeof ptx,
        "// a .target sm_1a\n.version 8.0\n.target sm_%u%s\n.address_size 64\n"
        ".visible .entry k(.param .u64 p) {\n.reg .b64 d;\n"
        "ld.param.u64 d, [p]; st.global.u32 [d], %u; ret; }\n",
        sm, suffix, value);
    size_t bytes = (strlen(ptx) + 8) / 8 * 8;
    put(used, kind, 2), put(used + 2, 0x101, 2), put(used + 4, 0x50, 4), put(used + 8, bytes, 8);
    put(used + 28, sm, 4), put(used + 40, flags, 8);
    strcpy((char *)fat + used + 0x50, ptx);
    used += 0x50 + bytes;
    put(8, used - 16, 8);
}

static int run_image(const void *what, uint32_t *out) {
    handle m = NULL;
    dptr d = alloc(4);
    void *params[] = {&d};
    int code = cuModuleLoadData_(&m, what);
    if (!code) {
        SAME(run(function(m, "k"), 1, 1, 0, params), 0);
        SAME(cuMemcpyDtoH_v2_(out, d, 4), 0);
        SAME(cuModuleUnload_(m), 0);
    }
    SAME(cuMemFree_v2_(d), 0);
    return code;
}

enum { ELF = 2, PTX = 1 };

static void test_images(void) {
    uint32_t x = 0;
    struct {
        uint32_t magic, version;
        const void *data, *more;
    } wrapper = {0x466243b1u, 1, fat, NULL};
    begin(), image(PTX, 80, 7, 0x11);
    SAME(run_image(fat, &x), 0);
    SAME(x, 7);
    SAME(run_image(&wrapper, &x), 0);
    begin(), image(PTX, 80, 1, 0x11), image(ELF, 90, 2, 0x11), image(PTX, 90, 3, 0x11),
        image(PTX, 100, 4, 0x11);
    SAME(run_image(&wrapper, &x), 0);
    SAME(x, 3);
    begin(), image(PTX, 90, 5, 0x11), image(PTX, 75, 6, 0x8011);
    SAME(run_image(fat, &x), 0);
    SAME(x, 5);
    begin(), image(PTX, 90, 5, 0x8011);
    SAME(run_image(fat, &x), 200);
    begin(), image(PTX, 90, 5, 0x2011);
    SAME(run_image(fat, &x), 200);
    begin(), image(PTX, 90, 5, 0x11);
    suffix = "a";
    image(PTX, 90, 8, 0x11), image(PTX, 80, 9, 0x11);
    suffix = "";
    SAME(run_image(fat, &x), 0);
    SAME(x, 8);
    begin(), image(PTX, 80, 5, 0x11);
    suffix = "a";
    image(PTX, 86, 8, 0x11), image(PTX, 89, 9, 0x11);
    suffix = "";
    SAME(run_image(fat, &x), 0);
    SAME(x, 5);
    begin(), image(ELF, 90, 5, 0x11);
    SAME(run_image(fat, &x), 209);
    begin(), image(PTX, 100, 5, 0x11);
    SAME(run_image(fat, &x), 209);
    begin();
    SAME(run_image(fat, &x), 209);
    begin(), image(PTX, 90, 5, 0x11), put(4, 2, 2);
    SAME(run_image(fat, &x), 200);
    begin(), image(PTX, 90, 5, 0x11), put(16 + 8, 1 << 20, 8);
    SAME(run_image(fat, &x), 200);
    begin(), image(PTX, 90, 5, 0x11), put(16 + 4, 8, 4);
    SAME(run_image(fat, &x), 200);
    wrapper.data = &wrapper;
    SAME(run_image(&wrapper, &x), 200);
}

/* --- a program --------------------------------------------------------------------------------------- */

static int shell(const char *format, ...) {
    char command[2000];
    va_list a;
    va_start(a, format);
    vsnprintf(command, sizeof command, format, a);
    va_end(a);
    return system(command);
}

/* Compiles a program of tests/cudart and runs it; its output ends with the count of what is wrong. */
static void program(const char *folder, const char *source, const char *name, const char *flags)
{
    char path[600];
    CHECK(!shell("nvcc -std=c++17 -cudart shared --no-compress -gencode arch=compute_90,code=compute_90 %s "
                 "tests/cudart/%s -o '%s/%s'",
                 flags, source, folder, name),
          "%s does not compile", name);
    CHECK(!shell("LD_LIBRARY_PATH='%s' PTXSIM_QUIET= '%s/%s' > '%s/%s.out' 2> '%s/%s.err'", folder, folder, name,
                 folder, name, folder, name),
          "%s fails", name);
    snprintf(path, sizeof path, "%s/%s.out", folder, name);
    char *text = read_file(path);
    CHECK(text && !strcmp(text, "0 wrong\n"), "%s says %s", name, text ? text : "nothing");
    free(text);
    snprintf(path, sizeof path, "%s/%s.err", folder, name);
    text = read_file(path);
    CHECK(text && !strstr(text, "ptxsim:"), "%s has findings: %s", name, text ? text : "no file");
    /* What is not offered is refused by name. */
    if (!strcmp(source, "calls.cu"))
        CHECK(text && strstr(text, "cudaIpcGetMemHandle") && strstr(text, "cudaArrayGetPlane")
                  && strstr(text, "cudaImportExternalMemory"),
              "%s: refusals are not told", name);
    free(text);
}

static void test_programs(const char *library)
{
    char folder[500];
    snprintf(folder, sizeof folder, "%s", library);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
#if defined(__SANITIZE_ADDRESS__)
    printf("SKIP programs_of_nvcc_run: the sanitizer has to come first in a program\n");
    return;
#endif
    if (!slash || shell("nvcc --version > /dev/null 2>&1")) {
        printf("SKIP programs_of_nvcc_run: no nvcc on the PATH\n");
        return;
    }
    CHECK(!shell("sh tests/cudart/build.sh '%s'", folder), "the runtime does not compile");
    program(folder, "program.cu", "cudart_program", "");
    program(folder, "calls.cu", "cudart_calls", "");
    program(folder, "calls.cu", "cudart_calls_per_thread", "-default-stream per-thread");
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    sim_open(argc, argv);
    test_images();
    test_programs(library ? library : "build/libptxsim.so");
    return sim_close();
}
