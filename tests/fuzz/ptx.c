/* ptx.c - hostile PTX for the CPU driver: a libFuzzer target with the driver's sources linked in.
 *
 * An input is a text. It is loaded as a module; if that works, every entry is launched with a few threads
 * under a budget of instructions. Whatever the text says, nothing may crash, hang or leak. Bytes changed at
 * random seldom pass the lexer, so most inputs are made of what was seen before: statements deleted, doubled,
 * moved or taken from another input, and words replaced by others of their kind. `make fuzz` runs it. */
#include "../sim/sim.h"

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(sim_context **out, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuCtxSetCurrent(sim_context *c);
int cuCtxSynchronize(void);
int cuModuleLoadData(sim_module **out, const void *image);
int cuModuleUnload(sim_module *m);
int cuMemAlloc_v2(uint64_t *out, size_t size);
int cuMemsetD8_v2(uint64_t to, unsigned char v, size_t n);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t an, const uint8_t *b, size_t bn, uint8_t *out,
                                 size_t max, unsigned seed);

enum { PARAMETERS = 1 << 15, BUFFER = 4096, BUDGET = 20000, RENEW = 2000 };

/* --- the target ------------------------------------------------------------------------------- */

static uint64_t buffer;

static void open_context(void)
{
    sim_context *c;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) || cuMemAlloc_v2(&buffer, BUFFER)
        || cuMemsetD8_v2(buffer, 1, BUFFER / 2))
        abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setenv("PTXSIM_MEMORY", "33554432", 0);
    ptxsim_set("quiet", 1);
    ptxsim_set("threads", 1);
    ptxsim_set("budget", BUDGET);
    ptxsim_set("watchdog", 0); /* a hang shall show */
    open_context();
    return 0;
}

static void launch(sim_function *f)
{
    static uint64_t words[PARAMETERS / 8];
    void *params[1024];
    uint32_t n = 0;
    for (size_t k = 0; k < sizeof words / 8; k++) words[k] = buffer + 8 * (k % 8);
    for (const sim_symbol *y = f->params; y; y = y->list_next) {
        static const uint64_t small = 5;
        if (n == sizeof params / sizeof *params || y->size > sizeof words) return;
        params[n++] = (void *)(uintptr_t)(y->size >= 8 ? (const void *)words : &small);
    }
    const uint32_t *b = f->reqntid_count ? f->reqntid : (const uint32_t[]) { 13, 3, 1 };
    cuLaunchKernel(f->kernel, 2, 1, 1, b[0], b[1], b[2], 256, NULL, params, NULL);
    cuCtxSynchronize();
    ptxsim_report_clear(); /* revives the context after a fault */
}

/* Freed device allocations are remembered as long as the process lives, so begin anew now and then. */
static void renew(void)
{
    static unsigned runs;
    if (++runs % RENEW) return;
    cuDevicePrimaryCtxRelease_v2(0);
    sim_memory_release_all();
    open_context();
}

static void remember(const uint8_t *text, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sim_module *m;
    if (size >= 4 && (!memcmp(data, "PTXS", 4) || !memcmp(data, "\x50\xed\x55\xba", 4))) return 0;
    char *text = malloc(size + 1); /* of its exact size, for the sanitizer */
    if (!text) abort();
    memcpy(text, data, size);
    text[size] = 0;
    remember(data, size);
    if (!cuModuleLoadData(&m, text)) {
        for (sim_function *f = m->functions; f; f = f->next)
            if (f->is_entry && f->kernel) launch(f);
        cuModuleUnload(m);
    }
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
