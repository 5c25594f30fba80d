/* float.h - the floating-point forms of tests/driver/forms.c. */

enum { O_ADD, O_SUB, O_MUL, O_FMA, O_DIV, O_RCP, O_SQRT, O_MIN, O_MAX, O_ABS, O_NEG };

static uint64_t flushed(const fmt *f, uint64_t x)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1), a = x & (sign - 1);
    return a >> f->p ? x : x & sign;
}

static uint64_t one_of(const fmt *f) { return (uint64_t)(1 - f->emin) << f->p; }

static uint64_t finished(const form *p, const fmt *f, num r)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1), x = put(f, r, p->mode, false);
    if (p->flags & FTZ) x = flushed(f, x);
    if (p->flags & SAT) x = r.kind == NAN_ || x & sign ? 0 : x > one_of(f) ? one_of(f) : x;
    if (p->flags & RELU && r.kind != NAN_ && x & sign) x = 0;
    return x;
}

static uint64_t extreme(const form *p, const fmt *f, bool most_, uint64_t a, uint64_t b)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1), signs = (a ^ b) & sign, r;
    if (p->flags & FTZ) {
        a = flushed(f, a);
        b = flushed(f, b);
    }
    if (p->flags & MAGNITUDE) {
        a &= ~sign;
        b &= ~sign;
    }
    bool an = get(f, a).kind == NAN_, bn = get(f, b).kind == NAN_;
    if ((an && bn) || (p->flags & PROPAGATE && (an || bn))) return f->nan;
    int c = compared(get(f, a), get(f, b));
    if (an)
        r = b;
    else if (bn)
        r = a;
    else if (c == 0)
        r = most_ ? a & b : a | b; /* only zeros differ */
    else
        r = (c < 0) == most_ ? b : a;
    return p->flags & XORSIGN ? (r & ~sign) | signs : r;
}

static uint64_t one_float(const form *p, const fmt *f, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t sign = UINT64_C(1) << (f->bits - 1);
    if (p->op == O_MIN || p->op == O_MAX) return extreme(p, f, p->op == O_MAX, a, b);
    if (p->flags & OOB && (a == 0xffff || b == 0xffff || c == 0xffff)) return 0;
    if (p->flags & FTZ) {
        a = flushed(f, a);
        b = flushed(f, b);
        c = flushed(f, c);
    }
    if (p->op == O_ABS) return a & ~sign;
    if (p->op == O_NEG) return a ^ sign;
    num x = get(f, a), y = get(f, b), z = get(f, c), r;
    switch (p->op) {
    case O_ADD: r = sum(x, y, p->mode); break;
    case O_SUB: r = sum(x, negated(y), p->mode); break;
    case O_MUL: r = product(x, y); break;
    case O_FMA: r = sum(product(x, y), z, p->mode); break;
    case O_DIV: r = quotient(x, y); break;
    case O_RCP: r = quotient(whole_number(1), x); break;
    default: r = root(x); break;
    }
    return finished(p, f, r);
}

static uint64_t eval_float(const form *p, const uint64_t *v)
{
    int n = p->bits; /* elements */
    if (n < 2) return one_float(p, p->f, v[0], v[1], v[2]);
    int w = p->f->bits;
    uint64_t m = mask_of(w);
    return one_float(p, p->f, v[0] >> w & m, v[1] >> w & m, v[2] >> w & m) << w
           | one_float(p, p->f, v[0] & m, v[1] & m, v[2] & m);
}

static bool nan_sign(const form *p, const uint64_t *v, uint64_t have, uint64_t want)
{ /* neg and abs of NaN: the payload is free */
    (void)v;
    return get(p->f, have).kind == NAN_ && get(p->f, want).kind == NAN_;
}

static form *float_form(char letter, int op, int mode, int flags, const char *name, const char *type,
                        const char *args)
{
    static const char *const modes[] = { ".rn", ".rz", ".rm", ".rp", "" };
    char sig[8] = { letter, ':', letter, 0 };
    if (strchr(args, 'B')) sig[3] = letter;
    if (strchr(args, 'C')) sig[4] = letter;
    form *p = add_form(sig, eval_float, "%s%s%s%s%s%s%s%s.%s D, %s;", name, modes[mode],
                       flags & FTZ ? ".ftz" : "", flags & OOB ? ".oob" : "", flags & SAT ? ".sat" : "",
                       flags & RELU ? ".relu" : "", flags & PROPAGATE ? ".NaN" : "",
                       flags & XORSIGN     ? ".xorsign.abs"
                       : flags & MAGNITUDE ? ".abs"
                                           : "",
                       type, args);
    p->op = op;
    p->mode = mode == 4 ? RN : mode;
    p->flags = flags;
    p->f = float_of(letter);
    p->bits = strchr("KBq", letter) ? 2 : 1;
    if (op == O_ABS || op == O_NEG) p->good = nan_sign;
    return p;
}

static void basic_forms(void)
{
    static const struct {
        const char *name, *args;
        int op;
        bool bare;
    } ops[] = { { "add", "A, B", O_ADD, true },     { "sub", "A, B", O_SUB, true },
                { "mul", "A, B", O_MUL, true },     { "fma", "A, B, C", O_FMA, false },
                { "mad", "A, B, C", O_FMA, false }, { "div", "A, B", O_DIV, false },
                { "rcp", "A", O_RCP, false },       { "sqrt", "A", O_SQRT, false } };
    for (int k = 0; k < 8; k++)
        for (int mode = 0; mode < (ops[k].bare ? 5 : 4); mode++) {
            for (int flags = 0; flags < (k < 5 ? 4 : 2); flags++)
                float_form('f', ops[k].op, mode, flags, ops[k].name, "f32", ops[k].args);
            float_form('g', ops[k].op, mode, 0, ops[k].name, "f64", ops[k].args);
        }
    for (int k = 0; k < 4; k++) /* packed f32 */
        for (int flags = 0; flags < 2; flags++)
            for (int mode = 0; mode < (k < 3 ? 5 : 1); mode += 4)
                float_form('q', ops[k].op, mode, flags, ops[k].name, "f32x2", ops[k].args);
    static const char *const halves_[] = { "f16", "f16x2", "bf16", "bf16x2" };
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < 4; k++) {
            char letter = "kKbB"[t];
            int top = t < 2 ? 4 : 1;
            for (int mode = 0; mode < (k < 3 ? 5 : 1); mode += 4)
                for (int flags = 0; flags < top; flags++)
                    float_form(letter, ops[k].op, mode, flags, ops[k].name, halves_[t], ops[k].args);
            if (k != 3) continue;
            float_form(letter, O_FMA, RN, RELU, "fma", halves_[t], "A, B, C");
            if (t < 2) float_form(letter, O_FMA, RN, RELU | FTZ, "fma", halves_[t], "A, B, C");
            float_form(letter, O_FMA, RN, OOB, "fma", halves_[t], "A, B, C");
            float_form(letter, O_FMA, RN, OOB | RELU, "fma", halves_[t], "A, B, C");
        }
    static const struct {
        char letter;
        const char *type;
        bool ftz;
    } types[] = { { 'f', "f32", true },   { 'g', "f64", false },  { 'k', "f16", true },
                  { 'K', "f16x2", true }, { 'b', "bf16", false }, { 'B', "bf16x2", false } };
    for (int t = 0; t < 6; t++) {
        static const int flag_sets[] = { 0, PROPAGATE, XORSIGN | MAGNITUDE, PROPAGATE | XORSIGN | MAGNITUDE };
        for (int ftz = 0; ftz <= types[t].ftz; ftz++) {
            for (int k = 0; k < (t == 1 ? 1 : 4); k++) {
                float_form(types[t].letter, O_MIN, 4, flag_sets[k] | ftz, "min", types[t].type, "A, B");
                float_form(types[t].letter, O_MAX, 4, flag_sets[k] | ftz, "max", types[t].type, "A, B");
            }
            float_form(types[t].letter, O_ABS, 4, t == 0 ? ftz : 0, "abs", types[t].type, "A");
            float_form(types[t].letter, O_NEG, 4, t == 0 ? ftz : 0, "neg", types[t].type, "A");
        }
    }
}

/* --- mixed precision, three operands, copysign, testp ----------------------------------------- */

static uint64_t eval_mixed(const form *p, const uint64_t *v)
{
    num a = get(p->g, v[0]), b = get(p->op == O_FMA ? p->g : &F32, v[1]), c = get(&F32, v[2]);
    num r = p->op == O_ADD   ? sum(a, b, p->mode)
            : p->op == O_SUB ? sum(a, negated(b), p->mode)
                             : sum(product(a, b), c, p->mode);
    return finished(p, &F32, r);
}

static uint64_t eval_three(const form *p, const uint64_t *v)
{
    return extreme(p, &F32, p->op == O_MAX, extreme(p, &F32, p->op == O_MAX, v[0], v[1]), v[2]);
}

static uint64_t eval_copysign(const form *p, const uint64_t *v)
{
    uint64_t sign = UINT64_C(1) << (p->bits - 1);
    return (v[1] & (sign - 1)) | (v[0] & sign);
}

static uint64_t eval_testp(const form *p, const uint64_t *v)
{
    num a = get(p->f, v[0]);
    bool tiny = a.kind == FINITE && a.e + top_bit(a.m) < p->f->emin;
    switch (p->op) {
    case 0: return a.kind == ZERO || a.kind == FINITE;
    case 1: return a.kind == INF;
    case 2: return a.kind != NAN_;
    case 3: return a.kind == NAN_;
    case 4: return (a.kind == FINITE && !tiny) || a.kind == ZERO;
    default: return tiny;
    }
}

static void further_forms(void)
{
    static const char *const modes[] = { ".rn", ".rz", ".rm", ".rp", "" }, *const names[] = { "add", "sub",
                                                                                              "", "fma" };
    for (int half = 0; half < 2; half++)
        for (int op = 0; op < 4; op++)
            for (int mode = 0; mode < 5; mode++)
                for (int flags = 0; flags <= SAT; flags += SAT) {
                    if (op == O_MUL || (op == O_FMA && mode == 4)) continue;
                    char letter = half ? 'b' : 'k',
                         sig[8] = { 'f', ':', letter, op == O_FMA ? letter : 'f', op == O_FMA ? 'f' : 0, 0 };
                    form *p = add_form(sig, eval_mixed, "%s%s%s.f32.%s D, A, B%s;", names[op], modes[mode],
                                       flags ? ".sat" : "", half ? "bf16" : "f16", op == O_FMA ? ", C" : "");
                    p->op = op;
                    p->mode = mode == 4 ? RN : mode;
                    p->flags = flags;
                    p->g = half ? &BF16 : &F16;
                }
    for (int k = 0; k < 16; k++) {
        form *p = add_form("f:fff", eval_three, "%s%s%s%s.f32 D, A, B, C;", k & 1 ? "max" : "min",
                           k & 2 ? ".ftz" : "", k & 4 ? ".NaN" : "", k & 8 ? ".abs" : "");
        p->op = k & 1 ? O_MAX : O_MIN;
        p->flags = (k & 2 ? FTZ : 0) | (k & 4 ? PROPAGATE : 0) | (k & 8 ? MAGNITUDE : 0);
    }
    add_form("f:ff", eval_copysign, "copysign.f32 D, A, B;")->bits = 32;
    add_form("g:gg", eval_copysign, "copysign.f64 D, A, B;")->bits = 64;
    static const char *const kinds[] = {
        "finite", "infinite", "number", "notanumber", "normal", "subnormal"
    };
    for (int k = 0; k < 6; k++)
        for (int wide = 0; wide < 2; wide++) {
            form *p =
                add_form(wide ? "p:g" : "p:f", eval_testp, "testp.%s.f%d D, A;", kinds[k], wide ? 64 : 32);
            p->op = k;
            p->f = wide ? &F64 : &F32;
        }
}

/* --- comparisons ------------------------------------------------------------------------------ */

static bool related(int c, int relation) /* c of compared(): 2 is unordered */
{
    bool nan = c == 2;
    switch (relation) {
    case 0: return c == 0;
    case 1: return c == -1 || c == 1;
    case 2: return c == -1;
    case 3: return c == -1 || c == 0;
    case 4: return c == 1;
    case 5: return c == 1 || c == 0;
    case 12: return !nan;
    case 13: return nan;
    default: return nan || related(c, relation - 6);
    }
}

static bool relation_of_floats(const form *p, uint64_t a, uint64_t b)
{
    if (p->flags & FTZ) {
        a = flushed(p->f, a);
        b = flushed(p->f, b);
    }
    return related(compared(get(p->f, a), get(p->f, b)), p->op);
}

static uint64_t eval_float_setp(const form *p, const uint64_t *v) /* mode: 1 the second predicate */
{
    if (p->bits == 2) {
        int k = p->mode ? 16 : 0;
        return relation_of_floats(p, v[0] >> k & 0xffff, v[1] >> k & 0xffff);
    }
    bool t = relation_of_floats(p, v[0], v[1]);
    return p->mode ? !t : t;
}

static uint64_t eval_float_set(const form *p, const uint64_t *v) /* bits: of the result; s: it is a float */
{
    uint64_t one = p->s ? p->g ? one_of(p->g) : one_of(&F32) : p->bits2 == 16 ? 0xffff : 0xffffffff;
    if (p->bits == 1) return relation_of_floats(p, v[0], v[1]) ? one : 0;
    return (relation_of_floats(p, v[0] >> 16, v[1] >> 16) ? one << 16 : 0)
           | (relation_of_floats(p, v[0] & 0xffff, v[1] & 0xffff) ? one : 0);
}

static void float_comparisons(void)
{
    static const char *const names[] = { "eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                         "neu", "ltu", "leu", "gtu", "geu", "num", "nan" };
    static const struct {
        char letter;
        const char *type;
        bool ftz;
    } types[] = { { 'f', "f32", true },   { 'g', "f64", false },  { 'k', "f16", true },
                  { 'K', "f16x2", true }, { 'b', "bf16", false }, { 'B', "bf16x2", false } };
    for (int t = 0; t < 6; t++)
        for (int op = 0; op < 14; op++)
            for (int ftz = 0; ftz <= types[t].ftz; ftz++) {
                char sig[8] = { 'p', ':', types[t].letter, types[t].letter, 0 };
                bool two = t == 3 || t == 5;
                int second = (op + ftz) & 1;
                form *p = add_form(sig, eval_float_setp, "setp.%s%s.%s %s, A, B;", names[op],
                                   ftz ? ".ftz" : "", types[t].type,
                                   second ? "c0|D"
                                   : two  ? "D|c0"
                                          : "D");
                p->op = op;
                p->flags = ftz;
                p->f = float_of(types[t].letter);
                p->bits = two ? 2 : 1;
                p->mode = second;
                const char *result = t < 2         ? (op & 1 ? "f32" : "u32")
                                     : op % 3 == 0 ? types[t].type
                                     : op % 3 == 1 ? "u32"
                                     : two         ? "s32"
                                                   : "u16";
                sig[0] = t < 2 || two || op % 3 == 1 ? 'w' : 'h';
                p = add_form(sig, eval_float_set, "set.%s%s.%s.%s D, A, B;", names[op], ftz ? ".ftz" : "",
                             result, types[t].type);
                p->op = op;
                p->flags = ftz;
                p->f = float_of(types[t].letter);
                p->bits = two ? 2 : 1;
                p->s = t < 2 ? op & 1 : op % 3 == 0;
                p->g = t < 2 ? NULL : p->f;
                p->bits2 = sig[0] == 'w' && !two ? 32 : 16;
            }
}

/* --- approximations: within what is documented ------------------------------------------------ */

enum { A_EX2, A_LG2, A_SIN, A_COS, A_RCP, A_RSQRT, A_SQRT, A_DIV, A_FULL, A_TANH };

static double double_of(const fmt *f, uint64_t x)
{
    num a = get(f, x);
    double r = a.kind == ZERO   ? 0
               : a.kind == INF  ? INFINITY
               : a.kind == NAN_ ? NAN
                                : ldexp((double)(uint64_t)a.m, a.e);
    return a.neg ? -r : r;
}

static double exactly(int op, double a, double b)
{
    switch (op) {
    case A_EX2: return exp2(a);
    case A_LG2: return log2(a);
    case A_SIN: return sin(a);
    case A_COS: return cos(a);
    case A_RCP: return 1 / a;
    case A_RSQRT: return 1 / sqrt(a);
    case A_SQRT: return sqrt(a);
    case A_TANH: return tanh(a);
    default: return a / b;
    }
}

/* The documented bound, absolute; ulp of f32 around v. */
static double bound_of(const form *p, double a, double v)
{
    double ulp = ldexp(1, (v == 0 ? -126 : ilogb(v) < -126 ? -126 : ilogb(v)) - 23);
    if (p->f == &F16) return p->op == A_TANH ? ldexp(1, -11) * 1.01 : fabs(v) * pow(2, -9.9) + ldexp(1, -25);
    if (p->f == &BF16) return fabs(v) * (p->op == A_TANH ? ldexp(1, -8) : ldexp(1, -7)) + ldexp(1, -134);
    switch (p->op) {
    case A_RCP: return ulp;
    case A_EX2:
    case A_DIV:
    case A_FULL: return 2 * ulp;
    case A_LG2: return a > 0.5 && a < 2 ? ldexp(1, -22) : fabs(v) * ldexp(1, -22);
    case A_SIN:
    case A_COS: return pow(2, -20.5);
    case A_RSQRT: return fabs(v) * pow(2, -22.9);
    case A_SQRT: return fabs(v) * ldexp(1, -23);
    default: return fabs(v) * ldexp(1, -11);
    }
}

static unsigned moved; /* results that are not the nearest ones */

static bool one_close(const form *p, uint64_t a, uint64_t b, uint64_t have)
{
    if (p->flags & FTZ || (p->op == A_SIN || p->op == A_COS)) {
        a = flushed(p->f, a);
        b = flushed(p->f, b);
    }
    double x = double_of(p->f, a), y = double_of(p->f, b), v = exactly(p->op, x, y),
           h = double_of(p->f, have);
    if (isnan(v)) return have == p->f->nan;
    if ((p->op == A_SIN || p->op == A_COS) && fabs(x) > 6.28) return fabs(h) <= 1;
    if (p->op == A_DIV && fabs(y) > ldexp(1, 126) && !isinf(y)) return true; /* outside the range */
    if (p->op == A_DIV && fabs(y) < ldexp(1, -126)) return true;
    if (isinf(v)) return h == v;
    double least_normal = ldexp(1, p->f->emin), top = double_of(p->f, p->f->top);
    if (fabs(v) < least_normal) return fabs(h - v) <= least_normal; /* may be flushed */
    if (isinf(h)) return fabs(v) >= top * (1 - 1e-3) && (h > 0) == (v > 0);
    return fabs(h - v) <= bound_of(p, x, v);
}

static uint64_t eval_approximate(const form *p, const uint64_t *v)
{
    double x = double_of(p->f, v[0] & mask_of(p->f->bits)), y = double_of(p->f, v[1] & mask_of(p->f->bits));
    if (p->bits == 2 || p->f != &F32) return ~UINT64_C(0);
    float r = (float)exactly(p->op, x, y);
    uint32_t u;
    memcpy(&u, &r, 4);
    return isnan(r) ? 0x7fffffff : u;
}

static bool close_enough(const form *p, const uint64_t *v, uint64_t have, uint64_t want)
{
    int w = p->f->bits;
    moved += have != want;
    if (p->bits == 1) return one_close(p, v[0], v[1], have);
    return one_close(p, v[0] >> w, 0, have >> w) && one_close(p, v[0] & mask_of(w), 0, have & mask_of(w));
}

static void approximate_forms(void)
{
    static const struct {
        const char *text;
        char letter;
        int op, ftz;
    } list[] = { { "ex2.approx", 'f', A_EX2, 1 },   { "lg2.approx", 'f', A_LG2, 1 },
                 { "sin.approx", 'f', A_SIN, 1 },   { "cos.approx", 'f', A_COS, 1 },
                 { "rcp.approx", 'f', A_RCP, 1 },   { "rsqrt.approx", 'f', A_RSQRT, 1 },
                 { "sqrt.approx", 'f', A_SQRT, 1 }, { "div.approx", 'f', A_DIV, 1 },
                 { "div.full", 'f', A_FULL, 1 },    { "tanh.approx", 'f', A_TANH, 0 },
                 { "tanh.approx", 'k', A_TANH, 0 }, { "tanh.approx", 'K', A_TANH, 0 },
                 { "tanh.approx", 'b', A_TANH, 0 }, { "tanh.approx", 'B', A_TANH, 0 },
                 { "ex2.approx", 'k', A_EX2, 0 },   { "ex2.approx", 'K', A_EX2, 0 },
                 { "ex2.approx", 'b', A_EX2, 2 },   { "ex2.approx", 'B', A_EX2, 2 } };
    for (size_t k = 0; k < sizeof list / sizeof *list; k++)
        for (int ftz = list[k].ftz == 2; ftz <= (list[k].ftz != 0); ftz++) {
            char c = list[k].letter, sig[8] = { c, ':', c, 0 };
            bool two = list[k].op == A_DIV || list[k].op == A_FULL;
            if (two) sig[3] = c;
            form *p = add_form(sig, eval_approximate, "%s%s.%s D, A%s;", list[k].text, ftz ? ".ftz" : "",
                               c == 'f'   ? "f32"
                               : c == 'k' ? "f16"
                               : c == 'K' ? "f16x2"
                               : c == 'b' ? "bf16"
                                          : "bf16x2",
                               two ? ", B" : "");
            p->op = list[k].op;
            p->flags = ftz ? FTZ : 0;
            p->f = float_of(c);
            p->bits = c == 'K' || c == 'B' ? 2 : 1;
            p->good = close_enough;
        }
}

/* --- atomics: what they leave, the last element of a vector ----------------------------------- */

static void float_atomics(void)
{
    static const struct {
        const char *type;
        char letter;
        int flags;
    } types[] = { { "f32", 'f', FTZ },       { "f64", 'g', 0 },        { "noftz.f16", 'k', 0 },
                  { "noftz.f16x2", 'K', 0 }, { "noftz.bf16", 'b', 0 }, { "noftz.bf16x2", 'B', 0 } };
    static const char *const names[] = { "add", "min", "max" };
    static const int ops[] = { O_ADD, O_MIN, O_MAX };
    for (int t = 0; t < 6; t++)
        for (int count = 1; count <= 8; count *= 2)
            for (int op = 0; op < 3; op++)
                for (int red = 0; red < 2; red++) {
                    int bits = width_of(types[t].letter);
                    if (count * bits > 128 || (t == 1 && count > 1) || (op && (t < 2 || count == 1)))
                        continue;
                    char sig[8] = { types[t].letter, ':', types[t].letter, types[t].letter, 0 },
                         vector[16] = "", values[80], old[80];
                    const char *holder = bits == 64 ? "l" : bits == 16 ? "s" : "t";
                    if (count > 1) snprintf(vector, sizeof vector, ".v%d", count);
                    int n = snprintf(values, sizeof values, count > 1 ? "{" : ""),
                        o = snprintf(old, sizeof old, "%s", values);
                    for (int k = 0; k < count; k++) {
                        n += snprintf(values + n, sizeof values - (size_t)n, "%sB", k ? ", " : "");
                        o += snprintf(old + o, sizeof old - (size_t)o, "%s%s%d", k ? ", " : "", holder, k);
                    }
                    if (count > 1) {
                        strcat(values, "}");
                        strcat(old, "}");
                    }
                    int last = (count - 1) * bits / 8;
                    form *p =
                        red ? add_form(sig, eval_float,
                                       "st.global.b%d [P+%d], A; red.global.%s%s.%s [P], %s; "
                                       "ld.global.b%d D, [P+%d];",
                                       bits, last, names[op], vector, types[t].type, values, bits, last)
                            : add_form(sig, eval_float,
                                       "st.global.b%d [P+%d], A; atom.global.%s%s.%s %s, [P], %s; "
                                       "ld.global.b%d D, [P+%d];",
                                       bits, last, names[op], vector, types[t].type, old, values, bits, last);
                    p->op = ops[op];
                    p->flags = types[t].flags;
                    p->f = float_of(types[t].letter);
                    p->bits = strchr("KB", types[t].letter) ? 2 : 1;
                }
    form *p = add_form("f:ff", eval_float,
                       "{ .shared .b32 v[256]; .reg .b32 x, y; mov.u32 x, v; mov.u32 y, %%tid.x; "
                       "mad.lo.u32 x, y, 4, x; "
                       "st.shared.b32 [x], A; red.shared.add.f32 [x], B; ld.shared.b32 D, [x]; }");
    p->op = O_ADD;
    p->f = &F32;
    p->bits = 1;
}

static void float_forms(void)
{
    float_atomics();
    basic_forms();
    further_forms();
    float_comparisons();
    approximate_forms();
}
