/* ptxgen.h - v0.2.0 - NVIDIA PTX built at run time from C. Public domain or MIT, at your choice.

   WHAT   A typed, checked builder of PTX, the assembly language that every NVIDIA driver compiles. No nvcc,
          no LLVM, no CUDA toolkit; nothing but the C standard library. ptxgen_kernels.h (ready kernels) and
          ptxgen_cuda.h (loading and launching through the driver) stand on this header and are optional.
   DO     In exactly one C or C++ file:   #define PTXGEN_IMPLEMENTATION
                                          #include "ptxgen.h"
          Everywhere else include it plainly.

   A whole kernel, y[i] = a * x[i] + y[i]:

       ptx_module *m = ptx_module_new(NULL);                   // sm_75, malloc
       ptx_kernel *k = ptx_entry(m, "saxpy");
       ptx_val x = ptx_param_ptr(k, "x", PTX_GLOBAL);
       ptx_val y = ptx_param_ptr(k, "y", PTX_GLOBAL);
       ptx_val a = ptx_param(k, "a", PTX_F32);
       ptx_val n = ptx_param(k, "n", PTX_U32);
       ptx_val i = ptx_global_x(k);
       ptx_if(k, ptx_setp(k, PTX_LT, i, n));
           ptx_val xi = ptx_ld_elem(k, PTX_F32, x, i);
           ptx_mem yi = ptx_elem(k, PTX_F32, y, i);
           ptx_st(k, PTX_F32, yi, ptx_fma(k, a, xi, ptx_ld(k, PTX_F32, yi)));
       ptx_end(k);
       ptx_ret(k);
       const char *text = ptx_text(m, NULL);                   // NULL: ptx_get_error(m)->message says why

   INDEX  (search for the tag; all three headers have the same tags, but only ptxgen.h has [MATH])
     [MANUAL]     concepts, rules, limits
     [CONFIG]     macros that you may define before including
     [ERRORS]     the catalogue: one line makes the code, its name and its meaning
     [TYPES]      operands, handles, descriptions
     [TABLE]      modifiers and the instruction table, the only place with facts about an instruction
     [INTERFACE]  functions, and the macros that are their everyday form
     [SUPPORT]    implementation: memory, errors, text
     [CORE]       implementation: record, control flow, verify, print
     [MATH]       implementation: mathematics, a formula for each function
     [LICENSE]

   [MANUAL]
   MODULE, KERNEL  A ptx_module owns its kernels, their text and the error. ptx_entry() starts a kernel;
          several may be open at the same time. There is no global state. Any number of modules may exist;
          only one thread at a time may use a module.
   VALUES  A ptx_val is a typed operand, a handle of 8 bytes that is passed by value. It is a register that
          one instruction writes, or an immediate: ptx_f32(1.5), ptx_u32(7). ptx_imm(7) is an integer that
          takes the type of its operand slot. A C number is not an operand: write ptx_add(k, x, ptx_imm(1)).
          A value never changes, so all copies of a handle mean the same number. A handle has 55 bits for an
          immediate; a 64-bit number that needs more is refused where it is used: make it with
          ptx_wide(k, PTX_U64, bits). A handle of another kernel is refused. Handles carry a tag of 16 bits of
          their kernel (8 if ptx_off made them), so one such mistake in 65,536 (256) is not detected.
   VARIABLES  A ptx_var can be written again: v = ptx_var_new(k, init); ptx_set(k, v, x) writes it. The result
          of ptx_get(k, v) is its value at that point, which later writes do not change.
   TYPES  The type of a result follows from the operands. The operands of an addition have the same type; a
          mismatch is an error that names both. ptx_cvt(k, PTX_F32, x) converts. ptx_as(x, PTX_S32) reads the
          same bits as another type of that width and emits nothing. A value of an untyped-bits type
          (PTX_B32 ...) is accepted for every type of its width.
   ADDRESSES  An address has a state space: that given to ptx_param_ptr(), shared for ptx_shared(); address
          arithmetic keeps it. An address loaded from memory is generic; ptx_ptr(p, PTX_GLOBAL) declares its
          space. ptx_at(p, 16) is the memory operand [p+16]; ptx_with(ptx_at(p, 0), PTX_NC) adds modifiers.
   ARRAYS, STRUCTS  ptx_ld_elem(k, PTX_F32, p, i) reads p[i], ptx_st_elem(k, PTX_F32, p, i, x) writes it, and
          ptx_elem(k, PTX_F32, p, i) is its memory operand. For a field of a C struct, particle.mass:
          ptx_ld_field(k, PTX_F32, p, particle, mass), ptx_st_field(k, PTX_F32, p, particle, mass, x); its
          address is ptx_field(p, particle, mass). ptx_ptr_add(k, p, i, n) is the address of p[i] where an
          element has n bytes.
   MODIFIERS  ptx_add(k, a, b) is add with its default modifiers (mul.lo, fma.rn, ex2.approx ...). With
          ptx_op2(k, PTX_ADD, PTX_RZ | PTX_FTZ, a, b) the caller chooses the instruction and its modifiers.
   OTHER INSTRUCTIONS  An instruction without a macro of its own is called by its name in the table, with its
          operands in the order of the PTX manual: ptx_op2(k, PTX_MBARRIER_INIT, 0, bar, ptx_imm(1)).
          ptx_opn() is for those with groups of operands, several results or a type that no operand tells, as
          of PTX_VADD. An address as operand stands for [address], ptx_off(address, 16) for [address+16].
          `build/ptxdump --reference` prints the table.
   MACROS  Most functions are called by a macro, which adds the call site. Put parentheses around a compound
          literal of C among its arguments: ((ptx_val[]){a, b}).
   MATHEMATICS  ptx_sin(k, x), ptx_pow(k, x, y) ... have C's names and C's meaning, and an error of at most 2
          units in the last place (erfc, tgamma, lgamma: 4), stated for each function in [INTERFACE]. They
          take f32 and f64; integers have ptx_min, ptx_max, ptx_abs. The hardware's approximations have the
          instruction's name: ptx_ex2, ptx_lg2, ptx_rsqrt, or ptx_sin_approx where C has that name.
   CONTROL  ptx_if / ptx_else / ptx_end; i = ptx_for(k, first, limit, step) ... ptx_end; ptx_loop with
          ptx_while, ptx_break and ptx_continue; labels and branches. ptx_guard(k, p) predicates the one
          instruction after it: compute its operands and addresses before. ptx_ld_if and ptx_st_if access
          memory only where a predicate is true. ptx_selp(k, a, b, p) is p ? a : b, without a branch. A value
          of one branch does not exist after ptx_end(): set a ptx_var in both branches. A C loop around calls
          unrolls: each iteration emits the body. A C `break` or `return` that skips ptx_end() is an error:
          "the scope opened at file:line is not closed".
   SWITCHES  ptx_switch(k, index, n) ... ptx_case(k, 0) ... ptx_default(k) ... ptx_end(k), for up to 512
          cases. A case does not fall through. ptx_brx() is the plain branch through a table.
   ORDER  C does not define the order in which the arguments of a call are evaluated. ptx_sub(k, ptx_ld(...),
          ptx_ld(...)) is correct, but its two loads may be emitted in either order. For text that is the same
          with every compiler, write one emitting call per statement.
   ERRORS  A module keeps its first error; later calls on it have no effect and are safe. The message starts
          with the caller's file and line and names kernel, instruction, operand and types. Check once, at
          ptx_text(). The module keeps pointers to call sites, string literals in the caller's code: they must
          outlive it, so the code must stay loaded.
   VERSIONS  The caller chooses .target. .version is the lowest that the target and the recorded instructions
          need; a module that needs more than ptx_module_desc.max_version is refused. An instruction that the
          target lacks is an error.
   SHARED MEMORY  ptx_shared(k, "tile", PTX_F32, 1024, 16) is an array of the block; its address has 32 bits.
          All such arrays together have at most 48 KiB. ptx_shared_dynamic(), once in a kernel, is the dynamic
          shared memory of the launch; divide it with ptx_off(). Contents are undefined at the start. A thread
          may read what another thread wrote only after the block's barrier, ptx_bar_sync(k, ptx_imm(0)) (in a
          warp: ptx_bar_warp_sync), and may overwrite it only after one more barrier. ptx_mapa() gives the
          same address in another block of the cluster.
   VARIABLES OF THE MODULE  ptx_variable() defines global or constant memory, with data or zeros.
          ptx_address() is its address. ptx_point() initialises an element with the address of an earlier one.
   FUNCTIONS  ptx_func() starts a function, ptx_return() ends it, ptx_call() calls it with up to 32 arguments,
          ptx_call_indirect() calls through ptx_func_address(). Define all its parameters before the first
          call. A call of a function that contains a barrier or shuffle is checked as if it were one. The
          verifier assumes that arguments and results differ between threads. ptx_exit() in a function ends
          the thread, so no collective instruction may follow the call. Recursion is refused.
   PRINTF  ptx_printf(k, "%d %f\n", 2, args) widens floats and checks the conversions against the arguments.
   MATRICES  ptx_mma() takes fragments as arrays; ptx_mma_shape() tells their lengths. It also emits wmma.mma,
          on fragments of PTX_WMMA_LOAD_* for PTX_WMMA_STORE_D_*; the layouts are modifiers. ptx_wgmma()
          changes its accumulators asynchronously, so they are variables: write them, then PTX_WGMMA_FENCE,
          the products, PTX_WGMMA_COMMIT_GROUP and PTX_WGMMA_WAIT_GROUP; only then read or write them again.
          The verifier checks this order on every path.
   RAW TEXT  ptx_raw() inserts PTX text. $0 $1 ... are its results, then its operands, at most 64 of each;
          they are typed and tracked. The verifier assumes that the results differ between threads and that
          the text, like any call, waits for asynchronous copies. Only the assembler reads the text itself: it
          must close its brackets and comments, end its statements and write all its results. Put labels in
          braces if a text is used twice.
   VERIFIED  On every path, before ptx_text() returns a text: definitions before uses; labels, scopes, ends;
          unreachable code; loops without an exit; constant offsets that are misaligned or outside an array or
          variable; limits of shared, constant and parameter memory and of launch bounds; waits for cp.async,
          wgmma and tcgen05.ld; fences of wgmma; uniformity.
   UNIFORMITY  Barriers, shuffles and matrix instructions are collective: all threads of a cluster, block,
          warpgroup (four warps) or warp must execute them together. The verifier finds the values that
          differ between threads (ids, loads, atomics, sums with a carry, activemask, results of calls and
          raw text) and the branches and loops that depend on them. It refuses a collective instruction that
          only some of its threads reach; a thread that has executed ptx_ret does not. Block ids differ
          within a cluster. %tid.x / 32 is uniform in a warp: a block without a declared shape is taken to
          have one dimension. So is (%ctaid.x * 128 + %tid.x) / 32, if ptx_require_block() or
          ptx_launch_bounds(), which is taken as the block's size, declares a multiple of 32 threads;
          comparisons with multiples of 32 and 128 are understood too. Assert what the verifier cannot know
          by ptx_cluster_uniform(), ptx_uniform(), ptx_warpgroup_uniform() or ptx_warp_uniform(). The member
          mask of a shuffle or vote names the lanes that take part: if it is full, the whole warp must
          arrive; another mask is not checked. To compute one, call ptx_ballot(k, p, all) before the `if` on
          p.
   FOUND BY RUNNING  What depends on run-time values is not checked: data races, member masks, indices, phases
          of mbarriers, uninitialised memory, carry flags, functions called through pointers, threads that
          ptx_exit() has ended in a function, registers for setmaxnreg. The CPU driver in tests/sim, or a
          checking tool on a GPU, finds these in a run.
   LOGS  ptx_locate() maps a line of the text to the caller's file and line. ptx_explain() does that for a
          whole log of ptxas or the driver; ptxgen_cuda.h calls it. ptx_module_desc.comments = 1 prints the
          call sites beside the instructions, 2 prints them as .loc lines for profilers.
   DOES NOT  optimise (ptxas does); parse PTX or check raw text; allocate machine registers; link modules;
          follow addresses through memory or functions; support recursion; support textures and surfaces other
          than by 64-bit handle.
*/
#ifndef PTXGEN_H
#define PTXGEN_H

/* ---- [CONFIG] ---------------------------------------------------------------------------------------------

   PTXGEN_IMPLEMENTATION   in exactly one file: compile the code
   PTXGEN_STATIC           with it: all functions are static, a private copy in that file
   PTXGEN_API              your own linkage, e.g. __declspec(dllexport)
   PTXGEN_NO_MATH          leave out the functions of [MATH]
   PTXGEN_NO_O1            with GCC: your level, -O2 or -Og, for this code, too (PTX__BEGIN_O1 below)
*/
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Never inlined: public functions, because a generator is little more than calls and inlining would double
   its size, and private ones with many callers that seldom run. */
#if defined(__GNUC__)
#define PTX__NOINLINE __attribute__((noinline, unused))
#elif defined(_MSC_VER)
#define PTX__NOINLINE __declspec(noinline)
#else
#define PTX__NOINLINE
#endif

/* Always inlined, so that constant arguments are folded; in an unoptimised build only a hint. */
#if defined(__GNUC__) && !defined(__OPTIMIZE__)
#define PTX__INLINE static inline
#elif defined(__GNUC__)
#define PTX__INLINE static inline __attribute__((always_inline))
#elif defined(_MSC_VER)
#define PTX__INLINE static __forceinline
#else
#define PTX__INLINE static inline
#endif

#ifndef PTXGEN_API
#if defined(PTXGEN_STATIC) && defined(PTXGEN_IMPLEMENTATION)
#define PTXGEN_API PTX__NOINLINE static
#else
#define PTXGEN_API PTX__NOINLINE extern
#endif
#endif

/* Compiled for size: functions that run once per kernel, or only on an error. Not public functions with GCC:
   there the attribute "cold" would make their callers cold too. */
#if defined(__clang__)
#define PTX__COLD __attribute__((minsize)) static
#define PTX__COLD_API __attribute__((minsize)) PTXGEN_API
#elif defined(__GNUC__)
#define PTX__COLD __attribute__((cold)) static
#define PTX__COLD_API PTXGEN_API
#else
#define PTX__COLD static
#define PTX__COLD_API PTXGEN_API
#endif

/* Around the implementations: GCC compiles them at -O1 with these passes of -O2, in 0.6 of the time. The
   code becomes smaller, and generating a kernel takes 6 % longer. Other options stay yours. Not before
   GCC 12, which would lose -fno-omit-frame-pointer; nor with -Ofast, whose macros pop_options would lose in
   C; nor with EDG's front ends, nvcc's among them, which do not know it. Without ipa-ra: it would keep values
   in registers during calls into which -pg or -fpatchable-function-entry put code. Moving invariants out of
   loops, which here have few rounds, would make the code larger and slower. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__EDG__) && !defined(__CUDACC__) && __GNUC__ >= 12  \
    && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && !defined(__ASSOCIATIVE_MATH__)                \
    && !defined(PTXGEN_NO_O1)
#define PTX__BEGIN_O1                                                                                        \
    _Pragma("GCC push_options")                                                                              \
    _Pragma("GCC optimize(\"O1,inline-small-functions,peephole2,crossjumping,code-hoisting\")")              \
    _Pragma("GCC optimize(\"cse-follow-jumps,no-move-loop-invariants,no-tree-loop-im\")")
#define PTX__END_O1 _Pragma("GCC pop_options")
#else
#define PTX__BEGIN_O1
#define PTX__END_O1
#endif

/* Around the other two headers, where little time goes: with GCC the same, and Clang compiles them for size.
   That is a tenth less code, and generating a kernel takes 0.5 % more instructions. */
#if defined(__clang__) && __clang_major__ >= 10 && defined(__OPTIMIZE__) && !defined(__CUDACC__)
#define PTX__BEGIN_SMALL _Pragma("clang attribute push(__attribute__((minsize)), apply_to = function)")
#define PTX__END_SMALL _Pragma("clang attribute pop")
#else
#define PTX__BEGIN_SMALL PTX__BEGIN_O1
#define PTX__END_SMALL PTX__END_O1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of all three headers, which must be the same. Before 1.0 a minor version may change the
   interface. */
#define PTX_VERSION_MAJOR 0
#define PTX_VERSION_MINOR 2
#define PTX_VERSION_PATCH 0
#define PTX_VERSION_NUMBER (PTX_VERSION_MAJOR * 10000 + PTX_VERSION_MINOR * 100 + PTX_VERSION_PATCH)
#define PTXGEN_VERSION "0.2.0"

/* PTX_ZERO initialises any struct of these headers to zero: `ptx_module_desc desc = PTX_ZERO;`. PTX__CAST is
   the cast for macros: they expand in the caller's C++ file, where a C cast may cause a warning. */
#ifdef __cplusplus
#define PTX_ZERO {}
#define PTX__CAST(type, value) static_cast<type>(value)
#else
#define PTX_ZERO {0}
#define PTX__CAST(type, value) ((type)(value))
#endif

/* ---- [ERRORS] ---------------------------------------------------------------------------------------------

   X(code, name, meaning): code makes the enumerator PTX_E_<code>; ptx_error_name() returns name; meaning is
   the documentation. */
#define PTX_ERRORS(X)                                                                                        \
    X(NONE, "none", "no error")                                                                              \
    X(MEMORY, "memory", "the allocator returned NULL")                                                       \
    X(ARGUMENT, "argument", "an argument of a call is NULL or out of its range")                             \
    X(NAME, "name", "not a name: letters, digits and _, starting with a letter or _, ASCII,                  \
        at most 255 long")                                                                                   \
    X(NAME_TAKEN, "name-taken", "the name is taken in this module or kernel")                                \
    X(TYPE, "type", "an operand's type is not the one that the instruction needs there")                     \
    X(FORM, "form", "the instruction does not exist for this type")                                          \
    X(MODIFIER, "modifier", "the instruction does not take this modifier or combination")                    \
    X(RANGE, "range", "an immediate does not fit the type of its slot")                                      \
    X(HANDLE, "handle", "a handle that no call returned: zero, or from a failed call")                       \
    X(FOREIGN, "foreign", "a handle that belongs to another kernel, or to one that was reset")               \
    X(ADDRESS, "address", "an address of the wrong width, kind or state space")                              \
    X(ALIGN, "align", "an access that is provably misaligned")                                               \
    X(VECTOR, "vector", "a vector of 2 or 4 elements and at most 16 bytes is needed")                        \
    X(GUARD, "guard", "a guard before an instruction that makes a value, or before nothing")                 \
    X(TARGET, "target", "the target lacks this instruction, type or modifier")                               \
    X(VERSION, "version", "a newer PTX version than the module's cap is needed")                             \
    X(SCOPE, "scope", "else, break, continue or end outside its scope, or a scope left open")                \
    X(LABEL, "label", "a branch to a label that is nowhere placed, or a label placed twice")                 \
    X(UNDEFINED, "undefined", "a value is used where some path has not defined it")                          \
    X(UNREACHABLE, "unreachable", "no path leads to this instruction")                                       \
    X(FALL_OFF, "fall-off", "a path runs off the end of the kernel")                                         \
    X(ENDLESS, "endless", "a loop that no path leaves")                                                      \
    X(DIVERGENT, "divergent", "an instruction for all threads of a block or warp where only some may come")  \
    X(ASYNC, "async", "the result of an asynchronous copy or product is used before a wait for it")          \
    X(RECURSION, "recursion", "a function that calls itself, if by way of others: its stack has no bound")   \
    X(FENCE, "fence", "wgmma on registers that were written, with no wgmma.fence between")                   \
    X(SHARED_LIMIT, "shared-limit", "more static shared memory than a kernel may declare (48 KiB)")          \
    X(PARAM_LIMIT, "param-limit", "more parameter bytes than a kernel may have")                             \
    X(CONST_LIMIT, "const-limit", "more constant memory than a module may have (64 KiB)")                    \
    X(LAUNCH_LIMIT, "launch-limit", "launch bounds that no device has")                                      \
    X(EMPTY, "empty", "the module has no kernel")                                                            \
    X(DESC, "desc", "a description or shape that an operation does not support")

#define PTX__ENUM(code, name, meaning) PTX_E_##code,
typedef enum ptx_code { PTX_ERRORS(PTX__ENUM) PTX_E_COUNT } ptx_code;
#undef PTX__ENUM

/* The instruction behind a line of the text. Pointers live as long as the module. */
typedef struct ptx_place {
    const char *kernel;
    const char *site;     /* "file.c:12" */
    uint32_t instruction; /* its index in the kernel, counted from 0 */
} ptx_place;

/* The register pressure of a kernel, from the liveness of its values. Registers that the assembler adds
   (addresses, copies) or saves (scheduling, rematerialisation) are not counted. */
typedef struct ptx_pressure_info {
    uint32_t registers;   /* the most 32-bit registers that are live at once */
    uint32_t predicates;  /* the most predicates that are live at once */
    uint32_t instruction; /* index of the instruction where `registers` is reached */
    const char *site;     /* its call site */
} ptx_pressure_info;

/* The first error of a module. All pointers live as long as the module. */
typedef struct ptx_error {
    ptx_code code;
    const char *message;  /* "file.c:12: error: kernel 'k', instruction 7: ... [type]"; "" when none */
    const char *site;     /* "file.c:12" of the caller, or "" */
    const char *kernel;   /* the kernel's name, or "" */
    uint32_t instruction; /* its index in the kernel, counted from 0 */
} ptx_error;

/* ---- [TYPES] ------------------------------------------------------------------------------------------- */

/* X(type, name in PTX, bits, kind): kind p predicate, b untyped bits, u unsigned, s signed, f float, h 16-bit
   float or tf32, x packed smaller floats, m element of a matrix fragment, never the type of a value. Numbers
   1 to 15 are no types: ptxgen_kernels.h uses them for weight formats, so that the two cannot be confused. */
#define PTX_TYPES(X)                                                                                         \
    X(PRED, "pred", 1, 'p')                                                                                  \
    X(B8, "b8", 8, 'b')                                                                                      \
    X(B16, "b16", 16, 'b')                                                                                   \
    X(B32, "b32", 32, 'b')                                                                                   \
    X(B64, "b64", 64, 'b')                                                                                   \
    X(U8, "u8", 8, 'u')                                                                                      \
    X(U16, "u16", 16, 'u')                                                                                   \
    X(U32, "u32", 32, 'u')                                                                                   \
    X(U64, "u64", 64, 'u')                                                                                   \
    X(S8, "s8", 8, 's')                                                                                      \
    X(S16, "s16", 16, 's')                                                                                   \
    X(S32, "s32", 32, 's')                                                                                   \
    X(S64, "s64", 64, 's')                                                                                   \
    X(F16, "f16", 16, 'h')                                                                                   \
    X(BF16, "bf16", 16, 'h')                                                                                 \
    X(F32, "f32", 32, 'f')                                                                                   \
    X(F64, "f64", 64, 'f')                                                                                   \
    X(F16X2, "f16x2", 32, 'h')                                                                               \
    X(BF16X2, "bf16x2", 32, 'h')                                                                             \
    X(U16X2, "u16x2", 32, 'u')                                                                               \
    X(S16X2, "s16x2", 32, 's')                                                                               \
    X(TF32, "tf32", 32, 'h')                                                                                 \
    X(B128, "b128", 128, 'b')                                                                                \
    X(F32X2, "f32x2", 64, 'x')                                                                               \
    X(E4M3X2, "e4m3x2", 16, 'x')                                                                             \
    X(E5M2X2, "e5m2x2", 16, 'x')                                                                             \
    X(E2M3X2, "e2m3x2", 16, 'x')                                                                             \
    X(E3M2X2, "e3m2x2", 16, 'x')                                                                             \
    X(E2M1X2, "e2m1x2", 8, 'x')                                                                              \
    X(UE8M0X2, "ue8m0x2", 16, 'x')                                                                           \
    X(E4M3X4, "e4m3x4", 32, 'x')                                                                             \
    X(E5M2X4, "e5m2x4", 32, 'x')                                                                             \
    X(E2M3X4, "e2m3x4", 32, 'x')                                                                             \
    X(E3M2X4, "e3m2x4", 32, 'x')                                                                             \
    X(E2M1X4, "e2m1x4", 16, 'x')                                                                             \
    X(E4M3, "e4m3", 0, 'm')                                                                                  \
    X(E5M2, "e5m2", 0, 'm')                                                                                  \
    X(E2M3, "e2m3", 0, 'm')                                                                                  \
    X(E3M2, "e3m2", 0, 'm')                                                                                  \
    X(E2M1, "e2m1", 0, 'm')                                                                                  \
    X(U4, "u4", 0, 'm')                                                                                      \
    X(S4, "s4", 0, 'm')                                                                                      \
    X(U2, "u2", 0, 'm')                                                                                      \
    X(S2, "s2", 0, 'm')

#define PTX__ENUM(type, name, bits, kind) PTX_##type,
typedef enum ptx_type {
    PTX_NONE,
    PTX__NO_TYPE = 15, /* the types follow, up to 63: a set of types is a mask of 64 bits */
    PTX_TYPES(PTX__ENUM) PTX__TYPE_COUNT
} ptx_type;
#undef PTX__ENUM

/* State space of an address; PTX_GENERIC if it is not known. */
typedef enum ptx_space {
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED, /* of this block: .shared::cta */
    PTX_LOCAL,
    PTX_CONST,
    PTX_PARAM,
    PTX_SHARED_CLUSTER /* of any block of the cluster: the space of ptx_mapa's result */
} ptx_space;

/* Modifiers of an instruction, or'ed together; the constants are in [TABLE]. */
typedef uint64_t ptx_mods;

/* An operand, passed by value. The encoding (PTX__HANDLE) is private: make values with the functions below. A
   handle of 0 means "no value". */
typedef struct ptx_val {
    uint64_t handle;
} ptx_val;

/* A variable of a thread, which can be written again. Read it with ptx_get, write it with ptx_set. */
typedef struct ptx_var {
    ptx_val cell;
} ptx_var;

/* A branch target in a kernel. */
typedef struct ptx_label {
    uint32_t index, owner;
} ptx_label;

/* A memory operand: [base + offset], with the modifiers of the access and its L2 cache policy. */
typedef struct ptx_mem {
    uint64_t base, access; /* see ptx__read_memory */
} ptx_mem;

/* A variable of a module: see ptx_variable. */
typedef struct ptx_symbol {
    uint32_t index, owner;
} ptx_symbol;

typedef struct ptx_module ptx_module;
typedef struct ptx_kernel ptx_kernel;

/* A .target: PTX_SM(90) is sm_90, PTX_SM_A(90) sm_90a, with the features of that chip alone, and
   PTX_SM_F(100) sm_100f, with those of its family. */
typedef uint32_t ptx_target;
#define PTX_SM(number) PTX__CAST(ptx_target, (number) + 0LL) /* 0LL: never a cast to the same type */
#define PTX_SM_A(number) (PTX_SM(number) | 0x1000u)
#define PTX_SM_F(number) (PTX_SM(number) | 0x2000u)

/* realloc with a user pointer. old_size is the size with which the block was allocated (0 for a NULL block);
   new_size 0 frees the block and returns NULL. */
typedef void *(*ptx_alloc_fn)(void *user, void *block, size_t old_size, size_t new_size);

/* A field of zero means its default. */
typedef struct ptx_module_desc {
    ptx_target target;    /* default PTX_SM(75) */
    uint32_t max_version; /* refuse what needs a newer PTX: 78 is ".version 7.8". Default 90 */
    uint32_t comments;    /* 1: print ptx_comment()s and each instruction's call site; 2: .loc lines, so
                             that tools show your C lines beside the machine code; 3: both; 0: neither */
    ptx_alloc_fn alloc;   /* default realloc and free */
    void *alloc_user;
    uint32_t dependent_launch; /* 1: each entry begins with griddepcontrol.launch_dependents and .wait, so
                                  that it may be launched before the previous kernel has ended (sm_90). ptx_ld
                                  then ignores PTX_NC: that kernel may still write the data */
} ptx_module_desc;

/* A parameter of an entry, and what a launch needs to know of an entry. Pointers live until the module
   changes. */
typedef struct ptx_param_info {
    const char *name;
    ptx_type type;   /* PTX_B8 for a by-value block of bytes */
    ptx_space space; /* that given to ptx_param_ptr; PTX_GENERIC otherwise */
    uint32_t bytes, align, offset;
} ptx_param_info;

typedef struct ptx_entry_info {
    const char *name;
    const ptx_param_info *params;
    uint32_t param_count, param_bytes;
    uint32_t shared_bytes;  /* static */
    uint32_t max_threads;   /* of ptx_launch_bounds; 0: not declared */
    uint32_t instructions;
    uint32_t dependent_launch; /* 1: it waits for the previous kernel: see ptx_module_desc */
} ptx_entry_info;

/* One launch: the index of the entry (in the order of the ptx_entry calls), and the geometry. */
typedef struct ptx_launch {
    uint32_t entry;
    uint32_t grid[3], block[3]; /* blocks; threads */
    uint32_t shared_bytes;      /* dynamic */
    uint32_t cooperative;       /* 1: a cooperative launch, all blocks resident at once */
    uint32_t cluster[3];        /* blocks of a cluster, from sm_90 on; all 0: not given by the launch */
} ptx_launch;
/* A launch of entry 0: `threads` threads along x, rounded up to whole blocks of `block` threads. */
PTXGEN_API ptx_launch ptx_launch_1d(uint64_t threads, uint32_t block);
/* The same for x by y threads, in blocks of block_x by block_y. */
PTXGEN_API ptx_launch ptx_launch_2d(uint64_t x, uint64_t y, uint32_t block_x, uint32_t block_y);

/* A tensor map (CUtensorMap) of a launch. It is a parameter of the entry, 128 bytes by value after the
   argument struct: see ptx_param_map. Dimension 0 is the innermost; its elements are adjacent. A
   ptx_map_number is `times` multiplied by the integer of `bytes` bytes (4 or 8) at offset `field` of the
   argument struct; with bytes 0, `times` alone. ptx_map_resolve computes the driver's values. */
#define PTX_MAP_RANK 5
typedef struct ptx_map_number {
    uint64_t times;
    uint32_t field, bytes;
} ptx_map_number;
typedef struct ptx_tensor_map {
    uint32_t launch;                     /* index in the plan; a launch takes its maps in the plan's order */
    uint32_t address;                    /* offset of the u64 field that holds the address of element 0 */
    uint32_t substitute;                 /* offset of the u64 field to use if that address is 0: all strides
                                            count as 0, and the kernel does not use the map. 0: none */
    uint32_t type, rank;                 /* ptx_type of an element; dimensions, 1 ... 5 */
    uint32_t swizzle;                    /* of the box in shared memory: 0, 32, 64 or 128 bytes */
    uint32_t box[PTX_MAP_RANK];          /* elements of a copy, 1 ... 256 */
    ptx_map_number size[PTX_MAP_RANK];   /* elements */
    ptx_map_number stride[PTX_MAP_RANK]; /* bytes between neighbours, multiples of 16; stride[0] is unused. A
                                            stride of 0 makes the size 1: the kernel uses index 0 only */
} ptx_tensor_map;

/* The arguments of cuTensorMapEncodeTiled after the map itself, in order. Not in the struct: interleave and
   out-of-bounds fill, which are 0. */
typedef struct ptx_map_values {
    int type; /* CUtensorMapDataType */
    uint32_t rank;
    void *address;
    uint64_t size[PTX_MAP_RANK], stride[PTX_MAP_RANK - 1];
    uint32_t box[PTX_MAP_RANK], element_stride[PTX_MAP_RANK];
    int swizzle, l2_promotion;
} ptx_map_values;
/* Computes *values from the map and the plan's argument struct. Returns NULL, or the rule that they break,
   such as "a stride is not a multiple of 16 bytes"; *values is then 0. */
PTXGEN_API const char *ptx_map_resolve(const ptx_tensor_map *map, const void *args, ptx_map_values *values);

/* The plan of an operation for given sizes: launches in stream order, which all take the same argument
   struct. An operation with nothing to do (an empty batch) has no launches. */
#define PTX_PLAN_MAX 4
#define PTX_PLAN_MAPS 6
typedef struct ptx_plan {
    ptx_launch launch[PTX_PLAN_MAX];
    uint32_t launches;
    uint32_t args_bytes;      /* sizeof of the operation's argument struct */
    uint64_t workspace_bytes; /* device scratch, 256-byte aligned; 0: none */
    uint64_t zero_bytes;      /* the first bytes of the workspace, which must be 0 before the first launch;
                                 each launch leaves them 0. The rest may hold anything */
    uint64_t min_bytes;       /* bytes of global memory traffic that any implementation needs */
    uint32_t maps;            /* tensor maps of all launches; 0 for most operations */
    ptx_tensor_map map[PTX_PLAN_MAPS];
} ptx_plan;

/* An operation: a generator and the size of its description, so that launch code can cache kernels by the
   bytes of the description. emit appends the operation's entries to the module. It sets the module's error,
   at the caller's site, for an invalid description, and returns the error's code. */
typedef struct ptx_operation {
    const char *name;
    uint32_t desc_bytes;
    ptx_code (*emit)(ptx_module *m, const char *site, const void *desc);
} ptx_operation;

/* ---- [TABLE] ----------------------------------------------------------------------------------------------

   MODIFIERS. One bit each; they print in the order of their bits, before the type. Bit 62 marks the family of
   arithmetic modifiers, bit 63 that of memory modifiers, so that one is never taken for the other. */
#define PTX__A(bit) (UINT64_C(1) << 62 | UINT64_C(1) << (bit))
#define PTX__M(bit) (UINT64_C(1) << 63 | UINT64_C(1) << (bit))
#define PTX__FAMILY (UINT64_C(3) << 62)

#define PTX_EQ PTX__A(0) /* comparisons: setp, set */
#define PTX_NE PTX__A(1)
#define PTX_LT PTX__A(2)
#define PTX_LE PTX__A(3)
#define PTX_GT PTX__A(4)
#define PTX_GE PTX__A(5)
#define PTX_EQU PTX__A(6) /* the same, and true if an operand is NaN */
#define PTX_NEU PTX__A(7)
#define PTX_LTU PTX__A(8)
#define PTX_LEU PTX__A(9)
#define PTX_GTU PTX__A(10)
#define PTX_GEU PTX__A(11)
#define PTX_NUM PTX__A(12) /* neither is NaN */
#define PTX_ISNAN PTX__A(13) /* either is NaN */
#define PTX_BOOL_AND PTX__A(14) /* setp, set, lop3: combine the result with a predicate */
#define PTX_BOOL_OR PTX__A(15)
#define PTX_BOOL_XOR PTX__A(16)
#define PTX_LO PTX__A(17) /* low or high half of a product, or all of it */
#define PTX_HI PTX__A(18)
#define PTX_WIDE PTX__A(19)
#define PTX_CLAMP PTX__A(20) /* shf, bmsk, szext; PTX_CLAMP also surfaces */
#define PTX_WRAP PTX__A(21)
#define PTX_RN PTX__A(22) /* round to nearest even, to zero, down, up */
#define PTX_RZ PTX__A(23)
#define PTX_RM PTX__A(24)
#define PTX_RP PTX__A(25)
#define PTX_RNA PTX__A(26) /* round to nearest, ties away from zero; RS: stochastically */
#define PTX_RS PTX__A(27)
#define PTX_RNI PTX__A(28) /* round to an integer: nearest even, to zero, down, up */
#define PTX_RZI PTX__A(29)
#define PTX_RMI PTX__A(30)
#define PTX_RPI PTX__A(31)
#define PTX_APPROX PTX__A(32)
#define PTX_FULL PTX__A(33)
#define PTX_FTZ PTX__A(34)
#define PTX_SAT PTX__A(35)
#define PTX_OOB PTX__A(36) /* fma: the result is 0 if an operand is the out-of-bounds NaN of a tensor copy */
#define PTX_SATFINITE PTX__A(37)
#define PTX_RELU PTX__A(38)
#define PTX_NAN PTX__A(39) /* min, max: the result is NaN if an operand is */
#define PTX_XORSIGN_ABS PTX__A(40)
#define PTX_ABS_OF PTX__A(41) /* min, max: of the absolute values */
#define PTX_CC PTX__A(42) /* writes the carry flag; addc, subc, madc read it */
#define PTX_SHIFTAMT PTX__A(43)
#define PTX_FINITE PTX__A(44) /* testp: the property to test */
#define PTX_INFINITE PTX__A(45)
#define PTX_NUMBER PTX__A(46)
#define PTX_NOTANUMBER PTX__A(47)
#define PTX_NORMAL PTX__A(48)
#define PTX_SUBNORMAL PTX__A(49)
#define PTX_SURFACE_TRAP PTX__A(50) /* surfaces: what an access out of bounds does */
#define PTX_SURFACE_ZERO PTX__A(51)
#define PTX_CTA_GROUP_1 PTX__A(52) /* tcgen05: one block, or a pair of blocks */
#define PTX_CTA_GROUP_2 PTX__A(53)
#define PTX_PACK_16B PTX__A(54)
#define PTX_UNPACK_16B PTX__A(55)
#define PTX_ROW_ROW PTX__A(56) /* wmma.mma: layouts of A and B */
#define PTX_ROW_COL PTX__A(57)
#define PTX_COL_ROW PTX__A(58)
#define PTX_COL_COL PTX__A(59)

#define PTX_WEAK PTX__M(0) /* memory order of an access */
#define PTX_VOLATILE PTX__M(1)
#define PTX_MMIO PTX__M(2)
#define PTX_RELAXED PTX__M(3)
#define PTX_ACQUIRE PTX__M(4)
#define PTX_RELEASE PTX__M(5)
#define PTX_ACQ_REL PTX__M(6)
#define PTX_SC PTX__M(7)
#define PTX_CTA PTX__M(8) /* its scope */
#define PTX_CLUSTER PTX__M(9)
#define PTX_GPU PTX__M(10)
#define PTX_SYS PTX__M(11)
#define PTX__M_GLOBAL PTX__M(12) /* the space, taken from the address */
#define PTX__M_SHARED PTX__M(13)
#define PTX__M_LOCAL PTX__M(14)
#define PTX__M_CONST PTX__M(15)
#define PTX__M_PARAM PTX__M(16)
#define PTX__M_SHARED_CLUSTER PTX__M(17)
#define PTX_CA PTX__M(18) /* cache operators */
#define PTX_CG PTX__M(19)
#define PTX_CS PTX__M(20)
#define PTX_LU PTX__M(21)
#define PTX_CV PTX__M(22)
#define PTX_WB PTX__M(23)
#define PTX_WT PTX__M(24)
#define PTX_NC PTX__M(25) /* non-coherent: for data that nobody writes while the kernel runs */
#define PTX_L1_EVICT_NORMAL PTX__M(26)
#define PTX_L1_EVICT_UNCHANGED PTX__M(27)
#define PTX_L1_EVICT_FIRST PTX__M(28)
#define PTX_L1_EVICT_LAST PTX__M(29)
#define PTX_L1_NO_ALLOCATE PTX__M(30)
#define PTX_ATOM_AND PTX__M(31) /* operation of an atomic */
#define PTX_ATOM_OR PTX__M(32)
#define PTX_ATOM_XOR PTX__M(33)
#define PTX_ATOM_ADD PTX__M(34)
#define PTX_ATOM_INC PTX__M(35)
#define PTX_ATOM_DEC PTX__M(36)
#define PTX_ATOM_MIN PTX__M(37)
#define PTX_ATOM_MAX PTX__M(38)
#define PTX_ATOM_EXCH PTX__M(39)
#define PTX_ATOM_CAS PTX__M(40)
#define PTX_NOFTZ PTX__M(41)
#define PTX_ACC_F32 PTX__M(42) /* multimem: type of the accumulator, wider than the elements */
#define PTX_ACC_F16 PTX__M(43)
#define PTX_L2_EVICT_LAST PTX__M(44) /* createpolicy: primary priority; ld and st of 32 bytes */
#define PTX_L2_EVICT_NORMAL PTX__M(45)
#define PTX_L2_EVICT_FIRST PTX__M(46)
#define PTX_L2_EVICT_UNCHANGED PTX__M(47)
#define PTX_OTHERS_FIRST PTX__M(48) /* createpolicy: secondary priority, for the rest of the data */
#define PTX_OTHERS_UNCHANGED PTX__M(49)
#define PTX_MULTICAST PTX__M(50) /* copies to several blocks of the cluster */
#define PTX_L2_CACHE_HINT PTX__M(51) /* with a policy as the last operand */
#define PTX_L2_64B PTX__M(52) /* prefetch size */
#define PTX_L2_128B PTX__M(53)
#define PTX_L2_256B PTX__M(54)
#define PTX__M_V2 PTX__M(55) /* vector width, taken from the number of operands */
#define PTX__M_V4 PTX__M(56)
#define PTX__M_V8 PTX__M(57)
#define PTX__M_V4_64 PTX__M(58)
#define PTX_ROW PTX__M(59) /* wmma.load, wmma.store: layout of the matrix in memory */
#define PTX_COL PTX__M(60)

/* All of them in the order of their bits: X(name, text, version, target). The last two are what the modifier
   needs beyond its instruction, and may be left out. (INFINITE without a _ is a macro of Windows.) */
#define PTX__ARITH_MODIFIERS(X)                                                                              \
    X(EQ, ".eq") X(NE, ".ne") X(LT, ".lt") X(LE, ".le") X(GT, ".gt") X(GE, ".ge") X(EQU, ".equ")             \
    X(NEU, ".neu") X(LTU, ".ltu") X(LEU, ".leu") X(GTU, ".gtu") X(GEU, ".geu") X(NUM, ".num")                \
    X(ISNAN, ".nan") X(BOOL_AND, ".and") X(BOOL_OR, ".or") X(BOOL_XOR, ".xor") X(LO, ".lo") X(HI, ".hi")     \
    X(WIDE, ".wide") X(CLAMP, ".clamp") X(WRAP, ".wrap") X(RN, ".rn") X(RZ, ".rz") X(RM, ".rm") X(RP, ".rp") \
    X(RNA, ".rna", 70, 80) X(RS, ".rs") X(RNI, ".rni") X(RZI, ".rzi") X(RMI, ".rmi") X(RPI, ".rpi")          \
    X(APPROX, ".approx") X(FULL, ".full") X(FTZ, ".ftz") X(SAT, ".sat") X(OOB, ".oob")                       \
    X(SATFINITE, ".satfinite") X(RELU, ".relu", 70, 80) X(NAN, ".NaN", 70, 80)                               \
    X(XORSIGN_ABS, ".xorsign.abs", 72, 86) X(ABS_OF, ".abs") X(CC, ".cc") X(SHIFTAMT, ".shiftamt")           \
    X(FINITE, ".finite") X(INFINITE_, ".infinite") X(NUMBER, ".number") X(NOTANUMBER, ".notanumber")         \
    X(NORMAL, ".normal") X(SUBNORMAL, ".subnormal") X(SURFACE_TRAP, ".trap") X(SURFACE_ZERO, ".zero")        \
    X(CTA_GROUP_1, ".cta_group::1") X(CTA_GROUP_2, ".cta_group::2") X(PACK_16B, ".pack::16b")                \
    X(UNPACK_16B, ".unpack::16b") X(ROW_ROW, ".row.row") X(ROW_COL, ".row.col") X(COL_ROW, ".col.row")       \
    X(COL_COL, ".col.col")
#define PTX__MEMORY_MODIFIERS(X)                                                                             \
    X(WEAK, ".weak", 60, 70) X(VOLATILE, ".volatile") X(MMIO, ".mmio", 82, 70)                               \
    X(RELAXED, ".relaxed", 60, 70) X(ACQUIRE, ".acquire", 60, 70) X(RELEASE, ".release", 60, 70)             \
    X(ACQ_REL, ".acq_rel", 60, 70) X(SC, ".sc", 60, 70) X(CTA, ".cta", 60, 70)                               \
    X(CLUSTER, ".cluster", 78, 90) X(GPU, ".gpu", 60, 70) X(SYS, ".sys", 60, 70) X(M_GLOBAL, ".global")      \
    X(M_SHARED, ".shared") X(M_LOCAL, ".local") X(M_CONST, ".const") X(M_PARAM, ".param")                    \
    X(M_SHARED_CLUSTER, ".shared::cluster", 78, 90) X(CA, ".ca", 20, 20) X(CG, ".cg", 20, 20)                \
    X(CS, ".cs", 20, 20) X(LU, ".lu", 20, 20) X(CV, ".cv", 20, 20) X(WB, ".wb", 20, 20) X(WT, ".wt", 20, 20) \
    X(NC, ".nc", 31, 32) X(L1_EVICT_NORMAL, ".L1::evict_normal", 74, 70)                                     \
    X(L1_EVICT_UNCHANGED, ".L1::evict_unchanged", 74, 70) X(L1_EVICT_FIRST, ".L1::evict_first", 74, 70)      \
    X(L1_EVICT_LAST, ".L1::evict_last", 74, 70) X(L1_NO_ALLOCATE, ".L1::no_allocate", 74, 70)                \
    X(ATOM_AND, ".and") X(ATOM_OR, ".or") X(ATOM_XOR, ".xor") X(ATOM_ADD, ".add") X(ATOM_INC, ".inc")        \
    X(ATOM_DEC, ".dec") X(ATOM_MIN, ".min") X(ATOM_MAX, ".max") X(ATOM_EXCH, ".exch") X(ATOM_CAS, ".cas")    \
    X(NOFTZ, ".noftz") X(ACC_F32, ".acc::f32") X(ACC_F16, ".acc::f16") X(L2_EVICT_LAST, ".L2::evict_last")   \
    X(L2_EVICT_NORMAL, ".L2::evict_normal") X(L2_EVICT_FIRST, ".L2::evict_first")                            \
    X(L2_EVICT_UNCHANGED, ".L2::evict_unchanged") X(OTHERS_FIRST, ".L2::evict_first")                        \
    X(OTHERS_UNCHANGED, ".L2::evict_unchanged") X(MULTICAST, ".multicast::cluster")                          \
    X(L2_CACHE_HINT, ".L2::cache_hint", 74, 80) X(L2_64B, ".L2::64B", 74, 75)                                \
    X(L2_128B, ".L2::128B", 74, 75) X(L2_256B, ".L2::256B", 74, 80) X(M_V2, ".v2") X(M_V4, ".v4")            \
    X(M_V8, ".v8", 88, 100) X(M_V4_64, ".v4", 88, 100) X(ROW, ".row") X(COL, ".col")

/* Sets of modifiers. ptx__exclusive[] lists those of which an instruction takes at most one. */
#define PTX__CMP_ORDERED (PTX_EQ | PTX_NE | PTX_LT | PTX_LE | PTX_GT | PTX_GE)
#define PTX__CMP_NAN (PTX_EQU | PTX_NEU | PTX_LTU | PTX_LEU | PTX_GTU | PTX_GEU | PTX_NUM | PTX_ISNAN)
#define PTX__CMP (PTX__CMP_ORDERED | PTX__CMP_NAN)
#define PTX__BOOL (PTX_BOOL_AND | PTX_BOOL_OR | PTX_BOOL_XOR)
#define PTX__LOHI (PTX_LO | PTX_HI)
#define PTX__PART (PTX__LOHI | PTX_WIDE)
#define PTX__FUNNEL (PTX_CLAMP | PTX_WRAP)
#define PTX__ROUND (PTX_RN | PTX_RZ | PTX_RM | PTX_RP)
#define PTX__ROUND_INT (PTX_RNI | PTX_RZI | PTX_RMI | PTX_RPI)
#define PTX__ROUND_ANY (PTX__ROUND | PTX__ROUND_INT | PTX_RNA | PTX_RS | PTX_APPROX | PTX_FULL)
#define PTX__TEST (PTX_FINITE | PTX_INFINITE | PTX_NUMBER | PTX_NOTANUMBER | PTX_NORMAL | PTX_SUBNORMAL)
#define PTX__BORDER (PTX_CLAMP | PTX_SURFACE_TRAP | PTX_SURFACE_ZERO)
#define PTX__CTA_GROUP (PTX_CTA_GROUP_1 | PTX_CTA_GROUP_2)
#define PTX__LAYOUTS (PTX_ROW_ROW | PTX_ROW_COL | PTX_COL_ROW | PTX_COL_COL)
#define PTX__LAYOUT (PTX_ROW | PTX_COL)
#define PTX__SEM (PTX_WEAK | PTX_VOLATILE | PTX_RELAXED | PTX_ACQUIRE | PTX_RELEASE | PTX_ACQ_REL | PTX_SC)
#define PTX__SCOPE (PTX_CTA | PTX_CLUSTER | PTX_GPU | PTX_SYS)
#define PTX__SPACE                                                                                           \
    (PTX__M_GLOBAL | PTX__M_SHARED | PTX__M_LOCAL | PTX__M_CONST | PTX__M_PARAM | PTX__M_SHARED_CLUSTER)
#define PTX__COP_LD (PTX_CA | PTX_CG | PTX_CS | PTX_LU | PTX_CV)
#define PTX__COP_ST (PTX_WB | PTX_CG | PTX_CS | PTX_WT)
#define PTX__L1 (PTX_L1_EVICT_NORMAL | PTX_L1_EVICT_UNCHANGED | PTX_L1_EVICT_FIRST | PTX_L1_EVICT_LAST       \
                 | PTX_L1_NO_ALLOCATE)
#define PTX__L2_SIZE (PTX_L2_64B | PTX_L2_128B | PTX_L2_256B)
#define PTX__L2_PRIMARY                                                                                      \
    (PTX_L2_EVICT_LAST | PTX_L2_EVICT_NORMAL | PTX_L2_EVICT_FIRST | PTX_L2_EVICT_UNCHANGED)
#define PTX__L2_SECONDARY (PTX_OTHERS_FIRST | PTX_OTHERS_UNCHANGED)
#define PTX__L2 (PTX__L2_SIZE | PTX_L2_CACHE_HINT)
#define PTX__WMMA_SPACE (PTX__M_GLOBAL | PTX__M_SHARED)
#define PTX__VEC (PTX__M_V2 | PTX__M_V4)
#define PTX__VEC32 (PTX__M_V8 | PTX__M_V4_64)
#define PTX__L2_EVICT (PTX_L2_EVICT_LAST | PTX_L2_EVICT_NORMAL | PTX_L2_EVICT_FIRST)
#define PTX__ATOM_BITS (PTX_ATOM_AND | PTX_ATOM_OR | PTX_ATOM_XOR)
#define PTX__ATOM_MINMAX (PTX_ATOM_MIN | PTX_ATOM_MAX)
#define PTX__ATOM (PTX__ATOM_BITS | PTX__ATOM_MINMAX | PTX_ATOM_ADD | PTX_ATOM_INC | PTX_ATOM_DEC            \
                   | PTX_ATOM_EXCH | PTX_ATOM_CAS)
#define PTX__SEM_LD (PTX_WEAK | PTX_VOLATILE | PTX_RELAXED | PTX_ACQUIRE)
#define PTX__SEM_ST (PTX_WEAK | PTX_VOLATILE | PTX_RELAXED | PTX_RELEASE)
#define PTX__SEM_ATOM (PTX_RELAXED | PTX_ACQUIRE | PTX_RELEASE | PTX_ACQ_REL)
#define PTX__WRITABLE (PTX__M_GLOBAL | PTX__M_SHARED | PTX__M_LOCAL | PTX__M_SHARED_CLUSTER)
#define PTX__CONVERTIBLE (PTX__M_GLOBAL | PTX__M_SHARED | PTX__M_LOCAL | PTX__M_CONST)
#define PTX__HINTS (PTX__L1 | PTX__L2)
#define PTX__LOAD_ONE                                                                                        \
    (PTX_MMIO | PTX__SEM_LD | PTX__SCOPE | PTX__SPACE | PTX__COP_LD | PTX_NC | PTX__HINTS)
#define PTX__LOAD (PTX__LOAD_ONE | PTX__VEC)
#define PTX__STORE_ONE                                                                                       \
    (PTX_MMIO | PTX__SEM_ST | PTX__SCOPE | PTX__WRITABLE | PTX__COP_ST | PTX__L1 | PTX_L2_CACHE_HINT)
#define PTX__STORE (PTX__STORE_ONE | PTX__VEC)
#define PTX__LOAD32                                                                                          \
    (PTX_WEAK | PTX_NC | PTX__M_GLOBAL | PTX__L1 | PTX__L2_EVICT | PTX_L2_CACHE_HINT | PTX__VEC32)
#define PTX__STORE32 (PTX_WEAK | PTX__M_GLOBAL | PTX__L1 | PTX__L2_EVICT | PTX_L2_CACHE_HINT | PTX__VEC32)
#define PTX__ATOM_SPACE (PTX__M_GLOBAL | PTX__M_SHARED | PTX__M_SHARED_CLUSTER)
#define PTX__ATOMIC_PLAIN (PTX__SEM_ATOM | PTX__SCOPE | PTX__ATOM_SPACE)
#define PTX__ATOMIC (PTX__ATOMIC_PLAIN | PTX_L2_CACHE_HINT)
#define PTX__ATOMIC_GLOBAL (PTX__SEM_ATOM | PTX__SCOPE | PTX__M_GLOBAL)
#define PTX__REDUCE_GLOBAL (PTX_RELAXED | PTX_RELEASE | PTX__SCOPE | PTX__M_GLOBAL)
#define PTX__REDUCE (PTX_RELAXED | PTX_RELEASE | PTX__SCOPE | PTX__ATOM_SPACE | PTX_L2_CACHE_HINT)
#define PTX__MULTIMEM (PTX_WEAK | PTX_RELAXED | PTX_ACQUIRE | PTX__SCOPE | PTX__M_GLOBAL)
#define PTX__MULTIMEM_ST (PTX_RELAXED | PTX_RELEASE | PTX__SCOPE | PTX__M_GLOBAL)
#define PTX__RELEASE_GLOBAL (PTX_RELEASE | PTX_GPU | PTX_SYS | PTX__M_GLOBAL)
#define PTX__RELEASE_GLOBAL_ADD (PTX__RELEASE_GLOBAL | PTX_ATOM_ADD)
#define PTX__RELEASE_MMIO (PTX__RELEASE_GLOBAL | PTX_MMIO)
#define PTX__RELEASE_MMIO_ADD (PTX__RELEASE_MMIO | PTX_ATOM_ADD)
#define PTX__ATOMIC_NOFTZ (PTX__ATOMIC_GLOBAL | PTX_ATOM_ADD | PTX__ATOM_MINMAX | PTX_NOFTZ)
#define PTX__REDUCE_NOFTZ (PTX__REDUCE_GLOBAL | PTX_ATOM_ADD | PTX__ATOM_MINMAX | PTX_NOFTZ)
#define PTX__BULK_REDUCE                                                                                     \
    (PTX__ATOM_BITS | PTX__ATOM_MINMAX | PTX_ATOM_ADD | PTX_ATOM_INC | PTX_ATOM_DEC)
#define PTX__RELAXED_CLUSTER (PTX_RELAXED | PTX_CLUSTER)
#define PTX__RELAXED_CTA (PTX_RELAXED | PTX_CTA)
#define PTX__RELEASE_CLUSTER (PTX_RELEASE | PTX_CLUSTER)
#define PTX__DIVIDE (PTX__ROUND | PTX_APPROX | PTX_FULL | PTX_FTZ)
#define PTX__APPROX_FTZ (PTX_APPROX | PTX_FTZ)
#define PTX__RN_SATFINITE (PTX_RN | PTX_SATFINITE)
#define PTX__RS_SATFINITE (PTX_RS | PTX_SATFINITE)
#define PTX__RN_FTZ_SAT_RELU (PTX_RN | PTX_FTZ | PTX_SAT | PTX_RELU)
#define PTX__RN_RZ_RELU_SATFINITE (PTX_RN | PTX_RZ | PTX_RELU | PTX_SATFINITE)

/* Sets of types, one bit each. */
#define PTX__T(type) (UINT64_C(1) << PTX_##type)
#define PTX__I16 (PTX__T(U16) | PTX__T(S16))
#define PTX__I32 (PTX__T(U32) | PTX__T(S32))
#define PTX__I64 (PTX__T(U64) | PTX__T(S64))
#define PTX__INT (PTX__I16 | PTX__I32 | PTX__I64)
#define PTX__I8 (PTX__T(U8) | PTX__T(S8))
#define PTX__SINT (PTX__T(S16) | PTX__T(S32) | PTX__T(S64))
#define PTX__X16 (PTX__T(U16X2) | PTX__T(S16X2))
#define PTX__F16S (PTX__T(F16) | PTX__T(F16X2))
#define PTX__BF16S (PTX__T(BF16) | PTX__T(BF16X2))
#define PTX__FLT (PTX__T(F32) | PTX__T(F64))
#define PTX__BITS (PTX__T(B16) | PTX__T(B32) | PTX__T(B64))
#define PTX__B32_64 (PTX__T(B32) | PTX__T(B64))
#define PTX__H16 (PTX__T(F16) | PTX__T(BF16))
#define PTX__FP8X2 (PTX__T(E4M3X2) | PTX__T(E5M2X2))
#define PTX__FP64X2 (PTX__T(E2M1X2) | PTX__T(E2M3X2) | PTX__T(E3M2X2))
#define PTX__FPX4 (PTX__T(E4M3X4) | PTX__T(E5M2X4) | PTX__T(E2M3X4) | PTX__T(E3M2X4) | PTX__T(E2M1X4))
#define PTX__FP8 (PTX__T(E4M3) | PTX__T(E5M2))
#define PTX__FP864 (PTX__FP8 | PTX__T(E2M3) | PTX__T(E3M2) | PTX__T(E2M1))
#define PTX__I4 (PTX__T(U4) | PTX__T(S4))
#define PTX__SURFACE (PTX__T(B8) | PTX__BITS)
#define PTX__MEMORY (PTX__T(B8) | PTX__BITS | PTX__I8 | PTX__INT | PTX__FLT)
#define PTX__WORDS (PTX__B32_64 | PTX__I32 | PTX__I64 | PTX__FLT)
#define PTX__I42 (PTX__I4 | PTX__T(U2) | PTX__T(S2))

/* TARGETS. A form's first target is a number (90: sm_90 and all later ones) or one of these lists of targets,
   for features that later chips do not inherit. X(name, targets) makes PTX__ON_<name>. */
#define PTX__TARGET_SETS(X)                                                                                  \
    X(90A, "90a")                                                                                            \
    X(90A_100UP, "90a,100a,100f,103a,103f,110a,110f,120a,120f,121a,121f")                                    \
    X(100UP, "100a,100f,103a,103f,110a,110f,120a,120f,121a,121f")                                            \
    X(100_103, "100a,100f,103a,103f")                                                                        \
    X(100_110, "100a,100f,103a,103f,110a,110f")                                                              \
    X(103_110, "103a,103f,110a,110f")                                                                        \
    X(100A_103A, "100a,103a")                                                                                \
    X(100A_103A_110A, "100a,103a,110a")                                                                      \
    X(100A_110A, "100a,110a")                                                                                \
    X(120, "120a,120f,121a,121f")                                                                            \
    X(120A, "120a,121a")                                                                                     \
    X(MULTIMEM, "100a,100f,103a,103f,110a,110f,120a,121a")
#define PTX__ENUM(name, targets) PTX__ON_##name,
enum { PTX__ON_FIRST = 199, PTX__TARGET_SETS(PTX__ENUM) PTX__ON_END };
#undef PTX__ENUM

/* INSTRUCTIONS. One line per form of an instruction. The checks, the target and .version that are required,
   the printed text, the reference and the tests all derive from this line.
     OP(ID, mnemonic, operands, first .version, first target, facts, types, source types, modifiers allowed,
     needed, default)
   First .version: 82 is PTX 8.2. First target: 90 is sm_90, 0 is every target; or a list, see TARGETS.
   The first form of an instruction is an OP, which makes the enumerator PTX_<ID>. Further forms are FORMs,
   without facts: they have those of the OP. (0) is the empty set; empty sets at the end may be left out.
   Needed modifiers are allowed too. Of each needed group of exclusive modifiers one must be given (if none of
   the first group is, the default is added), and every other needed modifier. The first form that fits types,
   modifiers and number of operands is used, preferably one that the target has. Facts are from ptxas 13.0.
   Types that a call does not give are those of its operands at t and c (ptx__infer_types). A form with types,
   but without t among its sources, thus needs ptx_opn or a function of its own.
   Mnemonic: modifiers, type and source type follow it, or replace %m, %t and %s in it; layouts replace %l.
     %1, %2, %4, %h and %q print n, 2n, 4n, n/2 and n/4: n is the number of registers in the '+' group.
   Operands: results, '=', sources.
     t the instruction's type   w twice its width   c the source type   p predicate    u any 32-bit integer
     S s32    y s32 if one of the types is signed, else u32             d any 64-bit integer
     h any 16-bit integer       f f32    z f64      q b128              x anything of 32 bits
     m memory [a+n] of a space that the mnemonic names   v 1 to 8 of t, in braces if more than one (ld, st)
     s [shared of this block]   k [shared of the cluster]   b [mbarrier]   r [mbarrier in the cluster]
     l [row of a matrix, shared]     g [global]     o [generic]     n a generic address      a [tensor memory]
     i, e, j and other capitals: integers with limits, see ptx__slot_limits[]     _ prints '_', not an operand
     {4f} a group of 4 f in braces     {f+w} a group of any length that ptx__group_length_ok('w') allows
     {h-} a group of two elements less than the '+' group     [..] operands in brackets     a|b two results
     a?b of results: b is optional     m?u of sources: u is optional
   In front: '*' the type prints as b16, b32, b64 or pred, and any operand of that width fits;
             '~' the same for the types that ld and st do not know by name (f16 ...);
             '!' the results are read as well: variables. */
/* FACTS. CONVERGENT: the instruction is collective, these threads must execute it together. MEMBERS: the
   lanes in the mask that is its last operand. WARP, GROUP, BLOCK, CLUSTER: all threads of the warp,
   warpgroup, block or cluster. A BLOCK instruction with a count of threads is for that many, in whole warps.
   None of these: no rule. */
#define PTX__CONVERGENT_MEMBERS 1u
#define PTX__CONVERGENT_WARP 2u
#define PTX__CONVERGENT_GROUP 3u
#define PTX__CONVERGENT_BLOCK 4u
#define PTX__CONVERGENT_CLUSTER 5u
/* UNIFORM: how uniform the result is. LANE: it differs between threads. LANE_OF: it is the first operand of
   the lane that the second operand names, if the third is 31; else it differs. WARP, BLOCK: it is uniform in
   a warp, in a block; WARP with a member mask: in the lanes of that mask. None of these: as uniform as the
   operands. */
#define PTX__UNIFORM_LANE (1u << 3)
#define PTX__UNIFORM_LANE_OF (2u << 3)
#define PTX__UNIFORM_WARP (3u << 3)
#define PTX__UNIFORM_BLOCK (4u << 3)
/* EFFECT: on asynchronous copies (cp.async, bulk) and products (wgmma). READ: it reads shared memory, if it
   names that space. */
#define PTX__EFFECT_OF_COPY (1u << 6)
#define PTX__EFFECT_OF_COMMIT (2u << 6)
#define PTX__EFFECT_OF_WAIT_GROUPS (3u << 6)
#define PTX__EFFECT_OF_WAIT (4u << 6)
#define PTX__EFFECT_OF_READ (5u << 6)
#define PTX__EFFECT_OF_MMA_FENCE (6u << 6)
#define PTX__EFFECT_OF_MMA (7u << 6)
#define PTX__EFFECT_OF_MMA_COMMIT (8u << 6)
#define PTX__EFFECT_OF_MMA_WAIT (9u << 6)
#define PTX__EFFECT_OF_BULK (10u << 6)
/* The source operands for which ptxas refuses an immediate: the first, from the second on, from the third on,
   all. */
#define PTX__REGISTER_1 (1u << 10)
#define PTX__REGISTERS_2 (2u << 10)
#define PTX__REGISTERS_3 (3u << 10)
#define PTX__REGISTERS (4u << 10)
#define PTX__NO_FLOATS (1u << 13) /* ptxas refuses a float immediate for an operand of a b type */
#define PTX__PARITY (1u << 14)    /* its second source operand is a parity, 0 or 1 */
#define PTX__IS_MMA (1u << 15)    /* its operands are matrix fragments */
#define PTX__IS_WMMA (1u << 16)
#define PTX__SCALES_1 (1u << 17) /* mma with block scales: scales of a row, a byte each */
#define PTX__SCALES_2 (2u << 17)
#define PTX__SCALES_4 (4u << 17)
#define PTX__MMA (PTX__IS_MMA | PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE)
#define PTX__WMMA (PTX__IS_WMMA | PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE)
#define PTX__WMMA_LOAD (PTX__WMMA | PTX__EFFECT_OF_READ)
#define PTX__WMMA_STORE (PTX__IS_WMMA | PTX__CONVERGENT_WARP)
#define PTX__TEXTURE (PTX__UNIFORM_LANE | PTX__REGISTER_1)
#define PTX__SHUFFLE (PTX__CONVERGENT_MEMBERS | PTX__UNIFORM_LANE)
#define PTX__VOTE (PTX__CONVERGENT_MEMBERS | PTX__UNIFORM_WARP)
#define PTX__REDUX (PTX__VOTE | PTX__NO_FLOATS)
#define PTX__BAR_RED (PTX__CONVERGENT_BLOCK | PTX__UNIFORM_BLOCK)
#define PTX__LDMATRIX (PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE | PTX__EFFECT_OF_READ)
#define PTX__STMATRIX (PTX__CONVERGENT_WARP | PTX__REGISTERS_2)
#define PTX__WGMMA (PTX__CONVERGENT_GROUP | PTX__UNIFORM_LANE | PTX__EFFECT_OF_MMA)

/* How a row writes a set. (0): the empty set. T2(U32, I64): types. M3(RN, FTZ, SAT): modifiers. Each name is
   a type or modifier, or a group from above. A set has at most three names; of source types two, of defaults
   one. To use a group that no row has used so far, add it to these lists. The macros for families
   of rows write PTX__T2 and PTX__M3 in full, because T2 and M3 are parameters of the tables. */
#define PTX__TYPE_GROUPS(X)                                                                                  \
    X(B32_64) X(BF16S) X(BITS) X(F16S) X(FLT) X(FP64X2) X(FP8) X(FP864) X(FP8X2) X(FPX4) X(H16) X(I16)       \
    X(I32) X(I4) X(I42) X(I64) X(I8) X(INT) X(MEMORY) X(SINT) X(SURFACE) X(WORDS) X(X16)
#define PTX__MODIFIER_GROUPS(X)                                                                              \
    X(APPROX_FTZ) X(ATOMIC) X(ATOMIC_GLOBAL) X(ATOMIC_NOFTZ) X(ATOMIC_PLAIN) X(ATOM_BITS) X(ATOM_MINMAX)     \
    X(BOOL) X(BORDER) X(BULK_REDUCE) X(CMP) X(CMP_ORDERED) X(CONVERTIBLE) X(CTA_GROUP) X(DIVIDE) X(FUNNEL)   \
    X(L2_PRIMARY) X(L2_SECONDARY) X(L2_SIZE) X(LAYOUT) X(LAYOUTS) X(LOAD) X(LOAD32) X(LOAD_ONE) X(LOHI)      \
    X(MULTIMEM) X(MULTIMEM_ST) X(REDUCE) X(REDUCE_GLOBAL) X(REDUCE_NOFTZ) X(RELAXED_CLUSTER) X(RELAXED_CTA)  \
    X(RELEASE_CLUSTER) X(RELEASE_GLOBAL) X(RELEASE_GLOBAL_ADD) X(RELEASE_MMIO) X(RELEASE_MMIO_ADD)           \
    X(RN_FTZ_SAT_RELU) X(RN_RZ_RELU_SATFINITE) X(RN_SATFINITE) X(ROUND) X(ROUND_INT) X(RS_SATFINITE)         \
    X(SCOPE) X(STORE) X(STORE32) X(STORE_ONE) X(TEST) X(VEC32) X(WMMA_SPACE)
#define PTX__ENUM(name, text, bits, kind) PTX__CT_##name,
#define PTX__GROUP_ENUM(name) PTX__CT_##name,
enum { PTX__CT_0, PTX_TYPES(PTX__ENUM) PTX__TYPE_GROUPS(PTX__GROUP_ENUM) PTX__CT_END };
#undef PTX__ENUM
#undef PTX__GROUP_ENUM
#define PTX__ENUM(name, ...) PTX__CM_##name,
#define PTX__GROUP_ENUM(name) PTX__CM_##name,
enum {
    PTX__CM_0,
    PTX__ARITH_MODIFIERS(PTX__ENUM) PTX__MEMORY_MODIFIERS(PTX__ENUM) PTX__MODIFIER_GROUPS(PTX__GROUP_ENUM)
    PTX__CM_END
};
#undef PTX__ENUM
#undef PTX__GROUP_ENUM
#define PTX__T1(a) (PTX__CT_##a)
#define PTX__T2(a, b) (PTX__CT_##a, PTX__CT_##b)
#define PTX__T3(a, b, c) (PTX__CT_##a, PTX__CT_##b, PTX__CT_##c)
#define PTX__M1(a) (PTX__CM_##a)
#define PTX__M2(a, b) (PTX__CM_##a, PTX__CM_##b)
#define PTX__M3(a, b, c) (PTX__CM_##a, PTX__CM_##b, PTX__CM_##c)

#define PTX__MIN_MAX(OP, FORM, ID, name)                                                                     \
    OP(ID, name, "t=tt", 10, 0, 0, PTX__T2(INT, F64))                                                        \
    FORM(ID, name, "t=tt", 80, 90, PTX__T1(S32), (0), (0), PTX__M1(RELU))                                    \
    FORM(ID, name, "t=tt", 80, 90, PTX__T1(X16))                                                             \
    FORM(ID, name, "t=tt", 80, 90, PTX__T1(S16X2), (0), (0), PTX__M1(RELU))                                  \
    FORM(ID, name, "t=tt", 10, 0, PTX__T1(F32), (0), PTX__M3(FTZ, NAN, XORSIGN_ABS))                         \
    FORM(ID, name, "t=ttt", 88, 100, PTX__T1(F32), (0), PTX__M3(FTZ, NAN, ABS_OF))                           \
    FORM(ID, name, "t=tt", 70, 80, PTX__T1(F16S), (0), PTX__M3(FTZ, NAN, XORSIGN_ABS))                       \
    FORM(ID, name, "t=tt", 70, 80, PTX__T1(BF16S), (0), PTX__M2(NAN, XORSIGN_ABS))
#define PTX__TABLE_ARITHMETIC(OP, FORM, T1, T2, T3, M1, M2, M3)                                              \
    /* id mnemonic operands version target facts types source allowed needed default */                      \
    /* moves */                                                                                              \
    OP(MOV, "mov", "*t=t", 10, 0, 0, T2(BITS, PRED))                                                         \
    FORM(MOV, "mov", "*t=t", 83, 70, T1(B128))                                                               \
    /* integers and floats */                                                                                \
    OP(ADD, "add", "t=tt", 10, 0, 0, T1(INT))                                                                \
    FORM(ADD, "add", "t=tt", 43, 0, T2(I32, I64), (0), (0), M1(CC))                                          \
    FORM(ADD, "add", "t=tt", 10, 0, T1(S32), (0), (0), M1(SAT))                                              \
    FORM(ADD, "add", "t=tt", 80, 90, T1(X16))                                                                \
    FORM(ADD, "add", "t=tt", 10, 0, T1(F32), (0), M3(ROUND, FTZ, SAT))                                       \
    FORM(ADD, "add", "t=tt", 10, 0, T1(F64), (0), M1(ROUND))                                                 \
    FORM(ADD, "add", "t=tt", 86, 100, T1(F32X2), (0), M2(ROUND, FTZ))                                        \
    FORM(ADD, "add", "t=tt", 42, 53, T1(F16S), (0), M3(RN, FTZ, SAT))                                        \
    FORM(ADD, "add", "t=tt", 78, 90, T1(BF16S), (0), M1(RN))                                                 \
    OP(ADDC, "addc", "t=tt", 43, 0, PTX__UNIFORM_LANE, T2(I32, I64), (0), M1(CC))                            \
    OP(ADD_F32, "add%m.f32%s", "f=cf", 86, 100, 0, (0), T1(H16), M2(ROUND, SAT))                             \
    OP(SUB, "sub", "t=tt", 10, 0, 0, T1(INT))                                                                \
    FORM(SUB, "sub", "t=tt", 43, 0, T2(I32, I64), (0), (0), M1(CC))                                          \
    FORM(SUB, "sub", "t=tt", 10, 0, T1(S32), (0), (0), M1(SAT))                                              \
    FORM(SUB, "sub", "t=tt", 10, 0, T1(F32), (0), M3(ROUND, FTZ, SAT))                                       \
    FORM(SUB, "sub", "t=tt", 10, 0, T1(F64), (0), M1(ROUND))                                                 \
    FORM(SUB, "sub", "t=tt", 86, 100, T1(F32X2), (0), M2(ROUND, FTZ))                                        \
    FORM(SUB, "sub", "t=tt", 42, 53, T1(F16S), (0), M3(RN, FTZ, SAT))                                        \
    FORM(SUB, "sub", "t=tt", 78, 90, T1(BF16S), (0), M1(RN))                                                 \
    OP(SUBC, "subc", "t=tt", 43, 0, PTX__UNIFORM_LANE, T2(I32, I64), (0), M1(CC))                            \
    OP(SUB_F32, "sub%m.f32%s", "f=cf", 86, 100, 0, (0), T1(H16), M2(ROUND, SAT))                             \
    OP(MUL, "mul", "t=tt", 10, 0, 0, T1(INT), (0), (0), M1(LOHI), M1(LO))                                    \
    FORM(MUL, "mul", "w=tt", 10, 0, T2(I16, I32), (0), (0), M1(WIDE))                                        \
    FORM(MUL, "mul", "t=tt", 10, 0, T1(F32), (0), M3(ROUND, FTZ, SAT))                                       \
    FORM(MUL, "mul", "t=tt", 10, 0, T1(F64), (0), M1(ROUND))                                                 \
    FORM(MUL, "mul", "t=tt", 86, 100, T1(F32X2), (0), M2(ROUND, FTZ))                                        \
    FORM(MUL, "mul", "t=tt", 42, 53, T1(F16S), (0), M3(RN, FTZ, SAT))                                        \
    FORM(MUL, "mul", "t=tt", 78, 90, T1(BF16S), (0), M1(RN))                                                 \
    OP(MUL24, "mul24", "t=tt", 10, 0, 0, T1(I32), (0), (0), M1(LOHI), M1(LO))                                \
    OP(MAD, "mad", "t=ttt", 10, 0, 0, T1(INT), (0), (0), M1(LOHI), M1(LO))                                   \
    FORM(MAD, "mad", "t=ttt", 43, 0, T2(I32, I64), (0), (0), M2(LOHI, CC), M1(LO))                           \
    FORM(MAD, "mad", "t=ttt", 10, 0, T1(S32), (0), (0), M2(HI, SAT))                                         \
    FORM(MAD, "mad", "w=ttw", 10, 0, T2(I16, I32), (0), (0), M1(WIDE))                                       \
    OP(MADC, "madc", "t=ttt", 43, 0, PTX__UNIFORM_LANE, T2(I32, I64), (0), M1(CC), M1(LOHI), M1(LO))         \
    OP(MAD24, "mad24", "t=ttt", 10, 0, 0, T1(I32), (0), (0), M1(LOHI), M1(LO))                               \
    FORM(MAD24, "mad24", "t=ttt", 10, 0, T1(S32), (0), (0), M2(HI, SAT))                                     \
    OP(SAD, "sad", "t=ttt", 10, 0, 0, T1(INT))                                                               \
    OP(DP4A, "dp4a", "y=tcu", 50, 61, 0, T1(I32), T1(I32))                                                   \
    OP(DP2A, "dp2a", "y=tcu", 50, 61, 0, T1(I32), T1(I32), (0), M1(LOHI))                                    \
    OP(FMA, "fma", "t=ttt", 10, 0, 0, T1(F32), (0), M2(FTZ, SAT), M1(ROUND), M1(RN))                         \
    FORM(FMA, "fma", "t=ttt", 10, 0, T1(F64), (0), (0), M1(ROUND), M1(RN))                                   \
    FORM(FMA, "fma", "t=ttt", 86, 100, T1(F32X2), (0), M1(FTZ), M1(ROUND), M1(RN))                           \
    FORM(FMA, "fma", "t=ttt", 42, 53, T1(F16S), (0), M1(RN_FTZ_SAT_RELU), M1(RN), M1(RN))                    \
    FORM(FMA, "fma", "t=ttt", 70, 80, T1(BF16S), (0), M1(RELU), M1(RN), M1(RN))                              \
    FORM(FMA, "fma", "t=ttt", 81, 90, T2(F16S, BF16S), (0), M1(RELU), M2(RN, OOB), M1(RN))                   \
    OP(FMA_F32, "fma%m.f32%s", "f=ccf", 86, 100, 0, (0), T1(H16), M1(SAT), M1(ROUND), M1(RN))                \
    OP(DIV, "div", "t=tt", 10, 0, 0, T1(INT))                                                                \
    FORM(DIV, "div", "t=tt", 10, 0, T1(F32), (0), M1(DIVIDE), M3(ROUND, APPROX, FULL), M1(RN))               \
    FORM(DIV, "div", "t=tt", 10, 0, T1(F64), (0), (0), M1(ROUND), M1(RN))                                    \
    OP(REM, "rem", "t=tt", 10, 0, 0, T1(INT))                                                                \
    OP(ABS, "abs", "t=t", 10, 0, 0, T2(SINT, F64))                                                           \
    FORM(ABS, "abs", "t=t", 10, 0, T1(F32), (0), M1(FTZ))                                                    \
    FORM(ABS, "abs", "t=t", 65, 53, T1(F16S), (0), M1(FTZ))                                                  \
    FORM(ABS, "abs", "t=t", 70, 80, T1(BF16S))                                                               \
    OP(NEG, "neg", "t=t", 10, 0, 0, T2(SINT, F64))                                                           \
    FORM(NEG, "neg", "t=t", 10, 0, T1(F32), (0), M1(FTZ))                                                    \
    FORM(NEG, "neg", "t=t", 60, 53, T1(F16S), (0), M1(FTZ))                                                  \
    FORM(NEG, "neg", "t=t", 70, 80, T1(BF16S))                                                               \
    PTX__MIN_MAX(OP, FORM, MIN, "min")                                                                       \
    PTX__MIN_MAX(OP, FORM, MAX, "max")                                                                       \
    OP(RCP, "rcp", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M2(ROUND, APPROX), M1(RN))                        \
    FORM(RCP, "rcp", "t=t", 10, 0, T1(F64), (0), (0), M1(ROUND), M1(RN))                                     \
    FORM(RCP, "rcp", "t=t", 21, 0, T1(F64), (0), (0), M2(APPROX, FTZ))                                       \
    OP(SQRT, "sqrt", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M2(ROUND, APPROX), M1(RN))                      \
    FORM(SQRT, "sqrt", "t=t", 10, 0, T1(F64), (0), (0), M1(ROUND), M1(RN))                                   \
    OP(RSQRT, "rsqrt", "t=t", 40, 0, 0, T1(FLT), (0), M1(FTZ), M1(APPROX), M1(APPROX))                       \
    OP(EX2, "ex2", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M1(APPROX), M1(APPROX))                           \
    FORM(EX2, "ex2", "t=t", 70, 75, T1(F16S), (0), (0), M1(APPROX), M1(APPROX))                              \
    FORM(EX2, "ex2", "t=t", 78, 90, T1(BF16S), (0), (0), M2(APPROX, FTZ), M1(APPROX_FTZ))                    \
    OP(LG2, "lg2", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M1(APPROX), M1(APPROX))                           \
    OP(SIN, "sin", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M1(APPROX), M1(APPROX))                           \
    OP(COS, "cos", "t=t", 10, 0, 0, T1(F32), (0), M1(FTZ), M1(APPROX), M1(APPROX))                           \
    OP(TANH, "tanh", "t=t", 70, 75, 0, T2(F32, F16S), (0), (0), M1(APPROX), M1(APPROX))                      \
    FORM(TANH, "tanh", "t=t", 78, 90, T1(BF16S), (0), (0), M1(APPROX), M1(APPROX))                           \
    OP(TESTP, "testp", "p=t", 20, 0, 0, T1(FLT), (0), (0), M1(TEST))                                         \
    OP(COPYSIGN, "copysign", "t=tt", 20, 0, 0, T1(FLT))
/* setp and set: a comparison, and one whose result is combined with a predicate. */
#define PTX__SETP_FORMS(FORM, results, version, sm, types, allowed, compare, combined)                       \
    FORM(SETP, "setp", results "=tt", version, sm, types, (0), allowed, compare)                             \
    FORM(SETP, "setp", results "=ttp", version, sm, types, (0), allowed, combined)
#define PTX__SET_FORMS(FORM, version, sm, types, sources, allowed, compare, combined)                        \
    FORM(SET, "set", "t=cc", version, sm, types, sources, allowed, compare)                                  \
    FORM(SET, "set", "t=ccp", version, sm, types, sources, allowed, combined)
#define PTX__SET_CMP(FORM, version, sm, types, sources, allowed)                                             \
    PTX__SET_FORMS(FORM, version, sm, types, sources, allowed, PTX__M1(CMP), PTX__M2(CMP, BOOL))
#define PTX__SETP_CMP(FORM, results, version, sm, types, allowed)                                            \
    PTX__SETP_FORMS(FORM, results, version, sm, types, allowed, PTX__M1(CMP), PTX__M2(CMP, BOOL))
#define PTX__TABLE_LOGIC(OP, FORM, T1, T2, T3, M1, M2, M3)                                                   \
    /* logic and bits */                                                                                     \
    OP(AND, "and", "*t=tt", 10, 0, 0, T2(BITS, PRED))                                                        \
    OP(OR, "or", "*t=tt", 10, 0, 0, T2(BITS, PRED))                                                          \
    OP(XOR, "xor", "*t=tt", 10, 0, 0, T2(BITS, PRED))                                                        \
    OP(NOT, "not", "*t=t", 10, 0, 0, T2(BITS, PRED))                                                         \
    OP(CNOT, "cnot", "*t=t", 10, 0, 0, T1(BITS))                                                             \
    OP(SHL, "shl", "*t=te", 10, 0, 0, T1(BITS))                                                              \
    OP(SHR, "shr", "t=te", 10, 0, 0, T2(INT, BITS))                                                          \
    OP(SHF_L, "shf.l", "*t=ttj", 31, 32, 0, T1(B32), (0), (0), M1(FUNNEL), M1(WRAP))                         \
    OP(SHF_R, "shf.r", "*t=ttj", 31, 32, 0, T1(B32), (0), (0), M1(FUNNEL), M1(WRAP))                         \
    OP(LOP3, "lop3", "*t=ttti", 43, 50, 0, T1(B32))                                                          \
    FORM(LOP3, "lop3", "*_|p=tttip", 82, 70, T1(B32), (0), (0), M2(BOOL_AND, BOOL_OR))                       \
    FORM(LOP3, "lop3", "*t|p=tttip", 82, 70, T1(B32), (0), (0), M2(BOOL_AND, BOOL_OR))                       \
    OP(PRMT, "prmt", "*t=ttU", 20, 0, 0, T1(B32))                                                            \
    OP(PRMT_F4E, "prmt.b32.f4e", "x=xxu", 20, 0, 0, (0))                                                     \
    OP(PRMT_B4E, "prmt.b32.b4e", "x=xxu", 20, 0, 0, (0))                                                     \
    OP(PRMT_RC8, "prmt.b32.rc8", "x=xxu", 20, 0, 0, (0))                                                     \
    OP(PRMT_ECL, "prmt.b32.ecl", "x=xxu", 20, 0, 0, (0))                                                     \
    OP(PRMT_ECR, "prmt.b32.ecr", "x=xxu", 20, 0, 0, (0))                                                     \
    OP(PRMT_RC16, "prmt.b32.rc16", "x=xxu", 20, 0, 0, (0))                                                   \
    OP(BFE, "bfe", "t=tej", 20, 0, 0, T2(I32, I64))                                                          \
    OP(BFI, "bfi", "*t=ttej", 20, 0, 0, T1(B32_64))                                                          \
    OP(BFIND, "bfind", "u=t", 20, 0, 0, T2(I32, I64), (0), M1(SHIFTAMT))                                     \
    OP(FNS, "fns.b32", "u=uuu", 60, 30, 0, (0))                                                              \
    OP(BMSK, "bmsk%m.b32", "u=uu", 76, 70, 0, (0), (0), (0), M1(FUNNEL))                                     \
    OP(SZEXT, "szext", "t=tu", 76, 70, 0, T1(I32), (0), (0), M1(FUNNEL))                                     \
    OP(POPC, "popc", "*u=t", 20, 0, 0, T1(B32_64))                                                           \
    OP(CLZ, "clz", "*u=t", 20, 0, 0, T1(B32_64))                                                             \
    OP(BREV, "brev", "*t=t", 20, 0, 0, T1(B32_64))                                                           \
    /* comparison and selection */                                                                           \
    OP(SETP, "setp", "p?p=tt", 10, 0, 0, T1(INT), (0), (0), M1(CMP_ORDERED))                                 \
    FORM(SETP, "setp", "p?p=ttp", 10, 0, T1(INT), (0), (0), M2(CMP_ORDERED, BOOL))                           \
    PTX__SETP_FORMS(FORM, "p?p", 10, 0, T1(BITS), (0), M2(EQ, NE), M3(EQ, NE, BOOL))                         \
    PTX__SETP_CMP(FORM, "p?p", 10, 0, T1(F32), M1(FTZ))                                                      \
    PTX__SETP_CMP(FORM, "p?p", 10, 0, T1(F64), (0))                                                          \
    PTX__SETP_CMP(FORM, "p", 42, 53, T1(F16), M1(FTZ))                                                       \
    PTX__SETP_CMP(FORM, "p", 78, 90, T1(BF16), (0))                                                          \
    PTX__SETP_CMP(FORM, "p|p", 42, 53, T1(F16X2), M1(FTZ))                                                   \
    PTX__SETP_CMP(FORM, "p|p", 78, 90, T1(BF16X2), (0))                                                      \
    OP(SET, "set", "t=cc", 10, 0, 0, T2(I32, F32), T1(INT), (0), M1(CMP_ORDERED))                            \
    FORM(SET, "set", "t=ccp", 10, 0, T2(I32, F32), T1(INT), (0), M2(CMP_ORDERED, BOOL))                      \
    PTX__SET_FORMS(FORM, 10, 0, T2(I32, F32), T1(BITS), (0), M2(EQ, NE), M3(EQ, NE, BOOL))                   \
    PTX__SET_CMP(FORM, 10, 0, T2(I32, F32), T1(F32), M1(FTZ))                                                \
    PTX__SET_CMP(FORM, 10, 0, T2(I32, F32), T1(F64), (0))                                                    \
    PTX__SET_CMP(FORM, 42, 53, T1(F16), T1(F16), M1(FTZ))                                                    \
    PTX__SET_CMP(FORM, 42, 53, T1(F16X2), T1(F16X2), M1(FTZ))                                                \
    PTX__SET_CMP(FORM, 65, 53, T2(I16, I32), T1(F16), M1(FTZ))                                               \
    PTX__SET_CMP(FORM, 65, 53, T1(I32), T1(F16X2), M1(FTZ))                                                  \
    PTX__SET_CMP(FORM, 78, 90, T1(BF16), T1(BF16), (0))                                                      \
    PTX__SET_CMP(FORM, 78, 90, T1(BF16X2), T1(BF16X2), (0))                                                  \
    PTX__SET_CMP(FORM, 78, 90, T2(I16, I32), T1(BF16), (0))                                                  \
    PTX__SET_CMP(FORM, 78, 90, T1(I32), T1(BF16X2), (0))                                                     \
    OP(SELP, "selp", "*t=ttp", 10, 0, 0, T1(BITS))                                                           \
    OP(SLCT, "slct", "*t=ttc", 10, 0, 0, T1(BITS), T1(S32))                                                  \
    FORM(SLCT, "slct", "*t=ttc", 10, 0, T1(BITS), T1(F32), M1(FTZ))
#define PTX__CVT(FORM, version, sm, types, sources, ...)                                                     \
    FORM(CVT, "cvt", "t=c", version, sm, types, sources, __VA_ARGS__)
#define PTX__TABLE_CONVERSIONS(OP, FORM, T1, T2, T3, M1, M2, M3)                                             \
    /* conversions */                                                                                        \
    OP(CVT, "cvt", "t=c", 10, 0, PTX__REGISTERS_3, T2(INT, I8), T2(INT, I8), M1(SAT))                        \
    PTX__CVT(FORM, 10, 0, T2(INT, I8), T1(F32), M2(FTZ, SAT), M1(ROUND_INT), M1(RZI))                        \
    PTX__CVT(FORM, 10, 0, T2(INT, I8), T2(F64, F16), M1(SAT), M1(ROUND_INT), M1(RZI))                        \
    PTX__CVT(FORM, 78, 90, T1(INT), T1(BF16), (0), M1(ROUND_INT), M1(RZI))                                   \
    PTX__CVT(FORM, 10, 0, T2(FLT, F16), T2(INT, I8), M1(SAT), M1(ROUND), M1(RN))                             \
    PTX__CVT(FORM, 78, 90, T1(BF16), T1(INT), (0), M1(ROUND), M1(RN))                                        \
    PTX__CVT(FORM, 10, 0, T1(F32), T1(F64), M2(FTZ, SAT), M1(ROUND), M1(RN))                                 \
    PTX__CVT(FORM, 10, 0, T1(F16), T1(F32), M2(FTZ, SAT), M1(ROUND), M1(RN))                                 \
    PTX__CVT(FORM, 70, 80, T1(F16), T1(F32), (0), M3(RN, RZ, RELU), M1(RN))                                  \
    PTX__CVT(FORM, 81, 0, T1(F16), T1(F32), (0), M3(RN, RZ, SATFINITE), M1(RN))                              \
    PTX__CVT(FORM, 81, 80, T1(H16), T1(F32), M1(RN_RZ_RELU_SATFINITE), M3(RN, RZ, SATFINITE), M1(RN))        \
    PTX__CVT(FORM, 10, 0, T1(F16), T1(F64), M1(SAT), M1(ROUND), M1(RN))                                      \
    PTX__CVT(FORM, 10, 0, T1(FLT), T1(F16), M1(SAT))                                                         \
    PTX__CVT(FORM, 10, 0, T1(F32), T1(F16), M1(SAT), M1(FTZ))                                                \
    PTX__CVT(FORM, 10, 0, T1(F64), T1(F32), M2(FTZ, SAT))                                                    \
    PTX__CVT(FORM, 10, 0, T1(F32), T1(F32), M2(FTZ, SAT), M1(ROUND_INT))                                     \
    PTX__CVT(FORM, 10, 0, T1(F32), T1(F32), M1(FTZ), M1(SAT))                                                \
    PTX__CVT(FORM, 10, 0, T1(F64), T1(F64), M1(SAT), M1(ROUND_INT))                                          \
    PTX__CVT(FORM, 10, 0, T1(F16), T1(F16), M1(SAT), M1(ROUND_INT))                                          \
    PTX__CVT(FORM, 70, 80, T1(BF16), T1(F32), M1(RELU), M2(RN, RZ), M1(RN))                                  \
    PTX__CVT(FORM, 78, 90, T1(BF16), T2(F16, F64), (0), M1(ROUND), M1(RN))                                   \
    PTX__CVT(FORM, 78, 90, T1(F16), T1(BF16), (0), M1(ROUND), M1(RN))                                        \
    FORM(CVT, "cvt", "t=c", 71, 80, T1(F32), T1(BF16))                                                       \
    PTX__CVT(FORM, 78, 90, T1(F32), T1(BF16), (0), M1(FTZ))                                                  \
    FORM(CVT, "cvt", "t=c", 78, 90, T1(F64), T1(BF16))                                                       \
    PTX__CVT(FORM, 70, 80, T1(TF32), T1(F32), (0), M1(RNA), M1(RNA))                                         \
    PTX__CVT(FORM, 81, 80, T1(TF32), T1(F32), (0), M2(RNA, SATFINITE))                                       \
    PTX__CVT(FORM, 78, 90, T1(TF32), T1(F32), M1(RELU), M2(RN, RZ))                                          \
    PTX__CVT(FORM, 86, 100, T1(TF32), T1(F32), M1(RN_RZ_RELU_SATFINITE), M3(RN, RZ, SATFINITE))              \
    PTX__CVT(FORM, 81, 89, T1(FP8X2), T1(F16X2), M1(RELU), M2(RN, SATFINITE), M1(RN_SATFINITE))              \
    PTX__CVT(FORM, 81, 89, T1(F16X2), T1(FP8X2), M1(RELU), M1(RN), M1(RN))                                   \
    PTX__CVT(FORM, 86, PTX__ON_100UP, T1(F16X2), T1(FP64X2), M1(RELU), M1(RN), M1(RN))                       \
    PTX__CVT(FORM, 86, PTX__ON_100UP, T1(UE8M0X2), T1(BF16X2), M1(SATFINITE), M2(RZ, RP))                    \
    PTX__CVT(FORM, 86, PTX__ON_100UP, T1(BF16X2), T1(UE8M0X2), (0), M1(RN), M1(RN))                          \
    OP(CVT_PAIR, "cvt", "t=cc", 70, 80, PTX__REGISTERS_3, T2(F16X2, BF16X2), T1(F32), M1(RELU), M2(RN, RZ),  \
        M1(RN))                                                                                              \
    FORM(CVT_PAIR, "cvt", "t=cc", 81, 80, T2(F16X2, BF16X2), T1(F32), M1(RN_RZ_RELU_SATFINITE),              \
        M3(RN, RZ, SATFINITE), M1(RN))                                                                       \
    FORM(CVT_PAIR, "cvt", "t=ccu", 87, PTX__ON_100A_103A, T2(F16X2, BF16X2), T1(F32), M2(RELU, SATFINITE),   \
        M1(RS))                                                                                              \
    FORM(CVT_PAIR, "cvt", "t=cc", 81, 89, T1(FP8X2), T1(F32), M1(RELU), M2(RN, SATFINITE), M1(RN_SATFINITE)) \
    FORM(CVT_PAIR, "cvt", "t=cc", 86, PTX__ON_100UP, T1(FP64X2), T1(F32), M1(RELU), M2(RN, SATFINITE),       \
        M1(RN_SATFINITE))                                                                                    \
    FORM(CVT_PAIR, "cvt", "t=cc", 86, PTX__ON_100UP, T1(UE8M0X2), T1(F32), M1(SATFINITE), M2(RZ, RP))        \
    OP(CVT_QUAD, "cvt", "t={4c}u", 87, PTX__ON_100A_103A, PTX__REGISTERS_3, T1(FPX4), T1(F32), M1(RELU),     \
        M2(RS, SATFINITE), M1(RS_SATFINITE))                                                                 \
    OP(CVT_PACK, "cvt.pack.sat%t.s32", "u=uu", 65, 72, 0, T1(I16))                                           \
    FORM(CVT_PACK, "cvt.pack.sat%t.s32.b32", "u=uuu", 65, 72, T1(I8))                                        \
    FORM(CVT_PACK, "cvt.pack.sat%t.s32.b32", "u=uuu", 65, 75, T1(I42))                                       \
    /* addresses */                                                                                          \
    OP(CVTA_TO, "cvta.to", "t=t", 23, 20, 0, T1(U64), (0), (0), M1(CONVERTIBLE))                             \
    OP(CVTA, "cvta", "t=t", 23, 20, 0, T1(U64), (0), (0), M1(CONVERTIBLE))                                   \
    FORM(CVTA, "cvta", "t=t", 77, 70, T1(U64), (0), (0), M1(M_PARAM))                                        \
    FORM(CVTA, "cvta", "t=t", 78, 90, T1(U64), (0), (0), M1(M_SHARED_CLUSTER))                               \
    OP(ISSPACEP, "isspacep", "p=d", 31, 20, 0, (0), (0), (0), M1(CONVERTIBLE))                               \
    FORM(ISSPACEP, "isspacep", "p=d", 77, 70, (0), (0), (0), M1(M_PARAM))                                    \
    FORM(ISSPACEP, "isspacep", "p=d", 78, 90, (0), (0), (0), M1(M_SHARED_CLUSTER))                           \
    OP(MAPA, "mapa.shared::cluster.u32", "u=uu", 78, 90, 0, (0))                                             \
    OP(MAPA_GENERIC, "mapa.u64", "d=du", 78, 90, 0, (0))                                                     \
    OP(GETCTARANK, "getctarank.shared::cluster.u32", "u=u", 78, 90, 0, (0))                                  \
    OP(GETCTARANK_GENERIC, "getctarank.u64", "u=d", 78, 90, 0, (0))
/* multimem.ld_reduce and multimem.red: reductions over the devices of a multicast group. */
#define PTX__MULTIMEM_FORMS(FORM, ID, name, scalar, vector, allowed)                                         \
    FORM(MULTIMEM_##ID, name, scalar, 81, 90, PTX__T2(I32, U64), (0), allowed, PTX__M1(ATOM_ADD))            \
    FORM(MULTIMEM_##ID, name, scalar, 81, 90, PTX__T1(B32_64), (0), allowed, PTX__M1(ATOM_BITS))             \
    FORM(MULTIMEM_##ID, name, scalar, 81, 90, PTX__T1(FLT), (0), allowed, PTX__M1(ATOM_ADD))                 \
    FORM(MULTIMEM_##ID, name "%m.v%1%t", vector, 81, 90, PTX__T1(F32), (0), allowed, PTX__M1(ATOM_ADD))      \
    FORM(MULTIMEM_##ID, name "%m.v%1%t", vector, 81, 90, PTX__T2(F16X2, BF16X2), (0), allowed,               \
        PTX__M2(ATOM_ADD, ATOM_MINMAX))
/* The additions, increments and decrements of atom and red. */
#define PTX__ATOM_FORMS(FORM, ID, name, operands, allowed)                                                   \
    FORM(ID, name, operands, 20, 20, PTX__T3(I32, U64, F32), (0), allowed, PTX__M1(ATOM_ADD))                \
    FORM(ID, name, operands, 50, 60, PTX__T1(F64), (0), allowed, PTX__M1(ATOM_ADD))                          \
    FORM(ID, name, operands, 20, 20, PTX__T1(U32), (0), allowed, PTX__M2(ATOM_INC, ATOM_DEC))                \
    FORM(ID, name, operands, 63, 70, PTX__T1(F16S), (0), allowed, PTX__M2(ATOM_ADD, NOFTZ))                  \
    FORM(ID, name, operands, 78, 90, PTX__T1(BF16S), (0), allowed, PTX__M2(ATOM_ADD, NOFTZ))
#define PTX__RED_ASYNC "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
#define PTX__TABLE_MEMORY(OP, FORM, T1, T2, T3, M1, M2, M3)                                                  \
    /* memory */                                                                                             \
    OP(LD, "ld", "~v=m", 10, 0, PTX__UNIFORM_LANE | PTX__EFFECT_OF_READ, T1(MEMORY), (0), M1(LOAD))          \
    FORM(LD, "ld", "~v=m", 88, 100, T1(WORDS), (0), M1(LOAD32), M1(VEC32))                                   \
    FORM(LD, "ld", "~v=m", 83, 70, T1(B128), (0), M1(LOAD_ONE))                                              \
    OP(ST, "st", "~=mv", 10, 0, 0, T1(MEMORY), (0), M1(STORE))                                               \
    FORM(ST, "st", "~=mv", 88, 100, T1(WORDS), (0), M1(STORE32), M1(VEC32))                                  \
    FORM(ST, "st", "~=mv", 83, 70, T1(B128), (0), M1(STORE_ONE))                                             \
    OP(LDU, "ldu", "t=m", 20, 0, PTX__UNIFORM_LANE, T1(MEMORY), (0), M1(M_GLOBAL))                           \
    FORM(LDU, "ldu%m.v%1%t", "{t+v}=m", 20, 0, T1(MEMORY), (0), M1(M_GLOBAL))                                \
    OP(ST_ASYNC, "st.async.shared::cluster.mbarrier::complete_tx::bytes", "=ktr", 81, 90, PTX__NO_FLOATS,    \
        T1(WORDS))                                                                                           \
    FORM(ST_ASYNC, "st.async.shared::cluster.mbarrier::complete_tx::bytes.v%1%t", "=k{t+v}r", 81, 90,        \
        T1(WORDS))                                                                                           \
    OP(ST_ASYNC_GLOBAL, "st.async", "=mt", 87, 100, PTX__NO_FLOATS, T3(BITS, INT, FLT), (0),                 \
        M1(RELEASE_MMIO), M1(RELEASE_GLOBAL))                                                                \
    OP(ST_BULK, "st.bulk.weak.shared::cta", "=sdZ", 86, 100, 0, (0))                                         \
    OP(PREFETCH_L1, "prefetch%m.L1", "=m", 20, 0, 0, (0), (0), M2(M_GLOBAL, M_LOCAL))                        \
    OP(PREFETCH_L2, "prefetch%m.L2", "=m", 20, 0, 0, (0), (0), M2(M_GLOBAL, M_LOCAL))                        \
    OP(PREFETCH_L2_EVICT_LAST, "prefetch.global.L2::evict_last", "=g", 74, 80, 0, (0))                       \
    OP(PREFETCH_L2_EVICT_NORMAL, "prefetch.global.L2::evict_normal", "=g", 74, 80, 0, (0))                   \
    OP(PREFETCHU_L1, "prefetchu.L1", "=o", 20, 0, 0, (0))                                                    \
    OP(PREFETCH_TENSORMAP, "prefetch%m.tensormap", "=m", 80, 90, 0, (0), (0), M2(M_PARAM, M_CONST))          \
    OP(APPLYPRIORITY, "applypriority%m.L2::evict_normal", "=mD", 74, 80, 0, (0), (0), M1(M_GLOBAL))          \
    OP(DISCARD, "discard%m.L2", "=mD", 74, 80, 0, (0), (0), M1(M_GLOBAL))                                    \
    OP(CREATEPOLICY, "createpolicy.fractional%m.b64", "d=", 74, 80, 0, (0), (0), M1(L2_SECONDARY),           \
        M1(L2_PRIMARY))                                                                                      \
    FORM(CREATEPOLICY, "createpolicy.fractional%m.b64", "d=f", 74, 80, (0), (0), M1(L2_SECONDARY),           \
        M1(L2_PRIMARY))                                                                                      \
    OP(CREATEPOLICY_RANGE, "createpolicy.range%m.b64", "d=muu", 74, 80, 0, (0), (0),                         \
        M2(L2_SECONDARY, M_GLOBAL), M1(L2_PRIMARY))                                                          \
    OP(CREATEPOLICY_CVT, "createpolicy.cvt.L2.b64", "d=d", 74, 80, 0, (0))                                   \
    OP(MULTIMEM_LD_REDUCE, "multimem.ld_reduce", "t=m", 81, 90, PTX__UNIFORM_LANE, T2(I32, I64), (0),        \
        M1(MULTIMEM), M1(ATOM_MINMAX))                                                                       \
    PTX__MULTIMEM_FORMS(FORM, LD_REDUCE, "multimem.ld_reduce", "t=m", "{t+v}=m", M1(MULTIMEM))               \
    FORM(MULTIMEM_LD_REDUCE, "multimem.ld_reduce%m.v%1%t", "{t+v}=m", 82, 90, T2(F16X2, BF16X2), (0),        \
        M1(MULTIMEM), M2(ATOM_ADD, ACC_F32))                                                                 \
    FORM(MULTIMEM_LD_REDUCE, "multimem.ld_reduce%m.v%1%t", "{t+v}=m", 86, PTX__ON_MULTIMEM,                  \
        T2(E4M3X4, E5M2X4), (0), M1(MULTIMEM), M2(ATOM_ADD, ATOM_MINMAX))                                    \
    FORM(MULTIMEM_LD_REDUCE, "multimem.ld_reduce%m.v%1%t", "{t+v}=m", 86, PTX__ON_MULTIMEM,                  \
        T2(E4M3X4, E5M2X4), (0), M1(MULTIMEM), M2(ATOM_ADD, ACC_F16))                                        \
    OP(MULTIMEM_ST, "multimem.st", "=mt", 81, 90, PTX__UNIFORM_LANE, T1(WORDS), (0), M1(MULTIMEM_ST))        \
    FORM(MULTIMEM_ST, "multimem.st%m.v%1%t", "=m{t+v}", 81, 90, T3(F32, F16X2, BF16X2), (0),                 \
        M1(MULTIMEM_ST))                                                                                     \
    OP(MULTIMEM_RED, "multimem.red", "=mt", 81, 90, PTX__UNIFORM_LANE, T2(I32, I64), (0), M1(MULTIMEM_ST),   \
        M1(ATOM_MINMAX))                                                                                     \
    PTX__MULTIMEM_FORMS(FORM, RED, "multimem.red", "=mt", "=m{t+v}", M1(MULTIMEM_ST))                        \
    /* atomics */                                                                                            \
    OP(ATOMIC_BITS, "atom", "*t=mt", 32, 32, PTX__UNIFORM_LANE, T1(B32_64), (0), M1(ATOMIC),                 \
        M2(ATOM_BITS, ATOM_EXCH))                                                                            \
    FORM(ATOMIC_BITS, "atom", "*t=mt", 83, 90, T1(B128), (0), M1(ATOMIC), M1(ATOM_EXCH))                     \
    OP(ATOMIC_CAS, "atom", "*t=mtt", 63, 70, PTX__UNIFORM_LANE, T1(BITS), (0), M1(ATOMIC_PLAIN),             \
        M1(ATOM_CAS), M1(ATOM_CAS))                                                                          \
    FORM(ATOMIC_CAS, "atom", "*t=mtt", 83, 90, T1(B128), (0), M1(ATOMIC_PLAIN), M1(ATOM_CAS), M1(ATOM_CAS))  \
    OP(ATOMIC, "atom", "t=mt", 32, 32, PTX__UNIFORM_LANE, T2(I32, I64), (0), M1(ATOMIC), M1(ATOM_MINMAX))    \
    PTX__ATOM_FORMS(FORM, ATOMIC, "atom", "t=mt", M1(ATOMIC))                                                \
    OP(ATOM_VECTOR, "atom%m.v%1%t", "{t+v}=m{t+v}", 81, 90, PTX__UNIFORM_LANE, T1(F32), (0),                 \
        M1(ATOMIC_GLOBAL), M1(ATOM_ADD))                                                                     \
    FORM(ATOM_VECTOR, "atom%m.v%1%t", "{t+v}=m{t+v}", 81, 90, T2(F16X2, BF16X2), (0), M1(ATOMIC_NOFTZ),      \
        M3(ATOM_ADD, ATOM_MINMAX, NOFTZ))                                                                    \
    FORM(ATOM_VECTOR, "atom%m.v%1%t", "{t+e}=m{t+e}", 81, 90, T1(H16), (0), M1(ATOMIC_NOFTZ),                \
        M3(ATOM_ADD, ATOM_MINMAX, NOFTZ))                                                                    \
    OP(RED_BITS, "red", "*=mt", 32, 32, 0, T1(B32_64), (0), M1(REDUCE), M1(ATOM_BITS))                       \
    OP(RED, "red", "=mt", 32, 32, 0, T2(I32, I64), (0), M1(REDUCE), M1(ATOM_MINMAX))                         \
    PTX__ATOM_FORMS(FORM, RED, "red", "=mt", M1(REDUCE))                                                     \
    OP(RED_VECTOR, "red%m.v%1%t", "=m{t+v}", 81, 90, 0, T1(F32), (0), M1(REDUCE_GLOBAL), M1(ATOM_ADD))       \
    FORM(RED_VECTOR, "red%m.v%1%t", "=m{t+v}", 81, 90, T2(F16X2, BF16X2), (0), M1(REDUCE_NOFTZ),             \
        M3(ATOM_ADD, ATOM_MINMAX, NOFTZ))                                                                    \
    FORM(RED_VECTOR, "red%m.v%1%t", "=m{t+e}", 81, 90, T1(H16), (0), M1(REDUCE_NOFTZ),                       \
        M3(ATOM_ADD, ATOM_MINMAX, NOFTZ))                                                                    \
    OP(RED_ASYNC, PTX__RED_ASYNC, "=ktr", 81, 90, 0, T1(I32), (0), (0), M2(ATOM_ADD, ATOM_MINMAX))           \
    FORM(RED_ASYNC, PTX__RED_ASYNC, "=ktr", 81, 90, T1(U32), (0), (0), M2(ATOM_INC, ATOM_DEC))               \
    FORM(RED_ASYNC, PTX__RED_ASYNC, "=ktr", 81, 90, T1(U64), (0), (0), M1(ATOM_ADD))                         \
    FORM(RED_ASYNC, PTX__RED_ASYNC, "=ktr", 81, 90, T1(B32), (0), (0), M1(ATOM_BITS))                        \
    OP(RED_ASYNC_GLOBAL, "red.async", "=mt", 87, 100, 0, T2(I32, I64), (0), M1(RELEASE_MMIO_ADD),            \
        M1(RELEASE_GLOBAL_ADD))
#define PTX__TX_BYTES ".mbarrier::complete_tx::bytes"
/* cp.async: plain; with the number of source bytes; with an L2 policy; with both. IGNORE: where the predicate
   is true, the source is ignored and zeros are written. */
#define PTX__CP_ASYNC(OP, FORM, ID, name, operands)                                                          \
    OP(CP_ASYNC_##ID, name, operands, 70, 80, PTX__EFFECT_OF_COPY, (0), (0), PTX__M1(L2_SIZE))               \
    FORM(CP_ASYNC_##ID, name, operands "u", 70, 80, (0), (0), PTX__M1(L2_SIZE))                              \
    FORM(CP_ASYNC_##ID, name, operands "d", 74, 80, (0), (0), PTX__M1(L2_SIZE), PTX__M1(L2_CACHE_HINT))      \
    FORM(CP_ASYNC_##ID, name, operands "ud", 74, 80, (0), (0), PTX__M1(L2_SIZE), PTX__M1(L2_CACHE_HINT))     \
    OP(CP_ASYNC_##ID##_IGNORE, name, operands "p", 75, 80, PTX__EFFECT_OF_COPY, (0), (0), PTX__M1(L2_SIZE))
/* HINTED: a copy, and the same with an L2 policy. MULTICAST: both of these, and to several blocks. */
#define PTX__HINTED(OP, FORM, ID, name, operands, version, facts)                                            \
    OP(ID, name "%m", operands, version, 90, facts, (0))                                                     \
    FORM(ID, name "%m", operands "d", version, 90, (0), (0), (0), PTX__M1(L2_CACHE_HINT))
#define PTX__MULTICAST(OP, FORM, ID, name, operands)                                                         \
    PTX__HINTED(OP, FORM, ID, name, operands, 80, PTX__EFFECT_OF_BULK)                                       \
    FORM(ID, name "%m", operands "h", 80, 90, (0), (0), (0), PTX__M1(MULTICAST))                             \
    FORM(ID, name "%m", operands "hd", 80, 90, (0), (0), (0), PTX__M2(MULTICAST, L2_CACHE_HINT))
#define PTX__REDUCE_S2G "cp.reduce.async.bulk.global.shared::cta.bulk_group%m%t"
#define PTX__REDUCE_S2S "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes%m%t"
#define PTX__TABLE_COPIES(OP, FORM, T1, T2, T3, M1, M2, M3)                                                  \
    /* fences */                                                                                             \
    OP(FENCE, "fence", "=", 60, 70, 0, (0), (0), (0), M3(ACQ_REL, SC, SCOPE), M1(ACQ_REL))                   \
    FORM(FENCE, "fence", "=", 60, 70, (0), (0), (0), M3(ACQUIRE, RELEASE, SCOPE))                            \
    OP(FENCE_PROXY_ALIAS, "fence.proxy.alias", "=", 75, 70, 0, (0))                                          \
    OP(FENCE_PROXY_ASYNC, "fence.proxy.async", "=", 80, 90, 0, (0), (0), M1(M_GLOBAL))                       \
    OP(FENCE_PROXY_ASYNC_SHARED, "fence.proxy.async.shared::cta", "=", 80, 90, 0, (0))                       \
    OP(FENCE_PROXY_ASYNC_CLUSTER, "fence.proxy.async.shared::cluster", "=", 80, 90, 0, (0))                  \
    OP(FENCE_MBARRIER_INIT, "fence.mbarrier_init.release.cluster", "=", 80, 90, 0, (0))                      \
    OP(FENCE_TENSORMAP_RELEASE, "fence.proxy.tensormap::generic.release", "=", 83, 90, 0, (0), (0), (0),     \
        M1(SCOPE))                                                                                           \
    OP(FENCE_TENSORMAP_ACQUIRE, "fence.proxy.tensormap::generic.acquire", "=oD", 83, 90, 0, (0), (0), (0),   \
        M1(SCOPE))                                                                                           \
    OP(FENCE_ACQUIRE_CLUSTER, "fence.acquire.sync_restrict::shared::cluster.cluster", "=", 86, 90, 0, (0))   \
    OP(FENCE_RELEASE_CTA, "fence.release.sync_restrict::shared::cta.cluster", "=", 86, 90, 0, (0))           \
    OP(FENCE_PROXY_ACQUIRE_CLUSTER,                                                                          \
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", "=", 86, 90, 0, (0))    \
    OP(FENCE_PROXY_RELEASE_CTA, "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster",     \
        "=", 86, 90, 0, (0))                                                                                 \
    OP(MEMBAR_CTA, "membar.cta", "=", 14, 0, 0, (0))                                                         \
    OP(MEMBAR_GL, "membar.gl", "=", 14, 0, 0, (0))                                                           \
    OP(MEMBAR_SYS, "membar.sys", "=", 20, 0, 0, (0))                                                         \
    /* asynchronous copies */                                                                                \
    PTX__CP_ASYNC(OP, FORM, CA, "cp.async.ca.shared.global", "=sgA")                                         \
    PTX__CP_ASYNC(OP, FORM, CG, "cp.async.cg.shared.global", "=sgB")                                         \
    OP(CP_ASYNC_COMMIT_GROUP, "cp.async.commit_group", "=", 70, 80, PTX__EFFECT_OF_COMMIT, (0))              \
    OP(CP_ASYNC_WAIT_GROUP, "cp.async.wait_group", "=J", 70, 80, PTX__EFFECT_OF_WAIT_GROUPS, (0))            \
    OP(CP_ASYNC_WAIT_ALL, "cp.async.wait_all", "=", 70, 80, PTX__EFFECT_OF_WAIT, (0))                        \
    OP(CP_ASYNC_MBARRIER_ARRIVE, "cp.async.mbarrier.arrive.shared.b64", "=b", 70, 80, PTX__EFFECT_OF_WAIT,   \
        (0))                                                                                                 \
    OP(CP_ASYNC_MBARRIER_ARRIVE_NOINC, "cp.async.mbarrier.arrive.noinc.shared.b64", "=b", 70, 80,            \
        PTX__EFFECT_OF_WAIT, (0))                                                                            \
    /* bulk copies */                                                                                        \
    PTX__HINTED(OP, FORM, BULK_G2S_CTA, "cp.async.bulk.shared::cta.global" PTX__TX_BYTES, "=sgCb", 86,       \
        PTX__EFFECT_OF_BULK)                                                                                 \
    PTX__MULTICAST(OP, FORM, BULK_G2S, "cp.async.bulk.shared::cluster.global" PTX__TX_BYTES, "=kgCr")        \
    OP(BULK_S2S, "cp.async.bulk.shared::cluster.shared::cta" PTX__TX_BYTES, "=ksCr", 80, 90,                 \
        PTX__EFFECT_OF_BULK, (0))                                                                            \
    PTX__HINTED(OP, FORM, BULK_S2G, "cp.async.bulk.global.shared::cta.bulk_group", "=gsC", 80,               \
        PTX__EFFECT_OF_BULK)                                                                                 \
    OP(BULK_S2G_MASKED, "cp.async.bulk.global.shared::cta.bulk_group.cp_mask", "=gsCh", 86, 100,             \
        PTX__EFFECT_OF_BULK, (0))                                                                            \
    FORM(BULK_S2G_MASKED, "cp.async.bulk.global.shared::cta.bulk_group%m.cp_mask", "=gsCdh", 86, 100, (0),   \
        (0), (0), M1(L2_CACHE_HINT))                                                                         \
    PTX__HINTED(OP, FORM, BULK_PREFETCH, "cp.async.bulk.prefetch.L2.global", "=gC", 80, 0)                   \
    OP(BULK_COMMIT_GROUP, "cp.async.bulk.commit_group", "=", 80, 90, 0, (0))                                 \
    OP(BULK_WAIT_GROUP, "cp.async.bulk.wait_group", "=J", 80, 90, 0, (0))                                    \
    OP(BULK_WAIT_GROUP_READ, "cp.async.bulk.wait_group.read", "=J", 80, 90, 0, (0))                          \
    OP(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, PTX__EFFECT_OF_BULK, T2(I32, I64), (0), (0),        \
        M1(ATOM_MINMAX))                                                                                     \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T2(I32, U64), (0), (0), M1(ATOM_ADD))             \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T1(B32_64), (0), (0), M1(ATOM_BITS))              \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T1(U32), (0), (0), M2(ATOM_INC, ATOM_DEC))        \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T1(FLT), (0), (0), M1(ATOM_ADD))                  \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T1(H16), (0), (0), M2(ATOM_ADD, NOFTZ))           \
    FORM(BULK_REDUCE_S2G, PTX__REDUCE_S2G, "=gsC", 80, 90, T1(H16), (0), (0), M1(ATOM_MINMAX))               \
    OP(BULK_REDUCE_S2S, PTX__REDUCE_S2S, "=ksCr", 80, 90, PTX__EFFECT_OF_BULK, T1(I32), (0), (0),            \
        M2(ATOM_ADD, ATOM_MINMAX))                                                                           \
    FORM(BULK_REDUCE_S2S, PTX__REDUCE_S2S, "=ksCr", 80, 90, T1(U64), (0), (0), M1(ATOM_ADD))                 \
    FORM(BULK_REDUCE_S2S, PTX__REDUCE_S2S, "=ksCr", 80, 90, T1(B32), (0), (0), M1(ATOM_BITS))                \
    FORM(BULK_REDUCE_S2S, PTX__REDUCE_S2S, "=ksCr", 80, 90, T1(U32), (0), (0), M2(ATOM_INC, ATOM_DEC))
/* Replaces one field of a tensor map in shared memory. */
#define PTX__REPLACE(OP, ID, field, operands, bits, version, sm)                                             \
    OP(TENSORMAP_REPLACE_##ID, "tensormap.replace.tile." field ".shared::cta.b1024.b" bits, operands,        \
        version, sm, 0, (0))
/* mbarrier instructions. needed, default_mods: memory orders and scopes, and their default; (0) for none. */
#define PTX__MBARRIER(OP, ID, name, operands, version, sm, needed, default_mods)                             \
    OP(MBARRIER_##ID, "mbarrier." name ".b64", operands, version, sm, PTX__UNIFORM_LANE, (0), (0), (0),      \
        needed, default_mods)
#define PTX__MBARRIER_FORM(FORM, ID, name, operands, version, sm, needed, default_mods)                      \
    FORM(MBARRIER_##ID, "mbarrier." name ".b64", operands, version, sm, (0), (0), (0), needed, default_mods)
#define PTX__TABLE_TENSOR_COPIES(OP, FORM, T1, T2, T3, M1, M2, M3)                                           \
    /* tensor copies */                                                                                      \
    PTX__HINTED(OP, FORM, TENSOR_G2S_CTA, "cp.async.bulk.tensor.%1d.shared::cta.global.tile" PTX__TX_BYTES,  \
        "=s[n{u+d}]b", 86, PTX__EFFECT_OF_BULK)                                                              \
    PTX__MULTICAST(OP, FORM, TENSOR_G2S,                                                                     \
        "cp.async.bulk.tensor.%1d.shared::cluster.global.tile" PTX__TX_BYTES, "=k[n{u+d}]r")                 \
    OP(TENSOR_G2S_PAIR,                                                                                      \
        "cp.async.bulk.tensor.%1d.shared::cluster.global.tile" PTX__TX_BYTES ".cta_group::2", "=k[n{u+d}]r", \
        86, PTX__ON_100_110, PTX__EFFECT_OF_BULK, (0))                                                       \
    OP(TENSOR_GATHER4, "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4" PTX__TX_BYTES,         \
        "=k[n{5u}]r", 86, PTX__ON_100_110, PTX__EFFECT_OF_BULK, (0))                                         \
    OP(TENSOR_GATHER4_CTA, "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4" PTX__TX_BYTES,         \
        "=s[n{5u}]b", 86, 100, PTX__EFFECT_OF_BULK, (0))                                                     \
    PTX__HINTED(OP, FORM, TENSOR_IM2COL,                                                                     \
        "cp.async.bulk.tensor.%1d.shared::cluster.global.im2col" PTX__TX_BYTES, "=k[n{u+i}]r{h-}", 80,       \
        PTX__EFFECT_OF_BULK)                                                                                 \
    FORM(TENSOR_IM2COL, "cp.async.bulk.tensor.%1d.shared::cluster.global.im2col" PTX__TX_BYTES "%m",         \
        "=k[n{u+i}]r{h-}h", 80, 90, (0), (0), (0), M1(MULTICAST))                                            \
    OP(TENSOR_IM2COL_W, "cp.async.bulk.tensor.%1d.shared::cluster.global.im2col::w" PTX__TX_BYTES,           \
        "=k[n{u+i}]r{2h}", 86, PTX__ON_100_110, PTX__EFFECT_OF_BULK, (0))                                    \
    PTX__HINTED(OP, FORM, TENSOR_S2G, "cp.async.bulk.tensor.%1d.global.shared::cta.tile.bulk_group",         \
        "=[n{u+d}]s", 80, PTX__EFFECT_OF_BULK)                                                               \
    OP(TENSOR_S2G_IM2COL, "cp.async.bulk.tensor.%1d.global.shared::cta.im2col_no_offs.bulk_group",           \
        "=[n{u+i}]s", 80, 90, PTX__EFFECT_OF_BULK, (0))                                                      \
    OP(TENSOR_SCATTER4, "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group", "=[n{5u}]s", \
        86, PTX__ON_100_110, PTX__EFFECT_OF_BULK, (0))                                                       \
    OP(TENSOR_REDUCE, "cp.reduce.async.bulk.tensor.%1d.global.shared::cta%m.tile.bulk_group", "=[n{u+d}]s",  \
        80, 90, PTX__EFFECT_OF_BULK, (0), (0), (0), M1(BULK_REDUCE))                                         \
    PTX__HINTED(OP, FORM, TENSOR_PREFETCH, "cp.async.bulk.prefetch.tensor.%1d.L2.global.tile", "=[n{u+d}]",  \
        80, 0)                                                                                               \
    OP(TENSORMAP_REPLACE_ADDRESS, "tensormap.replace.tile.global_address%m.b1024.b64", "=md", 83,            \
        PTX__ON_90A_100UP, 0, (0), (0), M1(M_GLOBAL))                                                        \
    PTX__REPLACE(OP, ADDRESS_SHARED, "global_address", "=sd", "64", 83, PTX__ON_90A_100UP)                   \
    PTX__REPLACE(OP, RANK, "rank", "=su", "32", 83, PTX__ON_90A_100UP)                                       \
    PTX__REPLACE(OP, BOX_DIM, "box_dim", "=sVu", "32", 83, PTX__ON_90A_100UP)                                \
    PTX__REPLACE(OP, GLOBAL_DIM, "global_dim", "=sVu", "32", 83, PTX__ON_90A_100UP)                          \
    PTX__REPLACE(OP, GLOBAL_STRIDE, "global_stride", "=sVd", "64", 83, PTX__ON_90A_100UP)                    \
    PTX__REPLACE(OP, ELEMENT_STRIDE, "element_stride", "=sVu", "32", 83, PTX__ON_90A_100UP)                  \
    PTX__REPLACE(OP, ELEMTYPE, "elemtype", "=sP", "32", 83, PTX__ON_90A_100UP)                               \
    PTX__REPLACE(OP, INTERLEAVE, "interleave_layout", "=sW", "32", 83, PTX__ON_90A_100UP)                    \
    PTX__REPLACE(OP, SWIZZLE, "swizzle_mode", "=sV", "32", 83, PTX__ON_90A_100UP)                            \
    PTX__REPLACE(OP, FILL, "fill_mode", "=sH", "32", 83, PTX__ON_90A_100UP)                                  \
    PTX__REPLACE(OP, ATOMICITY, "swizzle_atomicity", "=sR", "32", 86, PTX__ON_100UP)                         \
    OP(TENSORMAP_CP_FENCE, "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic"                   \
        ".release%m.sync.aligned", "=gsD", 83, 90, PTX__CONVERGENT_WARP, (0), (0), (0), M1(SCOPE))           \
    /* mbarrier */                                                                                           \
    PTX__MBARRIER(OP, INIT, "init.shared", "=bM", 70, 80, (0), (0))                                          \
    PTX__MBARRIER(OP, INVAL, "inval.shared", "=b", 70, 80, (0), (0))                                         \
    PTX__MBARRIER(OP, ARRIVE, "arrive.shared", "d=b", 70, 80, (0), (0))                                      \
    FORM(MBARRIER_ARRIVE, "mbarrier.arrive.shared.b64", "_=b", 71, 80, (0))                                  \
    FORM(MBARRIER_ARRIVE, "mbarrier.arrive.shared.b64", "d=bM", 78, 90, (0))                                 \
    FORM(MBARRIER_ARRIVE, "mbarrier.arrive.shared.b64", "_=bM", 78, 90, (0))                                 \
    PTX__MBARRIER_FORM(FORM, ARRIVE, "arrive%m.shared::cta", "d=b", 80, 90, M3(RELEASE, CTA, CLUSTER), (0))  \
    PTX__MBARRIER_FORM(FORM, ARRIVE, "arrive%m.shared::cta", "d=b", 86, 90, M3(RELAXED, CTA, CLUSTER), (0))  \
    PTX__MBARRIER(OP, ARRIVE_CLUSTER, "arrive%m.shared::cluster", "_=r", 80, 90, M3(RELEASE, CTA, CLUSTER),  \
        M1(RELEASE_CLUSTER))                                                                                 \
    PTX__MBARRIER_FORM(FORM, ARRIVE_CLUSTER, "arrive%m.shared::cluster", "_=rM", 80, 90,                     \
        M3(RELEASE, CTA, CLUSTER), M1(RELEASE_CLUSTER))                                                      \
    PTX__MBARRIER(OP, ARRIVE_NOCOMPLETE, "arrive.noComplete.shared", "d=bM", 70, 80, (0), (0))               \
    PTX__MBARRIER(OP, ARRIVE_EXPECT_TX, "arrive.expect_tx.shared", "d=bT", 80, 90, (0), (0))                 \
    FORM(MBARRIER_ARRIVE_EXPECT_TX, "mbarrier.arrive.expect_tx.shared.b64", "_=bT", 80, 90, (0))             \
    PTX__MBARRIER(OP, ARRIVE_EXPECT_TX_CLUSTER, "arrive.expect_tx%m.shared::cluster", "_=rT", 80, 90,        \
        M3(RELEASE, CTA, CLUSTER), M1(RELEASE_CLUSTER))                                                      \
    PTX__MBARRIER(OP, ARRIVE_DROP, "arrive_drop.shared", "d=b", 70, 80, (0), (0))                            \
    FORM(MBARRIER_ARRIVE_DROP, "mbarrier.arrive_drop.shared.b64", "d=bM", 78, 90, (0))                       \
    PTX__MBARRIER(OP, ARRIVE_DROP_NOCOMPLETE, "arrive_drop.noComplete.shared", "d=bM", 70, 80, (0), (0))     \
    PTX__MBARRIER(OP, ARRIVE_DROP_EXPECT_TX, "arrive_drop.expect_tx.shared", "d=bT", 80, 90, (0), (0))       \
    PTX__MBARRIER(OP, EXPECT_TX, "expect_tx%m.shared::cta", "=bT", 80, 90, M3(RELAXED, CTA, CLUSTER),        \
        M1(RELAXED_CTA))                                                                                     \
    PTX__MBARRIER(OP, EXPECT_TX_CLUSTER, "expect_tx%m.shared::cluster", "=rT", 80, 90,                       \
        M3(RELAXED, CTA, CLUSTER), M1(RELAXED_CLUSTER))                                                      \
    PTX__MBARRIER(OP, COMPLETE_TX, "complete_tx%m.shared::cta", "=bT", 80, 90, M3(RELAXED, CTA, CLUSTER),    \
        M1(RELAXED_CTA))                                                                                     \
    PTX__MBARRIER(OP, COMPLETE_TX_CLUSTER, "complete_tx%m.shared::cluster", "=rT", 80, 90,                   \
        M3(RELAXED, CTA, CLUSTER), M1(RELAXED_CLUSTER))                                                      \
    PTX__MBARRIER(OP, TEST_WAIT, "test_wait.shared", "p=bd", 70, 80, (0), (0))                               \
    OP(MBARRIER_TEST_WAIT_PARITY, "mbarrier.test_wait.parity.shared.b64", "p=bu", 71, 80,                    \
        PTX__UNIFORM_LANE | PTX__PARITY, (0))                                                                \
    PTX__MBARRIER(OP, TRY_WAIT, "try_wait.shared::cta", "p=bd", 78, 90, (0), (0))                            \
    FORM(MBARRIER_TRY_WAIT, "mbarrier.try_wait.shared::cta.b64", "p=bdu", 78, 90, (0))                       \
    OP(MBARRIER_TRY_WAIT_PARITY, "mbarrier.try_wait.parity.shared::cta.b64", "p=bu", 78, 90,                 \
        PTX__UNIFORM_LANE | PTX__PARITY, (0))                                                                \
    FORM(MBARRIER_TRY_WAIT_PARITY, "mbarrier.try_wait.parity.shared::cta.b64", "p=buu", 78, 90, (0))         \
    PTX__MBARRIER_FORM(FORM, TRY_WAIT_PARITY, "try_wait.parity%m.shared::cta", "p=bu", 80, 90,               \
        M3(ACQUIRE, CTA, CLUSTER), (0))                                                                      \
    PTX__MBARRIER_FORM(FORM, TRY_WAIT_PARITY, "try_wait.parity%m.shared::cta", "p=bu", 86, 90,               \
        M3(RELAXED, CTA, CLUSTER), (0))                                                                      \
    OP(MBARRIER_PENDING_COUNT, "mbarrier.pending_count.b64", "u=d", 70, 80, 0, (0))
#define PTX__TABLE_WARPS(OP, FORM, T1, T2, T3, M1, M2, M3)                                                   \
    /* warps and blocks */                                                                                   \
    OP(SHFL_UP, "shfl.sync.up", "*t?p=tLNO", 60, 30, PTX__SHUFFLE, T1(B32))                                  \
    OP(SHFL_DOWN, "shfl.sync.down", "*t?p=tLNO", 60, 30, PTX__SHUFFLE, T1(B32))                              \
    OP(SHFL_BFLY, "shfl.sync.bfly", "*t?p=tLNO", 60, 30, PTX__SHUFFLE, T1(B32))                              \
    OP(SHFL_IDX, "shfl.sync.idx", "*t?p=tLNO", 60, 30, PTX__CONVERGENT_MEMBERS | PTX__UNIFORM_LANE_OF,       \
        T1(B32))                                                                                             \
    OP(VOTE_ALL, "vote.sync.all.pred", "p=pO", 60, 30, PTX__VOTE, (0))                                       \
    OP(VOTE_ANY, "vote.sync.any.pred", "p=pO", 60, 30, PTX__VOTE, (0))                                       \
    OP(VOTE_UNI, "vote.sync.uni.pred", "p=pO", 60, 30, PTX__VOTE, (0))                                       \
    OP(VOTE_BALLOT, "vote.sync.ballot.b32", "u=pO", 60, 30, PTX__VOTE, (0))                                  \
    OP(MATCH_ANY, "match.any.sync", "*u=tO", 60, 70, PTX__SHUFFLE, T1(B32_64))                               \
    OP(MATCH_ALL, "match.all.sync", "*u?p=tO", 60, 70, PTX__VOTE, T1(B32_64))                                \
    OP(ACTIVEMASK, "activemask.b32", "u=", 62, 30, PTX__UNIFORM_LANE, (0))                                   \
    OP(REDUX_ADD, "redux.sync.add", "t=tO", 70, 80, PTX__REDUX, T1(I32))                                     \
    OP(REDUX_MIN, "redux.sync.min", "t=tO", 70, 80, PTX__REDUX, T1(I32))                                     \
    FORM(REDUX_MIN, "redux.sync.min", "t=tO", 86, PTX__ON_100_103, T1(F32), (0), M2(ABS_OF, NAN))            \
    OP(REDUX_MAX, "redux.sync.max", "t=tO", 70, 80, PTX__REDUX, T1(I32))                                     \
    FORM(REDUX_MAX, "redux.sync.max", "t=tO", 86, PTX__ON_100_103, T1(F32), (0), M2(ABS_OF, NAN))            \
    OP(REDUX_AND, "redux.sync.and", "*t=tO", 70, 80, PTX__REDUX, T1(B32))                                    \
    OP(REDUX_OR, "redux.sync.or", "*t=tO", 70, 80, PTX__REDUX, T1(B32))                                      \
    OP(REDUX_XOR, "redux.sync.xor", "*t=tO", 70, 80, PTX__REDUX, T1(B32))                                    \
    OP(ELECT, "elect.sync", "_|p=O", 80, 90, PTX__SHUFFLE, (0))                                              \
    FORM(ELECT, "elect.sync", "u|p=O", 80, 90, (0))                                                          \
    OP(BAR_SYNC, "bar.sync", "=F", 10, 0, PTX__CONVERGENT_BLOCK, (0))                                        \
    FORM(BAR_SYNC, "bar.sync", "=FG", 10, 0, (0))                                                            \
    OP(BAR_ARRIVE, "bar.arrive", "=FG", 20, 0, PTX__CONVERGENT_WARP, (0))                                    \
    OP(BAR_RED_POPC, "bar.red.popc.u32", "u=Fp", 20, 0, PTX__BAR_RED, (0))                                   \
    FORM(BAR_RED_POPC, "bar.red.popc.u32", "u=FGp", 20, 0, (0))                                              \
    OP(BAR_RED_AND, "bar.red.and.pred", "p=Fp", 20, 0, PTX__BAR_RED, (0))                                    \
    FORM(BAR_RED_AND, "bar.red.and.pred", "p=FGp", 20, 0, (0))                                               \
    OP(BAR_RED_OR, "bar.red.or.pred", "p=Fp", 20, 0, PTX__BAR_RED, (0))                                      \
    FORM(BAR_RED_OR, "bar.red.or.pred", "p=FGp", 20, 0, (0))                                                 \
    OP(BARRIER_SYNC, "barrier.sync", "=F", 60, 30, PTX__CONVERGENT_BLOCK, (0))                               \
    FORM(BARRIER_SYNC, "barrier.sync", "=FG", 60, 30, (0))                                                   \
    OP(BARRIER_ARRIVE, "barrier.arrive", "=FG", 60, 30, 0, (0))                                              \
    OP(BARRIER_SYNC_ALIGNED, "barrier.sync.aligned", "=F", 60, 30, PTX__CONVERGENT_BLOCK, (0))               \
    FORM(BARRIER_SYNC_ALIGNED, "barrier.sync.aligned", "=FG", 60, 30, (0))                                   \
    OP(BARRIER_RED_POPC, "barrier.red.popc.u32", "u=Fp", 60, 30, PTX__BAR_RED, (0))                          \
    FORM(BARRIER_RED_POPC, "barrier.red.popc.u32", "u=FGp", 60, 30, (0))                                     \
    OP(BARRIER_RED_AND, "barrier.red.and.pred", "p=Fp", 60, 30, PTX__BAR_RED, (0))                           \
    FORM(BARRIER_RED_AND, "barrier.red.and.pred", "p=FGp", 60, 30, (0))                                      \
    OP(BARRIER_RED_OR, "barrier.red.or.pred", "p=Fp", 60, 30, PTX__BAR_RED, (0))                             \
    FORM(BARRIER_RED_OR, "barrier.red.or.pred", "p=FGp", 60, 30, (0))                                        \
    OP(BAR_WARP_SYNC, "bar.warp.sync", "=O", 60, 30, PTX__CONVERGENT_MEMBERS, (0))                           \
    OP(BARRIER_CLUSTER_ARRIVE, "barrier.cluster.arrive%m.aligned", "=", 78, 90, PTX__CONVERGENT_CLUSTER,     \
        (0))                                                                                                 \
    FORM(BARRIER_CLUSTER_ARRIVE, "barrier.cluster.arrive%m.aligned", "=", 80, 90, (0), (0), (0),             \
        M2(RELEASE, RELAXED))                                                                                \
    OP(BARRIER_CLUSTER_WAIT, "barrier.cluster.wait%m.aligned", "=", 78, 90, PTX__CONVERGENT_CLUSTER, (0))    \
    FORM(BARRIER_CLUSTER_WAIT, "barrier.cluster.wait%m.aligned", "=", 80, 90, (0), (0), (0), M1(ACQUIRE))    \
    OP(BARRIER_CLUSTER_ARRIVE_UNALIGNED, "barrier.cluster.arrive", "=", 78, 90, PTX__CONVERGENT_CLUSTER,     \
        (0))                                                                                                 \
    FORM(BARRIER_CLUSTER_ARRIVE_UNALIGNED, "barrier.cluster.arrive", "=", 80, 90, (0), (0), (0),             \
        M2(RELEASE, RELAXED))                                                                                \
    OP(BARRIER_CLUSTER_WAIT_UNALIGNED, "barrier.cluster.wait", "=", 78, 90, PTX__CONVERGENT_CLUSTER, (0))    \
    FORM(BARRIER_CLUSTER_WAIT_UNALIGNED, "barrier.cluster.wait", "=", 80, 90, (0), (0), (0), M1(ACQUIRE))    \
    OP(GRIDDEPCONTROL_LAUNCH, "griddepcontrol.launch_dependents", "=", 78, 90, 0, (0))                       \
    OP(GRIDDEPCONTROL_WAIT, "griddepcontrol.wait", "=", 78, 90, 0, (0))                                      \
    OP(NANOSLEEP, "nanosleep.u32", "=T", 63, 70, 0, (0))                                                     \
    OP(SETMAXNREG_INC, "setmaxnreg.inc.sync.aligned.u32", "=E", 80, PTX__ON_90A_100UP,                       \
        PTX__CONVERGENT_GROUP, (0))                                                                          \
    OP(SETMAXNREG_DEC, "setmaxnreg.dec.sync.aligned.u32", "=E", 80, PTX__ON_90A_100UP,                       \
        PTX__CONVERGENT_GROUP, (0))                                                                          \
    OP(TRY_CANCEL, "clusterlaunchcontrol.try_cancel.async.shared::cta" ".mbarrier::complete_tx::bytes.b128", \
        "=sb", 86, 100, PTX__EFFECT_OF_BULK, (0))                                                            \
    OP(TRY_CANCEL_CLUSTER, "clusterlaunchcontrol.try_cancel.async.shared::cta"                               \
        ".mbarrier::complete_tx::bytes.multicast::cluster::all.b128", "=sb", 86, PTX__ON_100UP,              \
        PTX__EFFECT_OF_BULK, (0))                                                                            \
    OP(IS_CANCELED, "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128", "p=q", 86, 100, 0, (0))       \
    OP(FIRST_CTAID, "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128", "{uuu_}=q", 86, 100, 0, \
        (0))
/* mma of a shape: its OP, and a further FORM. */
#define PTX__MMA_OP(OP, ID, shape, types, operands, version, sm, ...)                                        \
    OP(MMA_##ID, "mma.sync.aligned." shape ".row.col" types, operands, version, sm, PTX__MMA, __VA_ARGS__)
#define PTX__MMA_FORM(FORM, ID, shape, types, operands, version, sm, ...)                                    \
    FORM(MMA_##ID, "mma.sync.aligned." shape ".row.col" types, operands, version, sm, __VA_ARGS__)
/* The same, where A and B each have an element type. */
#define PTX__MMA_MIXED(OP, ID, shape, types, operands, version, sm, elements, allowed)                       \
    OP(MMA_##ID, "mma.sync.aligned." shape ".row.col" types, operands, version, sm, PTX__MMA, elements,      \
        elements, allowed)
#define PTX__LDMATRIX_OP(OP, ID, name, operands)                                                             \
    OP(LDMATRIX_##ID, "ldmatrix.sync.aligned." name, operands, 86, PTX__ON_100UP, PTX__LDMATRIX, (0))
/* mma of 4-bit floats with block scales. */
#define PTX__MMA_MX(OP, ID, name, types, scales)                                                             \
    OP(MMA_##ID, "mma.sync.aligned.m16n8k64.row.col.kind::" name types, "{4f}={4x}{2x}{4f}x{hh}x{hh}", 87,   \
        PTX__ON_120, PTX__MMA | scales, (0))
#define PTX__TABLE_MMA(OP, FORM, T1, T2, T3, M1, M2, M3)                                                     \
    /* matrices in a warp */                                                                                 \
    OP(LDMATRIX, "ldmatrix.sync.aligned.m8n8.x%1.shared.b16", "{x+x}=l", 65, 75, PTX__LDMATRIX, (0))         \
    OP(LDMATRIX_TRANS, "ldmatrix.sync.aligned.m8n8.x%1.trans.shared.b16", "{x+x}=l", 65, 75, PTX__LDMATRIX,  \
        (0))                                                                                                 \
    PTX__LDMATRIX_OP(OP, B8, "m16n16.x%h.trans.shared.b8", "{x+p}=l")                                        \
    PTX__LDMATRIX_OP(OP, B4, "m16n16.x%h.trans.shared.b8x16.b4x16_p64", "{x+p}=l")                           \
    PTX__LDMATRIX_OP(OP, B6, "m16n16.x%h.trans.shared.b8x16.b6x16_p32", "{x+p}=l")                           \
    PTX__LDMATRIX_OP(OP, M8N16_B4, "m8n16.x%1.shared.b8x16.b4x16_p64", "{x+x}=l")                            \
    PTX__LDMATRIX_OP(OP, M8N16_B6, "m8n16.x%1.shared.b8x16.b6x16_p32", "{x+x}=l")                            \
    OP(STMATRIX, "stmatrix.sync.aligned.m8n8.x%1.shared.b16", "=l{x+x}", 78, 90, PTX__STMATRIX, (0))         \
    OP(STMATRIX_TRANS, "stmatrix.sync.aligned.m8n8.x%1.trans.shared.b16", "=l{x+x}", 78, 90, PTX__STMATRIX,  \
        (0))                                                                                                 \
    OP(STMATRIX_B8, "stmatrix.sync.aligned.m16n8.x%1.trans.shared.b8", "=l{x+x}", 86, PTX__ON_100UP,         \
        PTX__STMATRIX, (0))                                                                                  \
    OP(MOVMATRIX, "movmatrix.sync.aligned.m8n8.trans.b16", "x=x", 78, 75,                                    \
        PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE | PTX__REGISTER_1, (0))                                     \
    PTX__MMA_OP(OP, M8N8K4_F32, "m8n8k4", ".f32%t%t.f32", "{8f}={2x}{2x}{8f}", 64, 70, T1(F16))              \
    PTX__MMA_OP(OP, M8N8K4_F16, "m8n8k4", ".f16%t%t.f16", "{4x}={2x}{2x}{4x}", 64, 70, T1(F16))              \
    PTX__MMA_OP(OP, M16N8K8_F32, "m16n8k8", ".f32%t%t.f32", "{4f}={2x}{x}{4f}", 65, 75, T1(F16))             \
    PTX__MMA_FORM(FORM, M16N8K8_F32, "m16n8k8", ".f32%t%t.f32", "{4f}={2x}{x}{4f}", 70, 80, T1(BF16))        \
    PTX__MMA_FORM(FORM, M16N8K8_F32, "m16n8k8", ".f32%t%t.f32", "{4f}={4x}{2x}{4f}", 70, 80, T1(TF32))       \
    PTX__MMA_OP(OP, M16N8K8_F16, "m16n8k8", ".f16%t%t.f16", "{2x}={2x}{x}{2x}", 65, 75, T1(F16))             \
    PTX__MMA_OP(OP, M16N8K16_F32, "m16n8k16", ".f32%t%t.f32", "{4f}={4x}{2x}{4f}", 70, 80, T1(H16))          \
    PTX__MMA_FORM(FORM, M16N8K16_F32, "m16n8k16", ".f32%t%s.f32", "{4f}={2x}{x}{4f}", 87, 89, T1(FP8),       \
        T1(FP8))                                                                                             \
    PTX__MMA_OP(OP, M16N8K16_F16, "m16n8k16", ".f16%t%t.f16", "{2x}={4x}{2x}{2x}", 70, 80, T1(F16))          \
    PTX__MMA_FORM(FORM, M16N8K16_F16, "m16n8k16", ".f16%t%s.f16", "{2x}={2x}{x}{2x}", 87, 89, T1(FP8),       \
        T1(FP8))                                                                                             \
    PTX__MMA_OP(OP, M16N8K4_F32, "m16n8k4", ".f32%t%t.f32", "{4f}={2x}{x}{4f}", 70, 80, T1(TF32))            \
    PTX__MMA_MIXED(OP, M16N8K32_F32, "m16n8k32", ".f32%t%s.f32", "{4f}={4x}{2x}{4f}", 84, 89, T1(FP8), (0))  \
    PTX__MMA_MIXED(OP, M16N8K32_F16, "m16n8k32", ".f16%t%s.f16", "{2x}={4x}{2x}{2x}", 87, 89, T1(FP8), (0))  \
    PTX__MMA_OP(OP, M8N8K4_F64, "m8n8k4", ".f64.f64.f64.f64", "{2z}={z}{z}{2z}", 70, 80, (0))                \
    PTX__MMA_OP(OP, M16N8K4_F64, "m16n8k4", ".f64.f64.f64.f64", "{4z}={2z}{z}{4z}", 78, 90, (0))             \
    PTX__MMA_OP(OP, M16N8K8_F64, "m16n8k8", ".f64.f64.f64.f64", "{4z}={4z}{2z}{4z}", 78, 90, (0))            \
    PTX__MMA_OP(OP, M16N8K16_F64, "m16n8k16", ".f64.f64.f64.f64", "{4z}={8z}{4z}{4z}", 78, 90, (0))          \
    PTX__MMA_MIXED(OP, M8N8K16_S32, "m8n8k16", "%m.s32%t%s.s32", "{2S}={x}{x}{2S}", 65, 75, T1(I8),          \
        M1(SATFINITE))                                                                                       \
    PTX__MMA_MIXED(OP, M16N8K16_S32, "m16n8k16", "%m.s32%t%s.s32", "{4S}={2x}{x}{4S}", 70, 80, T1(I8),       \
        M1(SATFINITE))                                                                                       \
    PTX__MMA_MIXED(OP, M16N8K32_S32, "m16n8k32", "%m.s32%t%s.s32", "{4S}={4x}{2x}{4S}", 70, 80, T1(I8),      \
        M1(SATFINITE))                                                                                       \
    PTX__MMA_FORM(FORM, M16N8K32_S32, "m16n8k32", "%m.s32%t%s.s32", "{4S}={2x}{x}{4S}", 70, 80, T1(I4),      \
        T1(I4), M1(SATFINITE))                                                                               \
    PTX__MMA_MIXED(OP, M8N8K32_S32, "m8n8k32", "%m.s32%t%s.s32", "{2S}={x}{x}{2S}", 65, 75, T1(I4),          \
        M1(SATFINITE))                                                                                       \
    PTX__MMA_MIXED(OP, M16N8K64_S32, "m16n8k64", "%m.s32%t%s.s32", "{4S}={4x}{2x}{4S}", 70, 80, T1(I4),      \
        M1(SATFINITE))                                                                                       \
    PTX__MMA_OP(OP, M8N8K128_XOR, "m8n8k128", ".s32.b1.b1.s32.xor.popc", "{2S}={x}{x}{2S}", 70, 75, (0))     \
    PTX__MMA_OP(OP, M16N8K128_XOR, "m16n8k128", ".s32.b1.b1.s32.xor.popc", "{4S}={2x}{x}{4S}", 70, 80, (0))  \
    PTX__MMA_OP(OP, M16N8K256_XOR, "m16n8k256", ".s32.b1.b1.s32.xor.popc", "{4S}={4x}{2x}{4S}", 70, 80, (0)) \
    PTX__MMA_OP(OP, M8N8K128_AND, "m8n8k128", ".s32.b1.b1.s32.and.popc", "{2S}={x}{x}{2S}", 71, 80, (0))     \
    PTX__MMA_OP(OP, M16N8K128_AND, "m16n8k128", ".s32.b1.b1.s32.and.popc", "{4S}={2x}{x}{4S}", 71, 80, (0))  \
    PTX__MMA_OP(OP, M16N8K256_AND, "m16n8k256", ".s32.b1.b1.s32.and.popc", "{4S}={4x}{2x}{4S}", 71, 80, (0)) \
    PTX__MMA_MIXED(OP, F8F6F4_F32, "m16n8k32", ".kind::f8f6f4.f32%t%s.f32", "{4f}={4x}{2x}{4f}", 86,         \
        PTX__ON_100UP, T1(FP8), (0))                                                                         \
    PTX__MMA_FORM(FORM, F8F6F4_F32, "m16n8k32", ".kind::f8f6f4.f32%t%s.f32", "{4f}={4x}{2x}{4f}", 87,        \
        PTX__ON_120, T1(FP864), T1(FP864))                                                                   \
    PTX__MMA_MIXED(OP, F8F6F4_F16, "m16n8k32", ".kind::f8f6f4.f16%t%s.f16", "{2x}={4x}{2x}{2x}", 87,         \
        PTX__ON_120, T1(FP864), (0))                                                                         \
    OP(MMA_MXF8F6F4,                                                                                         \
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32%t%s.f32.ue8m0",      \
        "{4f}={4x}{2x}{4f}x{hh}x{hh}", 87, PTX__ON_120, PTX__MMA | PTX__SCALES_1, T1(FP864), T1(FP864))      \
    PTX__MMA_MX(OP, MXF4, "mxf4.block_scale.scale_vec::2X", ".f32.e2m1.e2m1.f32.ue8m0", PTX__SCALES_2)       \
    PTX__MMA_MX(OP, MXF4NVF4_2X, "mxf4nvf4.block_scale.scale_vec::2X", ".f32.e2m1.e2m1.f32.ue8m0",           \
        PTX__SCALES_2)                                                                                       \
    PTX__MMA_MX(OP, MXF4NVF4_4X, "mxf4nvf4.block_scale.scale_vec::4X", ".f32.e2m1.e2m1.f32.ue4m3",           \
        PTX__SCALES_4)
#define PTX__MMA_SP(OP, ID, name, operands, version, sm, ...)                                                \
    OP(MMA_SP##ID, "mma.sp" name, operands, version, sm, PTX__MMA, __VA_ARGS__)
#define PTX__ORDERED "::ordered_metadata.sync.aligned."
#define PTX__SYNC ".sync.aligned."
#define PTX__TABLE_MMA_SPARSE(OP, FORM, T1, T2, T3, M1, M2, M3)                                              \
    /* sparse: the limits of the sparsity selector are those of the PTX manual: 0 to 3 (one of 4 threads),   \
       0 or 1 (one of 2 pairs) or 0. For f16 of m16n8k32 in f32 ptxas also takes 2 and 3, no pair's number */\
    PTX__MMA_SP(OP, _M16N8K16_F32, PTX__SYNC "m16n8k16.row.col.f32%t%t.f32", "{4f}={2x}{2x}{4f}xR", 71, 80,  \
        T1(H16))                                                                                             \
    FORM(MMA_SP_M16N8K16_F32, "mma.sp.sync.aligned.m16n8k16.row.col.f32%t%t.f32", "{4f}={4x}{4x}{4f}xH", 71, \
        80, T1(TF32))                                                                                        \
    PTX__MMA_SP(OP, _M16N8K32_F32, PTX__SYNC "m16n8k32.row.col.f32%t%t.f32", "{4f}={4x}{4x}{4f}xH", 71, 80,  \
        T1(H16))                                                                                             \
    PTX__MMA_SP(OP, _M16N8K32_F16, PTX__SYNC "m16n8k32.row.col.f16%t%t.f16", "{2x}={4x}{4x}{2x}xH", 71, 80,  \
        T1(F16))                                                                                             \
    PTX__MMA_SP(OP, _M16N8K8_F32, PTX__SYNC "m16n8k8.row.col.f32%t%t.f32", "{4f}={2x}{2x}{4f}xR", 71, 80,    \
        T1(TF32))                                                                                            \
    PTX__MMA_SP(OP, _M16N8K32_S32, PTX__SYNC "m16n8k32.row.col%m.s32%t%s.s32", "{4S}={2x}{2x}{4S}xH", 71,    \
        80, T1(I8), T1(I8), M1(SATFINITE))                                                                   \
    PTX__MMA_SP(OP, _M16N8K64_F32, PTX__SYNC "m16n8k64.row.col.f32%t%s.f32", "{4f}={4x}{4x}{4f}xZ", 84, 89,  \
        T1(FP8), T1(FP8))                                                                                    \
    PTX__MMA_SP(OP, _M16N8K64_S32, PTX__SYNC "m16n8k64.row.col%m.s32%t%s.s32", "{4S}={4x}{4x}{4S}xZ", 71,    \
        80, T1(I8), T1(I8), M1(SATFINITE))                                                                   \
    PTX__MMA_SP(OP, O_M16N8K16_F32, PTX__ORDERED "m16n8k16.row.col.f32%t%t.f32", "{4f}={2x}{2x}{4f}xR", 85,  \
        80, T1(H16))                                                                                         \
    PTX__MMA_SP(OP, O_M16N8K32_F32, PTX__ORDERED "m16n8k32.row.col.f32%t%t.f32", "{4f}={4x}{4x}{4f}xH", 85,  \
        80, T1(H16))                                                                                         \
    PTX__MMA_SP(OP, O_M16N8K64_F32, PTX__ORDERED "m16n8k64.row.col.f32%t%s.f32", "{4f}={4x}{4x}{4f}xZ", 85,  \
        89, T1(FP8), T1(FP8))                                                                                \
    PTX__MMA_SP(OP, O_M16N8K64_S32, PTX__ORDERED "m16n8k64.row.col%m.s32%t%s.s32", "{4S}={4x}{4x}{4S}xZ",    \
        85, 80, T1(I8), T1(I8), M1(SATFINITE))                                                               \
    PTX__MMA_SP(OP, O_F8F6F4, PTX__ORDERED "m16n8k64.row.col.kind::f8f6f4.f32%t%s.f32",                      \
        "{4f}={4x}{4x}{4f}xZ", 87, PTX__ON_120, T1(FP864), T1(FP864))                                        \
    OP(MMA_SPO_MXF4NVF4_4X, "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4nvf4"         \
        ".block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "{4f}={4x}{4x}{4f}xZx{hh}x{hh}", 87,           \
        PTX__ON_120A, PTX__MMA | PTX__SCALES_4, (0))
/* wmma.load of A or B, for a shape with k = 16. bf16, bytes: registers of a fragment of bf16, of bytes. */
#define PTX__WMMA_LOAD_16(OP, FORM, ID, name, bf16, bytes, layout)                                           \
    OP(WMMA_LOAD_##ID, "wmma.load." name "%m%t", "{8x}=m?u", 63, 70, PTX__WMMA_LOAD, PTX__T1(F16), (0),      \
        PTX__M1(WMMA_SPACE), PTX__M1(LAYOUT), layout)                                                        \
    FORM(WMMA_LOAD_##ID, "wmma.load." name "%m%t", "{" bf16 "x}=m?u", 70, 80, PTX__T1(BF16), (0),            \
        PTX__M1(WMMA_SPACE), PTX__M1(LAYOUT), layout)                                                        \
    FORM(WMMA_LOAD_##ID, "wmma.load." name "%m%t", "{" bytes "x}=m?u", 63, 72, PTX__T1(I8), (0),             \
        PTX__M1(WMMA_SPACE), PTX__M1(LAYOUT), layout)
/* All wmma.load of A or B. fixed_layout: that of sub-byte types, which have no other. bf16_n32 ...: registers
   of a fragment of m8n32k16 (n32) and m32n8k16 (n8). */
#define PTX__WMMA_LOADS(OP, FORM, X, x, layout, fixed_layout, bf16_n32, bytes_n32, bf16_n8, bytes_n8)        \
    PTX__WMMA_LOAD_16(OP, FORM, X##_M16N16K16, x ".sync.aligned%l.m16n16k16", "4", "2", layout)              \
    PTX__WMMA_LOAD_16(OP, FORM, X##_M8N32K16, x ".sync.aligned%l.m8n32k16", bf16_n32, bytes_n32, layout)     \
    PTX__WMMA_LOAD_16(OP, FORM, X##_M32N8K16, x ".sync.aligned%l.m32n8k16", bf16_n8, bytes_n8, layout)       \
    OP(WMMA_LOAD_##X##_M16N16K8, "wmma.load." x ".sync.aligned%l.m16n16k8%m%t", "{4x}=m?u", 70, 80,          \
        PTX__WMMA_LOAD, PTX__T1(TF32), (0), PTX__M1(WMMA_SPACE), PTX__M1(LAYOUT), layout)                    \
    OP(WMMA_LOAD_##X##_M8N8K4, "wmma.load." x ".sync.aligned%l.m8n8k4%m%t", "{t}=m?u", 70, 80,               \
        PTX__WMMA_LOAD, PTX__T1(F64), (0), PTX__M1(WMMA_SPACE), PTX__M1(LAYOUT), layout)                     \
    OP(WMMA_LOAD_##X##_M8N8K32, "wmma.load." x ".sync.aligned" fixed_layout "m8n8k32%m%t", "{x}=m?u", 63,    \
        75, PTX__WMMA_LOAD, PTX__T1(I4), (0), PTX__M1(WMMA_SPACE))                                           \
    OP(WMMA_LOAD_##X##_M8N8K128, "wmma.load." x ".sync.aligned" fixed_layout "m8n8k128%m.b1", "{x}=m?u", 63, \
        75, PTX__WMMA_LOAD, (0), (0), PTX__M1(WMMA_SPACE))
/* wmma.load of C or wmma.store of D, the accumulators. before, after: the operands around the fragment. */
#define PTX__WMMA_ACC(FORM, ID, name, operands, version, sm, ...)                                            \
    FORM(WMMA_##ID, "wmma." name "%m%t", operands, version, sm, __VA_ARGS__, (0), PTX__M1(WMMA_SPACE),       \
        PTX__M1(LAYOUT), PTX__M1(ROW))
#define PTX__WMMA_ACCS_16(OP, FORM, ID, name, facts, before, after)                                          \
    PTX__WMMA_ACC(OP, ID, name, before "{4x}" after, 63, 70, facts, PTX__T1(F16))                            \
    PTX__WMMA_ACC(FORM, ID, name, before "{8t}" after, 63, 70, PTX__T1(F32))                                 \
    PTX__WMMA_ACC(FORM, ID, name, before "{8t}" after, 63, 72, PTX__T1(S32))
#define PTX__WMMA_ACCS(OP, FORM, X, x, facts, before, after)                                                 \
    PTX__WMMA_ACCS_16(OP, FORM, X##_M16N16K16, x ".sync.aligned%l.m16n16k16", facts, before, after)          \
    PTX__WMMA_ACCS_16(OP, FORM, X##_M8N32K16, x ".sync.aligned%l.m8n32k16", facts, before, after)            \
    PTX__WMMA_ACCS_16(OP, FORM, X##_M32N8K16, x ".sync.aligned%l.m32n8k16", facts, before, after)            \
    PTX__WMMA_ACC(OP, X##_M16N16K8, x ".sync.aligned%l.m16n16k8", before "{8t}" after, 70, 80, facts,        \
        PTX__T1(F32))                                                                                        \
    PTX__WMMA_ACC(OP, X##_M8N8K4, x ".sync.aligned%l.m8n8k4", before "{2t}" after, 70, 80, facts,            \
        PTX__T1(F64))                                                                                        \
    PTX__WMMA_ACC(OP, X##_M8N8K32, x ".sync.aligned%l.m8n8k32", before "{2t}" after, 63, 75, facts,          \
        PTX__T1(S32))                                                                                        \
    PTX__WMMA_ACC(OP, X##_M8N8K128, x ".sync.aligned%l.m8n8k128", before "{2t}" after, 63, 75, facts,        \
        PTX__T1(S32))
#define PTX__TABLE_WMMA_MEMORY(OP, FORM, T1, T2, T3, M1, M2, M3)                                             \
    PTX__WMMA_LOADS(OP, FORM, A, "a", M1(ROW), ".row.", "2", "", "8", "4")                                   \
    PTX__WMMA_LOADS(OP, FORM, B, "b", M1(COL), ".col.", "8", "4", "2", "")                                   \
    PTX__WMMA_ACCS(OP, FORM, LOAD_C, "load.c", PTX__WMMA_LOAD, "", "=m?u")                                   \
    PTX__WMMA_ACCS(OP, FORM, STORE_D, "store.d", PTX__WMMA_STORE, "=m", "?u")
/* wmma.mma, for a shape with k = 16. a16 ... b8: registers of A and B, of bf16 and of bytes. */
#define PTX__WMMA_16(OP, FORM, ID, shape, a16, b16, a8, b8)                                                  \
    OP(WMMA_##ID##_F32, "wmma.mma.sync.aligned%l." shape ".f32.f32", "{8f}={8x}{8x}{8f}", 63, 70, PTX__WMMA, \
        PTX__T1(F16), (0), (0), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))                                          \
    FORM(WMMA_##ID##_F32, "wmma.mma.sync.aligned%l." shape ".f32%t%t.f32", "{8f}={" a16 "x}{" b16 "x}{8f}",  \
        70, 80, PTX__T1(BF16), (0), (0), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))                                 \
    OP(WMMA_##ID##_F16, "wmma.mma.sync.aligned%l." shape ".f16.f16", "{4x}={8x}{8x}{4x}", 63, 70, PTX__WMMA, \
        PTX__T1(F16), (0), (0), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))                                          \
    OP(WMMA_##ID##_F32_F16, "wmma.mma.sync.aligned%l." shape ".f32.f16", "{8f}={8x}{8x}{4x}", 63, 70,        \
        PTX__WMMA, PTX__T1(F16), (0), (0), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))                               \
    OP(WMMA_##ID##_F16_F32, "wmma.mma.sync.aligned%l." shape ".f16.f32", "{4x}={8x}{8x}{8f}", 63, 70,        \
        PTX__WMMA, PTX__T1(F16), (0), (0), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))                               \
    OP(WMMA_##ID##_S32, "wmma.mma.sync.aligned%l." shape ".s32%t%t.s32%m", "{8S}={" a8 "x}{" b8 "x}{8S}",    \
        63, 72, PTX__WMMA, PTX__T1(I8), (0), PTX__M1(SATFINITE), PTX__M1(LAYOUTS), PTX__M1(ROW_COL))
#define PTX__TABLE_WMMA(OP, FORM, T1, T2, T3, M1, M2, M3)                                                    \
    PTX__WMMA_16(OP, FORM, M16N16K16, "m16n16k16", "4", "4", "2", "2")                                       \
    PTX__WMMA_16(OP, FORM, M8N32K16, "m8n32k16", "2", "8", "", "4")                                          \
    PTX__WMMA_16(OP, FORM, M32N8K16, "m32n8k16", "8", "2", "4", "")                                          \
    OP(WMMA_M16N16K8_F32, "wmma.mma.sync.aligned%l.m16n16k8.f32%t%t.f32", "{8f}={4x}{4x}{8f}", 70, 80,       \
        PTX__WMMA, T1(TF32), (0), (0), M1(LAYOUTS), M1(ROW_COL))                                             \
    OP(WMMA_M8N8K4_F64, "wmma.mma.sync.aligned%l.m8n8k4%m.f64.f64.f64.f64", "{2z}={z}{z}{2z}", 70, 80,       \
        PTX__WMMA, T1(F64), (0), M1(ROUND), M1(LAYOUTS), M1(ROW_COL))                                        \
    OP(WMMA_M8N8K32_S32, "wmma.mma.sync.aligned.row.col.m8n8k32.s32%t%t.s32%m", "{2S}={x}{x}{2S}", 63, 75,   \
        PTX__WMMA, T1(I4), (0), M1(SATFINITE))                                                               \
    OP(WMMA_M8N8K128_XOR, "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",                   \
        "{2S}={x}{x}{2S}", 63, 75, PTX__WMMA, (0))                                                           \
    OP(WMMA_M8N8K128_AND, "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",                   \
        "{2S}={x}{x}{2S}", 71, 80, PTX__WMMA, (0))
#define PTX__WGMMA_FORM(FORM, ID, shape, operands, version, ...)                                             \
    FORM(WGMMA_##ID, "wgmma.mma_async.sync.aligned.m64n" shape, operands, version, PTX__ON_90A, __VA_ARGS__)
/* tcgen05: an instruction for one block or a pair; tcgen05.ld and tcgen05.st of a shape. */
#define PTX__TCGEN05(OP, ID, name, operands, version, sm, facts)                                             \
    OP(TCGEN05_##ID, "tcgen05." name, operands, version, sm, facts, (0), (0), (0), PTX__M1(CTA_GROUP),       \
        PTX__M1(CTA_GROUP_1))
#define PTX__TCGEN05_LD(OP, ID, shape, operands)                                                             \
    OP(TCGEN05_LD_##ID, "tcgen05.ld.sync.aligned." shape "%m.b32", operands, 86, PTX__ON_100_110,            \
        PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE, (0), (0), PTX__M1(PACK_16B))
#define PTX__TCGEN05_ST(OP, ID, shape, operands)                                                             \
    OP(TCGEN05_ST_##ID, "tcgen05.st.sync.aligned." shape "%m.b32", operands, 86, PTX__ON_100_110,            \
        PTX__STMATRIX, (0), (0), PTX__M1(UNPACK_16B))
#define PTX__TABLE_WARPGROUP(OP, FORM, T1, T2, T3, M1, M2, M3)                                               \
    /* wgmma: '!' because the accumulators are read and written; they are variables */                       \
    OP(WGMMA_FENCE, "wgmma.fence.sync.aligned", "=", 80, PTX__ON_90A,                                        \
        PTX__CONVERGENT_GROUP | PTX__EFFECT_OF_MMA_FENCE, (0))                                               \
    OP(WGMMA_COMMIT_GROUP, "wgmma.commit_group.sync.aligned", "=", 80, PTX__ON_90A,                          \
        PTX__CONVERGENT_GROUP | PTX__EFFECT_OF_MMA_COMMIT, (0))                                              \
    OP(WGMMA_WAIT_GROUP, "wgmma.wait_group.sync.aligned", "=Y", 80, PTX__ON_90A,                             \
        PTX__CONVERGENT_GROUP | PTX__EFFECT_OF_MMA_WAIT, (0))                                                \
    PTX__WGMMA_FORM(OP, F32, "%2k16.f32%t%t", "!{f+w}=ddpKKHH", 80, PTX__WGMMA, T1(H16))                     \
    PTX__WGMMA_FORM(FORM, F32, "%2k8.f32%t%t", "!{f+w}=ddpKK", 80, T1(TF32))                                 \
    PTX__WGMMA_FORM(FORM, F32, "%2k32.f32%t%s", "!{f+w}=ddpKK", 80, T1(FP8), T1(FP8))                        \
    PTX__WGMMA_FORM(OP, F16, "%4k16.f16%t%t", "!{x+z}=ddpKKHH", 80, PTX__WGMMA, T1(F16))                     \
    PTX__WGMMA_FORM(FORM, F16, "%4k32.f16%t%s", "!{x+z}=ddpKK", 80, T1(FP8), T1(FP8))                        \
    PTX__WGMMA_FORM(OP, S32, "%2k32%m.s32%t%s", "!{S+y}=ddp", 80, PTX__WGMMA, T1(S8), T1(S8), M1(SATFINITE)) \
    PTX__WGMMA_FORM(FORM, S32, "%2k32%m.s32%t%s", "!{S+y}=ddp", 80, T1(U8), T1(U8), M1(SATFINITE))           \
    PTX__WGMMA_FORM(FORM, S32, "%2k32%m.s32%t%s", "!{S+y}=ddp", 84, T1(I8), T1(I8), M1(SATFINITE))           \
    PTX__WGMMA_FORM(OP, B1, "%2k256.s32.b1.b1.and.popc", "!{S+y}=ddp", 80, PTX__WGMMA, (0))                  \
    PTX__WGMMA_FORM(OP, A_F32, "%2k16.f32%t%t", "!{f+w}={4x}dpKKH", 80, PTX__WGMMA, T1(H16))                 \
    PTX__WGMMA_FORM(FORM, A_F32, "%2k8.f32%t%t", "!{f+w}={4x}dpKK", 80, T1(TF32))                            \
    PTX__WGMMA_FORM(FORM, A_F32, "%2k32.f32%t%s", "!{f+w}={4x}dpKK", 80, T1(FP8), T1(FP8))                   \
    PTX__WGMMA_FORM(OP, A_F16, "%4k16.f16%t%t", "!{x+z}={4x}dpKKH", 80, PTX__WGMMA, T1(F16))                 \
    PTX__WGMMA_FORM(OP, A_S32, "%2k32%m.s32%t%s", "!{S+y}={4x}dp", 80, PTX__WGMMA, T1(S8), T1(S8),           \
        M1(SATFINITE))                                                                                       \
    PTX__WGMMA_FORM(FORM, A_S32, "%2k32%m.s32%t%s", "!{S+y}={4x}dp", 80, T1(U8), T1(U8), M1(SATFINITE))      \
    PTX__WGMMA_FORM(FORM, A_S32, "%2k32%m.s32%t%s", "!{S+y}={4x}dp", 84, T1(I8), T1(I8), M1(SATFINITE))      \
    OP(WGMMA_SP_F32, "wgmma.mma_async.sp.sync.aligned.m64n%2k32.f32%t%t", "!{f+w}=ddxHpKKHH", 82,            \
        PTX__ON_90A, PTX__WGMMA, T1(H16))                                                                    \
    /* tcgen05: addresses in tensor memory are plain 32-bit values */                                        \
    PTX__TCGEN05(OP, ALLOC, "alloc%m.sync.aligned.shared::cta.b32", "=sI", 86, PTX__ON_100_110,              \
        PTX__CONVERGENT_WARP)                                                                                \
    PTX__TCGEN05(OP, DEALLOC, "dealloc%m.sync.aligned.b32", "=uI", 86, PTX__ON_100_110,                      \
        PTX__CONVERGENT_WARP)                                                                                \
    PTX__TCGEN05(OP, RELINQUISH, "relinquish_alloc_permit%m.sync.aligned", "=", 86, PTX__ON_100_110,         \
        PTX__CONVERGENT_WARP)                                                                                \
    PTX__TCGEN05_LD(OP, 32X32B, "32x32b.x%1", "{x+t}=a")                                                     \
    PTX__TCGEN05_LD(OP, 16X64B, "16x64b.x%1", "{x+t}=a")                                                     \
    PTX__TCGEN05_LD(OP, 16X128B, "16x128b.x%h", "{x+2}=a")                                                   \
    PTX__TCGEN05_LD(OP, 16X256B, "16x256b.x%q", "{x+4}=a")                                                   \
    PTX__TCGEN05_LD(OP, 16X32BX2, "16x32bx2.x%1", "{x+t}=aJ")                                                \
    OP(TCGEN05_LD_RED_MIN, "tcgen05.ld.red.sync.aligned.32x32b.x%1.min.f32", "{f+2}f=a", 88,                 \
        PTX__ON_103_110, PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE, (0))                                      \
    OP(TCGEN05_LD_RED_MAX, "tcgen05.ld.red.sync.aligned.32x32b.x%1.max.f32", "{f+2}f=a", 88,                 \
        PTX__ON_103_110, PTX__CONVERGENT_WARP | PTX__UNIFORM_LANE, (0))                                      \
    PTX__TCGEN05_ST(OP, 32X32B, "32x32b.x%1", "=a{x+t}")                                                     \
    PTX__TCGEN05_ST(OP, 16X64B, "16x64b.x%1", "=a{x+t}")                                                     \
    PTX__TCGEN05_ST(OP, 16X128B, "16x128b.x%h", "=a{x+2}")                                                   \
    PTX__TCGEN05_ST(OP, 16X256B, "16x256b.x%q", "=a{x+4}")                                                   \
    OP(TCGEN05_WAIT_LD, "tcgen05.wait::ld.sync.aligned", "=", 86, PTX__ON_100_110, PTX__CONVERGENT_WARP,     \
        (0))                                                                                                 \
    OP(TCGEN05_WAIT_ST, "tcgen05.wait::st.sync.aligned", "=", 86, PTX__ON_100_110, PTX__CONVERGENT_WARP,     \
        (0))                                                                                                 \
    PTX__TCGEN05(OP, CP_128X256B, "cp%m.128x256b", "=ad", 86, PTX__ON_100_110, 0)                            \
    PTX__TCGEN05(OP, CP_4X256B, "cp%m.4x256b", "=ad", 86, PTX__ON_100_110, 0)                                \
    PTX__TCGEN05(OP, CP_128X128B, "cp%m.128x128b", "=ad", 86, PTX__ON_100_110, 0)                            \
    PTX__TCGEN05(OP, CP_32X128B_WARPX4, "cp%m.32x128b.warpx4", "=ad", 86, PTX__ON_100_110, 0)                \
    PTX__TCGEN05(OP, CP_64X128B_02_13, "cp%m.64x128b.warpx2::02_13", "=ad", 86, PTX__ON_100_110, 0)          \
    PTX__TCGEN05(OP, CP_128X256B_B4, "cp%m.128x256b.b8x16.b4x16_p64", "=ad", 86, PTX__ON_100_110, 0)         \
    PTX__TCGEN05(OP, CP_128X256B_B6, "cp%m.128x256b.b8x16.b6x16_p32", "=ad", 86, PTX__ON_100_110, 0)         \
    PTX__TCGEN05(OP, SHIFT_DOWN, "shift%m.down", "=a", 86, PTX__ON_100A_103A_110A, 0)                        \
    PTX__TCGEN05(OP, MMA_F16, "mma%m.kind::f16", "=addup", 86, PTX__ON_100_110, 0)                           \
    FORM(TCGEN05_MMA_F16, "tcgen05.mma%m.kind::f16", "=addupP", 86, PTX__ON_100_103, (0), (0), (0),          \
        M1(CTA_GROUP), M1(CTA_GROUP_1))                                                                      \
    PTX__TCGEN05(OP, MMA_F16_A_FILL, "mma%m.kind::f16.collector::a::fill", "=addup", 86, PTX__ON_100_110, 0) \
    PTX__TCGEN05(OP, MMA_F16_A_USE, "mma%m.kind::f16.collector::a::use", "=addup", 86, PTX__ON_100_110, 0)   \
    PTX__TCGEN05(OP, MMA_TF32, "mma%m.kind::tf32", "=addup", 86, PTX__ON_100_110, 0)                         \
    PTX__TCGEN05(OP, MMA_F8F6F4, "mma%m.kind::f8f6f4", "=addup", 86, PTX__ON_100_110, 0)                     \
    PTX__TCGEN05(OP, MMA_I8, "mma%m.kind::i8", "=addup", 86, PTX__ON_100A_110A, 0)                           \
    PTX__TCGEN05(OP, MMA_A_F16, "mma%m.kind::f16", "=aadup", 86, PTX__ON_100_110, 0)                         \
    PTX__TCGEN05(OP, MMA_A_TF32, "mma%m.kind::tf32", "=aadup", 86, PTX__ON_100_110, 0)                       \
    PTX__TCGEN05(OP, MMA_A_F8F6F4, "mma%m.kind::f8f6f4", "=aadup", 86, PTX__ON_100_110, 0)                   \
    PTX__TCGEN05(OP, MMA_MXF8F6F4, "mma%m.kind::mxf8f6f4.block_scale", "=adduaap", 88, PTX__ON_100_110, 0)   \
    PTX__TCGEN05(OP, MMA_MXF8F6F4_1X, "mma%m.kind::mxf8f6f4.block_scale.scale_vec::1X", "=adduaap", 86,      \
        PTX__ON_100A_103A_110A, 0)                                                                           \
    PTX__TCGEN05(OP, MMA_MXF4_2X, "mma%m.kind::mxf4.block_scale.scale_vec::2X", "=adduaap", 86,              \
        PTX__ON_100A_103A_110A, 0)                                                                           \
    PTX__TCGEN05(OP, MMA_MXF4NVF4_4X, "mma%m.kind::mxf4nvf4.block_scale.scale_vec::4X", "=adduaap", 87,      \
        PTX__ON_100A_103A_110A, 0)                                                                           \
    PTX__TCGEN05(OP, MMA_MXF4NVF4_16, "mma%m.kind::mxf4nvf4.block_scale.block16", "=adduaap", 88,            \
        PTX__ON_100_110, 0)                                                                                  \
    PTX__TCGEN05(OP, MMA_SP_F16, "mma.sp%m.kind::f16", "=addaup", 86, PTX__ON_100_110, 0)                    \
    OP(TCGEN05_MMA_WS_F16, "tcgen05.mma.ws.cta_group::1.kind::f16", "=addup", 86, PTX__ON_100_110, 0, (0))   \
    OP(TCGEN05_FENCE_BEFORE, "tcgen05.fence::before_thread_sync", "=", 86, PTX__ON_100_110, 0, (0))          \
    OP(TCGEN05_FENCE_AFTER, "tcgen05.fence::after_thread_sync", "=", 86, PTX__ON_100_110, 0, (0))            \
    PTX__TCGEN05(OP, COMMIT, "commit%m.mbarrier::arrive::one.shared::cluster.b64", "=r", 86,                 \
        PTX__ON_100_110, PTX__REGISTERS_2)                                                                   \
    PTX__TCGEN05(OP, COMMIT_MULTICAST,                                                                       \
        "commit%m.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64", "=rh", 86, PTX__ON_100_110, \
        PTX__REGISTERS_2)
/* tex with f32 coordinates; the same with a level of detail and with gradients; tld4 of each component. */
#define PTX__TEX_F32(OP, ID, name, operands, version)                                                        \
    OP(TEX_##ID, "tex." name ".v4%t.f32", "{4t}=[d" operands, version, 20, PTX__TEXTURE, PTX__T2(F32, I32))
#define PTX__TEX_DETAIL(OP, ID, name, coordinates, gradients, version)                                       \
    PTX__TEX_F32(OP, LEVEL_##ID, "level." name, "{" coordinates "}]f", 31)                                   \
    PTX__TEX_F32(OP, GRAD_##ID, "grad." name, "{" coordinates "}]{" gradients "}{" gradients "}", version)
#define PTX__TLD4(OP, ID, name, operands, version)                                                           \
    OP(TLD4_R_##ID, "tld4.r." name ".v4%t.f32", "{4t}=[d" operands, version, 20, PTX__TEXTURE,               \
        PTX__T2(F32, I32))                                                                                   \
    OP(TLD4_G_##ID, "tld4.g." name ".v4%t.f32", "{4t}=[d" operands, version, 20, PTX__TEXTURE,               \
        PTX__T2(F32, I32))                                                                                   \
    OP(TLD4_B_##ID, "tld4.b." name ".v4%t.f32", "{4t}=[d" operands, version, 20, PTX__TEXTURE,               \
        PTX__T2(F32, I32))                                                                                   \
    OP(TLD4_A_##ID, "tld4.a." name ".v4%t.f32", "{4t}=[d" operands, version, 20, PTX__TEXTURE,               \
        PTX__T2(F32, I32))
#define PTX__TABLE_TEXTURES(OP, FORM, T1, T2, T3, M1, M2, M3)                                                \
    /* textures, by 64-bit handle */                                                                         \
    OP(TEX_1D, "tex.1d.v4%t%s", "{4t}=[d{c}]", 31, 20, PTX__TEXTURE, T2(F32, I32), T2(S32, F32))             \
    OP(TEX_2D, "tex.2d.v4%t%s", "{4t}=[d{2c}]", 31, 20, PTX__TEXTURE, T2(F32, I32), T2(S32, F32))            \
    FORM(TEX_2D, "tex.2d.v4%t%s", "{4t}|p=[d{2c}]", 71, 60, T2(F32, I32), T2(S32, F32))                      \
    FORM(TEX_2D, "tex.2d.v2%t%s", "{2t}=[d{2c}]", 42, 53, T1(F16X2), T2(S32, F32))                           \
    OP(TEX_3D, "tex.3d.v4%t%s", "{4t}=[d{4c}]", 31, 20, PTX__TEXTURE, T2(F32, I32), T2(S32, F32))            \
    OP(TEX_A1D, "tex.a1d.v4%t%s", "{4t}=[d{uc}]", 31, 20, PTX__TEXTURE, T2(F32, I32), T2(S32, F32))          \
    OP(TEX_A2D, "tex.a2d.v4%t%s", "{4t}=[d{uccc}]", 31, 20, PTX__TEXTURE, T2(F32, I32), T2(S32, F32))        \
    PTX__TEX_F32(OP, CUBE, "cube", "{4f}]", 31)                                                              \
    PTX__TEX_F32(OP, ACUBE, "acube", "{ufff}]", 31)                                                          \
    PTX__TEX_DETAIL(OP, 1D, "1d", "f", "f", 31)                                                              \
    PTX__TEX_DETAIL(OP, 2D, "2d", "2f", "2f", 31)                                                            \
    PTX__TEX_DETAIL(OP, 3D, "3d", "4f", "4f", 31)                                                            \
    PTX__TEX_DETAIL(OP, A1D, "a1d", "uf", "f", 31)                                                           \
    PTX__TEX_DETAIL(OP, A2D, "a2d", "ufff", "2f", 31)                                                        \
    PTX__TEX_DETAIL(OP, CUBE, "cube", "4f", "4f", 43)                                                        \
    PTX__TEX_DETAIL(OP, ACUBE, "acube", "ufff", "4f", 43)                                                    \
    PTX__TLD4(OP, 2D, "2d", "{2f}]", 31)                                                                     \
    PTX__TLD4(OP, A2D, "a2d", "{ufff}]", 43)                                                                 \
    PTX__TLD4(OP, CUBE, "cube", "{4f}]", 43)                                                                 \
    PTX__TLD4(OP, ACUBE, "acube", "{ufff}]", 43)                                                             \
    OP(TXQ_WIDTH, "txq.width.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                    \
    OP(TXQ_HEIGHT, "txq.height.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                  \
    OP(TXQ_DEPTH, "txq.depth.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                    \
    OP(TXQ_ARRAY_SIZE, "txq.array_size.b32", "u=[d]", 41, 20, PTX__REGISTER_1, (0))                          \
    OP(TXQ_NUM_MIPMAP_LEVELS, "txq.num_mipmap_levels.b32", "u=[d]", 41, 20, PTX__REGISTER_1, (0))
/* suld.b, sust.b, sust.p and sured.b of surfaces of one dimension; at: the coordinates. */
#define PTX__SURFACE_FORM(FORM, ID, name, operands, ...)                                                     \
    FORM(SU##ID, "su" name "%m", operands, 31, 20, __VA_ARGS__, (0), (0), PTX__M1(BORDER),                   \
        PTX__M1(SURFACE_TRAP))
#define PTX__SURFACE_ROWS(OP, FORM, DIM, dim, at)                                                            \
    PTX__SURFACE_FORM(OP, LD_##DIM, "ld.b." dim "%t", "{t}=[d" at, PTX__TEXTURE, PTX__T1(SURFACE))           \
    PTX__SURFACE_FORM(FORM, LD_##DIM, "ld.b." dim ".v%1%t", "{t+v}=[d" at, PTX__T1(SURFACE))                 \
    PTX__SURFACE_FORM(OP, ST_##DIM, "st.b." dim "%t", "=[d" at "{t}", PTX__REGISTER_1 | PTX__NO_FLOATS,      \
        PTX__T1(SURFACE))                                                                                    \
    PTX__SURFACE_FORM(FORM, ST_##DIM, "st.b." dim ".v%1%t", "=[d" at "{t+v}", PTX__T1(SURFACE))              \
    PTX__SURFACE_FORM(OP, ST_P_##DIM, "st.p." dim ".v4.b32", "=[d" at "{4x}",                                \
        PTX__REGISTER_1 | PTX__NO_FLOATS, (0))
#define PTX__SURED_ROWS(OP, DIM, dim, at)                                                                    \
    PTX__SURFACE_FORM(OP, RED_ADD_##DIM, "red.b.add." dim "%t", "=[d" at "t", PTX__REGISTER_1,               \
        PTX__T2(I32, U64))                                                                                   \
    PTX__SURFACE_FORM(OP, RED_MIN_##DIM, "red.b.min." dim "%t", "=[d" at "t", PTX__REGISTER_1, PTX__T1(I32)) \
    PTX__SURFACE_FORM(OP, RED_MAX_##DIM, "red.b.max." dim "%t", "=[d" at "t", PTX__REGISTER_1, PTX__T1(I32)) \
    PTX__SURFACE_FORM(OP, RED_AND_##DIM, "red.b.and." dim "%t", "=[d" at "t", PTX__REGISTER_1, PTX__T1(B32)) \
    PTX__SURFACE_FORM(OP, RED_OR_##DIM, "red.b.or." dim "%t", "=[d" at "t", PTX__REGISTER_1, PTX__T1(B32))
/* Video instructions on two 16-bit or four 8-bit parts. */
#define PTX__VIDEO(OP, ID, name)                                                                             \
    OP(V##ID##2, "v" name "2%t%s%s%m", "t=uuu", 30, 30, PTX__REGISTERS, PTX__T1(I32), PTX__T1(I32),          \
        PTX__M1(SAT))                                                                                        \
    OP(V##ID##4, "v" name "4%t%s%s%m", "t=uuu", 30, 30, PTX__REGISTERS, PTX__T1(I32), PTX__T1(I32),          \
        PTX__M1(SAT))
#define PTX__TABLE_SURFACES(OP, FORM, T1, T2, T3, M1, M2, M3)                                                \
    PTX__SURFACE_ROWS(OP, FORM, 1D, "1d", "{u}]")                                                            \
    PTX__SURFACE_ROWS(OP, FORM, 2D, "2d", "{2u}]")                                                           \
    PTX__SURFACE_ROWS(OP, FORM, 3D, "3d", "{4u}]")                                                           \
    PTX__SURFACE_ROWS(OP, FORM, A1D, "a1d", "{2u}]")                                                         \
    PTX__SURFACE_ROWS(OP, FORM, A2D, "a2d", "{4u}]")                                                         \
    PTX__SURED_ROWS(OP, 1D, "1d", "{u}]")                                                                    \
    PTX__SURED_ROWS(OP, 2D, "2d", "{2u}]")                                                                   \
    PTX__SURED_ROWS(OP, 3D, "3d", "{4u}]")                                                                   \
    OP(SUQ_WIDTH, "suq.width.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                    \
    OP(SUQ_HEIGHT, "suq.height.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                  \
    OP(SUQ_DEPTH, "suq.depth.b32", "u=[d]", 31, 20, PTX__REGISTER_1, (0))                                    \
    OP(SUQ_ARRAY_SIZE, "suq.array_size.b32", "u=[d]", 41, 20, PTX__REGISTER_1, (0))                          \
    OP(ISTYPEP_TEXREF, "istypep.texref", "p=d", 40, 30, PTX__REGISTER_1, (0))                                \
    /* video */                                                                                              \
    OP(VADD, "vadd%t%s%s%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                                   \
    OP(VSUB, "vsub%t%s%s%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                                   \
    OP(VABSDIFF, "vabsdiff%t%s%s%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                           \
    OP(VABSDIFF_ADD, "vabsdiff%t%s%s%m.add", "t=uuu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                  \
    OP(VMIN, "vmin%t%s%s%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                                   \
    OP(VMAX, "vmax%t%s%s%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                                   \
    OP(VMAD, "vmad%t%s%s%m", "t=uuu", 20, 20, 0, T1(I32), T1(I32), M1(SAT))                                  \
    OP(VSHL, "vshl%t%s.u32%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT), M1(FUNNEL))                     \
    OP(VSHR, "vshr%t%s.u32%m", "t=uu", 20, 20, 0, T1(I32), T1(I32), M1(SAT), M1(FUNNEL))                     \
    OP(VSET, "vset%s%s%m", "u=uu", 20, 20, 0, (0), T1(I32), (0), M1(CMP_ORDERED))                            \
    PTX__VIDEO(OP, ADD, "add")                                                                               \
    PTX__VIDEO(OP, SUB, "sub")                                                                               \
    PTX__VIDEO(OP, AVRG, "avrg")                                                                             \
    PTX__VIDEO(OP, ABSDIFF, "absdiff")                                                                       \
    PTX__VIDEO(OP, MIN, "min")                                                                               \
    PTX__VIDEO(OP, MAX, "max")                                                                               \
    OP(VSET2, "vset2%s%s%m", "u=uuu", 30, 30, PTX__REGISTERS, (0), T1(I32), (0), M1(CMP_ORDERED))            \
    OP(VSET4, "vset4%s%s%m", "u=uuu", 30, 30, PTX__REGISTERS, (0), T1(I32), (0), M1(CMP_ORDERED))            \
    /* the stack, control */                                                                                 \
    OP(STACKSAVE, "stacksave.u64", "d=", 73, 52, PTX__UNIFORM_LANE, (0))                                     \
    OP(STACKRESTORE, "stackrestore.u64", "=d", 73, 52, PTX__REGISTER_1, (0))                                 \
    OP(ALLOCA, "alloca.u64", "d=d", 73, 52, PTX__UNIFORM_LANE, (0))                                          \
    FORM(ALLOCA, "alloca.u64", "d=dX", 73, 52, (0))                                                          \
    OP(TRAP, "trap", "=", 10, 0, 0, (0))                                                                     \
    OP(BRKPT, "brkpt", "=", 10, 0, 0, (0))                                                                   \
    OP(PMEVENT, "pmevent", "=P", 14, 0, 0, (0))                                                              \
    OP(PMEVENT_MASK, "pmevent.mask", "=Q", 30, 20, 0, (0))                                                   \
    OP(EXIT, "exit", "=", 10, 0, 0, (0))                                                                     \
    OP(RET, "ret", "=", 10, 0, 0, (0))                                                                       \
    OP(BRA, "bra", "=", 10, 0, 0, (0))                                                                       \
    OP(BRX_EDGE, "", "=", 60, 30, 0, (0))                                                                    \
    OP(RAW, "", "=", 10, 0, 0, (0))
#define PTX__WITH_SETS(TABLE, OP, FORM)                                                                      \
    TABLE(OP, FORM, PTX__T1, PTX__T2, PTX__T3, PTX__M1, PTX__M2, PTX__M3)
#define PTX_TABLE(OP, FORM)                                                                                  \
    PTX__WITH_SETS(PTX__TABLE_ARITHMETIC, OP, FORM)                                                          \
    PTX__WITH_SETS(PTX__TABLE_LOGIC, OP, FORM)                                                               \
    PTX__WITH_SETS(PTX__TABLE_CONVERSIONS, OP, FORM)                                                         \
    PTX__WITH_SETS(PTX__TABLE_MEMORY, OP, FORM)                                                              \
    PTX__WITH_SETS(PTX__TABLE_COPIES, OP, FORM)                                                              \
    PTX__WITH_SETS(PTX__TABLE_TENSOR_COPIES, OP, FORM)                                                       \
    PTX__WITH_SETS(PTX__TABLE_WARPS, OP, FORM)                                                               \
    PTX__WITH_SETS(PTX__TABLE_MMA, OP, FORM)                                                                 \
    PTX__WITH_SETS(PTX__TABLE_MMA_SPARSE, OP, FORM)                                                          \
    PTX__WITH_SETS(PTX__TABLE_WMMA_MEMORY, OP, FORM)                                                         \
    PTX__WITH_SETS(PTX__TABLE_WMMA, OP, FORM)                                                                \
    PTX__WITH_SETS(PTX__TABLE_WARPGROUP, OP, FORM)                                                           \
    PTX__WITH_SETS(PTX__TABLE_TEXTURES, OP, FORM)                                                            \
    PTX__WITH_SETS(PTX__TABLE_SURFACES, OP, FORM)

#define PTX__OP(id, ...) PTX_##id,
#define PTX__FORM(id, ...)
typedef enum ptx_op_id { PTX_TABLE(PTX__OP, PTX__FORM) PTX__OP_COUNT } ptx_op_id;
#undef PTX__OP
#undef PTX__FORM

/* Special registers: X(id, name in PTX, type, uniformity, first .version, first target). Uniformity: the
   threads that read the same value, those of a CLUSTER, BLOCK or WARP; LANE: each thread reads its own. That
   the driver may move a running block, which then reads another %smid, is ignored. */
#define PTX_SPECIALS(X)                                                                                      \
    X(TID_X, "%tid.x", PTX_U32, LANE, 0, 0)                                                                  \
    X(TID_Y, "%tid.y", PTX_U32, LANE, 0, 0)                                                                  \
    X(TID_Z, "%tid.z", PTX_U32, LANE, 0, 0)                                                                  \
    X(NTID_X, "%ntid.x", PTX_U32, CLUSTER, 0, 0)                                                             \
    X(NTID_Y, "%ntid.y", PTX_U32, CLUSTER, 0, 0)                                                             \
    X(NTID_Z, "%ntid.z", PTX_U32, CLUSTER, 0, 0)                                                             \
    X(CTAID_X, "%ctaid.x", PTX_U32, BLOCK, 0, 0)                                                             \
    X(CTAID_Y, "%ctaid.y", PTX_U32, BLOCK, 0, 0)                                                             \
    X(CTAID_Z, "%ctaid.z", PTX_U32, BLOCK, 0, 0)                                                             \
    X(NCTAID_X, "%nctaid.x", PTX_U32, CLUSTER, 0, 0)                                                         \
    X(NCTAID_Y, "%nctaid.y", PTX_U32, CLUSTER, 0, 0)                                                         \
    X(NCTAID_Z, "%nctaid.z", PTX_U32, CLUSTER, 0, 0)                                                         \
    X(LANEID, "%laneid", PTX_U32, LANE, 0, 0)                                                                \
    X(CLOCK64, "%clock64", PTX_U64, LANE, 0, 0)                                                              \
    X(GLOBALTIMER, "%globaltimer", PTX_U64, LANE, 0, 0)                                                      \
    X(WARPID, "%warpid", PTX_U32, WARP, 0, 0)                                                                \
    X(NWARPID, "%nwarpid", PTX_U32, BLOCK, 0, 0)                                                             \
    X(SMID, "%smid", PTX_U32, BLOCK, 0, 0)                                                                   \
    X(NSMID, "%nsmid", PTX_U32, CLUSTER, 0, 0)                                                               \
    X(GRIDID, "%gridid", PTX_U64, CLUSTER, 0, 0)                                                             \
    X(LANEMASK_EQ, "%lanemask_eq", PTX_U32, LANE, 0, 0)                                                      \
    X(LANEMASK_LE, "%lanemask_le", PTX_U32, LANE, 0, 0)                                                      \
    X(LANEMASK_LT, "%lanemask_lt", PTX_U32, LANE, 0, 0)                                                      \
    X(LANEMASK_GE, "%lanemask_ge", PTX_U32, LANE, 0, 0)                                                      \
    X(LANEMASK_GT, "%lanemask_gt", PTX_U32, LANE, 0, 0)                                                      \
    X(CLOCK, "%clock", PTX_U32, LANE, 0, 0)                                                                  \
    X(CLOCK_HI, "%clock_hi", PTX_U32, LANE, 0, 0)                                                            \
    X(GLOBALTIMER_LO, "%globaltimer_lo", PTX_U32, LANE, 0, 0)                                                \
    X(GLOBALTIMER_HI, "%globaltimer_hi", PTX_U32, LANE, 0, 0)                                                \
    X(PM0, "%pm0", PTX_U32, LANE, 0, 0)                                                                      \
    X(PM1, "%pm1", PTX_U32, LANE, 0, 0)                                                                      \
    X(PM2, "%pm2", PTX_U32, LANE, 0, 0)                                                                      \
    X(PM3, "%pm3", PTX_U32, LANE, 0, 0)                                                                      \
    X(ENVREG0, "%envreg0", PTX_B32, CLUSTER, 0, 0)                                                           \
    X(TOTAL_SMEM_SIZE, "%total_smem_size", PTX_U32, CLUSTER, 0, 0)                                           \
    X(DYNAMIC_SMEM_SIZE, "%dynamic_smem_size", PTX_U32, CLUSTER, 0, 0)                                       \
    X(AGGR_SMEM_SIZE, "%aggr_smem_size", PTX_U32, CLUSTER, 81, 90)                                           \
    X(RESERVED_SMEM_OFFSET_BEGIN, "%reserved_smem_offset_begin", PTX_B32, CLUSTER, 76, 80)                   \
    X(CURRENT_GRAPH_EXEC, "%current_graph_exec", PTX_U64, CLUSTER, 80, 50)                                   \
    X(IS_EXPLICIT_CLUSTER, "%is_explicit_cluster", PTX_PRED, CLUSTER, 78, 90)                                \
    X(CLUSTERID_X, "%clusterid.x", PTX_U32, CLUSTER, 78, 90)                                                 \
    X(CLUSTERID_Y, "%clusterid.y", PTX_U32, CLUSTER, 78, 90)                                                 \
    X(CLUSTERID_Z, "%clusterid.z", PTX_U32, CLUSTER, 78, 90)                                                 \
    X(NCLUSTERID_X, "%nclusterid.x", PTX_U32, CLUSTER, 78, 90)                                               \
    X(NCLUSTERID_Y, "%nclusterid.y", PTX_U32, CLUSTER, 78, 90)                                               \
    X(NCLUSTERID_Z, "%nclusterid.z", PTX_U32, CLUSTER, 78, 90)                                               \
    X(CLUSTER_CTAID_X, "%cluster_ctaid.x", PTX_U32, BLOCK, 78, 90)                                           \
    X(CLUSTER_CTAID_Y, "%cluster_ctaid.y", PTX_U32, BLOCK, 78, 90)                                           \
    X(CLUSTER_CTAID_Z, "%cluster_ctaid.z", PTX_U32, BLOCK, 78, 90)                                           \
    X(CLUSTER_NCTAID_X, "%cluster_nctaid.x", PTX_U32, CLUSTER, 78, 90)                                       \
    X(CLUSTER_NCTAID_Y, "%cluster_nctaid.y", PTX_U32, CLUSTER, 78, 90)                                       \
    X(CLUSTER_NCTAID_Z, "%cluster_nctaid.z", PTX_U32, CLUSTER, 78, 90)                                       \
    X(CLUSTER_CTARANK, "%cluster_ctarank", PTX_U32, BLOCK, 78, 90)                                           \
    X(CLUSTER_NCTARANK, "%cluster_nctarank", PTX_U32, CLUSTER, 78, 90)

#define PTX__ENUM(id, name, type, class_, ver, sm) PTX_##id,
typedef enum ptx_special { PTX_SPECIALS(PTX__ENUM) PTX__SPECIAL_COUNT } ptx_special;
#undef PTX__ENUM

/* ---- [INTERFACE] ------------------------------------------------------------------------------------------

   Every function accepts a NULL module or kernel, and any module that has an error: it then does nothing.
   A function whose name ends in _ takes the caller's site; call the macro of the same name without the _. In
   a call on a kernel, a NULL site stands for that of the call that started the kernel. */
#define PTX__STR2(x) #x
#define PTX__STR(x) PTX__STR2(x)
#define PTX__AT __FILE__ ":" PTX__STR(__LINE__)

/* -- module -- */

/* A new module; NULL: out of memory. desc NULL: all defaults. An invalid desc becomes the module's error. */
PTXGEN_API ptx_module *ptx_module_new(const ptx_module_desc *desc);
PTXGEN_API void ptx_module_free(ptx_module *m);
/* Removes kernels, functions, variables and error; keeps target and memory. Older handles become foreign. */
PTXGEN_API void ptx_module_reset(ptx_module *m);
PTXGEN_API ptx_target ptx_module_target(const ptx_module *m);
/* "sm_90a" or "90a" to a target; 0 if it is none. And back, "90a": like snprintf, returns the full length. */
PTXGEN_API ptx_target ptx_target_parse(const char *name);
PTXGEN_API size_t ptx_target_name(ptx_target target, char *name, size_t capacity);

/* The first error, never NULL: its code is PTX_E_NONE if there is none, PTX_E_MEMORY for a NULL module. */
PTXGEN_API const ptx_error *ptx_get_error(const ptx_module *m);
/* Returns the name in the catalogue, "type", "range" ...; "?" for an unknown code. */
PTXGEN_API const char *ptx_error_name(ptx_code code);
/* Sets the module's error, unless it has one: for a generator that refuses its description. The message has
   printf format; a code that is none of an error becomes PTX_E_ARGUMENT. Returns the code of the module's
   error. */
PTXGEN_API ptx_code ptx_fail(ptx_module *m, ptx_code code, const char *site, const char *format, ...);

/* Verifies every kernel, as ptx_text does. Returns the code of the module's error. */
PTXGEN_API ptx_code ptx_verify(ptx_module *m);
/* The register pressure of entry `index`, as ptx_entry_get counts them; 0 on an error. */
PTXGEN_API int ptx_pressure(ptx_module *m, uint32_t index, ptx_pressure_info *info);
/* Finds the instruction of line `line` (counted from 1) of the last ptx_text. Returns 0 if there is none. */
PTXGEN_API int ptx_locate(const ptx_module *m, uint32_t line, ptx_place *place);
/* Copies a log of ptxas or the driver to buffer and adds the caller's place to each "line N". Writes at most
   capacity - 1 characters and a NUL; returns the length of the whole text without the NUL. */
PTXGEN_API size_t ptx_explain(const ptx_module *m, const char *log, char *buffer, size_t capacity);
/* Sets ptx_module_desc.comments for later texts; returns the previous setting. */
PTXGEN_API uint32_t ptx_show_comments(ptx_module *m, uint32_t comments);
/* The text, NUL-terminated ASCII, owned by the module until it changes; NULL on error. length may be NULL. */
PTXGEN_API const char *ptx_text(ptx_module *m, size_t *length);
/* Returns the .version of the text: 63 is 6.3. */
PTXGEN_API uint32_t ptx_version(const ptx_module *m);

PTXGEN_API uint32_t ptx_entry_count(const ptx_module *m);
/* Fills *info with what a launch needs of entry `index`. Returns 0 if there is no such entry. */
PTXGEN_API int ptx_entry_get(const ptx_module *m, uint32_t index, ptx_entry_info *info);

/* -- kernel -- */

/* Starts a kernel that the host can launch. */
#define ptx_entry(m, name) ptx_entry_((m), PTX__AT, (name))
PTXGEN_API ptx_kernel *ptx_entry_(ptx_module *m, const char *site, const char *name);
/* The same, but with ptx_module_desc.dependent_launch the kernel waits only at ptx_dependent_wait. Before it,
   the kernel may read and prefetch what no kernel writes, such as weights. All threads must execute the wait
   before any other access to global memory. Without dependent_launch ptx_dependent_wait emits nothing. */
#define ptx_entry_early(m, name) ptx_entry_early_((m), PTX__AT, (name))
#define ptx_dependent_wait(k) ptx_dependent_wait_((k), PTX__AT)
PTXGEN_API ptx_kernel *ptx_entry_early_(ptx_module *m, const char *site, const char *name);
PTXGEN_API void ptx_dependent_wait_(ptx_kernel *k, const char *site);
PTXGEN_API int ptx_module_is_dependent(const ptx_module *m); /* ptx_module_desc.dependent_launch */
PTXGEN_API ptx_module *ptx_kernel_module(ptx_kernel *k);
/* .maxntid: the most threads of a block, for which the assembler allocates registers. min_blocks > 0:
   .minnctapersm, the blocks that must fit on a multiprocessor. */
#define ptx_launch_bounds(k, max_threads, min_blocks)                                                        \
    ptx_directive_((k), PTX__AT, 5, (max_threads), (min_blocks), 0)

/* Adds a parameter, in the order of the calls, and loads it where the call is, so make parameters first. */
#define ptx_param(k, name, type) ptx_param_((k), PTX__AT, (name), (type), PTX_GENERIC)
/* The same for a device pointer: an address in that space. */
#define ptx_param_ptr(k, name, space) ptx_param_((k), PTX__AT, (name), PTX_U64, (space))
PTXGEN_API ptx_val ptx_param_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                              ptx_space space);
/* The same for a struct by value: returns its address in the parameter space, from which ptx_ld loads fields.
   align: 1, 2, 4 ... 64. */
#define ptx_param_bytes(k, name, bytes, align) ptx_param_bytes_((k), PTX__AT, (name), (bytes), (align))
PTXGEN_API ptx_val ptx_param_bytes_(ptx_kernel *k, const char *site, const char *name, uint32_t bytes,
                                    uint32_t align);
/* The same for a tensor map (CUtensorMap) by value: returns its generic address, as PTX_TENSOR_G2S and
   PTX_TENSOR_S2G take it. From sm_90 on. */
#define ptx_param_map(k, name) ptx_cvta(k, ptx_param_bytes(k, name, 128, 64))
/* Declares an array of `count` elements in shared memory of the block and returns its address, aligned to the
   greater of `align` and the element's size. The contents are undefined at the start. */
#define ptx_shared(k, name, type, count, align) ptx_shared_((k), PTX__AT, (name), (type), (count), (align))
PTXGEN_API ptx_val ptx_shared_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                               uint32_t count, uint32_t align);
/* The address of the dynamic shared memory of the launch (ptx_launch.shared_bytes), 16-byte aligned. */
#define ptx_shared_dynamic(k) ptx_shared_dynamic_((k), PTX__AT, 16)
/* The same, aligned to `align` bytes: 16, 32 ... 1024. */
#define ptx_shared_dynamic_aligned(k, align) ptx_shared_dynamic_((k), PTX__AT, (align))
PTXGEN_API ptx_val ptx_shared_dynamic_(ptx_kernel *k, const char *site, uint32_t align);

/* More directives of an entry. block: .reqntid, the only block size that a launch may have. cluster:
   .reqnctapercluster, its size in blocks. max_cluster: .maxclusterrank, if the launch gives the size. */
#define ptx_require_block(k, x, y, z) ptx_directive_((k), PTX__AT, 0, (x), (y), (z))
#define ptx_require_cluster(k, x, y, z) ptx_directive_((k), PTX__AT, 1, (x), (y), (z))
#define ptx_max_registers(k, n) ptx_directive_((k), PTX__AT, 2, (n), 0, 0) /* .maxnreg */
#define ptx_max_cluster(k, blocks) ptx_directive_((k), PTX__AT, 3, (blocks), 0, 0)
#define ptx_blocks_are_clusters(k) ptx_directive_((k), PTX__AT, 4, 1, 0, 0) /* the grid counts clusters */
#define ptx_noreturn(k) ptx_directive_((k), PTX__AT, 6, 1, 0, 0) /* of a function: .noreturn */
PTXGEN_API void ptx_directive_(ptx_kernel *k, const char *site, int which, uint32_t x, uint32_t y,
                               uint32_t z);
/* Emits .pragma "text" where the call is, "nounroll" and the like. */
#define ptx_pragma(k, text) ptx_pragma_((k), PTX__AT, (text))
PTXGEN_API void ptx_pragma_(ptx_kernel *k, const char *site, const char *text);

/* Local memory, count elements for each thread: its address. The contents are undefined at the start. */
#define ptx_local(k, name, type, count, align) ptx_local_((k), PTX__AT, (name), (type), (count), (align))
PTXGEN_API ptx_val ptx_local_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                              uint32_t count, uint32_t align);

/* -- variables of the module, functions -- */

/* An array of `count` elements in global or constant memory. data: the elements' bytes, which the module
   copies; NULL: zeros. exported 1: the host can find the variable by name. */
typedef struct ptx_variable_desc {
    const char *name;
    ptx_space space; /* PTX_GLOBAL or PTX_CONST */
    ptx_type type;
    uint32_t count, align; /* below 2 GiB in all; align 0: the element's size */
    const void *data;
    uint32_t exported;
} ptx_variable_desc;
#define ptx_variable(m, desc) ptx_variable_((m), PTX__AT, (desc))
PTXGEN_API ptx_symbol ptx_variable_(ptx_module *m, const char *site, const ptx_variable_desc *desc);
/* Initialises element `element` of variable `in` (64-bit elements) with the generic address of an earlier
   variable, `to`, plus `bytes`. */
#define ptx_point(m, in, element, to, bytes) ptx_point_((m), PTX__AT, (in), (element), (to), (bytes))
PTXGEN_API void ptx_point_(ptx_module *m, const char *site, ptx_symbol in, uint32_t element, ptx_symbol to,
                           int64_t bytes);
/* Returns the variable's address, in its space. */
#define ptx_address(k, variable) ptx_address_((k), PTX__AT, (variable))
PTXGEN_API ptx_val ptx_address_(ptx_kernel *k, const char *site, ptx_symbol variable);

/* Starts a function that kernels of the module call. result: the type of its result, or PTX_NONE. ptx_param
   makes its parameters; it ends in ptx_return or, without a result, in ptx_ret. */
#define ptx_func(m, name, result) ptx_func_((m), PTX__AT, (name), (result))
PTXGEN_API ptx_kernel *ptx_func_(ptx_module *m, const char *site, const char *name, ptx_type result);
#define ptx_return(k, value) ptx_return_((k), PTX__AT, (value))
PTXGEN_API void ptx_return_(ptx_kernel *k, const char *site, ptx_val value);
/* Calls it with n arguments. Returns its result, or no value. Not allowed after ptx_guard. */
#define ptx_call(k, function, n, args) ptx_call_((k), PTX__AT, (function), (n), (args))
PTXGEN_API ptx_val ptx_call_(ptx_kernel *k, const char *site, const ptx_kernel *function, uint32_t n,
                             const ptx_val *args);
/* The address of a function; a call through one, whose prototype is `result` and the arguments' types. */
#define ptx_func_address(k, function) ptx_func_address_((k), PTX__AT, (function))
#define ptx_call_indirect(k, address, result, n, args)                                                       \
    ptx_call_indirect_((k), PTX__AT, (address), (result), (n), (args))
PTXGEN_API ptx_val ptx_func_address_(ptx_kernel *k, const char *site, const ptx_kernel *function);
PTXGEN_API ptx_val ptx_call_indirect_(ptx_kernel *k, const char *site, ptx_val address, ptx_type result,
                                      uint32_t n, const ptx_val *args);
/* printf on the device, up to 32 arguments. As in C, floats are passed as f64, 16-bit integers as 32 bits. */
#define ptx_printf(k, format, n, args) ptx_printf_((k), PTX__AT, (format), (n), (args))
PTXGEN_API void ptx_printf_(ptx_kernel *k, const char *site, const char *format, uint32_t n,
                            const ptx_val *args);

/* Emits any PTX text, for what the table lacks. $0 $1 ... stand for the results, of the types given, and then
   for the operands; all are typed and tracked. $$ is one $. The text includes the ';' that PTX requires. */
#define ptx_raw(k, text, n, operands, results, types, out)                                                   \
    ptx_raw_((k), PTX__AT, (text), (n), (operands), (results), (types), (out))
PTXGEN_API void ptx_raw_(ptx_kernel *k, const char *site, const char *text, uint32_t n,
                         const ptx_val *operands, uint32_t results, const ptx_type *types, ptx_val *out);

/* -- operands that need no kernel -- */

/* A handle. The top three bits are its kind, the next six its type, and 55 bits remain:
     REGISTER  3 bits of space; 4 bits of alignment (log2 + 1, 0: unknown; 15: an inverted predicate); 16 bits
               of the owning kernel's tag; 32 bits, a word of the record (PTX__W_*). Also parameter blocks and
               the numbers of ptx_wide.
     INTEGER   a number of 55 bits, sign extended; INTEGER_9: times 2^9
     FLOAT     the upper 55 bits of a double; the last is also set if any bit below it is (a sticky bit)
   Two kinds have no type field. A DOUBLE has 62 bits: sign, 9 bits of exponent, mantissa. An
   ADDRESS_OFFSET, an address from ptx_off, has 61: see PTX__OFF_TYPE. The low bits of NOTHING say why there
   is no value: PTX__WHY_*. */
enum {
    PTX__H_NOTHING,
    PTX__H_REGISTER,
    PTX__H_INTEGER,
    PTX__H_INTEGER_9,
    PTX__H_DOUBLE, /* 4 and 5 */
    PTX__H_FLOAT = 6,
    PTX__H_ADDRESS_OFFSET
};
#define PTX__HANDLE(kind, type, low)                                                                         \
    (PTX__CAST(uint64_t, kind) << 61 | PTX__CAST(uint64_t, type) << 55 | (low))
#define PTX__LOW55 ((UINT64_C(1) << 55) - 1)
/* Why a handle is no value: the low bits of NOTHING. The error at the use of the handle tells this reason. */
enum {
    PTX__WHY_AS = 1,
    PTX__WHY_PTR,
    PTX__WHY_INV,
    PTX__WHY_AS_NO_REGISTER,
    PTX__WHY_OFF,
    PTX__WHY_LARGE_OFFSET, /* the bits above hold it; from here on: what does not fit a handle */
    PTX__WHY_HIGH_REGISTER,
    PTX__WHY_WIDE /* a number; the handle's type field has its type */
};
/* PTX__INLINE: GCC does not inline code of a higher level between PTX__BEGIN_O1 and PTX__END_O1. */
PTX__INLINE uint64_t ptx__integer_handle(ptx_type type, uint64_t value) {
    if ((value + (UINT64_C(1) << 54)) >> 55 == 0)
        return PTX__HANDLE(PTX__H_INTEGER, type, value & PTX__LOW55);
    return value << 55 ? PTX__HANDLE(PTX__H_NOTHING, type, UINT64_C(0) + PTX__WHY_WIDE)
                       : PTX__HANDLE(PTX__H_INTEGER_9, type, value >> 9);
}
static inline uint64_t ptx__double_handle(uint64_t bits) {
    const uint64_t exponent = (bits >> 52 & 0x7ff) - (1023 - 255);
    if (bits << 1 > UINT64_C(0x7ff) << 53) bits = UINT64_C(0x7ff8) << 48; /* one NaN */
    if (!(bits << 55)) return PTX__HANDLE(PTX__H_FLOAT, PTX_F64, bits >> 9);
    if (exponent > 511) return PTX__HANDLE(PTX__H_NOTHING, PTX_F64, UINT64_C(0) + PTX__WHY_WIDE);
    return PTX__HANDLE(PTX__H_DOUBLE, 0,
                       bits >> 63 << 61 | exponent << 52 | (bits & UINT64_C(0xfffffffffffff)));
}
static inline uint64_t ptx__float_handle(ptx_type type, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return type == PTX_F64 ? ptx__double_handle(bits)
                           : PTX__HANDLE(PTX__H_FLOAT, type, bits >> 9 | (bits << 55 != 0));
}
#define PTX__UNSIGNED(type, value) v.handle = ptx__integer_handle(type, value);
#define PTX__SIGNED(type, value) v.handle = ptx__integer_handle(type, PTX__CAST(uint64_t, value));
#define PTX__FLOATING(type, value) v.handle = ptx__float_handle(type, value);
#define PTX__CONSTANT(name, argument, body, type)                                                            \
    static inline ptx_val name(argument value) {                                                             \
        ptx_val v;                                                                                           \
        body(type, value) return v;                                                                          \
    }

/* Immediates. ptx_imm takes the integer type of its operand slot. Arguments are wide, so that a number that
   does not fit its type is an error where it is used. Floats are rounded to nearest even; a finite number
   that would become infinite is an error. Limits that ptx_wide does not have: 64-bit integers are of -2^54 to
   2^54 - 1, or such times 2^9; an f64 has an exponent of -255 to 256, or 0 in its last 9 bits. */
PTX__CONSTANT(ptx_imm, int64_t, PTX__SIGNED, PTX_NONE)
PTX__CONSTANT(ptx_u16, uint64_t, PTX__UNSIGNED, PTX_U16)
PTX__CONSTANT(ptx_s16, int64_t, PTX__SIGNED, PTX_S16)
PTX__CONSTANT(ptx_u32, uint64_t, PTX__UNSIGNED, PTX_U32)
PTX__CONSTANT(ptx_s32, int64_t, PTX__SIGNED, PTX_S32)
PTX__CONSTANT(ptx_u64, uint64_t, PTX__UNSIGNED, PTX_U64)
PTX__CONSTANT(ptx_s64, int64_t, PTX__SIGNED, PTX_S64)
PTX__CONSTANT(ptx_b32, uint64_t, PTX__UNSIGNED, PTX_B32)
PTX__CONSTANT(ptx_f16, double, PTX__FLOATING, PTX_F16)
PTX__CONSTANT(ptx_bf16, double, PTX__FLOATING, PTX_BF16)
PTX__CONSTANT(ptx_f32, double, PTX__FLOATING, PTX_F32)
PTX__CONSTANT(ptx_f64, double, PTX__FLOATING, PTX_F64)
/* Any 64-bit immediate, kept by the kernel: PTX_U64, PTX_S64, or PTX_F64 and the bits of a double. */
#define ptx_wide(k, type, bits) ptx_wide_((k), PTX__AT, (type), (bits))
PTXGEN_API ptx_val ptx_wide_(ptx_kernel *k, const char *site, ptx_type type, uint64_t bits);
/* The same bits as another type of the same width. */
PTXGEN_API ptx_val ptx_as(ptx_val v, ptx_type type);
/* The same number as an address in that space: 64 bits, but 32 in shared memory. */
PTXGEN_API ptx_val ptx_ptr(ptx_val v, ptx_space space);
/* The negation of a predicate, for any operand that is a predicate (if, while, guards, selp ...). */
PTXGEN_API ptx_val ptx_inv(ptx_val predicate);
PTXGEN_API ptx_mem ptx_at(ptx_val address, int64_t byte_offset);
PTXGEN_API ptx_mem ptx_with(ptx_mem mem, ptx_mods mods);
/* The same access with an L2 cache policy, a 64-bit value from PTX_CREATEPOLICY that is among the first 2,043
   64-bit values of its kernel. */
PTXGEN_API ptx_mem ptx_cached(ptx_mem mem, ptx_val policy);
/* address + byte_offset, an address like any other. It costs nothing where memory is accessed ([address+16]),
   and an add where the number is needed. Offsets add up: ptx_at(ptx_off(p, 16), 4) is [p+20], and
   ptx_ptr_add(k, ptx_off(p, 16), i, 4) keeps the 16. The sum must be within +-2^23 (in ptx_at: +-2^31). The
   address must be among the first 524,288 values of its width; ptx_at and ptx_ptr_add take any. */
PTXGEN_API ptx_val ptx_off(ptx_val address, int64_t byte_offset);
PTXGEN_API ptx_type ptx_type_of(ptx_val v);
/* The space of an address; PTX_GENERIC for other values. */
PTXGEN_API ptx_space ptx_space_of(ptx_val v);
PTXGEN_API uint32_t ptx_type_bytes(ptx_type type); /* 0 for predicates */
PTXGEN_API const char *ptx_type_name(ptx_type type);

/* -- instructions -- */

/* Any instruction of the table with 0 to 5 single operands. Returns its result; no value if it has none. */
#define ptx_op0(k, op, mods) ptx_op0_((k), PTX__AT, (op), (mods))
#define ptx_op1(k, op, mods, a) ptx_op1_((k), PTX__AT, (op), (mods), (a))
#define ptx_op2(k, op, mods, a, b) ptx_op2_((k), PTX__AT, (op), (mods), (a), (b))
#define ptx_op3(k, op, mods, a, b, c) ptx_op3_((k), PTX__AT, (op), (mods), (a), (b), (c))
#define ptx_op4(k, op, mods, a, b, c, d) ptx_op4_((k), PTX__AT, (op), (mods), (a), (b), (c), (d))
PTXGEN_API ptx_val ptx_op0_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods);
PTXGEN_API ptx_val ptx_op1_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a);
PTXGEN_API ptx_val ptx_op2_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b);
PTXGEN_API ptx_val ptx_op3_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b, ptx_val c);
PTXGEN_API ptx_val ptx_op4_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b, ptx_val c, ptx_val d);

#define ptx_op5(k, op, mods, a, b, c, d, e) ptx_op5_((k), PTX__AT, (op), (mods), (a), (b), (c), (d), (e))
PTXGEN_API ptx_val ptx_op5_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b, ptx_val c, ptx_val d, ptx_val e);
/* The same for any number of operands and results, in the order in which they are printed; the elements of a
   group follow each other. type, src_type: the types in its name; PTX_NONE: those of the operands, if the
   table's operands have a t and a c to tell them. */
#define ptx_opn(k, op, mods, type, src_type, n, operands, results, out)                                      \
    ptx_opn_((k), PTX__AT, (op), (mods), (type), (src_type), (n), (operands), (results), (out))
PTXGEN_API void ptx_opn_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type type,
                         ptx_type src_type, uint32_t n, const ptx_val *operands, uint32_t results,
                         ptx_val *out);

#define ptx_add(k, a, b) ptx_op2(k, PTX_ADD, 0, a, b)
#define ptx_sub(k, a, b) ptx_op2(k, PTX_SUB, 0, a, b)
#define ptx_mul(k, a, b) ptx_op2(k, PTX_MUL, 0, a, b) /* integers: the low half */
#define ptx_mul_hi(k, a, b) ptx_op2(k, PTX_MUL, PTX_HI, a, b)
#define ptx_mul_wide(k, a, b) ptx_op2(k, PTX_MUL, PTX_WIDE, a, b) /* twice the width */
#define ptx_mad(k, a, b, c) ptx_op3(k, PTX_MAD, 0, a, b, c)       /* integers: the low half */
#define ptx_mad_wide(k, a, b, c) ptx_op3(k, PTX_MAD, PTX_WIDE, a, b, c)
#define ptx_fma(k, a, b, c) ptx_op3(k, PTX_FMA, 0, a, b, c)
#define ptx_div(k, a, b) ptx_op2(k, PTX_DIV, 0, a, b)
#define ptx_rem(k, a, b) ptx_op2(k, PTX_REM, 0, a, b)
#define ptx_abs(k, a) ptx_op1(k, PTX_ABS, 0, a)
#define ptx_neg(k, a) ptx_op1(k, PTX_NEG, 0, a)
#define ptx_min(k, a, b) ptx_op2(k, PTX_MIN, 0, a, b)
#define ptx_max(k, a, b) ptx_op2(k, PTX_MAX, 0, a, b)
#define ptx_rcp(k, a) ptx_op1(k, PTX_RCP, 0, a) /* rounded to nearest, as sqrt and div are */
#define ptx_sqrt(k, a) ptx_op1(k, PTX_SQRT, 0, a)
/* The hardware's approximations of f32, with the largest errors that PTX documents: rsqrt 2^-22.9 relative;
   ex2 2 ulp; lg2 2^-22, absolute in (0.5, 2), else relative; sin and cos 2^-20.5 absolute to two pi; tanh
   2^-11 relative; rcp 1 ulp; sqrt 2^-23 relative; div 2 ulp, where the divisor is in 2^-126 to 2^126. */
#define ptx_rsqrt(k, a) ptx_op1(k, PTX_RSQRT, 0, a)
#define ptx_ex2(k, a) ptx_op1(k, PTX_EX2, 0, a)
#define ptx_lg2(k, a) ptx_op1(k, PTX_LG2, 0, a)
#define ptx_sin_approx(k, a) ptx_op1(k, PTX_SIN, 0, a)
#define ptx_cos_approx(k, a) ptx_op1(k, PTX_COS, 0, a)
#define ptx_tanh_approx(k, a) ptx_op1(k, PTX_TANH, 0, a)
#define ptx_rcp_approx(k, a) ptx_op1(k, PTX_RCP, PTX_APPROX, a)
#define ptx_sqrt_approx(k, a) ptx_op1(k, PTX_SQRT, PTX_APPROX, a)
#define ptx_div_approx(k, a, b) ptx_op2(k, PTX_DIV, PTX_APPROX, a, b)
#define ptx_and(k, a, b) ptx_op2(k, PTX_AND, 0, a, b)
#define ptx_or(k, a, b) ptx_op2(k, PTX_OR, 0, a, b)
#define ptx_xor(k, a, b) ptx_op2(k, PTX_XOR, 0, a, b)
#define ptx_not(k, a) ptx_op1(k, PTX_NOT, 0, a)
#define ptx_shl(k, a, count) ptx_op2(k, PTX_SHL, 0, a, count)
#define ptx_shr(k, a, count) ptx_op2(k, PTX_SHR, 0, a, count)
#define ptx_lop3(k, a, b, c, table) ptx_op4(k, PTX_LOP3, 0, a, b, c, table)
#define ptx_prmt(k, a, b, selector) ptx_op3(k, PTX_PRMT, 0, a, b, selector)
#define ptx_bfe(k, a, position, length) ptx_op3(k, PTX_BFE, 0, a, position, length)
#define ptx_bfi(k, a, into, position, length) ptx_op4(k, PTX_BFI, 0, a, into, position, length)
#define ptx_popc(k, a) ptx_op1(k, PTX_POPC, 0, a)
#define ptx_clz(k, a) ptx_op1(k, PTX_CLZ, 0, a)
#define ptx_brev(k, a) ptx_op1(k, PTX_BREV, 0, a)
#define ptx_setp(k, compare, a, b) ptx_op2(k, PTX_SETP, compare, a, b) /* ptx_setp(k, PTX_LT, a, b) */
#define ptx_selp(k, a, b, p) ptx_op3(k, PTX_SELP, 0, a, b, p)          /* p ? a : b */
#define ptx_mov(k, a) ptx_op1(k, PTX_MOV, 0, a)
/* The 32-bit a of another lane: up, of lane - delta; down, lane + delta; bfly, lane ^ mask; idx, that lane.
   Where there is none, the lane's own a. For the whole warp clamp is 0 (up) or 31 (others) and members, the
   mask of the lanes that take part, ptx_u32(0xffffffff). */
#define ptx_shfl_up(k, a, delta, clamp, members) ptx_op4(k, PTX_SHFL_UP, 0, a, delta, clamp, members)
#define ptx_shfl_down(k, a, delta, clamp, members) ptx_op4(k, PTX_SHFL_DOWN, 0, a, delta, clamp, members)
#define ptx_shfl_bfly(k, a, mask, clamp, members) ptx_op4(k, PTX_SHFL_BFLY, 0, a, mask, clamp, members)
#define ptx_shfl_idx(k, a, lane, clamp, members) ptx_op4(k, PTX_SHFL_IDX, 0, a, lane, clamp, members)
#define ptx_bar_sync(k, barrier) ptx_op1(k, PTX_BAR_SYNC, 0, barrier) /* ptx_imm(0) ... ptx_imm(15) */
#define ptx_fence(k, order_and_scope) ptx_op0(k, PTX_FENCE, order_and_scope)
#define ptx_trap(k) ptx_op0(k, PTX_TRAP, 0)

#define ptx_add_cc(k, a, b) ptx_op2(k, PTX_ADD, PTX_CC, a, b) /* carry chains: add_cc, addc_cc ... addc */
#define ptx_addc_cc(k, a, b) ptx_op2(k, PTX_ADDC, PTX_CC, a, b)
#define ptx_addc(k, a, b) ptx_op2(k, PTX_ADDC, 0, a, b)
#define ptx_sub_cc(k, a, b) ptx_op2(k, PTX_SUB, PTX_CC, a, b)
#define ptx_subc(k, a, b) ptx_op2(k, PTX_SUBC, 0, a, b)
#define ptx_mad_hi(k, a, b, c) ptx_op3(k, PTX_MAD, PTX_HI, a, b, c)
#define ptx_dp4a(k, a, b, c) ptx_op3(k, PTX_DP4A, 0, a, b, c) /* c + four products of bytes, signed by type */
#define ptx_copysign(k, sign, a) ptx_op2(k, PTX_COPYSIGN, 0, sign, a)
#define ptx_testp(k, what, a) ptx_op1(k, PTX_TESTP, what, a) /* PTX_FINITE, PTX_NOTANUMBER ... */
#define ptx_bfind(k, a) ptx_op1(k, PTX_BFIND, 0, a)
#define ptx_shf_l(k, low, high, count) ptx_op3(k, PTX_SHF_L, PTX_WRAP, low, high, count)
#define ptx_shf_r(k, low, high, count) ptx_op3(k, PTX_SHF_R, PTX_WRAP, low, high, count)
#define ptx_ballot(k, p, members) ptx_op2(k, PTX_VOTE_BALLOT, 0, p, members)
#define ptx_activemask(k) ptx_op0(k, PTX_ACTIVEMASK, 0)
#define ptx_elect(k, members) ptx_op1(k, PTX_ELECT, 0, members) /* a predicate, true in one lane */
#define ptx_bar_warp_sync(k, members) ptx_op1(k, PTX_BAR_WARP_SYNC, 0, members)
#define ptx_nanosleep(k, ns) ptx_op1(k, PTX_NANOSLEEP, 0, ns)
/* Asynchronous copies. cp_async: 4, 8 or 16 bytes a thread, in groups; bulk loads signal an mbarrier. */
#define ptx_cp_async(k, to, from, bytes) ptx_op3(k, PTX_CP_ASYNC_CA, 0, to, from, bytes)
#define ptx_cp_async_16(k, to, from) ptx_op3(k, PTX_CP_ASYNC_CG, 0, to, from, ptx_imm(16))
/* The same, but only the first `valid` bytes are read; zeros are written for the rest. */
#define ptx_cp_async_16_zfill(k, to, from, valid) ptx_op4(k, PTX_CP_ASYNC_CG, 0, to, from, ptx_imm(16), valid)
#define ptx_cp_async_commit(k) ptx_op0(k, PTX_CP_ASYNC_COMMIT_GROUP, 0)
#define ptx_cp_async_wait(k, groups_left) ptx_op1(k, PTX_CP_ASYNC_WAIT_GROUP, 0, ptx_imm(groups_left))
#define ptx_cp_async_wait_all(k) ptx_op0(k, PTX_CP_ASYNC_WAIT_ALL, 0)
#define ptx_bulk_load(k, to, from, bytes, mbarrier)                                                          \
    ptx_op4(k, PTX_BULK_G2S, 0, to, from, bytes, mbarrier)
#define ptx_bulk_store(k, to, from, bytes) ptx_op3(k, PTX_BULK_S2G, 0, to, from, bytes)
/* Bulk copies of a box of a matrix, which the tensor map at generic address `map` describes. x, y: the
   coordinates of the box's first element. */
#define ptx_tensor_load_2d(k, to, map, x, y, mbarrier) ptx_op5(k, PTX_TENSOR_G2S, 0, to, map, x, y, mbarrier)
#define ptx_tensor_store_2d(k, map, x, y, from) ptx_op4(k, PTX_TENSOR_S2G, 0, map, x, y, from)
#define ptx_mbarrier_init(k, mbarrier, count) ptx_op2(k, PTX_MBARRIER_INIT, 0, mbarrier, count)
#define ptx_mbarrier_inval(k, mbarrier) ptx_op1(k, PTX_MBARRIER_INVAL, 0, mbarrier)
#define ptx_mbarrier_arrive(k, mbarrier) ptx_op1(k, PTX_MBARRIER_ARRIVE, 0, mbarrier)
#define ptx_mbarrier_arrive_expect(k, mbarrier, bytes)                                                       \
    ptx_op2(k, PTX_MBARRIER_ARRIVE_EXPECT_TX, 0, mbarrier, bytes)
#define ptx_mbarrier_test_wait(k, mbarrier, state) ptx_op2(k, PTX_MBARRIER_TEST_WAIT, 0, mbarrier, state)
#define ptx_mbarrier_try_wait(k, mbarrier, parity)                                                           \
    ptx_op2(k, PTX_MBARRIER_TRY_WAIT_PARITY, 0, mbarrier, parity)
/* Waits, by a loop of try_wait, until the phase of that parity (0 or 1) has completed. A new mbarrier is in
   phase 0: a wait for parity 0 waits for its first completion, one for parity 1 returns at once. */
#define ptx_mbarrier_wait(k, mbarrier, parity) ptx_mbarrier_wait_((k), PTX__AT, (mbarrier), (parity))
PTXGEN_API void ptx_mbarrier_wait_(ptx_kernel *k, const char *site, ptx_val mbarrier, ptx_val parity);
/* A position in a pipeline's ring of stages: the current stage, and the parity of the phase that its
   mbarriers complete in this round. A consumer waits for `parity` on the stage's "full" mbarrier, a producer
   for the other parity on its "empty" one. */
typedef struct ptx_ring {
    ptx_var stage, parity; /* of type u32, both 0 at first */
    uint32_t stages;
} ptx_ring;
#define ptx_ring_new(k, stages) ptx_ring_new_((k), PTX__AT, (stages))
#define ptx_ring_next(k, ring) ptx_ring_next_((k), PTX__AT, (ring)) /* to the next stage or round */
PTXGEN_API ptx_ring ptx_ring_new_(ptx_kernel *k, const char *site, uint32_t stages);
PTXGEN_API void ptx_ring_next_(ptx_kernel *k, const char *site, ptx_ring ring);
#define ptx_mapa(k, address, rank) ptx_op2(k, PTX_MAPA, 0, address, rank) /* in the block of that rank */
#define ptx_cluster_arrive(k) ptx_op0(k, PTX_BARRIER_CLUSTER_ARRIVE, 0)
#define ptx_cluster_wait(k) ptx_op0(k, PTX_BARRIER_CLUSTER_WAIT, 0)
/* Loads n (1, 2 or 4) 8x8 matrices of 16-bit elements, a register each. row: the address of a lane's row. */
#define ptx_ldmatrix(k, n, row, out) ptx_ldmatrix_((k), PTX__AT, PTX_LDMATRIX, (n), (row), (out))
#define ptx_ldmatrix_trans(k, n, row, out) ptx_ldmatrix_((k), PTX__AT, PTX_LDMATRIX_TRANS, (n), (row), (out))
PTXGEN_API void ptx_ldmatrix_(ptx_kernel *k, const char *site, ptx_op_id op, uint32_t n, ptx_val row,
                              ptx_val *out);

/* Converts a to type. Float to integer truncates, as in C; else rounds to nearest even (tf32: ties away). */
#define ptx_cvt(k, type, a) ptx_cvt_((k), PTX__AT, 0, (type), (a))
#define ptx_cvt_with(k, mods, type, a) ptx_cvt_((k), PTX__AT, (mods), (type), (a))
PTXGEN_API ptx_val ptx_cvt_(ptx_kernel *k, const char *site, ptx_mods mods, ptx_type type, ptx_val a);
/* Two f32 to PTX_F16X2 or PTX_BF16X2 (sm_80). */
#define ptx_cvt_pair(k, type, high, low) ptx_cvt_pair_((k), PTX__AT, 0, (type), (high), (low))
PTXGEN_API ptx_val ptx_cvt_pair_(ptx_kernel *k, const char *site, ptx_mods mods, ptx_type type, ptx_val high,
                                 ptx_val low);

/* Memory. ld reads a value of that type; one of 8 bits is extended to 32. st takes what ld returns. The vec
   forms move 2 or 4 elements in one access, which must be aligned to its whole size. ld_if and st_if access
   memory only where p is true; elsewhere the result of ld_if is `otherwise`. */
#define ptx_ld(k, type, mem) ptx_ld_((k), PTX__AT, (type), (mem))
#define ptx_ld_if(k, p, type, mem, otherwise) ptx_ld_if_((k), PTX__AT, (p), (type), (mem), (otherwise))
#define ptx_ld_vec(k, type, n, mem, out) ptx_ld_vec_((k), PTX__AT, (type), (n), (mem), (out))
#define ptx_ld_vec_if(k, p, type, n, mem, otherwise, out)                                                    \
    ptx_ld_vec_if_((k), PTX__AT, (p), (type), (n), (mem), (otherwise), (out))
#define ptx_st(k, type, mem, value) ptx_st_((k), PTX__AT, (type), (mem), (value))
#define ptx_st_if(k, p, type, mem, value) ptx_st_if_((k), PTX__AT, (p), (type), (mem), (value))
#define ptx_st_vec(k, type, n, mem, values) ptx_st_vec_((k), PTX__AT, (type), (n), (mem), (values))
PTXGEN_API ptx_val ptx_ld_(ptx_kernel *k, const char *site, ptx_type type, ptx_mem mem);
PTXGEN_API ptx_val ptx_ld_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, ptx_mem mem,
                              ptx_val otherwise);
PTXGEN_API void ptx_ld_vec_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_mem mem,
                            ptx_val *out);
PTXGEN_API void ptx_ld_vec_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, uint32_t n,
                               ptx_mem mem, ptx_val otherwise, ptx_val *out);
PTXGEN_API void ptx_st_(ptx_kernel *k, const char *site, ptx_type type, ptx_mem mem, ptx_val value);
PTXGEN_API void ptx_st_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, ptx_mem mem,
                           ptx_val value);
PTXGEN_API void ptx_st_vec_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_mem mem,
                            const ptx_val *values);
/* what: PTX_ATOM_ADD ..., with memory order and scope if wanted. atom returns the old value, red nothing. */
#define ptx_atom(k, what, mem, value) ptx_atom_((k), PTX__AT, (what), (mem), (value))
#define ptx_atom_cas(k, mem, compare, value) ptx_atom_cas_((k), PTX__AT, (mem), (compare), (value))
#define ptx_red(k, what, mem, value) ptx_red_((k), PTX__AT, (what), (mem), (value))
PTXGEN_API ptx_val ptx_atom_(ptx_kernel *k, const char *site, ptx_mods what, ptx_mem mem, ptx_val value);
PTXGEN_API ptx_val ptx_atom_cas_(ptx_kernel *k, const char *site, ptx_mem mem, ptx_val compare,
                                 ptx_val value);
PTXGEN_API void ptx_red_(ptx_kernel *k, const char *site, ptx_mods what, ptx_mem mem, ptx_val value);

/* cvta makes a generic address of one in a state space, or of a parameter block; cvta_to does the reverse. */
#define ptx_cvta(k, address) ptx_cvta_((k), PTX__AT, (address))
#define ptx_cvta_to(k, space, address) ptx_cvta_to_((k), PTX__AT, (space), (address))
PTXGEN_API ptx_val ptx_cvta_(ptx_kernel *k, const char *site, ptx_val address);
PTXGEN_API ptx_val ptx_cvta_to_(ptx_kernel *k, const char *site, ptx_space space, ptx_val address);

/* Textures. texture: the 64-bit object of ptxcu_texture_create, a parameter of type PTX_U64. out: four
   results of type PTX_F32, PTX_U32 or PTX_S32, as the object gives; channels that it lacks are 0. at: the n
   operands of the instruction after the texture; those that only pad three to four may all be left out.
     PTX_TEX_1D, _2D, _3D   x, y, z: f32, in texels (the centre of the first is 0.5) or normalised to 0 ... 1,
                            as the object says; or 32-bit integers, a texel's index: not filtered, 0 outside
     PTX_TEX_A1D, _A2D      a layer, u32 (beyond the last: the last), then x, y
     PTX_TEX_CUBE, _ACUBE   the direction x, y, z, f32, in which the texel lies; ACUBE: first the layer
     PTX_TEX_LEVEL_2D ...   the same in f32, then a level of detail: 0 is the largest level, 1 the next
     PTX_TEX_GRAD_2D ...    the same in f32, then the coordinates' derivatives along the image's two axes
     PTX_TLD4_R_2D ...      (R, G, B, A; 2D, A2D, CUBE, ACUBE) that component of the four texels that linear
                            filtering blends, in the order (x0, y1), (x1, y1), (x1, y0), (x0, y0)
   Sizes in texels: ptx_op1(k, PTX_TXQ_WIDTH, 0, texture) and similar. */
#define ptx_tex(k, op, type, texture, n, at, out)                                                            \
    ptx_tex_((k), PTX__AT, (op), (type), (texture), (n), (at), (out))
PTXGEN_API void ptx_tex_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_type type, ptx_val texture,
                         uint32_t n, const ptx_val *at, ptx_val *out);
/* The most common ones, with the coordinates as arguments. */
#define ptx_tex_1d(k, type, texture, x, out)                                                                 \
    PTX__TEX(k, PTX_TEX_1D, type, texture, 1, x, ptx_imm(0), ptx_imm(0), out)
#define ptx_tex_2d(k, type, texture, x, y, out)                                                              \
    PTX__TEX(k, PTX_TEX_2D, type, texture, 2, x, y, ptx_imm(0), out)
#define ptx_tex_3d(k, type, texture, x, y, z, out) PTX__TEX(k, PTX_TEX_3D, type, texture, 3, x, y, z, out)
#define ptx_tex_2d_layered(k, type, texture, layer, x, y, out)                                               \
    PTX__TEX(k, PTX_TEX_A2D, type, texture, 3, layer, x, y, out)
#define ptx_tex_2d_lod(k, type, texture, x, y, lod, out)                                                     \
    PTX__TEX(k, PTX_TEX_LEVEL_2D, type, texture, 3, x, y, lod, out)
#define ptx_tex_cube(k, type, texture, x, y, z, out)                                                         \
    PTX__TEX(k, PTX_TEX_CUBE, type, texture, 3, x, y, z, out)
#define PTX__TEX(k, op, type, texture, n, a, b, c, out)                                                      \
    ptx_tex_at_((k), PTX__AT, (op), (type), (texture), (n), (a), (b), (c), (out))
PTXGEN_API void ptx_tex_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_type type, ptx_val texture,
                            uint32_t n, ptx_val a, ptx_val b, ptx_val c, ptx_val *out);
/* Surfaces. surface: the 64-bit object of ptxcu_surface_create. PTX_SULD_1D, _2D, _3D, _A1D, _A2D load n
   elements, 1, 2 or 4 of at most 16 bytes in all; PTX_SUST_1D ... store them. Nothing is converted; type
   gives the size, 1 to 8 bytes (a float type takes floats or bits); one byte is loaded as a u32. at, all u32:
   the layer (A1D, A2D), x in bytes, a multiple of the access's size, y and z in texels. outside, for an
   access out of bounds: 0 and PTX_SURFACE_TRAP end the kernel, PTX_SURFACE_ZERO loads 0 and stores nothing,
   PTX_CLAMP takes the nearest place. PTX_SURED_ADD_1D ... (ADD, MIN, MAX, AND, OR; 1D, 2D, 3D) combine one
   element with the old one. */
#define ptx_surface_load(k, op, outside, type, n, surface, at, out)                                          \
    ptx_surface_load_((k), PTX__AT, (op), (outside), (type), (n), (surface), (at), (out))
#define ptx_surface_store(k, op, outside, type, n, surface, at, values)                                      \
    ptx_surface_store_((k), PTX__AT, (op), (outside), (type), (n), (surface), (at), (values))
PTXGEN_API void ptx_surface_load_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                  ptx_type type, uint32_t n, ptx_val surface, const ptx_val *at,
                                  ptx_val *out);
PTXGEN_API void ptx_surface_store_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                   ptx_type type, uint32_t n, ptx_val surface, const ptx_val *at,
                                   const ptx_val *values);
/* Loads or stores one element of a surface of 1, 2 or 3 dimensions. */
#define ptx_surface_load_1d(k, outside, type, surface, x)                                                    \
    PTX__SULD(k, PTX_SULD_1D, outside, type, surface, x, ptx_imm(0), ptx_imm(0))
#define ptx_surface_load_2d(k, outside, type, surface, x, y)                                                 \
    PTX__SULD(k, PTX_SULD_2D, outside, type, surface, x, y, ptx_imm(0))
#define ptx_surface_load_3d(k, outside, type, surface, x, y, z)                                              \
    PTX__SULD(k, PTX_SULD_3D, outside, type, surface, x, y, z)
#define ptx_surface_store_1d(k, outside, type, surface, x, value)                                            \
    PTX__SUST(k, PTX_SUST_1D, outside, type, surface, x, ptx_imm(0), ptx_imm(0), value)
#define ptx_surface_store_2d(k, outside, type, surface, x, y, value)                                         \
    PTX__SUST(k, PTX_SUST_2D, outside, type, surface, x, y, ptx_imm(0), value)
#define ptx_surface_store_3d(k, outside, type, surface, x, y, z, value)                                      \
    PTX__SUST(k, PTX_SUST_3D, outside, type, surface, x, y, z, value)
#define PTX__SULD(k, op, outside, type, surface, x, y, z)                                                    \
    ptx_surface_load_at_((k), PTX__AT, (op), (outside), (type), (surface), (x), (y), (z))
#define PTX__SUST(k, op, outside, type, surface, x, y, z, value)                                             \
    ptx_surface_store_at_((k), PTX__AT, (op), (outside), (type), (surface), (x), (y), (z), (value))
PTXGEN_API ptx_val ptx_surface_load_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                        ptx_type type, ptx_val surface, ptx_val x, ptx_val y, ptx_val z);
PTXGEN_API void ptx_surface_store_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                      ptx_type type, ptx_val surface, ptx_val x, ptx_val y, ptx_val z,
                                      ptx_val value);

/* Tensor cores, d = a b + c: ptx_mma(k, PTX_MMA_M16N8K16_F32, PTX_F16, PTX_F16, d, a, b, c). a_type, b_type:
   of the elements; _F32: the type of c and d. The fragments are arrays of the lengths that ptx_mma_shape
   gives; the PTX manual says which lane holds which elements ("Matrix Fragments for mma.m16n8k16"). From
   16-bit matrices in shared memory, ptx_ldmatrix loads fragments of a[m][k] and b[n][k], ptx_ldmatrix_trans
   those of b[k][n]. extra: the n operands after c of sparse and block-scaled products. */
#define ptx_mma(k, op, a_type, b_type, d, a, b, c)                                                           \
    ptx_mma_((k), PTX__AT, (op), 0, (a_type), (b_type), (d), (a), (b), (c), 0, NULL)
#define ptx_mma_with(k, op, mods, a_type, b_type, d, a, b, c, n, extra)                                      \
    ptx_mma_((k), PTX__AT, (op), (mods), (a_type), (b_type), (d), (a), (b), (c), (n), (extra))
PTXGEN_API void ptx_mma_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type a_type,
                         ptx_type b_type, ptx_val *d, const ptx_val *a, const ptx_val *b, const ptx_val *c,
                         uint32_t n, const ptx_val *extra);
/* Sets counts to the numbers of registers of d, a, b and c. Returns 0 if there is no such form. */
PTXGEN_API int ptx_mma_shape(ptx_op_id op, ptx_type a_type, uint32_t counts[4]);
/* A product of a warpgroup, added to d, n accumulators of 32 bits. operands: the sources in the table's
   order. Execute PTX_WGMMA_COMMIT_GROUP and PTX_WGMMA_WAIT_GROUP before d is read. */
#define ptx_wgmma(k, op, mods, a_type, b_type, n, d, operand_count, operands)                                \
    ptx_wgmma_((k), PTX__AT, (op), (mods), (a_type), (b_type), (n), (d), (operand_count), (operands))
PTXGEN_API void ptx_wgmma_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type a_type,
                           ptx_type b_type, uint32_t n, const ptx_var *d, uint32_t operand_count,
                           const ptx_val *operands);
/* The usual form: f32 accumulators; a, b: the descriptors of two matrices in shared memory, both K-major (B
   has 2 n rows). add: a predicate; if it is false, d is the product alone. */
#define ptx_wgmma_f32(k, a_type, b_type, n, d, a, b, add)                                                    \
    ptx_wgmma_f32_((k), PTX__AT, (a_type), (b_type), (n), (d), (a), (b), (add))
PTXGEN_API void ptx_wgmma_f32_(ptx_kernel *k, const char *site, ptx_type a_type, ptx_type b_type, uint32_t n,
                               const ptx_var *d, ptx_val a, ptx_val b, ptx_val add);
/* The descriptor of a matrix at an address in shared memory. leading, stride: the byte offsets between its
   8-row core matrices along the leading and the other dimension, multiples of 16. swizzle: 0, 32, 64 or 128
   bytes. For tcgen05, also set bit 46 of the result. */
#define ptx_wgmma_descriptor(k, address, leading, stride, swizzle)                                           \
    ptx_wgmma_descriptor_((k), PTX__AT, (address), (leading), (stride), (swizzle))
PTXGEN_API ptx_val ptx_wgmma_descriptor_(ptx_kernel *k, const char *site, ptx_val address, uint32_t leading,
                                         uint32_t stride, uint32_t swizzle);

/* address + index * bytes. index: a 32-bit integer, sign or zero extended by its type, or one of the
   address's width. */
#define ptx_ptr_add(k, address, index, bytes) ptx_ptr_add_((k), PTX__AT, (address), (index), (bytes))
PTXGEN_API ptx_val ptx_ptr_add_(ptx_kernel *k, const char *site, ptx_val address, ptx_val index,
                                uint32_t bytes);
/* Element `index` of an array of that type, p[index]: its memory operand, a load, a store. */
#define ptx_elem(k, type, p, index) ptx_elem_((k), PTX__AT, (type), (p), (index))
#define ptx_ld_elem(k, type, p, index) ptx_ld(k, type, ptx_elem(k, type, p, index))
#define ptx_st_elem(k, type, p, index, value) ptx_st(k, type, ptx_elem(k, type, p, index), value)
PTXGEN_API ptx_mem ptx_elem_(ptx_kernel *k, const char *site, ptx_type type, ptx_val p, ptx_val index);
/* Field `member` of the C struct at p: its address, a load, a store. `type` must have the field's size. In an
   array of structs, p is ptx_ptr_add(k, array, i, sizeof(type_name)). */
#define ptx_field(p, type_name, member) ptx_off((p), PTX__CAST(int64_t, offsetof(type_name, member)))
#define ptx_ld_field(k, type, p, type_name, member)                                                          \
    ptx_ld(k, type,                                                                                          \
           ptx_field_((k), PTX__AT, (type), ptx_field(p, type_name, member), PTX__SIZE(type_name, member)))
#define ptx_st_field(k, type, p, type_name, member, value)                                                   \
    ptx_st(k, type,                                                                                          \
           ptx_field_((k), PTX__AT, (type), ptx_field(p, type_name, member), PTX__SIZE(type_name, member)),  \
           value)
#define PTX__SIZE(type_name, member) sizeof(PTX__CAST(type_name *, NULL)->member)
PTXGEN_API ptx_mem ptx_field_(ptx_kernel *k, const char *site, ptx_type type, ptx_val field, size_t bytes);

/* Packs n parts in a register, and back: 2 x 16 in 32, 2 x 32 or 4 x 16 in 64 bits. parts[0] is lowest. */
#define ptx_pack(k, type, n, parts) ptx_pack_((k), PTX__AT, (type), (n), (parts))
#define ptx_unpack(k, type, n, whole, out) ptx_unpack_((k), PTX__AT, (type), (n), (whole), (out))
PTXGEN_API ptx_val ptx_pack_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n,
                             const ptx_val *parts);
PTXGEN_API void ptx_unpack_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_val whole,
                            ptx_val *out);

/* A special register: PTX_TID_X, PTX_WARPID, PTX_LANEMASK_LT, PTX_CLUSTERID_X ... */
#define ptx_sreg(k, which) ptx_sreg_((k), PTX__AT, (which))
PTXGEN_API ptx_val ptx_sreg_(ptx_kernel *k, const char *site, ptx_special which);
#define ptx_tid_x(k) ptx_sreg(k, PTX_TID_X)
#define ptx_tid_y(k) ptx_sreg(k, PTX_TID_Y)
#define ptx_tid_z(k) ptx_sreg(k, PTX_TID_Z)
#define ptx_ntid_x(k) ptx_sreg(k, PTX_NTID_X)
#define ptx_ntid_y(k) ptx_sreg(k, PTX_NTID_Y)
#define ptx_ntid_z(k) ptx_sreg(k, PTX_NTID_Z)
#define ptx_ctaid_x(k) ptx_sreg(k, PTX_CTAID_X)
#define ptx_ctaid_y(k) ptx_sreg(k, PTX_CTAID_Y)
#define ptx_ctaid_z(k) ptx_sreg(k, PTX_CTAID_Z)
#define ptx_nctaid_x(k) ptx_sreg(k, PTX_NCTAID_X)
#define ptx_nctaid_y(k) ptx_sreg(k, PTX_NCTAID_Y)
#define ptx_nctaid_z(k) ptx_sreg(k, PTX_NCTAID_Z)
#define ptx_laneid(k) ptx_sreg(k, PTX_LANEID)
/* The thread's index in the grid along x, y or z, ctaid * ntid + tid, as u32. */
#define ptx_global_x(k) ptx_global_((k), PTX__AT, 0)
#define ptx_global_y(k) ptx_global_((k), PTX__AT, 1)
#define ptx_global_z(k) ptx_global_((k), PTX__AT, 2)
PTXGEN_API ptx_val ptx_global_(ptx_kernel *k, const char *site, int dimension);

/* Asserts that v is the same for all threads of the block (of a warp; of a warpgroup, four warps from a
   multiple of 128 threads on; of the cluster), and returns v. For what the verifier cannot know, such as
   loads and shuffles. Emits nothing. */
#define ptx_uniform(k, v) ptx_uniform_((k), PTX__AT, (v), 0)
#define ptx_warp_uniform(k, v) ptx_uniform_((k), PTX__AT, (v), 1)
#define ptx_warpgroup_uniform(k, v) ptx_uniform_((k), PTX__AT, (v), 2)
#define ptx_cluster_uniform(k, v) ptx_uniform_((k), PTX__AT, (v), 3)
PTXGEN_API ptx_val ptx_uniform_(ptx_kernel *k, const char *site, ptx_val v, int where);

/* -- variables -- */

#define ptx_var_new(k, init) ptx_var_new_((k), PTX__AT, (init))
#define ptx_get(k, var) ptx_get_((k), PTX__AT, (var))
#define ptx_set(k, var, value) ptx_set_((k), PTX__AT, (var), (value))
PTXGEN_API ptx_var ptx_var_new_(ptx_kernel *k, const char *site,
                                ptx_val init); /* a typed immediate, or a register */
PTXGEN_API ptx_val ptx_get_(ptx_kernel *k, const char *site, ptx_var var);
PTXGEN_API void ptx_set_(ptx_kernel *k, const char *site, ptx_var var, ptx_val value);

/* -- control flow -- */

#define ptx_if(k, p) ptx_if_((k), PTX__AT, (p))
#define ptx_else(k) ptx_else_((k), PTX__AT)
#define ptx_end(k) ptx_end_((k), PTX__AT)
#define ptx_loop(k) ptx_loop_((k), PTX__AT)
/* Leaves the innermost loop unless p is true; anywhere in its body. */
#define ptx_while(k, p) ptx_while_((k), PTX__AT, (p))
/* for (i = first; i < limit; i += step): returns i, which keeps its value within an iteration. The comparison
   is signed or unsigned by the type of i; limit + step - 1 must not overflow that type. */
#define ptx_for(k, first, limit, step) ptx_for_((k), PTX__AT, (first), (limit), (step))
#define ptx_break(k) ptx_jump_((k), PTX__AT, 0)
#define ptx_continue(k) ptx_jump_((k), PTX__AT, 1)
PTXGEN_API void ptx_if_(ptx_kernel *k, const char *site, ptx_val p);
PTXGEN_API void ptx_else_(ptx_kernel *k, const char *site);
PTXGEN_API void ptx_end_(ptx_kernel *k, const char *site);
PTXGEN_API void ptx_loop_(ptx_kernel *k, const char *site);
PTXGEN_API void ptx_while_(ptx_kernel *k, const char *site, ptx_val p);
PTXGEN_API ptx_val ptx_for_(ptx_kernel *k, const char *site, ptx_val first, ptx_val limit, ptx_val step);
PTXGEN_API void ptx_jump_(ptx_kernel *k, const char *site, int next_round);

/* switch (index): ptx_case(k, i), i below n, starts the code for index i, ptx_default(k) that for all indices
   without a case. No case falls through. ptx_end closes the switch. */
#define ptx_switch(k, index, n) ptx_switch_((k), PTX__AT, (index), (n))
#define ptx_case(k, i) ptx_case_((k), PTX__AT, (i))
#define ptx_default(k) ptx_case_((k), PTX__AT, UINT32_MAX)
/* brx.idx: branches to labels[index], or to `otherwise` if index is n or more. */
#define ptx_brx(k, index, n, labels, otherwise)                                                              \
    ptx_brx_((k), PTX__AT, (index), (n), (labels), (otherwise))
PTXGEN_API void ptx_switch_(ptx_kernel *k, const char *site, ptx_val index, uint32_t n);
PTXGEN_API void ptx_case_(ptx_kernel *k, const char *site, uint32_t i);

#define ptx_label_new(k) ptx_label_new_((k), PTX__AT)
#define ptx_place(k, label) ptx_place_((k), PTX__AT, (label))
#define ptx_bra(k, label) ptx_bra_((k), PTX__AT, (label))
PTXGEN_API ptx_label ptx_label_new_(ptx_kernel *k, const char *site);
PTXGEN_API void ptx_place_(ptx_kernel *k, const char *site, ptx_label label);
PTXGEN_API void ptx_bra_(ptx_kernel *k, const char *site, ptx_label label);
PTXGEN_API void ptx_brx_(ptx_kernel *k, const char *site, ptx_val index, uint32_t n, const ptx_label *labels,
                         ptx_label otherwise);
#define ptx_ret(k) ptx_op0(k, PTX_RET, 0)
#define ptx_exit(k) ptx_op0(k, PTX_EXIT, 0)

/* Predicates the next instruction, which executes only where p is true: a store, reduction, branch, ret,
   ptx_set ... Not one with a new value, undefined where p is false: use selp, ld_if or ptx_set for that.
   ptx_st_elem computes its address first: ptx_st_if(k, p, type, ptx_elem(...), value) does that outside. */
#define ptx_guard(k, p) ptx_guard_((k), PTX__AT, (p))
PTXGEN_API void ptx_guard_(ptx_kernel *k, const char *site, ptx_val p);

/* A comment line, printed if the module's description asks for comments. Characters but ASCII become '?'. */
#define ptx_comment(k, text) ptx_comment_((k), PTX__AT, (text))
PTXGEN_API void ptx_comment_(ptx_kernel *k, const char *site, const char *text);

#ifndef PTXGEN_NO_MATH
/* -- mathematics: [MATH] --

   Functions of C and of shading languages. The operands of a call are all f32 or all f64, registers or typed
   immediates. A function with a C name has C's meaning, with C's NaN, infinities, signed zeros and subnormal
   numbers; a hardware approximation ends in _approx or has the instruction's own name (ptx_sin_approx above,
   ptx_ex2). The comment after a function gives its errors in f32 and f64: the largest |result - exact| in
   units of the last place (ulp) of the exact value, over all operands, where the approximate instructions
   inside it err by any amount within their documented bounds. `make proof-math` tests the f32 functions of
   one operand with all operands and the rest with random ones; docs/mathematics.md has its output. The code
   is emitted inline: on the usual path 1 to 52 machine instructions in f32, up to 129 in f64
   (docs/mathematics.md). The only memory is a table of 160 bytes for sin, cos and tan of f64 from 2^30 on. */

/* Exact. round: halves away from zero; fract: x - floor(x), below 1; sign: -1 or 1, x itself if 0 or NaN. */
#define ptx_floor(k, x) ptx_math1(k, "floor", x)
#define ptx_ceil(k, x) ptx_math1(k, "ceil", x)
#define ptx_round(k, x) ptx_math1(k, "round", x)
#define ptx_trunc(k, x) ptx_math1(k, "trunc", x)
#define ptx_fract(k, x) ptx_math1(k, "fract", x)
#define ptx_sign(k, x) ptx_math1(k, "sign", x)
#define ptx_clamp(k, x, low, high) ptx_math3(k, "clamp", x, low, high)
#define ptx_step(k, edge, x) ptx_math2(k, "step", edge, x) /* x < edge ? 0 : 1 */
/* x - y floor(x / y). The quotient is rounded before floor, so near multiples of y the result may be y, or
   below 0 by a rounding error. */
#define ptx_mod(k, x, y) ptx_math2(k, "mod", x, y)
#define ptx_mix(k, x, y, t) ptx_math3(k, "mix", x, y, t) /* x (1 - t) + y t, exact at t = 0 and 1 */
/* t t (3 - 2 t), where t = (x - low) / (high - low) is clamped to 0 ... 1. */
#define ptx_smoothstep(k, low, high, x) ptx_math3(k, "smoothstep", low, high, x)

#define ptx_sin(k, x) ptx_math1(k, "sin", x)           /* 1.6, 1.6; any x, however large */
#define ptx_cos(k, x) ptx_math1(k, "cos", x)           /* 1.7, 1.7 */
#define ptx_tan(k, x) ptx_math1(k, "tan", x)           /* 2.0, 1.8 */
#define ptx_asin(k, x) ptx_math1(k, "asin", x)         /* 2.0, 1.7 */
#define ptx_acos(k, x) ptx_math1(k, "acos", x)         /* 1.2, 1.3 */
#define ptx_atan(k, x) ptx_math1(k, "atan", x)         /* 1.9, 1.6 */
#define ptx_sinh(k, x) ptx_math1(k, "sinh", x)         /* 1.7, 1.8 */
#define ptx_cosh(k, x) ptx_math1(k, "cosh", x)         /* 1.4, 1.4 */
#define ptx_tanh(k, x) ptx_math1(k, "tanh", x)         /* 1.9, 1.8 */
#define ptx_exp(k, x) ptx_math1(k, "exp", x)           /* 2.0, 1.0 */
#define ptx_exp2(k, x) ptx_math1(k, "exp2", x)         /* 2.0 (ex2.approx), 1.0 */
#define ptx_exp10(k, x) ptx_math1(k, "exp10", x)       /* 2.0, 1.1 */
#define ptx_expm1(k, x) ptx_math1(k, "expm1", x)       /* 1.6, 1.9 */
#define ptx_log(k, x) ptx_math1(k, "log", x)           /* 1.0, 0.6 */
#define ptx_log2(k, x) ptx_math1(k, "log2", x)         /* 1.8, 0.6 */
#define ptx_log10(k, x) ptx_math1(k, "log10", x)       /* 1.9, 0.6 */
#define ptx_log1p(k, x) ptx_math1(k, "log1p", x)       /* 1.4, 1.5 */
#define ptx_cbrt(k, x) ptx_math1(k, "cbrt", x)         /* 0.9, 0.8 */
#define ptx_erf(k, x) ptx_math1(k, "erf", x)           /* 1.8, 1.2 */
#define ptx_erfc(k, x) ptx_math1(k, "erfc", x)         /* 4.0, 1.7 */
#define ptx_tgamma(k, x) ptx_math1(k, "tgamma", x)     /* 4.0, 1.8; calls a function of the module */
#define ptx_lgamma(k, x) ptx_math1(k, "lgamma", x)     /* 4.0, 1.8; likewise; see below */
#define ptx_atan2(k, y, x) ptx_math2(k, "atan2", y, x) /* 1.8, 1.7 */
#define ptx_hypot(k, x, y) ptx_math2(k, "hypot", x, y) /* 1.2, 1.2 */
#define ptx_pow(k, x, y) ptx_math2(k, "pow", x, y)     /* 2.0, 1.6 */
/* lgamma has zeros between its poles: below -2 its error is in ulp of the largest of |lgamma(x)|, lgamma(-x)
   and 1. */
/* Stores both results, for little more than the cost of one. 1.7, 1.7. */
#define ptx_sincos(k, x, sine, cosine) ptx_sincos_((k), PTX__AT, (x), (sine), (cosine))

#define ptx_math1(k, name, x) ptx_math_((k), PTX__AT, (name), 1, (x), ptx_imm(0), ptx_imm(0))
#define ptx_math2(k, name, x, y) ptx_math_((k), PTX__AT, (name), 2, (x), (y), ptx_imm(0))
#define ptx_math3(k, name, x, y, z) ptx_math_((k), PTX__AT, (name), 3, (x), (y), (z))
/* Emits the function of that name, of the first n of x, y and z. */
PTXGEN_API ptx_val ptx_math_(ptx_kernel *k, const char *site, const char *name, uint32_t n, ptx_val x,
                             ptx_val y, ptx_val z);
PTXGEN_API void ptx_sincos_(ptx_kernel *k, const char *site, ptx_val x, ptx_val *sine, ptx_val *cosine);

/* Vectors: arrays of n values, 2 to 4, f32 or f64; matrices: n x n, row-major, n 3 or 4. out may be the array
   of an operand. length: sqrt.rn of the dot product, which must neither overflow nor underflow; normalize of
   f32: by rsqrt.approx, 3 ulp of the largest component; reflect: v - 2 (v . normal) normal, where `normal` is
   a unit vector; lerp: ptx_mix of each component. */
#define ptx_dot(k, n, a, b) ptx_dot_((k), PTX__AT, (n), (a), (b))
#define ptx_cross(k, a, b, out) ptx_cross_((k), PTX__AT, (a), (b), (out))
#define ptx_length(k, n, a) ptx_length_((k), PTX__AT, (n), (a))
#define ptx_normalize(k, n, a, out) ptx_normalize_((k), PTX__AT, (n), (a), (out))
#define ptx_reflect(k, n, v, normal, out) ptx_reflect_((k), PTX__AT, (n), (v), (normal), (out))
#define ptx_lerp(k, n, a, b, t, out) ptx_lerp_((k), PTX__AT, (n), (a), (b), (t), (out))
#define ptx_mat_vec(k, n, m, v, out) ptx_mat_mul_((k), PTX__AT, (n), 1, (m), (v), (out))
#define ptx_mat_mul(k, n, a, b, out) ptx_mat_mul_((k), PTX__AT, (n), (n), (a), (b), (out))
PTXGEN_API ptx_val ptx_dot_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b);
PTXGEN_API void ptx_cross_(ptx_kernel *k, const char *site, const ptx_val *a, const ptx_val *b, ptx_val *out);
PTXGEN_API ptx_val ptx_length_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a);
PTXGEN_API void ptx_normalize_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, ptx_val *out);
PTXGEN_API void ptx_reflect_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *v,
                             const ptx_val *normal, ptx_val *out);
PTXGEN_API void ptx_lerp_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b,
                          ptx_val t, ptx_val *out);
PTXGEN_API void ptx_mat_mul_(ptx_kernel *k, const char *site, uint32_t n, uint32_t columns, const ptx_val *a,
                             const ptx_val *b, ptx_val *out);

/* Random numbers. pcg: a hash of a u32 (O'Neill's PCG RXS-M-XS, 7 instructions). philox: Philox4x32-10
   (Salmon et al. 2011), 4 u32 of a counter of 4 and a key of 2. unit: 24 bits of a u32 as f32 in [0, 1). */
#define ptx_pcg(k, x) ptx_pcg_((k), PTX__AT, (x))
#define ptx_philox(k, counter, key, out) ptx_philox_((k), PTX__AT, (counter), (key), (out))
#define ptx_unit(k, x) ptx_unit_((k), PTX__AT, (x))
PTXGEN_API ptx_val ptx_pcg_(ptx_kernel *k, const char *site, ptx_val x);
PTXGEN_API void ptx_philox_(ptx_kernel *k, const char *site, const ptx_val *counter, const ptx_val *key,
                            ptx_val *out);
PTXGEN_API ptx_val ptx_unit_(ptx_kernel *k, const char *site, ptx_val x);

/* Noise at a point p of n coordinates, 2 or 3, f32, |p| below 2^23; seed: a u32. From -1 to 1, 0 on average,
   features of size 1. value: random values at integer points; gradient: random gradients there (Perlin 2002),
   both with quintic interpolation; simplex: gradients on triangles or tetrahedra (Perlin 2001, Gustavson
   2005). The same bits on every chip. Noise in 3 dimensions is a function of the module. */
#define ptx_value_noise(k, n, p, seed) ptx_noise_((k), PTX__AT, "value_noise", (n), (p), (seed))
#define ptx_gradient_noise(k, n, p, seed) ptx_noise_((k), PTX__AT, "gradient_noise", (n), (p), (seed))
#define ptx_simplex_noise(k, n, p, seed) ptx_noise_((k), PTX__AT, "simplex_noise", (n), (p), (seed))
PTXGEN_API ptx_val ptx_noise_(ptx_kernel *k, const char *site, const char *name, uint32_t n, const ptx_val *p,
                              ptx_val seed);

/* Colour: one channel, f32, from 0 to 1, by IEC 61966-2-1; relative error 2^-18 (8 bits need 2^-9). */
#define ptx_srgb_to_linear(k, c) ptx_math1(k, "srgb_to_linear", c)
#define ptx_linear_to_srgb(k, c) ptx_math1(k, "linear_to_srgb", c)
/* rgba8: four f32, clamped to 0 ... 1 (NaN: 0), to bytes of a u32, rounded to nearest, red lowest; and back.
   half: two f32 to f16 in the low and the high half of a b32; and back. */
#define ptx_pack_rgba8(k, rgba) ptx_pack_rgba8_((k), PTX__AT, (rgba))
#define ptx_unpack_rgba8(k, packed, rgba) ptx_unpack_rgba8_((k), PTX__AT, (packed), (rgba))
#define ptx_pack_half(k, low, high) ptx_pack_half_((k), PTX__AT, (low), (high))
#define ptx_unpack_half(k, packed, out) ptx_unpack_half_((k), PTX__AT, (packed), (out))
PTXGEN_API ptx_val ptx_pack_rgba8_(ptx_kernel *k, const char *site, const ptx_val *rgba);
PTXGEN_API void ptx_unpack_rgba8_(ptx_kernel *k, const char *site, ptx_val packed, ptx_val *rgba);
PTXGEN_API ptx_val ptx_pack_half_(ptx_kernel *k, const char *site, ptx_val low, ptx_val high);
PTXGEN_API void ptx_unpack_half_(ptx_kernel *k, const char *site, ptx_val packed, ptx_val *out);
#endif /* PTXGEN_NO_MATH */

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_H */

#if defined(PTXGEN_IMPLEMENTATION) && !defined(PTXGEN__IMPLEMENTED)
#define PTXGEN__IMPLEMENTED

/* The tables pass __VA_ARGS__ on to other macros, which MSVC's older preprocessor takes as one argument. */
#if defined(_MSC_VER) && !defined(__clang__) && (!defined(_MSVC_TRADITIONAL) || _MSVC_TRADITIONAL)
#error "compile this file with /Zc:preprocessor (Visual Studio 2019 16.6 or later)"
#endif

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

PTX__BEGIN_O1
#ifdef __cplusplus
extern "C" {
#endif

/* ---- [SUPPORT] ----------------------------------------------------------------------------------------- */

/* An operand, decoded from its handle by ptx__read_handle. */
typedef struct ptx__operand {
    uint64_t bits;  /* register word, or the immediate */
    uint32_t owner; /* the kernel's tag; 0 for an immediate */
    uint8_t kind;   /* PTX__REG ... */
    uint8_t type;   /* ptx_type */
    uint8_t space;  /* ptx_space, where the value is an address */
    uint8_t flags;  /* PTX__INVERTED, and log2 of a known alignment + 1 */
} ptx__operand;
enum {
    PTX__NOTHING,
    PTX__REG,
    PTX__PARAM_BLOCK, /* its address */
    PTX__IMM,
    PTX__IMM_FLOAT,
    PTX__REG_OFFSET,   /* register + offset, made by ptx_off: bits 32 to 63 are the offset */
    PTX__PARAM_OFFSET, /* parameter block + offset */
    PTX__OUT_OF_RANGE  /* an offset or a number that does not fit a handle: see PTX__WHY_LARGE_OFFSET */
};
#define PTX__INVERTED 0x80u   /* flags: the negation of that predicate */
#define PTX__ALIGN_MASK 0x0fu /* flags: log2 of the alignment that an address is known to have, + 1 */

/* A memory operand, decoded from a ptx_mem by ptx__read_memory. */
typedef struct ptx__access {
    ptx__operand base;
    int64_t offset;
    ptx_mods mods;
    uint32_t policy; /* the index of its register + 1, 0: none, or one of PTX__POLICY_* */
} ptx__access;

/* An operand as the kernel stores it: a 32-bit word with a tag in its top five bits. An immediate adds its
   low and its high half, a memory operand its base and its offset. */
enum {
    PTX__W_PRED = 1, /* registers: a class for each width, the low 27 bits are the index in the class */
    PTX__W_16,
    PTX__W_32,
    PTX__W_64,
    PTX__W_128,
    PTX__W_8, /* only for e2m1x2, two 4-bit floats */
    PTX__W_PRED_NOT,
    PTX__W_UNSIGNED,
    PTX__W_SIGNED,
    PTX__W_HEX16,
    PTX__W_F32,
    PTX__W_F64,
    PTX__W_PARAM, /* with SHARED and LOCAL: a symbol of this kernel */
    PTX__W_SHARED,
    PTX__W_SPECIAL,
    PTX__W_MEM,
    PTX__W_VECTOR, /* opens a group: its length in the low 16 bits, PTX__G_* above them */
    PTX__W_LOCAL,
    PTX__W_GLOBAL, /* a symbol of the module */
    PTX__W_TEXT    /* the text of a raw instruction: its offset in module.names */
};
#define PTX__REGISTER_CLASSES 7
#define PTX__WORD(tag, index) ((uint32_t)(tag) << 27 | (uint32_t)(index))
#define PTX__TAG(word) ((word) >> 27)
#define PTX__INDEX(word) ((word)&0x07ffffffu)
#define PTX__INDEX_MAX 0x07ffffffu
#define PTX__PREDICATE(word) PTX__WORD(PTX__W_PRED, PTX__INDEX(word)) /* also for a negated one */
/* Whether a word begins an integer immediate. */
#define PTX__IS_INTEGER(word) (PTX__TAG(word) - PTX__W_UNSIGNED <= PTX__W_HEX16 - PTX__W_UNSIGNED)
/* Whether an operand has three words: an immediate or a memory operand. */
#define PTX__LONG_TAGS (0x1fu << PTX__W_UNSIGNED | 1u << PTX__W_MEM)
#define PTX__IS_LONG(word) (PTX__LONG_TAGS >> PTX__TAG(word) & 1u)
/* How a W_VECTOR group is printed: {a, b}, a|b, [a, b], or the sink '_'. */
enum { PTX__G_BRACES, PTX__G_PIPE, PTX__G_BRACKETS, PTX__G_SINK };
#define PTX__GROUP(style, count) PTX__WORD(PTX__W_VECTOR, (uint32_t)(style) << 16 | (uint32_t)(count))

/* Short names are arrays inside their tables: a table without pointers needs no relocation. */
typedef struct ptx__type_fact {
    char name[8];
    uint8_t bits;
    char kind;
} ptx__type_fact;
#define PTX__ROW(type, name, bits, kind) {name, bits, kind},
#define PTX__GAP {"no type", 0, '-'}
static const ptx__type_fact ptx__types[64] = {
    {"none", 0, '-'}, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP,
    PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP, PTX_TYPES(PTX__ROW)
    PTX__GAP, PTX__GAP, PTX__GAP, PTX__GAP};
#undef PTX__ROW
#undef PTX__GAP

/* The facts of a type, from the six bits that a handle has for it: of "no type" where they are none. */
static const ptx__type_fact *ptx__fact(unsigned type) {
    return &ptx__types[type & 63u];
}
static int ptx__is_type(unsigned type) {
    return type == PTX_NONE || (type > PTX__NO_TYPE && type < PTX__TYPE_COUNT);
}

typedef struct ptx__row {
    const char *name, *sig;
    uint16_t op;
    uint8_t sm, version; /* sm: the first target, or a set of targets: PTX__ON_* */
    uint8_t types[3], src[2], allow[3], need[3], dflt[1]; /* indices of sets, see ptx__types_of */
} ptx__row;
#define PTX__SET(...) {__VA_ARGS__}
#define PTX__SETS(a, b, c, d, e, ...) PTX__SET a, PTX__SET b, PTX__SET c, PTX__SET d, PTX__SET e
#define PTX__NO_FACTS(id, name, sig, ver, sm, ...)                                                           \
    {name, sig, PTX_##id, sm, ver, PTX__SETS(__VA_ARGS__, (0), (0), (0), (0), 0)},
#define PTX__ROW(id, name, sig, ver, sm, facts, ...) PTX__NO_FACTS(id, name, sig, ver, sm, __VA_ARGS__)
static const ptx__row ptx__rows[] = {PTX_TABLE(PTX__ROW, PTX__NO_FACTS)};
#undef PTX__ROW
#define PTX__ROW(id, name, sig, ver, sm, facts, ...) facts,
#define PTX__NO_ROW(id, ...)
static const uint32_t ptx__op_facts[] = {PTX_TABLE(PTX__ROW, PTX__NO_ROW)}; /* of each instruction */
#undef PTX__ROW
#undef PTX__NO_ROW
#define PTX__ROW(type, name, bits, kind) PTX__T(type),
#define PTX__GROUP_ROW(name) PTX__##name,
static const uint64_t ptx__type_sets[] = {0, PTX_TYPES(PTX__ROW) PTX__TYPE_GROUPS(PTX__GROUP_ROW)};
#undef PTX__ROW
static const ptx_mods ptx__modifier_groups[] = {PTX__MODIFIER_GROUPS(PTX__GROUP_ROW)};
#undef PTX__GROUP_ROW
/* A set of modifiers, by its PTX__CM_* in a row: none, an arithmetic one, one of memory, or a group. */
PTX__NOINLINE static ptx_mods ptx__modifier_set(unsigned index) {
    if (index > PTX__CM_COL) return ptx__modifier_groups[index - PTX__CM_COL - 1];
    if (index > PTX__CM_COL_COL) return PTX__M(index - PTX__CM_COL_COL - 1);
    return index ? PTX__A(index - 1) : 0;
}
static uint64_t ptx__types_of(const ptx__row *r) {
    return ptx__type_sets[r->types[0]] | ptx__type_sets[r->types[1]] | ptx__type_sets[r->types[2]];
}
static uint64_t ptx__sources_of(const ptx__row *r) {
    return ptx__type_sets[r->src[0]] | ptx__type_sets[r->src[1]];
}
static ptx_mods ptx__needed(const ptx__row *r) {
    return ptx__modifier_set(r->need[0]) | ptx__modifier_set(r->need[1]) | ptx__modifier_set(r->need[2]);
}
static ptx_mods ptx__allowed(const ptx__row *r) { /* including the needed ones */
    return ptx__modifier_set(r->allow[0]) | ptx__modifier_set(r->allow[1]) | ptx__modifier_set(r->allow[2])
           | ptx__needed(r);
}
static ptx_mods ptx__default(const ptx__row *r) { return ptx__modifier_set(r->dflt[0]); }
#define PTX__ROW_COUNT (sizeof ptx__rows / sizeof ptx__rows[0])

/* The first row of an instruction, or where it would be: the rows are sorted by instruction. */
static const ptx__row *ptx__rows_of(unsigned op) {
    size_t low = 0, high = PTX__ROW_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ptx__rows[middle].op < op) low = middle + 1;
        else
            high = middle;
    }
    return ptx__rows + low;
}

/* What PTX__ARITH_MODIFIERS and PTX__MEMORY_MODIFIERS say of a modifier. */
typedef struct ptx__mod_fact {
    const char *text; /* NULL: there is no such modifier */
    uint8_t version, sm;
} ptx__mod_fact;
#define PTX__ROW(name, ...) PTX__MODIFIER_TEXT(__VA_ARGS__, 0)
#define PTX__MODIFIER_TEXT(text, ...) text "\0"
static const char ptx__modifier_texts[] = PTX__ARITH_MODIFIERS(PTX__ROW) PTX__MEMORY_MODIFIERS(PTX__ROW);
#undef PTX__ROW
#define PTX__ROW(name, ...) PTX__MODIFIER_NEEDS(__VA_ARGS__, 0, 0, 0)
#define PTX__MODIFIER_NEEDS(text, version, sm, ...) {version, sm},
static const uint8_t ptx__modifier_needs[][2] = {PTX__ARITH_MODIFIERS(PTX__ROW)
                                                     PTX__MEMORY_MODIFIERS(PTX__ROW)};
#undef PTX__ROW
/* Sets of targets, in the order of PTX__ON_*. */
static const char *const ptx__target_sets[] = {
#define PTX__ROW(name, targets) targets,
    PTX__TARGET_SETS(PTX__ROW)
#undef PTX__ROW
};
/* Limits of an integer operand, by the letter of its slot. An immediate must be low, low + step ... up to
   high; step 0: a power of two. immediate 1: a register is refused; otherwise its value is not checked.
   PTX__WIDTH stands for the bits of the instruction's type, PTX__BELOW_WIDTH for one less. */
#define PTX__BITS_OF 255 /* step: only bits that are set in `high` */
#define PTX__WIDTH (-2)
#define PTX__BELOW_WIDTH (-3)
typedef struct ptx__slot_limit {
    char letter;
    uint8_t immediate, step;
    int32_t low, high;
    const char *what;
} ptx__slot_limit;
static const ptx__slot_limit ptx__slot_limits[] = {
    {'e', 0, 1, 0, PTX__BELOW_WIDTH, "a count"},
    {'j', 0, 1, 0, PTX__WIDTH, "a count"},
    {'i', 1, 1, 0, 255, "an immediate of 0 to 255"},
    {'A', 1, 0, 4, 16, "an immediate of 4, 8 or 16"},
    {'B', 1, 16, 16, 16, "the immediate 16"},
    {'C', 0, 16, 16, 1048560, "a multiple of 16 below 2^20"},
    {'D', 1, 128, 128, 128, "the immediate 128"},
    {'E', 1, 8, 24, 256, "an immediate of 24 to 256, a multiple of 8"},
    {'F', 0, 1, 0, 15, "a barrier: a block has 0 to 15"},
    {'G', 0, 32, 32, 1024, "a number of threads: a multiple of 32, to 1024"},
    {'H', 1, 1, 0, 1, "an immediate of 0 or 1"},
    {'I', 0, 0, 32, 512, "a number of columns: 32, 64 ... 512"},
    {'J', 1, 1, 0, 2147483647, "an immediate from 0 on"},
    {'K', 1, 2, -1, 1, "an immediate of -1 or 1"},
    {'L', 0, 1, 0, 31, "a lane or a distance of 0 to 31"},
    {'M', 0, 1, 1, 1048575, "a count of 1 to 2^20 - 1"},
    {'N', 0, PTX__BITS_OF, 0, 0x1f1f, "a clamp, 31 for a whole warp, of bits of 0x1f1f"},
    {'O', 0, 1, 1, -1, "a member mask that is not 0"},
    {'P', 1, 1, 0, 15, "an immediate of 0 to 15"},
    {'Q', 1, 1, 1, 65535, "an immediate mask of 16 bits"},
    {'R', 1, 1, 0, 3, "an immediate of 0 to 3"},
    {'T', 0, 1, 0, 1048575, "a count of bytes or ns, to 2^20 - 1"},
    {'U', 0, 1, 0, 65535, "a selector of 0 to 65535"},
    {'V', 1, 1, 0, 4, "an immediate of 0 to 4"},
    {'W', 1, 1, 0, 2, "an immediate of 0 to 2"},
    {'X', 1, 0, 1, 1024, "an alignment: 1, 2 ... 1024"},
    {'Y', 1, 1, 0, 7, "an immediate of 0 to 7"},
    {'Z', 1, 1, 0, 0, "the immediate 0"}};
/* Limits of an address operand, by the letter of its slot: a bit for each space, and the alignment. */
typedef struct ptx__slot_address {
    char letter;
    uint8_t spaces, bytes;
    const char *what;
} ptx__slot_address;
#define PTX__IN(space) (1u << PTX_##space)
static const ptx__slot_address ptx__slot_addresses[] = {
    {'s', PTX__IN(SHARED), 1, "shared"},
    {'b', PTX__IN(SHARED), 8, "shared"},
    {'l', PTX__IN(SHARED), 16, "shared"},
    {'k', PTX__IN(SHARED) | PTX__IN(SHARED_CLUSTER), 1, "shared or shared::cluster"},
    {'r', PTX__IN(SHARED) | PTX__IN(SHARED_CLUSTER), 8, "shared or shared::cluster"},
    {'g', PTX__IN(GLOBAL), 1, "global"},
    {'o', PTX__IN(GENERIC) | PTX__IN(GLOBAL), 1, "generic or global"},
    {'n', PTX__IN(GENERIC) | PTX__IN(GLOBAL), 1, "generic or global"},
    {'a', PTX__IN(GENERIC), 1, "tensor memory"}};
#undef PTX__IN

/* At most one modifier of each of these. */
static const ptx_mods ptx__exclusive[] = {
    PTX__CMP,       PTX__BOOL,          PTX__PART, PTX__BORDER | PTX_WRAP,
    PTX__ROUND_ANY, PTX_SAT | PTX_RELU, PTX__TEST, PTX__CTA_GROUP,
    PTX__LAYOUTS};
static const ptx_mods ptx__exclusive_memory[] = {PTX__SEM,
                                                 PTX__SCOPE,
                                                 PTX__SPACE,
                                                 PTX__COP_LD | PTX__COP_ST,
                                                 PTX__L1,
                                                 PTX__L2_SIZE,
                                                 PTX__L2_PRIMARY,
                                                 PTX__L2_SECONDARY,
                                                 PTX__VEC | PTX__VEC32,
                                                 PTX__ATOM,
                                                 PTX_ACC_F32 | PTX_ACC_F16,
                                                 PTX__LAYOUT};

/* .target -> the lowest .version that knows it */
typedef struct ptx__chip {
    uint16_t sm;
    uint8_t suffix, version;
} ptx__chip;
static const ptx__chip ptx__chips[] = {
    {75, 0, 63},    {80, 0, 70},    {86, 0, 71},    {87, 0, 74},    {88, 0, 90},    {89, 0, 78},
    {90, 0, 78},    {90, 'a', 80},  {100, 0, 86},   {100, 'a', 86}, {100, 'f', 88}, {103, 0, 88},
    {103, 'a', 88}, {103, 'f', 88}, {110, 0, 90},   {110, 'a', 90}, {110, 'f', 90}, {120, 0, 87},
    {120, 'a', 87}, {120, 'f', 88}, {121, 0, 88},   {121, 'a', 88}, {121, 'f', 88}};

static const char *const ptx__error_names[] = {
#define PTX__ROW(code, name, meaning) name,
    PTX_ERRORS(PTX__ROW)
#undef PTX__ROW
};

typedef struct ptx__special_fact {
    const char *name;
    ptx_type type;
    uint8_t class_, version, sm;
} ptx__special_fact;
/* The uniformity class of a value: it is the same in all threads of the cluster, block, warpgroup or warp, or
   it may differ between any two (LANE). */
enum { PTX__CLASS_CLUSTER, PTX__CLASS_BLOCK, PTX__CLASS_GROUP, PTX__CLASS_WARP, PTX__CLASS_LANE };
#define PTX__ROW(id, name, type, class_, ver, sm) {name, type, PTX__CLASS_##class_, ver, sm},
static const ptx__special_fact ptx__specials[] = {PTX_SPECIALS(PTX__ROW)};
#undef PTX__ROW

/* A form in use: a row with its types and modifiers, checked once, and its mnemonic ready to copy. */
typedef struct ptx__form {
    ptx_mods asked;
    uint64_t key;  /* op, types, numbers of operands and results */
    uint32_t next; /* in the hash chain, index + 1 */
    uint32_t text, text_length;
    uint32_t version;   /* the lowest, modifiers included */
    uint32_t signature; /* the operands, expanded by ptx__expand_signature: offset in chars */
    uint32_t slots;     /* of these the sources, after '=': offset in chars */
    uint32_t pattern;   /* see ptx__record_by_pattern: where in module.patterns, + 1; 0: none */
    const ptx__row *row;
    const char *operands;               /* the row's source operands */
    uint8_t type, src;                  /* as asked for */
    uint8_t collective, result, effect; /* of its facts; see ptx__set_behaviour */
    uint8_t has_addresses;              /* among its operands */
    uint8_t is_relevant;                /* to the verifier: any of collective, effect, has_addresses */
    uint32_t seen;                      /* the bits that it sets in `seen` of a kernel */
} ptx__form;

/* The facts of a form: see PTX__CONVERGENT_*, PTX__UNIFORM_* and PTX__EFFECT_OF_*. CALL: as the called
   function needs. */
enum {
    PTX__COLLECTIVE_NONE,
    PTX__COLLECTIVE_MEMBERS,
    PTX__COLLECTIVE_WARP,
    PTX__COLLECTIVE_GROUP,
    PTX__COLLECTIVE_BLOCK,
    PTX__COLLECTIVE_CLUSTER,
    PTX__COLLECTIVE_CALL
};
enum {
    PTX__RESULT_SAME,
    PTX__RESULT_LANE,
    PTX__RESULT_LANE_OF,
    PTX__RESULT_UNIFORM_WARP,
    PTX__RESULT_UNIFORM_BLOCK
};
enum {
    PTX__EFFECT_NONE,
    PTX__EFFECT_COPY,
    PTX__EFFECT_COMMIT,
    PTX__EFFECT_WAIT_GROUPS,
    PTX__EFFECT_WAIT,
    PTX__EFFECT_READ,
    PTX__EFFECT_MMA_FENCE, /* wgmma */
    PTX__EFFECT_MMA,
    PTX__EFFECT_MMA_COMMIT,
    PTX__EFFECT_MMA_WAIT,
    PTX__EFFECT_BULK
};
enum { PTX__I_PLAIN, PTX__I_BRANCH, PTX__I_LABEL, PTX__I_LEAVE, PTX__I_COMMENT };

typedef struct ptx__ins {
    const char *site;
    uint32_t form;         /* index; label and comment: 0 */
    uint32_t words;        /* first operand; branch and label: the label; comment: its text in names */
    uint32_t guard;        /* predicate word, 0 none */
    uint16_t count;        /* words */
    uint8_t kind, results; /* results: leading words that are written */
} ptx__ins;

typedef struct ptx__label {
    const char *site;
    uint32_t position;       /* instruction + 1, 0: not placed */
    uint32_t uses, closed;   /* closed: of a scope that has ended, no branch to it can follow */
    const char *branch_site; /* call site of the last branch to it */
} ptx__label;

enum { PTX__S_IF, PTX__S_ELSE, PTX__S_SWITCH, PTX__S_LOOP, PTX__S_FOR };
typedef struct ptx__scope {
    const char *site;
    ptx_label head, next, done; /* loop head, next round, end; next: else of an if, default of a switch */
    ptx_var counter;
    ptx_val step;
    uint32_t kind;
    uint32_t cases; /* switch: their labels are consecutive, `head` is the first */
} ptx__scope;

typedef struct ptx__symbol {
    const char *site;
    uint32_t name; /* in names */
    uint32_t type, count, align; /* count: bytes of a parameter or local array, elements of a shared one */
} ptx__symbol;

typedef struct ptx__variable {
    const char *site;
    uint32_t name, data; /* in names; data 0: zeros */
    uint32_t type, space, count, align, exported;
} ptx__variable;
/* A name, in a hash chain. scope: PTX__OF_... or the index of a kernel. */
typedef struct ptx__named {
    uint32_t name, hash, next; /* next: index + 1 */
    uint32_t scope, what;      /* what: as the scopes below say; in a kernel's: PTX__IS_PARAM ... */
} ptx__named;
#define PTX__OF_MODULE UINT32_MAX         /* variables: the index; kernels: PTX__IS_KERNEL | index */
#define PTX__OF_ANY_KERNEL (UINT32_MAX - 1u) /* symbols of any kernel, a name once: the first such kernel */
#define PTX__OF_LIBRARY (UINT32_MAX - 2u) /* what [MATH] and ptxgen_kernels.h have made: the index */
#define PTX__IS_KERNEL 0x80000000u
/* What a name stands for; the first three are symbols of a kernel. */
enum { PTX__IS_PARAM, PTX__IS_SHARED, PTX__IS_LOCAL, PTX__IS_VARIABLE, PTX__IS_FUNCTION, PTX__IS_ENTRY };

/* Element `element` of variable `in` holds the address of `to` + offset. Sorted by `in`, then `element`. */
typedef struct ptx__address {
    uint32_t in, element, to;
    int64_t offset;
} ptx__address;

typedef struct ptx__block {
    uint32_t first, end;           /* instructions */
    uint32_t next[2];              /* successors, index + 1 */
    uint32_t idom, order, in, out; /* dominator tree and its numbering */
    uint32_t leaves;               /* ends with ret or exit, even under a guard; see ptx__check_ends, too */
    uint32_t guard;                /* of the branch or exit at its end, 0: none */
    uint32_t relevant;             /* its first in ptx__graph.relevant */
} ptx__block;

/* The definition of a register: its instruction, and the kernel's `boundaries` before that. */
typedef struct ptx__definition {
    uint32_t instruction, boundaries;
} ptx__definition;
/* An instruction that refers to a register: the verifier lists the assignments to variables, ptx_pressure
   lists all uses. */
typedef struct ptx__reference {
    uint32_t instruction, block, next; /* next: the next one to the same register, index + 1 */
} ptx__reference;
/* The facts of a register in the uniformity analysis: see "verify: uniformity". With one of tid_flags, its
   value is (%tid.x + y) >> shift. PTX__TID_WARP: y is uniform in a warp and a multiple of 32. PTX__TID_GROUP:
   y is uniform in a warpgroup and a multiple of 128. PTX__TID_SELF: y is 0. */
typedef struct ptx__value_facts {
    uint32_t root;   /* the instruction from which the value gets its class, + 1: for messages */
    uint32_t branch; /* the divergent branch that gave `level`, + 1 */
    uint8_t class_;  /* PTX__CLASS_* of the value */
    uint8_t level;   /* the highest level of the blocks that write it */
    uint8_t tid_flags, shift;
    uint8_t zeros;    /* low bits that are known to be zero, at most 7 */
    uint8_t asserted; /* the class that the caller asserts, + 1; 0: none */
    uint8_t read;     /* 1: an instruction has read it in this analysis */
    /* Of a variable: last_set - 1 is the last assignment that was visited, 0: none. From there to the end of
       its block the variable has this class and root. */
    uint8_t last_class;
    uint32_t last_set, last_root;
} ptx__value_facts;

/* Prefetch what is read soon at an address that the hardware does not predict. */
#if defined(__GNUC__)
#define PTX__PREFETCH(address) __builtin_prefetch(address)
#else
#define PTX__PREFETCH(address) ((void)(address))
#endif

/* A growing array. Its memory is the module's and is kept over a reset. bytes: of the capacity. */
#define PTX__ARRAY(type)                                                                                     \
    struct {                                                                                                 \
        type *at;                                                                                            \
        size_t count, capacity, bytes;                                                                       \
    }

/* A plain instruction that has been recorded. Another one with operands of the same kinds differs only in its
   words: see "memos" in [CORE]. */
#define PTX__MEMO_MAX 4
typedef struct ptx__memo {
    ptx_mods mods;
    uint64_t kinds;                        /* of the operands, 16 bits each; see ptx__kind_of */
    uint64_t result;                       /* the result's handle without owner and register, 0: none */
    uint32_t request;                      /* PTX__REQUEST; 0: no memo */
    uint32_t max_immediate[PTX__MEMO_MAX]; /* the largest immediate that is known to be in range */
    uint32_t form, seen;                   /* seen: that of the form */
    uint8_t tag[PTX__MEMO_MAX]; /* of an operand of three words, and the flags below; 0: a register */
    uint8_t result_tag, version, results; /* results: words */
    uint8_t is_relevant;                  /* that of the form */
} ptx__memo; /* 64 bytes: one cache line */
#define PTX__EXACT 0x80u    /* tag: only the immediate `max_immediate` is known to be right */
#define PTX__NOT_ZERO 0x40u /* tag: all up to `max_immediate` but 0, as of a divisor */

struct ptx_kernel {
    ptx_module *m;
    uint32_t owner;
    uint32_t name, index; /* in names; among the module's kernels */
    const char *site;
    uint32_t registers[32];             /* their number, by tag; 0 for a tag of no register */
    uint32_t first_block_registers[32]; /* of these: defined in the first block */
    uint32_t old_registers[32];         /* of these: defined after it and before the last label */
    uint32_t guard;
    const char *guard_site;
    uint32_t max_threads, min_blocks;
    uint32_t required_block[3], cluster[3], max_registers, max_rank, blocks_are_clusters;
    uint32_t function, result, noreturn; /* function: not an entry; result: the type that it returns */
    uint32_t returning;                  /* inside of ptx_return */
    uint32_t waits;                      /* ptx_dependent_wait was called */
    const char *called;                  /* site of the last call of it, or NULL */
    uint32_t version;                    /* the lowest that the recorded forms need */
    uint32_t visit_state;                /* see ptx__find_recursion */
    uint32_t shared_bytes, param_bytes, verified;
    uint32_t boundaries; /* number of instructions that are not plain; at most boundaries + 1 blocks */
    size_t body;         /* where its instructions begin in the text last printed */
    uint32_t seen;       /* of its instructions: 1 << PTX__EFFECT_*, and PTX__SEEN_* */
    uint32_t address_taken, level_known; /* level_known: highest_level is computed, or about to be */
    uint32_t highest_level;   /* the highest divergence level (PTX__CLASS_*) of a block that may call it */
    uint32_t recursive;       /* instruction + 1 of a call that leads back to it */
    PTX__ARRAY(ptx__ins) ins; /* from here to `reserved_end`: arrays, kept over a reset */
    PTX__ARRAY(uint32_t) words;
    PTX__ARRAY(ptx__label) labels;
    PTX__ARRAY(ptx__scope) scopes;
    PTX__ARRAY(ptx__symbol) shared;
    PTX__ARRAY(ptx__symbol) params;
    PTX__ARRAY(ptx__symbol) locals;
    PTX__ARRAY(ptx_param_info) info;
    PTX__ARRAY(uint32_t) calls;    /* pairs: the instruction, and the kernel's index or PTX__ANY_CALLEE */
    PTX__ARRAY(uint32_t) asserted; /* pairs: a register given to ptx_uniform or its like, its class */
    PTX__ARRAY(uint64_t) wide;     /* 64-bit numbers that do not fit a handle */
    PTX__ARRAY(uint32_t) marked; /* the instructions that are relevant, guarded or not plain; see ptx__mark */
    PTX__ARRAY(uint64_t) uses;   /* see ptx__list_uses */
    PTX__ARRAY(ptx__definition) definitions[PTX__REGISTER_CLASSES];
    int64_t reserved_end; /* while ins.count is less, a memo can record an instruction without making room */
};

#define PTX__ANY_CALLEE UINT32_MAX
#define PTX__BUCKETS 1024
#define PTX__SEEN_TENSOR_LOAD 0x10000000u
#define PTX__SEEN_CONVERGENT 0x04000000u /* collective instructions, and addresses of symbols */
#define PTX__MEMOS 512
/* The row of a matrix product for elements of a type, and the lengths of its first four groups. */
typedef struct ptx__shape {
    const ptx__row *row;
    uint32_t op, type, count[4];
} ptx__shape;
/* The text of a register, "%r12, ", and its length in the last character. Most registers are printed more
   than once, and copying is faster than converting digits. */
typedef struct ptx__register_name {
    char text[16];
} ptx__register_name;
struct ptx_module {
    ptx_alloc_fn alloc;
    void *user;
    ptx_target target;
    uint32_t max_version, comments, loc_lines, version, serial, seed, owner, const_bytes, printf_used,
        dependent_launch;
    char target_name[8]; /* "90a" */
    ptx_error error;
    char message[768];
    char error_site[256], error_kernel[256];
    uint32_t kernels_used; /* later kernels in the array, left by a reset, keep their memory for reuse */
    PTX__ARRAY(ptx_kernel *) kernels; /* from here to `shape`: arrays */
    PTX__ARRAY(ptx__form) forms;
    PTX__ARRAY(char) names;
    PTX__ARRAY(char) chars; /* mnemonics and expanded operands of the forms */
    PTX__ARRAY(uint32_t) patterns;
    PTX__ARRAY(char) text;
    PTX__ARRAY(uint32_t) entries; /* their indices in kernels */
    PTX__ARRAY(ptx__variable) variables;
    PTX__ARRAY(ptx__named) named;
    PTX__ARRAY(uint32_t) name_heads; /* a power of two: hash -> first in `named`, index + 1 */
    PTX__ARRAY(ptx__address) addresses;
    PTX__ARRAY(const char *) files; /* of .loc: call sites, one of each file */
    PTX__ARRAY(ptx__block) blocks; /* scratch of the verifier */
    PTX__ARRAY(uint32_t) scratch;
    PTX__ARRAY(ptx__reference) references;    /* to variables or registers, listed by the verifier */
    PTX__ARRAY(ptx__value_facts) value_facts; /* with `analysis_words`: scratch of the verifier's analyses */
    PTX__ARRAY(uint32_t) analysis_words;
    PTX__ARRAY(ptx__register_name) register_names[PTX__REGISTER_CLASSES]; /* for all kernels */
    ptx__shape shape; /* of the last ptx_mma */
    uint32_t bucket[PTX__BUCKETS];
    ptx__memo memos[PTX__MEMOS + 1];
    ptx__memo *memo;                         /* `memos`, from the start of a cache line on */
    uint16_t first_row[PTX__OP_COUNT + 1];   /* first row of each instruction */
    const char *source_slots[PTX__OP_COUNT]; /* its source operands: the text after '=' */
    uint8_t is_plain[PTX__OP_COUNT];         /* see ptx__is_plain */
};

static void *ptx__default_alloc(void *user, void *block, size_t old_size, size_t new_size) {
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

static const ptx_error ptx__no_module = {PTX_E_MEMORY, "error: out of memory: there is no module [memory]",
                                         "", "", 0};

/* Clean a message: in the table's mnemonics, %1 and other counts become N; %t, %s, %m and %l vanish. */
PTX__COLD void ptx__strip_placeholders(char *s) {
    char *to = s, before = ' ';
    for (; *s; s++) {
        int inside = (before >= 'a' && before <= 'z') || (before >= '0' && before <= '9');
        if (*s == '%' && inside && s[1] && strchr("tsml", s[1])) {
            s++;
            continue;
        }
        if (*s == '%' && (inside || before == '.') && s[1] && strchr("124hq", s[1])) s++, *to++ = 'N';
        else
            *to++ = *s;
        before = to[-1] == 'N' ? 'n' : to[-1];
    }
    *to = 0;
}

/* The site of a call; of one without a site, that of the kernel. */
static const char *ptx__site(const ptx_kernel *k, const char *site) { return site ? site : k->site; }
static const char *ptx__site_at(const ptx_kernel *k, uint32_t instruction) {
    return ptx__site(k, k->ins.at[instruction].site);
}

PTX__COLD ptx_code ptx__failv(ptx_module *m, ptx_kernel *k, uint32_t instruction, ptx_code code,
                              const char *site, const char *format, va_list args) {
    char what[512];
    const char *kernel = k ? m->names.at + k->name : "";
    size_t i;
    if (m->error.code) return m->error.code;
    for (i = 0; i < m->kernels.count; i++)
        m->kernels.at[i]->reserved_end = 0; /* memos record nothing from now on */
    vsnprintf(what, sizeof what, format, args);
    ptx__strip_placeholders(what);
    if (!site) site = k ? k->site : "";
    m->error.code = code;
    m->error.instruction = instruction;
    snprintf(m->error_kernel, sizeof m->error_kernel, "%.255s", kernel);
    snprintf(m->error_site, sizeof m->error_site, "%.255s", site);
    if (k)
        snprintf(m->message, sizeof m->message, "%s: error: kernel '%.80s', instruction %lu: %s [%s]", site,
                 kernel, (unsigned long)instruction, what, ptx_error_name(code));
    else
        snprintf(m->message, sizeof m->message, "%s%serror: %s [%s]", site, *site ? ": " : "", what,
                 ptx_error_name(code));
    m->error.message = m->message;
    m->error.site = m->error_site;
    m->error.kernel = m->error_kernel;
    return code;
}

PTX__COLD_API ptx_code ptx_fail(ptx_module *m, ptx_code code, const char *site, const char *format, ...) {
    va_list args;
    if (!m) return PTX_E_MEMORY;
    if ((unsigned)code - 1u >= PTX_E_COUNT - 1u) code = PTX_E_ARGUMENT; /* no code of an error */
    va_start(args, format);
    code = ptx__failv(m, NULL, 0, code, site, format ? format : "no message", args);
    va_end(args);
    return code;
}

/* Set the error of a call on a kernel. Returns 0. For `return`, PTX__REFUSE yields no value. */
PTX__COLD int ptx__fail(ptx_kernel *k, ptx_code code, const char *site, const char *format, ...) {
    va_list args;
    va_start(args, format);
    ptx__failv(k->m, k, (uint32_t)k->ins.count, code, site, format, args);
    va_end(args);
    return 0;
}
#define PTX__REFUSE(...) (ptx__fail(__VA_ARGS__), ptx__none())

/* Whether a number is a ptx_type, not a format of weights for example; sets the error if not. */
static int ptx__require_type(ptx_kernel *k, const char *site, unsigned type) {
    if (ptx__is_type(type)) return 1;
    return ptx__fail(k, PTX_E_ARGUMENT, site, "%u is no ptx_type: PTX_F32, PTX_U32 ...", type);
}

/* Set the error of an instruction that was recorded before: for the verifier. */
PTX__COLD ptx_code ptx__fault(ptx_kernel *k, ptx_code code, uint32_t instruction, const char *format, ...) {
    va_list args;
    va_start(args, format);
    code = ptx__failv(k->m, k, instruction, code, ptx__site_at(k, instruction), format, args);
    va_end(args);
    return code;
}

/* An array of any type: copied to this and back, because void ** may not alias T **. */
typedef struct ptx__array {
    void *at;
    size_t count, capacity, bytes;
} ptx__array;

/* Make room for `more` elements of `size` bytes after those in use. Returns 0 when out of memory. */
static int ptx__room(ptx_module *m, void *array, size_t more, size_t size) {
    ptx__array a;
    size_t want;
    memcpy(&a, array, sizeof a);
    if (more <= a.capacity - a.count) return 1;
    if (more > ((size_t)-1) / size / 2 - a.count) return ptx_fail(m, PTX_E_MEMORY, "", "out of memory"), 0;
    want = a.capacity < 16 ? 16 : a.capacity;
    while (want < a.count + more) want += want / 2;
    a.at = m->alloc(m->user, a.at, a.bytes, want * size);
    if (!a.at)
        return ptx_fail(m, PTX_E_MEMORY, "", "out of memory: %lu bytes", (unsigned long)(want * size)), 0;
    a.capacity = want;
    a.bytes = want * size;
    memcpy(array, &a, sizeof a);
    return 1;
}
#define PTX__ROOM(m, array, more) ptx__room((m), &(array), (more), sizeof *(array).at)
/* The same for one element; the usual case, that there is room, costs no call. */
#define PTX__ROOM_FOR_ONE(m, array)                                                                          \
    ((array).count < (array).capacity || ptx__room((m), &(array), 1, sizeof *(array).at))

/* Free the memory of all PTX__ARRAYs in a part of a struct that has that many bytes. */
static void ptx__release(ptx_module *m, const void *arrays, size_t bytes) {
    const char *at = (const char *)arrays, *end = at + bytes;
    for (; at < end; at += sizeof(ptx__array)) {
        ptx__array a;
        memcpy(&a, at, sizeof a);
        if (a.at) m->alloc(m->user, a.at, a.bytes, 0);
    }
}

/* Short texts are copied as PTX__SLACK bytes whatever their length, which is faster. So the source has that
   many bytes after its last text, and the destination has room for them. */
#define PTX__SLACK 32

/* Copy text or data to module.names, which a reset empties. Returns the offset, or 0 (the offset of "") when
   out of memory. */
PTX__COLD uint32_t ptx__keep(ptx_module *m, const char *s, size_t length) {
    const int own =
        m->names.at && (uintptr_t)s - (uintptr_t)m->names.at < m->names.count; /* s is in names itself */
    size_t from = own ? (size_t)(s - m->names.at) : 0;
    uint32_t at = (uint32_t)m->names.count;
    if (!PTX__ROOM(m, m->names, length + 1)) return 0;
    memcpy(m->names.at + at, own ? m->names.at + from : s, length);
    m->names.at[at + length] = 0;
    m->names.count += length + 1;
    return at;
}

PTXGEN_API const char *ptx_error_name(ptx_code code) {
    return (unsigned)code < PTX_E_COUNT ? ptx__error_names[code] : "?";
}

PTXGEN_API const ptx_error *ptx_get_error(const ptx_module *m) { return m ? &m->error : &ptx__no_module; }

PTXGEN_API const char *ptx_type_name(ptx_type type) {
    return ptx__is_type((unsigned)type) ? ptx__fact((unsigned)type)->name : "?";
}

PTXGEN_API ptx_launch ptx_launch_1d(uint64_t threads, uint32_t block) {
    ptx_launch launch;
    uint64_t blocks = block ? threads / block + (threads % block != 0) : 0;
    memset(&launch, 0, sizeof launch);
    launch.grid[0] = blocks > UINT32_MAX ? UINT32_MAX : (uint32_t)blocks; /* no device accepts it */
    launch.block[0] = block;
    launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
    return launch;
}
PTXGEN_API ptx_launch ptx_launch_2d(uint64_t x, uint64_t y, uint32_t block_x, uint32_t block_y) {
    ptx_launch launch = ptx_launch_1d(x, block_x), rows = ptx_launch_1d(y, block_y);
    launch.grid[1] = rows.grid[0];
    launch.block[1] = block_y;
    return launch;
}

static uint64_t ptx__map_number(const ptx_map_number *n, const char *args) {
    uint64_t wide = 1;
    uint32_t half;
    if (n->bytes == 8) memcpy(&wide, args + n->field, 8);
    if (n->bytes == 4) memcpy(&half, args + n->field, 4), wide = half;
    return wide && n->times > UINT64_MAX / wide ? UINT64_MAX : n->times * wide;
}

PTX__COLD_API const char *ptx_map_resolve(const ptx_tensor_map *map, const void *args,
                                          ptx_map_values *values) {
    static const uint8_t types[][2] = {
        {PTX_U8, 0},  {PTX_S8, 0},  {PTX_B8, 0},  {PTX_E4M3, 0}, {PTX_E5M2, 0}, {PTX_U16, 1},
        {PTX_B16, 1}, {PTX_U32, 2}, {PTX_B32, 2}, {PTX_S32, 3},  {PTX_U64, 4},  {PTX_B64, 4},
        {PTX_S64, 5}, {PTX_F16, 6}, {PTX_F32, 7}, {PTX_F64, 8},  {PTX_BF16, 9}, {PTX_TF32, 11}};
    ptx_map_values v;
    uint64_t address;
    uint32_t i, bytes, absent;
    memset(values, 0, sizeof *values);
    memset(&v, 0, sizeof v);
    if (!map || !args) return "map or arguments are NULL";
    for (i = 0; i < sizeof types / sizeof *types && types[i][0] != map->type;) i++;
    if (i == sizeof types / sizeof *types) return "the type is none of a tensor map";
    v.type = types[i][1];
    bytes = types[i][1] ? ptx_type_bytes((ptx_type)map->type) : 1u;
    if (map->rank < 1 || map->rank > PTX_MAP_RANK) return "the rank is not 1 to 5";
    v.rank = map->rank;
    memcpy(&address, (const char *)args + map->address, 8);
    absent = !address && map->substitute;
    if (absent) memcpy(&address, (const char *)args + map->substitute, 8);
    v.address = (void *)(uintptr_t)address;
    if (!address || address % 16) return "the address is not a multiple of 16";
    for (i = 0; i < map->rank; i++) {
        v.size[i] = ptx__map_number(&map->size[i], (const char *)args);
        if (!v.size[i] || v.size[i] > UINT64_C(1) << 32) return "a size is not 1 to 2^32";
        v.box[i] = map->box[i];
        v.element_stride[i] = 1;
        if (!v.box[i] || v.box[i] > 256) return "a box is not 1 to 256 elements";
        if (!i) continue;
        v.stride[i - 1] = ptx__map_number(&map->stride[i], (const char *)args);
        if (absent || !v.stride[i - 1]) v.size[i] = 1, v.stride[i - 1] = 16;
        if (v.stride[i - 1] % 16) return "a stride is not a multiple of 16 bytes";
        if (v.stride[i - 1] >> 40) return "a stride is not below 2^40 bytes";
    }
    v.swizzle = map->swizzle == 128 ? 3 : map->swizzle == 64 ? 2 : map->swizzle == 32 ? 1 : 0;
    if (v.box[0] * bytes % 16 || (map->swizzle && v.box[0] * bytes > map->swizzle))
        return "the rows of a box are not multiples of 16 bytes, at most the swizzle";
    v.l2_promotion = 3; /* 256 bytes */
    *values = v;
    return NULL;
}

PTXGEN_API uint32_t ptx_type_bytes(ptx_type type) {
    return (unsigned)type < PTX__TYPE_COUNT ? ptx__fact(type)->bits / 8u : 0;
}

/* Whether an instruction has at most one result and only slots of these letters: no groups, no addresses. */
static int ptx__is_plain(const char *sig) {
    size_t n;
    sig += *sig == '*';
    n = strspn(sig, "twpu");
    return n < 2 && sig[n] == '=' && sig[n + 1 + strspn(sig + n + 1, "twcpuejLU")] == 0;
}

PTX__COLD_API ptx_module *ptx_module_new(const ptx_module_desc *desc) {
    ptx_alloc_fn alloc = desc && desc->alloc ? desc->alloc : ptx__default_alloc;
    void *user = desc ? desc->alloc_user : NULL;
    ptx_module *m = (ptx_module *)alloc(user, NULL, 0, sizeof *m);
    size_t i;
    if (!m) return NULL;
    memset(m, 0, sizeof *m);
    m->memo = (ptx__memo *)((char *)m->memos + ((64u - (uintptr_t)m->memos % 64u) % 64u));
    m->alloc = alloc;
    m->user = user;
    m->target = desc && desc->target ? desc->target : PTX_SM(75);
    m->max_version = desc && desc->max_version ? desc->max_version : 90;
    m->comments = desc ? desc->comments & 1u : 0;
    m->loc_lines = desc ? desc->comments >> 1 & 1u : 0;
    m->dependent_launch = desc && desc->dependent_launch;
    /* Owner tags count from a hash of the address, to differ between modules. They never reach the text. */
    m->seed = (uint32_t)((uintptr_t)m >> 4) * 2654435761u;
    for (i = PTX__ROW_COUNT; i-- > 0;) {
        m->first_row[ptx__rows[i].op] = (uint16_t)i;
        m->source_slots[ptx__rows[i].op] = strchr(ptx__rows[i].sig, '=') + 1;
        m->is_plain[ptx__rows[i].op] = (uint8_t)ptx__is_plain(ptx__rows[i].sig);
    }
    m->first_row[PTX__OP_COUNT] = (uint16_t)PTX__ROW_COUNT;
    ptx_module_reset(m);
    return m;
}

static ptx_target ptx__chip_target(const ptx__chip *chip) {
    return chip->suffix == 'a' ? PTX_SM_A(chip->sm) : chip->suffix ? PTX_SM_F(chip->sm) : PTX_SM(chip->sm);
}

PTX__COLD_API ptx_target ptx_target_parse(const char *name) {
    uint32_t number = 0, suffix = 0;
    size_t i;
    if (!name) return 0;
    if (strncmp(name, "sm_", 3) == 0) name += 3;
    while (*name >= '0' && *name <= '9' && number < 1000) number = 10 * number + (uint32_t)(*name++ - '0');
    if (*name == 'a') suffix = 0x1000u, name++;
    else if (*name == 'f') suffix = 0x2000u, name++;
    for (i = 0; i < sizeof ptx__chips / sizeof ptx__chips[0] && !*name; i++)
        if (ptx__chip_target(&ptx__chips[i]) == (number | suffix)) return number | suffix;
    return 0;
}
PTXGEN_API size_t ptx_target_name(ptx_target target, char *name, size_t capacity) {
    int n = snprintf(name, name ? capacity : 0, "%lu%s", (unsigned long)(target & 0xfffu),
                     target & 0x1000u   ? "a"
                     : target & 0x2000u ? "f"
                                        : "");
    return n < 0 ? 0 : (size_t)n;
}

PTX__COLD_API void ptx_module_reset(ptx_module *m) {
    size_t i;
    if (!m) return;
    memset(&m->error, 0, sizeof m->error);
    m->error.message = m->error.site = m->error.kernel = "";
    m->kernels_used = 0;
    for (i = 0; i < m->kernels.count; i++) m->kernels.at[i]->reserved_end = 0;
    m->version = 0;
    m->variables.count = m->addresses.count = m->entries.count = 0;
    m->named.count = m->name_heads.count = 0;
    m->const_bytes = m->printf_used = 0;
    m->owner = m->seed + ++m->serial;
    ptx_target_name(m->target, m->target_name, sizeof m->target_name);
    for (i = 0; i < sizeof ptx__chips / sizeof ptx__chips[0]; i++)
        if (m->target == ptx__chip_target(&ptx__chips[i])) m->version = ptx__chips[i].version;
    if (m->version == 0)
        ptx_fail(m, PTX_E_TARGET, "", "target sm_%s is not known; the oldest is sm_75", m->target_name);
    else if (m->version > m->max_version)
        ptx_fail(m, PTX_E_VERSION, "", "target sm_%s needs PTX %u.%u, the cap is %u.%u", m->target_name,
                 m->version / 10, m->version % 10, m->max_version / 10, m->max_version % 10);
    m->names.count = 0;
    ptx__keep(m, "", 0);
}

PTX__COLD_API void ptx_module_free(ptx_module *m) {
    size_t i;
    if (!m) return;
    for (i = 0; i < m->kernels.count; i++) {
        ptx_kernel *k = m->kernels.at[i];
        ptx__release(m, &k->ins, offsetof(ptx_kernel, reserved_end) - offsetof(ptx_kernel, ins));
        m->alloc(m->user, k, sizeof *k, 0);
    }
    ptx__release(m, &m->kernels, offsetof(ptx_module, shape) - offsetof(ptx_module, kernels));
    m->alloc(m->user, m, sizeof *m, 0);
}

PTXGEN_API ptx_target ptx_module_target(const ptx_module *m) { return m ? m->target : 0; }
PTXGEN_API uint32_t ptx_version(const ptx_module *m) {
    uint32_t i, version = m ? m->version : 0;
    for (i = 0; m && i < m->kernels_used; i++)
        if (m->kernels.at[i]->version > version) version = m->kernels.at[i]->version;
    return version;
}

/* The index of the lowest bit that is set, by a de Bruijn multiplication. */
static uint32_t ptx__lowest_bit(uint32_t bits) {
    static const uint8_t number[32] = {0,  1,  28, 2,  29, 14, 24, 3, 30, 22, 20, 15, 25, 17, 4,  8,
                                       31, 27, 13, 23, 21, 19, 16, 7, 26, 12, 18, 6,  11, 5,  10, 9};
    return number[(uint32_t)((bits & (0u - bits)) * 0x077cb531u) >> 27];
}
/* The number of low zero bits, counted up to 7: multiples of 128 suffice. */
#define PTX__ZEROS_MOST 7u
static uint8_t ptx__low_zeros(uint64_t n) {
    uint8_t zeros = 0;
    while (zeros < PTX__ZEROS_MOST && !(n >> zeros & 1)) zeros++;
    return zeros;
}

/* ---- [CORE] -------------------------------------------------------------------------------------------- */

/* -- operands -- */

static ptx__operand ptx__make_operand(unsigned kind, unsigned type, uint64_t bits) {
    ptx__operand v;
    v.bits = bits;
    v.owner = 0;
    v.kind = (uint8_t)kind;
    v.type = (uint8_t)type;
    v.space = v.flags = 0;
    return v;
}

static ptx_val ptx__none_for(uint64_t why) {
    ptx_val v;
    v.handle = why;
    return v;
}
/* No value: the offset does not fit a handle. Keeps the offset for the message, clamped to 53 bits. */
static ptx_val ptx__none_for_offset(int64_t offset) {
    const int64_t most = ((int64_t)1 << 52) - 1;
    offset = offset > most ? most : offset < -most - 1 ? -most - 1 : offset;
    return ptx__none_for(PTX__WHY_LARGE_OFFSET | (uint64_t)offset << 11 >> 3);
}
static ptx_val ptx__none(void) { return ptx__none_for(0); }

/* Fields of a handle. An ADDRESS_OFFSET has, from the top: a code for its type, space, alignment, the
   register's index, the owner's low 8 bits and the offset. */
#define PTX__H_KIND(handle) ((unsigned)((handle) >> 61))
#define PTX__H_TYPE(handle) ((unsigned)((handle) >> 55) & 63u)
#define PTX__H_SPACE 52 /* in a REGISTER: where its 3 bits begin */
#define PTX__H_ALIGN 48
#define PTX__H_INVERTED ((uint64_t)15 << PTX__H_ALIGN)
#define PTX__OFF_TYPE 58
#define PTX__OFF_SPACE 55
#define PTX__OFF_ALIGN 51
#define PTX__OFF_INDEX 32
#define PTX__OFF_OWNER 24
#define PTX__OFF_INDEX_MAX 0x7ffffu
#define PTX__OFF_OFFSET_MAX 0x7fffff
static const uint8_t ptx__address_types[8] = {PTX_U32, PTX_S32, PTX_B32, PTX_U64,
                                              PTX_S64, PTX_B64, PTX_U64, PTX_NONE};
enum { PTX__OFF_PARAM_BLOCK = 6 }; /* the code of a parameter block; 7 is none */
static int64_t ptx__handle_offset(uint64_t handle) { return (int64_t)(handle << 40) >> 40; }

/* Decode a handle. k is the kernel that uses it: it holds the wide numbers. */
static ptx__operand ptx__read_handle(const ptx_kernel *k, ptx_val v) {
    const uint64_t h = v.handle;
    const uint32_t word = (uint32_t)h;
    const unsigned align = (unsigned)(h >> PTX__H_ALIGN) & 15u, code = (unsigned)(h >> PTX__OFF_TYPE) & 7u;
    const unsigned index = (unsigned)(h >> PTX__OFF_INDEX) & PTX__OFF_INDEX_MAX;
    ptx__operand o = ptx__make_operand(PTX__REG, PTX__H_TYPE(h), word);
    switch (PTX__H_KIND(h)) {
    case PTX__H_NOTHING:
        return ptx__make_operand((h & 255) < PTX__WHY_LARGE_OFFSET ? PTX__NOTHING : PTX__OUT_OF_RANGE,
                                 PTX_NONE, h);
    case PTX__H_REGISTER:
        o.owner = (uint32_t)(h >> 32) & 0xffffu;
        if (!PTX__TAG(word) && o.owner == k->owner && word < k->wide.count)
            return ptx__make_operand(o.type == PTX_F64 ? PTX__IMM_FLOAT : PTX__IMM, o.type, k->wide.at[word]);
        o.space = (uint8_t)(h >> PTX__H_SPACE & 7u);
        o.flags = (uint8_t)(align == 15 ? PTX__INVERTED : align);
        if (PTX__TAG(word) != PTX__W_PARAM) return o;
        o.kind = PTX__PARAM_BLOCK;
        o.bits = PTX__INDEX(word);
        return o;
    case PTX__H_INTEGER: return ptx__make_operand(PTX__IMM, o.type, (uint64_t)((int64_t)(h << 9) >> 9));
    case PTX__H_INTEGER_9: return ptx__make_operand(PTX__IMM, o.type, h << 9);
    case PTX__H_FLOAT: return ptx__make_operand(PTX__IMM_FLOAT, o.type, h << 9);
    case PTX__H_ADDRESS_OFFSET:
        if (code > PTX__OFF_PARAM_BLOCK) return ptx__make_operand(PTX__NOTHING, PTX_NONE, 0);
        o.kind = code == PTX__OFF_PARAM_BLOCK ? PTX__PARAM_OFFSET : PTX__REG_OFFSET;
        o.type = ptx__address_types[code];
        o.space = (uint8_t)(h >> PTX__OFF_SPACE & 7u);
        o.flags = (uint8_t)(h >> PTX__OFF_ALIGN & 15u);
        o.owner = k->owner ^ (((uint32_t)(h >> PTX__OFF_OWNER) ^ k->owner) & 255u);
        o.bits = code == PTX__OFF_PARAM_BLOCK ? index : PTX__WORD(code < 3 ? PTX__W_32 : PTX__W_64, index);
        o.bits |= (uint64_t)(uint32_t)ptx__handle_offset(h) << 32;
        return o;
    default: /* PTX__H_DOUBLE */
        o.bits =
            (h & UINT64_C(1) << 61) << 2 | ((h >> 52 & 511) + (1023 - 255)) << 52 | (h & 0xfffffffffffff);
        return ptx__make_operand(PTX__IMM_FLOAT, PTX_F64, o.bits);
    }
}

/* Encode the handle of a register or parameter block. */
static ptx_val ptx__register_handle(const ptx__operand *o) {
    ptx_val v;
    v.handle = PTX__HANDLE(
        PTX__H_REGISTER, o->type,
        (uint64_t)o->space << PTX__H_SPACE
            | (o->flags & PTX__INVERTED ? PTX__H_INVERTED : (uint64_t)o->flags << PTX__H_ALIGN)
            | (uint64_t)o->owner << 32
            | (o->kind == PTX__PARAM_BLOCK ? PTX__WORD(PTX__W_PARAM, o->bits) : (uint32_t)o->bits));
    return v;
}

PTXGEN_API ptx_type ptx_type_of(ptx_val v) {
    switch (PTX__H_KIND(v.handle)) {
    case PTX__H_NOTHING: return PTX_NONE;
    case PTX__H_ADDRESS_OFFSET: return (ptx_type)ptx__address_types[v.handle >> PTX__OFF_TYPE & 7u];
    case PTX__H_DOUBLE:
    case PTX__H_DOUBLE + 1: return PTX_F64;
    default: return (ptx_type)PTX__H_TYPE(v.handle);
    }
}
PTXGEN_API ptx_space ptx_space_of(ptx_val v) {
    const unsigned kind = PTX__H_KIND(v.handle);
    if (kind == PTX__H_ADDRESS_OFFSET) return (ptx_space)(v.handle >> PTX__OFF_SPACE & 7u);
    return kind == PTX__H_REGISTER ? (ptx_space)(v.handle >> PTX__H_SPACE & 7u) : PTX_GENERIC;
}
static int ptx__is_register(ptx_val v) {
    const unsigned tag = PTX__TAG((uint32_t)v.handle);
    return PTX__H_KIND(v.handle) == PTX__H_REGISTER && tag && tag != PTX__W_PARAM;
}
/* Whether a handle is an address in a register, plus an offset. */
static int ptx__is_address_offset(ptx_val v) {
    return PTX__H_KIND(v.handle) == PTX__H_ADDRESS_OFFSET
           && (v.handle >> PTX__OFF_TYPE & 7u) < PTX__OFF_PARAM_BLOCK;
}
static ptx_val ptx__with_type(ptx_val v, unsigned type) {
    v.handle = (v.handle & ~((uint64_t)63 << 55)) | (uint64_t)type << 55;
    return v;
}
static ptx_val ptx__with_space(ptx_val v, unsigned space) {
    const int at = PTX__H_KIND(v.handle) == PTX__H_ADDRESS_OFFSET ? PTX__OFF_SPACE : PTX__H_SPACE;
    if (PTX__H_KIND(v.handle) == PTX__H_NOTHING) return v;
    v.handle = (v.handle & ~((uint64_t)7 << at)) | (uint64_t)space << at;
    return v;
}

PTXGEN_API ptx_val ptx_as(ptx_val v, ptx_type type) {
    /* A register of another width gives no value; the use of that value reports it. */
    const unsigned have = (unsigned)ptx_type_of(v);
    uint64_t code;
    if (PTX__H_KIND(v.handle) == PTX__H_NOTHING) return v;
    if (!ptx__is_register(v) && !ptx__is_address_offset(v)) return ptx__none_for(PTX__WHY_AS_NO_REGISTER);
    if ((unsigned)type >= PTX__TYPE_COUNT || ptx__fact(have)->bits != ptx__fact(type)->bits)
        return ptx__none_for(PTX__WHY_AS);
    if (ptx__is_register(v)) return ptx__with_type(v, type);
    for (code = 0; code < PTX__OFF_PARAM_BLOCK && ptx__address_types[code] != (unsigned)type; code++) {
    }
    if (code == PTX__OFF_PARAM_BLOCK) return ptx__none_for(PTX__WHY_AS);
    v.handle = (v.handle & ~((uint64_t)7 << PTX__OFF_TYPE)) | code << PTX__OFF_TYPE;
    return v;
}
PTXGEN_API ptx_val ptx_ptr(ptx_val v, ptx_space space) {
    if (PTX__H_KIND(v.handle) == PTX__H_NOTHING) return v;
    if ((!ptx__is_register(v) && !ptx__is_address_offset(v))
        || ((unsigned)space > PTX_CONST && space != PTX_SHARED_CLUSTER))
        return ptx__none_for(PTX__WHY_PTR);
    return ptx__with_space(v, space);
}
PTXGEN_API ptx_val ptx_inv(ptx_val predicate) {
    if (ptx_type_of(predicate) == PTX_PRED)
        predicate.handle ^= PTX__H_INVERTED;
    else if (PTX__H_KIND(predicate.handle) != PTX__H_NOTHING)
        return ptx__none_for(PTX__WHY_INV);
    return predicate;
}
/* Split an address into its base and its offset. Other values are returned as they are, with offset 0. */
static ptx__operand ptx__split_address(ptx__operand v, int64_t *offset) {
    *offset = 0;
    if (v.kind != PTX__REG_OFFSET && v.kind != PTX__PARAM_OFFSET) return v;
    *offset = (int32_t)(uint32_t)(v.bits >> 32);
    v.kind = v.kind == PTX__REG_OFFSET ? PTX__REG : PTX__PARAM_BLOCK;
    v.bits &= 0xffffffffu;
    return v;
}
PTXGEN_API ptx_val ptx_off(ptx_val address, int64_t byte_offset) {
    const uint64_t h = address.handle;
    uint64_t code = 0;
    if (PTX__H_KIND(h) == PTX__H_NOTHING) return address;
    if (byte_offset > INT32_MAX || byte_offset < INT32_MIN) return ptx__none_for_offset(byte_offset);
    if (PTX__H_KIND(h) == PTX__H_ADDRESS_OFFSET) {
        byte_offset += ptx__handle_offset(h);
        address.handle &= ~(uint64_t)0xffffff;
    } else if (PTX__H_KIND(h) == PTX__H_REGISTER && PTX__TAG((uint32_t)h)) {
        if (PTX__TAG((uint32_t)h) == PTX__W_PARAM)
            code = PTX__OFF_PARAM_BLOCK;
        else
            while (code < PTX__OFF_PARAM_BLOCK && ptx__address_types[code] != PTX__H_TYPE(h)) code++;
        if (PTX__TAG((uint32_t)h) != PTX__W_PARAM && code == PTX__OFF_PARAM_BLOCK)
            return ptx__none_for(PTX__WHY_OFF);
        if (PTX__INDEX((uint32_t)h) > PTX__OFF_INDEX_MAX) return ptx__none_for(PTX__WHY_HIGH_REGISTER);
        address.handle = (uint64_t)PTX__H_ADDRESS_OFFSET << 61 | code << PTX__OFF_TYPE
                         | (h >> PTX__H_SPACE & 7u) << PTX__OFF_SPACE
                         | (h >> PTX__H_ALIGN & 15u) << PTX__OFF_ALIGN | (h >> 32 & 255u) << PTX__OFF_OWNER
                         | (h & PTX__OFF_INDEX_MAX) << PTX__OFF_INDEX;
    } else
        return ptx__none_for(PTX__WHY_OFF);
    if (byte_offset > PTX__OFF_OFFSET_MAX || byte_offset < -PTX__OFF_OFFSET_MAX - 1)
        return ptx__none_for_offset(byte_offset);
    address.handle |= (uint64_t)byte_offset & 0xffffff;
    return address;
}

/* ptx_mem.access: 32 bits of offset, 20 of modifiers, 11 of policy (a register's index + 1 or PTX__POLICY_*).
   The modifiers are one number for each group below: 0 for none, n for the n-th of the group. For others, and
   for two of one group, the bits above the offset are a list of at most four modifiers: PTX__A_LIST. */
static const struct {
    uint8_t first, count, shift; /* the group's first bit in ptx_mods, its length; the number's lowest bit */
} ptx__access_groups[] = {{3, 5, 0},   {8, 4, 3},   {18, 7, 6}, {26, 5, 9},
                          {44, 4, 12}, {52, 3, 15}, {0, 2, 17}, {25, 1, 19}};
enum {
    PTX__POLICY_HIGH_REGISTER = 2044, /* errors from here on: the register's index does not fit, ... */
    PTX__POLICY_FOREIGN,
    PTX__POLICY_TYPE,
    PTX__POLICY_NONE,
    PTX__A_MODS = 32,
    PTX__A_POLICY = 52
};
#define PTX__A_LIST ((uint64_t)1 << 63)

static ptx_mods ptx__access_mods(uint64_t access) {
    ptx_mods mods = 0;
    unsigned i, n;
    if (!(access >> 32)) return 0;
    if (access & PTX__A_LIST) {
        for (i = PTX__A_MODS; i < PTX__A_MODS + 24; i += 6)
            if ((n = (unsigned)(access >> i) & 63u) != 0) mods |= (ptx_mods)1 << (n - 1);
        return mods | (access >> 56 & 3) << 62;
    }
    for (i = 0; i < sizeof ptx__access_groups / sizeof *ptx__access_groups; i++) {
        n = (unsigned)(access >> (PTX__A_MODS + ptx__access_groups[i].shift))
            & (ptx__access_groups[i].count > 3   ? 7u
               : ptx__access_groups[i].count > 1 ? 3u
                                                 : 1u);
        if (n) mods |= PTX__M(ptx__access_groups[i].first + n - 1);
    }
    return access >> PTX__A_POLICY ? mods | PTX_L2_CACHE_HINT : mods;
}
static uint64_t ptx__with_mods(uint64_t access, ptx_mods mods) {
    uint64_t policy = access >> PTX__A_POLICY & 2047, packed = 0;
    ptx_mods left = mods & ~(PTX_L2_CACHE_HINT | PTX__FAMILY), bit;
    unsigned i, n = 0;
    for (i = 0; i < sizeof ptx__access_groups / sizeof *ptx__access_groups; i++)
        for (n = 0; n < ptx__access_groups[i].count; n++) {
            bit = (ptx_mods)1 << (ptx__access_groups[i].first + n);
            if (!(left & bit)) continue;
            packed |= (uint64_t)(n + 1) << ptx__access_groups[i].shift;
            left &= ~bit;
            break;
        }
    if (access & PTX__A_LIST || !(mods & PTX_L2_CACHE_HINT & ~PTX__FAMILY)) policy = 0;
    access &= UINT32_MAX;
    if (!left && !(mods >> 62 & 1) && (policy || !(mods & PTX_L2_CACHE_HINT & ~PTX__FAMILY)))
        return access | packed << PTX__A_MODS | policy << PTX__A_POLICY;
    access |= PTX__A_LIST | mods >> 62 << 56;
    /* Too many for any access: keep two that the groups cannot encode, and what their groups do encode. */
    for (i = 0, bit = 0; i < 62; i++) bit += mods >> i & 1;
    if (bit > 4) {
        packed = left ? 0 : PTX_L2_CACHE_HINT;
        for (i = 0, n = 0; i < 62 && n < 2; i++)
            if (left >> i & 1) packed |= (ptx_mods)1 << i, n++;
        for (i = 0; i < sizeof ptx__access_groups / sizeof *ptx__access_groups; i++) {
            bit = (((ptx_mods)1 << ptx__access_groups[i].count) - 1) << ptx__access_groups[i].first;
            if (packed & bit) packed |= mods & bit & ~left;
        }
        mods = packed;
    }
    for (i = 0, n = 0; i < 62 && n < 4; i++)
        if (mods >> i & 1) access |= (uint64_t)(i + 1) << (PTX__A_MODS + 6 * n++);
    return access;
}

PTXGEN_API ptx_mem ptx_at(ptx_val address, int64_t byte_offset) {
    ptx_mem mem;
    int64_t offset = 0;
    if (PTX__H_KIND(address.handle) == PTX__H_ADDRESS_OFFSET) {
        offset = ptx__handle_offset(address.handle);
        address.handle &= ~(uint64_t)0xffffff;
    }
    if (byte_offset > INT32_MAX || byte_offset < INT32_MIN)
        offset = byte_offset;
    else
        offset += byte_offset;
    mem.base =
        offset > INT32_MAX || offset < INT32_MIN ? ptx__none_for_offset(offset).handle : address.handle;
    mem.access = (uint32_t)offset;
    return mem;
}
PTXGEN_API ptx_mem ptx_with(ptx_mem mem, ptx_mods mods) {
    /* The space follows from the address, the vector from the call. Where the caller sets either, set all
       spaces, which the use refuses. */
    if (mods & (PTX__SPACE | PTX__VEC) & ~PTX__FAMILY) mods |= PTX__SPACE;
    mem.access = ptx__with_mods(mem.access, ptx__access_mods(mem.access) | mods);
    return mem;
}
PTX__COLD_API ptx_mem ptx_cached(ptx_mem mem, ptx_val policy) {
    const uint64_t owner = PTX__H_KIND(mem.base) == PTX__H_ADDRESS_OFFSET
                               ? (mem.base >> PTX__OFF_OWNER ^ policy.handle >> 32) & 255
                               : (mem.base ^ policy.handle) >> 32 & 65535;
    const uint32_t word = (uint32_t)policy.handle;
    uint64_t code = PTX__INDEX(word) + 1;
    if (!ptx__is_register(policy))
        code = PTX__POLICY_NONE;
    else if (PTX__TAG(word) != PTX__W_64 || policy.handle >> PTX__H_SPACE & 7)
        code = PTX__POLICY_TYPE;
    else if (owner)
        code = PTX__POLICY_FOREIGN;
    else if (code > PTX__POLICY_HIGH_REGISTER)
        code = PTX__POLICY_HIGH_REGISTER;
    mem.access = ptx__with_mods((mem.access & UINT32_MAX) | code << PTX__A_POLICY,
                                ptx__access_mods(mem.access) | PTX_L2_CACHE_HINT);
    return mem;
}
static ptx__access ptx__read_memory(const ptx_kernel *k, ptx_mem mem) {
    ptx__access a;
    ptx_val base;
    base.handle = mem.base;
    a.base = ptx__read_handle(k, base);
    if (a.base.kind >= PTX__REG_OFFSET && a.base.kind != PTX__OUT_OF_RANGE)
        a.base = ptx__split_address(a.base, &a.offset);
    a.offset = (int32_t)(uint32_t)mem.access;
    a.mods = ptx__access_mods(mem.access);
    a.policy = mem.access & PTX__A_LIST ? 0u : (uint32_t)(mem.access >> PTX__A_POLICY);
    return a;
}

/* The b type of the same width. Instructions that only move bits print it. */
static unsigned ptx__as_bits(unsigned type) {
    static const uint8_t of_bytes[17] = {0, PTX_B8, PTX_B16, 0, PTX_B32, 0, 0, 0, PTX_B64,
                                         0, 0,      0,       0, 0,       0, 0, PTX_B128};
    unsigned bits = of_bytes[ptx__fact(type)->bits / 8];
    return bits ? bits : type;
}
/* The type of a register that holds such a value. There are no 8-bit registers: they have 32 bits. */
static unsigned ptx__in_register(unsigned type) {
    switch (type) {
    case PTX_U8: return PTX_U32;
    case PTX_S8: return PTX_S32;
    case PTX_B8: return PTX_B32;
    default: return type;
    }
}
static unsigned ptx__wider(unsigned type) {
    switch (type) {
    case PTX_U16: return PTX_U32;
    case PTX_S16: return PTX_S32;
    case PTX_U32: return PTX_U64;
    case PTX_S32: return PTX_S64;
    default: return type;
    }
}

PTX__COLD const char *ptx__describe(ptx__operand v) {
    static const char *const why[] = {
        "no value",
        "no value (of a ptx_as between types of different widths)",
        "no value (of a ptx_ptr of no register, or to no space)",
        "no value (of a ptx_inv of no predicate)",
        "no value (of a ptx_as of no register: write an immediate in its type, such as ptx_f32(1))",
        "no value (of a ptx_off of no address)",
        "an address with an offset of more than 24 bits (in ptx_at 32), which ptx_ptr_add takes",
        "a ptx_off of a register beyond the first 524,288 of its width; ptx_at and ptx_ptr_add take any",
        "a number of more than 55 bits, which ptx_wide(k, PTX_U64, bits) makes"};
    if ((v.bits & 255) == PTX__WHY_WIDE && v.kind == PTX__OUT_OF_RANGE) {
        const unsigned type = PTX__H_TYPE(v.bits);
        if (type == PTX_F64)
            return "a number whose handle would lose bits, which ptx_wide(k, PTX_F64, bits) makes";
        if (type == PTX_S64) return "a number of more than 55 bits, which ptx_wide(k, PTX_S64, bits) makes";
        if (type != PTX_U64 && type != PTX_NONE) return "a number that does not fit its type";
    }
    if (v.kind == PTX__NOTHING || v.kind == PTX__OUT_OF_RANGE)
        return why[(v.bits & 255) <= PTX__WHY_WIDE ? v.bits & 255 : 0];
    if (v.kind == PTX__PARAM_BLOCK) return "the address of a parameter block";
    if (v.kind == PTX__REG_OFFSET || v.kind == PTX__PARAM_OFFSET) return "a place in memory";
    if (v.kind == PTX__IMM && v.type == PTX_NONE) return "an integer immediate";
    return ptx__fact(v.type)->name;
}

/* A part of a message, with room for the longest list of types. */
typedef struct ptx__message_part {
    char s[400];
} ptx__message_part;

/* "u32, s32 or f32" */
PTX__COLD ptx__message_part ptx__types_text(uint64_t set) {
    ptx__message_part list;
    size_t n = 0;
    unsigned type;
    list.s[0] = 0;
    for (type = 0; type < PTX__TYPE_COUNT; type++)
        if (set >> type & 1)
            n += (size_t)snprintf(list.s + n, sizeof list.s - n, "%s%s",
                                  !n               ? ""
                                  : set >> type > 1 ? ", "
                                                    : " or ",
                                  ptx__fact(type)->name);
    return list;
}

/* Whether ptx_cvt converts from and to the type: it holds one number. */
static int ptx__is_number(unsigned type) {
    const ptx__type_fact *f = ptx__fact(type);
    return type == PTX_F16 || type == PTX_BF16 || f->kind == 'f'
           || ((f->kind == 'u' || f->kind == 's') && type != PTX_U16X2 && type != PTX_S16X2);
}

/* The end of a message: how to turn v into an operand of that type. "" where there is no way. */
PTX__COLD ptx__message_part ptx__conversion_hint(ptx__operand v, unsigned type) {
    static const uint8_t immediates[] = {PTX_U16, PTX_S16, PTX_U32, PTX_S32, PTX_U64,  PTX_S64,
                                         PTX_B32, PTX_F16, PTX_F32, PTX_F64, PTX_BF16};
    const ptx__type_fact *want = ptx__fact(type), *have = ptx__fact(v.type);
    ptx__message_part text;
    char name[16];
    size_t i;
    text.s[0] = 0;
    for (i = 0; want->name[i] && i < sizeof name - 1; i++)
        name[i] = (char)(want->name[i] >= 'a' ? want->name[i] - 'a' + 'A' : want->name[i]);
    name[i] = 0;
    if ((v.kind == PTX__IMM || v.kind == PTX__IMM_FLOAT) && type == PTX_PRED)
        snprintf(text.s, sizeof text.s, ": it is known while the kernel is built, decide with an if of C");
    else if (v.kind == PTX__IMM || v.kind == PTX__IMM_FLOAT) {
        for (i = 0; i < sizeof immediates && immediates[i] != type; i++) {}
        if (i < sizeof immediates && v.type != type)
            snprintf(text.s, sizeof text.s, ": write ptx_%s(number)", want->name);
    } else if (v.kind == PTX__REG && type == PTX_PRED && have->bits > 1)
        snprintf(text.s, sizeof text.s, ": compare it, ptx_setp(k, PTX_NE, x, zero)");
    else if (v.kind == PTX__REG && v.type == PTX_PRED && want->bits > 1)
        snprintf(text.s, sizeof text.s, ": ptx_selp(k, one, zero, p) makes a number of it");
    else if (v.kind == PTX__REG && v.type != type) {
        int number = ptx__is_number(type) && ptx__is_number(v.type);
        int bits = want->bits && want->bits == have->bits;
        if (number)
            snprintf(text.s, sizeof text.s, ": ptx_cvt(k, PTX_%s, x) converts it%s%s%s", name,
                     bits ? ", ptx_as(x, PTX_" : "", bits ? name : "", bits ? ") reads the same bits" : "");
        else if (bits)
            snprintf(text.s, sizeof text.s, ": ptx_as(x, PTX_%s) reads the same bits", name);
    }
    return text;
}

/* The end of a message about an instruction without a form for that type: what has one. "" where nothing. */
PTX__COLD const char *ptx__form_hint(unsigned op, unsigned type, uint64_t types) {
    const int integer = strchr("us", ptx__fact(type)->kind) != NULL;
    if (types == UINT64_C(1) << PTX_B32 && ptx__fact(type)->bits == 64)
        return "; ptx_unpack makes two of 64 bits";
    if (ptx__fact(type)->kind == 'b') return "; ptx_as says what the bits are";
    if (type >= PTX_U16 && type <= PTX_U64 && types >> (type + PTX_S32 - PTX_U32) & 1)
        return "; ptx_as reads the same bits as signed";
    if (op == PTX_FMA && integer) return "; ptx_mad is for integers";
    if (op == PTX_MAD && !integer) return "; ptx_fma is for floats";
    if (op == PTX_CVT && type == PTX_PRED) return "; ptx_setp(k, PTX_NE, x, zero) makes a predicate";
    if (op == PTX_SELP && type == PTX_PRED) return "; the predicate comes last: ptx_selp(k, a, b, p)";
    if (integer && types >> PTX_F32 & 1) return "; ptx_cvt(k, PTX_F32, x) converts";
    return "";
}

/* Round a double to a float of that many exponent and mantissa bits, to nearest even. Returns 0 where a
   finite value becomes infinite. */
PTX__COLD int ptx__narrow(double value, int exponent_bits, int mantissa_bits, uint32_t *out) {
    uint64_t d, mantissa, rest, half;
    int exponent, shift, top = (1 << exponent_bits) - 1, bias = top >> 1;
    uint32_t sign, r;
    memcpy(&d, &value, sizeof d);
    sign = (uint32_t)(d >> 63) << (exponent_bits + mantissa_bits);
    exponent = (int)(d >> 52 & 0x7ff);
    mantissa = d & 0xfffffffffffffull;
    if (exponent == 0x7ff) {
        *out =
            mantissa ? (1u << (exponent_bits + mantissa_bits)) - 1u : sign | (uint32_t)top << mantissa_bits;
        return 1;
    }
    if (exponent) mantissa |= 1ull << 52;
    exponent += bias - 1023;
    shift = 52 - mantissa_bits + (exponent < 1 ? 1 - exponent : 0);
    if (shift > 54) shift = 54;
    r = (uint32_t)(mantissa >> shift);
    rest = mantissa & ((1ull << shift) - 1);
    half = 1ull << (shift - 1);
    if (rest > half || (rest == half && (r & 1u))) r++;
    if (exponent > 1) r += (uint32_t)(exponent - 1) << mantissa_bits;
    if (exponent > top || r >= (uint32_t)top << mantissa_bits) return 0;
    *out = sign | r;
    return 1;
}

/* -- forms -- */

/* The facts of the modifier of that bit, in the family of a set. */
PTX__COLD ptx__mod_fact ptx__mod(ptx_mods family, unsigned bit) {
    const unsigned memory = family >> 63 != 0, first = memory * PTX__CM_COL_COL;
    const unsigned end = memory ? PTX__CM_COL : PTX__CM_COL_COL;
    ptx__mod_fact fact = {NULL, 0, 0};
    if (bit >= end - first) return fact;
    bit += first;
    fact.version = ptx__modifier_needs[bit][0];
    fact.sm = ptx__modifier_needs[bit][1];
    for (fact.text = ptx__modifier_texts; bit--;) fact.text += strlen(fact.text) + 1;
    return fact;
}
/* The first modifier of a set, for messages. */
static const char *ptx__mod_text(ptx_mods set, ptx_mods family) {
    unsigned bit;
    for (bit = 0; bit < 62; bit++)
        if (set >> bit & 1) return ptx__mod(family, bit).text ? ptx__mod(family, bit).text : "?";
    return set >> 63 ? "a memory modifier" : "an arithmetic modifier";
}

static int ptx__conflict(ptx_mods mods) {
    const ptx_mods *groups = mods >> 63 ? ptx__exclusive_memory : ptx__exclusive;
    size_t i, n = mods >> 63 ? sizeof ptx__exclusive_memory / sizeof *groups
                             : sizeof ptx__exclusive / sizeof *groups;
    for (i = 0; i < n; i++) {
        ptx_mods in = mods & groups[i] & ~PTX__FAMILY;
        if (in & (in - 1)) return 1;
    }
    return 0;
}

/* The needed modifiers that are missing. Of each exclusive group one must be set; all others must be. */
PTX__NOINLINE static ptx_mods ptx__missing(ptx_mods need, ptx_mods have) {
    const ptx_mods *groups = need >> 63 ? ptx__exclusive_memory : ptx__exclusive;
    size_t i, n = need >> 63 ? sizeof ptx__exclusive_memory / sizeof *groups
                             : sizeof ptx__exclusive / sizeof *groups;
    need &= ~PTX__FAMILY;
    for (i = 0; i < n; i++) {
        if (need & groups[i] && !(need & groups[i] & have)) return need & groups[i];
        need &= ~groups[i];
    }
    return need & ~have;
}

/* Check the rules that a set of allowed modifiers cannot express: which orders, scopes, hints and spaces of
   an access exclude each other. Returns NULL if all is well, else the rule. */
PTX__COLD const char *ptx__broken_access_rule(unsigned op, ptx_mods all) {
    const ptx_mods mods = all & ~PTX__FAMILY;
    ptx_mods sem = mods & PTX__SEM, scope = mods & PTX__SCOPE;
    ptx_mods strong = sem & ~PTX_WEAK & ~PTX_VOLATILE, space = mods & PTX__SPACE;
    ptx_mods cached = mods & (PTX__COP_LD | PTX__COP_ST);
    int global = !space || space == (PTX__M_GLOBAL & ~PTX__FAMILY);
    if (op >= PTX_ATOMIC_BITS && op <= PTX_RED && mods & PTX_L2_CACHE_HINT && !global)
        return "L1 and L2 hints are for global memory";
    if (op != PTX_LD && op != PTX_ST && (op < PTX_MULTIMEM_LD_REDUCE || op > PTX_MULTIMEM_RED)) return NULL;
    if (mods & PTX_MMIO
        && (!(mods & PTX_RELAXED) || !(mods & PTX_SYS) || !global || mods & (PTX__HINTS | PTX__VEC)))
        return ".mmio goes with .relaxed.sys, in global memory, without hints, for one value";
    if ((strong != 0) != (scope != 0)) return "an order needs a scope, and a scope an order";
    if ((sem & ~PTX_WEAK && cached) || (sem && mods & PTX_NC))
        return "an order does not go with cache operators or .nc";
    if (sem & ~PTX_WEAK && !global && !(space & (PTX__M_SHARED | PTX__M_SHARED_CLUSTER)))
        return "an order is for global and shared memory";
    if (mods & PTX_NC && !(global && space)) return ".nc is for global memory";
    if (mods & PTX_NC && mods & (PTX_LU | PTX_CV)) return ".nc does not go with .lu and .cv";
    if (mods & (PTX__L1 | PTX__L2) && !global) return "L1 and L2 hints are for global memory";
    if (mods & PTX_L2_CACHE_HINT && mods & PTX_VOLATILE) return "a cache hint does not go with .volatile";
    if (mods & PTX__L1 && (cached || mods & PTX_VOLATILE))
        return "L1 hints do not go with cache operators or .volatile";
    return NULL;
}

/* cvt.sat between integers exists only where a value can lie outside the result's range. */
static int ptx__cannot_saturate(unsigned op, unsigned type, unsigned src, ptx_mods mods) {
    const ptx__type_fact *d = ptx__fact(type), *s = ptx__fact(src);
    if (op != PTX_CVT || !(mods & PTX_SAT & ~PTX__FAMILY) || (s->kind != 'u' && s->kind != 's')) return 0;
    if (d->kind == s->kind) return d->bits >= s->bits;
    return d->kind == 's' && d->bits > s->bits;
}

/* Special counts of operands. ANY_COUNT: not checked, for internal callers. AT_MOST_ONE: of the results. */
#define PTX__ANY_COUNT 0xffffu
#define PTX__AT_MOST_ONE 0xfffeu

/* Whether a group may have n registers; letter: the letter after its '+'. */
PTX__COLD int ptx__group_length_ok(char letter, unsigned n) {
    int power = (n & (n - 1)) == 0;
    switch (letter) {
    case 'v': return n == 2 || n == 4;
    case 'e': return n == 2 || n == 4 || n == 8;
    case 'x': return n == 1 || n == 2 || n == 4;
    case 'p': return n == 2 || n == 4;
    case 'd': return n >= 1 && n <= 5;
    case 'i': return n >= 3 && n <= 5;
    case 't': return n <= 128 && power;
    case '2': return n >= 2 && n <= 128 && power;
    case '4': return n >= 4 && n <= 128 && power;
    case 'w': return n % 4 == 0 && n <= 128; /* wgmma m64nN, f32 results: n = N / 2, N a multiple of 8 */
    case 'z': return n % 2 == 0 && n <= 64;  /* f16 results: n = N / 4 */
    case 'y': return n % 4 == 0 && n <= 128 && (n % 8 == 0 || n <= 12); /* s32: N / 2, N 8, 24 or 16 * i */
    default: return 0;
    }
}

/* Expand a row's operands: groups get n elements, and `pair` says whether the optional second result is
   there. The result is a text such as "{ffff}=dp". Returns 0 where a group cannot have n elements or the text
   would be longer than PTX__SIGNATURE_MAX. */
#define PTX__SIGNATURE_MAX 320
PTX__COLD int ptx__expand_signature(const char *sig, unsigned n, int pair, char *out, unsigned *results,
                                    unsigned *sources) {
    unsigned *count = results;
    char *end = out + PTX__SIGNATURE_MAX - 8;
    *results = *sources = 0;
    for (; *sig; sig++) {
        unsigned times = 1;
        if (*sig == '*' || *sig == '~' || *sig == '!') continue;
        if (*sig == '=') count = sources;
        if (*sig == '?') {
            if (!pair) {
                sig++;
                continue;
            }
            if (count == results) *out++ = '|';
            continue;
        }
        if (*sig >= '1' && *sig <= '9') times = (unsigned)(*sig++ - '0');
        if (*sig != '_' && strchr("{}[]|=", *sig)) {
            *out++ = *sig;
            continue;
        }
        if (sig[1] == '+') {
            times = n;
            if (!ptx__group_length_ok(sig[2], n)) return 0;
        } else if (sig[1] == '-')
            times = n - 2;
        if (times > (unsigned)(end - out)) return 0;
        memset(out, *sig, times);
        out += times;
        if (*sig != '_') *count += times;
        if (sig[1] == '+') sig += 2;
        else if (sig[1] == '-') sig++;
    }
    *out = 0;
    return 1;
}

/* Whether a row takes n operands and gives n_out results. If so, also its expanded operands and the length of
   its groups. */
PTX__COLD int ptx__operands_fit(const ptx__row *row, unsigned n, unsigned n_out, char *signature,
                                unsigned *length) {
    unsigned results, sources, most = strchr(row->sig, '+') ? 128 : 1;
    int pair, one = strchr(row->sig, '?') ? 2 : 1;
    *length = 1;
    if (n == PTX__ANY_COUNT || *row->sig == '~') {
        signature[0] = 0;
        return 1;
    }
    for (; *length <= most; ++*length)
        for (pair = 0; pair < one; pair++)
            if (ptx__expand_signature(row->sig, *length, pair, signature, &results, &sources) && sources == n
                && (results == n_out || (n_out == PTX__AT_MOST_ONE && results < 2)))
                return 1;
    return 0;
}

/* The counts of operands and results that a row has, for messages. */
PTX__COLD const char *ptx__counts_text(const ptx__row *row, char *text, size_t size) {
    char signature[PTX__SIGNATURE_MAX];
    unsigned n, results, sources, found = 0;
    int pair;
    size_t used = 0;
    text[0] = 0;
    for (n = 1; n <= 128 && found < 4; n++)
        for (pair = 0; pair < (strchr(row->sig, '?') ? 2 : 1) && (n == 1 || strchr(row->sig, '+')); pair++)
            if (found < 4 && used + 40 < size
                && ptx__expand_signature(row->sig, n, pair, signature, &results, &sources))
                used += (size_t)snprintf(text + used, size - used, "%s %u and %u",
                                         found++ ? "," : ": there are", sources, results);
    return text;
}

/* The target's number, and the declared sizes of blocks and clusters; 0: not declared. */
static uint32_t ptx__sm(const ptx_kernel *k) { return k->m->target & 0xfffu; }
static uint32_t ptx__threads_of(const ptx_kernel *k) {
    return k->required_block[0] * k->required_block[1] * k->required_block[2];
}
static uint32_t ptx__most_threads(const ptx_kernel *k) {
    return k->required_block[0] ? ptx__threads_of(k) : k->max_threads;
}
static uint32_t ptx__blocks_of(const ptx_kernel *k) { return k->cluster[0] * k->cluster[1] * k->cluster[2]; }

/* Raise the kernel's .version to what something needs. of: a number for the message; negative: none. */
PTX__COLD int ptx__require_version(ptx_kernel *k, const char *site, const char *name, long long of,
                                   uint32_t version) {
    char more[32];
    more[0] = 0;
    if (version <= k->version) return 1;
    if (of >= 0) snprintf(more, sizeof more, " of %lld", of);
    if (version > k->m->max_version)
        return ptx__fail(k, PTX_E_VERSION, site, "%s%s needs PTX %u.%u, the cap is %u.%u", name, more,
                         version / 10, version % 10, k->m->max_version / 10, k->m->max_version % 10);
    k->version = version;
    return 1;
}

/* The target that something needs, for a message; NULL where it is the module's. sm: as in ptx__row. */
PTX__COLD const char *ptx__target_lacks(const ptx_module *m, unsigned sm, char *text, size_t size) {
    const char *set, *at;
    size_t n = strlen(m->target_name);
    if (sm < PTX__ON_FIRST) {
        if (sm <= (m->target & 0xfffu)) return NULL;
        snprintf(text, size, "sm_%u", sm);
        return text;
    }
    set = ptx__target_sets[sm - PTX__ON_FIRST - 1];
    for (at = set; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, m->target_name, n) == 0 && (at[n] == ',' || !at[n])) return NULL;
    snprintf(text, size, strchr(set, ',') ? "one of sm_%s" : "sm_%s", set);
    return text;
}
PTX__COLD int ptx__require_target(ptx_kernel *k, const char *site, const char *name, unsigned sm) {
    char lacks[160];
    if (!ptx__target_lacks(k->m, sm, lacks, sizeof lacks)) return 1;
    return ptx__fail(k, PTX_E_TARGET, site, "%s needs %s, the target is sm_%s (ptx_module_desc.target)", name,
                     lacks, k->m->target_name);
}

/* Find the row for a use of an instruction. A row that the target and the version cap support is preferred to
   one that they lack; of the latter the caller reports what is lacking. */
PTX__COLD const ptx__row *ptx__find_row(ptx_kernel *k, const char *site, unsigned op, unsigned type,
                                        unsigned src, ptx_mods asked, unsigned n, unsigned n_out,
                                        ptx_mods *mods, char *signature, unsigned *length) {
    const ptx__row *row = &ptx__rows[k->m->first_row[op]], *closest = NULL, *wrong_count = NULL,
                   *lacking = NULL;
    ptx_mods lacking_mods = 0;
    char lacks[160], counts[120];
    if (asked && !(asked & PTX__FAMILY)) {
        ptx__fail(k, PTX_E_MODIFIER, site, "%s: 0x%llx is no modifier", row->name, (unsigned long long)asked);
        return NULL;
    }
    for (; row < ptx__rows + PTX__ROW_COUNT && row->op == op; row++) {
        const uint64_t types = ptx__types_of(row), sources = ptx__sources_of(row);
        ptx_mods all = asked, allowed, needed;
        if (types ? !(types >> type & 1) : type != PTX_NONE) continue;
        if (sources ? !(sources >> src & 1) : src != PTX_NONE) continue;
        allowed = ptx__allowed(row), needed = ptx__needed(row);
        if (!closest || asked & ~ptx__allowed(closest)) closest = row;
        if (!(asked & needed & ptx__missing(needed, 0))) all |= ptx__default(row);
        if (all & ~allowed || ptx__missing(needed, all) || ptx__conflict(all)
            || ptx__broken_access_rule(op, all) || ptx__cannot_saturate(op, type, src, all))
            continue;
        if (!ptx__operands_fit(row, n, n_out, signature, length)) {
            wrong_count = wrong_count ? wrong_count : row;
            continue;
        }
        *mods = all;
        if (ptx__target_lacks(k->m, row->sm, lacks, sizeof lacks) || row->version > k->m->max_version) {
            lacking = lacking ? lacking : row;
            lacking_mods = lacking == row ? all : lacking_mods;
            continue;
        }
        return row;
    }
    if (lacking) {
        *mods = lacking_mods;
        ptx__operands_fit(lacking, n, n_out, signature, length);
        return lacking;
    }
    if (wrong_count) {
        const char *slots = strchr(wrong_count->sig, '=') + 1;
        if (n_out != PTX__AT_MOST_ONE)
            ptx__fail(k, PTX_E_ARGUMENT, site, "%s does not take %u operands and give %u results%s",
                      wrong_count->name, n, n_out, ptx__counts_text(wrong_count, counts, sizeof counts));
        else if (slots[strcspn(slots, "{[+?123456789")])
            ptx__fail(k, PTX_E_ARGUMENT, site, "%s does not take %u operands", wrong_count->name, n);
        else
            ptx__fail(k, PTX_E_ARGUMENT, site, "%s takes %u operands, %u given", wrong_count->name,
                      (unsigned)strlen(slots), n);
        return NULL;
    }
    row = &ptx__rows[k->m->first_row[op]];
    if (!closest) {
        uint64_t types = 0, sources = 0;
        const ptx__row *any = row;
        for (; any < ptx__rows + PTX__ROW_COUNT && any->op == op; any++) {
            types |= ptx__types_of(any);
            if (!ptx__types_of(any) || ptx__types_of(any) >> type & 1) sources |= ptx__sources_of(any);
        }
        if (sources)
            ptx__fail(k, PTX_E_FORM, site, "%s has no form from %s to %s: to %s it goes from %s%s", row->name,
                      ptx__fact(src)->name, ptx__fact(type)->name, ptx__fact(type)->name,
                      ptx__types_text(sources).s,
                      src == PTX_PRED ? ": ptx_selp(k, one, zero, p) makes a number of it"
                      : src == PTX_F32 && (type == PTX_F16X2 || type == PTX_BF16X2)
                          ? "; ptx_cvt_pair makes it of two f32"
                          : "");
        else if (!types)
            ptx__fail(k, PTX_E_FORM, site, "%s has no form for type %s: it has none of its own", row->name,
                      ptx__fact(type)->name);
        else
            ptx__fail(k, PTX_E_FORM, site, "%s has no form for type %s: it has %s%s", row->name,
                      ptx__fact(type)->name, ptx__types_text(types).s, ptx__form_hint(op, type, types));
    } else {
        const ptx_mods refused_mods = asked & ~ptx__allowed(closest);
        const ptx_mods atomic = asked >> 63 ? refused_mods & PTX__ATOM & ~PTX__FAMILY : 0;
        const char *why = ": ", *what = ptx__broken_access_rule(op, asked);
        if (atomic & PTX_ATOM_CAS)
            what = ".cas compares: call ptx_atom_cas";
        else if (refused_mods && !(atomic && ptx__conflict(asked)))
            why = " does not take ",
            what = ptx__mod_text(refused_mods, refused_mods & PTX__FAMILY ? refused_mods : asked);
        else if (ptx__conflict(asked))
            what = "two modifiers exclude each other";
        else if (!what && ptx__cannot_saturate(op, type, src, asked)) {
            ptx__fail(k, PTX_E_MODIFIER, site, "cvt.sat from %s to %s: no value lies outside",
                      ptx__fact(src)->name, ptx__fact(type)->name);
            return NULL;
        } else if (!what)
            why = " needs one more modifier, such as ",
            what = ptx__mod_text(ptx__missing(ptx__needed(closest), asked), ptx__needed(closest));
        ptx__fail(k, PTX_E_MODIFIER, site, "%s%s%s%s%s%s", closest->name, type ? "." : "",
                  type ? ptx__fact(type)->name : "", why, what,
                  atomic & PTX__ATOM && strchr("fh", ptx__fact(type)->kind)
                      ? "; a loop with ptx_atom_cas computes it"
                      : "");
    }
    return NULL;
}

PTX__NOINLINE static void ptx__append(char *text, size_t *length, const char *s) {
    size_t n = strlen(s);
    memcpy(text + *length, s, n);
    *length += n;
}

/* Set the facts of a form for the verifier. A load from parameter or constant space is as uniform as its
   address. Loads read shared memory only where they name that space. */
static void ptx__set_behaviour(ptx__form *form, unsigned op, ptx_mods mods) {
    const ptx_mods shared = (PTX__M_SHARED | PTX__M_SHARED_CLUSTER) & ~PTX__FAMILY;
    const uint32_t facts = ptx__op_facts[op];
    form->collective = facts & 7u;
    form->result = facts >> 3 & 7u;
    form->effect = facts >> 6 & 15u;
    if (op == PTX_LD && mods & (PTX__M_PARAM | PTX__M_CONST) & ~PTX__FAMILY)
        form->result = PTX__RESULT_SAME;
    if (form->effect == PTX__EFFECT_READ && (op == PTX_LD || facts & PTX__IS_WMMA)
        && !(mods & shared))
        form->effect = PTX__EFFECT_NONE;
}

static int ptx__is_tensor_load(unsigned op) {
    return op >= PTX_TCGEN05_LD_32X32B && op <= PTX_TCGEN05_LD_RED_MAX;
}

/* Write the mnemonic of a form. Returns its length; raises version and sm to what its modifiers need. */
PTX__COLD size_t ptx__write_mnemonic(const ptx__row *row, ptx_mods mods, unsigned type, unsigned src,
                                     unsigned count, char *text, uint32_t *version, uint32_t *sm) {
    const char *name = row->name;
    size_t length = 0;
    unsigned bit;
    int plain = !strchr(name, '%');
    char number[16];
    const ptx_mods layouts = mods >> 63 ? PTX__LAYOUT : PTX__LAYOUTS;
    for (; *name || plain; name++) {
        char what = *name == '%' ? *++name : plain && !*name ? 'a' : 0;
        unsigned shown = what == '2'   ? 2 * count
                         : what == '4' ? 4 * count
                         : what == 'h' ? count / 2
                                       : count / 4;
        if (what == '1') shown = count;
        if (!what) {
            text[length++] = *name;
            continue;
        }
        for (bit = 0; bit < 62 && strchr("mal", what); bit++) {
            ptx__mod_fact mod;
            if (!(mods >> bit & 1) || (what == 'l') != ((layouts >> bit & 1) != 0)) continue;
            mod = ptx__mod(mods, bit);
            if (mod.version > *version) *version = mod.version;
            if (*sm < PTX__ON_FIRST && mod.sm > *sm) *sm = mod.sm;
            ptx__append(text, &length, mod.text);
        }
        if (what == 't' || (what == 'a' && ptx__types_of(row))) {
            text[length++] = '.';
            ptx__append(text, &length, ptx__fact(type)->name);
        }
        if (what == 's' || (what == 'a' && ptx__sources_of(row))) {
            text[length++] = '.';
            ptx__append(text, &length, ptx__fact(src)->name);
        }
        if (!strchr("mtsal", what)) {
            snprintf(number, sizeof number, "%u", shown);
            ptx__append(text, &length, number);
        }
        if (what == 'a') break;
    }
    text[length] = 0;
    return length;
}

/* Check a form against table, target and version cap. Returns its index + 1, or 0 with the error set. */
PTX__COLD uint32_t ptx__new_form(ptx_kernel *k, const char *site, unsigned op, unsigned type, unsigned src,
                                 ptx_mods asked, unsigned n, unsigned n_out, uint64_t key, uint32_t *bucket) {
    ptx_module *m = k->m;
    ptx_mods mods = 0;
    char text[384], signature[PTX__SIGNATURE_MAX];
    unsigned count = 1;
    const ptx__row *row = ptx__find_row(k, site, op, op == PTX_RAW ? 0u : type, op == PTX_RAW ? 0u : src,
                                        asked, n, n_out, &mods, signature, &count);
    uint32_t version, sm;
    size_t length, size;
    ptx__form *form;
    if (!row) return 0;
    version = row->version;
    sm = row->sm;
    length = op == PTX_RAW ? 0 : ptx__write_mnemonic(row, mods, type, src, count, text, &version, &sm);
    if (op == PTX_RAW) text[0] = 0;
    if (count * ptx_type_bytes((ptx_type)type) > 16 && strstr(row->sig, "t+"))
        return (uint32_t)ptx__fail(k, PTX_E_VECTOR, site,
                                   "%s: a vector of %u elements of %s has more than 16 bytes", text, count,
                                   ptx__fact(type)->name);
    if (type == PTX_B128 && mods & PTX_SYS & ~PTX__FAMILY && ptx__allowed(row) >> 63 && version < 84)
        version = 84;
    if (!ptx__require_target(k, site, text, sm) || !ptx__require_version(k, site, text, -1, version)
        || !PTX__ROOM(m, m->forms, 1))
        return 0;
    form = &m->forms.at[m->forms.count];
    size = strlen(signature) + 1;
    if (!PTX__ROOM(m, m->chars, length + 1 + size + PTX__SLACK)) return 0;
    form->signature = (uint32_t)m->chars.count;
    form->slots = form->signature + (uint32_t)(strcspn(signature, "=") + 1);
    if (!signature[0]) form->slots = form->signature;
    memcpy(m->chars.at + form->signature, signature, size);
    m->chars.count += size;
    form->text = (uint32_t)m->chars.count;
    memcpy(m->chars.at + form->text, text, length);
    memset(m->chars.at + form->text + length, 0, PTX__SLACK);
    m->chars.count += length + 1;
    form->pattern = 0;
    form->asked = asked;
    form->key = key;
    form->type = (uint8_t)type;
    form->src = (uint8_t)src;
    form->text_length = (uint32_t)length;
    form->version = version;
    form->row = row;
    form->operands = strchr(row->sig, '=') + 1;
    ptx__set_behaviour(form, op, mods);
    if (op == PTX_RAW) { /* its src and type are facts that the caller states of the text */
        form->collective = (uint8_t)src;
        form->result = PTX__RESULT_LANE;
        form->effect = (uint8_t)type;
    }
    form->seen = 1u << form->effect;
    if (form->collective) form->seen |= PTX__SEEN_CONVERGENT;
    if (ptx__is_tensor_load(op)) form->seen |= PTX__SEEN_TENSOR_LOAD;
    form->has_addresses = row->sig[0] == '~' || form->operands[strcspn(form->operands, "mskbrlgo")];
    form->is_relevant = form->collective || form->effect || form->has_addresses;
    form->next = *bucket;
    *bucket = (uint32_t)++m->forms.count;
    return *bucket;
}

/* The form of an instruction as index + 1, or 0 with the error set. */
static uint32_t ptx__get_counted_form(ptx_kernel *k, const char *site, unsigned op, unsigned type,
                                      unsigned src, ptx_mods mods, unsigned n, unsigned n_out) {
    ptx_module *m = k->m;
    uint32_t low = op | type << 16 | src << 24, high = n | n_out << 16, index, version;
    uint64_t key = low | (uint64_t)high << 32;
    uint32_t hash = (low * 2654435761u) ^ ((uint32_t)(mods >> 32) * 2246822519u)
                    ^ ((uint32_t)mods * 3266489917u) ^ (high * 668265263u);
    uint32_t *bucket = &m->bucket[hash >> 22]; /* PTX__BUCKETS */
    for (index = *bucket; index; index = m->forms.at[index - 1].next)
        if (m->forms.at[index - 1].key == key && m->forms.at[index - 1].asked == mods) break;
    if (!index) index = ptx__new_form(k, site, op, type, src, mods, n, n_out, key, bucket);
    if (!index) return 0;
    version = m->forms.at[index - 1].version;
    if (version > k->version) k->version = version;
    return index;
}
static uint32_t ptx__get_form(ptx_kernel *k, const char *site, unsigned op, unsigned type, unsigned src,
                              ptx_mods mods) {
    return ptx__get_counted_form(k, site, op, type, src, mods, PTX__ANY_COUNT, PTX__ANY_COUNT);
}

/* -- recording -- */

static int ptx__ready(ptx_kernel *k) { return k && !k->m->error.code; }
/* Whether a kernel or function was made before ptx_module_reset. Once a later kernel reuses its memory, this
   can no longer be told. */
static int ptx__is_stale(ptx_kernel *k, const ptx_kernel *of, const char *site) {
    if (!of || of->m != k->m || of->index < k->m->kernels_used) return 0;
    ptx_fail(k->m, PTX_E_FOREIGN, ptx__site(k, site), "%s was made before ptx_module_reset: make it again",
             of->function ? "the function" : "the kernel");
    return 1;
}

static uint32_t ptx__tag_of(unsigned type) {
    static const uint8_t tag[17] = {PTX__W_PRED, PTX__W_8, PTX__W_16, 0, PTX__W_32, 0, 0, 0, PTX__W_64,
                                    0,           0,        0,         0, 0,         0, 0, PTX__W_128};
    unsigned bits = ptx__fact(type)->bits;
    return bits ? tag[bits / 8] : (uint32_t)PTX__W_64;
}

/* Note that the instruction recorded next defines that register. */
PTX__INLINE void ptx__note_definition(ptx_kernel *k, uint32_t tag, uint32_t index) {
    ptx__definition definition;
    definition.instruction = (uint32_t)k->ins.count;
    definition.boundaries = k->boundaries;
    k->definitions[tag].at[index] = definition;
}
static uint32_t ptx__new_word(ptx_kernel *k, const char *site, uint32_t tag) {
    uint32_t index = k->registers[tag]++;
    if (index == PTX__INDEX_MAX) ptx__fail(k, PTX_E_MEMORY, site, "more than 2^27 registers");
    k->definitions[tag].count = index;
    if (!k->m->error.code && PTX__ROOM_FOR_ONE(k->m, k->definitions[tag]))
        ptx__note_definition(k, tag, index);
    return PTX__WORD(tag, index);
}
/* The handle of a register of this kernel. */
static ptx_val ptx__own_handle(const ptx_kernel *k, uint32_t word, unsigned type) {
    ptx_val v;
    v.handle = PTX__HANDLE(PTX__H_REGISTER, type, (uint64_t)k->owner << 32 | word);
    return v;
}
static ptx_val ptx__new_register(ptx_kernel *k, const char *site, unsigned type) {
    return ptx__own_handle(k, ptx__new_word(k, site, ptx__tag_of(type)), type);
}
static ptx_val ptx__wide(ptx_kernel *k, unsigned type, uint64_t bits) {
    if (!PTX__ROOM(k->m, k->wide, 1)) return ptx__none();
    k->wide.at[k->wide.count] = bits;
    return ptx__own_handle(k, (uint32_t)k->wide.count++, type);
}
PTXGEN_API ptx_val ptx_wide_(ptx_kernel *k, const char *site, ptx_type type, uint64_t bits) {
    if (!ptx__ready(k)) return ptx__none();
    if (type == PTX_U64 || type == PTX_S64 || type == PTX_F64) return ptx__wide(k, type, bits);
    return PTX__REFUSE(k, PTX_E_TYPE, site, "ptx_wide makes numbers of u64, s64 and f64, not of %s",
                       ptx_type_name(type));
}
/* Encode a changed operand: a register, a parameter block or an integer. */
static ptx_val ptx__operand_handle(ptx_kernel *k, const ptx__operand *o) {
    ptx_val v;
    if (o->kind == PTX__REG || o->kind == PTX__PARAM_BLOCK) return ptx__register_handle(o);
    v.handle = o->kind == PTX__IMM ? ptx__integer_handle((ptx_type)o->type, o->bits) : 0;
    return o->kind == PTX__IMM && PTX__H_KIND(v.handle) == PTX__H_NOTHING ? ptx__wide(k, o->type, o->bits)
                                                                          : v;
}

/* Whether a handle is of this kernel and of a register that exists. */
static int ptx__is_own(const ptx_kernel *k, const ptx__operand *v) {
    uint32_t word = (uint32_t)v->bits;
    if (v->owner != k->owner || v->type >= PTX__TYPE_COUNT || v->space > PTX_SHARED_CLUSTER) return 0;
    return v->kind == PTX__REG           ? PTX__INDEX(word) < k->registers[PTX__TAG(word)]
           : v->kind == PTX__PARAM_BLOCK ? v->bits < k->params.count
                                         : 0;
}
/* The same; sets the error if not. */
static int ptx__require_own(ptx_kernel *k, const char *site, ptx__operand v, const char *what) {
    if (ptx__is_own(k, &v)) return 1;
    if (v.kind != PTX__REG && v.kind != PTX__PARAM_BLOCK) {
        int number = v.kind == PTX__IMM || v.kind == PTX__IMM_FLOAT;
        if (v.kind == PTX__OUT_OF_RANGE && (v.bits & 255) == PTX__WHY_LARGE_OFFSET)
            ptx__fail(k, PTX_E_RANGE, site, "%s is %s: %lld", what, ptx__describe(v),
                      (long long)((int64_t)(v.bits << 3) >> 11));
        return ptx__fail(k, v.kind == PTX__OUT_OF_RANGE ? PTX_E_RANGE : PTX_E_HANDLE, site,
                         "%s is %s%s where a register is needed%s", what,
                         number && v.type ? "an immediate of type " : "", ptx__describe(v),
                         number ? ": ptx_mov(k, x) makes one of an immediate with a type, such as ptx_u32(1)"
                                : "");
    }
    if (v.owner != k->owner)
        return ptx__fail(k, PTX_E_FOREIGN, site, "%s (%s) belongs to another kernel", what, ptx__describe(v));
    if (v.type >= PTX__TYPE_COUNT || v.space > PTX_SHARED_CLUSTER || v.kind == PTX__PARAM_BLOCK)
        return ptx__fail(k, PTX_E_HANDLE, site, "%s is no handle that this kernel gave", what);
    return ptx__fail(k, PTX_E_HANDLE, site, "%s is no register of this kernel", what);
}

/* The same for a value in a register, which the address of a parameter block is not. */
PTX__COLD int ptx__require_register(ptx_kernel *k, const char *site, ptx__operand v, const char *what) {
    if (!ptx__require_own(k, site, v, what)) return 0;
    return v.kind == PTX__REG
           || ptx__fail(k, PTX_E_TYPE, site, "%s is %s where a register is needed", what, ptx__describe(v));
}

/* Make room for one more instruction of that many words, so that pushing them needs no checks. */
#define PTX__MEMO_WORDS 16 /* at least the words of any instruction that a memo records */
static int ptx__grow_record(ptx_kernel *k, size_t words) {
    if (k->ins.count == k->ins.capacity) { /* room for as many marks as instructions */
        if (!PTX__ROOM(k->m, k->marked, k->ins.capacity + k->ins.capacity / 2 + 16 - k->marked.count))
            return 0;
    }
    if (!PTX__ROOM(k->m, k->ins, 1)) return 0;
    if (words > k->words.capacity - k->words.count && !PTX__ROOM(k->m, k->words, words + PTX__MEMO_WORDS))
        return 0;
    /* Each register takes a word: with fewer words than PTX__INDEX_MAX, a memo need not count registers. */
    words = k->words.capacity < PTX__INDEX_MAX ? k->words.capacity : PTX__INDEX_MAX;
    words = words > k->words.count ? (words - k->words.count) / PTX__MEMO_WORDS : 0;
    if (words > k->ins.capacity - k->ins.count) words = k->ins.capacity - k->ins.count;
    k->reserved_end = (int64_t)(k->ins.count + words);
    return 1;
}
PTX__INLINE int ptx__reserve(ptx_kernel *k, size_t words) {
    return ((int64_t)k->ins.count < k->reserved_end && words <= PTX__MEMO_WORDS)
           || ptx__grow_record(k, words);
}
/* Mark the instruction that is recorded next. There is room for as many marks as instructions. */
PTX__INLINE void ptx__mark(ptx_kernel *k) { k->marked.at[k->marked.count++] = (uint32_t)k->ins.count; }
static void ptx__push_word(ptx_kernel *k, uint32_t word) { k->words.at[k->words.count++] = word; }

/* Whether a register is old: defined after the first block and before the last label. */
PTX__INLINE uint32_t ptx__is_old(const ptx_kernel *k, uint32_t word) {
    return PTX__INDEX(word) - k->first_block_registers[PTX__TAG(word)] < k->old_registers[PTX__TAG(word)];
}

/* List the old registers that the last instruction reads: the verifier must check that their definitions
   dominate it. Those of other registers do: a handle exists only after its definition, code between two
   labels is entered only at its start, and the first block dominates all. An entry: the register's word; bit
   32 set for an assignment; the instruction above. Every word is written, but the end of the list moves only
   past an old register: this needs no branch. */
static void ptx__list_uses(ptx_kernel *k) {
    const ptx__ins *ins = &k->ins.at[k->ins.count - 1];
    const uint32_t *x = k->words.at + ins->words + ins->results, *last = x + ins->count - ins->results;
    const uint64_t here = (uint64_t)(k->ins.count - 1) << 33;
    uint32_t word = PTX__PREDICATE(ins->guard);
    uint64_t *at;
    if (k->uses.capacity - k->uses.count <= ins->count && !PTX__ROOM(k->m, k->uses, ins->count + 1u)) return;
    at = k->uses.at + k->uses.count;
    *at = here | word;
    at += ins->guard && ptx__is_old(k, word);
    for (; x < last && ins->kind == PTX__I_PLAIN; x++) {
        word = *x;
        if (PTX__TAG(word) >= PTX__REGISTER_CLASSES) { /* the rarer case */
            if (PTX__IS_LONG(word)) x += 2;
            if (PTX__TAG(word) == PTX__W_MEM) word = x[-1];
            if (PTX__TAG(word) == PTX__W_PRED_NOT) word = PTX__PREDICATE(word);
        }
        *at = here | word;
        at += ptx__is_old(k, word);
    }
    k->uses.count = (size_t)(at - k->uses.at);
}
/* List that the last instruction assigns to that register, which was defined before. */
static void ptx__list_assignment(ptx_kernel *k, uint32_t word) {
    if (PTX__ROOM_FOR_ONE(k->m, k->uses))
        k->uses.at[k->uses.count++] = (uint64_t)(k->ins.count - 1) << 33 | (uint64_t)1 << 32 | word;
}

/* Count an instruction that is not plain: it may end a block, and a label begins one. */
static void ptx__count_boundary(ptx_kernel *k, unsigned kind) {
    int c;
    for (c = 1; c < PTX__REGISTER_CLASSES && k->boundaries == 0; c++)
        k->first_block_registers[c] = k->registers[c];
    for (c = 1; c < PTX__REGISTER_CLASSES && kind == PTX__I_LABEL; c++)
        k->old_registers[c] = k->registers[c] - k->first_block_registers[c];
    k->boundaries++;
}

/* Append the instruction whose words begin at `words`. old: its sources may be old, see ptx__is_old. The
   caller lists assignments. */
PTX__INLINE ptx__ins *ptx__commit_if(ptx_kernel *k, const char *site, unsigned kind, uint32_t form,
                                     size_t words, size_t results, uint32_t old) {
    ptx__ins *ins;
    if (kind != PTX__I_PLAIN || k->guard || k->m->forms.at[form].is_relevant) ptx__mark(k);
    ins = &k->ins.at[k->ins.count++];
    ins->site = site;
    ins->form = form;
    ins->words = (uint32_t)words;
    ins->count = (uint16_t)(k->words.count - words);
    ins->kind = (uint8_t)kind;
    ins->results = (uint8_t)results;
    ins->guard = k->guard;
    k->reserved_end -= ins->count;
    if (kind != PTX__I_PLAIN) ptx__count_boundary(k, kind);
    if (old) ptx__list_uses(k);
    if (kind == PTX__I_PLAIN) k->seen |= k->m->forms.at[form].seen;
    k->guard = 0;
    k->verified = 0;
    return ins;
}
/* The same out of line: for any instruction, and for one without operands. */
PTX__NOINLINE static void ptx__commit(ptx_kernel *k, const char *site, unsigned kind, uint32_t form,
                                      size_t words, size_t results) {
    ptx__commit_if(k, site, kind, form, words, results, 1);
}
static int ptx__commit_other(ptx_kernel *k, const char *site, unsigned kind, uint32_t form, uint32_t what) {
    if (!ptx__reserve(k, 0)) return 0;
    ptx__commit_if(k, site, kind, form, k->words.count, 0, k->guard)->words = what;
    return 1;
}

/* Refuse a guard before an instruction that defines a value: where it is false, there would be none. */
PTX__NOINLINE static int ptx__require_unguarded(ptx_kernel *k, const char *site, const char *name) {
    if (!k->guard) return 1;
    return ptx__fail(
        k, PTX_E_GUARD, site,
        "%s makes a value, which would be undefined where the guard of %s is false; make it before "
        "ptx_guard, which is for the one instruction after it, or use selp, ld_if, st_if or ptx_set",
        name, k->guard_site);
}

static int ptx__fits(uint64_t bits, unsigned type) {
    unsigned width = ptx__fact(type)->bits;
    int64_t s = (int64_t)bits;
    if (width >= 64) return 1;
    if (ptx__fact(type)->kind == 's')
        return s >= -((int64_t)1 << (width - 1)) && s < (int64_t)1 << (width - 1);
    if (ptx__fact(type)->kind == 'b' && s < 0) return s >= -((int64_t)1 << (width - 1));
    return bits >> width == 0;
}

/* Rounds a double, given by its bits, to the nearest float. Returns 0 if a finite value becomes infinite. */
static int ptx__f32_word(uint64_t bits, uint32_t *word) {
    double value;
    float f;
    memcpy(&value, &bits, sizeof value);
    f = (float)value;
    memcpy(word, &f, sizeof *word);
    if ((*word & 0x7fffffffu) > 0x7f800000u) *word = 0x7fffffffu; /* the same NaN on every machine */
    return (*word & 0x7fffffffu) != 0x7f800000u || (bits << 1) == (uint64_t)0x7ff << 53;
}

/* One operand of the instruction that is being recorded. */
typedef struct ptx__use {
    ptx_kernel *k;
    const char *site;
    const ptx__row *row;
    unsigned index; /* from 1 on */
} ptx__use;
static ptx__use ptx__use_of(ptx_kernel *k, const char *site, unsigned op) {
    ptx__use u;
    u.k = k;
    u.site = site;
    u.row = &ptx__rows[k->m->first_row[op]];
    u.index = 1;
    return u;
}
static const char *ptx__use_name(const ptx__use *u) {
    return *u->row->name ? u->row->name : "a raw instruction";
}
/* Set the error of an operand: the message begins with "operand 2 of add". Returns 0. */
PTX__COLD int ptx__fail_operand(const ptx__use *u, ptx_code code, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return ptx__fail(u->k, code, u->site, "operand %u of %s%s", u->index, ptx__use_name(u), what);
}

/* Check and push an immediate as an operand of that type. */
static int ptx__push_imm(const ptx__use *u, ptx__operand v, unsigned type) {
    char kind = ptx__fact(type)->kind;
    uint64_t bits = v.bits;
    uint32_t tag = PTX__W_UNSIGNED;
    if (v.kind == PTX__IMM_FLOAT) {
        if (v.type == PTX_F32) {
            uint32_t word;
            double value;
            memcpy(&value, &bits, sizeof value);
            if (!ptx__f32_word(bits, &word))
                return ptx__fail_operand(u, PTX_E_RANGE, ": %g does not fit f32", value);
            bits = word;
            tag = PTX__W_F32;
        } else {
            if ((bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull) bits = 0x7fffffffffffffffull;
            tag = PTX__W_F64;
        }
    } else {
        if (kind == 's' || (kind == 'b' && (int64_t)bits < 0)) tag = PTX__W_SIGNED;
        if (!ptx__fits(bits, v.type ? v.type : type) || !ptx__fits(bits, type)
            || (v.type == PTX_NONE && kind == 'u' && (int64_t)bits < 0))
            return ptx__fail_operand(u, PTX_E_RANGE, ": %lld does not fit %s", (long long)bits,
                                     ptx__fact(v.type ? v.type : type)->name);
    }
    ptx__push_word(u->k, PTX__WORD(tag, 0));
    ptx__push_word(u->k, (uint32_t)bits);
    ptx__push_word(u->k, (uint32_t)(bits >> 32));
    return 1;
}

static const ptx__slot_limit *ptx__limit_of(char letter) {
    size_t i;
    for (i = 0; i < sizeof ptx__slot_limits / sizeof ptx__slot_limits[0]; i++)
        if (ptx__slot_limits[i].letter == letter) return &ptx__slot_limits[i];
    return NULL;
}

/* Check an immediate against the limits of its slot, if it has any. */
PTX__COLD int ptx__check_limit(const ptx__use *u, ptx__operand v, char letter, unsigned type) {
    const ptx__slot_limit *limit = ptx__limit_of(letter);
    int64_t x = (int64_t)v.bits, high;
    int ok;
    if (!limit) return 1;
    high = limit->high;
    if (high == PTX__WIDTH || high == PTX__BELOW_WIDTH)
        high = ptx__fact(type)->bits - (high == PTX__BELOW_WIDTH);
    ok = x >= limit->low && x <= high;
    if (letter == 'O') ok = (uint32_t)x != 0;
    if (ok && limit->step == PTX__BITS_OF)
        ok = (x & ~high) == 0;
    else if (ok && limit->step > 1)
        ok = (x - limit->low) % limit->step == 0;
    if (ok && limit->step == 0) ok = (x & (x - 1)) == 0;
    if (ok) return 1;
    if (limit->high == high || letter == 'O')
        return ptx__fail_operand(u, PTX_E_RANGE, " must be %s, not %lld", limit->what, (long long)x);
    return ptx__fail_operand(u, PTX_E_RANGE, " must be %s from 0 to %lld, not %lld", limit->what,
                             (long long)high, (long long)x);
}

/* Whether ptxas refuses an immediate as this operand: see PTX__REGISTERS. */
static int ptx__register_only(const ptx__use *u) {
    switch (ptx__op_facts[u->row->op] & (PTX__REGISTER_1 | PTX__REGISTERS_2 | PTX__REGISTERS)) {
    case 0: return 0;
    case PTX__REGISTER_1: return u->index == 1;
    case PTX__REGISTERS_2: return u->index >= 2;
    case PTX__REGISTERS_3: return u->index >= 3;
    default: return 1;
    }
}

/* Check a source operand against the slot's type and push it. loose: any type of that width will do. */
static int ptx__push_checked_source(const ptx__use *u, ptx__operand v, unsigned type, int loose) {
    const ptx__type_fact *want = ptx__fact(type), *have = ptx__fact(v.type);
    const char *where = "";
    int fits =
        v.type == type || (have->bits == want->bits && (loose || have->kind == 'b' || want->kind == 'b'));
    if (v.kind == PTX__REG && v.owner == u->k->owner && fits) {
        uint32_t word = (uint32_t)v.bits, tag = PTX__TAG(word);
        if (PTX__INDEX(word) >= u->k->registers[tag]) return ptx__require_own(u->k, u->site, v, "a source");
        if (v.flags & PTX__INVERTED) word = PTX__WORD(PTX__W_PRED_NOT, PTX__INDEX(word));
        ptx__push_word(u->k, word);
        return 1;
    }
    if (v.kind == PTX__IMM || v.kind == PTX__IMM_FLOAT) {
        int packed = type == PTX_U16X2 || type == PTX_S16X2 || ptx__register_only(u);
        int integer = (want->kind == 'u' || want->kind == 's' || want->kind == 'b') && !packed;
        if (packed) fits = 0, where = " in a register";
        if (v.kind == PTX__IMM_FLOAT && want->kind == 'b' && ptx__op_facts[u->row->op] & PTX__NO_FLOATS)
            fits = 0;
        if (v.kind == PTX__IMM ? integer && (v.type == PTX_NONE || fits) : fits)
            return ptx__push_imm(u, v, type);
    } else if (v.kind != PTX__REG || v.owner != u->k->owner) {
        char what[32];
        snprintf(what, sizeof what, "operand %u", u->index);
        ptx__require_own(u->k, u->site, v, what);
    }
    return ptx__fail_operand(u, PTX_E_TYPE, " is %s, expected %s%s%s", ptx__describe(v), want->name, where,
                             *where ? "" : ptx__conversion_hint(v, type).s);
}

/* The same, fast for a register of exactly that type, as most operands are. */
static int ptx__push_source(const ptx__use *u, ptx__operand v, unsigned type, int loose) {
    uint32_t tag = PTX__TAG((uint32_t)v.bits);
    if (v.kind == PTX__REG && v.type == type && v.owner == u->k->owner && !(v.flags & PTX__INVERTED)
        && PTX__INDEX((uint32_t)v.bits) < u->k->registers[tag]) {
        ptx__push_word(u->k, (uint32_t)v.bits);
        return 1;
    }
    return ptx__push_checked_source(u, v, type, loose);
}

/* A request in one word: the instruction, its types (PTX_NONE: from the operands), the number of its
   operands. PTX__TO_VARIABLE: the result is assigned to a variable, which follows the operands. */
#define PTX__REQUEST(op, type, src_type, n)                                                                  \
    ((uint32_t)(op) | (uint32_t)(type) << 12 | (uint32_t)(src_type) << 19 | (uint32_t)(n) << 26 | 1u << 30)
#define PTX__TO_VARIABLE (1u << 29)
#define PTX__SOURCE_COUNT(what) ((what) >> 26 & 7u)
static ptx_val ptx__record(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods, ptx_val a,
                           ptx_val b);

/* Move an operand that PTX cannot print in that slot to a register: a 16-bit float immediate, an inverted
   predicate in a plain slot, an address with an offset where no memory is accessed. */
static ptx__operand ptx__materialize(ptx_kernel *k, const char *site, ptx__operand v, char slot) {
    uint32_t form, bits = 0, guard = k->guard;
    size_t at;
    ptx_val d;
    if (v.kind == PTX__REG_OFFSET && !strchr("mskbrlgoa", slot)) { /* address + offset, as a number */
        int64_t offset;
        v = ptx__split_address(v, &offset);
        if (ptx__fact(v.type)->bits == 32 && ptx__fact(v.type)->kind != 's') offset &= 0xffffffff;
        d.handle = ptx__integer_handle((ptx_type)v.type, (uint64_t)offset);
        k->guard = 0;
        d = ptx__record(k, site, PTX__REQUEST(PTX_ADD, 0, 0, 2), 0, ptx__register_handle(&v), d);
        k->guard = guard;
        return ptx__read_handle(k, d);
    }
    if (v.kind == PTX__IMM_FLOAT && (v.type == PTX_F16 || v.type == PTX_BF16)) {
        double value;
        memcpy(&value, &v.bits, sizeof value);
        if (!ptx__narrow(value, v.type == PTX_F16 ? 5 : 8, v.type == PTX_F16 ? 10 : 7, &bits)) {
            ptx__fail(k, PTX_E_RANGE, site, "%g does not fit %s", value, ptx__fact(v.type)->name);
            return v;
        }
        form = ptx__get_form(k, site, PTX_MOV, PTX_B16, 0, 0);
    } else if (v.kind == PTX__REG && v.flags & PTX__INVERTED && slot != 'p') {
        if (!ptx__require_own(k, site, v, "a predicate")) return v;
        if (v.type != PTX_PRED) {
            ptx__fail(k, PTX_E_HANDLE, site, "the opposite of %s, which is no predicate",
                      ptx__fact(v.type)->name);
            return v;
        }
        form = ptx__get_form(k, site, PTX_NOT, PTX_PRED, 0, 0);
    } else
        return v;
    if (!form || !ptx__reserve(k, 4)) return v;
    d = ptx__new_register(k, site, v.type);
    at = k->words.count;
    ptx__push_word(k, (uint32_t)d.handle);
    if (v.kind == PTX__REG)
        ptx__push_word(k, (uint32_t)v.bits);
    else {
        ptx__push_word(k, PTX__WORD(PTX__W_HEX16, 0));
        ptx__push_word(k, bits);
        ptx__push_word(k, 0);
    }
    k->guard = 0;
    ptx__commit(k, site, PTX__I_PLAIN, form - 1, at, 1);
    k->guard = guard;
    return ptx__read_handle(k, d);
}
/* Move an address with an offset to a register; other values stay as they are. */
static ptx__operand ptx__materialize_address(ptx_kernel *k, const char *site, ptx_val *v) {
    ptx__operand o = ptx__read_handle(k, *v);
    if (o.kind != PTX__REG_OFFSET) return o;
    o = ptx__materialize(k, site, o, 't');
    if (ptx__ready(k)) *v = ptx__register_handle(&o);
    return o;
}

/* The type that a plain slot wants. */
static unsigned ptx__slot_type(char slot, unsigned type, unsigned src_type, ptx__operand v) {
    switch (slot) {
    case 't': return type;
    case 'w': return ptx__wider(type);
    case 'c': return src_type;
    case 'p': return PTX_PRED;
    default: return v.kind == PTX__IMM && v.type == PTX_NONE ? PTX_B32 : PTX_U32; /* u */
    }
}

/* The space of a result: that of its address operand, where the instruction computes an address. */
static unsigned ptx__space_of(unsigned op, const ptx__operand *src, unsigned n) {
    switch (op) {
    case PTX_MAPA: return PTX_SHARED_CLUSTER;
    case PTX_ALLOCA: return PTX_LOCAL;
    case PTX_ADD: return src[0].space && src[1].space ? 0u : src[0].space | src[1].space;
    case PTX_SUB: return src[1].space ? 0u : src[0].space;
    case PTX_MAD: return n == 3 ? src[2].space : 0u;
    case PTX_MOV: return src[0].space;
    case PTX_AND: return src[1].kind == PTX__IMM && src[1].bits < 4096 ? 0u : src[0].space; /* 0: remainder */
    case PTX_SELP:
    case PTX_MIN:
    case PTX_MAX: return src[0].space == src[1].space ? src[0].space : 0u;
    default: return 0;
    }
}

static void ptx__emit(ptx_kernel *k, const char *site, unsigned op, ptx_mods mods, unsigned type,
                      unsigned src_type, const ptx_val *src, unsigned n, ptx_val *out, unsigned n_out,
                      const ptx_var *into);

/* -- memos --
   Most instructions of a kernel resemble an earlier one. Their checks depend only on the instruction, its
   modifiers and the kinds of its operands: the upper 16 bits of each handle, which are the same for any
   owner, register and small number. So the first instruction of such a request leaves a memo of its checked
   form. For the next ones, ptx__record_n checks owners and registers, and immediates against an upper limit
   in the memo. */

/* The kind of an operand. */
static uint32_t ptx__kind_of(ptx_val v) { return (uint32_t)(v.handle >> 48); }
/* The index in module.memo for such a request. */
static uint32_t ptx__memo_index(uint32_t request, ptx_mods mods, uint64_t kinds) {
    return (uint32_t)(((kinds ^ mods) + (uint64_t)request * 0x9e3779b1u) * 0x9e3779b97f4a7c15ull >> 55);
}
static uint64_t ptx__kinds_of(const ptx_val *src) {
    return src[0].handle >> 48 | src[1].handle >> 48 << 16 | src[2].handle >> 48 << 32
           | src[3].handle >> 48 << 48;
}

/* A number such that every immediate from 0 to it fits the type. */
static uint32_t ptx__type_maximum(unsigned want) {
    const ptx__type_fact *fact = ptx__fact(want);
    uint32_t most = fact->bits > 32 ? UINT32_MAX : (uint32_t)(((uint64_t)1 << fact->bits) - 1);
    if (fact->kind == 's' && fact->bits <= 32) most >>= 1;
    return most;
}

/* A number such that every immediate from 0 to it is within the limits of its slot; 0 if there is none. 15:
   the slot's limit is a width, and no type has fewer bits than 16. */
static uint32_t ptx__slot_maximum(char letter) {
    const ptx__slot_limit *l = ptx__limit_of(letter);
    if (!l || l->step != 1 || l->low > 0) return 0;
    return l->high < 0 ? 15u : (uint32_t)l->high;
}

/* Keep a memo of the last instruction, which ptx__record_new recorded for this request. None is kept unless
   its words are just a result and these operands, unchanged. */
static void ptx__keep_memo(ptx_kernel *k, uint32_t request, ptx_mods mods, const ptx_val *src,
                           ptx_val result) {
    const ptx__ins *ins = &k->ins.at[k->ins.count - 1];
    const uint32_t *w = k->words.at + ins->words + ins->results, *end = k->words.at + k->words.count;
    const ptx__form *form = &k->m->forms.at[ins->form];
    const char *slot = k->m->chars.at + form->slots;
    const unsigned op = request & 0xfffu, n = PTX__SOURCE_COUNT(request);
    const int into = (request & PTX__TO_VARIABLE) != 0;
    ptx__memo memo;
    uint32_t i, index;
    if (ins->kind != PTX__I_PLAIN || ins->results > 1 || ins->results != (into || ptx__is_register(result)))
        return;
    if (ins->results && PTX__TAG(w[-1]) >= PTX__REGISTER_CLASSES) return;
    memset(&memo, 0, sizeof memo);
    memo.request = request;
    memo.kinds = ptx__kinds_of(src);
    index = ptx__memo_index(request, mods, memo.kinds);
    for (i = 0; i < n; i++, w++) {
        const ptx__operand v = ptx__read_handle(k, src[i]);
        if (w == end) return;
        if (PTX__TAG(*w) == PTX__W_MEM) { /* every offset is right where no alignment is needed */
            if (!strchr("skg", slot[i]) || end - w < 3 || (v.kind != PTX__REG && v.kind != PTX__REG_OFFSET)
                || v.bits != (w[1] | (uint64_t)w[2] << 32))
                return;
            memo.tag[i] = PTX__W_MEM;
            w += 2;
            continue;
        }
        if (v.kind == PTX__REG) {
            if (*w != (uint32_t)v.bits || v.flags & PTX__INVERTED) return;
            continue;
        }
        memo.tag[i] = (uint8_t)PTX__TAG(*w);
        if (memo.tag[i] < PTX__W_UNSIGNED || memo.tag[i] > PTX__W_F32 || end - w < 3) return;
        if (v.kind == PTX__IMM) {
            uint32_t own = UINT32_MAX;
            if (PTX__H_KIND(src[i].handle) != PTX__H_INTEGER) return;
            memo.max_immediate[i] = ptx__type_maximum(ptx__slot_type(slot[i], form->type, form->src, v));
            if (v.type) own = ptx__type_maximum(v.type);
            if (own < memo.max_immediate[i]) memo.max_immediate[i] = own;
            own = strchr("twcpu", slot[i]) ? UINT32_MAX : ptx__slot_maximum(slot[i]);
            if ((!k->m->is_plain[op] && !strchr("tLN", slot[i]))
                || (op == PTX_AND && ptx__read_handle(k, src[0]).space))
                own = 0; /* the number decides which target is needed, or whether the result is an address */
            if (own < memo.max_immediate[i]) memo.max_immediate[i] = own;
            if (v.bits > memo.max_immediate[i] || !own) {
                if (v.bits >> 32 || w[1] != (uint32_t)v.bits) return;
                memo.tag[i] |= PTX__EXACT;
                memo.max_immediate[i] = w[1];
            } else if ((op == PTX_DIV || op == PTX_REM) && i == 1)
                memo.tag[i] |= PTX__NOT_ZERO;
        } else if (v.kind != PTX__IMM_FLOAT || v.type != PTX_F32)
            return;
        w += 2;
    }
    if (w != end) return;
    memo.mods = mods;
    memo.form = ins->form;
    memo.version = (uint8_t)form->version;
    memo.result = into || !ins->results ? 0 : (uint64_t)ptx__kind_of(result) << 48;
    memo.result_tag = (uint8_t)(memo.result ? PTX__TAG((uint32_t)result.handle) : 0);
    memo.seen = form->seen;
    memo.results = ins->results;
    memo.is_relevant = form->is_relevant;
    k->m->memo[index ^ 1] = k->m->memo[index]; /* two entries: the other one keeps the previous memo */
    k->m->memo[index] = memo;
}

/* Not 0: the register is not this kernel's. */
PTX__INLINE uint32_t ptx__is_foreign(const ptx_kernel *k, ptx_val v) {
    return ((uint32_t)(v.handle >> 32 & 0xffffu) ^ k->owner)
           | (PTX__INDEX((uint32_t)v.handle) >= k->registers[PTX__TAG((uint32_t)v.handle)]);
}

/* Write the three words of source v to w, as ptx__copy_operand does. */
PTX__NOINLINE static uint32_t *ptx__copy_long_operand(const ptx_kernel *k, const ptx__memo *memo, unsigned i,
                                                      ptx_val v, uint32_t *w, uint32_t *wrong,
                                                      uint32_t *old) {
    const uint32_t tag = memo->tag[i];
    const uint64_t number = v.handle & PTX__LOW55;
    w[0] = PTX__WORD(tag & ~(PTX__EXACT | PTX__NOT_ZERO), 0);
    w[1] = (uint32_t)number;
    w[2] = 0;
    if (tag == PTX__W_MEM) {
        const ptx__operand o = ptx__read_handle(k, v);
        *wrong |= (o.owner ^ k->owner)
                  | (PTX__INDEX((uint32_t)o.bits) >= k->registers[PTX__TAG((uint32_t)o.bits)]);
        *old |= ptx__is_old(k, (uint32_t)o.bits);
        w[1] = (uint32_t)o.bits;
        w[2] = (uint32_t)(o.bits >> 32);
    } else if (tag == PTX__W_F32)
        *wrong |= !ptx__f32_word(v.handle << 9, &w[1]);
    else
        *wrong |= tag & PTX__EXACT ? number != memo->max_immediate[i]
                                   : (number > memo->max_immediate[i]) | (tag & PTX__NOT_ZERO && !number);
    return w + 3;
}

/* Write the words of source v to w, as the memo has them for source i. Returns their end. Sets *old if v is
   an old register, *wrong if it does not match the memo: then the words are to be ignored. */
PTX__INLINE uint32_t *ptx__copy_operand(const ptx_kernel *k, const ptx__memo *memo, unsigned i, ptx_val v,
                                        uint32_t *w, uint32_t *wrong, uint32_t *old) {
    if (memo->tag[i]) return ptx__copy_long_operand(k, memo, i, v, w, wrong, old);
    *wrong |= ptx__is_foreign(k, v);
    *old |= ptx__is_old(k, (uint32_t)v.handle);
    *w = (uint32_t)v.handle;
    return w + 1;
}

static ptx_val ptx__record_new(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods,
                               const ptx_val *src);
static int ptx__check_value(ptx_kernel *k, const char *site, const char *what, ptx__operand *v,
                            unsigned type);

/* Record a plain instruction, by a memo if one fits. It has at most `most` sources, a constant of the caller.
   With PTX__TO_VARIABLE, s1 is the variable. */
PTX__INLINE ptx_val ptx__record_n(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods,
                                  unsigned most, ptx_val s0, ptx_val s1, ptx_val s2, ptx_val s3) {
    const unsigned n = PTX__SOURCE_COUNT(request);
    const uint64_t kinds =
        s0.handle >> 48 | s1.handle >> 48 << 16 | s2.handle >> 48 << 32 | s3.handle >> 48 << 48;
    uint32_t wrong = 0, old, *w, *first, at;
    const ptx__memo *memo;
    ptx__ins *ins;
    ptx_val d, src[PTX__MEMO_MAX];
    if (!k) return ptx__none();
    memo = &k->m->memo[at = ptx__memo_index(request, mods, kinds)];
    if (memo->request != request || memo->mods != mods || memo->kinds != kinds) memo = &k->m->memo[at ^ 1];
    if (memo->request != request || memo->mods != mods || memo->kinds != kinds || (k->guard && memo->result)
        || (int64_t)k->ins.count >= k->reserved_end
        || k->registers[memo->result_tag] == k->definitions[memo->result_tag].capacity)
        goto no_memo;
    first = k->words.at + k->words.count;
    w = first + memo->results;
    old = k->guard;
    if (n > 0) w = ptx__copy_operand(k, memo, 0, s0, w, &wrong, &old);
    if (n > 1) w = ptx__copy_operand(k, memo, 1, s1, w, &wrong, &old);
    if (most > 2 && n > 2) w = ptx__copy_operand(k, memo, 2, s2, w, &wrong, &old);
    if (most > 3 && n > 3) w = ptx__copy_operand(k, memo, 3, s3, w, &wrong, &old);
    if (request & PTX__TO_VARIABLE) wrong |= ptx__is_foreign(k, s1);
    if (wrong) goto no_memo;
    if (memo->is_relevant | k->guard) ptx__mark(k);
    d = ptx__none();
    if (memo->result) {
        const uint32_t index = k->registers[memo->result_tag]++;
        ptx__note_definition(k, memo->result_tag, index);
        *first = PTX__WORD(memo->result_tag, index);
        d.handle = memo->result | (uint64_t)k->owner << 32 | *first;
    } else if (request & PTX__TO_VARIABLE) {
        d = s1;
        *first = (uint32_t)d.handle;
    }
    ins = &k->ins.at[k->ins.count++];
    ins->site = site;
    ins->form = memo->form;
    ins->words = (uint32_t)k->words.count;
    ins->guard = k->guard;
    ins->count = (uint16_t)(w - first);
    ins->kind = PTX__I_PLAIN;
    ins->results = memo->results;
    k->words.count += (size_t)(w - first);
    k->seen |= memo->seen;
    k->guard = 0;
    k->verified = 0;
    if (memo->version > k->version) k->version = memo->version;
    if (old) ptx__list_uses(k);
    if (request & PTX__TO_VARIABLE) ptx__list_assignment(k, (uint32_t)d.handle);
    return d;
no_memo:
    src[0] = s0, src[1] = s1, src[2] = s2, src[3] = s3;
    return ptx__record_new(k, site, request, mods, src);
}
/* Sources are passed by value: to write an array and read it back at once is slow. */
static ptx_val ptx__record(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods, ptx_val a,
                           ptx_val b) {
    return ptx__record_n(k, site, request, mods, 2, a, b, ptx__none(), ptx__none());
}
static ptx_val ptx__record_four(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods, ptx_val a,
                                ptx_val b, ptx_val c, ptx_val d) {
    return ptx__record_n(k, site, request, mods, 4, a, b, c, d);
}
static ptx_val ptx__record_one(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods, ptx_val a) {
    return ptx__record(k, site, request, mods, a, ptx__none());
}

/* Whether selp or slct chooses between a float and another kind of number, whose bits would be misread. An
   integer immediate without a type is one beside a single float. */
static int ptx__mixes_kinds(unsigned op, const ptx__operand *src) {
    const char kind = ptx__fact(src[0].type)->kind, other = ptx__fact(src[1].type)->kind;
    if ((op != PTX_SELP && op != PTX_SLCT) || src[0].type == src[1].type) return 0;
    if (kind == '-') return strchr("fh", other) && ptx__is_number(src[1].type);
    if (other == '-') return strchr("fh", kind) && ptx__is_number(src[0].type);
    return kind != 'b' && other != 'b' && !(strchr("us", kind) && strchr("us", other));
}

/* Whether a value may be assigned to a variable: it has the variable's type and space. An immediate without a
   type gets that of the variable. */
static int ptx__check_assignment(ptx_kernel *k, const char *site, ptx_val variable, ptx_val *value) {
    const ptx__operand cell = ptx__read_handle(k, variable);
    ptx__operand from = ptx__read_handle(k, *value);
    if (!ptx__require_register(k, site, cell, "the variable")
        || !ptx__check_value(k, site, "ptx_set", &from, cell.type))
        return 0;
    if (from.kind == PTX__IMM) *value = ptx__with_type(*value, from.type);
    if (from.kind != PTX__REG || from.space == cell.space) return 1;
    return ptx__fail(k, PTX_E_ADDRESS, site,
                     "ptx_set: the variable and the value are addresses of different spaces");
}

static ptx_val ptx__record_new(ptx_kernel *k, const char *site, uint32_t request, ptx_mods mods,
                               const ptx_val *src) {
    const size_t before = k->ins.count;
    const unsigned op = request & 0xfffu, type = request >> 12 & 127, src_type = request >> 19 & 127;
    ptx_val d = ptx__none();
    ptx_var var;
    if (!ptx__ready(k) || ptx__is_stale(k, k, site)) return d;
    if (request & PTX__TO_VARIABLE) {
        ptx_val typed = src[0];
        d = var.cell = src[1];
        if (!ptx__check_assignment(k, site, d, &typed)) return ptx__none();
        if (typed.handle != src[0].handle) return ptx__record(k, site, request, mods, typed, d);
    }
    ptx__emit(k, site, op, mods, type, src_type, src, PTX__SOURCE_COUNT(request), &d, PTX__AT_MOST_ONE,
              request & PTX__TO_VARIABLE ? &var : NULL);
    if (!ptx__ready(k)) return ptx__none();
    if (k->ins.count == before + 1) ptx__keep_memo(k, request, mods, src, d);
    return d;
}

/* -- instructions with groups, memory operands, several results, or limits -- */

static int ptx__push_memory(const ptx__use *u, const ptx__access *mem, uint32_t bytes);
static ptx_mods ptx__space_mod(unsigned space);

/* Infer the types of an instruction from its operands. A register takes precedence over an immediate, a
   number type over a b type. */
static void ptx__infer_types(const char *slot, const ptx__operand *src, unsigned n, unsigned *type,
                             unsigned *src_type) {
    unsigned i = 0, times;
    int t_set = *type != PTX_NONE, c_set = *src_type != PTX_NONE, by_register[2] = {0, 0};
    for (; *slot && i < n; slot++) {
        if (*slot == '_' || strchr("{}[]|?", *slot)) continue;
        times = 1;
        if (*slot >= '1' && *slot <= '9') times = (unsigned)(*slot++ - '0');
        for (; times && i < n; times--, i++) {
            unsigned *to = *slot == 't' && !t_set ? type : *slot == 'c' && !c_set ? src_type : NULL;
            int *by = &by_register[*slot == 'c'];
            if (!to || src[i].type == PTX_NONE || src[i].type >= PTX__TYPE_COUNT) continue;
            if (*to != PTX_NONE && (src[i].kind != PTX__REG || (*by && ptx__fact(*to)->kind != 'b')))
                continue;
            *to = src[i].type;
            *by = src[i].kind == PTX__REG;
        }
        if (slot[1] == '+') slot += 2, i = n; /* operands after a group of variable length do not count */
        else if (slot[1] == '-') slot++;
    }
}

static int ptx__push_address(const ptx__use *u, ptx__operand v, char letter) {
    static const char spaces[][16] = {"generic", "global", "shared",         "local",
                                      "const",   "param",  "shared::cluster"};
    static const ptx__slot_address any = {'m', 0xff, 1, NULL};
    const ptx__slot_address *want = ptx__slot_addresses;
    ptx__access mem;
    mem.base = ptx__split_address(v, &mem.offset);
    if (!ptx__is_own(u->k, &mem.base)) {
        char what[40];
        snprintf(what, sizeof what, "operand %u of %.20s", u->index, ptx__use_name(u));
        return ptx__require_own(u->k, u->site, mem.base, what);
    }
    v.space = v.space > PTX_SHARED_CLUSTER ? (uint8_t)PTX_GENERIC : v.space;
    while (want < ptx__slot_addresses + sizeof ptx__slot_addresses / sizeof *want && want->letter != letter)
        want++;
    if (want == ptx__slot_addresses + sizeof ptx__slot_addresses / sizeof *want) want = &any;
    if (!(want->spaces >> v.space & 1) || (letter == 'a' && ptx__fact(v.type)->bits != 32))
        return ptx__fail_operand(u, PTX_E_ADDRESS, " must be an address in %s space, this is in %s",
                                 want->what, spaces[v.space]);
    if (letter == 'a') {
        ptx__push_word(u->k, PTX__WORD(PTX__W_MEM, 0));
        ptx__push_word(u->k, (uint32_t)mem.base.bits);
        ptx__push_word(u->k, (uint32_t)(int32_t)mem.offset);
        return 1;
    }
    if (letter == 'n') {
        if (mem.offset == 0 && mem.base.kind == PTX__REG)
            return ptx__push_source(u, mem.base, PTX_U64, ptx__fact(v.type)->kind == 's');
        return ptx__fail_operand(u, PTX_E_ADDRESS, " is an address in a register, without offset");
    }
    return ptx__push_memory(u, &mem, want->bytes);
}

/* Check and push an integer with limits. */
static int ptx__push_limited(const ptx__use *u, ptx__operand v, const ptx__slot_limit *limit,
                                unsigned type) {
    if (v.kind == PTX__IMM) {
        if (!ptx__check_limit(u, v, limit->letter, type)) return 0;
    } else if (limit->immediate)
        return ptx__fail_operand(u, PTX_E_TYPE, " must be %s, not a value in a register (%s)", limit->what,
                                 ptx__describe(v));
    return ptx__push_source(u, v, v.kind == PTX__IMM && v.type == PTX_NONE ? PTX_B32 : PTX_U32,
                            ptx__fact(v.type)->kind == 's');
}

/* What a matrix operand must consist of, where the type given has the width but is wrong; else NULL. */
static const char *ptx__expected_fragment(const ptx__use *u, unsigned type, unsigned given) {
    if (!(ptx__op_facts[u->row->op] & (PTX__IS_MMA | PTX__IS_WMMA))) return NULL;
    if (given == PTX_F32 && type && type != PTX_TF32) return "32 bits";
    return (type == PTX_F16 && given == PTX_BF16X2) || (type == PTX_BF16 && given == PTX_F16X2) ? "pairs"
                                                                                                : NULL;
}

/* The instruction's own rule that an immediate breaks in a slot without limits; NULL if it breaks none. */
PTX__COLD const char *ptx__broken_number_rule(const ptx__use *u, char letter, uint64_t number,
                                              unsigned type) {
    const uint32_t facts = ptx__op_facts[u->row->op], scales = facts / PTX__SCALES_1 & 7u;
    const unsigned op = u->row->op;
    if (letter == 'd' && op == PTX_ST_BULK && (number > 16777216 || number % 8))
        return "a multiple of 8, to 16777216";
    if (letter == 'h' && (op == PTX_BULK_G2S || op == PTX_BULK_S2G_MASKED || op == PTX_TENSOR_G2S) && !number)
        return "a mask that is not 0";
    if (letter == 'h'
        && scales) { /* three operands for A, then for B: scale data, byte id, thread id */
        const unsigned which = u->index - (op >= PTX_MMA_SP_M16N8K16_F32 ? 16u : 12u);
        if (which % 3 == 0 ? number >= 4 || number % scales : number >= (which == 1 ? 2u : 4u))
            return "the byte that a vector of scales begins at, or thread 0 or 1 for A, 0 to 3 for B";
    }
    if (letter != 'u') return NULL;
    if (facts & PTX__IS_WMMA) {
        unsigned bits = ptx__fact(type)->bits; /* the leading dimension keeps rows aligned */
        if (!number || number * bits % (bits == 8 ? 32u : bits == 64 ? 64u : 128u))
            return "a row's elements, multiples of 16 bytes (bytes: of 4, f64: of 8)";
    }
    if (u->index != 2) return NULL;
    if (op == PTX_TENSORMAP_REPLACE_RANK && number > 4) return "a rank less 1, 0 to 4";
    if (number > 1 && facts & PTX__PARITY) return "a parity, 0 or 1";
    return NULL;
}

static int ptx__push_slot(const ptx__use *u, ptx__operand v, char letter, unsigned type, unsigned src_type) {
    ptx_kernel *k = u->k;
    const char *site = u->site;
    const ptx__row *row = u->row;
    const unsigned index = u->index;
    const uint32_t facts = ptx__op_facts[u->row->op];
    const char kind = ptx__fact(v.type)->kind, *fragment, *rule;
    int integer = kind == 'u' || kind == 's' || kind == 'b', loose = 0;
    int untyped = v.kind == PTX__IMM && v.type == PTX_NONE, number = v.kind == PTX__IMM;
    unsigned want;
    const ptx__slot_limit *limit;
    switch (letter) {
    case 't': want = ptx__in_register(type), loose = row->sig[0] == '*'; break;
    case 'w': want = ptx__wider(type); break;
    case 'c': want = ptx__in_register(src_type); break;
    case 'p': want = PTX_PRED; break;
    case 'x':
        fragment = ptx__expected_fragment(u, type, v.type);
        if (fragment)
            return ptx__fail_operand(u, PTX_E_TYPE, " is %s, expected %s of %s", ptx__fact(v.type)->name,
                                     fragment, ptx__fact(type)->name);
        if (v.kind != PTX__REG
            && ((facts & PTX__IS_WMMA && facts & PTX__UNIFORM_LANE) || (facts & PTX__WGMMA) == PTX__WGMMA
                || (facts & PTX__IS_MMA && v.kind != PTX__IMM)))
            return ptx__fail_operand(u, PTX_E_TYPE, " is %s: parts of matrices are in registers",
                                     ptx__describe(v));
        want = PTX_B32, loose = 1;
        break;
    case 'f': want = PTX_F32; break;
    case 'z': want = PTX_F64; break;
    case 'q': want = PTX_B128; break;
    case 'u':
    case 'S':
    case 'y': want = untyped ? PTX_B32 : PTX_U32, loose = integer; break;
    case 'd': want = untyped ? PTX_B64 : PTX_U64, loose = integer; break;
    case 'h': want = untyped ? PTX_B16 : PTX_U16, loose = integer; break;
    default:
        if (number && index == 2) {
            const int swizzle = row->op == PTX_TENSORMAP_REPLACE_SWIZZLE && v.bits == 4;
            const int element =
                row->op == PTX_TENSORMAP_REPLACE_ELEMTYPE && v.bits >= 13 && v.bits <= 15;
            const unsigned sm = ptx__sm(k);
            if ((swizzle && k->m->target != PTX_SM_A(103)) || (element && sm < 100))
                return ptx__fail(k, PTX_E_TARGET, site, "%s of %u needs sm_%s, the target is sm_%s",
                                 row->name, (unsigned)v.bits, swizzle ? "103a" : "100a or later",
                                 k->m->target_name);
            if ((swizzle || element)
                && !ptx__require_version(k, site, row->name, (long long)v.bits, swizzle ? 88 : 87))
                return 0;
        }
        limit = ptx__limit_of(letter);
        return limit ? ptx__push_limited(u, v, limit, type) : ptx__push_address(u, v, letter);
    }
    rule = number ? ptx__broken_number_rule(u, letter, v.bits, type) : NULL;
    if (rule)
        return ptx__fail_operand(u, PTX_E_RANGE, " is %s, not %lld", rule, (long long)v.bits);
    return ptx__push_source(u, v, want, loose);
}

static unsigned ptx__result_type(char letter, unsigned type, unsigned src_type, unsigned actual) {
    switch (letter) {
    case 't': return ptx__in_register(actual ? actual : type);
    case 'w': return ptx__wider(type);
    case 'p': return PTX_PRED;
    case 'u': return PTX_U32;
    case 'S': return PTX_S32;
    case 'y': return ptx__fact(type)->kind == 's' || ptx__fact(src_type)->kind == 's' ? PTX_S32 : PTX_U32;
    case 'd': return PTX_U64;
    case 'f': return PTX_F32;
    case 'z': return PTX_F64;
    case 'q': return PTX_B128;
    case 'h': return PTX_U16;
    default: return PTX_B32; /* x */
    }
}

/* Whether a character of expanded operands is an operand, not a bracket. */
static int ptx__is_slot(char c) {
    return (unsigned)(c - 'a') < 26u || (unsigned)(c - 'A') < 26u;
}

/* Push the word that opens a group, if there is one at p. */
static void ptx__open_group(ptx_kernel *k, const char *p) {
    if (*p == '{') ptx__push_word(k, PTX__GROUP(PTX__G_BRACES, strcspn(p, "}") - 1));
    if (*p == '[') ptx__push_word(k, PTX__GROUP(PTX__G_BRACKETS, p[2] == '{' ? 2 : 1));
    if (*p == '_') ptx__push_word(k, PTX__GROUP(PTX__G_SINK, 0));
}

/* A pattern is the memo of a form with many operands, such as a matrix product. The first instruction that
   has only register operands leaves one: the numbers of sources, results, result words and words; the kinds
   of sources and results; and the words, of which those that open groups are reused. */
enum {
    PTX__PATTERN_NEXT,
    PTX__PATTERN_SOURCES,
    PTX__PATTERN_RESULTS,
    PTX__PATTERN_RESULT_WORDS,
    PTX__PATTERN_WORDS,
    PTX__PATTERN_KINDS
};
#define PTX__PATTERNS_MAX 8 /* of one form; NEXT is the one kept before: position in patterns + 1 */

PTX__COLD void ptx__keep_pattern(ptx_kernel *k, uint32_t form, const ptx_val *src, uint32_t n,
                                 const ptx_val *out, uint32_t results) {
    ptx_module *m = k->m;
    const ptx__ins *ins = &k->ins.at[k->ins.count - 1];
    const uint32_t *words = k->words.at + ins->words;
    uint32_t i, source = 0, result = 0, kept, *p;
    for (i = 0; i < ins->count; i++) {
        uint32_t tag = PTX__TAG(words[i]);
        if (tag == PTX__W_VECTOR) continue;
        if (tag == 0 || tag >= PTX__REGISTER_CLASSES) return;
        if (i < ins->results) result++;
        else if (source == n || !ptx__is_register(src[source]) || words[i] != (uint32_t)src[source++].handle)
            return;
    }
    for (i = m->forms.at[form].pattern, kept = 0; i; i = m->patterns.at[i - 1 + PTX__PATTERN_NEXT]) kept++;
    if (source != n || result != results || kept >= PTX__PATTERNS_MAX) return;
    if (!PTX__ROOM(m, m->patterns, PTX__PATTERN_KINDS + n + results + ins->count)) return;
    p = m->patterns.at + m->patterns.count;
    p[PTX__PATTERN_NEXT] = m->forms.at[form].pattern;
    m->forms.at[form].pattern = (uint32_t)m->patterns.count + 1;
    p[PTX__PATTERN_SOURCES] = n;
    p[PTX__PATTERN_RESULTS] = results;
    p[PTX__PATTERN_RESULT_WORDS] = ins->results;
    p[PTX__PATTERN_WORDS] = ins->count;
    p += PTX__PATTERN_KINDS;
    for (i = 0; i < n; i++) *p++ = ptx__kind_of(src[i]);
    for (i = 0; i < results; i++) *p++ = ptx__kind_of(out[i]);
    for (i = 0; i < ins->count; i++) *p++ = words[i];
    m->patterns.count += PTX__PATTERN_KINDS + n + results + ins->count;
}

/* Record an instruction by a pattern of its form. Returns 0 where no pattern fits. */
static int ptx__record_by_pattern(ptx_kernel *k, const char *site, uint32_t form, const ptx_val *src,
                                  uint32_t n, ptx_val *out) {
    uint32_t pattern = k->m->forms.at[form].pattern, wrong = 1, old = 0, result_words, words, i;
    const uint32_t *p = NULL, *result_kind, *word;
    uint32_t *to;
    size_t at = k->words.count;
    for (; pattern && wrong; pattern = p[PTX__PATTERN_NEXT]) {
        p = k->m->patterns.at + pattern - 1;
        wrong = p[PTX__PATTERN_SOURCES] ^ n;
        for (i = 0; i < n && !wrong; i++)
            wrong = (p[PTX__PATTERN_KINDS + i] << 16 | k->owner) ^ (uint32_t)(src[i].handle >> 32);
    }
    for (i = 0; i < n; i++) {
        wrong |= PTX__INDEX((uint32_t)src[i].handle) >= k->registers[PTX__TAG((uint32_t)src[i].handle)];
        old |= ptx__is_old(k, (uint32_t)src[i].handle);
    }
    if (wrong) return 0;
    result_words = p[PTX__PATTERN_RESULT_WORDS];
    words = p[PTX__PATTERN_WORDS];
    result_kind = p + PTX__PATTERN_KINDS + n;
    if (!ptx__reserve(k, words)) return 0;
    word = result_kind + p[PTX__PATTERN_RESULTS];
    to = k->words.at + at;
    for (i = 0; i < result_words; i++, word++) {
        *to++ = *word;
        if (PTX__TAG(*word) == PTX__W_VECTOR) continue;
        to[-1] = ptx__new_word(k, site, PTX__TAG(*word));
        out++->handle = (uint64_t)(*result_kind++ << 16 | k->owner) << 32 | to[-1];
    }
    for (; i < words; i++, word++) *to++ = PTX__TAG(*word) == PTX__W_VECTOR ? *word : (uint32_t)src++->handle;
    k->words.count += words;
    ptx__commit_if(k, site, PTX__I_PLAIN, form, at, result_words, old);
    return 1;
}

#define PTX__OPERANDS_MAX 144
#define PTX__RESULTS_MAX 240
/* Check the counts, types and arrays of a request before they are used. */
static int ptx__request_is_valid(ptx_kernel *k, const char *site, unsigned op, unsigned type,
                                 unsigned src_type, const ptx_val *src, unsigned n, const void *out,
                                 unsigned n_out) {
    if ((n && !src) || (n_out != PTX__AT_MOST_ONE && n_out && !out))
        return ptx__fail(k, PTX_E_ARGUMENT, site, "the array of the %s is NULL",
                         n && !src ? "operands" : "results");
    if (op >= PTX__OP_COUNT)
        return ptx__fail(k, PTX_E_ARGUMENT, site, "instruction %u is not in the table", op);
    if (!ptx__is_type(type) || !ptx__is_type(src_type))
        return ptx__fail(k, PTX_E_ARGUMENT, site, "%s: %u is no ptx_type: PTX_F32, PTX_U32 ...",
                         ptx__rows[k->m->first_row[op]].name, ptx__is_type(type) ? src_type : type);
    if (n <= PTX__OPERANDS_MAX && (n_out == PTX__AT_MOST_ONE || n_out <= PTX__RESULTS_MAX)) return 1;
    return ptx__fail(k, PTX_E_ARGUMENT, site, "%s with %u operands and %u results: there may be %u and %u",
                     ptx__rows[k->m->first_row[op]].name, n, n_out == PTX__AT_MOST_ONE ? 1 : n_out,
                     PTX__OPERANDS_MAX, PTX__RESULTS_MAX);
}
/* Check the fraction or the sizes of a cache policy (createpolicy). */
static int ptx__policy_ok(ptx_kernel *k, const char *site, const ptx__row *row, const ptx__operand *v,
                             unsigned n) {
    double fraction;
    if (row->op == PTX_CREATEPOLICY && n && v[0].kind == PTX__IMM_FLOAT) {
        memcpy(&fraction, &v[0].bits, sizeof fraction);
        if (!(fraction > 0 && fraction <= 1))
            return ptx__fail(k, PTX_E_RANGE, site, "%s: the fraction is more than 0 and at most 1, not %g",
                             row->name, fraction);
    }
    if (row->op == PTX_CREATEPOLICY_RANGE && v[1].kind == PTX__IMM && v[2].kind == PTX__IMM
        && (uint32_t)v[1].bits > (uint32_t)v[2].bits)
        return ptx__fail(k, PTX_E_RANGE, site, "%s: the primary size %u is more than the total size %u",
                         row->name, (unsigned)v[1].bits, (unsigned)v[2].bits);
    return 1;
}
/* Check the variable that an instruction reads and writes as its result `number`. */
PTX__COLD int ptx__accumulator_ok(ptx_kernel *k, const char *site, const ptx__row *row, char slot,
                                  unsigned number, ptx__operand cell) {
    char kind;
    if (!ptx__require_own(k, site, cell, "a result")) return 0;
    kind = ptx__fact(cell.type)->kind;
    if (ptx__fact(cell.type)->bits == 32 && (slot != 'f' || kind == 'f' || kind == 'b')
        && (slot != 'S' || (kind != 'f' && kind != 'h')))
        return 1;
    return ptx__fail(k, PTX_E_TYPE, site, "result %u of %s: a variable of %s is needed, this has %s", number,
                     row->name,
                     slot == 'f'   ? "f32"
                     : slot == 'S' ? "s32"
                                   : "32 bits",
                     ptx__describe(cell));
}

/* Record any instruction that prints as a mnemonic and operands. n_out: results wanted, or PTX__AT_MOST_ONE.
   into: the variables that get them, or NULL. */
static void ptx__emit(ptx_kernel *k, const char *site, unsigned op, ptx_mods mods, unsigned type,
                      unsigned src_type, const ptx_val *src, unsigned n, ptx_val *out, unsigned n_out,
                      const ptx_var *into) {
    ptx__operand v[PTX__OPERANDS_MAX];
    const ptx__row *row;
    const char *p, *slots;
    uint32_t form = 0;
    ptx__use u;
    unsigned i, r, actual = PTX_NONE;
    size_t at, results;
    int leaves, loose, needs_materialize = 0;
    int group_state = 0; /* 1 in braces, 2 before any register there */
    if (n_out == PTX__AT_MOST_ONE || n_out <= PTX__RESULTS_MAX) /* a larger one is refused below */
        for (i = 0; out && !into && i < (n_out == PTX__AT_MOST_ONE ? 1 : n_out); i++) out[i] = ptx__none();
    if (!ptx__ready(k)) return;
    if (!ptx__request_is_valid(k, site, op, type, src_type, src, n, into ? (const void *)into : out, n_out))
        return;
    u = ptx__use_of(k, site, op);
    row = &ptx__rows[k->m->first_row[op]];
    slots = k->m->source_slots[op];
    loose = *row->sig == '*';
    if (*row->sig == '~' || op == PTX_BRA || op == PTX_RAW || op == PTX_BRX_EDGE
        || (*slots == 'c' && n_out == PTX__AT_MOST_ONE && src_type == PTX_NONE && k->m->is_plain[op])
        || (n_out != PTX__AT_MOST_ONE && (*row->sig == '!') != !!into) || (*row->sig == '!' && !into))
        ptx__fail(k, PTX_E_ARGUMENT, site, "%s needs operands of its own kind: call ptx_%s", row->name,
                  op == PTX_SET        ? "opn, with the type of the result"
                  : op == PTX_RAW      ? "raw"
                  : op == PTX_BRX_EDGE ? "brx"
                  : *row->sig == '!'   ? "wgmma"
                                       : row->name);
    if (!ptx__ready(k)) return;
    if ((type || !ptx__types_of(row)) && (src_type || !ptx__sources_of(row)) && *slots != 'm') {
        form = ptx__get_counted_form(k, site, op, type, src_type, mods, n, n_out);
        if (!form) return;
        if (!into && !k->guard && k->m->forms.at[form - 1].pattern
            && ptx__record_by_pattern(k, site, form - 1, src, n, out))
            return;
    }
    for (i = 0; i < n; i++) {
        v[i] = ptx__read_handle(k, src[i]);
        needs_materialize |=
            v[i].kind == PTX__IMM_FLOAT || v[i].kind == PTX__REG_OFFSET || v[i].flags & PTX__INVERTED;
    }
    if (type == PTX_NONE && ptx__types_of(row) && *slots != 'c') {
        ptx__infer_types(slots, v, n, &actual, &src_type);
        type = loose ? ptx__as_bits(actual) : actual;
        for (i = 0; i < n && type == PTX_NONE; i++) {
            u.index = i + 1;
            if (v[i].kind == PTX__NOTHING || v[i].kind == PTX__OUT_OF_RANGE)
                ptx__fail_operand(&u, v[i].kind == PTX__OUT_OF_RANGE ? PTX_E_RANGE : PTX_E_HANDLE, " is %s",
                                  ptx__describe(v[i]));
        }
        if (type == PTX_NONE) {
            for (i = 0; i < n && !v[i].type; i++) {}
            ptx__fail(k, PTX_E_TYPE, site,
                      n && !i ? "%s: the operands do not tell its type; call ptx_opn() with the type"
                              : "%s: no operand has a type to go by; use ptx_u32() or the like",
                      row->name);
            return;
        }
    } else if (ptx__sources_of(row) && src_type == PTX_NONE) {
        r = type;
        ptx__infer_types(slots, v, n, &r, &src_type);
    }
    if (*slots == 'm' && n) mods |= ptx__space_mod(v[0].space);
    if (!form) form = ptx__get_counted_form(k, site, op, type, src_type, mods, n, n_out);
    if (!form) return;
    row = u.row = k->m->forms.at[form - 1].row;
    p = k->m->chars.at + k->m->forms.at[form - 1].signature;
    if (*p != '=' && *p != '_' && !into && !ptx__require_unguarded(k, site, row->name)) return;
    p = k->m->chars.at + k->m->forms.at[form - 1].slots;
    for (i = 0; needs_materialize && *p; p++) {
        if (!ptx__is_slot(*p)) continue;
        if (v[i].kind == PTX__IMM_FLOAT || v[i].kind == PTX__REG_OFFSET || v[i].flags & PTX__INVERTED) {
            size_t here = (size_t)(p - k->m->chars.at);
            v[i] = ptx__materialize(k, site, v[i], *p);
            p = k->m->chars.at + here;
        }
        i++;
    }
    p = k->m->chars.at + k->m->forms.at[form - 1].signature;
    if (!ptx__policy_ok(k, site, row, v, n)) return;
    if (!ptx__ready(k) || !ptx__reserve(k, 3 * (size_t)n + strlen(p))) return;
    at = k->words.count;
    for (r = 0; *p != '='; p++) {
        const char *end = *p == '{' ? strchr(p, '}') : p;
        if (end[1] == '|' && *p != '}' && *p != '|') ptx__push_word(k, PTX__GROUP(PTX__G_PIPE, 2));
        if (!ptx__is_slot(*p)) {
            ptx__open_group(k, p);
            continue;
        }
        if (into && *row->sig != '!') { /* ptx__check_assignment has checked it */
            ptx__push_word(k, (uint32_t)into[r].cell.handle);
        } else if (into) {
            if (!ptx__accumulator_ok(k, site, row, *p, r + 1, ptx__read_handle(k, into[r].cell))) return;
            ptx__push_word(k, (uint32_t)into[r].cell.handle);
        } else {
            out[r] = ptx__new_register(k, site, ptx__result_type(*p, type, src_type, loose ? actual : 0));
            ptx__push_word(k, (uint32_t)out[r].handle);
        }
        r++;
    }
    results = k->words.count - at;
    for (i = 0, p++; *p; p++) {
        if (!ptx__is_slot(*p)) {
            ptx__open_group(k, p);
            group_state = *p == '{' ? 2 : 0;
            continue;
        }
        u.index = i + 1;
        if (group_state && v[i].kind == PTX__REG) group_state = 1;
        if (*p == 'x' && v[i].kind == PTX__IMM && ptx__op_facts[u.row->op] & PTX__IS_MMA
            && (!group_state || (group_state == 2 && p[1] == '}') || PTX__FP8 >> type & 1)) {
            ptx__fail_operand(&u, PTX_E_TYPE, " is %s: %s in registers", ptx__describe(v[i]),
                              !group_state           ? "metadata are"
                              : PTX__FP8 >> type & 1 ? "parts of 8-bit floats are"
                                                     : "no part before it is");
            return;
        }
        if ((op == PTX_DIV || op == PTX_REM) && i == 1 && v[i].kind == PTX__IMM && !v[i].bits)
            ptx__fail(k, PTX_E_RANGE, site, "%s by the number 0", row->name);
        if (op == PTX_ADD && i == 1 && v[0].space && ptx__fact(v[1].type)->bits == 32 && type == PTX_U64)
            ptx__fail_operand(&u, PTX_E_TYPE,
                              " is %s, expected u64: ptx_ptr_add(k, p, index, bytes) adds an index",
                              ptx__describe(v[1]));
        if (!ptx__ready(k) || !ptx__push_slot(&u, v[i], *p, type, src_type)) {
            for (i = 0; i < r && !into; i++) out[i] = ptx__none();
            k->words.count = at;
            return;
        }
        i++;
    }
    if (op == PTX_ADD && v[0].space && v[1].space)
        ptx__fail(k, PTX_E_ADDRESS, site,
                  "the sum of two addresses is none: one of them is to be a number, ptx_ptr(x, PTX_GENERIC)");
    if (n == 3 && ptx__mixes_kinds(op, v)) {
        i = v[1].type == PTX_NONE;
        u.index = i + 1;
        if (v[i].type == PTX_NONE)
            ptx__fail_operand(&u, PTX_E_TYPE, " is %s, expected %s%s", ptx__describe(v[i]),
                              ptx__fact(v[1 - i].type)->name,
                              ptx__conversion_hint(v[i], v[1 - i].type).s);
        else
            ptx__fail(k, PTX_E_TYPE, site, "%s chooses between %s and %s: ptx_as says what the bits are",
                      row->name, ptx__fact(v[0].type)->name, ptx__fact(v[1].type)->name);
    }
    if (!ptx__ready(k)) return;
    if (r && !into) out[0] = ptx__with_space(out[0], ptx__space_of(op, v, n));
    leaves = n_out == PTX__AT_MOST_ONE && (op == PTX_RET || op == PTX_EXIT);
    ptx__commit(k, site, leaves ? PTX__I_LEAVE : PTX__I_PLAIN, form - 1, at, results);
    for (i = 0; i < r && into; i++) ptx__list_assignment(k, (uint32_t)into[i].cell.handle);
    if (n > PTX__MEMO_MAX && !into && !loose && !needs_materialize)
        ptx__keep_pattern(k, form - 1, src, n, out, r);
}

PTXGEN_API void ptx_opn_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type type,
                         ptx_type src_type, uint32_t n, const ptx_val *operands, uint32_t results,
                         ptx_val *out) {
    ptx__emit(k, site, op, mods, type, src_type, operands, n > 999 ? 999 : n, out,
              results > 999 ? 999 : results, NULL);
}

/* A request of a caller's numbers. Those out of range stay out of range, and are reported later. */
static uint32_t ptx__clamped_request(unsigned op, unsigned type, unsigned src_type, unsigned n) {
    return PTX__REQUEST(op < 0xfff ? op : 0xfff, type < 127 ? type : 127, src_type < 127 ? src_type : 127, n);
}

PTX__COLD_API ptx_val ptx_op0_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods) {
    if (op == PTX_RET && ptx__ready(k) && ((k->result && !k->returning) || k->noreturn))
        return PTX__REFUSE(k, PTX_E_UNDEFINED, site,
                           k->noreturn ? "this function never returns: end it by ptx_exit or ptx_trap"
                                       : "this function has a result: ptx_return gives it");
    return ptx__record_one(k, site, ptx__clamped_request(op, PTX_NONE, PTX_NONE, 0), mods, ptx__none());
}
PTXGEN_API ptx_val ptx_op1_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a) {
    return ptx__record_one(k, site, ptx__clamped_request(op, PTX_NONE, PTX_NONE, 1), mods, a);
}
PTXGEN_API ptx_val ptx_op2_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b) {
    return ptx__record(k, site, ptx__clamped_request(op, PTX_NONE, PTX_NONE, 2), mods, a, b);
}
PTXGEN_API ptx_val ptx_op3_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b, ptx_val c) {
    return ptx__record_four(k, site, ptx__clamped_request(op, PTX_NONE, PTX_NONE, 3), mods, a, b, c,
                            ptx__none());
}
PTXGEN_API ptx_val ptx_op4_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                            ptx_val b, ptx_val c, ptx_val d) {
    return ptx__record_four(k, site, ptx__clamped_request(op, PTX_NONE, PTX_NONE, 4), mods, a, b, c, d);
}

PTX__COLD_API ptx_val ptx_op5_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_val a,
                               ptx_val b, ptx_val c, ptx_val d, ptx_val e) {
    ptx_val src[5], out = ptx__none();
    src[0] = a, src[1] = b, src[2] = c, src[3] = d, src[4] = e;
    if (!ptx__ready(k) || ptx__is_stale(k, k, site)) return out;
    ptx__emit(k, site, op, mods, PTX_NONE, PTX_NONE, src, 5, &out, PTX__AT_MOST_ONE, NULL);
    return ptx__ready(k) ? out : ptx__none();
}

PTXGEN_API ptx_val ptx_cvt_(ptx_kernel *k, const char *site, ptx_mods mods, ptx_type type, ptx_val a) {
    ptx__operand v;
    if (!ptx__ready(k)) return ptx__none();
    v = ptx__materialize_address(k, site, &a);
    if (!ptx__ready(k) || !ptx__require_own(k, site, v, "the operand of cvt")) return ptx__none();
    if ((unsigned)type == v.type && !mods)
        return ptx__record_one(k, site, PTX__REQUEST(PTX_MOV, 0, 0, 1), 0, a);
    return ptx__record_one(k, site, ptx__clamped_request(PTX_CVT, type, v.type, 1), mods, a);
}
PTXGEN_API ptx_val ptx_cvt_pair_(ptx_kernel *k, const char *site, ptx_mods mods, ptx_type type, ptx_val high,
                                 ptx_val low) {
    return ptx__record(k, site, ptx__clamped_request(PTX_CVT_PAIR, type, PTX_F32, 2), mods, high, low);
}

/* -- kernels and their memory -- */

/* Check and keep a name. Returns its offset, or 0 with the error set. */
PTX__COLD uint32_t ptx__keep_name(ptx_module *m, const char *site, const char *name) {
    size_t i, n = name ? strlen(name) : 0;
    for (i = 0; i < n; i++) {
        char c = name[i];
        int letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i && c >= '0' && c <= '9')) break;
    }
    if (n == 0 || i < n || n > 255 || strcmp(name, "_") == 0 || strcmp(name, "WARP_SZ") == 0
        || strcmp(name, "vprintf") == 0) { /* CUDA's own */
        ptx_fail(m, PTX_E_NAME, site,
                 "'%.60s' is not a name: 1 to 255 letters, digits and _, the first no digit; _, WARP_SZ and "
                 "vprintf are taken",
                 name ? name : "(null)");
        return 0;
    }
    return ptx__keep(m, name, n);
}

/* The hash of a name in a scope. */
static uint32_t ptx__name_hash(uint32_t scope, const char *name) {
    uint32_t hash = scope * 2654435761u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash ^ hash >> 15;
}
/* Find what has that name in a scope; NULL if nothing has. */
PTX__COLD const ptx__named *ptx__find_name(const ptx_module *m, uint32_t scope, const char *name) {
    uint32_t hash = ptx__name_hash(scope, name), at;
    for (at = m->name_heads.count ? m->name_heads.at[hash & (m->name_heads.count - 1)] : 0; at;
         at = m->named.at[at - 1].next) {
        const ptx__named *n = &m->named.at[at - 1];
        if (n->hash == hash && n->scope == scope && strcmp(m->names.at + n->name, name) == 0) return n;
    }
    return NULL;
}
/* Enter a kept name, which stands for `what`, in a scope. */
PTX__COLD void ptx__add_name(ptx_module *m, uint32_t scope, uint32_t name, uint32_t what) {
    size_t i, size = m->name_heads.count;
    ptx__named *n;
    if (!PTX__ROOM(m, m->named, 1)) return;
    n = &m->named.at[m->named.count++];
    n->name = name;
    n->hash = ptx__name_hash(scope, m->names.at + name);
    n->scope = scope;
    n->what = what;
    if (m->named.count > size) { /* rehash to twice as many chains */
        size = size ? 2 * size : 16;
        if (!PTX__ROOM(m, m->name_heads, size - m->name_heads.count)) return;
        m->name_heads.count = size;
        memset(m->name_heads.at, 0, size * sizeof *m->name_heads.at);
        i = 0;
    } else
        i = m->named.count - 1;
    for (; i < m->named.count; i++) {
        uint32_t *head = &m->name_heads.at[m->named.at[i].hash & (size - 1)];
        m->named.at[i].next = *head;
        *head = (uint32_t)i + 1;
    }
}
/* The same for a symbol of a kernel. */
static void ptx__add_symbol(const ptx_kernel *k, uint32_t name, uint32_t what) {
    ptx__add_name(k->m, k->index, name, what);
    if (!ptx__find_name(k->m, PTX__OF_ANY_KERNEL, k->m->names.at + name))
        ptx__add_name(k->m, PTX__OF_ANY_KERNEL, name, k->index);
}

/* Whether a name is free for a new kernel, function or variable; with `of`, for a symbol of that kernel,
   which may have the name of an entry. Sets the error if not. A symbol of a kernel hides functions and
   variables of its name. ptxas 13.0 crashes where a kernel has the name of an earlier kernel's parameter. */
PTX__COLD int ptx__name_is_free(ptx_module *m, ptx_kernel *of, const char *site, const char *name,
                                unsigned what) {
    static const char kinds[][13] = {"parameter", "shared array", "local array",
                                     "variable",  "function",     "kernel"};
    const ptx__named *existing = ptx__find_name(m, PTX__OF_MODULE, name);
    const ptx_kernel *k =
        existing && existing->what & PTX__IS_KERNEL ? m->kernels.at[existing->what & ~PTX__IS_KERNEL] : NULL;
    const unsigned kind = !k ? PTX__IS_VARIABLE : k->function ? PTX__IS_FUNCTION : PTX__IS_ENTRY;
    char text[320];
    if (existing && !(of && kind == PTX__IS_ENTRY && (what != PTX__IS_PARAM || k->index <= of->index)))
        snprintf(text, sizeof text, "the module has a %s '%.80s' already, %s at %.100s%s", kinds[kind], name,
                 k ? "started" : "made", k ? k->site : m->variables.at[existing->what].site,
                 of && kind == PTX__IS_ENTRY ? ", and ptxas crashes on a parameter of that name" : "");
    else {
        existing = ptx__find_name(m, of ? of->index : PTX__OF_ANY_KERNEL, name);
        k = of ? of : existing ? m->kernels.at[existing->what] : NULL;
        if (existing && !of) existing = ptx__find_name(m, k->index, name);
        if (!existing || (what == PTX__IS_ENTRY && existing->what != PTX__IS_PARAM)) return 1;
        snprintf(text, sizeof text, "kernel '%.80s' has a %s '%.80s'%s%s", m->names.at + k->name,
                 kinds[existing->what], name,
                 of                      ? " already"
                 : what == PTX__IS_ENTRY ? ", and ptxas crashes on a later kernel of that name"
                                         : ", which would hide the ",
                 of || what == PTX__IS_ENTRY ? "" : kinds[what]);
    }
    if (of)
        ptx__fail(of, PTX_E_NAME_TAKEN, site, "%s", text);
    else
        ptx_fail(m, PTX_E_NAME_TAKEN, site, "%s", text);
    return 0;
}

PTX__COLD ptx_kernel *ptx__start_kernel(ptx_module *m, const char *site, const char *name, unsigned what) {
    ptx_kernel *k;
    uint32_t at;
    if (!m || m->error.code) return NULL;
    at = ptx__keep_name(m, site, name);
    if (!at || !ptx__name_is_free(m, NULL, site, name, what)) return NULL;
    if (!PTX__ROOM(m, m->entries, 1)) return NULL;
    if (m->kernels_used == m->kernels.count) {
        if (!PTX__ROOM(m, m->kernels, 1)) return NULL;
        k = (ptx_kernel *)m->alloc(m->user, NULL, 0, sizeof *k);
        if (!k) {
            ptx_fail(m, PTX_E_MEMORY, site, "out of memory: %lu bytes", (unsigned long)sizeof *k);
            return NULL;
        }
        memset(k, 0, sizeof *k);
        k->definitions[0].capacity = 1; /* tag 0 is "no result": ptx__record_n asks for room there too */
        m->kernels.at[m->kernels.count++] = k;
    }
    m->entries.at[m->entries.count++] = m->kernels_used;
    ptx__add_name(m, PTX__OF_MODULE, at, PTX__IS_KERNEL | m->kernels_used);
    k = m->kernels.at[m->kernels_used++];
    memset(k, 0, offsetof(ptx_kernel, ins));
    k->ins.count = k->words.count = k->labels.count = k->scopes.count = k->shared.count = 0;
    k->params.count = k->info.count = k->locals.count = k->asserted.count = k->calls.count = 0;
    k->marked.count = k->wide.count = k->uses.count = 0;
    k->m = m;
    do k->owner = (m->seed + ++m->serial) & 0xffffu; /* 16 bits in a handle */
    while (k->owner == 0);
    k->index = m->kernels_used - 1;
    k->name = at;
    k->site = site ? site : "";
    if (m->dependent_launch) ptx_op0_(k, site, PTX_GRIDDEPCONTROL_LAUNCH, 0);
    return k;
}

PTX__COLD_API ptx_kernel *ptx_entry_early_(ptx_module *m, const char *site, const char *name) {
    return ptx__start_kernel(m, site, name, PTX__IS_ENTRY);
}
PTXGEN_API ptx_kernel *ptx_entry_(ptx_module *m, const char *site, const char *name) {
    ptx_kernel *k = ptx_entry_early_(m, site, name);
    ptx_dependent_wait_(k, site);
    return k;
}

PTXGEN_API void ptx_dependent_wait_(ptx_kernel *k, const char *site) {
    if (!k || !k->m->dependent_launch) return;
    ptx_op0_(k, site, PTX_GRIDDEPCONTROL_WAIT, 0);
    k->waits = 1;
}

PTXGEN_API int ptx_module_is_dependent(const ptx_module *m) { return m && m->dependent_launch; }

/* A directive of `count` numbers x, y and z. x is min_x to max_x; max_x 0: no limits. max_volume is the limit
   of the product: then y is at most max_x and z at most max_rest. max_volume 0: y is at most max_rest.
   cluster: it needs sm_90. field_offset: where ptx_kernel has the numbers. */
typedef struct ptx__directive {
    char what[47]; /* printf format of the numbers, for messages */
    uint8_t cluster, count, version;
    uint16_t min_x, max_x, max_rest, max_volume, field_offset;
} ptx__directive;
static const ptx__directive ptx__directives[] = {
    {"ptx_require_block of %u, %u, %u threads", 0, 3, 0, 1, 1024, 64, 1024,
     offsetof(ptx_kernel, required_block)},
    {"ptx_require_cluster of %u, %u, %u blocks", 1, 3, 78, 1, 16, 16, 16, offsetof(ptx_kernel, cluster)},
    {"ptx_max_registers of %u registers", 0, 1, 0, 24, 255, 0, 0, offsetof(ptx_kernel, max_registers)},
    {"ptx_max_cluster of %u blocks", 1, 1, 78, 1, 16, 0, 0, offsetof(ptx_kernel, max_rank)},
    {"ptx_blocks_are_clusters", 1, 1, 90, 0, 0, 0, 0, offsetof(ptx_kernel, blocks_are_clusters)},
    {"ptx_launch_bounds of %u threads and %u blocks", 0, 2, 0, 1, 1024, 32, 0,
     offsetof(ptx_kernel, max_threads)},
    {"ptx_noreturn", 0, 1, 64, 0, 0, 0, 0, offsetof(ptx_kernel, noreturn)}};
enum { PTX__NORETURN = sizeof ptx__directives / sizeof *ptx__directives - 1 };

PTX__COLD_API void ptx_directive_(ptx_kernel *k, const char *site, int which, uint32_t x, uint32_t y,
                                  uint32_t z) {
    const ptx__directive *d = &ptx__directives[(unsigned)which < PTX__NORETURN ? which : PTX__NORETURN];
    uint64_t volume = (uint64_t)x * y * z;
    uint32_t number[3], before[3];
    char what[80];
    if (!ptx__ready(k)) return;
    number[0] = x, number[1] = y, number[2] = z;
    snprintf(what, sizeof what, d->what, x, y, z);
    memcpy(before, (char *)k + d->field_offset, sizeof before);
    if (d->max_x
        && (x < d->min_x || x > d->max_x
            || (d->max_volume ? volume == 0 || volume > d->max_volume || y > d->max_x || z > d->max_rest
                              : y > d->max_rest)))
        ptx__fail(k, PTX_E_LAUNCH_LIMIT, site, "%s: must be %u to %u%s", what, d->min_x, d->max_x,
                  !d->max_rest       ? ""
                  : !d->max_volume   ? ", blocks at most 32"
                  : d->max_rest < 64 ? " in all"
                                     : " in all, the third at most 64");
    if ((which == PTX__NORETURN) != (k->function != 0))
        ptx__fail(k, PTX_E_ARGUMENT, site, "%s is for %s", what,
                  k->function ? "an entry, this is a function" : "a function, this is an entry");
    if (d->cluster && ptx__sm(k) < 90)
        ptx__fail(k, PTX_E_TARGET, site, "clusters need sm_90, the target is sm_%s", k->m->target_name);
    if (*before && memcmp(before, number, d->count * sizeof *number) != 0)
        ptx__fail(k, PTX_E_LAUNCH_LIMIT, site, "%s, and other numbers before: keep one", what);
    if (ptx__ready(k) && ptx__require_version(k, site, what, -1, d->version))
        memcpy((char *)k + d->field_offset, number, d->count * sizeof *number);
}

/* Whether a function may return that type; sets the error if not. */
PTX__COLD int ptx__may_return(ptx_kernel *k, const char *site, ptx_type type) {
    if (type == PTX_NONE || ptx_type_bytes(type) >= 2) return 1;
    return ptx__fail(k, PTX_E_TYPE, site, "a function cannot return %s", ptx_type_name(type));
}

PTX__COLD_API ptx_kernel *ptx_func_(ptx_module *m, const char *site, const char *name, ptx_type result) {
    ptx_kernel *k = ptx__start_kernel(m, site, name, PTX__IS_FUNCTION);
    ptx_dependent_wait_(k, site);
    if (!k) return NULL;
    m->entries.count--;
    ptx__may_return(k, site, result);
    k->function = 1;
    k->result = (uint32_t)result;
    return k;
}

PTXGEN_API ptx_module *ptx_kernel_module(ptx_kernel *k) { return k ? k->m : NULL; }

static uint32_t ptx__align_up(uint32_t bytes, uint32_t align) { return (bytes + align - 1) & ~(align - 1); }

static int ptx__is_power_of_two(uint32_t n) { return n && (n & (n - 1)) == 0; }

/* Add a parameter. Returns its index + 1, or 0 with the error set. */
PTX__COLD uint32_t ptx__add_param(ptx_kernel *k, const char *site, const char *name, unsigned type,
                                  uint32_t bytes, uint32_t align, unsigned space) {
    ptx_module *m = k->m;
    ptx__symbol *p;
    uint32_t at, offset, limit = m->max_version >= 81 ? 32764u : 4352u;
    if (k->guard) return (uint32_t)ptx__fail(k, PTX_E_GUARD, site, "a guard before a parameter");
    if (k->called)
        return (uint32_t)ptx__fail(k, PTX_E_ARGUMENT, site,
                                   "the function is called at %s already: parameters come first", k->called);
    at = ptx__keep_name(m, site, name);
    if (!at || !ptx__name_is_free(m, k, site, name, PTX__IS_PARAM)) return 0;
    offset = ptx__align_up(k->param_bytes, align);
    if (bytes > limit || offset > limit - bytes)
        return (uint32_t)ptx__fail(k, PTX_E_PARAM_LIMIT, site,
                                   "parameter '%.80s' ends at byte %lu; a kernel may have %u with PTX %s",
                                   name, (unsigned long)offset + bytes, limit,
                                   limit == 4352 ? "before 8.1" : "8.1 and later");
    if (offset + bytes > 4352 && k->version < 81) k->version = 81;
    if (!PTX__ROOM(m, k->params, 1)) return 0;
    if (!PTX__ROOM(m, k->info, k->params.count + 1))
        return 0; /* ptx_entry_get fills it, and must not fail */
    ptx__add_symbol(k, at, PTX__IS_PARAM);
    p = &k->params.at[k->params.count];
    p->site = ptx__site(k, site);
    p->name = at;
    p->type = type | space << 8;
    p->count = bytes;
    p->align = align;
    k->param_bytes = offset + bytes;
    k->verified = 0;
    return (uint32_t)++k->params.count;
}

/* The address of a parameter block. */
static ptx_val ptx__param_block(const ptx_kernel *k, uint32_t index) {
    return ptx__with_space(ptx__own_handle(k, PTX__WORD(PTX__W_PARAM, index), PTX_U64), PTX_PARAM);
}

PTX__COLD_API ptx_val ptx_param_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                                 ptx_space space) {
    uint32_t bytes, index;
    ptx_val v;
    if (!ptx__ready(k) || !ptx__require_type(k, site, type)) return ptx__none();
    bytes = ptx_type_bytes(type);
    if (bytes == 0 || space > PTX_CONST)
        return PTX__REFUSE(k, PTX_E_TYPE, site,
                           bytes ? "a pointer is in PTX_GLOBAL, _SHARED, _LOCAL, _CONST or _GENERIC"
                                 : "a parameter cannot have type %s",
                           ptx_type_name(type));
    index = ptx__add_param(k, site, name, type, bytes, bytes, space);
    if (!index) return ptx__none();
    v = ptx_ld_(k, site, type, ptx_at(ptx__param_block(k, index - 1), 0));
    if (space == PTX_GENERIC || !ptx__ready(k)) return v;
    /* The host passes generic addresses; in the global space this costs no machine instruction. */
    v = ptx__record_one(k, site, PTX__REQUEST(PTX_CVTA_TO, PTX_U64, 0, 1), ptx__space_mod((unsigned)space),
                        v);
    return ptx__with_space(v, (unsigned)space);
}

PTXGEN_API ptx_val ptx_param_bytes_(ptx_kernel *k, const char *site, const char *name, uint32_t bytes,
                                    uint32_t align) {
    uint32_t index;
    if (!ptx__ready(k)) return ptx__none();
    if (bytes == 0 || !ptx__is_power_of_two(align) || align > 64)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site,
                           "a parameter block needs bytes, and an alignment of 1, 2 ... 64; not %u and %u",
                           bytes, align);
    index = ptx__add_param(k, site, name, PTX_B8, bytes, align, 0);
    return index ? ptx__param_block(k, index - 1) : ptx__none();
}

/* Record a mov of the operand in a word to a new register. */
PTX__COLD ptx_val ptx__move_word(ptx_kernel *k, const char *site, uint32_t word, unsigned type) {
    uint32_t form = ptx__get_form(k, site, PTX_MOV, ptx__as_bits(type), 0, 0);
    size_t at = k->words.count;
    ptx_val v;
    if (!form || !ptx__reserve(k, 2)) return ptx__none();
    v = ptx__new_register(k, site, type);
    ptx__push_word(k, (uint32_t)v.handle);
    ptx__push_word(k, word);
    ptx__commit(k, site, PTX__I_PLAIN, form - 1, at, 1);
    return v;
}
/* Record a mov of the address of a symbol to a register. */
PTX__NOINLINE static ptx_val ptx__symbol_address(ptx_kernel *k, const char *site, uint32_t word,
                                                 unsigned type, unsigned space, uint32_t align) {
    uint32_t log2 = 0;
    ptx_val v = ptx__move_word(k, site, word, type);
    if (!v.handle) return v;
    while (align >> log2 > 1) log2++;
    k->seen |= PTX__SEEN_CONVERGENT; /* accesses by it are checked */
    v.handle |= (uint64_t)(log2 + 1) << PTX__H_ALIGN;
    return ptx__with_space(v, space);
}

#define PTX__SHARED_MOST 49152u   /* bytes of static shared memory */
#define PTX__DYNAMIC_MOST 232448u /* 227 KiB: no device gives a block more */
/* Add an array to a kernel, under a kept name. Returns its address, in a register. count: elements of a
   shared array, 0 for dynamic shared memory; bytes of a local array. */
PTX__COLD ptx_val ptx__add_array(ptx_kernel *k, const char *site, uint32_t name, unsigned what, unsigned type,
                                 uint32_t count, uint32_t align) {
    const int shared = what == PTX__IS_SHARED;
    const unsigned tag = shared ? PTX__W_SHARED : PTX__W_LOCAL;
    ptx__symbol s;
    size_t index;
    s.site = ptx__site(k, site);
    s.name = name;
    s.type = type;
    s.count = count;
    s.align = align;
    if (!name || !ptx__name_is_free(k->m, k, site, k->m->names.at + name, what)
        || !ptx__require_unguarded(k, site, shared ? "ptx_shared" : "ptx_local")
        || !(shared ? PTX__ROOM(k->m, k->shared, 1) : PTX__ROOM(k->m, k->locals, 1)))
        return ptx__none();
    ptx__add_symbol(k, name, what);
    index = shared ? k->shared.count++ : k->locals.count++;
    (shared ? k->shared.at : k->locals.at)[index] = s;
    return ptx__symbol_address(k, site, PTX__WORD(tag, index), shared ? PTX_U32 : PTX_U64,
                               shared ? PTX_SHARED : PTX_LOCAL, align);
}
/* The bytes of an array's element, or 0 with the error set. Raises *align to them. most: the most bytes of an
   array in local memory; 0: shared memory. */
PTX__COLD uint32_t ptx__element_bytes(ptx_kernel *k, const char *site, ptx_type type, uint32_t count,
                                      uint32_t most, uint32_t *align) {
    uint32_t size;
    if (!ptx__ready(k) || !ptx__require_type(k, site, type)) return 0;
    size = ptx_type_bytes(type);
    if (size == 0 || (*align & (*align - 1)) || *align > 1024 || count == 0
        || (most && count > most / size))
        return (uint32_t)ptx__fail(
            k, PTX_E_ARGUMENT, site,
            "%s memory of %u elements of type %s, aligned to %u: must be 1 or more%s, of a type with a size, "
            "aligned to 1, 2, 4 ... 1024",
            most ? "local" : "shared", count, ptx_type_name(type), *align, most ? ", 512 KiB at most" : "");
    if (*align < size) *align = size;
    return size;
}

PTX__COLD_API ptx_val ptx_shared_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                                  uint32_t count, uint32_t align) {
    uint32_t size = ptx__element_bytes(k, site, type, count, 0, &align), start;
    if (!size) return ptx__none();
    start = ptx__align_up(k->shared_bytes, align);
    if (count > PTX__SHARED_MOST / size || start > PTX__SHARED_MOST - count * size)
        return PTX__REFUSE(k, PTX_E_SHARED_LIMIT, site,
                           "'%.80s' would end at byte %llu of static shared memory, the limit is 49152; use "
                           "ptx_shared_dynamic()",
                           name ? name : "(null)",
                           (unsigned long long)start + (unsigned long long)count * size);
    k->shared_bytes = start + count * size;
    return ptx__add_array(k, site, ptx__keep_name(k->m, site, name), PTX__IS_SHARED, (unsigned)type, count,
                          align);
}

PTX__COLD_API ptx_val ptx_shared_dynamic_(ptx_kernel *k, const char *site, uint32_t align) {
    char own[300]; /* with a $, which no name of a caller has */
    if (!ptx__ready(k)) return ptx__none();
    if (!ptx__is_power_of_two(align) || align < 16 || align > 1024)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site, "dynamic shared memory aligned to %u: must be 16 to 1024",
                           align);
    snprintf(own, sizeof own, "%.255s$dynamic", k->m->names.at + k->name);
    return ptx__add_array(k, site, ptx__keep(k->m, own, strlen(own)), PTX__IS_SHARED, PTX_B8, 0, align);
}

PTX__COLD_API ptx_val ptx_local_(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                                 uint32_t count, uint32_t align) {
    uint32_t size = ptx__element_bytes(k, site, type, count, 524288, &align);
    if (!size) return ptx__none();
    return ptx__add_array(k, site, ptx__keep_name(k->m, site, name), PTX__IS_LOCAL, (unsigned)type,
                          count * size, align);
}

PTX__COLD_API ptx_symbol ptx_variable_(ptx_module *m, const char *site, const ptx_variable_desc *desc) {
    ptx_symbol none = {0, 0}, symbol;
    ptx__variable *v;
    uint32_t size, align, name;
    if (!m || m->error.code) return none;
    size = desc ? ptx_type_bytes(desc->type) : 0;
    align = desc && desc->align > size ? desc->align : size;
    if (!desc || size == 0 || desc->count == 0 || desc->count > 0x7fffffffu / size
        || !ptx__is_power_of_two(align) || (desc->align & (desc->align - 1)) || align > 1024
        || (desc->space != PTX_GLOBAL && desc->space != PTX_CONST))
        ptx_fail(m, PTX_E_ARGUMENT, site,
                 "a variable of %lu elements of type %s, aligned to %lu: 1 or more of a type with a size, "
                 "less than 2 GiB in all, in global or constant memory, an alignment of 1, 2 ... 1024",
                 desc ? (unsigned long)desc->count : 0ul, ptx_type_name(desc ? desc->type : PTX_NONE),
                 desc ? (unsigned long)desc->align : 0ul);
    if (m->error.code) return none;
    name = ptx__keep_name(m, site, desc->name);
    if (!name || !ptx__name_is_free(m, NULL, site, desc->name, PTX__IS_VARIABLE)) return none;
    if (desc->space == PTX_CONST) {
        if (desc->count * size > 65536u
            || ptx__align_up(m->const_bytes, align) + desc->count * size > 65536u) {
            ptx_fail(m, PTX_E_CONST_LIMIT, site,
                     "'%.80s' would end beyond the 65,536 bytes of constant memory; make it global",
                     desc->name);
            return none;
        }
        m->const_bytes = ptx__align_up(m->const_bytes, align) + desc->count * size;
    }
    if (!PTX__ROOM(m, m->variables, 1)) return none;
    v = &m->variables.at[m->variables.count];
    v->site = site ? site : "";
    v->name = name;
    v->data = desc->data ? ptx__keep(m, (const char *)desc->data, (size_t)desc->count * size) : 0;
    if (m->error.code) return none;
    v->type = (uint32_t)desc->type;
    v->space = (uint32_t)desc->space;
    v->count = desc->count;
    v->align = align;
    v->exported = desc->exported;
    symbol.index = (uint32_t)m->variables.count++;
    ptx__add_name(m, PTX__OF_MODULE, name, symbol.index);
    symbol.owner = m->owner;
    return symbol;
}

/* Make a variable of the module and list it in PTX__OF_LIBRARY. An error if the caller has used its name. */
PTX__NOINLINE static ptx_symbol ptx__library_variable(ptx_module *m, const char *site,
                                                      const ptx_variable_desc *desc) {
    ptx_symbol v = ptx_variable_(m, site, desc);
    if (v.owner) ptx__add_name(m, PTX__OF_LIBRARY, m->variables.at[v.index].name, v.index);
    return v;
}

static int ptx__variable_ok(ptx_module *m, const char *site, ptx_symbol s) {
    if (s.owner == m->owner && s.index < m->variables.count) return 1;
    ptx_fail(m, s.owner ? PTX_E_FOREIGN : PTX_E_HANDLE, site, "a variable that is not this module's");
    return 0;
}

PTX__COLD_API void ptx_point_(ptx_module *m, const char *site, ptx_symbol in, uint32_t element, ptx_symbol to,
                              int64_t bytes) {
    ptx__address *a;
    if (!m || m->error.code || !ptx__variable_ok(m, site, in) || !ptx__variable_ok(m, site, to)) return;
    if (ptx_type_bytes((ptx_type)m->variables.at[in.index].type) != 8
        || element >= m->variables.at[in.index].count || bytes < 0
        || bytes > (int64_t)m->variables.at[to.index].count
                       * ptx_type_bytes((ptx_type)m->variables.at[to.index].type))
        ptx_fail(m, PTX_E_ARGUMENT, site, "an address is an element of 64 bits, of what lies in a variable");
    if (to.index >= in.index)
        ptx_fail(m, PTX_E_ARGUMENT, site, "a variable points to variables made before it: PTX has no others");
    if (m->error.code) return;
    if (!PTX__ROOM(m, m->addresses, 1)) return;
    a = &m->addresses.at[m->addresses.count++];
    for (; a > m->addresses.at && (a[-1].in > in.index || (a[-1].in == in.index && a[-1].element > element));
         a--)
        a[0] = a[-1];
    a->in = in.index;
    a->element = element;
    a->to = to.index;
    a->offset = bytes;
}

PTX__COLD_API ptx_val ptx_address_(ptx_kernel *k, const char *site, ptx_symbol variable) {
    const ptx__variable *v;
    if (!ptx__ready(k) || !ptx__require_unguarded(k, site, "ptx_address")
        || !ptx__variable_ok(k->m, site, variable))
        return ptx__none();
    v = &k->m->variables.at[variable.index];
    return ptx__symbol_address(k, site, PTX__WORD(PTX__W_GLOBAL, variable.index), PTX_U64, v->space,
                               v->align);
}

/* Check a value against the type of its destination, where the instruction itself only moves bits. An
   immediate without a type gets that type. */
static int ptx__check_value(ptx_kernel *k, const char *site, const char *what, ptx__operand *v,
                            unsigned type) {
    const ptx__type_fact *want = ptx__fact(type), *have = ptx__fact(v->type);
    int integer = want->kind == 'u' || want->kind == 's' || want->kind == 'b';
    if (v->kind == PTX__IMM && v->type == PTX_NONE && integer) {
        if (!ptx__fits(v->bits, type) || (want->kind == 'u' && (int64_t)v->bits < 0))
            return ptx__fail(k, PTX_E_RANGE, site, "%s: %lld does not fit %s", what, (long long)v->bits,
                             want->name);
        v->type = (uint8_t)type;
        return 1;
    }
    if (v->type == type) return 1;
    if (v->type && have->bits == want->bits && (have->kind == 'b' || want->kind == 'b')) return 1;
    if (v->kind == PTX__NOTHING || v->kind == PTX__OUT_OF_RANGE)
        ptx__fail(k, v->kind == PTX__OUT_OF_RANGE ? PTX_E_RANGE : PTX_E_HANDLE, site, "%s: the value is %s",
                  what, ptx__describe(*v));
    else
        ptx__fail(k, PTX_E_TYPE, site, "%s: %s is needed, the value is %s%s", what, want->name,
                  ptx__describe(*v), ptx__conversion_hint(*v, type).s);
    return 0;
}

/* The same for a handle. Returns the handle, an immediate's with its type, or none with the error set. */
static ptx_val ptx__typed_value(ptx_kernel *k, const char *site, const char *what, ptx_val v, unsigned type) {
    ptx__operand o = ptx__read_handle(k, v);
    if (!ptx__check_value(k, site, what, &o, type)) return ptx__none();
    return o.kind == PTX__IMM ? ptx__with_type(v, o.type) : v;
}

/* -- memory -- */

/* Check and push the operand [base + offset] of an access of that many bytes. Returns 0 after an error. */
static int ptx__push_memory(const ptx__use *u, const ptx__access *mem, uint32_t bytes) {
    ptx_kernel *k = u->k;
    const char *site = u->site, *name = ptx__use_name(u);
    ptx__operand b = mem->base;
    uint32_t known = b.flags & PTX__ALIGN_MASK;
    unsigned bits = ptx__fact(b.type)->bits, want = 64;
    char kind = ptx__fact(b.type)->kind;
    if (b.space == PTX_SHARED || b.space == PTX_SHARED_CLUSTER) want = 32;
    if (!ptx__require_own(k, site, b, "the address")) return 0;
    if ((kind != 'u' && kind != 's' && kind != 'b') || bits != want)
        return ptx__fail(k, PTX_E_ADDRESS, site,
                         "%s: an address in %s space is an integer of %u bits, this is %s: %s", name,
                         want == 32               ? "shared"
                         : b.space == PTX_GENERIC ? "generic"
                                                  : "global",
                         want, ptx__fact(b.type)->name,
                         want == 32
                             ? "ptx_shared() gives one"
                             : "ptx_param_ptr() declares one, ptx_ptr(x, PTX_GLOBAL) makes one of a u64, "
                               "ptx_ptr(x, PTX_SHARED) one in shared space of a u32");
    if (mem->offset < -2147483647 - 1 || mem->offset > 2147483647)
        return ptx__fail(k, PTX_E_RANGE, site, "%s: the offset %lld does not fit 32 bits", name,
                         (long long)mem->offset);
    if (b.kind == PTX__PARAM_BLOCK) {
        const ptx__symbol *p = &k->params.at[b.bits];
        if (mem->offset < 0 || mem->offset + (int64_t)bytes > (int64_t)p->count)
            return ptx__fail(k, PTX_E_ADDRESS, site,
                             "%s: bytes %lld to %lld of parameter '%.80s', which has %u", name,
                             (long long)mem->offset, (long long)mem->offset + bytes - 1,
                             k->m->names.at + p->name, p->count);
        known = 1;
        while (p->align >> known) known++;
    }
    if (known && (bytes > 1u << (known - 1) || (mem->offset & (int64_t)(bytes - 1))))
        return ptx__fail(k, PTX_E_ALIGN, site, "%s of %u bytes at offset %lld from an address aligned to %u",
                         name, bytes, (long long)mem->offset, 1u << (known - 1));
    ptx__push_word(k, PTX__WORD(PTX__W_MEM, 0));
    ptx__push_word(k, b.kind == PTX__PARAM_BLOCK ? PTX__WORD(PTX__W_PARAM, b.bits) : (uint32_t)b.bits);
    ptx__push_word(k, (uint32_t)(int32_t)mem->offset);
    return 1;
}

/* The modifiers of an access: those that the caller gave, its state space, the width of its vector. */
static ptx_mods ptx__space_mod(unsigned space) {
    return space == PTX_GENERIC || space > PTX_SHARED_CLUSTER ? 0 : PTX__M(11u + space);
}
static ptx_mods ptx__memory_mods(const ptx__access *mem, uint32_t n, uint32_t bytes) {
    ptx_mods mods = mem->mods | ptx__space_mod(mem->base.space);
    if (n == 2) mods |= PTX__M_V2;
    if (n == 4) mods |= bytes == 32 ? PTX__M_V4_64 : PTX__M_V4;
    if (n == 8) mods |= PTX__M_V8;
    return mods;
}

/* Push the operand for the L2 cache policy if the access has one. Returns 0 after an error. */
static int ptx__push_policy(const ptx__use *u, const ptx__access *mem) {
    ptx_kernel *k = u->k;
    const char *site = u->site, *name = ptx__use_name(u);
    static const char hint[] = "call ptx_cached(mem, policy) with 64 bits from PTX_CREATEPOLICY";
    if (!(mem->mods & PTX_L2_CACHE_HINT & ~PTX__FAMILY)) return 1;
    if (mem->policy < PTX__POLICY_HIGH_REGISTER && mem->policy - 1 < k->registers[PTX__W_64]) {
        ptx__push_word(k, PTX__WORD(PTX__W_64, mem->policy - 1));
        return 1;
    }
    if (mem->policy == PTX__POLICY_FOREIGN)
        return ptx__fail(k, PTX_E_FOREIGN, site, "%s: the policy belongs to another kernel", name);
    if (mem->policy == PTX__POLICY_TYPE)
        return ptx__fail(k, PTX_E_TYPE, site, "%s: the policy is no 64-bit number: %s", name, hint);
    if (mem->policy != PTX__POLICY_HIGH_REGISTER)
        return ptx__fail(k, PTX_E_HANDLE, site, "%s: a cache hint needs a policy: %s", name, hint);
    return ptx__fail(
        k, PTX_E_RANGE, site,
        "%s: the policy is not among the first %d values of 64 bits: make it earlier in the kernel", name,
        PTX__POLICY_HIGH_REGISTER - 1);
}

static int ptx__vector_ok(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, const void *values) {
    if (!ptx__require_type(k, site, type)) return 0;
    if (ptx_type_bytes(type) == 0)
        ptx__fail(k, PTX_E_TYPE, site, "memory holds no type %s", ptx_type_name(type));
    else if ((n != 1 && n != 2 && n != 4 && n != 8) || n * ptx_type_bytes(type) > 32
             || (n * ptx_type_bytes(type) == 32 ? ptx__sm(k) < 100 || ptx_type_bytes(type) > 8
                                                : n == 8 || n * ptx_type_bytes(type) > 16))
        ptx__fail(
            k, PTX_E_VECTOR, site,
            "an access of %u elements of %s: there are 1, 2 and 4, of 16 bytes at most; of 32 in global "
            "memory from sm_100 on",
            n, ptx_type_name(type));
    else if (!values)
        ptx__fail(k, PTX_E_ARGUMENT, site, "the array of the %s is NULL", "values");
    return ptx__ready(k);
}

static void ptx__load(ptx_kernel *k, const char *site, const ptx_val *guard, ptx_type type, uint32_t n,
                      ptx_mem address, const ptx_val *otherwise, ptx_val *out) {
    uint32_t i, form;
    ptx__access mem;
    ptx__use u;
    unsigned printed;
    size_t at, results;
    ptx_val d[8];
    for (i = 0; out && i < n && n <= 8; i++) out[i] = ptx__none();
    if (!ptx__ready(k) || !ptx__vector_ok(k, site, type, n, out)) return;
    mem = ptx__read_memory(k, address);
    if (k->m->dependent_launch) mem.mods &= ~(PTX_NC & ~PTX__FAMILY); /* the previous grid may still write */
    printed = PTX__MEMORY >> type & 1 ? (unsigned)type : ptx__as_bits(type);
    form = ptx__get_form(k, site, PTX_LD, printed, 0, ptx__memory_mods(&mem, n, n * ptx_type_bytes(type)));
    if (!form || !ptx__require_unguarded(k, site, "ld")) return;
    for (i = 0; i < n; i++) {
        if (guard) {
            ptx_val init =
                ptx__typed_value(k, site, "ld_if, the value otherwise", *otherwise, ptx__in_register(type));
            d[i] = ptx__record_one(k, site, PTX__REQUEST(PTX_MOV, 0, 0, 1), 0, init);
            if (!ptx__ready(k)) return;
            d[i] = ptx__with_type(d[i], ptx__in_register(type));
        } else
            d[i] = ptx__new_register(k, site, ptx__in_register(type));
    }
    if (guard) ptx_guard_(k, site, *guard);
    if (!ptx__ready(k) || !ptx__reserve(k, 9 + 3 + 1)) return;
    at = k->words.count;
    u = ptx__use_of(k, site, PTX_LD);
    if (n > 1) ptx__push_word(k, PTX__WORD(PTX__W_VECTOR, n));
    for (i = 0; i < n; i++) ptx__push_word(k, (uint32_t)d[i].handle);
    results = k->words.count - at;
    if (!ptx__push_memory(&u, &mem, n * ptx_type_bytes(type))) return;
    if (!ptx__push_policy(&u, &mem)) return;
    ptx__commit_if(k, site, PTX__I_PLAIN, form - 1, at, results, 1);
    for (i = 0; i < n && guard; i++) ptx__list_assignment(k, (uint32_t)d[i].handle);
    for (i = 0; i < n; i++) out[i] = d[i];
}

PTXGEN_API ptx_val ptx_ld_(ptx_kernel *k, const char *site, ptx_type type, ptx_mem mem) {
    ptx_val v;
    ptx__load(k, site, NULL, type, 1, mem, NULL, &v);
    return v;
}
PTXGEN_API ptx_val ptx_ld_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, ptx_mem mem,
                              ptx_val otherwise) {
    ptx_val v;
    ptx__load(k, site, &p, type, 1, mem, &otherwise, &v);
    return v;
}
PTXGEN_API void ptx_ld_vec_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_mem mem,
                            ptx_val *out) {
    ptx__load(k, site, NULL, type, n, mem, NULL, out);
}
PTXGEN_API void ptx_ld_vec_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, uint32_t n,
                               ptx_mem mem, ptx_val otherwise, ptx_val *out) {
    ptx__load(k, site, &p, type, n, mem, &otherwise, out);
}

PTXGEN_API void ptx_st_vec_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_mem address,
                            const ptx_val *values) {
    uint32_t i, form;
    unsigned printed;
    size_t at;
    ptx__access mem;
    ptx__use u;
    ptx__operand v[8];
    if (!ptx__ready(k) || !ptx__vector_ok(k, site, type, n, values)) return;
    mem = ptx__read_memory(k, address);
    printed = PTX__MEMORY >> type & 1 ? (unsigned)type : ptx__as_bits(type);
    form = ptx__get_form(k, site, PTX_ST, printed, 0, ptx__memory_mods(&mem, n, n * ptx_type_bytes(type)));
    if (!form) return;
    for (i = 0; i < n; i++) {
        v[i] = ptx__materialize(k, site, ptx__read_handle(k, values[i]), 't');
        if (ptx_type_bytes(type) > 1) continue;
        if (v[i].kind == PTX__IMM && !ptx__fits(v[i].bits, type))
            ptx__fail(k, PTX_E_RANGE, site, "st: %lld does not fit %s", (long long)v[i].bits,
                      ptx_type_name(type));
        if (v[i].kind == PTX__IMM_FLOAT)
            ptx__fail(k, PTX_E_TYPE, site, "st: operand %u is %s, expected %s: write ptx_imm(number)", i + 2,
                      ptx__describe(v[i]), ptx_type_name(type));
    }
    if (!ptx__ready(k) || !ptx__reserve(k, 3 + 1 + 3 * 8 + 1)) return;
    at = k->words.count;
    u = ptx__use_of(k, site, PTX_ST);
    if (!ptx__push_memory(&u, &mem, n * ptx_type_bytes(type))) return;
    if (n > 1) ptx__push_word(k, PTX__WORD(PTX__W_VECTOR, n));
    for (i = 0; i < n; i++) {
        u.index = i + 2;
        if (!ptx__push_source(&u, v[i], ptx__in_register(type), 0)) return;
    }
    if (!ptx__push_policy(&u, &mem)) return;
    ptx__commit_if(k, site, PTX__I_PLAIN, form - 1, at, 0, 1);
}
PTXGEN_API void ptx_st_(ptx_kernel *k, const char *site, ptx_type type, ptx_mem mem, ptx_val value) {
    ptx_st_vec_(k, site, type, 1, mem, &value);
}
PTXGEN_API void ptx_st_if_(ptx_kernel *k, const char *site, ptx_val p, ptx_type type, ptx_mem mem,
                           ptx_val value) {
    ptx_guard_(k, site, p);
    ptx_st_(k, site, type, mem, value);
}

/* atom and red: the type comes from the value. */
static ptx_val ptx__atomic(ptx_kernel *k, const char *site, unsigned op, ptx_mods what, ptx_mem address,
                           const ptx_val *values, unsigned n) {
    ptx_val d = ptx__none();
    ptx__operand v[2];
    ptx__access mem;
    ptx__use u;
    unsigned i, type;
    uint32_t form;
    size_t at, results = 0;
    int loose;
    if (!ptx__ready(k)) return d;
    mem = ptx__read_memory(k, address);
    for (i = 0; i < n; i++) v[i] = ptx__read_handle(k, values[i]);
    type = v[0].kind == PTX__REG || v[n - 1].kind != PTX__REG ? v[0].type : v[n - 1].type;
    if (type == PTX_NONE || type >= PTX__TYPE_COUNT) {
        ptx__fail(k, PTX_E_TYPE, site, "%s: no operand has a type to go by; use ptx_u32() or the like",
                  ptx__rows[k->m->first_row[op]].name);
        return d;
    }
    loose = ptx__rows[k->m->first_row[op]].sig[0] == '*';
    if (!(what & PTX__ATOM & ~PTX__FAMILY)) {
        ptx__fail(k, PTX_E_MODIFIER, site, "%s needs an operation: PTX_ATOM_ADD, PTX_ATOM_MIN ...",
                  ptx__rows[k->m->first_row[op]].name);
        return d;
    }
    form =
        ptx__get_form(k, site, op, loose ? ptx__as_bits(type) : type, 0, ptx__memory_mods(&mem, 1, 0) | what);
    if (!form) return d;
    if (op != PTX_RED && op != PTX_RED_BITS && !ptx__require_unguarded(k, site, "atom")) return d;
    for (i = 0; i < n; i++) v[i] = ptx__materialize(k, site, v[i], 't');
    if (!ptx__ready(k) || !ptx__reserve(k, 1 + 3 + 6 + 1)) return d;
    at = k->words.count;
    u = ptx__use_of(k, site, op);
    if (op != PTX_RED && op != PTX_RED_BITS) {
        d = ptx__new_register(k, site, type);
        ptx__push_word(k, (uint32_t)d.handle);
        results = 1;
    }
    if (!ptx__push_memory(&u, &mem, ptx_type_bytes((ptx_type)type))) return ptx__none();
    for (i = 0; i < n; i++) {
        u.index = i + 2;
        if (type == PTX_B128 && v[i].kind == PTX__IMM)
            ptx__fail_operand(&u, PTX_E_TYPE, " is a number, expected b128 in a register");
        if (!ptx__push_source(&u, v[i], type, loose)) return ptx__none();
    }
    mem.mods |= what & PTX_L2_CACHE_HINT;
    if (!ptx__push_policy(&u, &mem)) return ptx__none();
    ptx__commit(k, site, PTX__I_PLAIN, form - 1, at, results);
    return d;
}
PTXGEN_API ptx_val ptx_atom_(ptx_kernel *k, const char *site, ptx_mods what, ptx_mem mem, ptx_val value) {
    int bits = (what & (PTX__ATOM_BITS | PTX_ATOM_EXCH) & ~PTX__FAMILY) != 0;
    return ptx__atomic(k, site, bits ? PTX_ATOMIC_BITS : PTX_ATOMIC, what, mem, &value, 1);
}
PTXGEN_API void ptx_red_(ptx_kernel *k, const char *site, ptx_mods what, ptx_mem mem, ptx_val value) {
    int bits = (what & PTX__ATOM_BITS & ~PTX__FAMILY) != 0;
    ptx__atomic(k, site, bits ? PTX_RED_BITS : PTX_RED, what, mem, &value, 1);
}
PTXGEN_API ptx_val ptx_atom_cas_(ptx_kernel *k, const char *site, ptx_mem mem, ptx_val compare,
                                 ptx_val value) {
    ptx_val v[2];
    v[0] = compare;
    v[1] = value;
    return ptx__atomic(k, site, PTX_ATOMIC_CAS, PTX_ATOM_CAS, mem, v, 2);
}

PTXGEN_API ptx_val ptx_ptr_add_(ptx_kernel *k, const char *site, ptx_val address, ptx_val index,
                                uint32_t bytes) {
    ptx__operand base, elements;
    int64_t offset;
    unsigned width;
    ptx_val sum;
    if (!ptx__ready(k)) return ptx__none();
    base = ptx__read_handle(k, address);
    if (base.kind == PTX__REG_OFFSET) {
        base = ptx__split_address(base, &offset);
        address = ptx_ptr_add_(k, site, ptx__register_handle(&base), index, bytes);
        return ptx__ready(k) ? ptx_off(address, offset) : address;
    }
    if (!ptx__require_own(k, site, base, "the address")) return ptx__none();
    if (base.kind == PTX__REG && !((PTX__I32 | PTX__I64 | PTX__B32_64) >> base.type & 1))
        return PTX__REFUSE(
            k, PTX_E_ADDRESS, site,
            "an address is an integer of 32 or 64 bits, this is %s: ptx_param_ptr() declares one",
            ptx__describe(base));
    if (!bytes)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site,
                           "elements of 0 bytes: every index would be the same place");
    elements = ptx__materialize_address(k, site, &index);
    if (elements.kind == PTX__IMM) { /* the sum wraps at the address's width */
        if ((int64_t)elements.bits > INT64_MAX / bytes || (int64_t)elements.bits < -(INT64_MAX / bytes))
            return PTX__REFUSE(k, PTX_E_RANGE, site, "%lld elements of %u bytes pass 2^63 bytes",
                               (long long)elements.bits, bytes);
        elements.bits *= bytes;
        if (ptx__fact(base.type)->bits == 32) elements.bits &= 0xffffffffu;
        elements.type = base.type;
        return ptx_op2_(k, site, PTX_ADD, 0, address, ptx__operand_handle(k, &elements));
    }
    if (base.kind != PTX__REG)
        return PTX__REFUSE(k, PTX_E_HANDLE, site, "an index in a register behind %s: only ptx_off goes there",
                           ptx__describe(base));
    if (elements.kind != PTX__IMM_FLOAT && !ptx__require_own(k, site, elements, "the index"))
        return ptx__none();
    if (elements.space && base.space)
        return PTX__REFUSE(k, PTX_E_ADDRESS, site,
                           "the index is an address itself: ptx_ptr(x, PTX_GENERIC) is its number");
    width = ptx__fact(elements.type)->bits;
    if (!((PTX__I32 | PTX__I64 | PTX__B32_64) >> elements.type & 1) || width > ptx__fact(base.type)->bits)
        return PTX__REFUSE(k, PTX_E_TYPE, site,
                           "an index is an integer of 32 bits, or of the %u of its address; this is %s%s",
                           ptx__fact(base.type)->bits, ptx__describe(elements),
                           ptx__conversion_hint(elements, PTX_U32).s);
    if (width < ptx__fact(base.type)->bits) { /* s32 is sign-extended, others are zero-extended */
        if (elements.type != PTX_S32) index = ptx__with_type(index, PTX_U32);
        sum = ptx_op3_(k, site, PTX_MAD, PTX_WIDE, index, ptx_imm(bytes),
                       ptx_as(address, elements.type == PTX_S32 ? PTX_S64 : PTX_U64));
        return ptx_as(sum, (ptx_type)base.type);
    }
    if (elements.space == 0) index = ptx__with_type(index, base.type);
    return ptx_op3_(k, site, PTX_MAD, PTX_LO, index, ptx_imm(bytes), address);
}

/* Check the types of a mov that packs n parts into one register, or unpacks it. Returns 0 after an error. */
PTX__COLD int ptx__parts_ok(ptx_kernel *k, const char *site, unsigned whole, unsigned part, uint32_t n,
                            const void *parts) {
    if ((whole == PTX_F16X2 && part == PTX_BF16) || (whole == PTX_BF16X2 && part == PTX_F16))
        return ptx__fail(k, PTX_E_TYPE, site,
                         "parts of %s are no %s: ptx_cvt converts, ptx_as reads their bits",
                         ptx__fact(whole)->name, ptx__fact(part)->name);
    if (whole < PTX__TYPE_COUNT && part < PTX__TYPE_COUNT && parts && (n == 2 || n == 4)
        && (ptx__fact(part)->bits >= 16 || part == PTX_E2M1X2)
        && ptx__fact(part)->bits * n == ptx__fact(whole)->bits)
        return 1;
    return ptx__fail(k, PTX_E_VECTOR, site, "%u parts of %s do not make one %s", n,
                     ptx_type_name((ptx_type)part), ptx_type_name((ptx_type)whole));
}
PTX__COLD_API ptx_val ptx_pack_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n,
                                const ptx_val *parts) {
    ptx_val d = ptx__none();
    ptx__operand p[4];
    ptx__use u;
    unsigned part, integers = 0;
    uint32_t i, form;
    size_t at;
    if (!ptx__ready(k)) return d;
    part = parts ? (unsigned)ptx_type_of(parts[0]) : (unsigned)PTX_NONE;
    if (!ptx__parts_ok(k, site, type, part, n, parts)) return d;
    for (i = 1; i < n && n == 2; i++)
        if (ptx__fact((unsigned)ptx_type_of(parts[i]))->kind == 'h'
            && !ptx__parts_ok(k, site, type, (unsigned)ptx_type_of(parts[i]), n, parts))
            return d;
    form = ptx__get_form(k, site, PTX_MOV, ptx__as_bits(type), 0, 0);
    if (!form || !ptx__require_unguarded(k, site, "mov")) return d;
    for (i = 0; i < n; i++) integers |= ptx__fact((unsigned)ptx_type_of(parts[i]))->kind != 'f';
    for (i = 0; i < n; i++) {
        p[i] = ptx__materialize(k, site, ptx__read_handle(k, parts[i]), 't');
        if (integers && p[i].kind == PTX__IMM_FLOAT) /* beside them ptxas refuses f32 and f64 immediates */
            p[i] = ptx__read_handle(k, ptx__record_one(k, site, PTX__REQUEST(PTX_MOV, 0, 0, 1), 0, parts[i]));
    }
    if (!ptx__ready(k) || !ptx__reserve(k, 2 + 3 * 4)) return d;
    at = k->words.count;
    u = ptx__use_of(k, site, PTX_MOV);
    d = ptx__new_register(k, site, type);
    ptx__push_word(k, (uint32_t)d.handle);
    ptx__push_word(k, PTX__WORD(PTX__W_VECTOR, n));
    for (i = 0; i < n; i++) {
        u.index = i + 1;
        if (!ptx__push_source(&u, p[i], part, 1)) return ptx__none();
    }
    ptx__commit(k, site, PTX__I_PLAIN, form - 1, at, 1);
    return d;
}
PTXGEN_API void ptx_unpack_(ptx_kernel *k, const char *site, ptx_type type, uint32_t n, ptx_val whole,
                            ptx_val *out) {
    const unsigned type_of_whole = (unsigned)ptx_type_of(whole);
    uint32_t i, form;
    size_t at;
    for (i = 0; out && i < n && n <= 4; i++) out[i] = ptx__none();
    if (!ptx__ready(k) || !ptx__require_register(k, site, ptx__read_handle(k, whole), "the operand of mov"))
        return;
    if (!ptx__parts_ok(k, site, type_of_whole, type, n, out)) return;
    form = ptx__get_form(k, site, PTX_MOV, ptx__as_bits(type_of_whole), 0, 0);
    if (!form || !ptx__require_unguarded(k, site, "mov") || !ptx__reserve(k, 6)) return;
    at = k->words.count;
    ptx__push_word(k, PTX__WORD(PTX__W_VECTOR, n));
    for (i = 0; i < n; i++) {
        out[i] = ptx__new_register(k, site, type);
        ptx__push_word(k, (uint32_t)out[i].handle);
    }
    ptx__push_word(k, (uint32_t)whole.handle);
    ptx__commit(k, site, PTX__I_PLAIN, form - 1, at, n + 1);
}

PTXGEN_API ptx_mem ptx_elem_(ptx_kernel *k, const char *site, ptx_type type, ptx_val p, ptx_val index) {
    if (ptx__ready(k) && ptx__require_type(k, site, type) && !ptx_type_bytes(type))
        ptx__fail(k, PTX_E_TYPE, site, "elements of type %s have no size in memory", ptx_type_name(type));
    return ptx_at(ptx_ptr_add_(k, site, p, index, ptx_type_bytes(type)), 0);
}
PTXGEN_API ptx_mem ptx_field_(ptx_kernel *k, const char *site, ptx_type type, ptx_val field, size_t bytes) {
    if (ptx__ready(k) && ptx_type_bytes(type) != bytes)
        ptx__fail(k, PTX_E_TYPE, site, "the field has %lu bytes, %s has %lu", (unsigned long)bytes,
                  ptx_type_name(type), (unsigned long)ptx_type_bytes(type));
    return ptx_at(field, 0);
}

PTX__COLD_API ptx_val ptx_sreg_(ptx_kernel *k, const char *site, ptx_special which) {
    ptx_val d = ptx__none();
    const ptx__special_fact *special;
    if (!ptx__ready(k)) return d;
    if ((unsigned)which >= PTX__SPECIAL_COUNT)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site, "no such special register");
    special = &ptx__specials[which];
    if (!ptx__require_target(k, site, special->name, special->sm)
        || !ptx__require_version(k, site, special->name, -1, special->version)
        || !ptx__require_unguarded(k, site, "mov"))
        return d;
    return ptx__move_word(k, site, PTX__WORD(PTX__W_SPECIAL, which), special->type);
}

PTX__COLD_API ptx_val ptx_global_(ptx_kernel *k, const char *site, int dimension) {
    const unsigned d = (unsigned)dimension % 3;
    ptx_val block = ptx_sreg_(k, site, (ptx_special)(PTX_CTAID_X + d));
    ptx_val threads = ptx_sreg_(k, site, (ptx_special)(PTX_NTID_X + d));
    ptx_val thread = ptx_sreg_(k, site, (ptx_special)(PTX_TID_X + d));
    return ptx_op3_(k, site, PTX_MAD, 0, block, threads, thread);
}

PTX__COLD_API ptx_val ptx_uniform_(ptx_kernel *k, const char *site, ptx_val v, int where) {
    ptx__operand o;
    if (!ptx__ready(k)) return v;
    o = ptx__materialize_address(k, site, &v);
    if (!ptx__ready(k) || o.kind == PTX__IMM || o.kind == PTX__IMM_FLOAT) return v;
    if (!ptx__require_own(k, site, o, "the value")) return ptx__none();
    if (o.kind == PTX__PARAM_BLOCK || !PTX__ROOM(k->m, k->asserted, 2)) return v;
    k->asserted.at[k->asserted.count++] = (uint32_t)o.bits;
    k->asserted.at[k->asserted.count++] = where == 1   ? PTX__CLASS_WARP
                                          : where == 2 ? PTX__CLASS_GROUP
                                          : where == 3 ? PTX__CLASS_CLUSTER
                                                       : PTX__CLASS_BLOCK;
    k->verified = 0;
    return v;
}

/* -- raw text, calls -- */

static int ptx__require_no_guard(ptx_kernel *k, const char *site, const char *what);

/* Parse the number at *p, after a '$', and advance *p past it. Returns -1 if there is none. */
static int ptx__parse_placeholder(const char **p) {
    int n = -1;
    while (**p >= '0' && **p <= '9' && n < 1000) n = (n < 0 ? 0 : n) * 10 + (*(*p)++ - '0');
    return n;
}

/* Record raw text; makes registers of the given types in out. collective, effect: of its form.
   Returns 0 after an error. */
PTX__COLD int ptx__record_raw(ptx_kernel *k, const char *site, unsigned kind, unsigned collective,
                              unsigned effect, const char *text, unsigned n, const ptx_val *src,
                              unsigned results, const ptx_type *types, ptx_val *out) {
    const char *p, *dollar;
    uint32_t form, kept, i;
    size_t at;
    ptx__operand v[64];
    ptx__use u;
    for (p = text; *p == '\n' || *p == '\t' || (unsigned char)*p - 32u < 95u; p++) {
        unsigned which;
        if (*p != '$' || *++p == '$') continue;
        dollar = p - 1;
        which = (unsigned)ptx__parse_placeholder(&p);
        if (which >= n + results) { /* or no number: (unsigned)-1 */
            p = dollar;
            break;
        }
        p--;
    }
    if (n > 64 || results > 64)
        return ptx__fail(k, PTX_E_ARGUMENT, site,
                         "raw text has at most 64 results and 64 operands, %u and %u are given", results, n);
    if (*p)
        return ptx__fail(k, PTX_E_ARGUMENT, site, "raw text, at '%.20s': %s", p,
                         *p == '$' ? "no result or operand has this number, from 0 on" : "it must be ASCII");
    if (results && !ptx__require_unguarded(k, site, "a raw instruction")) return 0;
    form = ptx__get_form(k, site, PTX_RAW, effect, collective, 0);
    kept = ptx__keep(k->m, text, strlen(text));
    for (i = 0; i < n; i++) v[i] = ptx__materialize(k, site, ptx__read_handle(k, src[i]), 'p');
    if (!form || !kept || !ptx__ready(k) || !ptx__reserve(k, results + 1 + 3 * (size_t)n)) return 0;
    if (kept > PTX__INDEX_MAX) return ptx__fail(k, PTX_E_MEMORY, site, "more than 2^27 bytes of names");
    at = k->words.count;
    u = ptx__use_of(k, site, PTX_RAW);
    for (i = 0; i < results; i++) {
        if (ptx__in_register(types[i]) >= PTX__TYPE_COUNT || !ptx__fact(types[i])->bits)
            return ptx__fail(k, PTX_E_TYPE, site, "result %u cannot be %s", i + 1, ptx_type_name(types[i]));
        out[i] = ptx__new_register(k, site, ptx__in_register(types[i]));
        ptx__push_word(k, (uint32_t)out[i].handle);
    }
    ptx__push_word(k, PTX__WORD(PTX__W_TEXT, kept));
    for (i = 0; i < n; i++) {
        unsigned type = v[i].type;
        int ok;
        u.index = i + 1;
        if (v[i].kind == PTX__REG_OFFSET || v[i].kind == PTX__PARAM_OFFSET || v[i].kind == PTX__PARAM_BLOCK)
            ok = ptx__push_address(&u, v[i], 'm');
        else if (v[i].kind == PTX__IMM && type == PTX_NONE)
            ok = ptx__push_source(&u, v[i], (int64_t)v[i].bits < 0 ? PTX_S64 : PTX_U64, 0);
        else
            ok = ptx__push_source(&u, v[i], type, 0);
        if (!ok) {
            k->words.count = at;
            return 0;
        }
    }
    ptx__commit(k, site, kind, form - 1, at, results);
    return 1;
}

PTX__COLD_API void ptx_raw_(ptx_kernel *k, const char *site, const char *text, uint32_t n,
                            const ptx_val *operands, uint32_t results, const ptx_type *types, ptx_val *out) {
    const char *end = text ? strchr(text, ';') : NULL;
    uint32_t i;
    if (ptx__ready(k) && (!text || (n && !operands) || (results && (!types || !out))))
        ptx__fail(k, PTX_E_ARGUMENT, site,
                  "ptx_raw: the text, the operands, the types or the results are NULL");
    if (ptx__ready(k) && k->guard && (text[strspn(text, " \t\n")] == '{' || (end && strchr(end + 1, ';'))))
        ptx__fail(k, PTX_E_GUARD, site,
                  "a guard is for one instruction, and this text has a block or more of them");
    /* out may overlap the operands, so it is cleared only after an error */
    if (!ptx__ready(k)
        || !ptx__record_raw(k, site, PTX__I_PLAIN, PTX__COLLECTIVE_NONE, PTX__EFFECT_WAIT, text, n, operands,
                            results, types, out))
        for (i = 0; out && results <= 64 && i < results; i++) out[i] = ptx__none();
}

PTX__COLD_API void ptx_pragma_(ptx_kernel *k, const char *site, const char *text) {
    static const char *const known[] = {"nounroll", "used_bytes_mask", "enable_smem_spilling", "frequency"};
    static const uint8_t since[] = {0, 83, 87, 90};
    size_t i;
    char line[300];
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "a pragma")) return;
    for (i = 0; text && i < sizeof known / sizeof *known; i++)
        if (strncmp(text, known[i], strlen(known[i])) == 0) break;
    if (text && i == sizeof known / sizeof *known)
        ptx__fail(k, PTX_E_ARGUMENT, site,
                  "the assembler knows no pragma \"%.60s\" and would ignore it; there are nounroll, "
                  "used_bytes_mask, enable_smem_spilling, frequency",
                  text);
    if (!text || strlen(text) > 200 || strpbrk(text, "\"\\$\n"))
        ptx__fail(k, PTX_E_ARGUMENT, site, "a pragma is a text of at most 200 characters");
    if (!ptx__ready(k) || !ptx__require_version(k, site, known[i], -1, since[i])) return;
    snprintf(line, sizeof line, ".pragma \"%.200s\";", text);
    ptx__record_raw(k, site, PTX__I_PLAIN, 0, 0, line, 0, NULL, 0, NULL, NULL);
}

PTX__COLD_API void ptx_return_(ptx_kernel *k, const char *site, ptx_val value) {
    char text[400];
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "ptx_return")) return;
    if (!k->function || !k->result)
        ptx__fail(k, PTX_E_ARGUMENT, site, "only a function with a result returns a value; use ptx_ret");
    else
        value = ptx__typed_value(k, site, "ptx_return", value, ptx__in_register(k->result));
    if (!ptx__ready(k)) return;
    snprintf(text, sizeof text, "st.param.b%u [%.255s$$result], $0;", (unsigned)ptx__fact(k->result)->bits,
             k->m->names.at + k->name);
    if (!ptx__record_raw(k, site, PTX__I_PLAIN, 0, 0, text, 1, &value, 0, NULL, NULL)) return;
    k->returning = 1;
    ptx_op0_(k, site, PTX_RET, 0);
    k->returning = 0;
}

#define PTX__ARGS_MAX 32
/* Raw text under construction: a call with up to PTX__ARGS_MAX arguments, or a table of 512 labels. */
typedef struct ptx__line {
    size_t used;
    char text[8000];
} ptx__line;
PTX__COLD void ptx__append_format(ptx__line *line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    line->used +=
        (size_t)vsnprintf(line->text + line->used, sizeof line->text - line->used, format, args);
    va_end(args);
}
static unsigned ptx__bits_of(ptx_val v) { return ptx__fact((unsigned)ptx_type_of(v))->bits; }
/* Begin a call: "{ .param .b32 $$a0; st.param.b32 [$$a0], $1; ...". The first argument is $1 if the call has
   a result, else $0. $$ prints a '$', which no name of a caller contains. */
PTX__COLD void ptx__call_head(ptx__line *line, unsigned result, unsigned n, const ptx_val *v) {
    unsigned i, first = result != PTX_NONE;
    line->used = 0;
    ptx__append_format(line, "{");
    for (i = 0; i < n; i++)
        ptx__append_format(line, " .param .b%u $$a%u; st.param.b%u [$$a%u], $%u;", ptx__bits_of(v[i]), i,
                           ptx__bits_of(v[i]), i, first + i);
    if (result) ptx__append_format(line, " .param .b%u $$r;", (unsigned)ptx__fact(result)->bits);
}
/* End a call: its argument list, `suffix` (the prototype of an indirect call), the load of its result. */
PTX__COLD void ptx__call_tail(ptx__line *line, unsigned result, unsigned n, const char *suffix) {
    unsigned i;
    for (i = 0; i < n; i++) ptx__append_format(line, i ? ", $$a%u" : "$$a%u", i);
    ptx__append_format(line, ")%s;", suffix);
    if (result) ptx__append_format(line, " ld.param.b%u $0, [$$r];", (unsigned)ptx__fact(result)->bits);
    ptx__append_format(line, " }");
}

PTX__COLD int ptx__check_arguments(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *args,
                                   ptx_val *v) {
    uint32_t i;
    ptx__operand o;
    if (!ptx__require_no_guard(k, site, "a call")) return 0;
    if (n && !args) return ptx__fail(k, PTX_E_ARGUMENT, site, "the array of the %s is NULL", "arguments");
    if (n > PTX__ARGS_MAX)
        return ptx__fail(k, PTX_E_ARGUMENT, site, "a call has at most %d arguments, not %u", PTX__ARGS_MAX,
                         n);
    for (i = 0; i < n; i++) {
        v[i] = args[i];
        o = ptx__materialize_address(k, site, &v[i]);
        if (!ptx__ready(k)) return 0;
        if (o.kind != PTX__REG && o.kind != PTX__IMM && o.kind != PTX__IMM_FLOAT)
            return ptx__fail(k, PTX_E_HANDLE, site, "argument %u is %s", i + 1, ptx__describe(o));
        if (o.type == PTX_PRED)
            return ptx__fail(k, PTX_E_TYPE, site, "argument %u is a predicate: pass 0 or 1, made by ptx_selp",
                             i + 1);
    }
    return 1;
}

/* Record a call and its callee. NULL: an indirect call, of any function whose address was taken. */
PTX__COLD ptx_val ptx__finish_call(ptx_kernel *k, const char *site, const char *text, unsigned n,
                                   const ptx_val *v, unsigned result, const ptx_kernel *function) {
    ptx_val out = ptx__none();
    ptx_type type = (ptx_type)result;
    if (!PTX__ROOM(k->m, k->calls, 2)
        || !ptx__record_raw(k, site, PTX__I_PLAIN, PTX__COLLECTIVE_CALL, PTX__EFFECT_WAIT, text, n, v,
                            result != 0, &type, &out))
        return ptx__none();
    k->calls.at[k->calls.count++] = (uint32_t)k->ins.count - 1;
    k->calls.at[k->calls.count++] = function ? function->index : PTX__ANY_CALLEE;
    return out;
}

/* Check the arguments v and give immediates the parameters' types. The parameters are final from now on. */
PTX__COLD int ptx__check_parameters(ptx_kernel *k, const char *site, const ptx_kernel *function, uint32_t n,
                                    ptx_val *v) {
    uint32_t i;
    if (function->index < k->m->kernels_used) k->m->kernels.at[function->index]->called = site;
    if (n != function->params.count)
        return ptx__fail(k, PTX_E_ARGUMENT, site, "'%.80s' takes %u arguments, %u given",
                         k->m->names.at + function->name, (unsigned)function->params.count, n);
    for (i = 0; i < n; i++) {
        char what[64];
        snprintf(what, sizeof what, "argument %u of the call", i + 1);
        v[i] = ptx__typed_value(k, site, what, v[i], function->params.at[i].type & 0xff);
        if (!ptx__ready(k)) return 0;
    }
    return 1;
}

PTX__COLD_API ptx_val ptx_call_(ptx_kernel *k, const char *site, const ptx_kernel *function, uint32_t n,
                                const ptx_val *args) {
    ptx__line line;
    ptx_val v[PTX__ARGS_MAX];
    const char *name;
    if (!ptx__ready(k) || !ptx__check_arguments(k, site, n, args, v)) return ptx__none();
    if (ptx__is_stale(k, function, site)) return ptx__none();
    if (!function || function->m != k->m || !function->function)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site,
                           !function             ? "the function to call is NULL"
                           : function->m != k->m ? "the function to call is another module's"
                                                 : "an entry is launched, not called: make it by ptx_func");
    if (function == k)
        return PTX__REFUSE(k, PTX_E_RECURSION, site,
                           "a function that calls itself needs a stack of unknown size; write a loop");
    if (!ptx__check_parameters(k, site, function, n, v)) return ptx__none();
    name = k->m->names.at + function->name;
    ptx__call_head(&line, function->result, n, v);
    ptx__append_format(&line, function->result ? " call.uni ($$r), %.255s, (" : " call.uni %.255s, (", name);
    ptx__call_tail(&line, function->result, n, "");
    return ptx__finish_call(k, site, line.text, n, v, function->result, function);
}

PTX__COLD_API ptx_val ptx_func_address_(ptx_kernel *k, const char *site, const ptx_kernel *function) {
    char text[300];
    ptx_val out = ptx__none();
    ptx_type type = PTX_U64;
    if (!ptx__ready(k)) return ptx__none();
    if (ptx__is_stale(k, function, site)) return ptx__none();
    if (!function || function->m != k->m || !function->function)
        return PTX__REFUSE(k, PTX_E_ARGUMENT, site, "only a function of the same module has an address");
    snprintf(text, sizeof text, "mov.u64 $0, %.255s;", k->m->names.at + function->name);
    k->m->kernels.at[function->index]->address_taken = 1;
    if (!ptx__record_raw(k, site, PTX__I_PLAIN, 0, 0, text, 0, NULL, 1, &type, &out)) return ptx__none();
    return out;
}

PTX__COLD_API ptx_val ptx_call_indirect_(ptx_kernel *k, const char *site, ptx_val address, ptx_type result,
                                         uint32_t n, const ptx_val *args) {
    ptx__line line;
    ptx_val v[PTX__ARGS_MAX + 1];
    unsigned i;
    if (!ptx__ready(k) || !ptx__check_arguments(k, site, n, args, v)) return ptx__none();
    if (!ptx__may_return(k, site, result)
        || !ptx__require_register(k, site, ptx__read_handle(k, address), "the function's address"))
        return ptx__none();
    if (ptx__bits_of(address) != 64)
        return PTX__REFUSE(k, PTX_E_ADDRESS, site, "a function's address has 64 bits, this is %s",
                           ptx__describe(ptx__read_handle(k, address)));
    for (i = 0; i < n; i++)
        if (ptx_type_of(v[i]) == PTX_NONE)
            return PTX__REFUSE(k, PTX_E_TYPE, site,
                               "argument %u has no type to go by; use ptx_u32() or the like", i + 1);
    v[n] = address;
    ptx__call_head(&line, (unsigned)result, n, v);
    ptx__append_format(&line, " $$P: .callprototype ");
    if (result) ptx__append_format(&line, "(.param .b%u _) ", (unsigned)ptx__fact((unsigned)result)->bits);
    ptx__append_format(&line, "_ (");
    for (i = 0; i < n; i++)
        ptx__append_format(&line, i ? ", .param .b%u _" : ".param .b%u _", ptx__bits_of(v[i]));
    ptx__append_format(&line, result ? "); call ($$r), $%u, (" : "); call $%u, (", n + (result != PTX_NONE));
    ptx__call_tail(&line, (unsigned)result, n, ", $$P");
    return ptx__finish_call(k, site, line.text, n + 1, v, (unsigned)result, NULL);
}

/* Check each conversion of a format against its argument. Returns 0 after an error. */
PTX__COLD int ptx__format_fits(ptx_kernel *k, const char *site, const char *format, uint32_t n,
                               const ptx_val *v) {
    const char *p = format;
    uint32_t used = 0;
    while ((p = strchr(p, '%')) != NULL) {
        unsigned longs = 0, bits;
        int floating, is_float;
        ptx__operand a;
        char kind;
        if (*++p == '%') {
            p++;
            continue;
        }
        for (; *p && strchr("-+ #0123456789.*", *p); p++) used += *p == '*'; /* '*' takes an argument */
        for (; *p && strchr("hlLqjzt", *p); p++) longs += *p != 'h';
        kind = *p;
        if (!kind || !strchr("diuoxXcfFeEgGaAsp", kind))
            return ptx__fail(k, PTX_E_ARGUMENT, site, "ptx_printf: '%%%c' is no conversion",
                             kind ? kind : ' ');
        p++;
        if (used++ >= n) continue;
        a = ptx__read_handle(k, v[used - 1]);
        bits = longs || kind == 's' || kind == 'p' ? 64 : 32;
        floating = strchr("fFeEgGaA", kind) != NULL;
        is_float = a.kind == PTX__IMM_FLOAT || strchr("fh", ptx__fact(a.type)->kind);
        if (floating == is_float
            && (floating || a.type == PTX_NONE || longs == 1 || ptx__fact(a.type)->bits == bits
                || (bits == 32 && ptx__fact(a.type)->bits == 16)))
            continue;
        return ptx__fail(k, PTX_E_TYPE, site, "ptx_printf: argument %u is %s, '%%%.*s%c' takes %s", used,
                         ptx__describe(a), longs > 1 ? 2 : (int)longs, "ll", kind,
                         floating     ? "a float"
                         : bits == 64 ? "an integer or address of 64 bits"
                                      : "an integer of 32 bits");
    }
    if (used == n) return 1;
    return ptx__fail(k, PTX_E_ARGUMENT, site, "ptx_printf: the format takes %u arguments, %u are given", used,
                     n);
}

static int ptx__name_is_taken(const ptx_module *m, const char *name) {
    return ptx__find_name(m, PTX__OF_MODULE, name) || ptx__find_name(m, PTX__OF_ANY_KERNEL, name);
}

PTX__COLD_API void ptx_printf_(ptx_kernel *k, const char *site, const char *format, uint32_t n,
                               const ptx_val *args) {
    ptx__line line;
    char name[32];
    ptx_val v[PTX__ARGS_MAX];
    ptx_variable_desc desc;
    uint32_t i, bytes = 0, offset[PTX__ARGS_MAX];
    if (!ptx__ready(k) || !ptx__check_arguments(k, site, n, args, v)) return;
    if (!format) ptx__fail(k, PTX_E_ARGUMENT, site, "ptx_printf: the format is NULL");
    if (!format || !ptx__format_fits(k, site, format, n, v)) return;
    for (i = 0; i < n; i++) {
        const ptx__operand o = ptx__read_handle(k, v[i]);
        const unsigned wide = ptx__fact(o.type)->bits;
        if (o.kind == PTX__IMM && o.type == PTX_NONE) v[i] = ptx__with_type(v[i], PTX_S32);
        if (o.kind == PTX__IMM_FLOAT && o.type != PTX_F64) { /* a C float, promoted to double */
            double value;
            memcpy(&value, &o.bits, sizeof value);
            v[i] = ptx_f64((double)(float)value);
        }
        if (o.kind == PTX__REG && (o.type == PTX_F32 || o.type == PTX_F16 || o.type == PTX_BF16))
            v[i] = ptx_cvt_(k, site, 0, PTX_F64, v[i]);
        else if (o.kind == PTX__REG && wide == 16)
            v[i] = ptx_cvt_(k, site, 0, o.type == PTX_S16 ? PTX_S32 : PTX_U32, v[i]);
        if (ptx__bits_of(v[i]) != 32 && ptx__bits_of(v[i]) != 64)
            ptx__fail(k, PTX_E_TYPE, site, "argument %u of printf is %s", i + 1, ptx__describe(o));
        if (!ptx__ready(k)) return;
        bytes = ptx__align_up(bytes, ptx__bits_of(v[i]) / 8u);
        offset[i] = bytes;
        bytes += ptx__bits_of(v[i]) / 8u;
    }
    memset(&desc, 0, sizeof desc);
    i = (uint32_t)k->m->variables.count;
    do snprintf(name, sizeof name, "_printf_%u", (unsigned)i++);
    while (ptx__name_is_taken(k->m, name));
    desc.name = name;
    desc.space = PTX_GLOBAL;
    desc.type = PTX_B8;
    desc.count = (uint32_t)strlen(format) + 1;
    desc.data = format;
    ptx_variable_(k->m, site, &desc);
    if (!ptx__ready(k)) return;
    line.used = 0;
    ptx__append_format(
        &line,
        "{ .local .align 8 .b8 $$b[%u]; .reg .b64 $$x; .reg .b64 $$y; .reg .b32 $$z; mov.u64 $$x, $$b;",
        bytes ? bytes : 8u);
    for (i = 0; i < n; i++)
        ptx__append_format(&line, " st.local.b%u [$$x+%u], $%u;", ptx__bits_of(v[i]), offset[i], i);
    ptx__append_format(&line,
                       " cvta.local.u64 $$x, $$x; mov.u64 $$y, %s; cvta.global.u64 $$y, $$y; .param .b64 $$p;"
                       " .param .b64 $$q; .param .b32 $$r; st.param.b64 [$$p], $$y; st.param.b64 [$$q], $$x;"
                       " call.uni ($$r), vprintf, ($$p, $$q); ld.param.b32 $$z, [$$r]; }",
                       name);
    k->m->printf_used = 1;
    ptx__record_raw(k, site, PTX__I_PLAIN, 0, 0, line.text, n, v, 0, NULL, NULL);
}

PTX__COLD_API ptx_val ptx_cvta_(ptx_kernel *k, const char *site, ptx_val address) {
    ptx_val v = address;
    ptx__operand o;
    int64_t offset;
    if (!ptx__ready(k)) return ptx__none();
    o = ptx__materialize_address(k, site, &v);
    if (!ptx__ready(k)) return ptx__none();
    if (o.kind == PTX__PARAM_OFFSET) { /* convert the base, then add the offset */
        o = ptx__split_address(o, &offset);
        v = ptx_cvta_(k, site, ptx__register_handle(&o));
        return ptx__ready(k) ? ptx_off(v, offset) : v;
    }
    if (o.kind == PTX__PARAM_BLOCK) {
        if (!ptx__require_own(k, site, o, "the address")) return ptx__none();
        v = ptx__symbol_address(k, site, PTX__WORD(PTX__W_PARAM, o.bits), PTX_U64, PTX_PARAM, 1);
    } else if (o.space == PTX_GENERIC) {
        if (ptx__require_own(k, site, o, "the address") && ptx__fact(o.type)->bits != 64)
            ptx__fail(k, PTX_E_ADDRESS, site, "cvta: the address is %s, in no space", ptx__describe(o));
        return ptx__ready(k) ? v : ptx__none();
    }
    if (o.space == PTX_SHARED || o.space == PTX_SHARED_CLUSTER)
        v = ptx__with_space(ptx_cvt_(k, site, 0, PTX_U64, ptx_as(v, PTX_U32)), o.space);
    return ptx__record_one(k, site, PTX__REQUEST(PTX_CVTA, PTX_U64, 0, 1), ptx__space_mod(o.space), v);
}
PTX__COLD_API ptx_val ptx_cvta_to_(ptx_kernel *k, const char *site, ptx_space space, ptx_val address) {
    if (!ptx__ready(k)) return ptx__none();
    ptx__materialize_address(k, site, &address);
    address = ptx__record_one(k, site, PTX__REQUEST(PTX_CVTA_TO, PTX_U64, 0, 1),
                              ptx__space_mod((unsigned)space), address);
    if (space == PTX_SHARED) address = ptx_cvt_(k, site, 0, PTX_U32, address);
    return ptx__ready(k) ? ptx__with_space(address, (unsigned)space) : ptx__none();
}

/* -- textures and surfaces -- */

/* The source operands of a texture or surface instruction, "=[d{uu}]{t}"; NULL after an error. */
PTX__COLD const char *ptx__object_operands(ptx_kernel *k, const char *site, ptx_op_id op, const ptx_val *at,
                                           char *signature, unsigned *sources) {
    unsigned results;
    if ((unsigned)op < PTX__OP_COUNT && at
        && ptx__expand_signature(ptx__rows[k->m->first_row[op]].sig, 1, 0, signature, &results, sources)
        && (signature = strstr(signature, "=[d{")) != NULL)
        return signature;
    ptx__fail(k, PTX_E_ARGUMENT, site,
              at ? "this is no instruction for textures and surfaces" : "the array of the %s is NULL",
              "coordinates");
    return NULL;
}

/* A texture coordinate. Integer coordinates are s32: u32 and b32 are reinterpreted. */
PTX__COLD ptx_val ptx__coordinate(ptx_val v, char slot) {
    const ptx_type has = ptx_type_of(v);
    return slot == 'c' && (has == PTX_U32 || has == PTX_B32) ? ptx_as(v, PTX_S32) : v;
}

/* Only a layered cube reads the fourth value of a group (layer, x, y, z). In other groups it is padding: if
   the caller leaves it out, it repeats the third. */
PTX__COLD_API void ptx_tex_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_type type, ptx_val texture,
                            uint32_t n, const ptx_val *at, ptx_val *out) {
    char signature[PTX__SIGNATURE_MAX];
    ptx_val list[16];
    const int cubes = op == PTX_TEX_ACUBE || op == PTX_TEX_LEVEL_ACUBE || op == PTX_TEX_GRAD_ACUBE
                      || (op >= PTX_TLD4_R_ACUBE && op <= PTX_TLD4_A_ACUBE);
    unsigned sources = 0, count = 0, used = 0, groups = 0, place = 0;
    const char *p = ptx__ready(k) ? ptx__object_operands(k, site, op, at, signature, &sources) : NULL;
    list[count++] = texture;
    for (p = p ? p + 3 : ""; *p; p++) {
        if (*p == '{') groups++, place = 0;
        if (!ptx__is_slot(*p)) continue;
        if (++place == 4 && n != sources - 1 && !(cubes && groups == 1)) list[count] = list[count - 1];
        else list[count] = used < n ? ptx__coordinate(at[used], *p) : texture, used++;
        count++;
    }
    if (ptx__ready(k) && used != n)
        ptx__fail(k, PTX_E_ARGUMENT, site, "%s takes %u value%s behind the texture, %u given",
                  ptx__rows[k->m->first_row[op]].name, used, used == 1 ? "" : "s", n);
    /* after an error, this only sets the results to "no value" */
    ptx_opn_(k, site, op, 0, type, PTX_NONE, count, list, 4, out);
}

PTX__COLD_API void ptx_tex_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_type type,
                               ptx_val texture, uint32_t n, ptx_val a, ptx_val b, ptx_val c, ptx_val *out) {
    ptx_val at[3];
    at[0] = a, at[1] = b, at[2] = c;
    if (n > 3 && ptx__ready(k))
        ptx__fail(k, PTX_E_ARGUMENT, site, "there are 1 to 3 values behind the texture, %u given", n);
    ptx_tex_(k, site, op, type, texture, n > 3 ? 0 : n, at, out);
}

/* Fill list with a surface and its coordinates; a fourth repeats the third. Returns the count; 0: error. */
PTX__COLD uint32_t ptx__surface_operands(ptx_kernel *k, const char *site, ptx_op_id op, ptx_type type,
                                         uint32_t n, ptx_val surface, const ptx_val *at, ptx_val *list) {
    char signature[PTX__SIGNATURE_MAX];
    unsigned sources, i;
    const char *p = ptx__ready(k) ? ptx__object_operands(k, site, op, at, signature, &sources) : NULL;
    if (!p || !ptx__require_type(k, site, type)) return 0;
    if (n > 4) return (uint32_t)ptx__fail(k, PTX_E_ARGUMENT, site, "there are 1, 2 or 4 values, not %u", n);
    list[0] = surface;
    for (i = 0; i < 4 && ptx__is_slot(p[4 + i]); i++) list[1 + i] = at[i < 3 ? i : 2];
    return i + 1;
}

PTX__COLD_API void ptx_surface_load_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                     ptx_type type, uint32_t n, ptx_val surface, const ptx_val *at,
                                     ptx_val *out) {
    ptx_val list[5];
    const uint32_t count = ptx__surface_operands(k, site, op, type, n, surface, at, list);
    uint32_t i;
    for (i = 0; out && i < n && n <= 4; i++) out[i] = ptx__none();
    if (!count) return;
    ptx_opn_(k, site, op, outside, (ptx_type)ptx__as_bits(type), PTX_NONE, count, list, n, out);
    if (ptx_type_bytes(type) == 1) type = PTX_U32; /* bytes are loaded into 32-bit registers */
    for (i = 0; out && i < n && n <= 4; i++) out[i] = ptx_as(out[i], type);
}

PTX__COLD_API void ptx_surface_store_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                      ptx_type type, uint32_t n, ptx_val surface, const ptx_val *at,
                                      const ptx_val *values) {
    ptx_val list[9];
    uint32_t count = ptx__surface_operands(k, site, op, type, n, surface, at, list), i;
    if (!count) return;
    if (!values) {
        ptx__fail(k, PTX_E_ARGUMENT, site, "the array of the %u values is NULL", n);
        return;
    }
    for (i = 0; i < n; i++) {
        ptx__operand v = ptx__read_handle(k, values[i]);
        if (v.type != type && strchr("fh", ptx__fact(type)->kind) && ptx__is_number(type)
            && !ptx__check_value(k, site, "a value for a surface", &v, type))
            return;
        list[count++] = values[i];
    }
    if (!(ptx__types_of(&ptx__rows[k->m->first_row[op]]) >> type & 1)) type = (ptx_type)ptx__as_bits(type);
    ptx_opn_(k, site, op, outside, type, PTX_NONE, count, list, 0, NULL);
}

PTX__COLD_API ptx_val ptx_surface_load_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                           ptx_type type, ptx_val surface, ptx_val x, ptx_val y,
                                           ptx_val z) {
    ptx_val at[3], loaded;
    at[0] = x, at[1] = y, at[2] = z;
    ptx_surface_load_(k, site, op, outside, type, 1, surface, at, &loaded);
    return loaded;
}

PTX__COLD_API void ptx_surface_store_at_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods outside,
                                         ptx_type type, ptx_val surface, ptx_val x, ptx_val y, ptx_val z,
                                         ptx_val value) {
    ptx_val at[3];
    at[0] = x, at[1] = y, at[2] = z;
    ptx_surface_store_(k, site, op, outside, type, 1, surface, at, &value);
}

/* -- tensor cores -- */

PTXGEN_API void ptx_ldmatrix_(ptx_kernel *k, const char *site, ptx_op_id op, uint32_t n, ptx_val row,
                              ptx_val *out) {
    ptx_opn_(k, site, op, 0, PTX_NONE, PTX_NONE, 1, &row, n > 4 ? UINT32_MAX : n, out);
}

/* The first row of instruction op, from `row` on, that takes elements of that type; NULL: none. */
static const ptx__row *ptx__row_of_type(const ptx__row *row, unsigned op, unsigned type) {
    for (; type < PTX__TYPE_COUNT && row < ptx__rows + PTX__ROW_COUNT && row->op == op; row++)
        if (!ptx__types_of(row) || ptx__types_of(row) >> type & 1) return row;
    return NULL;
}
/* As ptx__row_of_type, for a matrix product. counts: the number of registers of d, a, b and c. */
static const ptx__row *ptx__mma_row(const ptx__row *row, unsigned op, unsigned a_type, uint32_t counts[4]) {
    const char *p;
    unsigned group = 0;
    row = ptx__row_of_type(row, op, a_type);
    if (!row || row->sig[0] != '{') return NULL;
    for (p = row->sig; *p && group < 4; p++)
        if (*p == '{') counts[group++] = p[1] >= '1' && p[1] <= '9' ? (uint32_t)(p[1] - '0') : 1;
    return group == 4 ? row : NULL;
}
PTXGEN_API int ptx_mma_shape(ptx_op_id op, ptx_type a_type, uint32_t counts[4]) {
    return counts && ptx__mma_row(ptx__rows_of(op), op, a_type, counts) != NULL;
}
static int ptx__elements_ok(ptx_kernel *k, const char *site, const ptx__row *row, ptx_type a, ptx_type b) {
    if (ptx__sources_of(row) || b == PTX_NONE || b == a) return 1;
    return ptx__fail(k, PTX_E_FORM, site, "%s takes elements of one type, not %s and %s", row->name,
                     ptx_type_name(a), ptx_type_name(b));
}
/* After an error: the results of a matrix product are "no value". */
PTX__COLD void ptx__clear_product(ptx_op_id op, ptx_type a_type, ptx_val *d) {
    uint32_t counts[4];
    if (d && ptx_mma_shape(op, a_type, counts))
        while (counts[0]--) d[counts[0]] = ptx__none();
}
PTXGEN_API void ptx_mma_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type a_type,
                         ptx_type b_type, ptx_val *d, const ptx_val *a, const ptx_val *b, const ptx_val *c,
                         uint32_t n, const ptx_val *extra) {
    ptx_val v[40];
    ptx__shape *shape;
    const uint32_t *count;
    const ptx__row *row;
    if (!ptx__ready(k)) {
        ptx__clear_product(op, a_type, d);
        return;
    }
    shape = &k->m->shape;
    if (!shape->row || shape->op != (uint32_t)op || shape->type != (uint32_t)a_type) {
        shape->op = (uint32_t)op, shape->type = (uint32_t)a_type, shape->row = NULL;
        if ((unsigned)op < PTX__OP_COUNT)
            shape->row = ptx__mma_row(&ptx__rows[k->m->first_row[op]], op, a_type, shape->count);
    }
    count = shape->count, row = shape->row;
    if (!row)
        ptx__fail(k, PTX_E_FORM, site, "there is no such matrix product of elements of type %s",
                  ptx_type_name(a_type));
    if (!d || !a || !b || !c || n > 8 || (n && !extra))
        ptx__fail(k, PTX_E_ARGUMENT, site,
                  "ptx_mma: an array is NULL, or there are more than 8 extra operands");
    if (!ptx__ready(k) || !ptx__elements_ok(k, site, row, a_type, b_type)) {
        ptx__clear_product(op, a_type, d);
        return;
    }
    memcpy(v, a, count[1] * sizeof *v);
    memcpy(v + count[1], b, count[2] * sizeof *v);
    memcpy(v + count[1] + count[2], c, count[3] * sizeof *v);
    if (n) memcpy(v + count[1] + count[2] + count[3], extra, n * sizeof *v);
    ptx__emit(k, site, op, mods, ptx__types_of(row) ? (unsigned)a_type : 0u,
              ptx__sources_of(row) ? (unsigned)b_type : 0u, v, count[1] + count[2] + count[3] + n, d,
              count[0], NULL);
}

PTX__COLD_API void ptx_wgmma_(ptx_kernel *k, const char *site, ptx_op_id op, ptx_mods mods, ptx_type a_type,
                              ptx_type b_type, uint32_t n, const ptx_var *d, uint32_t operand_count,
                              const ptx_val *operands) {
    const ptx__row *row = ptx__row_of_type(ptx__rows_of(op), op, a_type);
    if (!ptx__ready(k)) return;
    if (!d) ptx__fail(k, PTX_E_ARGUMENT, site, "the array of the %s is NULL", "variables");
    if (!d || (row && !ptx__elements_ok(k, site, row, a_type, b_type))) return;
    ptx__emit(k, site, op, mods, a_type, row && ptx__sources_of(row) ? b_type : PTX_NONE, operands,
              operand_count > 999 ? 999 : operand_count, NULL, n > 999 ? 999 : n, d);
}

PTX__COLD_API void ptx_wgmma_f32_(ptx_kernel *k, const char *site, ptx_type a_type, ptx_type b_type,
                                  uint32_t n, const ptx_var *d, ptx_val a, ptx_val b, ptx_val add) {
    ptx_val v[7];
    v[0] = a, v[1] = b, v[2] = add, v[3] = v[4] = ptx_imm(1), v[5] = v[6] = ptx_imm(0);
    ptx_wgmma_(k, site, PTX_WGMMA_F32, 0, a_type, b_type, n, d,
               a_type == PTX_F16 || a_type == PTX_BF16 ? 7 : 5, v);
}

PTX__COLD_API ptx_val ptx_wgmma_descriptor_(ptx_kernel *k, const char *site, ptx_val address,
                                            uint32_t leading, uint32_t stride, uint32_t swizzle) {
    uint64_t fixed, mode = swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
    int64_t offset = 0;
    ptx_val v;
    if (!ptx__ready(k)) return ptx__none();
    if ((swizzle && !mode) || leading % 16 || stride % 16 || leading > 0x3fff0 || stride > 0x3fff0)
        return PTX__REFUSE(
            k, PTX_E_ARGUMENT, site,
            "a matrix descriptor has offsets that are multiples of 16 below 2^18, and a swizzle of 0, 32, "
            "64 or 128 bytes; not %u, %u and %u",
            leading, stride, swizzle);
    if (ptx__read_handle(k, address).space != PTX_SHARED)
        return PTX__REFUSE(k, PTX_E_ADDRESS, site, "a matrix descriptor is of shared memory");
    ptx__split_address(ptx__read_handle(k, address), &offset);
    if (offset & 15)
        return PTX__REFUSE(k, PTX_E_ALIGN, site,
                           "a matrix descriptor counts in 16 bytes, and this address is %lld behind another",
                           (long long)offset);
    fixed = (uint64_t)(leading >> 4) << 16 | (uint64_t)(stride >> 4) << 32 | mode << 62;
    v = ptx_op3_(k, site, PTX_BFE, 0, ptx_as(address, PTX_U32), ptx_imm(4), ptx_imm(14));
    v = ptx_cvt_(k, site, 0, PTX_U64, ptx__with_space(v, PTX_GENERIC));
    return ptx_op2_(k, site, PTX_OR, 0, v, ptx__wide(k, PTX_U64, fixed));
}

/* -- variables -- */

PTXGEN_API ptx_var ptx_var_new_(ptx_kernel *k, const char *site, ptx_val init) {
    ptx_var var;
    var.cell = ptx__record_one(k, site, PTX__REQUEST(PTX_MOV, 0, 0, 1), 0, init);
    return var;
}
PTXGEN_API ptx_val ptx_get_(ptx_kernel *k, const char *site, ptx_var var) {
    return ptx__record_one(k, site, PTX__REQUEST(PTX_MOV, 0, 0, 1), 0, var.cell);
}
PTXGEN_API void ptx_set_(ptx_kernel *k, const char *site, ptx_var var, ptx_val value) {
    ptx__record(k, site,
                PTX__REQUEST(PTX_MOV, ptx__as_bits((unsigned)ptx_type_of(var.cell)), 0, 1) | PTX__TO_VARIABLE,
                0, value, var.cell);
}

/* -- control flow -- */

/* Refuse a pending guard before what is not one instruction: a label, a scope, a call. */
PTX__NOINLINE static int ptx__require_no_guard(ptx_kernel *k, const char *site, const char *what) {
    if (!k->guard) return 1;
    return ptx__fail(k, PTX_E_GUARD, site, "the guard of %s stands before %s", k->guard_site, what);
}

static int ptx__label_ok(ptx_kernel *k, const char *site, ptx_label label) {
    if (label.owner == k->owner && label.index < k->labels.count) return 1;
    return ptx__fail(k, label.owner ? PTX_E_FOREIGN : PTX_E_HANDLE, site,
                     "a label that is not this kernel's");
}

PTXGEN_API ptx_label ptx_label_new_(ptx_kernel *k, const char *site) {
    ptx_label label = {0, 0};
    if (!ptx__ready(k)) return label;
    if (!PTX__ROOM(k->m, k->labels, 1)) return label;
    label.index = (uint32_t)k->labels.count++;
    label.owner = k->owner;
    memset(&k->labels.at[label.index], 0, sizeof k->labels.at[label.index]);
    k->labels.at[label.index].site = ptx__site(k, site);
    return label;
}

PTXGEN_API void ptx_place_(ptx_kernel *k, const char *site, ptx_label label) {
    if (!ptx__ready(k) || !ptx__label_ok(k, site, label) || !ptx__require_no_guard(k, site, "a label"))
        return;
    if (k->labels.at[label.index].position)
        ptx__fail(k, PTX_E_LABEL, site, "the label is placed already, at %s", k->labels.at[label.index].site);
    if (!ptx__ready(k) || !ptx__commit_other(k, site, PTX__I_LABEL, 0, label.index)) return;
    k->labels.at[label.index].position = (uint32_t)k->ins.count;
    k->labels.at[label.index].site = ptx__site(k, site);
}

static void ptx__jump(ptx_kernel *k, const char *site, uint32_t form, ptx_label label) {
    if (!ptx__commit_other(k, site, PTX__I_BRANCH, form, label.index)) return;
    k->labels.at[label.index].uses++;
    k->labels.at[label.index].branch_site = site;
}
PTXGEN_API void ptx_bra_(ptx_kernel *k, const char *site, ptx_label label) {
    uint32_t form;
    if (!ptx__ready(k) || !ptx__label_ok(k, site, label)) return;
    form = ptx__get_form(k, site, PTX_BRA, 0, 0, 0);
    if (form) ptx__jump(k, site, form - 1, label);
}

PTXGEN_API void ptx_guard_(ptx_kernel *k, const char *site, ptx_val p) {
    ptx__operand o;
    if (!ptx__ready(k)) return;
    o = ptx__read_handle(k, p);
    if (o.type != PTX_PRED && o.kind != PTX__NOTHING)
        ptx__fail(k, PTX_E_TYPE, site, "a condition is %s, expected pred%s", ptx__describe(o),
                  ptx__conversion_hint(o, PTX_PRED).s);
    else if (ptx__require_own(k, site, o, "the condition") && k->guard)
        ptx__fail(k, PTX_E_GUARD, site, "two guards before one instruction, the first at %s", k->guard_site);
    if (!ptx__ready(k)) return;
    k->guard = (uint32_t)o.bits;
    if (o.flags & PTX__INVERTED) k->guard = PTX__WORD(PTX__W_PRED_NOT, PTX__INDEX(k->guard));
    k->guard_site = ptx__site(k, site);
}

static void ptx__branch_unless(ptx_kernel *k, const char *site, ptx_val p, ptx_label to) {
    if (ptx_type_of(p) == PTX_PRED) p = ptx_inv(p);
    ptx_guard_(k, site, p);
    ptx_bra_(k, site, to);
}

static ptx__scope *ptx__open_scope(ptx_kernel *k, const char *site, unsigned kind) {
    ptx__scope *s;
    if (!ptx__ready(k)) return NULL;
    if (!ptx__require_no_guard(k, site, "a scope")) return NULL;
    if (!PTX__ROOM(k->m, k->scopes, 1)) return NULL;
    s = &k->scopes.at[k->scopes.count++];
    memset(s, 0, sizeof *s);
    s->site = ptx__site(k, site);
    s->kind = kind;
    s->head = ptx_label_new_(k, site);
    s->next = ptx_label_new_(k, site);
    s->done = ptx_label_new_(k, site);
    return ptx__ready(k) ? s : NULL;
}

static ptx__scope *ptx__innermost_loop(ptx_kernel *k, const char *site, const char *what) {
    size_t i;
    if (!ptx__ready(k)) return NULL;
    for (i = k->scopes.count; i-- > 0;)
        if (k->scopes.at[i].kind >= PTX__S_LOOP) return &k->scopes.at[i];
    ptx__fail(k, PTX_E_SCOPE, site, "%s outside of a loop", what);
    return NULL;
}

/* Whether control reaches this point: not after an unguarded branch, ret or exit. */
static int ptx__falls_through(const ptx_kernel *k) {
    size_t i = k->ins.count;
    while (i-- > 0) {
        const ptx__ins *last = &k->ins.at[i];
        const ptx__label *label = last->kind == PTX__I_LABEL ? &k->labels.at[last->words] : NULL;
        if (last->kind == PTX__I_COMMENT || (label && label->closed && !label->uses)) continue;
        return last->guard || (last->kind != PTX__I_BRANCH && last->kind != PTX__I_LEAVE);
    }
    return 1;
}

PTXGEN_API void ptx_if_(ptx_kernel *k, const char *site, ptx_val p) {
    ptx__scope *s = ptx__open_scope(k, site, PTX__S_IF);
    if (s) ptx__branch_unless(k, site, p, s->next);
}

PTX__COLD_API void ptx_else_(ptx_kernel *k, const char *site) {
    ptx__scope *s;
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "else")) return;
    s = k->scopes.count ? &k->scopes.at[k->scopes.count - 1] : NULL;
    if (!s || s->kind != PTX__S_IF)
        ptx__fail(k, PTX_E_SCOPE, site, "else without an if%s%s",
                  s ? "; the innermost scope was opened at " : "", s ? s->site : "");
    if (!ptx__ready(k)) return;
    if (ptx__falls_through(k)) ptx_bra_(k, site, s->done);
    ptx_place_(k, site, s->next);
    s->kind = PTX__S_ELSE;
}

static void ptx__end_switch(ptx_kernel *k, const char *site, const ptx__scope *s);

PTXGEN_API void ptx_end_(ptx_kernel *k, const char *site) {
    ptx__scope s;
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "end")) return;
    if (!k->scopes.count) ptx__fail(k, PTX_E_SCOPE, site, "end without an open scope");
    if (!ptx__ready(k)) return;
    s = k->scopes.at[--k->scopes.count];
    if (s.kind == PTX__S_IF) ptx_place_(k, site, s.next);
    if (s.kind == PTX__S_SWITCH) ptx__end_switch(k, site, &s);
    if (s.kind == PTX__S_FOR) {
        ptx_val v;
        if (ptx__falls_through(k) || k->labels.at[s.next.index].uses) {
            ptx_place_(k, site, s.next);
            v = ptx_get_(k, site, s.counter);
            v = ptx_op2_(k, site, PTX_ADD, 0, v, s.step);
            ptx_set_(k, site, s.counter, v);
            ptx_bra_(k, site, s.head);
        }
    }
    if (s.kind == PTX__S_LOOP && ptx__falls_through(k)) ptx_bra_(k, site, s.head);
    if (s.kind != PTX__S_IF) ptx_place_(k, site, s.done);
    if (ptx__ready(k)) k->labels.at[s.next.index].closed = k->labels.at[s.done.index].closed = 1;
}

PTXGEN_API void ptx_loop_(ptx_kernel *k, const char *site) {
    ptx__scope *s = ptx__open_scope(k, site, PTX__S_LOOP);
    if (!s) return;
    s->next = s->head;
    ptx_place_(k, site, s->head);
}

PTXGEN_API void ptx_while_(ptx_kernel *k, const char *site, ptx_val p) {
    ptx__scope *s = ptx__innermost_loop(k, site, "while");
    if (s) ptx__branch_unless(k, site, p, s->done);
}

PTXGEN_API void ptx_mbarrier_wait_(ptx_kernel *k, const char *site, ptx_val mbarrier, ptx_val parity) {
    ptx_loop_(k, site);
    ptx_while_(k, site, ptx_inv(ptx_op2_(k, site, PTX_MBARRIER_TRY_WAIT_PARITY, 0, mbarrier, parity)));
    ptx_end_(k, site);
}

PTX__COLD_API ptx_ring ptx_ring_new_(ptx_kernel *k, const char *site, uint32_t stages) {
    ptx_ring ring;
    ring.stage = ptx_var_new_(k, site, ptx_u32(0));
    ring.parity = ptx_var_new_(k, site, ptx_u32(0));
    ring.stages = stages;
    if (!stages && k) ptx__fail(k, PTX_E_ARGUMENT, site, "ptx_ring_new: a ring has at least one stage");
    return ring;
}

PTX__COLD_API void ptx_ring_next_(ptx_kernel *k, const char *site, ptx_ring ring) {
    ptx_val parity = ptx_get_(k, site, ring.parity);
    ptx_val next = ptx_op2_(k, site, PTX_ADD, 0, ptx_get_(k, site, ring.stage), ptx_u32(1));
    ptx_val wraps = ptx_op2_(k, site, PTX_SETP, PTX_EQ, next, ptx_u32(ring.stages));
    ptx_val other = ptx_op2_(k, site, PTX_XOR, 0, parity, ptx_u32(1));
    ptx_set_(k, site, ring.stage, ptx_op3_(k, site, PTX_SELP, 0, ptx_u32(0), next, wraps));
    ptx_set_(k, site, ring.parity, ptx_op3_(k, site, PTX_SELP, 0, other, parity, wraps));
}

PTX__COLD_API ptx_val ptx_for_(ptx_kernel *k, const char *site, ptx_val first, ptx_val limit, ptx_val step) {
    ptx_var counter;
    ptx_val i, p;
    ptx__scope *s;
    ptx__operand from, to, by;
    if (!ptx__ready(k)) return ptx__none();
    from = ptx__read_handle(k, first);
    to = ptx__read_handle(k, limit);
    by = ptx__read_handle(k, step);
    if (from.kind == PTX__IMM && from.type == PTX_NONE) {
        from.type = to.type;
        first = ptx__with_type(first, to.type);
    }
    if (by.kind == PTX__IMM && (int64_t)by.bits <= 0)
        return PTX__REFUSE(k, PTX_E_RANGE, site,
                           "a for counts up to its limit, and the step is %lld: use ptx_loop",
                           (long long)by.bits);
    counter = ptx_var_new_(k, site, first);
    s = ptx__open_scope(k, site, PTX__S_FOR);
    if (!s) return ptx__none();
    s->counter = counter;
    s->step = step;
    ptx_place_(k, site, s->head);
    i = ptx_get_(k, site, counter);
    p = ptx_op2_(k, site, PTX_SETP, PTX_LT, i, limit);
    if (!ptx__ready(k)) return ptx__none();
    ptx__branch_unless(k, site, p, s->done);
    return i;
}

PTX__COLD_API void ptx_brx_(ptx_kernel *k, const char *site, ptx_val index, uint32_t n,
                            const ptx_label *labels, ptx_label otherwise) {
    ptx__line line;
    uint32_t i, form;
    ptx_val p;
    ptx__operand o;
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "brx")) return;
    if (n == 0 || n > 512 || !labels) ptx__fail(k, PTX_E_ARGUMENT, site, "a table of %u labels: 1 to 512", n);
    o = ptx__read_handle(k, index);
    if (ptx__require_own(k, site, o, "the index") && !((PTX__I32 | PTX__T(B32)) >> o.type & 1))
        ptx__fail(k, PTX_E_TYPE, site, "the index of a table is a 32-bit integer, this is %s%s",
                  ptx__describe(o), ptx__conversion_hint(o, PTX_U32).s);
    if (!ptx__ready(k)) return;
    index = ptx__with_type(index, PTX_U32);
    p = ptx_op2_(k, site, PTX_SETP, PTX_LT, index, ptx_imm(n));
    ptx__branch_unless(k, site, p, otherwise);
    /* For the verifier, record a guarded branch to each label in turn. These are not printed. */
    form = ptx__get_form(k, site, PTX_BRX_EDGE, 0, 0, 0);
    line.used = 0;
    ptx__append_format(&line, "$$B%u: .branchtargets ", (unsigned)k->ins.count);
    for (i = 0; i < n; i++) {
        if (!form || !ptx__ready(k) || !ptx__label_ok(k, site, labels[i])) return;
        k->guard = (uint32_t)p.handle;
        k->guard_site = ptx__site(k, site);
        ptx__jump(k, site, form - 1, labels[i]);
        ptx__append_format(&line, i ? ", $$L%u" : "$$L%u", labels[i].index);
    }
    ptx__append_format(&line, ";\n\tbrx.idx $0, $$B%u;", (unsigned)(k->ins.count - n));
    if (k->version < 60) k->version = 60;
    ptx__record_raw(k, site, PTX__I_LEAVE, 0, 0, line.text, 1, &index, 0, NULL, NULL);
}

PTX__COLD_API void ptx_switch_(ptx_kernel *k, const char *site, ptx_val index, uint32_t n) {
    ptx__scope *s;
    ptx_label labels[512];
    uint32_t i;
    if (!ptx__ready(k)) return;
    if (n == 0 || n > 512) ptx__fail(k, PTX_E_ARGUMENT, site, "a switch of %u cases: 1 to 512", n);
    s = ptx__open_scope(k, site, PTX__S_SWITCH);
    if (!s) return;
    for (i = 0; i < n; i++) labels[i] = ptx_label_new_(k, site);
    if (!ptx__ready(k)) return;
    s->head = labels[0];
    s->cases = n;
    ptx_brx_(k, site, index, n, labels, s->next);
}

PTX__COLD_API void ptx_case_(ptx_kernel *k, const char *site, uint32_t i) {
    ptx__scope *s;
    ptx_label label;
    if (!ptx__ready(k) || !ptx__require_no_guard(k, site, "case")) return;
    s = k->scopes.count ? &k->scopes.at[k->scopes.count - 1] : NULL;
    if (!s || s->kind != PTX__S_SWITCH || (i != UINT32_MAX && i >= s->cases))
        ptx__fail(k, PTX_E_SCOPE, site, "case %ld outside of a switch that has it",
                  i == UINT32_MAX ? -1L : (long)i);
    if (!ptx__ready(k)) return;
    label = s->head;
    label.index += i;
    if (i == UINT32_MAX) label = s->next;
    if (ptx__falls_through(k)) ptx_bra_(k, site, s->done);
    ptx_place_(k, site, label);
}

/* Close a switch. Cases that were not written go to the default, or past the switch if there is none. */
PTX__COLD void ptx__end_switch(ptx_kernel *k, const char *site, const ptx__scope *s) {
    uint32_t i, missing = 0;
    ptx_label label = s->head;
    int open = !ptx__ready(k) || k->labels.at[s->next.index].position == 0;
    for (i = 0; i < s->cases && ptx__ready(k); i++)
        if (!k->labels.at[s->head.index + i].position) missing++;
    if (!ptx__ready(k)) return;
    if (missing && !open) {
        if (ptx__falls_through(k)) ptx_bra_(k, site, s->done);
    }
    for (i = 0; i < s->cases && ptx__ready(k); i++) {
        label.index = s->head.index + i;
        if (!k->labels.at[label.index].position) ptx_place_(k, site, label);
    }
    if (missing && !open) ptx_bra_(k, site, s->next);
    if (open) ptx_place_(k, site, s->next);
}

PTXGEN_API void ptx_jump_(ptx_kernel *k, const char *site, int next_round) {
    ptx__scope *s = ptx__innermost_loop(k, site, next_round ? "continue" : "break");
    if (s) ptx_bra_(k, site, next_round ? s->next : s->done);
}

PTX__COLD_API void ptx_comment_(ptx_kernel *k, const char *site, const char *text) {
    uint32_t at, i;
    if (!ptx__ready(k) || !text || !k->m->comments) return;
    at = ptx__keep(k->m, text, strlen(text));
    if (!at) return;
    for (i = at; k->m->names.at[i]; i++)
        if ((unsigned char)k->m->names.at[i] < 32 || (unsigned char)k->m->names.at[i] > 126)
            k->m->names.at[i] = '?';
    i = k->guard; /* a comment is no instruction: the guard waits for the next */
    k->guard = 0;
    /* Form 0 exists when the verifier reads forms, so it may call ptx__form_of before it tests the kind. */
    ptx__commit_other(k, site, PTX__I_COMMENT, 0, at);
    k->guard = i;
}

/* -- verify: graph and definitions --
   Basic blocks; the dominator tree (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001)
   and the postdominator tree. A value has one definition and a variable one declaration, which must dominate
   each use. Most uses are known to be right when they are recorded: ptx__list_uses lists the rest. All of it
   is linear in practice. */

typedef struct ptx__graph {
    ptx__block *block;
    uint32_t blocks, reached;         /* reached: the number of blocks that are reachable from the entry */
    uint32_t *block_of_label, *order; /* order: position in reverse postorder -> block */
    uint32_t *first_predecessor,
        *predecessor;            /* those of block b: from first_predecessor[b] to below that of b + 1 */
    uint32_t bias[PTX__REGISTER_CLASSES]; /* number of a register among all: its word + bias of its class */
    uint32_t registers;
    uint32_t *block_of_boundary;  /* number of instructions before that are not plain -> block */
    uint32_t *checked;            /* register -> block + 1 in which a use was last checked */
    uint32_t *assignments; /* register -> its list in module.references, index + 1. NULL: neither a collective
                              instruction nor the address of a symbol, see PTX__SEEN_CONVERGENT */
    uint32_t *relevant, prefetch; /* see ptx__divide_blocks and ptx__relevant_at */
    uint32_t *stack, *mark;       /* scratch: a word for each block */
    /* Postdominators. The virtual exit is node number `blocks`. post_number 0: no path to an exit. */
    uint32_t *post_order, *post_number, *post_idom, *post_depth, post_reached;
} ptx__graph;

/* The number of a register among all of the kernel. */
static uint32_t ptx__register_number(const ptx__graph *g, uint32_t word) {
    return g->bias[PTX__TAG(word)] + word;
}

static const uint32_t *ptx__next_operand(const uint32_t *w) { return w + 1 + 2 * PTX__IS_LONG(*w); }
/* The source operands of an instruction, up to *end. */
static const uint32_t *ptx__sources(const ptx_kernel *k, const ptx__ins *ins, const uint32_t **end) {
    const uint32_t *w = k->words.at + ins->words;
    *end = w + ins->count;
    return w + ins->results;
}
/* Labels and comments have form 0, whatever that is: its facts count only if the kind is PTX__I_PLAIN. */
static const ptx__form *ptx__form_of(const ptx_kernel *k, const ptx__ins *ins) {
    return &k->m->forms.at[ins->form];
}
#define PTX__NO_OP 0xffffu
static unsigned ptx__op_of(const ptx_kernel *k, const ptx__ins *ins) {
    return ins->kind == PTX__I_PLAIN ? ptx__form_of(k, ins)->row->op : PTX__NO_OP;
}
/* The mnemonic for messages. */
static const char *ptx__mnemonic(const ptx_kernel *k, const ptx__ins *ins) {
    const ptx__form *form = ptx__form_of(k, ins);
    return *form->row->name                           ? form->row->name
           : form->collective == PTX__COLLECTIVE_CALL ? "a call"
                                                      : "raw text";
}

/* For messages: what a value that is not uniform comes from, by its root (see ptx__value_facts). */
PTX__COLD void ptx__describe_root(const ptx_kernel *k, uint32_t root, char *out, size_t size) {
    const ptx__ins *ins = &k->ins.at[root - 1];
    const uint32_t *w = k->words.at + ins->words + ins->results;
    const char *site = ptx__site_at(k, root - 1);
    if (ins->kind != PTX__I_PLAIN)
        snprintf(out, size, "what is set where only some come, by the branch at %s", site);
    else if (ins->count > ins->results && PTX__TAG(*w) == PTX__W_SPECIAL)
        snprintf(out, size, "%s, read at %s", ptx__specials[PTX__INDEX(*w)].name, site);
    else
        snprintf(out, size, "the result of %s at %s", ptx__mnemonic(k, ins), site);
}

/* Where a register is defined, and the block of its definition. */
static const ptx__definition *ptx__definition_of_register(const ptx_kernel *k, uint32_t word) {
    return &k->definitions[PTX__TAG(word)].at[PTX__INDEX(word)];
}
static uint32_t ptx__definition_block(const ptx_kernel *k, const ptx__graph *g, uint32_t word) {
    return g->block_of_boundary[ptx__definition_of_register(k, word)->boundaries];
}
/* The defining instruction of a value; NULL if it is not a register, or a variable that is set again. Needs
   g->assignments. */
static const ptx__ins *ptx__defining_instruction(const ptx_kernel *k, const ptx__graph *g, uint32_t word) {
    return PTX__TAG(word) < PTX__REGISTER_CLASSES && !g->assignments[ptx__register_number(g, word)]
               ? &k->ins.at[ptx__definition_of_register(k, word)->instruction]
               : NULL;
}

/* The next register that an instruction reads (which = 1) or writes (0); 0: no more. *at starts at 0. */
PTX__COLD uint32_t ptx__next_register(const ptx_kernel *k, const ptx__ins *ins, int which, uint32_t *at) {
    const uint32_t *w = k->words.at + ins->words;
    uint32_t end = which ? ins->count : ins->results, word;
    if (which && *at == 0) {
        *at = ins->results + 1u;
        if (ins->guard) return PTX__PREDICATE(ins->guard);
    } else if (*at == 0)
        *at = 1;
    if (ins->kind != PTX__I_PLAIN) return 0;
    while (*at - 1 < end) {
        const uint32_t *operand = w + *at - 1;
        *at += (uint32_t)(ptx__next_operand(operand) - operand);
        word = operand[PTX__TAG(*operand) == PTX__W_MEM];
        if (PTX__TAG(word) == PTX__W_PRED_NOT) return PTX__PREDICATE(word);
        if (PTX__TAG(word) < PTX__REGISTER_CLASSES) return word;
    }
    return 0;
}

static int ptx__ends_block(const ptx__ins *ins) {
    return ins->kind == PTX__I_BRANCH || ins->kind == PTX__I_LEAVE;
}

/* Divide the kernel into basic blocks. g->relevant lists what later passes visit: instructions whose form is
   relevant, guarded branches and exits; those of a block from index block.relevant on, below block.end. */
static void ptx__divide_blocks(const ptx_kernel *k, ptx__graph *g) {
    uint32_t n = (uint32_t)k->ins.count, listed = 0, *relevant = g->relevant,
             *of_boundary = g->block_of_boundary;
    ptx__block *b = g->block;
    size_t j;
    b->first = b->relevant = *of_boundary = 0;
    for (j = 0; j < k->marked.count; j++) {
        const uint32_t i = k->marked.at[j];
        const ptx__ins *ins = &k->ins.at[i];
        if (j + 48 < k->marked.count) PTX__PREFETCH(&k->ins.at[k->marked.at[j + 48]]);
        if (ins->kind == PTX__I_PLAIN) {
            if (ptx__form_of(k, ins)->is_relevant) relevant[listed++] = i;
            continue;
        }
        if (ins->kind == PTX__I_LABEL) {
            if (k->labels.at[ins->words].uses && b->first != i) {
                b->end = i;
                (++b)->first = i;
                b->relevant = listed;
            }
            g->block_of_label[ins->words] = (uint32_t)(b - g->block);
        }
        if (ins->guard) relevant[listed++] = i;
        if (ptx__ends_block(ins) && i + 1 < n) {
            b->end = i + 1;
            (++b)->first = i + 1;
            b->relevant = listed;
        }
        *++of_boundary = (uint32_t)(b - g->block);
    }
    b->end = n;
    g->blocks = (uint32_t)(b - g->block) + 1;
    relevant[listed] = UINT32_MAX;
    g->prefetch = n > 20000 ? listed : 0;
}

/* Entry s of a list of instructions; prefetches those of later entries below `prefetch`. */
PTX__INLINE uint32_t ptx__listed_at(const ptx_kernel *k, const uint32_t *list, uint32_t prefetch,
                                    uint32_t s) {
    if (s + 32 < prefetch) {
        PTX__PREFETCH(&k->ins.at[list[s + 32]]);
        PTX__PREFETCH(k->words.at + k->ins.at[list[s + 16]].words);
    }
    return list[s];
}
/* Entry s of g->relevant. In a kernel too long for the cache, prefetches the instructions of later ones. */
PTX__INLINE uint32_t ptx__relevant_at(const ptx_kernel *k, const ptx__graph *g, uint32_t s) {
    return ptx__listed_at(k, g->relevant, g->prefetch, s);
}

static void ptx__link_blocks(const ptx_kernel *k, ptx__graph *g) {
    uint32_t b;
    for (b = 0; b < g->blocks; b++) {
        ptx__block *block = &g->block[b];
        const ptx__ins *last = &k->ins.at[block->end - 1];
        if (b + 48 < g->blocks) PTX__PREFETCH(&k->ins.at[g->block[b + 48].end - 1]);
        if ((!ptx__ends_block(last) || last->guard) && b + 1 < g->blocks) block->next[0] = b + 2;
        if (last->kind == PTX__I_BRANCH) block->next[1] = g->block_of_label[last->words] + 1;
        block->leaves = last->kind == PTX__I_LEAVE;
        block->guard = ptx__ends_block(last) ? last->guard : 0u;
        if (block->leaves && b && ptx__form_of(k, last)->row->op == PTX_RAW) {
            block->leaves = 0; /* brx: the last label is taken if no other is */
            block->next[0] = g->block[b - 1].next[1];
        }
    }
}

/* Build the blocks and edges of a kernel. with_assignments: make room for their lists, too. */
static int ptx__make_graph(ptx_kernel *k, ptx__graph *g, int with_assignments) {
    ptx_module *m = k->m;
    size_t blocks = (size_t)k->boundaries + 1, registers = 0, need;
    uint32_t *s;
    int c;
    for (c = 0; c < PTX__REGISTER_CLASSES; c++) {
        g->bias[c] = (uint32_t)registers - PTX__WORD(c, 0);
        registers += k->registers[c];
    }
    g->registers = (uint32_t)registers;
    m->blocks.count = m->scratch.count = m->references.count = 0;
    need = k->labels.count + 6 * blocks + 2 + (with_assignments ? 2u : 1u) * registers + 6 * (blocks + 1);
    if (!PTX__ROOM(m, m->blocks, blocks)) return 0;
    if (!PTX__ROOM(m, m->scratch, need + blocks + k->marked.count + 1)) return 0;
    s = m->scratch.at;
    memset(s, 0, need * sizeof *s);
    g->block = m->blocks.at;
    g->block_of_boundary = s + need; /* not zeroed, like `relevant` */
    g->relevant = g->block_of_boundary + blocks;
    g->block_of_label = s, s += k->labels.count;
    g->order = s, s += 2 * blocks; /* twice: the second half is the stack of the walk */
    g->first_predecessor = s, s += blocks + 2;
    g->predecessor = s, s += 3 * blocks; /* the last third: see ptx__number_dominators */
    g->checked = s, s += registers;
    g->post_order = s, s += blocks + 1;
    g->post_number = s, s += blocks + 1;
    g->post_idom = s, s += blocks + 1;
    g->post_depth = s, s += blocks + 1;
    g->stack = s, s += blocks + 1;
    g->mark = s, s += blocks + 1;
    g->assignments = with_assignments ? s : NULL;
    memset(g->block, 0, blocks * sizeof *g->block);
    ptx__divide_blocks(k, g);
    ptx__link_blocks(k, g);
    return 1;
}

/* Number the reachable blocks in reverse postorder from 1, the entry, on. Unreachable blocks have 0. */
static void ptx__fill_order(ptx__graph *g) {
    uint32_t *stack = g->order + g->blocks, depth = 0, left = g->blocks, i;
    ptx__block *block = g->block;
    stack[depth++] = 0;
    block[0].in = 1;
    while (depth) {
        ptx__block *b = &block[stack[depth - 1]];
        if (b->out < 2) { /* `out` counts the successors taken, `in` marks the visited */
            uint32_t to = b->next[b->out++];
            if (to && !block[to - 1].in) {
                block[to - 1].in = 1;
                stack[depth++] = to - 1;
            }
        } else
            g->order[--left] = stack[--depth];
    }
    g->reached = g->blocks - left;
    for (i = 0; i < g->reached; i++) {
        g->order[i] = g->order[left + i];
        block[g->order[i]].order = i + 1;
    }
}

static void ptx__fill_predecessors(ptx__graph *g) {
    uint32_t i, e, *fill = g->first_predecessor + 1;
    for (i = 0; i < g->reached; i++)
        for (e = 0; e < 2; e++)
            if (g->block[g->order[i]].next[e]) fill[g->block[g->order[i]].next[e]]++;
    for (i = 1; i <= g->blocks; i++) fill[i] += fill[i - 1]; /* fill[b]: the first of block b */
    for (i = 0; i < g->reached; i++)
        for (e = 0; e < 2; e++)
            if (g->block[g->order[i]].next[e])
                g->predecessor[fill[g->block[g->order[i]].next[e] - 1]++] = g->order[i];
    /* now fill[b] is the end of block b's predecessors */
}

/* Number the dominator tree: a dominates b if a.in <= b.in < a.out. `out` holds the subtree's size first. */
static void ptx__number_dominators(ptx__graph *g) {
    ptx__block *block = g->block;
    uint32_t *next_number = g->predecessor + 2 * (size_t)g->blocks; /* block -> next one in its interval */
    uint32_t i;
    for (i = 0; i < g->reached; i++) block[g->order[i]].out = 1;
    for (i = g->reached; i-- > 1;) block[block[g->order[i]].idom].out += block[g->order[i]].out;
    for (i = 0; i < g->reached; i++) {
        ptx__block *b = &block[g->order[i]];
        if (i == 0)
            b->in = 0;
        else {
            b->in = next_number[b->idom];
            next_number[b->idom] += b->out;
        }
        next_number[g->order[i]] = b->in + 1;
        b->out += b->in;
    }
}

static void ptx__fill_dominators(ptx__graph *g) {
    ptx__block *block = g->block;
    uint32_t i, j;
    int changed = 1;
    for (i = 1; i < g->reached; i++) block[g->order[i]].idom = UINT32_MAX;
    while (changed) {
        changed = 0;
        for (i = 1; i < g->reached; i++) {
            uint32_t b = g->order[i], best = UINT32_MAX;
            for (j = g->first_predecessor[b]; j < g->first_predecessor[b + 1]; j++) {
                uint32_t x = g->predecessor[j], y = best;
                if (block[x].idom == UINT32_MAX) continue;
                if (y == UINT32_MAX) {
                    best = x;
                    continue;
                }
                while (x != y) {
                    while (block[x].order > block[y].order) x = block[x].idom;
                    while (block[y].order > block[x].order) y = block[y].idom;
                }
                best = x;
            }
            if (block[b].idom != best) block[b].idom = best, changed = 1;
        }
    }
    ptx__number_dominators(g);
}

/* Number the blocks that can reach an exit, in reverse postorder of the reversed graph. */
static void ptx__fill_post_order(ptx__graph *g) {
    uint32_t left = g->blocks + 1, end, i, *stack = g->stack, *at = g->post_depth; /* depths come later */
    for (i = 0; i < g->blocks; i++) at[i] = g->first_predecessor[i], g->post_number[i] = 0;
    for (end = 0; end < g->blocks; end++) {
        uint32_t depth = 0;
        if (!g->block[end].order || !g->block[end].leaves || g->post_number[end]) continue;
        g->post_number[end] = 1;
        stack[depth++] = end;
        while (depth) {
            uint32_t b = stack[depth - 1], from;
            if (at[b] == g->first_predecessor[b + 1]) {
                g->post_order[--left] = stack[--depth];
                continue;
            }
            from = g->predecessor[at[b]++];
            if (g->post_number[from]) continue;
            g->post_number[from] = 1;
            stack[depth++] = from;
        }
    }
    g->post_order[--left] = g->blocks;
    g->post_reached = g->blocks + 1 - left;
    for (i = 0; i < g->post_reached; i++) {
        g->post_order[i] = g->post_order[left + i];
        g->post_number[g->post_order[i]] = i + 1;
    }
}

/* As ptx__fill_dominators, with the edges reversed. */
static void ptx__fill_postdominators(ptx__graph *g) {
    uint32_t *idom = g->post_idom, *number = g->post_number, root = g->blocks, i, e;
    int changed = 1;
    for (i = 0; i < g->blocks; i++) idom[i] = UINT32_MAX;
    idom[root] = root;
    while (changed) {
        changed = 0;
        for (i = 1; i < g->post_reached; i++) {
            uint32_t b = g->post_order[i], best = g->block[b].leaves ? root : UINT32_MAX;
            for (e = 0; e < 2; e++) {
                uint32_t x = g->block[b].next[e], y = best;
                if (!x || !number[x - 1] || idom[x - 1] == UINT32_MAX) continue;
                x--;
                while (y != UINT32_MAX && x != y) {
                    while (number[x] > number[y]) x = idom[x];
                    while (number[y] > number[x]) y = idom[y];
                }
                best = x;
            }
            if (idom[b] != best) idom[b] = best, changed = 1;
        }
    }
    g->post_depth[root] = 0;
    for (i = 1; i < g->post_reached; i++)
        g->post_depth[g->post_order[i]] = g->post_depth[idom[g->post_order[i]]] + 1;
}

PTX__NOINLINE static uint32_t ptx__block_of(const ptx__graph *g, uint32_t i) {
    uint32_t low = 0, high = g->blocks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (g->block[middle].first <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Check that every instruction is reachable and that no path runs off the end of the kernel. */
static ptx_code ptx__check_paths(ptx_kernel *k, ptx__graph *g) {
    uint32_t b, i;
    ptx__fill_order(g);
    for (b = 0; b < g->blocks; b++) {
        const ptx__block *block = &g->block[b];
        if (!block->order) {
            for (i = block->first; i < block->end; i++)
                if (k->ins.at[i].kind != PTX__I_LABEL && k->ins.at[i].kind != PTX__I_COMMENT)
                    return ptx__fault(k, PTX_E_UNREACHABLE, i, "no path leads here");
        } else if (b + 1 == g->blocks) {
            const ptx__ins *last = &k->ins.at[block->end - 1];
            if (!ptx__ends_block(last) || last->guard)
                return ptx__fault(k, PTX_E_FALL_OFF, block->end - 1,
                                  last->guard ? "the kernel goes on after this where its guard is false, and "
                                                "ends without ptx_ret"
                                              : "the kernel ends here without ptx_ret");
        }
    }
    ptx__fill_predecessors(g);
    ptx__fill_dominators(g);
    return PTX_E_NONE;
}

/* Find a loop from which no exit is reached and let it be left where its back edges start. Returns its head,
   the first block that such edges lead to. */
PTX__COLD uint32_t ptx__leave_endless_loop(ptx__graph *g) {
    uint32_t i, j, b = 0, found = 0;
    for (i = 0; i < g->reached && !found; i++) {
        b = g->order[i];
        for (j = g->first_predecessor[b]; j < g->first_predecessor[b + 1] && !g->post_number[b]; j++)
            if (g->block[g->predecessor[j]].order > i) found = g->block[g->predecessor[j]].leaves = 1;
    }
    return b;
}

/* Check that every block can reach an exit or a trap. An endless loop that reaches a trap is taken as
   intended. For the postdominators, it may be left at the end of each round. */
static ptx_code ptx__check_ends(ptx_kernel *k, ptx__graph *g) {
    enum { AT_TRAP = 2 };
    uint32_t b, i;
    ptx__fill_post_order(g);
    if (g->post_reached == g->reached + 1) return PTX_E_NONE;
    for (b = 0; b < g->blocks; b++)
        for (i = g->block[b].first; i < g->block[b].end && g->block[b].order && !g->post_number[b]; i++)
            if (ptx__op_of(k, &k->ins.at[i]) == PTX_TRAP) g->block[b].leaves = AT_TRAP;
    ptx__fill_post_order(g);
    if (g->post_reached != g->reached + 1)
        return ptx__fault(k, PTX_E_ENDLESS, g->block[ptx__leave_endless_loop(g)].first,
                          "no path leads from here to the end of the kernel: this loop has no way out");
    for (b = 0; b < g->blocks; b++)
        if (g->block[b].leaves == AT_TRAP) g->block[b].leaves = 0;
    for (ptx__fill_post_order(g); g->post_reached != g->reached + 1; ptx__fill_post_order(g))
        ptx__leave_endless_loop(g);
    return PTX_E_NONE;
}

/* Add instruction i of block b to the list of a variable's assignments. Its declaration is not listed. */
static void ptx__add_assignment(ptx_kernel *k, ptx__graph *g, uint32_t number, uint32_t i, uint32_t b) {
    ptx_module *m = k->m;
    ptx__reference assignment;
    if (g->assignments[number] && m->references.at[g->assignments[number] - 1].instruction == i) return;
    if (!PTX__ROOM_FOR_ONE(m, m->references)) return;
    assignment.instruction = i;
    assignment.block = b;
    assignment.next = g->assignments[number];
    m->references.at[m->references.count++] = assignment;
    g->assignments[number] = (uint32_t)m->references.count;
}

/* Whether the definition of a register dominates block b, whose instruction i reads or sets it. */
static int ptx__is_defined(ptx_kernel *k, ptx__graph *g, uint32_t word, uint32_t i, uint32_t b,
                           int is_assignment) {
    const uint32_t number = ptx__register_number(g, word);
    uint32_t in, home;
    if (is_assignment && g->assignments) ptx__add_assignment(k, g, number, i, b);
    if (g->checked[number] == b + 1) return 1;
    g->checked[number] = b + 1;
    home = ptx__definition_block(k, g, word);
    in = g->block[b].in;
    return g->block[home].in <= in && in < g->block[home].out;
}

/* Check the listed uses. Within a block a definition precedes its uses: nobody has a handle before. */
static ptx_code ptx__check_definitions(ptx_kernel *k, ptx__graph *g) {
    uint32_t b = 0;
    size_t e;
    for (e = 0; e < k->uses.count; e++) {
        const uint64_t use = k->uses.at[e];
        const uint32_t word = (uint32_t)use, i = (uint32_t)(use >> 33);
        while (g->block[b].end <= i) b++;
        if (!ptx__is_defined(k, g, word, i, b, (int)(use >> 32 & 1)))
            return ptx__fault(k, PTX_E_UNDEFINED, i,
                              "a value is used here that is not defined on every path; it is made at %s; "
                              "keep it in a ptx_var that every path sets, or use selp or ld_if",
                              ptx__site_at(k, ptx__definition_of_register(k, word)->instruction));
    }
    return k->m->error.code;
}

/* -- verify: calls --
   Every collective instruction has a highest level (see uniformity) that the block around it may have. That
   of a call is the lowest of the highest levels in the called function. It is computed once for each
   function, see ptx__find_recursion. */

static void ptx__find_highest_level(ptx_kernel *k);

/* The function that instruction i calls; PTX__ANY_CALLEE for an indirect call. */
static uint32_t ptx__callee(const ptx_kernel *k, uint32_t i) {
    size_t low = 0, high = k->calls.count / 2;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (k->calls.at[2 * middle] <= i)
            low = middle;
        else
            high = middle;
    }
    return k->calls.count ? k->calls.at[2 * low + 1] : PTX__ANY_CALLEE;
}

/* The highest level of a block in which a call may stand; for an indirect call, the lowest of all functions
   whose address was taken. */
static unsigned ptx__call_level(const ptx_kernel *k, uint32_t i) {
    const uint32_t callee = ptx__callee(k, i), any = callee == PTX__ANY_CALLEE;
    const uint32_t end = any ? k->m->kernels_used : callee + 1;
    unsigned least = PTX__CLASS_LANE;
    uint32_t j;
    for (j = any ? 0 : callee; j < end; j++) {
        ptx_kernel *other = k->m->kernels.at[j];
        if (any && !other->address_taken) continue;
        ptx__find_highest_level(other);
        if (other->highest_level < least) least = other->highest_level;
    }
    return least;
}

/* The highest level of a block in which an instruction may stand. A barrier with a count of threads (slot
   'G') is for that many, in whole warps. */
static unsigned ptx__highest_level(const ptx_kernel *k, const ptx__ins *ins) {
    const ptx__form *form = ptx__form_of(k, ins);
    const uint32_t *end = k->words.at + ins->words + ins->count;
    switch (form->collective) {
    case PTX__COLLECTIVE_CLUSTER: return PTX__CLASS_CLUSTER;
    case PTX__COLLECTIVE_BLOCK: return strchr(form->operands, 'G') ? PTX__CLASS_WARP : PTX__CLASS_BLOCK;
    case PTX__COLLECTIVE_GROUP: return PTX__CLASS_GROUP;
    case PTX__COLLECTIVE_WARP: return PTX__CLASS_WARP;
    case PTX__COLLECTIVE_MEMBERS: /* a full mask is for the warp; any other is taken as right */
        return ins->count >= 3 && PTX__IS_INTEGER(end[-3]) && end[-2] == 0xffffffffu ? PTX__CLASS_WARP
                                                                                     : PTX__CLASS_LANE;
    case PTX__COLLECTIVE_CALL: return ptx__call_level(k, (uint32_t)(ins - k->ins.at));
    default: return PTX__CLASS_LANE;
    }
}

/* Compute k->highest_level and, before it, that of the functions that k calls. A recursive call counts as no
   call. */
PTX__COLD void ptx__find_highest_level(ptx_kernel *k) {
    uint32_t i;
    if (k->level_known) return;
    k->level_known = 1;
    k->highest_level = PTX__CLASS_LANE;
    for (i = 0; i < k->ins.count; i++) {
        const ptx__ins *ins = &k->ins.at[i];
        const ptx__form *form = ptx__form_of(k, ins);
        unsigned level;
        if (ins->kind != PTX__I_PLAIN || !form->collective) continue;
        level = ptx__highest_level(k, ins);
        if (level < k->highest_level) k->highest_level = level;
    }
}

/* -- verify: uniformity --
   CLASS of a value: the largest group of threads in which it is uniform, PTX__CLASS_CLUSTER, _BLOCK, _GROUP
   (warpgroup), _WARP, or _LANE if the lanes of a warp may differ. A higher class is less uniform. Immediates
   and parameters of an entry have CLUSTER; thread ids, loads, atomics and results of calls have LANE. Other
   results have the highest class of their operands, or less if their dependence on %tid.x is understood. The
   caller may assert a lower class: ptx_uniform() and the like.

   LEVEL of a block: the largest group of threads that are sure to execute it together, as a class. A branch
   whose condition has class C is divergent if C is above CLUSTER. Threads of one warp (for C = WARP; of one
   block for C = BLOCK ...) take the same path. Others may take different paths, until they reconverge in the
   branch's immediate postdominator. The blocks in between are control dependent on the branch, directly or
   through other branches, and have at least level C. A guarded ret is a branch to the exit. The exit is then
   the branch's postdominator, so all blocks that follow depend on it. At level WARP the warps may arrive
   apart, but the lanes of a warp arrive together: an instruction for a whole warp may stand in a block of
   level WARP or less, a barrier of the block in one of level BLOCK or less.

   TEMPORAL DIVERGENCE. A register that is written in a block of level C has at least class C where a block of
   a lower level reads it: its readers wrote it in different iterations of a loop or on different paths, or
   did not write it and kept the old value of a variable.

   ALGORITHM. ptx__mark_needed marks the branch conditions that decide who executes a collective instruction,
   and the instructions that compute them: little of most kernels. ptx__propagate visits these in text order,
   where definitions precede uses, computes classes, and raises the levels of the blocks that are control
   dependent on each divergent branch. A pass is followed by another if it changed something after it had read
   it: the class of a variable, or the level of an earlier block. Classes and levels only rise, so this ends.
   Then ptx__check_convergence compares each collective instruction with the level of its block. */

#define PTX__TID_WARP 1u /* see ptx__value_facts */
#define PTX__TID_GROUP 2u
#define PTX__TID_SELF 4u

typedef struct ptx__uniformity {
    ptx_kernel *k;
    ptx__graph *g;
    ptx__value_facts *value;  /* facts of the needed registers; value[0] stands for all others */
    uint32_t *index;          /* register -> index in value; 0: not needed */
    uint32_t *level, *branch; /* block -> its level; the branch that raised it, + 1 */
    uint32_t *raised, pass;   /* block -> the last pass that raised its level; pass: the current, from 1 on */
    uint32_t *condition;      /* block -> the class of its branch's condition so far */
    uint32_t *condition_root; /* block -> the root of that condition, see ptx__value_facts */
    /* [level - 1]: for each level above CLUSTER; block -> see ptx__nearest_unraised */
    uint32_t *next_unraised[PTX__CLASS_LANE];
    uint32_t *needed;        /* one bit for each instruction */
    uint32_t *level_matters; /* block -> 1 if its level matters; see ptx__mark_needed */
    uint32_t *collectives, collective_count; /* the collective instructions */
    uint32_t *work;  /* stack of the registers whose definitions are to be marked */
    uint32_t effort; /* steps that ptx__limit_level may still take */
} ptx__uniformity;

static int ptx__make_uniformity(ptx_kernel *k, ptx__graph *g, ptx__uniformity *u) {
    ptx_module *m = k->m;
    size_t blocks = g->blocks + 1, words = k->ins.count / 32 + 1, zeroes = 6 * blocks + words, level, b;
    uint32_t *s;
    m->value_facts.count = m->analysis_words.count = 0;
    if (!PTX__ROOM(m, m->value_facts, g->registers + 1)) return 0;
    if (!PTX__ROOM(m, m->analysis_words, zeroes + PTX__CLASS_LANE * blocks + k->marked.count + g->registers))
        return 0;
    s = m->analysis_words.at;
    memset(s, 0, zeroes * sizeof *s);
    memset(g->checked, 0, g->registers * sizeof *g->checked);
    memset(m->value_facts.at, 0, sizeof *m->value_facts.at);
    m->value_facts.count = 1;
    u->k = k, u->g = g;
    u->value = m->value_facts.at;
    u->index = g->checked; /* reused: definitions are checked */
    u->level = s, s += blocks;
    u->branch = s, s += blocks;
    u->raised = s, s += blocks;
    u->pass = u->collective_count = 0;
    u->effort = 16 * (uint32_t)(k->ins.count < 1u << 20 ? k->ins.count : 1u << 20) + 65536;
    u->condition = s, s += blocks;
    u->condition_root = s, s += blocks;
    u->needed = s, s += words;
    u->level_matters = s, s += blocks;
    for (level = 0; level < PTX__CLASS_LANE; level++)
        for (u->next_unraised[level] = s, s += blocks, b = 0; b < blocks; b++)
            u->next_unraised[level][b] = (uint32_t)b;
    u->collectives = s, s += k->marked.count;
    u->work = s;
    return 1;
}

/* The facts of a register; of one that is not needed, value[0], which has class CLUSTER. */
static ptx__value_facts *ptx__facts_of(ptx__uniformity *u, uint32_t word) {
    return &u->value[u->index[ptx__register_number(u->g, word)]];
}

static void ptx__mark_register(ptx__uniformity *u, uint32_t word, uint32_t *depth) {
    uint32_t number;
    if (PTX__TAG(word) == PTX__W_PRED_NOT) word = PTX__PREDICATE(word);
    if (PTX__TAG(word) >= PTX__REGISTER_CLASSES) return;
    number = ptx__register_number(u->g, word);
    if (u->index[number]) return;
    u->index[number] = (uint32_t)u->k->m->value_facts.count++;
    memset(&u->value[u->index[number]], 0, sizeof *u->value);
    u->work[(*depth)++] = word;
}
static void ptx__mark_sources(ptx__uniformity *u, uint32_t i, uint32_t b, uint32_t *depth) {
    const ptx__ins *ins = &u->k->ins.at[i];
    const uint32_t *end, *w = ptx__sources(u->k, ins, &end);
    u->needed[i / 32] |= 1u << i % 32;
    u->level_matters[b] = 1;
    if (ins->guard) ptx__mark_register(u, ins->guard, depth);
    for (; w < end; w = ptx__next_operand(w)) ptx__mark_register(u, w[PTX__TAG(*w) == PTX__W_MEM], depth);
}
/* Mark all instructions from which the registers on the stack are computed: the backward slice. */
static void ptx__mark_definitions(ptx__uniformity *u, uint32_t depth) {
    const ptx__reference *references = u->k->m->references.at;
    uint32_t at;
    while (depth) {
        const uint32_t word = u->work[--depth];
        ptx__mark_sources(u, ptx__definition_of_register(u->k, word)->instruction,
                          ptx__definition_block(u->k, u->g, word), &depth);
        for (at = u->g->assignments[ptx__register_number(u->g, word)]; at; at = references[at - 1].next)
            ptx__mark_sources(u, references[at - 1].instruction, references[at - 1].block, &depth);
    }
}

/* Mark the backward slices (ptx__mark_definitions) of the guards of collective instructions and of operands
   that must be uniform. The level of a block matters if it has a collective instruction, or a marked one,
   since the level adds to the class of what that writes. Mark also the slices of the conditions of all
   branches on which such a block is control dependent, until no more blocks matter. */
static void ptx__mark_needed(ptx__uniformity *u) {
    const ptx_kernel *k = u->k;
    const ptx__graph *g = u->g;
    uint32_t b, i, s, e, depth = 0, *nearest = g->stack, marked = 1, round = 0;
    size_t a;
    for (b = 0; b < g->blocks; b++) {
        if (!g->block[b].order) continue;
        for (s = g->block[b].relevant; (i = ptx__relevant_at(k, g, s)) < g->block[b].end; s++) {
            const ptx__ins *ins = &k->ins.at[i];
            const ptx__form *form = ptx__form_of(k, ins);
            const int plain = ins->kind == PTX__I_PLAIN;
            if (plain ? !form->collective : !g->prefetch) continue; /* long kernels: all branches now */
            if (plain) u->collectives[u->collective_count++] = i;
            u->level_matters[b] = 1;
            if (ins->guard) ptx__mark_register(u, ins->guard, &depth);
            if (plain && form->collective == PTX__COLLECTIVE_BLOCK) {
                const uint32_t *end, *w = ptx__sources(k, ins, &end);
                for (; w < end; w = ptx__next_operand(w)) ptx__mark_register(u, *w, &depth);
            }
        }
        ptx__mark_definitions(u, depth); /* per block, while its definitions are in the cache */
        depth = 0;
    }
    for (; marked && !g->prefetch; round++) { /* nearest: block -> nearest postdominator that matters */
        nearest[g->blocks] = g->blocks;
        for (i = 1; i < g->post_reached; i++) {
            b = g->post_order[i];
            nearest[b] = u->level_matters[b] ? b : nearest[g->post_idom[b]];
        }
        for (i = 1, marked = 0; i < g->post_reached; i++) {
            const ptx__block *block = &g->block[b = g->post_order[i]];
            const uint32_t guard = PTX__PREDICATE(block->guard), stop = g->post_depth[g->post_idom[b]];
            int depends = round > 16; /* then mark all that are left: more is never wrong, only slower */
            if (!block->guard || (u->level_matters[b] && u->index[ptx__register_number(g, guard)])) continue;
            for (e = 0; e < 2; e++) {
                s = block->next[e];
                depends |= s && g->post_number[s - 1] && g->post_depth[nearest[s - 1]] > stop;
            }
            if (!depends) continue;
            marked = u->level_matters[b] = 1;
            ptx__mark_register(u, guard, &depth);
            ptx__mark_definitions(u, depth);
            depth = 0;
        }
    }
    for (a = 0; a + 1 < k->asserted.count; a += 2)
        ptx__facts_of(u, k->asserted.at[a])->asserted = (uint8_t)(k->asserted.at[a + 1] + 1);
    u->value[0].asserted = 0; /* set by asserted registers that are not needed */
}

/* The class of a value that is uniform in each row of `threads` consecutive threads. */
static unsigned ptx__class_of_rows(uint32_t threads) {
    return threads % 128 == 0 ? PTX__CLASS_GROUP : threads % 32 == 0 ? PTX__CLASS_WARP : PTX__CLASS_LANE;
}

/* The class of a special register: that of the table, or a lower one by the declared block and cluster. */
PTX__COLD unsigned ptx__special_class(const ptx_kernel *k, unsigned which) {
    const uint32_t *block = k->required_block;
    if ((which >= PTX_CTAID_X && which <= PTX_CTAID_Z && k->cluster[which - PTX_CTAID_X] == 1)
        || (which >= PTX_CLUSTER_CTAID_X && which <= PTX_CLUSTER_CTAID_Z
            && k->cluster[which - PTX_CLUSTER_CTAID_X] == 1)
        || (which == PTX_CLUSTER_CTARANK && ptx__blocks_of(k) == 1))
        return PTX__CLASS_CLUSTER;
    if (block[0] && which <= PTX_TID_Z) {
        if (block[which - PTX_TID_X] == 1) return PTX__CLASS_CLUSTER;
        if (which == PTX_TID_Y) return ptx__class_of_rows(block[0]);
        if (which == PTX_TID_Z) return ptx__class_of_rows(block[0] * block[1]);
    }
    return ptx__specials[which].class_;
}

/* Lower x's level, the highest of all blocks that assign to the variable, to the highest of those from which
   a path leads to block b: an assignment in one branch of an `if` does not matter to a read in the other.
   Does nothing when the effort is used up. */
PTX__NOINLINE static void ptx__limit_level(ptx__uniformity *u, uint32_t word, uint32_t b,
                                           ptx__value_facts *x) {
    const ptx__graph *g = u->g;
    uint32_t depth = 0, from = b, e, at, by = ptx__definition_block(u->k, g, word);
    if (u->effort < g->blocks) return;
    u->effort -= g->blocks;
    x->level = (uint8_t)u->level[by], x->branch = u->branch[by];
    memset(g->mark, 0, g->blocks * sizeof *g->mark);
    for (;; from = g->stack[--depth]) {
        for (e = g->first_predecessor[from]; e < g->first_predecessor[from + 1]; e++) {
            if (g->mark[g->predecessor[e]]) continue;
            g->mark[g->predecessor[e]] = 1;
            g->stack[depth++] = g->predecessor[e];
        }
        if (!depth) break;
    }
    for (at = g->assignments[ptx__register_number(g, word)]; at; at = u->k->m->references.at[at - 1].next) {
        by = u->k->m->references.at[at - 1].block;
        if (g->mark[by] && u->level[by] > x->level)
            x->level = (uint8_t)u->level[by], x->branch = u->branch[by];
    }
}

/* The facts of a register as instruction i of block b reads it. If b assigns to a variable before i, the last
   such assignment decides its class. Otherwise a level of the register above that of b raises the class
   (temporal divergence). */
static ptx__value_facts ptx__read_register(ptx__uniformity *u, uint32_t word, uint32_t i, uint32_t b) {
    const uint32_t number = ptx__register_number(u->g, word);
    ptx__value_facts *of = &u->value[u->index[number]], x = *of;
    const int is_last = x.last_set > u->g->block[b].first && x.last_set <= i;
    of->read = 1;
    if (is_last) x.class_ = x.last_class, x.root = x.last_root;
    if (!is_last && x.level > u->level[b] && x.level > x.class_ && u->g->assignments[number])
        ptx__limit_level(u, word, b, &x);
    if (!is_last && x.level > u->level[b] && x.level > x.class_) x.class_ = x.level, x.root = x.branch;
    if (x.asserted && x.class_ >= x.asserted) x.class_ = (uint8_t)(x.asserted - 1);
    return x;
}

static ptx__value_facts ptx__operand_facts(ptx__uniformity *u, const uint32_t *w, uint32_t i, uint32_t b) {
    ptx__value_facts x = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    const int memory = PTX__TAG(*w) == PTX__W_MEM;
    uint32_t word = memory ? w[1] : *w;
    if (PTX__TAG(word) == PTX__W_PRED_NOT) word = PTX__PREDICATE(word);
    if (PTX__TAG(word) < PTX__REGISTER_CLASSES) return ptx__read_register(u, word, i, b);
    x.root = i + 1;
    if (PTX__IS_INTEGER(word)) x.zeros = ptx__low_zeros(w[1]);
    if (memory && PTX__TAG(word) == PTX__W_PARAM && u->k->function)
        x.class_ = PTX__CLASS_LANE; /* parameters of a function differ */
    if (PTX__TAG(word) == PTX__W_SPECIAL) {
        x.class_ = (uint8_t)ptx__special_class(u->k, PTX__INDEX(word));
        if (PTX__INDEX(word) == PTX_TID_X) x.tid_flags = PTX__TID_WARP | PTX__TID_GROUP | PTX__TID_SELF;
        if (PTX__INDEX(word) == PTX_NTID_X && ptx__most_threads(u->k))
            x.zeros = ptx__low_zeros(u->k->required_block[0] ? u->k->required_block[0] : u->k->max_threads);
    }
    return x;
}

/* The outcomes of a comparison for which it is true: a < b, a = b, a > b. */
enum { PTX__LESS = 1, PTX__EQUAL = 2, PTX__MORE = 4 };
static unsigned ptx__true_outcomes(const ptx__form *form) {
    static const uint8_t outcomes[] = {2, 5, 1, 3, 4, 6, 2, 5, 1, 3, 4, 6}; /* in the modifiers' order */
    unsigned i;
    for (i = 0; i < sizeof outcomes; i++)
        if (form->asked >> i & 1) return outcomes[i];
    return PTX__LESS | PTX__MORE;
}

/* Whether it divides what may be negative: -32 / 32 is -1, but -31 / 32, in the same row, is 0. */
static int ptx__truncates_negative(const ptx__form *form, const ptx__value_facts *x) {
    return form->row->op == PTX_DIV && form->type == PTX_S32 && !(x->tid_flags & PTX__TID_SELF);
}

/* The class of the result of an operation on x[0], which is derived from %tid.x (see ptx__value_facts), and
   x[1], whose words are at w. In a 1D block the result changes only at multiples of `rows` threads. If these
   are multiples of 32, the class is WARP, of 128 GROUP; in a 2D or 3D block only if its own rows are such a
   multiple long, too. A block of undeclared shape is taken as 1D. */
PTX__COLD unsigned ptx__tid_operation_class(const ptx_kernel *k, const ptx__form *form,
                                            const ptx__value_facts *x, const uint32_t *w) {
    const unsigned op = form->row->op, outcomes = op == PTX_SETP ? ptx__true_outcomes(form) : 0u;
    const uint32_t *block = k->required_block;
    const int number = PTX__IS_INTEGER(*w),
              above = outcomes == PTX__MORE || outcomes == (PTX__EQUAL | PTX__LESS);
    uint64_t n = number ? w[1] | (uint64_t)w[2] << 32 : 0, rows = 1;
    unsigned class_ = x[0].tid_flags & PTX__TID_GROUP ? PTX__CLASS_GROUP : PTX__CLASS_WARP, c;
    if (op == PTX_BFE && x[2].class_ > class_) class_ = x[2].class_;
    if (block[1] * block[2] > 1 && (c = ptx__class_of_rows(block[0])) > class_) class_ = c;
    if (op == PTX_SETP) {
        if (outcomes == PTX__EQUAL || outcomes == (PTX__LESS | PTX__MORE) || (above && !number))
            return PTX__CLASS_LANE;
        rows = number ? n + (above ? 1u : 0u) : (uint64_t)1 << x[1].zeros;
        if (x[1].class_ > class_) class_ = x[1].class_;
        if (number && x[0].tid_flags & PTX__TID_SELF && !x[0].shift && block[0] && rows >= block[0])
            return PTX__CLASS_CLUSTER; /* all threads are below it */
    } else if (!number)
        return PTX__CLASS_LANE;
    else if (op == PTX_SHR || op == PTX_BFE)
        rows = n < 20 ? (uint64_t)1 << n : 0;
    else if (op == PTX_DIV && n && !ptx__truncates_negative(form, x))
        rows = n;
    else if (op == PTX_AND)
        rows = (uint64_t)1 << ptx__low_zeros(n);
    c = ptx__class_of_rows((uint32_t)(rows << x[0].shift & 0xffff));
    return c > class_ ? c : class_;
}

/* The flags that tid + x keeps: WARP (GROUP) if x is uniform in a warp (warpgroup) with 5 (7) low zeros. */
static uint8_t ptx__tid_plus(const ptx__value_facts *tid, const ptx__value_facts *x, unsigned zeros) {
    uint8_t left = tid->shift ? 0 : tid->tid_flags & (PTX__TID_WARP | PTX__TID_GROUP);
    if (x->class_ > PTX__CLASS_GROUP || zeros < 7) left &= (uint8_t)~PTX__TID_GROUP;
    if (x->class_ > PTX__CLASS_WARP || zeros < 5) left &= (uint8_t)~PTX__TID_WARP;
    return left;
}

/* Set in r how a result derives from %tid.x, and its low zero bits. x: the operands; w: their words. */
static void ptx__integer_facts(const ptx__form *form, const ptx__value_facts *x, const uint32_t *w,
                               ptx__value_facts *r) {
    const ptx_mods mods = form->asked & ~PTX__FAMILY;
    unsigned zeros = 0;
    if (mods & (PTX_HI | PTX_SAT)) return;
    switch (form->row->op) {
    case PTX_MOV:
        r->tid_flags = x[0].tid_flags, r->shift = x[0].shift, zeros = x[0].zeros;
        break;
    case PTX_SUB:
    case PTX_ADD:
        zeros = x[0].zeros < x[1].zeros ? x[0].zeros : x[1].zeros;
        if (x[0].tid_flags)
            r->tid_flags = ptx__tid_plus(&x[0], &x[1], x[1].zeros);
        else if (x[1].tid_flags && form->row->op == PTX_ADD)
            r->tid_flags = ptx__tid_plus(&x[1], &x[0], x[0].zeros);
        break;
    case PTX_MUL:
    case PTX_MAD:
        zeros = x[0].zeros + x[1].zeros;
        if (form->row->op == PTX_MUL) break;
        if (x[2].tid_flags && !(mods & PTX_WIDE))
            r->tid_flags = ptx__tid_plus(&x[2], x[0].class_ > x[1].class_ ? &x[0] : &x[1], zeros);
        if (x[2].zeros < zeros) zeros = x[2].zeros;
        break;
    case PTX_AND: zeros = x[0].zeros > x[1].zeros ? x[0].zeros : x[1].zeros; break;
    case PTX_SHL:
        if (PTX__IS_INTEGER(*ptx__next_operand(w))) zeros = x[0].zeros + ptx__next_operand(w)[1];
        break;
    case PTX_SHR:
    case PTX_DIV: /* (tid >> 5) >> 2 is tid >> 7 */
        w = ptx__next_operand(w);
        if (!x[0].tid_flags || !PTX__IS_INTEGER(*w) || w[1] > 128 || ptx__truncates_negative(form, x)) break;
        zeros = form->row->op == PTX_SHR ? w[1] : ptx__low_zeros(w[1]);
        if (form->row->op == PTX_DIV && w[1] != 1u << zeros) zeros = PTX__ZEROS_MOST + 1;
        if (x[0].shift + zeros <= PTX__ZEROS_MOST)
            r->tid_flags = x[0].tid_flags, r->shift = (uint8_t)(x[0].shift + zeros);
        zeros = 0;
        break;
    default: break;
    }
    r->zeros = (uint8_t)(zeros < PTX__ZEROS_MOST ? zeros : PTX__ZEROS_MOST);
}

static ptx__value_facts ptx__result_facts(ptx__uniformity *u, const ptx__ins *ins, uint32_t i, uint32_t b) {
    const ptx__form *form = ptx__form_of(u->k, ins);
    const uint32_t *end, *first = ptx__sources(u->k, ins, &end), *w;
    ptx__value_facts r = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, x[4];
    unsigned n = 0, narrower;
    r.root = i + 1;
    switch (form->result) { /* independent of the operands */
    case PTX__RESULT_LANE: r.class_ = PTX__CLASS_LANE; return r;
    case PTX__RESULT_UNIFORM_BLOCK:
        r.class_ = strchr(form->operands, 'G') ? PTX__CLASS_WARP : PTX__CLASS_BLOCK;
        return r;
    default: break;
    }
    memset(x, 0, 3 * sizeof *x);
    for (w = first; w < end; w = ptx__next_operand(w), n += n < 3) {
        x[n] = ptx__operand_facts(u, w, i, b);
        if (x[n].class_ > r.class_) r.class_ = x[n].class_, r.root = x[n].root;
    }
    if (form->result == PTX__RESULT_UNIFORM_WARP) { /* in the lanes of one mask, which may be several */
        r.class_ = n == 2 && x[1].class_ > PTX__CLASS_WARP ? x[1].class_ : (unsigned)PTX__CLASS_WARP;
        r.root = r.class_ > PTX__CLASS_WARP ? x[1].root : i + 1;
        return r;
    }
    if (form->result == PTX__RESULT_LANE_OF) { /* shfl.idx: uniform in the warp if the lane is */
        w = ptx__next_operand(ptx__next_operand(first));
        if (!PTX__IS_INTEGER(*w) || w[1] != 31) { /* segments, or lanes that keep their own */
            r.class_ = PTX__CLASS_LANE, r.root = i + 1;
            return r;
        }
        r.class_ = x[0].class_ < PTX__CLASS_WARP ? x[0].class_ : (unsigned)PTX__CLASS_WARP;
        if (x[1].class_ > r.class_) r.class_ = x[1].class_, r.root = x[1].root;
        return r;
    }
    if (!strchr("usb", ptx__fact(form->type)->kind)) return r; /* the facts below are of integers */
    if (x[0].tid_flags
        && ((n == 2 && !(form->row->op == PTX_SETP && form->operands[2])) || form->row->op == PTX_BFE)) {
        narrower = ptx__tid_operation_class(u->k, form, x, ptx__next_operand(first));
        if (narrower < r.class_) r.class_ = (uint8_t)narrower, r.root = i + 1;
    }
    if (n && PTX__TAG(u->k->words.at[ins->words]) == PTX__W_32) ptx__integer_facts(form, x, first, &r);
    return r;
}

/* Update the facts of what instruction i of block b writes. 1: a variable changed that has been read. */
static int ptx__update_classes(ptx__uniformity *u, uint32_t i, uint32_t b) {
    const ptx__ins *ins = &u->k->ins.at[i];
    const uint32_t *w = u->k->words.at + ins->words, *end = w + ins->results;
    ptx__value_facts written;
    int again = 0;
    if (i + 128 < u->k->ins.count) PTX__PREFETCH(ins + 128);
    if (w == end) return 0;
    written = ptx__result_facts(u, ins, i, b);
    if (ins->guard) {
        ptx__value_facts guard = ptx__read_register(u, PTX__PREDICATE(ins->guard), i, b);
        if (guard.class_ > written.class_) written.class_ = guard.class_, written.root = guard.root;
    }
    for (; w < end; w++) {
        ptx__value_facts *x;
        int variable, read;
        if (PTX__TAG(*w) >= PTX__REGISTER_CLASSES) continue;
        x = ptx__facts_of(u, *w);
        if (x == u->value) continue;
        variable = u->g->assignments[ptx__register_number(u->g, *w)] != 0;
        read = variable && x->read;
        if (written.class_ > x->class_) x->class_ = written.class_, x->root = written.root, again |= read;
        if (u->raised[b] == u->pass || u->level[b] > x->level) again |= read;
        if (u->level[b] > x->level) x->level = (uint8_t)u->level[b], x->branch = u->branch[b];
        if (!variable)
            x->tid_flags = written.tid_flags, x->shift = written.shift, x->zeros = written.zeros;
        else if (!ins->guard)
            x->last_set = i + 1, x->last_class = written.class_, x->last_root = written.root;
        else if (written.class_ > x->last_class) /* a guarded one may keep the old value */
            x->last_class = written.class_, x->last_root = written.root;
    }
    return again;
}

/* The next needed instruction from i on; ins.count after the last. */
static uint32_t ptx__next_needed(ptx__uniformity *u, uint32_t i) {
    uint32_t word = i / 32, bits = u->needed[word] & 0xffffffffu << i % 32;
    while (!bits) bits = u->needed[++word];
    return 32 * word + ptx__lowest_bit(bits);
}

/* The nearest postdominator of b, or b itself, that has not been raised to the level. next_unraised is a
   union-find structure with path halving: block -> itself if it has not been raised, else a block on the way
   up the postdominator tree to one that has not. */
static uint32_t ptx__nearest_unraised(uint32_t *next_unraised, uint32_t b) {
    while (next_unraised[b] != b) {
        next_unraised[b] = next_unraised[next_unraised[b]];
        b = next_unraised[b];
    }
    return b;
}

/* The branch at the end of block `from` is divergent at that level. Raise the blocks that are control
   dependent on it, and on the branches of these in turn: from each successor up the postdominator tree to
   below the branch's immediate postdominator. Blocks that have the level are skipped. Returns whether a block
   up to `from` in the text was raised. */
static int ptx__raise_levels(ptx__uniformity *u, uint32_t from, uint32_t level) {
    const ptx__graph *g = u->g;
    uint32_t *stack = g->stack, depth = 0, *next_unraised = u->next_unraised[level - 1];
    int before = 0;
    stack[depth++] = from;
    while (depth) {
        uint32_t b = stack[--depth], e, stop, below;
        if (!g->post_number[b]) continue; /* no path to an exit: a loop with a trap */
        stop = g->post_depth[g->post_idom[b]];
        for (e = 0; e < 2; e++) {
            uint32_t n = g->block[b].next[e];
            if (!n || !g->post_number[n - 1]) continue;
            for (n = ptx__nearest_unraised(next_unraised, n - 1); g->post_depth[n] > stop;
                 n = ptx__nearest_unraised(next_unraised, n)) {
                for (below = 0; below < level; below++)
                    if (u->next_unraised[below][n] == n) u->next_unraised[below][n] = g->post_idom[n];
                if (u->level[n] < level) u->level[n] = level, u->branch[n] = g->block[from].end;
                u->raised[n] = u->pass;
                before |= n <= from;
                stack[depth++] = n;
            }
        }
    }
    return before;
}

/* Raise levels if the branch at the end of block b diverges more than before. Returns what ptx__raise_levels
   returns. */
static int ptx__propagate_divergence(ptx__uniformity *u, uint32_t b) {
    const ptx__block *block = &u->g->block[b];
    ptx__value_facts condition;
    if (!block->guard || !block->order) return 0;
    condition = ptx__read_register(u, PTX__PREDICATE(block->guard), block->end - 1, b);
    if (ptx__form_of(u->k, &u->k->ins.at[block->end - 1])->row->op == PTX_BRX_EDGE) {
        /* the guard only tests the range of the index; where the branch goes depends on the index */
        const ptx__definition *test = ptx__definition_of_register(u->k, block->guard);
        const uint32_t *end, *index = ptx__sources(u->k, &u->k->ins.at[test->instruction], &end);
        condition =
            ptx__operand_facts(u, index, test->instruction, ptx__definition_block(u->k, u->g, block->guard));
    }
    if (condition.class_ <= u->condition[b]) return 0;
    u->condition[b] = condition.class_;
    u->condition_root[b] = condition.root;
    return ptx__raise_levels(u, b, condition.class_);
}

/* One pass over the needed instructions and the branches. Returns whether another is necessary. */
static int ptx__propagate(ptx__uniformity *u) {
    uint32_t b, i = ptx__next_needed(u, 0);
    int again = 0;
    u->pass++;
    for (b = 0; b < u->g->blocks; b++) {
        for (; i < u->g->block[b].end; i = ptx__next_needed(u, i + 1)) again |= ptx__update_classes(u, i, b);
        again |= ptx__propagate_divergence(u, b);
    }
    return again;
}

#define PTX__ROUNDS_MOST 128 /* a chain of variables in a loop may take a pass for each of them */

static void ptx__find_uniformity(ptx__uniformity *u) {
    const uint32_t count = (uint32_t)u->k->ins.count;
    uint32_t rounds = 0, i;
    ptx__fill_postdominators(u->g);
    ptx__mark_needed(u);
    u->needed[count / 32] |= 1u << count % 32; /* ends ptx__next_needed */
    while (ptx__propagate(u)) {
        if (++rounds != PTX__ROUNDS_MOST) continue;
        for (i = 0; i < u->k->m->references.count; i++) { /* give up: all variables differ */
            const uint32_t at = u->k->m->references.at[i].instruction;
            ptx__value_facts *x = ptx__facts_of(u, u->k->words.at[u->k->ins.at[at].words]);
            x->class_ = PTX__CLASS_LANE, x->root = x->root ? x->root : at + 1;
        }
    }
}

/* Report a collective instruction that only some of its threads may execute, for its guard or its level. */
static ptx_code ptx__check_convergence(ptx__uniformity *u, uint32_t i, uint32_t b) {
    static const char *const groups[] = {"all threads of the cluster", "all threads of the block",
                                         "all threads of a warpgroup", "all threads of a warp"};
    static const char assert_[][22] = {"ptx_cluster_uniform", "ptx_uniform", "ptx_warpgroup_uniform",
                                       "ptx_warp_uniform"};
    ptx_kernel *k = u->k;
    const ptx__ins *ins = &k->ins.at[i], *branch;
    const unsigned highest = ptx__highest_level(k, ins);
    char root[360];
    if (ins->guard) {
        ptx__value_facts guard = ptx__read_register(u, PTX__PREDICATE(ins->guard), i, b);
        if (guard.class_ > highest) {
            ptx__describe_root(k, guard.root, root, sizeof root);
            return ptx__fault(k, PTX_E_DIVERGENT, i, "%s is for %s together, but its guard depends on %s",
                              ptx__mnemonic(k, ins), groups[highest], root);
        }
    }
    if (u->level[b] <= highest) return PTX_E_NONE;
    branch = &k->ins.at[u->branch[b] - 1];
    ptx__describe_root(k, u->condition_root[ptx__block_of(u->g, u->branch[b] - 1)], root, sizeof root);
    return ptx__fault(k, PTX_E_DIVERGENT, i,
                      "%s is for %s together, but only some come here%s: the condition at %s depends on "
                      "%s; move it to where all of them come or, if the condition is the same for all, "
                      "assert that with %s",
                      ptx__mnemonic(k, ins), groups[highest],
                      branch->kind == PTX__I_LEAVE ? ", others have left" : "", ptx__site(k, branch->site),
                      root, assert_[highest]);
}

/* Check that a barrier's number and its count of threads are uniform among the threads that it is for. */
static ptx_code ptx__check_barrier(ptx__uniformity *u, uint32_t i, uint32_t b) {
    ptx_kernel *k = u->k;
    const ptx__ins *ins = &k->ins.at[i];
    const ptx__form *form = ptx__form_of(k, ins);
    const uint32_t *end, *w = ptx__sources(k, ins, &end);
    const char *slot = form->operands;
    char root[360];
    if (form->collective != PTX__COLLECTIVE_BLOCK) return PTX_E_NONE;
    for (; w < end && (*slot == 'F' || *slot == 'G'); w = ptx__next_operand(w), slot++) {
        ptx__value_facts x = ptx__operand_facts(u, w, i, b);
        if (x.class_ > ptx__highest_level(k, ins)) {
            ptx__describe_root(k, x.root, root, sizeof root);
            return ptx__fault(k, PTX_E_DIVERGENT, i,
                              "operand %u of %s must be the same for all threads that execute it together; "
                              "it depends on %s",
                              (unsigned)(slot - form->operands) + 1, ptx__mnemonic(k, ins), root);
        }
    }
    return PTX_E_NONE;
}

static ptx_code (*const ptx__uniformity_checks[])(ptx__uniformity *u, uint32_t i, uint32_t b) = {
    ptx__check_convergence, ptx__check_barrier};

static ptx_code ptx__check_uniformity(ptx_kernel *k, ptx__graph *g) {
    ptx__uniformity u;
    uint32_t b = 0, n;
    size_t c;
    if (!(k->seen & PTX__SEEN_CONVERGENT)) return PTX_E_NONE;
    if (!ptx__make_uniformity(k, g, &u)) return k->m->error.code;
    ptx__find_uniformity(&u);
    for (n = 0; n < u.collective_count; n++) {
        const uint32_t i = ptx__listed_at(k, u.collectives, u.collective_count, n);
        while (g->block[b].end <= i) b++;
        for (c = 0; c < sizeof ptx__uniformity_checks / sizeof *ptx__uniformity_checks; c++)
            if (ptx__uniformity_checks[c](&u, i, b)) return k->m->error.code;
    }
    return PTX_E_NONE;
}

/* -- verify: constant addresses -- */

/* The origin of an address, traced back through mov, add, sub and the addend of mad: symbol + offset. exact:
   nothing else was added. symbol 0: unknown. */
typedef struct ptx__origin {
    uint32_t symbol;
    int exact;
    int64_t offset;
} ptx__origin;
#define PTX__STEPS_MOST 24

static ptx__origin ptx__origin_of(const ptx_kernel *k, const ptx__graph *g, const uint32_t *w, int *budget) {
    const ptx__origin unknown = {0, 0, 0};
    ptx__origin x = {0, 1, 0}, y;
    const uint32_t tag = PTX__TAG(*w), *end;
    const ptx__ins *ins;
    unsigned op;
    if (tag == PTX__W_SHARED || tag == PTX__W_LOCAL || tag == PTX__W_GLOBAL) x.symbol = *w;
    else if (PTX__IS_INTEGER(*w))
        x.offset = (int64_t)(w[1] | (uint64_t)w[2] << 32);
    if (x.symbol || PTX__IS_INTEGER(*w)) return x;
    ins = --*budget > 0 ? ptx__defining_instruction(k, g, *w) : NULL;
    op = ins ? ptx__op_of(k, ins) : PTX__NO_OP;
    if (op != PTX_MOV && op != PTX_ADD && op != PTX_SUB && op != PTX_MAD) return unknown;
    w = ptx__sources(k, ins, &end);
    if (op == PTX_MAD) w = ptx__next_operand(ptx__next_operand(w));
    x = ptx__origin_of(k, g, w, budget);
    x.exact &= op != PTX_MAD;
    if (op == PTX_MOV || op == PTX_MAD) return x;
    y = ptx__origin_of(k, g, ptx__next_operand(w), budget);
    if (y.symbol && (x.symbol || op == PTX_SUB)) return unknown;
    x.symbol |= y.symbol;
    x.exact &= y.exact;
    x.offset = (int64_t)((uint64_t)x.offset + (op == PTX_SUB ? 0 - (uint64_t)y.offset : (uint64_t)y.offset));
    if (ptx__fact(ptx__form_of(k, ins)->type)->bits == 32) x.offset = (int32_t)x.offset; /* wraps */
    return x;
}

/* The alignment and size in bytes that an instruction needs at the address in the slot of that letter. */
static void ptx__extent(const ptx_kernel *k, const ptx__ins *ins, char letter, uint32_t *align,
                        uint32_t *bytes) {
    const ptx__form *form = ptx__form_of(k, ins);
    const unsigned op = form->row->op, effect = form->effect;
    const ptx_mods mods = form->asked & ~PTX__FAMILY;
    const uint32_t *end, *w = ptx__sources(k, ins, &end);
    *align = *bytes = 1;
    if ((op >= PTX_TENSORMAP_REPLACE_ADDRESS && op <= PTX_TENSORMAP_CP_FENCE) || op == PTX_DISCARD
        || op == PTX_APPLYPRIORITY)
        *align = *bytes = 128;
    else if (op >= PTX_WMMA_LOAD_A_M16N16K16 && op <= PTX_WMMA_STORE_D_M8N8K128)
        *align = 16;
    else if (op >= PTX_TENSOR_G2S_CTA && op <= PTX_TENSOR_PREFETCH)
        *align = letter == 's' || letter == 'k' ? 128 : letter == 'b' || letter == 'r' ? 8 : 1;
    else if (letter == 'm' && ptx__types_of(form->row)) {
        *bytes = ptx_type_bytes((ptx_type)form->type);
        if (mods & PTX__M_V2) *bytes *= 2;
        if (mods & (PTX__M_V4 | PTX__M_V4_64)) *bytes *= 4;
        if (mods & PTX__M_V8) *bytes *= 8;
        if (!*bytes) *bytes = 1;
        *align = *bytes;
    } else if (letter == 'l')
        *align = *bytes = 16;
    else if (letter == 'b' || letter == 'r')
        *align = *bytes = 8;
    else if (letter != 'm'
             && (effect == PTX__EFFECT_COPY || effect == PTX__EFFECT_BULK)) {
        while (w < end && !PTX__IS_INTEGER(*w)) w = ptx__next_operand(w); /* the size is the first number */
        if (w < end) *bytes = w[1];
        *align = effect == PTX__EFFECT_COPY ? *bytes : 16;
    }
}

/* A description of the symbol if it is not in the state space of the instruction; else NULL. */
static const char *ptx__space_mismatch(const ptx_kernel *k, const ptx__form *form, uint32_t symbol) {
    const ptx_mods space = form->asked & PTX__SPACE & ~PTX__FAMILY;
    ptx_mods own = PTX__M_SHARED | PTX__M_SHARED_CLUSTER;
    const char *what = "an array in shared memory";
    if (!(ptx__allowed(form->row) >> 63)) return NULL; /* its modifiers include no state space */
    if (PTX__TAG(symbol) == PTX__W_LOCAL) own = PTX__M_LOCAL, what = "an array in local memory";
    if (PTX__TAG(symbol) == PTX__W_GLOBAL) {
        own = PTX__M_GLOBAL, what = "a variable in global memory";
        if (k->m->variables.at[PTX__INDEX(symbol)].space == PTX_CONST)
            own = PTX__M_CONST, what = "a variable in constant memory: ptx_cvta makes its address generic";
    }
    if (!space)
        return own == PTX__M_GLOBAL ? NULL : what; /* a generic access; global addresses are generic */
    return space & own & ~PTX__FAMILY ? NULL : what;
}

/* Check the address at w, a base and an offset, in the slot of that letter: space, bounds and alignment. */
static ptx_code ptx__check_address(ptx_kernel *k, const ptx__graph *g, uint32_t i, const uint32_t *w,
                                   char letter) {
    const ptx__ins *ins = &k->ins.at[i];
    const ptx__form *form = ptx__form_of(k, ins);
    const char *array, *mismatch, *text = k->m->chars.at + form->text;
    uint32_t align, bytes, symbol_align, symbol_bytes;
    int budget = PTX__STEPS_MOST;
    const ptx__origin v = ptx__origin_of(k, g, w, &budget);
    const int64_t offset = v.offset + (int32_t)w[1];
    if (!v.symbol) return PTX_E_NONE;
    if (letter == 'm' && (mismatch = ptx__space_mismatch(k, form, v.symbol)) != NULL)
        return ptx__fault(k, PTX_E_ADDRESS, i, "%.150s goes to %s", text, mismatch);
    if (!v.exact) return PTX_E_NONE;
    ptx__extent(k, ins, letter, &align, &bytes);
    if (PTX__TAG(v.symbol) == PTX__W_GLOBAL) {
        const ptx__variable *x = &k->m->variables.at[PTX__INDEX(v.symbol)];
        array = k->m->names.at + x->name, symbol_align = x->align;
        symbol_bytes = x->count * ptx_type_bytes((ptx_type)x->type);
    } else {
        const int shared = PTX__TAG(v.symbol) == PTX__W_SHARED;
        const ptx__symbol *x = (shared ? k->shared.at : k->locals.at) + PTX__INDEX(v.symbol);
        array = k->m->names.at + x->name, symbol_align = x->align, symbol_bytes = x->count;
        if (shared)
            symbol_bytes =
                symbol_bytes ? symbol_bytes * ptx_type_bytes((ptx_type)x->type) : PTX__DYNAMIC_MOST;
    }
    if (offset < 0 || offset + (int64_t)bytes > (int64_t)symbol_bytes)
        return ptx__fault(k, PTX_E_ADDRESS, i, "%.150s reaches bytes %lld to %lld of '%.80s', which has %u",
                          text, (long long)offset, (long long)offset + (int64_t)bytes - 1, array,
                          symbol_bytes);
    if (((uint64_t)offset | symbol_align) & (align - 1))
        return ptx__fault(k, PTX_E_ALIGN, i,
                          "%.150s needs an address aligned to %u bytes; this one is byte %lld of '%.80s', "
                          "which is aligned to %u",
                          text, align, (long long)offset, array, symbol_align);
    return PTX_E_NONE;
}

static ptx_code ptx__check_addresses(ptx_kernel *k, ptx__graph *g) {
    uint32_t i, s;
    /* without either, no address outside of shared memory has a known symbol */
    const int global = k->m->variables.count || k->locals.count;
    if (!g->assignments || !(k->shared.count || global)) return PTX_E_NONE;
    for (s = 0; (i = ptx__relevant_at(k, g, s)) != UINT32_MAX; s++) {
        const ptx__ins *ins = &k->ins.at[i];
        const ptx__form *form = ptx__form_of(k, ins);
        const uint32_t *end, *w = ptx__sources(k, ins, &end);
        const char *slot;
        if (ins->kind != PTX__I_PLAIN || !form->has_addresses) continue;
        if (!global && form->asked & PTX__M_GLOBAL & ~PTX__FAMILY) continue;
        for (slot = k->m->chars.at + form->slots; w < end; w = ptx__next_operand(w), slot += *slot != 0) {
            while (*slot == '}' || *slot == ']') slot++;
            if (PTX__TAG(*w) == PTX__W_MEM && PTX__TAG(w[1]) < PTX__REGISTER_CLASSES
                && ptx__check_address(k, g, i, w + 1, *slot ? *slot : 'm'))
                return k->m->error.code;
        }
    }
    return PTX_E_NONE;
}

/* -- verify: asynchronous order --
   Forward dataflow problems. A fact is a set of bits: the states that are possible on some path to a point. A
   transfer function maps the fact before an instruction to the fact after it. The facts at the beginnings of
   blocks grow to a fixed point; then a last pass over each block reports errors. */

typedef struct ptx__forward {
    ptx_kernel *k;
    ptx__graph *g;
    uint32_t effects;           /* effects whose instructions are visited, a bit each; 0: all instructions */
    uint32_t *data, data_count; /* data of the transfer function */
} ptx__forward;
typedef uint32_t (*ptx__transfer)(const ptx__forward *p, uint32_t i, uint32_t fact, int report);

static uint32_t ptx__transfer_block(const ptx__forward *p, ptx__transfer transfer, uint32_t b, uint32_t fact,
                                    int report) {
    const ptx_kernel *k = p->k;
    const ptx__block *block = &p->g->block[b];
    /* a read changes no fact: it is visited only to report */
    const uint32_t effects = report ? p->effects : p->effects & ~(1u << PTX__EFFECT_READ);
    uint32_t s = block->relevant, i;
    if (!p->effects) {
        for (i = block->first; i < block->end; i++) fact = transfer(p, i, fact, report);
        return fact;
    }
    for (; (i = ptx__relevant_at(k, p->g, s)) < block->end; s++)
        if (k->ins.at[i].kind == PTX__I_PLAIN && effects >> ptx__form_of(k, &k->ins.at[i])->effect & 1)
            fact = transfer(p, i, fact, report);
    return fact;
}

static ptx_code ptx__solve_forward(const ptx__forward *p, ptx__transfer transfer, uint32_t entry) {
    ptx__graph *g = p->g;
    uint32_t *in = g->stack, *last = g->mark, n; /* last: in[b] when b was visited last */
    int changed = 1, e;
    memset(in, 0, g->blocks * sizeof *in);
    memset(last, 0, g->blocks * sizeof *last);
    in[0] = entry;
    while (changed) {
        changed = 0;
        for (n = 0; n < g->reached; n++) {
            uint32_t b = g->order[n], out;
            if (n && last[b] == in[b]) continue;
            last[b] = in[b];
            out = ptx__transfer_block(p, transfer, b, in[b], 0);
            for (e = 0; e < 2; e++) {
                uint32_t to = g->block[b].next[e];
                if (!to || !(out & ~in[to - 1])) continue;
                in[to - 1] |= out;
                changed = 1;
            }
        }
    }
    for (n = 0; n < g->reached && !p->k->m->error.code; n++)
        ptx__transfer_block(p, transfer, g->order[n], in[g->order[n]], 1);
    return p->k->m->error.code;
}

/* The possible states of this thread's cp.async copies: none issued, issued, committed to a group, waited
   for. After a wait a pipeline is assumed, whose later copies fill other stages: they are not tracked. */
enum { PTX__COPY_NONE = 1, PTX__COPY_ISSUED = 2, PTX__COPY_COMMITTED = 4, PTX__COPY_WAITED = 8 };

/* The shared array that the first address of an instruction points into, as one bit; 0: unknown. */
static uint32_t ptx__shared_array(const ptx_kernel *k, const ptx__graph *g, uint32_t i) {
    const uint32_t *end, *w = ptx__sources(k, &k->ins.at[i], &end);
    int budget = PTX__STEPS_MOST;
    uint32_t symbol;
    while (w < end && PTX__TAG(*w) != PTX__W_MEM) w = ptx__next_operand(w);
    if (w == end) return 0;
    symbol = ptx__origin_of(k, g, w + 1, &budget).symbol;
    return PTX__TAG(symbol) != PTX__W_SHARED ? 0u : 1u << (PTX__INDEX(symbol) < 31 ? PTX__INDEX(symbol) : 31);
}

static uint32_t ptx__transfer_copies(const ptx__forward *p, uint32_t i, uint32_t fact, int report) {
    const uint32_t open = fact & (PTX__COPY_ISSUED | PTX__COPY_COMMITTED);
    const uint32_t wait = 1u << PTX__EFFECT_WAIT | 1u << PTX__EFFECT_WAIT_GROUPS;
    const uint32_t effects = 1u << ptx__form_of(p->k, &p->k->ins.at[i])->effect;
    if (report && open && *p->data && effects >> PTX__EFFECT_READ & 1
        && ptx__shared_array(p->k, p->g, i) & *p->data)
        ptx__fault(
            p->k, PTX_E_ASYNC, i,
            "shared memory is read while cp.async copies are under way: no cp.async.wait_group or wait_all "
            "on some path to here");
    if (report && fact & PTX__COPY_ISSUED && effects == 1u << PTX__EFFECT_WAIT_GROUPS)
        ptx__fault(
            p->k, PTX_E_ASYNC, i,
            "cp.async.wait_group waits for committed groups only, and on some path to here the copies are "
            "not committed");
    if (effects >> PTX__EFFECT_COPY & 1 && fact != PTX__COPY_WAITED)
        return (fact & PTX__COPY_WAITED) | PTX__COPY_ISSUED;
    if (effects >> PTX__EFFECT_COMMIT & 1 && open) return (fact & ~open) | PTX__COPY_COMMITTED;
    /* NONE is dropped: a path without the first copies is taken to skip the rest of the pipeline, too */
    if (effects & wait && open) return PTX__COPY_WAITED;
    return fact;
}

static ptx_code ptx__check_copies(ptx_kernel *k, ptx__graph *g) {
    const uint32_t effects = 1u << PTX__EFFECT_COPY | 1u << PTX__EFFECT_COMMIT | 1u << PTX__EFFECT_WAIT_GROUPS
                             | 1u << PTX__EFFECT_WAIT | 1u << PTX__EFFECT_READ;
    uint32_t filled = 0, i, s;
    ptx__forward p;
    if (!(k->seen >> PTX__EFFECT_COPY & 1)) return PTX_E_NONE;
    for (s = 0; g->assignments && (i = g->relevant[s]) != UINT32_MAX; s++)
        if (k->ins.at[i].kind == PTX__I_PLAIN && ptx__form_of(k, &k->ins.at[i])->effect == PTX__EFFECT_COPY)
            filled |= ptx__shared_array(k, g, i);
    p.k = k, p.g = g, p.effects = effects, p.data = &filled, p.data_count = 1;
    return ptx__solve_forward(&p, ptx__transfer_copies, PTX__COPY_NONE);
}

/* The accumulators of one wgmma are a set. The possible states of a set: no product in flight, one issued,
   one in the last committed group, in the group before ...; and whether its registers may have been written
   since the last wgmma.fence. */
enum { PTX__MMA_NONE = 1, PTX__MMA_ISSUED = 2, PTX__MMA_GROUP = 4, PTX__MMA_UNFENCED = 1 << 10 };
#define PTX__MMA_GROUPS (0xffu * PTX__MMA_GROUP)

/* What an instruction touches of the set: 1 accumulators, 2 fragments of A; and 4 if it writes them. */
PTX__COLD unsigned ptx__set_accesses(const ptx__forward *p, const ptx__ins *ins) {
    uint32_t at, word;
    unsigned found = 0;
    for (at = 0; (word = ptx__next_register(p->k, ins, 1, &at)) != 0;)
        found |= p->data[ptx__register_number(p->g, word)] == 2 * p->data_count;
    for (at = 0; (word = ptx__next_register(p->k, ins, 0, &at)) != 0;)
        if (p->data[ptx__register_number(p->g, word)] >> 1 == p->data_count)
            found |= p->data[ptx__register_number(p->g, word)] & 1 ? 6u : 5u;
    return found;
}

PTX__COLD uint32_t ptx__transfer_products(const ptx__forward *p, uint32_t i, uint32_t fact, int report) {
    const ptx__ins *ins = &p->k->ins.at[i];
    const unsigned effect = ins->kind == PTX__I_PLAIN ? ptx__form_of(p->k, ins)->effect
                                                      : (unsigned)PTX__EFFECT_NONE;
    const unsigned accesses = ptx__set_accesses(p, ins);
    const uint32_t open = fact & (PTX__MMA_GROUPS | PTX__MMA_ISSUED), groups = fact & PTX__MMA_GROUPS;
    uint32_t left;
    if (effect == PTX__EFFECT_MMA) {
        if (!(accesses & 4)) return fact;
        if (report && fact & PTX__MMA_UNFENCED)
            ptx__fault(p->k, PTX_E_FENCE, i,
                       "wgmma works on registers that may have been written since the last wgmma.fence; put "
                       "ptx_op0(k, PTX_WGMMA_FENCE, 0) before it");
        return (fact & ~(open | PTX__MMA_NONE)) | PTX__MMA_ISSUED;
    }
    if (report && accesses && accesses != 6 && open)
        ptx__fault(p->k, PTX_E_ASYNC, i,
                   "a sum of wgmma is %s here while the product may be under way: no wgmma.commit_group and "
                   "wgmma.wait_group for it on some path to here",
                   accesses & 4 ? "set" : "read");
    if (accesses & 4) fact |= PTX__MMA_UNFENCED;
    switch (effect) {
    case PTX__EFFECT_MMA_FENCE: return fact & ~(uint32_t)PTX__MMA_UNFENCED;
    case PTX__EFFECT_MMA_COMMIT: /* each group is one older; the oldest bit stays */
        left = (groups << 1 & PTX__MMA_GROUPS) | (groups & PTX__MMA_GROUP << 7);
        if (fact & PTX__MMA_ISSUED) left |= PTX__MMA_GROUP;
        return (fact & ~open) | left;
    case PTX__EFFECT_MMA_WAIT: /* all but the last N groups are complete */
        left = groups & (((uint32_t)PTX__MMA_GROUP << p->k->words.at[ins->words + 1]) - 1u);
        return (fact & ~groups) | left | (left != groups ? (uint32_t)PTX__MMA_NONE : 0u);
    default: return fact;
    }
}

/* Solve the problem for each set, up to 32. marks: register -> 2 n for an accumulator of set n, 2 n + 1 for a
   fragment of A. */
PTX__COLD ptx_code ptx__check_products(ptx_kernel *k, ptx__graph *g) {
    uint32_t i, at, word, *marks, set = 0;
    ptx__forward p;
    if (!(k->seen >> PTX__EFFECT_MMA & 1)) return PTX_E_NONE;
    k->m->analysis_words.count = 0;
    if (!PTX__ROOM(k->m, k->m->analysis_words, g->registers)) return k->m->error.code;
    marks = k->m->analysis_words.at;
    memset(marks, 0, g->registers * sizeof *marks);
    p.k = k, p.g = g, p.effects = 0, p.data = marks;
    for (i = 0; i < k->ins.count && set < 32; i++) {
        const ptx__ins *ins = &k->ins.at[i];
        if (ins->kind != PTX__I_PLAIN || ptx__form_of(k, ins)->effect != PTX__EFFECT_MMA) continue;
        at = 0;
        word = ptx__next_register(k, ins, 0, &at);
        if (!word || marks[ptx__register_number(g, word)]) continue;
        p.data_count = ++set;
        for (at = 0; (word = ptx__next_register(k, ins, 1, &at)) != 0;)
            if (PTX__TAG(word) == PTX__W_32) marks[ptx__register_number(g, word)] = 2 * set + 1;
        for (at = 0; (word = ptx__next_register(k, ins, 0, &at)) != 0;
             marks[ptx__register_number(g, word)] = 2 * set)
            if (marks[ptx__register_number(g, word)] == 2 * set)
                return ptx__fault(k, PTX_E_ARGUMENT, i, "one variable is given for two sums of this wgmma");
        if (ptx__solve_forward(&p, ptx__transfer_products, PTX__MMA_NONE | PTX__MMA_UNFENCED))
            return k->m->error.code;
    }
    return PTX_E_NONE;
}

/* A fact has a bit for each tcgen05.ld that no tcgen05.wait::ld has followed. */
PTX__COLD uint32_t ptx__transfer_tensor_loads(const ptx__forward *p, uint32_t i, uint32_t fact, int report) {
    const ptx__ins *ins = &p->k->ins.at[i];
    uint32_t j, word, at = 0;
    while (report && fact && (word = ptx__next_register(p->k, ins, 1, &at)) != 0)
        for (j = 0; j < p->data_count; j++)
            if (fact >> j & 1 && p->data[j] == ptx__definition_of_register(p->k, word)->instruction)
                ptx__fault(
                    p->k, PTX_E_ASYNC, i,
                    "what the tcgen05.ld at %s loads may not have come yet: put PTX_TCGEN05_WAIT_LD between",
                    ptx__site_at(p->k, p->data[j]));
    switch (ptx__op_of(p->k, ins)) {
    case PTX_TCGEN05_WAIT_LD:
    case PTX_RAW: return 0; /* a call or a text may wait */
    default: break;
    }
    for (j = 0; j < p->data_count; j++)
        if (p->data[j] == i) fact |= 1u << j;
    return fact;
}

/* Check the first 32 loads of tensor memory. */
PTX__COLD ptx_code ptx__check_tensor_loads(ptx_kernel *k, ptx__graph *g) {
    uint32_t loads[32], i;
    ptx__forward p;
    if (!(k->seen & PTX__SEEN_TENSOR_LOAD)) return PTX_E_NONE;
    p.k = k, p.g = g, p.effects = 0, p.data = loads, p.data_count = 0;
    for (i = 0; i < k->ins.count && p.data_count < 32; i++)
        if (ptx__is_tensor_load(ptx__op_of(k, &k->ins.at[i]))) loads[p.data_count++] = i;
    return ptx__solve_forward(&p, ptx__transfer_tensor_loads, 0);
}

/* -- verify: limits of a launch -- */

PTX__COLD ptx_code ptx__check_launch(ptx_kernel *k, ptx__graph *g) {
    uint32_t sm = k->m->target & 0xfffu, threads = k->max_threads, most = 2048, blocks = 32;
    const char *wrong = NULL;
    (void)g;
    if (k->function) return PTX_E_NONE;
    if (sm == 75) most = 1024;
    if ((sm > 80 && sm < 90) || sm == 110 || sm >= 120) most = 1536;
    if (sm == 75 || (sm >= 86 && sm <= 88)) blocks = 16;
    if (sm == 89 || sm == 110 || sm >= 120) blocks = 24;
    if (k->required_block[0] && threads)
        wrong = "ptx_launch_bounds and ptx_require_block exclude each other: .reqntid says it all";
    else if (k->max_registers && k->min_blocks)
        wrong = "ptx_max_registers and the blocks of ptx_launch_bounds both say how many registers "
                "there are; keep one of them";
    else if (k->cluster[0] && k->max_rank)
        wrong = "ptx_require_cluster and ptx_max_cluster exclude each other: the first says it all";
    else if (k->blocks_are_clusters && !(k->required_block[0] && k->cluster[0]))
        wrong = "ptx_blocks_are_clusters needs ptx_require_block and ptx_require_cluster";
    if (wrong) ptx__fail(k, PTX_E_LAUNCH_LIMIT, k->site, "%s", wrong);
    threads = ptx__most_threads(k);
    if (k->min_blocks * threads > most || k->min_blocks > blocks)
        ptx__fail(
            k, PTX_E_LAUNCH_LIMIT, k->site,
            "launch bounds of %u blocks of %u threads: a multiprocessor of sm_%u holds %u threads, %u blocks",
            k->min_blocks, threads, sm, most, blocks);
    return k->m->error.code;
}

/* -- verify: register pressure --
   The live range of a register in a block begins after its first write, or with the block if it is read
   before, and ends with its last use, or with the block if a path leads on to a read. */

typedef struct ptx__live_ranges {
    const ptx_kernel *k;
    const ptx__graph *g;
    uint32_t *uses; /* register -> last use in module.references, + 1; 2 * instruction, + 1 if written */
    uint32_t *seen, *out;  /* block -> the last register (its number + 1) found live in it; live at its end */
    uint32_t *begin, *end; /* block -> where the live range of that register begins; one past its end */
    uint32_t *registers, *predicates; /* instruction -> how many more are live than one before */
} ptx__live_ranges;

PTX__COLD void ptx__add_live_range(const ptx__live_ranges *l, uint32_t word, uint32_t begin, uint32_t end) {
    static const uint8_t weights[PTX__REGISTER_CLASSES] = {0, 1, 1, 1, 2, 4, 1};
    uint32_t *change = PTX__TAG(word) == PTX__W_PRED ? l->predicates : l->registers;
    change[begin] += weights[PTX__TAG(word)];
    change[end] -= weights[PTX__TAG(word)];
}

PTX__COLD void ptx__find_live_ranges(const ptx__live_ranges *l, uint32_t word) {
    const ptx__graph *g = l->g;
    const ptx__reference *references = l->k->m->references.at;
    const uint32_t id = ptx__register_number(g, word) + 1;
    uint32_t *blocks = g->mark, *stack = g->stack, found = 0, depth = 0, x, b, e;
    for (x = l->uses[id - 1]; x; x = references[x - 1].next) { /* from the last to the first */
        const uint32_t i = references[x - 1].instruction >> 1;
        b = references[x - 1].block;
        if (l->seen[b] != id) l->seen[b] = id, l->end[b] = i + 1, blocks[found++] = b;
        l->begin[b] = references[x - 1].instruction & 1 ? i + 1 : g->block[b].first;
    }
    for (e = 0; e < found; e++)
        if (l->begin[blocks[e]] == g->block[blocks[e]].first) stack[depth++] = blocks[e];
    while (depth) {
        b = stack[--depth];
        for (e = g->first_predecessor[b]; e < g->first_predecessor[b + 1]; e++) {
            const uint32_t from = g->predecessor[e];
            if (l->out[from] == id) continue;
            l->out[from] = id;
            if (l->seen[from] != id)
                l->seen[from] = id, l->begin[from] = g->block[from].first, stack[depth++] = from;
            ptx__add_live_range(l, word, l->begin[from], g->block[from].end);
        }
    }
    for (e = 0; e < found; e++) /* a result that is never read takes a register, too */
        if (b = blocks[e], l->out[b] != id)
            ptx__add_live_range(l, word, l->begin[b], l->end[b] > l->begin[b] ? l->end[b] : l->begin[b] + 1);
}

PTX__COLD int ptx__find_pressure(ptx_kernel *k, ptx__graph *g, ptx_pressure_info *peak) {
    ptx_module *m = k->m;
    const size_t count = k->ins.count + 2, words = g->registers + 4 * (size_t)g->blocks + 2 * count;
    uint32_t *s, i, b = 0, at, word, which, registers = 0, predicates = 0;
    ptx__live_ranges l;
    m->references.count = m->analysis_words.count = 0;
    if (!PTX__ROOM(m, m->analysis_words, words)) return 0;
    s = m->analysis_words.at;
    memset(s, 0, words * sizeof *s);
    l.k = k, l.g = g;
    l.uses = s, s += g->registers;
    l.seen = s, s += g->blocks;
    l.out = s, s += g->blocks;
    l.begin = s, s += g->blocks;
    l.end = s, s += g->blocks;
    l.registers = s, s += count;
    l.predicates = s;
    for (i = 0; i < k->ins.count; i++) {
        if (g->block[b].end == i) b++;
        for (which = 2; which-- > 0;) /* reads, then writes */
            for (at = 0; (word = ptx__next_register(k, &k->ins.at[i], (int)which, &at)) != 0;) {
                ptx__reference use;
                if (!PTX__ROOM_FOR_ONE(m, m->references)) return 0;
                use.instruction = 2 * i + (!which && !k->ins.at[i].guard);
                use.block = b;
                use.next = l.uses[ptx__register_number(g, word)];
                m->references.at[m->references.count++] = use;
                l.uses[ptx__register_number(g, word)] = (uint32_t)m->references.count;
            }
    }
    for (which = 1; which < PTX__REGISTER_CLASSES; which++)
        for (i = 0; i < k->registers[which]; i++) ptx__find_live_ranges(&l, PTX__WORD(which, i));
    memset(peak, 0, sizeof *peak);
    for (i = 0; i + 1 < count; i++) {
        registers += l.registers[i], predicates += l.predicates[i];
        if (registers > peak->registers) peak->registers = registers, peak->instruction = i ? i - 1 : 0;
        if (predicates > peak->predicates) peak->predicates = predicates;
    }
    peak->site = ptx__site_at(k, peak->instruction);
    return 1;
}

/* -- verify: the list of checks -- */

/* In this order: each relies on those before it. ptx__make_graph has made blocks, edges and g->relevant;
   ptx__check_paths adds predecessors and dominators, ptx__check_definitions the lists of assignments. A check
   reports with ptx__fault. */
static ptx_code (*const ptx__checks[])(ptx_kernel *k, ptx__graph *g) = {
    ptx__check_paths,      ptx__check_definitions, ptx__check_ends,
    ptx__check_uniformity, ptx__check_copies,      ptx__check_products,
    ptx__check_addresses,  ptx__check_launch, ptx__check_tensor_loads};

/* Check that the kernel ends without a pending guard, an open scope or a label that is not placed. */
PTX__COLD ptx_code ptx__check_record(ptx_kernel *k) {
    size_t i;
    if (k->guard) ptx__fail(k, PTX_E_GUARD, k->guard_site, "a guard before nothing");
    if (k->scopes.count) {
        const char *site = k->scopes.at[k->scopes.count - 1].site;
        ptx__fail(k, PTX_E_SCOPE, site, "the scope opened at %s is not closed", site);
    }
    for (i = 0; i < k->labels.count; i++)
        if (k->labels.at[i].uses && !k->labels.at[i].position)
            ptx__fail(k, PTX_E_LABEL, k->labels.at[i].branch_site, "the label made at %s is nowhere placed",
                      k->labels.at[i].site);
    if (!k->ins.count) ptx__fail(k, PTX_E_FALL_OFF, k->site, "the kernel is empty; it needs a ptx_ret");
    return k->m->error.code;
}

/* Run all checks on a kernel. g receives its graph. */
static ptx_code ptx__verify_with(ptx_kernel *k, ptx__graph *g) {
    size_t i;
    if (ptx__check_record(k)) return k->m->error.code;
    if (!ptx__make_graph(k, g, (k->seen & PTX__SEEN_CONVERGENT) != 0)) return k->m->error.code;
    for (i = 0; i < sizeof ptx__checks / sizeof *ptx__checks; i++)
        if (ptx__checks[i](k, g)) return k->m->error.code;
    k->verified = 1;
    return PTX_E_NONE;
}

static ptx_code ptx__verify_kernel(ptx_kernel *k) {
    ptx__graph g;
    if (k->verified) return PTX_E_NONE;
    return ptx__verify_with(k, &g);
}

/* Find recursive functions by a depth-first search of the call graph. `visit_state` is 1 while a function is
   on the stack and 2 after that; `recursive` is the call, + 1, of a function on the stack or of a recursive
   one. ptx__find_highest_level is called in postorder, so that it does not recurse deeply. Returns whether
   there are any. */
PTX__COLD int ptx__find_recursion(ptx_module *m) {
    uint32_t i, depth = 0, *stack, taken = 0;
    int found = 0;
    m->scratch.count = 0;
    if (!PTX__ROOM(m, m->scratch, 2 * (size_t)m->kernels_used)) return 0;
    stack = m->scratch.at;
    for (i = 0; i < m->kernels_used; i++) {
        m->kernels.at[i]->visit_state = m->kernels.at[i]->recursive = 0;
        taken |= m->kernels.at[i]->address_taken;
    }
    for (i = 0; i < m->kernels_used || depth;) {
        ptx_kernel *k, *callee;
        uint32_t at;
        if (!depth) {
            if (!m->kernels.at[i]->visit_state) stack[depth] = i, stack[depth + 1] = 0, depth += 2;
            i++;
            continue;
        }
        k = m->kernels.at[stack[depth - 2]];
        at = stack[depth - 1];
        k->visit_state = 1;
        if (k->recursive || at >= k->calls.count) {
            k->visit_state = 2;
            depth -= 2;
            found |= k->recursive != 0;
            if (k->function && !k->recursive && !taken) ptx__find_highest_level(k);
            continue;
        }
        callee = k->calls.at[at + 1] == PTX__ANY_CALLEE ? NULL : m->kernels.at[k->calls.at[at + 1]];
        if (callee && !callee->visit_state)
            stack[depth] = callee->index, stack[depth + 1] = 0, depth += 2;
        else if (callee && (callee->visit_state == 1 || callee->recursive))
            k->recursive = k->calls.at[at] + 1;
        else
            stack[depth - 1] += 2;
    }
    return found;
}

PTX__COLD void ptx__verify_calls(ptx_module *m) {
    uint32_t i, changed = 0, calls = 0;
    for (i = 0; i < m->kernels_used; i++) {
        if (m->kernels.at[i]->function && !m->kernels.at[i]->verified) changed = 1;
        m->kernels.at[i]->level_known = 0;
        calls |= m->kernels.at[i]->calls.count != 0;
    }
    if (!calls) return;
    for (i = 0; i < m->kernels_used && changed; i++)
        if (m->kernels.at[i]->calls.count) m->kernels.at[i]->verified = 0;
    if (!ptx__find_recursion(m)) return;
    for (i = 0; i < m->kernels_used; i++) {
        ptx_kernel *k = m->kernels.at[i];
        if (!k->recursive || !k->function) continue;
        ptx__fault(
            k, PTX_E_RECURSION, k->recursive - 1,
            "this call leads back to '%.80s': recursion needs a stack of unknown size; write a loop",
            m->names.at + k->name);
        return;
    }
}

PTX__COLD_API ptx_code ptx_verify(ptx_module *m) {
    uint32_t i;
    if (!m) return PTX_E_MEMORY;
    if (!m->error.code && !ptx_entry_count(m)) ptx_fail(m, PTX_E_EMPTY, "", "the module has no kernel");
    if (!m->error.code) ptx__verify_calls(m);
    for (i = 0; i < m->kernels_used && !m->error.code; i++) ptx__verify_kernel(m->kernels.at[i]);
    return m->error.code;
}

PTXGEN_API int ptx_pressure(ptx_module *m, uint32_t index, ptx_pressure_info *info) {
    ptx__graph g;
    ptx_kernel *k;
    if (!m || !info || m->error.code || index >= m->entries.count) return 0;
    k = m->kernels.at[m->entries.at[index]];
    return !ptx__verify_with(k, &g) && ptx__find_pressure(k, &g, info);
}

/* -- print -- */

/* The numbers 00 to 99. */
static const char ptx__digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

/* Write n, below 1000, as three digits at p. Returns the end. */
static inline char *ptx__three_digits(char *p, uint32_t n) {
    const uint32_t hundreds = n * 5243 >> 19; /* n / 100, for n below 1000 */
    *p = (char)('0' + hundreds);
    memcpy(p + 1, ptx__digit_pairs + 2 * (n - 100 * hundreds), 2);
    return p + 3;
}
/* Write n in decimal at p. Returns the end. */
static char *ptx__digits32(char *p, uint32_t n) {
    if (n > 999) return ptx__three_digits(ptx__digits32(p, n / 1000), n % 1000);
    if (n > 99) return ptx__three_digits(p, n);
    memcpy(p, ptx__digit_pairs + 2 * n + (n < 10), 2); /* one digit: the other is overwritten */
    return p + (n < 10 ? 1 : 2);
}
static char *ptx__digits(char *p, uint64_t n) {
    char digit[20];
    int i = 0;
    if (n <= UINT32_MAX) return ptx__digits32(p, (uint32_t)n);
    do {
        digit[i++] = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n);
    while (i) *p++ = digit[--i];
    return p;
}
/* Write "0x12AB"; for the bits of a float the letter is f or d. */
static char *ptx__hex(char *p, char letter, uint64_t n, int digits) {
    *p++ = '0', *p++ = letter;
    while (digits--) *p++ = "0123456789ABCDEF"[n >> (4 * digits) & 15];
    return p;
}
PTX__NOINLINE static char *ptx__string(char *p, const char *s) {
    size_t n = strlen(s);
    memcpy(p, s, n);
    return p + n;
}
/* A register's name is %, the letter of its class (PTX__W_PRED 'p' ... PTX__W_8 'e') and its number. */
static const char ptx__register_letters[] = "?phrdqe";

/* The name of a symbol or special register. */
PTX__COLD const char *ptx__name_of(const ptx_kernel *k, uint32_t word) {
    const uint32_t index = PTX__INDEX(word);
    uint32_t name = 0;
    switch (PTX__TAG(word)) {
    case PTX__W_SPECIAL: return ptx__specials[index].name;
    case PTX__W_PARAM: name = k->params.at[index].name; break;
    case PTX__W_SHARED: name = k->shared.at[index].name; break;
    case PTX__W_LOCAL: name = k->locals.at[index].name; break;
    default: name = k->m->variables.at[index].name; break;
    }
    return k->m->names.at + name;
}

/* Make room for `more` characters at p, the end of the text. Returns p, moved if the text was; NULL: no
   memory. */
PTX__NOINLINE static char *ptx__text_room(ptx_module *m, char *p, size_t more) {
    size_t used = (size_t)(p - m->text.at);
    m->text.count = used;
    if (more <= m->text.capacity - used) return p; /* almost always */
    return PTX__ROOM(m, m->text, more) ? m->text.at + used : NULL;
}

/* Print a format of %s and at most three %u (32 bits) at p, with room made for it. Returns the new p; NULL
   if p is NULL or memory ran out. */
static char *ptx__put(ptx_module *m, char *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (p) p = ptx__text_room(m, p, strlen(format) + 64);
    for (; p && *format; format++)
        if (*format != '%') *p++ = *format;
        else if (*++format == 'u')
            p = ptx__digits32(p, va_arg(args, uint32_t));
        else {
            const char *s = va_arg(args, const char *);
            p = ptx__text_room(m, p, strlen(s) + strlen(format) + 64);
            if (p) p = ptx__string(p, s);
        }
    va_end(args);
    return p;
}

/* Extend m->register_names to the highest register of this kernel. A thousand numbers share their
   leading digits. */
PTX__COLD int ptx__format_register_names(const ptx_kernel *k) {
    ptx_module *m = k->m;
    uint32_t c, i, n, length = 2;
    char lead[16] = {'%'}, *to, *end;
    for (c = 1; c < PTX__REGISTER_CLASSES; c++) {
        i = (uint32_t)m->register_names[c].count, n = k->registers[c];
        if (i >= n) continue;
        if (!PTX__ROOM(m, m->register_names[c], n - i)) return 0;
        m->register_names[c].count = n;
        lead[1] = ptx__register_letters[c];
        if (i > 999) length = (uint32_t)(ptx__digits32(lead + 2, i / 1000) - lead);
        for (; i < n; i++) {
            if (i && i % 1000 == 0) length = (uint32_t)(ptx__digits32(lead + 2, i / 1000) - lead);
            to = m->register_names[c].at[i].text;
            memcpy(to, lead, sizeof lead);
            end = i > 999 ? ptx__three_digits(to + length, i % 1000) : ptx__digits32(to + 2, i);
            memcpy(end, ", ", 2);
            to[15] = (char)(end + 2 - to);
        }
    }
    return 1;
}

/* Print a register and ", ". */
static inline char *ptx__print_register(const ptx_module *m, char *p, uint32_t word) {
    const char *text = m->register_names[PTX__TAG(word)].at[PTX__INDEX(word)].text;
    memcpy(p, text, 16);
    return p + text[15];
}

/* Print the operand at w, at most 280 characters, and ", ". Returns the next operand. */
static const uint32_t *ptx__print_operand(const ptx_kernel *k, char **at, const uint32_t *w) {
    const ptx_module *const m = k->m;
    const uint32_t word = *w, tag = PTX__TAG(word), style = PTX__INDEX(word) >> 16;
    const uint32_t *next = ptx__next_operand(w);
    uint64_t bits = PTX__IS_LONG(word) ? w[1] | (uint64_t)w[2] << 32 : 0;
    uint32_t left = word & 0xffffu;
    char *p = *at;
    switch (tag) {
    case PTX__W_MEM: {
        const int32_t offset = (int32_t)w[2];
        *p++ = '[';
        if (PTX__TAG(w[1]) < PTX__REGISTER_CLASSES)
            p = ptx__print_register(m, p, w[1]) - 2;
        else
            p = ptx__string(p, ptx__name_of(k, w[1]));
        if (offset) *p++ = '+';
        if (offset < 0) *p++ = '-';
        if (offset) p = ptx__digits32(p, offset < 0 ? 0 - (uint32_t)offset : (uint32_t)offset);
        *p++ = ']';
        break;
    }
    case PTX__W_VECTOR:
        if (style == PTX__G_BRACES || style == PTX__G_BRACKETS) *p++ = style == PTX__G_BRACES ? '{' : '[';
        if (style == PTX__G_SINK) *p++ = '_';
        for (; left; left--) {
            if (PTX__TAG(*next) < PTX__REGISTER_CLASSES)
                p = ptx__print_register(m, p, *next++);
            else
                next = ptx__print_operand(k, &p, next);
            if (style == PTX__G_PIPE) p--, p[-1] = '|';
            if (left > 1) continue;
            p -= style == PTX__G_PIPE ? 1 : 2;
            if (style != PTX__G_PIPE) *p++ = style == PTX__G_BRACES ? '}' : ']';
        }
        break;
    case PTX__W_SIGNED:
        if ((int64_t)bits < 0) *p++ = '-', bits = 0 - bits;
        p = ptx__digits(p, bits);
        break;
    case PTX__W_UNSIGNED: p = ptx__digits(p, bits); break;
    case PTX__W_HEX16: p = ptx__hex(p, 'x', bits, 4); break;
    case PTX__W_F32: p = ptx__hex(p, 'f', bits, 8); break;
    case PTX__W_F64: p = ptx__hex(p, 'd', bits, 16); break;
    case PTX__W_PRED_NOT:
        *p = '!';
        p = ptx__print_register(m, p + 1, PTX__PREDICATE(word)) - 2;
        break;
    default:
        if (tag < PTX__REGISTER_CLASSES)
            p = ptx__print_register(m, p, word) - 2;
        else
            p = ptx__string(p, ptx__name_of(k, word));
    }
    memcpy(p, ", ", 2);
    *at = p + 2;
    return next;
}

static const char *ptx__raw_text(const ptx_kernel *k, const ptx__ins *ins) {
    return k->m->names.at + PTX__INDEX(k->words.at[ins->words + ins->results]);
}
/* An upper bound of the length of a raw instruction, in addition to ptx__line_bound. */
static size_t ptx__raw_bound(const ptx_kernel *k, const ptx__ins *ins) {
    const char *text = ptx__raw_text(k, ins), *p = text;
    size_t uses = 0;
    for (; *p; p++) uses += *p == '$';
    return (size_t)(p - text) + 300 * uses;
}
PTX__COLD char *ptx__print_raw(const ptx_kernel *k, char *p, const ptx__ins *ins) {
    const char *text = ptx__raw_text(k, ins);
    while (*text) {
        const uint32_t *w = k->words.at + ins->words;
        int which;
        if (*text != '$' || text[1] == '$') {
            text += *text == '$';
            *p++ = *text++;
            continue;
        }
        text++;
        which = ptx__parse_placeholder(&text);
        if (which >= ins->results) {
            w += ins->results + 1;
            for (which -= ins->results; which > 0; which--) w = ptx__next_operand(w);
        } else
            w += which;
        ptx__print_operand(k, &p, w);
        p -= 2;
    }
    return p;
}

/* Print the operands, each followed by ", ". */
static inline char *ptx__print_operands(const ptx_kernel *k, char *p, const uint32_t *w,
                                        const uint32_t *end) {
    const ptx_module *const m = k->m;
    while (w < end) {
        if (PTX__TAG(*w) < PTX__REGISTER_CLASSES) /* almost always */
            p = ptx__print_register(m, p, *w++);
        else if ((PTX__TAG(*w) == PTX__W_UNSIGNED || PTX__TAG(*w) == PTX__W_SIGNED) && !w[2]) {
            p = ptx__digits32(p, w[1]);
            w += 3;
            memcpy(p, ", ", 2);
            p += 2;
        } else if (PTX__TAG(*w) == PTX__W_MEM && PTX__TAG(w[1]) < PTX__REGISTER_CLASSES
                   && (int32_t)w[2] >= 0) {
            *p = '[';
            p = ptx__print_register(m, p + 1, w[1]) - 2;
            *p = '+';
            if (w[2]) p = ptx__digits32(p + 1, w[2]);
            memcpy(p, "], ", 4);
            p += 3;
            w += 3;
        } else if (*w >> 16 == PTX__GROUP(PTX__G_BRACES, 0) >> 16) {
            uint32_t left = *w++ & 0xffffu;
            for (*p++ = '{'; left && PTX__TAG(*w) < PTX__REGISTER_CLASSES; left--)
                p = ptx__print_register(m, p, *w++);
            for (; left; left--) {
                char *after = p;
                w = ptx__print_operand(k, &after, w);
                p = after;
            }
            memcpy(p - 2, "}, ", 4);
            p++;
        } else {
            char *after = p;
            w = ptx__print_operand(k, &after, w);
            p = after;
        }
    }
    return p;
}

/* An upper bound of an instruction's line: mnemonic 384, guard and punctuation 64, 24 for each word. */
static size_t ptx__line_bound(const ptx__ins *ins) { return 448 + 24u * (size_t)ins->count; }

static char *ptx__print_guard(const ptx_kernel *k, char *p, uint32_t guard) {
    *p++ = '@';
    ptx__print_operand(k, &p, &guard);
    p[-2] = ' ';
    return p - 1;
}

/* Print instruction *at and the plain ones with a mnemonic that follow it, a line each, up to `end` or as
   long as there is room before `limit`. Advances *at. The last line has no newline yet. */
static char *ptx__print_lines(const ptx_kernel *k, char *p, const ptx__ins **at,
                              const ptx__ins *end, const char *limit) {
    const ptx__ins *ins = *at;
    const ptx__form *const forms = k->m->forms.at, *form = forms + ins->form;
    const char *const chars = k->m->chars.at;
    const uint32_t *const words = k->words.at;
    for (*p++ = '\t';; p += 3) {
        const uint32_t *w = words + ins->words;
        const char *text = chars + form->text;
        size_t length = form->text_length;
        if (ins->guard) p = ptx__print_guard(k, p, ins->guard);
        memcpy(p, text, PTX__SLACK);
        if (length > PTX__SLACK) memcpy(p, text, length);
        p += length;
        if (ins->count) {
            *p++ = ' ';
            p = ptx__print_operands(k, p, w, w + ins->count) - 2;
        }
        memcpy(p, ";\n\t", 4); /* "\n\t" for the next line, if any */
        if (++ins == end || ins->kind != PTX__I_PLAIN) break;
        form = forms + ins->form;
        if (!form->text_length || limit - p < (ptrdiff_t)ptx__line_bound(ins)) break;
    }
    *at = ins;
    return p + 1;
}

/* As ptx__print_lines, for any instruction: a branch or one without a mnemonic is printed alone. */
static char *ptx__print_instructions(const ptx_kernel *k, char *p,
                                     const ptx__ins **at, const ptx__ins *end, const char *limit) {
    const ptx__ins *ins = *at;
    const ptx__form *form = ptx__form_of(k, ins);
    if (form->text_length && ins->kind != PTX__I_BRANCH) return ptx__print_lines(k, p, at, end, limit);
    ++*at;
    *p++ = '\t';
    if (ins->guard) p = ptx__print_guard(k, p, ins->guard);
    if (!form->text_length) return ptx__print_raw(k, p, ins);
    memcpy(p, k->m->chars.at + form->text, form->text_length);
    p = ptx__digits(ptx__string(p + form->text_length, " $L"), ins->words);
    *p++ = ';';
    return p;
}

/* Print the parameters: those of an entry with their types, those of a function as .b32 and the like. */
PTX__COLD char *ptx__print_params(const ptx_kernel *k, char *p, const char *first, const char *next) {
    size_t i;
    for (i = 0; i < k->params.count; i++) {
        const ptx__symbol *s = &k->params.at[i];
        const char *name = k->m->names.at + s->name;
        unsigned type = s->type & 0xff;
        const int block = type == PTX_B8;
        if (k->function || !(PTX__MEMORY >> type & 1)) type = ptx__as_bits(type);
        p = ptx__put(k->m, p, "%s.param ", i ? next : first);
        if (block) p = ptx__put(k->m, p, ".align %u .b8 %s[%u]", s->align, name, s->count);
        else
            p = ptx__put(k->m, p, ".%s %s", ptx__fact(type)->name, name);
    }
    return p;
}

/* Print ".func (.param .b32 f$result) f(.param .b32 a, ...)", also to declare all functions first. */
PTX__COLD char *ptx__print_prototype(const ptx_kernel *k, char *p) {
    const char *name = k->m->names.at + k->name;
    p = ptx__put(k->m, p, ".func ");
    if (k->result)
        p = ptx__put(k->m, p, "(.param .%s %s$result) ", ptx__fact(ptx__as_bits(k->result))->name, name);
    p = ptx__print_params(k, ptx__put(k->m, p, "%s(", name), "", ", ");
    return ptx__put(k->m, p, k->noreturn ? ") .noreturn" : ")");
}

PTX__COLD char *ptx__print_directives(const ptx_kernel *k, char *p) {
    ptx_module *m = k->m;
    if (k->required_block[0])
        p = ptx__put(m, p, ".reqntid %u, %u, %u\n", k->required_block[0], k->required_block[1],
                     k->required_block[2]);
    if (k->max_registers) p = ptx__put(m, p, ".maxnreg %u\n", k->max_registers);
    if (k->blocks_are_clusters) p = ptx__put(m, p, ".blocksareclusters\n");
    if (k->cluster[0])
        p = ptx__put(m, p, ".reqnctapercluster %u, %u, %u\n", k->cluster[0], k->cluster[1], k->cluster[2]);
    if (k->max_rank) p = ptx__put(m, p, ".maxclusterrank %u\n", k->max_rank);
    if (k->max_threads) p = ptx__put(m, p, ".maxntid %u, 1, 1\n", k->max_threads);
    if (k->min_blocks) p = ptx__put(m, p, ".minnctapersm %u\n", k->min_blocks);
    return p;
}

PTX__COLD char *ptx__print_head(const ptx_kernel *k, char *p) {
    static const char *const types[PTX__REGISTER_CLASSES] = {"", "pred", "b16", "b32", "b64", "b128", "b8"};
    char letter[2] = {0, 0};
    ptx_module *m = k->m;
    const char *chars = m->names.at;
    const ptx__symbol *shared = k->shared.at, *locals = k->locals.at;
    size_t i;
    int c;
    for (i = 0; i < k->shared.count; i++) /* dynamic shared memory is declared outside */
        if (!shared[i].count)
            p = ptx__put(m, p, ".extern .shared .align %u .b8 %s[];\n", shared[i].align,
                         chars + shared[i].name);
    if (k->function) p = ptx__put(m, ptx__print_prototype(k, ptx__put(m, p, "\n")), "\n");
    else {
        p = ptx__put(m, p, "\n.visible .entry %s(", chars + k->name);
        p = ptx__print_params(k, p, "\n\t", ",\n\t");
        p = ptx__put(m, p, k->params.count ? "\n)\n" : ")\n");
    }
    p = ptx__put(m, ptx__print_directives(k, p), "{\n");
    for (c = 1; c < PTX__REGISTER_CLASSES; c++)
        if (k->registers[c]) {
            letter[0] = ptx__register_letters[c];
            p = ptx__put(m, p, "\t.reg .%s %s%s<%u>;\n", types[c], "%", letter, k->registers[c]);
        }
    for (i = 0; i < k->shared.count; i++) /* .b types: the assembler needs the size only */
        if (shared[i].count)
            p = ptx__put(m, p, "\t.shared .align %u .b%u %s[%u];\n", shared[i].align,
                         8u * ptx_type_bytes((ptx_type)shared[i].type), chars + shared[i].name,
                         shared[i].count);
    for (i = 0; i < k->locals.count; i++)
        p = ptx__put(m, p, "\t.local .align %u .b8 %s[%u];\n", locals[i].align, chars + locals[i].name,
                     locals[i].count);
    return p ? ptx__text_room(m, p, 64) : NULL;
}

/* The length of the file's name in a site, "file:line". */
static size_t ptx__file_length(const char *site) {
    const char *colon = strrchr(site, ':');
    return colon ? (size_t)(colon - site) : 0;
}
/* Print a .loc line. Files are numbered in the order of their first use and declared at the end. */
PTX__COLD char *ptx__print_line(ptx_module *m, char *p, const char *site) {
    size_t i, n = ptx__file_length(site);
    if (!n) return p;
    for (i = m->files.count; i-- > 0;)
        if (strncmp(m->files.at[i], site, n) == 0 && ptx__file_length(m->files.at[i]) == n) break;
    if (i == (size_t)-1) {
        if (!PTX__ROOM(m, m->files, 1)) return p;
        i = m->files.count++;
        m->files.at[i] = site;
    }
    return ptx__put(m, p, "\t.loc %u %u 0\n", (uint32_t)i + 1, (uint32_t)strtoul(site + n + 1, NULL, 10));
}
PTX__COLD char *ptx__print_files(ptx_module *m, char *p) {
    size_t i, j, n;
    for (i = 0; i < m->files.count; i++) {
        n = ptx__file_length(m->files.at[i]);
        p = ptx__put(m, p, ".file %u \"", (uint32_t)i + 1);
        if (!p || !(p = ptx__text_room(m, p, n + 8))) return NULL;
        for (j = 0; j < n; j++) {
            char c = m->files.at[i][j];
            *p++ = c < 32 || c > 126 || c == '"' ? '?' : c == '\\' ? '/' : c;
        }
        p = ptx__string(p, "\"\n");
    }
    return p;
}

PTX__COLD char *ptx__print_variable(ptx_module *m, char *p, uint32_t index) {
    const ptx__variable *v = &m->variables.at[index];
    uint32_t size = ptx_type_bytes((ptx_type)v->type), i, part = size > 8 ? 8 : size;
    uint32_t count = v->count * (size / part);
    const unsigned char *data = (const unsigned char *)m->names.at + v->data;
    size_t a = 0, end = m->addresses.count;
    int points;
    while (a < end) { /* find its first address */
        size_t middle = a + (end - a) / 2;
        if (m->addresses.at[middle].in < index) a = middle + 1;
        else
            end = middle;
    }
    points = a < m->addresses.count && m->addresses.at[a].in == index;
    p = ptx__put(m, p, "%s.%s .align %u .%s%u %s[%u]", v->exported ? ".visible " : "",
                 v->space == PTX_CONST ? "const" : "global", v->align, points ? "u" : "b", 8u * part,
                 m->names.at + v->name, count);
    if (v->data || points) {
        p = ptx__put(m, p, " = {");
        for (i = 0; p && i < count; i++) {
            uint64_t bits = 0;
            uint32_t at;
            for (at = 0; v->data && at < part; at++)
                bits |= (uint64_t)data[(size_t)i * part + at] << (8 * at);
            for (; a < m->addresses.count && m->addresses.at[a].in == index; a++)
                if (m->addresses.at[a].element >= i) break;
            if (!(p = ptx__text_room(m, p, 64))) break;
            if (i) *p++ = ',';
            if (a < m->addresses.count && m->addresses.at[a].in == index && m->addresses.at[a].element == i) {
                bits = (uint64_t)m->addresses.at[a].offset;
                p = ptx__put(m, p, bits ? "generic(%s)+" : "generic(%s)",
                             m->names.at + m->variables.at[m->addresses.at[a].to].name);
                if (p && bits) p = ptx__digits(p, bits);
            } else
                p = ptx__digits(p, bits);
        }
        p = ptx__put(m, p, "}");
    }
    return ptx__put(m, p, ";\n");
}

PTX__COLD char *ptx__print_module_head(ptx_module *m, char *p) {
    uint32_t i;
    m->files.count = 0;
    for (i = 0; i < m->variables.count; i++) p = ptx__print_variable(m, p, i);
    if (m->printf_used)
        p = ptx__put(m, p, ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n");
    for (i = 0; i < m->kernels_used; i++)
        if (m->kernels.at[i]->function)
            p = ptx__put(m, ptx__print_prototype(m->kernels.at[i], p), ";\n");
    return p;
}

/* The number of lines that an instruction prints. */
PTX__COLD uint32_t ptx__count_instruction_lines(const ptx_kernel *k, const ptx__ins *ins) {
    const char *p;
    uint32_t lines = 1;
    if (ins->kind == PTX__I_LABEL) return k->labels.at[ins->words].uses != 0;
    if (ins->kind == PTX__I_COMMENT) return 1;
    if (!ptx__form_of(k, ins)->text_length) {
        if (ins->kind == PTX__I_BRANCH) return 0; /* an edge of brx */
        for (p = ptx__raw_text(k, ins); *p; p++) lines += *p == '\n';
    }
    return lines + (k->m->loc_lines && ptx__file_length(ptx__site(k, ins->site)));
}

static char *ptx__print_kernel(ptx_kernel *k, char *p) {
    const ptx__ins *ins = k->ins.at, *end = ins + k->ins.count;
    const int plain = !k->m->comments && !k->m->loc_lines;
    if (!ptx__format_register_names(k) || !(p = ptx__print_head(k, p))) return NULL;
    k->body = (size_t)(p - k->m->text.at);
    while (ins < end) {
        const char *site = k->m->comments ? ptx__site(k, ins->site) : "";
        size_t bound = ptx__line_bound(ins);
        if (*site) bound += strlen(site) + 8;
        if (ins->kind == PTX__I_COMMENT) bound += strlen(k->m->names.at + ins->words);
        else if (!ptx__form_of(k, ins)->text_length && ins->kind != PTX__I_LABEL) {
            if (ins->kind == PTX__I_BRANCH) { /* an edge of brx */
                ins++;
                continue;
            }
            bound += ptx__raw_bound(k, ins);
        }
        if (k->m->loc_lines) bound += 40;
        if (!(p = ptx__text_room(k->m, p, bound + 4096))) return NULL;
        if (ins->kind == PTX__I_LABEL) {
            if (!k->labels.at[ins++->words].uses) continue;
            p = ptx__digits(ptx__string(p, "$L"), ins[-1].words);
            *p++ = ':';
        } else if (ins->kind == PTX__I_COMMENT)
            p = ptx__string(ptx__string(p, "\t// "), k->m->names.at + ins++->words);
        else {
            if (k->m->loc_lines) p = ptx__print_line(k->m, p, ptx__site(k, ins->site));
            p = ptx__print_instructions(k, p, &ins, plain ? end : ins + 1,
                                        k->m->text.at + k->m->text.capacity);
            if (*site) { /* a caller's site is any text: no character may end the comment */
                p = ptx__string(p, " // ");
                for (; *site; site++) *p++ = *site < 32 || *site > 126 ? '?' : *site;
            }
        }
        *p++ = '\n';
    }
    if (!(p = ptx__text_room(k->m, p, 8))) return NULL;
    return ptx__string(p, "}\n");
}

static uint32_t ptx__count_lines(const char *p, const char *end) {
    uint32_t lines = 0;
    for (; p < end; p++) lines += *p == '\n';
    return lines;
}

PTXGEN_API uint32_t ptx_show_comments(ptx_module *m, uint32_t comments) {
    const uint32_t before = m ? (m->comments ? 1u : 0u) | (m->loc_lines ? 2u : 0u) : 0;
    if (!m) return 0;
    m->comments = comments & 1u;
    m->loc_lines = comments >> 1 & 1u;
    return before;
}

PTX__COLD_API const char *ptx_text(ptx_module *m, size_t *length) {
    char *p;
    uint32_t i, version;
    if (length) *length = 0;
    if (ptx_verify(m)) return NULL;
    m->text.count = 0;
    if (!(p = ptx__text_room(m, m->text.at, 256))) return NULL;
    version = ptx_version(m);
    p = ptx__put(m, p, ".version %u.%u\n.target sm_%s\n.address_size 64\n", version / 10, version % 10,
                 m->target_name);
    if (!(p = ptx__print_module_head(m, p))) return NULL;
    for (i = 0; i < m->kernels_used; i++)
        if (!(p = ptx__print_kernel(m->kernels.at[i], p))) return NULL;
    if (!(p = ptx__print_files(m, p)) || !(p = ptx__text_room(m, p, 8))) return NULL;
    *p = 0;
    m->text.count = (size_t)(p - m->text.at);
    if (length) *length = m->text.count;
    return m->text.at;
}

PTX__COLD_API int ptx_locate(const ptx_module *m, uint32_t line, ptx_place *place) {
    uint32_t e, i, at, first = 1; /* first: line of the kernel's first instruction */
    size_t from = 0;
    if (!m || !place || m->error.code || !m->text.count) return 0;
    for (e = 0; e < m->kernels_used; e++) {
        const ptx_kernel *k = m->kernels.at[e];
        if (!k->verified) return 0;
        first += ptx__count_lines(m->text.at + from, m->text.at + k->body);
        from = k->body;
        for (i = 0, at = first; i < k->ins.count && line >= first; i++) {
            at += ptx__count_instruction_lines(k, &k->ins.at[i]);
            if (at <= line) continue;
            place->kernel = m->names.at + k->name;
            place->site = ptx__site_at(k, i);
            place->instruction = i;
            return 1;
        }
    }
    return 0;
}

/* Append to the text in a caller's buffer as far as it fits. Returns the length that all of it would have. */
static size_t ptx__write(char *buffer, size_t capacity, size_t used, const char *s, size_t n) {
    const size_t room = used + 1 < capacity ? capacity - 1 - used : 0;
    if (buffer && room) memcpy(buffer + used, s, n < room ? n : room);
    if (buffer && capacity) buffer[used + n < capacity ? used + n : capacity - 1] = 0;
    return used + n;
}

PTX__COLD_API size_t ptx_explain(const ptx_module *m, const char *log, char *buffer, size_t capacity) {
    const char *from = log ? log : "";
    size_t used = 0;
    while (log && *log) {
        uint32_t line = 0;
        ptx_place place;
        char text[400];
        if (strncmp(log, "line ", 5) != 0 || log[5] < '0' || log[5] > '9') {
            log++;
            continue;
        }
        for (log += 5; *log >= '0' && *log <= '9'; log++)
            if (line < 100000000) line = line * 10 + (uint32_t)(*log - '0');
        if (!ptx_locate(m, line, &place)) continue;
        snprintf(text, sizeof text, " (%.200s, kernel '%.80s', instruction %lu)", place.site, place.kernel,
                 (unsigned long)place.instruction);
        used = ptx__write(buffer, capacity, used, from, (size_t)(log - from));
        used = ptx__write(buffer, capacity, used, text, strlen(text));
        from = log;
    }
    return ptx__write(buffer, capacity, used, from, strlen(from));
}

PTXGEN_API uint32_t ptx_entry_count(const ptx_module *m) {
    return m ? (uint32_t)m->entries.count : 0;
}

PTX__COLD_API int ptx_entry_get(const ptx_module *m, uint32_t index, ptx_entry_info *info) {
    ptx_kernel *k;
    uint32_t i, offset = 0;
    if (!m || !info || index >= m->entries.count) return 0;
    k = m->kernels.at[m->entries.at[index]];
    for (i = 0; i < k->params.count; i++) {
        const ptx__symbol *s = &k->params.at[i];
        ptx_param_info *p = &k->info.at[i];
        p->name = m->names.at + s->name;
        p->type = (ptx_type)(s->type & 0xff);
        p->space = (ptx_space)(s->type >> 8);
        p->bytes = s->count;
        p->align = s->align;
        p->offset = offset = ptx__align_up(offset, s->align);
        offset += s->count;
    }
    info->name = m->names.at + k->name;
    info->params = k->info.at;
    info->param_count = (uint32_t)k->params.count;
    info->param_bytes = k->param_bytes;
    info->shared_bytes = k->shared_bytes;
    info->max_threads = k->max_threads;
    info->instructions = (uint32_t)k->ins.count;
    info->dependent_launch = k->waits;
    return 1;
}

#ifndef PTXGEN_NO_MATH
/* ---- [MATH] -----------------------------------------------------------------------------------------------

   Each function is a formula: a text of statements "result=operation operands;" in which a value is one
   letter. ptx__evaluate() reads the text and records one instruction for each statement.
     r:operation ...    r is a variable: later statements set it, also inside an `if`
     if p; else; end    control flow on a predicate
     p=poly z $         Horner's rule, (a z + b) z + c of a, b, c, one fma a step
     f,g=name x y       a formula in a formula, here one with two results
     {a|b}              an operand, or statements: a in f32, b in f64; no braces stand in them
   Operands of a statement are letters, integers, decimal numbers, I (infinity), N (NaN), M (1.5 2^23 in f32,
   1.5 2^52 in f64: adding it rounds to an integer) and $: the next of the formula's numbers for that type.
   These follow the text as the leading hexadecimal digits of their bits; numbers joined by commas, such as
   the coefficients of a polynomial, are one '$'. The first half of the coefficients of an f64 polynomial have
   21 bits each, which an instruction holds as an immediate. The parameters of a formula are x, y, z, w, v, u,
   p in this order; its results are r, s and q. A text that begins with '!' becomes a function of the module,
   one with '~' is for f32 only; a digit after that is the number of operands, if callers may name the
   formula. Sums and products have .rn, which keeps the assembler from fusing them. Polynomials: minimax ones
   with rounded coefficients (Sollya's fpminimax; Remez for gamma). Methods: Cody and Waite's and Payne and
   Hanek's reductions; exp and log by Tang's outline, pow as log2 in two numbers; Newton steps behind rcp,
   rsqrt, lg2 and ex2. */
typedef struct ptx__formula_op {
    char name[5], result, operand; /* types, see ptx__letter_type */
    uint16_t op;
    ptx_mods mods;
} ptx__formula_op;
#define PTX__SETP(name, type, compare) {name, 0, type, PTX_SETP, PTX_##compare}
static const ptx__formula_op ptx__formula_ops[] = {
    {"fma", 0, 'f', PTX_FMA, PTX_RN}, {"mul", 0, 'f', PTX_MUL, PTX_RN}, {"add", 0, 'f', PTX_ADD, PTX_RN},
    {"sub", 0, 'f', PTX_SUB, PTX_RN}, {"sel", 0, 'f', PTX_SELP, 0}, {"isel", 0, 'b', PTX_SELP, 0},
    {"abs", 0, 'f', PTX_ABS, 0}, {"neg", 0, 'f', PTX_NEG, 0}, {"cps", 0, 'f', PTX_COPYSIGN, 0},
    {"min", 0, 'f', PTX_MIN, 0}, {"max", 0, 'f', PTX_MAX, 0}, {"div", 0, 'f', PTX_DIV, PTX_RN},
    {"ex2", 0, 'f', PTX_EX2, PTX_APPROX}, {"rcpa", 0, 'f', PTX_RCP, PTX_APPROX | PTX_FTZ},
    {"rsqa", 0, 'f', PTX_RSQRT, PTX_APPROX | PTX_FTZ}, {"f2i", 's', 'f', PTX_CVT, PTX_RNI},
    {"ex2a", 0, 'g', PTX_EX2, PTX_APPROX | PTX_FTZ}, {"lg2a", 0, 'g', PTX_LG2, PTX_APPROX | PTX_FTZ},
    {"and", 0, 'b', PTX_AND, 0}, {"or", 0, 'b', PTX_OR, 0}, {"xor", 0, 'b', PTX_XOR, 0},
    {"shl", 0, 'b', PTX_SHL, 0}, {"shr", 0, 'u', PTX_SHR, 0}, {"sar", 0, 's', PTX_SHR, 0},
    {"shf", 0, 'b', PTX_SHF_L, PTX_WRAP}, {"iadd", 0, 'u', PTX_ADD, 0}, {"isub", 0, 'u', PTX_SUB, 0},
    {"imul", 0, 'u', PTX_MUL, 0}, {"imad", 0, 'u', PTX_MAD, 0}, {"uhi", 0, 'u', PTX_MUL, PTX_HI},
    {"umul", 0, 'u', PTX_MUL, PTX_WIDE}, {"umad", 0, 'u', PTX_MAD, PTX_WIDE}, {"qshl", 0, 'd', PTX_SHL, 0},
    {"qshr", 0, 'd', PTX_SHR, 0}, PTX__SETP("lt", 'f', LT), PTX__SETP("le", 'f', LE),
    PTX__SETP("gt", 'f', GT), PTX__SETP("ge", 'f', GE), PTX__SETP("eq", 'f', EQ), PTX__SETP("ltu", 'f', LTU),
    PTX__SETP("gtu", 'f', GTU), PTX__SETP("geu", 'f', GEU), PTX__SETP("neu", 'f', NEU),
    PTX__SETP("nan", 'f', ISNAN), PTX__SETP("ilt", 's', LT), PTX__SETP("ieq", 's', EQ),
    PTX__SETP("ine", 's', NE), PTX__SETP("uge", 'u', GE), {"rnd", 'f', 'f', PTX_CVT, PTX_RNI},
    {"flr", 'f', 'f', PTX_CVT, PTX_RMI}, {"cei", 'f', 'f', PTX_CVT, PTX_RPI},
    {"trc", 'f', 'f', PTX_CVT, PTX_RZI}, {"i2f", 'f', 's', PTX_CVT, PTX_RN},
    {"u2f", 'f', 'u', PTX_CVT, PTX_RN}, {"f2q", 'q', 'f', PTX_CVT, PTX_RNI}, {"qsub", 0, 'q', PTX_SUB, 0},
    {"d2f", 'f', 'd', PTX_CVT, PTX_RN}, {"nar", 'g', 'D', PTX_CVT, PTX_RN}, {"wid", 'D', 'g', PTX_CVT, 0},
    {"gmul", 0, 'g', PTX_MUL, PTX_RN}, {"qmul", 0, 'd', PTX_MUL, 0}, {"qhi", 0, 'd', PTX_MUL, PTX_HI},
    {"qadd", 0, 'd', PTX_ADD, 0}, PTX__SETP("qlt", 'd', LT), {"q2f", 'f', 'q', PTX_CVT, PTX_RN},
};
#undef PTX__SETP

/* A formula is four consecutive strings: name, text, numbers of f32, numbers of f64. */
#define PTX__F(name, text, f32, f64) name "\0" text "\0" f32 "\0" f64
#define PTX__F0(name, text) PTX__F(name, text, "", "")
static const char *const ptx__formulas[] = {
    PTX__F0("srgb_to_linear", "~1a=fma x 0.947867299 0.0521327014;a=lg2a a;a=mul a 2.4;a=ex2a a;b=mul x "
     "0.0773993808;c=gt x 0.04045;r=sel a b c;"),
    PTX__F0("linear_to_srgb", "~1a=lg2a x;a=mul a 0.416666667;a=ex2a a;a=fma a 1.055 -0.055;b=mul x 12.92;"
     "c=gt x 0.0031308;r=sel a b c;"),
    PTX__F0("pcg", "s=imad x 747796405 2891336453;t=shr s 28;t=iadd t 4;t=shr s t;t=xor t s;t=imul t "
     "277803737;r=shr t 22;r=xor r t;"),
    PTX__F("unit", "r=shr x 8;r=u2f r;r=mul r $;", "338", ""),
    /* the hash of x as a float from -1 to 1 */
    PTX__F("even", "r=pcg x;r=i2f r;r=mul r $;", "3", ""),
    PTX__F0("between", "r=fma z 6 -15;r=fma r z 10;s=mul z z;s=mul s z;r=mul r s;s=sub y x;r=fma s r x;"),
    /* noise in a unit square. x: hash of the rest; y, z: its corner; w, v: the point's offset from that, also
       for slopes2 and slopes3, which has the third offset in u */
    PTX__F0("values", "z=iadd x z;h=pcg z;z=iadd z 1;k=pcg z;h=iadd h y;k=iadd k y;a=even h;h=iadd h 1;"
     "b=even h;c=even k;k=iadd k 1;d=even k;a=between a b w;c=between c d w;r=between a c v;"),
    PTX__F0("value_noise2", "i=flr x;j=flr y;f=sub x i;g=sub y j;i=f2i i;j=f2i j;r=values z i j f g;"),
    PTX__F0("value_noise3", "i=flr x;j=flr y;k=flr z;f=sub x i;g=sub y j;h=sub z k;i=f2i i;j=f2i j;k=f2i k;"
     "k=iadd k w;a=pcg k;k=iadd k 1;b=pcg k;a=values a i j f g;b=values b i j f g;r=between a b h;"),
    /* dot product of (y, z) with the gradient of hash x: one of 8 of length 1.0824; in 3 dimensions one of 12
       of length 1.4142, to the edges of a cube */
    PTX__F0("slope2", "c=and x 4;c=ine c 0;u=sel y z c;v=sel z y c;a=shl x 31;u=xor u a;a=shl x 30;a=and a "
     "0x80000000;v=xor v a;r=fma v 0.414213562 u;"),
    PTX__F0("slope3", "t=uhi x 3;c=ieq t 0;u=sel z y c;c=ieq t 2;v=sel z w c;t=shl x 31;u=xor u t;t=shl x 30;"
     "t=and t 0x80000000;v=xor v t;r=add u v;"),
    PTX__F0("slopes2", "z=iadd x z;h=pcg z;z=iadd z 1;k=pcg z;h=iadd h y;k=iadd k y;m=sub w 1;n=sub v 1;"
     "a=pcg h;a=slope2 a w v;h=iadd h 1;b=pcg h;b=slope2 b m v;c=pcg k;c=slope2 c w n;k=iadd k 1;d=pcg k;"
     "d=slope2 d m n;a=between a b w;c=between c d w;r=between a c v;"),
    PTX__F0("slopes3", "z=iadd x z;h=pcg z;z=iadd z 1;k=pcg z;h=iadd h y;k=iadd k y;m=sub w 1;n=sub v 1;"
     "a=pcg h;a=slope3 a w v u;h=iadd h 1;b=pcg h;b=slope3 b m v u;c=pcg k;c=slope3 c w n u;k=iadd k 1;d=pcg "
     "k;d=slope3 d m n u;a=between a b w;c=between c d w;r=between a c v;"),
    PTX__F0("gradient_noise2", "i=flr x;j=flr y;f=sub x i;g=sub y j;i=f2i i;j=f2i j;r=slopes2 z i j f g;"
     "r=mul r 1.398;"),
    PTX__F0("gradient_noise3", "i=flr x;j=flr y;k=flr z;f=sub x i;g=sub y j;h=sub z k;i=f2i i;j=f2i j;k=f2i "
     "k;k=iadd k w;a=pcg k;k=iadd k 1;b=pcg k;m=sub h 1;a=slopes3 a i j f g h;b=slopes3 b i j f g m;"
     "r=between a b h;r=mul r 0.9649;"),
    /* what the corner of hash x adds at offset d: max(1/2 - d^2, 0)^4 (gradient . d) */
    PTX__F0("blob2", "x=pcg x;t=neg y;t=fma t y 0.5;n=neg z;t=fma n z t;t=max t 0;t=mul t t;t=mul t t;"
     "g=slope2 x y z;r=mul t g;"),
    PTX__F0("blob3", "x=f2i x;y=f2i y;z=f2i z;z=iadd z w;z=pcg z;z=iadd z y;z=pcg z;z=iadd z x;x=pcg z;t=neg "
     "v;t=fma t v 0.5;n=neg u;t=fma n u t;n=neg p;t=fma n p t;t=max t 0;t=mul t t;t=mul t t;g=slope3 x v u p;"
     "r=mul t g;"),
    PTX__F0("simplex_noise2", "s=add x y;s=mul s 0.366025404;i=add x s;i=flr i;j=add y s;j=flr j;t=add i j;"
     "t=mul t 0.211324865;f=sub i t;f=sub x f;g=sub j t;g=sub y g;i=f2i i;j=f2i j;j=iadd j z;c=gt f g;h=pcg "
     "j;k=iadd j 1;k=pcg k;m=isel h k c;u=isel 1 0 c;m=iadd m i;m=iadd m u;h=iadd h i;k=iadd k i;k=iadd k 1;"
     "a=blob2 h f g;u=sel 0.788675135 -0.211324865 c;v=sel -0.211324865 0.788675135 c;u=sub f u;v=sub g v;"
     "b=blob2 m u v;u=sub f 0.577350269;v=sub g 0.577350269;d=blob2 k u v;r=add a b;r=add r d;r=mul r 92.4;"),
    PTX__F0("simplex_noise3", "s=add x y;s=add s z;s=mul s 0.333333333;i=add x s;i=flr i;j=add y s;j=flr j;"
     "k=add z s;k=flr k;t=add i j;t=add t k;t=mul t 0.166666667;f=sub i t;f=sub x f;g=sub j t;g=sub y g;"
     "h=sub k t;h=sub z h;r=blob3 i j k w f g h;c=ge f g;d=ge g h;e=ge f h;a=and c e;a=sel 1 0 a;b=sel 0 1 c;"
     "b=sel b 0 d;l=sub 1 a;l=sub l b;m=add i a;n=add j b;o=add k l;a=sub f a;a=add a 0.166666667;b=sub g b;"
     "b=add b 0.166666667;l=sub h l;l=add l 0.166666667;a=blob3 m n o w a b l;r=add r a;a=or c e;a=sel 1 0 a;"
     "l=and d e;l=sel 0 1 l;b=sub 2 a;b=sub b l;m=add i a;n=add j b;o=add k l;a=sub f a;a=add a 0.333333333;"
     "b=sub g b;b=add b 0.333333333;l=sub h l;l=add l 0.333333333;a=blob3 m n o w a b l;r=add r a;m=add i 1;"
     "n=add j 1;o=add k 1;a=sub f 0.5;b=sub g 0.5;l=sub h 0.5;a=blob3 m n o w a b l;r=add r a;r=mul r "
     "76.88;"),
    PTX__F0("floor", "1r=flr x;"), PTX__F0("ceil", "1r=cei x;"), PTX__F0("trunc", "1r=trc x;"),
    PTX__F("round", "1h=cps x $;r=add x h;r=trc r;", "3EFFFFFF", "3FDFFFFFFFFFFFFF"),
    PTX__F("fract", "1f=flr x;r=sub x f;c=ge r 1;r=sel $ r c;", "3F7FFFFF", "3FEFFFFFFFFFFFFF"),
    PTX__F0("sign", "1a=abs x;c=gt a 0;a=cps x 1;r=sel a x c;"), PTX__F0("clamp", "3r=max x y;r=min r z;"),
    PTX__F0("step", "2c=lt y x;r=sel 0 1 c;"), PTX__F0("mod", "2q=div x y;q=flr q;q=neg q;r=fma q y x;"),
    PTX__F0("mix", "3n=neg x;n=fma z n x;r=fma z y n;"),
    PTX__F0("smoothstep", "3a=sub z x;b=sub y x;t=div a b;t=max t 0;t=min t 1;u=fma t -2 3;t=mul t t;r=mul t "
     "u;"),
    /* x, negated if bit 31 of y is set; in f32 the other bits of y are 0 */
    PTX__F0("flip", "{r=xor x y;|l,h=unpair x;y=and y 0x80000000;h=xor h y;r=pair l h;}"),
    /* ldx: x 2^y, y an integer + M, so that its low bits are the integer; pow2: 2^x of an integer x */
    PTX__F0("ldx", "{y=shl y 23;r=iadd y x;|y,h=unpair y;l,h=unpair x;y=shl y 20;h=iadd y h;r=pair l h;}"),
    PTX__F0("pow2", "{r=shl x 23;r=iadd r 0x3f800000;|r=shl x 20;r=iadd r 0x3ff00000;r=pair 0 r;}"),
    PTX__F0("scale", "{m=iadd y -0x4b400000;|m,h=unpair y;}h=sar m 1;m=isub m h;s=pow2 h;u=pow2 m;r=mul x s;"
     "r=mul r u;"),
    /* x 2^y, but infinite where z > w, 0 where z < v */
    PTX__F0("scale_ends", "r=scale x y;c=gt z w;r=sel I r c;c=lt z v;r=sel 0 r c;"),
    PTX__F0("reciprocal", "r=rcpa x;{|n=neg x;u=fma n r 1;r=fma r u r;u=fma n r 1;r=fma r u r;}"),
    /* times: x y, plus: x + y, both exactly as r + s, s the rounding error of r */
    PTX__F0("times", "r=mul x y;s=neg r;s=fma x y s;"),
    PTX__F0("plus", "r=add x y;k=sub r x;s=sub r k;s=sub x s;k=sub y k;s=add s k;"),
    /* (x + y) / (z + w), where y and w are less than a unit in the last place of x and z */
    PTX__F0("divide", "t=rcpa z;r=mul x t;e=neg r;e=fma e z x;r=fma e t r;e=neg r;s=fma e w y;e=fma e z x;"
     "e=add e s;r=fma e t r;"),
    /* e^|x| / 2 as r 2^s */
    PTX__F("half_exp", "a=abs x;t=fma a $ $;n=sub t $;f=fma n $ a;f=fma n $ f;r=exp_poly f;s=mov t;q=mov a;",
     "3FB8AA3B 4B3FFFFF 4B3FFFFF BF317218 3102E308", "3FF71547652B82FE 4337FFFFFFFFFFFF 4337FFFFFFFFFFFF "
     "BFE62E42FEFA39EF BC7ABC9E3B39803F"),
    PTX__F("exp_poly", "{r=poly x $;|s=poly x $;r=fma s x 1;}",
     "3AB4AA0A,3C091D82,3D2AAD11,3E2AAA48,3EFFFFFD,3F8,3F8", "3E5A98E9,3E928A8B,3EC71E1B,3EFA019A,3F2A01A,"
     "3F56C16C1818BCB1,3F81111111160619,3FA5555555551784,3FC555555555541,3FE0000000000006,3FF"),
    /* x = s ln 2 + r */
    PTX__F("exp_reduce", "s=fma x $ M;n=sub s M;r=fma n $ x;r=fma n $ r;", "3FB8AA3B BF317218 3102E308",
     "3FF71547652B82FE BFE62E42FEFA39EF BC7ABC9E3B39803F"),
    /* f32: the number that rounds x / ln 2 to n is also the coefficient of x^4. Its last place stands for 1,
       and its low 9 bits are 0, so that ldx finds n alone */
    PTX__F("exp", "1{t=fma x $ $;n=sub t $;f=fma n $ x;f=fma n $ f;p=poly f $;|f,t=exp_reduce x;p=exp_poly f;"
     "}r:ldx p t;a=abs x;c=gtu a {87|708};if c;{t=iadd t 0xe146200;r=scale_ends p t x 89.0 -105.0;"
     "|r=scale_ends p t x 710.0 -746.0;}end;", "31B8AA3B 3D2B9E 3D2B9E CD317218 3F02E308 3C07E6F2,3D2B9E,"
     "3E2AAD28,3EFFFEE2,3F7FFFFB,3F8", ""),
    PTX__F("exp2_poly", "r=poly x $;", "391F8A5D,3AAF8D77,3C1D98E3,3D6357B,3E75FDEB,3F317218,3F8",
     "3DFEA482,3E3E627A,3E7B524A,3EB62BFC,3EEFFCBFC9DEF157,3F2430913121C7B,3F55D87FE78954FD,3F83B2AB6FB9EF47,"
     "3FAC6B08D704A14B,3FCEBFBDFF82C5AC,3FE62E42FEFA39EF,3FF"),
    /* 2^(x + y) as r 2^s */
    PTX__F0("exp2_pair", "s=add x M;n=sub s M;f=sub x n;f=add f y;r=exp2_poly f;"),
    PTX__F0("exp2", "1{r=ex2 x;|t=add x M;n=sub t M;f=sub x n;p=exp2_poly f;r:ldx p t;a=abs x;c=gtu a 1021;"
     "if c;r=scale_ends p t x 1025.0 -1080.0;end;}"),
    PTX__F("exp10", "1t=fma x $ {$|M};n=sub t {$|M};f=fma n $ x;f=fma n $ f;p=poly f $;r:ldx p t;a=abs x;"
     "c=gtu a {37.75|307};if c;{t=iadd t 0xba93c00;r=scale_ends p t x 39.0 -46.0;|r=scale_ends p t x 309.0 "
     "-325.0;}end;", "34D49A78 3F96C4 3F96C4 CA1A209B 3DF6086 3F086EAA,3F96C4,40023C52,4029A862,40135D86,3F8",
     "400A934F0979A371 BFD34413509F79FF 3C49DC1DA994FD21 3F2F722D,3F52F72A,3F7489A,3F941166,3FB16E4DEE1A7BA3,"
     "3FCA7ED70A0DD716,3FE1429FFD222029,3FF2BD7609FD537A,4000470591DE2B42,40053524C73CEA76,40026BB1BBB55516,"
     "3FF"),
    PTX__F("expm1", "1f,t=exp_reduce x;p=poly f $;g=mul f f;p=fma p g f;{k=mov t;|k,h=unpair t;}s=pow2 k;"
     "u=sub s 1;r:fma p s u;a=abs x;c=gtu a {87|708};if c;q=add p 1;r=scale q t;c=gt x {89|710};r=sel I r c;"
     "c=lt x -80;r=sel -1 r c;end;r=cps x r;", "3AB5BCD9,3C091497,3D2AAB89,3E2AAA57,3EFFFFFF",
     "3E219C04,3E5AF521,3E927E88,3EC71DE,3EFA01A,3F2A01A01ACA8D2C,3F56C16C16C6542D,3F8111111110FF72,"
     "3FA55555555554B6,3FC5555555555557,3FE"),
    /* f64: ln(1 + x) as r + s; r = x / (1 + x / 2) is the linear term of 2 artanh(x / (2 + x)). f32: as r */
    PTX__F("ratio", "{p=poly x $;g=mul x x;r=fma p g x;|g=fma x 0.5 1;q=reciprocal g;r=mul x q;u=sub x r;"
     "h=mul r -0.5;u=fma h x u;l=mul u q;z=mul r r;p=poly z $;w=mul r z;s=fma w p l;}",
     "BD390E9F,3DD6A0C4,BE06DAC3,3E144297,BE2A75AA,3E4CB478,BE800027,3EAAAAD3,BF",
     "3EB0008C,3ED113F9,3EF3B088,3F1745D8,3F3C71C7,3F62492492687D6D,3F89999999997952,3FB555555555555B"),
    PTX__F("log_reduce", "v:mov x;d:mov 0;{i=iadd x -0x800000;c=uge i 0x7f000000;|l,i=unpair x;i=iadd i "
     "-0x100000;c=uge i 0x7fe00000;}if c;v=mul x $;d=mov {0xb800000|0x3600000};end;{e=iadd v -0x3f400000;"
     "e=and e 0xff800000;m=isub v e;|l,h=unpair v;e=iadd h -0x3fe6a09e;e=and e 0xfff00000;h=isub h e;m=pair "
     "l h;}e=isub e d;s=i2f e;{|s=mul s $;}r=sub m 1;q=mov c;", "4B", "435 3EB"),
    PTX__F0("log_special", "c=lt x I;r=sel y x c;c=eq x 0;r=sel -I r c;c=lt x 0;r=sel N r c;"),
    /* ln x as r + s; q: x is not a positive normal number */
    PTX__F("log_pair", "f,n,q=log_reduce x;t,w=ratio f;r=fma n $ t;u=fma n $ r;u=sub t u;w=add w u;s=fma n $ "
     "w;", "", "3FE62E42FEFA39EF BFE62E42FEFA39EF 3C7ABC9E3B39803F"),
    PTX__F("log", "1{f,n,c=log_reduce x;p=ratio f;r:fma n $ p;|s,w,c=log_pair x;r:add s w;}if c;"
     "r=log_special x r;end;", "33B17218", ""),
    /* (-1)^y sin x, |x| up to pi / 2, with a term for the rounding error of x^2 */
    PTX__F("sine", "z=mul x x;e=neg x;e=fma e x z;e=mul e {0.14|$};p=poly z $;p=fma p z e;r=fma p x x;y=shl "
     "y 31;r=flip r y;", "362EE482,B94FB878,3C08876D,BE2AAAA6", "3FC1EB85 3C7AF044,3CE62CF,BD6AD96D,3DE61222,"
     "BE5AE645,3EC71DE3A4A858F9,BF2A01A01A005D22,3F81111111110FF2,BFC5555555555554"),
    /* sin(x - z pi); y: the sum that rounded z, its low bit the sign. |x| large: sin w, turned by v */
    PTX__F("reduced", "f=fma z $ x;f=fma z $ f;f:fma z $ f;{|y,l=unpair y;}t:mov y;a=abs x;c=gtu a "
     "{105615|$};if c;f,t=turn w v;end;r=sine f t;", "C0490FDA B4222168 A84234C4",
     "C00921FB54442D18 BCA1A62633145C06 B95C1CD129024E08 41D"),
    PTX__F("sin", "1t=fma x $ M;n=sub t M;r=reduced x t n x 0;", "3EA2F983", "3FD45F306DC9C883"),
    PTX__F("cos", "1t=fma x $ 0.5;t=add t M;n=sub t M;n=sub n 0.5;a=abs x;r=reduced x t n a 0x40000000;",
     "3EA2F983", "3FD45F306DC9C883"),
    PTX__F("log2", "1f,n,c=log_reduce x;{p=poly f $;g=mul f f;p=mul p g;p=fma f $ p;r:fma n $ p;|t,w=ratio f;"
     "h,a=times t $;a=fma t $ a;a=fma w $ a;s=add n h;u=sub s n;u=sub h u;a=add a u;r:add s a;}if c;"
     "r=log_special x r;end;", "BD7EA98D,3E1D46DE,BE47F40D,3E576ECA,BE7581A8,3E939413,BEB8AB5C,3EF6391C,"
     "BF38AA3B 3FB8AA3B 34", "3FF71547652B82FE 3C7777D0FFDA0D24 3FF71547652B82FE"),
    PTX__F("log10", "1f,n,c=log_reduce x;{p=poly f $;g=mul f f;p=mul p g;p=fma f $ p;p=fma n $ p;r:fma n $ p;"
     "|t,w=ratio f;h,a=times t $;a=fma t $ a;a=fma w $ a;s=fma n $ h;u=fma n $ s;u=sub h u;a=add a u;a=fma n "
     "$ a;r:add s a;}if c;r=log_special x r;end;", "BCB1F27A,3D38D697,BD60504F,3D7E2307,BD946FBB,3DB1FD51,"
     "BDDE5A81,3E143CB7,BE5E5BD9 3EDE5BD9 A6F6086 331A209B", "3FDBCB7B1526E50E 3C695355BAAAFAD3 "
     "3FDBCB7B1526E50E 3FD34413509F79FF BFD34413509F79FF BC49DC1DA994FD21"),
    PTX__F("log1p", "1v:mov x;d:mov 0;u:add x 1;{i=iadd u -0x800000;c=uge i 0x5f000000;|l,i=unpair u;i=iadd "
     "i -0x100000;c=uge i 0x5fe00000;}if c;c=gt x 1;v=mul x $;w=mov v;v=sub w 1;v=sel v x c;u=sel w u c;"
     "d=isel 0xe0000000 0 c;end;{e=iadd u -0x3f400000;e=and e 0xff800000;g=isub 0x3f800000 e;|l,h=unpair u;"
     "e=iadd h -0x3fe6a09e;e=and e 0xfff00000;g=isub 0x3ff00000 e;g=pair 0 g;}f=sub g 1;f=fma v g f;e=isub e "
     "d;n=i2f e;{p=ratio f;r:fma n $ p;c=uge i 0x5f000000;|n=mul n $;t,w=ratio f;s=fma n $ t;u=fma n $ s;"
     "u=sub t u;w=add w u;w=fma n $ w;r:add s w;c=uge i 0x5fe00000;}if c;c=lt x I;r=sel r x c;c=eq x -1;"
     "r=sel -I r c;c=lt x -1;r=sel N r c;end;r=cps x r;", "1F8 33B17218", "1FF 3EB 3FE62E42FEFA39EF "
     "BFE62E42FEFA39EF 3C7ABC9E3B39803F"),
    PTX__F("sincos", "1t=fma x $ M;n=sub t M;{f=fma n $ x;|g=fma n $ x;f:fma n $ g;}f=fma n $ f;{f:fma n $ f;"
     "|t,l=unpair t;}t:mov t;a=abs x;c=gtu a {105615|$};if c;f,t=quarter x;end;z=mul f f;p=poly z $;p=fma p "
     "z 0;p=fma p f f;q=poly z $;c=and t 1;c=ine c 0;r=sel q p c;s=sel p q c;u=shl t 30;{u=and u 0x80000000;"
     "r=xor r u;|r=flip r u;}u=iadd t 1;u=shl u 30;{u=and u 0x80000000;s=xor s u;|s=flip s u;}",
     "3F22F983 BFC90FDA B3A22168 A7C234C4 B94CA976,3C0883BB,BE2AAAA3 37CCF40F,BAB60614,3D2AAAA5,BF,3F8",
     "3FE45F306DC9C883 BFF921FB54442D18 BC91A62633145C06 B94C1CD129024E08 41D BD6A633,3DE61166,BE5AE644,"
     "3EC71DE3A4228533,BF2A01A01A0084C1,3F81111111111091,BFC5555555555555 3D2A675,BDA9387A,3E21EED8,"
     "BE927E4FB67C11BD,3EFA01A01A007846,BF56C16C16C16B64,3FA5555555555555,BFE,3FF"),
    PTX__F("quarter", "h,l=fraction x;{s=iadd h 0x20000000;s=shr s 30;h=pair l h;|s=qadd h "
     "0x2000000000000000;s=qshr s 62;s,k=unpair s;k=qshr l 62;}h=qshl h 2;{|h=or h k;l=qshl l 2;}v=q2f h;"
     "i=f2q v;h=qsub h i;w=q2f h;{|u=d2f l;u=mul u $;w=add w u;}w=mul w $;u=fma v $ w;r=fma v $ u;q=neg r;"
     "q=fma v $ q;q=add q u;{n=and x 0x80000000;q=xor q n;r=xor r n;|k,n=unpair x;n=and n 0x80000000;q=flip "
     "q n;r=flip r n;}r=fma x 0 r;c=ine n 0;n=isub 0 s;s=isel n s c;", "1FC90FDB 933BBD2E 1FC90FDB 1FC90FDB",
     "3BF 3BF921FB54442D18 3891A62633145C07 3BF921FB54442D18 3BF921FB54442D18"),
    PTX__F("tan", "1t=fma x $ M;n=sub t M;g=fma n $ x;f:fma n $ g;{|l=sub f g;l:fma n $ l;}h:mul n $;{|t,"
     "k=unpair t;}t:mov t;a=abs x;c=gtu a {105615|$};if c;f,t,h=quarter x;{|l=mov 0.0;}end;z=mul f f;p=poly "
     "z $;{q=mul z f;p=fma p q h;|l=neg l;p=fma p f l;p=fma p z h;}g=add f p;{q=rcpa g;|c=and t 1;c=ine c 0;"
     "r:mov g;if c;q=reciprocal g;}e=neg q;f=fma e f 1;e=fma e p f;q=fma q e q;{q=neg q;c=and t 1;c=ine c 0;"
     "r=sel q g c;|r=neg q;end;}", "3F22F983 BFC90FDA B3A22168 A7C234C4 3B9153BC,B80B570E,3C332D78,3CAE039E,"
     "3D5D7699,3E08868E,3EAAAAB1", "3FE45F306DC9C883 BFF921FB54442D18 BC91A62633145C06 3C91A62633145C06 "
     "B94C1CD129024E08 41D 3EF603B9,BF07D494,3F17BEC,BEFD0809,3F2205EC,3F2D14D,3F43814F,3F57D58,3F6D6D98,"
     "3F8226E10108A5E5,3F9664F49BF1640E,3FABA1BA1B3E6489,3FC1111111118F5E,3FD55555555554E4"),
    PTX__F("arc", "a=abs x;c=gt a 0.5;{|v:mov a;z:mul x x;q:mov 0.0;if c;}z=fma a -0.5 0.5;y=rsqa z;d=eq z 0;"
     "y=sel 0 y d;v,h=root2 z y;{g=mul x x;z=sel z g c;v=sel v a c;|e=neg v;e=fma e v z;h=add h h;q=mul e h;"
     "end;}p=poly z $;p=mul p z;r=fma p v v;s=mov c;", "3D2CACD5,3CC620AD,3D3A3DB9,3D998103,3E2AAAE4",
     "3FA0B78E,BF958AF1,3F96429A,3F6E3E2C,3F861656,3F8757CF,3F8CA20D,3F91C49E,3F96E8BE,3F9F1C71A88243DE,"
     "3FA6DB6DB723E1F4,3FB333333332DC65,3FC555555555557A"),
    /* pi/2 - x, then pi - x */
    PTX__F("half_pi", "{n=neg x;r=fma $ $ n;|r=sub $ x;r=add r $;}", "3F42F1B4 40040455",
     "3FF921FB54442D18 3C91A62633145C06"),
    PTX__F("pi", "{n=neg x;r=fma $ $ n;|r=sub $ x;r=add r $;}", "3FC2F1B4 40040455",
     "400921FB54442D18 3CA1A62633145C07"),
    PTX__F("arctan", "z=mul x x;q=poly z $;q=mul q z;r=fma q x x;", "3B3F60E2,BC8611FF,3D30FBAB,BD9AA9FA,"
     "3DDA6FEE,BE118558,3E4CBC77,BEAAAA6E", "BEE390A8,3F1D183A,BF4490AC,3F627A17,BF77DCD8,3F87D4DA,BF936D54,"
     "3F9B17E5,BFA0E3D8,3FA39DD8,BFA5F79,3FA84CD37E346DB8,BFAAEDF99C78B5F1,3FAE1D5448695593,BFB111038C103845,"
     "3FB3B139B612FF9F,BFB745D15AAF8E54,3FBC71C71B25B739,BFC249249243DF46,3FC99999999982B7,BFD5555555555543"),
    PTX__F("asin", "1{v,c=arc x;w=neg v;w=fma $ $ w;w=add w w;|v,c,l=arc x;w=fma v -2 $;l=sub $ l;w=add w l;"
     "}v=sel w v c;r=cps x v;", "3EC2F1B4 40040455", "3FF921FB54442D18 3C91A62633145C06"),
    PTX__F("acos", "1v,c=arc x;u=cps x v;{u=half_pi u;|u=sub $ u;u=add u $;}v=add v v;w=pi v;d=lt x 0;v=sel "
     "w v d;r=sel v u c;", "", "3C91A62633145C06 3FF921FB54442D18"),
    /* x / y, if 1 / y and the error of the first quotient are normal numbers */
    PTX__F0("quotient", "q=reciprocal y;r=mul x q;e=neg r;e=fma e y x;r=fma e q r;"),
    PTX__F("atan2", "2a=abs x;b=abs y;p=gt a b;m=sel a b p;n=sel b a p;t:quotient n m;c=geu m $;d=ltu n $;"
     "c=or c d;if c;d=gt m 1;e=gt n 1;i=sel $ $ d;j=sel $ $ e;i=mul m i;j=mul n j;t=quotient j i;d=xor d e;"
     "j=sel $ 1 d;t=mul t j;d=eq m I;u=mul n 0;t=sel u t d;d=eq n 0;u=sel 0 1 d;d=eq m n;t=sel u t d;end;"
     "v=arctan t;w=half_pi v;v=sel w v p;w=pi v;{p=ilt y 0;|k,h=unpair y;p=ilt h 0;}v=sel w v p;r=cps x v;",
     "5E 0D8 1F8 5F8 1F8 5F8 002", "7E7 03F 1FF 5FF 1FF 5FF 0004"),
    PTX__F("sinh", "1p,t,a=half_exp x;h=ldx p t;e=reciprocal h;h=fma e -0.25 h;z=mul x x;q=poly z $;q=mul q "
     "z;q=fma q a a;c=lt a 1;r:sel q h c;c=gtu a {88|709};if c;r=scale p t;c=gt a {91|712};r=sel I r c;end;"
     "r=cps x r;", "363B3B8F,39500E11,3C088875,3E2AAAAB", "3CEF6ECB,3D6ACC74,3DE6127A,3E5AE645,"
     "3EC71DE3A5CC2AFA,3F2A01A01A010D37,3F8111111111116D,3FC5555555555555"),
    PTX__F0("cosh", "1p,t,a=half_exp x;h=ldx p t;e=reciprocal h;r:fma e 0.25 h;c=gtu a {88|709};if c;r=scale "
     "p t;c=gt a {91|712};r=sel I r c;end;"),
    PTX__F("root3", "l=lg2a x;l=mul l $;v=ex2a l;w=mul v v;e=neg x;e=fma w v e;w=rcpa w;e=mul e w;r=fma e $ "
     "v;", "3EAAAAAB BEAAAAAB", ""),
    PTX__F("cbrt", "1{|a:abs x;d:mov 341;l,h=unpair a;i=iadd h -0x100000;c=uge i 0x7fe00000;if c;a=mul a $;"
     "d=mov 359;end;l,h=unpair a;k=shr h 20;o=uhi k 0x55555556;i=imul o 3;i=isub k i;i=iadd i 1023;i=shl i "
     "20;h=and h 0xfffff;h=or h i;m=pair l h;g=nar m;g=lg2a g;g=gmul g $;g=ex2a g;y=wid g;n=neg m;u=mul y y;"
     "u=mul u y;e=fma n u 1;w=fma e $ $;w=mul w e;y=fma y w y;r=mul m y;r=mul r y;u=mul r r;e=fma u r n;"
     "w=mul y y;w=mul w $;r=fma e w r;i=isub o d;l,h=unpair r;i=shl i 20;h=iadd h i;r:pair l h;if c;}a=abs x;"
     "{r:root3 a;i=iadd a -0x800000;c=uge i 0x7f000000;if c;r=mul a $;r=root3 r;r=mul r $;|}u=add a a;c=eq u "
     "a;r=sel a r c;{|c=nan x x;r=sel x r c;}end;r=cps x r;", "4B8 3B8",
     "435 BFD555556 3FCC71C7 3FD55555 BFD55555"),
    /* sqrt x as r, 1 / (2 r) as s; y: 1 / sqrt x to 18 bits or more */
    PTX__F0("root2", "r=mul x y;s=mul y 0.5;{|e=neg r;e=fma e s 0.5;r=fma r e r;s=fma s e s;}e=neg r;e=fma e "
     "r x;r=fma e s r;"),
    PTX__F("hypot", "2h=mul x x;h=fma y y h;v=rsqa h;r:root2 h v;{i=iadd h -0x12000000;c=uge i 0x6c000000;|k,"
     "i=unpair h;i=iadd i -0x10000000;c=uge i 0x6fe00000;}if c;a=abs x;b=abs y;m=max a b;d=gt m 1;k=sel $ $ "
     "d;i=sel $ $ d;u=mul x k;v=mul y k;h=mul u u;w=fma v v h;v=rsqa w;h=root2 w v;r=mul h i;d=eq w 0;r=sel "
     "0 r d;d=eq m I;r=sel I r d;end;", "1C8 6C8 628 128", "1F7 657 607 1A7"),
    PTX__F("erf_small", "z=mul x x;p=poly z $;r=fma p x x;", "38A48BD2,BA51EC09,3BAA00B9,BCDBFC46,3DE71679,"
     "BEC0939F,3E0375D4", "BE0A91F5,3E4D6372,BE85BE4E,3EBB97A,BEEF4C9B,3F1F9A2B,BF4C02DAFC7617B,"
     "3F7565BCCF5F71C,BF9B82CE311E0843,3FBCE2F21A040606,BFD812746B0379AF,3FC06EBA8214DB68"),
    /* erfc x as (r + s) 2^q, x from 0.65 to 28: e^-x^2 (1 / (x + 2)) P(1 - 4 / (x + 2)), each a sum of two */
    PTX__F("erfc_tail", "d=add x 2;w=rcpa d;e=neg d;u=fma e w 1;w=fma w u w;o=sub d 2;o=sub o x;u=fma e w 1;"
     "u=fma o w u;o=mov w;w=fma w u w;k=sub o w;k=fma o u k;v=fma w -4 1;m=poly v $;r=fma m v $;l=sub $ r;"
     "l=fma m v l;l=add l $;e=mul k -4;l=fma e m l;q,e=times r w;e=fma r k e;l=fma l w e;h=mul x x;o=neg h;"
     "z=fma x x o;t=fma h $ M;n=sub t M;f=fma n $ o;o=neg z;o=fma n $ o;f=add f o;p,m=exp_poly f;e=sub 1 p;"
     "e=fma m f e;r,k=times q p;k=fma q e k;s=fma l p k;q=mov t;", "", "BE4889FC,BE71F29,3E92BC,3E5C3F1E,"
     "BEA148FD,BEA0A7C9,3E76E6D3,3EC0448E,3ECE6F2A,BEB27FC2,BEF0E75BD01A9587,BEF6C153058951AA,"
     "3F01E77236472C5D,3F22EFA78FA378BF,3F02053EB566E17D,BF45BA439CD90C03,BF4B6FBF967CCFF5,3F69517BB74B406F,"
     "3F7A89EAFF82DDD8,BF9606E41552CB85,BFA2A88E6107D36,3FD1E2DEEA6B117A,BFE5FD386754EFF9 3FF058671B52C776 "
     "3FF058671B52C776 BC6D0E4 BFF71547652B82FE BFE62E42FEFA39EF BC7ABC9E3B39803F"),
    PTX__F("erf", "1a=abs x;{p=erf_small a;q=poly a $;q=ex2a q;q=sub 1 q;c=geu a 1;d=le a I;c=and c d;r=sel "
     "q p c;|c=ltu a 1;r:mov a;if c;r=erf_small a;else;c=gt a 6;a=sel 6 a c;p,l,t=erfc_tail a;r=ldx p t;"
     "r=sub 1 r;end;}r=cps x r;", "BAE2FF3D,3CB36577,BE04CC0F,BF710322,BFCE9E11,BB54BCDF", ""),
    PTX__F("erfc", "1a=abs x;{c=gt a 11;a=sel 11 a c;d=add a 1.5;w=rcpa d;u=sub d 1.5;u=sub u a;e=neg d;"
     "e=fma e w 1;e=fma u w e;w=fma w e w;v=fma w -3 1;q=poly v $;q=mul q w;h,l=times a a;t=fma h $ M;n=sub "
     "t M;f=neg h;f=fma n $ f;f=fma n $ f;f=sub f l;p=exp_poly f;p=mul p q;|c=gt a 28;a=sel 28 a c;p,l,"
     "t=erfc_tail a;p=add p l;}r:ldx p t;c=gtu a {9.1|26};if c;r=scale p t;end;{|c=lt a 0.65;if c;"
     "}p=erf_small a;{p=sub 1 p;c=lt a 0.65;r=sel p r c;|r=sub 1 p;end;}c=lt x 0;u=sub 2 r;r=sel u r c;",
     "BA2916A8,3A90ADDC,3AFBAB2D,BA6C845A,BC1B23A1,BC04DE4E,3D43A869,3D9ADF6E,BF020275,3F76FA44 BFB8AA3B "
     "BF317218 3102E308", ""),
    /* log2 x as r + s, less y from the bits of its exponent. t + l: linear term of 2 artanh(f / (2 + f)) */
    PTX__F("log2_pair", "{e=iadd x -0x3f3504f3;e=and e 0xff800000;m=isub x e;|l,h=unpair x;e=iadd h "
     "-0x3fe6a09e;e=and e 0xfff00000;h=isub h e;m=pair l h;}e=isub e y;n=i2f e;{|n=mul n $;}f=sub m 1;g=fma "
     "f 0.5 1;q=reciprocal g;t=mul f q;u=sub f t;h=mul t -0.5;u=fma h f u;l=mul u q;z=mul t t;{|o=neg z;"
     "o=fma t t o;k=add l l;o=fma k t o;w,b=times t z;b=fma t o b;b=fma l z b;}p=poly z $;{|p=mul p z;}h,"
     "a=times t $;a=fma t $ a;{k=fma z $ $;a=fma l k a;u=mul t z;a=fma u p a;a=fma u $ a;s=fma n $ h;u=fma n "
     "$ s;u=sub h u;|a=fma l $ a;i,j=times w $;j=fma w $ j;j=fma b $ j;j=fma p w j;s=add h i;u=sub s h;u=sub "
     "i u;}a=add a u;{r=add s a;s=sub r s;s=sub a s;|a=add a j;m=add n s;u=sub m n;u=sub s u;a=add a u;r=add "
     "m a;s=sub m r;s=add a s;}",
     "3A2ED80C,3B52C113,3C93BBCC,B180DB78 3FB8AA3B 32A5706 3EB8AA3B 3FB8AA3B 3DF6384F 34 B4", "3EB 3E9623F3,"
     "3EB58F26,3ED8A0A5,3EFC68EE48E3D79E,3F20C9A85469630D,3F4484B13D68BE76,3F6A61762A7AF0FD,3F92776C50EF9BFB "
     "3FF71547652B82FE 3C7777D0FFDA0D24 3FF71547652B82FE 3FBEC709DC3A03FD 3C5D27F05548AF0C 3FBEC709DC3A03FD"),
    /* x^y: z, or the special case if x is not a positive normal number or z may be out of range */
    PTX__F0("pow_special", "v=abs x;c=eq v 1;r=sel 1 z c;h=mul y 0.5;i=trc h;o=neu i h;i=trc y;j=neu i y;"
     "e=lt x 0;c=and e j;r=sel N r c;j=eq i y;o=and o j;u=add v v;u=eq u v;e=lt y 0;f=eq v 0;e=xor e f;f=sel "
     "0 I e;r=sel f r u;k=cps x 1;c=lt k 0;c=and c o;n=neg r;r=sel n r c;c=nan x y;r=sel N r c;c=eq y 0;"
     "r=sel 1 r c;c=eq x 1;r=sel 1 r c;"),
    PTX__F("pow", "2v:abs x;d:mov 0;{i=iadd x -0x800000;c=uge i 0x7f000000;|l,i=unpair x;i=iadd i -0x100000;"
     "c=uge i 0x7fe00000;}if c;b=lt v $;w=mul v $;v=sel w v b;d=isel {0xb800000|0x3600000} 0 b;end;h,"
     "l=log2_pair v d;q,u=times y h;l=fma y l u;p,t=exp2_pair q l;r:ldx p t;a=abs q;b=gtu a {125|1020};c=or "
     "b c;if c;r=scale_ends p t q {130.0|1030.0} {-152.0|-1080.0};r=pow_special x y r;end;", "008 4B",
     "001 435"),
    /* f32: sin(pi x) / pi, |x| up to 1/2 */
    PTX__F("sin_pi", "z=mul x x;s=poly z $;s=mul s z;r=fma s x x;", "3CCACDF5,BE4308A9,3F4FCCCC,BFD28D2E",
     ""),
    /* f64: log2 gamma(x) / 4, x >= 2, as r + s: Stirling's formula */
    PTX__F("log2_gamma", "h,l=log2_pair x 0;b=fma x 0.25 -0.125;q,u=times b h;u=fma b l u;m,n=times x $;"
     "n=fma x $ n;k=neg m;o,i=plus q k;u=sub u n;u=add u i;t,i=plus o $;i=add i $;u=add u i;p=stirling x;"
     "u=fma p $ u;r=add t u;k=sub r t;s=sub u k;", "",
     "3FD71547652B82FE 3C5777D0FFDA0D24 3FD536439A4C6EFC BC749E49A361EFEB 3FD71547652B82FE"),
    /* ln gamma(x) - (x - 1/2) ln x + x - ln(2 pi) / 2, x >= 2 */
    PTX__F("stirling", "w=rcpa x;e=neg w;e=fma e x 1;e=fma e e e;w=fma w e w;z=mul w w;p=poly z $;r=mul p w;",
     "", "4005E899,C0168E14,4015722A,C0092AB8,3FF4AAFF,BFD9D5B5,3FBAA9CBB08983CE,BF993AA7E403472D,"
     "3F79380277DD7BFC,BF5F41DDC3482E49,3F4B92EC0304821,BF43812E4A012C8D,3F4A01A000DCB4F6,BF66C16C16B9D421,"
     "3FB555555555554"),
    /* x sin(pi x) / pi as r + s; x above 0 */
    PTX__F("reflect", "j=rnd x;f=sub x j;z,g=times f f;q=poly z $;b,t=pair_ends q z $ $;t=fma g $ t;v=fma f "
     "b f;l=sub f v;l=fma f b l;l=fma f t l;r,s=times v x;s=fma l x s;j=mul j 0.5;i=trc j;c=neu i j;n=neg r;"
     "r=sel n r c;n=neg s;s=sel n s c;", "", "3E9078B9C5E44AE4,BEDD3EAEFCAB87E5,3F23746AE9B7FB9B,"
     "BF6338169C028879,3F9AC6805CD0D92E,BFC86A8E4720AF1E BFFA51A6625307D3 3FE9F9CB402BC439 BFFA51A6625307D3"),
    /* ((x y + w) y + z) y as r + s, with the rounding errors of the sums */
    PTX__F0("pair_ends", "t,e=times x y;s=add w t;k=sub s w;k=sub t k;e=add e k;u,g=times s y;g=fma e y g;"
     "v=add z u;k=sub v z;k=sub u k;g=add g k;p,e=times v y;e=fma g y e;r=add p e;s=sub r p;s=sub e s;"),
    PTX__F("tgamma", "!1a=abs x;c=lt a 2;r:mov a;d:mov 1.0;k:mov 0.0;if c;e=lt a 0.5;f=sub a 1;f=sel x f e;"
     "{p=poly f $;d=mul x p;d=sel d p e;|q=poly f $;p=fma q f 1;l=sub 1 p;l=fma q f l;h,w=times x p;w=fma x "
     "l w;d=sel h p e;k=sel w l e;}y:mov 1.0;z:mov 0.0;e=le x -0.5;if e;y=neg p;{j=rnd a;g=sub a j;v=sin_pi "
     "g;j=f2i j;j=shl j 31;v=xor v j;d=mul a v;|z=neg l;d,k=reflect a;}end;d=mul d $;k=mul k $;r=divide y z "
     "d k;r=mul r $;c=eq x 0;j=cps x I;r=sel j r c;else;{w=rcpa a;g:poly w $;h,l=log2_pair a 0;b=sub a 0.5;q,"
     "u=times b h;u=fma b l u;m,n=times a $;n=fma a $ n;k=neg m;t,i=plus q k;o:mov t;u=sub u n;u:add u i;|h,"
     "l=log2_gamma a;o:mul h 4;u:mul l 4;}e=lt x 0;b=mov e;if e;{j=rnd a;f=sub a j;v,c=sin_pi f;l=sub f v;"
     "l=fma c f l;j=f2i j;j=shl j 31;v=xor v j;l=xor l j;f,i=times v a;i=fma l a i;d,l=times f g;k=fma i g l;"
     "|d,k=reflect a;}o=neg o;u=neg u;end;p,t=exp2_pair o u;{w:mul p g;|w:mov p;}if b;p=neg p;w=divide p 0.0 "
     "d k;end;r=scale w t;e=gt x {36|172};r=sel I r e;k=cps d 0;k=neg k;e=lt x {-46|-190};r=sel k r e;end;"
     "t=trc x;c=eq t x;e=lt x 0;c=and c e;r=sel N r c;c=nan x x;r=sel x r c;", "B78C1CCA,38FBBA5E,B95E5DD,"
     "BA983A29,3BEC75D2,BC1DA7B1,BD2CD6DA,3E2A891A,BD2C0B04,BF27E7A,3F13C468,3F8 4B8 4B8 4B8 38ADD72F,"
     "BA9023C9,3B1FA3AB,BA2E981F,BBDBF4CB,3C0E9852,3E55E621,40206C99 3FB8AA3B 32A5706", "BE08A9AB238D3BB4,"
     "3E32A16CAC31F83F,3E3B0F6BAF573A4,BE8B8ADBD6AB8DD1,3EB300CA9218A724,BEB4FB09261CC0F8,BEF51CDF3F87B3EC,"
     "3F20C8A761B89038,BF2C36501AD9FC45,BF5317112B3C9501,3F7D919C52A21C74,BF83B4AF284D95DF,BFA59AF103C36A3D,"
     "3FC5512320B4430E,BFA5815E8FA26FD4,BFE4FCF4026AFA3,3FE2788CFC6FB619 435 435 435"),
    PTX__F("lgamma", "!1a=abs x;b=lt a 0.5;{c=lt a 3.5;r:mov a;|c=lt a 3;o:mov a;u:mov 0.0;}if c;d=lt a 1.5;"
     "if d;f=sub a 1;f=sel x f b;{p=poly f $;r=fma p f 0;|q=poly f $;o,u=pair_ends q f $ $;}if b;l=log a;"
     "{r=sub r l;|o=sub o l;}end;else;f=sub a 2;{p=poly f $;r=fma p f 0;|q=poly f $;o,u=pair_ends q f $ $;"
     "}end;else;{w=rcpa a;p=poly w $;f,n,e=log_reduce a;l=ratio f;l=fma n $ l;b=sub a 0.5;l=fma b l p;n=fma "
     "n $ -1;r=fma b n l;|h,l,e=log_pair a;m=mul a 0.25;b=sub m 0.125;q,u=times b h;u=fma b l u;t=sub q m;"
     "k=sub q t;k=sub k m;u=add u k;o,i=plus t $;u=add u i;u=add u $;p=stirling a;u=fma p 0.25 u;o=mul o 4;"
     "u=mul u 4;}end;{|r:add o u;}c=le x -0.5;if c;{j=rnd a;f=sub a j;v=sin_pi f;j=f2i j;j=shl j 31;v=xor v "
     "j;v=mul v a;v=abs v;f,n,c=log_reduce v;l=ratio f;l=add l r;r=fma n $ l;|d,k=reflect a;v=abs d;h,l,"
     "e=log_pair v;w=rcpa d;u=fma k w u;t,i=plus o h;u=add u l;u=add u i;r=add t u;}r=neg r;e=eq v 0;r=sel I "
     "r e;end;{c=eq a I;|c=gt a $;}r=sel I r c;", "BE8DEB96,3E57070C,3CA3433A,3D38666D,BE0C7F81,3E0B482A,"
     "BE109432,3E2CA9AD,BE548223,3E8A8E3A,BECD2657,3F528D2D,BF13C468 375802BC,B89ECAAC,3942B75C,B997E083,"
     "3A01540A,BA9706D9,3B3D03F9,BBF241E7,3CA89C53,BD89EFBB,3EA51A64,3ED8773 3A4132D4,BB467541,38120B17,"
     "3DAAA9C6,3ED67F1D 2A3FBE8E 33B172 33B17218", "3FD019C7E69D5604,BFCCA7FB4439356,BFCA59F730048F0D,"
     "3FC360DD7FC45504,3FC77014E6D492BD,BFC2689154603E9C,BF76C4558CF2E7B7,BF8ED0BEF852D6E5,3FAFF2B25E6F9139,"
     "BFAE8F82F4FBDD6F,3FAB5E05EBB950A1,BFAD9412A8B9833F,3FB0109CBAE48EA6,BFB1185DAA04697A,3FB248077D2237A2,"
     "BFB3B1565EAC26C4,3FB556C264C09A83,BFB748C977701E37,3FB9A01D659B7C79,BFBC8066D5E50A7F,3FC010B36D92FFFB,"
     "BFC2703A1E3D7721,3FC5B40CB0F75CED,BFCA8B9C17A96DD4,3FD151322AC7E055,BFD9A4D55BEAB325 BFE2788CFC6FB619 "
     "3FEA51A6625307D1 BE316F03F86A729B,3E5F40918C971EB6,BE7A8B0B0C2FA6D2,3E8ECA2E62B838C7,BE9F21805CB3FCA6,"
     "3EAFFCC7CD023A9B,BEC10A7A3CAD75A4,3ED25748353BEE48,BEE3CCBD584CCE2,3EF58118A3777172,BF078DDF04C25FBE,"
     "3F1A12786340C7BA,BF2D3FD4DA985C5B,3F40B36B00790ED9,BF538AC5C2C2396C,3F67ADD6EAC18486,BF7E404FC218D263,"
     "3F951322AC7D97DC,BFB13E001A5575FB 3FDB0EE6072093CE 3FD4A34CC4A60FA4 3FCD67F1C864BEB5 BC665B5A 7F7"),
    PTX__F0("atan", "1a=abs x;p=gt a 1;{t=rcpa a;t=sel t a p;|t:mov a;if p;t=reciprocal a;c=eq a I;t=sel 0 t "
     "c;end;}v=arctan t;w=half_pi v;v=sel w v p;r=cps x v;"),
    PTX__F("tanh", "1a=abs x;{|c=lt a 0.56;r:mov a;if c;}z=mul x x;p=poly z $;p=mul p z;{p=fma p a a;e=mul a "
     "$;e=ex2a e;e=add e 1;e=rcpa e;e=fma e -2 1;c=lt a 1;r=sel p e c;|r=fma p a a;else;e=min a 20;e=add e e;"
     "p,t=half_exp e;e=ldx p t;e=add e 0.5;e=reciprocal e;e=sub 1 e;c=nan x x;r=sel x e c;end;}r=cps x r;",
     "B9BC036C,3B16DBCF,BC0233A8,3CB005EB,BD5CB144,3E0885F3,BEAAAA9E 4038AA3B",
     "BEF3E876,3F159FC4,BF2E838A,3F43464F,BF57D8C1,3F6D6D25,BF8226E2D2EF2543,3F9664F484A57FDF,"
     "BFABA1BA1B938434,3FC11111111102AA,BFD555555555554B"),
    /* Payne and Hanek: the fraction of |x| / (2 pi), |x| >= 2^16, in two words, high r and low s */
    PTX__F0("fraction", "{m=and x 0x7fffff;m=or m 0x800000;e=shr x 23;e=and e 255;e=iadd e -143;c=and e 64;"
     "c=ine c 0;a=isel 0x94fe13ab 0x517cc1 c;b=isel 0xe8fa9a6e 0xb727220a c;f=isel 0xe06db14a 0x94fe13ab c;"
     "g=isel 0xcc9e21c8 0xe8fa9a6e c;h=isel 0x20ff28b1 0xe06db14a c;c=and e 32;c=ine c 0;a=isel b a c;b=isel "
     "f b c;f=isel g f c;g=isel h g c;a=shf b a e;b=shf f b e;f=shf g f e;l=umul f m;k,l=unpair l;n=pair l 0;"
     "l=umad b m n;k,l=unpair l;r=imad a m l;s=mov k;|l,h=unpair x;m=and h 0xfffff;m=or m 0x100000;m=pair l "
     "m;e=shr h 20;e=and e 2047;e=iadd e -1012;i=shr e 6;e=and e 63;a=table i;i=iadd i 1;b=table i;i=iadd i "
     "1;c=table i;i=iadd i 1;d=table i;k=isub 63 e;a=qshl a e;l=qshr b 1;l=qshr l k;a=or a l;b=qshl b e;"
     "l=qshr c 1;l=qshr l k;b=or b l;c=qshl c e;l=qshr d 1;l=qshr l k;c=or c l;a=qmul a m;d=qhi b m;a=qadd a "
     "d;b=qmul b m;d=qhi c m;s=qadd b d;c=qlt s b;d=isel 1 0 c;d=pair d 0;r=qadd a d;}"),
    PTX__F("turn", "h,l=fraction x;{h=iadd h y;s=iadd h 0x40000000;s=shr s 31;h=pair l h;|y=pair 0 y;h=qadd "
     "h y;s=qadd h 0x4000000000000000;s=qshr s 63;s,k=unpair s;k=qshr l 63;}h=qshl h 1;{|h=or h k;l=qshl l 1;"
     "}v=q2f h;i=f2q v;h=qsub h i;w=q2f h;{|u=d2f l;u=mul u $;w=add w u;}w=mul w $;u=fma v $ w;r=fma v $ u;"
     "{n=and x 0x80000000;r=xor r n;|k,n=unpair x;n=and n 0x80000000;r=flip r n;}r=fma x 0 r;",
     "20490FDB 93BBBD2E 20490FDB", "3BF 3C0921FB54442D18 38A1A62633145C07 3C0921FB54442D18"),
};
#undef PTX__F0
#undef PTX__F

typedef struct ptx__evaluation {
    ptx_kernel *k;
    const char *site, *at, *numbers; /* of the call; in the text; of the next '$' */
    ptx_type type;                   /* f32 or f64 */
    ptx_val value[64];               /* letter - 'A' -> value */
    ptx_var var[64];
} ptx__evaluation;

static ptx_type ptx__letter_type(const ptx__evaluation *e, char letter) {
    static const char letters[] = "gDsubqd";
    static const uint8_t types[] = {PTX_F32, PTX_F64, PTX_S32, PTX_U32, PTX_B32, PTX_S64, PTX_U64};
    const char *at = letter ? strchr(letters, letter) : NULL;
    return letter == 'f' ? e->type : at ? (ptx_type)types[at - letters] : PTX_NONE;
}

static double ptx__float_of_bits(uint64_t bits, int single) {
    uint32_t low = (uint32_t)bits;
    double v;
    float f;
    memcpy(&v, &bits, sizeof v);
    memcpy(&f, &low, sizeof f);
    return single ? (double)f : v;
}

/* Parse a number or '$' of the text, as that type; PTX_NONE: as a float of the formula's type, or as u32. */
PTX__COLD ptx_val ptx__math_number(ptx__evaluation *e, ptx_type type) {
    const char *s = e->at;
    int single = e->type == PTX_F32, shift = single ? 32 : 64, negative = *s == '-', base = 10, is_float = 1;
    uint64_t bits = 0;
    double v = 0, tens = 0;
    s += negative;
    if (*s == '$') {
        for (s = e->numbers; *s > ','; s++)
            bits |= (uint64_t)(*s <= '9' ? *s - '0' : *s - '7') << (shift -= 4);
        e->numbers = s + 1;
        e->at += *s != ','; /* a comma: the next number is of the same '$' */
        v = ptx__float_of_bits(bits, single);
    } else if (*s >= 'A') {
        bits = *s == 'I' ? 0x7ff00000 : *s == 'N' ? 0x7ff80000 : single ? 0x41680000 : 0x43380000;
        v = ptx__float_of_bits(bits << 32, 0);
        e->at = s + 1;
    } else {
        if (s[0] == '0' && s[1] == 'x') base = 16, s += 2;
        for (;; s++) {
            int digit = *s <= '9' ? *s - '0' : *s >= 'a' ? *s - 'W' : base;
            if (*s == '.') tens = 1;
            else if (digit < 0 || digit >= base)
                break;
            else
                v = v * base + digit, tens *= 10;
        }
        is_float = tens > 0;
        if (is_float) v /= tens;
        e->at = s;
    }
    if (negative) v = -v;
    if (type == PTX_NONE && is_float) type = e->type;
    if (type == PTX_F32) return ptx_f32(v);
    if (type == PTX_F64) return ptx_f64(v);
    if (type == PTX_U64) return ptx_u64((uint64_t)v);
    return type == PTX_S32 ? ptx_s32((int64_t)v) : ptx_u32((uint32_t)(int64_t)v);
}

/* Move a typed immediate to a register, for an instruction that takes no immediate. */
static ptx_val ptx__to_register(ptx_kernel *k, const char *site, ptx_val v) {
    return ptx__is_register(v) || ptx_type_of(v) == PTX_NONE ? v : ptx_op1_(k, site, PTX_MOV, 0, v);
}

PTX__COLD ptx_val ptx__math_operand(ptx__evaluation *e, ptx_type type) {
    char c = *e->at;
    ptx_val v;
    if (c == '{') {
        e->at = e->type == PTX_F32 ? e->at + 1 : strchr(e->at, '|') + 1;
        v = ptx__math_operand(e, type);
        e->at = strchr(e->at, '}') + 1;
        return v;
    }
    if (c < 'a') return ptx__math_number(e, type);
    e->at++;
    v = e->var[c - 'A'].cell.handle ? ptx_get_(e->k, e->site, e->var[c - 'A']) : e->value[c - 'A'];
    if (type != e->type && ptx_type_of(v) == e->type) v = ptx__to_register(e->k, e->site, v); /* as bits */
    if (type != PTX_NONE && ptx__is_register(v) && ptx_type_bytes(type) == ptx_type_bytes(ptx_type_of(v)))
        v = ptx_as(v, type);
    return v;
}

static void ptx__evaluate(ptx_kernel *k, const char *site, const char *text, ptx_type type, uint32_t n,
                          const ptx_val *args, ptx_val out[3]);

/* The text of a formula, followed by its numbers; "" if there is no such formula. */
static const char *ptx__formula_text(const char *name, size_t length) {
    uint32_t i;
    for (i = 0; i < sizeof ptx__formulas / sizeof *ptx__formulas; i++)
        if (!strncmp(ptx__formulas[i], name, length) && !ptx__formulas[i][length])
            return ptx__formulas[i] + length + 1;
    return "";
}

/* Load word i of a table in the module: 64 zero bits, then those of 1 / pi from the one of weight 1/2 on. */
static ptx_val ptx__math_table(ptx__evaluation *e, ptx_val i) {
    static const char name[] = "ptxgen_reciprocal_of_pi";
    static const uint64_t words[20] = {
        0x0000000000000000, 0x517cc1b727220a94, 0xfe13abe8fa9a6ee0, 0x6db14acc9e21c820,
        0xff28b1d5ef5de2b0, 0xdb92371d2126e970, 0x0324977504e8c90e, 0x7f0ef58e5894d39f,
        0x74411afa975da242, 0x74ce38135a2fbf20, 0x9cc8eb1cc1a99cfa, 0x4e422fc5defc941d,
        0x8ffc4bffef02cc07, 0xf79788c5ad05368f, 0xb69b3f6793e584db, 0xa7a31fb34f2ff516,
        0xba93dd63f5f2f8bd, 0x9e839cfbc5294975, 0x35fdafd88fc6ae84, 0x2b0198237e3db5d5};
    static const ptx_variable_desc desc = {name, PTX_CONST, PTX_U64, 20, 0, words, 0};
    ptx_module *m = ptx_kernel_module(e->k);
    const ptx__named *existing = ptx__find_name(m, PTX__OF_LIBRARY, name);
    ptx_symbol table;
    table.index = existing ? existing->what : 0;
    table.owner = m->owner;
    if (!existing) table = ptx__library_variable(m, e->site, &desc);
    return ptx_ld_(e->k, e->site, PTX_U64,
                   ptx_elem_(e->k, e->site, PTX_U64, ptx_address_(e->k, e->site, table), ptx_as(i, PTX_U32)));
}

/* Parse and record one operation with its operands, up to the ';'. out: its results. */
PTX__COLD void ptx__math_operation(ptx__evaluation *e, ptx_val out[3]) {
    const char *name = e->at;
    const ptx__formula_op *op = ptx__formula_ops,
                          *end = ptx__formula_ops + sizeof ptx__formula_ops / sizeof *ptx__formula_ops;
    ptx_val v[8];
    ptx_type type;
    uint32_t n = 0;
    size_t length = 0;
    int poly;
    while (name[length] != ' ' && name[length] != ';') length++;
    while (op < end && (strncmp(op->name, name, length) || op->name[length])) op++;
    poly = length == 4 && !strncmp(name, "poly", 4);
    type = ptx__letter_type(e, op < end ? op->operand : poly ? 'f' : '.');
    for (e->at += length; *e->at != ';' && n < 8;) {
        e->at += *e->at == ' ';
        v[n] = ptx__math_operand(e, n && type == PTX_U64 && *name == 'q' && name[1] == 's' ? PTX_U32 : type);
        n++;
        if (poly && n == 3) v[1] = ptx_op3_(e->k, e->site, PTX_FMA, PTX_RN, v[1], v[0], v[--n]);
    }
    if (op < end)
        ptx_opn_(e->k, e->site, (ptx_op_id)op->op, op->mods, ptx__letter_type(e, op->result),
                 op->result ? type : PTX_NONE, n, v, 1, out);
    else if (poly || !strncmp(name, "mov", length))
        out[0] = v[n - 1];
    else if (!strncmp(name, "pair", length))
        out[0] = ptx_pack_(e->k, e->site, PTX_B64, 2, v);
    else if (!strncmp(name, "table", length))
        out[0] = ptx__math_table(e, v[0]);
    else if (!strncmp(name, "unpair", length))
        ptx_unpack_(e->k, e->site, PTX_B32, 2, v[0], out);
    else
        ptx__evaluate(e->k, e->site, ptx__formula_text(name, length), e->type, n, v, out);
}

static void ptx__math_assign(ptx__evaluation *e, int i, int variable, ptx_val v) {
    if (e->var[i].cell.handle) {
        if (ptx__is_register(v)) v = ptx_as(v, ptx_type_of(e->var[i].cell));
        ptx_set_(e->k, e->site, e->var[i], v);
    } else if (variable)
        e->var[i] = ptx_var_new_(e->k, e->site, v);
    else
        e->value[i] = v;
}

PTX__COLD void ptx__evaluate(ptx_kernel *k, const char *site, const char *text, ptx_type type, uint32_t n,
                             const ptx_val *args, ptx_val out[3]) {
    static const ptx__evaluation empty = PTX_ZERO;
    static const char letters[] = "xyzwvup";
    ptx__evaluation e = empty;
    ptx_val result[3];
    uint32_t i;
    e.k = k, e.site = site, e.type = type, e.at = text + strspn(text, "!~123");
    e.numbers = text + strlen(text) + 1;
    if (type == PTX_F64) e.numbers += strlen(e.numbers) + 1;
    for (i = 0; i < n; i++) e.value[letters[i] - 'A'] = args[i];
    for (; *e.at; e.at++) { /* e.at: at a statement, then at its ';' */
        const char *s = e.at;
        if (*s == '{' || *s == '|' || *s == '}') { /* skip those of the other type */
            if (*s == '|' || (*s == '{' && type == PTX_F64)) e.at = strchr(s, *s == '|' ? '}' : '|');
        } else if (s[1] == '=' || s[1] == ':' || s[1] == ',') {
            for (i = 0; s[2 * i + 1] == ',';) i++;
            e.at += 2 * i + 2;
            ptx__math_operation(&e, result);
            do ptx__math_assign(&e, s[2 * i] - 'A', s[2 * i + 1] == ':', result[i]);
            while (i--);
        } else if (s[0] == 'i') {
            e.at += 3;
            ptx_if_(k, site, ptx__math_operand(&e, PTX_NONE));
        } else {
            e.at += s[1] == 'l' ? 4 : 3;
            (s[1] == 'l' ? ptx_else_ : ptx_end_)(k, site);
        }
    }
    e.at = "r";
    out[0] = ptx__math_operand(&e, type);
    for (i = 1; i < 3; i++) {
        e.at = i == 1 ? "s" : "q";
        if (e.value[*e.at - 'A'].handle || e.var[*e.at - 'A'].cell.handle)
            out[i] = ptx__math_operand(&e, PTX_NONE);
    }
}

/* Evaluate a formula without checking its operands. Returns its first result. */
static ptx_val ptx__evaluate_formula(ptx_kernel *k, const char *site, const char *name, ptx_type type,
                                     uint32_t n, const ptx_val *v) {
    ptx_val out[3];
    ptx_module *m = ptx_kernel_module(k);
    if (!m || ptx_get_error(m)->code) return ptx__none();
    ptx__evaluate(k, site, ptx__formula_text(name, strlen(name)), type, n, v, out);
    return out[0];
}

/* The module's function for a formula, made when it is first called. */
PTX__COLD ptx_kernel *ptx__formula_function(ptx_module *m, const char *site, const char *name, ptx_type type,
                                            uint32_t n, const ptx_val *v) {
    char full[48], letter[2] = {0, 0};
    ptx_val operands[4];
    const ptx__named *existing;
    ptx_kernel *f;
    uint32_t i;
    snprintf(full, sizeof full, "ptxgen_%s_%s", name, ptx_type_name(type));
    existing = ptx__find_name(m, PTX__OF_LIBRARY, full);
    if (existing) return m->kernels.at[existing->what];
    f = ptx_func_(m, site, full, type);
    if (f) ptx__add_name(m, PTX__OF_LIBRARY, f->name, f->index);
    for (i = 0; i < n; i++) {
        letter[0] = "xyzw"[i];
        operands[i] = ptx_param_(f, site, letter, ptx_type_of(v[i]), PTX_GENERIC);
    }
    ptx_return_(f, site, ptx__evaluate_formula(f, site, name, type, n, operands));
    return f;
}

/* Check the operands and evaluate the formula that a caller names. */
static void ptx__math_call(ptx_kernel *k, const char *site, const char *name, uint32_t n, const ptx_val *v,
                           ptx_val out[3]) {
    ptx_module *m = ptx_kernel_module(k);
    ptx_type type = PTX_NONE;
    const char *text = ptx__formula_text(name, strlen(name));
    uint32_t i, takes = (uint32_t)text[*text == '!' || *text == '~'] - '0';
    if (!m || ptx_get_error(m)->code) return;
    if (takes - 1 > 2 || n != takes) {
        if (takes - 1 > 2)
            ptx_fail(m, PTX_E_FORM, site, "ptx_%s does not exist", name);
        else
            ptx_fail(m, PTX_E_ARGUMENT, site, "ptx_%s: %u operands, must be %u", name, (unsigned)n,
                     (unsigned)takes);
        return;
    }
    for (i = 0; i < n; i++) {
        ptx_type t = ptx_type_of(v[i]);
        if (!i) type = t;
        if (t != type || (t != PTX_F32 && t != PTX_F64)) {
            int known = i && (type == PTX_F32 || type == PTX_F64);
            ptx_fail(m, PTX_E_TYPE, site,
                     "ptx_%s: operand %u is %s, needs %s; %s", name, i + 1,
                     ptx__describe(ptx__read_handle(k, v[i])), known ? ptx_type_name(type) : "f32 or f64",
                     ptx__is_register(v[i])         ? "ptx_cvt converts, ptx_as reads the same bits"
                     : known && type == PTX_F64 ? "write ptx_f64(number)"
                                                : "write ptx_f32(number)");
            return;
        }
    }
    if (*text == '!')
        out[0] = ptx_call_(k, site, ptx__formula_function(m, site, name, type, n, v), n, v);
    else if (*text == '~' && type != PTX_F32)
        ptx_fail(m, PTX_E_FORM, site, "ptx_%s does not exist for %s", name, ptx_type_name(type));
    else
        ptx__evaluate(k, site, text, type, n, v, out);
}

PTXGEN_API ptx_val ptx_math_(ptx_kernel *k, const char *site, const char *name, uint32_t n, ptx_val x,
                             ptx_val y, ptx_val z) {
    ptx_val v[3], out[3];
    v[0] = x, v[1] = y, v[2] = z;
    out[0] = ptx_imm(0);
    ptx__math_call(k, site, name ? name : "NULL", n, v, out);
    return out[0];
}
PTXGEN_API void ptx_sincos_(ptx_kernel *k, const char *site, ptx_val x, ptx_val *sine, ptx_val *cosine) {
    ptx_val out[3];
    if (!sine || !cosine) {
        ptx_fail(ptx_kernel_module(k), PTX_E_ARGUMENT, site, "ptx_sincos: a pointer to a result is NULL");
        return;
    }
    out[0] = out[1] = ptx_imm(0);
    ptx__math_call(k, site, "sincos", 1, &x, out);
    *sine = out[0];
    *cosine = ptx_as(out[1], ptx_type_of(out[0]));
}

/* -- vectors, random numbers, noise, colour -- */

static ptx_val ptx__times(ptx_kernel *k, const char *site, ptx_val a, ptx_val b) {
    return ptx_op2_(k, site, PTX_MUL, PTX_RN, a, b);
}
static ptx_val ptx__times_plus(ptx_kernel *k, const char *site, ptx_val a, ptx_val b, ptx_val c) {
    return ptx_op3_(k, site, PTX_FMA, PTX_RN, a, b, c);
}

/* Check the arguments of a vector function. Returns n, the dimensions, or 0 after an error: then the results
   at out, if there are any, are set to "no value". */
static uint32_t ptx__check_vectors(ptx_kernel *k, const char *site, const char *name, int arrays, uint32_t n,
                                   uint32_t least, uint32_t most, ptx_val *out, uint32_t results) {
    ptx_module *m = ptx_kernel_module(k);
    if (!arrays) ptx_fail(m, PTX_E_ARGUMENT, site, "%s: an array is NULL", name);
    else if (n < least || n > most)
        ptx_fail(m, PTX_E_ARGUMENT, site, "%s: %u dimensions, must be %u to %u", name, (unsigned)n,
                 (unsigned)least, (unsigned)most);
    else if (k)
        return n;
    while (out && n <= most && results--) out[results] = ptx__none();
    return 0;
}

PTXGEN_API ptx_val ptx_dot_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b) {
    ptx_val r;
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_dot", a && b, n, 2, 4, NULL, 0)) return ptx__none();
    r = ptx__times(k, site, a[0], b[0]);
    for (i = 1; i < n; i++) r = ptx__times_plus(k, site, a[i], b[i], r);
    return r;
}

PTX__COLD_API void ptx_cross_(ptx_kernel *k, const char *site, const ptx_val *a, const ptx_val *b,
                              ptx_val *out) {
    ptx_val r[3];
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_cross", a && b && out, 3, 3, 3, out, 3)) return;
    for (i = 0; i < 3; i++) {
        uint32_t j = (i + 1) % 3, l = (i + 2) % 3;
        r[i] = ptx_op1_(k, site, PTX_NEG, 0, ptx__times(k, site, a[l], b[j]));
        r[i] = ptx__times_plus(k, site, a[j], b[l], r[i]);
    }
    memcpy(out, r, sizeof r);
}

PTXGEN_API ptx_val ptx_length_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a) {
    if (!ptx__check_vectors(k, site, "ptx_length", a != NULL, n, 2, 4, NULL, 0)) return ptx__none();
    return ptx_op1_(k, site, PTX_SQRT, 0, ptx_dot_(k, site, n, a, a));
}

PTX__COLD_API void ptx_normalize_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a,
                                  ptx_val *out) {
    ptx_val d;
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_normalize", a && out, n, 2, 4, out, n)) return;
    d = ptx_dot_(k, site, n, a, a);
    if (ptx_type_of(d) == PTX_F64)
        d = ptx_op1_(k, site, PTX_RCP, 0, ptx_op1_(k, site, PTX_SQRT, 0, d));
    else
        d = ptx_op1_(k, site, PTX_RSQRT, PTX_APPROX | PTX_FTZ, d);
    for (i = 0; i < n && i < 4; i++) out[i] = ptx__times(k, site, a[i], d);
}

PTX__COLD_API void ptx_reflect_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *v,
                                const ptx_val *normal, ptx_val *out) {
    ptx_val d;
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_reflect", v && normal && out, n, 2, 4, out, n)) return;
    d = ptx_dot_(k, site, n, v, normal);
    d = ptx_op1_(k, site, PTX_NEG, 0, ptx_op2_(k, site, PTX_ADD, PTX_RN, d, d));
    for (i = 0; i < n && i < 4; i++) out[i] = ptx__times_plus(k, site, d, normal[i], v[i]);
}

PTX__COLD_API void ptx_lerp_(ptx_kernel *k, const char *site, uint32_t n, const ptx_val *a, const ptx_val *b,
                             ptx_val t, ptx_val *out) {
    uint32_t i;
    n = ptx__check_vectors(k, site, "ptx_lerp", a && b && out, n, 2, 4, out, n);
    for (i = 0; i < n; i++) out[i] = ptx_math_(k, site, "mix", 3, a[i], b[i], t);
}

PTX__COLD_API void ptx_mat_mul_(ptx_kernel *k, const char *site, uint32_t n, uint32_t columns,
                                const ptx_val *a, const ptx_val *b, ptx_val *out) {
    ptx_val r[16];
    uint32_t i, j, l;
    n = ptx__check_vectors(k, site, "ptx_mat_mul", a && b && out, n, 3, 4, out, columns > 1 ? n * n : n);
    if (columns > 1) columns = n;
    for (i = 0; i < n; i++)
        for (j = 0; j < columns; j++) {
            ptx_val sum = ptx__times(k, site, a[i * n], b[j]);
            for (l = 1; l < n; l++) sum = ptx__times_plus(k, site, a[i * n + l], b[l * columns + j], sum);
            r[i * columns + j] = sum;
        }
    if (n) memcpy(out, r, n * columns * sizeof *r);
}

PTXGEN_API ptx_val ptx_pcg_(ptx_kernel *k, const char *site, ptx_val x) {
    return ptx_as(ptx__evaluate_formula(k, site, "pcg", PTX_F32, 1, &x), PTX_U32);
}

PTX__COLD_API void ptx_philox_(ptx_kernel *k, const char *site, const ptx_val *counter, const ptx_val *key,
                               ptx_val *out) {
    ptx_val c[4], a[2], b[2], keys[2];
    uint32_t round;
    if (!ptx__check_vectors(k, site, "ptx_philox", counter && key && out, 4, 4, 4, out, 4)) return;
    memcpy(c, counter, sizeof c);
    memcpy(keys, key, sizeof keys);
    c[0] = ptx__to_register(k, site, c[0]);
    c[2] = ptx__to_register(k, site, c[2]);
    for (round = 0; round < 10; round++) {
        ptx_val wide = ptx_op2_(k, site, PTX_MUL, PTX_WIDE, ptx_as(c[0], PTX_U32), ptx_u32(0xd2511f53u));
        ptx_unpack_(k, site, PTX_U32, 2, wide, a);
        wide = ptx_op2_(k, site, PTX_MUL, PTX_WIDE, ptx_as(c[2], PTX_U32), ptx_u32(0xcd9e8d57u));
        ptx_unpack_(k, site, PTX_U32, 2, wide, b);
        c[0] = ptx_op4_(k, site, PTX_LOP3, 0, b[1], c[1], keys[0], ptx_imm(0x96)); /* exclusive or of three */
        c[2] = ptx_op4_(k, site, PTX_LOP3, 0, a[1], c[3], keys[1], ptx_imm(0x96));
        c[1] = b[0];
        c[3] = a[0];
        if (round == 9) break;
        keys[0] = ptx_op2_(k, site, PTX_ADD, 0, keys[0], ptx_u32(0x9e3779b9u));
        keys[1] = ptx_op2_(k, site, PTX_ADD, 0, keys[1], ptx_u32(0xbb67ae85u));
    }
    for (round = 0; round < 4; round++) out[round] = ptx_as(c[round], PTX_U32);
}

PTXGEN_API ptx_val ptx_unit_(ptx_kernel *k, const char *site, ptx_val x) {
    return ptx__evaluate_formula(k, site, "unit", PTX_F32, 1, &x);
}

PTX__COLD_API ptx_val ptx_noise_(ptx_kernel *k, const char *site, const char *name, uint32_t n,
                                 const ptx_val *p, ptx_val seed) {
    ptx_val v[4];
    char full[32];
    uint32_t i;
    snprintf(full, sizeof full, "ptx_%s", name);
    if (!ptx__check_vectors(k, site, full, p != NULL, n, 2, 3, NULL, 0)) return ptx__none();
    for (i = 0; i < n; i++) v[i] = p[i];
    v[n] = seed;
    for (i = 0; i <= n; i++)
        if (ptx_type_of(v[i]) != (i < n ? PTX_F32 : PTX_U32)) {
            ptx_fail(k->m, PTX_E_TYPE, site, "ptx_%s: %s is %s, must be %s", name,
                     i < n ? "a coordinate" : "the seed", ptx_type_name(ptx_type_of(v[i])),
                     i < n ? "f32" : "u32");
            return ptx__none();
        }
    snprintf(full, sizeof full, "%s%u", name, (unsigned)n);
    if (n == 2) return ptx__evaluate_formula(k, site, full, PTX_F32, 3, v);
    return ptx_call_(k, site, ptx__formula_function(k->m, site, full, PTX_F32, 4, v), 4, v);
}

PTX__COLD_API ptx_val ptx_pack_rgba8_(ptx_kernel *k, const char *site, const ptx_val *rgba) {
    ptx_val v, packed = ptx__none();
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_pack_rgba8", rgba != NULL, 4, 4, 4, NULL, 0)) return packed;
    for (i = 0; i < 4; i++) {
        v = ptx_op2_(k, site, PTX_MUL, PTX_RN,
                     ptx_op2_(k, site, PTX_ADD, PTX_RN | PTX_SAT, rgba[i], ptx_f32(0)), ptx_f32(255));
        v = ptx_cvt_(k, site, PTX_RNI, PTX_U32, v);
        packed = i ? ptx_op4_(k, site, PTX_BFI, 0, v, packed, ptx_imm(8 * i), ptx_imm(8)) : v;
    }
    return ptx_as(packed, PTX_U32);
}
PTX__COLD_API void ptx_unpack_rgba8_(ptx_kernel *k, const char *site, ptx_val packed, ptx_val *rgba) {
    uint32_t i;
    if (!ptx__check_vectors(k, site, "ptx_unpack_rgba8", rgba != NULL, 4, 4, 4, rgba, 4)) return;
    packed = ptx__to_register(k, site, packed);
    for (i = 0; i < 4; i++) {
        ptx_val v = ptx_op3_(k, site, PTX_BFE, 0, ptx_as(packed, PTX_U32), ptx_imm(8 * i), ptx_imm(8));
        rgba[i] = ptx__times(k, site, ptx_cvt_(k, site, 0, PTX_F32, v), ptx_f32(1 / 255.0));
    }
}
PTXGEN_API ptx_val ptx_pack_half_(ptx_kernel *k, const char *site, ptx_val low, ptx_val high) {
    ptx_val parts[2];
    parts[0] = ptx_cvt_(k, site, 0, PTX_F16, ptx__to_register(k, site, low));
    parts[1] = ptx_cvt_(k, site, 0, PTX_F16, ptx__to_register(k, site, high));
    return ptx_pack_(k, site, PTX_B32, 2, parts);
}
PTXGEN_API void ptx_unpack_half_(ptx_kernel *k, const char *site, ptx_val packed, ptx_val *out) {
    ptx_val parts[2];
    if (!ptx__check_vectors(k, site, "ptx_unpack_half", out != NULL, 4, 4, 4, out, 2)) return;
    ptx_unpack_(k, site, PTX_F16, 2, ptx__to_register(k, site, packed), parts);
    out[0] = ptx_cvt_(k, site, 0, PTX_F32, parts[0]);
    out[1] = ptx_cvt_(k, site, 0, PTX_F32, parts[1]);
}

#endif /* PTXGEN_NO_MATH */

#ifdef __cplusplus
}
#endif
PTX__END_O1
#endif /* PTXGEN_IMPLEMENTATION */

/* ---- [LICENSE] --------------------------------------------------------------------------------------------

   This software is available under two licenses; choose the one you prefer.

   A - MIT License. Copyright (c) 2026 the ptxgen authors.
   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction, including
   without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
   copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
   following conditions: The above copyright notice and this permission notice shall be included in all copies
   or substantial portions of the Software.
   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE
   WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
   AUTHORS OR
   COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
   TORT OR
   OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
   SOFTWARE.

   B - Public domain (www.unlicense.org). This is free and unencumbered software released into the public
   domain. Anyone is free to copy, modify, publish, use, compile, sell, or distribute this software, either in
   source code form or as a compiled binary, for any purpose, commercial or non-commercial, and by any means.
   THE SOFTWARE IS PROVIDED "AS IS",
   WITHOUT WARRANTY OF ANY KIND, as above. */
