/* saxpy - y = a x + y, from C calls to checked numbers: build a kernel, load it, launch it, check it.
   cc -O2 examples/saxpy.c -o saxpy -ldl

   It needs only the headers: copy it to begin a program of your own. Runs on the GPU; without one, on the CPU
   driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./saxpy */
#include <stdio.h>

#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"

/* One thread an element. */
static void emit_saxpy(ptx_module *m) {
    ptx_kernel *k = ptx_entry(m, "saxpy");
    ptx_val x = ptx_param_ptr(k, "x", PTX_GLOBAL);
    ptx_val y = ptx_param_ptr(k, "y", PTX_GLOBAL);
    ptx_val a = ptx_param(k, "a", PTX_F32);
    ptx_val n = ptx_param(k, "n", PTX_U32);
    ptx_val i = ptx_global_x(k);
    ptx_val inside = ptx_setp(k, PTX_LT, i, n);
    ptx_if(k, inside);
    {
        ptx_val xv = ptx_ld_elem(k, PTX_F32, x, i);
        ptx_mem yi = ptx_elem(k, PTX_F32, y, i);
        ptx_val yv = ptx_ld(k, PTX_F32, yi);
        ptx_st(k, PTX_F32, yi, ptx_fma(k, a, xv, yv));
    }
    ptx_end(k);
    ptx_ret(k);
}

enum { N = 1000003 };
static float x[N], y[N], result[N];

int main(void) {
    ptxcu *cu = NULL;
    ptx_module *m = NULL;
    ptxcu_program *program = NULL;
    ptxcu_buffer dx = {0, 0}, dy = {0, 0};
    ptx_launch launch = ptx_launch_1d(N, 256);
    ptxcu_arg args[4];
    long i, wrong = 0;
    int failed = 1;
    for (i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(N - i);

    if (ptxcu_open(&cu, NULL)) goto done;
    m = ptx_module_new(NULL);
    emit_saxpy(m);
    if (ptxcu_load(cu, m, &program) || ptxcu_alloc(cu, sizeof x, &dx) || ptxcu_alloc(cu, sizeof y, &dy))
        goto done;
    if (ptxcu_upload(cu, dx, 0, x, sizeof x, NULL) || ptxcu_upload(cu, dy, 0, y, sizeof y, NULL)) goto done;
    args[0] = ptxcu_arg_buffer(dx);
    args[1] = ptxcu_arg_buffer(dy);
    args[2] = ptxcu_arg_f32(2.0f);
    args[3] = ptxcu_arg_u32(N);
    if (ptxcu_launch(cu, program, &launch, args, 4, NULL)) goto done;
    if (ptxcu_download(cu, result, dy, 0, sizeof y, NULL) || ptxcu_sync(cu)) goto done;

    for (i = 0; i < N; i++) wrong += result[i] != 2.0f * x[i] + y[i];
    printf("saxpy on %s: %d elements, %ld wrong\n", ptxcu_device_info(cu)->name, (int)N, wrong);
    failed = wrong != 0;
done:
    if (ptxcu_get_error(cu)->code) fprintf(stderr, "saxpy: %s\n", ptxcu_get_error(cu)->message);
    ptx_module_free(m);
    ptxcu_free(cu, dx);
    ptxcu_free(cu, dy);
    ptxcu_close(cu);
    return failed;
}
