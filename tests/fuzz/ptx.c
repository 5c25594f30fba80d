/* ptx.c - hostile PTX for the CPU driver: a libFuzzer target with the driver's sources linked in.
 *
 * An input is a text. It is loaded as a module, or linked first; if that works, every entry is launched with
 * a few threads, alone and in clusters, under a budget of instructions. The text's checksum chooses what else
 * is set: the chip, the order of blocks and warps, lag, the profile. Whatever the text says, nothing may
 * crash, hang or leak. Bytes changed at random seldom pass the lexer, so most inputs are made of what was
 * seen before: statements deleted, doubled, moved or taken from another input, and words replaced by others
 * of their kind. `make fuzz` runs it. */
#include "../sim/driver.h"

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(sim_handle **out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(sim_handle *c);
int cuCtxSynchronize(void);
int cuModuleLoadData(sim_handle **out, const void *image);
int cuModuleUnload(void *m);
int cuModuleGetFunction(void **out, void *m, const char *name);
int cuFuncSetAttribute(void *f, int attribute, int value);
int cuLinkCreate_v2(unsigned count, int *options, void **values, void **out);
int cuLinkAddData_v2(void *link, int type, void *data, size_t size, const char *name, unsigned count,
                     int *options, void **values);
int cuLinkComplete(void *link, void **cubin, size_t *size);
int cuLinkDestroy(void *link);
int cuMemAlloc_v2(uint64_t *out, size_t size);
int cuMemsetD8_v2(uint64_t to, unsigned char v, size_t n);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n);
int cuTensorMapEncodeTiled(void *out, int type, uint32_t rank, void *address, const uint64_t *dims,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                           int interleave, int swizzle, int promotion, int fill);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra);
int cuLaunchKernelEx(const void *config, void *f, void **params, void **extra);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t *out,
                                 size_t max, unsigned seed);

enum {
    PARAMETERS = 1 << 15,
    BUFFER = 16384,
    BUDGET = 8000,
    RENEW = 2000,
    MOST_ENTRIES = 12,
    MAP_BYTES = 128
};

/* --- the target ------------------------------------------------------------------------------- */

static uint64_t buffer;
static _Alignas(64) uint8_t map[MAP_BYTES];                   /* the tensor map that entries are given */

static void open_context(void)
{
    sim_handle *c;
    const uint64_t dims[2] = { 32, 16 }, strides[1] = { 128 };
    const uint32_t box[2] = { 16, 4 }, steps[2] = { 1, 1 };
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc_v2(&buffer, BUFFER)
        || cuMemsetD8_v2(buffer, 1, BUFFER / 2))
        abort();
    /* 7: f32 */
    if (cuTensorMapEncodeTiled(map, 7, 2, (void *)(uintptr_t)buffer, dims, strides, box, steps, 0, 0, 0, 0))
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("PTXSIM_MEMORY", "33554432", 0);
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    ptxsim_set("quiet", 1);
    ptxsim_set("threads", 1);
    ptxsim_set("budget", BUDGET);
    ptxsim_set("heap", 65536);
    ptxsim_set("fifo", 4096);
    ptxsim_set("stack", 4096);
    ptxsim_set("watchdog", 0); /* a hang shall show */
    open_context();
    return 0;
}

/* What is not PTX but set beside it. A module for sm_90a loads on that chip only, and so on. */
static void choose(uint32_t sum, const char *text)
{
    sim_device *d = (sim_device *)(uintptr_t)sim_the_device();
    d->sm = strstr(text, "sm_90a") ? 90 : strstr(text, "sm_100") ? 100 : sum & 1 ? 90 : 100;
    ptxsim_set("lag", (int)(sum >> 1 & 3) % 3);
    ptxsim_set("profile", sum >> 3 & 3 ? 0 : 1 + (int)(sum >> 5 & 1));
    ptxsim_set("perturb", sum >> 6 & 3 ? 0 : 7);
    ptxsim_set("contract", sum >> 8 & 3 ? 0 : 1);
    ptxsim_set("race-strict", (int)(sum >> 10 & 1));
}

static uint32_t checksum(const uint8_t *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t k = 0; k < size; k++) h = (h ^ data[k]) * 16777619u;
    return h ^ h >> 16;
}

/* As cuda.h has it; one attribute, the shape of the clusters. */
typedef struct launch_attribute {
    int id;
    char pad[4];
    union { char room[64]; uint32_t n[3]; } value;
} launch_attribute;
typedef struct launch_config {
    uint32_t grid[3], block[3], shared;
    void *stream;
    launch_attribute *attributes;
    uint32_t count;
} launch_config;

static void settle(void)
{
    static uint8_t back[BUFFER];
    cuCtxSynchronize();
    cuMemcpyDtoH_v2(back, buffer, BUFFER); /* fails after a fault */
    ptxsim_report_clear(); /* revives the context after a fault */
}

/* Two blocks in turn, then clusters of two, or of what the entry asks for, with four warps in a block. */
static void launch(sim_module *m, const sim_function *f, uint32_t sum)
{
    static uint64_t words[PARAMETERS / 8];
    static const uint32_t shapes[4][3] = { { 13, 3, 1 }, { 32, 1, 1 }, { 70, 1, 1 }, { 1, 1, 1 } };
    void *params[1024], *function;
    uint32_t n = 0;
    if (cuModuleGetFunction(&function, m->handle, f->name)) return;
    for (size_t k = 0; k < sizeof words / 8; k++) words[k] = buffer + 8 * (k % 8);
    for (const sim_symbol *y = f->params; y; y = y->list_next) {
        static const uint64_t small = 5;
        if (n == sizeof params / sizeof *params || y->size > sizeof words) return;
        const void *value = y->size == MAP_BYTES ? (const void *)map : y->size >= 8 ? words : &small;
        params[n++] = (void *)(uintptr_t)value;
    }
    const uint32_t *b = f->reqntid_count ? f->reqntid : shapes[sum >> 12 & 3], four[3] = { 128, 1, 1 };
    ptxsim_set("seed", (int)(sum >> 14 & 1));
    cuLaunchKernel(function, 2, 1, 1, b[0], b[1], b[2], 256, NULL, params, NULL);
    settle();
    launch_attribute cluster = { .id = 4, .value.n = { 2, 1, 1 } };
    launch_config config = { .grid = { 2, 1, 1 }, .shared = 2048, .attributes = &cluster, .count = 1 };
    if (f->reqnctapercluster[0]) {
        memcpy(config.grid, f->reqnctapercluster, sizeof config.grid);
        config.count = 0;
    }
    memcpy(config.block, f->reqntid_count ? f->reqntid : four, sizeof config.block);
    if (config.grid[0] > 16 || config.grid[1] > 16 || config.grid[2] > 16) return;
    cuFuncSetAttribute(function, 14, 1); /* clusters of 16 */
    ptxsim_set("seed", (int)(~sum >> 14 & 1));
    cuLaunchKernelEx(&config, function, params, NULL);
    settle();
}

/* Freed device allocations are remembered as long as the process lives, so begin anew now and then. */
static void renew(void)
{
    static unsigned runs;
    if (++runs % RENEW) return;
    ptxsim_profile_clear();
    cuDevicePrimaryCtxRelease_v2(0);
    sim_memory_release_all();
    open_context();
}

static void load_and_launch(const void *image, uint32_t sum)
{
    sim_handle *h;
    if (cuModuleLoadData(&h, image)) return;
    sim_module *m = h->object;
    int entries = 0;
    for (sim_function *f = m->functions; f && entries < MOST_ENTRIES; f = f->next)
        if (f->is_entry && f->kernel) {
            launch(m, f, sum);
            entries++;
        }
    cuModuleUnload(h);
}

/* The text with another one, which may define what it declares. */
static void link_and_launch(char *text, size_t size, uint32_t sum)
{
    static char other[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                          ".visible .global .align 8 .b64 v[4] = { 1, 2, 3, v };\n"
                          ".visible .func (.param .b32 r) f(.param .b32 a)\n{\n.reg .b32 x;\n"
                          "ld.param.b32 x, [a];\nst.param.b32 [r], x;\nret;\n}\n";
    void *link, *cubin;
    size_t length;
    if (cuLinkCreate_v2(0, NULL, NULL, &link)) return;
    if (!cuLinkAddData_v2(link, 1, text, size + 1, "text", 0, NULL, NULL)
        && !cuLinkAddData_v2(link, 1, other, sizeof other, "other", 0, NULL, NULL)
        && !cuLinkComplete(link, &cubin, &length))
        load_and_launch(cubin, sum);
    cuLinkDestroy(link);
}

static void remember(const uint8_t *text, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t sum = checksum(data, size);
    /* Images that tell their own length, or a pointer: no driver can know where a short one ends. */
    if (size >= 4
        && (!memcmp(data, "PTXS", 4) || !memcmp(data, "\x50\xed\x55\xba", 4)
            || !memcmp(data, "\xb1\x43\x62\x46", 4)))
        return 0;
    char *text = malloc(size + 1); /* of its exact size, for the sanitizer */
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    remember(data, size);
    choose(sum, text);
    if (sum >> 16 & 7)
        load_and_launch(text, sum);
    else
        link_and_launch(text, size, sum);
    ptxsim_report_clear();
    free(text);
    renew();
    return 0;
}

/* --- mutation --------------------------------------------------------------------------------- */

enum { POOL = 4096, LONGEST = 400 };
static char *pool[POOL];
static size_t pool_length[POOL];
static unsigned pool_count;
static uint64_t state = 1;

static unsigned below(size_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return n ? (unsigned)((state >> 33) % n) : 0;
}

/* A statement is what ends with ; { or }. */
static size_t statement_end(const uint8_t *text, size_t size, size_t at)
{
    while (at < size && !strchr(";{}", text[at])) at++;
    return at < size ? at + 1 : size;
}

static size_t statement_at(const uint8_t *text, size_t size, size_t *length)
{
    size_t begin = below(size + 1);
    while (begin && !strchr(";{}", text[begin - 1])) begin--;
    *length = statement_end(text, size, begin) - begin;
    return begin;
}

static void remember(const uint8_t *text, size_t size)
{
    for (int k = 0; k < 4; k++) {
        size_t n, begin = statement_at(text, size, &n);
        unsigned slot = pool_count < POOL ? pool_count : below(POOL);
        if (n < 3 || n > LONGEST) continue;
        char *copy = malloc(n);
        if (!copy) return;
        memcpy(copy, text + begin, n);
        free(pool[slot]);
        pool[slot] = copy;
        pool_length[slot] = n;
        if (pool_count < POOL) pool_count++;
    }
}

static bool is_word(uint8_t c)
{
    return c == '_' || c == '%' || c == '$' || (c | 32) - 'a' < 26u || c - '0' < 10u;
}

/* A word: a name or number, or a dot with the name behind it. */
static size_t word_at(const uint8_t *text, size_t size, size_t *length)
{
    size_t begin = below(size + 1), end;
    while (begin < size && !is_word(text[begin])) begin++;
    while (begin && is_word(text[begin - 1])) begin--;
    for (end = begin; end < size && is_word(text[end]); end++) {}
    if (begin && begin < size && text[begin - 1] == '.') begin--;
    *length = end - begin;
    return begin;
}

/* Puts n bytes in the place of `gone` bytes at `at`; returns the new size, the old one if it is too long. */
static size_t replace(uint8_t *text, size_t size, size_t max, size_t at, size_t gone, const char *with,
                      size_t n)
{
    char copy[LONGEST];
    if (n > sizeof copy || at + gone > size || size - gone + n > max) return size;
    memcpy(copy, with, n); /* it may be a part of the text itself */
    memmove(text + at + n, text + at + gone, size - at - gone);
    memcpy(text + at, copy, n);
    return size - gone + n;
}

static size_t change_number(uint8_t *text, size_t size, size_t max, size_t at, size_t gone)
{
    static const char *const numbers[] = {
        "0", "1", "-1", "2", "3", "4", "5", "7", "8", "15", "16", "17", "31", "32", "33", "63", "64", "65",
        "127", "128", "255", "256", "1023", "1024", "1025", "4095", "32767", "32768", "65535", "65536",
        "0x7fffffff", "0x80000000", "4294967295", "4294967296", "0x7fffffffffffffff", "0x8000000000000000",
        "0xffffffffffffffff", "18446744073709551616", "0f7fc00000", "0fFF800000", "0f00000001",
        "0d7ff8000000000000", "0dffefffffffffffff", "0d0000000000000001", "1.5", "1e400", "-0.0", "077",
        "0b101"
    };
    const char *n = numbers[below(sizeof numbers / sizeof *numbers)];
    return replace(text, size, max, at, gone, n, strlen(n));
}

static size_t change_word(uint8_t *text, size_t size, size_t max)
{
    size_t n, at = word_at(text, size, &n), with_n, with;
    if (!n) return size;
    if (text[at] - '0' < 10u && below(3)) return change_number(text, size, max, at, n);
    for (int tries = 0; tries < 30; tries++) { /* another word of this text, of the same kind */
        with = word_at(text, size, &with_n);
        if (!with_n || (text[with] == '.') != (text[at] == '.') || (text[with] == '%') != (text[at] == '%'))
            continue;
        return replace(text, size, max, at, n, (const char *)text + with, with_n);
    }
    return size;
}

static size_t change_statement(uint8_t *text, size_t size, size_t max)
{
    size_t n, at = statement_at(text, size, &n), other_n, other = statement_at(text, size, &other_n);
    unsigned k = below(pool_count);
    switch (below(6)) {
    case 0: return replace(text, size, max, at, n, "", 0);
    case 1: return replace(text, size, max, at, 0, (const char *)text + other, other_n);
    case 2: return replace(text, size, max, at, n, (const char *)text + other, other_n);
    case 3: return pool_count ? replace(text, size, max, at, n, pool[k], pool_length[k]) : size;
    default: return pool_count ? replace(text, size, max, at, 0, pool[k], pool_length[k]) : size;
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    state = state * 31 + seed;
    if (!below(4)) return LLVMFuzzerMutate(data, size, max);
    for (unsigned k = 1 + below(3); k; k--) {
        if (below(2))
            size = change_word(data, size, max);
        else
            size = change_statement(data, size, max);
    }
    return size ? size : LLVMFuzzerMutate(data, size, max);
}

/* The head of one input with the tail of another, cut between statements. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t *out,
                                 size_t max, unsigned seed)
{
    size_t n;
    state = state * 31 + seed;
    size_t head = statement_at(a, an, &n), tail = statement_at(b, bn, &n);
    if (head > max) head = max;
    memcpy(out, a, head);
    n = bn - tail < max - head ? bn - tail : max - head;
    memcpy(out + head, b + tail, n);
    return head + n;
}
