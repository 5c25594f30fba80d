/* maps.c - tensor maps: from the list of a plan, by ptxcu_run, by calls and by the caller's own driver code.
 */
#include "../../ptxgen_cuda.h"
#include "../../ptxgen_kernels.h"
#include "../check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ptxcu *cu;

/* An operation that copies matrices of a batch in boxes of 16 x 32 through shared memory, by two maps. */
typedef struct copy_args {
    uint64_t from, to, from_stride; /* stride: elements from matrix to matrix; 0: all copy the first */
    uint32_t rows, columns, pitch, batch;
} copy_args;

static ptx_code emit_copy(ptx_module *m, const char *site, const void *desc) {
    ptx_kernel *k = ptx_entry_(m, site, "copy_boxes");
    ptx_val args, from, to, box, bar, o[6], p, x, y, z;
    (void)desc;
    ptx_launch_bounds(k, 32, 0);
    args = ptx_param_bytes(k, "args", sizeof(copy_args), 8);
    from = ptx_param_map(k, "from_map");
    to = ptx_param_map(k, "to_map");
    box = ptx_shared(k, "box", PTX_F32, 16 * 32, 128);
    bar = ptx_shared(k, "bar", PTX_U64, 1, 8);
    p = ptx_setp(k, PTX_EQ, ptx_tid_x(k), ptx_u32(0));
    ptx_if(k, p);
    ptx_mbarrier_init(k, bar, ptx_imm(1));
    ptx_op0(k, PTX_FENCE_MBARRIER_INIT, 0);
    ptx_mbarrier_arrive_expect(k, bar, ptx_u32(16 * 32 * 4));
    x = ptx_mul(k, ptx_ctaid_x(k), ptx_u32(32));
    y = ptx_mul(k, ptx_ctaid_y(k), ptx_u32(16));
    z = ptx_ld(k, PTX_U64, ptx_at(args, (int64_t)offsetof(copy_args, from_stride)));
    z = ptx_setp(k, PTX_NE, z, ptx_u64(0));
    o[0] = box, o[1] = from, o[2] = x, o[3] = y;
    o[4] = ptx_selp(k, ptx_ctaid_z(k), ptx_u32(0), z), o[5] = bar;
    ptx_opn(k, PTX_TENSOR_G2S, 0, PTX_NONE, PTX_NONE, 6, o, 0, NULL);
    ptx_loop(k);
    p = ptx_mbarrier_try_wait(k, bar, ptx_u32(0));
    ptx_while(k, ptx_inv(p));
    ptx_end(k);
    o[0] = to, o[1] = x, o[2] = y, o[3] = ptx_ctaid_z(k), o[4] = box;
    ptx_opn(k, PTX_TENSOR_S2G, 0, PTX_NONE, PTX_NONE, 5, o, 0, NULL);
    ptx_op0(k, PTX_BULK_COMMIT_GROUP, 0);
    ptx_op1(k, PTX_BULK_WAIT_GROUP, 0, ptx_imm(0));
    ptx_end(k);
    ptx_ret(k);
    return ptx_get_error(m)->code;
}
static const ptx_operation copy_operation = {"copy", 1, emit_copy};

static ptx_map_number number(uint64_t times, size_t field, uint32_t bytes) {
    ptx_map_number n;
    n.times = times, n.field = (uint32_t)field, n.bytes = bytes;
    return n;
}

static ptx_plan plan_copy(const copy_args *a) {
    ptx_plan plan;
    uint32_t i;
    memset(&plan, 0, sizeof plan);
    plan.launches = 1;
    plan.launch[0] = ptx_launch_2d((a->columns + 31) / 32 * 32, (a->rows + 15) / 16, 32, 1);
    plan.launch[0].grid[2] = a->batch;
    plan.args_bytes = sizeof *a;
    plan.maps = 2;
    for (i = 0; i < 2; i++) {
        ptx_tensor_map *m = &plan.map[i];
        m->address = (uint32_t)(i ? offsetof(copy_args, to) : offsetof(copy_args, from));
        m->type = PTX_F32;
        m->rank = 3;
        m->box[0] = 32, m->box[1] = 16, m->box[2] = 1;
        m->size[0] = number(1, offsetof(copy_args, columns), 4);
        m->size[1] = number(1, offsetof(copy_args, rows), 4);
        m->size[2] = number(1, offsetof(copy_args, batch), 4);
        m->stride[1] = number(4, offsetof(copy_args, pitch), 4);
        m->stride[2] = number(4, offsetof(copy_args, from_stride), 8);
        if (i) m->stride[2] = number((uint64_t)a->rows * a->pitch * 4, 0, 0);
    }
    return plan;
}

/* how 0: ptxcu_run; 1: a call; 2: the caller's own driver code. */
static void copy_once(uint32_t how) {
    copy_args a;
    ptx_plan plan;
    ptxcu_buffer from, to;
    ptxcu_program *program;
    uint32_t i, j, z, wrong = 0, count;
    float *x, *y;
    memset(&a, 0, sizeof a);
    a.rows = 1 + random_below(40), a.columns = 1 + random_below(70), a.batch = 1 + random_below(3);
    a.pitch = (a.columns + random_below(9) + 3) / 4 * 4;
    a.from_stride = random_below(2) ? (uint64_t)a.rows * a.pitch : 0;
    count = a.rows * a.pitch * a.batch;
    x = (float *)malloc(count * 4);
    y = (float *)malloc(count * 4);
    for (i = 0; i < count; i++) x[i] = (float)i, y[i] = -1;
    CHECK(!ptxcu_alloc(cu, count * 4, &from) && !ptxcu_alloc(cu, count * 4, &to));
    CHECK(!ptxcu_upload(cu, from, 0, x, count * 4, NULL) && !ptxcu_upload(cu, to, 0, y, count * 4, NULL));
    a.from = from.address, a.to = to.address;
    plan = plan_copy(&a);
    if (how == 1) {
        ptxcu_call call;
        CHECK(!ptxcu_call_prepare(cu, &copy_operation, "", &plan, &a, sizeof a, NULL, 0, NULL, &call));
        CHECK(!ptxcu_call_finish(cu, &call, NULL));
    } else if (how == 0) {
        CHECK(!ptxcu_operation(cu, &copy_operation, "", &program));
        CHECK(!ptxcu_run(cu, program, &plan, &a, sizeof a, NULL));
    } else { /* as docs/operations.md says */
        int (*encode)(void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *,
                      const uint32_t *, int, int, int, int);
        int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                      void **, void **);
        void *symbol = ptxcu_symbol(cu, "cuTensorMapEncodeTiled"), *function, *params[3], *context = NULL;
        int (*push)(void *), (*pop)(void **);
        char room[2][192];
        memcpy(&encode, &symbol, sizeof symbol);
        symbol = ptxcu_symbol(cu, "cuLaunchKernel");
        memcpy(&launch, &symbol, sizeof symbol);
        symbol = ptxcu_symbol(cu, "cuCtxPushCurrent_v2");
        memcpy(&push, &symbol, sizeof symbol);
        symbol = ptxcu_symbol(cu, "cuCtxPopCurrent_v2");
        memcpy(&pop, &symbol, sizeof symbol);
        CHECK(!ptxcu_operation(cu, &copy_operation, "", &program));
        CHECK(!ptxcu_get_function(cu, program, 0, &function));
        push(ptxcu_get_context(cu));
        params[0] = &a;
        for (i = 0; i < plan.maps; i++) {
            ptx_map_values v;
            params[1 + i] = room[i] + (64 - (uintptr_t)room[i] % 64) % 64;
            CHECK(!ptx_map_resolve(&plan.map[i], &a, &v));
            CHECK(!encode(params[1 + i], v.type, v.rank, v.address, v.size, v.stride,
                          v.box, v.element_stride, 0, v.swizzle, v.l2_promotion, 0));
        }
        CHECK(!launch(function, plan.launch[0].grid[0], plan.launch[0].grid[1], plan.launch[0].grid[2], 32, 1,
                      1, 0, NULL, params, NULL));
        pop(&context);
    }
    CHECK(!ptxcu_download(cu, y, to, 0, count * 4, NULL) && !ptxcu_sync(cu));
    for (z = 0; z < a.batch; z++)
        for (i = 0; i < a.rows; i++)
            for (j = 0; j < a.pitch; j++) {
                uint64_t at = ((uint64_t)z * a.rows + i) * a.pitch + j;
                float want =
                    j >= a.columns ? -1 : x[a.from_stride ? at : at - (uint64_t)z * a.rows * a.pitch];
                wrong += y[at] < want || y[at] > want;
            }
    if (!CHECK(wrong == 0))
        printf("  way %u, %u x %u of %u, %u matrices: %u wrong\n", how, a.rows, a.columns, a.pitch, a.batch,
               wrong);
    ptxcu_free(cu, from), ptxcu_free(cu, to);
    free(x), free(y);
}

static void expect(ptxcu_code got, ptxcu_code want, const char *text) {
    if (!CHECK_MORE(got == want && strstr(ptxcu_get_error(cu)->message, text), ptxcu_get_error(cu)->message))
        printf("  want '%s'\n", text);
}

static void test_refusals(void) {
    copy_args a;
    ptx_plan plan;
    ptxcu_buffer b;
    ptxcu_program *program = NULL;
    ptxcu_call call;
    memset(&a, 0, sizeof a);
    a.rows = a.columns = 32, a.pitch = 32, a.batch = 1;
    CHECK(!ptxcu_alloc(cu, 8192, &b) && !ptxcu_operation(cu, &copy_operation, "", &program));
    a.from = b.address, a.to = b.address + 4096;
    plan = plan_copy(&a);
#define TRY(change, code, text)                                                                              \
    do {                                                                                                     \
        copy_args was = a;                                                                                   \
        ptx_plan planned = plan;                                                                             \
        change;                                                                                              \
        expect(ptxcu_run(cu, program, &plan, &a, sizeof a, NULL), code, text);                               \
        expect(ptxcu_call_prepare(cu, &copy_operation, "", &plan, &a, sizeof a, NULL, 0, NULL, &call), code, \
               &text[strncmp(text, "ptxcu_run", 9) ? 0 : 9]);                                                \
        a = was, plan = planned;                                                                             \
    } while (0)
    TRY(a.to += 8, PTXCU_E_SHAPE, "tensor map 1: the address is not a multiple of 16");
    TRY(a.from = 0, PTXCU_E_SHAPE, "tensor map 0: the address is not a multiple of 16");
    TRY(a.pitch = 33, PTXCU_E_SHAPE, "a stride is not a multiple of 16 bytes");
    TRY(a.columns = 0, PTXCU_E_SHAPE, "a size is not 1 to 2^32");
    TRY(a.from_stride = UINT64_C(1) << 40, PTXCU_E_SHAPE, "a stride is not below 2^40 bytes");
    TRY(a.from_stride = UINT64_C(1) << 62, PTXCU_E_SHAPE, "a stride is not");
    TRY(plan.map[0].box[1] = 257, PTXCU_E_SHAPE, "a box is not 1 to 256 elements");
    TRY(plan.map[0].swizzle = 64, PTXCU_E_SHAPE, "the rows of a box");
    TRY(plan.map[0].box[0] = 31, PTXCU_E_SHAPE, "the rows of a box");
    TRY(plan.map[0].rank = 6, PTXCU_E_SHAPE, "the rank is not 1 to 5");
    TRY(plan.map[0].type = PTX_PRED, PTXCU_E_SHAPE, "the type is none of a tensor map");
    TRY(plan.maps = 7, PTXCU_E_ARGUMENT, "7 tensor maps, at most 6");
    plan.maps = 1;
    expect(ptxcu_run(cu, program, &plan, &a, sizeof a, NULL), PTXCU_E_ARGS,
           "has 3 parameters; this plan gives it one block and 1 tensor maps");
    plan.maps = 2, plan.map[1].launch = 1;
    expect(ptxcu_run(cu, program, &plan, &a, sizeof a, NULL), PTXCU_E_ARGS, "one block and 1 tensor maps");
    ptxcu_free(cu, b);
}

/* A product of tensors takes the form with maps where they can describe all tensors; otherwise the other form. */
static void test_choice(void) {
    static const uint64_t a_shape[] = {70, 72}, b_shape[] = {40, 72}, d_shape[] = {70, 40};
    ptxcu_matmul_desc d = PTX_ZERO;
    ptxcu_tensor a, b, whole;
    ptxcu_call call;
    uint16_t ones[70 * 72];
    float out[70 * 40];
    ptx_target target = ptxcu_device_info(cu)->target;
    uint32_t i, turn,
        maps = target == PTX_SM_A(90) || target == PTX_SM_A(100) || target == PTX_SM_A(103) ? 4 : 0;
    for (i = 0; i < 70 * 72; i++) ones[i] = 0x3c00;
    CHECK(!ptxcu_tensor_create(cu, PTX_F16, 2, a_shape, &a) && !ptxcu_tensor_create(cu, PTX_F16, 2, b_shape, &b));
    CHECK(!ptxcu_tensor_create(cu, PTX_F32, 2, d_shape, &whole));
    CHECK(!ptxcu_tensor_upload(cu, &a, ones, sizeof ones, NULL));
    CHECK(!ptxcu_tensor_upload(cu, &b, ones, 40 * 72 * 2, NULL));
    CHECK(!ptxcu_tensor_transpose(cu, &b, 0, 1, &d.b));
    for (turn = 0; turn < 3; turn++) {
        uint64_t depth = turn == 1 ? 71 : 72;
        d.a = a, d.d = whole;
        if (turn) CHECK(!ptxcu_tensor_narrow(cu, &a, 1, 72 - depth, depth, &d.a)); /* 2 bytes off */
        CHECK(!ptxcu_tensor_narrow(cu, &b, 1, 0, depth, &d.b) && !ptxcu_tensor_transpose(cu, &d.b, 0, 1, &d.b));
        CHECK(!ptxcu_matmul_prepare(cu, &d, &call));
        CHECK(call.plan.maps == (turn == 1 ? 0 : maps));
        CHECK(!ptxcu_tensor_free(cu, &d.workspace) || !d.workspace.owner);
        CHECK(!ptxcu_workspace_create(cu, &call, NULL, &d.workspace) && !ptxcu_matmul_prepare(cu, &d, &call));
        memset(out, 0, sizeof out);
        CHECK(!ptxcu_call_finish(cu, &call, NULL) && !ptxcu_tensor_download(cu, out, &whole, sizeof out, NULL));
        CHECK(!ptxcu_sync(cu));
        for (i = 0; i < 70 * 40 && !(out[i] < (float)depth) && !(out[i] > (float)depth);) i++;
        CHECK(i == 70 * 40);
    }
    ptxcu_tensor_free(cu, &a), ptxcu_tensor_free(cu, &b), ptxcu_tensor_free(cu, &whole);
    if (d.workspace.owner) ptxcu_tensor_free(cu, &d.workspace);
}

int main(void) {
    uint32_t i;
    start_random();
    if (ptxcu_open(&cu, NULL)) {
        puts(ptxcu_get_error(cu)->message);
        return 1;
    }
    if ((ptxcu_device_info(cu)->target & 0xfff) < 90) {
        puts("SKIP: the device has no tensor maps");
    } else {
        for (i = 0; i < 12; i++) copy_once(i % 3);
        test_refusals();
        test_choice();
    }
    ptxcu_close(cu);
    return check_end();
}
