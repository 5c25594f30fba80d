/* matmul_dense_faults.c - each barrier, fence and wait of matmul's form for sm_90a is taken out, one at a time: the
 * CPU driver must find it, or the results must be others.
 *
 * Runs on the CPU driver only. */
#define _POSIX_C_SOURCE 200809L
#define PTXGEN_IMPLEMENTATION
#define PTXK_ONLY PTXK_OP_MATMUL
#include "../../ptxgen_kernels.h"

#include "../matmultest.h"
#include "../mutations.h"

/* Those that nothing notices, how many of them in each entry, and why. */
static const struct {
    const char *text;
    unsigned wide, narrow;
    const char *reason;
} silent[] = {
    {"setmaxnreg.inc", 1, 1, "the CPU driver has no machine registers; ptxas would spill"},
    {"wgmma.fence", 3, 5, "products of one shape follow each other without; ptxas puts it in, and says so"},
    {"cp.async.bulk.wait_group.read 0", 1, 1, "at a unit's first box of C: the CPU driver has carried out the stores"},
    {"bar.warp.sync", 1, 1, "the CPU driver joins lanes behind an if; PTX does not promise it"},
};

typedef struct variant {
    problem p;
    ptxk_matmul_args args;
    unsigned char *right;
} variant;

/* 1: something was found, or D is another. */
static int run_text(variant *v, const char *text, int keep)
{
    static char found[4000];
    void *module = load_text(text), *function = NULL;
    char room[PTX_PLAN_MAPS][192];
    void *params[1 + PTX_PLAN_MAPS];
    const ptx_launch *l = &v->p.plan.launch[0];
    char name[200];
    const char *at = strstr(text, ".visible .entry ") + 16;
    size_t bytes = all_bytes(&v->p, 3);
    uint32_t i;
    int noticed = 0;
    unsigned char *zeros = (unsigned char *)calloc(1, (size_t)v->p.plan.workspace_bytes + 1);
    if (!module) return 1;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "("), at);
    if (v->args.workspace) CHECK(!cu.cuMemcpyHtoD(v->args.workspace, zeros, (size_t)v->p.plan.zero_bytes));
    free(zeros);
    CHECK(!cu.cuMemcpyHtoD(v->p.memory[3], v->p.data[3], bytes));
    CHECK(!cu.cuModuleGetFunction(&function, module, name));
    CHECK(!cu.cuFuncSetAttribute(function, 8, (int)l->shared_bytes));
    params[0] = &v->args;
    for (i = 0; i < v->p.plan.maps; i++) {
        ptx_map_values m;
        CHECK(!ptx_map_resolve(&v->p.plan.map[i], &v->args, &m));
        params[1 + i] = room[i] + (64 - (uintptr_t)room[i] % 64) % 64;
        CHECK(!cu.cuTensorMapEncodeTiled(params[1 + i], m.type, m.rank, m.address, m.size, m.stride, m.box,
                                         m.element_stride, 0, m.swizzle, m.l2_promotion, 0));
    }
    noticed = l->cluster[0] ? launch_clusters(function, l, params)
                            : cu.cuLaunchKernel(function, l->grid[0], 1, 1, l->block[0], 1, 1, l->shared_bytes, NULL,
                                                params, NULL);
    noticed |= cu.cuCtxSynchronize();
    noticed |= (int)cu.ptxsim_report_count();
    if (keep && noticed) cu.ptxsim_report(found, sizeof found), puts(found);
    cu.ptxsim_report_clear();
    if (!noticed) {
        unsigned char *got = keep ? v->right : (unsigned char *)malloc(bytes);
        CHECK(!cu.cuMemcpyDtoH(got, v->p.memory[3], bytes));
        if (!keep) noticed = memcmp(got, v->right, bytes) != 0, free(got);
    }
    cu.cuModuleUnload(module);
    return noticed;
}

#define SILENT (sizeof silent / sizeof *silent)
static unsigned removed, unnoticed;

static void take_out_each(uint32_t type, uint32_t entry, uint32_t out)
{
    /* Several units of a group, parts of k, C, clusters: what no single problem has. */
    static const uint32_t shapes[][6] = {/* m, n, k, multiprocessors, cluster, beta */
                                         {200, 500, 330, 2, 2, 1},
                                         {150, 600, 850, 1, 1, 0},
                                         {130, 200, 1000, 8, 2, 0}};
    variant v[3];
    ptx_module_desc desc;
    ptx_module *m;
    ptx_entry_info info;
    const char *text;
    char *alone, *changed, what[160];
    unsigned n, i, turn, turns, kind, count[SILENT] = {0};
    for (i = 0; i < 3; i++) {
        problem *p = &v[i].p;
        uint32_t per = 16 / (uint32_t)ref_number_bytes(number_of(type)), j;
        *p = problem_new(type, out, PTXK_MATMUL_TRANS_B, shapes[i][0], shapes[i][1], shapes[i][2] / 8 * per);
        p->shape.target = PTX_SM_A(90), p->shape.aligned = 1, p->shape.sm_count = shapes[i][3];
        p->beta = shapes[i][5] ? 0.5f : 0;
        p->entry = entry, p->cluster = shapes[i][4];
        for (j = 0; j < 2; j++) p->pad[j] = (per - p->shape.k % per) % per;
        for (; j < 4; j++) p->pad[j] = (8 - p->shape.n % 8) % 8;
        problem_fill(p);
        problem_upload(p, &v[i].args);
        problem_plan(p);
        if (p->plan.workspace_bytes) CHECK(!cu.cuMemAlloc(&v[i].args.workspace, (size_t)p->plan.workspace_bytes));
        v[i].right = (unsigned char *)malloc(all_bytes(p, 3));
    }
    CHECK(parts_of(&v[2].p) > 1);
    memset(&desc, 0, sizeof desc);
    desc.target = PTX_SM_A(90);
    m = ptx_module_new(&desc);
    ptxk_matmul_emit(m, &v[0].p.desc);
    text = ptx_text(m, NULL);
    if (!CHECK(text && ptx_entry_get(m, entry, &info))) return;
    alone = (char *)malloc(strlen(text) + 1), changed = (char *)malloc(strlen(text) + 65);
    one_entry(text, info.name, alone);
    for (i = 0; i < 3; i++) CHECK(!run_text(&v[i], alone, 1));
    for (n = 0; mutate(alone, n, changed, what); n++) {
        int noticed = 0;
        for (i = 0; i < SILENT && strncmp(what, silent[i].text, strlen(silent[i].text));) i++;
        turns = i < SILENT ? 2 : 10, kind = i;
        for (turn = 0; turn < turns && !noticed; turn++) {
            cu.ptxsim_set("seed", (int)turn);
            for (i = 0; i < 3 && !noticed; i++) noticed = run_text(&v[i], changed, 0);
        }
        removed++;
        if (noticed) continue;
        unnoticed++;
        if (!CHECK_MORE(kind < SILENT, what)) continue;
        count[kind]++;
        printf("note: entry %u, not noticed: %s (%s)\n", entry, what, silent[kind].reason);
    }
    for (i = 0; i < SILENT; i++)
        CHECK_MORE(count[i] <= (entry == PTXK__DENSE_WIDE ? silent[i].wide : silent[i].narrow), silent[i].text);
    cu.ptxsim_set("seed", 0);
    for (i = 0; i < 3; i++) {
        unsigned j;
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
    start_random();
    if (!open_driver()) return 1;
    if (capability != 90 || !cu.ptxsim_report) {
        puts("SKIP: wrong programs run on the CPU driver only, as sm_90");
        return check_end();
    }
    cu.ptxsim_set("quiet", 1);
    cu.ptxsim_set("budget", 400000);
    take_out_each(PTX_BF16, PTXK__DENSE_WIDE, PTX_BF16);
    take_out_each(PTX_F16, PTXK__DENSE_SHORT, PTX_F32);
    take_out_each(PTX_E4M3, PTXK__DENSE_WIDE, PTX_F16);
    printf("note: %u instructions taken out, %u not noticed\n", removed, unnoticed);
    return check_end();
}
