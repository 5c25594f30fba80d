/* device.c - the described chip: a row of the table here, or a description file.
 *
 * PTXSIM_DEVICE is a chip ("sm_90") or the path of a file of lines "key = value" (README.md lists them);
 * keys that a file leaves out are as in its chip's row. */
#include "sim.h"
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

static const sim_device devices[] = {
    /* name, sm, suffix, SMs, shared/SM, shared/block, threads/SM, blocks/SM, clock, memory clock, bus, L2, memory,
     * text, registers/SM, GB/s; then peak rates per SM and clock (sim_rates): f32, f64, half, integer, special,
     * tensor, L2 bytes */
    {"sm_75",
     75,
     0,
     40,
     65536,
     65536,
     1024,
     16,
     1590000,
     5001000,
     256,
     4194304,
     UINT64_C(15843721216),
     "",
     65536,
     320,
     {64, 2, 64, 64, 16, 512, 64}},
    {"sm_80",
     80,
     0,
     108,
     167936,
     166912,
     2048,
     32,
     1410000,
     1215000,
     5120,
     41943040,
     UINT64_C(42505273344),
     "",
     65536,
     1555,
     {64, 32, 128, 64, 16, 1024, 64}},
    {"sm_86",
     86,
     0,
     84,
     102400,
     101376,
     1536,
     16,
     1695000,
     9751000,
     384,
     6291456,
     UINT64_C(25438126080),
     "",
     65536,
     936,
     {128, 2, 64, 64, 16, 512, 64}},
    {"sm_87",
     87,
     0,
     16,
     167936,
     166912,
     1536,
     16,
     1300000,
     3200000,
     256,
     4194304,
     UINT64_C(64352108544),
     "",
     65536,
     204,
     {128, 2, 64, 64, 16, 512, 64}},
    {"sm_89",
     89,
     0,
     128,
     102400,
     101376,
     1536,
     24,
     2520000,
     10501000,
     384,
     75497472,
     UINT64_C(25393692672),
     "",
     65536,
     1008,
     {128, 2, 64, 64, 16, 512, 64}},
    {"sm_90",
     90,
     'a',
     132,
     233472,
     232448,
     2048,
     32,
     1980000,
     3201000,
     6144,
     62914560,
     UINT64_C(150109880320),
     "",
     65536,
     4800,
     {128, 64, 128, 64, 16, 2048, 64}},
    {"sm_100",
     100,
     'a',
     148,
     233472,
     232448,
     2048,
     32,
     1965000,
     3996000,
     8192,
     132644864,
     UINT64_C(191513788416),
     "",
     65536,
     8000,
     {128, 64, 128, 64, 16, 4096, 64}},
    {"sm_103",
     103,
     'a',
     148,
     233472,
     232448,
     2048,
     32,
     1965000,
     3996000,
     8192,
     132644864,
     UINT64_C(296352743424),
     "",
     65536,
     8000,
     {128, 64, 128, 64, 16, 4096, 64}},
    {"sm_120",
     120,
     'a',
     170,
     102400,
     101376,
     1536,
     24,
     2407000,
     14001000,
     512,
     100663296,
     UINT64_C(33661911040),
     "",
     65536,
     1792,
     {128, 2, 64, 128, 16, 512, 64}},
    {"sm_121",
     121,
     'a',
     48,
     102400,
     101376,
     1536,
     24,
     2418000,
     4266000,
     256,
     25165824,
     UINT64_C(128518373376),
     "",
     65536,
     273,
     {128, 2, 64, 128, 16, 512, 64}},
};
enum { CHIPS = sizeof devices / sizeof *devices };

static sim_device chosen;
static char chosen_name[48], problem[400];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void complain(const char *format, ...) SIM_PRINTF(1, 2);
static void complain(const char *format, ...)
{
    va_list a;
    if (*problem) return;
    va_start(a, format);
    vsnprintf(problem, sizeof problem, format, a);
    va_end(a);
}

static const sim_device *chip(const char *text)
{
    for (int k = 0; k < CHIPS; k++) {
        size_t n = strlen(devices[k].name);
        if (!strncmp(text, devices[k].name, n) && (!text[n] || (text[n] == 'a' && !text[n + 1]))) return
            &devices[k];
    }
    return NULL;
}

/* --- description files ------------------------------------------------------------------------ */

typedef struct key { const char *name; size_t offset; bool wide; uint64_t least, most; } key;
static const key keys[] = {
    { "sms", offsetof(sim_device, sm_count), false, 1, 4096 },
    { "memory", offsetof(sim_device, memory), true, 1 << 20, UINT64_C(1) << 42 },
    { "shared_per_sm", offsetof(sim_device, shared_per_sm), false, 49152, 1 << 20 },
    { "shared_per_block_optin", offsetof(sim_device, shared_optin), false, 49152, 1 << 20 },
    { "threads_per_sm", offsetof(sim_device, threads_per_sm), false, 1024, 4096 },
    { "blocks_per_sm", offsetof(sim_device, blocks_per_sm), false, 1, 64 },
    { "registers_per_sm", offsetof(sim_device, registers_per_sm), false, 32768, 1 << 20 },
    { "clock_khz", offsetof(sim_device, clock_khz), false, 1, 100000000 },
    { "memory_clock_khz", offsetof(sim_device, memory_clock_khz), false, 1, 100000000 },
    { "bus_bits", offsetof(sim_device, bus_bits), false, 1, 65536 },
    { "l2_bytes", offsetof(sim_device, l2_bytes), false, 0, 1 << 30 },
    { "bandwidth_gb", offsetof(sim_device, bandwidth_gb), false, 1, 1000000 },
};

static bool number(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    if (!isdigit((unsigned char)*text)) return false;
    *out = strtoull(text, &end, 0);
    if (errno || end == text) return false;
    uint64_t scale = *end == 'K' ? 1 << 10 : *end == 'M' ? 1 << 20 : *end == 'G' ? 1 << 30 : 1;
    if (*out > UINT64_MAX / scale) return false;
    *out *= scale;
    return !end[scale != 1];
}

static void set_key(const char *path, unsigned line, const char *name, const char *value)
{
    uint64_t v;
    if (!strcmp(name, "sm")) return;                          /* read in the first pass */
    if (!strcmp(name, "name")) {
        if (!*value || strlen(value) >= sizeof chosen_name)
            complain("%s:%u: a name has 1 to %zu characters", path, line, sizeof chosen_name - 1);
        else strcpy(chosen_name, value);
        return;
    }
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        if (strcmp(keys[k].name, name)) continue;
        if (!number(value, &v) || v < keys[k].least || v > keys[k].most) {
            complain("%s:%u: %s is a number from %llu to %llu, not '%.40s'", path, line, name,
                     (unsigned long long)keys[k].least, (unsigned long long)keys[k].most, value);
            return;
        }
        char *at = (char *)&chosen + keys[k].offset;
        if (keys[k].wide) memcpy(at, &v, 8);
        else { uint32_t n = (uint32_t)v; memcpy(at, &n, 4); }
        return;
    }
    complain("%s:%u: unknown key '%.40s'", path, line, name);
}

static char *trim(char *s)
{
    while (isspace((unsigned char)*s)) s++;
    for (size_t n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--) s[n - 1] = 0;
    return s;
}

/* Reads the file once: for the chip alone, or for all the rest. */
static bool read_lines(const char *path, FILE *f, bool chip_only)
{
    char text[512];
    bool found = false;
    rewind(f);
    for (unsigned line = 1; fgets(text, sizeof text, f); line++) {
        size_t n = strlen(text);
        if (n == sizeof text - 1 && text[n - 1] != '\n') { complain("%s:%u: the line is too long", path,
            line); return found; }
        text[strcspn(text, "#")] = 0;
        char *equals = strchr(text, '='), *name = trim(text);
        if (!*name) continue;
        if (!equals) { complain("%s:%u: expected key = value, found '%.40s'", path, line, name); return
            found; }
        *equals = 0;
        name = trim(text);
        char *value = trim(equals + 1);
        if (!chip_only) { set_key(path, line, name, value); continue; }
        if (strcmp(name, "sm")) continue;
        char wanted[64];
        snprintf(wanted, sizeof wanted, "%s%.40s", strncmp(value, "sm_", 3) ? "sm_" : "", value);
        const sim_device *d = chip(wanted);
        if (!d) { complain("%s:%u: unknown chip '%.40s'", path, line, value); return true; }
        chosen = *d;
        found = true;
    }
    return found;
}

static void read_description(const char *path)
{
    FILE *f = fopen(path, "r");
    if (!f) { complain("PTXSIM_DEVICE=%.200s: neither a chip that this driver knows nor a file that "
        "opens", path); return; }
    if (!read_lines(path, f, true)) complain("%s:1: the line 'sm = ...' is missing", path);
    if (!*problem) {
        snprintf(chosen_name, sizeof chosen_name, "%s", chosen.name);
        (void)read_lines(path, f, false);
    }
    fclose(f);
    if (chosen.shared_optin > chosen.shared_per_sm)
        complain("%s: shared_per_block_optin exceeds shared_per_sm", path);
    chosen.name = chosen_name;
}

static void choose(void)
{
    const char *wish = getenv("PTXSIM_DEVICE"), *memory = getenv("PTXSIM_MEMORY");
    chosen = *chip("sm_90");
    if (wish && *wish) {
        const sim_device *d = chip(wish);
        if (d) chosen = *d;
        else read_description(wish);
    }
    if (*problem) {
        chosen = *chip("sm_90");
        fprintf(stderr, "ptxsim: %s\n", problem);
    }
    snprintf(chosen.text, sizeof chosen.text, "ptxsim CPU driver (%.36s)", chosen.name);
    if (memory && strtoull(memory, NULL, 0)) chosen.memory = strtoull(memory, NULL, 0);
}

const sim_device *sim_the_device(void)
{
    pthread_once(&once, choose);
    return &chosen;
}

/* What is wrong with the description; NULL if nothing is. */
const char *sim_device_problem(void)
{
    (void)sim_the_device();
    return *problem ? problem : NULL;
}

uint64_t sim_device_memory(void) { return sim_the_device()->memory; }
