/* check.h - checks that count, the closing line, and random numbers, for every test of the library. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned passed, failed;

static inline int check_at(int ok, const char *file, int line, const char *what, const char *more) {
    if (ok) passed++;
    else if (failed++ < 50) printf("%s:%d: FAILED %s %s\n", file, line, what, more);
    return ok;
}
#define CHECK(x) check_at((x) != 0, __FILE__, __LINE__, #x, "")
#define CHECK_MORE(x, more) check_at((x) != 0, __FILE__, __LINE__, #x, more)
/* In the name of another line than this one, with words in place of the expression. */
#define CHECK_AT(x, line, what, more) check_at((x) != 0, __FILE__, line, what, more)

/* Prints the closing line; what main() returns. */
static inline int check_end(void) {
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}

static uint64_t seed_state;

static inline uint32_t random_u32(void) {
    seed_state = seed_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed_state >> 32) ^ (uint32_t)(seed_state >> 59);
}

static inline uint32_t random_below(uint32_t n) {
    return (uint32_t)((uint64_t)random_u32() * n >> 32);
}

static inline double random_within(double x) {
    return ((double)random_u32() / 2147483648.0 - 1) * x;
}

/* Of many cases that are much alike `make test` draws about one in n, new ones in every run; `make proof`, which sets
 * PTXGEN_LONG, takes all. */
static inline int is_drawn(uint32_t n) {
    return getenv("PTXGEN_LONG") || random_below(n) == 0;
}

/* Takes PTXGEN_SEED or a fresh seed, and prints it. */
static inline void start_random(void) {
    const char *seed = getenv("PTXGEN_SEED");
    uint64_t number = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL);
    printf("seed: PTXGEN_SEED=%llu\n", (unsigned long long)number);
    seed_state = number * 2862933555777941757u + 3037000493u;
}

#endif
