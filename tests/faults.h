/* faults.h - a kernel is recorded, run on the CPU driver, and what the driver finds is compared with what it
 * has to find: nothing (CLEAN), or at least a finding of one kind (WRONG); "load" where it does not load the
 * text. fault_words.h has pairs of the two.
 *
 * The kernel is k(p, q, n): p is the output buffer, zeros; q the input buffer, whose word i holds i; n is 4.
 * It runs as one block (one cluster) of 128 threads; BLOCK, GRID, CLUSTER, DYNAMIC and the fields of `launch`
 * say otherwise. Include this behind _POSIX_C_SOURCE and ptxgen.h. */
#ifndef FAULTS_H
#define FAULTS_H

#include "kerneltest.h"

static ptx_module *m;
static ptx_kernel *k;
static ptx_val p, q, n;         /* parameters */
static ptx_val tid, lane, warp; /* %tid.x, %laneid, %tid.x / 32 */
static ptx_val sh, bar;         /* shared memory: 4096 words, the last that there is; four mbarriers */
static ptx_val mine, wide;      /* the word, and the 16 bytes, of sh that belong to this thread */
static ptx_val zero, one;       /* a register that holds 0; is this thread 0? */

/* -- launches -- */

static struct {
    uint32_t grid, block[3], cluster, dynamic; /* dynamic: bytes of shared memory */
    uint32_t n;
    uint32_t words;  /* of p, and of q */
    uint32_t box[2]; /* "map", a fourth parameter: a tensor map of rows of 64 f16, this size a box */
    int map_of_p;    /* it is a map of p, else of q */
    uint32_t orders; /* in so many other orders of warps and blocks, too */
    int dependent;   /* launched twice; the second may begin before the first ends */
} launch;
#define BLOCK(x_) BLOCK3(x_, 1, 1)
#define BLOCK3(x_, y_, z_)                                                                                   \
    (launch.block[0] = (x_), launch.block[1] = (y_), launch.block[2] = (z_), ptx_require_block(k, x_, y_, z_))
#define GRID(blocks) (launch.grid = (blocks))
#define CLUSTER(blocks) (launch.cluster = (blocks), ptx_require_cluster(k, blocks, 1, 1))
#define DYNAMIC(bytes) (launch.dynamic = (bytes), ptx_shared_dynamic_aligned(k, 1024))

/* -- words -- */

#define AMPERE PTX_SM(80)
#define HOPPER PTX_SM_A(90)
#define I ptx_imm
#define U ptx_u32
#define FULL ptx_b32(0xffffffff)
#define BAR ptx_bar_sync(k, I(0))
#define NAMED_BAR(number, threads) ptx_op2(k, PTX_BAR_SYNC, 0, number, I(threads))
#define IF(condition) ptx_if(k, condition)
#define ELSE ptx_else(k)
#define END ptx_end(k)
#define FOR(limit) ptx_for(k, U(0), limit, U(1))
#define LD(address, offset) ptx_ld(k, PTX_U32, ptx_at(address, offset))
#define ST(address, offset, value) ptx_st(k, PTX_U32, ptx_at(address, offset), value)
#define LD_WITH(address, how) ptx_ld(k, PTX_U32, ptx_with(ptx_at(address, 0), how))
#define ST_WITH(address, how, value) ptx_st(k, PTX_U32, ptx_with(ptx_at(address, 0), how), value)
#define last_words ptx_off(sh, 4 * (4096 - 64))
#define AT(base, index) ptx_ptr_add(k, base, index, 4)
#define GET(v) ptx_get(k, v)
#define SET(v, value) ptx_set(k, v, value)
#define ADD(b, c) ptx_add(k, b, c)
#define SHR(b, bits) ptx_as(ptx_shr(k, b, I(bits)), PTX_U32)
#define SHL(b, bits) ptx_as(ptx_shl(k, b, I(bits)), PTX_U32)
#define XOR(b, c) ptx_as(ptx_xor(k, b, c), PTX_U32)
#define LT(b, c) ptx_setp(k, PTX_LT, b, c)
#define GT(b, c) ptx_setp(k, PTX_GT, b, c)
#define GE(b, c) ptx_setp(k, PTX_GE, b, c)
#define EQ(b, c) ptx_setp(k, PTX_EQ, b, c)
#define NE(b, c) ptx_setp(k, PTX_NE, b, c)
#define FENCE(how) ptx_fence(k, how)
#define PLAIN(op, count, operands) ptx_opn(k, op, 0, PTX_NONE, PTX_NONE, count, operands, 0, NULL)

static inline void out(ptx_val value) { ST(AT(p, tid), 0, value); }
static inline ptx_val low(ptx_val value, int mask) { return ptx_as(ptx_and(k, value, I(mask)), PTX_U32); }
static inline ptx_val flip(ptx_val bit) { return XOR(bit, I(1)); }
static inline ptx_val warp_sum(ptx_val sum) {
    uint32_t step;
    for (step = 16; step; step >>= 1)
        sum = ADD(sum, ptx_as(ptx_shfl_bfly(k, sum, I(step), I(31), FULL), PTX_U32));
    return sum;
}
static inline void cluster_sync(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static inline ptx_val other_rank(void) { return flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)); }

/* -- runs -- */

enum { WORDS = 1 << 14 };

static inline void start(ptx_target target) {
    ptx_module_desc d;
    memset(&d, 0, sizeof d);
    d.target = target;
    memset(&launch, 0, sizeof launch);
    launch.block[0] = 128, launch.block[1] = launch.block[2] = 1;
    launch.n = 4, launch.words = WORDS;
    m = ptx_module_new(&d);
    k = ptx_entry(m, "k");
    p = ptx_param_ptr(k, "p", PTX_GLOBAL);
    q = ptx_param_ptr(k, "q", PTX_GLOBAL);
    n = ptx_param(k, "n", PTX_U32);
    sh = ptx_shared(k, "sh", PTX_U32, 4096, 1024);
    bar = ptx_shared(k, "bar", PTX_U64, 4, 8);
    tid = ptx_tid_x(k);
    lane = ptx_laneid(k);
    warp = ptx_as(ptx_shr(k, tid, I(5)), PTX_U32);
    mine = AT(sh, tid);
    wide = ptx_ptr_add(k, sh, tid, 16);
    zero = ptx_mov(k, U(0));
    one = EQ(tid, zero);
}

static void (*set_option)(const char *, int);

/* With clusters, cooperatively where there are several blocks, or as a dependent of the launch before. */
static inline int start_kernel(void *function, void **params) {
    struct {
        uint32_t id, pad, value[16];
    } attribute;
    struct {
        uint32_t grid[3], block[3], shared_bytes;
        void *stream, *attributes;
        uint32_t count;
    } config;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    attribute.id = launch.dependent ? 6 : launch.cluster ? 4 : 2;
    attribute.value[0] = launch.cluster ? launch.cluster : 1, attribute.value[1] = attribute.value[2] = 1;
    config.grid[0] = launch.grid ? launch.grid : launch.cluster ? launch.cluster : 1;
    config.grid[1] = config.grid[2] = 1;
    memcpy(config.block, launch.block, sizeof config.block);
    config.shared_bytes = launch.dynamic;
    config.attributes = &attribute;
    config.count = 1;
    return cu.cuLaunchKernelEx(&config, function, params, NULL);
}

static int (*encode_map)(void *, int, uint32_t, device_ptr, const uint64_t *, const uint64_t *,
                         const uint32_t *, const uint32_t *, int, int, int, int);
static inline void make_map(void *map, device_ptr buffer) {
    static const uint64_t stride = 128;
    static const uint32_t steps[2] = {1, 1};
    uint64_t size[2];
    size[0] = 64, size[1] = launch.words / 32;
    CHECK(encode_map(map, 6, 2, buffer, size, &stride, launch.box, steps, 0, 0, 0, 0) == 0);
}

/* The driver's error, and its log of what is wrong in the text. */
static inline int load_quietly(void **module, const char *ptx, char *log, size_t size) {
    int options[2] = {5, 6}; /* error log buffer, its size */
    void *values[2];
    values[0] = log, values[1] = (void *)(uintptr_t)size;
    return cu.cuModuleLoadDataEx(module, ptx, 2, options, values);
}

/* What the driver finds in the program that was recorded: kinds, each between blanks. text: all of it. */
static inline void run(char *kinds, size_t size, char *text, size_t text_size) {
    static uint32_t zeros[WORDS], numbers[WORDS];
    device_ptr buffers[2];
    const char *ptx, *line, *colon;
    void *module, *function = NULL, *params[4];
    union {
        unsigned char bytes[128 + 64];
        uint64_t aligned;
    } space;
    void *map = (void *)(((uintptr_t)space.bytes + 63) & ~(uintptr_t)63);
    size_t used = 0;
    uint32_t j, order;
    *kinds = *text = 0;
    ptx_ret(k);
    ptx = ptx_text(m, NULL);
    if (!ptx) {
        snprintf(kinds, size, " refused ");
        snprintf(text, text_size, "%s", ptx_get_error(m)->message);
        return;
    }
    for (j = 0; j < WORDS; j++) numbers[j] = j;
    buffers[0] = upload(zeros, 4 * launch.words);
    buffers[1] = upload(numbers, 4 * launch.words);
    if (load_quietly(&module, ptx, text, text_size) != 0) snprintf(kinds, size, " load "), module = NULL;
    params[0] = &buffers[0], params[1] = &buffers[1], params[2] = &launch.n, params[3] = map;
    memset(&space, 0, sizeof space);
    if (launch.box[0]) make_map(map, buffers[!launch.map_of_p]);
    if (module && CHECK(cu.cuModuleGetFunction(&function, module, "k") == 0)) {
        if (launch.dynamic) CHECK(cu.cuFuncSetAttribute(function, 8, (int)launch.dynamic) == 0);
        for (order = 0; order <= launch.orders && !*text; order++) {
            set_option("seed", (int)order);
            if (order) CHECK(cu.cuMemcpyHtoD(buffers[0], zeros, 4 * launch.words) == 0);
            if (order) CHECK(cu.cuMemcpyHtoD(buffers[1], numbers, 4 * launch.words) == 0);
            CHECK_MORE(start_kernel(function, params) == 0, ptx);
            if (launch.dependent) CHECK(start_kernel(function, params) == 0);
            cu.cuCtxSynchronize();
            cu.ptxsim_report(text, text_size);
            cu.ptxsim_report_clear();
        }
    }
    if (module) cu.cuModuleUnload(module);
    cu.cuMemFree(buffers[0]), cu.cuMemFree(buffers[1]);
    for (line = module ? text : ""; *line; line += line[strcspn(line, "\n")] != 0) { /* "kind: kernel 'k', line ..." */
        colon = strchr(line, ':');
        if (*line != ' ' && colon && used + (size_t)(colon - line) + 3 < size)
            used += (size_t)snprintf(kinds + used, size - used, " %.*s ", (int)(colon - line), line);
        line += strcspn(line, "\n");
    }
}

/* What was recorded so far is a whole program. */
static inline void end_case(const char *file, int line, const char *want) {
    static char kinds[2000], text[20000];
    char wanted[80];
    int ok;
    run(kinds, sizeof kinds, text, sizeof text);
    snprintf(wanted, sizeof wanted, " %s ", want);
    ok = *want ? strstr(kinds, wanted) != NULL : !*kinds;
    if (!check_at(ok, file, line, *want ? want : "no finding", text)) printf("    found:%s\n", kinds);
    ptx_module_free(m);
}

/* Nothing is run: the builder refuses the program with the error of that name, or takes it (""). */
static inline void end_build(const char *file, int line, const char *want) {
    const char *got = "", *message = "";
    ptx_ret(k);
    if (!ptx_text(m, NULL)) got = ptx_error_name(ptx_get_error(m)->code), message = ptx_get_error(m)->message;
    if (!check_at(strcmp(got, want) == 0, file, line, want, message)) printf("    got: %s\n", got);
    ptx_module_free(m);
}

/* A program that is right as it stands; or wrong, with the finding that tells it. */
#define CLEAN end_case(__FILE__, __LINE__, "")
#define WRONG(want) end_case(__FILE__, __LINE__, want)

/* False, with a word why, where wrong programs must not run: on a GPU. */
static inline int open_cpu_driver(void) {
    const char *path = getenv("PTXGEN_CUDA_LIBRARY");
    void *library, *symbol;
    if (!open_driver()) return CHECK(0);
    if (!cu.ptxsim_report || !path) {
        printf("SKIP: wrong programs run on the CPU driver only\n");
        return 0;
    }
    library = dlopen(path, RTLD_NOW);
    symbol = dlsym(library, "ptxsim_set");
    memcpy(&set_option, &symbol, sizeof symbol);
    symbol = dlsym(library, "cuTensorMapEncodeTiled");
    memcpy(&encode_map, &symbol, sizeof symbol);
    set_option("quiet", 1);
    set_option("threads", 1);
    set_option("budget", 200000); /* warp instructions: programs that never end */
    return 1;
}

#endif
