/* warp.c - instructions that communicate between lanes: shfl, vote, match, redux, elect; predicates and
 * clocks.
 *
 * exec.c has made sure that the lanes named by a membermask are here. Masks may differ
 * between lanes of one request: each group of lanes with the same mask is independent. */
#include "race.h"
#include "unwritten.h"

/* Reports lanes that a warp-wide instruction lacks because the block has no such threads, or because they have
 * exited; exec.c has reported those that took another path. */
void sim_check_whole_warp(sim_warp *w, const sim_ins *i, uint32_t m)
{
    if (SIM_UNLIKELY(m != SIM_FULL) && !(w->live & ~m) && sim_option.sync_masks)
        sim_report_at(w, i, "absent-lane", sim_lowest(m),
                      "only lanes 0x%08x of the warp are here; all 32 are needed", m);
}

void sim_nop(sim_warp *w, const sim_ins *i, uint32_t m) { (void)w; (void)i; (void)m; }

/* Computes the lane that each lane reads from; returns the lanes whose source is in range. */
static uint32_t shfl_from(const sim_warp *w, const sim_ins *i, uint32_t *from)
{
    const uint32_t *b = sim_slot(w, i->b), *c = sim_slot(w, i->c);
    uint32_t valid = 0;
    for (uint32_t l = 0; l < SIM_LANES; l++) {
        uint32_t clamp = c[l] & 31, segment = c[l] >> 8 & 31, n = b[l] & 31;
        uint32_t lowest = l & segment, top = (l & segment) | (clamp & ~segment), j;
        bool in;
        switch (i->op) {
        case 0:  j = l - n; in = (int32_t)j >= (int32_t)((l & segment) | (clamp & ~segment)); break;
        case 1:  j = l + n; in = j <= top; break;
        case 2:  j = l ^ n; in = j <= top; break;
        default: j = lowest | (n & ~segment); in = j <= top; break;
        }
        if (!in) j = l;
        valid |= (uint32_t)in << l;
        from[l] = j & 31;
    }
    return valid;
}

void sim_shfl(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *a = sim_slot(w, i->a), *c = sim_slot(w, i->c);
    uint32_t *d = sim_slot(w, i->d), from[SIM_LANES], out[SIM_LANES], valid = shfl_from(w, i, from), other = 0;
    for (uint32_t l = 0; l < SIM_LANES; l++) other |= c[l] & ~(uint32_t)SHFL_C;
    for (uint32_t l = 0; l < SIM_LANES; l++) out[l] = a[from[l]];
    if (SIM_UNLIKELY(w->unwritten)) sim_unwritten_shuffle(w, i, m, from);
    if (m != SIM_FULL && sim_option.sync_masks) {
        uint32_t absent = 0;
        SIM_EACH_LANE(l, m) absent |= (uint32_t)!(m >> from[l] & 1) << l;
        if (absent) sim_unwritten_absent(w, i, absent, from);
    }
    if (SIM_UNLIKELY(other) && sim_option.suspects && !(i->c & SIM_CONST_BANK)) {
        uint32_t lanes = 0;
        SIM_EACH_LANE(l, m) lanes |= (uint32_t)((c[l] & ~(uint32_t)SHFL_C) != 0) << l;
        if (lanes) sim_unwritten_other_bits(w, i, lanes, c);
    }
    if (w->kernel->clocks) sim_race_shuffle(w, m, from);
    if (m == SIM_FULL) memcpy(d, out, sizeof out);
    else SIM_EACH_LANE(l, m) d[l] = out[l];
    if (i->q) sim_pred_write(w, i->q - 1, valid, m);
}

void sim_vote(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *e = sim_slot(w, i->e);
    uint32_t p = sim_pred(w, i->a), r = 0;
    SIM_EACH_LANE(l, m) {
        uint32_t group = e[l] & m, set = p & group;
        switch (i->op) {
        case 0:  r |= (uint32_t)(set == group) << l; break;
        case 1:  r |= (uint32_t)(set != 0) << l; break;
        case 2:  r |= (uint32_t)(set == group || !set) << l; break;
        default: sim_slot(w, i->d)[l] = set; break;
        }
    }
    if (i->op != 3) sim_pred_write(w, i->d, r, m);
}

void sim_match(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *e = sim_slot(w, i->e);
    uint32_t out[SIM_LANES] = { 0 }, p = 0;
    SIM_EACH_LANE(l, m) {
        uint32_t same = 0, group = e[l] & m;
        for (uint32_t k = 0; k < SIM_LANES; k++) {
            if (!(group >> k & 1)) continue;
            bool equal = i->width == 2 ? sim_slot64(w, i->a)[k] == sim_slot64(w, i->a)[l]
                                       : sim_slot(w, i->a)[k] == sim_slot(w, i->a)[l];
            same |= (uint32_t)equal << k;
        }
        bool all = same == group;
        out[l] = i->op ? (all ? group : 0) : same;
        p |= (uint32_t)all << l;
    }
    SIM_EACH_LANE(l, m) sim_slot(w, i->d)[l] = out[l];
    if (i->q) sim_pred_write(w, i->q - 1, p, m);
}

void sim_redux(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *e = sim_slot(w, i->e), *a = sim_slot(w, i->a);
    uint32_t out[SIM_LANES] = { 0 };
    SIM_EACH_LANE(l, m) {
        uint32_t group = e[l] & m, r = a[l];
        bool first = true;
        SIM_EACH_LANE(k, group) {
            uint32_t v = a[k];
            bool less = i->x & X_SIGNED ? (int32_t)v < (int32_t)r : v < r;
            if (first) { r = v; first = false; continue; }
            switch (i->op) {
            case A_ADD: r += v; break;
            case A_MIN: r = less ? v : r; break;
            case A_MAX: r = less ? r : v; break;
            case A_AND: r &= v; break;
            case A_OR:  r |= v; break;
            default:    r ^= v; break;
            }
        }
        out[l] = r;
    }
    SIM_EACH_LANE(l, m) sim_slot(w, i->d)[l] = out[l];
}

void sim_elect(sim_warp *w, const sim_ins *i, uint32_t m)
{
    const uint32_t *e = sim_slot(w, i->e);
    uint32_t p = 0;
    SIM_EACH_LANE(l, m) {
        uint32_t group = e[l] & m, leader = group ? sim_lowest(group) : l;
        sim_slot(w, i->d)[l] = leader;
        p |= (uint32_t)(leader == l) << l;
    }
    sim_pred_write(w, i->q - 1, p, m);
}

void sim_activemask(sim_warp *w, const sim_ins *i, uint32_t m)
{
    SIM_EACH_LANE(l, m) sim_slot(w, i->d)[l] = m;
}

void sim_pred_logic(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint32_t a = sim_pred(w, i->a), b = sim_pred(w, i->b), r;
    switch (i->op) {
    case 0:  r = a & b; break;
    case 1:  r = a | b; break;
    case 2:  r = a ^ b; break;
    case 3:  r = ~a; break;
    default: r = a; break;
    }
    sim_pred_write(w, i->d, r, m);
}

void sim_clock(sim_warp *w, const sim_ins *i, uint32_t m)
{
    uint64_t v = i->op == SR_GLOBALTIMER || i->op == SR_GLOBALTIMER_LO || i->op == SR_GLOBALTIMER_HI
                     ? sim_now_ns()
                     : w->block->clock + w->issued;
    if (i->op == SR_CLOCK_HI || i->op == SR_GLOBALTIMER_HI) v >>= 32;
    SIM_EACH_LANE(l, m)
        if (i->width == 2) sim_slot64(w, i->d)[l] = v; else sim_slot(w, i->d)[l] = (uint32_t)v;
}
