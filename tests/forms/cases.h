/* cases.h - a form with its evaluator, and the values it is tried on: shared by tests/driver/forms.c, which
 * writes the text of a form itself, and tests/builder/forms_run.c, which has the builder write it. */
#ifndef CASES_H
#define CASES_H
#include "exact.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- cases ------------------------------------------------------------------------------------ */

enum { CASES = 1024, INPUTS = 8, MAX_FORMS = 4000 };
enum { FTZ = 1, SAT = 2, RELU = 4, OOB = 8, PROPAGATE = 16, XORSIGN = 32, MAGNITUDE = 64, FINITE_ = 128 };

typedef struct form form;
typedef uint64_t evaluate(const form *, const uint64_t *v);
typedef bool accept(const form *, const uint64_t *v, uint64_t have, uint64_t want);
struct form {
    char text[400], sig[10]; /* result letter, ':', input letters: see pool() */
    evaluate *eval;
    accept *good; /* NULL: the same bits */
    int op, mode, flags, bits, bits2;
    bool s, s2;
    const fmt *f, *g;
};
static form *forms;
static int form_count;
static bool skip_case;

static form *add_form(const char *sig, evaluate *eval, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static form *add_form(const char *sig, evaluate *eval, const char *format, ...)
{
    va_list a;
    if (form_count == MAX_FORMS) {
        fprintf(stderr, "too many forms\n");
        exit(2);
    }
    form *p = &forms[form_count++];
    va_start(a, format);
    vsnprintf(p->text, sizeof p->text, format, a);
    va_end(a);
    snprintf(p->sig, sizeof p->sig, "%s", sig);
    p->eval = eval;
    return p;
}

static uint64_t random_state;
static uint64_t random64(void)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Letters: w h x c integers of 32, 16, 64, 8 bits; i a count; f g k b floats of f32, f64, f16, bf16;
 * K B q pairs of k, b, f; p a predicate. */
static const fmt *float_of(char c)
{
    return c == 'f' || c == 'q'   ? &F32
           : c == 'g'             ? &F64
           : c == 'k' || c == 'K' ? &F16
           : c == 'b' || c == 'B' ? &BF16
                                  : NULL;
}

static uint64_t edge(const fmt *f)
{
    uint64_t one = (uint64_t)(1 - f->emin) << f->p, unit = UINT64_C(1) << f->p,
             sign = UINT64_C(1) << (f->bits - 1), m = unit - 1;
    const uint64_t values[] = { 0,
                                1,
                                2,
                                m,
                                m >> 1,
                                unit,
                                unit + 1,
                                unit - 1,
                                unit << 1,
                                f->top,
                                f->top - 1,
                                f->inf,
                                f->inf + 1,
                                f->nan,
                                f->inf | unit >> 1,
                                one,
                                one + 1,
                                one - 1,
                                one + unit / 2,
                                one + unit + unit / 2,
                                one - unit,
                                one + 2 * unit,
                                one + 3 * unit + 5 };
    uint64_t v = values[random64() % (sizeof values / sizeof *values)];
    return random64() & 1 ? v | sign : v;
}

static uint64_t random_float(const fmt *f)
{
    uint64_t mask = f->bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << f->bits) - 1, v = random64() & mask;
    unsigned kind = (unsigned)(random64() % 8);
    if (kind < 3) return edge(f);
    if (kind < 6) { /* near one, so that operands meet */
        int e = 1 - f->emin + (int)(random64() % 12) - 6;
        v = (v & (UINT64_C(1) << (f->bits - 1))) | (uint64_t)e << f->p | (v & ((UINT64_C(1) << f->p) - 1));
        if (kind == 5) v &= ~((UINT64_C(1) << (f->p - 2)) - 1);
    }
    return v & mask;
}

static uint64_t random_integer(int bits)
{
    uint64_t mask = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1, one = 1, v = random64();
    switch (random64() % 6) {
    case 0: return v & 3;
    case 1: return (0 - (v & 3)) & mask;
    case 2: return (one << v % (unsigned)bits) & mask;
    case 3: return ((one << v % (unsigned)bits) - 1) & mask;
    case 4: return ((one << (bits - 1)) - 1 + (v & 1)) & mask;
    default: return (v >> random64() % (unsigned)bits) & mask;
    }
}

static uint64_t pool(char c, int n, bool alone)
{
    switch (c) {
    case 'w': return random_integer(32);
    case 'h': return alone ? (uint64_t)(n * 64 + (int)(random64() % 64)) & 0xffff : random_integer(16);
    case 'x': return random_integer(64);
    case 'c': return (uint64_t)n & 255;
    case 'i': return random64() % 3 ? random64() % 70 : random_integer(32);
    case 'p': return random64() & 1;
    case 'k':
    case 'b':
        if (alone) return (uint64_t)(n * 64 + (int)(random64() % 64)) & 0xffff; /* fall through */
    case 'f':
    case 'g': return random_float(float_of(c));
    case 'K':
    case 'B': return random_float(float_of(c)) << 16 | random_float(float_of(c));
    default: return random_float(&F32) << 32 | random_float(&F32);
    }
}

static int width_of(char c)
{
    return c == 'h' || c == 'k' || c == 'b'   ? 16
           : c == 'x' || c == 'g' || c == 'q' ? 64
           : c == 'c'                         ? 8
           : c == 'p'                         ? 1
                                              : 32;
}

#endif
