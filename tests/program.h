/* program.h - random programs from a string of bytes: the builder is driven by it, choice by choice, and
 * every choice is recorded, so that an interpreter here can say what the program computes.
 *
 * What a program is made of: instructions of the whole catalogue (forms/catalogue.h), variables, if, loops,
 * switches, labels and branches, guards, local and shared memory, atomics, warp operations, a call. Some
 * bytes choose what is wrong: a type that does not fit, a value of another scope, a scope left open. So a
 * program ends in a located error, or in text whose results the interpreter knows.
 *
 * Threads are interpreted together, one bit each in a mask. */
#ifndef PROGRAM_H
#define PROGRAM_H
#include "forms/catalogue.h"

enum {
    THREADS = 64,
    NODES = 600,
    VALUES = 500,
    VARS = 32,
    LABELS = 16,
    DEPTH = 6,
    OUTS = 8,
    LOCALS = 8,
    STEPS = 40000
};
typedef uint64_t lanes; /* a bit for each thread */

typedef enum node_kind {
    N_SHOT, /* an instruction of the catalogue */
    N_INPUT,
    N_LOAD,
    N_VAR,
    N_SET,
    N_GET,
    N_IF,
    N_LOOP,
    N_WHILE,
    N_FOR,
    N_JUMP, /* break, continue */
    N_BACK, /* a label that is branched back to */
    N_PLACE,
    N_BRANCH,
    N_SWITCH,
    N_LEAVE,
    N_LOCAL_ST,
    N_LOCAL_LD,
    N_SHARED, /* write, barrier, read of another thread's, barrier */
    N_SHUFFLE,
    N_VOTE,
    N_REDUX,
    N_ATOM,
    N_COUNT, /* a reduction to a counter of the grid */
    N_CALL,
    N_STORE
} node_kind;

typedef struct node {
    uint8_t kind, what, arg_count, width;
    int guard; /* a predicate's value, or -1 */
    bool inverted;
    int args[5]; /* values, or -1 - an immediate */
    uint64_t constant[5];
    int result, var, label;
    int middle[4], end; /* structures: else or cases, and what closes it */
    unsigned shot;
} node;

typedef struct value {
    ptx_val v;
    uint8_t width;
} value;

typedef struct variable {
    ptx_var v;
    uint8_t width;
} variable;

typedef struct program {
    const uint8_t *bytes;
    size_t size, at;
    ptx_module *m;
    ptx_kernel *k, *function;
    ptx_val in, out, scratch, counters, tid, local, shared;
    node nodes[NODES];
    int count;
    value values[VALUES]; /* all ever made */
    int value_count;
    int visible[VALUES], visible_count;
    variable vars[VARS];
    int var_count, var_first[DEPTH + 2];
    ptx_label labels[LABELS];
    int label_count, label_sees[LABELS], label_vars[LABELS];
    bool label_used[LABELS];
    int depth, loops;
    bool left;   /* some threads may have ended */
    bool astray; /* something was done that the interpreter does not follow */
    bool wild;   /* an error is likely: something was chosen wrong on purpose */
    /* the interpreter's */
    uint64_t data[VALUES][THREADS], cells[VARS][THREADS], locals[LOCALS][THREADS], scratch_data[THREADS];
    uint32_t counter_data[4];
    lanes known[VALUES], vague[VALUES], known_var[VARS], vague_var[VARS], vague_local[LOCALS], vague_scratch;
    lanes active, pending[LABELS], broken[DEPTH + 4], continued[DEPTH + 4], vague_counters;
    int loop_level, steps;
    uint64_t stored[THREADS][OUTS];
    lanes vague_out[OUTS];
    const char *unsound; /* what the verifier should have refused */
    bool lost;           /* control depends on what is not exact, or it takes too long */
} program;

/* --- choices ---------------------------------------------------------------------------------- */

static unsigned byte_of(program *p) { return p->at < p->size ? p->bytes[p->at++] : 0; }
static unsigned choice(program *p, unsigned n) { return byte_of(p) % n; }
static bool rarely(program *p) { return byte_of(p) == 251; }

static node *add_node(program *p, node_kind kind) {
    node *n = &p->nodes[p->count < NODES - 1 ? p->count++ : p->count];
    memset(n, 0, sizeof *n);
    n->kind = (uint8_t)kind;
    n->guard = n->result = n->var = n->label = n->end = -1;
    return n;
}

static int add_value(program *p, ptx_val v, unsigned width) {
    if (p->value_count == VALUES) return VALUES - 1;
    p->values[p->value_count].v = v;
    p->values[p->value_count].width = (uint8_t)width;
    p->visible[p->visible_count++] = p->value_count;
    return p->value_count++;
}

/* A value of that width that can be seen from here; any value at all when the bytes say so; -1: none. */
static int pick(program *p, unsigned width) {
    unsigned start = byte_of(p);
    if (p->value_count && rarely(p)) { /* of another scope, perhaps */
        int at = (int)(start * 7u % (unsigned)p->value_count);
        if (p->values[at].width == width) return at;
        if (start & 1) {
            p->wild = true;
            return at;
        }
    }
    for (int i = 0; i < p->visible_count; i++) { /* late ones first */
        int at = p->visible[p->visible_count - 1 - (int)((start + (unsigned)i) % (unsigned)p->visible_count)];
        if (p->values[at].width == width) return at;
    }
    return -1;
}

static ptx_type bits_of(unsigned width) {
    return width == 1 ? PTX_PRED : width == 16 ? PTX_B16 : width == 32 ? PTX_B32 : PTX_B64;
}

static ptx_val as_bits(program *p, int at, ptx_type type) {
    ptx_val v = p->values[at].v;
    return p->values[at].width == 1 && type == PTX_PRED ? v : ptx_as(v, type);
}

/* Barriers and warp operations mostly where all threads come by. */
static bool together(program *p) {
    return (p->depth == 0 && p->label_count == 0 && !p->left) || choice(p, 24) == 0;
}

/* --- statements ------------------------------------------------------------------------------- */

static void statements(program *p, int budget);

static void set_guard(program *p, node *n) {
    int g = choice(p, 2) ? pick(p, 1) : -1;
    if (g < 0) return;
    n->guard = g;
    n->inverted = choice(p, 2);
    ptx_guard(p->k, n->inverted ? ptx_inv(p->values[g].v) : p->values[g].v);
}

static void do_shot(program *p) {
    unsigned which = (byte_of(p) << 8 | byte_of(p)) % shot_count;
    const shot *s = &shots[which];
    const char *sig = s->b.f.sig + 2;
    node n;
    ptx_val operands[8], out[2];
    if (!strncmp(s->name, "cvt.rs", 6) || s->b.f.good || *s->b.f.sig == 'g' || *s->b.f.sig == 'c'
        || strchr(sig, 'c'))
        return;
    memset(&n, 0, sizeof n);
    memset(out, 0, sizeof out);
    for (int i = 0; sig[i]; i++) {
        bool plain = strchr("whxi", sig[i]) != NULL && strncmp(s->name, "cvt", 3) != 0
                     && ((*s->name != 'v' && s->type < PTX_U16X2) || choice(p, 16) == 0);
        n.args[i] = plain && choice(p, 8) == 0 ? -2 : pick(p, (unsigned)width_of(sig[i]));
        if (n.args[i] == -1) return;
        n.constant[i] = n.args[i] == -2 ? byte_of(p) & 63 : 0;
    }
    for (int i = 0; i < s->b.arg_count; i++) {
        const char *a = s->b.args[i];
        bool opposite = *a == '!';
        if ((*a >= '0' && *a <= '9') || *a == '-') {
            operands[i] = ptx_imm(rarely(p) ? (int64_t)byte_of(p) * 77 - 300 : strtoll(a, NULL, 0));
            if (operands[i].handle != ptx_imm(strtoll(a, NULL, 0)).handle) return;
            continue;
        }
        int from = (int)(strchr("ABCE", a[opposite]) - "ABCE");
        if (n.args[from] == -2)
            operands[i] = ptx_imm((int64_t)n.constant[from]);
        else {
            unsigned width = (unsigned)width_of(sig[from]);
            operands[i] = as_bits(p, n.args[from], bits_of(width));
            if (opposite) operands[i] = ptx_inv(operands[i]);
            if (rarely(p)) { /* typed, which may be the wrong type */
                p->wild = true;
                operands[i] = ptx_as(operands[i], (ptx_type)(byte_of(p) % (PTX__TYPE_COUNT + 2)));
            }
        }
    }
    ptx_mods mods = s->mods;
    if (rarely(p)) {
        p->wild = true;
        mods ^= (ptx_mods)1 << byte_of(p) % 64;
        if (mods != s->mods) return; /* emitted below only with what the evaluator means */
    }
    emit_shot(p->k, s, operands, (unsigned)s->b.arg_count, out);
    node *to = add_node(p, N_SHOT);
    memcpy(to->args, n.args, sizeof n.args);
    memcpy(to->constant, n.constant, sizeof n.constant);
    to->shot = which;
    to->arg_count = (uint8_t)strlen(sig);
    to->width = (uint8_t)width_of(*s->b.f.sig);
    to->result = add_value(p, out[s->b.wanted], to->width);
}

/* Nothing that means anything: what the builder must refuse, or take and print. */
static void do_wrong(program *p) {
    ptx_val v[8], out[8];
    unsigned n = choice(p, 6), results = choice(p, 3);
    p->wild = p->astray = true;
    memset(v, 0, sizeof v);
    memset(out, 0, sizeof out);
    for (unsigned i = 0; i < n; i++) {
        switch (choice(p, 6)) {
        case 0: v[i] = ptx_imm((int64_t)((uint64_t)byte_of(p) << byte_of(p) % 57)); break;
        case 1: v[i] = ptx_f32((double)byte_of(p)); break;
        case 2: v[i] = p->out; break;
        case 3: v[i] = ptx_as(p->tid, (ptx_type)choice(p, PTX__TYPE_COUNT + 3)); break;
        case 4: v[i] = ptx_off(p->shared, (int64_t)byte_of(p) << byte_of(p) % 40); break;
        default: {
            int at = pick(p, 1u << choice(p, 7));
            if (at >= 0) v[i] = p->values[at].v;
        }
        }
    }
    ptx_mods mods = 0;
    for (unsigned i = choice(p, 4); i > 0; i--)
        mods |= (ptx_mods)1 << byte_of(p) % 62 | (ptx_mods)choice(p, 3) << 62;
    switch (choice(p, 14)) {
    case 0: ptx_end(p->k); break;
    case 1: ptx_else(p->k); break;
    case 2: ptx_break(p->k); break;
    case 3: ptx_continue(p->k); break;
    case 4: ptx_place(p->k, p->labels[choice(p, LABELS)]); break;
    case 5: ptx_bra(p->k, p->labels[choice(p, LABELS)]); break;
    case 6: ptx_if(p->k, v[0]); break;
    case 7:
        ptx_st_vec(p->k, (ptx_type)choice(p, PTX__TYPE_COUNT + 2), byte_of(p) % 9,
                   ptx_with(ptx_at(v[0], (int64_t)byte_of(p) - 99), mods), v);
        break;
    case 8:
        ptx_ld_vec(p->k, (ptx_type)choice(p, PTX__TYPE_COUNT + 2), byte_of(p) % 9,
                   ptx_with(ptx_at(v[0], (int64_t)byte_of(p) - 99), mods), out);
        break;
    case 9: ptx_set(p->k, p->vars[choice(p, VARS)].v, v[0]); break;
    case 10: ptx_raw(p->k, "// $0 $1 $2 $$;", n, v, 0, NULL, NULL); break;
    case 11: ptx_guard(p->k, v[0]); break;
    case 12: ptx_pack(p->k, (ptx_type)choice(p, PTX__TYPE_COUNT + 2), n, v); break;
    default:
        ptx_opn(p->k, (ptx_op_id)((byte_of(p) << 8 | byte_of(p)) % (PTX__OP_COUNT + 2)), mods,
                (ptx_type)choice(p, PTX__TYPE_COUNT + 2), (ptx_type)choice(p, PTX__TYPE_COUNT + 2), n, v,
                results, out);
    }
}

static void open_scope(program *p, int *values, int *labels, int *vars) {
    *values = p->visible_count;
    *labels = p->label_count;
    *vars = p->var_count;
    p->depth++;
}

static void place_label(program *p, int label) {
    if (!p->label_used[label]) return;
    p->label_used[label] = false;
    ptx_place(p->k, p->labels[label]);
    add_node(p, N_PLACE)->label = label;
    if (p->visible_count > p->label_sees[label]) p->visible_count = p->label_sees[label];
    if (p->var_count > p->label_vars[label]) p->var_count = p->label_vars[label];
}

static void close_scope(program *p, int values, int labels, int vars) {
    while (p->label_count > labels) place_label(p, --p->label_count);
    if (p->visible_count > values) p->visible_count = values;
    if (p->var_count > vars) p->var_count = vars;
    p->depth--;
}

static void do_if(program *p) {
    int g = pick(p, 1), values, labels, vars;
    if (g < 0 || p->depth == DEPTH) return;
    node *n = add_node(p, N_IF);
    int at = (int)(n - p->nodes);
    n->args[0] = g;
    n->inverted = choice(p, 2);
    ptx_if(p->k, n->inverted ? ptx_inv(p->values[g].v) : p->values[g].v);
    open_scope(p, &values, &labels, &vars);
    statements(p, 4);
    close_scope(p, values, labels, vars);
    p->nodes[at].middle[0] = -1;
    if (choice(p, 2)) {
        ptx_else(p->k);
        p->nodes[at].middle[0] = p->count;
        open_scope(p, &values, &labels, &vars);
        statements(p, 4);
        close_scope(p, values, labels, vars);
    }
    if (!rarely(p)) ptx_end(p->k);
    p->nodes[at].end = p->count;
}

static void do_switch(program *p) {
    int g = pick(p, 32), values, labels, vars;
    if (g < 0 || p->depth == DEPTH) return;
    ptx_val index = ptx_and(p->k, as_bits(p, g, PTX_B32), ptx_imm(3));
    node *n = add_node(p, N_SWITCH);
    int at = (int)(n - p->nodes), cases = 3;
    n->args[0] = g;
    ptx_switch(p->k, ptx_as(index, PTX_U32), (uint32_t)cases);
    for (int i = 0; i <= cases; i++) { /* the last is the default */
        if (i == cases)
            ptx_default(p->k);
        else
            ptx_case(p->k, (uint32_t)i);
        p->nodes[at].middle[i] = p->count;
        open_scope(p, &values, &labels, &vars);
        statements(p, 2);
        close_scope(p, values, labels, vars);
    }
    ptx_end(p->k);
    p->nodes[at].end = p->count;
}

static int new_var(program *p, ptx_val init, unsigned width, int from, uint64_t constant) {
    if (p->var_count == VARS) return -1;
    node *n = add_node(p, N_VAR);
    n->var = p->var_count;
    n->args[0] = from;
    n->constant[0] = constant;
    p->vars[p->var_count].v = ptx_var_new(p->k, init);
    p->vars[p->var_count].width = (uint8_t)width;
    return p->var_count++;
}

/* A loop of at most seven rounds: its own variable counts. */
static void do_loop(program *p) {
    int values, labels, vars, limit = pick(p, 32);
    if (limit < 0 || p->depth == DEPTH || p->var_count == VARS) return;
    bool same = choice(p, 2);
    unsigned rounds = 1 + choice(p, 5);
    ptx_val most = same ? ptx_u32(rounds) : ptx_and(p->k, as_bits(p, limit, PTX_U32), ptx_u32(3));
    if (!same) {
        most = ptx_op2(p->k, PTX_AND, 0, as_bits(p, limit, PTX_B32), ptx_imm(3));
        most = ptx_as(most, PTX_U32);
    }
    int counter = new_var(p, ptx_u32(0), 32, -2, 0);
    node *n = add_node(p, N_LOOP);
    int at = (int)(n - p->nodes);
    ptx_loop(p->k);
    open_scope(p, &values, &labels, &vars);
    p->loops++;
    ptx_val now = ptx_get(p->k, p->vars[counter].v);
    ptx_val go = ptx_setp(p->k, PTX_LT, now, most);
    n = add_node(p, N_WHILE);
    n->var = counter;
    n->args[0] = same ? -2 : limit;
    n->constant[0] = rounds;
    n->result = add_value(p, now, 32);
    ptx_while(p->k, go);
    ptx_set(p->k, p->vars[counter].v, ptx_add(p->k, now, ptx_imm(1)));
    statements(p, 4);
    p->loops--;
    close_scope(p, values, labels, vars);
    ptx_end(p->k);
    p->nodes[at].end = p->count;
}

static void do_for(program *p) {
    int values, labels, vars;
    if (p->depth == DEPTH) return;
    unsigned first = choice(p, 4), limit = choice(p, 8), step = 1 + choice(p, 3);
    ptx_val i = ptx_for(p->k, ptx_u32(first), ptx_u32(limit), ptx_u32(step));
    node *n = add_node(p, N_FOR);
    int at = (int)(n - p->nodes);
    n->constant[0] = first;
    n->constant[1] = limit;
    n->constant[2] = step;
    open_scope(p, &values, &labels, &vars);
    p->loops++;
    p->nodes[at].result = add_value(p, i, 32);
    statements(p, 4);
    p->loops--;
    close_scope(p, values, labels, vars);
    ptx_end(p->k);
    p->nodes[at].end = p->count;
}

/* do ... while by a branch back: `body` runs 1 to 4 times. */
static void do_back(program *p) {
    int values, labels, vars;
    if (p->depth == DEPTH || p->var_count == VARS) return;
    unsigned rounds = 1 + choice(p, 4);
    int counter = new_var(p, ptx_u32(0), 32, -2, 0);
    ptx_label top = ptx_label_new(p->k);
    node *n = add_node(p, N_BACK);
    int at = (int)(n - p->nodes);
    n->var = counter;
    n->constant[0] = rounds;
    ptx_place(p->k, top);
    open_scope(p, &values, &labels, &vars);
    int loops = p->loops;
    p->loops = 0; /* break and continue would leave a loop around this one */
    statements(p, 3);
    p->loops = loops;
    close_scope(p, values, labels, vars);
    ptx_val next = ptx_add(p->k, ptx_get(p->k, p->vars[counter].v), ptx_imm(1));
    ptx_set(p->k, p->vars[counter].v, next);
    ptx_guard(p->k, ptx_setp(p->k, PTX_LT, next, ptx_u32(rounds)));
    ptx_bra(p->k, top);
    p->nodes[at].end = p->count;
}

static void do_branch(program *p) {
    int label = -1;
    if (p->label_count && choice(p, 2)) label = (int)choice(p, (unsigned)p->label_count);
    if (label < 0) {
        if (p->label_count == LABELS) return;
        label = p->label_count++;
        p->labels[label] = ptx_label_new(p->k);
        p->label_sees[label] = p->visible_count;
        p->label_vars[label] = p->var_count;
        p->label_used[label] = false;
    }
    int g = pick(p, 1);
    if (g < 0 && !rarely(p)) {
        if (!p->label_used[label] && label == p->label_count - 1) p->label_count--;
        return;
    }
    node *n = add_node(p, N_BRANCH);
    n->label = label;
    if (g >= 0) {
        n->guard = g;
        n->inverted = choice(p, 2);
        ptx_guard(p->k, n->inverted ? ptx_inv(p->values[g].v) : p->values[g].v);
    }
    if (!p->label_used[label] || p->visible_count < p->label_sees[label])
        p->label_sees[label] = p->visible_count;
    if (!p->label_used[label] || p->var_count < p->label_vars[label]) p->label_vars[label] = p->var_count;
    p->label_used[label] = true;
    ptx_bra(p->k, p->labels[label]);
}

static void do_shared(program *p) {
    int v = pick(p, 32);
    unsigned distance = choice(p, THREADS);
    if (v < 0) return;
    ptx_val mine = ptx_ptr_add(p->k, p->shared, p->tid, 4);
    ptx_st(p->k, PTX_B32, ptx_at(mine, 0), as_bits(p, v, PTX_B32));
    ptx_bar_sync(p->k, ptx_imm(0));
    ptx_val other =
        ptx_and(p->k, ptx_as(ptx_add(p->k, p->tid, ptx_imm(distance)), PTX_B32), ptx_imm(THREADS - 1));
    ptx_val got = ptx_ld(p->k, PTX_U32, ptx_at(ptx_ptr_add(p->k, p->shared, ptx_as(other, PTX_U32), 4), 0));
    ptx_bar_sync(p->k, ptx_imm(0));
    node *n = add_node(p, N_SHARED);
    n->args[0] = v;
    n->constant[0] = distance;
    n->result = add_value(p, got, 32);
}

static void do_shuffle(program *p) {
    static const ptx_op_id ops[] = {PTX_SHFL_IDX, PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY};
    int v = pick(p, 32), by = pick(p, 32);
    unsigned what = choice(p, 4), constant = choice(p, 32);
    if (v < 0 || by < 0) return;
    bool fixed = choice(p, 2);
    ptx_val lane = fixed ? ptx_imm(constant) : as_bits(p, by, PTX_B32);
    ptx_val r =
        ptx_op4(p->k, ops[what], 0, as_bits(p, v, PTX_B32), lane, ptx_imm(what == 1 ? 0 : 31), ptx_imm(-1));
    node *n = add_node(p, N_SHUFFLE);
    n->what = (uint8_t)what;
    n->args[0] = v;
    n->args[1] = fixed ? -2 : by;
    n->constant[1] = constant;
    n->result = add_value(p, r, 32);
}

static void do_vote(program *p) {
    static const ptx_op_id ops[] = {PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_BALLOT};
    int v = pick(p, 1);
    unsigned what = choice(p, 3);
    if (v < 0) return;
    ptx_val r = ptx_op2(p->k, ops[what], 0, p->values[v].v, ptx_imm(-1));
    node *n = add_node(p, N_VOTE);
    n->what = (uint8_t)what;
    n->args[0] = v;
    n->result = add_value(p, r, what == 2 ? 32 : 1);
}

static void do_redux(program *p) {
    static const ptx_op_id ops[] = {PTX_REDUX_ADD, PTX_REDUX_MIN, PTX_REDUX_MAX,
                                    PTX_REDUX_AND, PTX_REDUX_OR,  PTX_REDUX_XOR};
    int v = pick(p, 32);
    unsigned what = choice(p, 6);
    if (v < 0) return;
    ptx_val r = ptx_op2(p->k, ops[what], 0, as_bits(p, v, what < 3 ? PTX_U32 : PTX_B32), ptx_imm(-1));
    node *n = add_node(p, N_REDUX);
    n->what = (uint8_t)what;
    n->args[0] = v;
    n->result = add_value(p, r, 32);
}

static void do_atom(program *p) {
    static const ptx_mods ops[] = {PTX_ATOM_ADD, PTX_ATOM_MIN, PTX_ATOM_MAX, PTX_ATOM_INC, PTX_ATOM_DEC,
                                   PTX_ATOM_AND, PTX_ATOM_OR,  PTX_ATOM_XOR, PTX_ATOM_EXCH};
    int v = pick(p, 32);
    unsigned what = choice(p, 9);
    if (v < 0) return;
    ptx_val r = ptx_atom(p->k, ops[what], ptx_at(p->scratch, 0), as_bits(p, v, what < 5 ? PTX_U32 : PTX_B32));
    node *n = add_node(p, N_ATOM);
    n->what = (uint8_t)what;
    n->args[0] = v;
    n->result = add_value(p, r, 32);
}

static void do_memory(program *p) {
    int v = pick(p, 32), at = pick(p, 32);
    unsigned what = choice(p, 4), constant = choice(p, LOCALS);
    node *n;
    if (what == 0 && v >= 0) { /* a counter of the whole grid */
        ptx_val one = as_bits(p, v, PTX_U32);
        node with;
        memset(&with, 0, sizeof with);
        with.guard = -1;
        set_guard(p, &with);
        ptx_red(p->k, PTX_ATOM_ADD, ptx_at(p->counters, 4 * (int64_t)(constant & 3)), one);
        n = add_node(p, N_COUNT);
        n->guard = with.guard;
        n->inverted = with.inverted;
        n->args[0] = v;
        n->constant[0] = constant & 3;
        return;
    }
    if (at < 0 || v < 0) return;
    ptx_val index = ptx_and(p->k, as_bits(p, at, PTX_B32), ptx_imm(LOCALS - 1));
    ptx_mem place = ptx_at(ptx_ptr_add(p->k, p->local, ptx_as(index, PTX_U32), 4), 0);
    if (what < 3) {
        node with;
        memset(&with, 0, sizeof with);
        with.guard = -1;
        set_guard(p, &with);
        ptx_st(p->k, PTX_B32, place, as_bits(p, v, PTX_B32));
        n = add_node(p, N_LOCAL_ST);
        n->guard = with.guard;
        n->inverted = with.inverted;
        n->args[0] = v;
        n->args[1] = at;
    } else {
        ptx_val r = ptx_ld(p->k, PTX_U32, place);
        n = add_node(p, N_LOCAL_LD);
        n->args[1] = at;
        n->result = add_value(p, r, 32);
    }
}

static void do_load(program *p) {
    static const struct {
        ptx_type type;
        unsigned width;
    } types[] = {{PTX_U8, 32},  {PTX_S8, 32},  {PTX_U16, 16}, {PTX_S32, 32},
                 {PTX_B64, 64}, {PTX_F32, 32}, {PTX_B16, 16}, {PTX_U64, 64}};
    unsigned which = choice(p, 8), bytes = ptx_type_bytes(types[which].type),
             offset = choice(p, 32) / bytes * bytes;
    if (rarely(p)) { /* misaligned, if not of bytes */
        p->wild = true;
        offset = 1;
    }
    ptx_val r = ptx_ld(p->k, types[which].type, ptx_at(p->in, (int64_t)offset));
    node *n = add_node(p, N_LOAD);
    n->what = (uint8_t)which;
    n->constant[0] = offset;
    n->constant[1] = bytes;
    n->result = add_value(p, r, types[which].width);
}

static void do_call(program *p) {
    int a = pick(p, 32), b = pick(p, 32);
    ptx_val args[2];
    if (a < 0 || b < 0 || !p->function) return;
    args[0] = as_bits(p, a, PTX_U32);
    args[1] = as_bits(p, b, PTX_U32);
    ptx_val r = ptx_call(p->k, p->function, 2, args);
    node *n = add_node(p, N_CALL);
    n->args[0] = a;
    n->args[1] = b;
    n->result = add_value(p, r, 32);
}

static void do_variable(program *p) {
    unsigned width = choice(p, 3) == 0 ? 64 : choice(p, 3) == 0 ? 16 : 32;
    int v = pick(p, width), var = p->var_count ? (int)choice(p, (unsigned)p->var_count) : -1;
    switch (choice(p, 3)) {
    case 0:
        if (v >= 0) new_var(p, as_bits(p, v, bits_of(width)), width, v, 0);
        break;
    case 1: { /* counters of loops are read only */
        if (var < 0 || v < 0 || p->vars[var].width != width || ptx_type_of(p->vars[var].v.cell) == PTX_U32)
            break;
        node with;
        memset(&with, 0, sizeof with);
        with.guard = -1;
        set_guard(p, &with);
        ptx_set(p->k, p->vars[var].v, as_bits(p, v, bits_of(width)));
        node *n = add_node(p, N_SET);
        n->guard = with.guard;
        n->inverted = with.inverted;
        n->var = var;
        n->args[0] = v;
        break;
    }
    default: {
        if (var < 0) break;
        ptx_val r = ptx_get(p->k, p->vars[var].v);
        node *n = add_node(p, N_GET);
        n->var = var;
        n->result = add_value(p, r, p->vars[var].width);
    }
    }
}

static void do_jump(program *p) {
    int g = pick(p, 1);
    if (!p->loops || (g < 0 && !rarely(p))) return;
    node *n = add_node(p, N_JUMP);
    n->what = (uint8_t)choice(p, 2);
    if (g >= 0) {
        n->guard = g;
        n->inverted = choice(p, 2);
        ptx_guard(p->k, n->inverted ? ptx_inv(p->values[g].v) : p->values[g].v);
    }
    if (n->what)
        ptx_continue(p->k);
    else
        ptx_break(p->k);
}

static void do_leave(program *p) {
    int g = pick(p, 1);
    if (g < 0) return;
    p->left = true;
    node *n = add_node(p, N_LEAVE);
    n->guard = g;
    n->inverted = choice(p, 2);
    ptx_guard(p->k, n->inverted ? ptx_inv(p->values[g].v) : p->values[g].v);
    if (choice(p, 2))
        ptx_exit(p->k);
    else
        ptx_ret(p->k);
}

static void statement(program *p) {
    switch (byte_of(p) & 31) {
    case 0:
    case 1: do_if(p); break;
    case 2: do_loop(p); break;
    case 3: do_for(p); break;
    case 4: do_back(p); break;
    case 5:
    case 6: do_branch(p); break;
    case 7: do_switch(p); break;
    case 8:
        if (together(p)) do_shared(p);
        break;
    case 9:
        if (together(p)) do_shuffle(p);
        break;
    case 10:
        if (together(p)) do_vote(p);
        break;
    case 11:
        if (together(p)) do_redux(p);
        break;
    case 12: do_atom(p); break;
    case 13:
    case 14: do_memory(p); break;
    case 15:
    case 16: do_load(p); break;
    case 17: do_call(p); break;
    case 18:
    case 19:
    case 20: do_variable(p); break;
    case 21: do_jump(p); break;
    case 22:
        if (choice(p, 8) == 0) do_leave(p);
        break;
    case 23:
        if (choice(p, 16) == 0) do_wrong(p);
        break;
    default:
        do_shot(p);
        do_shot(p);
        break;
    }
}

static void statements(program *p, int budget) {
    budget += (int)choice(p, 4);
    while (budget-- > 0 && p->at < p->size && p->count < NODES - 40 && p->value_count < VALUES - 40)
        statement(p);
}

/* The whole program, from its first byte to the stores at its end. */
static void build_program(program *p, ptx_module *m, const uint8_t *bytes, size_t size) {
    memset(p, 0, sizeof *p);
    p->bytes = bytes;
    p->size = size;
    p->m = m;
    unsigned style = byte_of(p);
    if (style & 1) {
        p->function = ptx_func(m, "mix", PTX_U32);
        ptx_val a = ptx_param(p->function, "a", PTX_U32), b = ptx_param(p->function, "b", PTX_U32);
        ptx_val r = ptx_mad(p->function, a, ptx_u32(3), b);
        ptx_return(p->function,
                   ptx_as(ptx_xor(p->function, ptx_as(r, PTX_B32), ptx_as(a, PTX_B32)), PTX_U32));
    }
    ptx_kernel *k = p->k = ptx_entry(m, "k");
    p->in = ptx_param_ptr(k, "in", PTX_GLOBAL);
    p->out = ptx_param_ptr(k, "out", PTX_GLOBAL);
    p->scratch = ptx_param_ptr(k, "scratch", PTX_GLOBAL);
    p->counters = ptx_param_ptr(k, "counters", PTX_GLOBAL);
    p->tid = ptx_tid_x(k);
    p->shared = ptx_shared(k, "sh", PTX_B32, THREADS, 0);
    p->local = ptx_local(k, "lo", PTX_B32, LOCALS, 0);
    p->in = ptx_ptr_add(k, p->in, p->tid, 32);
    p->out = ptx_ptr_add(k, p->out, p->tid, 8 * OUTS);
    p->scratch = ptx_ptr_add(k, p->scratch, p->tid, 8);
    for (int i = 0; i < LOCALS; i++) ptx_st(k, PTX_B32, ptx_at(p->local, 4 * i), ptx_imm(0));
    for (int i = 0; i < 6; i++) {
        static const unsigned widths[] = {64, 32, 32, 16, 1, 32};
        ptx_val v = i == 5 ? p->tid
                           : ptx_ld(k, bits_of(widths[i] == 1 ? 32 : widths[i]),
                                    ptx_at(p->in, i < 4 ? 8 * i % 32 : 8));
        if (i == 4) v = ptx_setp(k, PTX_LT, ptx_as(v, PTX_S32), ptx_imm(0));
        node *n = add_node(p, N_INPUT);
        n->what = (uint8_t)i;
        n->result = add_value(p, v, widths[i]);
    }
    while (p->at < p->size && p->count < NODES - 60 && p->value_count < VALUES - 60
           && !ptx_get_error(m)->code)
        statements(p, 2);
    while (p->label_count) place_label(p, --p->label_count);
    for (int i = 0; i < OUTS && i < p->visible_count; i++) {
        int at = p->visible[p->visible_count - 1 - i];
        unsigned width = p->values[at].width;
        node *n = add_node(p, N_STORE);
        n->args[0] = at;
        n->constant[0] = (uint64_t)i;
        if (width == 1)
            ptx_st(k, PTX_U32, ptx_at(p->out, 8 * i), ptx_selp(k, ptx_u32(1), ptx_u32(0), p->values[at].v));
        else
            ptx_st(k, bits_of(width), ptx_at(p->out, 8 * i), as_bits(p, at, bits_of(width)));
    }
    ptx_ret(k);
}

/* --- what it computes ------------------------------------------------------------------------- */

#define EACH_LANE(mask)                                                                                      \
    for (int l = 0; l < THREADS; l++)                                                                        \
        if ((mask) >> l & 1)

static void unsound(program *p, const char *what) {
    if (!p->unsound) p->unsound = what;
    p->lost = true;
}

/* Value `i` of the node is read: is it there? */
static lanes reads(program *p, int at, lanes by) {
    if (at < 0) return 0;
    if (by & ~p->known[at]) unsound(p, "a value is read where it is not defined");
    return p->vague[at] & by;
}

static lanes truth(program *p, int at, bool inverted, lanes by) {
    lanes r = 0;
    if (reads(p, at, by)) p->lost = true;
    EACH_LANE(by) r |= (lanes)(p->data[at][l] & 1) << l;
    return inverted ? by & ~r : r;
}

static lanes guarded(program *p, const node *n) {
    return n->guard < 0 ? p->active : truth(p, n->guard, n->inverted, p->active);
}

static uint64_t argument(const program *p, const node *n, int i, int l) {
    return n->args[i] < 0 ? n->constant[i] : p->data[n->args[i]][l];
}

static void define(program *p, const node *n, lanes vague) {
    p->known[n->result] |= p->active;
    p->vague[n->result] = (p->vague[n->result] & ~p->active) | vague;
}

static void whole_warps(program *p) {
    for (int w = 0; w < THREADS; w += 32) {
        uint32_t part = (uint32_t)(p->active >> w);
        if (part && part != ~0u) unsound(p, "a warp instruction that only some threads reach");
    }
}

static void run_shot_node(program *p, const node *n) {
    const shot *s = &shots[n->shot];
    lanes vague = 0;
    uint64_t mask = mask_of(n->width == 1 ? 1 : n->width);
    for (int i = 0; i < n->arg_count; i++) vague |= reads(p, n->args[i], p->active);
    EACH_LANE(p->active) {
        uint64_t v[INPUTS] = {0};
        for (int i = 0; i < n->arg_count; i++) v[i] = argument(p, n, i, l);
        skip_case = false;
        p->data[n->result][l] = evaluated(&s->b, v) & mask;
        if (skip_case) vague |= (lanes)1 << l;
    }
    define(p, n, vague);
}

static uint32_t atomic_result(unsigned what, uint32_t a, uint32_t b) {
    switch (what) {
    case 0: return a + b;
    case 1: return a < b ? a : b;
    case 2: return a > b ? a : b;
    case 3: return a >= b ? 0 : a + 1;
    case 4: return a == 0 || a > b ? b : a - 1;
    case 5: return a & b;
    case 6: return a | b;
    case 7: return a ^ b;
    default: return b;
    }
}

static uint32_t reduced(unsigned what, uint32_t a, uint32_t b) {
    return what < 3 ? atomic_result(what, a, b) : atomic_result(what + 2, a, b);
}

static void run_warp_node(program *p, const node *n) {
    lanes vague = reads(p, n->args[0], p->active);
    if (n->kind == N_SHUFFLE) vague |= reads(p, n->args[1], p->active);
    whole_warps(p);
    if (vague) vague = p->active;
    uint64_t r[THREADS];
    EACH_LANE(p->active) {
        int base = l & ~31, lane = l & 31;
        const uint64_t *v = p->data[n->args[0]];
        if (n->kind == N_SHUFFLE) {
            int by = (int)(argument(p, n, 1, l) & 31);
            int from = n->what == 0 ? by : n->what == 1 ? lane - by : n->what == 2 ? lane + by : lane ^ by;
            r[l] = from < 0 || from > 31 ? v[l] : v[base + from];
        } else if (n->kind == N_VOTE) {
            uint32_t ballot = 0;
            for (int i = 0; i < 32; i++) ballot |= (uint32_t)(v[base + i] & 1) << i;
            r[l] = n->what == 0 ? ballot == ~0u : n->what == 1 ? ballot != 0 : ballot;
        } else {
            uint32_t all = (uint32_t)v[base];
            for (int i = 1; i < 32; i++) all = reduced(n->what, all, (uint32_t)v[base + i]);
            r[l] = all;
        }
    }
    EACH_LANE(p->active) p->data[n->result][l] = r[l];
    define(p, n, vague);
}

static void run_nodes(program *p, int from, int to, const uint8_t *in);

static void run_branchy(program *p, const node *n, int at, const uint8_t *in) {
    lanes before = p->active, out = 0, taken = 0;
    if (n->kind == N_IF) {
        lanes t = truth(p, n->args[0], n->inverted, before);
        int end = n->middle[0] < 0 ? n->end : n->middle[0];
        p->active = t;
        run_nodes(p, at + 1, end, in);
        out = p->active;
        p->active = before & ~t;
        if (n->middle[0] >= 0) run_nodes(p, n->middle[0], n->end, in);
        p->active |= out;
        return;
    }
    if (reads(p, n->args[0], before)) p->lost = true;
    for (int i = 0; i < 4; i++) {
        p->active = 0;
        EACH_LANE(before) if ((int)(p->data[n->args[0]][l] & 3) == i) p->active |= (lanes)1 << l;
        taken |= p->active;
        run_nodes(p, n->middle[i], i < 3 ? n->middle[i + 1] : n->end, in);
        out |= p->active;
    }
    p->active = out | (before & ~taken);
}

static void run_loop(program *p, const node *n, int at, const uint8_t *in) {
    int level = ++p->loop_level;
    lanes out = 0;
    if (n->kind == N_BACK) {
        while (p->active && !p->lost) {
            run_nodes(p, at + 1, n->end, in);
            lanes more = 0;
            EACH_LANE(p->active) if (++p->cells[n->var][l] < n->constant[0]) more |= (lanes)1 << l;
            out |= p->active & ~more;
            p->active = more;
        }
    } else {
        uint64_t i = n->constant[0];
        p->broken[level] = 0;
        while (p->active && !p->lost) {
            p->continued[level] = 0;
            if (n->kind == N_FOR) {
                EACH_LANE(p->active) p->data[n->result][l] = i;
                p->vague[n->result] = 0;
                p->known[n->result] |= p->active; /* in the round that does not come, too */
                if (i >= n->constant[1]) break;
                i += n->constant[2];
            }
            run_nodes(p, at + 1, n->end, in);
            p->active |= p->continued[level];
        }
        out = p->broken[level];
    }
    p->active |= out;
    p->loop_level--;
}

static void run_node(program *p, const node *n, const uint8_t *in) {
    lanes who, vague;
    switch (n->kind) {
    case N_SHOT: run_shot_node(p, n); break;
    case N_INPUT:
        EACH_LANE(p->active) {
            uint64_t v = 0;
            if (n->what == 5)
                v = (uint64_t)l;
            else {
                memcpy(&v, in + 32 * l + (n->what < 4 ? 8 * n->what % 32 : 8),
                       n->what == 0   ? 8
                       : n->what == 3 ? 2
                                      : 4);
                if (n->what == 4) v = v >> 31 & 1;
            }
            p->data[n->result][l] = v;
        }
        define(p, n, 0);
        break;
    case N_LOAD:
        EACH_LANE(p->active) {
            uint64_t v = 0;
            memcpy(&v, in + 32 * l + n->constant[0], n->constant[1]);
            if (n->what == 1) v = (uint64_t)(int8_t)v & 0xffffffffu;
            p->data[n->result][l] = v;
        }
        define(p, n, 0);
        break;
    case N_VAR:
    case N_SET:
        who = guarded(p, n);
        vague = reads(p, n->args[0], who);
        EACH_LANE(who) p->cells[n->var][l] = argument(p, n, 0, l);
        p->vague_var[n->var] = (p->vague_var[n->var] & ~who) | vague;
        p->known_var[n->var] |= who;
        break;
    case N_GET:
        if (p->active & ~p->known_var[n->var]) unsound(p, "a variable is read where it is not defined");
        EACH_LANE(p->active) p->data[n->result][l] = p->cells[n->var][l];
        define(p, n, p->vague_var[n->var] & p->active);
        break;
    case N_WHILE:
        who = 0;
        if (n->args[0] >= 0 && reads(p, n->args[0], p->active)) p->lost = true;
        EACH_LANE(p->active) {
            uint64_t now = p->cells[n->var][l],
                     most = n->args[0] >= 0 ? p->data[n->args[0]][l] & 3 : n->constant[0];
            p->data[n->result][l] = now;
            if (now < most) {
                who |= (lanes)1 << l;
                p->cells[n->var][l] = now + 1;
            }
        }
        define(p, n, 0);
        p->broken[p->loop_level] |= p->active & ~who;
        p->active = who;
        break;
    case N_JUMP:
        who = guarded(p, n);
        *(n->what ? &p->continued[p->loop_level] : &p->broken[p->loop_level]) |= who;
        p->active &= ~who;
        break;
    case N_PLACE:
        p->active |= p->pending[n->label];
        p->pending[n->label] = 0;
        break;
    case N_BRANCH:
        who = guarded(p, n);
        p->pending[n->label] |= who;
        p->active &= ~who;
        break;
    case N_LEAVE: p->active &= ~guarded(p, n); break;
    case N_LOCAL_ST:
        who = guarded(p, n);
        vague = reads(p, n->args[0], who);
        if (reads(p, n->args[1], p->active)) p->lost = true;
        EACH_LANE(who) {
            int at = (int)(p->data[n->args[1]][l] & (LOCALS - 1));
            p->locals[at][l] = p->data[n->args[0]][l];
            p->vague_local[at] = (p->vague_local[at] & ~((lanes)1 << l)) | (vague & (lanes)1 << l);
        }
        break;
    case N_LOCAL_LD:
        if (reads(p, n->args[1], p->active)) p->lost = true;
        vague = 0;
        EACH_LANE(p->active) {
            int at = (int)(p->data[n->args[1]][l] & (LOCALS - 1));
            p->data[n->result][l] = p->locals[at][l];
            vague |= p->vague_local[at] & (lanes)1 << l;
        }
        define(p, n, vague);
        break;
    case N_SHARED:
        if (p->active != ~(lanes)0) unsound(p, "a barrier that only some threads reach");
        vague = reads(p, n->args[0], p->active) ? p->active : 0;
        for (int l = 0; l < THREADS; l++)
            p->data[n->result][l] = p->data[n->args[0]][(l + (int)n->constant[0]) & (THREADS - 1)];
        define(p, n, vague);
        break;
    case N_SHUFFLE:
    case N_VOTE:
    case N_REDUX: run_warp_node(p, n); break;
    case N_ATOM:
        vague = reads(p, n->args[0], p->active) | (p->vague_scratch & p->active);
        EACH_LANE(p->active) {
            uint32_t old = (uint32_t)p->scratch_data[l];
            p->scratch_data[l] = atomic_result(n->what, old, (uint32_t)p->data[n->args[0]][l]);
            p->data[n->result][l] = old;
        }
        define(p, n, vague);
        p->vague_scratch |= vague;
        break;
    case N_COUNT:
        who = guarded(p, n);
        if (reads(p, n->args[0], who)) p->vague_counters = 1;
        EACH_LANE(who) p->counter_data[n->constant[0]] += (uint32_t)p->data[n->args[0]][l];
        break;
    case N_CALL:
        vague = reads(p, n->args[0], p->active) | reads(p, n->args[1], p->active);
        EACH_LANE(p->active) {
            uint32_t a = (uint32_t)p->data[n->args[0]][l], b = (uint32_t)p->data[n->args[1]][l];
            p->data[n->result][l] = (a * 3 + b) ^ a;
        }
        define(p, n, vague);
        break;
    case N_STORE:
        vague = reads(p, n->args[0], p->active);
        EACH_LANE(p->active) p->stored[l][n->constant[0]] = p->data[n->args[0]][l];
        p->vague_out[n->constant[0]] |= vague;
        break;
    default: break;
    }
}

static void run_nodes(program *p, int from, int to, const uint8_t *in) {
    for (int i = from; i < to && !p->lost; i++) {
        const node *n = &p->nodes[i];
        if (++p->steps > STEPS) p->lost = true;
        if (n->kind == N_IF || n->kind == N_SWITCH)
            run_branchy(p, n, i, in);
        else if (n->kind == N_LOOP || n->kind == N_FOR || n->kind == N_BACK)
            run_loop(p, n, i, in);
        else {
            if (p->active || n->kind == N_PLACE) run_node(p, n, in);
            continue;
        }
        i = n->end - 1;
    }
}

/* Interprets: 32 bytes of input for each thread. */
static void interpret(program *p, const uint8_t *in) {
    p->active = ~(lanes)0;
    run_nodes(p, 0, p->count, in);
}

/* --- the same on the driver ------------------------------------------------------------------- */

enum { P_ERROR, P_EQUAL, P_LOST, P_WRONG };
typedef struct machine {
    device_ptr in, out, scratch, counters;
} machine;
static uint64_t zero_out[THREADS * OUTS];

static void open_machine(machine *x) {
    x->in = upload(zero_out, THREADS * 32);
    x->out = upload(zero_out, sizeof zero_out);
    x->scratch = upload(zero_out, THREADS * 8);
    x->counters = upload(zero_out, 16);
}

/* "file:line: error: ... [code]" */
static bool located(const ptx_error *e) {
    const char *file = strstr(e->message, ".h:");
    return e->code != PTX_E_NONE && file && file[3] >= '0' && file[3] <= '9'
           && strstr(e->message, ": error: ") && strchr(e->message, '[');
}

/* What becomes of the text: its module loaded, launched, compared. `why` for what is wrong. */
static int run_text(program *p, const char *text, const machine *x, const uint8_t *in, char *why,
                    size_t size) {
    static uint64_t got[THREADS][OUTS];
    static char log[4096];
    uint32_t counters[4];
    void *module = NULL, *function = NULL, *params[4], *values[2] = {log, (void *)(uintptr_t)sizeof log};
    int options[2] = {5, 6};
    device_ptr pointers[4] = {x->in, x->out, x->scratch, x->counters};
    log[0] = 0;
    if (cu.cuModuleLoadDataEx(&module, text, 2, options, values)) {
        snprintf(why, size, "the driver refuses it: %s", log);
        return P_WRONG;
    }
    if (p->astray) {
        cu.cuModuleUnload(module);
        return P_LOST;
    }
    interpret(p, in);
    if (p->unsound && !p->wild) snprintf(why, size, "%s, and the verifier did not say so", p->unsound);
    if (p->lost) {
        cu.cuModuleUnload(module);
        return p->unsound && !p->wild ? P_WRONG : P_LOST;
    }
    for (int i = 0; i < 4; i++) params[i] = &pointers[i];
    int code = cu.cuMemcpyHtoD(x->in, in, THREADS * 32) || cu.cuMemcpyHtoD(x->out, zero_out, sizeof zero_out)
               || cu.cuMemcpyHtoD(x->scratch, zero_out, THREADS * 8)
               || cu.cuMemcpyHtoD(x->counters, zero_out, 16);
    if (!code) code = cu.cuModuleGetFunction(&function, module, "k");
    if (!code) code = cu.cuLaunchKernel(function, 1, 1, 1, THREADS, 1, 1, 0, NULL, params, NULL);
    if (!code) code = cu.cuCtxSynchronize();
    if (!code) code = cu.cuMemcpyDtoH(got, x->out, sizeof got) || cu.cuMemcpyDtoH(counters, x->counters, 16);
    cu.cuModuleUnload(module);
    if (code && p->wild) { /* misaligned, or beyond the end, which no verifier can see */
        if (cu.ptxsim_report_clear) cu.ptxsim_report_clear();
        return P_LOST;
    }
    if (code) {
        snprintf(why, size, "the launch gives %d", code);
        if (cu.ptxsim_report) cu.ptxsim_report(why + strlen(why), size - strlen(why));
        if (cu.ptxsim_report_clear) cu.ptxsim_report_clear();
        return P_WRONG;
    }
    for (int l = 0; l < THREADS; l++)
        for (int i = 0; i < OUTS; i++)
            if (got[l][i] != p->stored[l][i] && !(p->vague_out[i] >> l & 1)) {
                snprintf(why, size, "thread %d, value %d: %llx, expected %llx", l, i,
                         (unsigned long long)got[l][i], (unsigned long long)p->stored[l][i]);
                return P_WRONG;
            }
    for (int i = 0; i < 4; i++)
        if (counters[i] != p->counter_data[i] && !p->vague_counters) {
            snprintf(why, size, "counter %d: %x, expected %x", i, (unsigned)counters[i],
                     (unsigned)p->counter_data[i]);
            return P_WRONG;
        }
    return P_EQUAL;
}

/* Builds, verifies, prints, loads, runs and compares the program of these bytes. */
static int try_program(program *p, ptx_module *m, const machine *x, const uint8_t *bytes, size_t size,
                       char *why, size_t why_size) {
    uint8_t in[THREADS * 32];
    uint64_t state = size * 0x9e3779b97f4a7c15u + (size ? bytes[0] : 0);
    for (size_t i = 0; i < sizeof in; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        in[i] = (uint8_t)(state >> 56);
        if (i % 32 == 0 && state >> 40 & 1) memset(in + i, (int)(state >> 41 & 1) - 1, 1);
    }
    *why = 0;
    ptx_module_reset(m);
    build_program(p, m, bytes, size);
    const char *text = ptx_text(m, NULL);
    if (!text) {
        const ptx_error *e = ptx_get_error(m);
        if (located(e)) return P_ERROR;
        snprintf(why, why_size, "an error without a place: %s", e->message);
        return P_WRONG;
    }
    return run_text(p, text, x, in, why, why_size);
}

#endif
