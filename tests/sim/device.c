/* device.c - the chips that this driver can say it has.  A new chip is a row. */
#include "sim.h"

static const sim_device devices[] = {
    /* name sm suffix SMs shared/SM shared/block threads/SM blocks/SM clock memory clock bus L2 memory,
     * then for the estimate, by SM and clock: f32 f64 half integer special tensor L2 bytes */
    { "sm_75", 75, 0, 40, 65536, 65536, 1024, 16, 1590000, 5001000, 256, 4194304, UINT64_C(15843721216),
      "", { 64, 2, 64, 64, 16, 512, 64 } },
    { "sm_80", 80, 0, 108, 167936, 166912, 2048, 32, 1410000, 1215000, 5120, 41943040, UINT64_C(42505273344),
      "", { 64, 32, 128, 64, 16, 1024, 64 } },
    { "sm_86", 86, 0, 84, 102400, 101376, 1536, 16, 1695000, 9751000, 384, 6291456, UINT64_C(25438126080),
      "", { 128, 2, 64, 64, 16, 512, 64 } },
    { "sm_89", 89, 0, 128, 102400, 101376, 1536, 24, 2520000, 10501000, 384, 75497472, UINT64_C(25393692672),
      "", { 128, 2, 64, 64, 16, 512, 64 } },
    { "sm_90", 90, 'a', 132, 233472, 232448, 2048, 32, 1980000, 3201000, 6144, 62914560,
      UINT64_C(150109880320), "", { 128, 64, 128, 64, 16, 2048, 64 } },
    { "sm_100", 100, 'a', 148, 233472, 232448, 2048, 32, 1965000, 3996000, 8192, 132644864,
      UINT64_C(191513788416), "", { 128, 64, 128, 64, 16, 4096, 64 } },
    { "sm_120", 120, 'a', 170, 102400, 101376, 1536, 24, 2407000, 14001000, 512, 100663296,
      UINT64_C(33661911040), "", { 128, 2, 64, 128, 16, 512, 64 } },
};

static sim_device chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const char *wish = getenv("PTXSIM_DEVICE"), *memory = getenv("PTXSIM_MEMORY");
    chosen = devices[4];
    for (size_t k = 0; wish && k < sizeof devices / sizeof *devices; k++) {
        size_t n = strlen(devices[k].name);
        if (!strncmp(wish, devices[k].name, n) && (!wish[n] || (wish[n] == 'a' && !wish[n + 1])))
            chosen = devices[k];
    }
    snprintf(chosen.text, sizeof chosen.text, "ptxsim CPU driver (%s)", chosen.name);
    if (memory && strtoull(memory, NULL, 0)) chosen.memory = strtoull(memory, NULL, 0);
}

const sim_device *sim_the_device(void)
{
    pthread_once(&once, choose);
    return &chosen;
}

uint64_t sim_device_memory(void) { return sim_the_device()->memory; }
