/* gemm_warpgroups_faults.c - gemm's form for sm_90a: each barrier, fence and wait is taken out, one at a time, and the
 * CPU driver must find it, or the results must be others; what ptxas makes of it: instructions for a weight, spills,
 * remarks. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_GEMM
#include "../../ptxgen_kernels.h"

#include "../gemmtest.h"
#include "../mutations.h"
#include "../sass.h"

/* -- machine instructions -- */

#define SASS_FMUL 0x20u /* the low 8 bits */

static uint32_t wgmma_within(const unsigned char *code, uint32_t first, uint32_t last)
{
    uint32_t n = 0;
    for (; first <= last; first++) n += (sass_opcode(code, first) & 255) == 0xf0;
    return n;
}

/* The shortest loop that has so many products: its length without what rescales the sums, which is skipped but once or
 * twice in a row of W: branches over at least 32 multiplications. */
static uint32_t loop_of(const unsigned char *code, uint32_t count, uint32_t products, uint32_t *rescaling)
{
    uint32_t i, j, first = 0, length = 0, skipped = 0;
    for (i = 0; i < count; i++) {
        int64_t target = sass_target(code, i);
        if (sass_opcode(code, i) != SASS_BRA || target < 0 || target >= (int64_t)i
            || wgmma_within(code, (uint32_t)target, i) < products)
            continue;
        if (!length || i - (uint32_t)target + 1 < length) length = i - (uint32_t)target + 1, first = (uint32_t)target;
    }
    for (i = first; i < first + length; i++) {
        int64_t target = sass_target(code, i);
        uint32_t multiplied = 0;
        if (sass_opcode(code, i) != SASS_BRA || target <= (int64_t)i + 1 || target > (int64_t)(first + length)
            || wgmma_within(code, i, (uint32_t)target - 1))
            continue;
        for (j = i + 1; j < (uint32_t)target; j++) multiplied += (sass_opcode(code, j) & 255) == SASS_FMUL;
        if (multiplied >= 32) skipped += (uint32_t)target - i - 1;
    }
    *rescaling = skipped;
    return length - skipped;
}

static void instructions_per_weight(void)
{
    static const struct {
        uint32_t format, columns, precision, flags;
        double most; /* of the loop, for a weight and 128 columns (64: for those) */
    } forms[] = {{PTXK_Q4_K, 64, 0, 0, 3.4},   {PTXK_Q4_K, 128, 0, 0, 4.1}, {PTXK_Q4_K, 128, 1, 0, 2.8},
                 {PTXK_Q4_K, 256, 1, 0, 1.45}, {PTXK_Q5_K, 128, 0, 0, 4.8}, {PTXK_Q5_K, 128, 1, 0, 3.5},
                 {PTXK_Q6_K, 128, 0, 0, 6.5},  {PTXK_Q6_K, 128, 1, 0, 4.3}, {PTXK_Q6_K, 256, 1, 0, 2.45},
                 {PTXK_Q8_0, 128, 0, 0, 6.5},  {PTXK_Q8_0, 128, 1, 0, 4.1}, {PTXK_Q8_0, 256, 1, 0, 2.35},
                 {PTXK_Q4_0, 128, 0, 0, 6.1},  {PTXK_Q4_0, 128, 1, 0, 3.5}, {PTXK_Q4_K, 128, 0, PTXK_GEMM_SWIGLU, 4.1},
                 {PTXK_Q4_K, 256, 1, PTXK_GEMM_SWIGLU, 1.45}};
    static unsigned char image[1 << 20];
    uint32_t i, count = 0, loop, rescaling = 0, products;
    unsigned remarks;
    if (!sass_possible("instructions_per_weight")) return;
    for (i = 0; i < sizeof forms / sizeof *forms; i++) {
        ptxk_gemm_desc desc = {0, PTX_F32, PTX_F32, 0, 0, 0, 0, 0, 0};
        ptx_module_desc module_desc;
        ptx_module *m;
        ptxk__gemm form;
        const unsigned char *code;
        const char *name = ptxk_format_name(forms[i].format);
        double weights = 2 * 64 * 256 / 128.0 * (forms[i].columns > 128 ? 2 : 1); /* of a thread in two units */
        desc.format = forms[i].format, desc.columns = forms[i].columns, desc.precision = forms[i].precision;
        desc.flags = forms[i].flags;
        if (desc.flags) desc.second = desc.format;
        memset(&module_desc, 0, sizeof module_desc);
        module_desc.target = PTX_SM_A(90);
        m = ptx_module_new(&module_desc);
        CHECK(!ptxk__gemm_form(&desc, PTX_SM_A(90), &form, NULL) && form.wgmma && form.columns == desc.columns);
        /* the whole kernel: without spills, and products not one after the other */
        CHECK(!ptxk_gemm_emit(m, &desc));
        if (CHECK(ptx_text(m, NULL) != NULL)) {
            (void)sass_assemble_for("sm_90a", ptx_text(m, NULL), image, sizeof image, &remarks);
            CHECK_MORE(remarks == 0, name);
        }
        ptx_module_free(m);
        /* its loop, for rows that are 4-byte aligned, without what copies their ends */
        m = ptx_module_new(&module_desc);
        form.tiling[0].tails = 0;
        if (form.tiling[0].variants == 3) form.tiling[0].variants = 1;
        ptxk__gemm_emit_tiles(m, "gemm.c", &form, "k");
        if (CHECK(ptx_text(m, NULL) != NULL)
            && sass_assemble_for("sm_90a", ptx_text(m, NULL), image, sizeof image, NULL)
            && (code = sass_code(image, "k", &count))) {
            while (count && sass_opcode(code, count - 1) == SASS_NOP) count--;
            products = wgmma_within(code, 0, count - 1);
            loop = loop_of(code, count, products, &rescaling);
            printf("note: sm_90a: %s, %u columns, precision %u: %u instructions, %u in the loop of %u products and %u "
                   "that rescale: %.2f for a weight%s\n",
                   name, desc.columns, desc.precision, count, loop, products, rescaling, loop / weights,
                   desc.columns > 64 ? " and 128 columns" : "");
            CHECK_MORE(loop && loop / weights <= forms[i].most, name);
        }
        ptx_module_free(m);
    }
}

/* -- formats -- */

static void every_format(void)
{
    uint32_t f, i;
    for (f = 0; f < FORMATS; f++)
        for (i = 0; i < 4 && ref_block_values(formats[f].type) > 1; i++) {
            problem p = any_problem_for_warpgroups(formats[f].format, i & 1);
            problem_run(&p);
            problem_free(&p);
        }
    printf("note: errors up to %.2g of their bounds\n", most_of_bound);
}

/* -- faults -- */

/* Those that nothing notices, at most how many of them in a kernel, and why. */
static const struct {
    const char *text;
    unsigned count;
    const char *reason;
} silent[] = {
    {"fence.mbarrier_init", 1, "one block: the barrier behind it suffices"},
    {"wgmma.fence", 8, "products of one shape follow each other without"},
    {"bar.warp.sync", 16, "the CPU driver joins lanes behind an if; PTX does not promise it"},
};
#define SILENT (sizeof silent / sizeof *silent)
static unsigned removed, unnoticed;

typedef struct variant {
    problem p;
    ptxk_gemm_args args;
    void *right;
} variant;

/* 1: something was found, or y is another. */
static int run_text(variant *v, ptx_module *m, const char *text, int keep)
{
    static char found[4000];
    problem *p = &v->p;
    void *module = load_text(text), *function = NULL, *params[1], *got = keep ? v->right : malloc(p->m[0].y_bytes);
    unsigned char *zeros = (unsigned char *)calloc(1, (size_t)p->plan.zero_bytes + 1);
    uint32_t i;
    int noticed = !module;
    CHECK(!cu.cuMemcpyHtoD(v->args.workspace, zeros, (size_t)p->plan.zero_bytes));
    memset(got, 0xff, p->m[0].y_bytes);
    CHECK(!cu.cuMemcpyHtoD(v->args.matrix[0].y, got, p->m[0].y_bytes));
    for (i = 0; i < 2 && !noticed; i++) {
        const ptx_launch *l = &p->plan.launch[i];
        ptx_entry_info info;
        CHECK(ptx_entry_get(m, l->entry, &info));
        CHECK(!cu.cuModuleGetFunction(&function, module, info.name));
        CHECK(!cu.cuFuncSetAttribute(function, 8, (int)l->shared_bytes));
        params[0] = &v->args;
        noticed = cu.cuLaunchKernel(function, l->grid[0], 1, 1, l->block[0], 1, 1, l->shared_bytes, NULL, params, NULL);
        noticed |= cu.cuCtxSynchronize();
    }
    noticed |= (int)cu.ptxsim_report_count();
    if (keep && noticed) cu.ptxsim_report(found, sizeof found), puts(found);
    cu.ptxsim_report_clear();
    if (!noticed) {
        CHECK(!cu.cuMemcpyDtoH(got, v->args.matrix[0].y, p->m[0].y_bytes));
        if (!keep) noticed = memcmp(got, v->right, p->m[0].y_bytes) != 0;
    }
    if (!keep) free(got);
    free(zeros);
    if (module) cu.cuModuleUnload(module);
    return noticed;
}

static void take_out_each(uint32_t format, uint32_t precision)
{
    /* m, n, k, multiprocessors: rows of one are 4-byte aligned, of the other not, where the format knows both */
    const uint32_t shapes[][4] = {{70, 20, 2048, 3}, {5, 140, format == PTXK_Q8_0 ? 1952 : 1792, 1}};
    variant v[2];
    ptx_module_desc desc;
    ptx_module *m;
    ptx_entry_info info;
    const char *text, *products;
    char *changed, what[160], entry[200];
    unsigned n, i, turn, turns, count[SILENT] = {0};
    for (i = 0; i < 2; i++) {
        problem *p = &v[i].p;
        ptxk_message why;
        *p = problem_new(format, shapes[i][0], shapes[i][1], shapes[i][2], 64, precision, 0);
        p->shape.target = PTX_SM_A(90), p->shape.sm_count = shapes[i][3];
        p->y_stride = p->x_stride = 0;
        memset(&v[i].args, 0, sizeof v[i].args);
        CHECK_MORE(!ptxk_gemm_plan(&p->desc, &p->shape, &p->plan, &why), why.text);
        p->m[0].y_bytes = (size_t)p->shape.m * p->shape.n * 4;
        v[i].right = malloc(p->m[0].y_bytes);
        for (n = 0; n < p->shape.n * (shapes[i][2] / 256); n++) { /* the power of two of a row falls in every unit */
            uint32_t row = n / (shapes[i][2] / 256), unit = n % (shapes[i][2] / 256);
            uint32_t block = unit * 256 / (uint32_t)ref_block_values(p->m[0].type);
            CHECK(put_factor(p->m[0].type,
                             p->m[0].weights + p->m[0].row_bytes * row + block * ref_block_bytes(p->m[0].type),
                             ldexp(1, (int)(4 * unit) - 20)));
        }
        v[i].args.matrix[0].weights = upload(p->m[0].weights, p->m[0].row_bytes * p->shape.n);
        v[i].args.matrix[0].n = p->shape.n;
        v[i].args.x = upload(p->x, (size_t)p->shape.m * p->shape.k * 4);
        v[i].args.m = p->shape.m, v[i].args.k = p->shape.k;
        CHECK(!cu.cuMemAlloc(&v[i].args.matrix[0].y, p->m[0].y_bytes));
        CHECK(!cu.cuMemAlloc(&v[i].args.workspace, (size_t)p->plan.workspace_bytes));
    }
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM_A(90);
    m = ptx_module_new(&desc);
    ptxk_gemm_emit(m, &v[0].p.desc);
    text = ptx_text(m, NULL);
    if (!CHECK(text != NULL)) return;
    changed = (char *)malloc(strlen(text) + 65);
    for (i = 0; i < 2; i++) CHECK(!run_text(&v[i], m, text, 1));
    CHECK(ptx_entry_get(m, 1, &info));
    (void)snprintf(entry, sizeof entry, ".entry %s(", info.name);
    if (!CHECK((products = strstr(text, entry)) != NULL)) return;
    for (n = 0; mutate(text, n, changed, what); n++) {
        int noticed = 0;
        size_t at = 0;
        while (text[at] == changed[at]) at++;
        if (text + at < products) continue; /* of the first entry */
        for (i = 0; i < SILENT && strncmp(what, silent[i].text, strlen(silent[i].text));) i++;
        turns = i < SILENT ? 2 : 10;
        for (turn = 0; turn < turns && !noticed; turn++) {
            unsigned j;
            cu.ptxsim_set("seed", (int)turn);
            for (j = 0; j < 2 && !noticed; j++) noticed = run_text(&v[j], m, changed, 0);
        }
        removed++;
        if (noticed) continue;
        unnoticed++;
        printf("note: %s, precision %u, not noticed: %s (%s)\n", ptxk_format_name(format), precision, what,
               i < SILENT ? silent[i].reason : "!");
        if (CHECK_MORE(i < SILENT, what)) count[i]++;
    }
    for (i = 0; i < SILENT; i++) CHECK_MORE(count[i] <= silent[i].count, silent[i].text);
    cu.ptxsim_set("seed", 0);
    for (i = 0; i < 2; i++) {
        cu.cuMemFree(v[i].args.matrix[0].weights), cu.cuMemFree(v[i].args.matrix[0].y);
        cu.cuMemFree(v[i].args.x), cu.cuMemFree(v[i].args.workspace);
        free(v[i].right);
        problem_free(&v[i].p);
    }
    free(changed);
    ptx_module_free(m);
}

int main(void)
{
    start_random();
    instructions_per_weight();
    if (!open_driver()) return 1;
    if (capability != 90 || !cu.ptxsim_report) {
        puts("SKIP: wrong programs run on the CPU driver only, as sm_90");
        return check_end();
    }
    every_format();
    cu.ptxsim_set("quiet", 1);
    cu.ptxsim_set("budget", 400000);
    switch (random_below(3)) { /* their barriers, fences and waits are of one code: a format in each run */
    case 0: take_out_each(PTXK_Q4_K, PTXK_GEMM_EXACT); break;
    case 1: take_out_each(PTXK_Q8_0, PTXK_GEMM_FAST); break;
    default: take_out_each(PTXK_Q6_K, PTXK_GEMM_EXACT);
    }
    printf("note: %u instructions taken out, %u not noticed\n", removed, unnoticed);
    return check_end();
}
