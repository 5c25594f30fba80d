/* interface.h - of tests/builder/forms_run.c: what is no single value, run through the builder's interface. */
#ifndef INTERFACE_H
#define INTERFACE_H
#include <unistd.h>

typedef struct bench {
    ptx_module *m;
    ptx_kernel *k;
    ptx_val in, out, tid;
} bench;

static bench begin_test(void) {
    bench b;
    b.m = new_module();
    b.k = ptx_entry(b.m, "k");
    b.in = ptx_param_ptr(b.k, "in", PTX_GLOBAL);
    b.out = ptx_param_ptr(b.k, "out", PTX_GLOBAL);
    b.tid = ptx_tid_x(b.k);
    return b;
}

/* The address of this thread's n bytes. */
static ptx_val own(const bench *b, ptx_val base, uint32_t bytes) {
    return ptx_ptr_add(b->k, base, b->tid, bytes);
}

static int run_test_at(bench *b, int line, unsigned grid, unsigned block, const void *in, size_t in_bytes,
                       void *out, size_t out_bytes) {
    char where[1024];
    void *module, *function = NULL, *params[2];
    ptx_ret(b->k);
    const char *text = ptx_text(b->m, NULL);
    snprintf(where, sizeof where, "line %d: %s", line, ptx_get_error(b->m)->message);
    int good = CHECK_MORE(text != NULL, where);
    if (good && (module = load_text(text)) != NULL) {
        device_ptr i = upload(in, in_bytes), o = upload(out, out_bytes);
        params[0] = &i;
        params[1] = &o;
        good =
            CHECK_MORE(cu.cuModuleGetFunction(&function, module, "k") == 0
                           && cu.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, NULL, params, NULL) == 0
                           && cu.cuCtxSynchronize() == 0,
                       where);
        cu.cuMemcpyDtoH(out, o, out_bytes);
        check_reports();
        cu.cuMemFree(i);
        cu.cuMemFree(o);
        cu.cuModuleUnload(module);
        if (good) mark_rows(b->m);
    } else
        good = 0;
    ptx_module_free(b->m);
    return good;
}
#define RUN(b, grid, block, in, out)                                                                         \
    run_test_at(&(b), __LINE__, grid, block, in, sizeof(in), out, sizeof(out))

/* --- chains of carries ------------------------------------------------------------------------ */

static void test_carries(void) {
    for (int wide = 0; wide < 2; wide++)
        for (int s = 0; s < 2; s++) {
            ptx_type t = wide ? s ? PTX_S64 : PTX_U64 : s ? PTX_S32 : PTX_U32;
            uint32_t bytes = wide ? 8 : 4;
            uint64_t in[64][3], out[64][10];
            ptx_val v[3], r[10], low, zero = wide ? s ? ptx_s64(0) : ptx_u64(0) : s ? ptx_s32(0) : ptx_u32(0);
            bench b = begin_test();
            ptx_kernel *k = b.k;
            memset(out, 0, sizeof out);
            for (int i = 0; i < 64; i++)
                for (int n = 0; n < 3; n++) in[i][n] = random_integer(8 * (int)bytes);
            for (int n = 0; n < 3; n++) v[n] = ptx_ld(k, t, ptx_at(own(&b, b.in, 24), 8 * n));
            r[0] = ptx_add_cc(k, v[0], v[1]);
            r[1] = ptx_addc_cc(k, v[1], v[2]);
            r[2] = ptx_addc(k, zero, zero);
            r[3] = ptx_sub_cc(k, v[0], v[1]);
            r[4] = ptx_op2(k, PTX_SUBC, PTX_CC, v[1], v[2]);
            r[5] = ptx_subc(k, zero, zero);
            r[6] = ptx_op3(k, PTX_MAD, PTX_LO | PTX_CC, v[0], v[1], v[2]);
            r[7] = ptx_op3(k, PTX_MADC, PTX_HI | PTX_CC, v[0], v[1], v[2]);
            r[8] = ptx_op3(k, PTX_MADC, PTX_LO, v[0], v[1], v[2]);
            low = ptx_op3(k, PTX_MAD, PTX_HI | PTX_CC, v[0], v[1], v[2]);
            r[9] = ptx_op3(k, PTX_MADC, PTX_HI, v[0], low, v[2]);
            for (int n = 0; n < 10; n++) ptx_st(k, t, ptx_at(own(&b, b.out, 80), 8 * n), r[n]);
            if (!RUN(b, 1, 64, in, out)) continue;
            for (int i = 0; i < 64; i++) {
                int bits = 8 * (int)bytes;
                uint64_t m = mask_of(bits), x = in[i][0], y = in[i][1], z = in[i][2], c, want[10];
                s128 px = signed_of(x, bits, s), py = signed_of(y, bits, s);
                u128 p = (u128)px * (u128)py; /* below 2^127 in size: the upper half is right */
                uint64_t hi = (uint64_t)(p >> bits) & m, lo = (uint64_t)p & m;
                want[0] = (x + y) & m;
                c = want[0] < x;
                want[1] = (y + z + c) & m;
                want[2] = ((u128)y + z + c) >> bits != 0;
                want[3] = (x - y) & m;
                c = x < y;
                want[4] = (y - z - c) & m;
                want[5] = (u128)y < (u128)z + c ? m : 0;
                want[6] = (lo + z) & m;
                c = want[6] < z;
                want[7] = (hi + z + c) & m;
                c = ((u128)hi + z + c) >> bits != 0;
                want[8] = (lo + z + c) & m;
                uint64_t sum = (hi + z) & m;
                c = sum < z;
                p = (u128)px * (u128)signed_of(sum, bits, s);
                want[9] = ((uint64_t)(p >> bits) + z + c) & m;
                for (int n = 0; n < 10; n++)
                    if (out[i][n] != want[n] && !CHECK_MORE(0, "a chain of carries"))
                        printf("  %s %d: %llx, expected %llx\n", ptx_type_name(t), n,
                               (unsigned long long)out[i][n], (unsigned long long)want[n]);
            }
        }
}

/* --- functions, switches, printf -------------------------------------------------------------- */

static ptx_kernel *function_of(ptx_module *m, const char *name, uint32_t factor) {
    ptx_kernel *f = ptx_func(m, name, PTX_U32);
    ptx_val a = ptx_param(f, "a", PTX_U32), x = ptx_param(f, "x", PTX_U32);
    ptx_return(f, ptx_mad(f, a, ptx_u32(factor), x));
    return f;
}

static void test_calls(void) {
    uint32_t in[32], out[32][3];
    bench b;
    b.m = new_module();
    ptx_kernel *two = function_of(b.m, "two", 2), *nine = function_of(b.m, "nine", 9);
    b.k = ptx_entry(b.m, "k");
    b.in = ptx_param_ptr(b.k, "in", PTX_GLOBAL);
    b.out = ptx_param_ptr(b.k, "out", PTX_GLOBAL);
    b.tid = ptx_tid_x(b.k);
    for (uint32_t i = 0; i < 32; i++) in[i] = i * i;
    memset(out, 0, sizeof out);
    ptx_val args[2];
    args[0] = ptx_ld(b.k, PTX_U32, ptx_at(own(&b, b.in, 4), 0));
    args[1] = b.tid;
    ptx_val direct = ptx_call(b.k, two, 2, args), first = ptx_func_address(b.k, two),
            second = ptx_func_address(b.k, nine),
            odd = ptx_setp(b.k, PTX_NE, ptx_and(b.k, b.tid, ptx_imm(1)), ptx_imm(0));
    ptx_val where = ptx_selp(b.k, second, first, odd);
    ptx_val indirect = ptx_call_indirect(b.k, where, PTX_U32, 2, args);
    ptx_val to = own(&b, b.out, 12);
    ptx_st(b.k, PTX_U32, ptx_at(to, 0), direct);
    ptx_st(b.k, PTX_U32, ptx_at(to, 4), indirect);
    ptx_st(b.k, PTX_U32, ptx_at(to, 8), ptx_call(b.k, nine, 2, args));
    if (!RUN(b, 1, 32, in, out)) return;
    for (uint32_t i = 0; i < 32; i++) {
        CHECK(out[i][0] == in[i] * 2 + i);
        CHECK(out[i][1] == in[i] * (i & 1 ? 9 : 2) + i);
        CHECK(out[i][2] == in[i] * 9 + i);
    }
}

static void test_switches(void) {
    uint32_t in[32], out[32][2];
    bench b = begin_test();
    ptx_kernel *k = b.k;
    ptx_label labels[3], other = ptx_label_new(k), done = ptx_label_new(k);
    for (uint32_t i = 0; i < 32; i++) in[i] = i < 31 ? i % 6 : 0xffffffff;
    memset(out, 0, sizeof out);
    ptx_val index = ptx_ld(k, PTX_U32, ptx_at(own(&b, b.in, 4), 0)), to = own(&b, b.out, 8);
    ptx_var r = ptx_var_new(k, ptx_u32(0));
    ptx_switch(k, index, 4);
    ptx_case(k, 0), ptx_set(k, r, ptx_u32(10));
    ptx_case(k, 2), ptx_set(k, r, ptx_u32(12));
    ptx_case(k, 3), ptx_set(k, r, ptx_u32(13));
    ptx_default(k), ptx_set(k, r, ptx_u32(99));
    ptx_end(k);
    ptx_st(k, PTX_U32, ptx_at(to, 0), ptx_get(k, r));
    for (int i = 0; i < 3; i++) labels[i] = ptx_label_new(k);
    ptx_brx(k, index, 3, labels, other);
    for (uint32_t i = 0; i < 3; i++) {
        ptx_place(k, labels[i]);
        ptx_st(k, PTX_U32, ptx_at(to, 4), ptx_u32(20 + i));
        ptx_bra(k, done);
    }
    ptx_place(k, other);
    ptx_st(k, PTX_U32, ptx_at(to, 4), ptx_u32(77));
    ptx_place(k, done);
    if (!RUN(b, 1, 32, in, out)) return;
    for (int i = 0; i < 32; i++) {
        CHECK(out[i][0] == (in[i] == 0 || in[i] == 2 || in[i] == 3 ? 10 + in[i] : 99));
        CHECK(out[i][1] == (in[i] < 3 ? 20 + in[i] : 77));
    }
}

static void test_printf(void) {
    char got[256] = "", path[] = "/tmp/ptxgen-printf-XXXXXX";
    uint32_t in[1] = {7}, out[1] = {0};
    bench b = begin_test();
    ptx_val v[3];
    v[0] = ptx_ld(b.k, PTX_U32, ptx_at(b.in, 0));
    v[1] = ptx_f32(2.5);
    v[2] = ptx_s32(-3);
    ptx_if(b.k, ptx_setp(b.k, PTX_EQ, b.tid, ptx_imm(1)));
    ptx_printf(b.k, "seven %u, %g and %d%%\n", 3, v);
    ptx_end(b.k);
    fflush(stdout);
    int file = mkstemp(path), kept = dup(1);
    if (!CHECK(file >= 0 && kept >= 0)) return;
    dup2(file, 1);
    int good = RUN(b, 1, 4, in, out);
    fflush(stdout);
    dup2(kept, 1);
    close(kept);
    ssize_t n = pread(file, got, sizeof got - 1, 0);
    close(file);
    unlink(path);
    if (good && n >= 0) CHECK_MORE(!strcmp(got, "seven 7, 2.5 and -3%\n"), got);
}

/* --- memory of the module and of a thread ----------------------------------------------------- */

static void test_variables(void) {
    static const uint32_t table[4] = {3, 1, 4, 1};
    static const uint64_t nothing[1] = {0};
    uint32_t in[2] = {5, 6}, out[32][5];
    bench b = begin_test();
    ptx_kernel *k = b.k;
    ptx_variable_desc d;
    memset(&d, 0, sizeof d);
    memset(out, 0, sizeof out);
    d.name = "digits";
    d.space = PTX_CONST;
    d.type = PTX_U32;
    d.count = 4;
    d.data = table;
    ptx_symbol digits = ptx_variable(b.m, &d);
    d.name = "copy";
    d.space = PTX_GLOBAL;
    d.exported = 1;
    ptx_symbol copy = ptx_variable(b.m, &d);
    d.name = "zeros";
    d.data = NULL;
    ptx_symbol zeros = ptx_variable(b.m, &d);
    d.name = "link";
    d.type = PTX_U64;
    d.count = 1;
    d.data = nothing;
    ptx_symbol link = ptx_variable(b.m, &d);
    ptx_point(b.m, link, 0, copy, 8);
    ptx_val i = ptx_and(k, b.tid, ptx_imm(3)), to = own(&b, b.out, 20);
    ptx_st(k, PTX_U32, ptx_at(to, 0),
           ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, ptx_address(k, digits), i, 4), 0)));
    ptx_st(k, PTX_U32, ptx_at(to, 4),
           ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, ptx_address(k, copy), i, 4), 0)));
    ptx_st(k, PTX_U32, ptx_at(to, 8), ptx_ld(k, PTX_U32, ptx_at(ptx_address(k, zeros), 4)));
    ptx_val at = ptx_ld(k, PTX_U64, ptx_at(ptx_address(k, link), 0));
    ptx_st(k, PTX_U32, ptx_at(to, 12), ptx_ld(k, PTX_U32, ptx_at(at, 0)));
    ptx_val local = ptx_local(k, "lo", PTX_U32, 4, 0);
    for (int n = 0; n < 4; n++) ptx_st(k, PTX_U32, ptx_at(local, 4 * n), ptx_u32(100 + (unsigned)n));
    ptx_st(k, PTX_U32, ptx_at(to, 16), ptx_ld(k, PTX_U32, ptx_at(ptx_ptr_add(k, local, i, 4), 0)));
    if (!RUN(b, 1, 32, in, out)) return;
    for (unsigned n = 0; n < 32; n++) {
        CHECK(out[n][0] == table[n & 3] && out[n][1] == table[n & 3] && out[n][2] == 0);
        CHECK(out[n][3] == table[2] && out[n][4] == 100 + (n & 3));
    }
}

static void test_by_value(void) {
    struct {
        uint32_t a;
        float f;
        uint64_t c;
    } block = {41, 0.5f, 1ull << 40};
    uint64_t zero[3] = {0, 0, 0}, got[3];
    ptx_module *m = new_module();
    ptx_kernel *k = ptx_entry(m, "k");
    ptx_val s = ptx_param_bytes(k, "s", sizeof block, 8), out = ptx_param_ptr(k, "out", PTX_GLOBAL), raw;
    ptx_val a = ptx_ld(k, PTX_U32, ptx_at(s, 0)), f = ptx_ld(k, PTX_F32, ptx_at(s, 4)),
            c = ptx_ld(k, PTX_U64, ptx_at(s, 8));
    ptx_type type = PTX_U32;
    ptx_raw(k, "add.u32 $0, $1, 1;", 1, &a, 1, &type, &raw);
    ptx_st(k, PTX_U32, ptx_at(out, 0), raw);
    ptx_st(k, PTX_F32, ptx_at(out, 8), ptx_add(k, f, f));
    ptx_st(k, PTX_U64, ptx_at(out, 16), c);
    ptx_ret(k);
    const char *text = ptx_text(m, NULL);
    if (!CHECK_MORE(text != NULL, ptx_get_error(m)->message)) return;
    void *module = load_text(text), *function = NULL, *params[2];
    device_ptr o = upload(zero, sizeof zero);
    params[0] = &block;
    params[1] = &o;
    CHECK(module && cu.cuModuleGetFunction(&function, module, "k") == 0
          && cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) == 0
          && cu.cuCtxSynchronize() == 0);
    cu.cuMemcpyDtoH(got, o, sizeof got);
    CHECK(got[0] == 42 && got[1] == 0x3f800000 && got[2] == 1ull << 40);
    mark_rows(m);
    cu.cuMemFree(o);
    cu.cuModuleUnload(module);
    ptx_module_free(m);
}

/* --- matrices: 16 x 8 x 16 of f16, by ldmatrix, against double --------------------------------- */

static uint16_t half_of(int v) {
    num n = whole_number(v);
    return (uint16_t)put(&F16, n, RN, false);
}

static void test_matrices(void) {
    struct {
        uint16_t a[16][16], bt[8][16];
    } in[1];
    float out[16][8];
    int a[16][16], bt[8][16];
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 16; c++) in[0].a[r][c] = half_of(a[r][c] = (int)random_below(21) - 10);
    for (int r = 0; r < 8; r++)
        for (int c = 0; c < 16; c++) in[0].bt[r][c] = half_of(bt[r][c] = (int)random_below(21) - 10);
    ptx_val sh = ptx_shared(k, "sh", PTX_B32, 192, 16), from = own(&b, b.in, 4), to = own(&b, sh, 4);
    for (int i = 0; i < 6; i++)
        ptx_st(k, PTX_B32, ptx_at(to, 128 * i), ptx_ld(k, PTX_B32, ptx_at(from, 128 * i)));
    ptx_bar_sync(k, ptx_imm(0));
    ptx_val af[4], bf[2], cf[4], df[4];
    ptx_val row = ptx_and(k, b.tid, ptx_imm(15)), half = ptx_shr(k, b.tid, ptx_imm(4));
    ptx_val a_row = ptx_ptr_add(k, ptx_ptr_add(k, sh, row, 32), half, 16);
    ptx_ldmatrix(k, 4, a_row, af);
    ptx_val b_row = ptx_ptr_add(k, ptx_ptr_add(k, sh, ptx_and(k, b.tid, ptx_imm(7)), 32),
                                ptx_and(k, ptx_shr(k, b.tid, ptx_imm(3)), ptx_imm(1)), 16);
    ptx_ldmatrix(k, 2, ptx_op2(k, PTX_ADD, 0, b_row, ptx_imm(512)), bf);
    for (int i = 0; i < 4; i++) cf[i] = ptx_mov(k, ptx_f32(0));
    ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, df, af, bf, cf);
    ptx_val group = ptx_shr(k, b.tid, ptx_imm(2)), pair = ptx_and(k, b.tid, ptx_imm(3));
    ptx_val place = ptx_ptr_add(k, ptx_ptr_add(k, b.out, group, 32), pair, 8);
    ptx_st_vec(k, PTX_F32, 2, ptx_at(place, 0), df);
    ptx_st_vec(k, PTX_F32, 2, ptx_at(place, 256), df + 2);
    if (!RUN(b, 1, 32, in, out)) return;
    for (int r = 0; r < 16; r++)
        for (int c = 0; c < 8; c++) {
            double want = 0;
            for (int i = 0; i < 16; i++) want += (double)a[r][i] * bt[c][i];
            CHECK(out[r][c] == want);
        }
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Eight chunks through two buffers. */
static void test_cp_async(void) {
    uint32_t in[8][32][4], out[8][32][4];
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    for (size_t i = 0; i < sizeof in / 4; i++) (&in[0][0][0])[i] = random_u32();
    ptx_val sh = ptx_shared(k, "sh", PTX_B32, 2 * 128, 16), from = own(&b, b.in, 16), to = own(&b, b.out, 16),
            mine = own(&b, sh, 16), v[4];
    ptx_cp_async_16(k, mine, from);
    ptx_cp_async_commit(k);
    for (int i = 0; i < 8; i++) {
        if (i < 7) {
            ptx_cp_async_16(k, ptx_off(mine, 512 * ((i + 1) & 1)), ptx_off(from, 512 * (i + 1)));
            ptx_cp_async_commit(k);
            ptx_cp_async_wait(k, 1);
        } else
            ptx_cp_async_wait_all(k);
        ptx_bar_sync(k, ptx_imm(0));
        ptx_ld_vec(k, PTX_B32, 4, ptx_at(mine, 512 * (i & 1)), v);
        ptx_st_vec(k, PTX_B32, 4, ptx_at(to, 512 * i), v);
        ptx_bar_sync(k, ptx_imm(0));
    }
    if (RUN(b, 1, 32, in, out)) CHECK(!memcmp(in, out, sizeof in));
}

static void test_bulk(void) {
    uint32_t in[256], out[256];
    if (capability < 90) return;
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    for (int i = 0; i < 256; i++) in[i] = random_u32();
    ptx_val sh = ptx_shared(k, "sh", PTX_B32, 256, 128), bar = ptx_shared(k, "bar", PTX_B64, 1, 8);
    ptx_val first = ptx_setp(k, PTX_EQ, b.tid, ptx_imm(0));
    ptx_if(k, first);
    ptx_mbarrier_init(k, bar, ptx_imm(1));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_mbarrier_arrive_expect(k, bar, ptx_imm(1024));
    ptx_bulk_load(k, sh, b.in, ptx_imm(1024), bar);
    ptx_end(k);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_loop(k);
    ptx_while(k, ptx_inv(ptx_mbarrier_try_wait(k, bar, ptx_imm(0))));
    ptx_end(k);
    ptx_val mine = own(&b, sh, 4);
    for (int i = 0; i < 4; i++)
        ptx_st(k, PTX_U32, ptx_at(mine, 256 * i),
               ptx_add(k, ptx_ld(k, PTX_U32, ptx_at(mine, 256 * i)), ptx_imm(1)));
    ptx_op0(k, PTX_FENCE_PROXY_ASYNC_SHARED, 0);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_if(k, first);
    ptx_bulk_store(k, b.out, sh, ptx_imm(1024));
    ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
    ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, ptx_imm(0));
    ptx_end(k);
    if (!RUN(b, 1, 64, in, out)) return;
    for (int i = 0; i < 256; i++) CHECK(out[i] == in[i] + 1);
}

/* Each of two blocks reads what the other wrote. */
static void test_cluster(void) {
    uint32_t in[1] = {0}, out[64];
    if (capability < 90) return;
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    ptx_require_cluster(k, 2, 1, 1);
    ptx_val sh = ptx_shared(k, "sh", PTX_U32, 32, 0), rank = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    ptx_val mine = own(&b, sh, 4);
    ptx_st(k, PTX_U32, ptx_at(mine, 0), ptx_mad(k, rank, ptx_u32(1000), b.tid));
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
    ptx_val other = ptx_mapa(k, mine, ptx_xor(k, rank, ptx_u32(1)));
    ptx_val got = ptx_ld(k, PTX_U32, ptx_at(other, 0));
    ptx_val i = ptx_mad(k, rank, ptx_u32(32), b.tid);
    ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, b.out, i, 4), 0), got);
    ptx_cluster_arrive(k);
    ptx_cluster_wait(k);
    if (!RUN(b, 2, 32, in, out)) return;
    for (uint32_t n = 0; n < 64; n++) CHECK(out[n] == (n < 32 ? 1000 : 0) + (n & 31));
}

/* --- atomics ---------------------------------------------------------------------------------- */

/* Every row of atom and red, with small numbers that are exact in every type. */
static uint64_t number_in(unsigned type, int v) {
    const fmt *f = type == PTX_F32                        ? &F32
                   : type == PTX_F64                      ? &F64
                   : type == PTX_F16 || type == PTX_F16X2 ? &F16
                                                          : &BF16;
    if (ptx__types[type].kind != 'h' && ptx__types[type].kind != 'f') return (uint64_t)v;
    uint64_t x = put(f, whole_number(v), RN, false);
    return type == PTX_F16X2 || type == PTX_BF16X2 ? x << 16 | x : x;
}

static int combined(ptx_mods what, int a, int b) {
    switch (what & ~PTX__FAMILY) {
    case PTX_ATOM_ADD & ~PTX__FAMILY: return a + b;
    case PTX_ATOM_MIN & ~PTX__FAMILY: return a < b ? a : b;
    case PTX_ATOM_MAX & ~PTX__FAMILY: return a > b ? a : b;
    case PTX_ATOM_INC & ~PTX__FAMILY: return a >= b ? 0 : a + 1;
    case PTX_ATOM_DEC & ~PTX__FAMILY: return a == 0 || a > b ? b : a - 1;
    case PTX_ATOM_AND & ~PTX__FAMILY: return a & b;
    case PTX_ATOM_OR & ~PTX__FAMILY: return a | b;
    case PTX_ATOM_XOR & ~PTX__FAMILY: return a ^ b;
    default: return b;
    }
}

static void one_atomic(unsigned op, unsigned type, ptx_mods what, ptx_mods rest, unsigned count) {
    unsigned char in[16] = {0}, out[48] = {0};
    uint32_t bytes = ptx_type_bytes((ptx_type)type);
    ptx_mods add = what | rest;
    ptx_val v[8], old[8];
    bench b = begin_test();
    int first = 12, second = 10, atom = op != PTX_RED && op != PTX_RED_BITS && op != PTX_RED_VECTOR;
    uint64_t begin = number_in(type, first), by = number_in(type, second), want;
    for (unsigned i = 0; i < count; i++) {
        memcpy(in + i * bytes, &by, bytes);
        memcpy(out + i * bytes, &begin, bytes);
    }
    for (unsigned i = 0; i < count; i++)
        v[i] = ptx_as(ptx_ld(b.k,
                             bytes == 2   ? PTX_B16
                             : bytes == 4 ? PTX_B32
                                          : PTX_B64,
                             ptx_at(b.in, i * bytes)),
                      (ptx_type)type);
    memset(old, 0, sizeof old);
    if (count > 1 || op == PTX_RED_VECTOR || op == PTX_ATOM_VECTOR) {
        ptx_val operands[9];
        operands[0] = b.out;
        memcpy(operands + 1, v, count * sizeof *v);
        ptx_opn(b.k, (ptx_op_id)op, add | PTX__M_GLOBAL, (ptx_type)type, PTX_NONE, 1 + count, operands,
                atom ? count : 0, old);
    } else if (op == PTX_ATOMIC_CAS)
        old[0] = ptx_atom_cas(b.k, ptx_at(b.out, 0),
                              ptx_as(ptx_ld(b.k, (ptx_type)type, ptx_at(b.out, 0)), (ptx_type)type), v[0]);
    else if (!atom)
        ptx_red(b.k, what, ptx_with(ptx_at(b.out, 0), rest), v[0]);
    else
        old[0] = ptx_atom(b.k, what, ptx_with(ptx_at(b.out, 0), rest), v[0]);
    for (unsigned i = 0; atom && i < count; i++)
        ptx_st(b.k,
               bytes == 2   ? PTX_B16
               : bytes == 4 ? PTX_B32
                            : PTX_B64,
               ptx_at(b.out, 16 + i * bytes),
               ptx_as(old[i], bytes == 2   ? PTX_B16
                              : bytes == 4 ? PTX_B32
                                           : PTX_B64));
    if (!RUN(b, 1, 1, in, out)) return;
    want = number_in(type, combined(what, first, second));
    for (unsigned i = 0; i < count; i++) {
        CHECK(!memcmp(out + i * bytes, &want, bytes));
        if (atom) CHECK(!memcmp(out + 16 + i * bytes, &begin, bytes));
    }
}

static void test_atomics(void) {
    for (unsigned r = 0; r < PTX__ROW_COUNT; r++) {
        const ptx__row *row = &ptx__rows[r];
        if (row->op < PTX_ATOMIC_BITS || row->op > PTX_RED_VECTOR) continue;
        if (row->sm > (unsigned)capability) continue;
        for (unsigned t = 0; t < PTX__TYPE_COUNT; t++) {
            if (!(ptx__types_of(row) >> t & 1) || t == PTX_B128) continue;
            for (unsigned bit = 0; bit < 62; bit++) {
                ptx_mods what = (ptx_mods)1 << bit;
                if (!(ptx__allowed(row) & what & PTX__ATOM & ~PTX__FAMILY)) continue;
                bool vector = row->op == PTX_ATOM_VECTOR || row->op == PTX_RED_VECTOR;
                ptx_mods rest = ptx__needed(row) & PTX_NOFTZ & ~PTX__FAMILY ? PTX_NOFTZ : 0;
                one_atomic(row->op, t, what | (PTX__FAMILY & ptx__allowed(row)), rest,
                           vector ? ptx_type_bytes((ptx_type)t) == 2 ? 4 : 2 : 1);
            }
        }
    }
}

/* --- warps ------------------------------------------------------------------------------------ */

static void test_warps(void) {
    static const ptx_op_id reductions[] = {PTX_REDUX_ADD, PTX_REDUX_MIN, PTX_REDUX_MAX};
    uint32_t in[32], out[32][20];
    bench b = begin_test();
    ptx_kernel *k = b.k;
    ptx_val r[20], two[2], all = ptx_imm(-1), ops[4];
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < 32; i++) in[i] = random_u32() & 0xffff0007;
    ptx_val x = ptx_ld(k, PTX_U32, ptx_at(own(&b, b.in, 4), 0)), low = ptx_and(k, x, ptx_imm(7));
    ptx_val p = ptx_setp(k, PTX_GT, low, ptx_imm(3));
    int n = 0;
    r[n++] = ptx_shfl_up(k, x, ptx_imm(3), ptx_imm(0), all);
    r[n++] = ptx_shfl_down(k, x, ptx_imm(5), ptx_imm(31), all);
    r[n++] = ptx_shfl_bfly(k, x, ptx_imm(9), ptx_imm(31), all);
    r[n++] = ptx_shfl_idx(k, x, low, ptx_imm(31), all);
    ops[0] = ptx_as(x, PTX_B32), ops[1] = ptx_imm(3), ops[2] = ptx_imm(0), ops[3] = all;
    ptx_opn(k, PTX_SHFL_UP, 0, PTX_B32, PTX_NONE, 4, ops, 2, two);
    r[n++] = ptx_selp(k, ptx_u32(1), ptx_u32(0), two[1]);
    r[n++] = ptx_ballot(k, p, all);
    r[n++] = ptx_selp(k, ptx_u32(1), ptx_u32(0), ptx_op2(k, PTX_VOTE_ALL, 0, p, all));
    r[n++] = ptx_selp(k, ptx_u32(1), ptx_u32(0), ptx_op2(k, PTX_VOTE_ANY, 0, p, all));
    r[n++] = ptx_selp(k, ptx_u32(1), ptx_u32(0), ptx_op2(k, PTX_VOTE_UNI, 0, p, all));
    r[n++] = ptx_op2(k, PTX_MATCH_ANY, 0, ptx_as(low, PTX_B32), all);
    r[n++] = ptx_op2(k, PTX_MATCH_ALL, 0, ptx_as(low, PTX_B32), all);
    for (int i = 0; i < 3; i++) r[n++] = ptx_op2(k, reductions[i], 0, x, all);
    r[n++] = ptx_op2(k, PTX_REDUX_AND, 0, ptx_as(x, PTX_B32), all);
    r[n++] = ptx_op2(k, PTX_REDUX_OR, 0, ptx_as(x, PTX_B32), all);
    r[n++] = ptx_op2(k, PTX_REDUX_XOR, 0, ptx_as(x, PTX_B32), all);
    r[n++] = ptx_activemask(k);
    ptx_bar_warp_sync(k, all);
    for (int i = 0; i < n; i++) ptx_st(k, PTX_B32, ptx_at(own(&b, b.out, 80), 4 * i), ptx_as(r[i], PTX_B32));
    if (!RUN(b, 1, 32, in, out)) return;
    uint32_t ballot = 0, sum = 0, least_ = ~0u, most_ = 0, and_ = ~0u, or_ = 0, xor_ = 0;
    for (int i = 0; i < 32; i++) {
        ballot |= (uint32_t)((in[i] & 7) > 3) << i;
        sum += in[i];
        least_ = in[i] < least_ ? in[i] : least_;
        most_ = in[i] > most_ ? in[i] : most_;
        and_ &= in[i];
        or_ |= in[i];
        xor_ ^= in[i];
    }
    for (int i = 0; i < 32; i++) {
        uint32_t same = 0, want[20], w = 0;
        for (int j = 0; j < 32; j++) same |= (uint32_t)((in[j] & 7) == (in[i] & 7)) << j;
        want[w++] = i < 3 ? in[i] : in[i - 3];
        want[w++] = i + 5 > 31 ? in[i] : in[i + 5];
        want[w++] = in[i ^ 9];
        want[w++] = in[in[i] & 7];
        want[w++] = i >= 3;
        want[w++] = ballot;
        want[w++] = ballot == ~0u;
        want[w++] = ballot != 0;
        want[w++] = ballot == ~0u || ballot == 0;
        want[w++] = same;
        want[w++] = same == ~0u ? ~0u : 0;
        want[w++] = sum;
        want[w++] = least_;
        want[w++] = most_;
        want[w++] = and_;
        want[w++] = or_;
        want[w++] = xor_;
        want[w++] = ~0u;
        for (uint32_t j = 0; j < w; j++)
            if (out[i][j] != want[j] && !CHECK_MORE(0, "a warp operation"))
                printf("  lane %d, result %u: %x, expected %x\n", i, j, (unsigned)out[i][j],
                       (unsigned)want[j]);
    }
}

/* --- what leaves every value as it is, and barriers ------------------------------------------- */

static void test_quiet(void) {
    static const ptx_op_id plain[] = {PTX_MEMBAR_CTA,
                                      PTX_MEMBAR_GL,
                                      PTX_MEMBAR_SYS,
                                      PTX_FENCE_PROXY_ALIAS,
                                      PTX_FENCE_PROXY_ASYNC,
                                      PTX_FENCE_PROXY_ASYNC_CLUSTER,
                                      PTX_FENCE_ACQUIRE_CLUSTER,
                                      PTX_FENCE_RELEASE_CTA,
                                      PTX_GRIDDEPCONTROL_LAUNCH,
                                      PTX_GRIDDEPCONTROL_WAIT,
                                      PTX_BARRIER_CLUSTER_ARRIVE,
                                      PTX_BARRIER_CLUSTER_WAIT,
                                      PTX_BARRIER_CLUSTER_ARRIVE_UNALIGNED,
                                      PTX_BARRIER_CLUSTER_WAIT_UNALIGNED};
    static const ptx_op_id reductions[] = {PTX_BAR_RED_POPC,     PTX_BAR_RED_AND,     PTX_BAR_RED_OR,
                                           PTX_BARRIER_RED_POPC, PTX_BARRIER_RED_AND, PTX_BARRIER_RED_OR};
    uint32_t in[64], out[64][17];
    if (capability < 90) return;
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < 64; i++) in[i] = random_u32();
    ptx_val from = own(&b, b.in, 4), to = own(&b, b.out, 68), x = ptx_ld(k, PTX_U32, ptx_at(from, 0)), two[2];
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) ptx_op0(k, plain[i], 0);
    ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, PTX_RELEASE);
    ptx_op0(k, PTX_BARRIER_CLUSTER_WAIT, PTX_ACQUIRE);
    ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE_UNALIGNED, PTX_RELEASE);
    ptx_op0(k, PTX_BARRIER_CLUSTER_WAIT_UNALIGNED, PTX_ACQUIRE);
    ptx_fence(k, PTX_SC | PTX_GPU);
    ptx_fence(k, PTX_ACQUIRE | PTX_GPU);
    ptx_nanosleep(k, ptx_imm(1));
    ptx_op1(k, PTX_PMEVENT, 0, ptx_imm(3));
    ptx_op1(k, PTX_PMEVENT_MASK, 0, ptx_imm(3));
    ptx_op1(k, PTX_PREFETCH_L1, PTX__M_GLOBAL, from);
    ptx_op1(k, PTX_PREFETCH_L2, PTX__M_GLOBAL, from);
    ptx_op1(k, PTX_PREFETCH_L2_EVICT_LAST, 0, from);
    ptx_op1(k, PTX_PREFETCH_L2_EVICT_NORMAL, 0, from);
    ptx_op1(k, PTX_PREFETCHU_L1, 0, ptx_cvta(k, from));
    ptx_op2(k, PTX_APPLYPRIORITY, PTX__M_GLOBAL, b.in, ptx_imm(128));
    ptx_val policy = ptx_op0(k, PTX_CREATEPOLICY, PTX_L2_EVICT_LAST);
    ptx_op1(k, PTX_CREATEPOLICY, PTX_L2_EVICT_FIRST, ptx_f32(0.5));
    ptx_st(k, PTX_U32, ptx_cached(ptx_at(to, 0), policy), x);
    ptx_val generic = ptx_cvta(k, from);
    ptx_st(k, PTX_U32, ptx_at(to, 4), ptx_ld(k, PTX_U32, ptx_at(generic, 0)));
    ptx_val here = ptx_op1(k, PTX_ISSPACEP, PTX__M_GLOBAL, generic),
            there = ptx_op1(k, PTX_ISSPACEP, PTX__M_SHARED, generic);
    ptx_st(k, PTX_U32, ptx_at(to, 8),
           ptx_selp(k, ptx_u32(1), ptx_u32(0), ptx_op2(k, PTX_AND, 0, here, ptx_not(k, there))));
    ptx_val leader[2];
    two[0] = ptx_imm(-1);
    ptx_opn(k, PTX_ELECT, 0, PTX_NONE, PTX_NONE, 1, two, 2, leader);
    ptx_st(k, PTX_U32, ptx_at(to, 12), ptx_selp(k, ptx_u32(1), ptx_u32(0), leader[1]));
    ptx_st(k, PTX_U32, ptx_at(to, 16), ptx_selp(k, ptx_u32(1), ptx_u32(0), ptx_elect(k, ptx_imm(-1))));
    ptx_val odd = ptx_setp(k, PTX_NE, ptx_and(k, x, ptx_imm(1)), ptx_imm(0));
    ptx_op2(k, PTX_BAR_SYNC, 0, ptx_imm(1), ptx_imm(64));
    ptx_op1(k, PTX_BARRIER_SYNC, 0, ptx_imm(2));
    ptx_op2(k, PTX_BARRIER_SYNC, 0, ptx_imm(3), ptx_imm(64));
    ptx_op1(k, PTX_BARRIER_SYNC_ALIGNED, 0, ptx_imm(4));
    ptx_op2(k, PTX_BARRIER_SYNC_ALIGNED, 0, ptx_imm(5), ptx_imm(64));
    for (int r = 0; r < 6; r++) {
        ptx_val id = ptx_imm(r % 3), of_64 = ptx_imm(64), whole = ptx_op2(k, reductions[r], 0, id, odd),
                part = ptx_op3(k, reductions[r], 0, id, of_64, odd);
        if (r % 3) whole = ptx_selp(k, ptx_u32(1), ptx_u32(0), whole), part = ptx_selp(k, ptx_u32(1), ptx_u32(0), part);
        ptx_st(k, PTX_U32, ptx_at(to, 20 + 8 * r), whole);
        ptx_st(k, PTX_U32, ptx_at(to, 24 + 8 * r), part);
    }
    if (!RUN(b, 1, 64, in, out)) return;
    uint32_t count = 0, leaders = 0;
    for (int i = 0; i < 64; i++) count += in[i] & 1;
    for (int i = 0; i < 64; i++) {
        CHECK(out[i][0] == in[i] && out[i][1] == in[i] && out[i][2] == 1);
        leaders += out[i][3] + out[i][4];
        for (int r = 0; r < 12; r++)
            CHECK(out[i][5 + r] == (r / 2 % 3 == 0 ? count : r / 2 % 3 == 1 ? count == 64 : count > 0));
    }
    CHECK(leaders == 4); /* one of each warp, twice */
}

/* movmatrix turns a matrix of 8 x 8 halves; ldmatrix.trans does while it loads, stmatrix while it stores. */
static void test_turned(void) {
    uint32_t in[32], out[32][3];
    uint16_t m[8][8], t[8][8];
    if (capability < 90) return;
    bench b = begin_test();
    ptx_kernel *k = b.k;
    memset(out, 0, sizeof out);
    for (int i = 0; i < 64; i++) m[i / 8][i % 8] = (uint16_t)random_u32();
    for (int i = 0; i < 64; i++) t[i / 8][i % 8] = m[i % 8][i / 8];
    memcpy(in, m, sizeof in);
    ptx_val sh = ptx_shared(k, "sh", PTX_B32, 96, 16), to = own(&b, b.out, 12), one[2];
    ptx_val x = ptx_ld(k, PTX_B32, ptx_at(own(&b, b.in, 4), 0));
    ptx_st(k, PTX_B32, ptx_at(own(&b, sh, 4), 0), x);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_val row = ptx_ptr_add(k, sh, ptx_and(k, b.tid, ptx_imm(7)), 16);
    ptx_ldmatrix_trans(k, 1, row, one);
    ptx_st(k, PTX_B32, ptx_at(to, 0), one[0]);
    ptx_st(k, PTX_B32, ptx_at(to, 4), ptx_op1(k, PTX_MOVMATRIX, 0, x));
    ptx_val operands[2];
    operands[0] = ptx_op2(k, PTX_ADD, 0, row, ptx_imm(128));
    operands[1] = x;
    ptx_opn(k, PTX_STMATRIX_TRANS, 0, PTX_NONE, PTX_NONE, 2, operands, 0, NULL);
    operands[0] = ptx_op2(k, PTX_ADD, 0, row, ptx_imm(256));
    ptx_opn(k, PTX_STMATRIX, 0, PTX_NONE, PTX_NONE, 2, operands, 0, NULL);
    ptx_bar_sync(k, ptx_imm(0));
    ptx_val mine = own(&b, sh, 4);
    ptx_st(k, PTX_B32, ptx_at(to, 8),
           ptx_xor(k, ptx_ld(k, PTX_B32, ptx_at(mine, 128)), ptx_ld(k, PTX_B32, ptx_at(mine, 256))));
    if (!RUN(b, 1, 32, in, out)) return;
    for (int i = 0; i < 32; i++) {
        uint32_t want;
        memcpy(&want, &t[i / 4][i % 4 * 2], 4);
        CHECK(out[i][0] == want && out[i][1] == want && out[i][2] == (want ^ in[i]));
    }
}

/* What the assembler refuses, found by random programs; each beside a twin that it takes. */
static void test_refused(void) {
    for (int which = 0; which < 8; which++) {
        ptx_val v[3], out[1];
        bench b = begin_test();
        ptx_kernel *k = b.k;
        bool wrong = which & 1;
        if (capability < 100) {
            ptx_module_free(b.m);
            return;
        }
        v[0] = v[1] = ptx_ld(k, PTX_B32, ptx_at(b.in, 0));
        v[2] = wrong ? ptx_imm(0) : v[0];
        switch (which / 2) {
        case 0: ptx_opn(k, PTX_ADD, 0, PTX_U16X2, PTX_NONE, 2, v + 1, 1, out); break;
        case 1: ptx_opn(k, PTX_VADD2, 0, PTX_U32, PTX_U32, 3, v, 1, out); break;
        case 2: ptx_opn(k, PTX_CVT_PAIR, PTX_RS, PTX_F16X2, PTX_F32, 3, v, 1, out); break;
        default: ptx_opn(k, PTX_CVT, 0, wrong ? PTX_BF16 : PTX_F16, PTX_U8, 1, v, 1, out); break;
        }
        ptx_ret(k);
        const char *text = ptx_text(b.m, NULL);
        CHECK_MORE((text == NULL) == wrong, ptx_get_error(b.m)->message);
        if (wrong) CHECK(ptx_get_error(b.m)->code == (which / 2 < 3 ? PTX_E_TYPE : PTX_E_FORM));
        ptx_module_free(b.m);
    }
}

static void test_interface(void) {
    test_carries();
    test_calls();
    test_switches();
    test_printf();
    test_variables();
    test_by_value();
    test_matrices();
    test_cp_async();
    test_bulk();
    test_cluster();
    test_atomics();
    test_warps();
    test_quiet();
    test_turned();
    test_refused();
}

#endif
