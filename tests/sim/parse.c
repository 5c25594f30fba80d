/* parse.c - turns text into statements: lexer, directives, declarations, operands.
 *
 * A syntax error ends the parse (sim_fatal), as in ptxas; after any other error (sim_error) parsing
 * continues. Instructions are matched with their form as soon as they are read (isa.c); their
 * operands are checked by lower.c. A new directive: parse_module_item or parse_body_item. A new special
 * register: the table `specials`. */
#include "sim.h"
#include "lower.h"
#include <math.h>

typedef struct parser {
    sim_module *m;
    const char *p, *end;
    uint32_t line;
    sim_function *function;
    uint32_t depth;
    uint8_t linkage;                   /* of the module item being parsed */
    uint64_t dimensions[8];            /* of the array being declared */
    uint32_t dimension_count;
    sim_symbol **scope;
    uint32_t scope_count, scope_capacity; /* symbols of open scopes, in order of entry */
} parser;

static const struct { const char *name; uint16_t special; uint8_t type, sm; uint8_t version;
} specials[] = {
    { "%tid.x", SR_TID_X, T_U32, 0, 0 },
    { "%tid.y", SR_TID_Y, T_U32, 0, 0 },
    { "%tid.z", SR_TID_Z, T_U32, 0, 0 },
    { "%ntid.x", SR_NTID_X, T_U32, 0, 0 },
    { "%ntid.y", SR_NTID_Y, T_U32, 0, 0 },
    { "%ntid.z", SR_NTID_Z, T_U32, 0, 0 },
    { "%ctaid.x", SR_CTAID_X, T_U32, 0, 0 },
    { "%ctaid.y", SR_CTAID_Y, T_U32, 0, 0 },
    { "%ctaid.z", SR_CTAID_Z, T_U32, 0, 0 },
    { "%nctaid.x", SR_NCTAID_X, T_U32, 0, 0 },
    { "%nctaid.y", SR_NCTAID_Y, T_U32, 0, 0 },
    { "%nctaid.z", SR_NCTAID_Z, T_U32, 0, 0 },
    { "%laneid", SR_LANEID, T_U32, 0, 0 },
    { "%warpid", SR_WARPID, T_U32, 0, 0 },
    { "%nwarpid", SR_NWARPID, T_U32, 0, 0 },
    { "%smid", SR_SMID, T_U32, 0, 0 },
    { "%nsmid", SR_NSMID, T_U32, 0, 0 },
    { "%gridid", SR_GRIDID, T_U64, 0, 0 },
    { "%lanemask_eq", SR_LANEMASK_EQ, T_U32, 0, 0 },
    { "%lanemask_le", SR_LANEMASK_LE, T_U32, 0, 0 },
    { "%lanemask_lt", SR_LANEMASK_LT, T_U32, 0, 0 },
    { "%lanemask_ge", SR_LANEMASK_GE, T_U32, 0, 0 },
    { "%lanemask_gt", SR_LANEMASK_GT, T_U32, 0, 0 },
    { "%clock", SR_CLOCK, T_U32, 0, 0 },
    { "%clock_hi", SR_CLOCK_HI, T_U32, 0, 50 },
    { "%clock64", SR_CLOCK64, T_U64, 0, 0 },
    { "%globaltimer", SR_GLOBALTIMER, T_U64, 30, 31 },
    { "%globaltimer_lo", SR_GLOBALTIMER_LO, T_U32, 30, 31 },
    { "%globaltimer_hi", SR_GLOBALTIMER_HI, T_U32, 30, 31 },
    { "%total_smem_size", SR_TOTAL_SMEM, T_U32, 0, 41 },
    { "%dynamic_smem_size", SR_DYNAMIC_SMEM, T_U32, 0, 41 },
    { "%aggr_smem_size", SR_AGGR_SMEM, T_U32, 90, 81 },
    { "%reserved_smem_offset_begin", SR_RESERVED_BEGIN, T_B32, 80, 76 },
    { "%reserved_smem_offset_end", SR_RESERVED_END, T_B32, 80, 76 },
    { "%reserved_smem_offset_cap", SR_RESERVED_CAP, T_B32, 80, 76 },
    { "%reserved_smem_offset_0", SR_RESERVED_OFFSET, T_B32, 80, 76 },
    { "%reserved_smem_offset_1", SR_RESERVED_OFFSET, T_B32, 80, 76 },
    { "%current_graph_exec", SR_ZERO64, T_U64, 50, 80 },
    { "%is_explicit_cluster", SR_EXPLICIT_CLUSTER, T_PRED, 90, 78 },
    { "%clusterid.x", SR_CLUSTERID_X, T_U32, 90, 78 },
    { "%clusterid.y", SR_CLUSTERID_Y, T_U32, 90, 78 },
    { "%clusterid.z", SR_CLUSTERID_Z, T_U32, 90, 78 },
    { "%nclusterid.x", SR_NCLUSTERID_X, T_U32, 90, 78 },
    { "%nclusterid.y", SR_NCLUSTERID_Y, T_U32, 90, 78 },
    { "%nclusterid.z", SR_NCLUSTERID_Z, T_U32, 90, 78 },
    { "%cluster_ctaid.x", SR_CLUSTER_CTAID_X, T_U32, 90, 78 },
    { "%cluster_ctaid.y", SR_CLUSTER_CTAID_Y, T_U32, 90, 78 },
    { "%cluster_ctaid.z", SR_CLUSTER_CTAID_Z, T_U32, 90, 78 },
    { "%cluster_nctaid.x", SR_CLUSTER_NCTAID_X, T_U32, 90, 78 },
    { "%cluster_nctaid.y", SR_CLUSTER_NCTAID_Y, T_U32, 90, 78 },
    { "%cluster_nctaid.z", SR_CLUSTER_NCTAID_Z, T_U32, 90, 78 },
    { "%cluster_ctarank", SR_CLUSTER_CTARANK, T_U32, 90, 78 },
    { "%cluster_nctarank", SR_CLUSTER_NCTARANK, T_U32, 90, 78 },
};

/* --- lexer ------------------------------------------------------------------------------------ */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
}
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_name(char c) { return is_name_start(c) || is_digit(c); }

static void skip(parser *s)
{
    for (;;) {
        char c = *s->p;
        if (c == '\n') { s->line++; s->p++; }
        else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') s->p++;
        else if (c == '/' && s->p[1] == '/') { while (*s->p && *s->p != '\n') s->p++; }
        else if (c == '/' && s->p[1] == '*') {
            uint32_t begin = s->line;
            s->p += 2;
            while (*s->p && !(*s->p == '*' && s->p[1] == '/')) { if (*s->p == '\n') s->line++; s->p++; }
            if (!*s->p) sim_fatal(s->m, begin, "Parsing error near '': unexpected EOF while scanning");
            s->p += 2;
        } else return;
    }
}

static bool at_number(parser *s)
{
    skip(s);
    return is_digit(*s->p) || (*s->p == '.' && is_digit(s->p[1]));
}

/* Whether a name follows that is not a constant. */
static bool at_symbol(parser *s)
{
    skip(s);
    return is_name_start(*s->p) && (strncmp(s->p, "WARP_SZ", 7) || is_name(s->p[7]));
}

static void skip_line(parser *s) { while (*s->p && *s->p != '\n') s->p++; }

static void syntax(parser *s)
{
    skip(s);
    char near[40];
    size_t n = 0;
    if (is_name(*s->p) || *s->p == '.') {
        if (*s->p == '.') near[n++] = *s->p++;
        while (n < sizeof near - 1 && is_name(*s->p)) near[n++] = *s->p++;
    } else if (*s->p) near[n++] = *s->p;
    near[n] = 0;
    sim_fatal(s->m, s->line, "Parsing error near '%s': syntax error", near);
}

static bool peek(parser *s, char c) { skip(s); return *s->p == c; }
static bool accept(parser *s, char c) { if (!peek(s, c)) return false; s->p++; return true; }
static void expect(parser *s, char c) { if (!accept(s, c)) syntax(s); }

static const char *copy(parser *s, const char *text, size_t length)
{
    char *r = sim_alloc(s->m, length + 1);
    memcpy(r, text, length);
    return r;
}

static const char *name(parser *s)
{
    skip(s);
    const char *at = s->p;
    if (!is_name_start(*at)) syntax(s);
    while (is_name(*s->p)) s->p++;
    return copy(s, at, (size_t)(s->p - at));
}

/* Whether the next token is the directive `.word` (the whole word); if so, takes it. */
static bool directive(parser *s, const char *word)
{
    skip(s);
    size_t n = strlen(word);
    if (*s->p != '.' || strncmp(s->p + 1, word, n) || is_name(s->p[1 + n])
        || (s->p[1 + n] == ':' && s->p[2 + n] == ':'))
        return false;
    s->p += n + 1;
    return true;
}

/* Refuses a directive that needs a later version or target. */
static void require_version(parser *s, const char *what, uint32_t version, uint32_t target)
{
    if (s->m->target < target)
        sim_error(s->m, s->line, "Feature '%s' requires .target sm_%u or higher", what, target);
    if (s->m->version < version)
        sim_error(s->m, s->line, "Feature '%s' requires PTX ISA .version %u.%u or later", what, version / 10,
                  version % 10);
}

/* Takes a type directive; T_NONE if the next token is something else. */
static sim_type type_directive(parser *s)
{
    skip(s);
    if (*s->p != '.') return T_NONE;
    const char *at = s->p + 1, *e = at;
    while (is_name(*e)) e++;
    sim_type t = sim_type_find(at, (size_t)(e - at));
    if (t != T_NONE) s->p = e;
    return t;
}

typedef struct number { /* by_bits: 0f..., 0d... */
    bool is_float, single, by_bits, is_unsigned;
    uint64_t bits;
} number;

static int hex(char c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static number read_number(parser *s)
{
    number n = { 0 };
    const char *p = s->p;
    if (p[0] == '0' && (p[1] == 'f' || p[1] == 'F' || p[1] == 'd' || p[1] == 'D')) {
        int digits = p[1] == 'f' || p[1] == 'F' ? 8 : 16;
        n.is_float = n.by_bits = true;
        for (int k = 0; k < digits; k++) {
            if (hex(p[2 + k]) < 0) syntax(s);
            n.bits = n.bits << 4 | (uint64_t)hex(p[2 + k]);
        }
        if (hex(p[2 + digits]) >= 0) syntax(s);
        s->p += 2 + digits;
        if (digits == 8) {
            uint32_t b = (uint32_t)n.bits; float f; double d;
            memcpy(&f, &b, 4);
            d = (double)f;
            if ((b & 0x7fffffff) > 0x7f800000)
                n.bits = (uint64_t)(b & 0x80000000) << 32 | UINT64_C(0x7ff0000000000000)
                         | (uint64_t)(b & 0x7fffff) << 29;
            else memcpy(&n.bits, &d, 8);
            n.single = true;
        }
        return n;
    }
    const char *e = p;
    while (is_digit(*e)) e++;
    bool hexadecimal = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    if (!hexadecimal && (*e == '.' || *e == 'e' || *e == 'E')
        && (is_digit(e[1]) || *e == '.' || e[1] == '+' || e[1] == '-')) {
        char text[80], *stop;
        size_t length = 0;
        while (length < sizeof text - 1
               && (is_digit(p[length]) || p[length] == '.' || p[length] == 'e' || p[length] == 'E'
                   || ((p[length] == '+' || p[length] == '-') && length && (p[length - 1] | 32) == 'e'))) {
            text[length] = p[length];
            length++;
        }
        text[length] = 0;
        double d = strtod(text, &stop);
        if (stop == text) syntax(s);
        s->p += stop - text;
        if (isinf(d)) sim_error(s->m, s->line, "Constant overflow");
        n.is_float = true;
        memcpy(&n.bits, &d, 8);
        if (is_name(*s->p)) syntax(s);
        return n;
    }
    unsigned base = 10;
    if (hexadecimal) { base = 16; p += 2; }
    else if (p[0] == '0' && (p[1] == 'b' || p[1] == 'B')) { base = 2; p += 2; }
    else if (p[0] == '0') base = 8;
    const char *first = p;
    bool overflow = false;
    for (; hex(*p) >= 0 && (unsigned)hex(*p) < base; p++) {
        overflow |= n.bits > (UINT64_MAX - (unsigned)hex(*p)) / base;
        n.bits = n.bits * base + (unsigned)hex(*p);
    }
    if (p == first) syntax(s);
    if (overflow) sim_error(s->m, s->line, "Constant overflow");
    if (*p == 'U') { n.is_unsigned = true; p++; }
    s->p = p;
    if (is_name(*p) && *p != '%') {                           /* 1x: a name must not start with a digit */
        s->p = first;
        sim_fatal(s->m, s->line, "Parsing error near '%.*s': syntax error",
                  (int)(p - first > 30 ? 30 : p - first), first);
    }
    return n;
}

/* Constant expressions: C's operators and precedence. An integer is a u64 if its `U` or its size says so, else an
 * s64. An operator with a u64 operand is unsigned; `~` and `%` are always unsigned. A comparison gives an s64; a
 * shift has its left operand's type and takes the count modulo 64.
 * Decimal floating-point numbers are added, subtracted, multiplied, divided and compared as f64. */
typedef struct constant { uint64_t bits; bool is_unsigned, is_real; double real; } constant;

static constant parse_conditional(parser *s, int nesting);

static constant of_truth(bool truth) { return (constant){ truth, false, false, 0 }; }
static constant of_bits(uint64_t bits, bool is_unsigned) { return (constant){ bits, is_unsigned, false, 0 }; }
static constant of_real(double real) { return (constant){ 0, false, true, real }; }

static uint64_t require_integer(parser *s, constant v)
{
    if (v.is_real) sim_fatal(s->m, s->line, "Integer constant expression expected");
    return v.bits;
}

static constant parse_primary(parser *s, int nesting)
{
    if (nesting > 64) sim_fatal(s->m, s->line, "Expression nested too deeply");
    skip(s);
    if (accept(s, '(')) {
        skip(s);
        bool to_signed = *s->p == '.' && directive(s, "s64");
        if (to_signed || (*s->p == '.' && directive(s, "u64"))) {
            expect(s, ')');
            return of_bits(require_integer(s, parse_primary(s, nesting + 1)), !to_signed);
        }
        constant v = parse_conditional(s, nesting + 1);
        expect(s, ')');
        return v;
    }
    char sign = *s->p;
    if (sign && strchr("-+~!", sign)) {
        s->p++;
        constant v = parse_primary(s, nesting + 1);
        if (sign == '!') return of_truth(!require_integer(s, v));
        if (sign == '~') return of_bits(~require_integer(s, v), true);
        if (sign == '+') return v;
        return v.is_real ? of_real(-v.real) : of_bits(0 - v.bits, v.is_unsigned);
    }
    if (!strncmp(s->p, "WARP_SZ", 7) && !is_name(s->p[7])) { s->p += 7; return of_bits(32, false); }
    if (!at_number(s)) syntax(s);
    number n = read_number(s);
    if (n.by_bits) sim_fatal(s->m, s->line, "A number given by its bits cannot be part of an expression");
    if (!n.is_float) return of_bits(n.bits, n.is_unsigned || n.bits > INT64_MAX);
    constant v = of_real(0);
    memcpy(&v.real, &n.bits, 8);
    return v;
}

static constant evaluate_real(parser *s, const char *operator, double a, double b)
{
    switch (operator[0] | (operator[1] << 8)) {
    case '=' | '=' << 8: return of_truth(a == b);
    case '!' | '=' << 8: return of_truth(a != b);
    case '<' | '=' << 8: return of_truth(a <= b);
    case '>' | '=' << 8: return of_truth(a >= b);
    case '<': return of_truth(a < b);
    case '>': return of_truth(a > b);
    case '+': return of_real(a + b);
    case '-': return of_real(a - b);
    case '*': return of_real(a * b);
    case '/':
        if (b == 0) sim_fatal(s->m, s->line, "Constant expression has division by zero");
        return of_real(a / b);
    default: sim_fatal(s->m, s->line, "Integer constant expression expected"); return of_real(0);
    }
}

static constant evaluate_binary(parser *s, const char *operator, constant a, constant b)
{
    if (a.is_real != b.is_real) sim_fatal(s->m, s->line, "Constant expression type mismatch");
    if (a.is_real) return evaluate_real(s, operator, a.real, b.real);
    bool is_unsigned = a.is_unsigned || b.is_unsigned;
    uint64_t x = a.bits, y = b.bits, r = 0, top = UINT64_C(1) << 63;
    bool less = is_unsigned ? x < y : (x ^ top) < (y ^ top);
    unsigned count = y & 63;
    switch (operator[0] | (operator[1] << 8)) {
    case '|' | '|' << 8: return of_truth(x || y);
    case '&' | '&' << 8: return of_truth(x && y);
    case '=' | '=' << 8: return of_truth(x == y);
    case '!' | '=' << 8: return of_truth(x != y);
    case '<' | '=' << 8: return of_truth(less || x == y);
    case '>' | '=' << 8: return of_truth(!less);
    case '<': return of_truth(less);
    case '>': return of_truth(!less && x != y);
    case '<' | '<' << 8: return of_bits(x << count, a.is_unsigned);
    case '>' | '>' << 8:
        r = !a.is_unsigned && x >> 63 ? ~(~x >> count) : x >> count;
        return of_bits(r, a.is_unsigned);
    case '|': r = x | y; break;
    case '^': r = x ^ y; break;
    case '&': r = x & y; break;
    case '+': r = x + y; break;
    case '-': r = x - y; break;
    case '*': r = x * y; break;
    default: {
        if (!y) sim_fatal(s->m, s->line, "Division by zero in constant expression");
        is_unsigned |= *operator == '%';
        bool minus_x = !is_unsigned && x >> 63, minus_y = !is_unsigned && y >> 63;
        if (minus_x) x = 0 - x;
        if (minus_y) y = 0 - y;
        r = *operator == '/' ? x / y : x % y;
        if (minus_x != minus_y) r = 0 - r;
    }
    }
    return of_bits(r, is_unsigned);
}

static constant parse_binary(parser *s, int level, int nesting)
{
    static const char *const operators[][4] = { { "||" }, { "&&" }, { "|" }, { "^" }, { "&" }, { "==", "!=" },
        { "<=", ">=", "<", ">" }, { "<<", ">>" }, { "+", "-" }, { "*", "/", "%" } };
    enum { LEVELS = sizeof operators / sizeof *operators };
    if (level == LEVELS) return parse_primary(s, nesting);
    constant a = parse_binary(s, level + 1, nesting);
    for (;;) {
        skip(s);
        const char *found = NULL;
        for (int k = 0; k < 4 && operators[level][k]; k++) {
            const char *o = operators[level][k];
            size_t n = strlen(o);
            if (strncmp(s->p, o, n)) continue;
            if (n == 1 && (s->p[1] == *o || s->p[1] == '=') && strchr("|&<>", *o)) continue;
            if (*o == '%' && is_name(s->p[1])) continue;      /* %3 is a name */
            found = o;
            break;
        }
        if (!found) return a;
        s->p += strlen(found);
        a = evaluate_binary(s, found, a, parse_binary(s, level + 1, nesting + 1));
    }
}

static constant parse_conditional(parser *s, int nesting)
{
    constant condition = parse_binary(s, 0, nesting);
    if (!accept(s, '?')) return condition;
    if (nesting > 64) sim_fatal(s->m, s->line, "Expression nested too deeply");
    constant yes = parse_conditional(s, nesting + 1);
    expect(s, ':');
    constant no = parse_conditional(s, nesting + 1);
    (void)require_integer(s, yes), (void)require_integer(s, no);
    return require_integer(s, condition) ? yes : no;
}

static int64_t integer(parser *s) { return (int64_t)require_integer(s, parse_conditional(s, 0)); }

/* --- symbols ---------------------------------------------------------------------------------- */

static uint32_t hash(const char *text, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t k = 0; k < n; k++) h = (h ^ (unsigned char)text[k]) * 16777619u;
    return h;
}

static sim_symbol *find_exact(sim_module *m, const char *text, size_t n, bool range)
{
    for (sim_symbol *y = m->buckets[hash(text, n) & (m->bucket_count - 1)]; y; y = y->hash_next)
        if (y->range == range && !strncmp(y->name, text, n) && !y->name[n]) return y;
    return NULL;
}

/* Finds a name, or a register of a declared range: then *index is the number after the prefix. */
static sim_symbol *find(sim_module *m, const char *text, uint32_t *index)
{
    size_t n = strlen(text), k = n;
    sim_symbol *y = find_exact(m, text, n, false);
    *index = 0;
    while (k && is_digit(text[k - 1])) k--;
    if (k == n || !k || (text[k] == '0' && n - k > 1) || n - k > 8) return y;
    sim_symbol *r = find_exact(m, text, k, true);
    uint32_t which = (uint32_t)strtoul(text + k, NULL, 10);
    if (!r || which >= r->count || (y && y->depth >= r->depth)) return y;
    *index = which;
    return r;
}

/* Doubles the buckets. Symbols of open scopes are inserted in their old order, so that the newest is found first. */
static void grow_table(parser *s)
{
    sim_module *m = s->m;
    m->bucket_count *= 2;
    m->buckets = sim_alloc(m, m->bucket_count * sizeof *m->buckets);
    for (uint32_t k = 0; k < s->scope_count; k++) {
        sim_symbol *y = s->scope[k], **bucket = &m->buckets[hash(y->name, strlen(y->name)) & (m->bucket_count - 1)];
        y->hash_next = *bucket;
        *bucket = y;
    }
}

static void declare_symbol(parser *s, sim_symbol *y)
{
    sim_module *m = s->m;
    y->depth = s->depth;
    size_t n = strlen(y->name);
    sim_symbol *old = find_exact(m, y->name, n, y->range);
    if (old && old->depth == y->depth && (y->kind != SYM_FUNC || old->kind != SYM_FUNC)) {
        if (old->kind == SYM_VAR && old->is_extern && y->kind == SYM_VAR) {
            if (old->type != y->type || old->space != y->space || old->vector != y->vector
                || (old->size && y->size && old->size != y->size))
                sim_error(m, y->line, "Inconsistent redefinition of variable '%s'", y->name);
            else if (s->linkage == LINK_STATIC)
                sim_error(m, y->line, "'.extern' variable '%s' cannot be resolved by a '.static'", y->name);
        } else
            sim_error(m, y->line, "Duplicate definition of %s '%s'",
                      y->kind == SYM_LABEL  ? "label"
                      : y->kind == SYM_REG  ? "register"
                      : y->kind == SYM_FUNC ? "function"
                                            : "variable",
                      y->name);
    }
    sim_symbol **bucket = &m->buckets[hash(y->name, n) & (m->bucket_count - 1)];
    y->hash_next = *bucket;
    *bucket = y;
    if (s->scope_count == s->scope_capacity) {
        uint32_t capacity = s->scope_capacity ? s->scope_capacity * 2 : 64;
        sim_symbol **grown = sim_alloc(m, capacity * sizeof *grown);
        if (s->scope_count) memcpy(grown, s->scope, s->scope_count * sizeof *grown);
        s->scope = grown;
        s->scope_capacity = capacity;
    }
    s->scope[s->scope_count++] = y;
    if (s->scope_count > m->bucket_count) grow_table(s);
}

static sim_symbol *new_symbol(parser *s, int kind, const char *text)
{
    sim_symbol *y = sim_alloc(s->m, sizeof *y);
    y->kind = (uint8_t)kind;
    y->name = text;
    y->line = s->line;
    y->function = s->function;
    return y;
}

static void open_scope(parser *s)
{
    if (++s->depth > 256) sim_fatal(s->m, s->line, "Scopes nested too deeply");
}

/* Labels that were used but not defined in this scope may be defined in an outer one. */
static void close_scope(parser *s)
{
    sim_symbol *pending = NULL;
    while (s->scope_count && s->scope[s->scope_count - 1]->depth == s->depth) {
        sim_symbol *y = s->scope[--s->scope_count];
        sim_symbol **at = &s->m->buckets[hash(y->name, strlen(y->name)) & (s->m->bucket_count - 1)];
        while (*at != y) at = &(*at)->hash_next;
        *at = y->hash_next;
        if (y->kind == SYM_LABEL && y->index == UINT32_MAX && !y->alias) {
            y->list_next = pending;
            pending = y;
        }
    }
    s->depth--;
    for (sim_symbol *y = pending, *next; y; y = next) {
        uint32_t index;
        next = y->list_next;
        sim_symbol *outer = find(s->m, y->name, &index);
        if (outer && (outer->kind == SYM_LABEL || outer->kind == SYM_FUNC || outer->kind == SYM_VAR))
            y->alias = outer;
        else if (s->depth <= 1) sim_error(s->m, y->line, "Unknown symbol '%s'", y->name);
        else { y->list_next = NULL; declare_symbol(s, y); }
    }
}

/* --- operands --------------------------------------------------------------------------------- */

static sim_operand *new_operands(parser *s, uint32_t n) { return sim_alloc(s->m, n * sizeof(sim_operand)); }

static void register_operand(const sim_symbol *y, uint32_t index, sim_operand *o)
{
    o->kind = O_REG;
    o->type = y->type;
    o->symbol = (sim_symbol *)(uintptr_t)y;
    o->reg = y->index + index;
    o->name = y->name;
}

static bool known_special(parser *s, const char *full, sim_operand *o)
{
    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++) {
        if (strcmp(specials[k].name, full)) continue;
        if (specials[k].sm > s->m->target)
            sim_error(s->m, s->line, "Feature '%s' requires .target sm_%u or higher", full, specials[k].sm);
        if (specials[k].version > s->m->version)
            sim_error(s->m, s->line, "Feature '%s' requires PTX ISA .version %u.%u or later", full,
                      specials[k].version / 10u, specials[k].version % 10u);
        o->kind = O_SPECIAL;
        o->special = specials[k].special;
        o->type = specials[k].type;
        o->name = copy(s, full, strlen(full));
        return true;
    }
    return false;
}

/* %tid and the like: vectors of x, y, z, 0. */
static bool special_operand(parser *s, const char *text, sim_operand *o)
{
    if (text[0] != '%') return false;
    char full[64];
    const char *at = s->p;
    if (known_special(s, text, o)) return true;
    snprintf(full, sizeof full - 2, "%s", text);
    size_t n = strlen(full);
    bool one = *at == '.' && at[1] && strchr("xyzw", at[1]) && !is_name(at[2]);
    snprintf(full + n, 3, ".%c", one && at[1] != 'w' ? at[1] : 'x');
    if (known_special(s, full, o)) {
        if (one && at[1] == 'w') o->special = SR_ZERO;
        if (one) { s->p += 2; return true; }
        o->kind = O_VECTOR;
        o->count = 4;
        o->items = new_operands(s, 4);
        for (uint32_t k = 0; k < 4; k++) {
            full[n + 1] = "xyzx"[k];
            known_special(s, full, &o->items[k]);
        }
        o->items[3].special = SR_ZERO;
        return true;
    }
    if (!strncmp(text, "%envreg", 7) && is_digit(text[7]) && atoi(text + 7) < 32) {
        o->kind = O_SPECIAL;
        o->special = (uint16_t)(SR_ENVREG + atoi(text + 7));
        o->type = T_B32;
        o->name = text;
        return true;
    }
    if (!strncmp(text, "%pm", 3) && is_digit(text[3])) {
        bool wide = strlen(text) > 4;
        o->kind = O_SPECIAL;
        o->special = wide ? SR_ZERO64 : SR_ZERO;
        o->type = wide ? T_U64 : T_U32;
        o->name = text;
        return true;
    }
    return false;
}

static void parse_operand(parser *s, sim_operand *o, int nesting);

static void parse_list(parser *s, sim_operand *o, char close, int nesting)
{
    sim_operand buffer[SIM_MAX_LIST];
    uint16_t n = 0;
    if (!peek(s, close)) {
        do {
            if (n == SIM_MAX_LIST) sim_fatal(s->m, s->line, "Too many elements in list");
            memset(&buffer[n], 0, sizeof buffer[n]);
            if (peek(s, '{')) syntax(s);
            parse_operand(s, &buffer[n++], nesting + 1);
            if (close == ')' && buffer[n - 1].element) syntax(s);
        } while (accept(s, ','));
    }
    expect(s, close);
    o->count = n;
    o->items = new_operands(s, n ? n : 1u);
    memcpy(o->items, buffer, n * sizeof *buffer);
}

static void parse_identifier(parser *s, sim_operand *o)
{
    const char *text = name(s);
    uint32_t index, line = s->line;
    if (!strcmp(text, "_")) { o->kind = O_SINK; return; }
    sim_symbol *y = find(s->m, text, &index);
    if (!y && special_operand(s, text, o)) return;
    if (!y) { /* a label defined later, or an unknown name: decided at the scope's end */
        y = new_symbol(s, SYM_LABEL, text);
        y->index = UINT32_MAX;
        y->line = line;
        declare_symbol(s, y);
    }
    if (y->kind == SYM_REG) {
        register_operand(y, index, o);
        o->name = text;
        if (!y->vector) return;
        if (*s->p == '.' && s->p[1] && strchr("xyzwrgba", s->p[1]) && !is_name(s->p[2])) {
            uint32_t element = (uint32_t)(strchr("xyzwrgba", s->p[1]) - "xyzwrgba") & 3;
            s->p += 2;
            if (element >= y->vector) sim_error(s->m, line, "Illegal vector element of '%s'", text);
            else o->reg += element;
            o->element = true;
            return;
        }
        sim_operand whole = *o;
        o->kind = O_VECTOR;
        o->count = y->vector;
        o->items = new_operands(s, y->vector);
        for (uint32_t k = 0; k < y->vector; k++) { o->items[k] = whole; o->items[k].reg = whole.reg + k; }
        return;
    }
    o->kind = O_SYMBOL;
    o->symbol = y;
    o->name = text;
    o->type = y->type;
}

/* sym+3 and reg+3: bytes for an address, a number for a value. sym[3], sym[reg] and sym[reg+3] count elements. */
static void parse_offset(parser *s, sim_operand *o)
{
    uint32_t line = s->line;
    if (accept(s, '+')) {
        o->offset = true;
        o->value = integer(s);
    } else if (accept(s, '[')) {
        const sim_symbol *y = o->symbol;
        if (o->kind != O_SYMBOL || y->kind != SYM_VAR || !y->is_array)
            sim_fatal(s->m, line, "Array indexing on non-array ('%s')", o->name);
        uint32_t element = sim_types[y->type].bytes * (y->vector ? y->vector : 1u);
        o->offset = o->indexed = true;
        skip(s);
        if (at_symbol(s)) {
            o->items = new_operands(s, 1);
            parse_identifier(s, o->items);
            if (o->items->element) syntax(s);
            if (o->items->kind != O_REG) sim_fatal(s->m, line, "Illegal operand type for address/array-index");
            if (accept(s, '+')) { o->items->offset = true; o->items->value = integer(s); }
        } else o->value = (int64_t)((uint64_t)integer(s) * element);
        expect(s, ']');
    }
}

static void parse_address(parser *s, sim_operand *o, int nesting)
{
    o->kind = O_ADDRESS;
    o->items = new_operands(s, 2);
    skip(s);
    if (at_symbol(s)) {
        parse_identifier(s, o->items);
        if (o->items->element) syntax(s);
        if (accept(s, '+')) o->value = integer(s);
    } else {
        o->items->kind = O_INT;
        o->items->value = integer(s);
        o->value = 0;
    }
    if (accept(s, ',')) {                                     /* [map, {coordinates}] */
        o->count = 1;
        parse_operand(s, &o->items[1], nesting + 1);
        if (peek(s, ',')) sim_fatal(s->m, s->line, "Separate samplers are not implemented by this CPU driver");
    }
    expect(s, ']');
}

/* 0f3f800000, 0d3ff0000000000000: not allowed inside an expression. */
static bool read_bits(parser *s, sim_operand *o)
{
    if (*s->p != '0' || !s->p[1] || !strchr("fFdD", s->p[1])) return false;
    number n = read_number(s);
    o->kind = O_FLOAT;
    o->bare_float_single = n.single;
    o->value = (int64_t)n.bits;
    return true;
}

static void parse_operand(parser *s, sim_operand *o, int nesting)
{
    if (nesting > 8) sim_fatal(s->m, s->line, "Operands nested too deeply");
    skip(s);
    char c = *s->p;
    const char *start = s->p;
    uint32_t line = s->line;
    if (c == '{') { s->p++; o->kind = O_VECTOR; parse_list(s, o, '}', nesting); }
    else if (c == '[') { s->p++; parse_address(s, o, nesting); return; }
    else if (c == '!' && (s->p++, at_symbol(s))) {
        parse_identifier(s, o);
        o->negate = true;
    } else if (at_symbol(s)) {
        parse_identifier(s, o);
        if ((o->kind == O_SYMBOL || o->kind == O_REG) && !nesting && !o->element) parse_offset(s, o);
    } else {
        if (c == '!') { s->p = start; s->line = line; }
        if (!read_bits(s, o)) {
            constant v = parse_conditional(s, 0);
            o->kind = v.is_real ? O_FLOAT : O_INT;
            if (v.is_real) memcpy(&o->value, &v.real, 8);
            else o->value = (int64_t)v.bits;
        }
    }
    if (peek(s, '|') && s->p[1] != '|') {
        s->p++;
        sim_operand first = *o;
        memset(o, 0, sizeof *o);
        o->kind = O_PAIR;
        o->count = 2;
        o->items = new_operands(s, 2);
        o->items[0] = first;
        parse_operand(s, &o->items[1], nesting + 1);
    }
}

/* --- instructions ----------------------------------------------------------------------------- */

static void skip_statement(parser *s)
{
    while (*s->p && *s->p != ';') { skip(s); if (*s->p && *s->p != ';') s->p++; }
    if (*s->p) s->p++;
}

static sim_statement *new_statement(parser *s)
{
    sim_function *f = s->function;
    if (f->statement_count == f->statement_capacity) {
        uint32_t capacity = f->statement_capacity ? f->statement_capacity * 2 : 4;
        sim_statement *grown = sim_alloc(s->m, capacity * sizeof *grown);
        if (f->statement_count) memcpy(grown, f->body, f->statement_count * sizeof *grown);
        f->body = grown;
        f->statement_capacity = capacity;
    }
    return &f->body[f->statement_count++];
}

/* Operands of video instructions: a minus before a register, a selector of bytes or halves after it. */
static void parse_video_operand(parser *s, sim_operand *o)
{
    const char *at = s->p;
    bool minus = accept(s, '-');
    skip(s);
    if (minus && !is_name_start(*s->p)) { minus = false; s->p = at; }
    parse_operand(s, o, 0);
    if (minus) o->negate = true;
    if (*s->p != '.' || (s->p[1] != 'b' && s->p[1] != 'h') || o->kind != O_REG) return;
    const char *p = s->p + 2;
    uint32_t digits = 0, count = 0;
    for (; *p >= '0' && *p <= '7' && count < 4; p++, count++) digits = digits << 3 | (uint32_t)(*p - '0');
    if (!count || is_name(*p)) syntax(s);
    o->special = (uint16_t)((s->p[1] == 'b') << 15 | count << 12 | digits);
    s->p = p;
}

static bool is_video(const char *opcode) { return opcode[0] == 'v' && strcmp(opcode, "vote"); }

static void parse_instruction(parser *s)
{
    sim_module *m = s->m;
    sim_statement st = { 0 };
    st.guard = -1;
    if (accept(s, '@')) {
        st.guard_negate = accept(s, '!');
        sim_operand guard = { 0 };
        skip(s);
        if (!is_name_start(*s->p)) syntax(s);
        st.line = s->line;
        parse_identifier(s, &guard);
        if (guard.kind == O_REG && guard.type == T_PRED) st.guard = (int32_t)guard.reg, st.guard_name = guard.name;
        else sim_error(m, st.line, "Predicate expression expected");
        skip(s);
        if (*s->p == '.' || *s->p == '{') syntax(s);
    }
    skip(s);
    st.line = s->line;
    st.opcode = name(s);
    if (peek(s, ':')) syntax(s);
    char shown[200];
    int unknown = 0;
    bool matrix = sim_lower_is_matrix(st.opcode);             /* their rows check the modifiers themselves */
    char unknown_name[48] = "";
    size_t shown_length = (size_t)snprintf(shown, sizeof shown, "%s", st.opcode);
    while (*s->p == '.') {
        const char *at = ++s->p;
        while (is_name(*s->p) || (*s->p == ':' && s->p[1] == ':') || (*s->p == ':' && s->p[-1] == ':'))
            s->p++;
        size_t n = (size_t)(s->p - at);
        if (!n) syntax(s);
        if (shown_length + n + 2 < sizeof shown)
            shown_length += (size_t)snprintf(shown + shown_length, sizeof shown - shown_length, ".%.*s",
                                             (int)n, at);
        if (matrix) { skip(s); continue; }
        sim_type t = sim_type_find(at, n);
        int mod = t == T_NONE ? sim_mod_find(at, n) : M_NONE;
        if (t != T_NONE) {
            if (st.type_count < SIM_MAX_TYPES) st.types[st.type_count++] = (uint8_t)t;
        } else if (mod == M_NONE) {
            if (!unknown++) snprintf(unknown_name, sizeof unknown_name, "%.*s", (int)(n < 47 ? n : 47), at);
        } else {
            if (sim_mod(&st.mods, mod) && mod != M_L2 && !(mod == M_sync || mod == M_add))
                sim_error(m, st.line, "Duplicate modifier '.%s'", sim_mod_name(mod));
            sim_mod_set(&st.mods, mod);
        }
        skip(s);
    }
    if (!sim_opcode_known(st.opcode)) {
        sim_error(m, st.line, "Not a name of any known instruction: '%s'", st.opcode);
        skip_statement(s);
        return;
    }
    if (sim_not_implemented(shown)) {
        sim_error(m, st.line, "Instruction '%s' is not implemented by this CPU driver", shown);
        skip_statement(s);
        return;
    }
    if (unknown) {
        sim_error(m, st.line, "Unknown modifier '.%s'", unknown_name);
        skip_statement(s);
        return;
    }
    if (matrix) st.words = copy(s, shown + strlen(st.opcode), shown_length - strlen(st.opcode));
    sim_operand operands[SIM_MAX_OPERANDS];
    uint8_t n = 0;
    if (!peek(s, ';')) {
        do {
            if (n == SIM_MAX_OPERANDS)
                sim_fatal(m, s->line, "Too many operands for instruction '%s'", st.opcode);
            memset(&operands[n], 0, sizeof operands[n]);
            if (!strcmp(st.opcode, "call") && accept(s, '(')) {
                operands[n].kind = O_LIST;
                parse_list(s, &operands[n], ')', 0);
            } else if (is_video(st.opcode)) parse_video_operand(s, &operands[n]);
            else parse_operand(s, &operands[n], 0);
            n++;
            if (peek(s, '.') && !strncmp(s->p, ".unified", 8)) s->p += 8;
        } while (accept(s, ','));
    }
    expect(s, ';');
    st.operand_count = n;
    st.operands = new_operands(s, n ? n : 1u);
    memcpy(st.operands, operands, n * sizeof *operands);
    st.form = sim_find_form(m, &st, shown, sizeof shown);
    if (!st.form || !sim_words_in_order(m, st.line, shown)) return;
    st.labelled = s->function->label_waits;
    s->function->label_waits = false;
    *new_statement(s) = st;
}

/* --- declarations ----------------------------------------------------------------------------- */

static uint32_t alignment(parser *s)
{
    uint32_t line = s->line;
    int64_t n = integer(s);
    if (n <= 0 || n > 65536 || (n & (n - 1))) {
        sim_error(s->m, line, "Alignment must be a power of two");
        return 16;
    }
    return (uint32_t)n;
}

/* The argument of a directive: a number, not an expression. */
static uint32_t plain_number(parser *s)
{
    skip(s);
    if (!strncmp(s->p, "WARP_SZ", 7) && !is_name(s->p[7])) { s->p += 7; return 32; }
    if (!is_digit(*s->p)) syntax(s);
    number n = read_number(s);
    if (n.is_float || n.bits > INT32_MAX) syntax(s);
    return (uint32_t)n.bits;
}

static uint32_t positive_number(parser *s, const char *what)
{
    uint32_t line = s->line, n = plain_number(s);
    if (!n) sim_error(s->m, line, "Positive non-zero value expected for %s", what);
    return n;
}

static uint32_t vector_directive(parser *s)
{
    if (directive(s, "v2")) return 2;
    if (directive(s, "v4")) return 4;
    return 0;
}

/* A name that may name a register. */
static const char *register_name(parser *s)
{
    const char *text = name(s);
    if (!strcmp(text, "WARP_SZ") || !strcmp(text, "%")) {
        sim_fatal(s->m, s->line, "Parsing error near '%s': syntax error", text);
    }
    return text;
}

/* Refuses types that registers or variables must not have. */
static void check_declared(parser *s, sim_type t, sim_space space, uint32_t vector, const char *name)
{
    sim_module *m = s->m;
    static const uint8_t unknown[] = { T_BF16, T_BF16X2, T_TF32, T_B1, T_S4, T_U4 };
    for (size_t k = 0; k < sizeof unknown; k++)
        if (t == (sim_type)unknown[k])
            sim_fatal(m, s->line, "Parsing error near '.%s': syntax error", sim_types[t].name);
    if (t != T_F16X2 && (sim_types[t].kind == K_PACKED || (sim_types[t].kind == K_FLOAT && sim_types[t].bytes == 1)))
        sim_error(m, s->line, "Type .%s may only be used as an instruction type", sim_types[t].name);
    if (t == T_B128) require_version(s, "Type .b128", 83, 70);
    if (t == T_PRED && (vector || space != SP_REG))
        sim_error(m, s->line, "Predicate type can only be used to define scalar register variables ('%s')", name);
    if (vector * sim_types[t].bytes > 16) sim_error(m, s->line, "Vector type too large, exceeds 128 bit limit");
    if (space == SP_PARAM && (vector || t == T_F16X2))
        sim_error(m, s->line, "Variable '%s' cannot be allocated in .param state space", name);
}

/* Allocates the registers of y: all of a range, all elements of a vector. */
static void add_registers(parser *s, sim_symbol *y)
{
    sim_function *f = s->function;
    uint32_t need = f->register_count + y->count * (y->vector ? y->vector : 1u);
    if (need > 4000000) sim_fatal(s->m, s->line, "Too many registers");
    if (need > f->register_capacity) {
        uint32_t capacity = need * 2;
        uint8_t *grown = sim_alloc(s->m, capacity);
        if (f->register_count) memcpy(grown, f->register_types, f->register_count);
        f->register_types = grown;
        f->register_capacity = capacity;
    }
    y->index = f->register_count;
    if (need == f->register_count) return;                    /* %p<0> */
    memset(f->register_types + f->register_count, y->type, need - f->register_count);
    f->register_count = need;
}

/* Refuses a register that a range also declares: %r1 and %r<4>. */
static void check_range(parser *s, const sim_symbol *y)
{
    char text[80];
    uint32_t index;
    const sim_symbol *old = NULL;
    if (!y->range) old = find(s->m, y->name, &index);
    if (old && (!old->range || old->depth != s->depth)) old = NULL;
    for (uint32_t k = 0; y->range && !old && k < y->count && k < 4096; k++) {
        int n = snprintf(text, sizeof text, "%.64s%u", y->name, k);
        old = find_exact(s->m, text, (size_t)n, false);
        if (old && (old->kind != SYM_REG || old->depth != s->depth)) old = NULL;
    }
    if (old) sim_error(s->m, y->line, "Duplicate definition of variable '%s'", y->range ? old->name : y->name);
}

static uint64_t dimensions(parser *s, bool *array, bool *open)
{
    uint64_t total = 1;
    *array = *open = false;
    s->dimension_count = 0;
    while (accept(s, '[')) {
        *array = true;
        if (s->dimension_count == 8) sim_fatal(s->m, s->line, "Too many array dimensions");
        s->dimensions[s->dimension_count++] = 1;
        if (accept(s, ']')) { *open = true; continue; }
        skip(s);
        if (!is_digit(*s->p)) syntax(s);                       /* a number, not an expression */
        uint32_t line = s->line;
        number literal = read_number(s);
        int64_t n = literal.is_float ? 0 : (int64_t)literal.bits;
        if (n <= 0 || n > INT64_C(0x7fffffffffff) || total > UINT64_C(0x7fffffffffff) / (uint64_t)n)
            sim_fatal(s->m, line, "Illegal array dimension");
        total *= (uint64_t)n;
        s->dimensions[s->dimension_count - 1] = (uint64_t)n;
        expect(s, ']');
    }
    return total;
}

static void parse_registers(parser *s)
{
    if (directive(s, "align")) (void)alignment(s);
    uint32_t vector = vector_directive(s);
    sim_type t = type_directive(s);
    if (t == T_NONE) syntax(s);
    if (peek(s, ';')) return;
    do {
        sim_symbol *y = new_symbol(s, SYM_REG, register_name(s));
        y->line = s->line;
        y->type = (uint8_t)t;
        y->vector = (uint8_t)vector;
        y->count = 1;
        check_declared(s, t, SP_REG, vector, y->name);
        if (accept(s, '<')) {
            y->count = plain_number(s);
            expect(s, '>');
            if (y->count > 1000000) sim_fatal(s->m, s->line, "Illegal register count");
            y->range = true;
        }
        check_range(s, y);
        add_registers(s, y);
        declare_symbol(s, y);
    } while (accept(s, ','));
}

/* Checks the symbol in an initial value: a known variable with an address, or a function. */
static void check_reloc(parser *s, const sim_symbol *y, const sim_reloc *r, bool part)
{
    uint32_t index;
    const sim_symbol *of = find(s->m, r->name, &index);
    if (y->type != T_U64 && y->type != T_U32 && !(part && y->type == T_U8))
        sim_fatal(s->m, r->line, "Initial value type mismatch");
    if (!of || of == y) sim_fatal(s->m, r->line, "Invalid initial value symbol '%s'", r->name);
    if (of->kind == SYM_FUNC && r->generic) sim_fatal(s->m, r->line, "Invalid initial value expression");
    if (of->kind == SYM_FUNC && r->addend) sim_fatal(s->m, r->line, "Initial value type mismatch");
    if (of->kind != SYM_FUNC && (of->kind != SYM_VAR || (of->space != SP_GLOBAL && of->space != SP_CONST)))
        sim_fatal(s->m, r->line, "Variable used as initial value not in .global or .const state space");
}

/* sym, sym+4, generic(sym)+4; or one of them in mask(0xff00) or 0xff00(). */
static void add_reloc(parser *s, sim_symbol *y, uint64_t offset, uint32_t bytes, uint64_t mask)
{
    sim_reloc *r = sim_alloc(s->m, sizeof *r);
    r->line = s->line;
    r->offset = offset;
    r->bytes = (uint8_t)bytes;
    r->mask = mask;
    skip(s);
    if (!mask && !strncmp(s->p, "mask", 4) && !is_name(s->p[4])) {
        s->p += 4;
        expect(s, '(');
        mask = (uint64_t)integer(s);
        expect(s, ')');
        expect(s, '(');
        add_reloc(s, y, offset, bytes, mask ? mask : UINT64_MAX);
        expect(s, ')');
        return;
    }
    if (!strncmp(s->p, "generic", 7) && !is_name(s->p[7])) {
        s->p += 7;
        require_version(s, "generic() operator", 31, 20);
        expect(s, '(');
        r->name = name(s);
        expect(s, ')');
        r->generic = true;
    } else r->name = name(s);
    if (accept(s, '+')) r->addend = integer(s);
    while (mask && !(mask & 1)) { mask >>= 1; r->shift++; }
    check_reloc(s, y, r, mask != 0);
    r->next = y->relocs;
    y->relocs = r;
}

/* Floating-point values may initialise .f32 and .f64, and, as their bits, untyped variables. */
static uint64_t float_initial(parser *s, const sim_symbol *y, uint32_t line, number n)
{
    double d;
    float f;
    uint32_t b;
    uint64_t bits;
    memcpy(&d, &n.bits, 8);
    f = (float)d;
    memcpy(&b, &f, 4);
    memcpy(&bits, &d, 8);
    if (y->type == T_F64 || (y->type == T_B64 && !n.single)) return bits;
    if (y->type == T_F32 || sim_types[y->type].kind == K_BITS) return b;
    if (y->type == T_F16 || y->type == T_BF16)
        sim_fatal(s->m, line, "No initial value is allowed for .%s type", sim_types[y->type].name);
    sim_fatal(s->m, line, "Initial value type mismatch");
    return 0;
}

/* Braces enclose the elements of every dimension, and of every vector, which must be complete. */
static void parse_initialiser(parser *s, sim_symbol *y, uint64_t *at, int nesting)
{
    uint32_t bytes = sim_types[y->type].bytes;
    int depth = (int)s->dimension_count + (y->vector != 0);
    if (nesting > 8) sim_fatal(s->m, s->line, "Initialiser nested too deeply");
    if (y->is_array || y->vector ? !nesting && !peek(s, '{') : peek(s, '{'))
        sim_fatal(s->m, s->line, "Initial value type mismatch");
    if (accept(s, '{')) {
        uint64_t row = y->size, start = *at;                  /* the bytes that these braces initialise */
        for (int d = 0; d < nesting; d++)
            row = (uint32_t)d < s->dimension_count ? row / s->dimensions[d] : row;
        if (!accept(s, '}')) {
            do parse_initialiser(s, y, at, nesting + 1); while (accept(s, ','));
            expect(s, '}');
        }
        if (y->vector && nesting + 1 == depth && *at != start && *at - start != bytes * y->vector)
            sim_fatal(s->m, s->line, "Incorrect number of elements in vector initializer");
        if (nesting && s->dimensions[0] > 1 && *at - start > row)
            sim_fatal(s->m, s->line, "Greater number of elements in array initializer");
        if (nesting && s->dimension_count && s->dimensions[0] > 1) *at = start + row;
        return;
    }
    if (*at + bytes > y->size || nesting < depth)
        sim_fatal(s->m, s->line, "Greater number of elements in array initializer");
    skip(s);
    uint64_t bits = 0;
    const char *back = s->p;
    uint32_t line = s->line;
    if (at_symbol(s)) add_reloc(s, y, *at, bytes, 0);
    else {
        number n = { 0 };
        bool digits = is_digit(*s->p);
        if (digits) n = read_number(s);
        if (digits && !n.is_float && peek(s, '(')) {          /* 0xff00(sym): that byte of the address */
            s->p++;
            if (s->m->version < 71)
                sim_error(s->m, line, "Feature 'mask() operator' requires PTX ISA .version 7.1 or later");
            add_reloc(s, y, *at, bytes, n.bits ? n.bits : UINT64_MAX);
            expect(s, ')');
        } else if (n.by_bits) bits = float_initial(s, y, line, n);
        else {
            s->p = back;
            s->line = line;
            constant v = parse_conditional(s, 0);
            n.is_float = true;
            memcpy(&n.bits, &v.real, 8);
            bits = v.is_real ? float_initial(s, y, line, n) : v.bits;
            if (!v.is_real && sim_types[y->type].kind == K_FLOAT)
                sim_fatal(s->m, line, "Initial value type mismatch");
        }
        memcpy(y->init + *at, &bits, bytes);
    }
    *at += bytes;
}

/* .space [.align n] [.attribute(...)] [.vN] .type name[n] [= ...], ... ; or one parameter without the
 * semicolon */
static sim_symbol *parse_variable(parser *s, sim_space space, bool formal, bool is_extern)
{
    uint32_t align = 0, vector = 0;
    sim_type t = T_NONE;
    sim_symbol *y = NULL;
    bool reg = space == SP_REG, managed = false;
    for (;;) {
        if (directive(s, "align")) { align = alignment(s); continue; }
        if (directive(s, "attribute")) {
            require_version(s, ".attribute", 40, 30);
            expect(s, '(');
            managed |= directive(s, "managed");
            while (*s->p && !peek(s, ')')) s->p++;
            expect(s, ')');
            continue;
        }
        if (directive(s, "ptr")) {
            if (!directive(s, "global") && !directive(s, "shared") && !directive(s, "local"))
                directive(s, "const");
            if (directive(s, "align")) (void)alignment(s);
            continue;
        }
        uint32_t v = vector_directive(s);
        if (v) { vector = v; continue; }
        if (t == T_NONE && (t = type_directive(s)) != T_NONE) continue;
        break;
    }
    if (t == T_NONE) {
        skip(s);
        if (!strncmp(s->p, ".texref", 7) || !strncmp(s->p, ".samplerref", 11)
            || !strncmp(s->p, ".surfref", 8))
            sim_fatal(s->m, s->line, "Textures and surfaces are not implemented by this CPU driver");
        syntax(s);
    }
    do {
        bool array, open;
        skip(s);
        uint32_t line = s->line;
        const char *id = formal && (peek(s, ',') || peek(s, ')')) ? "_" : name(s);
        y = new_symbol(s, reg ? SYM_REG : SYM_VAR, id);
        y->line = line;
        y->type = (uint8_t)t;
        y->space = (uint8_t)space;
        y->vector = (uint8_t)vector;
        y->is_formal = formal;
        y->managed = managed && space == SP_GLOBAL;
        y->is_extern = is_extern;
        y->count = 1;
        y->elements = dimensions(s, &array, &open);
        y->is_array = array;
        uint32_t bytes = sim_types[t].bytes * (vector ? vector : 1u);
        y->align = align ? align : bytes ? bytes : 1u;
        check_declared(s, t, space, vector, id);
        if (reg && array) sim_error(s->m, line, "Variable '%s' cannot be allocated into a register", id);
        if (!bytes) bytes = 1;
        y->size = open ? 0 : y->elements * bytes;
        if (reg) add_registers(s, y);
        if (accept(s, '=')) {
            if (space != SP_GLOBAL && space != SP_CONST)
                sim_error(s->m, line, "No initial value is allowed for '%s' in this state space", id);
            uint64_t at = 0;
            if (open) {                                       /* int a[] = {...}: count the elements first */
                const char *p = s->p;
                uint64_t n = 1;
                while (*p && *p != ';') n += *p++ == ',';
                y->size = n * bytes;
            }
            if (y->size > UINT64_C(1) << 30) sim_fatal(s->m, line, "Initialised array too large");
            y->init = sim_alloc(s->m, y->size ? (size_t)y->size : 1u);
            parse_initialiser(s, y, &at, 0);
            if (open) y->size = at;
        } else if (open && !is_extern && !formal)
            sim_error(s->m, line, "Non-external variable '%s' has incomplete type", id);
        if (formal) return y;
        if (space == SP_SHARED && y->size > 0x100000)
            sim_error(s->m, line, "Shared variable '%s' is too large", id);
        if (s->function) {
            if (space == SP_LOCAL && y->size > 512 * 1024)
                sim_fatal(s->m, line, "Local variable '%s' is too large", id);
            y->list_next = s->function->variables;
            s->function->variables = y;
        } else {
            *s->m->variables_tail = y;
            s->m->variables_tail = &y->list_next;
        }
        declare_symbol(s, y);
    } while (accept(s, ','));
    expect(s, ';');
    return y;
}

static sim_symbol *parse_formals(parser *s, uint32_t *count, bool entry)
{
    sim_symbol *first = NULL, **tail = &first;
    expect(s, '(');
    if (accept(s, ')')) return NULL;
    do {
        sim_symbol *y;
        if (directive(s, "param")) y = parse_variable(s, SP_PARAM, true, false);
        else if (!entry && directive(s, "reg")) y = parse_variable(s, SP_REG, true, false);
        else if (peek(s, '.') && !strncmp(s->p, "...", 3)) { s->p += 3; break; }
        else { syntax(s); return NULL; }
        *tail = y;
        tail = &y->list_next;
        (*count)++;
    } while (accept(s, ','));
    expect(s, ')');
    return first;
}

static sim_space variable_space(parser *s)
{
    if (directive(s, "global")) return SP_GLOBAL;
    if (directive(s, "const")) return SP_CONST;
    if (directive(s, "shared")) return SP_SHARED;
    if (directive(s, "local")) return SP_LOCAL;
    if (directive(s, "param")) return SP_PARAM;
    return SP_GENERIC;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Skips the rest of a string; it may span lines. */
static void skip_string(parser *s)
{
    uint32_t begin = s->line;
    for (; *s->p != '"'; s->p++) {
        if (!*s->p) sim_fatal(s->m, begin, "Parsing error near '\"': syntax error");
        if (*s->p == '\n') s->line++;
    }
    s->p++;
}

static void parse_pragma(parser *s)
{
    static const struct { const char *text; uint8_t version, target; } gates[] = {
        { "enable_smem_spilling", 87, 75 }, { "frequency", 90, 20 }, { "used_bytes_mask", 83, 50 } };
    do {
        expect(s, '"');
        for (size_t k = 0; k < sizeof gates / sizeof *gates; k++)
            if (!strncmp(s->p, gates[k].text, strlen(gates[k].text)))
                require_version(s, gates[k].text, gates[k].version, gates[k].target);
        skip_string(s);
    } while (accept(s, ','));
    expect(s, ';');
}

static void check_formals(parser *s, const sim_function *f);
static void parse_conventions(parser *s, sim_function *f);

static void define_label(parser *s, const char *text, uint32_t line)
{
    sim_symbol *y = find_exact(s->m, text, strlen(text), false);
    if (y && y->depth == s->depth && y->kind == SYM_LABEL && y->index == UINT32_MAX) {
        y->index = s->function->statement_count;              /* used before it is defined */
        s->function->label_waits = true;
        return;
    }
    y = new_symbol(s, SYM_LABEL, text);
    y->line = line;
    y->index = s->function->statement_count;
    s->function->label_waits = true;
    declare_symbol(s, y);
}

static void parse_prototype(parser *s, const char *text)
{
    sim_function *f = sim_alloc(s->m, sizeof *f);
    sim_symbol *y = new_symbol(s, SYM_PROTO, text);
    sim_function *owner = s->function;
    f->name = text;
    f->module = s->m;
    f->is_prototype = true;
    y->function = f;
    s->function = f;
    if (peek(s, '(')) f->returns = parse_formals(s, &f->return_count, false);
    (void)name(s);
    if (peek(s, '(')) f->params = parse_formals(s, &f->param_count, false);
    check_formals(s, f);
    parse_conventions(s, f);
    s->function = owner;
    expect(s, ';');
    declare_symbol(s, y);
}

static bool parse_label_or_instruction(parser *s)
{
    skip(s);
    if (*s->p == '@') { parse_instruction(s); return true; }
    if (!is_name_start(*s->p)) return false;
    const char *at = s->p, *e = at;
    uint32_t line = s->line;
    while (is_name(*e)) e++;
    const char *after = e;
    while (*after == ' ' || *after == '\t' || *after == '\r' || *after == '\n') after++;
    if (*after != ':' || after[1] == ':') { parse_instruction(s); return true; }
    const char *text = copy(s, at, (size_t)(e - at));
    s->p = e;
    expect(s, ':');
    if (directive(s, "branchtargets") || directive(s, "calltargets")) {
        sim_symbol *y = new_symbol(s, SYM_TARGETS, text);
        sim_operand list = { 0 };
        sim_operand buffer[256];
        y->line = line;
        do {
            if (list.count == 256) sim_fatal(s->m, s->line, "Too many branch targets");
            memset(&buffer[list.count], 0, sizeof *buffer);
            parse_identifier(s, &buffer[list.count]);
            if (buffer[list.count].kind != O_SYMBOL) sim_error(s->m, s->line, "Label expected in '%s'", text);
            else list.count++;
        } while (accept(s, ','));
        expect(s, ';');
        y->targets = new_operands(s, list.count + 1u);
        memcpy(y->targets, buffer, list.count * sizeof *buffer);
        y->target_count = list.count;
        declare_symbol(s, y);
    } else if (directive(s, "callprototype")) parse_prototype(s, text);
    else define_label(s, text, line);
    return true;
}

/* .loc file line column, optionally followed by the inlined function. */
static void parse_loc(parser *s)
{
    for (int n = 0; n < 3; n++) {
        (void)plain_number(s);
        if (is_name(*s->p) || *s->p == '.') syntax(s);
    }
    while (*s->p == ' ' || *s->p == '\t') s->p++;
    if (*s->p == ',') skip_line(s);
}

/* .file number "name", optionally its time and size. */
static void parse_file(parser *s)
{
    (void)plain_number(s);
    expect(s, '"');
    skip_string(s);
    if (!accept(s, ',')) return;
    (void)integer(s);
    if (accept(s, ',')) (void)integer(s);
}

static void parse_body(parser *s)
{
    uint32_t base = s->depth;
    open_scope(s);
    for (;;) {
        skip(s);
        if (*s->p == '{') { s->p++; open_scope(s); }
        else if (*s->p == '}') {
            if (s->depth == base + 1) s->function->end_line = s->line;
            s->p++;
            close_scope(s);
            if (s->depth == base) return;
        } else if (directive(s, "reg")) { parse_registers(s); expect(s, ';'); }
        else if (directive(s, "loc")) parse_loc(s);
        else if (directive(s, "pragma")) parse_pragma(s);
        else if (*s->p == '.') {
            sim_space space = variable_space(s);
            if (space == SP_GENERIC) syntax(s);
            parse_variable(s, space, false, false);
        } else if (!parse_label_or_instruction(s)) syntax(s);
    }
}

static uint32_t parse_triple(parser *s, uint32_t v[3], const char *positive)
{
    uint32_t n = 0;
    v[0] = v[1] = v[2] = 1;
    do v[n++] = positive ? positive_number(s, positive) : plain_number(s); while (n < 3 && accept(s, ','));
    return n;
}

/* The directives after the parameters of an entry or a function. */
static void parse_tuning(parser *s, sim_function *f)
{
    sim_module *m = s->m;
    skip(s);
    uint32_t line = s->line;
    for (;;) {
        if (directive(s, "maxntid")) f->maxntid_count = parse_triple(s, f->maxntid, "maxntid");
        else if (directive(s, "reqntid")) f->reqntid_count = parse_triple(s, f->reqntid, "reqntid");
        else if (directive(s, "maxnreg")) f->maxnreg = positive_number(s, "maxnreg");
        else if (directive(s, "minnctapersm")) f->minnctapersm = positive_number(s, "minnctapersm");
        else if (directive(s, "maxnctapersm")) {
            f->minnctapersm = plain_number(s);
            if (m->version > 20)
                sim_error(m, line, "Deprecated feature: '.maxnctapersm directive' not supported as of PTX version 2.1");
        } else if (directive(s, "reqnctapercluster")) {
            require_version(s, ".reqnctapercluster", 78, 90);
            parse_triple(s, f->reqnctapercluster, NULL);
        } else if (directive(s, "maxclusterrank")) {
            require_version(s, ".maxclusterrank", 78, 90);
            f->maxclusterrank = plain_number(s);
        } else if (directive(s, "explicitcluster")) {
            require_version(s, ".explicitcluster", 78, 90);
            f->explicitcluster = true;
        } else if (directive(s, "blocksareclusters")) {
            require_version(s, ".blocksareclusters", 90, 90);
            f->blocksareclusters = true;
        } else if (directive(s, "pragma")) parse_pragma(s);
        else break;
    }
    if (f->maxclusterrank && f->reqnctapercluster[0])
        sim_error(m, line, "Conflicting directives: .reqnctapercluster and .maxclusterrank cannot both be specified");
    if (f->blocksareclusters && (!f->reqntid_count || !f->reqnctapercluster[0]))
        sim_error(m, line, ".reqntid and .reqnctapercluster directive(s) required for directive '.blocksareclusters'");
}

static void parse_conventions(parser *s, sim_function *f)
{
    for (;;) {
        if (directive(s, "noreturn")) {
            require_version(s, ".noreturn", 64, 30);
            f->noreturn = true;
            if (f->return_count) sim_error(s->m, s->line, "Invalid directive '.noreturn' for function '%s'", f->name);
        } else if (directive(s, "abi_preserve_control") || directive(s, "abi_preserve")) {
            require_version(s, ".abi_preserve", 90, 80);
            (void)plain_number(s);
        } else return;
    }
}

/* Refuses parameters and results that an entry, a function or a prototype must not have. */
static void check_formals(parser *s, const sim_function *f)
{
    sim_module *m = s->m;
    uint32_t line = f->line ? f->line : s->line;
    for (const sim_symbol *y = f->params; y; y = y->list_next) {
        bool incomplete = y->is_array && !y->size;
        if (incomplete && f->is_entry)
            sim_error(m, line, "Parameter to entry function cannot be an incomplete array.");
        else if (incomplete && y->list_next)
            sim_error(m, line, "Only the last input parameter can be an incomplete array.");
    }
    for (const sim_symbol *y = f->returns; y; y = y->list_next)
        if (f->return_count > 1 && y->kind != SYM_REG)
            sim_error(m, line, "Multiple return parameters require .register state space ('%s')", y->name);
}

/* Refuses two declarations of one function that differ. */
static void compare_declarations(parser *s, const sim_function *old, const sim_function *f)
{
    sim_module *m = s->m;
    static const char text[] = "Inconsistent prototypes of '%s', parameter %s differ";
    if (old->has_body) sim_error(m, f->line, "Duplicate definition of function '%s'", f->name);
    else if ((old->linkage != f->linkage && (old->linkage != LINK_VISIBLE || f->linkage != LINK_STATIC))
             || old->noreturn != f->noreturn || old->is_entry != f->is_entry)
        sim_error(m, f->line, "Inconsistent redefinition of variable '%s'", f->name);
    if (old->param_count != f->param_count || old->return_count != f->return_count) {
        sim_error(m, f->line, "Inconsistent prototypes of '%s', number of parameters differ", f->name);
        return;
    }
    for (int results = 0; results < 2; results++) {
        const sim_symbol *a = results ? old->returns : old->params, *b = results ? f->returns : f->params;
        for (; a && b; a = a->list_next, b = b->list_next)
            if (a->kind != b->kind) sim_error(m, f->line, text, f->name, "state space");
            else if (a->type != b->type || a->vector != b->vector || a->size != b->size)
                sim_error(m, f->line, text, f->name, "types");
            else if (a->align != b->align) sim_error(m, f->line, text, f->name, "alignment");
    }
}

static void parse_function(parser *s, bool entry)
{
    sim_module *m = s->m;
    sim_function *f = sim_alloc(m, sizeof *f);
    f->module = m;
    f->is_entry = entry;
    f->linkage = s->linkage;
    s->function = f;
    if (!entry && peek(s, '(')) f->returns = parse_formals(s, &f->return_count, entry);
    skip(s);
    f->line = s->line;
    f->name = name(s);
    if (peek(s, '(')) f->params = parse_formals(s, &f->param_count, entry);
    check_formals(s, f);
    if (entry) parse_tuning(s, f);
    else parse_conventions(s, f);
    uint32_t index;
    sim_symbol *old = find(m, f->name, &index), *y = new_symbol(s, SYM_FUNC, f->name);
    y->line = f->line;
    f->has_body = peek(s, '{');
    if (!f->has_body) expect(s, ';');
    if (old && old->kind == SYM_FUNC) {
        compare_declarations(s, old->function, f);
    }
    if (f->has_body && f->linkage == LINK_EXTERN)
        sim_error(m, f->line, "Function definition conflicts with '.extern' declaration for function '%s'", f->name);
    s->function = NULL;
    y->function = f;
    if (old && old->kind == SYM_FUNC && old->depth == s->depth) {
        if (f->has_body || !old->function->has_body) { /* a definition replaces the declaration */
            sim_function *d = old->function;
            if (!d->has_body && f->has_body) { sim_function *next = d->next; *d = *f; d->next = next; f = d; }
        }
    } else {
        declare_symbol(s, y);
        *m->functions_tail = f;
        m->functions_tail = &f->next;
    }
    s->function = f;
    if (f->has_body) {
        s->p++;
        open_scope(s);
        for (sim_symbol *p = f->returns; p; p = p->list_next) { p->function = f; declare_symbol(s, p); }
        for (sim_symbol *p = f->params; p; p = p->list_next) { p->function = f; declare_symbol(s, p); }
        parse_body(s);
        close_scope(s);
        if (f->maxntid_count && f->reqntid_count)
            sim_error(m, f->end_line,
                      "Conflicting directives: .maxntid and .reqntid cannot both be specified");
    }
    s->function = NULL;
    if (!entry) return;
    uint64_t offset = 0;
    for (sim_symbol *p = f->params; p; p = p->list_next) {
        offset = (offset + p->align - 1) / p->align * p->align;
        p->address = offset;
        offset += p->size;
        if (offset > 1u << 24) break;
    }
    f->param_bytes = (uint32_t)offset;
    if (offset > 4352 && m->target < 70)
        sim_error(m, f->end_line ? f->end_line : f->line,
                  "Feature 'Kernel parameter size larger than 4352 bytes' requires .target sm_70 or higher");
    if (offset > (m->version >= 81 ? 32764u : 4352u)) {
        sim_error(m, f->end_line ? f->end_line : f->line,
                  "Entry function '%s' uses too much parameter space (0x%x bytes, 0x%x max).", f->name,
                  (unsigned)offset, m->version >= 81 ? 0x7ffcu : 0x1100u);
        if (m->version < 81)
            sim_error(m, f->end_line,
                      "Feature 'Kernel parameter size larger than 4352 bytes' requires "
                      "PTX ISA .version 8.1 or later");
    }
}

/* --- the module ------------------------------------------------------------------------------- */

static const struct { uint16_t sm; char suffix; uint8_t version;
} targets[] = { { 20, 0, 20 },    { 30, 0, 30 },    { 32, 0, 40 },    { 35, 0, 31 },    { 37, 0, 41 },
                { 50, 0, 40 },    { 52, 0, 41 },    { 53, 0, 42 },    { 60, 0, 50 },    { 61, 0, 50 },
                { 62, 0, 50 },    { 70, 0, 60 },    { 72, 0, 61 },    { 75, 0, 63 },    { 80, 0, 70 },
                { 86, 0, 71 },    { 87, 0, 74 },    { 88, 0, 90 },    { 89, 0, 78 },    { 90, 0, 78 },
                { 90, 'a', 80 },  { 100, 0, 86 },   { 100, 'a', 86 }, { 100, 'f', 88 }, { 103, 0, 88 },
                { 103, 'a', 88 }, { 103, 'f', 88 }, { 110, 0, 90 },   { 110, 'a', 90 }, { 110, 'f', 90 },
                { 120, 0, 87 },   { 120, 'a', 87 }, { 120, 'f', 88 }, { 121, 0, 88 },   { 121, 'a', 88 },
                { 121, 'f', 88 } };

static void parse_header(parser *s)
{
    sim_module *m = s->m;
    if (!directive(s, "version")) sim_fatal(m, s->line, "Missing .version directive at start of file");
    uint32_t line = s->line;
    skip(s);
    if (!is_digit(*s->p)) syntax(s);
    char *e;
    unsigned long major = strtoul(s->p, &e, 10), minor = 0;
    if (*e == '.') minor = strtoul(e + 1, &e, 10);
    s->p = e;
    if (major > 99 || minor > 9) major = 99;
    m->version = (uint32_t)(major * 10 + minor);
    if (m->version > 90)
        sim_fatal(m, line, "Unsupported .version %lu.%lu; current version is '9.0'", major, minor);
    if (!directive(s, "target")) sim_fatal(m, s->line, "Missing .target directive");
    do {
        const char *text = name(s);
        line = s->line;
        if (!strncmp(text, "sm_", 3)) {
            m->target = (uint32_t)strtoul(text + 3, &e, 10);
            m->target_suffix = *e;
            bool known = false;
            for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
                if (targets[k].sm != m->target || targets[k].suffix != *e || (*e && e[1])) continue;
                known = true;
                if (m->version < targets[k].version)
                    sim_error(m, line, "PTX .version %u.%u does not support .target %s", m->version / 10,
                              m->version % 10, text);
            }
            if (!known) sim_fatal(m, line, "Unsupported .target '%s'", text);
        } else if (!strcmp(text, "debug")) m->debug = true;
        else if (strcmp(text, "texmode_independent") && strcmp(text, "texmode_unified")
                 && strcmp(text, "map_f64_to_f32"))
            sim_fatal(m, line, "Unsupported .target option '%s'", text);
    } while (accept(s, ','));
    if (directive(s, "address_size")) {
        line = s->line;
        if (integer(s) != 64) sim_fatal(m, line, "32-bit addresses are not supported");
    }
    m->shared_base = 0;
}

/* In a debugging section: a number, a label or a section, plus or minus another one. */
static void parse_debug_value(parser *s)
{
    for (;;) {
        skip(s);
        if (is_digit(*s->p)) (void)read_number(s);
        else if (is_name_start(*s->p) || *s->p == '.') {
            const char *at = s->p++;
            while (is_name(*s->p) || *s->p == '.') s->p++;
            if (*at == '.' && sim_type_find(at + 1, (size_t)(s->p - at - 1)) != T_NONE) { s->p = at; syntax(s); }
        } else syntax(s);
        if (!accept(s, '+') && !accept(s, '-')) return;
    }
}

/* .section .name { label: .b8 1, 2 .b64 label+4 ... }: read and ignored. */
static void parse_section(parser *s)
{
    expect(s, '.');
    while (is_name(*s->p) || *s->p == '.') s->p++;
    expect(s, '{');
    while (!accept(s, '}')) {
        if (is_name_start(*s->p)) {
            (void)name(s);
            expect(s, ':');
            continue;
        }
        sim_type t = type_directive(s);
        if (sim_types[t].kind != K_BITS) syntax(s);
        do {
            accept(s, '-');
            parse_debug_value(s);
        } while (accept(s, ','));
    }
}

static void parse_module_item(parser *s)
{
    s->linkage = LINK_STATIC;
    if (directive(s, "file")) { parse_file(s); return; }
    if (directive(s, "pragma")) { parse_pragma(s); return; }
    if (directive(s, "section")) { parse_section(s); return; }
    if (directive(s, "alias")) {
        require_version(s, ".alias", 63, 30);
        uint32_t index;
        const char *a = name(s);
        expect(s, ',');
        sim_symbol *of = find(s->m, name(s), &index), *y = find(s->m, a, &index);
        expect(s, ';');
        if (!of || of->kind != SYM_FUNC || !y || y->kind != SYM_FUNC)
            sim_error(s->m, s->line, "Illegal alias '%s'", a);
        else if (of == y) sim_error(s->m, s->line, "Cannot alias a function to itself ('%s')", a);
        else { y->function->is_alias = true; y->function = of->function; }
        return;
    }
    if (directive(s, "extern")) s->linkage = LINK_EXTERN;
    else if (directive(s, "weak")) { s->linkage = LINK_WEAK; require_version(s, ".weak", 31, 20); }
    else if (directive(s, "common")) { s->linkage = LINK_COMMON; require_version(s, ".common", 50, 20); }
    else if (directive(s, "visible")) s->linkage = LINK_VISIBLE;
    if (directive(s, "entry")) parse_function(s, true);
    else if (directive(s, "func")) parse_function(s, false);
    else {
        sim_space space = variable_space(s);
        if (directive(s, "tex")) sim_fatal(s->m, s->line, "Textures are not implemented by this CPU driver");
        if (space == SP_GENERIC || space == SP_LOCAL || space == SP_PARAM) syntax(s);
        if (s->linkage == LINK_COMMON && space != SP_GLOBAL)
            sim_error(s->m, s->line, ".common variables must be declared in .global space");
        parse_variable(s, space, false, s->linkage == LINK_EXTERN);
    }
}

void sim_parse(sim_module *m)
{
    parser s = { 0 };
    s.m = m;
    s.p = m->text;
    s.end = m->text + m->text_length;
    s.line = 1;
    m->bucket_count = 4096;
    m->buckets = sim_alloc(m, m->bucket_count * sizeof *m->buckets);
    m->functions_tail = &m->functions;
    m->variables_tail = &m->variables;
    uint32_t line = 1;
    for (const char *p = s.p; p < s.end; p++) {
        if (*p == '\n') line++;
        if ((unsigned char)*p >= 128 || !*p)
            sim_fatal(m, line, "Unexpected non-ASCII character encountered on line %u", line);
    }
    skip(&s);
    parse_header(&s);
    while (skip(&s), *s.p) parse_module_item(&s);
    for (const sim_function *f = m->functions; f; f = f->next)
        if (!f->has_body && f->linkage != LINK_EXTERN && !m->part && !f->is_alias)
            sim_error(m, f->line, "Unresolved extern function '%s'", f->name);
    for (sim_symbol *v = m->variables; v; v = v->list_next) v->function = NULL;
}
