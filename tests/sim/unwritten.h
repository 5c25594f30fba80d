/* unwritten.h - unwritten values, followed through registers (unwritten.c). */
#ifndef SIM_UNWRITTEN_H
#define SIM_UNWRITTEN_H
#include "sim.h"

SIM_PRIVATE_BEGIN

typedef struct sim_use {
    uint32_t slot;
    bool pred, write, guard;
    const char *name;
} sim_use;

/* A statement's registers and effect, kept with its first instruction. */
typedef enum sim_effect {
    E_INNER,   /* not the first instruction of a statement */
    E_USE,     /* an unwritten source is reported: it affects more than the registers */
    E_VALUE,   /* the result depends on the sources, nothing else changes */
    E_BITS,    /* the same, bit by bit: counts as a move, not as a computation */
    E_COMPARE, /* setp */
    E_ANY,     /* the result depends on other lanes too */
    E_LOAD,
    E_STORE,
    E_SHUFFLE,
    E_CALL     /* arguments and results are moved */
} sim_effect;
typedef struct sim_uses_of {
    uint32_t first, count;
    uint16_t codes;
    uint8_t effect, integers;
} sim_uses_of;

struct sim_lower;
typedef struct sim_narrow {
    uint32_t slot;
    uint8_t bytes;
} sim_narrow;
void sim_unwritten_narrow(struct sim_lower *lw, uint32_t slot, uint32_t bytes);
void sim_unwritten_statement(struct sim_lower *lw, uint32_t first_note, uint32_t first_code);

enum { SHFL_C = 0x1f1f };              /* the bits of shfl's operand c that have a meaning: clamp, segment mask */
#define OTHER_BITS "operand c is 0x%x: only its bits 0-4 (clamp) and 8-12 (segments) mean something"

/* The memory of an access: its shadow, and where the origins of its unwritten bytes are kept. */
typedef struct sim_unwritten_place {
    uint8_t *shadow;
    const uint64_t *at;
    uint64_t base;
    sim_space space;
    sim_allocation *a;
    const sim_block *owner;
} sim_unwritten_place;

void sim_unwritten_step(sim_warp *w, const sim_ins *i, uint32_t active, uint32_t m);
void sim_unwritten_register(sim_warp *w, const sim_ins *i, uint32_t slot, bool pred, uint32_t lanes,
                            const char *name);
bool sim_unwritten_load(sim_warp *w, const sim_ins *i, uint32_t m, const sim_unwritten_place *p);
void sim_unwritten_loaded(sim_warp *w, const sim_ins *i, uint32_t m);
bool sim_unwritten_store(sim_warp *w, const sim_ins *i, uint32_t m, const sim_unwritten_place *p);
void sim_unwritten_absent(sim_warp *w, const sim_ins *i, uint32_t lanes, const uint32_t *from);
void sim_unwritten_cells(sim_warp *w, const sim_ins *i, uint32_t slot, uint32_t lanes, uint32_t address);
void sim_unwritten_other_bits(sim_warp *w, const sim_ins *i, uint32_t lanes, const uint32_t *c);
void sim_unwritten_shuffle(sim_warp *w, const sim_ins *i, uint32_t m, const uint32_t *from);
void sim_unwritten_copied(sim_warp *w, uint32_t lane, uint64_t from, uint64_t to, uint32_t bytes);
void sim_unwritten_forgotten(sim_warp *w, uint32_t lane, uint64_t from, uint64_t to);
void sim_unwritten_restored(sim_warp *w, const sim_routine *r, uint32_t lane);
void sim_unwritten_arrived(sim_block *b, uint32_t to, uint32_t bytes);
void sim_unwritten_begin(sim_block *b);
void sim_unwritten_free(sim_block *b);
void sim_unwritten_kernel_free(sim_kernel *k);

SIM_PRIVATE_END
#endif
