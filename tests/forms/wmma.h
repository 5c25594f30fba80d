/* wmma.h - of tests/builder/forms_run.c: wmma in every shape, type and layout, made by the builder and run. The way
 * from memory to memory is what counts, so nothing here knows how a fragment lies in registers. */
#ifndef WMMA_H
#define WMMA_H

typedef struct wmma_case {
    unsigned m, n, k;
    ptx_op_id load_a, load_b, load_c, store_d, mma;
    ptx_type type, c_type, d_type;
    unsigned a, b, c, d; /* registers of each */
    char bits;           /* of b1: '^' or '&' */
} wmma_case;

#define WMMA_SHAPE(s) PTX_WMMA_LOAD_A_##s, PTX_WMMA_LOAD_B_##s, PTX_WMMA_LOAD_C_##s, PTX_WMMA_STORE_D_##s
#define WMMA_LARGE(m, n, s, a16, b16, a8, b8)                                                                \
    {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_F32, PTX_F16, PTX_F32, PTX_F32, 8, 8, 8, 8, 0},                 \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_F16, PTX_F16, PTX_F16, PTX_F16, 8, 8, 4, 4, 0},             \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_F32_F16, PTX_F16, PTX_F16, PTX_F32, 8, 8, 4, 8, 0},         \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_F16_F32, PTX_F16, PTX_F32, PTX_F16, 8, 8, 8, 4, 0},         \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_F32, PTX_BF16, PTX_F32, PTX_F32, a16, b16, 8, 8, 0},        \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_S32, PTX_S8, PTX_S32, PTX_S32, a8, b8, 8, 8, 0},            \
        {m, n, 16, WMMA_SHAPE(s), PTX_WMMA_##s##_S32, PTX_U8, PTX_S32, PTX_S32, a8, b8, 8, 8, 0}

static const wmma_case wmma_cases[] = {
    WMMA_LARGE(16, 16, M16N16K16, 4, 4, 2, 2),
    WMMA_LARGE(8, 32, M8N32K16, 2, 8, 1, 4),
    WMMA_LARGE(32, 8, M32N8K16, 8, 2, 4, 1),
    {16, 16, 8, WMMA_SHAPE(M16N16K8), PTX_WMMA_M16N16K8_F32, PTX_TF32, PTX_F32, PTX_F32, 4, 4, 8, 8, 0},
    {8, 8, 4, WMMA_SHAPE(M8N8K4), PTX_WMMA_M8N8K4_F64, PTX_F64, PTX_F64, PTX_F64, 1, 1, 2, 2, 0},
    {8, 8, 32, WMMA_SHAPE(M8N8K32), PTX_WMMA_M8N8K32_S32, PTX_S4, PTX_S32, PTX_S32, 1, 1, 2, 2, 0},
    {8, 8, 32, WMMA_SHAPE(M8N8K32), PTX_WMMA_M8N8K32_S32, PTX_U4, PTX_S32, PTX_S32, 1, 1, 2, 2, 0},
    {8, 8, 128, WMMA_SHAPE(M8N8K128), PTX_WMMA_M8N8K128_XOR, PTX_NONE, PTX_S32, PTX_S32, 1, 1, 2, 2, '^'},
    {8, 8, 128, WMMA_SHAPE(M8N8K128), PTX_WMMA_M8N8K128_AND, PTX_NONE, PTX_S32, PTX_S32, 1, 1, 2, 2, '&'},
};

/* Element `at` of a matrix in memory; b1 where there is no type. */
static unsigned wmma_bits(ptx_type type) {
    if (type == PTX_NONE) return 1;
    if (type == PTX_S4 || type == PTX_U4) return 4;
    return 8 * ptx_type_bytes(type);
}
static void wmma_put(unsigned char *memory, ptx_type type, unsigned at, int value) {
    unsigned bits = wmma_bits(type);
    uint32_t narrow = (uint32_t)value;
    double d = value;
    float f = (float)value;
    if (bits < 8) {
        narrow &= (1u << bits) - 1u;
        memory[at * bits / 8] |= (unsigned char)(narrow << (at * bits % 8));
        return;
    }
    if (type == PTX_F16) ptx__narrow(d, 5, 10, &narrow);
    if (type == PTX_BF16) ptx__narrow(d, 8, 7, &narrow);
    if (type == PTX_F32 || type == PTX_TF32) memcpy(&narrow, &f, 4);
    if (type == PTX_F64) memcpy(memory + 8 * at, &d, 8);
    else
        memcpy(memory + (size_t)bits / 8 * at, &narrow, bits / 8);
}

/* 'a' row by row or column by column, `stride` elements from one to the next. */
static unsigned wmma_at(unsigned row, unsigned column, int by_column, unsigned stride) {
    return by_column ? column * stride + row : row * stride + column;
}

static void wmma_one(const wmma_case *w, int a_col, int b_col, int c_col, int shared, int strided) {
    enum { B_AT = 4096, C_AT = 8192, ALL = 16384 };
    static unsigned char in[ALL], want[ALL], got[ALL];
    static int a[32 * 128], b[128 * 32];
    unsigned pad = strided ? 128 / wmma_bits(w->type) * 2 : 0, c_pad = strided ? 16 : 0, i, j, l;
    unsigned a_stride = (a_col ? w->m : w->k) + pad, b_stride = (b_col ? w->k : w->n) + pad;
    unsigned c_stride = (c_col ? w->m : w->n) + c_pad, bits = wmma_bits(w->type);
    int low = w->type == PTX_NONE || w->type == PTX_U8 || w->type == PTX_U4 ? 0 : -3;
    bench t = begin_test();
    ptx_val src[8], fa[8], fb[8], fc[8], fd[8], from = t.in;
    ptx_mods mods = a_col ? (b_col ? PTX_COL_COL : PTX_COL_ROW) : b_col ? PTX_ROW_COL : PTX_ROW_ROW;
    int fixed = bits < 8;
    memset(in, 0, sizeof in), memset(want, 0, sizeof want), memset(got, 0, sizeof got);
    for (i = 0; i < w->m * w->k; i++) a[i] = w->bits ? (int)random_below(2) : low + (int)random_below(7);
    for (i = 0; i < w->n * w->k; i++) b[i] = w->bits ? (int)random_below(2) : low + (int)random_below(7);
    for (i = 0; i < w->m; i++)
        for (l = 0; l < w->k; l++) wmma_put(in, w->type, wmma_at(i, l, a_col, a_stride), a[i * w->k + l]);
    for (l = 0; l < w->k; l++)
        for (j = 0; j < w->n; j++)
            wmma_put(in + B_AT, w->type, wmma_at(l, j, b_col, b_stride), b[l * w->n + j]);
    for (i = 0; i < w->m; i++)
        for (j = 0; j < w->n; j++) {
            int c = (int)random_below(100), sum = c;
            for (l = 0; l < w->k; l++) {
                int x = a[i * w->k + l], y = b[l * w->n + j];
                sum += w->bits == '^' ? x ^ y : x * y;
            }
            wmma_put(in + C_AT, w->c_type, wmma_at(i, j, c_col, c_stride), c);
            wmma_put(want, w->d_type, wmma_at(i, j, c_col, c_stride), sum);
        }
    if (shared) {
        from = ptx_shared(t.k, "all", PTX_B8, ALL, 128);
        ptx_val step = ptx_for(t.k, ptx_as(t.tid, PTX_U32), ptx_imm(ALL / 4), ptx_imm(32));
        ptx_val x = ptx_ld(t.k, PTX_U32, ptx_at(ptx_ptr_add(t.k, t.in, step, 4), 0));
        ptx_st(t.k, PTX_U32, ptx_at(ptx_ptr_add(t.k, from, step, 4), 0), x);
        ptx_end(t.k);
        ptx_bar_sync(t.k, ptx_imm(0));
    }
    src[0] = from, src[1] = strided ? ptx_imm(a_stride) : src[0];
    ptx_opn(t.k, w->load_a, fixed ? 0 : a_col ? PTX_COL : PTX_ROW, w->type, PTX_NONE, 1u + !!strided, src,
            w->a, fa);
    src[0] = ptx_off(from, B_AT), src[1] = strided ? ptx_mov(t.k, ptx_u32(b_stride)) : src[0];
    ptx_opn(t.k, w->load_b, fixed ? 0 : b_col ? PTX_COL : PTX_ROW, w->type, PTX_NONE, 1u + !!strided, src,
            w->b, fb);
    src[0] = ptx_off(from, C_AT), src[1] = strided ? ptx_imm(c_stride) : src[0];
    ptx_opn(t.k, w->load_c, c_col ? PTX_COL : PTX_ROW, w->c_type, PTX_NONE, 1u + !!strided, src, w->c, fc);
    ptx_mma_with(t.k, w->mma, fixed ? 0 : mods, w->type, w->type, fd, fa, fb, fc, 0, NULL);
    {
        ptx_val all[10];
        all[0] = t.out;
        for (i = 0; i < w->d; i++) all[1 + i] = fd[i];
        all[1 + w->d] = ptx_imm(c_stride);
        ptx_opn(t.k, w->store_d, c_col ? PTX_COL : PTX_ROW, w->d_type, PTX_NONE, 1u + w->d + !!strided, all,
                0, NULL);
    }
    if (run_test_at(&t, __LINE__, 1, 32, in, sizeof in, got, sizeof got)) {
        char what[100];
        snprintf(what, sizeof what, "wmma m%un%uk%u of %s, layouts %d %d %d, %s", w->m, w->n, w->k,
                 ptx_type_name(w->type), a_col, b_col, c_col, shared ? "shared" : "global");
        CHECK_MORE(memcmp(want, got, sizeof got) == 0, what);
    }
}

static void test_wmma(void) {
    for (size_t i = 0; i < sizeof wmma_cases / sizeof *wmma_cases; i++) {
        const wmma_case *w = &wmma_cases[i];
        for (int layout = 0; layout < 8; layout++) {
            int fixed = wmma_bits(w->type) < 8;
            if (fixed && (layout & 3) != 2) continue;
            wmma_one(w, layout & 1, layout >> 1 & 1, layout >> 2, (int)random_below(2), (int)random_below(2));
        }
    }
}
#endif
