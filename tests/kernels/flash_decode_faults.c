/* flash_decode_faults.c - flash_decode's tensor core form on sm_90 and sm_80 without each of its barriers, fences and
 * waits in turn: the CPU driver has to notice, or the result to differ. Data is fresh in every run; PTXGEN_SEED=n
 * repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../reference/flash_decode.h"
#include "../kerneltest.h"
#include "../mutations.h"

enum { HEADS = 4, D = 64, KEYS = 1836, CAPACITY = 1 << 20, SCHEDULES = 40 };

/* Two problems with a new row and a last step that is not whole: of several clusters, whose blocks have more steps than
   the ring has slots; and of one block, which ends with the first step. */
static ptxk_flash_decode_args problems[2];
static ptx_plan plans[2];

static void start_problem(uint32_t number, uint32_t keys, const ptxk_flash_decode_desc *desc, ptx_target target)
{
    ptxk_flash_decode_args args;
    static uint16_t rows[KEYS * D];
    static float q[HEADS * D];
    ptxk_flash_decode_shape shape = {1, 0, 0, 4, 0, 0};
    ptx_plan plan;
    device_ptr cache[2];
    uint32_t i, j;
    shape.max_len = shape.max_seq = keys;
    shape.target = target;
    if (target >= PTX_SM(90)) shape.cluster = 8;
    memset(&args, 0, sizeof args);
    CHECK(!ptxk_flash_decode_plan(desc, &shape, &plan, NULL) && (plan.launch[0].grid[2] > 2) == !number);
    for (i = 0; i < HEADS * D; i++) q[i] = (float)random_within(2);
    for (j = 0; j < 2; j++) {
        for (i = 0; i < KEYS * D; i++) rows[i] = ref_to_f16(random_within(2));
        cache[j] = upload(rows, sizeof rows);
    }
    args.q = upload(q, sizeof q);
    args.k_caches = upload(&cache[0], sizeof cache[0]);
    args.v_caches = upload(&cache[1], sizeof cache[1]);
    args.k = upload(rows, D * 2), args.v = upload(rows + D, D * 2);
    args.out = upload(q, sizeof q);
    args.length = args.max_seq = keys;
    if (plan.workspace_bytes) {
        void *zeros = calloc(1, (size_t)plan.workspace_bytes);
        args.workspace = upload(zeros, (size_t)plan.workspace_bytes);
        free(zeros);
    }
    problems[number] = args, plans[number] = plan;
}

/* Runs the text on a problem. found: the driver's findings. */
static void run_text(uint32_t number, const char *text, const char *kernel, float out[HEADS * D], char *found)
{
    static const char zeros[256];
    ptxk_flash_decode_args args = problems[number];
    void *module, *function = NULL, *params[1];
    const ptx_launch *l = &plans[number].launch[0];
    cu.ptxsim_report_clear(); /* after a deadlock nothing runs before this */
    module = load_text(text);
    memset(out, 0xff, HEADS * D * sizeof *out);
    cu.cuMemcpyHtoD(args.out, out, HEADS * D * sizeof *out);
    if (args.workspace) cu.cuMemcpyHtoD(args.workspace, zeros, sizeof zeros);
    params[0] = &args;
    CHECK(!cu.cuModuleGetFunction(&function, module, kernel));
    CHECK(!cu.cuFuncSetAttribute(function, 8, (int)l->shared_bytes));
    if (l->cluster[0])
        (void)launch_clusters(function, l, params);
    else
        (void)cu.cuLaunchKernel(function, l->grid[0], l->grid[1], l->grid[2], l->block[0], 1, 1, l->shared_bytes, NULL,
                                params, NULL);
    (void)cu.cuCtxSynchronize();
    (void)cu.cuMemcpyDtoH(out, args.out, HEADS * D * sizeof *out);
    found[0] = 0;
    cu.ptxsim_report(found, CAPACITY);
    if (module) cu.cuModuleUnload(module);
}

/* What goes unnoticed, and why. */
static struct {
    const char *line, *why;
    unsigned most, seen;
} unnoticed[] = {
    {"fence.mbarrier_init", "the barriers while q is staged order the initialisation too", 1, 0},
    {"fence.proxy.async", "the CPU driver asks for none before a bulk copy overwrites what was read", 1, 0},
    {"cp.async.mbarrier", "the first items: their copies are there when q has been staged", 2, 0},
    {"bar.warp.sync", "before the loader's lane arrives: each lane's arrival for its copies orders its stores", 4, 0},
};

static void without_each(ptx_target target)
{
    static char found[CAPACITY];
    ptxk_flash_decode_desc desc;
    ptx_module_desc module_desc;
    ptx_entry_info info;
    ptx_module *m;
    float right[2][HEADS * D], out[HEADS * D];
    const char *text;
    char *changed, what[160];
    unsigned n, i, hidden = 0, most = 0;
    size_t j;
    memset(&desc, 0, sizeof desc);
    memset(&module_desc, 0, sizeof module_desc);
    desc.heads = HEADS, desc.kv_heads = 1, desc.head_dim = D, desc.queries = 1;
    if (target >= PTX_SM(90)) desc.flags = PTXK_FLASH_CLUSTER_2;
    desc.kv_type = desc.append_type = PTX_F16, desc.q_type = desc.out_type = PTX_F32;
    module_desc.target = target;
    m = ptx_module_new(&module_desc);
    ptxk_flash_decode_emit(m, &desc);
    text = ptx_text(m, NULL);
    if (!CHECK(text != NULL) || !CHECK(ptx_entry_get(m, 0, &info))) return;
    for (i = 0; i < 2; i++) {
        start_problem(i, i ? 77 : KEYS, &desc, target);
        run_text(i, text, info.name, right[i], found);
        CHECK_MORE(!cu.ptxsim_report_count(), found);
    }
    changed = (char *)malloc(strlen(text) + 100);
    for (j = 0; j < sizeof unnoticed / sizeof *unnoticed; j++) unnoticed[j].seen = 0;
    unnoticed[3].most = target >= PTX_SM(90) ? 4 : 8; /* before, whole steps go by cp.async, too */
    for (n = 0; mutate(text, n, changed, what); n++) {
        for (i = 0; i < SCHEDULES; i++) {
            cu.ptxsim_set("seed", i > 1 ? (int)random_below(1u << 30) : 0);
            run_text(i & 1, changed, info.name, out, found);
            if (cu.ptxsim_report_count() || memcmp(out, right[i & 1], sizeof out)) break;
        }
        if (i < SCHEDULES) {
            if (i > most) most = i;
            continue;
        }
        hidden++;
        for (j = 0; j < sizeof unnoticed / sizeof *unnoticed; j++)
            if (strstr(what, unnoticed[j].line) && unnoticed[j].seen++ < unnoticed[j].most) break;
        printf("note: not noticed: %s: %s\n", what, j < sizeof unnoticed / sizeof *unnoticed ? unnoticed[j].why : "?");
        CHECK_MORE(j < sizeof unnoticed / sizeof *unnoticed, what);
    }
    cu.ptxsim_set("seed", 0);
    cu.ptxsim_report_clear();
    printf("note: sm_%u: %u sites; %u go unnoticed; %u schedules for the best hidden of the others\n",
           (unsigned)(target & 0xfff), n, hidden, most + 1);
    CHECK(n > 20);
    free(changed);
    ptx_module_free(m);
}

int main(void)
{
    start_random();
    if (CHECK(open_driver())) {
        if (!cu.ptxsim_report || capability < 90) {
            printf("SKIP flash_decode_faults: only the CPU driver finds faults, on sm_90\n");
            return check_end();
        }
        cu.ptxsim_set("budget", 2000000); /* before sm_90 who waits in vain asks for ever */
        without_each(PTX_SM(90));
        without_each(PTX_SM(80));
    }
    return check_end();
}
