/* registers_pool.c - setmaxnreg: the registers of each warp, and the pool that a block's warps share.
 *
 * All warps begin with the kernel's count at entry; what setmaxnreg.dec releases goes to the block's pool,
 * and setmaxnreg.inc waits (F_WAIT) until the pool has enough. Counts are registers per thread of a warp, in
 * multiples of eight as on chips. Registers of warps that exit do not return to the pool: no documentation
 * says that they do. */
#include "async.h"
#include "race.h"

typedef struct step {
    const sim_ins *ins;
    sim_record record;
} step;

struct sim_register_pool {
    uint32_t spare, capacity;
    bool reported; /* a group executes different steps: reported once */
    struct warp_registers {
        uint32_t count, steps;
        bool waits;
        step last;
    } w[];
};

/* The count at entry, as ptxas 13.0 sets it: the cap, or the largest operand of a setmaxnreg.inc if that is
 * less. 0: there is no cap, and setmaxnreg is ignored. */
static uint32_t count_at_entry(const sim_kernel *k) {
    const sim_function *f = k->function;
    const uint32_t *n = f->reqntid_count ? f->reqntid : f->maxntid_count ? f->maxntid : NULL;
    uint64_t threads = n ? (uint64_t)n[0] * n[1] * n[2] : 0, cap = f->maxnreg;
    if (threads && f->minnctapersm) {
        uint64_t fit = 65536 / (threads * f->minnctapersm) / 8 * 8;
        if (!cap || fit < cap) cap = fit;
    }
    if (k->most_registers && k->most_registers < cap) cap = k->most_registers;
    if (cap > 255) cap = 255;
    return (uint32_t)(cap + 7) / 8 * 8;
}

static struct sim_register_pool *pool_of(sim_block *b) {
    struct sim_register_pool *p = b->pool;
    if (p && p->capacity >= b->warp_count && b->pool_used) return p;
    if (!p || p->capacity < b->warp_count) {
        free(p);
        b->pool = p = calloc(1, sizeof *p + b->warp_count * sizeof *p->w);
        if (!p) return NULL;
        p->capacity = b->warp_count;
    }
    b->pool_used = true;
    p->spare = 0;
    p->reported = false;
    memset(p->w, 0, b->warp_count * sizeof *p->w);
    for (uint32_t n = 0; n < b->warp_count; n++) p->w[n].count = count_at_entry(b->launch->kernel);
    return p;
}

void sim_pool_free(sim_block *b) { free(b->pool); }

static void out_of_step(sim_warp *w, const sim_ins *i, const char *text) {
    if (sim_option.barriers) sim_report_at(w, i, "warpgroup", 0, "%s", text);
    w->block->pool->reported = true;
}

/* Whether a lane of w knows of this step; one is enough, since all of them execute the instruction together. */
static bool is_step_known(const sim_warp *w, const step *s) {
    SIM_EACH_LANE(l, w->live)
    if (sim_order_known_of(w->block->race, w->index, l, &s->record, SIM_FULL)) return true;
    return false;
}

/* Checks that the four warps of a group execute the same setmaxnreg, and synchronise before the next one. */
static void check_group(sim_warp *w, const sim_ins *i) {
    struct sim_register_pool *p = w->block->pool;
    struct warp_registers *mine = &p->w[w->index];
    const struct sim_race_block *r = w->block->race;
    uint32_t first = w->index & ~3u;
    char text[200];
    mine->steps++;
    if (w->launch->races)
        mine->last.record =
            (sim_record){.block = r->index, .ins = i, .era = r->w[w->index].era, .warp = (uint8_t)w->index};
    if (first + 4 > w->block->warp_count) {
        mine->last.ins = i;
        return;
    }
    for (uint32_t n = first; n < first + 4 && !p->reported; n++) {
        struct warp_registers *other = &p->w[n];
        if (n == w->index) continue;
        if (other->steps == mine->steps && other->last.ins != i) {
            char place[SIM_LINE_TEXT];
            snprintf(text, sizeof text,
                     "warp %u of the same warpgroup executes another one, at %s; all "
                     "four warps have to execute the same",
                     n, sim_line_text(w->kernel->module, other->last.ins->line, place));
            out_of_step(w, i, text);
        } else if (other->steps + 1 < mine->steps
                   || (other->steps + 1 == mine->steps && other->last.ins && w->launch->races
                       && !is_step_known(w, &other->last))) {
            snprintf(text, sizeof text,
                     "warp %u of the same warpgroup may not have executed the one before "
                     "yet: the warps have to synchronise between two of them",
                     n);
            out_of_step(w, i, text);
        }
    }
    mine->last.ins = i;
}

/* The block has ended: reports warps that skipped a setmaxnreg. */
void sim_pool_leave(sim_block *b) {
    struct sim_register_pool *p = b->pool;
    char text[360];
    if (!b->pool_used) return;
    b->pool_used = false;
    for (uint32_t first = 0; first + 4 <= b->warp_count; first += 4) {
        uint32_t most = first, absent = 0;
        for (uint32_t n = first; n < first + 4; n++)
            if (p->w[n].steps > p->w[most].steps) most = n;
        for (uint32_t n = first; n < first + 4; n++)
            if (p->w[n].steps < p->w[most].steps) absent |= 1u << (n - first);
        if (!absent || p->reported) continue;
        snprintf(text, sizeof text,
                 "warps 0x%x of the four of this warpgroup never come here; all of them "
                 "have to execute it",
                 absent);
        out_of_step(&b->warps[most], p->w[most].last.ins, text);
    }
}

/* i->c: the register count; i->op: 1 for .inc */
void sim_setmaxnreg(sim_warp *w, const sim_ins *i, uint32_t m) {
    uint32_t entry = count_at_entry(w->kernel), lane = sim_lowest(m);
    struct sim_register_pool *p = pool_of(w->block);
    if (!p) return;
    if (!entry) {
        sim_report_at(w, i, "setmaxnreg-ignored", lane,
                      "the kernel's registers are not capped at entry (.maxnreg, or .maxntid or .reqntid "
                      "with .minnctapersm), so that the assembler ignores this instruction");
        return;
    }
    struct warp_registers *mine = &p->w[w->index];
    if (!mine->waits) check_group(w, i);
    mine->waits = false;
    if (i->op ? i->c < mine->count : i->c > mine->count) {
        if (sim_option.barriers)
            sim_report_at(w, i, "register-count", lane,
                          "setmaxnreg.%s to %u registers, but a thread of this "
                          "warp has %u",
                          i->op ? "inc" : "dec", i->c, mine->count);
        return;
    }
    if (!i->op) {
        p->spare += mine->count - i->c;
        w->block->cluster->events++;
        w->block->cluster->changes++;
        sim_changed(w->launch);
    } else if (p->spare < i->c - mine->count) {
        mine->waits = true;
        w->waiting_lanes = m;
        return;
    } else
        p->spare -= i->c - mine->count;
    mine->count = i->c;
}

/* Describes a deadlock at a setmaxnreg.inc. */
void sim_pool_describe(const sim_warp *w, const sim_ins *i, char *out, size_t size) {
    const struct sim_register_pool *p = w->block->pool;
    uint32_t all = 0;
    for (uint32_t n = 0; n < w->block->warp_count; n++) all |= (uint32_t)p->w[n].waits << n;
    snprintf(out, size,
             "warps 0x%x wait here for registers; this warp has %u of %u for each thread, and the "
             "block's pool has %u for one warp",
             all, p->w[w->index].count, i->c, p->spare);
}
