/* matmul_memory_faults.c - each barrier, fence and wait of matmul's form for sm_100a is taken out, one at a time: the
 * CPU driver must find it, or the results must be others.
 *
 * Runs on the CPU driver only. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmultest.h"
#include "../mutations.h"

/* Those that nothing notices, how many of them in an entry, and why. */
static const struct {
    const char *text;
    unsigned most;
    const char *reason;
} silent[] = {
    {"fence.mbarrier_init", 1, "the cluster's barrier behind it orders as much here"},
    {"tcgen05.fence::after_thread_sync", 2, "of the multiplying thread's two, either does"},
    {"cp.async.bulk.wait_group.read 0", 1, "at a unit's first box of C: the CPU driver has carried out the stores"},
    {"bar.warp.sync", 2, "tcgen05.wait::ld is the whole warp's; the CPU driver joins lanes behind an if"},
};
#define SILENT (sizeof silent / sizeof *silent)
static unsigned removed, unnoticed;

typedef struct variant {
    problem p;
    ptxk_matmul_args args;
    unsigned char *right; /* D of the whole program */
} variant;

/* 1: something was found, or D is another. */
static int run_text(variant *v, const ptx_module *m, const char *text)
{
    static char found[4000];
    void *module = load_text(text);
    size_t bytes = all_bytes(&v->p, 3);
    unsigned char *zeros, *got;
    int noticed;
    if (!module) return 1;
    zeros = (unsigned char *)calloc(1, (size_t)v->p.plan.zero_bytes + 1);
    if (v->args.workspace) CHECK(!cu.cuMemcpyHtoD(v->args.workspace, zeros, (size_t)v->p.plan.zero_bytes));
    free(zeros);
    CHECK(!cu.cuMemcpyHtoD(v->p.memory[3], v->p.data[3], bytes));
    CHECK(launch_with_maps(m, module, &v->p.plan.launch[0], &v->p.plan, 0, &v->args, sizeof v->args));
    noticed = cu.cuCtxSynchronize() || cu.ptxsim_report_count();
    if (noticed && !v->right) cu.ptxsim_report(found, sizeof found), puts(found);
    cu.ptxsim_report_clear();
    if (!noticed) {
        got = (unsigned char *)malloc(bytes);
        CHECK(!cu.cuMemcpyDtoH(got, v->p.memory[3], bytes));
        if (v->right) noticed = memcmp(got, v->right, bytes) != 0, free(got);
        else v->right = got;
    }
    cu.cuModuleUnload(module);
    return noticed;
}

/* Several units of a block, C, parts of k: what no single problem has. */
static void take_out_each(uint32_t type, uint32_t entry, uint32_t out, uint32_t factors)
{
    static const uint32_t shapes[][5] = {/* m, n, k, multiprocessors of a cluster, beta */
                                         {200, 700, 330, 1, 0}, {300, 600, 100, 1, 1}, {130, 200, 1000, 8, 0}};
    variant v[3];
    ptx_module_desc desc;
    ptx_module *m;
    ptx_entry_info info;
    const char *text;
    char *alone, *changed, what[160];
    unsigned n, i, j, turn, count[SILENT] = {0};
    memset(v, 0, sizeof v);
    for (i = 0; i < 3; i++) {
        problem *p = &v[i].p;
        uint32_t per = 16 / (uint32_t)ref_number_bytes(number_of(type));
        *p = problem_new(type, out, PTXK_MATMUL_TRANS_B, shapes[i][0], shapes[i][1], shapes[i][2] / 8 * per);
        p->shape.target = PTX_SM_A(100), p->shape.aligned = 1;
        p->desc.a_factors = p->desc.b_factors = factors;
        p->entry = entry, p->cluster = entry - PTXK__TENSOR_ONE + 1;
        p->shape.sm_count = shapes[i][3] * p->cluster;
        p->beta = shapes[i][4] ? 0.5f : 0;
        for (j = 0; j < 2; j++) p->pad[j] = (per - p->shape.k % per) % per;
        for (; j < 4; j++) p->pad[j] = (8 - p->shape.n % 8) % 8;
        problem_fill(p);
        problem_upload(p, &v[i].args);
        problem_plan(p);
        if (p->plan.workspace_bytes) CHECK(!cu.cuMemAlloc(&v[i].args.workspace, (size_t)p->plan.workspace_bytes));
    }
    CHECK(parts_of(&v[2].p) > 1);
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM_A(100);
    m = ptx_module_new(&desc);
    ptxk_matmul_emit(m, &v[0].p.desc);
    text = ptx_text(m, NULL);
    if (!CHECK(text && ptx_entry_get(m, entry, &info))) return;
    alone = (char *)malloc(strlen(text) + 1), changed = (char *)malloc(strlen(text) + 65);
    one_entry(text, info.name, alone);
    for (i = 0; i < 3; i++) CHECK(!run_text(&v[i], m, alone));
    for (n = 0; mutate(alone, n, changed, what); n++) {
        int noticed = 0;
        unsigned kind = 0;
        while (kind < SILENT && strncmp(what, silent[kind].text, strlen(silent[kind].text))) kind++;
        for (turn = 0; turn < (kind < SILENT ? 2u : 10u) && !noticed; turn++) {
            cu.ptxsim_set("seed", (int)turn);
            for (i = 0; i < 3 && !noticed; i++) noticed = run_text(&v[i], m, changed);
        }
        removed++;
        if (noticed) continue;
        unnoticed++;
        if (!CHECK_MORE(kind < SILENT, what)) continue;
        count[kind]++;
        printf("note: entry %u, not noticed: %s (%s)\n", entry, what, silent[kind].reason);
    }
    for (i = 0; i < SILENT; i++) CHECK_MORE(count[i] <= silent[i].most, silent[i].text);
    cu.ptxsim_set("seed", 0);
    for (i = 0; i < 3; i++) {
        for (j = 0; j < 7; j++) cu.cuMemFree(v[i].p.memory[j]);
        if (v[i].args.workspace) cu.cuMemFree(v[i].args.workspace);
        free(v[i].right);
        problem_free(&v[i].p);
    }
    free(alone), free(changed);
    ptx_module_free(m);
}

int main(void)
{
    setenv("PTXSIM_DEVICE", "sm_100a", 1);
    start_random();
    if (!open_driver()) return 1;
    if (capability != 100 || !cu.ptxsim_report) {
        puts("SKIP: wrong programs run on the CPU driver only, as sm_100");
        return check_end();
    }
    cu.ptxsim_set("quiet", 1);
    cu.ptxsim_set("budget", 400000);
    take_out_each(PTX_BF16, PTXK__TENSOR_ONE, PTX_BF16, 0);
    take_out_each(PTX_E4M3, PTXK__TENSOR_PAIR, PTX_F16, 0);
    take_out_each(PTX_E4M3, PTXK__TENSOR_PAIR, PTX_F16, PTXK_FACTORS_BLOCK);
    printf("note: %u instructions taken out, %u not noticed\n", removed, unnoticed);
    return check_end();
}
