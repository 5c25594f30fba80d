/* lower.h - the lowering functions that rows of the instruction table name, and what the lower*.c files share. */
#ifndef SIM_LOWER_H
#define SIM_LOWER_H
#include "sim.h"

SIM_PRIVATE_BEGIN

void sim_lower_setp(struct sim_lower *lw, const sim_statement *s);
void sim_lower_set(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mov(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cvt(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cvt_pack(struct sim_lower *lw, const sim_statement *s);
void sim_lower_carry(struct sim_lower *lw, const sim_statement *s);
void sim_lower_lop3(struct sim_lower *lw, const sim_statement *s);
void sim_lower_pred(struct sim_lower *lw, const sim_statement *s);
void sim_lower_prmt(struct sim_lower *lw, const sim_statement *s);
void sim_lower_ld(struct sim_lower *lw, const sim_statement *s);
void sim_lower_st(struct sim_lower *lw, const sim_statement *s);
void sim_lower_atom(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cvta(struct sim_lower *lw, const sim_statement *s);
void sim_lower_isspacep(struct sim_lower *lw, const sim_statement *s);
void sim_lower_hint(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cp_async(struct sim_lower *lw, const sim_statement *s);
void sim_lower_bra(struct sim_lower *lw, const sim_statement *s);
void sim_lower_brx(struct sim_lower *lw, const sim_statement *s);
void sim_lower_ret(struct sim_lower *lw, const sim_statement *s);
void sim_lower_exit(struct sim_lower *lw, const sim_statement *s);
void sim_lower_trap(struct sim_lower *lw, const sim_statement *s);
void sim_lower_call(struct sim_lower *lw, const sim_statement *s);
void sim_lower_alloca(struct sim_lower *lw, const sim_statement *s);
void sim_lower_stack(struct sim_lower *lw, const sim_statement *s);
void sim_lower_bar(struct sim_lower *lw, const sim_statement *s);
void sim_lower_warp_sync(struct sim_lower *lw, const sim_statement *s);
void sim_lower_shfl(struct sim_lower *lw, const sim_statement *s);
void sim_lower_vote(struct sim_lower *lw, const sim_statement *s);
void sim_lower_match(struct sim_lower *lw, const sim_statement *s);
void sim_lower_redux(struct sim_lower *lw, const sim_statement *s);
void sim_lower_elect(struct sim_lower *lw, const sim_statement *s);
void sim_lower_activemask(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cp_group(struct sim_lower *lw, const sim_statement *s);
void sim_lower_fence(struct sim_lower *lw, const sim_statement *s);
void sim_lower_nop(struct sim_lower *lw, const sim_statement *s);
void sim_lower_video(struct sim_lower *lw, const sim_statement *s);
void sim_lower_minmax(struct sim_lower *lw, const sim_statement *s);
void sim_lower_redux_f32(struct sim_lower *lw, const sim_statement *s);
void sim_lower_pmevent(struct sim_lower *lw, const sim_statement *s);
bool sim_lower_narrow_cvt(struct sim_lower *lw, const sim_statement *s);
void sim_divide(sim_warp *w, const sim_ins *i, uint32_t m);                       /* unwritten.c */
void sim_pass(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_find_suspects(struct sim_lower *lw, const sim_statement *s);
bool sim_contract(struct sim_lower *lw, const sim_statement *s);
void sim_perturb(sim_ins *i, int op, bool exact_form);
void sim_read_environment(void);
void sim_lower_table(struct sim_lower *lw, const sim_statement *s);
void sim_lower_nanosleep(struct sim_lower *lw, const sim_statement *s);
void sim_lower_ldmatrix(struct sim_lower *lw, const sim_statement *s);
void sim_lower_stmatrix(struct sim_lower *lw, const sim_statement *s);
void sim_lower_movmatrix(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mma(struct sim_lower *lw, const sim_statement *s);
void sim_lower_wmma(struct sim_lower *lw, const sim_statement *s);
void sim_lower_wgmma(struct sim_lower *lw, const sim_statement *s);
void sim_lower_tcgen05(struct sim_lower *lw, const sim_statement *s);
bool sim_lower_is_matrix(const char *opcode);
bool sim_wgmma_used(const sim_kernel *k);
void sim_wgmma_watch(struct sim_lower *lw, uint32_t *word_of);

/* lower_texture.c */
void sim_lower_tex(struct sim_lower *lw, const sim_statement *s);
void sim_lower_texture_query(struct sim_lower *lw, const sim_statement *s);
void sim_lower_surface(struct sim_lower *lw, const sim_statement *s);
void sim_lower_sured(struct sim_lower *lw, const sim_statement *s);

/* lower_async.c */
void sim_lower_mapa(struct sim_lower *lw, const sim_statement *s);
void sim_lower_cluster_barrier(struct sim_lower *lw, const sim_statement *s);
void sim_lower_store_bulk(struct sim_lower *lw, const sim_statement *s);
void sim_lower_griddepcontrol(struct sim_lower *lw, const sim_statement *s);
void sim_lower_setmaxnreg(struct sim_lower *lw, const sim_statement *s);
void sim_lower_createpolicy(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mbarrier(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mbarrier_wait(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mbarrier_pending(struct sim_lower *lw, const sim_statement *s);
void sim_lower_mbarrier_cp_async(struct sim_lower *lw, const sim_statement *s);
void sim_lower_bulk(struct sim_lower *lw, const sim_statement *s);
void sim_lower_bulk_tensor(struct sim_lower *lw, const sim_statement *s);
void sim_lower_bulk_group(struct sim_lower *lw, const sim_statement *s);
void sim_lower_proxy_fence(struct sim_lower *lw, const sim_statement *s);
void sim_lower_store_async(struct sim_lower *lw, const sim_statement *s);
void sim_lower_tensormap(struct sim_lower *lw, const sim_statement *s);
void sim_lower_prefetch_map(struct sim_lower *lw, const sim_statement *s);

typedef struct sim_frame {             /* a function of the kernel that is being lowered */
    sim_function *function;
    struct sim_frame *next;            /* callees come before their callers, the entry last */
    uint32_t *slots;                   /* by register index: slot + 1, predicates: index + 1 */
    uint32_t *labels;                  /* by statement: code index */
    struct sim_placed *placed;         /* where the .local, .param, .shared variables lie */
    sim_routine r;
    uint32_t index, stack_used;
    bool indirect;                     /* it makes calls through pointers */
    bool allocates;                    /* alloca */
    struct sim_lower *lw;
    struct sim_frame *below;           /* calls.c, search for recursion (Tarjan): the stack, */
    uint32_t order, low, cycle;        /* visit number, lowest reachable number, component */
    bool open;
} sim_frame;

typedef struct sim_placed { struct sim_placed *next; const sim_symbol *symbol; uint32_t offset; } sim_placed;

typedef struct sim_note_entry {
    uint32_t code, slot;
    const char *name;
    bool pred, write, unsure, guard;
} sim_note_entry;

typedef struct sim_lower {
    sim_module *m;
    sim_kernel *k;
    sim_frame *frame, *frames, *pointers;
    const sim_statement *s;
    uint32_t pair_capacity;
    uint32_t call_slots, call_preds;   /* registers that carry .reg parameters and results */
    sim_placed *shared;
    uint32_t shared_used, local_used, dynamic_offset_patches;
    uint32_t const_capacity, special_capacity, launch_special_capacity, param_capacity, consts_hash[1024];
    uint32_t errors;
    bool has_dynamic;
    uint32_t temporaries;
    struct sim_fixup { uint32_t ins, statement; sim_frame *frame; } *fixups;
    uint32_t fixup_count, fixup_capacity;
    sim_note_entry *notes; uint32_t note_count, note_capacity;
    const sim_function *counted; uint32_t *occurrences; /* contract.c */
    uint8_t carry;                     /* suspect.c: the instruction that set the carry flag in this block */
    char full[160];                    /* the instruction's name, for messages */
} sim_lower;

enum { WIDER_OK = 2 };
void sim_note(sim_lower *lw, uint32_t slot, bool pred, bool write, const char *name); /* registers.c */
void     sim_note_end(sim_lower *lw, uint32_t first_note);
void     sim_find_unwritten(sim_lower *lw);
sim_ins *sim_emit(sim_lower *lw, sim_handler fn, sim_flow flow);
uint32_t sim_source(sim_lower *lw, uint32_t index, sim_type t, int flags);       /* slot of an operand */
uint32_t sim_source_of(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t, int flags);
uint32_t sim_dest(sim_lower *lw, uint32_t index, sim_type t, int flags);
uint32_t sim_dest_of(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t, int flags);
uint32_t sim_dest_pred(sim_lower *lw, const sim_operand *o, uint32_t index);
uint32_t sim_source_pred(sim_lower *lw, uint32_t index);
uint32_t sim_index_offset(sim_lower *lw, const sim_operand *o, uint32_t index);
uint32_t sim_address_value(sim_lower *lw, const sim_operand *o, uint32_t index, sim_type t);
uint32_t sim_add_64(sim_lower *lw, uint32_t a, uint32_t b);
uint32_t sim_constant(sim_lower *lw, uint64_t value, uint32_t width);
uint32_t sim_temporary(sim_lower *lw, uint32_t width);
uint32_t sim_new_pred(sim_lower *lw);
void     sim_reject(sim_lower *lw, const char *format, ...) SIM_PRINTF(2, 3);       /* refuse.c */
void     sim_require_version(sim_lower *lw, const char *what, uint32_t version, uint32_t target); /* least of both */
void     sim_mismatch(sim_lower *lw, uint32_t index, const char *format, ...) SIM_PRINTF(3, 4);
bool     sim_operands_between(sim_lower *lw, uint32_t least, uint32_t most);
uint32_t sim_flags_of(const sim_statement *s);
uint32_t sim_list_begin(sim_lower *lw, uint32_t count);
uint32_t sim_register_slot(sim_lower *lw, uint32_t reg);
bool     sim_symbol_address(sim_lower *lw, const sim_symbol *y, uint64_t *address, sim_space *space);
bool     sim_on_stack(const sim_lower *lw, const sim_symbol *y);
bool     sim_uses_symbol(const sim_operand *o, const sim_symbol *y);
sim_frame *sim_new_frame(sim_lower *lw, sim_function *f);
void     sim_collect_frames(sim_lower *lw, sim_function *f);                     /* calls.c */
void     sim_place_calls(sim_lower *lw);
void     sim_routine_begin(sim_lower *lw, sim_frame *frame);
void     sim_routine_end(sim_lower *lw, sim_frame *frame);
void     sim_settle_calls(sim_lower *lw);
void     sim_settle_watches(sim_kernel *k);
void     sim_prepare_functions(sim_module *m);
bool     sim_not_implemented(const char *shown);

/* strict.c */
bool sim_words_in_order(sim_module *m, uint32_t line, const char *shown);
bool sim_field_in_range(sim_module *m, const sim_statement *s);
bool sim_special_allowed(const sim_statement *s);
bool sim_sink_allowed(const sim_statement *s, uint32_t index, sim_type t);

bool     sim_row_address(sim_lower *lw, uint32_t index, sim_space space, uint32_t *slot, int64_t *offset,
                         bool *wide);
typedef struct sim_place { uint32_t slot; bool wide; int64_t offset; sim_space space; } sim_place;
bool     sim_lower_place(sim_lower *lw, uint32_t index, sim_space space, sim_place *out);
uint32_t sim_special_slot(sim_lower *lw, const sim_operand *o);

/* Operand `index` as an integer constant from least to most; false: refused. */
bool sim_constant_operand(sim_lower *lw, uint32_t index, int64_t least, int64_t most, int64_t *out);
static inline bool sim_has(const sim_statement *s, int mod) { return sim_mod(&s->mods, mod); }
/* The number of 32-bit slots of a register of type t. */
static inline uint32_t sim_slots_of(sim_type t)
{ return sim_types[t].bytes <= 4 ? 1 : sim_types[t].bytes / 4u; }

SIM_PRIVATE_END
#endif
