/* flash_tree.c - flash_decode over drafts that are a tree: each query sees the keys before the new tokens, and of
 * these its ancestors and itself, as a mask of bits says. And over a prefix that sequences share: one launch in which
 * they are the queries reads it once, another merges that with the keys of each.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. PTXGEN_SEED=n repeats a run. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/flash_decode.h"
#include "../kerneltest.h"
#include "../flash_problem.h"

/* Every output against double precision: weighted means of numbers below 2, whose weights err by 2^-15 at most. */
static void compare_tree(const problem *p) {
    uint32_t d = p->desc.head_dim, b, t, h, i, e, n = p->queries;
    double *score = (double *)malloc((p->shape.max_seq + 1) * sizeof *score);
    for (b = 0; b < p->shape.batch; b++)
        for (t = 0; t < n; t++)
            for (h = 0; h < p->desc.heads; h++) {
                size_t row = ((size_t)b * n + t) * p->desc.heads + h, wrong = 0;
                uint32_t g = h * p->desc.kv_heads / p->desc.heads;
                double most = -INFINITY, total = 0;
                for (i = 0; i < p->lengths[b]; i++) {
                    uint32_t before = p->lengths[b] - n;
                    score[i] = -INFINITY;
                    if (i >= before && !(p->tree[b * n + t] >> (i - before) & 1)) continue;
                    score[i] = 0;
                    for (e = 0; e < d; e++)
                        score[i] += ref_get(p->q, p->q_format, row * d + e)
                                    * ref_get(p->keys[b], p->format, ((size_t)g * p->shape.max_seq + i) * d + e);
                    score[i] /= sqrt(d);
                    if (score[i] > most) most = score[i];
                }
                for (i = 0; i < p->lengths[b]; i++) total += score[i] = exp(score[i] - most);
                for (e = 0; e < d; e++) {
                    double want = 0;
                    for (i = 0; i < p->lengths[b]; i++)
                        if (score[i] > 0)
                            want += score[i] / total
                                    * ref_get(p->values[b], p->format, ((size_t)g * p->shape.max_seq + i) * d + e);
                    if (!(fabs(ref_get(p->out, p->out_format, row * d + e) - want) <= 0x1p-14)) wrong++;
                }
                CHECK_MORE(wrong == 0, "an output of a tree");
            }
    free(score);
}

static void trees(uint32_t rounds) {
    static const uint32_t targets[] = {75, 80, 90}, types[] = {PTX_F16, PTX_F32, PTX_BF16}, pages[] = {0, 16, 64};
    uint32_t r, b, t;
    for (r = 0; r < rounds; r++) {
        uint32_t kv_heads = 1 + random_below(2), lengths[3], tree[3 * 8], batch = 1 + random_below(3);
        ptxk_flash_decode_desc desc = plain(kv_heads * (1 + random_below(4)), kv_heads, 8 * (1 + random_below(16)),
                                            types[random_below(3)]);
        problem p;
        desc.queries = 1 + random_below(8);
        desc.page_size = pages[random_below(3)];
        desc.append_type = random_below(2) ? PTX_F32 : 0;
        desc.flags = PTXK_FLASH_TREE | (random_below(4) ? 0 : (uint32_t)PTXK_FLASH_SCALAR);
        for (b = 0; b < batch; b++) {
            lengths[b] = desc.queries + random_below(150);
            for (t = 0; t < desc.queries; t++) { /* a token's parent is one before it, or the last of the text */
                uint32_t parent = random_below(t + 1);
                tree[b * desc.queries + t] = 1u << t | (parent < t ? tree[b * desc.queries + parent] : 0);
            }
        }
        p = problem_of(&desc, 160, lengths, batch);
        p.target = PTX_SM(targets[r % 3]);
        p.tree = tree;
        p.shape.sm_count = random_below(2) ? 132 : 2;
        if (problem_run(&p)) compare_tree(&p);
        problem_free(&p);
    }
}

/* Adds the weights and weighted values of the keys that a row of q sees, relative to e^0. */
static void add_keys(const problem *p, uint32_t sequence, uint32_t g, const double *q, uint32_t keys, double *sum) {
    uint32_t i, e, d = p->desc.head_dim;
    for (i = 0; i < keys; i++) {
        size_t at = ((size_t)g * p->shape.max_seq + i) * d;
        double x = 0;
        for (e = 0; e < d; e++) x += q[e] * ref_get(p->keys[sequence], p->format, at + e);
        x = exp(x / sqrt(d));
        sum[d] += x;
        for (e = 0; e < d; e++) sum[e] += x * ref_get(p->values[sequence], p->format, at + e);
    }
}

static void shared_prefixes(uint32_t rounds) {
    static const uint32_t targets[] = {75, 80, 90}, types[] = {PTX_F16, PTX_F32, PTX_BF16};
    uint32_t r, b, h, e;
    for (r = 0; r < rounds; r++) {
        uint32_t kv_heads = 1 + random_below(2), lengths[8], batch = 2 + random_below(7), d;
        uint32_t all[8], prefix = random_below(4) ? random_below(400) : random_below(9);
        ptxk_flash_decode_desc desc = plain(kv_heads * (1 + random_below(3)), kv_heads, 8 * (1 + random_below(16)),
                                            types[random_below(3)]);
        problem shared, own;
        double q[256], sum[257];
        size_t wrong = 0;
        d = desc.head_dim;
        for (b = 0; b < 8; b++) {
            lengths[b] = random_below(4) ? random_below(100) : 0;
            all[b] = (1u << batch) - 1;
        }
        desc.flags = PTXK_FLASH_TREE | PTXK_FLASH_LSE;
        desc.queries = batch;
        shared = problem_of(&desc, 512, &prefix, 1);
        shared.tree = all;
        desc.flags = PTXK_FLASH_PRIOR | PTXK_FLASH_LSE;
        desc.queries = 1;
        own = problem_of(&desc, 128, lengths, batch);
        memcpy(own.q, shared.q, (size_t)batch * desc.heads * d * 4);
        shared.target = own.target = PTX_SM(targets[r % 3]);
        shared.shape.sm_count = own.shape.sm_count = random_below(2) ? 132 : 2;
        own.prior = (const float *)shared.out;
        own.prior_lse = shared.lse;
        if (problem_run(&shared) && problem_run(&own))
            for (b = 0; b < batch; b++)
                for (h = 0; h < desc.heads; h++) {
                    uint32_t g = h * kv_heads / desc.heads;
                    for (e = 0; e < d; e++)
                        q[e] = ref_get(own.q, own.q_format, ((size_t)b * desc.heads + h) * d + e);
                    memset(sum, 0, sizeof sum);
                    add_keys(&shared, 0, g, q, prefix, sum);
                    add_keys(&own, b, g, q, lengths[b], sum);
                    if (prefix + lengths[b] == 0) { /* no key: 0, with a log-sum-exp of -inf */
                        for (e = 0; e < d; e++)
                            wrong += ref_get(own.out, own.out_format, ((size_t)b * desc.heads + h) * d + e) != 0;
                        wrong += own.lse[b * desc.heads + h] < -1e30f ? 0 : 1;
                        continue;
                    }
                    for (e = 0; e < d; e++)
                        if (!(fabs(ref_get(own.out, own.out_format, ((size_t)b * desc.heads + h) * d + e)
                                   - sum[e] / sum[d])
                              <= 0x1p-14))
                            wrong++;
                    if (!(fabs((double)own.lse[b * desc.heads + h] - log(sum[d])) <= 0x1p-14)) wrong++;
                }
        CHECK_MORE(wrong == 0, "a shared prefix");
        problem_free(&shared);
        problem_free(&own);
    }
}

/* What merging adds to the errors of both results, against double: x and y with log-sum-exps a and b, of which the
   weights are w and 1 - w, differ from the sum that they have by at most 2^-20 of what they are, and by w (1 - w)
   |x - y| times 2^-22 (32 + |a| + |b|): a product and a sum round each log-sum-exp (2^-23 |a|, 2^-23 |b|), lg2 has an
   error of 2^-22 of at most 39, the two powers of 2 and the reciprocal have less than 2^-21. */
static void merges_alone(uint32_t rounds) {
    static const uint32_t targets[] = {75, 80, 90}, types[] = {PTX_F16, PTX_F32, PTX_BF16};
    enum { HEADS = 4, D = 40, BATCH = 3, ROWS = HEADS * BATCH };
    double worst_ratio = 0;
    uint32_t r, b, h, e;
    for (r = 0; r < rounds; r++) {
        float prior[ROWS * D], prior_lse[ROWS], own[ROWS * D], own_lse[ROWS];
        uint32_t lengths[BATCH], which;
        ptxk_flash_decode_desc desc = plain(HEADS, 2, D, types[random_below(3)]);
        problem p;
        for (b = 0; b < BATCH; b++) lengths[b] = 1 + random_below(300);
        desc.flags = PTXK_FLASH_LSE;
        p = problem_of(&desc, 300, lengths, BATCH);
        p.target = PTX_SM(targets[r % 3]);
        for (which = 0; which < 2; which++) {
            if (!problem_run(&p)) break;
            if (which) break;
            memcpy(own, p.out, sizeof own);
            memcpy(own_lse, p.lse, sizeof own_lse);
            for (e = 0; e < ROWS * D; e++) prior[e] = (float)random_within(3);
            for (e = 0; e < ROWS; e++) /* [heads, batch], and [batch, heads] */
                prior_lse[e] = own_lse[e % BATCH * HEADS + e / BATCH] + (float)random_within(r % 2 ? 8 : 1);
            p.desc.flags |= PTXK_FLASH_PRIOR;
            p.prior = prior;
            p.prior_lse = prior_lse;
        }
        for (b = 0; which == 1 && b < BATCH; b++)
            for (h = 0; h < HEADS; h++) {
                uint32_t row = b * HEADS + h;
                double w, most, x = own_lse[row], y = prior_lse[h * BATCH + b];
                w = 1 / (1 + exp(y - x));
                most = 0x1p-22 * (32 + fabs(x) + fabs(y));
                for (e = 0; e < D; e++) {
                    double mine = own[row * D + e], other = prior[row * D + e], bound;
                    bound = w * (1 - w) * fabs(mine - other) * most
                            + 0x1p-20 * (w * fabs(mine) + (1 - w) * fabs(other));
                    x = fabs(ref_get(p.out, p.out_format, row * D + e) - (w * mine + (1 - w) * other));
                    if (bound > 0 && x / bound > worst_ratio) worst_ratio = x / bound;
                    CHECK(x <= bound);
                }
            }
        problem_free(&p);
    }
    printf("note: merging: the largest error is %.3f of its bound\n", worst_ratio);
}

/* Where scores of the prior attention were infinite, its keys have all the weight; where it saw no key, none. */
static void infinite_priors(void) {
    static const uint32_t targets[] = {75, 80, 90}, length = 5;
    uint32_t i, t, e;
    for (i = 0; i < 3; i++) {
        ptxk_flash_decode_desc desc = plain(1, 1, 64, PTX_F16);
        float prior[4 * 64], prior_lse[4] = {INFINITY, -INFINITY, INFINITY, -INFINITY};
        problem p;
        desc.flags = PTXK_FLASH_PRIOR | PTXK_FLASH_LSE;
        desc.queries = 4;
        p = problem_of(&desc, 8, &length, 1);
        p.target = PTX_SM(targets[i]);
        for (e = 0; e < 4 * 64; e++) prior[e] = (float)e;
        p.prior = prior, p.prior_lse = prior_lse;
        if (problem_run(&p))
            for (t = 0; t < 4; t++) {
                CHECK(t % 2 ? isfinite(p.lse[t]) : isinf(p.lse[t]) && p.lse[t] > 0);
                for (e = 0; e < 64; e++) {
                    double x = ref_get(p.out, REF_F32, t * 64 + e);
                    CHECK(t % 2 ? fabs(x) <= 2 : fabs(x - (double)prior[t * 64 + e]) <= 1e-4);
                }
            }
        problem_free(&p);
    }
}

int main(int argc, char **argv) {
    start_random();
    fill_pools();
    if (CHECK(open_driver())) {
        trees(argc > 1 ? (uint32_t)atoi(argv[1]) : 24);
        shared_prefixes(argc > 1 ? (uint32_t)atoi(argv[1]) : 24);
        merges_alone(argc > 1 ? (uint32_t)atoi(argv[1]) : 12);
        infinite_priors();
    }
    free(pool_f32);
    free(pool_f16);
    free(pool_bf16);
    return check_end();
}
