/* faults.h - wrong programs that only a run can tell, each beside a right one. The CPU driver has to end the
 * wrong one with a finding of a given kind, and the right one with none.
 *
 *     PAIR(HOPPER, "race") {
 *         BLOCK(128);
 *         ST(mine, 0, n);
 *         if (!bad) BAR;
 *         out(LD(AT(sh, XOR(tid, U(32))), 0));
 *     }
 *
 * records, loads and launches the body twice: with `bad` set, and without. Each test of the builder's
 * refusals has its place in test_refusals.c and test_verify.c.
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
static ptx_val x, y, z, i, w, at, v4[8];
static ptx_var a, s, ph;

/* -- launches -- */

static struct {
    uint32_t grid, block[3], cluster, dynamic; /* dynamic: bytes of shared memory */
    uint32_t n;
    uint32_t words;     /* of p, and of q */
    uint32_t orders;    /* in so many other orders of warps and blocks, too */
    int dependent;      /* launched twice; the second may begin before the first ends */
} launch;
#define BLOCK(x_) BLOCK3(x_, 1, 1)
#define BLOCK3(x_, y_, z_) \
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
static inline ptx_val low(ptx_val value, int mask) {
    return ptx_as(ptx_and(k, value, I(mask)), PTX_U32);
}
static inline ptx_val flip(ptx_val bit) { return XOR(bit, I(1)); }
static inline ptx_val warp_sum(ptx_val sum) {
    uint32_t step;
    for (step = 16; step; step >>= 1)
        sum = ADD(sum, ptx_as(ptx_shfl_bfly(k, sum, I(step), I(31), FULL), PTX_U32));
    return sum;
}
static inline void cluster_sync(void) { ptx_cluster_arrive(k), ptx_cluster_wait(k); }
static inline ptx_val other_rank(void) { return flip(ptx_sreg(k, PTX_CLUSTER_CTARANK)); }

/* -- asynchronous copies -- */

static inline void copy(int64_t offset) { ptx_cp_async_16(k, ptx_off(wide, offset), q); }
static inline void copy_commit(void) { ptx_cp_async_commit(k); }
static inline void copy_wait(int left) { ptx_cp_async_wait(k, left); }
static inline void proxy_fence(void) { ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0); }
static inline void bulk_commit(void) { ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0); }
static inline void bulk_wait(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, I(left)); }
static inline void bulk_wait_read(int left) { ptx_op1(k, PTX_BULK_WAIT_GROUP_READ, 0, I(left)); }
static inline void bulk_store(int bytes) {
    ptx_bulk_store(k, p, sh, I(bytes));
    bulk_commit();
}

/* -- mbarriers -- */

/* Two mbarriers, at bar and at bar + 8, for so many arrivals each. */
static inline void init_mbarriers(int first, int second) {
    IF(one);
    ptx_mbarrier_init(k, bar, I(first));
    ptx_mbarrier_init(k, ptx_off(bar, 8), I(second));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
}
static inline void wait_parity(ptx_val barrier, ptx_val parity) {
    ptx_val over;
    ptx_loop(k);
    over = ptx_mbarrier_try_wait(k, barrier, parity);
    ptx_while(k, ptx_inv(over));
    END;
}
/* A kilobyte of q goes to shared memory; the mbarrier expects it, and takes one arrival. */
static inline void fetch(ptx_val to, ptx_val barrier) {
    ptx_mbarrier_arrive_expect(k, barrier, I(1024));
    ptx_bulk_load(k, to, q, I(1024), barrier);
}

static inline void fetch_by_one(void) {
    IF(one);
    fetch(sh, bar);
    END;
}

/* -- a ring of stages in shared memory: `full` and `empty` mbarriers, one producer, four consumer warps -- */

static ptx_val full, empty;
#define FULL_S ptx_ptr_add(k, full, GET(s), 8)
#define EMPTY_S ptx_ptr_add(k, empty, GET(s), 8)
#define TILE_S ptx_ptr_add(k, sh, GET(s), 1024)

static inline void init_rings(uint32_t full_count, uint32_t empty_count, int full_arrivals, int empty_arrivals) {
    full = ptx_shared(k, "full", PTX_U64, full_count, 8);
    empty = ptx_shared(k, "empty", PTX_U64, empty_count, 8);
    IF(one);
    i = FOR(U(full_count));
    ptx_mbarrier_init(k, ptx_ptr_add(k, full, i, 8), I(full_arrivals));
    ptx_mbarrier_init(k, ptx_ptr_add(k, empty, i, 8), I(empty_arrivals));
    END;
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    END;
    BAR;
    s = ptx_var_new(k, U(0));
    ph = ptx_var_new(k, U(0));
}
static inline void next_stage(uint32_t stages) {
    SET(s, ADD(GET(s), U(1)));
    IF(EQ(GET(s), U(stages)));
    SET(s, U(0));
    SET(ph, flip(GET(ph)));
    END;
}
/* One thread of the fifth warp is the producer, in a loop that consumers() ends; the others are consumers. */
static inline void producer(void) {
    IF(EQ(warp, I(4)));
    IF(ptx_elect(k, FULL));
}
static inline void consumers(void) {
    END;
    END;
    ELSE;
}
/* The producer of a ring of four stages, and the start of the consumers. */
static inline void ring_producer(uint32_t full_count, int empty_arrivals) {
    BLOCK(160);
    init_rings(full_count, 4, 1, empty_arrivals);
    producer();
    FOR(n);
    wait_parity(EMPTY_S, flip(GET(ph)));
    fetch(TILE_S, FULL_S);
    next_stage(4);
    consumers();
}
static inline void read_stage(ptx_val parity) {
    wait_parity(FULL_S, parity);
    out(LD(AT(TILE_S, lane), 0));
}
/* Lane 0 of each warp gives the stage back after its warp has read it. */
static inline void release_stage(void) {
    ptx_bar_warp_sync(k, FULL);
    IF(EQ(lane, zero));
    ptx_mbarrier_arrive(k, EMPTY_S);
    END;
}
static inline void ring_end(uint32_t stages) {
    next_stage(stages);
    END;
    END;
}

/* -- products of matrices -- */

static ptx_var sums[4];
static inline void init_sums(void) {
    int j;
    for (j = 0; j < 4; j++) sums[j] = ptx_var_new(k, ptx_f32(0));
}
static inline void store_sums(void) { ptx_st(k, PTX_F32, ptx_at(AT(p, tid), 0), GET(sums[0])); }
/* One product of a tile of 2 KB by itself, as a group of its own. */
static inline void start_product(ptx_val tile) {
    ptx_val o[7];
    o[0] = o[1] = ptx_wgmma_descriptor(k, tile, 128, 256, 0);
    o[2] = NE(n, zero), o[3] = o[4] = I(1), o[5] = o[6] = I(0);
    ptx_op0(k, PTX_WGMMA_FENCE, 0);
    ptx_wgmma(k, PTX_WGMMA_F32, 0, PTX_F16, PTX_F16, 4, sums, 7, o);
    ptx_op0(k, PTX_WGMMA_COMMIT_GROUP, 0);
}
static inline void product_wait(int left) { ptx_op1(k, PTX_WGMMA_WAIT_GROUP, 0, I(left)); }

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
    x = y = z = i = w = at = zero; /* nothing of the program before */
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

/* What the driver finds in the program that was recorded: kinds, each between blanks. text: all of it. */
static inline void run(char *kinds, size_t size, char *text, size_t text_size) {
    static uint32_t zeros[WORDS], numbers[WORDS];
    device_ptr buffers[2];
    const char *ptx, *line, *colon;
    void *module, *function = NULL, *params[4];
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
    module = load_text(ptx);
    params[0] = &buffers[0], params[1] = &buffers[1], params[2] = &launch.n, params[3] = NULL;
    if (module && CHECK(cu.cuModuleGetFunction(&function, module, "k") == 0)) {
        if (launch.dynamic) CHECK(cu.cuFuncSetAttribute(function, 8, (int)launch.dynamic) == 0);
        for (order = 0; order <= launch.orders && !*text; order++) {
            set_option("seed", (int)order);
            CHECK_MORE(start_kernel(function, params) == 0, ptx);
            if (launch.dependent) CHECK(start_kernel(function, params) == 0);
            cu.cuCtxSynchronize();
            cu.ptxsim_report(text, text_size);
            cu.ptxsim_report_clear();
        }
    }
    if (module) cu.cuModuleUnload(module);
    cu.cuMemFree(buffers[0]), cu.cuMemFree(buffers[1]);
    for (line = text; *line; line += line[strcspn(line, "\n")] != 0) { /* "kind: kernel 'k', line ..." */
        colon = strchr(line, ':');
        if (*line != ' ' && colon && used + (size_t)(colon - line) + 3 < size)
            used += (size_t)snprintf(kinds + used, size - used, " %.*s ", (int)(colon - line), line);
        line += strcspn(line, "\n");
    }
}

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

/* The body is recorded and run twice. */
static int bad, turn;
static inline int next_program(ptx_target target, const char *file, int line, const char *want) {
    if (turn) end_case(file, line, bad ? want : "");
    if (turn == 2) return turn = 0;
    bad = !turn++;
    start(target);
    return 1;
}
#define PAIR(target, want) while (next_program(target, __FILE__, __LINE__, want))
#define CLEAN end_case(__FILE__, __LINE__, "")

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
    set_option("quiet", 1);
    set_option("threads", 1);
    set_option("budget", 200000); /* warp instructions: programs that never end */
    return 1;
}

#endif
