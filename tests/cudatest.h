/* cudatest.h - what the tests of ptxgen_cuda.h share: checks that count, an allocator that counts and
   refuses, the calls of the CPU driver counted and made to fail.

   Include it behind _POSIX_C_SOURCE and ptxgen_cuda.h. */
#ifndef CUDATEST_H
#define CUDATEST_H

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thread's current context. Every call must leave it as it was. */
static int (*get_current)(void **);
static void *current_context(void) {
    void *context = NULL;
    if (get_current) get_current(&context);
    return context;
}

static void expect_at(const ptxcu *cu, ptxcu_code got, ptxcu_code want, const char *text, const char *file,
                      int line) {
    const ptxcu_error *e = ptxcu_get_error(cu);
    if (!check_at(got == want && e->code == want && strstr(e->message, text), file, line, text, e->message))
        printf("  got '%s', want '%s'\n", ptxcu_error_name(got), ptxcu_error_name(want));
}
/* The call fails with that code, and the message has that text. */
#define EXPECT(cu, call, want, text)                                                                         \
    do {                                                                                                     \
        void *context_ = current_context();                                                                  \
        ptxcu_code got_ = (call);                                                                            \
        expect_at((cu), got_, (want), (text), __FILE__, __LINE__);                                           \
        check_at(context_ == current_context(), __FILE__, __LINE__, "the current context is another", "");   \
    } while (0)

static void works_at(const ptxcu *cu, ptxcu_code got, const char *what, const char *file, int line) {
    check_at(got == PTXCU_E_NONE, file, line, what, "");
    if (got != PTXCU_E_NONE) printf("  %s\n", ptxcu_get_error(cu)->message);
}
#define WORKS(cu, call)                                                                                      \
    do {                                                                                                     \
        void *context_ = current_context();                                                                  \
        ptxcu_code got_ = (call);                                                                            \
        works_at((cu), got_, #call, __FILE__, __LINE__);                                                     \
        check_at(context_ == current_context(), __FILE__, __LINE__, "the current context is another", "");   \
    } while (0)

/* An allocator that counts, checks sizes, and says no to the nth request. */
typedef struct counter {
    long requests, fail_at, blocks, wrong_sizes;
    size_t bytes;
} counter;

static void *counted(void *user, void *block, size_t old_size, size_t new_size) {
    counter *c = (counter *)user;
    unsigned char *p = (unsigned char *)block, *fresh;
    size_t known = 0;
    if (p) {
        p -= 16;
        memcpy(&known, p, sizeof known);
        if (known != old_size) c->wrong_sizes++;
    } else if (old_size) {
        c->wrong_sizes++;
    }
    if (new_size == 0) {
        if (p) c->blocks--, c->bytes -= known;
        free(p);
        return NULL;
    }
    if (++c->requests == c->fail_at) return NULL;
    fresh = (unsigned char *)malloc(new_size + 16);
    if (!fresh) return NULL;
    memcpy(fresh, &new_size, sizeof new_size);
    if (p) {
        memcpy(fresh + 16, block, known < new_size ? known : new_size);
        free(p);
        c->blocks--;
        c->bytes -= known;
    }
    c->blocks++;
    c->bytes += new_size;
    return fresh + 16;
}

static ptxcu_desc describe(const char *library, counter *c) {
    ptxcu_desc d;
    memset(&d, 0, sizeof d);
    d.library = library;
    if (c) {
        d.alloc = counted;
        d.alloc_user = c;
    }
    return d;
}

/* ---- the CPU driver's extras ---- */

typedef uint64_t (*calls_fn)(const char *);
typedef int (*fail_fn)(const char *, unsigned, int);
static calls_fn calls;
static fail_fn make_fail;

static void find_extras(const ptxcu *cu) {
    void *p = ptxcu_symbol(cu, "ptxsim_calls");
    memcpy(&calls, &p, sizeof p);
    p = ptxcu_symbol(cu, "ptxsim_fail");
    memcpy(&make_fail, &p, sizeof p);
    p = ptxcu_symbol(cu, "cuCtxGetCurrent");
    memcpy(&get_current, &p, sizeof p);
}

#define PTXCU__NAME(name, params) #name,
static const char *const functions[] = {PTXCU_DRIVER(PTXCU__NAME) PTXCU_DRIVER_OPTIONAL(PTXCU__NAME)
                                         "cuLaunchKernelEx"};
#undef PTXCU__NAME
#define FUNCTIONS (sizeof functions / sizeof functions[0])

/* Calls of the driver but for those of the list, which ends with NULL. */
static inline uint64_t other_calls(const char *const *list) {
    uint64_t sum = 0;
    size_t i, j;
    for (i = 0; i < FUNCTIONS; i++) {
        for (j = 0; list[j] && strcmp(functions[i], list[j]);) j++;
        if (!list[j]) sum += calls(functions[i]);
    }
    return sum;
}

#endif
