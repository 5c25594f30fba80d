/* flash_mla.c - attention over latents (ptxk_flash_mla) beside its definition in double precision: all types and
 * tiles, caches with strides and in pages, several queries, chunks, and what the header says of odd lengths.
 *
 * Runs on the driver in PTXGEN_CUDA_LIBRARY (default libcuda.so.1), CPU or GPU. Data is fresh in every run;
 * PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include <math.h>

#include "../kerneltest.h"
#include "../mutations.h"
#include "../reference/blocks.h"

enum { BATCH_MOST = 4 };

/* What is run; the rest is drawn. */
typedef struct problem {
    ptxk_flash_mla_desc d;
    unsigned target;
    uint32_t batch, queries, max_seq, sm_count;
    uint32_t length[BATCH_MOST];
    int side_by_side;  /* rows of c and r in one cache */
    int heads_first;   /* q and out are [heads, batch * queries] */
    int one_length;    /* lengths is 0 */
    uint32_t bad_page; /* of sequence 0, paged: position whose page is past the pool, + 1; 0: none */
    double traffic;    /* most sectors, of plan.min_bytes; 0: any */
} problem;

static enum ref_format format_of(uint32_t type) {
    return type == PTX_F32 ? REF_F32 : type == PTX_F16 ? REF_F16 : REF_BF16;
}

/* An array of n random numbers of the type, on the device too; `round`: as the kernel rounds them, in double. */
static device_ptr random_array(uint32_t type, uint32_t round, size_t n, double size, double **values) {
    enum ref_format f = format_of(type);
    void *x = malloc(n * ref_bytes(f) + 2), *one = malloc(8);
    device_ptr at;
    size_t i;
    *values = (double *)malloc(n * sizeof **values);
    for (i = 0; i < n; i++) {
        ref_put(x, f, i, random_within(size));
        ref_put(one, format_of(round), 0, ref_get(x, f, i));
        (*values)[i] = ref_get(one, format_of(round), 0);
    }
    at = upload(x, n * ref_bytes(f));
    free(x);
    free(one);
    return at;
}

static double from_e4m3(unsigned b) {
    int e = (int)(b >> 3 & 15), m = (int)(b & 7);
    double x = e ? ldexp(8 + m, e - 10) : ldexp(m, -9);
    return b & 0x80 ? -x : x;
}

/* A cache of n random numbers on the device. values: without e4m3's factor. factors: of q8_0, where they lie; of e4m3
   *factor, there, or 0: 1. */
static device_ptr random_cache(uint32_t type, size_t n, double **values, device_ptr *factors, double *factor) {
    unsigned char *bytes;
    unsigned short *of = NULL;
    device_ptr at;
    size_t i;
    *factors = 0;
    *factor = 1;
    if (type == PTX_F16 || type == PTX_BF16) return random_array(type, type, n, 1, values);
    bytes = (unsigned char *)malloc(n + 1);
    *values = (double *)malloc((n + 1) * sizeof **values);
    if (type == PTX_E4M3 && random_below(3)) {
        float one = (float)(1.5 + random_within(0.7));
        *factor = (double)one;
        *factors = upload(&one, 4);
    }
    if (type == PTXK_Q8_0) of = (unsigned short *)malloc(n / 16 + 2);
    for (i = 0; i < n; i++) {
        bytes[i] = (unsigned char)random_u32();
        if (type == PTX_E4M3) {
            if ((bytes[i] & 0x7f) > 0x37) bytes[i] &= 0xb7; /* below 1 */
            (*values)[i] = from_e4m3(bytes[i]);
            continue;
        }
        if (i % 32 == 0) ref_put(of, REF_F16, i / 32, random_within(1) / 128);
        ref_put(*values + n, REF_F16, 0, ref_get(of, REF_F16, i / 32) * (signed char)bytes[i]);
        (*values)[i] = ref_get(*values + n, REF_F16, 0);
    }
    if (type == PTXK_Q8_0) *factors = upload(of, n / 16);
    at = upload(bytes, n);
    free(bytes);
    free(of);
    return at;
}

/* left_out: NULL, or the number of the synchronising instruction that is taken out; then nothing is checked. Returns
   whether that was noticed; 2 where there is no such instruction, named in what. */
static int run(const problem *o, const unsigned *left_out, char what[160]) {
    const ptxk_flash_mla_desc *d = &o->d;
    ptxk_flash_mla_shape shape;
    ptxk_flash_mla_args args;
    ptx_module_desc module_desc;
    ptxk_message why;
    ptx_plan plan;
    ptx_module *module;
    void *loaded, *out;
    uint32_t rows = o->batch * o->queries,
             pages = d->page_size ? (o->max_seq + d->page_size - 1) / d->page_size : 0;
    uint32_t page[4096], pool = pages * o->batch, b, t, h, e, i, wrong = 0, longest = 1;
    uint64_t cache[4][BATCH_MOST], cache_row[2], first[4];
    size_t out_bytes, positions = d->page_size ? (size_t)pool * d->page_size : (size_t)o->batch * o->max_seq;
    double *q, *q_rope, *c, *r, scale = d->scale > 0 ? (double)d->scale : 1, *weight, worst = 0, factor[2];
    int bytes = d->kv_type == PTX_E4M3 || d->kv_type == PTXK_Q8_0 ? 1 : 2;
    uint32_t type = bytes == 1 ? PTX_F16 : d->kv_type;
    float *lse;
    enum ref_format of = format_of(d->out_type);
    char detail[200] = "", *mutant;
    int noticed = 1;
    if ((int)o->target > capability) return 2;
    memset(&args, 0, sizeof args);
    memset(&shape, 0, sizeof shape);
    shape.batch = args.batch = o->batch;
    shape.queries = args.queries = o->queries;
    shape.max_seq = args.max_seq = o->max_seq;
    shape.sm_count = o->sm_count;
    shape.target = PTX_SM(o->target);
    args.q = random_array(d->q_type, type, (size_t)rows * d->heads * d->latent, 1, &q);
    args.q_rope = random_array(d->q_type, type, (size_t)rows * d->heads * d->rope, 1, &q_rope);
    if (o->heads_first) {
        args.q_row_stride = args.out_row_stride = d->latent;
        args.q_head_stride = args.out_head_stride = (uint64_t)rows * d->latent;
    }
    cache_row[0] = d->latent;
    cache_row[1] = d->rope;
    if (o->side_by_side) {
        cache_row[0] = d->latent + d->rope + 16;
        if (d->kv_type == PTXK_Q8_0) cache_row[0] = (cache_row[0] + 255) / 256 * 256;
        cache_row[1] = args.c_stride = args.r_stride = cache_row[0];
    }
    args.c_caches = random_cache(d->kv_type, positions * cache_row[0], &c, &args.c_factors, &factor[0]);
    args.r_caches = args.c_caches + (unsigned)bytes * d->latent;
    args.r_factors = d->kv_type == PTXK_Q8_0 ? args.c_factors + d->latent / 16 : args.c_factors;
    r = c + d->latent;
    factor[1] = factor[0];
    if (!o->side_by_side)
        args.r_caches = random_cache(d->kv_type, positions * cache_row[1], &r, &args.r_factors, &factor[1]);
    for (i = 0; i < pool; i++) page[i] = i;
    for (i = 0; i < pool; i++) { /* any order */
        uint32_t j = random_below(pool), x = page[i];
        page[i] = page[j], page[j] = x;
    }
    if (d->page_size) {
        uint32_t *table = (uint32_t *)malloc(pool * 4);
        memcpy(table, page, pool * 4);
        if (o->bad_page) table[(o->bad_page - 1) / d->page_size] = pool;
        args.block_table = upload(table, pool * 4);
        args.max_pages = pages;
        args.pool_pages = pool;
        free(table);
    } else {
        memcpy(first, &args.c_caches, 16);
        memcpy(first + 2, &args.c_factors, 16);
        for (i = 0; i < 4; i++)
            for (b = 0; b < o->batch; b++)
                cache[i][b] = first[i] + (i < 2 ? 16u * (unsigned)bytes : 1) * cache_row[i % 2] / 16 * b * o->max_seq;
        args.c_caches = upload(cache[0], o->batch * 8);
        args.r_caches = upload(cache[1], o->batch * 8);
        if (d->kv_type == PTXK_Q8_0) {
            args.c_factors = upload(cache[2], o->batch * 8);
            args.r_factors = upload(cache[3], o->batch * 8);
        }
    }
    for (b = 0; b < o->batch; b++)
        if (o->length[b] > longest) longest = o->length[b];
    if (o->one_length)
        args.length = o->length[0];
    else
        args.lengths = upload(o->length, o->batch * 4);
    shape.max_len = longest < o->max_seq ? longest : o->max_seq;
    out_bytes = (size_t)rows * d->heads * d->latent * ref_bytes(of);
    out = malloc(out_bytes + 64);
    memset(out, 0xa5, out_bytes + 64);
    args.out = upload(out, out_bytes + 64);
    lse = (float *)calloc(rows * d->heads, 4);
    args.lse = upload(lse, rows * d->heads * 4ull);
    weight = (double *)malloc(o->max_seq * sizeof *weight);
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = shape.target;
    module = ptx_module_new(&module_desc);
    CHECK_MORE(!ptxk_flash_mla_plan(d, &shape, &plan, &why), why.text);
    if (plan.workspace_bytes) CHECK(cu.cuMemAlloc(&args.workspace, plan.workspace_bytes) == 0);
    CHECK_MORE(!ptxk_flash_mla_check(d, &args, &why), why.text);
    CHECK_MORE(!ptxk_flash_mla_emit(module, d), ptx_get_error(module)->message);
    mutant = (char *)malloc(strlen(ptx_text(module, NULL)) + 64);
    strcpy(mutant, ptx_text(module, NULL));
    if (left_out && !mutate(ptx_text(module, NULL), *left_out, mutant, what)) noticed = 2;
    loaded = load_text(mutant);
    free(mutant);
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (i = 0; loaded && i < plan.launches; i++)
        CHECK(launch_entry(module, loaded, &plan.launch[i], &args, sizeof args));
    if (!left_out) CHECK(cu.cuCtxSynchronize() == 0);
    if (o->traffic > 0 && cu.ptxsim_counters_get) {
        ptxsim_counters n;
        double ratio, keys = 0;
        cu.ptxsim_counters_get(&n, sizeof n);
        for (b = 0; b < o->batch; b++) keys += o->length[b];
        ratio = 32.0 * (double)(n.global_load_sectors + n.global_store_sectors) / (double)plan.min_bytes;
        printf("note: type %u, %u heads, %u queries, tile %u, %u sequences, %u chunks: %.4f of the lower bound; "
               "%.1f warp instructions a key, %.2f bank conflicts a wavefront\n",
               d->kv_type, d->heads, o->queries, d->tile, o->batch, plan.launch[0].grid[2], ratio,
               (double)n.warp_instructions / keys,
               (double)n.shared_bank_conflicts / (double)n.shared_wavefronts);
        CHECK(ratio <= o->traffic && n.local_requests == 0);
        CHECK((double)n.shared_bank_conflicts <= 0.03 * (double)n.shared_wavefronts);
    }
    CHECK(cu.cuMemcpyDtoH(out, args.out, out_bytes + 64) == 0);
    CHECK(cu.cuMemcpyDtoH(lse, args.lse, rows * d->heads * 4ull) == 0);
    for (i = 0; i < 64; i++) CHECK(((unsigned char *)out)[out_bytes + i] == 0xa5);
    for (b = 0; b < o->batch; b++)
        for (t = 0; t < o->queries; t++)
            for (h = 0; h < d->heads; h++) {
                size_t row = (size_t)b * o->queries + t, at = (row * d->heads + h) * d->latent;
                size_t rope = (row * d->heads + h) * d->rope;
                uint32_t length = o->one_length ? o->length[0] : o->length[b];
                uint32_t seen = length + t + 1 > o->queries ? length + t + 1 - o->queries : 0;
                double most = -INFINITY, sum = 0, slack = 0, have;
                int is_nan =
                    length > (d->page_size ? pages * d->page_size : o->max_seq) || length > o->max_seq;
                if (o->heads_first) at = ((size_t)h * rows + row) * d->latent;
                if (o->bad_page && b == 0 && !is_nan) /* blocks that find it; others are right */
                    is_nan = seen >= o->bad_page ? 1 : 2;
                for (i = 0; i < seen && is_nan != 1; i++) {
                    size_t p = d->page_size ? (size_t)page[b * pages + i / d->page_size] * d->page_size
                                                  + i % d->page_size
                                            : (size_t)b * o->max_seq + i;
                    double s = 0, size = 0, x;
                    for (e = 0; e < d->latent; e++) {
                        x = q[at + e] * c[p * cache_row[0] + e] * factor[0];
                        s += x, size += fabs(x);
                    }
                    for (e = 0; e < d->rope; e++) {
                        x = q_rope[rope + e] * r[p * cache_row[1] + e] * factor[1];
                        s += x, size += fabs(x);
                    }
                    weight[i] = s * scale;
                    most = fmax(most, weight[i]);
                    slack = fmax(slack, (d->latent + d->rope + 4) * 0x1p-23 * size * scale);
                }
                for (i = 0; i < seen && is_nan != 1; i++) sum += weight[i] = exp(weight[i] - most);
                have = (double)lse[row * d->heads + h];
                if (is_nan == 1) {
                    if (!isnan(have)) wrong++;
                } else if (!seen) {
                    if (!(have < 0 && isinf(have)) && !(is_nan && isnan(have))) wrong++;
                } else if (!(fabs(have - log(sum) - most)
                             <= slack + seen * 0x1p-22 + 0x1p-20 * (1 + fabs(log(sum) + most)))
                           && !(is_nan && isnan(have))) {
                    wrong++;
                    snprintf(detail, sizeof detail, "lse is %.9g, not %.9g", have, log(sum) + most);
                }
                for (e = 0; e < d->latent; e++) {
                    double want = 0, size = 0, bound;
                    have = ref_get(out, of, at + e);
                    for (i = 0; i < seen && is_nan != 1; i++) {
                        size_t p = d->page_size ? (size_t)page[b * pages + i / d->page_size] * d->page_size
                                                      + i % d->page_size
                                                : (size_t)b * o->max_seq + i;
                        double x = weight[i] / sum * c[p * cache_row[0] + e] * factor[0];
                        want += x, size += fabs(x);
                    }
                    if (is_nan == 1 ? !isnan(have) : is_nan && isnan(have)) wrong++;
                    if (is_nan == 1 || (is_nan && isnan(have))) {
                        if (is_nan == 2) wrong--;
                        continue;
                    }
                    bound = size
                                * ((type == PTX_F16 ? 0x1p-11 : 0x1p-8) + 2 * slack + seen * 0x1p-22
                                   + plan.launch[0].grid[2] * 0x1p-20 + 0x1p-19)
                            + (type == PTX_F16 ? 0x1p-33 * seen * factor[0] : 0);
                    bound += fabs(want)
                                 * (of == REF_F32   ? 0x1p-23
                                    : of == REF_F16 ? 0x1p-11
                                                    : 0x1p-8)
                             + 0x1p-25;
                    if (fabs(have - want) > worst * bound) worst = fabs(have - want) / bound;
                    if (!(fabs(have - want) <= bound)) {
                        if (!wrong++)
                            snprintf(detail, sizeof detail, "%u, %u, %u, element %u: %.9g, not %.9g", b, t, h,
                                     e, have, want);
                    }
                }
            }
    if (left_out) {
        if (noticed != 2) noticed = wrong || cu.ptxsim_report_count();
        cu.ptxsim_report_clear();
    } else {
        printf("sm_%u, %u heads, %u + %u, types %u %u %u, tile %u, pages %u, %u x %u queries, %u keys in %u: "
               "%.3f of the "
               "bound%s%s\n",
               o->target, d->heads, d->latent, d->rope, d->kv_type, d->q_type, d->out_type, d->tile,
               d->page_size, o->batch, o->queries, longest, plan.launch[0].grid[2], worst, wrong ? ", " : "",
               detail);
        CHECK_MORE(wrong == 0, detail);
        check_reports();
    }
    cu.cuMemFree(args.q);
    cu.cuMemFree(args.q_rope);
    cu.cuMemFree(args.out);
    cu.cuMemFree(args.lse);
    if (args.workspace) cu.cuMemFree(args.workspace);
    cu.cuModuleUnload(loaded);
    ptx_module_free(module);
    free(q);
    free(q_rope);
    free(c);
    if (!o->side_by_side) free(r);
    free(out);
    free(lse);
    free(weight);
    return noticed;
}

/* Kernels of all tiles in one module, also where shared memory is small and all of them have tiles of 16. */
static void tiles_have_names(unsigned target) {
    ptxk_flash_mla_desc d;
    ptx_module_desc desc;
    ptx_module *m;
    uint32_t tile;
    memset(&desc, 0, sizeof desc);
    memset(&d, 0, sizeof d);
    desc.target = PTX_SM(target);
    d.heads = 16, d.latent = 128, d.rope = 16, d.kv_type = d.q_type = d.out_type = PTX_F16;
    m = ptx_module_new(&desc);
    for (tile = 16; tile <= 64; tile *= 2) {
        d.tile = tile;
        CHECK_MORE(!ptxk_flash_mla_emit(m, &d), ptx_get_error(m)->message);
    }
    CHECK_MORE(ptx_text(m, NULL) != NULL, ptx_get_error(m)->message);
    ptx_module_free(m);
}

int main(void) {
    static const uint32_t types[] = {PTX_F32, PTX_F16, PTX_BF16}, latents[] = {128, 256, 512};
    static const uint32_t caches[] = {PTX_F16, PTX_E4M3, PTXK_Q8_0, PTX_BF16};
    static const unsigned targets[] = {75, 80, 86, 90, 75, 80, 89, 90};
    uint32_t i, b;
    start_random();
    if (!open_driver()) return 1;
    tiles_have_names(75);
    tiles_have_names(90);
    for (i = 0; i < 32; i++) {
        problem o;
        memset(&o, 0, sizeof o);
        o.target = targets[i % 8];
        o.d.heads = i < 3 ? 16 : 1 + random_below(i % 5 == 0 ? 40 : 9);
        o.d.latent = i == 2 ? 512 : latents[random_below(i % 6 == 0 ? 3 : 2)];
        o.d.rope = i == 2 ? 64 : 16 * (1 + random_below(4));
        o.d.kv_type = caches[(i + i / 8 * 3) % 4];
        o.d.q_type = types[(i + i / 9) % 3];
        o.d.out_type = types[i / 3 % 3];
        o.batch = 1 + random_below(3);
        o.queries = i % 4 == 3 ? 2 + random_below(9) : 1;
        o.d.tile = i % 4 ? 16u << random_below(3) : ptxk_flash_mla_tile(o.d.heads, o.queries);
        if (o.target == 75 && o.d.kv_type == PTX_BF16) o.d.kv_type = caches[i / 8 % 3];
        if (o.d.kv_type == PTXK_Q8_0) o.d.rope = 32 + o.d.rope / 64 * 32;
        o.d.page_size = i % 3 == 1 ? 16u << random_below(3) : 0;
        o.d.flags = PTXK_MLA_LSE;
        o.d.scale = i % 7 ? 0.07f : 0;
        o.max_seq = 40 + random_below(i % 2 ? 400 : 100);
        o.sm_count = i % 2 ? 1 + random_below(12) : 1;
        o.side_by_side = i % 4 == 1 && !o.d.page_size;
        o.heads_first = i % 3 == 2;
        o.one_length = i % 8 == 5;
        for (b = 0; b < o.batch; b++) o.length[b] = random_below(o.max_seq + 1);
        if (i % 5 == 2) o.length[0] = o.max_seq + 1;
        if (i % 5 == 3) o.length[0] = random_below(o.queries + 1);
        if (i % 6 == 1 && o.length[0]) o.bad_page = 1 + random_below(o.length[0]);
        if (!o.d.page_size) o.bad_page = 0;
        (void)run(&o, NULL, NULL);
    }
    for (i = 0; i < 2; i++) { /* scores around 2^27.5 in base 2, which have bits of 16 */
        problem o;
        memset(&o, 0, sizeof o);
        o.target = targets[1 + i];
        o.d.heads = 16;
        o.d.latent = 128;
        o.d.rope = 16;
        o.d.kv_type = o.d.q_type = PTX_F16;
        o.d.out_type = PTX_F32;
        o.d.tile = 16;
        o.d.scale = 1.4e7f;
        o.d.flags = PTXK_MLA_LSE;
        o.batch = o.queries = 1;
        o.sm_count = 1 + i;
        o.length[0] = o.max_seq = 100;
        (void)run(&o, NULL, NULL);
    }
    for (i = 0; i < 5; i++) { /* a latent is read once for the tile's heads */
        problem o;
        memset(&o, 0, sizeof o);
        o.target = 90;
        o.d.heads = i < 2 || i == 3 ? 16 : 64;
        o.d.latent = 512;
        o.d.rope = 64;
        o.d.kv_type = i > 2 ? caches[i - 2] : PTX_F16;
        o.d.q_type = o.d.out_type = PTX_F32;
        o.d.tile = ptxk_flash_mla_tile(o.d.heads, 1);
        o.d.scale = 0.0722f;
        o.d.flags = PTXK_MLA_LSE;
        o.batch = i == 1 ? 1 : 2;
        o.queries = 1;
        o.sm_count = 2;
        o.max_seq = 512;
        o.traffic = i == 1 ? 1.35 : 1.02; /* 2 chunks write and read partial results, and read q */
        for (b = 0; b < o.batch; b++) o.length[b] = 512;
        (void)run(&o, NULL, NULL);
    }
    for (b = 0; b < 4 && cu.ptxsim_report; b++) { /* without each barrier and each wait: it must be noticed */
        problem o;
        unsigned n, missed = 0;
        char what[160];
        int noticed;
        memset(&o, 0, sizeof o);
        o.target = b % 2 ? 90 : 80;
        o.d.heads = 10;
        o.d.latent = 128;
        o.d.rope = 32;
        o.d.kv_type = b > 1 ? caches[b - 1] : PTX_F16;
        o.d.q_type = PTX_F16;
        o.d.out_type = PTX_F32;
        o.d.tile = b % 2 ? 64 : 16;
        o.d.page_size = b % 2 ? 16 : 0;
        o.d.scale = 0.1f;
        o.batch = o.queries = 2;
        o.sm_count = 1;
        o.max_seq = 210;
        o.length[0] = 210;
        o.length[1] = 200;
        for (n = 0; (noticed = run(&o, &n, what)) != 2; n++)
            if (!noticed) printf("not noticed: %s\n", what), missed++;
        printf("sm_%u: %u synchronising instructions taken out, %u not noticed\n", o.target, n, missed);
        CHECK(n > 5 && missed == 0);
    }
    return check_end();
}
