/* operands.c - shared memory that wgmma and tcgen05 read asynchronously: must be fenced before and not overwritten
 * until the operation has been waited for.
 *
 * For each group of a warpgroup's operations there is a bitmap of the 16-byte chunks that it reads. A thread that
 * writes such a chunk must have waited for the group, or be ordered after a warp that has; wgmma is one operation
 * of four warps, so any of the four will do. A chunk that was written correctly is cleared, and old groups are
 * dropped.
 *
 * For tcgen05 a group is what one thread issues up to a commit. A thread that writes such a chunk must know that
 * the group's last operation is complete. */
#include "async.h"
#include "tensor_memory.h"

enum { MOST_GROUPS = 16 };             /* of a warpgroup */

typedef struct sim_operand_reads {
    struct sim_operand_reads *next;
    uint32_t warpgroup, group;         /* tcgen05: the thread; its operations before the group */
    bool tensor;
    uint64_t issuer;                   /* tcgen05: the block of that thread, */
    uint32_t last;                     /* and the group's last operation */
    uint32_t waited, era[4];           /* warps that have waited for the group; their eras */
    uint32_t chunks[];
} reads;

static void forget_oldest(sim_block *b, uint32_t warpgroup, uint64_t issuer)
{
    uint32_t n = 0;
    for (reads **at = &b->operands, *x; (x = *at); at = &x->next) {
        if (x->warpgroup != warpgroup || x->issuer != issuer || ++n < MOST_GROUPS) continue;
        *at = x->next;
        free(x);
        return;
    }
}

static reads *new_reads(sim_block *b, uint32_t warpgroup, uint32_t group, uint64_t issuer)
{
    forget_oldest(b, warpgroup, issuer);
    reads *x = calloc(1, sizeof *x + ((b->shared_hi - b->shared_lo) / 512 + 1) * sizeof *x->chunks);
    if (!x) return NULL;
    x->warpgroup = warpgroup;
    x->group = group;
    x->issuer = issuer;
    x->next = b->operands;
    return b->operands = x;
}

/* The warp issues a wgmma that reads the chunk at this offset of the block's shared memory. */
void sim_operand_read(sim_warp *w, const sim_ins *i, uint64_t offset)
{
    sim_block *b = w->block;
    uint32_t group = w->wgmma_groups + 1, warpgroup = w->index >> 2;
    sim_proxy_read(w, i, 0, b, offset, 16);
    if (!sim_option.async) return;
    reads *x = b->operands;
    while (x && !(x->warpgroup == warpgroup && x->group == group)) x = x->next;
    if (!x && !(x = new_reads(b, warpgroup, group, 0))) return;
    x->chunks[offset >> 9] |= 1u << (offset >> 4 & 31);
}

void sim_operand_read_by(sim_warp *w, const sim_ins *i, uint32_t lane, sim_block *b, uint64_t offset, uint32_t number)
{
    uint32_t thread = sim_thread_of(w, lane), group = sim_tensor_pipe_of(w, lane)->committed;
    uint64_t issuer = sim_block_index(w->block);
    sim_proxy_read(w, i, lane, b, offset, 16);
    if (!sim_option.async) return;
    reads *x = b->operands;
    while (x && !(x->tensor && x->issuer == issuer && x->warpgroup == thread && x->group == group)) x = x->next;
    if (!x) {
        if (!(x = new_reads(b, thread, group, issuer))) return;
        x->tensor = true;
    }
    x->last = number;
    x->chunks[offset >> 9] |= 1u << (offset >> 4 & 31);
}

/* The warp has executed wgmma.wait_group. */
void sim_operands_done(sim_warp *w)
{
    uint32_t n = w->index & 3;
    for (reads *x = w->block->operands; x; x = x->next) {
        if (x->tensor || x->warpgroup != w->index >> 2 || x->group > w->wgmma_done || x->waited >> n & 1) continue;
        x->waited |= 1u << n;
        x->era[n] = w->launch->races ? w->block->race->w[w->index].era : 0;
    }
}

void sim_operands_forget(sim_block *b)
{
    for (reads *x; (x = b->operands);) {
        b->operands = x->next;
        free(x);
    }
}

static bool is_wait_known(const sim_warp *w, uint32_t lane, const sim_block *b, const reads *x)
{
    if (x->tensor)
        return !w->launch->races || sim_clock_knows(w, x->issuer, SIM_COUNT_DONE + x->warpgroup, x->last);
    if (b == w->block && w->index >> 2 == x->warpgroup && w->wgmma_done >= x->group) return true;
    if (!w->launch->races) return x->waited != 0;
    for (uint32_t n = 0; n < 4; n++) {
        if (!(x->waited >> n & 1)) continue;
        const sim_record record = { .block = b->race->index, .era = x->era[n],
                                    .warp = (uint8_t)(x->warpgroup * 4 + n) };
        if (sim_order_known_of(w->block->race, w->index, lane, &record, SIM_FULL)) return true;
    }
    return false;
}

void sim_operands_write(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                        uint32_t bytes)
{
    for (reads *x = b->operands; x; x = x->next)
        for (uint64_t n = offset >> 4; n <= (offset + bytes - 1) >> 4; n++) {
            if (!(x->chunks[n >> 5] >> (n & 31) & 1)) continue;
            if (is_wait_known(w, lane, b, x)) { x->chunks[n >> 5] &= ~(1u << (n & 31)); continue; }
            if (x->tensor) {
                sim_report_at(w, i, "async-write", lane,
                              "writes shared address 0x%llx, which a tcgen05 operation of thread %u may still read: "
                              "nobody that this thread knows of has waited at the mbarrier of its tcgen05.commit",
                              (unsigned long long)(b->shared_lo + (n << 4 > offset ? n << 4 : offset)), x->warpgroup);
                return;
            }
            sim_report_at(w, i, "async-write", lane,
                          "writes shared address 0x%llx, which a wgmma.mma_async of warps %u to %u may still "
                          "read: no wgmma.wait_group %s",
                          (unsigned long long)(b->shared_lo + (n << 4 > offset ? n << 4 : offset)),
                          x->warpgroup * 4, x->warpgroup * 4 + 3,
                          x->waited ? "that this thread knows of has waited for its group"
                                    : "has waited for its group");
            return;
        }
}
