/* route.c - the choice of experts, its sorting by expert, and the way back, against the rules in double.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include <math.h>

#include "../kerneltest.h"
#include "../reference/blocks.h"

enum { EXPERTS = 512, CHOSEN = 16 };

typedef struct routing {
    uint32_t *choices, *offsets, *rows, *places;
    float *weights;
} routing;

/* p of the manual, of one token. */
static double value_of(const ptxk_route_desc *d, const float *s, uint32_t e, double sum, double most) {
    if (d->kind == PTXK_ROUTE_SIGMOID) return 1 / (1 + exp(-(double)s[e]));
    return exp((double)s[e] - most) / sum;
}

/* One token: choices in order, weights within the bound. */
static int right_token(const ptxk_route_desc *d, const float *s, const float *bias, const uint32_t *choice,
                       const float *weight, char *detail) {
    double most = -INFINITY, sum = 0, chosen_sum = 0, key[EXPERTS], want,
           scale = d->scale > 0 ? (double)d->scale : 1;
    double chosen_most = -INFINITY, bound;
    uint32_t e, j, i;
    int biased = (d->flags & PTXK_ROUTE_BIAS) != 0, used[EXPERTS] = {0}, nan = 0;
    unsigned char excluded[EXPERTS] = {0};
    for (e = 0; e < d->experts; e++) {
        if (isnan(s[e]))
            nan = 1;
        else if ((double)s[e] > most)
            most = (double)s[e];
    }
    for (e = 0; e < d->experts; e++)
        if (!isnan(s[e])) sum += exp((double)s[e] - most);
    for (e = 0; e < d->experts; e++) {
        key[e] = (double)s[e];
        if (biased)
            key[e] = (d->kind == PTXK_ROUTE_SOFTMAX_CHOSEN ? key[e] : value_of(d, s, e, sum, most))
                     + (double)bias[e];
        if (isnan(key[e]) || (nan && biased && d->kind == PTXK_ROUTE_SOFTMAX)) key[e] = -INFINITY;
    }
    if (d->groups) {
        uint32_t size = d->experts / d->groups, g, count = 0;
        double group[32];
        unsigned char taken[32] = {0};
        for (j = 0; j < d->chosen; j++)
            if (choice[j] < d->experts) taken[choice[j] / size] = 1;
        for (g = 0; g < d->groups; g++) {
            double first = -INFINITY, second = -INFINITY;
            for (e = g * size; e < (g + 1) * size; e++) {
                second = fmax(second, fmin(first, key[e]));
                first = fmax(first, key[e]);
            }
            group[g] = biased && size > 1 ? first + second : first;
            count += taken[g];
        }
        if (count > d->chosen_groups) return snprintf(detail, 160, "of %u groups", count), 0;
        for (g = 0; g < d->groups; g++) { /* excluded: of a group that is not surely among the chosen */
            uint32_t before = 0, h;
            for (h = 0; h < d->groups; h++)
                before += group[h] > group[g] + 2e-6 * (1 + fabs(group[g]));
            if (taken[g] && before >= d->chosen_groups)
                return snprintf(detail, 160, "group %u is one too many", g), 0;
            for (h = 0, before = 0; h < d->groups; h++)
                before += group[h] >= group[g] - 2e-6 * (1 + fabs(group[g]));
            for (e = g * size; e < (g + 1) * size; e++) excluded[e] = !taken[g] && before > d->chosen_groups;
        }
    }
    for (j = 0; j < d->chosen; j++) {
        double slack = biased ? 1e-6 * (1 + fabs(key[choice[j] % d->experts])) : 0;
        if (choice[j] >= d->experts || used[choice[j]]++)
            return snprintf(detail, 160, "choice %u: %u", j, choice[j]), 0;
        for (e = 0; e < d->experts; e++) {
            int after = 1; /* whether e may come behind */
            for (i = 0; i < j; i++) after = after && choice[i] != e;
            if (!after || e == choice[j] || excluded[e]) continue;
            if (isnan(s[choice[j]]) && !isnan(s[e]) && !(biased && d->kind == PTXK_ROUTE_SOFTMAX)) after = 0;
            if (key[e] > key[choice[j]] + slack) after = 0;
            if (!biased && !isnan(s[e]) && !(s[e] < s[choice[j]] || s[e] > s[choice[j]]) && e < choice[j])
                after = 0;
            if (!after)
                return snprintf(detail, 160, "choice %u is %u (%.9g), before %u (%.9g)", j, choice[j],
                                key[choice[j]], e, key[e]),
                       0;
        }
        if ((double)s[choice[j]] > chosen_most) chosen_most = (double)s[choice[j]];
    }
    if (d->kind == PTXK_ROUTE_SOFTMAX_CHOSEN) most = chosen_most;
    if (d->kind == PTXK_ROUTE_SOFTMAX_CHOSEN || d->flags & PTXK_ROUTE_NORMALIZE) nan = 0;
    for (j = 0; j < d->chosen; j++) {
        if (isnan(s[choice[j]])) nan = 1;
        chosen_sum += d->kind == PTXK_ROUTE_SIGMOID ? value_of(d, s, choice[j], 1, 0)
                                                    : exp((double)s[choice[j]] - most);
    }
    if (d->kind == PTXK_ROUTE_SOFTMAX_CHOSEN || d->flags & PTXK_ROUTE_NORMALIZE) sum = chosen_sum;
    for (j = 0; j < d->chosen; j++) {
        double x = (double)s[choice[j]];
        int of_sum = d->kind != PTXK_ROUTE_SIGMOID || d->flags & PTXK_ROUTE_NORMALIZE;
        if ((nan && of_sum) || isnan(s[choice[j]])) {
            if (!isnan(weight[j]))
                return snprintf(detail, 160, "weight %u is %g, not NaN", j, (double)weight[j]), 0;
            continue;
        }
        want = d->kind == PTXK_ROUTE_SIGMOID ? value_of(d, s, choice[j], 1, 0) : exp(x - most);
        if (of_sum) want = sum > 0 ? want / sum : 0;
        want *= scale;
        bound = want * (0x1p-21 + 0x1p-23 * (d->kind == PTXK_ROUTE_SIGMOID ? fabs(x) : most - x)) + 0x1p-120;
        if (of_sum && sum > 0) bound += 0x1p-147 / sum * scale; /* e^(x - most) below 2^-126 loses bits */
        if (!(fabs((double)weight[j] - want) <= bound))
            return snprintf(detail, 160, "weight %u is %.9g, not %.9g", j, (double)weight[j], want), 0;
    }
    return 1;
}

/* The sorting, by its definition. */
static int right_order(const ptxk_route_desc *d, const routing *r, uint32_t tokens) {
    uint32_t e, i, row = 0, m = tokens * d->chosen;
    for (e = 0; e < d->experts; e++) {
        if (r->offsets[e] != row) return 0;
        for (i = 0; i < m; i++)
            if (r->choices[i] == e) {
                if (r->places[i] != row || r->rows[row] != i / d->chosen) return 0;
                row++;
            }
    }
    return r->offsets[e] == m && row == m;
}

enum { ORDINARY, TIES, STEEP, WITH_NAN, CONTENTS };

static void run_one(ptxk_route_desc d, uint32_t tokens, unsigned target, int content) {
    ptxk_route_shape shape;
    ptxk_route_args args;
    ptx_module_desc module_desc;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *module;
    void *loaded;
    size_t n = (size_t)tokens * d.experts, m = (size_t)tokens * d.chosen, i;
    float *s = (float *)malloc(n * 4), bias[EXPERTS];
    uint32_t *out = (uint32_t *)malloc((4 * m + d.experts + 1 + 16) * 4), t, wrong = 0;
    routing r;
    char detail[200] = "";
    for (i = 0; i < n; i++) {
        s[i] = (float)random_within(content == STEEP ? 60 : 4);
        if (content == TIES) s[i] = (float)(random_below(5)) - 2;
        if (content == WITH_NAN && random_below(d.experts) < 3) s[i] = (float)NAN;
    }
    for (i = 0; i < EXPERTS; i++) bias[i] = (float)random_within(0.5);
    memset(out, 0xa5, (4 * m + d.experts + 1 + 16) * 4);
    memset(&args, 0, sizeof args);
    args.scores = upload(s, n * 4);
    args.bias = d.flags & PTXK_ROUTE_BIAS ? upload(bias, d.experts * 4) : 0;
    args.choices = upload(out, (4 * m + d.experts + 1 + 16) * 4);
    args.weights = args.choices + 4 * m;
    args.rows = args.weights + 4 * m;
    args.places = args.rows + 4 * m;
    args.offsets = args.places + 4 * m;
    args.tokens = tokens;
    shape.tokens = tokens;
    if ((int)target > capability) target = (unsigned)capability;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = PTX_SM(target);
    module = ptx_module_new(&module_desc);
    CHECK_MORE(!ptxk_route_plan(&d, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_route_check(&d, &args, &why), why.text);
    CHECK_MORE(!ptxk_route_emit(module, &d), ptx_get_error(module)->message);
    loaded = load_text(ptx_text(module, NULL));
    for (i = 0; loaded && i < plan.launches; i++)
        CHECK(launch_entry(module, loaded, &plan.launch[i], &args, sizeof args));
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuMemcpyDtoH(out, args.choices, (4 * m + d.experts + 1 + 16) * 4) == 0);
    r.choices = out;
    r.weights = (float *)(void *)(out + m);
    r.rows = out + 2 * m;
    r.places = out + 3 * m;
    r.offsets = out + 4 * m;
    for (i = 0; i < 16; i++) CHECK(r.offsets[d.experts + 1 + i] == 0xa5a5a5a5u);
    for (t = 0; t < tokens; t++)
        if (!right_token(&d, s + (size_t)t * d.experts, bias, r.choices + (size_t)t * d.chosen,
                         r.weights + (size_t)t * d.chosen, detail))
            wrong++;
    if (wrong)
        printf("%u of %u, kind %u, flags %u, %u tokens, content %d: %u wrong, such as %s\n", d.chosen,
               d.experts, d.kind, d.flags, tokens, content, wrong, detail);
    CHECK_MORE(wrong == 0, detail);
    CHECK(right_order(&d, &r, tokens));
    check_reports();
    cu.cuMemFree(args.scores);
    if (args.bias) cu.cuMemFree(args.bias);
    cu.cuMemFree(args.choices);
    cu.cuModuleUnload(loaded);
    ptx_module_free(module);
    free(s);
    free(out);
}

static void run_combine(uint32_t x_type, uint32_t y_type, uint32_t chosen, uint32_t tokens, uint32_t n,
                        uint32_t flags, int placed) {
    ptxk_combine_desc d;
    ptxk_combine_shape shape;
    ptxk_combine_args args;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *module = ptx_module_new(NULL);
    void *loaded;
    enum ref_format xf = x_type == PTX_F32 ? REF_F32 : x_type == PTX_F16 ? REF_F16 : REF_BF16;
    enum ref_format yf = y_type == PTX_F32 ? REF_F32 : y_type == PTX_F16 ? REF_F16 : REF_BF16;
    uint32_t rows = placed ? 1 + random_below(2 * tokens * chosen) : tokens * chosen, j, t, e, wrong = 0;
    void *x = malloc((size_t)rows * n * 4), *y = malloc((size_t)tokens * n * 4 + 64);
    void *before = malloc((size_t)tokens * n * 4 + 64);
    float *w = (float *)malloc((size_t)tokens * chosen * 4);
    uint32_t *places = (uint32_t *)malloc((size_t)tokens * chosen * 4);
    double unit = y_type == PTX_F32 ? 0x1p-24 : y_type == PTX_F16 ? 0x1p-11 : 0x1p-8;
    size_t i, y_bytes = (size_t)tokens * n * ref_bytes(yf);
    for (i = 0; i < (size_t)rows * n; i++) ref_put(x, xf, i, random_within(3));
    memset(before, 0xa5, y_bytes + 64);
    for (i = 0; i < (size_t)tokens * n; i++) ref_put(before, yf, i, random_within(3));
    for (i = 0; i < (size_t)tokens * chosen; i++) {
        w[i] = (float)random_within(1);
        places[i] = placed ? random_below(rows + 1) : (uint32_t)i; /* rows: none */
        if (places[i] == rows && placed) w[i] = random_below(2) ? (float)NAN : 1;
    }
    memset(&d, 0, sizeof d);
    memset(&args, 0, sizeof args);
    d.chosen = chosen;
    d.x_type = x_type;
    d.y_type = y_type;
    d.flags = flags;
    shape.tokens = tokens;
    shape.n = n;
    args.x = upload(x, (size_t)rows * n * ref_bytes(xf));
    args.weights = upload(w, (size_t)tokens * chosen * 4);
    args.places = placed ? upload(places, (size_t)tokens * chosen * 4) : 0;
    args.y = upload(before, y_bytes + 64);
    args.tokens = tokens;
    args.n = n;
    args.x_rows = placed ? rows : 0;
    CHECK_MORE(!ptxk_combine_plan(&d, &shape, &plan, &why), why.text);
    CHECK_MORE(!ptxk_combine_check(&d, &args, &why), why.text);
    CHECK_MORE(!ptxk_combine_emit(module, &d), ptx_get_error(module)->message);
    loaded = load_text(ptx_text(module, NULL));
    if (loaded) CHECK(launch_entry(module, loaded, &plan.launch[0], &args, sizeof args));
    CHECK(cu.cuCtxSynchronize() == 0);
    CHECK(cu.cuMemcpyDtoH(y, args.y, y_bytes + 64) == 0);
    CHECK(memcmp((char *)y + y_bytes, (char *)before + y_bytes, 64) == 0);
    for (t = 0; t < tokens; t++)
        for (e = 0; e < n; e++) {
            double sum = 0, size = 0, have = ref_get(y, yf, (size_t)t * n + e);
            for (j = 0; j < chosen; j++) {
                uint32_t place = places[t * chosen + j];
                double part =
                    place < rows ? (double)w[t * chosen + j] * ref_get(x, xf, (size_t)place * n + e) : 0;
                sum += part;
                size += fabs(part);
            }
            if (flags)
                sum += ref_get(before, yf, (size_t)t * n + e),
                    size += fabs(ref_get(before, yf, (size_t)t * n + e));
            if (!(fabs(have - sum) <= (chosen + 1) * 0x1p-24 * size + unit * fabs(sum) * 1.01 + 0x1p-25))
                wrong++;
        }
    CHECK(wrong == 0);
    check_reports();
    cu.cuMemFree(args.x);
    cu.cuMemFree(args.weights);
    cu.cuMemFree(args.y);
    if (args.places) cu.cuMemFree(args.places);
    cu.cuModuleUnload(loaded);
    ptx_module_free(module);
    free(x);
    free(y);
    free(before);
    free(w);
    free(places);
}

int main(void) {
    static const uint32_t shapes[][2] = {{1, 1},  {8, 2},   {33, 16}, {60, 4},
                                         {64, 7}, {128, 8}, {256, 8}, {512, 16}};
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16};
    static const unsigned targets[] = {75, 80, 90};
    uint32_t i, kind, flags;
    start_random();
    if (!open_driver()) return 1;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (kind = 0; kind < 3; kind++)
            for (flags = 0; flags < 4; flags++) {
                ptxk_route_desc d;
                d.experts = shapes[i][0];
                d.chosen = shapes[i][1];
                d.kind = kind;
                d.flags = flags;
                d.scale = random_below(3) ? 0 : 2.5f;
                d.groups = d.chosen_groups = 0;
                if (random_below(2) && d.experts % 8 == 0 && d.chosen <= d.experts / 2) {
                    d.groups = d.experts % 32 == 0 && random_below(2) ? 32 : 1u << (1 + random_below(3));
                    while (d.chosen > ++d.chosen_groups * (d.experts / d.groups)) {}
                    if (d.chosen_groups < d.groups) d.chosen_groups += random_below(d.groups - d.chosen_groups);
                }
                run_one(d, flags ? 1 + random_below(9) : 1, targets[(i + kind) % 3],
                        (int)random_below(CONTENTS));
                if (flags == 0 && i % 3 == kind)
                    run_one(d, 500 + random_below(100), 80, (int)random_below(CONTENTS));
            }
    for (i = 0; i < 18; i++)
        run_combine(types[i % 3], types[i / 3 % 3], 1 + random_below(i < 9 ? 4 : 16), 1 + random_below(9),
                    1 + random_below(600), i & 1, i % 4 != 0);
    return check_end();
}
