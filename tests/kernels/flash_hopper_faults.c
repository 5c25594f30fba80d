/* flash_hopper_faults.c - flash_prefill on sm_90a without each of its barriers, fences and waits in turn: the CPU
 * driver has to notice. Data is fresh in every run; PTXGEN_SEED=n repeats one. */
#define _POSIX_C_SOURCE 200809L
#include "../../ptxgen_kernels.h"

#include "../prefilltest.h"

/* Whether the line orders threads, copies or products. */
static int is_order(const char *line, size_t length) {
    static const char *const names[] = {"mbarrier.",   "\tbar.",        " bar.",          "fence.",
                                        "wgmma.fence", "wgmma.commit",  "wgmma.wait",     "cp.async.wait",
                                        "setmaxnreg",  "cp.async.mbar", "cp.async.commit"};
    char text[400];
    size_t i;
    if (line[0] != '\t' || length >= sizeof text) return 0;
    memcpy(text, line, length);
    text[length] = 0;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(text, names[i])) return 1;
    return 0;
}

/* The text without the line at that place. A loop that waits ends at once. */
static void take_out(const char *text, size_t at, size_t length, char *changed) {
    const char *line = text + at, *wait = strstr(line, "try_wait"), *p = strchr(line, '%');
    memcpy(changed, text, at);
    changed += at;
    if (wait && wait < line + length)
        changed += sprintf(changed, "\tsetp.eq.u32 %.*s 0, 0;\n", (int)strcspn(p, " "), p);
    strcpy(changed, line + length);
}

/* What orders, as it follows in the text, and what is found without it; NULL: nothing. */
typedef struct order {
    unsigned lines;
    const char *instruction, *finding;
} order;

static const order orders[] = {{9, "mbarrier.init", "mbarrier-uninitialised: "},
              {1, "fence.mbarrier_init",
               NULL}, /* for other proxies and blocks of a cluster; bar.sync orders those of a block */
              {1, "bar.sync 0", "race: "},
              {1, "setmaxnreg.dec", "deadlock: "},
              {1, "cp.async.mbarrier.arrive", "deadlock: "}, /* q */
              /* the copying warpgroup, through maps: k, v */
              {1, "mbarrier.try_wait", "async-write: "},
              {1, "mbarrier.arrive.expect_tx", "deadlock: "},
              {1, "mbarrier.arrive", "deadlock: "},
              {1, "mbarrier.try_wait", "async-"},
              {1, "mbarrier.arrive.expect_tx", "deadlock: "},
              {1, "mbarrier.arrive", "deadlock: "},
              /* ... by cp.async: the CPU driver asks for no proxy fence behind cp.async, see its README */
              {1, "mbarrier.try_wait", "race: "},
              {1, "cp.async.commit_group", "race: "},
              {1, "mbarrier.try_wait", "deadlock: "},
              {1, "cp.async.commit_group", "race: "},
              {1, "cp.async.wait_group 1", "race: "},
              {1, "fence.proxy.async", NULL},
              {1, "bar.warp.sync", "race: "},
              {1, "mbarrier.arrive", "deadlock: "},
              {1, "cp.async.wait_group 0", "race: "},
              {1, "fence.proxy.async", NULL},
              {1, "bar.warp.sync", "race: "},
              {1, "mbarrier.arrive", "deadlock: "},
              /* the computing warpgroups: the first tile */
              {1, "setmaxnreg.inc", NULL}, /* orders nothing: they keep 168 registers */
              {1, "bar.arrive", "deadlock: "},
              {1, "mbarrier.try_wait", "race: "},
              {1, "fence.proxy.async", NULL},
              {1, "mbarrier.try_wait", "async-read: "},
              {1, "bar.sync",
               "barrier-count: "}, /* turns order no data: what is found is that the barriers do not pair */
              {1, "wgmma.fence", "missing-fence: "},
              {1, "wgmma.commit_group", "async-read: "},
              {1, "bar.arrive", "deadlock: "},
              {1, "wgmma.wait_group", "async-read: "},
              {1, "mbarrier.arrive", "deadlock: "},
              /* the loop */
              {1, "mbarrier.try_wait", "async-read: "},
              {1, "bar.sync", "barrier-count: "},
              {1, "wgmma.fence", "missing-fence: "},
              {1, "wgmma.commit_group", "async-read: "},
              {1, "mbarrier.try_wait", "async-read: "},
              {1, "wgmma.fence",
               NULL}, /* the one before orders the weights too; ptxas would insert this one, with a remark */
              {1, "wgmma.commit_group", "async-read: "},
              {1, "bar.arrive", "deadlock: "},
              {1, "wgmma.wait_group", "async-read: "},
              {1, "mbarrier.arrive", "deadlock: "},
              {1, "wgmma.wait_group", "async-read: "},
              {1, "mbarrier.arrive", "deadlock: "},
              /* the last product */
              {1, "mbarrier.try_wait", "race: "},
              {1, "bar.sync", "barrier-count: "},
              {1, "wgmma.fence", "missing-fence: "},
              {1, "wgmma.commit_group", "async-read: "},
              {1, "bar.arrive", "deadlock: "},
              {1, "wgmma.wait_group", "async-read: "},
              {1, "bar.warp.sync",
               NULL}, /* before the second half of out in f32 it is needed; here nobody has written yet */
              {1, "bar.warp.sync", "race: "}};

/* e4m3: the copying warpgroup turns v with the next tile; a tile's weights times v come before the next scores. */
static const order orders_e4m3[] = {
    {11, "mbarrier.init", "mbarrier-uninitialised: "},
    {1, "fence.mbarrier_init", NULL}, /* as above */
    {1, "bar.sync 0", "race: "},
    {1, "setmaxnreg.dec", "deadlock: "},
    {1, "cp.async.mbarrier.arrive", "deadlock: "}, /* q */
    /* the copying warpgroup, through maps: k, v as it is */
    {1, "mbarrier.try_wait", "async-write: "},
    {1, "mbarrier.arrive.expect_tx", "deadlock: "},
    {1, "mbarrier.arrive", "deadlock: "},
    {1, "mbarrier.arrive.expect_tx", "deadlock: "},
    {1, "mbarrier.arrive", "deadlock: "},
    /* ... by cp.async */
    {1, "mbarrier.try_wait", "mbarrier-overflow: "},
    {1, "cp.async.commit_group", "race: "},
    {1, "cp.async.commit_group", "async-read: "},
    {1, "cp.async.wait_group 1", "race: "},
    {1, "fence.proxy.async", NULL},
    {1, "bar.warp.sync", "race: "},
    {1, "mbarrier.arrive", "deadlock: "},
    {1, "cp.async.wait_group 0", "async-read: "},
    {1, "fence.proxy.async", NULL},
    {1, "bar.warp.sync", "race: "},
    {1, "mbarrier.arrive", "deadlock: "},
    /* ... v is turned */
    {1, "mbarrier.try_wait", "async-read: "},
    {1, "mbarrier.try_wait", "async-"},
    {1, "fence.proxy.async", "missing-proxy-fence: "},
    {1, "bar.sync", "race: "},
    {1, "mbarrier.arrive", "deadlock: "},
    /* the computing warpgroups: the first tile */
    {1, "setmaxnreg.inc", NULL},
    {1, "bar.arrive", "deadlock: "},
    {1, "mbarrier.try_wait", "race: "},
    {1, "fence.proxy.async", NULL},
    {1, "mbarrier.try_wait", "async-read: "},
    {1, "bar.sync", "barrier-count: "},
    {1, "wgmma.fence", "missing-fence: "},
    {1, "wgmma.commit_group", "async-read: "},
    {1, "bar.arrive", "deadlock: "},
    {1, "wgmma.wait_group", "async-read: "},
    {1, "mbarrier.arrive", "deadlock: "},
    /* the loop */
    {1, "mbarrier.try_wait", "race: "},
    {1, "bar.sync", "barrier-count: "},
    {1, "wgmma.fence", "missing-fence: "},
    {1, "wgmma.commit_group", "async-read: "},
    {1, "mbarrier.try_wait", "async-read: "},
    {1, "wgmma.fence", NULL},
    {1, "wgmma.commit_group", "async-read: "},
    {1, "bar.arrive", "deadlock: "},
    {1, "wgmma.wait_group", "async-read: "},
    {1, "mbarrier.arrive", "deadlock: "},
    {1, "wgmma.wait_group", "async-read: "},
    {1, "mbarrier.arrive", "deadlock: "},
    /* the last product */
    {1, "mbarrier.try_wait", "race: "},
    {1, "bar.sync", "barrier-count: "},
    {1, "wgmma.fence", "missing-fence: "},
    {1, "wgmma.commit_group", "async-read: "},
    {1, "bar.arrive", "deadlock: "},
    {1, "wgmma.wait_group", "async-read: "},
    {1, "bar.warp.sync", NULL}, /* as above */
    {1, "bar.warp.sync", "race: "}};

/* Runs the text. The number of bytes of out that differ from `right`; found: the driver's findings. */
static size_t run_text(problem *p, const char *text, const char *right, char *found, size_t capacity) {
    size_t bytes = p->out_count * ref_bytes(p->out_format), i, wrong = 0;
    ptx_entry_info info;
    void *module, *function = NULL, *params[3];
    char room[2][192];
    ptx_map_values v;
    const ptx_launch *l = &p->plan.launch[0];
    cu.ptxsim_report_clear(); /* after a deadlock nothing runs before this */
    module = load_text(text);
    memset(p->out, 0xff, bytes);
    cu.cuMemcpyHtoD(p->args.out, p->out, bytes);
    params[0] = &p->args;
    for (i = 0; i < 2; i++) {
        params[1 + i] = room[i] + (64 - (uintptr_t)room[i] % 64) % 64;
        CHECK(!ptx_map_resolve(&p->plan.map[i], &p->args, &v));
        CHECK(!cu.cuTensorMapEncodeTiled(params[1 + i], v.type, v.rank, v.address, v.size, v.stride, v.box,
                                         v.element_stride, 0, v.swizzle, v.l2_promotion, 0));
    }
    CHECK(ptx_entry_get(built.m, 0, &info) && !cu.cuModuleGetFunction(&function, module, info.name));
    CHECK(!cu.cuFuncSetAttribute(function, 8, (int)l->shared_bytes));
    (void)cu.cuLaunchKernel(function, l->grid[0], l->grid[1], 1, l->block[0], 1, 1, l->shared_bytes, NULL,
                            params, NULL);
    (void)cu.cuCtxSynchronize();
    (void)cu.cuMemcpyDtoH(p->out, p->args.out, bytes);
    for (i = 0; i < bytes; i++) wrong += p->out[i] != right[i];
    found[0] = 0;
    cu.ptxsim_report(found, capacity);
    if (module) cu.cuModuleUnload(module);
    return wrong;
}

/* A problem on the device, and what the kernel as it is makes of it. */
static problem start_problem(uint32_t type, uint32_t kv_len, char **right, char *found, size_t capacity) {
    uint32_t q_len = 128;
    ptxk_flash_prefill_desc desc = describe(1, 1, 64, REF_F16, 1);
    size_t bytes;
    problem p;
    desc.type = type;
    p = problem_new(desc, ROWS, 0, &q_len, &kv_len, 1);
    bytes = p.out_count * 2;
    p.shape.target = p.target;
    CHECK(!ptxk_flash_prefill_plan(&p.desc, &p.shape, &p.plan, NULL) && p.plan.maps == 2);
    build(&p.desc, p.target);
    p.args.q = upload_elements(&p, p.q, p.q_count), p.args.out = upload(p.out, bytes);
    p.args.k = upload_elements(&p, p.k, p.kv_count), p.args.v = upload_elements(&p, p.v, p.kv_count);
    upload_factors(&p);
    p.args.batch = 1, p.args.q_len = q_len, p.args.kv_len = kv_len;
    *right = (char *)calloc(1, bytes);
    (void)run_text(&p, ptx_text(built.m, NULL), *right, found, capacity);
    memcpy(*right, p.out, bytes);
    CHECK_MORE(!cu.ptxsim_report_count(), found);
    problem_compare(&p);
    return p;
}

/* The last tile goes by cp.async: the third, where it is the first to wait for a stage, or the fourth, where the third
 * is; e4m3: or the first, behind which no v is turned yet. Some waits are missed in few schedules only: then others are
 * tried. */
static void without_each(uint32_t type, const order *list, unsigned count) {
    enum { CAPACITY = 1 << 20, SCHEDULES = 1000 };
    static const uint32_t lengths[] = {500, 300, 100};
    char *found = (char *)malloc(CAPACITY), *right[3], *changed;
    problem p[3];
    const char *text, *line;
    unsigned at = 0, seen = 0, runs = 0, most = 0, i, n = type == PTX_E4M3 ? 3 : 2;
    size_t length, wrong = 0;
    for (i = 0; i < n; i++) p[i] = start_problem(type, lengths[i], &right[i], found, CAPACITY);
    text = ptx_text(built.m, NULL);
    changed = (char *)malloc(strlen(text) + 100);
    for (line = text; *line; line += length) {
        length = strcspn(line, "\n") + 1;
        if (!is_order(line, length)) continue;
        if (!CHECK_MORE(at < count && strstr(line, list[at].instruction)
                            && strstr(line, list[at].instruction) < line + length,
                        line))
            break;
        take_out(text, (size_t)(line - text), length, changed);
        for (i = 0; i < (list[at].finding ? SCHEDULES : 10u); i++) {
            cu.ptxsim_set("seed", i < n ? 0 : (int)random_below(1u << 30));
            wrong = run_text(&p[i % n], changed, right[i % n], found, CAPACITY);
            if (cu.ptxsim_report_count() || wrong) break;
        }
        if (list[at].finding && i > most) most = i;
        if (list[at].finding ? !CHECK(strstr(found, list[at].finding) != NULL) : !CHECK(i == 10))
            printf("  without %.*s: %u bytes differ, %.400s\n", (int)length - 2, line + 1, (unsigned)wrong,
                   found);
        runs++;
        if (++seen == list[at].lines) at++, seen = 0;
    }
    cu.ptxsim_report_clear();
    CHECK(at == count);
    printf("note: %s: %u kernels without one order each; %u schedules for the best hidden\n",
           ptx_type_name((ptx_type)type), runs, most + 1);
    for (i = 0; i < n; i++) {
        free(right[i]);
        problem_free(&p[i]);
    }
    free(changed), free(found);
}

int main(void) {
    start_random();
    base_target = PTX_SM_A(90);
    if (CHECK(open_driver())) {
        if (!cu.ptxsim_report || capability != 90) {
            printf("SKIP flash_hopper_faults: only the CPU driver finds faults\n");
            return check_end();
        }
        without_each(PTX_F16, orders, sizeof orders / sizeof *orders);
        without_each(PTX_E4M3, orders_e4m3, sizeof orders_e4m3 / sizeof *orders_e4m3);
        build(NULL, 0);
    }
    return check_end();
}
