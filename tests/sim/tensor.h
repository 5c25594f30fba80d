/* tensor.h - what lower_tensor.c tells tensor.c about a matrix instruction. */
#ifndef SIM_TENSOR_H
#define SIM_TENSOR_H
#include "sim.h"

SIM_PRIVATE_BEGIN

typedef enum sim_element {
    E_NONE, E_F16, E_BF16, E_TF32, E_F32, E_F64, E_S32, E_S8, E_U8, E_S4, E_U4, E_B1, E_E4M3, E_E5M2,
    E_E3M2, E_E2M3, E_E2M1, E_E2M1_BYTE,           /* the last: four bits in the middle of a byte */
    E_UE8M0, E_UE4M3, E_B16, E_B8, E_B8X16, E_B6X16, E_B4X16, E_COUNT
} sim_element;

typedef struct sim_element_info { const char *name; uint8_t bits; } sim_element_info;
extern const sim_element_info sim_elements[E_COUNT];

/* Registers that hold a matrix, spread over the warp; their slots begin at `list` in kernel->lists. */
typedef struct sim_fragment { uint8_t type, regs; uint32_t list; } sim_fragment;

typedef struct sim_tensor {
    uint16_t m, n, k;                  /* of one warp; wgmma: m is 16 */
    sim_fragment a, b, c, d;
    bool saturate, bit_and, quads, a_col, b_col;   /* quads: m8n8k4 of f16, four products at once */
    bool sparse;
    uint8_t selector, rounding, part, count, space; /* part: which matrix wmma loads or stores */
    uint32_t metadata;
    uint8_t scale_type, scale_vectors;                        /* scale factors for each row: 1, 2, 4 */
    uint32_t scale[2], scale_byte[2], scale_thread[2];        /* of A and of B */
    bool wide, trans, has_stride;      /* memory: the address is in a 64-bit register */
    uint32_t address, stride;
    int64_t offset;
    bool a_shared, a_trans, b_trans, a_negative, b_negative;  /* wgmma */
    uint32_t a_descriptor, b_descriptor, scale_d;
    uint32_t touched, touched_count;                          /* kernel->lists: watches of D and A */
} sim_tensor;

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
