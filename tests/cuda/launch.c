/* launch.c - proves ptxgen_cuda.h: `launch [LIBRARY]`. LIBRARY, else PTXGEN_CUDA_LIBRARY, else the
   machine's driver. Without the CPU driver the parts that count its calls or make them fail are skipped.

   make build/tests/cuda/launch */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../../ptxgen_cuda.h"
#include "../cudatest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

/* ---- what is run ---- */

static const char saxpy_text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                 ".visible .entry fill(.param .u64 to, .param .u32 n, .param .f32 v) {\n"
                                 "    .reg .pred %p<2>;\n    .reg .b32 %r<6>;\n    .reg .b64 %d<4>;\n"
                                 "    .reg .f32 %f<2>;\n"
                                 "    ld.param.u64 %d1, [to];\n    ld.param.u32 %r1, [n];\n"
                                 "    ld.param.f32 %f1, [v];\n    cvta.to.global.u64 %d1, %d1;\n"
                                 "    mov.u32 %r2, %tid.x;\n    mov.u32 %r3, %ctaid.x;\n"
                                 "    mov.u32 %r4, %ntid.x;\n    mad.lo.u32 %r5, %r3, %r4, %r2;\n"
                                 "    setp.ge.u32 %p1, %r5, %r1;\n    @%p1 ret;\n"
                                 "    mul.wide.u32 %d2, %r5, 4;\n    add.u64 %d3, %d1, %d2;\n"
                                 "    st.global.f32 [%d3], %f1;\n    ret;\n}\n";

static const char broken_text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                                  ".visible .entry k() {\n"
                                  "    .reg .f32 %f<3>;\n"
                                  "    mov.f32 %f1, 0f3F800000;\n"
                                  "    add.f32 %f2, %f1, %r99;\n"
                                  "    ret;\n}\n";

static void emit_saxpy(ptx_module *m, uint32_t max_threads) {
    ptx_kernel *k = ptx_entry(m, "saxpy");
    ptx_val x = ptx_param_ptr(k, "x", PTX_GLOBAL);
    ptx_val y = ptx_param_ptr(k, "y", PTX_GLOBAL);
    ptx_val a = ptx_param(k, "a", PTX_F32);
    ptx_val n = ptx_param(k, "n", PTX_U32);
    ptx_val block = ptx_ctaid_x(k), size = ptx_ntid_x(k), thread = ptx_tid_x(k);
    ptx_val i = ptx_mad(k, block, size, thread);
    if (max_threads) ptx_launch_bounds(k, max_threads, 0);
    ptx_if(k, ptx_setp(k, PTX_LT, i, n));
    {
        ptx_val xi = ptx_ptr_add(k, x, i, 4), yi = ptx_ptr_add(k, y, i, 4);
        ptx_val xv = ptx_ld(k, PTX_F32, ptx_at(xi, 0)), yv = ptx_ld(k, PTX_F32, ptx_at(yi, 0));
        ptx_st(k, PTX_F32, ptx_at(yi, 0), ptx_fma(k, a, xv, yv));
    }
    ptx_end(k);
    ptx_ret(k);
}

/* An operation: to[i] = value of the description, one block; with dynamic shared memory if asked. */
typedef struct fill_desc {
    uint32_t value, refuse, shared;
} fill_desc;

typedef struct fill_args {
    uint64_t to;
    uint32_t n, unused;
} fill_args;

static ptx_code fill_emit(ptx_module *m, const char *site, const void *desc) {
    const fill_desc *d = (const fill_desc *)desc;
    ptx_kernel *k;
    ptx_val args, to, n, i;
    (void)site;
    if (d->refuse) return ptx_fail(m, PTX_E_DESC, "", "fill refuses %u", (unsigned)d->refuse);
    k = ptx_entry(m, "fill");
    args = ptx_param_bytes(k, "args", 16, 8);
    to = ptx_ptr(ptx_ld(k, PTX_U64, ptx_at(args, 0)), PTX_GLOBAL);
    n = ptx_ld(k, PTX_U32, ptx_at(args, 8));
    i = ptx_tid_x(k);
    if (d->shared) ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, ptx_shared_dynamic(k), i, 4), 0), i);
    ptx_if(k, ptx_setp(k, PTX_LT, i, n));
    ptx_st(k, PTX_U32, ptx_at(ptx_ptr_add(k, to, i, 4), 0), ptx_u32(d->value));
    ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}

static ptx_code twin_emit(ptx_module *m, const char *site, const void *desc) {
    return fill_emit(m, site, desc);
}

static ptx_operation fill_operation(void) {
    ptx_operation op;
    op.name = "fill";
    op.desc_bytes = (uint32_t)sizeof(fill_desc);
    op.emit = fill_emit;
    return op;
}

static ptx_plan fill_plan(void) {
    ptx_plan p;
    memset(&p, 0, sizeof p);
    p.launches = 1;
    p.args_bytes = (uint32_t)sizeof(fill_args);
    p.launch[0].grid[0] = p.launch[0].grid[1] = p.launch[0].grid[2] = 1;
    p.launch[0].block[0] = 64;
    p.launch[0].block[1] = p.launch[0].block[2] = 1;
    return p;
}

static ptx_launch geometry(uint32_t grid, uint32_t block) {
    ptx_launch g;
    memset(&g, 0, sizeof g);
    g.grid[0] = grid;
    g.block[0] = block;
    g.grid[1] = g.grid[2] = g.block[1] = g.block[2] = 1;
    return g;
}

/* ---- tests ---- */

static void test_no_driver(void) {
    const char *was = getenv("PTXGEN_CUDA_LIBRARY");
    char name[700], kept[1024];
    counter c;
    ptxcu *cu = NULL;
    ptxcu_desc d;
    ptxcu_buffer b;
    memset(&c, 0, sizeof c);
    d = describe("/nowhere/libnothing.so", &c);
    d.fallback = "/nowhere/libfallback.so";
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_LIBRARY, "/nowhere/libnothing.so: ");
    CHECK(strstr(ptxcu_get_error(cu)->message, "No such file") != NULL);
    CHECK(strstr(ptxcu_get_error(cu)->message, "/nowhere/libfallback.so (fallback)") != NULL);
    CHECK(strstr(ptxcu_get_error(cu)->message, "use the CPU driver: `make build/libptxsim.so`") != NULL);
    CHECK(strstr(ptxcu_get_error(cu)->message, "set PTXGEN_CUDA_FALLBACK") != NULL);
    EXPECT(cu, ptxcu_alloc(cu, 4, &b), PTXCU_E_LIBRARY, "/nowhere/libnothing.so: ");
    CHECK(b.address == 0 && b.bytes == 0);
    CHECK(ptxcu_device_info(cu)->name[0] == 0 && ptxcu_symbol(cu, "cuInit") == NULL);
    ptxcu_close(cu);
    cu = NULL;
    d = describe("libm.so.6", &c);
    d.fallback = "/nowhere/libfallback.so";
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_SYMBOL, "missing symbols: cuInit");
    CHECK(strstr(ptxcu_get_error(cu)->message, "set PTXGEN_CUDA_FALLBACK") != NULL);
    ptxcu_close(cu);
    /* names that are too long are refused, not cut or passed over */
    memset(name, 'x', sizeof name);
    name[512] = 0;
    d.library = name;
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_LIBRARY, "xxx: the name is longer than 511 characters");
    ptxcu_close(cu);
    if (was) snprintf(kept, sizeof kept, "%s", was);
    d.library = NULL;
    name[512] = 'x';
    name[sizeof name - 1] = 0;
    CHECK(setenv("PTXGEN_CUDA_LIBRARY", name, 1) == 0);
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_LIBRARY,
           "xxx (PTXGEN_CUDA_LIBRARY): the name is longer than 511 characters");
    ptxcu_close(cu);
    CHECK((was ? setenv("PTXGEN_CUDA_LIBRARY", kept, 1) : unsetenv("PTXGEN_CUDA_LIBRARY")) == 0);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    c.fail_at = c.requests + 1;
    CHECK(ptxcu_open(&cu, &d) == PTXCU_E_MEMORY && cu == NULL);
    CHECK(ptxcu_get_error(NULL)->code == PTXCU_E_MEMORY);
    CHECK(ptxcu_open(NULL, NULL) == PTXCU_E_ARGUMENT);
    CHECK(ptxcu_sync(NULL) == PTXCU_E_MEMORY && ptxcu_device_info(NULL) != NULL);
    ptxcu_close(NULL);
    CHECK(ptxcu_bytes(3, 4) == 12 && ptxcu_bytes(SIZE_MAX / 2, 3) == SIZE_MAX && ptxcu_bytes(0, 0) == 0);
    CHECK(strcmp(ptxcu_error_name(PTXCU_E_WRONG_HANDLE), "wrong-handle") == 0);
    CHECK(strcmp(ptxcu_error_name(PTXCU_E_COUNT), "?") == 0);
}

static void test_open(const char *library) {
    ptxcu_desc d = describe(library, NULL);
    const ptxcu_device *i;
    ptxcu *cu, *second;
    d.device = 1000;
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_DEVICE, "no device 1000");
    ptxcu_close(cu);
    d = describe("/nowhere/lib.so", NULL);
    d.fallback = library;
    WORKS(cu, ptxcu_open(&cu, &d));
    CHECK(strcmp(ptxcu_device_info(cu)->library, d.fallback) == 0);
    CHECK(ptxcu_get_error(cu)->code == PTXCU_E_NONE && ptxcu_get_error(cu)->message[0] == 0);
    i = ptxcu_device_info(cu);
    CHECK(i->name[0] && i->target >= 75 && i->max_version >= 63 && i->sm_count > 0 && i->memory_bytes > 0);
    CHECK(i->shared_static == 49152 && i->shared_optin >= i->shared_static
          && i->max_threads_per_block == 1024);
    CHECK(i->is_cpu_driver == (ptxcu_symbol(cu, "ptxsim_calls") != NULL));
    CHECK(current_context() == NULL);
    d.use_current_context = 1;
    EXPECT(second, ptxcu_open(&second, &d), PTXCU_E_CONTEXT, "no context is current on this thread");
    ptxcu_close(second);
    d.use_current_context = 2;
    EXPECT(second, ptxcu_open(&second, &d), PTXCU_E_ARGUMENT, "use_current_context is 2, must be 0 or 1");
    ptxcu_close(second);
    d.use_current_context = 1;
    d.context = ptxcu_get_context(cu);
    EXPECT(second, ptxcu_open(&second, &d), PTXCU_E_ARGUMENT, "exclude each other");
    CHECK(ptxcu_get_context(second) == NULL && ptxcu_get_context(NULL) == NULL);
    ptxcu_close(second);
    d.use_current_context = 0;
    WORKS(second, ptxcu_open(&second, &d));
    CHECK(ptxcu_get_context(second) == ptxcu_get_context(cu) && current_context() == NULL);
    ptxcu_close(second);
    WORKS(cu, ptxcu_sync(cu));
    ptxcu_close(cu);
    CHECK(ptxcu__ptx_of_cuda(12040) == 84 && ptxcu__ptx_of_cuda(12060) == 85
          && ptxcu__ptx_of_cuda(12080) == 87);
    CHECK(ptxcu__ptx_of_cuda(13000) == 90 && ptxcu__ptx_of_cuda(14000) == 90
          && ptxcu__ptx_of_cuda(11080) == 78);
    CHECK(ptxcu__target_of(90, 78) == 90 && ptxcu__target_of(86, 90) == 86 && ptxcu__target_of(88, 90) == 87);
    CHECK(ptxcu__target_of(90, 80) == PTX_SM_A(90) && ptxcu__target_of(100, 90) == PTX_SM_A(100)
          && ptxcu__target_of(101, 90) == 100 && ptxcu__target_of(121, 87) == 121);
}

/* ptxcu_module_new: target and version of the device, the allocator of the handle. */
static void test_module(const char *library) {
    counter c;
    ptxcu_desc d;
    ptxcu *cu;
    ptx_module *m = NULL;
    ptx_kernel *k;
    ptxcu_program *p;
    memset(&c, 0, sizeof c);
    d = describe(library, &c);
    WORKS(cu, ptxcu_open(&cu, &d));
    WORKS(cu, ptxcu_module_new(cu, &m));
    CHECK(m && ptx_module_target(m) == ptxcu_device_info(cu)->target && !ptx_module_is_dependent(m));
    k = ptx_entry(m, "nothing");
    ptx_ret(k);
    WORKS(cu, ptxcu_load(cu, m, &p));
    ptx_module_free(m);
    EXPECT(cu, ptxcu_module_new(cu, NULL), PTXCU_E_ARGUMENT, "ptxcu_module_new: m is NULL");
    c.fail_at = c.requests + 1;
    EXPECT(cu, ptxcu_module_new(cu, &m), PTXCU_E_MEMORY, "out of host memory");
    CHECK(m == NULL && ptx_entry(m, "none") == NULL);
    c.fail_at = 0;
    ptxcu_close(cu);
    CHECK(c.blocks == 0 && c.wrong_sizes == 0);
    CHECK(ptxcu_module_new(NULL, &m) == PTXCU_E_MEMORY && m == NULL);
}

static void test_memory(ptxcu *cu) {
    ptxcu_buffer b, c, none;
    uint32_t host[64], back[64], i;
    size_t free_bytes, total;
    void *pinned = NULL;
    ptxcu_stream s;
    ptxcu_event first, last;
    float ms = -1;
    none.address = 0;
    none.bytes = 0;
    for (i = 0; i < 64; i++) host[i] = i * 2654435761u;
    WORKS(cu, ptxcu_alloc(cu, 256, &b));
    WORKS(cu, ptxcu_alloc(cu, 256, &c));
    CHECK(b.address % 256 == 0 && b.bytes == 256);
    WORKS(cu, ptxcu_stream_create(cu, &s));
    WORKS(cu, ptxcu_event_create(cu, &first));
    WORKS(cu, ptxcu_event_create(cu, &last));
    WORKS(cu, ptxcu_event_record(cu, first, s));
    WORKS(cu, ptxcu_upload(cu, b, 0, host, 256, s));
    WORKS(cu, ptxcu_fill8(cu, c, 0, 0xAB, 256, s));
    WORKS(cu, ptxcu_copy(cu, c, 128, b, 64, 64, s));
    WORKS(cu, ptxcu_fill32(cu, c, 252, 77, 1, s));
    WORKS(cu, ptxcu_download(cu, back, c, 0, 256, s));
    WORKS(cu, ptxcu_event_record(cu, last, s));
    WORKS(cu, ptxcu_stream_wait_event(cu, NULL, last));
    WORKS(cu, ptxcu_event_sync(cu, last));
    WORKS(cu, ptxcu_stream_sync(cu, s));
    WORKS(cu, ptxcu_event_elapsed_ms(cu, first, last, &ms));
    CHECK(ms >= 0);
    CHECK(back[0] == 0xABABABABu && back[31] == 0xABABABABu && back[63] == 77 && back[62] == 0xABABABABu);
    CHECK(memcmp(back + 32, host + 16, 64) == 0 && back[48] == 0xABABABABu);
    EXPECT(cu, ptxcu_upload(cu, b, 1, host, 256, s), PTXCU_E_ARGUMENT, "256 bytes at offset 1");
    EXPECT(cu, ptxcu_upload(cu, b, SIZE_MAX, host, 2, s), PTXCU_E_ARGUMENT, "buffer of 256");
    EXPECT(cu, ptxcu_download(cu, back, b, 257, 0, s), PTXCU_E_ARGUMENT, "offset 257");
    EXPECT(cu, ptxcu_download(cu, back, none, 0, 1, s), PTXCU_E_ARGUMENT, "buffer of 0");
    EXPECT(cu, ptxcu_copy(cu, c, 200, b, 0, 100, s), PTXCU_E_ARGUMENT, "ptxcu_copy, to");
    EXPECT(cu, ptxcu_copy(cu, c, 0, b, 200, 100, s), PTXCU_E_ARGUMENT, "ptxcu_copy, from");
    EXPECT(cu, ptxcu_copy(cu, c, 0, c, 99, 100, s), PTXCU_E_ARGUMENT, "overlap");
    EXPECT(cu, ptxcu_copy(cu, c, 99, c, 0, 100, s), PTXCU_E_ARGUMENT, "overlap");
    EXPECT(cu, ptxcu_copy(cu, c, 7, c, 7, 1, s), PTXCU_E_ARGUMENT, "overlap");
    WORKS(cu, ptxcu_copy(cu, c, 100, c, 0, 100, s));
    WORKS(cu, ptxcu_copy(cu, c, 0, c, 100, 100, s));
    EXPECT(cu, ptxcu_fill8(cu, c, 0, 0, 257, s), PTXCU_E_ARGUMENT, "ptxcu_fill8");
    EXPECT(cu, ptxcu_fill32(cu, c, 0, 0, SIZE_MAX / 2, s), PTXCU_E_ARGUMENT, "ptxcu_fill32");
    EXPECT(cu, ptxcu_fill32(cu, c, 2, 0, 1, s), PTXCU_E_ARGUMENT, "aligned");
    EXPECT(cu, ptxcu_upload(cu, b, 0, NULL, 4, s), PTXCU_E_ARGUMENT, "NULL");
    WORKS(cu, ptxcu_upload(cu, b, 256, NULL, 0, s));
    WORKS(cu, ptxcu_host_alloc(cu, 4096, &pinned));
    CHECK(pinned != NULL);
    WORKS(cu, ptxcu_host_free(cu, pinned));
    WORKS(cu, ptxcu_host_free(cu, NULL));
    WORKS(cu, ptxcu_memory_info(cu, &free_bytes, &total));
    CHECK(free_bytes > 0 && free_bytes <= total);
    WORKS(cu, ptxcu_event_destroy(cu, first));
    WORKS(cu, ptxcu_event_destroy(cu, last));
    WORKS(cu, ptxcu_stream_destroy(cu, s));
    WORKS(cu, ptxcu_free(cu, b));
    WORKS(cu, ptxcu_free(cu, c));
    WORKS(cu, ptxcu_free(cu, none));
    WORKS(cu, ptxcu_alloc(cu, 0, &c));
    CHECK(c.address == 0);
    EXPECT(cu, ptxcu_alloc(cu, (size_t)1 << 46, &c), PTXCU_E_DRIVER, "cuMemAlloc_v2(70368744177664 bytes)");
    CHECK(strcmp(ptxcu_get_error(cu)->driver_name, "CUDA_ERROR_OUT_OF_MEMORY") == 0 && c.address == 0);
    CHECK(ptxcu_get_error(cu)->driver_result == 2 && strstr(ptxcu_get_error(cu)->message, "out of memory"));
    EXPECT(cu, ptxcu_alloc(cu, 4, NULL), PTXCU_E_ARGUMENT, "NULL");
    if (make_fail) {
        make_fail("cuMemAlloc_v2", 1, 2);
        EXPECT(cu, ptxcu_alloc(cu, 123, &c), PTXCU_E_DRIVER,
               "cuMemAlloc_v2(123 bytes): CUDA_ERROR_OUT_OF_MEMORY");
        CHECK(strcmp(ptxcu_get_error(cu)->call, "cuMemAlloc_v2(123 bytes)") == 0);
        make_fail("cuMemcpyHtoDAsync_v2", 1, 1);
        WORKS(cu, ptxcu_alloc(cu, 8, &c));
        EXPECT(cu, ptxcu_upload(cu, c, 0, host, 8, NULL), PTXCU_E_DRIVER, "cuMemcpyHtoDAsync_v2(8 bytes)");
        WORKS(cu, ptxcu_free(cu, c));
    }
}

static void test_text(ptxcu *cu) {
    ptxcu_program *p = NULL;
    ptxcu_buffer b;
    ptx_launch g = geometry(2, 32);
    ptxcu_arg a[3];
    float back[50];
    uint32_t entry = 9, other = 9, i, wrong = 0;
    EXPECT(cu, ptxcu_load_text(cu, broken_text, &p), PTXCU_E_JIT, "CUDA_ERROR_INVALID_PTX");
    CHECK(p == NULL && strstr(ptxcu_get_error(cu)->log, "line 7") != NULL);
    CHECK(strstr(ptxcu_get_error(cu)->message, "PTX line 7: add.f32 %f2, %f1, %r99;") != NULL);
    { /* of a module, the caller's place too: here, where text goes in that the builder does not look at */
        ptx_module *m = ptx_module_new(NULL);
        ptx_kernel *k = ptx_entry(m, "broken");
        char where[300];
        ptx_raw(k, "membar.frobnicate;", 0, NULL, 0, NULL, NULL), sprintf(where, "%s:%d", __FILE__, __LINE__);
        ptx_ret(k);
        EXPECT(cu, ptxcu_load(cu, m, &p), PTXCU_E_JIT, "frobnicate");
        CHECK(strstr(ptxcu_get_error(cu)->message, where) != NULL);
        CHECK(strstr(ptxcu_get_error(cu)->message, "kernel 'broken', instruction 0") != NULL);
        ptx_module_free(m);
    }
    EXPECT(cu, ptxcu_load_text(cu, NULL, &p), PTXCU_E_ARGUMENT, "NULL");
    WORKS(cu, ptxcu_load_text(cu, saxpy_text, &p));
    if (!p) return;
    EXPECT(cu, ptxcu_entry_by_name(cu, p, "nothing", &entry), PTXCU_E_ENTRY, "nothing");
    EXPECT(cu, ptxcu_launch(cu, p, &g, NULL, 0, NULL), PTXCU_E_ENTRY, "no entry 0");
    WORKS(cu, ptxcu_entry_by_name(cu, p, "fill", &entry));
    WORKS(cu, ptxcu_entry_by_name(cu, p, "fill", &other));
    CHECK(entry == 0 && other == 0);
    WORKS(cu, ptxcu_alloc(cu, sizeof back, &b));
    a[0] = ptxcu_arg_buffer(b);
    a[1] = ptxcu_arg_u32(50);
    a[2] = ptxcu_arg_f32(1.5f);
    WORKS(cu, ptxcu_launch(cu, p, &g, a, 3, NULL));
    WORKS(cu, ptxcu_download(cu, back, b, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 50; i++) wrong += back[i] < 1.5f || back[i] > 1.5f;
    CHECK(wrong == 0);
    WORKS(cu, ptxcu_free(cu, b));
    WORKS(cu, ptxcu_unload(cu, p));
    EXPECT(cu, ptxcu_unload(cu, p), PTXCU_E_WRONG_HANDLE, "unloaded");
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 3, NULL), PTXCU_E_FREED, "ptxcu_launch: the program was unloaded");
    EXPECT(cu, ptxcu_entry_by_name(cu, p, "fill", &entry), PTXCU_E_FREED, "unloaded");
    WORKS(cu, ptxcu_unload(cu, NULL));
}

#define N 1000u
static void test_saxpy(ptxcu *cu, ptxcu *other) {
    static float x[N], y[N], back[N];
    ptx_module *m = ptx_module_new(NULL), *bad = ptx_module_new(NULL);
    ptxcu_program *p = NULL, *q = NULL;
    ptxcu_buffer dx, dy;
    ptxcu_arg a[5];
    ptx_launch g = geometry(8, 128);
    uint32_t i, wrong = 0, value = 3;
    uint64_t before;
    EXPECT(cu, ptxcu_load(cu, bad, &q), PTXCU_E_EMIT, ptx_get_error(bad)->message);
    CHECK(ptx_get_error(bad)->code == PTX_E_EMPTY);
    ptx_module_free(bad);
    EXPECT(cu, ptxcu_load(cu, NULL, &q), PTXCU_E_ARGUMENT, "NULL");
    emit_saxpy(m, 256);
    WORKS(cu, ptxcu_load(cu, m, &p));
    ptx_module_free(m); /* signatures are copies */
    if (!p) return;
    for (i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(N - i);
    WORKS(cu, ptxcu_alloc(cu, sizeof x, &dx));
    WORKS(cu, ptxcu_alloc(cu, sizeof y, &dy));
    WORKS(cu, ptxcu_upload(cu, dx, 0, x, sizeof x, NULL));
    WORKS(cu, ptxcu_upload(cu, dy, 0, y, sizeof y, NULL));
    a[0] = ptxcu_arg_buffer(dx);
    a[1] = ptxcu_arg_address(dy.address);
    a[2] = ptxcu_arg_f32(2);
    a[3] = ptxcu_arg_bytes(&value, 4);
    a[4] = ptxcu_arg_u32(0);
    before = calls ? calls("cuLaunchKernel") : 0;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 3, NULL), PTXCU_E_ARGS, "takes 4 arguments, 3 are given");
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 5, NULL), PTXCU_E_ARGS, "takes 4 arguments, 5 are given");
    EXPECT(cu, ptxcu_launch(cu, p, &g, NULL, 4, NULL), PTXCU_E_ARGUMENT, "args is NULL");
    a[2] = ptxcu_arg_u32(2);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS,
           "argument 2: parameter 'a' is f32 of 4 bytes, the argument is u32 of 4 bytes");
    a[2] = ptxcu_arg_f64(2);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS, "the argument is f64 of 8 bytes");
    a[2] = ptxcu_arg_f32(2);
    a[3] = ptxcu_arg_bytes(&value, 3);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS, "the argument is a block of 3 bytes");
    a[3] = ptxcu_arg_bytes(NULL, 4);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGUMENT, "argument 3 is a NULL block");
    a[3] = ptxcu_arg_s32(3);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS,
           "'n' is u32 of 4 bytes, the argument is s32");
    a[3] = ptxcu_arg_u32(N);
    a[0] = ptxcu_arg_u64(dx.address);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS, "'x' is a pointer of 8 bytes");
    a[0] = ptxcu_arg_s64(1);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ARGS, "the argument is s64 of 8 bytes");
    a[0] = ptxcu_arg_buffer(dx);
    g.entry = 1;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_ENTRY, "no entry 1");
    g = geometry(8, 257);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "a block of 257 threads, at most 256");
    g = geometry(8, 0);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "block x is 0");
    g = ptx_launch_1d(N, 0);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "block x is 0");
    g = geometry(8, 32);
    g.cooperative = 2;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "cooperative is 2, must be 0 or 1");
    g = geometry(0, 32);
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "grid x is 0");
    g = geometry(8, 32);
    g.grid[1] = 65536;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "grid y is 65536, must be 1 to 65535");
    g = geometry(8, 1);
    g.block[2] = 65;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "block z is 65, must be 1 to 64");
    g = geometry(8, 128);
    g.shared_bytes = ptxcu_device_info(cu)->shared_optin + 1;
    EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_LAUNCH, "dynamic");
    g.shared_bytes = 0;
    EXPECT(other, ptxcu_launch(other, p, &g, a, 4, NULL), PTXCU_E_WRONG_HANDLE, "another handle");
    EXPECT(other, ptxcu_unload(other, p), PTXCU_E_WRONG_HANDLE, "not one of this handle's");
    EXPECT(cu, ptxcu_launch(cu, NULL, &g, a, 4, NULL), PTXCU_E_ARGUMENT, "program is NULL");
    EXPECT(cu, ptxcu_launch(cu, p, NULL, a, 4, NULL), PTXCU_E_ARGUMENT, "geometry is NULL");
    if (calls)
        CHECK(calls("cuLaunchKernel") == before); /* all of that was found before the driver was asked */
    if (make_fail) {
        make_fail("cuLaunchKernel", 1, 701);
        EXPECT(cu, ptxcu_launch(cu, p, &g, a, 4, NULL), PTXCU_E_DRIVER,
               "cuLaunchKernel(entry 'saxpy', grid 8x1x1");
    }
    WORKS(cu, ptxcu_launch(cu, p, &g, a, 4, NULL));
    WORKS(cu, ptxcu_download(cu, back, dy, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < N; i++) wrong += back[i] < x[i] * 2 + y[i] || back[i] > x[i] * 2 + y[i];
    CHECK(wrong == 0);
    WORKS(cu, ptxcu_free(cu, dx));
    WORKS(cu, ptxcu_free(cu, dy));
}

/* out[block] = 100 * blocks of its cluster + its place there */
static void emit_clusters(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "clusters");
    ptx_val out = ptx_param_ptr(k, "out", PTX_GLOBAL), block = ptx_ctaid_x(k), size, at;
    size = ptx_sreg(k, PTX_CLUSTER_NCTARANK);
    at = ptx_sreg(k, PTX_CLUSTER_CTARANK);
    size = ptx_mad(k, size, ptx_u32(100), at);
    at = ptx_ptr_add(k, out, block, 4);
    ptx_st(k, PTX_U32, ptx_at(at, 0), size);
    ptx_ret(k);
}

static uint32_t wrong_places(ptxcu *cu, ptxcu_buffer b, uint32_t size) {
    uint32_t back[8], i, wrong = 0;
    WORKS(cu, ptxcu_download(cu, back, b, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_fill8(cu, b, 0, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 8; i++) wrong += back[i] != 100 * size + i % size;
    return wrong;
}

static void test_clusters(ptxcu *cu) {
    static const uint32_t bad[][3] = {{3, 1, 1}, {16, 1, 1}, {4, 0, 0},
                                      {0, 1, 0}, {8, 1, 2},  {0x10001, 0x10000, 1}};
    ptx_module_desc desc;
    ptx_module *m;
    ptxcu_program *p = NULL;
    ptxcu_buffer b;
    ptxcu_stream stream;
    ptxcu_graph graph = NULL;
    ptxcu_arg a;
    ptx_launch g = geometry(8, 32);
    uint32_t i;
    uint64_t before = calls ? calls("cuLaunchKernelEx") : 0;
    memset(&desc, 0, sizeof desc);
    desc.target = ptxcu_device_info(cu)->target;
    if (!ptxcu_device_info(cu)->max_cluster) {
        ptxcu_program *q = NULL;
        m = ptx_module_new(NULL);
        emit_saxpy(m, 256);
        WORKS(cu, ptxcu_load(cu, m, &q));
        ptx_module_free(m);
        g.cluster[0] = g.cluster[1] = g.cluster[2] = 1;
        EXPECT(cu, ptxcu_launch(cu, q, &g, NULL, 0, NULL), PTXCU_E_LAUNCH, "this device or driver has none");
        WORKS(cu, ptxcu_unload(cu, q));
        printf("SKIP test_clusters: the device has none\n");
        return;
    }
    m = ptx_module_new(&desc);
    emit_clusters(m);
    WORKS(cu, ptxcu_load(cu, m, &p));
    ptx_module_free(m);
    WORKS(cu, ptxcu_alloc(cu, 32, &b));
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    a = ptxcu_arg_buffer(b);
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(g.cluster, bad[i], sizeof g.cluster);
        EXPECT(cu, ptxcu_launch(cu, p, &g, &a, 1, NULL), PTXCU_E_LAUNCH,
               "they must have 1 to 8 and divide it");
    }
    if (calls) CHECK(calls("cuLaunchKernelEx") == before);
    memset(g.cluster, 0, sizeof g.cluster);
    WORKS(cu, ptxcu_launch(cu, p, &g, &a, 1, NULL));
    CHECK(wrong_places(cu, b, 1) == 0);
    g.cluster[1] = g.cluster[2] = 1;
    for (g.cluster[0] = 1; g.cluster[0] <= 8; g.cluster[0] *= 2)
        for (g.cooperative = 0; g.cooperative < 2; g.cooperative++) {
            WORKS(cu, ptxcu_launch(cu, p, &g, &a, 1, NULL));
            CHECK(wrong_places(cu, b, g.cluster[0]) == 0);
        }
    g.cooperative = 0;
    g.cluster[0] = 4;
    if (make_fail) {
        make_fail("cuLaunchKernelEx", 1, 701);
        EXPECT(cu, ptxcu_launch(cu, p, &g, &a, 1, NULL), PTXCU_E_DRIVER,
               "cuLaunchKernelEx(entry 'clusters', grid 8x1x1");
    }
    WORKS(cu, ptxcu_graph_begin(cu, stream)); /* as a graph's node */
    WORKS(cu, ptxcu_launch(cu, p, &g, &a, 1, stream));
    WORKS(cu, ptxcu_graph_end(cu, stream, &graph));
    for (i = 0; i < 2; i++) {
        WORKS(cu, ptxcu_graph_launch(cu, graph, stream));
        WORKS(cu, ptxcu_sync(cu));
        CHECK(wrong_places(cu, b, 4) == 0);
    }
    WORKS(cu, ptxcu_graph_destroy(cu, graph));
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
    WORKS(cu, ptxcu_unload(cu, p));
    WORKS(cu, ptxcu_free(cu, b));
}

static void test_operation(ptxcu *cu, const counter *c) {
    static const char *const launching[] = {"cuLaunchKernel", "cuCtxGetCurrent", "cuCtxPushCurrent_v2",
                                            "cuCtxPopCurrent_v2", NULL};
    ptx_operation op = fill_operation(), twin = fill_operation();
    ptx_plan plan = fill_plan();
    ptxcu_program *p = NULL, *q = NULL, *all[40];
    fill_desc d = {5, 0, 0}, other_d;
    fill_args args;
    ptxcu_buffer b;
    uint32_t back[64], i, wrong = 0, same = 1;
    uint64_t loads, others, launches;
    long requests;
    WORKS(cu, ptxcu_alloc(cu, sizeof back, &b));
    args.to = b.address;
    args.n = 60;
    args.unused = 0;
    WORKS(cu, ptxcu_fill8(cu, b, 0, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_operation(cu, &op, &d, &p));
    if (!p) return;
    WORKS(cu, ptxcu_run(cu, p, &plan, &args, sizeof args, NULL));
    loads = calls ? calls("cuModuleLoadDataEx") : 0;
    others = calls ? other_calls(launching) : 0;
    launches = calls ? calls("cuLaunchKernel") : 0;
    requests = c->requests;
    for (i = 0; i < 10; i++) {
        if (ptxcu_operation(cu, &op, &d, &q) || q != p) same = 0;
        if (ptxcu_run(cu, p, &plan, &args, sizeof args, NULL)) same = 0;
    }
    CHECK(same);
    CHECK(c->requests == requests);
    if (calls) {
        CHECK(calls("cuModuleLoadDataEx") == loads);
        CHECK(other_calls(launching) == others);
        CHECK(calls("cuLaunchKernel") == launches + 10);
    }
    WORKS(cu, ptxcu_download(cu, back, b, 0, sizeof back, NULL));
    WORKS(cu, ptxcu_sync(cu));
    for (i = 0; i < 64; i++) wrong += back[i] != (i < 60 ? 5u : 0u);
    CHECK(wrong == 0);

    EXPECT(cu, ptxcu_run(cu, p, &plan, &args, sizeof args - 1, NULL), PTXCU_E_ARGS,
           "for arguments of 16 bytes, 15");
    EXPECT(cu, ptxcu_run(cu, p, &plan, NULL, sizeof args, NULL), PTXCU_E_ARGUMENT, "args is NULL");
    plan.args_bytes = 8;
    EXPECT(cu, ptxcu_run(cu, p, &plan, &args, 8, NULL), PTXCU_E_ARGS, "'args' has 16 bytes, 8 are given");
    plan = fill_plan();
    plan.launches = 5;
    EXPECT(cu, ptxcu_run(cu, p, &plan, &args, sizeof args, NULL), PTXCU_E_ARGUMENT, "5 launches");
    plan = fill_plan();
    plan.launches = 2; /* the second has no geometry: nothing is launched */
    launches = calls ? calls("cuLaunchKernel") : 0;
    EXPECT(cu, ptxcu_run(cu, p, &plan, &args, sizeof args, NULL), PTXCU_E_LAUNCH, "block x is 0");
    if (calls) CHECK(calls("cuLaunchKernel") == launches);
    plan.launches = 0;
    WORKS(cu, ptxcu_run(cu, p, &plan, NULL, 0, NULL));
    EXPECT(cu, ptxcu_unload(cu, p), PTXCU_E_ARGUMENT, "belongs to the cache");

    d.refuse = 7;
    EXPECT(cu, ptxcu_operation(cu, &op, &d, &q), PTXCU_E_EMIT, "fill refuses 7");
    CHECK(q == NULL);
    EXPECT(cu, ptxcu_operation(cu, &op, NULL, &q), PTXCU_E_ARGUMENT, "desc is NULL");
    EXPECT(cu, ptxcu_operation(cu, NULL, &d, &q), PTXCU_E_ARGUMENT, "NULL");
    d.refuse = 0;
    memset(&other_d, 0, sizeof other_d);
    other_d.value = 5;
    WORKS(cu, ptxcu_operation(cu, &twin, &d, &q)); /* the same generator and bytes, elsewhere in memory */
    CHECK(q == p);
    twin.emit = twin_emit;
    WORKS(cu, ptxcu_operation(cu, &twin, &other_d, &q)); /* another generator, the same bytes */
    CHECK(q && q != p);

    /* more than the table's first size, and every one found again */
    for (i = 0; i < 40; i++) {
        d.value = 100 + i;
        if (ptxcu_operation(cu, &op, &d, &all[i])) same = 0;
    }
    requests = c->requests;
    for (i = 0; i < 40; i++) {
        d.value = 100 + i;
        if (ptxcu_operation(cu, &op, &d, &q) || q != all[i]) same = 0;
    }
    CHECK(same && c->requests == requests);

    /* dynamic shared memory above 48 KiB: asked for once */
    if (ptxcu_device_info(cu)->shared_optin >= 60000) {
        uint64_t asked;
        d.shared = 1;
        plan = fill_plan();
        plan.launch[0].shared_bytes = 60000;
        WORKS(cu, ptxcu_operation(cu, &op, &d, &q));
        WORKS(cu, ptxcu_run(cu, q, &plan, &args, sizeof args, NULL));
        asked = calls ? calls("cuFuncSetAttribute") : 0;
        WORKS(cu, ptxcu_run(cu, q, &plan, &args, sizeof args, NULL));
        plan.launch[0].shared_bytes = 50000;
        WORKS(cu, ptxcu_run(cu, q, &plan, &args, sizeof args, NULL));
        if (calls) CHECK(asked > 0 && calls("cuFuncSetAttribute") == asked);
    }
    WORKS(cu, ptxcu_sync(cu));
    WORKS(cu, ptxcu_cache_clear(cu));
    d.value = 5;
    d.shared = 0;
    WORKS(cu, ptxcu_operation(cu, &op, &d, &p));
    WORKS(cu, ptxcu_free(cu, b));
}

/* Each allocation of open and operation fails in turn, then each driver call. */
static void test_failures(const char *library) {
    ptx_operation op = fill_operation();
    fill_desc d = {1, 0, 0};
    ptxcu_program *p;
    counter c;
    ptxcu *cu;
    long at;
    size_t i;
    int wrong = 0, finished = 0;
    for (at = 1; at < 2000 && !finished; at++) {
        ptxcu_desc desc;
        ptxcu_code code;
        memset(&c, 0, sizeof c);
        c.fail_at = at;
        desc = describe(library, &c);
        code = ptxcu_open(&cu, &desc);
        if (!code) {
            code = ptxcu_operation(cu, &op, &d, &p);
            if (code) { /* not sticky: the next try has memory */
                if (ptxcu_get_error(cu)->code != code || ptxcu_operation(cu, &op, &d, &p)) wrong++;
            }
        }
        if (c.requests < at)
            finished = code == PTXCU_E_NONE;
        else if (code != PTXCU_E_MEMORY) {
            wrong++;
            printf("allocation %ld failed, and the code is '%s': %s\n", at, ptxcu_error_name(code),
                   ptxcu_get_error(cu)->message);
        }
        ptxcu_close(cu);
        if (c.blocks || c.bytes || c.wrong_sizes) wrong++;
    }
    CHECK(finished && at > 8);
    CHECK(wrong == 0);
    if (!make_fail) return;
    for (i = 0, wrong = 0; i < FUNCTIONS; i++) {
        uint64_t before = calls(functions[i]);
        ptxcu_desc desc;
        ptxcu_code code;
        memset(&c, 0, sizeof c);
        desc = describe(library, &c);
        desc.fallback = "/nowhere/libfallback.so"; /* no second chance */
        make_fail(functions[i], 1, 999);
        code = ptxcu_open(&cu, &desc);
        if (!code) code = ptxcu_operation(cu, &op, &d, &p);
        /* attributes that are missing are zero; the names of errors are asked for only after an error; a
           context that is not popped is popped again */
        if (calls(functions[i]) != before && !code && strcmp(functions[i], "cuDeviceGetAttribute")
            && strcmp(functions[i], "cuCtxPopCurrent_v2")) {
            wrong++;
            printf("%s failed unnoticed\n", functions[i]);
        }
        ptxcu_close(cu);
        make_fail(functions[i], 0, 0);
        if (c.blocks || c.wrong_sizes) wrong++;
    }
    CHECK(wrong == 0);
}

/* Programs on disk: built once, then read; what is damaged is ignored and replaced. */
static int load_with_folder(const char *library, const char *folder, uint32_t files, uint32_t most) {
    ptxcu_desc d = describe(library, NULL);
    ptx_module *m = ptx_module_new(NULL);
    ptxcu_program *p = NULL;
    ptxcu *cu;
    uint64_t before;
    int linked = -1;
    d.cache_folder = folder;
    d.cache_files = files;
    emit_saxpy(m, most);
    if (!ptxcu_open(&cu, &d)) {
        before = calls("cuLinkComplete");
        WORKS(cu, ptxcu_load(cu, m, &p));
        CHECK(p != NULL);
        linked = (int)(calls("cuLinkComplete") - before);
    }
    ptxcu_close(cu);
    ptx_module_free(m);
    return linked;
}

static void damage(const char *name, long at, int cut) {
    static char bytes[1 << 20];
    FILE *f = fopen(name, "rb");
    size_t n;
    CHECK(f != NULL);
    if (!f) return;
    n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    if (at < 0) at += (long)n;
    bytes[at] ^= 1;
    f = fopen(name, "wb");
    fwrite(bytes, 1, cut ? (size_t)at : n, f);
    fclose(f);
}

/* What a file of the cache begins with, and two of its fields. */
enum { HEAD = 48, TEXT_BYTES = 16, IMAGE_BYTES = 24 };

/* Every byte of what a file begins with, and one of each part of the machine code, is changed; the file is
   cut after each number of bytes up to there; it is empty, too long, a folder, and not to be read. Ignored
   each time, and replaced where that is possible. */
static void test_disk_bytes(const char *library, const char *folder, const char *name) {
    static unsigned char whole[1 << 20], now[1 << 20];
    size_t n, i, step;
    unsigned wrong = 0, tried = 0;
    FILE *f;
    remove(name);
    CHECK(load_with_folder(library, folder, 1, 256) == 1);
    f = fopen(name, "rb");
    CHECK(f != NULL);
    if (!f) return;
    n = fread(whole, 1, sizeof whole, f);
    fclose(f);
    CHECK(n > 200 && n < sizeof whole);
    for (step = 0; step < 2; step++)
        for (i = 0; i < n; i += i < HEAD ? 1 : (n - HEAD) / 7) {
            f = fopen(name, "wb");
            whole[i] ^= 0x10;
            fwrite(whole, 1, step ? i : n, f);
            whole[i] ^= 0x10;
            fclose(f);
            tried++;
            if (load_with_folder(library, folder, 1, 256) != 1) wrong++;
            f = fopen(name, "rb"); /* the same again */
            if (fread(now, 1, sizeof now, f) != n || memcmp(now, whole, n)) wrong++;
            fclose(f);
        }
    CHECK(tried > 2 * HEAD + 10 && wrong == 0);
    f = fopen(name, "ab");
    fputc(0, f);
    fclose(f);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    remove(name);
    CHECK(mkdir(name, 0700) == 0); /* cannot be read, nor replaced: no error */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 1);
    CHECK(rmdir(name) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    if (geteuid()) { /* root may write everywhere */
        remove(name);
        CHECK(chmod(folder, 0500) == 0);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
        CHECK(chmod(folder, 0700) == 0);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
    }
}

/* Written so many seconds ago. */
static void age_file(const char *name, long seconds) {
    struct utimbuf times;
    times.actime = times.modtime = time(NULL) - seconds;
    CHECK(utime(name, &times) == 0);
}

static long file_age(const char *name) {
    struct stat s;
    if (!CHECK(lstat(name, &s) == 0)) return 0;
    return (long)(time(NULL) - s.st_mtime);
}

/* Eight programs in a folder of four files: it never has more, and a new one takes the oldest's place. */
static void test_disk_oldest(const char *library, const char *folder) {
    char name[400];
    uint32_t i;
    CHECK(mkdir(folder, 0700) == 0);
    for (i = 0; i < 4; i++) CHECK(load_with_folder(library, folder, 4, 32 * (i + 1)) == 1);
    for (i = 0; i < 4; i++) CHECK(load_with_folder(library, folder, 4, 32 * (i + 1)) == 0); /* all four fit */
    for (i = 0; i < 4; i++) { /* written one after the other, the third first */
        snprintf(name, sizeof name, "%s/ptxgen-%06x.cubin", folder, (unsigned)i);
        age_file(name, i == 2 ? 2000 : 1000);
    }
    CHECK(load_with_folder(library, folder, 4, 256) == 1);
    CHECK(file_age(name) > 900); /* the fourth is as it was */
    name[strlen(name) - 7] = '2';
    CHECK(file_age(name) < 900);
    CHECK(load_with_folder(library, folder, 4, 256) == 0);
    for (i = 5; i < 9; i++) CHECK(load_with_folder(library, folder, 4, 32 * i) >= 0);
    for (i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s/ptxgen-%06x.cubin", folder, (unsigned)i);
        CHECK(remove(name) == 0);
    }
    CHECK(rmdir(folder) == 0); /* no fifth */
}

/* A file with these bytes, as fopen makes it. */
static void write_file(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(name, "wb");
    if (!CHECK(f != NULL)) return;
    CHECK(fwrite(bytes, 1, n, f) == n);
    fclose(f);
}

static size_t read_whole(const char *name, void *bytes, size_t most) {
    FILE *f = fopen(name, "rb");
    size_t n;
    if (!CHECK(f != NULL)) return 0;
    n = fread(bytes, 1, most, f);
    fclose(f);
    return n;
}

static int is_regular(const char *name) {
    struct stat s;
    return lstat(name, &s) == 0 && S_ISREG(s.st_mode);
}

/* What somebody else may have put into a folder of one file: never used, never written through, replaced. */
static void test_disk_planted(const char *library, const char *folder, const char *outside) {
    static unsigned char whole[1 << 20], now[1 << 20];
    static const char precious[] = "a file of somebody else";
    char name[400], other[440];
    size_t n, i;
    snprintf(name, sizeof name, "%s/ptxgen-000000.cubin", folder);
    snprintf(other, sizeof other, "%s/other", outside);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    n = read_whole(name, whole, sizeof whole);
    CHECK(n > HEAD + 100 && n < sizeof whole);

    CHECK(chmod(name, 0620) == 0); /* others may write it */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    CHECK(chmod(name, 0602) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    CHECK(chmod(name, 0644) == 0); /* or read it */
    CHECK(load_with_folder(library, folder, 1, 256) == 0);
    if (geteuid() == 0) { /* whole and right, of another user */
        CHECK(chown(name, 12345, 12345) == 0);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
        CHECK(load_with_folder(library, folder, 1, 256) == 0);
    } else {
        printf("skip: only root can make files of another user\n");
    }
    CHECK(link(name, other) == 0); /* has a second name */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    CHECK(read_whole(other, now, sizeof now) == n && memcmp(now, whole, n) == 0); /* not written through it */

    /* a link to a file that would do, then to one that must stay */
    CHECK(remove(name) == 0 && symlink(other, name) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && is_regular(name));
    CHECK(load_with_folder(library, folder, 1, 256) == 0);
    write_file(other, precious, sizeof precious);
    CHECK(remove(name) == 0 && symlink(other, name) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && is_regular(name));
    for (i = 0; i < 16; i++) { /* what is guessed of names that are written first */
        char guess[420];
        snprintf(guess, sizeof guess, "%s.%u.tmp", name, (unsigned)i);
        CHECK(symlink(other, guess) == 0);
    }
    CHECK(load_with_folder(library, folder, 1, 128) == 1);
    for (i = 0; i < 16; i++) {
        char guess[420];
        snprintf(guess, sizeof guess, "%s.%u.tmp", name, (unsigned)i);
        CHECK(remove(guess) == 0);
    }
    CHECK(read_whole(other, now, sizeof now) == sizeof precious);
    CHECK(memcmp(now, precious, sizeof precious) == 0);

    CHECK(remove(name) == 0 && mkfifo(name, 0600) == 0); /* does not wait for a writer */
    alarm(60);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    alarm(0);
    CHECK(is_regular(name));

    /* another text under this one's name, in a file that is right in itself: its machine code is not run */
    whole[HEAD + 60] ^= 1;
    write_file(name, whole, n);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    whole[HEAD + 60] ^= 1;
    for (i = 0; i < 4; i++) { /* lengths that do not add up, or pass 2^64 together */
        static const uint64_t huge[4] = {UINT64_MAX, UINT64_MAX - HEAD, (uint64_t)1 << 63, (uint64_t)1 << 32};
        uint64_t rest = (uint64_t)n - HEAD - huge[i];
        memcpy(now, whole, n);
        memcpy(now + TEXT_BYTES, &huge[i], 8);
        memcpy(now + IMAGE_BYTES, &rest, 8);
        write_file(name, now, n);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
        memcpy(now, whole, n);
        memcpy(now + IMAGE_BYTES, &huge[i], 8);
        write_file(name, now, n);
        CHECK(load_with_folder(library, folder, 1, 256) == 1);
    }
    CHECK(load_with_folder(library, folder, 1, 256) == 0);
    CHECK(remove(name) == 0 && remove(other) == 0);
}

/* A set of four files: all of them said to be of the end of time; directories among them. */
static void test_disk_sets(const char *library, const char *folder) {
    static unsigned char ones[200];
    char name[4][400], left[400];
    DIR *d;
    const struct dirent *e;
    int i, entries = 0;
    memset(ones, 0xff, sizeof ones);
    memcpy(ones, "PTXGEN02", 8);
    for (i = 0; i < 4; i++) {
        snprintf(name[i], sizeof name[i], "%s/ptxgen-%06x.cubin", folder, (unsigned)i);
        ones[7] = (unsigned char)('2' + i % 2);
        write_file(name[i], ones, sizeof ones);
        age_file(name[i], -1000000000); /* of the future */
    }
    CHECK(load_with_folder(library, folder, 4, 256) == 1 && load_with_folder(library, folder, 4, 256) == 0);
    for (i = 0; i < 4; i++) CHECK(remove(name[i]) == 0);
    for (i = 0; i < 4; i++)
        if (i != 2) CHECK(mkdir(name[i], 0700) == 0);
    CHECK(load_with_folder(library, folder, 4, 256) == 1 && load_with_folder(library, folder, 4, 256) == 0);
    CHECK(is_regular(name[2]) && remove(name[2]) == 0 && mkdir(name[2], 0700) == 0);
    CHECK(load_with_folder(library, folder, 4, 256) == 1); /* no place at all, and nothing is left behind */
    d = opendir(folder);
    while (d && (e = readdir(d)) != NULL) entries += e->d_name[0] != '.';
    if (d) closedir(d);
    CHECK(entries == 4);
    for (i = 0; i < 4; i++) CHECK(rmdir(name[i]) == 0);

    /* half written files: an hour old; new; under another name; a link */
    snprintf(name[0], sizeof name[0], "%s/ptxgen-0123456789abcdef.tmp", folder);
    snprintf(name[1], sizeof name[1], "%s/ptxgen-0123456789abcde0.tmp", folder);
    snprintf(name[2], sizeof name[2], "%s/ptxgen-0123456789abcdeg.tmp", folder);
    snprintf(name[3], sizeof name[3], "%s/ptxgen-0123456789abcde1.tmp", folder);
    for (i = 0; i < 3; i++) write_file(name[i], ones, sizeof ones);
    CHECK(symlink(name[2], name[3]) == 0);
    age_file(name[0], 3700);
    age_file(name[2], 3700);
    CHECK(load_with_folder(library, folder, 1, 256) == 1);
    CHECK(access(name[0], F_OK) != 0 && access(name[1], F_OK) == 0 && access(name[2], F_OK) == 0);
    for (i = 1; i < 4; i++) CHECK(remove(name[i]) == 0);
    snprintf(left, sizeof left, "%s/ptxgen-000000.cubin", folder);
    CHECK(remove(left) == 0);
}

/* Folders that cannot be trusted, and paths that are too long. */
static void test_disk_folders(const char *library, const char *folder) {
    char name[700];
    ptxcu_desc d = describe(library, NULL);
    ptxcu *cu = NULL;
    d.cache_folder = folder;
    CHECK(chmod(folder, 0720) == 0);
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_FOLDER, "can be written by others; take that right away");
    ptxcu_close(cu);
    CHECK(chmod(folder, 0702) == 0);
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_FOLDER, folder);
    ptxcu_close(cu);
    CHECK(chmod(folder, 01777) == 0); /* as /tmp */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    CHECK(chmod(folder, 0755) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 0);
    WORKS(cu, ptxcu_open(&cu, &d)); /* spoilt afterwards: not used */
    if (cu) {
        ptx_module *m = ptx_module_new(NULL);
        ptxcu_program *p;
        uint64_t linked = calls("cuLinkCreate_v2");
        emit_saxpy(m, 256);
        CHECK(chmod(folder, 0777) == 0);
        WORKS(cu, ptxcu_load(cu, m, &p));
        CHECK(calls("cuLinkCreate_v2") == linked);
        ptx_module_free(m);
    }
    ptxcu_close(cu);
    CHECK(chmod(folder, 0700) == 0);
    if (geteuid() == 0) {
        CHECK(chown(folder, 12345, 12345) == 0);
        EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_FOLDER, "belongs to another user");
        ptxcu_close(cu);
        CHECK(chown(folder, 0, 0) == 0);
    }
    snprintf(name, sizeof name, "%s/ptxgen-000000.cubin", folder);
    d.cache_folder = name;
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_FOLDER, "is no directory");
    CHECK(strcmp(ptxcu_error_name(PTXCU_E_FOLDER), "folder") == 0);
    ptxcu_close(cu);
    CHECK(remove(name) == 0);
    memset(name, 'x', sizeof name);
    name[512] = 0;
    EXPECT(cu, ptxcu_open(&cu, &d), PTXCU_E_ARGUMENT, "cache_folder has 512 characters, at most 511");
    ptxcu_close(cu);
    name[511] = 0; /* fits, and is not there */
    WORKS(cu, ptxcu_open(&cu, &d));
    ptxcu_close(cu);
    d.cache_folder = "";
    WORKS(cu, ptxcu_open(&cu, &d));
    ptxcu_close(cu);
}

static void test_disk(const char *library) {
    char folder[300], name[400], outside[400];
    const char *temporary = getenv("TMPDIR");
    ptx_module *m = ptx_module_new(NULL);
    ptxcu_program *p = NULL;
    ptxcu_desc d = describe(library, NULL);
    ptxcu *cu;
    if (!calls) return;
    snprintf(folder, sizeof folder, "%s/ptxgen_XXXXXX", temporary && *temporary ? temporary : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "%s/ptxgen-000000.cubin", folder);
    CHECK(load_with_folder(library, folder, 1, 256) == 1);
    CHECK(load_with_folder(library, folder, 1, 256) == 0);
    damage(name, -8, 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    damage(name, 40, 1); /* cut within what it begins with */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    damage(name, -1, 1);
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    damage(name, 9, 0); /* another text's */
    CHECK(load_with_folder(library, folder, 1, 256) == 1 && load_with_folder(library, folder, 1, 256) == 0);
    CHECK(load_with_folder(library, folder, 1, 128) == 1); /* one slot: the other text takes its place */
    CHECK(load_with_folder(library, folder, 1, 256) == 1);
    /* a file that the driver refuses: whole, but not its own any more */
    CHECK(make_fail("cuModuleLoadDataEx", 1, 200) == 0);
    CHECK(load_with_folder(library, folder, 1, 256) == 1);
    /* bad text is told as without a folder */
    d.cache_folder = folder;
    WORKS(cu, ptxcu_open(&cu, &d));
    EXPECT(cu, ptxcu_load_text(cu, ".version 7.0\n.target sm_75\nnonsense", &p), PTXCU_E_JIT, "line 3");
    ptxcu_close(cu);
    test_disk_bytes(library, folder, name);
    remove(name);
    snprintf(outside, sizeof outside, "%s.outside", folder);
    CHECK(mkdir(outside, 0700) == 0);
    test_disk_planted(library, folder, outside);
    CHECK(remove(outside) == 0);
    test_disk_sets(library, folder);
    test_disk_folders(library, folder);
    CHECK(remove(folder) == 0); /* empty: nothing half written is left */
    CHECK(load_with_folder(library, folder, 1, 256) == 0); /* not there: no error, and nothing to link for */
    test_disk_oldest(library, folder);
    ptx_module_free(m);
}

/* What is queued in a capture happens at each launch of the graph, and not before. */
static void test_graph(ptxcu *cu) {
    ptxcu_stream stream;
    ptxcu_graph graph = NULL;
    ptxcu_buffer b;
    unsigned char back[64];
    uint32_t round;
    memset(back, 9, sizeof back);
    WORKS(cu, ptxcu_stream_create(cu, &stream));
    WORKS(cu, ptxcu_alloc(cu, sizeof back, &b));
    EXPECT(cu, ptxcu_graph_begin(cu, NULL), PTXCU_E_ARGUMENT, "stream is NULL");
    EXPECT(cu, ptxcu_graph_end(cu, NULL, &graph), PTXCU_E_ARGUMENT, "stream is NULL");
    EXPECT(cu, ptxcu_graph_end(cu, stream, &graph), PTXCU_E_DRIVER, "cuStreamEndCapture");
    EXPECT(cu, ptxcu_graph_launch(cu, NULL, stream), PTXCU_E_ARGUMENT, "graph is NULL");
    WORKS(cu, ptxcu_graph_destroy(cu, NULL));
    WORKS(cu, ptxcu_fill8(cu, b, 0, 1, sizeof back, stream));
    WORKS(cu, ptxcu_graph_begin(cu, stream));
    EXPECT(cu, ptxcu_graph_begin(cu, stream), PTXCU_E_DRIVER, "cuStreamBeginCapture");
    WORKS(cu, ptxcu_fill8(cu, b, 0, 2, sizeof back / 2, stream));
    WORKS(cu, ptxcu_graph_end(cu, stream, &graph));
    for (round = 0; round < 3; round++) {
        WORKS(cu, ptxcu_download(cu, back, b, 0, sizeof back, stream));
        WORKS(cu, ptxcu_stream_sync(cu, stream));
        CHECK(back[0] == (round ? 2 : 1) && back[63] == 1);
        WORKS(cu, ptxcu_fill8(cu, b, 0, 1, sizeof back, stream));
        WORKS(cu, ptxcu_graph_launch(cu, graph, stream));
    }
    WORKS(cu, ptxcu_stream_sync(cu, stream));
    WORKS(cu, ptxcu_graph_begin(cu, stream)); /* no place for the graph: the capture ends all the same */
    EXPECT(cu, ptxcu_graph_end(cu, stream, NULL), PTXCU_E_ARGUMENT, "graph is NULL");
    WORKS(cu, ptxcu_fill8(cu, b, 0, 1, sizeof back, stream));
    WORKS(cu, ptxcu_stream_sync(cu, stream));
    WORKS(cu, ptxcu_graph_destroy(cu, graph));
    WORKS(cu, ptxcu_free(cu, b));
    WORKS(cu, ptxcu_stream_destroy(cu, stream));
}

/* Variables of a program from the host, and the driver's own handles. */
static void test_handles(ptxcu *cu, ptxcu *other) {
    static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                               ".visible .global .align 4 .u32 counts[3] = {7, 8, 9};\n"
                               ".visible .const .align 8 .f64 half = 0d3FE0000000000000;\n"
                               ".visible .entry count() {\n    .reg .b64 %d<3>;\n    .reg .b32 %r<3>;\n"
                               "    mov.u64 %d1, counts;\n    ld.global.u32 %r1, [%d1+8];\n"
                               "    add.u32 %r1, %r1, 1;\n    st.global.u32 [%d1+8], %r1;\n    ret;\n}\n";
    static const uint32_t data[2] = {5, 6};
    ptx_module *m = ptx_module_new(NULL);
    ptx_variable_desc v;
    ptx_kernel *k;
    ptx_launch g = geometry(1, 1);
    ptxcu_program *p = NULL, *built = NULL;
    ptxcu_buffer b;
    ptxcu_tensor t;
    uint64_t shape[1] = {3};
    uint32_t back[3] = {0, 0, 0}, entry = 9;
    double half = 0;
    void *module = NULL, *function = NULL, *symbol;
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **);
    int (*find)(void **, void *, const char *), (*push)(void *), (*pop)(void **);
    WORKS(cu, ptxcu_load_text(cu, text, &p));
    WORKS(cu, ptxcu_global(cu, p, "counts", &b));
    CHECK(b.bytes == 12 && b.address);
    WORKS(cu, ptxcu_entry_by_name(cu, p, "count", &entry));
    g.entry = entry;
    WORKS(cu, ptxcu_launch(cu, p, &g, NULL, 0, NULL));
    WORKS(cu, ptxcu_download(cu, back, b, 0, 12, NULL));
    CHECK(back[0] == 7 && back[1] == 8 && back[2] == 10);
    back[2] = 20;
    WORKS(cu, ptxcu_upload(cu, b, 0, back, 12, NULL));
    WORKS(cu, ptxcu_launch(cu, p, &g, NULL, 0, NULL));
    WORKS(cu, ptxcu_tensor_wrap(cu, b, PTX_U32, 1, shape, NULL, &t)); /* as a tensor */
    WORKS(cu, ptxcu_tensor_read(cu, back, &t, 12, NULL));
    CHECK(back[2] == 21);
    WORKS(cu, ptxcu_tensor_free(cu, &t));
    EXPECT(cu, ptxcu_free(cu, b), PTXCU_E_DRIVER, "cuMemFree_v2");
    WORKS(cu, ptxcu_global(cu, p, "half", &b));
    CHECK(b.bytes == 8);
    WORKS(cu, ptxcu_download(cu, &half, b, 0, 8, NULL));
    CHECK(half == 0.5);
    EXPECT(cu, ptxcu_global(cu, p, "count", &b), PTXCU_E_VARIABLE, "cuModuleGetGlobal_v2(\"count\")");
    CHECK(b.address == 0 && b.bytes == 0);
    EXPECT(cu, ptxcu_global(cu, p, "nothing", &b), PTXCU_E_VARIABLE, "no such variable");
    EXPECT(cu, ptxcu_global(cu, p, NULL, &b), PTXCU_E_ARGUMENT, "name is NULL");
    EXPECT(cu, ptxcu_global(cu, p, "half", NULL), PTXCU_E_ARGUMENT, "buffer is NULL");
    EXPECT(cu, ptxcu_global(cu, NULL, "half", &b), PTXCU_E_ARGUMENT, "program is NULL");
    EXPECT(other, ptxcu_global(other, p, "half", &b), PTXCU_E_WRONG_HANDLE, "another handle");
    CHECK(strcmp(ptxcu_error_name(PTXCU_E_VARIABLE), "variable") == 0);

    /* the driver's handles are good for the driver's calls */
    WORKS(cu, ptxcu_get_module(cu, p, &module));
    WORKS(cu, ptxcu_get_function(cu, p, entry, &function));
    symbol = ptxcu_symbol(cu, "cuLaunchKernel");
    memcpy(&launch, &symbol, sizeof launch);
    symbol = ptxcu_symbol(cu, "cuModuleGetFunction");
    memcpy(&find, &symbol, sizeof find);
    symbol = ptxcu_symbol(cu, "cuCtxPushCurrent_v2");
    memcpy(&push, &symbol, sizeof push);
    symbol = ptxcu_symbol(cu, "cuCtxPopCurrent_v2");
    memcpy(&pop, &symbol, sizeof pop);
    CHECK(push(ptxcu_get_context(cu)) == 0);
    CHECK(launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 0);
    symbol = NULL;
    CHECK(find(&symbol, module, "count") == 0 && symbol == function);
    CHECK(pop(&symbol) == 0 && symbol == ptxcu_get_context(cu));
    WORKS(cu, ptxcu_global(cu, p, "counts", &b));
    WORKS(cu, ptxcu_download(cu, back, b, 0, 12, NULL));
    CHECK(back[2] == 22);
    EXPECT(cu, ptxcu_get_function(cu, p, 1, &function), PTXCU_E_ENTRY, "no entry 1");
    CHECK(function == NULL);
    EXPECT(cu, ptxcu_get_function(cu, p, 0, NULL), PTXCU_E_ARGUMENT, "function is NULL");
    EXPECT(cu, ptxcu_get_module(cu, p, NULL), PTXCU_E_ARGUMENT, "module_ is NULL");
    EXPECT(cu, ptxcu_get_module(cu, NULL, &module), PTXCU_E_ARGUMENT, "program is NULL");
    EXPECT(other, ptxcu_get_module(other, p, &module), PTXCU_E_WRONG_HANDLE, "another handle");
    EXPECT(other, ptxcu_get_function(other, p, 0, &function), PTXCU_E_WRONG_HANDLE, "another handle");

    /* a variable of the builder's */
    memset(&v, 0, sizeof v);
    v.name = "table";
    v.space = PTX_GLOBAL;
    v.type = PTX_U32;
    v.count = 2;
    v.data = data;
    v.exported = 1;
    ptx_variable(m, &v);
    k = ptx_entry(m, "nothing");
    ptx_ret(k);
    WORKS(cu, ptxcu_load(cu, m, &built));
    WORKS(cu, ptxcu_global(cu, built, "table", &b));
    WORKS(cu, ptxcu_download(cu, back, b, 0, 8, NULL));
    WORKS(cu, ptxcu_sync(cu));
    CHECK(b.bytes == 8 && back[0] == 5 && back[1] == 6);
    WORKS(cu, ptxcu_unload(cu, built));
    WORKS(cu, ptxcu_unload(cu, p));
    ptx_module_free(m);
}

/* Findings of the CPU driver name the lines of the caller; the module's own text stays as requested. */
static void test_findings(ptxcu *cu) {
    size_t (*report)(char *, size_t) = NULL;
    void (*clear)(void) = NULL;
    void *symbol = ptxcu_symbol(cu, "ptxsim_report");
    static char text[4000];
    ptx_module *m = ptx_module_new(NULL);
    ptx_kernel *k = ptx_entry(m, "unwritten");
    ptx_val out = ptx_param_ptr(k, "out", PTX_GLOBAL), word = ptx_shared(k, "word", PTX_U32, 1, 4), v;
    ptxcu_program *p = NULL;
    ptxcu_arg arg;
    ptxcu_buffer b;
    ptx_launch g;
    char read[300], use[300];
    memcpy(&report, &symbol, sizeof report);
    symbol = ptxcu_symbol(cu, "ptxsim_report_clear");
    memcpy(&clear, &symbol, sizeof clear);
    v = ptx_ld(k, PTX_U32, ptx_at(word, 0)), sprintf(read, "%s:%d", __FILE__, __LINE__);
    v = ptx_add(k, v, ptx_u32(1));
    ptx_st(k, PTX_U32, ptx_at(out, 0), v), sprintf(use, "%s:%d stores it", __FILE__, __LINE__);
    ptx_ret(k);
    WORKS(cu, ptxcu_load(cu, m, &p));
    CHECK(ptx_text(m, NULL) && !strstr(ptx_text(m, NULL), __FILE__));
    if (report && p) {
        memset(&g, 0, sizeof g);
        g.grid[0] = g.grid[1] = g.grid[2] = g.block[0] = g.block[1] = g.block[2] = 1;
        WORKS(cu, ptxcu_alloc(cu, 16, &b));
        arg = ptxcu_arg_buffer(b);
        WORKS(cu, ptxcu_launch(cu, p, &g, &arg, 1, NULL));
        WORKS(cu, ptxcu_sync(cu));
        report(text, sizeof text);
        CHECK_MORE(strstr(text, "uninitialised-read: kernel 'unwritten', line ") && strstr(text, read)
                       && strstr(text, use), text);
        clear();
        WORKS(cu, ptxcu_free(cu, b));
    }
    if (p) WORKS(cu, ptxcu_unload(cu, p));
    ptx_module_free(m);
}

/* A handle in the caller's context, used while another context is current, none is, and its own is. WORKS and
   EXPECT look at the current context around every call. */
static void test_contexts(ptxcu *cu, const char *library) {
    ptxcu_desc d = describe(library, NULL);
    ptxcu *h = NULL, *same = NULL;
    ptxcu_buffer b;
    void *own = NULL, *second = NULL, *popped = NULL, *symbol;
    int (*create)(void **, unsigned, int), (*destroy)(void *), (*pop)(void **);
    int (*set)(void *);
    void (*report_clear)(void);
    size_t i;
    uint64_t pushes, pops;
    int round;
    symbol = ptxcu_symbol(cu, "cuCtxCreate_v2");
    memcpy(&create, &symbol, sizeof create);
    symbol = ptxcu_symbol(cu, "cuCtxDestroy_v2");
    memcpy(&destroy, &symbol, sizeof destroy);
    symbol = ptxcu_symbol(cu, "cuCtxPopCurrent_v2");
    memcpy(&pop, &symbol, sizeof pop);
    symbol = ptxcu_symbol(cu, "cuCtxSetCurrent");
    memcpy(&set, &symbol, sizeof set);
    if (!create || !destroy || !pop || !set) return;
    CHECK(current_context() == NULL && create(&own, 0, 0) == 0 && create(&second, 0, 0) == 0);
    d.context = own;
    WORKS(h, ptxcu_open(&h, &d));
    CHECK(ptxcu_get_context(h) == own && current_context() == second);
    d.context = NULL;
    d.use_current_context = 1;
    WORKS(same, ptxcu_open(&same, &d));
    CHECK(ptxcu_get_context(same) == second && current_context() == second);
    pushes = calls ? calls("cuCtxPushCurrent_v2") : 0;
    pops = calls ? calls("cuCtxPopCurrent_v2") : 0;
    WORKS(same, ptxcu_alloc(same, 16, &b));
    WORKS(same, ptxcu_free(same, b)); /* current already: neither pushed nor popped */
    if (calls) CHECK(calls("cuCtxPushCurrent_v2") == pushes && calls("cuCtxPopCurrent_v2") == pops);
    for (round = 0; round < 2; round++) {
        test_memory(h);
        test_text(h);
        test_graph(h);
        test_handles(h, same);
        CHECK(current_context() == (round ? NULL : second));
        if (!round) CHECK(pop(&popped) == 0 && popped == second && pop(&popped) == 0 && popped == own);
    }
    if (calls) { /* two pops were the test's own */
        CHECK(calls("cuCtxPushCurrent_v2") - pushes > 100);
        CHECK(calls("cuCtxPushCurrent_v2") - pushes == calls("cuCtxPopCurrent_v2") - pops - 2);
        make_fail("cuCtxPushCurrent_v2", 1, 999);
        EXPECT(h, ptxcu_alloc(h, 16, &b), PTXCU_E_DRIVER, "cuCtxPushCurrent_v2()");
        make_fail("cuCtxPopCurrent_v2", 1, 999); /* once: it is popped again */
        WORKS(h, ptxcu_sync(h));
        make_fail("cuCtxPopCurrent_v2", 0, 0);
    }
    ptxcu_close(same);
    ptxcu_close(h);
    CHECK(current_context() == NULL);
    /* each call of the driver fails once while a handle opens: the current context stays */
    CHECK(set(second) == 0);
    for (i = 0; make_fail && i < FUNCTIONS; i++)
        for (round = 0; round < 4; round++) { /* context or use_current_context; first or second call */
            counter c;
            memset(&c, 0, sizeof c);
            d = describe(library, &c);
            d.fallback = "/nowhere/libfallback.so";
            d.context = round % 2 ? NULL : own;
            d.use_current_context = round % 2;
            make_fail(functions[i], 1 + (unsigned)round / 2, 999);
            ptxcu_open(&h, &d);
            make_fail(functions[i], 0, 0);
            CHECK_MORE(current_context() == second, functions[i]);
            ptxcu_close(h);
            CHECK_MORE(current_context() == second && c.blocks == 0, functions[i]);
        }
    d = describe(library, NULL);
    CHECK(set(NULL) == 0 && current_context() == NULL);
    CHECK(destroy(second) == 0);
    d.use_current_context = 0;
    if (calls) { /* a real driver may not survive it */
        d.context = second;
        EXPECT(h, ptxcu_open(&h, &d), PTXCU_E_CONTEXT, "cuCtxPushCurrent_v2(the caller's context)");
        ptxcu_close(h);
    }
    d.context = own; /* destroyed before the handle is closed */
    WORKS(h, ptxcu_open(&h, &d));
    CHECK(destroy(own) == 0);
    ptxcu_close(h);
    CHECK(current_context() == NULL);
    symbol = ptxcu_symbol(cu, "ptxsim_report_clear"); /* of the uses of what is destroyed */
    memcpy(&report_clear, &symbol, sizeof report_clear);
    if (report_clear) report_clear();
}

/* ---- the log: what a call's message says, and notes ---- */

typedef struct log_of {
    char errors[8192], notes[8192];
} log_of;

static void collect(void *user, int kind, const char *text) {
    log_of *l = (log_of *)user;
    char *to = kind == PTXCU_LOG_ERROR ? l->errors : l->notes;
    size_t n = strlen(to);
    snprintf(to + n, 8192 - n, "%s\n", text);
}

/* The same characters but for ends of lines, which the details of a message have between them. */
static int same_words(const char *a, const char *b) {
    for (;; a++, b++) {
        while (*a == '\n') a++;
        while (*b == '\n') b++;
        if (*a != *b || !*a) return *a == *b;
    }
}

static void test_log(const char *library) {
    static log_of l;
    ptxcu *cu = NULL;
    ptxcu_desc d = describe("/nowhere/libnothing.so", NULL);
    ptxcu_program *p;
    ptxcu_buffer b;
    d.log = collect;
    d.log_user = &l;
    d.fallback = "/nowhere/libfallback.so";
    CHECK(ptxcu_open(&cu, &d) == PTXCU_E_LIBRARY);
    CHECK(same_words(l.errors, ptxcu_get_error(cu)->message) && !*l.notes);
    ptxcu_close(cu);
    memset(&l, 0, sizeof l);
    d.fallback = library;
    WORKS(cu, ptxcu_open(&cu, &d)); /* why the first was not taken, and what was opened */
    CHECK(!*l.errors && strstr(l.notes, "/nowhere/libnothing.so: ") && strstr(l.notes, "opened ")
          && strstr(l.notes, ptxcu_device_info(cu)->name));
    memset(&l, 0, sizeof l);
    CHECK(ptxcu_alloc(cu, 4, NULL) == PTXCU_E_ARGUMENT);
    CHECK(same_words(l.errors, ptxcu_get_error(cu)->message));
    memset(&l, 0, sizeof l);
    CHECK(ptxcu_alloc(cu, (size_t)1 << 60, &b) == PTXCU_E_DRIVER);
    CHECK(same_words(l.errors, ptxcu_get_error(cu)->message));
    memset(&l, 0, sizeof l);
    CHECK(ptxcu_load_text(cu, broken_text, &p) == PTXCU_E_JIT); /* with the compiler's log and the line */
    CHECK(same_words(l.errors, ptxcu_get_error(cu)->message) && !*l.notes);
    memset(&l, 0, sizeof l);
    WORKS(cu, ptxcu_load_text(cu, saxpy_text, &p));
    CHECK(!*l.errors && strstr(l.notes, "compiled "));
    ptxcu_close(cu);
}

int main(int argc, char **argv) {
    const char *library = argc > 1 ? argv[1] : getenv("PTXGEN_CUDA_LIBRARY");
    char opened[1024], asked[1024];
    counter c;
    ptxcu_desc d;
    ptxcu *cu = NULL, *other = NULL;
    if (library && !*library) library = NULL;
    if (library) { /* the variable's value does not outlive the tests of the variable */
        snprintf(asked, sizeof asked, "%s", library);
        library = asked;
    }
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    test_no_driver();
    memset(&c, 0, sizeof c);
    d = describe(library, &c);
    if (ptxcu_open(&cu, &d)) {
        CHECK(library == NULL); /* one that was asked for opens */
        printf("skip: no driver here: %s\n", ptxcu_get_error(cu)->message);
        ptxcu_close(cu);
    } else {
        find_extras(cu);
        snprintf(opened, sizeof opened, "%s", ptxcu_device_info(cu)->library);
        library = opened; /* the fallback, perhaps */
        if (!calls) printf("skip: not the CPU driver, so its calls cannot be counted or made to fail\n");
        d = describe(library, NULL);
        WORKS(other, ptxcu_open(&other, &d));
        test_open(library);
        test_module(library);
        test_memory(cu);
        test_text(cu);
        test_saxpy(cu, other);
        test_operation(cu, &c);
        test_graph(cu);
        test_clusters(cu);
        test_handles(cu, other);
        test_contexts(cu, library);
        test_findings(cu);
        test_text(other); /* the second handle has a life of its own */
        ptxcu_close(cu);
        CHECK(c.blocks == 0 && c.bytes == 0 && c.wrong_sizes == 0);
        test_memory(other); /* and outlives the first */
        ptxcu_close(other);
        test_failures(library);
        test_disk(library);
        test_log(library);
    }
    return check_end();
}
