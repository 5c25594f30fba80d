/* sim.h - the types and functions that the files of the CPU driver share.
 *
 *   text --parse.c--> statements --isa.c: which form? lower.c: operands, code--> code --exec.c--> results
 *
 *   parse.c         lexer, declarations, statements   memory.c        ld, st, atom, red, cp.async, cvta
 *   isa.c           THE table of instruction forms    warp.c          shfl, vote, match, redux, elect
 *   strict.c        word order, _, special registers  lanes.def       one line per 32-lane operation
 *   lower.c         operand checks, code, calls       scalar.c        compiles lanes.def per CPU level
 *   lower_memory.c  lowering of memory, cvt, warps    narrow.c        formats below 16 bits, cvt.rs
 *   lower_tensor.c  lowering for tensor.c             tensor.c        mma, wmma, wgmma, ldmatrix
 *   lower_async.c   lowering for the next column:     bulk.c          bulk copies, proxy fences
 *                                                     cluster.c       clusters, waiting, deadlocks
 *                                                     mbarrier.c      mbarriers
 *   lower_tcgen05.c lowering for the next column:     tensor_memory.c alloc, ld, st, wait, fences
 *                                                     tcgen05.c       mma, cp, shift, commit
 *   lower_texture.c lowering for texture.c            texture.c       tex, tld4, txq, suld, sust, sured, suq
 *   exec.c          warps, paths, barriers, threads   tensor_sum.c    how tensor cores round their sums
 *   calls.c         functions, frames, call, return   library.c       vprintf, malloc, free, __assertfail
 *   pace.c          polling workers, the watchdog     registers_pool.c  setmaxnreg
 *   video.c         vadd ... vset4                    warpgroup.c     checks that four warps do the same
 *   perturb.c       approximations at their bounds    contract.c      mul and add fused to one rounding
 *   check.c         findings: text, counting          suspect.c       legal PTX that is likely a mistake
 *   registers.c     reads of unwritten registers      unwritten.c     unwritten values, followed to their use
 *   race.c          data races: shadow of accesses    clocks.c        happens-before: vector clocks
 *   guess.c         reads that a cas may justify      operands.c      shared memory that wgmma reads
 *   dependents.c    griddepcontrol                    count.c         counters
 *   profile.c       counters by launch and line       arena.c         device memory and its shadow
 *   arrays.c        arrays, texture objects           tensormap.c     tensor maps
 *   cluster_launch.c  cuLaunchKernelEx                device.c        chips
 *   driver.c ...    the driver's entry points (README.md)                                                     */
#ifndef SIM_H
#define SIM_H

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE 1
#endif
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ptxsim.h"

#if defined(__GNUC__)
#define SIM_EXPORT    __attribute__((visibility("default")))
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SIM_INLINE inline __attribute__((always_inline))
#define SIM_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define SIM_PRIVATE_BEGIN _Pragma("GCC visibility push(hidden)")
#define SIM_PRIVATE_END   _Pragma("GCC visibility pop")
#else
#define SIM_PRIVATE_BEGIN
#define SIM_PRIVATE_END
#define SIM_EXPORT
#define SIM_UNLIKELY(x) (x)
#define SIM_INLINE inline
#define SIM_PRINTF(f, a)
#endif

SIM_PRIVATE_BEGIN

enum { SIM_LANES = 32 };
#define SIM_FULL 0xffffffffu

/* --- types ------------------------------------------------------------------------------------ */

typedef enum sim_type {
    T_NONE, T_PRED, T_B8, T_B16, T_B32, T_B64, T_B128, T_U8, T_U16, T_U32, T_U64, T_S8, T_S16, T_S32, T_S64,
    T_F16, T_F16X2, T_BF16, T_BF16X2, T_F32, T_F32X2, T_F64, T_TF32, T_U16X2, T_S16X2,
    T_E4M3X2, T_E5M2X2, T_E4M3, T_E5M2, T_E2M1X2, T_E2M3X2, T_E3M2X2, T_UE8M0X2, T_E4M3X4, T_E5M2X4,
    T_E2M1X4, T_E2M3X4, T_E3M2X4, T_S4, T_U4, T_B1, T_OTHER, T_COUNT
} sim_type;

typedef enum sim_kind { K_NONE, K_PRED, K_BITS, K_UINT, K_SINT, K_FLOAT, K_PACKED } sim_kind;

typedef struct sim_type_info { const char *name; uint8_t bytes; uint8_t kind; } sim_type_info;
extern const sim_type_info sim_types[T_COUNT];
sim_type sim_type_find(const char *name, size_t length);      /* T_NONE if it is none */

typedef enum sim_space {
    SP_GENERIC,
    SP_GLOBAL,
    SP_SHARED,
    SP_LOCAL,
    SP_CONST,
    SP_PARAM,
    SP_REG,
    SP_TEX
} sim_space;

/* Windows of the generic address space. Global, constant and host memory are not in a window: their generic
 * address is their own address. */
#define SIM_SHARED_WINDOW (UINT64_C(1) << 48)
#define SIM_LOCAL_WINDOW  ((UINT64_C(1) << 48) + (UINT64_C(1) << 40))
#define SIM_PARAM_WINDOW  ((UINT64_C(1) << 48) + (UINT64_C(2) << 40))
#define SIM_WINDOW_SIZE   (UINT64_C(1) << 32)

/* --- modifiers: every word after the opcode that is not a type; the list is in isa.c ---------- */

enum { SIM_MOD_WORDS = 8 };
typedef struct sim_mods { uint64_t w[SIM_MOD_WORDS]; } sim_mods;

#define SIM_MODIFIERS(X) \
    X(rn) X(rz) X(rm) X(rp) X(rna) X(rs) X(rni) X(rzi) X(rmi) X(rpi) X(ftz) X(noftz) X(sat) X(satfinite) \
    X(relu) X(oob) X(approx) X(full) X(NaN) X(xorsign) X(abs) X(cc) X(lo) X(hi) X(wide) X(shiftamt) \
    X(clamp) X(wrap) X(l) X(r) X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(ls) X(hs) X(equ) X(neu) X(ltu) X(leu) \
    X(gtu) X(geu) X(num) X(nan) X(and) X(or) X(xor) X(finite) X(infinite) X(number) X(notanumber) X(normal) \
    X(subnormal) X(f4e) X(b4e) X(rc8) X(rc16) X(ecl) X(ecr) X(const) X(global) X(local) X(param) X(shared) \
    X(tex) X(ca) X(cg) X(cs) X(lu) X(cv) X(wb) X(wt) X(nc) X(volatile) X(weak) X(relaxed) X(acquire) \
    X(release) X(acq_rel) X(sc) X(mmio) X(cta) X(cluster) X(gpu) X(sys) X(gl) X(v2) X(v4) X(v8) X(to) X(L1) \
    X(L2) X(uni) X(sync) X(aligned) X(arrive) X(red) X(popc) X(warp) X(up) X(down) X(bfly) X(idx) X(all) \
    X(any) X(ballot) X(match) X(add) X(min) X(max) X(inc) X(dec) X(exch) X(cas) X(proxy) X(alias) X(async) \
    X(bulk) X(commit_group) X(wait_group) X(wait_all) X(wait) X(unified) X(pack) X(read) X(mbarrier_init)

#define SIM_MODIFIERS_COLON(X) \
    X(shared_cta, "shared::cta") X(shared_cluster, "shared::cluster") X(param_entry, "param::entry") \
    X(param_func, "param::func") X(L1_evict_normal, "L1::evict_normal") \
    X(L1_evict_unchanged, "L1::evict_unchanged") X(L1_evict_first, "L1::evict_first") \
    X(L1_evict_last, "L1::evict_last") X(L1_no_allocate, "L1::no_allocate") \
    X(L2_evict_last, "L2::evict_last") X(L2_evict_normal, "L2::evict_normal") \
    X(L2_evict_first, "L2::evict_first") X(L2_evict_unchanged, "L2::evict_unchanged") X(L2_64B, "L2::64B") \
    X(L2_128B, "L2::128B") X(L2_256B, "L2::256B") X(L2_cache_hint, "L2::cache_hint") \
    X(barrier_cluster, "cluster::all") X(async_generic, "async::generic") \
    X(tensormap_generic, "tensormap::generic") X(restrict_shared, "sync_restrict::shared::cluster") \
    X(restrict_shared_cta, "sync_restrict::shared::cta")

/* Modifiers of one family of instructions. A name that is no C identifier is spelled out beside its own. */
#define SIM_MODIFIERS_MATRIX(X)
#define SIM_MODIFIERS_COPY(X) \
    X(noinc, "noinc") X(noComplete, "noComplete") X(arrive_drop, "arrive_drop") X(expect_tx, "expect_tx") \
    X(complete_tx, "complete_tx") X(test_wait, "test_wait") X(try_wait, "try_wait") \
    X(pending_count, "pending_count") X(parity, "parity") X(init, "init") X(inval, "inval") \
    X(mbarrier, "mbarrier") X(tx_bytes, "mbarrier::complete_tx::bytes") X(bulk_group, "bulk_group") \
    X(multicast_cluster, "multicast::cluster") X(prefetch, "prefetch") X(tensor, "tensor") X(dim1, "1d") \
    X(dim2, "2d") X(dim3, "3d") X(dim4, "4d") X(dim5, "5d") X(tile, "tile") X(reduce, "reduce") \
    X(tensormap, "tensormap") X(fractional, "fractional") X(range, "range") X(cvt, "cvt") \
    X(launch_dependents, "launch_dependents") X(replace, "replace") X(b1024, "b1024") \
    X(global_address, "global_address") X(rank, "rank") X(box_dim, "box_dim") X(global_dim, "global_dim") \
    X(global_stride, "global_stride") X(element_stride, "element_stride") X(elemtype, "elemtype") \
    X(interleave_layout, "interleave_layout") X(swizzle_mode, "swizzle_mode") X(fill_mode, "fill_mode") \
    X(cp_fenceproxy, "cp_fenceproxy")
#define SIM_MODIFIERS_VIDEO(X) X(po, "po") X(shr7, "shr7") X(shr15, "shr15") X(mask, "mask")

enum {
    M_NONE,
#define X(name) M_##name,
    SIM_MODIFIERS(X)
#undef X
#define X(name, text) M_##name,
    SIM_MODIFIERS_COLON(X) SIM_MODIFIERS_MATRIX(X) SIM_MODIFIERS_COPY(X) SIM_MODIFIERS_VIDEO(X)
#undef X
    M_COUNT
};

static inline bool sim_mod(const sim_mods *m, int id) { return m->w[id >> 6] >> (id & 63) & 1; }
static inline void sim_mod_set(sim_mods *m, int id) { m->w[id >> 6] |= UINT64_C(1) << (id & 63); }
static inline void sim_mod_clear(sim_mods *m, int id) { m->w[id >> 6] &= ~(UINT64_C(1) << (id & 63)); }
int  sim_mod_find(const char *name, size_t length);           /* M_NONE if unknown */
const char *sim_mod_name(int id);

/* --- a parsed module -------------------------------------------------------------------------- */

typedef enum sim_symbol_kind {
    SYM_REG,
    SYM_VAR,
    SYM_LABEL,
    SYM_FUNC,
    SYM_PROTO,
    SYM_TARGETS
} sim_symbol_kind;

typedef struct sim_operand sim_operand;

typedef struct sim_symbol {
    const char *name;
    struct sim_symbol *hash_next;      /* older symbols of the same bucket */
    struct sim_symbol *list_next;      /* the next variable of the module or function */
    struct sim_function *function;     /* SYM_FUNC, SYM_PROTO: itself; others: the owner (NULL: module scope) */
    uint8_t  kind, type, space;
    uint8_t  vector;                   /* 2 or 4 for .v2/.v4 declarations */
    bool     is_extern, is_formal, is_array, range;    /* range: %r<n>, `count` registers */
    bool     managed;                  /* .attribute(.managed): the host reads and writes it too */
    uint32_t count;                    /* range: registers */
    uint32_t index;                    /* registers: first index in the function; labels: statement */
    uint32_t depth, line, align;
    uint64_t elements, size;           /* bytes */
    uint64_t address;                  /* global, const: device address; param: offset */
    uint8_t *init;                     /* NULL: zero */
    struct sim_reloc *relocs;
    struct sim_symbol *alias;          /* a label that an outer scope defines */
    sim_operand *targets;              /* .branchtargets: labels */
    uint32_t target_count;
} sim_symbol;

typedef struct sim_reloc {
    struct sim_reloc *next;
    const char *name;
    uint64_t offset; int64_t addend; uint32_t line;
    uint64_t mask;                     /* 0: the whole address */
    uint8_t bytes, shift; bool generic;
} sim_reloc;

typedef enum sim_operand_kind {
    O_NONE,
    O_REG,
    O_INT,
    O_FLOAT,
    O_SYMBOL,
    O_SPECIAL,
    O_SINK,
    O_VECTOR,
    O_ADDRESS,
    O_LIST,
    O_PAIR
} sim_operand_kind;

struct sim_operand {
    uint8_t kind;
    uint8_t type;                      /* registers */
    bool    negate;                    /* !p */
    bool    bare_float_single;         /* 0f... literals */
    uint16_t special;
    uint16_t count;                    /* vectors and lists */
    uint32_t reg;                      /* registers: index in the function */
    bool    offset, indexed, element;  /* plus value; sym[n], sym[register] (see items); v.x */
    sim_symbol *symbol;
    const char *name;                  /* an identifier not yet known: a label */
    int64_t value;                     /* integer, offset of an address or a register, or the bits of a double */
    sim_operand *items;                /* O_VECTOR, O_LIST: elements; O_ADDRESS: the base; O_PAIR: two; O_SYMBOL:
                                          the register that indexes the symbol */
};

enum { SIM_MAX_OPERANDS = 10, SIM_MAX_TYPES = 6, SIM_MAX_LIST = 128 };   /* wgmma has lists of 128 */

typedef struct sim_statement {
    const struct sim_form *form;
    const char *opcode;                /* first component */
    uint32_t line;
    int32_t guard;                     /* register index, or -1 */
    const char *guard_name;
    bool guard_negate, labelled;       /* labelled: a label stands here */
    uint8_t type_count, operand_count;
    uint8_t types[SIM_MAX_TYPES];
    const char *words;                 /* matrix instructions: all modifiers and types, as written */
    sim_mods mods;
    sim_operand *operands;
} sim_statement;

enum { LINK_STATIC, LINK_VISIBLE, LINK_WEAK, LINK_COMMON, LINK_EXTERN };

typedef struct sim_function {
    const char *name;
    struct sim_function *next;
    struct sim_module *module;
    sim_symbol *params, *returns;      /* in order, by list_next */
    sim_symbol *variables;             /* .local, .shared, .param declared inside */
    sim_statement *body;
    uint32_t statement_count, statement_capacity;
    uint8_t *register_types;           /* by register index */
    uint32_t register_count, register_capacity;
    uint32_t line, end_line;
    uint32_t param_count, return_count, param_bytes;
    uint32_t maxntid[3], reqntid[3], maxnreg, minnctapersm, reqnctapercluster[3], maxclusterrank;
    uint32_t maxntid_count, reqntid_count;
    uint8_t linkage;                   /* LINK_ */
    uint32_t order;                    /* position in the module */
    bool has_shared;                   /* variables */
    bool is_entry, has_body, is_prototype, noreturn, is_alias, busy, checked, has_barrier, label_waits,
        explicitcluster, blocksareclusters;
    bool address_taken;                /* may be called through a pointer */
    uint64_t address;                  /* its value as a pointer */
    uint32_t return_at;                /* functions: offset of the results among the bytes of a call */
    struct sim_frame *frame;           /* in the kernel lowered last */
    struct sim_kernel *kernel;         /* entries */
} sim_function;

typedef struct sim_chunk { struct sim_chunk *next; size_t used, size; } sim_chunk;

typedef struct sim_module {
    struct sim_handle *handle;
    struct sim_module *next;           /* of the context */
    struct sim_library *library;       /* that it belongs to */
    bool part;                         /* an input of a link: another input may define what is missing */
    struct sim_context *context;
    sim_chunk *memory;                 /* everything parsed lives here */
    char *text;                        /* a copy of the source, for the lines in reports */
    size_t text_length;
    const char **lines; uint32_t line_count;
    struct sim_places *places;         /* check.c */
    uint32_t version, target; char target_suffix;
    bool address64, debug;
    sim_function *functions, **functions_tail;
    sim_symbol *variables, **variables_tail;
    sim_symbol **buckets; uint32_t bucket_count;
    uint32_t shared_base;
    char *log; size_t log_length, log_capacity; uint32_t error_count;
    bool fatal, out_of_memory;
    jmp_buf *bail;
    struct sim_lower *lowering;        /* lowering in progress; a fatal error frees what it holds */
} sim_module;

/* Memory of the module, zeroed. When there is none it leaves by m->bail. sim_fatal does not return either. */
void *sim_alloc(sim_module *m, size_t bytes);
void  sim_error(sim_module *m, uint32_t line, const char *format, ...) SIM_PRINTF(3, 4);
void  sim_fatal(sim_module *m, uint32_t line, const char *format, ...) SIM_PRINTF(3, 4);

/* Parses and compiles text (length without the NUL).  Returns a CUresult; *out is set on success only. */
int  sim_module_load(struct sim_context *context, const char *text, size_t length, char *log, size_t log_size,
                     sim_module **out);
int  sim_module_check(struct sim_context *context, const char *text, size_t length, char *log, size_t
    log_size);
void sim_module_free(sim_module *m);
void sim_parse(sim_module *m);                                /* parse.c */
void sim_lower_module(sim_module *m);                         /* lower.c */
int  sim_variable_kind(const sim_symbol *y);                  /* MEM_ of the variable's memory */
void sim_lower_abandon(sim_module *m);

/* --- instruction forms ------------------------------------------------------------------------ */

typedef enum sim_class {
    C_INT,
    C_FLOAT,
    C_HALF,
    C_DOUBLE,
    C_CONVERT,
    C_MOVE,
    C_CONTROL,
    C_MEMORY,
    C_SPECIAL,
    C_WARP,
    C_TENSOR,
    C_COUNT
} sim_class;

struct sim_lower;
typedef void (*sim_lower_fn)(struct sim_lower *lw, const sim_statement *s);

typedef struct sim_form {
    const char *name;                  /* opcode and the modifiers that choose the form: "mul.wide" */
    const char *types;                 /* "u32|s32.f32": alternatives of each type position; "" for none */
    const char *mods; /* "rnd! ftz? sat?": groups or names joined by '|'; ! needed, ? allowed */
    const char *args;                  /* operands, see isa.c; "" where `lower` checks them itself */
    uint8_t version, target;           /* first .version times ten and first sm_ */
    uint8_t cls;
    sim_lower_fn lower;                /* NULL: the lane operation below */
    int op, op_ftz, op_any;            /* OP_ of lanes.def: no modifiers; .ftz alone; others */
    uint8_t sub, lanes;                /* further fields of the decoded instruction: i->op, i->count, */
    int32_t imm;                       /* i->imm, */
    uint32_t x;                        /* i->x */
} sim_form;

const sim_form *sim_find_form(sim_module *m, sim_statement *s, char *shown, size_t shown_size);
bool sim_opcode_known(const char *opcode);

/* --- code ------------------------------------------------------------------------------------- */

struct sim_warp; struct sim_ins;
typedef void (*sim_handler)(struct sim_warp *w, const struct sim_ins *i, uint32_t mask);

/* How exec.c executes an instruction: what it does before, after or instead of the handler. */
typedef enum sim_flow {
    F_PLAIN,
    F_MEMORY,
    F_BRANCH,
    F_EXIT,
    F_SYNC,
    F_BARRIER,
    F_ARRIVE,
    F_TRAP,
    F_INDEXED,
    F_YIELD,
    F_CALL,
    F_RETURN,
    F_WAIT                             /* the handler sets w->waiting_lanes: those that wait at this instruction */
} sim_flow;

#define SIM_CONST_BANK 0x80000000u     /* operand slots: bit 31 selects the launch's constant bank */
#define SIM_WIDE       0x40000000u     /* in lists of memory operands: the register has 64 bits */
#define SIM_PRED_NOT   0x80000000u     /* predicate operands: bit 31 negates */

/* Bits of sim_ins.x. race.h and texture.h define further meanings for their instructions, on the same bits. */
enum {
    X_FTZ = 1,
    X_SAT = 2,
    X_RELU = 4,
    X_NAN = 8,
    X_XORSIGN = 16,
    X_ABS = 32,
    X_SATFINITE = 64,
    X_OOB = 128,
    X_ROUND_SHIFT = 8,
    X_ROUND = 7 << 8,
    X_CMP_SHIFT = 12,
    X_CMP = 31 << 12,
    X_BOOL_SHIFT = 18,
    X_BOOL = 3 << 18,
    X_SIGNED = 1 << 20,
    X_CC = 1 << 21,
    X_ALIGNED = 1 << 22,
    X_CARRY = 1 << 23,
    X_INTROUND = 1 << 24,
    X_BF16 = 1 << 25,
    X_VOLATILE = 1 << 26,
    X_NC = 1 << 27,                    /* loads: .nc, memory that nothing writes while the kernel runs */
    X_PARAM = 1 << 28,                 /* loads: a parameter or result of a call */
    X_CLUSTER = 1 << 17                /* shared::cluster: may address another block's memory */
};
enum { R_RN, R_RZ, R_RM, R_RP, R_RNA };
enum {
    CMP_EQ,
    CMP_NE,
    CMP_LT,
    CMP_LE,
    CMP_GT,
    CMP_GE,
    CMP_EQU,
    CMP_NEU,
    CMP_LTU,
    CMP_LEU,
    CMP_GTU,
    CMP_GEU,
    CMP_NUM,
    CMP_NAN
};
enum { BOOL_NONE, BOOL_AND, BOOL_OR, BOOL_XOR };

#define SIM_WATCH_PAST_BARRIER 0x80000000u /* in sim_ins.watch: `behind` is set */

typedef struct sim_ins {
    sim_handler fn;
    uint32_t d, a, b, c;               /* slots (of 32 uint32_t); predicates: their index */
    uint32_t e, q;                     /* a fourth source; a second destination (predicate index + 1, 0: none) */
    int64_t  imm;                      /* address offset, branch target */
    uint32_t x;                        /* X_ bits */
    uint32_t line;
    uint16_t guard; bool guard_negate; /* predicate index */
    uint8_t  flow, cls;
    uint8_t  size, count, space;       /* memory: bytes of an element, elements, state space */
    uint8_t width; /* memory: register width in slots (1: 32 bits, 2: 64 bits); other instructions: various */
    uint8_t  op;                       /* sub-operation */
    uint8_t  type;
    uint8_t  last;                     /* 1: counts as an instruction of the program (helper instructions do not) */
    uint32_t list;                     /* vectors: where their slots begin in kernel->lists */
    uint32_t watch;                    /* registers check: index + 1 into kernel->watches */
    uint32_t past_barrier;             /* barriers check: index + 1 into kernel->past_barrier; watch
                                          has SIM_WATCH_PAST_BARRIER */
} sim_ins;

typedef enum sim_special {
    SR_TID_X = 1,
    SR_TID_Y,
    SR_TID_Z,
    SR_NTID_X,
    SR_NTID_Y,
    SR_NTID_Z,
    SR_CTAID_X,
    SR_CTAID_Y,
    SR_CTAID_Z,
    SR_NCTAID_X,
    SR_NCTAID_Y,
    SR_NCTAID_Z,
    SR_LANEID,
    SR_WARPID,
    SR_NWARPID,
    SR_SMID,
    SR_NSMID,
    SR_GRIDID,
    SR_LANEMASK_EQ,
    SR_LANEMASK_LE,
    SR_LANEMASK_LT,
    SR_LANEMASK_GE,
    SR_LANEMASK_GT,
    SR_CLOCK,
    SR_CLOCK_HI,
    SR_CLOCK64,
    SR_GLOBALTIMER,
    SR_GLOBALTIMER_LO,
    SR_GLOBALTIMER_HI,
    SR_TOTAL_SMEM,
    SR_DYNAMIC_SMEM,
    SR_AGGR_SMEM,
    SR_ZERO,
    SR_ONE,
    SR_ZERO64,
    SR_PRED_ZERO,
    SR_RESERVED_BEGIN,
    SR_RESERVED_END,
    SR_RESERVED_CAP,
    SR_RESERVED_OFFSET,
    SR_CLUSTERID_X,
    SR_CLUSTERID_Y,
    SR_CLUSTERID_Z,
    SR_NCLUSTERID_X,
    SR_NCLUSTERID_Y,
    SR_NCLUSTERID_Z,
    SR_CLUSTER_CTAID_X,
    SR_CLUSTER_CTAID_Y,
    SR_CLUSTER_CTAID_Z,
    SR_CLUSTER_NCTAID_X,
    SR_CLUSTER_NCTAID_Y,
    SR_CLUSTER_NCTAID_Z,
    SR_CLUSTER_CTARANK,
    SR_CLUSTER_NCTARANK,
    SR_EXPLICIT_CLUSTER,
    SR_ENVREG,
    SR_COUNT = SR_ENVREG + 32
} sim_special;

typedef struct sim_slot_fill { uint16_t special; uint32_t slot; } sim_slot_fill;
typedef struct sim_param_fill {
    uint32_t slot, offset;
    uint8_t size;
    bool sign;
    uint8_t width;
} sim_param_fill;
typedef struct sim_const_fill { uint32_t slot; uint8_t width; uint64_t value; } sim_const_fill;
typedef struct sim_shared_symbol { const char *name; uint32_t offset, size; } sim_shared_symbol;

typedef struct sim_watch_entry {
    uint32_t code, watched;
    const char *name;
    uint32_t slot;
    bool pred, write, guard, wgmma;    /* wgmma: a register that wgmma or tcgen05.ld holds */
} sim_watch_entry;

/* A function in a kernel's code. Its variables have fixed places in local memory, or, if a thread may have more
 * than one call of it open, frames on the thread's stack. */
typedef struct sim_routine {
    const sim_function *function;
    uint32_t pc;
    uint32_t slot_lo, slot_hi, pred_lo, pred_hi, watch_lo, watch_hi; /* its registers */
    uint32_t pair_lo, pair_hi;         /* its 64-bit registers: range of kernel->pairs */
    uint32_t base, local_lo, local_hi; /* at fixed places: parameters and results; variables */
    uint32_t abi_bytes, frame_bytes;   /* parameters and results; the whole frame */
    bool on_stack, reenters;
} sim_routine;

typedef struct sim_kernel {
    uint32_t magic;
    const sim_function *function; sim_module *module;
    sim_ins *code; uint32_t code_count, code_capacity;
    uint32_t *lists; uint32_t list_count, list_capacity;
    uint32_t reg_slots;                /* registers of a warp, in slots */
    uint32_t special_slots;            /* special registers, first in the bank; a new block does not clear them */
    uint32_t preds;
    uint32_t const_slots; uint32_t *const_bank;
    sim_slot_fill *specials, *launch_specials; uint32_t special_count, launch_special_count;
    sim_param_fill *params; uint32_t param_fill_count;
    sim_const_fill *consts; uint32_t const_fill_count;
    uint32_t local_bytes, static_shared, shared_base, dynamic_align;
    sim_shared_symbol *shared_symbols; uint32_t shared_symbol_count;
    bool clear_registers;              /* some path may read a register before it is written */
    uint32_t watch_count, watch_entry_count; /* registers.c: watched registers, and the instructions that touch them */
    struct sim_watch_entry *watches;
    uint32_t *barrier_sites, barrier_site_count;         /* barriers.c: the aligned barriers, and */
    struct sim_past_barrier *past_barrier; uint32_t past_barrier_count; /* the first instructions behind each */
    struct sim_uses_of *statements; uint32_t statement_capacity;      /* unwritten.c */
    struct sim_use *uses; uint32_t use_count, use_capacity;
    struct sim_narrow *narrow; uint32_t narrow_count;
    uint8_t *slot_bytes, *unread;
    bool broken_uses;                  /* `uses` is incomplete: out of memory */
    uint32_t wgmma_first, wgmma_count; /* tensor.c: watches of registers that wgmma holds */
    uint32_t max_dynamic_shared;       /* cuFuncSetAttribute */
    uint32_t most_registers;           /* the largest operand of its setmaxnreg.inc */
    uint32_t entry;                    /* pc of its first instruction: the functions that it calls lie before */
    sim_routine *routines; uint32_t routine_count;
    uint32_t *pairs; uint32_t pair_count; /* the first slots of 64-bit registers, in order */
    uint32_t local_fixed;              /* bytes of local memory below the stack; local_bytes is the total */
    uint32_t stack_pointer, frame_pointer, stack_align, call_room;
    bool has_calls, uses_stack;
    bool cannot_undo;                  /* it prints or allocates: a launch cannot be undone (race.c) */
    bool uses_reserved;                /* it uses the shared memory that CUDA reserves (%reserved_smem_*) */
    bool tensor_memory;                /* it uses tcgen05 */
    uint8_t tensor_group;              /* cta_group of its tcgen05 instructions: 1, 2; 0: none seen yet */
    bool bulk_stores;                  /* bulk copies, wgmma or tcgen05 read shared memory: check proxy fences */
    bool clocks;                       /* fences, acquires or releases order its accesses: needs vector clocks */
    bool triggers;                     /* griddepcontrol.launch_dependents */
    bool surface_stores;               /* sust, sured: textures may change while it runs */
    bool dynamic_set;
    int carveout, cluster_flags[2];
    struct sim_handle *handle, *kernel_handle;
} sim_kernel;

void sim_kernel_free(sim_kernel *k);

/* --- devices, contexts, memory ---------------------------------------------------------------- */

/* Peak rates of an SM in a clock: thread instructions by class, f16 multiply-adds of the tensor cores, bytes
 * between SM and L2. For the profile's estimate. */
typedef struct sim_rates { uint16_t fp32, fp64, half, integer, special, tensor, l2_bytes; } sim_rates;

typedef struct sim_device {
    const char *name; uint32_t sm; char suffix;
    uint32_t sm_count, shared_per_sm, shared_optin, threads_per_sm, blocks_per_sm, clock_khz,
        memory_clock_khz, bus_bits, l2_bytes;
    uint64_t memory;
    char text[64];
    uint32_t registers_per_sm, bandwidth_gb;
    sim_rates rates;
} sim_device;
const sim_device *sim_the_device(void);
const char *sim_device_problem(void);
uint64_t sim_device_memory(void);

typedef enum sim_memory_kind { MEM_DEVICE, MEM_HOST, MEM_MODULE, MEM_CONST, MEM_ARRAY } sim_memory_kind;

typedef struct sim_allocation {
    uint64_t base, size;
    uint8_t *host, *shadow;            /* shadow: one bit for each byte, set when the byte was written */
    size_t host_mapped, shadow_mapped;
    bool freed, owned_by_caller, managed, freed_later;
    bool surfaced;                     /* an array that a surface object was created from */
    bool of_graph, graph_live;         /* of a graph's alloc node; allocated, in the order of calls */
    uint8_t kind;
    unsigned flags;                    /* of cuMemHostAlloc, cuMemHostRegister */
    uint16_t entry; uint64_t call;     /* the driver call that made it */
    struct sim_pool *pool;
    struct sim_uses *uses;             /* order.c */
    atomic_bool padded;                /* a copy brought bytes here that nothing had written */
    atomic_uchar widest;               /* largest element that a kernel has stored here */
    uint64_t written_at;
    const char *label;                 /* module variables */
    uint64_t serial;
    struct sim_context *context;
    _Atomic(_Atomic(struct sim_race_page *) *) races;         /* race.c: page by KB, while a kernel runs */
} sim_allocation;

int sim_memory_alloc(struct sim_context *c, uint64_t size, int kind, const char *label, sim_allocation **out);
int  sim_memory_free(uint64_t base, int kind);
void sim_memory_of_graph(sim_allocation *a);       /* makes it memory of a graph, asleep */
void sim_memory_sleep(sim_allocation *a);          /* memory of a graph is freed; it may be allocated again */
void sim_memory_wake(sim_allocation *a);           /* it is allocated again, with nothing written */
uint64_t sim_graph_memory(int attribute);          /* used, highest use, reserved, highest reserved */
void sim_graph_memory_reset(int attribute);
int  sim_memory_register(struct sim_context *c, void *host, uint64_t size, sim_allocation **out);
/* Device memory in a mapping of the caller, which it takes over. All of it counts as written. */
int  sim_memory_adopt(struct sim_context *c, void *mapped, uint64_t size, sim_allocation **out);
sim_allocation *sim_memory_at(uint64_t address);   /* as sim_memory_find, but freed ones too */
/* The next allocation of a context; begin with *at = 0. NULL at the end. */
sim_allocation *sim_memory_next(const struct sim_context *c, uint32_t *at);
void sim_memory_free_context(struct sim_context *c);
sim_allocation *sim_memory_find(uint64_t address); /* the live allocation that holds this byte, or NULL */
void sim_memory_describe(uint64_t address, uint64_t size, char *out, size_t cap);
uint64_t sim_memory_used(void);
void sim_memory_release_all(void);

/* Other workers may set bits of the same shadow byte meanwhile. */
#if defined(__GNUC__)
static inline uint8_t sim_shadow_byte(const uint8_t *p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
#else
static inline uint8_t sim_shadow_byte(const uint8_t *p) { return *p; }
#endif
static inline bool sim_shadow_all(const uint8_t *shadow, uint64_t offset, uint64_t bytes)
{
    shadow += offset >> 3;
    uint32_t at = (uint32_t)offset & 7;
    if (at && bytes) {
        uint32_t n = bytes < 8 - at ? (uint32_t)bytes : 8 - at, need = ((1u << n) - 1) << at;
        if ((sim_shadow_byte(shadow++) & need) != need) return false;
        bytes -= n;
    }
    for (; bytes >= 8; bytes -= 8) if (sim_shadow_byte(shadow++) != 0xff) return false;
    return !bytes || (sim_shadow_byte(shadow) & ((1u << bytes) - 1)) == (1u << bytes) - 1;
}
void sim_shadow_set(uint8_t *shadow, uint64_t offset, uint64_t bytes);
void sim_shadow_clear(uint8_t *shadow, uint64_t offset, uint64_t bytes);

typedef struct sim_context {
    struct sim_handle *handle;
    struct sim_context *next;
    sim_module *modules;
    int sticky;                        /* the error of a faulting kernel */
    uint32_t references; bool primary;
    struct sim_stream *streams; struct sim_event *events; struct sim_link *links;
    struct sim_stream *legacy;
    struct sim_graph *graphs; struct sim_exec *execs;
    struct sim_library *libraries;
    struct sim_pool *pools;
    struct sim_capture *captures;
    uint64_t pending;                  /* pieces of work that are queued */
    uint64_t id;
    unsigned flags;
    int cache_config, shared_config;
    size_t limits[10];
    uint64_t grid_workspace;           /* grid barrier: where %envreg1:%envreg2 of a cooperative launch point */
} sim_context;

/* --- running ---------------------------------------------------------------------------------- */

typedef struct sim_options {
    int bounds, align, uninitialised, registers, barriers, sync_masks, threads, quiet, watchdog;
    int stack, heap, fifo;             /* bytes: a thread's stack, the device heap, vprintf's FIFO */
    int perturb, contract, exact_sums; /* perturb.c, contract.c, tensor_sum.c; read when a module is loaded */
    int suspects;
    int budget, profile, barrier_places;
    int races, race_strict, async, seed; /* seed: -1: that of PTXSIM_SEED */
} sim_options;
extern sim_options sim_option;

enum { SIM_ERROR_AGAIN = -1 };        /* a finding: undo the launch and run it with one worker (race.c) */
enum { SIM_CODE_OK = 0, SIM_ERROR_ILLEGAL_ADDRESS = 700, SIM_ERROR_TIMEOUT = 702, SIM_ERROR_MISALIGNED = 716,
       SIM_ERROR_LAUNCH_FAILED = 719, SIM_ERROR_ASSERT = 710, SIM_ERROR_ILLEGAL_INSTRUCTION = 715,
       SIM_ERROR_INVALID_PC = 718 };

typedef struct sim_counts {            /* per worker; added up after a launch */
    ptxsim_counters c;
    uint64_t warp[C_COUNT], thread[C_COUNT];
    uint64_t polls;                    /* reads that may be polling for another thread's write */
    uint64_t effective_atomics;        /* atomics that changed memory */
} sim_counts;

typedef struct sim_launch {
    const sim_kernel *kernel;
    sim_context *context;
    uint32_t grid[3], block[3];
    uint32_t threads, warps, dynamic_shared, shared_bytes;
    uint32_t reserved_at;              /* offset of the reserved part of shared memory, if the kernel uses it */
    uint64_t workspace;                /* of a cooperative launch, for grid-wide barriers */
    uint8_t *params; uint32_t param_bytes;
    uint64_t block_count, grid_id;
    uint64_t limit_ns;                 /* the watchdog's; 0: none (pace.c) */
    uint64_t begun_ns, progress_ns;    /* worker 0: when it began, when it last printed its progress */
    atomic_ullong *late;               /* by worker: 1 when it is over the time limit */
    atomic_bool asleep;                /* the helper threads have not been woken yet */
    atomic_ullong next_block;          /* in units of cluster_size blocks */
    atomic_int error;
    uint32_t resident_limit;
    uint64_t launch_serial;
    struct sim_output *output;         /* what blocks that ended have printed (library.c) */
    struct sim_profile *profile;       /* NULL: not profiled */
    bool profile_lines;
    atomic_ullong issued;              /* warp instructions, counted while there is a budget */
    uint32_t cluster[3], cluster_size; /* in blocks; a unit of work is a cluster */
    bool explicit_cluster;
    bool races;                        /* check for races */
    uint32_t seed;                     /* random order; 0: blocks and warps in turn, lowest path first */
    uint64_t stride;                   /* of the random order: unit n is n * stride + seed */
    atomic_ullong suspect_ns;          /* when it becomes suspected of spinning for ever; 0: not set */
    atomic_bool suspect;
    atomic_ullong changes;             /* of memory, counted while it is suspected */
    atomic_ullong *quiet;              /* by worker: `changes` + 1 at which all its blocks repeat their state */
    uint32_t workers;
    bool cooperative;
    struct sim_touches *touches;       /* order.c: not NULL: record the ranges that the kernel touches */
    struct sim_grid *in_flight;        /* dependents.c: NULL: griddepcontrol does not concern it */
} sim_launch;

/* Whether every block has begun. Clusters begin as a whole. */
static inline bool sim_all_begun(const sim_launch *l)
{ return atomic_load(&l->next_block) >= l->block_count / l->cluster_size; }

typedef struct sim_lane_stack { uint32_t *words, used, capacity; } sim_lane_stack;

typedef enum sim_path_state { P_RUN, P_SYNC, P_BARRIER, P_WAIT } sim_path_state;
typedef struct sim_path { uint32_t pc, mask; uint8_t state, barrier; bool force; uint32_t turn; } sim_path;

typedef struct sim_warp {
    uint32_t *bank[2];                 /* registers, constants */
    uint32_t *p;                       /* predicates, one mask each */
    uint32_t *watch;                   /* by watched register: lanes that have written it */
    uint32_t *scratch;
    uint32_t cc;                       /* carry flags */
    bool     wgmma_fenced, wgmma_open; /* tensor.c: wgmma.fence executed; an uncommitted group is open */
    uint32_t wgmma_groups, wgmma_done; /* groups committed, and known to be complete */
    const struct sim_ins *wgmma_last;
    uint32_t pc, active, live, index;
    uint32_t backward;                 /* number of times a running path was put back; time stamp of path.turn */
    uint32_t picks;                    /* random draws among paths, with a seed */
    uint64_t passed;                   /* barriers that the warp has reached: bit is the barrier's number mod 64 */
    uint64_t spin_state, spin_changes; /* barriers.c: hash of an earlier state; launch->changes + 1 then */
    uint32_t spin_age, spin_limit;
    uint64_t turns, spin_turns;        /* turns of the warp; their number when spin_state was taken */
    bool     spin_repeats;
    bool     fault, force, waits;      /* waits: a path may be parked (P_WAIT) */
    bool     unwritten;                /* some register holds an unwritten value (unwritten.c) */
    bool     yielded;                  /* a path executed nanosleep while the warp had others */
    bool     left;                     /* some lanes exited while others went on */
    uint32_t waiting_lanes, events;    /* F_WAIT: lanes that wait; the cluster's event count when they were parked */
    uint32_t grid_waited, grid_wait_era; /* dependents.c: lanes that have executed griddepcontrol.wait; era */
    bool     grid_unsafe;              /* it executed launch_dependents before that */
    uint32_t cluster_now, cluster_done; /* lanes that have arrived at the cluster's barrier; that may pass it */
    const struct sim_ins *last_try_wait[SIM_LANES]; /* by lane: its last try_wait, if that was false */
    uint32_t path_count;
    sim_path paths[SIM_LANES + 1];
    struct sim_block *block;
    struct sim_worker *worker;
    const sim_kernel *kernel;
    sim_launch *launch;
    uint64_t issued;
    sim_lane_stack *calls;             /* for each lane: return addresses of its open calls (calls.c) */
} sim_warp;

typedef struct sim_barrier {
    uint32_t expected;
    uint32_t arrived_warps;
    bool active, reduces;
    const sim_ins *first;              /* the instruction that reached it first */
    uint32_t popc;
    bool all, any;
} sim_barrier;

typedef struct sim_block {
    struct sim_worker *worker;
    sim_launch *launch;
    uint32_t ctaid[3];
    sim_warp *warps; uint32_t warp_count, live_warps;
    uint8_t *shared, *shared_shadow; uint32_t shared_lo, shared_hi, shared_capacity;
    uint8_t *local, *local_shadow; uint32_t local_bytes; size_t local_capacity;
    sim_barrier barriers[16];
    uint32_t *barrier_masks;           /* [barrier][warp]: lanes that arrived */
    struct sim_barrier_use *uses;      /* by barrier (barriers.c) */
    uint32_t *past_barrier; size_t past_barrier_capacity; /* [site][warp]: lanes behind that barrier */
    uint32_t *registers, *predicates, *watch; size_t register_capacity, predicate_capacity, watch_capacity;
    uint32_t warp_capacity;
    uint64_t clock, rounds, quiet, unchanged_since;
    uint32_t unchanged_rounds;         /* rounds without a change of memory, while the launch is suspected */
    uint64_t configured;               /* launch_serial for which the special slots are filled */
    bool done, ended, idle;            /* idle: nothing ran, and some path waits for an event */
    bool polls;                        /* the last round did nothing but poll */
    bool watched;                      /* bulk.c must see accesses to its shared memory */
    struct sim_cluster *cluster, *own; uint32_t rank;
    struct sim_mbarrier_record *mbarriers; uint32_t mbarrier_count, mbarrier_capacity;
    struct sim_proxy *proxy;           /* bulk.c: last generic-proxy writer of each word */
    struct sim_operand_reads *operands;    /* operands.c: what wgmma and tcgen05 may still read */
    uint32_t *groups; uint32_t group_capacity;   /* bulk groups committed by each thread */
    struct sim_tensor_memory *tensor;  /* NULL until a launch uses tcgen05 */
    struct sim_group_log *group_logs; uint32_t group_log_count; bool group_logs_used;    /* warpgroup.c */
    struct sim_register_pool *pool; bool pool_used;      /* setmaxnreg: registers_pool.c */
    struct sim_remote *remote; uint32_t remote_ranks;   /* by rank: last access from another block */
    struct sim_race_block *race;       /* NULL until a launch checks for races */
    struct sim_async *async;           /* cp.async copies in flight; NULL until there is one */
    sim_lane_stack *calls; uint32_t call_stacks;
    struct sim_unwritten *unwritten;   /* NULL until a warp reads an unwritten value */
    char *printed; size_t printed_length, printed_capacity;
} sim_block;

typedef struct sim_worker {
    uint32_t *scratch;                 /* 32 x 16 bytes: where masked operations write first */
    sim_counts counts;
    sim_allocation *cached;            /* the allocation of the last global access */
    struct sim_touches *touches;       /* order.c */
    sim_block **blocks; uint32_t block_capacity, open;
    uint32_t index;
    uint32_t poll_turns;               /* turns in a row in which its blocks only polled */
    uint64_t slept_ns, watched_from, work_since_check; /* pace.c; unwatched: work since it last read the clock */
    struct sim_profile_part *profile;  /* NULL: not profiled */
} sim_worker;

int  sim_launch_run(sim_launch *l);                           /* returns a CUresult; synchronous */
void sim_exec_shutdown(void);
void sim_warp_fault(sim_warp *w, int code);
void sim_watch(sim_warp *w, const sim_ins *i, uint32_t active, uint32_t m);
void sim_wgmma_touch(sim_warp *w, const sim_ins *i, const sim_watch_entry *e, uint32_t m);

/* The index of a lane's thread in its block. */
static inline uint32_t sim_thread_of(const sim_warp *w, uint32_t lane) { return w->index * SIM_LANES + lane; }
static inline uint32_t *sim_slot(const sim_warp *w, uint32_t s)
{
    return w->bank[s >> 31] + (size_t)(s & 0x7fffffffu) * SIM_LANES;
}
static inline uint64_t *sim_slot64(const sim_warp *w, uint32_t s)
{
    return (uint64_t *)(void *)sim_slot(w, s);
}
static inline uint32_t sim_pred(const sim_warp *w, uint32_t o)
{ return w->p[o & ~SIM_PRED_NOT] ^ (uint32_t)-(int32_t)(o >> 31); }
static inline void sim_pred_write(sim_warp *w, uint32_t p, uint32_t value, uint32_t mask)
{ w->p[p] = (w->p[p] & ~mask) | (value & mask); }
static inline uint32_t sim_popcount(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return ((x + (x >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
#if defined(__GNUC__)
static inline uint32_t sim_lowest(uint32_t x) { return (uint32_t)__builtin_ctz(x); }     /* x is not 0 */
#else
static inline uint32_t sim_lowest(uint32_t x) { uint32_t n = 0; while (!(x & 1)) { x >>= 1; n++; } return n; }
#endif
#define SIM_EACH_LANE(lane, mask) \
    for (uint32_t left_ = (mask), lane; left_ && (lane = sim_lowest(left_), 1); left_ &= left_ - 1)

/* lanes.def: one handler for each operation, compiled for the best level that this CPU has */
enum {
#define L(name, dst, a, b, c, expr) OP_##name,
#define P(name, slot, read) OP_##name,
#define G(name) OP_##name,
#include "lanes.def"
#undef L
#undef P
#undef G
    OP_COUNT
};
enum { SIM_NO_OP = -1 };
sim_handler sim_op_handler(int op);

/* memory.c: accesses of one thread, with the checks of ld and st */
typedef enum sim_access { SIM_READ, SIM_WRITE, SIM_UPDATE } sim_access;
static inline bool sim_accesses_conflict(int a, int b)
{ return a == SIM_WRITE || b == SIM_WRITE || (a == SIM_UPDATE) != (b == SIM_UPDATE); }
void sim_combine(const sim_ins *how, uint8_t *p, uint32_t size, uint64_t value, bool global);
uint8_t *sim_reach(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, sim_space space,
                   uint32_t bytes, sim_access access);
bool sim_aligned_all(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, uint32_t align);
bool sim_reach_all(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, sim_space space,
                   uint32_t bytes, uint32_t align, sim_access access, uint8_t **where);

/* memory.c, warp.c: handlers that lower.c names */
void sim_ld(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_st(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_cache_line(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_atom(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_cp_async(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_cvta(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_isspacep(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_check_whole_warp(sim_warp *w, const sim_ins *i, uint32_t m);
void sim_nop(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_shfl(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_vote(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_match(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_redux(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_elect(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_activemask(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_clock(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_pred_logic(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_vector_mov(sim_warp *w, const sim_ins *i, uint32_t mask);

/* calls.c */
bool sim_launch_prepare(sim_launch *l, bool cooperative);
void sim_limit(int limit, uint64_t value); /* CU_LIMIT_: 0 stack, 1 FIFO of vprintf, 2 heap */
bool sim_call(sim_warp *w, const sim_ins *i, uint32_t *mask, uint32_t pc, uint32_t *target);
uint32_t sim_return(sim_warp *w, uint32_t *mask);
bool sim_calls_begin(sim_block *b, uint32_t warps);
void sim_calls_free(sim_block *b);
void sim_local_begin(sim_block *b, const sim_kernel *k, uint32_t threads);
void sim_copy_local(sim_warp *w, const sim_ins *i, uint32_t mask);
void sim_alloca(sim_warp *w, const sim_ins *i, uint32_t mask);

/* library.c: the functions that CUDA links to every program */
sim_handler sim_library_function(const char *name, uint32_t *params, uint32_t *returns);
void sim_output_block(sim_block *b);   /* moves the text that the block printed to its launch, */
void sim_output_launch(sim_launch *l); /* from there in block order to the FIFO, */
void sim_output_flush(bool to_stdout); /* from there to stdout, when the host synchronises */
sim_allocation *sim_heap_find(uint64_t address);
bool sim_heap_describe(uint64_t address, char *out, size_t cap);
void sim_heap_release(struct sim_context *c);
#define SIM_HEAP_BASE  UINT64_C(0x380000000000)
#define SIM_HEAP_SPAN  UINT64_C(0x080000000000)
enum { SIM_RESERVED_SHARED = 512 };
#define SIM_CODE_BASE  UINT64_C(0x7e0000000000)

enum { A_ADD, A_MIN, A_MAX, A_INC, A_DEC, A_AND, A_OR, A_XOR, A_EXCH, A_CAS };

/* --- findings --------------------------------------------------------------------------------- */

void sim_report_at(sim_warp *w, const sim_ins *i, const char *kind, uint32_t lane, const char *format, ...)
    SIM_PRINTF(5, 6);
enum { SIM_LINE_TEXT = 340 };
const char *sim_line_text(const sim_module *m, uint32_t line, char out[SIM_LINE_TEXT]); /* "line 12, file.c:34" */
void sim_places_free(struct sim_places *x);
void sim_report_host(const char *kind, const char *format, ...) SIM_PRINTF(2, 3);
void sim_host_read(uint64_t address, uint64_t size); /* reports what the host reads unwritten */

/* --- profile.c: one record for each launch while the option is on ----------------------------- */

void sim_profile_begin(sim_launch *l);                        /* sets l->profile */
void sim_profile_join(sim_worker *w, sim_launch *l);          /* a worker starts counting, ... */
void sim_profile_leave(sim_worker *w, sim_launch *l);         /* ... and adds its counts to the record */
void sim_profile_end(sim_launch *l);
void sim_profile_line(sim_worker *w, uint32_t pc, bool counts, uint32_t mask);
void sim_profile_touch(struct sim_profile_part *p, const uint64_t *at, uint32_t mask, uint32_t bytes,
                       bool contiguous, sim_access access);

void sim_count_add(ptxsim_counters *to, const sim_counts *c);
void sim_count_merge(const sim_counts *c);
void sim_count_restore(const ptxsim_counters *to);
extern pthread_mutex_t sim_count_lock;
uint64_t sim_now_ns(void);
void sim_contexts_revive(void);
void sim_driver_set(const char *option, int value);
void sim_touch(sim_warp *w, const sim_ins *i, sim_allocation *a, const uint64_t *at, uint32_t m,
               uint32_t bytes, sim_access access);
void sim_order_freed(sim_allocation *a);
void sim_touch_merge(sim_worker *w, sim_launch *l);
struct sim_touches *sim_touches_new(void);
void sim_touches_free(struct sim_touches *t);

SIM_PRIVATE_END
#endif
