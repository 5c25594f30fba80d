/* warpgroup.c - checks that the four warps of a warpgroup execute the same sequence of wgmma instructions, with the
 * same descriptors.
 *
 * Warps run one by one, so the steps of the first are kept until the last of the four has executed them too. */
#include "async.h"
#include "tensor.h"

enum { MOST_STEPS = 1 << 16, TRIM = 64 };

typedef struct step {
    const sim_ins *ins;
    sim_group_operands operands;
} step;

typedef struct sim_group_log {
    uint32_t first, count, capacity; /* index of the step in list[0]; number of steps kept */
    uint32_t done[4];                /* steps executed by each warp */
    bool reported;                       /* reported once: later steps would differ too */
    step *list;
} group_log;

static group_log *log_of(sim_block *b, uint32_t group) {
    if (group >= b->group_log_count) {
        uint32_t wanted = (b->warp_count + 3) / 4;
        group_log *grown = realloc(b->group_logs, wanted * sizeof *grown);
        if (!grown) return NULL;
        memset(grown + b->group_log_count, 0, (wanted - b->group_log_count) * sizeof *grown);
        b->group_logs = grown;
        b->group_log_count = wanted;
    }
    b->group_logs_used = true;
    return &b->group_logs[group];
}

/* Forgets steps that all four warps have executed. */
static void trim(group_log *g) {
    uint32_t least = g->done[0];
    for (int n = 1; n < 4; n++)
        if (g->done[n] < least) least = g->done[n];
    g->count -= least - g->first;
    memmove(g->list, g->list + (least - g->first), g->count * sizeof *g->list);
    g->first = least;
}

static bool append(group_log *g, const step *s) {
    if (g->count >= TRIM) trim(g);
    if (g->count == g->capacity) {
        uint32_t wanted = g->capacity ? g->capacity * 2 : TRIM;
        step *grown = wanted > MOST_STEPS ? NULL : realloc(g->list, wanted * sizeof *grown);
        if (!grown) return false;
        g->list = grown;
        g->capacity = wanted;
    }
    g->list[g->count++] = *s;
    return true;
}

static void compare(sim_warp *w, const sim_ins *i, const step *s, const sim_group_operands *o, group_log *g) {
    static const char *const names[] = {"the descriptor of A", "the descriptor of B", "scale-d"};
    for (int n = 0; n < 3 && s->ins == i; n++) {
        if (s->operands.value[n] == o->value[n]) continue;
        g->reported = true;
        sim_report_at(w, i, "warpgroup", 0,
                      "%s is 0x%llx here and 0x%llx in another warp of the same warpgroup; it has to be the "
                      "same in all four",
                      names[n], (unsigned long long)o->value[n], (unsigned long long)s->operands.value[n]);
        return;
    }
    if (s->ins == i) return;
    char place[SIM_LINE_TEXT];
    g->reported = true;
    sim_report_at(w, i, "warpgroup", 0,
                  "another warp of the same warpgroup executes the one at %s instead; all four have to "
                  "execute the same",
                  sim_line_text(w->kernel->module, s->ins->line, place));
}

void sim_group_step(sim_warp *w, const sim_ins *i, const sim_group_operands *o) {
    uint32_t first = w->index & ~3u;
    group_log *g = first + 4 <= w->block->warp_count ? log_of(w->block, w->index >> 2) : NULL;
    if (!g || g->reported || !sim_option.barriers) return;
    uint32_t n = g->done[w->index & 3]++;
    step s = {i, *o};
    if (n - g->first < g->count)
        compare(w, i, &g->list[n - g->first], o, g);
    else if (!append(g, &s))
        g->reported = true;
}

void sim_group_forget(sim_block *b) {
    for (uint32_t n = 0; n < b->group_log_count; n++) {
        group_log *g = &b->group_logs[n];
        *g = (group_log){.list = g->list, .capacity = g->capacity};
    }
    b->group_logs_used = false;
}

/* The block has ended: reports warps that skipped steps, and operations that nobody has waited for. */
void sim_group_leave(sim_block *b) {
    char text[200];
    for (uint32_t group = 0; b->group_logs_used && group < b->group_log_count; group++) {
        group_log *g = &b->group_logs[group];
        uint32_t most = 0, least = 0;
        for (uint32_t n = 1; n < 4; n++) {
            if (g->done[n] > g->done[most]) most = n;
            if (g->done[n] < g->done[least]) least = n;
        }
        if (!g->reported && g->done[least] < g->done[most]) {
            const step *s = &g->list[g->done[least] - g->first];
            snprintf(text, sizeof text, "warp %u of the same warpgroup ends without having executed this",
                     group * 4 + least);
            sim_report_at(&b->warps[group * 4 + most], s->ins, "warpgroup", 0, "%s", text);
        }
    }
    sim_group_forget(b);
    for (uint32_t n = 0; n < b->warp_count && b->launch->kernel->bulk_stores; n++) {
        sim_warp *w = &b->warps[n];
        if (!w->wgmma_last || (!w->wgmma_open && w->wgmma_groups <= w->wgmma_done)) continue;
        if (sim_option.async)
            sim_report_at(w, w->wgmma_last, "async-unwaited", 0, "%s",
                          w->wgmma_open ? "the block ends, and no wgmma.commit_group follows this"
                                        : "the block ends, and no wgmma.wait_group has waited for this");
    }
}

/* Before a wait for all but the last i->c groups. An operation belongs to all four warps, so the wait lasts until the
 * others have issued theirs. If they never do, cluster.c lets this warp go on, and sim_group_leave reports the
 * missing step. */
void sim_wgmma_gather(sim_warp *w, const sim_ins *i, uint32_t m) {
    const sim_block *b = w->block;
    uint32_t first = w->index & ~3u, needed = w->wgmma_groups > i->c ? w->wgmma_groups - i->c : 0;
    for (uint32_t n = first; n < first + 4 && n < b->warp_count; n++)
        if (b->warps[n].live && b->warps[n].wgmma_groups < needed && !w->force) w->waiting_lanes = m;
}

void sim_group_free(sim_block *b) {
    for (uint32_t n = 0; n < b->group_log_count; n++) free(b->group_logs[n].list);
    free(b->group_logs);
}
