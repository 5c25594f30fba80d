/* matmultest.h - what the tests of matmul share: a problem of random data, its launch, its comparison with double.
 *
 * Include it behind _POSIX_C_SOURCE and ptxgen_kernels.h. */
#ifndef MATMULTEST_H
#define MATMULTEST_H

#include "kerneltest.h"
#include "reference/matmul.h"

#define GUARD 64u /* bytes of poison behind D that must stay */

typedef struct problem {
    ptxk_matmul_desc desc;
    ptxk_matmul_shape shape;
    float alpha, beta;
    uint32_t pad[4];  /* a, b, c, d: elements of a leading dimension beyond the row */
    uint32_t shift[4]; /* ... from an aligned address to the tensor */
    uint32_t pack;    /* the batch's matrices lie one after the other, else some elements apart; 2: A is shared */
    int in_place;     /* C is D */
    int tile, parts;  /* the tile (0: 128, 1: 64) and the parts of k; -1: the plan's */
    uint32_t entry, cluster; /* of warpgroups: PTXK__WARPGROUP_WIDE or _ALTERNATE; 0: the plan's */
    uint32_t step;    /* of the elements that are compared */
    ptx_plan plan;
    unsigned char *data[4]; /* a, b, c, d; d is read back */
    float *bias, *factors[2];
    device_ptr memory[7];
    size_t elements[4], ld[4], stride[4], factor_count[2];
    double worst;
    double size; /* of the elements */
} problem;

static int number_of(uint32_t type)
{
    switch (type) {
    case PTX_F32: return REF_F32;
    case PTX_F16: return REF_F16;
    case PTX_BF16: return REF_BF16;
    case PTX_E4M3: return REF_E4M3;
    case PTX_E5M2: return REF_E5M2;
    default: return REF_S8;
    }
}

static uint32_t type_of(const problem *p, int i)
{
    return i == 0 ? p->desc.a_type : i == 1 ? p->desc.b_type : p->desc.out_type;
}

static void put_random(void *array, int type, size_t i, double size)
{
    unsigned x;
    switch (type) {
    case REF_S8: ((unsigned char *)array)[i] = (unsigned char)random_u32(); return;
    case REF_E4M3:
        do x = random_u32() & 255;
        while ((x & 127) == 127);
        ((unsigned char *)array)[i] = (unsigned char)x;
        return;
    case REF_E5M2:
        do x = random_u32() & 255;
        while ((x & 127) >= 96); /* to 2^9 */
        ((unsigned char *)array)[i] = (unsigned char)x;
        return;
    default: ref_put(array, (enum ref_format)type, i, random_within(size));
    }
}

/* One of those that make a difference and that the device runs. */
static inline ptx_target any_target(void)
{
    static const unsigned targets[] = {75, 80, 89, 90};
    unsigned n = 4;
    while (targets[n - 1] > (unsigned)capability) n--;
    return PTX_SM(targets[random_below(3) ? n - 1 : random_below(n)]);
}

static problem problem_new(uint32_t type, uint32_t out, uint32_t flags, uint32_t m, uint32_t n, uint32_t k)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.desc.a_type = p.desc.b_type = type;
    p.desc.out_type = out;
    p.desc.flags = flags;
    p.shape.m = m, p.shape.n = n, p.shape.k = k, p.shape.batch = 1, p.shape.sm_count = 1 + random_below(12);
    p.shape.target = any_target();
    p.alpha = 1;
    p.tile = p.parts = -1;
    p.step = 1;
    p.pack = 1;
    p.size = 1;
    return p;
}

/* Random matrices in rows of ld elements; what is between rows is NaN. */
static void problem_fill(problem *p)
{
    const ptxk_matmul_shape *s = &p->shape;
    uint32_t rows[4], columns[4], i, kb = (s->k + 127) / 128;
    size_t r, c, b;
    rows[0] = p->desc.flags & PTXK_MATMUL_TRANS_A ? s->k : s->m;
    columns[0] = p->desc.flags & PTXK_MATMUL_TRANS_A ? s->m : s->k;
    rows[1] = p->desc.flags & PTXK_MATMUL_TRANS_B ? s->n : s->k;
    columns[1] = p->desc.flags & PTXK_MATMUL_TRANS_B ? s->k : s->n;
    rows[2] = rows[3] = s->m;
    columns[2] = columns[3] = s->n;
    for (i = 0; i < 4; i++) {
        int type = number_of(type_of(p, (int)i));
        size_t bytes = ref_number_bytes(type);
        p->ld[i] = columns[i] + p->pad[i];
        p->stride[i] = rows[i] * p->ld[i] + (p->pack ? 0u : p->pad[i] && !s->aligned ? 31u : 24u);
        if (i < 2 && p->pack == 2) p->stride[i] = 0;
        p->elements[i] = (rows[i] ? (rows[i] - 1) * p->ld[i] + columns[i] : 0) + (s->batch - 1) * p->stride[i];
        p->data[i] = (unsigned char *)malloc((p->elements[i] + p->shift[i]) * bytes + GUARD);
        memset(p->data[i], 0xff, (p->elements[i] + p->shift[i]) * bytes + GUARD);
        for (b = 0; b < s->batch && i < 3; b++)
            for (r = 0; r < rows[i]; r++)
                for (c = 0; c < columns[i]; c++)
                    put_random(p->data[i], type, p->shift[i] + b * p->stride[i] + r * p->ld[i] + c, p->size);
    }
    p->bias = (float *)malloc((s->n + 1) * 4);
    for (c = 0; c < s->n; c++) p->bias[c] = (float)random_within(2);
    for (i = 0; i < 2; i++) {
        uint32_t kind = i ? p->desc.b_factors : p->desc.a_factors, length = i ? s->n : s->m;
        p->factor_count[i] = kind == 1   ? 1
                             : kind == 2 ? length
                             : kind == 3 ? length * kb
                             : kind == 4 ? (length + 127) / 128 * kb
                                         : 0;
        p->factors[i] = (float *)malloc((p->factor_count[i] * s->batch + 1) * 4);
        for (c = 0; c < p->factor_count[i] * s->batch; c++) p->factors[i][c] = (float)(0.5 + fabs(random_within(1)));
    }
}

static void problem_free(problem *p)
{
    int i;
    for (i = 0; i < 4; i++) free(p->data[i]);
    free(p->bias);
    free(p->factors[0]);
    free(p->factors[1]);
}

/* Bytes from an array's start to its tensor, and of all of it. */
static size_t shift_bytes(const problem *p, int i)
{
    return p->shift[i] * ref_number_bytes(number_of(type_of(p, i)));
}

static size_t all_bytes(const problem *p, int i)
{
    return p->elements[i] * ref_number_bytes(number_of(type_of(p, i))) + shift_bytes(p, i) + (i == 3 ? GUARD : 0);
}

/* Uploads the problem, in memory of exactly its size, and fills in its arguments. */
static void problem_upload(problem *p, ptxk_matmul_args *args)
{
    int i;
    memset(args, 0, sizeof *args);
    if (p->in_place)
        memcpy(p->data[3] + shift_bytes(p, 3), p->data[2] + shift_bytes(p, 2), all_bytes(p, 2) - shift_bytes(p, 2));
    for (i = 0; i < 4; i++) {
        p->memory[i] = upload(p->data[i], all_bytes(p, i));
        (&args->a)[i] = p->memory[i] + shift_bytes(p, i);
    }
    if (p->in_place) args->c = args->d;
    if (!(p->beta != 0)) args->c = 0; /* is not read */
    args->bias = p->memory[4] = upload(p->bias, (size_t)p->shape.n * 4);
    for (i = 0; i < 2; i++) p->memory[5 + i] = upload(p->factors[i], p->factor_count[i] * p->shape.batch * 4);
    args->a_factors = p->memory[5], args->b_factors = p->memory[6];
    args->m = p->shape.m, args->n = p->shape.n, args->k = p->shape.k, args->batch = p->shape.batch;
    args->lda = (uint32_t)p->ld[0], args->ldb = (uint32_t)p->ld[1];
    args->ldc = (uint32_t)p->ld[p->in_place ? 3 : 2], args->ldd = (uint32_t)p->ld[3];
    args->a_stride = p->stride[0], args->b_stride = p->stride[1];
    args->c_stride = p->stride[p->in_place ? 3 : 2], args->d_stride = p->stride[3];
    args->a_factors_stride = p->factor_count[0], args->b_factors_stride = p->factor_count[1];
    args->alpha = p->alpha, args->beta = p->beta, args->sm_count = p->shape.sm_count;
}

static void problem_download(problem *p)
{
    int i;
    CHECK(cu.cuMemcpyDtoH(p->data[3], p->memory[3], all_bytes(p, 3)) == 0);
    for (i = 0; i < 7; i++) cu.cuMemFree(p->memory[i]);
}

/* Builds the kernel and launches it `runs` times. */
static void run_kernel(const ptxk_matmul_desc *desc, ptx_target target, const ptx_plan *plan, ptxk_matmul_args *args,
                       uint32_t runs)
{
    ptx_module_desc module_desc;
    ptxk_message why;
    ptx_module *m;
    const char *text;
    void *module;
    device_ptr workspace = 0;
    uint32_t i;
    unsigned char *zeros;
    memset(&module_desc, 0, sizeof module_desc);
    module_desc.target = target;
    m = ptx_module_new(&module_desc);
    ptxk_matmul_emit(m, desc);
    text = ptx_text(m, NULL);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message) || !(module = load_text(text))) return;
    if (plan->workspace_bytes) {
        CHECK(cu.cuMemAlloc(&workspace, (size_t)plan->workspace_bytes) == 0);
        zeros = (unsigned char *)calloc(1, (size_t)plan->zero_bytes);
        CHECK(cu.cuMemcpyHtoD(workspace, zeros, (size_t)plan->zero_bytes) == 0);
        free(zeros);
    }
    args->workspace = workspace ? workspace : 1ull << 56; /* a layout of the test's own may need none */
    CHECK_MORE(!ptxk_matmul_check(desc, args, &why), why.text);
    args->workspace = workspace;
    if (cu.ptxsim_counters_reset) cu.ptxsim_counters_reset();
    for (; runs; runs--)
        for (i = 0; i < plan->launches; i++)
            launch_with_maps(m, module, &plan->launch[i], plan, i, args, sizeof *args);
    CHECK(cu.cuCtxSynchronize() == 0);
    check_reports();
    if (workspace) cu.cuMemFree(workspace);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
}

static void problem_plan(problem *p)
{
    ptxk_message why;
    CHECK_MORE(!ptxk_matmul_plan(&p->desc, &p->shape, &p->plan, &why), why.text);
    if (p->tile >= 0) {
        ptxk__matmul f;
        CHECK(!ptxk__matmul_form(&p->desc, p->shape.target, &f, NULL));
        ptxk__matmul_lay_out(&f, &p->shape, (uint32_t)p->tile, (uint32_t)p->parts, &p->plan);
    }
    if (p->entry && p->plan.maps) {
        ptxk__matmul f;
        CHECK(!ptxk__matmul_form(&p->desc, p->shape.target, &f, NULL));
        ptxk__matmul_shape_tile(&f, 0);
        p->plan.maps = 0;
        memset(&p->plan.launch[0], 0, sizeof p->plan.launch[0]);
        ptxk__tma_lay_out(&f, &p->shape, p->entry, p->cluster, &p->plan);
    }
}

static void problem_launch(problem *p)
{
    ptxk_matmul_args args;
    problem_upload(p, &args);
    if (p->shape.aligned) p->shape.aligned = (uint32_t)ptxk_matmul_aligned(&p->desc, &args);
    problem_plan(p);
    run_kernel(&p->desc, p->shape.target, &p->plan, &args, 1);
    problem_download(p);
}

/* The parts of k of the tiles that are divided. */
static uint32_t parts_of(const problem *p)
{
    uint32_t tile = p->plan.launch[0].entry ? 64 : 128, tiles, divided;
    if (!p->plan.launches || !p->plan.workspace_bytes) return 1;
    if (p->plan.maps) {
        ptxk__matmul f;
        ptxk__tma d;
        ptxk__tma_units u;
        (void)ptxk__matmul_form(&p->desc, p->shape.target, &f, NULL);
        ptxk__matmul_shape_tile(&f, 0);
        ptxk__tma_shape(&f, p->plan.launch[0].entry, &d);
        ptxk__tma_count_units(&d, &p->shape, p->plan.launch[0].cluster[0] ? p->plan.launch[0].cluster[0] : 1, &u);
        return u.parts;
    }
    tiles = (p->shape.m + tile - 1) / tile * ((p->shape.n + tile - 1) / tile) * p->shape.batch;
    divided = tiles % p->shape.sm_count;
    return 1 + (p->plan.launch[0].grid[0] - tiles) / divided;
}

/* What element (b, i, j) must be, with its bound. */
static double expected(const problem *p, size_t b, size_t i, size_t j, double *bound)
{
    const double u = 0x1p-24;
    enum ref_format out = (enum ref_format)number_of(p->desc.out_type);
    ref_matmul r;
    ptxk__matmul f;
    double x, added = 0, whole;
    memset(&r, 0, sizeof r);
    (void)ptxk__matmul_form(&p->desc, p->shape.target, &f, NULL);
    ptxk__matmul_shape_tile(&f, 0);
    if (p->plan.maps) f.depth = 128 / f.bytes;
    r.a.type = number_of(p->desc.a_type), r.b.type = number_of(p->desc.b_type);
    r.a.data = p->data[0] + (p->shift[0] + b * p->stride[0]) * ref_number_bytes(r.a.type);
    r.b.data = p->data[1] + (p->shift[1] + b * p->stride[1]) * ref_number_bytes(r.b.type);
    r.a.row = r.b.row = 1, r.a.step = p->ld[0], r.b.step = p->ld[1];
    if (!(p->desc.flags & PTXK_MATMUL_TRANS_A)) r.a.row = p->ld[0], r.a.step = 1;
    if (p->desc.flags & PTXK_MATMUL_TRANS_B) r.b.row = p->ld[1], r.b.step = 1;
    r.a.factors = p->factors[0] + b * p->factor_count[0], r.b.factors = p->factors[1] + b * p->factor_count[1];
    r.a.kind = (int)p->desc.a_factors, r.b.kind = (int)p->desc.b_factors;
    r.k = p->alpha != 0 ? p->shape.k : 0;
    r.parts = parts_of(p);
    r.depth = f.depth;
    r.single = p->desc.precision == PTXK_MATMUL_FAST;
    r.together = p->plan.maps && f.has_tensor_memory && !f.block_factors;
    r.narrow = (capability == 89 || (p->plan.maps && !f.has_tensor_memory))
               && (p->desc.a_type == PTX_E4M3 || p->desc.a_type == PTX_E5M2);
    x = ref_matmul_element(&r, i, j, bound);
    if (r.parts > 1) { /* not of all tiles */
        r.parts = 1;
        (void)ref_matmul_element(&r, i, j, &whole);
        if (whole > *bound) *bound = whole;
    }
    x *= (double)p->alpha;
    *bound *= fabs((double)p->alpha);
    if (p->beta != 0)
        added = (double)p->beta * ref_get(p->data[2], out, p->shift[2] + b * p->stride[2] + i * p->ld[2] + j);
    *bound += 3 * u * fabs(x) + 2 * u * fabs(added);
    x += added;
    if (p->desc.flags & PTXK_MATMUL_BIAS) x += (double)p->bias[j], *bound += u * fabs(x);
    *bound += 2 * u * fabs(x);
    x = ref_matmul_activate((int)p->desc.activation, x, bound);
    *bound = 1.01 * *bound + 1e-37;
    if (out == REF_F16) *bound += 0x1p-11 * (fabs(x) + *bound) + 0x1p-25;
    if (out == REF_BF16) *bound += 0x1p-8 * (fabs(x) + *bound);
    return x;
}

static double most_of_bound;

static void problem_compare(problem *p)
{
    enum ref_format out = (enum ref_format)number_of(p->desc.out_type);
    const unsigned char *bytes = p->data[3];
    size_t b, i, j, at, wrong = 0, compared = 0, end, x;
    size_t step = p->step > 1 || p->shape.m * p->shape.n < 8000 ? p->step : 7; /* of large ones a part */
    char detail[300] = "";
    for (b = 0; b < p->shape.batch; b++) {
        for (i = 0; i < p->shape.m; i++) {
            for (j = 0; j < p->shape.n; j++) {
                double bound, want, have;
                at = p->shift[3] + b * p->stride[3] + i * p->ld[3] + j;
                if ((i * p->shape.n + j) % step) continue;
                have = ref_get(bytes, out, at);
                want = expected(p, b, i, j, &bound);
                compared++;
                if (out == REF_F16 && fabs(want) > 65000) continue; /* infinite or not, either is right */
                if (fabs(have - want) > p->worst * bound) p->worst = fabs(have - want) / bound;
                if (!(fabs(have - want) <= bound) && !wrong++)
                    (void)snprintf(detail, sizeof detail,
                                   "%s %s to %s flags %u precision %u activation %u factors %u %u, %u x %u x %u, "
                                   "batch %u, tile %d x %u parts, pads %u %u: [%u][%u,%u] is %.9g, not %.9g +- %.3g",
                                   ptx_type_name((ptx_type)p->desc.a_type), ptx_type_name((ptx_type)p->desc.b_type),
                                   ptx_type_name((ptx_type)p->desc.out_type), p->desc.flags, p->desc.precision,
                                   p->desc.activation, p->desc.a_factors, p->desc.b_factors, p->shape.m,
                                   p->shape.n, p->shape.k, p->shape.batch, p->tile, parts_of(p),
                                   p->pad[0], p->pad[1], (unsigned)b, (unsigned)i, (unsigned)j, have, want, bound);
            }
        }
    }
    CHECK_MORE(wrong == 0, detail);
    if (wrong) printf("  %zu of %zu elements\n", wrong, compared);
    /* Between rows, and behind the last, nothing was written. */
    for (b = 0, wrong = 0; b < p->shape.batch && p->shape.m && p->shape.n; b++) {
        for (i = 0; i < p->shape.m; i++) {
            at = (p->shift[3] + b * p->stride[3] + i * p->ld[3] + p->shape.n) * ref_bytes(out);
            end = i + 1 < p->shape.m      ? at + p->pad[3] * ref_bytes(out)
                  : b + 1 < p->shape.batch ? (p->shift[3] + (b + 1) * p->stride[3]) * ref_bytes(out)
                                           : at + GUARD;
            for (x = at; x < end && !p->in_place; x++) wrong += bytes[x] != 0xff;
        }
    }
    CHECK(wrong == 0);
    if (p->worst > most_of_bound) most_of_bound = p->worst;
}

static void problem_run(problem *p)
{
    problem_fill(p);
    problem_launch(p);
    problem_compare(p);
    problem_free(p);
}

/* -- for the forms with tensor maps -- */

static uint32_t tile_size(void)
{
    static const uint32_t sizes[] = {1, 8, 63, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 300, 390, 520};
    return sizes[random_below(sizeof sizes / sizeof *sizes)];
}


/* Leading dimensions in multiples of 16 bytes. */
static void align_rows(problem *p)
{
    uint32_t i, columns[4], m = p->shape.m, n = p->shape.n, k = p->shape.k;
    columns[0] = p->desc.flags & PTXK_MATMUL_TRANS_A ? m : k;
    columns[1] = p->desc.flags & PTXK_MATMUL_TRANS_B ? k : n;
    columns[2] = columns[3] = n;
    for (i = 0; i < 4; i++) {
        uint32_t per = 16 / (uint32_t)ref_number_bytes(number_of(type_of(p, (int)i)));
        p->pad[i] = (per - columns[i] % per) % per + per * random_below(2);
        p->shift[i] = per * random_below(3);
    }
}

#endif
