/* convert.h - the forms of cvt in tests/driver/forms.c. */

static const struct {
    const char *name;
    char letter;
    int bits;
    bool s;
} integers[] = { { "u8", 'w', 8, 0 },   { "s8", 'w', 8, 1 },   { "u16", 'h', 16, 0 }, { "s16", 'h', 16, 1 },
                 { "u32", 'w', 32, 0 }, { "s32", 'w', 32, 1 }, { "u64", 'x', 64, 0 }, { "s64", 'x', 64, 1 } };
static const struct {
    const char *name;
    char letter;
} floats[] = { { "f16", 'k' }, { "bf16", 'b' }, { "f32", 'f' }, { "f64", 'g' } };
static const char *const roundings[] = { "rn", "rz", "rm", "rp", "rna" };

/* An integer of p->bits as a register holds it: bytes are extended to 32 bits. */
static uint64_t in_register(int bits, bool s, s128 v)
{
    return bits == 8 ? (s ? W(v) : (uint64_t)v & 255) : (uint64_t)v & mask_of(bits);
}

static uint64_t eval_to_integer(const form *p, const uint64_t *v)
{
    uint64_t x = p->flags & FTZ ? flushed(p->f, v[0]) : v[0];
    num a = get(p->f, x);
    if (a.kind == NAN_) { /* 0, or the top bit alone when 64 bits are involved */
        if (p->f == &F64 && p->bits < 32) skip_case = true;
        return p->bits == 64 || p->f == &F64 ? UINT64_C(1) << (p->bits - 1) : 0;
    }
    return in_register(p->bits, p->s, integer_of(a, p->mode, p->bits, p->s));
}

static uint64_t eval_from_integer(const form *p, const uint64_t *v)
{
    return finished(p, p->f, whole_number(signed_of(v[0], p->bits, p->s)));
}

static uint64_t eval_integers(const form *p, const uint64_t *v) /* bits2, s2: the source */
{
    s128 a = signed_of(v[0], p->bits2, p->s2);
    if (p->flags & SAT) a = clamp128(a, p->bits, p->s);
    return in_register(p->bits, p->s, signed_of((uint64_t)a, p->bits, p->s));
}

/* f: to; g: from; op 1: to a whole number */
static uint64_t eval_floats(const form *p, const uint64_t *v)
{
    uint64_t x = p->flags & FTZ && p->g == &F32 ? flushed(p->g, v[0]) : v[0],
             sign = UINT64_C(1) << (p->f->bits - 1), r;
    num a = get(p->g, x);
    if (p->op && a.kind == FINITE) {
        int up = a.e < -70 - top_bit(a.m) ? 0 : 1; /* far below one: 0 or 1, the rounding says which */
        u128 n = up ? a.e >= 0 ? a.m : rounded(a, 0, p->mode)
                    : (u128)(p->mode == RP   ? !a.neg
                             : p->mode == RM ? a.neg
                                             : 0);
        if (a.e < 0) a = (num){ n ? FINITE : ZERO, a.neg, false, n, 0 };
    }
    if (a.kind == NAN_ && p->f == &TF32 && p->mode == RNA)
        return v[0] & 0xffffe000; /* as the assembler folds */
    if (a.kind == NAN_ && p->f == &F64) return p->flags & SAT ? 0 : F64.nan;
    r = put(p->f, a, p->op ? RZ : p->mode, p->flags & FINITE_);
    if (p->flags & FTZ && p->f == &F32) r = flushed(p->f, r);
    if (p->flags & SAT) r = a.kind == NAN_ || r & sign ? 0 : r > one_of(p->f) ? one_of(p->f) : r;
    if (p->flags & RELU && a.kind != NAN_ && r & sign) r = 0;
    return p->f == &TF32 ? r << 13 : r;
}

static void plain_conversions(void)
{
    for (int i = 0; i < 8; i++)
        for (int f = 0; f < 4; f++)
            for (int mode = 0; mode < 4; mode++)
                for (int flag = 0; flag < 2; flag++) {
                    if (f == 1 && (flag || integers[i].bits == 8)) continue;  /* bf16: as ptxas has it */
                    char sig[8] = { integers[i].letter, ':', floats[f].letter, 0 };
                    bool ftz = flag && floats[f].letter == 'f';
                    form *p =
                        add_form(sig, eval_to_integer, "cvt.%si%s%s.%s.%s D, A;", roundings[mode],
                                 ftz ? ".ftz" : "", flag ? ".sat" : "", integers[i].name, floats[f].name);
                    p->f = float_of(floats[f].letter);
                    p->bits = integers[i].bits;
                    p->s = integers[i].s;
                    p->mode = mode;
                    p->flags = ftz ? FTZ : 0;
                    char back[8] = { floats[f].letter, ':', integers[i].letter, 0 };
                    p = add_form(back, eval_from_integer, "cvt.%s%s.%s.%s D, A;", roundings[mode],
                                 flag ? ".sat" : "", floats[f].name, integers[i].name);
                    p->f = float_of(floats[f].letter);
                    p->bits = integers[i].bits;
                    p->s = integers[i].s;
                    p->mode = mode;
                    p->flags = flag ? SAT : 0;
                }
    for (int d = 0; d < 8; d++)
        for (int a = 0; a < 8; a++)
            for (int sat = 0; sat < 2; sat++) {
                char sig[8] = { integers[d].letter, ':', integers[a].letter, 0 };
                form *p = add_form(sig, eval_integers, "cvt%s.%s.%s D, A;", sat ? ".sat" : "",
                                   integers[d].name, integers[a].name);
                p->bits = integers[d].bits;
                p->s = integers[d].s;
                p->bits2 = integers[a].bits;
                p->s2 = integers[a].s;
                p->flags = sat ? SAT : 0;
            }
}

static form *float_conversion(int d, int a, const char *rounding, int mode, int flags, int op)
{
    char sig[8] = { floats[d].letter, ':', floats[a].letter, 0 };
    form *p = add_form(sig, eval_floats, "cvt%s%s%s%s%s%s.%s.%s D, A;", *rounding ? "." : "", rounding,
                       flags & FTZ ? ".ftz" : "", flags & SAT ? ".sat" : "", flags & RELU ? ".relu" : "",
                       flags & FINITE_ ? ".satfinite" : "", floats[d].name, floats[a].name);
    p->f = float_of(floats[d].letter);
    p->g = float_of(floats[a].letter);
    p->mode = mode;
    p->flags = flags;
    p->op = op;
    return p;
}

static void float_conversions(void)
{
    static const char *const whole[] = { "rni", "rzi", "rmi", "rpi" };
    for (int d = 0; d < 4; d++)
        for (int a = 0; a < 4; a++) {
            bool narrower = a > d || (a + d == 1 && a != d);
            for (int sat = 0; sat <= (a == 1 || d == 1 ? 0 : SAT); sat += SAT) {
                if (a == d) {
                    for (int mode = 0; mode < 4; mode++) float_conversion(d, a, whole[mode], mode, sat, 1);
                    if (d == 2) float_conversion(d, a, "rmi", RM, sat | FTZ, 1);
                } else if (narrower) {
                    for (int mode = 0; mode < 4; mode++)
                        float_conversion(d, a, roundings[mode], mode, sat, 0);
                    if (d == 2 || a == 2) float_conversion(d, a, "rn", RN, sat | FTZ, 0);
                } else {
                    float_conversion(d, a, "", RN, sat, 0);
                    if (d == 2 || a == 2) float_conversion(d, a, "", RN, sat | FTZ, 0);
                }
            }
            if (d < 2 && a == 2)
                for (int mode = 0; mode < 2; mode++) {
                    float_conversion(d, a, roundings[mode], mode, RELU, 0);
                    float_conversion(d, a, roundings[mode], mode, RELU | FINITE_, 0);
                    float_conversion(d, a, roundings[mode], mode, FINITE_, 0);
                }
        }
    for (int k = 0; k < 10; k++) { /* tf32: rna has no relu */
        int mode = k < 4 ? RN : k < 8 ? RZ : RNA;
        int flags = (k & 1 ? FINITE_ : 0) | (k < 8 && k & 2 ? RELU : 0);
        form *p = add_form("w:f", eval_floats, "cvt.%s%s%s.tf32.f32 D, A;", roundings[mode],
                           flags & RELU ? ".relu" : "", flags & FINITE_ ? ".satfinite" : "");
        p->f = &TF32;
        p->g = &F32;
        p->mode = mode;
        p->flags = flags;
    }
}

/* --- packed ----------------------------------------------------------------------------------- */

static uint64_t shrunk(const form *p, const fmt *from, uint64_t x)
{
    num a = get(from, x);
    uint64_t sign = UINT64_C(1) << (p->f->bits - 1), r = put(p->f, a, p->mode, p->flags & FINITE_);
    return p->flags & RELU && a.kind != NAN_ && r & sign ? 0 : r;
}

static uint64_t eval_pack(const form *p, const uint64_t *v) /* g: of a pair, or f32 twice; bits: of a place */
{
    if (p->g == &F32) return shrunk(p, &F32, v[0]) << p->bits | shrunk(p, &F32, v[1]);
    return shrunk(p, p->g, v[0] >> 16) << p->bits | shrunk(p, p->g, v[0] & 0xffff);
}

static uint64_t eval_unpack(const form *p, const uint64_t *v) /* to f16x2 from g */
{
    uint64_t r = 0;
    for (int k = 1; k >= 0; k--) {
        uint64_t x = v[0] >> k * p->bits & mask_of(p->g->bits);
        r = r << 16 | shrunk(p, p->g, x);
    }
    return r;
}

static uint64_t eval_exponent(const form *p,
                              const uint64_t *v) /* to ue8m0: mode RZ or RP, of the magnitude */
{
    uint64_t r = 0;
    for (int k = 0; k < 2; k++) {
        uint64_t x = p->g == &F32 ? v[k] : k ? v[0] << 16 & 0xffff0000 : v[0] & 0xffff0000;
        num a = get(&F32, x & 0x7fffffff);
        uint64_t e = 0;
        if (a.kind == NAN_)
            e = 255;
        else if (a.kind == INF)
            e = p->flags & FINITE_ ? 254 : 255;
        else if (a.kind == FINITE) {
            int n = a.e + top_bit(a.m);
            bool power = (a.m & (a.m - 1)) == 0;
            if (p->mode == RP && !power) n++;
            e = n < -127 ? 0 : (uint64_t)(n + 127);
            if (e == 255 && p->flags & FINITE_) e = 254;
        }
        r = r << 8 | e;
    }
    return r;
}

static uint64_t eval_power(const form *p, const uint64_t *v) /* ue8m0x2 to bf16x2 */
{
    uint64_t r = 0;
    (void)p;
    for (int k = 1; k >= 0; k--) {
        uint64_t e = v[0] >> 8 * k & 255;
        num two = { FINITE, false, false, 1, (int)e - 127 };
        r = r << 16 | (e == 255 ? BF16.nan : put(&BF16, two, RN, false));
    }
    return r;
}

/* Stochastic: one of the two neighbours, the exact value if there is one; op: elements. */
static bool neighbours(const form *p, const uint64_t *v, uint64_t have, uint64_t want)
{
    (void)want;
    for (int k = 0; k < p->op; k++) {
        uint64_t x = have >> (p->op - 1 - k) * p->bits & mask_of(p->bits);
        num a = get(&F32, p->op == 2 ? v[k] : k & 1 ? v[0] : v[1]);
        form down = *p, up = *p;
        uint64_t source = p->op == 2 ? v[k] : k & 1 ? v[0] : v[1];
        (void)a;
        down.mode = RZ;
        up.mode = source >> 31 ? RM : RP;
        if (x != shrunk(&down, &F32, source) && x != shrunk(&up, &F32, source)) return false;
    }
    return true;
}

static uint64_t eval_stochastic(const form *p, const uint64_t *v) /* the nearer: mostly not the one */
{
    (void)p;
    (void)v;
    return UINT64_C(1) << 63;
}

/* Without random bits: towards zero. */
static uint64_t eval_truncated(const form *p, const uint64_t *v)
{
    for (int k = 0; k < 2; k++) { /* beyond the greatest: infinity is a neighbour too */
        uint64_t x = put(p->f, get(&F32, v[k] & 0x7fffffff), RZ, true);
        if (x == p->f->top) skip_case = true;
    }
    return shrunk(p, &F32, v[0]) << 16 | shrunk(p, &F32, v[1]);
}

static void packed_conversions(void)
{
    static const struct {
        const char *name;
        const fmt *f;
        char letter;
        int bits;
    } small[] = { { "f16x2", &F16, 'w', 16 },  { "bf16x2", &BF16, 'w', 16 }, { "e4m3x2", &E4M3, 'h', 8 },
                  { "e5m2x2", &E5M2, 'h', 8 }, { "e2m1x2", &E2M1, 'c', 4 },  { "e2m3x2", &E2M3, 'h', 8 },
                  { "e3m2x2", &E3M2, 'h', 8 } };
    for (int k = 0; k < 7; k++)
        for (int mode = 0; mode < (k < 2 ? 2 : 1); mode++)
            for (int flags = 0; flags < 4; flags++) {
                bool fin = flags & 1, relu = flags & 2;
                char sig[8] = { small[k].letter, ':', 'f', 'f', 0 };
                if (k >= 2 && !fin) continue;
                form *p = add_form(sig, eval_pack, "cvt.%s%s%s.%s.f32 D, A, B;", roundings[mode],
                                   relu ? ".relu" : "", fin ? ".satfinite" : "", small[k].name);
                p->f = small[k].f;
                p->g = &F32;
                p->mode = mode;
                p->bits = small[k].bits;
                p->flags = (relu ? RELU : 0) | (fin ? FINITE_ : 0);
                if (k < 2) continue;
                char back[8] = { 'w', ':', small[k].letter, 0 };
                form *q = add_form(back, eval_unpack, "cvt.rn%s.f16x2.%s D, A;", relu ? ".relu" : "",
                                   small[k].name);
                q->f = &F16;
                q->g = small[k].f;
                q->mode = RN;
                q->bits = small[k].bits;
                q->flags = relu ? RELU : 0;
                if (k >= 4) continue;
                sig[2] = 'K';
                sig[3] = 0;
                q = add_form(sig, eval_pack, "cvt.rn%s.satfinite.%s.f16x2 D, A;", relu ? ".relu" : "",
                             small[k].name);
                *q = (form){ .eval = q->eval, .f = small[k].f, .g = &F16, .bits = 8, .flags = p->flags };
                snprintf(q->text, sizeof q->text, "cvt.rn%s.satfinite.%s.f16x2 D, A;", relu ? ".relu" : "",
                         small[k].name);
                snprintf(q->sig, sizeof q->sig, "%s", sig);
            }
    for (int k = 0; k < 8; k++) {
        bool pair = k & 4;
        form *p =
            add_form(pair ? "h:B" : "h:ff", eval_exponent, "cvt.%s%s.ue8m0x2.%s D, A%s;", k & 1 ? "rp" : "rz",
                     k & 2 ? ".satfinite" : "", pair ? "bf16x2" : "f32", pair ? "" : ", B");
        p->g = pair ? &BF16 : &F32;
        p->mode = k & 1 ? RP : RZ;
        p->flags = k & 2 ? FINITE_ : 0;
    }
    add_form("w:h", eval_power, "cvt.rn.bf16x2.ue8m0x2 D, A;");
    static const struct {
        const char *name;
        const fmt *f;
        char letter;
        int bits, count;
    } random_[] = { { "f16x2", &F16, 'w', 16, 2 },  { "bf16x2", &BF16, 'w', 16, 2 },
                    { "e4m3x4", &E4M3, 'w', 8, 4 }, { "e5m2x4", &E5M2, 'w', 8, 4 },
                    { "e2m1x4", &E2M1, 'h', 4, 4 }, { "e2m3x4", &E2M3, 'w', 8, 4 },
                    { "e3m2x4", &E3M2, 'w', 8, 4 } };
    for (int k = 0; k < 7; k++)
        for (int flags = 0; flags < 4; flags++) {
            bool fin = flags & 1, relu = flags & 2, four = random_[k].count == 4;
            char sig[8] = { random_[k].letter, ':', 'f', 'f', 'w', 0 };
            if (four && !fin) continue;
            form *p = add_form(sig, eval_stochastic, "cvt.rs%s%s.%s.f32 D, %s, C;", relu ? ".relu" : "",
                               fin ? ".satfinite" : "", random_[k].name, four ? "{B, A, B, A}" : "A, B");
            p->f = random_[k].f;
            p->g = &F32;
            p->op = random_[k].count;
            p->bits = random_[k].bits;
            p->good = neighbours;
            p->flags = (relu ? RELU : 0) | (fin ? FINITE_ : 0);
            if (four) continue;
            sig[4] = 0;
            p = add_form(sig, eval_truncated, "cvt.rs%s%s.%s.f32 D, A, B, 0;", relu ? ".relu" : "",
                         fin ? ".satfinite" : "", random_[k].name);
            p->f = random_[k].f;
            p->mode = RZ;
            p->flags = (relu ? RELU : 0) | (fin ? FINITE_ : 0);
        }
}

static void conversion_forms(void)
{
    plain_conversions();
    float_conversions();
    packed_conversions();
}
