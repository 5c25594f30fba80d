/* tensor.h - the decoded form of a matrix instruction, made by lower_tensor.c for tensor.c. */
#ifndef SIM_TENSOR_H
#define SIM_TENSOR_H
#include "sim.h"

SIM_PRIVATE_BEGIN

typedef enum sim_element {
    E_NONE, E_F16, E_BF16, E_TF32, E_F32, E_F64, E_S32, E_S8, E_U8, E_S4, E_U4, E_B1, E_E4M3, E_E5M2,
    E_E3M2, E_E2M3, E_E2M1, E_E2M1_BYTE,           /* E_E2M1_BYTE: the four bits in the middle of a byte */
    E_UE8M0, E_UE4M3, E_B16, E_B8, E_B8X16, E_B6X16, E_B4X16, E_COUNT
} sim_element;

typedef struct sim_element_info { const char *name; uint8_t bits; } sim_element_info;
extern const sim_element_info sim_elements[E_COUNT];

/* The registers of a matrix that is spread over the warp; their slots begin at `list` in kernel->lists. */
typedef struct sim_fragment { uint8_t type, regs; uint32_t list; } sim_fragment;

typedef enum sim_matrix_kind { SIM_MMA, SIM_WMMA, SIM_WGMMA, SIM_TCGEN05 } sim_matrix_kind;

/* How an instruction adds its products: see tensor_sum.c. */
typedef struct sim_sum {
    uint8_t fraction, kept;            /* fraction bits: of the terms (0: exact sums), of an f32 result */
    uint8_t step, group;               /* products along k in one step; products added exactly to one term */
    bool f16, wide, scaled;            /* f16 results; products may exceed f32's range; has scale factors */
    bool pairs, c_last;                /* two steps: products 0, 1 of every four, then 2, 3; C last */
    int16_t least_a, least_b, least_c; /* least exponents of the formats (subnormal numbers) */
} sim_sum;

typedef struct sim_tensor {
    sim_sum sum;
    uint16_t m, n, k;                  /* of one warp; wgmma: m is 16 */
    sim_fragment a, b, c, d;
    bool saturate, bit_and, quads, a_col, b_col;   /* quads: m8n8k4 of f16, four products at once */
    bool sparse;
    uint8_t selector, rounding, part, count, space; /* part: which matrix wmma loads or stores */
    uint32_t metadata;
    uint8_t scale_type, scale_vectors;                        /* scale factors per row: 1, 2, 4 */
    uint32_t scale[2], scale_byte[2], scale_thread[2];        /* of A and of B */
    bool wide, trans, has_stride;      /* memory: wide: the address is in a 64-bit register */
    uint32_t address, stride;
    int64_t offset;
    bool a_shared, a_trans, b_trans, a_negative, b_negative;  /* wgmma */
    uint32_t a_descriptor, b_descriptor, scale_d;
    uint32_t touched, touched_count;                          /* kernel->lists: watches of D and A */
} sim_tensor;

enum {
    SIM_MAX_A = 16 * 128,
    SIM_MAX_B = 128 * 8,
    SIM_MAX_C = 16 * 256,              /* elements; the most of any mma and wmma */
    SIM_MAX_WIDE_B = 64 * 256          /* wgmma */
};

extern bool sim_tensor_avx2;

sim_sum sim_sum_rule(const sim_tensor *t, sim_matrix_kind kind);
void sim_sum_exponents(const double *x, uint32_t n, int32_t least, int32_t *e);
void sim_sum_products(const sim_sum *s, double *a, double *b, const int32_t *const scaled[2], double *c,
                      uint32_t m, uint32_t n, uint32_t k);

const double *sim_byte_values(uint8_t type);   /* values of a format of at most 8 bits, indexed by its bits */
/* c += a b with the instruction's rounding; scaled: as for sim_sum_products. m is even, n a multiple of 8. */
void sim_tensor_products(const sim_tensor *t, double *a, double *b, const int32_t *const scaled[2], double *c,
                         uint32_t m, uint32_t n, uint32_t k);

static inline const sim_tensor *sim_tensor_of(const sim_ins *i)
{ return (const sim_tensor *)(uintptr_t)i->imm; }

void sim_ldmatrix(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_stmatrix(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_movmatrix(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_mma(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_wmma_load(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_wmma_store(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_wgmma(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_wgmma_gather(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_wgmma_order(sim_warp *w, const sim_ins *i, uint32_t m);

SIM_PRIVATE_END
#endif
