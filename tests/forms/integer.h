/* integer.h - the integer, logic, selection, memory and video forms of tests/driver/forms.c, in 128 bits. */

static uint64_t mask_of(int bits) { return bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1; }

static s128 signed_of(uint64_t v, int bits, bool s)
{
    v &= mask_of(bits);
    return s && v >> (bits - 1) & 1 ? (s128)v - ((s128)1 << bits) : (s128)v;
}

static s128 clamp128(s128 v, int bits, bool s)
{
    s128 top = ((s128)1 << (bits - s)) - 1, bottom = s ? -top - 1 : 0;
    return v < bottom ? bottom : v > top ? top : v;
}

/* --- arithmetic: every operation in every type ------------------------------------------------ */

enum {
    I_ADD,
    I_SUB,
    I_MUL,
    I_MULHI,
    I_MULWIDE,
    I_MAD,
    I_MADHI,
    I_MADWIDE,
    I_SAD,
    I_DIV,
    I_REM,
    I_MIN,
    I_MAX,
    I_ABS,
    I_NEG,
    I_ADDSAT,
    I_SUBSAT,
    I_MADHISAT,
    I_POPC,
    I_CLZ,
    I_BREV,
    I_BFIND,
    I_SHIFTAMT,
    I_SHL,
    I_SHR,
    I_BFE,
    I_BFI
};

static uint64_t eval_integer(const form *p, const uint64_t *v)
{
    int n = p->bits;
    s128 a = signed_of(v[0], n, p->s), b = signed_of(v[1], n, p->s), c = signed_of(v[2], n, p->s), r = 0;
    u128 wide = (u128)a * (u128)b;
    if (n == 64) { /* 128 bits of the product: from the magnitudes */
        bool neg = (a < 0) != (b < 0);
        wide = (u128)(a < 0 ? -a : a) * (u128)(b < 0 ? -b : b);
        if (neg) wide = 0 - wide;
    }
    switch (p->op) {
    case I_ADD: r = a + b; break;
    case I_SUB: r = a - b; break;
    case I_MUL: return (uint64_t)wide & mask_of(n);
    case I_MULHI: return (uint64_t)(wide >> n) & mask_of(n);
    case I_MULWIDE: return (uint64_t)wide & mask_of(2 * n);
    case I_MAD: return ((uint64_t)wide + v[2]) & mask_of(n);
    case I_MADHI: return ((uint64_t)(wide >> n) + v[2]) & mask_of(n);
    case I_MADWIDE: return ((uint64_t)wide + v[2]) & mask_of(2 * n);
    case I_MADHISAT: r = clamp128(signed_of((uint64_t)(wide >> n), n, true) + c, n, true); break;
    case I_SAD: r = c + (a < b ? b - a : a - b); break;
    case I_DIV:
        if (!b) {
            skip_case = true;
            return 0;
        }
        r = a / b;
        break;
    case I_REM:
        if (!b) {
            skip_case = true;
            return 0;
        }
        r = a % b;
        break;
    case I_MIN: r = a < b ? a : b; break;
    case I_MAX: r = a > b ? a : b; break;
    case I_ABS: r = a < 0 ? -a : a; break;
    case I_NEG: r = -a; break;
    case I_ADDSAT: r = clamp128(a + b, n, true); break;
    case I_SUBSAT: r = clamp128(a - b, n, true); break;
    default: break;
    }
    if (p->flags & RELU && r < 0) r = 0;
    return (uint64_t)r & mask_of(n);
}

static uint64_t eval_bits(const form *p, const uint64_t *v)
{
    int n = p->bits, count = 0, found = -1;
    uint64_t r = 0, x = v[0];
    switch (p->op) {
    case I_POPC:
        for (int k = 0; k < n; k++) count += (int)(x >> k & 1);
        return (uint64_t)count;
    case I_CLZ:
        for (int k = n - 1; k >= 0 && !(x >> k & 1); k--) count++;
        return (uint64_t)count;
    case I_BREV:
        for (int k = 0; k < n; k++) r |= (x >> k & 1) << (n - 1 - k);
        return r;
    case I_SHL:
        for (int k = 0; k < n; k++)
            if ((uint64_t)k >= v[1]) r |= (x >> ((uint64_t)k - v[1]) & 1) << k;
        return r;
    case I_SHR: {
        s128 a = signed_of(x, n, p->s);
        return (uint64_t)(a >> (v[1] > 100 ? 100 : v[1])) & mask_of(n);
    }
    case I_BFE: { /* bit by bit, as the pseudo code has it */
        uint64_t pos = v[1] & 255, len = v[2] & 255,
                 top = pos + len - 1 < (uint64_t)n ? pos + len - 1 : (uint64_t)n - 1;
        uint64_t sign = !p->s || !len ? 0 : x >> top & 1;
        for (uint64_t k = 0; k < (uint64_t)n; k++)
            r |= (k < len && pos + k < (uint64_t)n ? x >> (pos + k) & 1 : sign) << k;
        return r;
    }
    case I_BFI: {
        uint64_t pos = v[2] & 255, len = v[3] & 255;
        r = v[1];
        for (uint64_t k = 0; k < len && pos + k < (uint64_t)n; k++)
            r = (r & ~(UINT64_C(1) << (pos + k))) | (x >> k & 1) << (pos + k);
        return r;
    }
    default: { /* bfind: the highest bit that is not the sign */
        bool sign = p->s && x >> (n - 1) & 1;
        for (int k = 0; k < n; k++)
            if ((bool)(x >> k & 1) != sign) found = k;
        return found < 0 ? 0xffffffff : (uint64_t)(p->op == I_SHIFTAMT ? n - 1 - found : found);
    }
    }
}

static void arithmetic_forms(void)
{
    static const struct {
        const char *name, *args;
        int op, least, most, signs;
    } ops[] = { /* signs: 1 u 2 s 3 both */
                { "add", "A, B", I_ADD, 16, 64, 3 },
                { "sub", "A, B", I_SUB, 16, 64, 3 },
                { "mul.lo", "A, B", I_MUL, 16, 64, 3 },
                { "mul.hi", "A, B", I_MULHI, 16, 64, 3 },
                { "mul.wide", "A, B", I_MULWIDE, 16, 32, 3 },
                { "mad.lo", "A, B, C", I_MAD, 16, 64, 3 },
                { "mad.hi", "A, B, C", I_MADHI, 16, 64, 3 },
                { "mad.wide", "A, B, C", I_MADWIDE, 16, 32, 3 },
                { "sad", "A, B, C", I_SAD, 16, 64, 3 },
                { "div", "A, B", I_DIV, 16, 64, 3 },
                { "rem", "A, B", I_REM, 16, 64, 3 },
                { "min", "A, B", I_MIN, 16, 64, 3 },
                { "max", "A, B", I_MAX, 16, 64, 3 },
                { "abs", "A", I_ABS, 16, 64, 2 },
                { "neg", "A", I_NEG, 16, 64, 2 },
                { "add.sat", "A, B", I_ADDSAT, 32, 32, 2 },
                { "sub.sat", "A, B", I_SUBSAT, 32, 32, 2 },
                { "mad.hi.sat", "A, B, C", I_MADHISAT, 32, 32, 2 }
    };
    static const char letters[] = "hwx";
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (int bits = ops[k].least, w = bits == 16 ? 0 : 1; bits <= ops[k].most; bits *= 2, w++)
            for (int s = 0; s < 2; s++) {
                if (!(ops[k].signs >> s & 1)) continue;
                bool wide = ops[k].op == I_MULWIDE || ops[k].op == I_MADWIDE;
                char sig[8] = { letters[w + wide], ':', 0 };
                size_t inputs = (strlen(ops[k].args) + 2) / 3;
                for (size_t n = 0; n < inputs; n++) sig[2 + n] = letters[w + (wide && n == 2)];
                form *p = add_form(sig, eval_integer, "%s.%c%d D, %s;", ops[k].name, s ? 's' : 'u', bits,
                                   ops[k].args);
                p->op = ops[k].op;
                p->bits = bits;
                p->s = s;
            }
    for (int op = 0; op < 2; op++) {
        form *p = add_form("w:ww", eval_integer, "%s.relu.s32 D, A, B;", op ? "max" : "min");
        p->op = op ? I_MAX : I_MIN;
        p->bits = 32;
        p->s = true;
        p->flags = RELU;
    }
    static const struct {
        const char *text, *sig;
        int op, bits, s;
    } bits[] = { { "popc.b32 D, A;", "w:w", I_POPC, 32, 0 },
                 { "popc.b64 D, A;", "w:x", I_POPC, 64, 0 },
                 { "clz.b32 D, A;", "w:w", I_CLZ, 32, 0 },
                 { "clz.b64 D, A;", "w:x", I_CLZ, 64, 0 },
                 { "brev.b32 D, A;", "w:w", I_BREV, 32, 0 },
                 { "brev.b64 D, A;", "x:x", I_BREV, 64, 0 },
                 { "bfind.u32 D, A;", "w:w", I_BFIND, 32, 0 },
                 { "bfind.s32 D, A;", "w:w", I_BFIND, 32, 1 },
                 { "bfind.u64 D, A;", "w:x", I_BFIND, 64, 0 },
                 { "bfind.s64 D, A;", "w:x", I_BFIND, 64, 1 },
                 { "bfind.shiftamt.u32 D, A;", "w:w", I_SHIFTAMT, 32, 0 },
                 { "bfind.shiftamt.s32 D, A;", "w:w", I_SHIFTAMT, 32, 1 },
                 { "bfind.shiftamt.u64 D, A;", "w:x", I_SHIFTAMT, 64, 0 },
                 { "bfind.shiftamt.s64 D, A;", "w:x", I_SHIFTAMT, 64, 1 },
                 { "shl.b16 D, A, B;", "h:hi", I_SHL, 16, 0 },
                 { "shl.b32 D, A, B;", "w:wi", I_SHL, 32, 0 },
                 { "shl.b64 D, A, B;", "x:xi", I_SHL, 64, 0 },
                 { "shr.u16 D, A, B;", "h:hi", I_SHR, 16, 0 },
                 { "shr.s16 D, A, B;", "h:hi", I_SHR, 16, 1 },
                 { "shr.u32 D, A, B;", "w:wi", I_SHR, 32, 0 },
                 { "shr.s32 D, A, B;", "w:wi", I_SHR, 32, 1 },
                 { "shr.u64 D, A, B;", "x:xi", I_SHR, 64, 0 },
                 { "shr.s64 D, A, B;", "x:xi", I_SHR, 64, 1 },
                 { "shr.b32 D, A, B;", "w:wi", I_SHR, 32, 0 },
                 { "bfe.u32 D, A, B, C;", "w:wii", I_BFE, 32, 0 },
                 { "bfe.s32 D, A, B, C;", "w:wii", I_BFE, 32, 1 },
                 { "bfe.u64 D, A, B, C;", "x:xii", I_BFE, 64, 0 },
                 { "bfe.s64 D, A, B, C;", "x:xii", I_BFE, 64, 1 },
                 { "bfi.b32 D, A, B, C, E;", "w:wwii", I_BFI, 32, 0 },
                 { "bfi.b64 D, A, B, C, E;", "x:xxii", I_BFI, 64, 0 } };
    for (size_t k = 0; k < sizeof bits / sizeof *bits; k++) {
        form *p = add_form(bits[k].sig, eval_bits, "%s", bits[k].text);
        p->op = bits[k].op;
        p->bits = bits[k].bits;
        p->s = bits[k].s;
    }
}

/* --- one expression each ---------------------------------------------------------------------- */

static s128 s24(uint64_t v) { return signed_of(v, 24, true); }
static uint64_t u24(uint64_t v) { return v & 0xffffff; }
static uint64_t halves(uint64_t hi, uint64_t lo) { return (hi & 0xffff) << 16 | (lo & 0xffff); }
static int64_t sh(uint64_t v, int k) { return (int64_t)signed_of(v >> 16 * k, 16, true); }
static int64_t uh(uint64_t v, int k) { return (int64_t)(v >> 16 * k & 0xffff); }
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

static uint64_t dot(uint64_t a, uint64_t b, uint64_t c, int bytes_of_a, bool sa, bool sb, int first)
{
    s128 r = (s128)c;
    int n = bytes_of_a == 1 ? 4 : 2;
    for (int k = 0; k < n; k++)
        r += signed_of(a >> 8 * bytes_of_a * k, 8 * bytes_of_a, sa) * signed_of(b >> 8 * (first + k), 8, sb);
    return (uint64_t)r & 0xffffffff;
}

static uint64_t permuted(uint64_t a, uint64_t b, uint64_t selector)
{
    uint64_t r = 0;
    for (int k = 0; k < 4; k++) {
        uint64_t which = selector >> 4 * k & 15, at = which & 7,
                 byte = (at < 4 ? a >> 8 * at : b >> 8 * (at - 4)) & 255;
        if (which & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << 8 * k;
    }
    return r;
}

/* prmt's modes as the documentation tabulates them: the byte of result position k */
static uint64_t permuted_mode(int mode, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t n = c & 3, selector = 0;
    for (uint64_t k = 0; k < 4; k++) {
        uint64_t s = 0;
        switch (mode) {
        case 0: s = n + k; break;                  /* f4e */
        case 1: s = (n - k) & 7; break;            /* b4e */
        case 2: s = n; break;                      /* rc8 */
        case 3: s = k > n ? k : n; break;          /* ecl */
        case 4: s = k < n ? k : n; break;          /* ecr */
        default: s = (n & 1) * 2 + (k & 1); break; /* rc16 */
        }
        selector |= s << 4 * k;
    }
    return permuted(a, b, selector);
}

static uint64_t logic3(uint64_t a, uint64_t b, uint64_t c, unsigned table)
{
    uint64_t r = 0;
    for (int k = 0; k < 32; k++)
        r |= (uint64_t)(table >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1) << k;
    return r;
}

static uint64_t funnel(uint64_t a, uint64_t b, uint64_t n, bool left, bool wrap)
{
    uint64_t both = b << 32 | a;
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    return (left ? (uint64_t)(((u128)both << n) >> 32) : both >> n) & 0xffffffff;
}

static uint64_t nth_set(uint64_t mask, uint64_t base, int64_t offset)
{
    if (base > 31) return 0xffffffff;
    int64_t left = offset < 0 ? -offset : offset, step = offset < 0 ? -1 : 1, at = (int64_t)base;
    if (!offset) return mask >> base & 1 ? base : 0xffffffff;
    for (; at >= 0 && at < 32; at += step)
        if (mask >> at & 1 && !--left) return (uint64_t)at;
    return 0xffffffff;
}

static uint64_t bit_mask(uint64_t a, uint64_t b, bool wrap)
{
    uint64_t r = 0;
    if (wrap) {
        a &= 31;
        b &= 31;
    }
    for (uint64_t k = 0; k < 32; k++)
        if (k >= a && k - a < b) r |= UINT64_C(1) << k;
    return r;
}

static uint64_t extended(uint64_t a, uint64_t n, bool wrap, bool s)
{
    n = wrap ? n & 31 : n > 32 ? 32 : n;
    return n ? (uint64_t)signed_of(a, (int)n, s) & 0xffffffff : 0;
}

#define W(x) ((uint64_t)(x)&0xffffffff)
#define LINES(X)                                                                                             \
    X("x:xxx", "add.cc.u64 l0, A, B; addc.cc.u64 l1, B, C; addc.u64 D, 0, 0;",                               \
      (u128)B + C + ((u128)A + B > UINT64_MAX) > UINT64_MAX)                                                 \
    X("w:www", "mad.lo.cc.u32 t0, A, B, C; madc.hi.cc.u32 t1, A, B, C; addc.u32 D, 0, 0;",                   \
      (A * B >> 32) + C + (W(A * B) + C > UINT32_MAX) > UINT32_MAX)                                          \
    X("x:xxx", "mad.lo.cc.u64 l0, A, B, C; madc.lo.u64 D, A, B, C;", A *B + C + (A * B + C < C))             \
    X("p:w", "isspacep.global D, P;", 1)                                                                     \
    X("p:w", "isspacep.shared D, P;", 0)                                                                     \
    X("p:w", "isspacep.local D, P;", 0)                                                                      \
    X("p:w", "isspacep.param D, P;", 0)                                                                      \
    X("p:w", "{ .shared .b32 v; .reg .b64 x; mov.u64 x, v; cvta.shared.u64 x, x; isspacep.shared D, x; }",   \
      1)                                                                                                     \
    X("p:w",                                                                                                 \
      "{ .shared .b32 v; .reg .b64 x; mov.u64 x, v; cvta.shared::cluster.u64 x, x; "                         \
      "isspacep.shared::cluster D, x; }",                                                                    \
      1)                                                                                                     \
    X("p:w", "{ .local .b32 v; .reg .b64 x; mov.u64 x, v; cvta.local.u64 x, x; isspacep.local D, x; }", 1)   \
    X("p:w", "{ .local .b32 v; .reg .b64 x; mov.u64 x, v; cvta.local.u64 x, x; isspacep.global D, x; }", 0)  \
    X("p:w", "{ .reg .b64 x; mov.b64 x, in; cvta.param.u64 x, x; isspacep.param D, x; }", 1)                 \
    X("p:w", "{ .reg .b64 x; mov.b64 x, in; cvta.param::entry.u64 x, x; isspacep.param::entry D, x; }", 1)   \
    X("x:w",                                                                                                 \
      "{ .reg .b64 x; mov.b64 x, in; cvta.param.u64 x, x; ld.u64 l0, [x]; ld.param::entry.u64 l1, [in]; "    \
      "sub.u64 D, l0, l1; }",                                                                                \
      0)                                                                                                     \
    X("x:w",                                                                                                 \
      "{ .shared .b32 v; .reg .b64 x; mov.u64 x, v; cvta.shared.u64 l0, x; cvta.to.shared.u64 l0, l0; "      \
      "sub.u64 D, l0, x; }",                                                                                 \
      0)                                                                                                     \
    X("x:w", "cvta.to.global.u64 l0, P; sub.u64 D, l0, P;", 0)                                               \
    X("w:ww", "mul24.lo.u32 D, A, B;", W(u24(A) * u24(B)))                                                   \
    X("w:ww", "mul24.lo.s32 D, A, B;", W(s24(A) * s24(B)))                                                   \
    X("w:ww", "mul24.hi.u32 D, A, B;", W((u24(A) * u24(B)) >> 16))                                           \
    X("w:ww", "mul24.hi.s32 D, A, B;", W((s24(A) * s24(B)) >> 16))                                           \
    X("w:www", "mad24.lo.u32 D, A, B, C;", W(u24(A) * u24(B) + C))                                           \
    X("w:www", "mad24.lo.s32 D, A, B, C;", W(s24(A) * s24(B) + (s128)C))                                     \
    X("w:www", "mad24.hi.u32 D, A, B, C;", W(((u24(A) * u24(B)) >> 16) + C))                                 \
    X("w:www", "mad24.hi.s32 D, A, B, C;", W(((s24(A) * s24(B)) >> 16) + (s128)C))                           \
    X("w:www", "mad24.hi.sat.s32 D, A, B, C;",                                                               \
      W(clamp128(((s24(A) * s24(B)) >> 16) + signed_of(C, 32, true), 32, true)))                             \
    X("w:ww", "add.u16x2 D, A, B;", halves((A >> 16) + (B >> 16), A + B))                                    \
    X("w:ww", "add.s16x2 D, A, B;", halves((A >> 16) + (B >> 16), A + B))                                    \
    X("w:ww", "min.u16x2 D, A, B;",                                                                          \
      halves((uint64_t)least(uh(A, 1), uh(B, 1)), (uint64_t)least(uh(A, 0), uh(B, 0))))                      \
    X("w:ww", "max.u16x2 D, A, B;",                                                                          \
      halves((uint64_t)most(uh(A, 1), uh(B, 1)), (uint64_t)most(uh(A, 0), uh(B, 0))))                        \
    X("w:ww", "min.s16x2 D, A, B;",                                                                          \
      halves((uint64_t)least(sh(A, 1), sh(B, 1)), (uint64_t)least(sh(A, 0), sh(B, 0))))                      \
    X("w:ww", "max.s16x2 D, A, B;",                                                                          \
      halves((uint64_t)most(sh(A, 1), sh(B, 1)), (uint64_t)most(sh(A, 0), sh(B, 0))))                        \
    X("w:ww", "min.relu.s16x2 D, A, B;",                                                                     \
      halves((uint64_t)most(0, least(sh(A, 1), sh(B, 1))), (uint64_t)most(0, least(sh(A, 0), sh(B, 0)))))    \
    X("w:ww", "max.relu.s16x2 D, A, B;",                                                                     \
      halves((uint64_t)most(0, most(sh(A, 1), sh(B, 1))), (uint64_t)most(0, most(sh(A, 0), sh(B, 0)))))      \
    X("w:www", "dp4a.u32.u32 D, A, B, C;", dot(A, B, C, 1, false, false, 0))                                 \
    X("w:www", "dp4a.u32.s32 D, A, B, C;", dot(A, B, C, 1, false, true, 0))                                  \
    X("w:www", "dp4a.s32.u32 D, A, B, C;", dot(A, B, C, 1, true, false, 0))                                  \
    X("w:www", "dp4a.s32.s32 D, A, B, C;", dot(A, B, C, 1, true, true, 0))                                   \
    X("w:www", "dp2a.lo.u32.u32 D, A, B, C;", dot(A, B, C, 2, false, false, 0))                              \
    X("w:www", "dp2a.lo.u32.s32 D, A, B, C;", dot(A, B, C, 2, false, true, 0))                               \
    X("w:www", "dp2a.lo.s32.u32 D, A, B, C;", dot(A, B, C, 2, true, false, 0))                               \
    X("w:www", "dp2a.lo.s32.s32 D, A, B, C;", dot(A, B, C, 2, true, true, 0))                                \
    X("w:www", "dp2a.hi.u32.u32 D, A, B, C;", dot(A, B, C, 2, false, false, 2))                              \
    X("w:www", "dp2a.hi.u32.s32 D, A, B, C;", dot(A, B, C, 2, false, true, 2))                               \
    X("w:www", "dp2a.hi.s32.u32 D, A, B, C;", dot(A, B, C, 2, true, false, 2))                               \
    X("w:www", "dp2a.hi.s32.s32 D, A, B, C;", dot(A, B, C, 2, true, true, 2))                                \
    X("w:wwi", "fns.b32 D, A, B, C;", nth_set(A, B, (int32_t)C))                                             \
    X("w:wi", "fns.b32 D, A, B, 1;", nth_set(A, B, 1))                                                       \
    X("w:wi", "fns.b32 D, A, B, -3;", nth_set(A, B, -3))                                                     \
    X("w:ii", "bmsk.clamp.b32 D, A, B;", bit_mask(A, B, false))                                              \
    X("w:ii", "bmsk.wrap.b32 D, A, B;", bit_mask(A, B, true))                                                \
    X("w:wi", "szext.clamp.u32 D, A, B;", extended(A, B, false, false))                                      \
    X("w:wi", "szext.clamp.s32 D, A, B;", extended(A, B, false, true))                                       \
    X("w:wi", "szext.wrap.u32 D, A, B;", extended(A, B, true, false))                                        \
    X("w:wi", "szext.wrap.s32 D, A, B;", extended(A, B, true, true))                                         \
    X("h:hh", "and.b16 D, A, B;", A &B)                                                                      \
    X("w:ww", "and.b32 D, A, B;", A &B)                                                                      \
    X("x:xx", "and.b64 D, A, B;", A &B)                                                                      \
    X("h:hh", "or.b16 D, A, B;", A | B)                                                                      \
    X("w:ww", "or.b32 D, A, B;", A | B)                                                                      \
    X("x:xx", "or.b64 D, A, B;", A | B)                                                                      \
    X("h:hh", "xor.b16 D, A, B;", A ^ B)                                                                     \
    X("w:ww", "xor.b32 D, A, B;", A ^ B)                                                                     \
    X("x:xx", "xor.b64 D, A, B;", A ^ B)                                                                     \
    X("h:h", "not.b16 D, A;", ~A & 0xffff)                                                                   \
    X("w:w", "not.b32 D, A;", W(~A))                                                                         \
    X("x:x", "not.b64 D, A;", ~A)                                                                            \
    X("h:h", "cnot.b16 D, A;", A == 0)                                                                       \
    X("w:w", "cnot.b32 D, A;", A == 0)                                                                       \
    X("x:x", "cnot.b64 D, A;", A == 0)                                                                       \
    X("p:pp", "and.pred D, A, B;", A &B)                                                                     \
    X("p:pp", "or.pred D, A, B;", A | B)                                                                     \
    X("p:pp", "xor.pred D, A, B;", A ^ B)                                                                    \
    X("p:p", "not.pred D, A;", !A)                                                                           \
    X("p:p", "mov.pred D, A;", A)                                                                            \
    X("w:wwp", "selp.b32 D, A, B, C;", C ? A : B)                                                            \
    X("w:wwp", "selp.b32 D, A, B, !C;", C ? B : A)                                                           \
    X("x:xxp", "selp.b64 D, A, B, C;", C ? A : B)                                                            \
    X("h:hhp", "selp.b16 D, A, B, C;", C ? A : B)                                                            \
    X("w:www", "slct.u32.s32 D, A, B, C;", C >> 31 ? B : A)                                                  \
    X("x:xxw", "slct.u64.s32 D, A, B, C;", C >> 31 ? B : A)                                                  \
    X("h:hhw", "slct.b16.s32 D, A, B, C;", C >> 31 ? B : A)                                                  \
    X("w:wwf", "slct.f32.f32 D, A, B, C;", C <= 0x7f800000 || C == 0x80000000 ? A : B)                       \
    X("x:xxf", "slct.b64.f32 D, A, B, C;", C <= 0x7f800000 || C == 0x80000000 ? A : B)                       \
    X("w:wwf", "slct.ftz.u32.f32 D, A, B, C;",                                                               \
      C <= 0x7f800000 || (C >= 0x80000000 && C < 0x80800000) ? A : B)                                        \
    X("w:wwi", "shf.l.wrap.b32 D, A, B, C;", funnel(A, B, C, true, true))                                    \
    X("w:wwi", "shf.l.clamp.b32 D, A, B, C;", funnel(A, B, C, true, false))                                  \
    X("w:wwi", "shf.r.wrap.b32 D, A, B, C;", funnel(A, B, C, false, true))                                   \
    X("w:wwi", "shf.r.clamp.b32 D, A, B, C;", funnel(A, B, C, false, false))                                 \
    X("w:www", "prmt.b32 D, A, B, C;", permuted(A, B, C))                                                    \
    X("w:www", "prmt.b32.f4e D, A, B, C;", permuted_mode(0, A, B, C))                                        \
    X("w:www", "prmt.b32.b4e D, A, B, C;", permuted_mode(1, A, B, C))                                        \
    X("w:www", "prmt.b32.rc8 D, A, B, C;", permuted_mode(2, A, B, C))                                        \
    X("w:www", "prmt.b32.ecl D, A, B, C;", permuted_mode(3, A, B, C))                                        \
    X("w:www", "prmt.b32.ecr D, A, B, C;", permuted_mode(4, A, B, C))                                        \
    X("w:www", "prmt.b32.rc16 D, A, B, C;", permuted_mode(5, A, B, C))                                       \
    X("p:wwwp", "lop3.or.b32 t0|D, A, B, C, 0x96, E;", logic3(A, B, C, 0x96) != 0 || v[3])                   \
    X("p:wwwp", "lop3.and.b32 t0|D, A, B, C, 0x80, E;", logic3(A, B, C, 0x80) != 0 && v[3])                  \
    X("p:wwwp", "lop3.and.b32 t0|D, A, B, C, 0x80, !E;", logic3(A, B, C, 0x80) != 0 && !v[3])                \
    X("w:xx", "add.cc.u64 l0, A, B; addc.u32 D, 0, 0;", (u128)A + B > UINT64_MAX)                            \
    X("w:ww", "add.cc.u32 t0, A, B; addc.u32 D, 0, 0;", A + B > UINT32_MAX)                                  \
    X("w:www", "add.cc.u32 t0, A, B; addc.cc.u32 t1, C, A; addc.u32 D, t1, 0;",                              \
      W(C + A + (A + B > UINT32_MAX) + (C + A + (A + B > UINT32_MAX) > UINT32_MAX)))                         \
    X("w:ww", "sub.cc.u32 t0, A, B; subc.u32 D, 0, 0;", W(A < B ? ~UINT64_C(0) : 0))                         \
    X("x:xx", "sub.cc.u64 l0, A, B; subc.u64 D, A, B;", A - B - (A < B))                                     \
    X("w:www", "sub.cc.u32 t0, A, B; subc.cc.u32 t1, C, A; subc.u32 D, 0, 0;",                               \
      W(C < A + (A < B) ? ~UINT64_C(0) : 0))                                                                 \
    X("w:www", "mad.lo.cc.u32 t0, A, B, C; madc.hi.u32 D, A, B, C;",                                         \
      W((A * B >> 32) + C + (W(A * B) + C > UINT32_MAX)))                                                    \
    X("w:www", "mad.hi.cc.u32 t0, A, B, C; addc.u32 D, 0, 0;", (A * B >> 32) + C > UINT32_MAX)               \
    X("w:www", "mad.lo.cc.u32 t0, A, B, C; madc.lo.cc.u32 t1, A, B, C; addc.u32 D, 0, 0;",                   \
      W(A *B) + C + (W(A * B) + C > UINT32_MAX) > UINT32_MAX)                                                \
    X("w:www", "mad.lo.cc.s32 t0, A, B, C; madc.hi.cc.s32 D, A, B, C;",                                      \
      W((uint64_t)(signed_of(A, 32, true) * signed_of(B, 32, true) >> 32) + C                                \
        + (W(A * B) + C > UINT32_MAX)))                                                                      \
    X("x:xxx", "mad.lo.cc.u64 l0, A, B, C; madc.hi.u64 D, A, B, C;",                                         \
      (uint64_t)((u128)A * B >> 64) + C + (A * B + C < C))                                                   \
    X("w:ww", "cvt.pack.sat.u16.s32 D, A, B;",                                                               \
      halves((uint64_t)clamp128((int32_t)A, 16, false), (uint64_t)clamp128((int32_t)B, 16, false)))          \
    X("w:ww", "cvt.pack.sat.s16.s32 D, A, B;",                                                               \
      halves((uint64_t)clamp128((int32_t)A, 16, true), (uint64_t)clamp128((int32_t)B, 16, true)))            \
    X("w:www", "cvt.pack.sat.u8.s32.b32 D, A, B, C;",                                                        \
      W(C << 16 | (uint64_t)clamp128((int32_t)A, 8, false) << 8 | (uint64_t)clamp128((int32_t)B, 8, false))) \
    X("w:www", "cvt.pack.sat.s8.s32.b32 D, A, B, C;",                                                        \
      W(C << 16 | ((uint64_t)clamp128((int32_t)A, 8, true) & 255) << 8                                       \
        | ((uint64_t)clamp128((int32_t)B, 8, true) & 255)))                                                  \
    X("w:www", "cvt.pack.sat.u4.s32.b32 D, A, B, C;",                                                        \
      W(C << 8 | (uint64_t)clamp128((int32_t)A, 4, false) << 4 | (uint64_t)clamp128((int32_t)B, 4, false)))  \
    X("w:www", "cvt.pack.sat.s4.s32.b32 D, A, B, C;",                                                        \
      W(C << 8 | ((uint64_t)clamp128((int32_t)A, 4, true) & 15) << 4                                         \
        | ((uint64_t)clamp128((int32_t)B, 4, true) & 15)))                                                   \
    X("w:w", "mov.b32 {s0, s1}, A; mov.b32 D, {s1, s0};", halves(A, A >> 16))                                \
    X("x:x", "mov.b64 {t0, t1}, A; mov.b64 D, {t1, t0};", A << 32 | A >> 32)                                 \
    X("x:x", "mov.b64 {s0, s1, s2, s3}, A; mov.b64 D, {s3, s2, s1, s0};",                                    \
      A << 48 | (A & 0xffff0000) << 16 | (A >> 16 & 0xffff0000) | A >> 48)                                   \
    X("w:w", "{ .reg .b8 y<4>; mov.b32 {y0, y1, y2, y3}, A; mov.b32 D, {y3, y2, y1, y0}; }",                 \
      (A & 255) << 24 | (A & 0xff00) << 8 | (A >> 8 & 0xff00) | A >> 24)                                     \
    X("x:xx", "{ .reg .b128 q; mov.b128 q, {A, B}; mov.b128 {l0, l1}, q; xor.b64 D, l0, l1; }", A ^ B)       \
    X("w:w", "{ .reg .b32 x; mov.b32 x, A; mov.b32 D, x; }", A)                                              \
    /* memory */                                                                                             \
    X("x:xx", "st.global.v2.b64 [P], {A, B}; ld.global.v2.b64 {l0, l1}, [P]; sub.s64 D, l0, l1;", A - B)     \
    X("w:w", "st.global.b32 [P], A; ld.global.u8 D, [P+1];", A >> 8 & 255)                                   \
    X("w:w", "st.global.b32 [P], A; ld.global.s8 D, [P+3];", W((int8_t)(A >> 24)))                           \
    X("x:w", "st.global.b32 [P], A; ld.global.s16 D, [P+2];", (uint64_t)(int16_t)(A >> 16))                  \
    X("w:w", "{ .reg .b16 x; st.global.b32 [P], A; ld.global.s16 x, [P+2]; mul.wide.u16 D, x, 3; }",         \
      3 * (A >> 16 & 0xffff))                                                                                \
    X("w:w", "{ .reg .b16 x; st.global.b32 [P], A; ld.global.s8 x, [P+3]; mov.b32 D, {x, 1}; }",             \
      65536 + (W((int8_t)(A >> 24)) & 0xffff))                                                               \
    X("x:w", "st.global.b32 [P], A; ld.global.s32 D, [P];", (uint64_t)(int32_t)A)                            \
    X("w:w", "{ .local .b32 v[2]; st.local.b32 [v+4], A; ld.local.b32 D, [v+4]; }", A)                       \
    X("w:w",                                                                                                 \
      "{ .local .b32 v[2]; .reg .b64 g; mov.b64 g, v; cvta.local.u64 g, g; st.b32 [g], A; ld.b32 D, [g]; }", \
      A)                                                                                                     \
    X("x:xxx",                                                                                               \
      "{ .reg .b128 q<3>; mov.b128 q0, {A, B}; mov.b128 q1, {B, C}; st.global.b128 [P], q0; "                \
      "atom.global.exch.b128 q2, [P], q1; ld.global.b64 l0, [P+8]; mov.b128 {l1, l2}, q2; xor.b64 D, l0, "   \
      "l1; }",                                                                                               \
      C ^ A)                                                                                                 \
    X("x:xxx",                                                                                               \
      "{ .reg .b128 q<3>; mov.b128 q0, {A, B}; mov.b128 q1, {B, C}; st.global.b128 [P], q0; "                \
      "atom.global.cas.b128 q2, [P], q0, q1; ld.global.b64 D, [P+8]; }",                                     \
      C)                                                                                                     \
    X("x:xxx",                                                                                               \
      "{ .reg .b128 q<3>; mov.b128 q0, {A, B}; not.b64 l0, A; mov.b128 q1, {l0, C}; st.global.b128 [P], "    \
      "q0; "                                                                                                 \
      "atom.global.cas.b128 q2, [P], q1, q1; ld.global.b64 D, [P]; }",                                       \
      A)                                                                                                     \
    X("x:xx", "{ .reg .b128 q; mov.b128 q, {A, B}; st.global.b128 [P], q; ld.global.b64 D, [P+8]; }", B)

static uint64_t eval_line(const form *p, const uint64_t *v)
{
    const uint64_t A = v[0], B = v[1], C = v[2];
    int n = p->op;
#define X(sig, text, expression) \
    if (n-- == 0) return (uint64_t)(expression);
    LINES(X)
#undef X
    return 0;
}

static void line_forms(void)
{
    int n = 0;
#define X(sig, text, expression) add_form(sig, eval_line, "%s", text)->op = n++;
    LINES(X)
#undef X
    for (int table = 1; table < 256; table += 9) {
        static const char *const sig = "w:www";
        form *p = add_form(sig, NULL, "lop3.b32 D, A, B, C, %d;", table);
        p->bits = table;
    }
}

static uint64_t eval_lop3(const form *p, const uint64_t *v)
{
    return logic3(v[0], v[1], v[2], (unsigned)p->bits);
}

/* --- comparisons of integers ------------------------------------------------------------------ */

static const char *const relations[] = { "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs" };

static uint64_t eval_setp(const form *p, const uint64_t *v) /* flags: 0 none, 1 and, 2 or, 3 xor; mode 1: q */
{
    s128 a = signed_of(v[0], p->bits, p->s), b = signed_of(v[1], p->bits, p->s);
    bool t = p->op == 0                 ? a == b
             : p->op == 1               ? a != b
             : p->op == 2 || p->op == 6 ? a < b
             : p->op == 3 || p->op == 7 ? a <= b
             : p->op == 4 || p->op == 8 ? a > b
                                        : a >= b,
         c = v[2];
    if (p->mode) t = !t;
    return p->flags == 1 ? t && c : p->flags == 2 ? t || c : p->flags == 3 ? t != c : t;
}

static uint64_t eval_set(const form *p, const uint64_t *v)
{
    const uint64_t negated_c[] = { v[0], v[1], !v[2] };
    return eval_setp(p, negated_c) ? p->g ? UINT64_C(0x3f800000) : UINT64_C(0xffffffff) : 0;
}

static void comparison_forms(void)
{
    static const char *const bools[] = { "", ".and", ".or", ".xor" };
    static const char letters[] = "hwx";
    for (int kind = 0; kind < 3; kind++) /* u, s, b */
        for (int w = 0; w < 3; w++)
            for (int op = 0; op < (kind == 0 ? 10 : kind == 1 ? 6 : 2); op++) {
                int logic = op & 3, bits = 16 << w;
                char sig[8] = { 'p', ':', letters[w], letters[w], logic ? 'p' : 0, 0 };
                form *p = add_form(sig, eval_setp, "setp.%s%s.%c%d %s, A, B%s;", relations[op], bools[logic],
                                   "usb"[kind], bits, (op + w) & 1 ? "c0|D" : "D", logic ? ", C" : "");
                p->op = op;
                p->bits = bits;
                p->s = kind == 1;
                p->flags = logic;
                p->mode = (op + w) & 1;
                sig[0] = 'w';
                p = add_form(sig, eval_set, "set.%s%s.%s.%c%d D, A, B%s;", relations[op], bools[logic],
                             op & 1 ? "f32"
                             : w    ? "u32"
                                    : "s32",
                             "usb"[kind], bits, logic ? ", !C" : "");
                p->op = op;
                p->bits = bits;
                p->s = kind == 1;
                p->flags = logic;
                p->g = op & 1 ? &F32 : NULL;
            }
}

/* --- atomics: what they leave ----------------------------------------------------------------- */

enum { AT_ADD, AT_MIN, AT_MAX, AT_INC, AT_DEC, AT_AND, AT_OR, AT_XOR, AT_EXCH, AT_CAS };

static uint64_t eval_atomic(const form *p, const uint64_t *v)
{
    uint64_t a = v[0], b = v[1], r = 0;
    s128 x = signed_of(a, p->bits, p->s), y = signed_of(b, p->bits, p->s);
    if (p->mode) return a; /* the old value */
    switch (p->op) {
    case AT_ADD: r = a + b; break;
    case AT_MIN: r = x < y ? a : b; break;
    case AT_MAX: r = x > y ? a : b; break;
    case AT_INC: r = a >= b ? 0 : a + 1; break;
    case AT_DEC: r = a == 0 || a > b ? b : a - 1; break;
    case AT_AND: r = a & b; break;
    case AT_OR: r = a | b; break;
    case AT_XOR: r = a ^ b; break;
    case AT_EXCH: r = b; break;
    default: r = a == (v[2] & mask_of(p->bits)) ? b : a; break;
    }
    return r & mask_of(p->bits);
}

static void atomic_forms(void)
{
    static const struct {
        const char *name, *types;
        int op;
    } ops[] = { { "add", "u32 s32 u64", AT_ADD },
                { "min", "u32 s32 u64 s64", AT_MIN },
                { "max", "u32 s32 u64 s64", AT_MAX },
                { "inc", "u32", AT_INC },
                { "dec", "u32", AT_DEC },
                { "and", "b32 b64", AT_AND },
                { "or", "b32 b64", AT_OR },
                { "xor", "b32 b64", AT_XOR },
                { "exch", "b32 b64", AT_EXCH },
                { "cas", "b16 b32 b64", AT_CAS } };
    static const char *const orders[] = { "", ".relaxed.gpu", ".acq_rel.cta", ".release.sys",
                                          ".acquire.cluster" };
    int turn = 0;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        for (const char *t = ops[k].types; *t; t += strcspn(t, " "), t += *t == ' ')
            for (int what = 0; what < 3; what++) { /* the old value; what is left; red */
                int bits = atoi(t + 1), n = (int)strcspn(t, " ");
                char letter = bits == 64   ? 'x'
                              : bits == 16 ? 'h'
                                           : 'w',
                     sig[8] = { letter, ':', letter, letter, 0 };
                bool cas = ops[k].op == AT_CAS;
                const char *order = orders[turn++ % 5];
                if (what == 2 && (ops[k].op >= AT_EXCH || strstr(order, "acq"))) continue;
                if (cas) sig[4] = letter;
                char old[8];
                snprintf(old, sizeof old, "%c%d", letter == 'x' ? 'l' : letter == 'h' ? 's' : 't', 0);
                /* cas compares with C, which the test makes equal to A half of the time: see below */
                const char *compare = cas ? "C, B" : "B";
                form *p = what == 2   ? add_form(sig, eval_atomic,
                                                 "st.global.b%d [P], A; red%s.global.%s.%.*s [P], %s; "
                                                   "ld.global.b%d D, [P];",
                                                 bits, order, ops[k].name, n, t, compare, bits)
                          : what == 1 ? add_form(sig, eval_atomic,
                                                 "st.global.b%d [P], A; atom%s.global.%s.%.*s %s, [P], "
                                                 "%s; ld.global.b%d D, [P];",
                                                 bits, order, ops[k].name, n, t, old, compare, bits)
                                      : add_form(sig, eval_atomic,
                                                 "st.global.b%d [P], A; atom%s.global.%s.%.*s D, [P], %s;",
                                                 bits, order, ops[k].name, n, t, compare);
                p->op = ops[k].op;
                p->bits = bits;
                p->s = *t == 's';
                p->mode = what == 0;
            }
}

/* --- video ------------------------------------------------------------------------------------ */

enum { VADD, VSUB, VABSDIFF, VMIN, VMAX, VSHL, VSHR, VSET, VAVRG, VMAD };
typedef struct video_form {
    int op, lanes, second, relation;
    bool d, a, b, sat, wrap;
    const char *ds, *as, *bs;
} video_form;
static video_form video_forms[600];
static int video_count;

static s128 picked(uint64_t v, const char *selector, bool s)
{
    if (!*selector) return signed_of(v, 32, s);
    int n = selector[1] - '0', bits = *selector == 'b' ? 8 : 16;
    return signed_of(v >> n * bits, bits, s);
}

static s128 video_step(const video_form *f, s128 a, s128 b)
{
    switch (f->op) {
    case VADD: return a + b;
    case VSUB: return a - b;
    case VABSDIFF: return a > b ? a - b : b - a;
    case VMIN: return a < b ? a : b;
    case VMAX: return a < b ? b : a;
    case VAVRG: {
        s128 t = a + b;
        if (t >= 0) t++;
        return t >= 0 || t % 2 == 0 ? t / 2 : (t - 1) / 2;
    }
    case VSET:
        return f->relation == 0   ? a == b
               : f->relation == 1 ? a != b
               : f->relation == 2 ? a < b
               : f->relation == 3 ? a <= b
               : f->relation == 4 ? a > b
                                  : a >= b;
    default: {
        unsigned n = f->wrap ? (unsigned)b % 32 : b > 32 ? 32 : (unsigned)b;
        if (f->op == VSHL) return a * ((s128)1 << n);
        s128 q = a / ((s128)1 << n);
        return a < 0 && a % ((s128)1 << n) ? q - 1 : q;
    }
    }
}

static uint64_t eval_video(const form *p, const uint64_t *v)
{
    const video_form *f = &video_forms[p->op];
    uint64_t a = v[0], b = v[1], c = v[2];
    if (f->lanes == 1) {
        s128 t = video_step(f, picked(a, f->as, f->a), picked(b, f->bs, f->b));
        int bits = !*f->ds ? 32 : *f->ds == 'b' ? 8 : 16;
        if (f->sat) t = clamp128(t, bits, f->d);
        uint64_t r = W(t);
        s128 x = signed_of(r, 32, f->d), y = signed_of(c, 32, f->d);
        if (f->second) return f->second == 1 ? W(r + c) : f->second == 2 ? (x < y ? r : c) : (x > y ? r : c);
        if (!*f->ds) return r;
        int at = (f->ds[1] - '0') * bits;
        return (c & ~(mask_of(bits) << at)) | (r & mask_of(bits)) << at;
    }
    int bits = 32 / f->lanes;
    uint64_t r = c;
    for (int k = 0; k < f->lanes; k++) {
        int from_a = *f->as ? f->as[f->lanes - k] - '0' : k,
            from_b = *f->bs ? f->bs[f->lanes - k] - '0' : f->lanes + k;
        if (*f->ds && !strchr(f->ds + 1, '0' + k)) continue;
        uint64_t both[2] = { a, b };
        s128 x = signed_of(both[from_a / f->lanes] >> from_a % f->lanes * bits, bits, f->a),
             y = signed_of(both[from_b / f->lanes] >> from_b % f->lanes * bits, bits, f->b),
             t = video_step(f, x, y);
        if (f->sat) t = clamp128(t, bits, f->d);
        if (f->second)
            r = W(r + (uint64_t)t);
        else
            r = (r & ~(mask_of(bits) << k * bits)) | ((uint64_t)t & mask_of(bits)) << k * bits;
    }
    return r;
}

static uint64_t eval_vmad(const form *p, const uint64_t *v) /* flags: 1 sat 2 po 4 -a 8 -c; mode: shift */
{
    bool sa = p->s, sb = p->s2, minus = p->flags & 4, minus_c = p->flags & 8;
    s128 t = picked(v[0], p->op & 1 ? "h1" : "", sa) * picked(v[1], p->op & 2 ? "b2" : "", sb);
    bool final = sa || sb || minus || minus_c;
    s128 c = signed_of(v[2], 32, final);
    t = minus ? -t : t;
    t += minus_c ? -c : c;
    if (p->flags & 2) t++;
    t >>= p->mode;
    return W(p->flags & 1 ? clamp128(t, 32, final) : t);
}

static void scalar_video(const char *name, int op)
{
    static const char *const d_selectors[] = { "", "b0", "b2", "h1", "h0" }, *const s_selectors[] = {
        "", "b1", "b3", "h0", "h1"
    };
    static const char *const seconds[] = { "", ".add", ".min", ".max" };
    for (int k = 0; k < 12; k++) {
        video_form *f = &video_forms[video_count];
        bool shift = op == VSHL || op == VSHR, set = op == VSET;
        *f = (video_form){ op,
                           1,
                           k < 4 ? k : 0,
                           k % 6,
                           k & 1,
                           k & 2,
                           !shift && k & 4,
                           k % 3 && !set,
                           k & 1,
                           d_selectors[k < 4 ? 0 : k % 5],
                           s_selectors[(k * 7 + 3) % 5],
                           s_selectors[(k * 3 + op) % 5] };
        if (set) f->d = false;
        bool three = f->second || *f->ds;
        char head[40];
        if (set)
            snprintf(head, sizeof head, "%s", name);
        else
            snprintf(head, sizeof head, "%s.%c32", name, f->d ? 's' : 'u');
        add_form("w:www", eval_video, "%s.%c32.%c32%s%s%s%s%s D%s%s, A%s%s, B%s%s%s;", head, f->a ? 's' : 'u',
                 f->b ? 's' : 'u', f->sat ? ".sat" : "", shift ? f->wrap ? ".wrap" : ".clamp" : "",
                 set ? "." : "", set ? relations[f->relation] : "", seconds[f->second], *f->ds ? "." : "",
                 f->ds, *f->as ? "." : "", f->as, *f->bs ? "." : "", f->bs, three ? ", C" : "")
            ->op = video_count++;
    }
}

static void lane_video(const char *name, int op, int lanes)
{
    static const char *const masks[2][3] = { { "", "h1", "h10" }, { "", "b20", "b3" } };
    static const char *const selectors[2][3] = { { "", "h21", "h30" }, { "", "b7410", "b0361" } };
    for (int k = 0; k < 9; k++) {
        video_form *f = &video_forms[video_count];
        int four = lanes == 4;
        *f = (video_form){ op,
                           lanes,
                           k % 3 == 2,
                           k % 6,
                           k & 1,
                           k & 2,
                           k & 4 || k == 3,
                           k % 3 == 1 && op != VSET,
                           false,
                           masks[four][k % 3],
                           selectors[four][k / 3],
                           selectors[four][(k + 1) % 3] };
        if (op == VSET) f->d = false;
        char head[40];
        if (op == VSET)
            snprintf(head, sizeof head, "%s%d", name, lanes);
        else
            snprintf(head, sizeof head, "%s%d.%c32", name, lanes, f->d ? 's' : 'u');
        add_form("w:www", eval_video, "%s.%c32.%c32%s%s%s%s D%s%s, A%s%s, B%s%s, C;", head, f->a ? 's' : 'u',
                 f->b ? 's' : 'u', f->sat ? ".sat" : "", op == VSET ? "." : "",
                 op == VSET ? relations[f->relation] : "", f->second ? ".add" : "", *f->ds ? "." : "", f->ds,
                 *f->as ? "." : "", f->as, *f->bs ? "." : "", f->bs)
            ->op = video_count++;
    }
}

static void all_video_forms(void)
{
    static const char *const names[] = { "vadd", "vsub", "vabsdiff", "vmin", "vmax",
                                         "vshl", "vshr", "vset",     "vavrg" };
    for (int op = VADD; op <= VSET; op++) scalar_video(names[op], op);
    for (int op = VADD; op <= VAVRG; op++) {
        if (op == VSHL || op == VSHR) continue;
        lane_video(names[op], op, 2);
        lane_video(names[op], op, 4);
    }
    for (int k = 0; k < 24; k++) {
        static const int flag_sets[] = { 0, 1, 2, 4, 5, 8, 9, 3 };
        int flags = flag_sets[k % 8], shift = k / 8 == 0 ? 0 : k / 8 == 1 ? 7 : 15;
        form *p = add_form(
            "w:www", eval_vmad, "vmad.s32.%c32.%c32%s%s%s D, %sA%s, B%s, %sC;", k & 1 ? 's' : 'u',
            k & 2 ? 's' : 'u', flags & 2 ? ".po" : "", flags & 1 ? ".sat" : "",
            shift == 7 ? ".shr7"
            : shift    ? ".shr15"
                       : "",
            flags & 4 ? "-" : "", k % 3 == 1 ? ".h1" : "", k % 3 == 2 ? ".b2" : "", flags & 8 ? "-" : "");
        p->s = k & 1;
        p->s2 = k & 2;
        p->flags = flags;
        p->mode = shift;
        p->op = k % 3;
    }
}

/* --- loads, stores and what moves nothing: the value comes back ------------------------------- */

/* P: global, S: shared, H: a cache policy; the value A is stored first or by the form itself. */
static const char *const same_value[] = {
    "ld.u32 D, [P]",
    "ld.global.ca.u32 D, [P]",
    "ld.global.cg.u32 D, [P]",
    "ld.global.cs.u32 D, [P]",
    "ld.global.lu.u32 D, [P]",
    "ld.global.cv.u32 D, [P]",
    "ld.volatile.global.u32 D, [P]",
    "ld.weak.global.u32 D, [P]",
    "ld.relaxed.gpu.global.u32 D, [P]",
    "ld.relaxed.cluster.global.u32 D, [P]",
    "ld.acquire.gpu.global.u32 D, [P]",
    "ld.acquire.sys.u32 D, [P]",
    "ld.mmio.relaxed.sys.global.u32 D, [P]",
    "ld.acquire.gpu.global.v4.u32 {D, t1, t2, t3}, [P]",
    "ld.global.L1::evict_last.u32 D, [P]",
    "ld.global.L1::no_allocate.u32 D, [P]",
    "ld.global.L2::64B.u32 D, [P]",
    "ld.global.L2::128B.u32 D, [P]",
    "ld.global.L2::256B.u32 D, [P]",
    "ld.global.L2::cache_hint.u32 D, [P], H",
    "ld.global.L1::evict_first.L2::cache_hint.L2::128B.v4.u32 {t0, D, t2, t3}, [P], H",
    "ld.global.v2.b32 {t0, D}, [P]",
    "ld.global.v4.f32 {t0, t1, t2, D}, [P]",
    "ld.global.v8.b32 {t0, t1, t2, t3, t4, t5, t6, D}, [P]",
    "ld.global.v8.f32 {t0, _, t2, _, D, _, t6, _}, [P]",
    "ld.global.v4.b64 {l0, l1, l2, l3}, [P]; cvt.u32.u64 D, l3",
    "ld.global.L2::evict_last.v8.b32 {t0, D, t2, t3, t4, t5, t6, t7}, [P]",
    "ld.global.nc.L1::no_allocate.L2::evict_last.v8.f32 {D, t1, t2, t3, t4, t5, t6, t7}, [P]",
    "{ .reg .b128 q; ld.relaxed.gpu.global.b128 q, [P]; mov.b128 {l0, l1}, q; } cvt.u32.u64 D, l1",
    "{ .reg .b128 q; ld.global.nc.b128 q, [P]; mov.b128 {l0, l1}, q; } cvt.u32.u64 D, l0",
    "ld.global.nc.f32 D, [P]",
    "ld.global.nc.v4.f32 {t0, D, t2, t3}, [P]",
    "ld.global.ca.nc.u32 D, [P]",
    "ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {D, t1, t2, t3}, [P]",
    "ld.global.nc.L2::cache_hint.v4.u32 {D, t1, t2, t3}, [P], H",
    "ld.global.u32 D, [P].unified",
    "ldu.global.u32 D, [P]",
    "ldu.global.v4.f32 {t0, t1, D, t3}, [P]",
    "ld.shared.u32 D, [S]",
    "ld.volatile.shared.u32 D, [S]",
    "ld.relaxed.cta.shared.u32 D, [S]",
    "ld.shared::cta.u32 D, [S]",
    "ld.shared::cluster.u32 D, [S]",
    "ld.shared.v4.f32 {t0, t1, t2, D}, [S]",
    "st.global.f32 [P+4], A; ld.global.b32 D, [P+4]",
    "st.global.wb.u32 [P+4], A; ld.global.b32 D, [P+4]",
    "st.global.cg.u32 [P+4], A; ld.global.b32 D, [P+4]",
    "st.global.cs.u32 [P+4], A; ld.global.b32 D, [P+4]",
    "st.global.wt.u32 [P+4], A; ld.global.b32 D, [P+4]",
    "st.global.v4.f32 [P], {A, A, A, A}; ld.global.b32 D, [P+12]",
    "st.global.v8.f32 [P], {A, A, A, A, A, A, A, A}; ld.global.b32 D, [P+20]",
    "cvt.u64.u32 l0, A; st.global.v4.b64 [P], {0, 0, 0, l0}; ld.global.b32 D, [P+24]",
    "st.relaxed.gpu.global.u32 [P], A; ld.global.b32 D, [P]",
    "st.release.gpu.global.u32 [P], A; ld.global.b32 D, [P]",
    "st.release.cluster.shared::cluster.u32 [S], A; ld.shared.b32 D, [S]",
    "st.mmio.relaxed.sys.global.u32 [P], A; ld.global.b32 D, [P]",
    "st.global.L1::no_allocate.v4.u32 [P], {A, A, A, A}; ld.global.b32 D, [P+8]",
    "st.global.L2::cache_hint.u32 [P], A, H; ld.global.b32 D, [P]",
    "st.global.L2::evict_last.v8.f32 [P], {A, A, A, A, A, A, A, A}; ld.global.b32 D, [P+28]",
    "st.volatile.shared.u32 [S+4], A; ld.shared.b32 D, [S+4]",
    "st.shared::cluster.u32 [S+8], A; ld.shared.b32 D, [S+8]",
    "st.shared.b16 [S], A; shr.u32 t0, A, 16; st.shared.u8 [S+2], t0; shr.u32 t0, A, 24; st.shared.s8 [S+3], "
    "t0; "
    "ld.shared.b32 D, [S]",
    "atom.add.u32 D, [P], 1",
    "atom.shared.add.u32 D, [S], 1",
    "atom.cta.global.add.u32 D, [P], 1",
    "atom.release.cluster.shared::cluster.add.u32 D, [S], 1",
    "atom.global.add.L2::cache_hint.u32 D, [P], 1, H",
    "red.shared.add.u32 [S], 0; ld.shared.b32 D, [S]",
    "red.relaxed.cluster.shared::cluster.add.u32 [S], 0; ld.shared.b32 D, [S]",
    "red.release.gpu.global.add.u32 [P], 0; ld.global.b32 D, [P]",
    "mov.b16 s0, {c0, c1}; mov.b32 D, A",
    "membar.cta; membar.gl; membar.sys; membar.proxy.alias; mov.b32 D, A",
    "fence.sc.gpu; fence.acq_rel.cta; fence.acq_rel.cluster; fence.sc.cluster; mov.b32 D, A",
    "fence.acquire.gpu; fence.release.sys; fence.proxy.alias; fence.proxy.async; mov.b32 D, A",
    "fence.proxy.async.shared::cta; fence.proxy.async.global; fence.mbarrier_init.release.cluster; mov.b32 "
    "D, A",
    "fence.proxy.tensormap::generic.release.gpu; mov.b32 D, A",
    "fence.acquire.sync_restrict::shared::cluster.cluster; fence.release.sync_restrict::shared::cta.cluster; "
    "mov.b32 D, A",
    "prefetch.global.L1 [P]; prefetch.global.L2 [P]; prefetch.L2 [P]; prefetchu.L1 [P]; mov.b32 D, A",
    "prefetch.global.L2::evict_last [P]; prefetch.global.L2::evict_normal [P]; mov.b32 D, A",
    "ld.param.b64 l0, [out]; and.b64 l0, l0, -128; applypriority.global.L2::evict_normal [l0], 128; "
    "mov.b32 D, A",
    "pmevent 3; pmevent.mask 3; mov.b32 D, A",
    "nanosleep.u32 1; mov.b32 D, A",
    "ld.param.b64 l0, [out]; sub.u64 l0, l0, l0; cvt.u32.u64 t0, l0; or.b32 D, A, t0"
};

static uint64_t eval_same(const form *p, const uint64_t *v)
{
    (void)p;
    return v[0];
}

static void same_value_forms(void)
{
    for (size_t k = 0; k < sizeof same_value / sizeof *same_value; k++) {
        bool shared = strstr(same_value[k], "[S") != NULL;
        const char *bytes = "{ .reg .b8 c<2>; cvt.u8.u32 c0, A; cvt.u8.u32 c1, A; ";
        add_form("w:w", eval_same, "%s{ .reg .b64 H; .reg .b32 S, T; mov.b64 H, 0; %s %s; }%s",
                 strstr(same_value[k], "{c0") ? bytes : "",
                 shared ? ".shared .align 16 .b8 v[4096]; mov.u32 S, v; mov.u32 T, %tid.x; "
                          "mad.lo.u32 S, T, 16, S; "
                          "st.shared.v4.b32 [S], {A, A, A, A};"
                        : "st.global.v8.b32 [P], {A, A, A, A, A, A, A, A};",
                 same_value[k], strstr(same_value[k], "{c0") ? " }" : "");
    }
}

static void integer_forms(void)
{
    arithmetic_forms();
    line_forms();
    for (int k = 0; k < form_count; k++)
        if (!forms[k].eval) forms[k].eval = eval_lop3;
    comparison_forms();
    atomic_forms();
    all_video_forms();
    same_value_forms();
}
