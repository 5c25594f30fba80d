/* registers.c - reads of registers that nothing has written.
 *
 * Lowering notes the registers that each statement reads and writes. A forward dataflow analysis
 * finds the reads that some path reaches without a write; only those registers are watched at run time
 * (a mask of written lanes for each), so a kernel without such reads pays nothing, and its
 * registers need not be cleared for each block. Unwritten registers that are read are marked, and reported where
 * they take effect: see unwritten.c. */
#include "sim.h"
#include "lower.h"
#include "unwritten.h"

enum { MAX_WORK = 1 << 27 };           /* bits of analysis; larger kernels are not watched */

void sim_note(sim_lower *lw, uint32_t slot, bool pred, bool write, const char *name)
{
    if (lw->note_count == lw->note_capacity) {
        uint32_t wanted = lw->note_capacity ? lw->note_capacity * 2 : 256;
        sim_note_entry *grown = realloc(lw->notes, wanted * sizeof *grown);
        if (!grown) { lw->m->out_of_memory = true; longjmp(*lw->m->bail, 1); }
        lw->notes = grown;
        lw->note_capacity = wanted;
    }
    lw->notes[lw->note_count++] = (sim_note_entry){
        write ? UINT32_MAX : lw->k->code_count, slot, name, pred, write, false, false};
}

/* Ends a statement: its writes belong to its last instruction, its guard is read at its first. */
void sim_note_end(sim_lower *lw, uint32_t first_note)
{
    uint32_t last = lw->k->code_count ? lw->k->code_count - 1 : 0;
    for (uint32_t n = first_note; n < lw->note_count; n++) {
        if (lw->notes[n].code == UINT32_MAX) lw->notes[n].code = last;
        if (lw->notes[n].code > last) lw->notes[n].code = last;
    }
}

static int by_code(const void *a, const void *b)
{
    const sim_note_entry *x = a, *y = b;
    if (x->code != y->code) return x->code < y->code ? -1 : 1;
    return x->write - y->write;                               /* an instruction reads before it writes */
}

typedef struct flow {
    uint32_t begin, end, next[2], next_count;
    uint32_t note_begin, note_end;
    uint64_t *in;
    bool reached, queued;
} flow;

static bool ends_block(const sim_ins *i)
{
    return i->flow == F_BRANCH || i->flow == F_INDEXED || i->flow == F_EXIT || i->flow == F_TRAP
           || i->flow == F_RETURN;
}

static uint32_t cut_blocks(const sim_kernel *k, uint8_t *leader)
{
    uint32_t n = 0;
    leader[0] = 1;
    for (uint32_t r = 0; r < k->routine_count; r++) leader[k->routines[r].pc] = 1;
    for (uint32_t c = 0; c < k->code_count; c++) {
        const sim_ins *i = &k->code[c];
        if (!ends_block(i)) continue;
        if (c + 1 < k->code_count) leader[c + 1] = 1;
        if ((i->flow == F_BRANCH || i->flow == F_INDEXED) && (uint64_t)i->imm < k->code_count)
            leader[i->imm] = 1;
    }
    for (uint32_t c = 0; c < k->code_count; c++) n += leader[c];
    return n;
}

static bool sure(const uint64_t *now, const sim_note_entry *e)
{
    return now[e->slot >> 6] >> (e->slot & 63) & 1;
}

/* Adds to the set of surely written registers what the noted access writes. */
static void step(const sim_lower *lw, uint64_t *now, const sim_note_entry *e)
{
    if (e->write && !lw->k->code[e->code].guard) now[e->slot >> 6] |= UINT64_C(1) << (e->slot & 63);
}

static void watch(sim_lower *lw, const sim_note_entry *note, uint32_t watched)
{
    sim_kernel *k = lw->k;
    uint32_t slot = note->pred ? note->slot - k->reg_slots : note->slot;
    k->watches[k->watch_entry_count++] = (sim_watch_entry){ note->code, watched, note->name, slot,
                                                            note->pred, note->write, note->guard, false };
}

void sim_find_unwritten(sim_lower *lw)
{
    sim_kernel *k = lw->k;
    uint32_t vars = k->reg_slots + k->preds, words = (vars + 63) / 64, blocks, top = 0;
    uint8_t *leader = calloc(k->code_count + 1u, 1);
    uint32_t *block_of = calloc(k->code_count + 1u, sizeof *block_of), *queue = NULL, *watched = NULL,
             *held = NULL;             /* by slot: the word of a register watched for wgmma, + 1 */
    uint64_t *bits = NULL, *now = NULL;
    flow *f = NULL;
    k->clear_registers = true;
    if (!leader || !block_of) goto done;
    for (uint32_t n = 0; n < lw->note_count; n++) if (lw->notes[n].pred) lw->notes[n].slot += k->reg_slots;
    if (lw->note_count) qsort(lw->notes, lw->note_count, sizeof *lw->notes, by_code);
    blocks = cut_blocks(k, leader);
    if ((uint64_t)blocks * words * 64 > MAX_WORK) goto done;
    f = calloc(blocks, sizeof *f);
    bits = malloc((size_t)blocks * words * 8);
    now = malloc((size_t)words * 8);
    queue = malloc((size_t)blocks * sizeof *queue);
    watched = calloc(vars, sizeof *watched);
    k->watches = calloc(lw->note_count * 2u + 1u, sizeof *k->watches);
    if (sim_wgmma_used(k) && !(held = calloc(vars, sizeof *held))) goto done;
    if (!f || !bits || !now || !queue || !watched || !k->watches) goto done;
    memset(bits, 0xff, (size_t)blocks * words * 8);
    uint32_t b = 0, at = 0;
    for (uint32_t c = 0; c < k->code_count; c++) {
        if (c && leader[c]) f[b++].end = c;
        if (leader[c]) f[b].begin = c;
        block_of[c] = b;
    }
    f[b].end = k->code_count;
    for (b = 0; b < blocks; b++) {
        const sim_ins *last = &k->code[f[b].end - 1];
        f[b].in = bits + (size_t)b * words;
        f[b].note_begin = at;
        while (at < lw->note_count && lw->notes[at].code < f[b].end) at++;
        f[b].note_end = at;
        bool on = !ends_block(last) || last->guard || last->flow == F_INDEXED;
        for (uint32_t r = 0; r < k->routine_count; r++) on &= k->routines[r].pc != f[b].end;
        if (on && b + 1 < blocks) f[b].next[f[b].next_count++] = b + 1;
        if ((last->flow == F_BRANCH || last->flow == F_INDEXED) && (uint64_t)last->imm < k->code_count)
            f[b].next[f[b].next_count++] = block_of[last->imm];
    }
    for (uint32_t r = 0; r < k->routine_count; r++) {         /* at entry of a function nothing is written */
        flow *start = &f[block_of[k->routines[r].pc]];
        memset(start->in, 0, (size_t)words * 8);
        start->reached = start->queued = true;
        queue[top++] = block_of[k->routines[r].pc];
    }
    while (top) {                                             /* in = intersection over all paths */
        flow *x = &f[queue[--top]];
        x->queued = false;
        memcpy(now, x->in, (size_t)words * 8);
        for (uint32_t n = x->note_begin; n < x->note_end; n++) step(lw, now, &lw->notes[n]);
        for (uint32_t s = 0; s < x->next_count; s++) {
            flow *y = &f[x->next[s]];
            bool changed = !y->reached;
            for (uint32_t w = 0; w < words; w++) {
                uint64_t both = y->in[w] & now[w];
                changed |= both != y->in[w];
                y->in[w] = both;
            }
            y->reached = true;
            if (changed && !y->queued) { y->queued = true; queue[top++] = x->next[s]; }
        }
    }
    k->clear_registers = false;
    for (b = 0; b < blocks; b++) { /* watch registers that may be read unwritten */
        if (!f[b].reached) continue;
        memcpy(now, f[b].in, (size_t)words * 8);
        for (uint32_t n = f[b].note_begin; n < f[b].note_end; n++) {
            sim_note_entry *e = &lw->notes[n];
            step(lw, now, e);
            if (e->write || sure(now, e)) continue;
            if (!watched[e->slot]) watched[e->slot] = ++k->watch_count;
            e->unsure = true;
        }
    }
    k->clear_registers = k->watch_count != 0;
    if (held) sim_wgmma_watch(lw, held);
    for (uint32_t n = 0; n < lw->note_count; n++) {
        const sim_note_entry *e = &lw->notes[n];
        bool unsure = watched[e->slot] && (e->write || e->unsure), async = held && held[e->slot];
        if ((unsure || async) && !k->code[e->code].watch) k->code[e->code].watch = k->watch_entry_count + 1;
        if (unsure) watch(lw, e, watched[e->slot] - 1);
        if (!async) continue;
        watch(lw, e, held[e->slot] - 1);
        k->watches[k->watch_entry_count - 1].wgmma = true;
    }
done:
    sim_settle_watches(k);
    free(leader); free(block_of); free(f); free(bits); free(now); free(queue); free(watched);
    free(held);
    free(lw->notes);
    lw->notes = NULL;
    lw->note_count = lw->note_capacity = 0;
}

/* At run time: called for instructions that access a watched register. */
void sim_watch(sim_warp *w, const sim_ins *i, uint32_t active, uint32_t m)
{
    const sim_kernel *k = w->kernel;
    uint32_t code = (uint32_t)(i - k->code);
    for (uint32_t n = (i->watch & ~SIM_WATCH_PAST_BARRIER) - 1; n < k->watch_entry_count && k->watches[n].code == code;
         n++) {
        const sim_watch_entry *e = &k->watches[n];
        if (e->wgmma) { if (m) sim_wgmma_touch(w, i, e, m); continue; }
        uint32_t lanes = (e->guard ? active : m) & ~w->watch[e->watched];
        if (e->write) w->watch[e->watched] |= m;
        else if (lanes && sim_option.registers)
            sim_unwritten_register(w, i, e->slot, e->pred, lanes, e->name);
    }
}
