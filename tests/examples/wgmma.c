/* wgmma.c - the kernel of examples/wgmma.c: products with every tail beside double precision, in adversarial
 * schedules; and without each of its barriers, fences and waits in turn, which the CPU driver has to notice. */
#define PTXGEN_IMPLEMENTATION
#define main example_main
#include "../../examples/wgmma.c"
#undef main
#include "../check.h"

static ptxcu *cu;
static unsigned (*report_count)(void);
static size_t (*report)(char *, size_t);
static void (*report_clear)(void), (*set_option)(const char *, int);

static int open_cpu_driver(void) {
    void *symbol;
    if (ptxcu_open(&cu, NULL) || !ptxcu_device_info(cu)->is_cpu_driver) return 0;
    symbol = ptxcu_symbol(cu, "ptxsim_report_count"), memcpy(&report_count, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(cu, "ptxsim_report"), memcpy(&report, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(cu, "ptxsim_report_clear"), memcpy(&report_clear, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(cu, "ptxsim_set"), memcpy(&set_option, &symbol, sizeof symbol);
    return (ptxcu_device_info(cu)->target & 0xfff) == 90;
}

typedef struct matrices {
    uint32_t m, n, k;
    uint16_t *a, *b, *c;
    double *exact;
    ptxcu_buffer da, db, dc;
} matrices;

/* C has a guard of 16 elements behind it. */
static size_t bytes_of_c(const matrices *x) { return ((size_t)x->m * x->n + 16) * 2; }

static void make_matrices(matrices *x, uint32_t m, uint32_t n, uint32_t k) {
    uint32_t i, l;
    x->m = m, x->n = n, x->k = k;
    x->a = (uint16_t *)need((size_t)m * k * 2), x->b = (uint16_t *)need((size_t)n * k * 2);
    x->c = (uint16_t *)need(bytes_of_c(x)), x->exact = (double *)need((size_t)m * n * sizeof(double));
    for (i = 0; i < m * k; i++) x->a[i] = ref_to_bf16(random_within(1));
    for (i = 0; i < n * k; i++) x->b[i] = ref_to_bf16(random_within(1));
    for (i = 0; i < m * n; i++)
        for (l = 0; l < k; l++)
            x->exact[i] += ref_from_bf16(x->a[i / n * k + l]) * ref_from_bf16(x->b[i % n * k + l]);
    CHECK(!ptxcu_alloc(cu, (size_t)m * k * 2, &x->da) && !ptxcu_alloc(cu, (size_t)n * k * 2, &x->db));
    CHECK(!ptxcu_alloc(cu, bytes_of_c(x), &x->dc));
    CHECK(!ptxcu_upload(cu, x->da, 0, x->a, (size_t)m * k * 2, NULL));
    CHECK(!ptxcu_upload(cu, x->db, 0, x->b, (size_t)n * k * 2, NULL));
}

static void free_matrices(matrices *x) {
    CHECK(!ptxcu_free(cu, x->da) && !ptxcu_free(cu, x->db) && !ptxcu_free(cu, x->dc));
    free(x->a), free(x->b), free(x->c), free(x->exact);
}

/* Runs the product; the number of wrong elements, or -1 when the launch failed. */
static long run_product(matrices *x, ptxcu_program *program, uint32_t blocks) {
    const uint32_t rows[3] = {x->m, x->n, x->m}, columns[3] = {x->k, x->k, x->n}, box[3] = {TILE, TILE, 64};
    product_args args;
    ptx_plan plan;
    long wrong = 0;
    uint32_t i;
    memset(&args, 0, sizeof args), memset(&plan, 0, sizeof plan);
    args.a = x->da.address, args.b = x->db.address, args.c = x->dc.address, args.depth = x->k;
    args.columns = (x->n + TILE - 1) / TILE, args.tiles = (x->m + TILE - 1) / TILE * args.columns;
    plan.launches = 1, plan.args_bytes = sizeof args, plan.maps = 3;
    plan.launch[0] = ptx_launch_1d((uint64_t)blocks * THREADS, THREADS), plan.launch[0].shared_bytes = SHARED;
    for (i = 0; i < 3; i++) {
        ptx_tensor_map *map = &plan.map[i];
        map->address = 8 * i, map->type = PTX_BF16, map->rank = 2, map->swizzle = 128;
        map->box[0] = 64, map->size[0].times = columns[i], map->stride[1].times = columns[i] * 2ull;
        map->box[1] = box[i], map->size[1].times = rows[i];
    }
    if (ptxcu_fill8(cu, x->dc, 0, 0xff, bytes_of_c(x), NULL)
        || ptxcu_run(cu, program, &plan, &args, sizeof args, NULL)
        || ptxcu_download(cu, x->c, x->dc, 0, bytes_of_c(x), NULL) || ptxcu_sync(cu))
        return -1;
    for (i = 0; i < x->m * x->n; i++) /* the bound: see the example */
        wrong += !(fabs(ref_from_bf16(x->c[i]) - x->exact[i])
                   <= ldexp(fabs(x->exact[i]), -8) + (x->k + 15) / 16 * ldexp(x->k, -19));
    for (; i < x->m * x->n + 16; i++) wrong += x->c[i] != 0xffff;
    return wrong;
}

static ptx_module *make_module(void) {
    ptx_module_desc desc = PTX_ZERO;
    ptx_module *m;
    desc.target = PTX_SM_A(90);
    desc.comments = 2;
    m = ptx_module_new(&desc);
    emit_product(m);
    return m;
}

static void test_products(void) {
    static const uint32_t shapes[][4] = {{1, 8, 8, 1}, {128, 128, 256, 1}, {129, 136, 64, 1}, {65, 264, 328, 2}};
    ptx_module *module = make_module();
    ptxcu_program *program;
    size_t i;
    int seed, failures;
    CHECK_MORE(!ptxcu_load(cu, module, &program), ptxcu_get_error(cu)->message);
    for (i = 0; i <= sizeof shapes / sizeof *shapes; i++) {
        matrices x;
        uint32_t blocks;
        memset(&x, 0, sizeof x);
        if (i < sizeof shapes / sizeof *shapes)
            make_matrices(&x, shapes[i][0], shapes[i][1], shapes[i][2]), blocks = shapes[i][3];
        else {
            make_matrices(&x, 1 + random_below(300), 8 + 8 * random_below(30), 8 + 8 * random_below(60));
            blocks = 1 + random_below(4);
        }
        for (seed = 0; seed < 3; seed++) {
            set_option("seed", seed ? (int)random_below(1 << 30) : 0);
            failures = !CHECK(run_product(&x, program, blocks) == 0);
            failures += !CHECK(report_count() == 0);
            if (failures)
                printf("  %u x %u x %u, %u blocks\n", x.m, x.n, x.k, blocks);
            report_clear();
        }
        free_matrices(&x);
    }
    set_option("seed", 0);
    ptx_module_free(module);
}

/* -- without a barrier, fence or wait -- */

/* The text without the line at that place. A loop that waits ends at once. */
static void take_out(const char *text, size_t at, size_t length, char *changed) {
    const char *line = text + at, *p = strchr(line, '%');
    memcpy(changed, text, at);
    changed += at;
    if (strstr(line, "try_wait") && strstr(line, "try_wait") < line + length)
        changed += sprintf(changed, "\tsetp.eq.u32 %.*s 0, 0;\n", (int)strcspn(p, " "), p);
    strcpy(changed, line + length);
}

/* What orders threads, copies and products, as it follows in the text, and what is found without it. */
static const struct {
    unsigned lines;
    const char *instruction, *finding;
} orders[] = {{2 * STAGES, "mbarrier.init", "mbarrier-uninitialised: "},
              /* In one block bar.sync orders the init before all arrivals. The fence is for what PTX calls other
                 proxies and other blocks of a cluster, which the CPU driver does not tell apart here. */
              {1, "fence.mbarrier_init", NULL},
              {1, "bar.sync 0", "race: "},
              {1, "setmaxnreg.dec", "deadlock: "},
              {1, "mbarrier.try_wait", "mbarrier-overflow: "},
              {1, "mbarrier.arrive.expect_tx", "deadlock: "},
              {1, "setmaxnreg.inc", NULL}, /* orders nothing: the consumers keep 168 registers each */
              {1, "mbarrier.try_wait", "async-read: "},
              {1, "wgmma.fence", "missing-fence: "},
              {1, "wgmma.commit_group", "async-write: "},
              {1, "wgmma.wait_group", "async-write: "},
              {1, "mbarrier.arrive", "deadlock: "},
              {1, "cp.async.bulk.wait_group.read", "async-write: "},
              {1, "bar.sync", "async-write: "},
              {1, "fence.proxy.async", "missing-proxy-fence: "},
              {1, "bar.sync", "race: "},
              {1, "cp.async.bulk.commit_group", "async-write: "},
              {1, "cp.async.bulk.wait_group.read", "async-exit: "}};
enum { ORDERS = sizeof orders / sizeof *orders };

/* Whether the line is one of those above: any mbarrier, barrier, fence, group or setmaxnreg. */
static int is_order(const char *line) {
    static const char *const names[] = {"mbarrier.", "bar", "fence", "wgmma.fence", "wgmma.commit", "wgmma.wait",
                                        "cp.async.bulk.wait", "cp.async.bulk.commit", "setmaxnreg"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (line[0] == '\t' && !strncmp(line + 1, names[i], strlen(names[i]))) return 1;
    return 0;
}

/* The findings that docs/wgmma.md shows are among these, with the same line of the example. */
static void test_page(const char *findings) {
    FILE *page = fopen("docs/wgmma.md", "r");
    char line[400], kind[60], *site;
    int shown = 0;
    if (!CHECK(page != NULL)) return;
    while (fgets(line, sizeof line, page)) {
        const char *p = findings, *end;
        int known = 0;
        if (sscanf(line, "ptxsim: %50[a-z-]: kernel", kind) != 1) continue;
        if (!CHECK_MORE((site = strstr(line, "examples/wgmma.c:")) != NULL, line)) continue;
        site[strcspn(site + 17, ":") + 18] = 0;
        strcat(kind, ": kernel");
        while (!known && (p = strstr(p, kind)) != NULL) {
            end = p + strcspn(p, "\n");
            p = strstr(p, site);
            known = p && p < end;
            p = end;
        }
        CHECK_MORE(known, line);
        shown++;
    }
    CHECK(shown > 8);
    fclose(page);
}

static void test_each(void) {
    ptx_module *module = make_module();
    const char *text = ptx_text(module, NULL), *line;
    char *changed = (char *)need(strlen(text) + 100), *found = (char *)need(1 << 20), *all = (char *)need(1);
    unsigned at = 0, seen = 0;
    size_t length;
    matrices x;
    memset(&x, 0, sizeof x);
    make_matrices(&x, 200, 72, 200); /* two tiles of four steps by one block: each stage is used twice */
    for (line = text; *line; line += length) {
        ptxcu_program *program;
        uint32_t entry = 1;
        long wrong;
        length = strcspn(line, "\n") + 1;
        if (!is_order(line)) continue;
        if (!CHECK_MORE(at < ORDERS && !strncmp(line + 1, orders[at].instruction, strlen(orders[at].instruction)),
                        line))
            break;
        take_out(text, (size_t)(line - text), length, changed);
        CHECK_MORE(!ptxcu_load_text(cu, changed, &program), ptxcu_get_error(cu)->message);
        CHECK(!ptxcu_entry_by_name(cu, program, "product", &entry) && entry == 0);
        report_clear();
        wrong = run_product(&x, program, 1);
        report(found, 1 << 20);
        all = (char *)realloc(all, strlen(all) + strlen(found) + 1);
        strcat(all, found);
        if (orders[at].finding ? !CHECK(report_count() && strstr(found, orders[at].finding))
                               : !CHECK(!report_count() && wrong == 0))
            printf("  without %.*s: %ld wrong, %.400s\n", (int)length - 2, line + 1, wrong, found);
        report_clear();
        ptxcu_unload(cu, program);
        if (++seen == orders[at].lines) at++, seen = 0;
    }
    CHECK(at == ORDERS);
    test_page(all);
    free_matrices(&x);
    free(changed), free(found), free(all);
    ptx_module_free(module);
}

int main(void) {
    start_random();
    if (open_cpu_driver()) {
        test_products();
        test_each();
    } else
        printf("skip: needs the CPU driver, with a device sm_90\n");
    ptxcu_close(cu);
    return check_end();
}
