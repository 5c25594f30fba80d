/* matmulfaults.h - each barrier, fence and wait of an entry of matmul is taken out, one at a time: the CPU driver must
 * find it, or the results must be others. */
#ifndef MATMULFAULTS_H
#define MATMULFAULTS_H

#include "matmultest.h"
#include "mutations.h"

/* What nothing notices where it is taken out, how many of them in an entry, and why. */
typedef struct silent_line {
    const char *text;
    unsigned most;
    const char *reason;
} silent_line;

#define SILENT_MOST 8
static unsigned removed, unnoticed;

/* Several units of a group or block, parts of k, C, clusters: what no single problem has. */
typedef struct fault_shape {
    uint32_t m, n, k, multiprocessors, cluster, beta;
} fault_shape;

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

/* Takes each out of one entry. The last shape must have parts of k. */
static void take_out_each(ptx_target target, uint32_t type, uint32_t entry, uint32_t out, uint32_t factors,
                          const fault_shape shapes[3], const silent_line *silent, unsigned silent_count)
{
    variant v[3];
    ptx_module_desc desc;
    ptx_module *m;
    ptx_entry_info info;
    const char *text;
    char *alone, *changed, what[160];
    unsigned n, i, j, turn, count[SILENT_MOST] = {0};
    memset(v, 0, sizeof v);
    for (i = 0; i < 3; i++) {
        problem *p = &v[i].p;
        uint32_t per = 16 / (uint32_t)ref_number_bytes(number_of(type));
        *p = problem_new(type, out, PTXK_MATMUL_TRANS_B, shapes[i].m, shapes[i].n, shapes[i].k / 8 * per);
        p->shape.target = target, p->shape.aligned = 1, p->shape.sm_count = shapes[i].multiprocessors;
        p->desc.a_factors = p->desc.b_factors = factors;
        p->entry = entry, p->cluster = shapes[i].cluster;
        p->beta = shapes[i].beta ? 0.5f : 0;
        for (j = 0; j < 2; j++) p->pad[j] = (per - p->shape.k % per) % per;
        for (; j < 4; j++) p->pad[j] = (8 - p->shape.n % 8) % 8;
        problem_fill(p);
        problem_upload(p, &v[i].args);
        problem_plan(p);
        if (p->plan.workspace_bytes) CHECK(!cu.cuMemAlloc(&v[i].args.workspace, (size_t)p->plan.workspace_bytes));
    }
    CHECK(parts_of(&v[2].p) > 1);
    memset(&desc, 0, sizeof desc);
    desc.target = target;
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
        while (kind < silent_count && strncmp(what, silent[kind].text, strlen(silent[kind].text))) kind++;
        for (turn = 0; turn < (kind < silent_count ? 2u : 10u) && !noticed; turn++) {
            cu.ptxsim_set("seed", (int)turn);
            for (i = 0; i < 3 && !noticed; i++) noticed = run_text(&v[i], m, changed);
        }
        removed++;
        if (noticed) continue;
        unnoticed++;
        if (!CHECK_MORE(kind < silent_count, what)) continue;
        count[kind]++;
        printf("note: entry %u, not noticed: %s (%s)\n", entry, what, silent[kind].reason);
    }
    for (i = 0; i < silent_count; i++) CHECK_MORE(count[i] <= silent[i].most, silent[i].text);
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

/* 0: there is no CPU driver of this compute capability. */
static int open_for_faults(int wanted)
{
    start_random();
    if (!open_driver()) exit(1);
    if (capability != wanted || !cu.ptxsim_report) {
        printf("SKIP: wrong programs run on the CPU driver only, as sm_%d\n", wanted);
        return 0;
    }
    cu.ptxsim_set("quiet", 1);
    cu.ptxsim_set("budget", 400000);
    return 1;
}
#endif
