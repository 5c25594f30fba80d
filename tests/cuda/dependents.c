/* dependents.c - dependent launches (ptxcu_desc.dependent_launch) of a model's passes and steps (examples/llama.h):
 * the same bits as without, programmatic edges in the graph of a step, nothing found; and with the wait of each
 * kernel taken out in turn, the CPU driver finds that it touches what the kernel before it may still use. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../prompttest.h"

/* -- between ptxcu and its driver: calls that are looked at, and texts that are changed -- */

enum { WAITS_MAX = 200 };

/* Every griddepcontrol.wait of the loaded texts, in their order. */
static struct {
    char entry[200];
    void *module_, *function;
    unsigned launches;
} waits[WAITS_MAX];
static unsigned wait_count, dependent, plain, edges, programmatic;
static int taken_out = -1; /* which wait is left out of its text */
static ptxcu__driver driver;
static int (*launch_ex)(const ptxcu__launch_config *, void *, void **, void **);

static int load(void **module_, const void *image, unsigned n, int *options, void **values) {
    static const char wait[] = "griddepcontrol.wait;";
    char *text = (char *)malloc(strlen((const char *)image) + 1), *at = text, *entry = NULL, *next;
    unsigned first = wait_count, i;
    int code;
    if (!text) return 2;
    strcpy(text, (const char *)image);
    for (; (at = strstr(at, wait)) != NULL; at += sizeof wait - 1, wait_count++) {
        for (next = entry ? entry : text; next && next < at; next = strstr(next + 1, ".entry ")) entry = next;
        if (!CHECK(wait_count < WAITS_MAX && entry)) break;
        sprintf(waits[wait_count].entry, "%.*s", (int)strcspn(entry + 7, "( \n"), entry + 7);
        if ((int)wait_count == taken_out) memset(at, ' ', sizeof wait - 1);
    }
    code = driver.cuModuleLoadDataEx(module_, text, n, options, values);
    for (i = first; i < wait_count; i++) waits[i].module_ = *module_, waits[i].function = NULL, waits[i].launches = 0;
    free(text);
    return code;
}

static int get_function(void **function, void *module_, const char *name) {
    int code = driver.cuModuleGetFunction(function, module_, name);
    unsigned i;
    for (i = 0; i < wait_count; i++)
        if (waits[i].module_ == module_ && !strcmp(waits[i].entry, name)) waits[i].function = *function;
    return code;
}

static int count_launch(const ptxcu__launch_config *config, void *function, void **params, void **extra) {
    unsigned i, early = 0;
    for (i = 0; i < config->count; i++) early |= config->attributes[i].id == 6 && config->attributes[i].value[0] == 1;
    dependent += early;
    plain += !early;
    for (i = 0; i < wait_count; i++) waits[i].launches += waits[i].function == function;
    return launch_ex(config, function, params, extra);
}

static int count_plain(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned bytes, void *on, void **params, void **extra) {
    plain++;
    return driver.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, bytes, on, params, extra);
}

static int instantiate(void **exec, void *graph, unsigned long long flags) {
    int (*get)(void *, void **, void **, void *, size_t *);
    void *symbol = ptxcu_symbol(device, "cuGraphGetEdges_v2"), *from[400], *to[400];
    unsigned char data[400][8];
    size_t count = 400, i;
    memcpy(&get, &symbol, sizeof symbol);
    CHECK(get && get(graph, from, to, data, &count) == 0);
    edges += (unsigned)count;
    for (i = 0; i < count; i++) programmatic += data[i][0] == 1 && data[i][2] == 1;
    return driver.cuGraphInstantiateWithFlags(exec, graph, flags);
}

static int open_device(uint32_t early) {
    ptxcu_desc desc = PTX_ZERO;
    desc.dependent_launch = early;
    if (!fine(ptxcu_open(&device, &desc))) return 0;
    driver = device->driver, launch_ex = device->launch_ex;
    device->driver.cuModuleLoadDataEx = load, device->driver.cuModuleGetFunction = get_function;
    device->driver.cuLaunchKernel = count_plain, device->driver.cuGraphInstantiateWithFlags = instantiate;
    device->launch_ex = count_launch;
    wait_count = dependent = plain = edges = programmatic = 0;
    return 1;
}

/* -- a model on a device of its own -- */

static model_file file;
static llama_options model_options;

typedef struct results {
    float logits[2][128];
    uint32_t tokens[2];
    char found[2000];
} results;

/* A prompt of 5 tokens in a pass, then steps. Returns 0 after a failure of the calls. */
static int run_once(uint32_t early, int graph, results *r) {
    static const uint32_t prompt[5] = {3, 1, 4, 1, 5}, length = 5;
    size_t (*report)(char *, size_t) = NULL;
    void (*clear)(void) = NULL;
    uint32_t padded[64] = {0}, i;
    gguf_error why;
    llama m;
    void *symbol;
    int ok;
    memset(r, 0, sizeof *r);
    if (!open_device(early) || !fine(ptxcu_stream_create(device, &stream))) return 0;
    symbol = ptxcu_symbol(device, "ptxsim_report"), memcpy(&report, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(device, "ptxsim_report_clear"), memcpy(&clear, &symbol, sizeof symbol);
    memcpy(padded, prompt, sizeof prompt);
    ok = CHECK_MORE(!llama_open(&m, device, &file.g, file.file, &model_options, NULL, &why), why.text)
         && CHECK_MORE(!llama_begin(&m, padded, &length, stream, &why), why.text)
         && CHECK_MORE(!graph || !llama_record(&m, stream, &why), why.text)
         && CHECK_MORE(!llama_prompt(&m, NULL, stream, &why), why.text);
    for (i = 0; ok && i < 2; i++) /* nothing between the second step and the first */
        ok = (i == 0 || CHECK_MORE(!llama_step(&m, 1, stream, &why) && !llama_step(&m, 1, stream, &why), why.text))
             && fine(ptxcu_download(device, r->logits[i], m.step.logits, 0, m.config.vocab * 4ull, stream))
             && fine(ptxcu_download(device, &r->tokens[i], m.step.tokens, 0, 4, stream))
             && fine(ptxcu_stream_sync(device, stream));
    if (report) report(r->found, sizeof r->found);
    if (clear) clear();
    llama_close(&m);
    ptxcu_stream_destroy(device, stream);
    ptxcu_close(device);
    return ok;
}

/* -- kernels of one's own -- */

/* y = W2 W1 x by gemv or gemm, which prefetch weights before their wait. out: without (0) or with dependent launches;
 * wait: the one that is taken out, or -1. */
static int run_product(int gemm, uint32_t early, int wait, float *out, char *found) {
    enum { N = 160, K = 96 };
    const ptx_operation *op = ptxk_operation_find(gemm ? "gemm" : "gemv");
    size_t (*report)(char *, size_t) = NULL;
    void (*clear)(void) = NULL;
    ptxk_gemv_desc desc = PTX_ZERO;
    ptxk_gemv_shape shape = PTX_ZERO;
    ptxk_gemv_args args = PTX_ZERO;
    ptxk_gemm_desc gemm_desc = PTX_ZERO;
    ptxk_gemm_shape gemm_shape = PTX_ZERO;
    ptxk_gemm_args gemm_args = PTX_ZERO;
    static uint16_t weights[2][N * N];
    static float x[N];
    ptxcu_buffer w[2], v[3], workspace;
    ptxcu_program *program;
    ptxk_message why;
    ptx_plan plan[2];
    void *symbol;
    unsigned i, j, used = 0;
    taken_out = wait;
    if (!open_device(early)) return 0;
    symbol = ptxcu_symbol(device, "ptxsim_report"), memcpy(&report, &symbol, sizeof symbol);
    symbol = ptxcu_symbol(device, "ptxsim_report_clear"), memcpy(&clear, &symbol, sizeof symbol);
    for (i = 0; i < 2; i++)
        for (j = 0; j < N * N; j++) weights[i][j] = (uint16_t)(0x2c00 + (i * 7 + j * 13) % 1024);
    for (j = 0; j < N; j++) x[j] = (float)(j % 17) - 8;
    desc.format = PTXK_F16, desc.columns = 1, desc.output_type = PTX_F32;
    gemm_desc.format = PTXK_F16, gemm_desc.columns = 8, gemm_desc.x_type = gemm_desc.output_type = PTX_F32;
    shape.sm_count = gemm_shape.sm_count = 3;
    gemm_shape.m = 1, gemm_shape.target = ptxcu_device_info(device)->target;
    fine(ptxcu_operation(device, op, gemm ? (const void *)&gemm_desc : (const void *)&desc, &program));
    for (i = 0; i < 3; i++) fine(ptxcu_alloc(device, sizeof x, &v[i]));
    fine(ptxcu_upload(device, v[0], 0, x, sizeof x, NULL));
    for (i = 0; i < 2; i++) {
        shape.n = gemm_shape.n = N, shape.k = gemm_shape.k = i ? N : K;
        CHECK_MORE(gemm ? !ptxk_gemm_plan(&gemm_desc, &gemm_shape, &plan[i], &why)
                        : !ptxk_gemv_plan(&desc, &shape, &plan[i], &why),
                   why.text);
        fine(ptxcu_alloc(device, sizeof weights[i], &w[i]));
        fine(ptxcu_upload(device, w[i], 0, weights[i], sizeof weights[i], NULL));
    }
    fine(ptxcu_alloc(device, (size_t)(plan[0].workspace_bytes + plan[1].workspace_bytes), &workspace));
    for (i = 0; i < 2; i++) {
        args.weights = w[i].address, args.x = v[i].address, args.y = v[i + 1].address;
        args.workspace = workspace.address, args.n = N, args.k = i ? N : K;
        gemm_args.matrix[0].weights = args.weights, gemm_args.matrix[0].y = args.y, gemm_args.matrix[0].n = N;
        gemm_args.x = args.x, gemm_args.workspace = args.workspace, gemm_args.m = 1, gemm_args.k = args.k;
        fine(ptxcu_run(device, program, &plan[i], gemm ? (const void *)&gemm_args : (const void *)&args,
                       gemm ? sizeof gemm_args : sizeof args, NULL));
    }
    fine(ptxcu_download(device, out, v[2], 0, sizeof x, NULL)), fine(ptxcu_sync(device));
    report(found, 2000), clear();
    for (i = 0; i < wait_count; i++) if (waits[i].launches) used |= 1u << i;
    for (i = 0; i < 2; i++) ptxcu_free(device, w[i]);
    for (i = 0; i < 3; i++) ptxcu_free(device, v[i]);
    ptxcu_free(device, workspace);
    ptxcu_close(device);
    taken_out = -1;
    return (int)used;
}

static void test_product(int gemm) {
    static float serial[160], early[160], wrong[160];
    char found[2000];
    int used, i;
    run_product(gemm, 0, -1, serial, found);
    CHECK_MORE(!found[0], found);
    used = run_product(gemm, 1, -1, early, found);
    CHECK_MORE(!found[0], found);
    CHECK(used >= 3 && !memcmp(serial, early, sizeof serial));
    for (i = 0; i < 3; i++)
        if (used >> i & 1) {
            run_product(gemm, 1, i, wrong, found);
            CHECK(strstr(found, "dependent-race: ") != NULL);
        }
}

/* A block adds 1 to its number: launched alone, in clusters and cooperatively, by a handle and a module with or
 * without dependent launches. */
static void test_kernels(uint32_t early, uint32_t module_early) {
    uint32_t numbers[4] = {0, 10, 20, 30}, i;
    ptx_module_desc desc = PTX_ZERO;
    ptx_launch geometry = ptx_launch_1d(4, 1);
    ptxcu_program *program;
    ptxcu_buffer buffer;
    ptxcu_arg arg;
    ptx_kernel *k;
    ptx_module *m;
    ptx_mem at;
    ptx_val x;
    if (!open_device(early)) return;
    CHECK(ptxcu_device_info(device)->dependent_launch == early);
    desc.target = PTX_SM(90), desc.dependent_launch = module_early;
    m = ptx_module_new(&desc);
    k = ptx_entry(m, "add");
    x = ptx_param_ptr(k, "numbers", PTX_GLOBAL);
    at = ptx_elem(k, PTX_U32, x, ptx_ctaid_x(k));
    x = ptx_ld(k, PTX_U32, at);
    ptx_st(k, PTX_U32, at, ptx_add(k, x, ptx_u32(1)));
    ptx_ret(k);
    fine(ptxcu_load(device, m, &program)), fine(ptxcu_alloc(device, sizeof numbers, &buffer));
    fine(ptxcu_upload(device, buffer, 0, numbers, sizeof numbers, NULL));
    arg = ptxcu_arg_buffer(buffer);
    fine(ptxcu_launch(device, program, &geometry, &arg, 1, NULL));
    geometry.cluster[0] = 2, geometry.cluster[1] = geometry.cluster[2] = 1;
    fine(ptxcu_launch(device, program, &geometry, &arg, 1, NULL));
    geometry.cluster[0] = geometry.cluster[1] = geometry.cluster[2] = 0;
    fine(ptxcu_launch(device, program, &geometry, &arg, 1, NULL));
    geometry.cooperative = 1;
    fine(ptxcu_launch(device, program, &geometry, &arg, 1, NULL));
    fine(ptxcu_download(device, numbers, buffer, 0, sizeof numbers, NULL)), fine(ptxcu_sync(device));
    for (i = 0; i < 4; i++) CHECK(numbers[i] == 10 * i + 4);
    CHECK(dependent == (early && module_early ? 3 : 0) && wait_count == module_early);
    check_reports();
    ptxcu_free(device, buffer);
    ptx_module_free(m);
    ptxcu_close(device);
}

/* A chip without such launches, in a process of its own: the flag has no effect. */
static void test_older_chip(void) {
    ptxk_norm_desc desc = PTX_ZERO;
    ptxcu_program *program;
    desc.n = 64, desc.x_type = desc.y_type = desc.weight_type = PTX_F32;
    if (!open_device(1)) return;
    CHECK(!ptxcu_device_info(device)->dependent_launch);
    fine(ptxcu_operation(device, ptxk_operation_find("norm"), &desc, &program));
    CHECK(wait_count == 0);
    ptxcu_close(device);
}

int main(int argc, char **argv) {
    char again[600];
    static results serial, early, graph, wrong;
    /* of two layers, with norms of heads */
    static const model_shape shape = {"qwen3", 61, 32, 2, 4, 2, 16, 40, 600, 0, GGUF_FORMAT_F16, GGUF_FORMAT_F16,
                                      GGUF_FORMAT_F16, 0, 1, 0, 0, 0, 0};
    gguf_maker made = {0};
    unsigned i, launched = 0, found = 0;
    if (argc > 1) {
        test_older_chip();
        return check_end();
    }
    snprintf(again, sizeof again, "PTXSIM_DEVICE=sm_89 '%s' older", argv[0]);
    if (!small_device()) return check_end();
    i = ptxcu_device_info(device)->is_cpu_driver != 0;
    ptxcu_close(device);
    if (!i) {
        printf("skip: needs the CPU driver\n");
        return check_end();
    }
    CHECK(system(again) == 0);
    make_model(&made, &shape);
    model_options.batch = 1, model_options.max_seq = 32, model_options.prompt_tokens = 64;
    if (!open_made(&file, &made) || !run_once(0, 0, &serial)) return check_end();
    CHECK(dependent == 0 && plain > 40 && wait_count == 0);
    CHECK_MORE(!serial.found[0], serial.found);
    if (!run_once(1, 0, &early)) return check_end();
    CHECK(plain == 0 && dependent > 40 && wait_count > 8);
    CHECK_MORE(!early.found[0], early.found);
    CHECK(!memcmp(&early, &serial, sizeof serial));
    if (!run_once(1, 1, &graph)) return check_end();
    CHECK_MORE(!graph.found[0], graph.found);
    CHECK(!memcmp(&graph, &serial, sizeof serial));
    CHECK(edges > 40 && programmatic == edges); /* those of a step without and with the choice of a token */
    printf("note: %u launches, %u edges of graphs, %u programmatic\n", dependent, edges, programmatic);
    for (i = 0; i < wait_count; i++) {
        char name[200];
        if (!waits[i].launches) continue;
        launched++;
        strcpy(name, waits[i].entry);
        taken_out = (int)i;
        if (!run_once(1, 0, &wrong)) break;
        if (CHECK_MORE(strstr(wrong.found, "dependent-race: ") != NULL, name)) found++;
        if (!waits[i].launches) break;
    }
    taken_out = -1;
    CHECK(launched > 8 && found == launched);
    printf("note: without the wait of each of %u kernels, %u are found\n", launched, found);
    close_file(&file);
    for (i = 0; i < 4; i++) test_kernels(i & 1, i >> 1);
    for (i = 0; i < 2; i++) test_product((int)i);
    return check_end();
}
