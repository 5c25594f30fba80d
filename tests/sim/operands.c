/* operands.c - shared memory that wgmma reads: fenced before, left alone until it is waited for.
 *
 * For each group of a warpgroup's operations that nobody has waited for there is a bitmap of the 16-byte
 * chunks that it reads. wgmma is one operation of four warps: what one of them has waited for is done. */
#include "async.h"

typedef struct sim_operand_reads {
    struct sim_operand_reads *next;
    uint32_t warpgroup, group;
    uint32_t chunks[];
} reads;

static uint32_t groups_done(const sim_warp *w)
{
    const sim_block *b = w->block;
    uint32_t done = 0, first = w->index & ~3u;
    for (uint32_t n = first; n < first + 4 && n < b->warp_count; n++)
        if (b->warps[n].wgmma_done > done) done = b->warps[n].wgmma_done;
    return done;
}

/* An operation that w issues reads the chunk at this offset of the block's shared memory. */
void sim_operand_read(sim_warp *w, const sim_ins *i, uint64_t offset)
{
    sim_block *b = w->block;
    uint32_t group = w->wgmma_groups + 1, warpgroup = w->index >> 2;
    sim_proxy_read(w, i, 0, b, offset, 16);
    if (!sim_option.async || groups_done(w) >= group) return;
    reads *x = b->operands;
    while (x && !(x->warpgroup == warpgroup && x->group == group)) x = x->next;
    if (!x) {
        x = calloc(1, sizeof *x + ((b->shared_hi - b->shared_lo) / 512 + 1) * sizeof *x->chunks);
        if (!x) return;
        x->warpgroup = warpgroup;
        x->group = group;
        x->next = b->operands;
        b->operands = x;
    }
    x->chunks[offset >> 9] |= 1u << (offset >> 4 & 31);
}

void sim_operands_done(sim_warp *w)
{
    uint32_t done = groups_done(w);
    for (reads **at = &w->block->operands, *x; (x = *at);) {
        if (x->warpgroup != w->index >> 2 || x->group > done) { at = &x->next; continue; }
        *at = x->next;
        free(x);
    }
}

void sim_operands_forget(sim_block *b)
{
    for (reads *x; (x = b->operands);) {
        b->operands = x->next;
        free(x);
    }
}

void sim_operands_write(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                        uint32_t bytes)
{
    for (const reads *x = b->operands; x; x = x->next)
        for (uint64_t n = offset >> 4; n <= (offset + bytes - 1) >> 4; n++) {
            if (!(x->chunks[n >> 5] >> (n & 31) & 1)) continue;
            sim_report_at(w, i, "async-write", lane,
                          "writes shared address 0x%llx, which a wgmma.mma_async of warps %u to %u may still "
                          "read: no wgmma.wait_group has waited for its group",
                          (unsigned long long)(b->shared_lo + (n << 4 > offset ? n << 4 : offset)),
                          x->warpgroup * 4, x->warpgroup * 4 + 3);
            return;
        }
}
