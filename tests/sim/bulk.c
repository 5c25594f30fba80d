/* bulk.c - copies of the asynchronous proxy: cp.async.bulk, cp.async.bulk.tensor, their reductions, st.async
 * and red.async; bulk groups; proxy fences.
 *
 * A copy is checked when it is issued and carried out later (async.h): first its source is read into
 * `data`, then `data` is written to its destination. Until then an access of its destination, or a write to its
 * source, is reported. `valid` carries along which bytes of the source had been written. */
#include "async.h"
#include "bulk.h"
#include "tensor.h"
#include "race.h"

enum { ROUNDS_MOST = 16, DELAYED_MOST = 64 };

typedef struct sim_copy {
    struct sim_copy *next;
    sim_warp *warp;
    const sim_ins *ins;
    uint32_t lane, thread, group, rounds, bytes;
    sim_block *to, *from; /* NULL: global memory */
    uint8_t *dst, *src;   /* first byte, to find overlaps; tensors: shared memory only */
    uint8_t *dst_shadow, *src_shadow;
    uint64_t dst_offset, src_offset; /* offset of those bytes in their shadows */
    sim_block *barrier_block;
    uint32_t barrier;
    bool grouped, read, tensor;
    uint8_t *data, *valid; /* the bytes; a bit for each, set if it was written */
    int32_t at[SIM_MAX_BOX_RANK];
    sim_tensor_map map;
    sim_ins how; /* reductions: op and type */
} sim_copy;

/* --- proxies ---------------------------------------------------------------------------------- */

/* The last writer of each word of a block's shared memory by the generic proxy, and its era (race.h). */
typedef struct sim_proxy {
    uint32_t words;
    uint32_t *writer, *era; /* writer: thread + 1, its block's rank above it; 0: none */
} sim_proxy;

/* Makes or clears the block's record: one allocation holds the struct and its two arrays. */
bool sim_proxy_begin(sim_block *b) {
    uint32_t words = (b->launch->shared_bytes + 3) / 4;
    sim_proxy *p = b->proxy;
    if (!p || p->words < words) {
        free(p);
        p = b->proxy = malloc(sizeof *p + (size_t)words * 2 * 4);
        if (!p) return false;
        p->words = words;
        p->writer = (uint32_t *)(void *)(p + 1);
        p->era = p->writer + words;
    }
    memset(p->writer, 0, (size_t)p->words * 2 * 4);
    return true;
}

static bool tracks_proxies(const sim_block *b) { return b->launch->kernel->bulk_stores && b->proxy; }

void sim_proxy_write(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                     uint32_t bytes) {
    sim_proxy *p = b->proxy;
    if (b->operands) sim_operands_write(w, i, lane, b, offset, bytes);
    if (!tracks_proxies(b) || !w->launch->races) return;
    for (uint64_t word = offset / 4; word <= (offset + bytes - 1) / 4 && word < p->words; word++) {
        p->writer[word] = (w->block->rank << 16 | sim_thread_of(w, lane)) + 1;
        p->era[word] = w->block->race->w[w->index].era;
    }
}

void sim_proxy_fence(sim_warp *w, const sim_ins *i, uint32_t m) {
    (void)i;
    if (tracks_proxies(w->block)) sim_clock_fence_proxy(w, m);
}

/* These bytes were written by the asynchronous proxy. */
static void proxy_forget(const sim_block *b, uint64_t offset, uint32_t bytes) {
    if (!tracks_proxies(b) || !bytes) return;
    for (uint64_t word = offset / 4; word <= (offset + bytes - 1) / 4 && word < b->proxy->words; word++)
        b->proxy->writer[word] = 0;
}

/* The asynchronous proxy reads these bytes. Between their writes by the generic proxy and this read there must be
 * a proxy fence of some thread, ordered by synchronisation. */
void sim_proxy_read(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_block *b, uint64_t offset,
                    uint32_t bytes) {
    const sim_proxy *p = b->proxy;
    if (!sim_option.async || !tracks_proxies(b) || !w->launch->races || !bytes) return;
    /* wgmma belongs to the whole warp: it is enough if one lane knows */
    uint32_t who_issues = i->fn == sim_wgmma ? w->live : 1u << lane, last = 0, last_era = 0;
    for (uint64_t word = offset / 4; word <= (offset + bytes - 1) / 4; word++) {
        uint32_t who = p->writer[word];
        if (!who || (who == last && p->era[word] <= last_era)) continue;
        last = who--;
        last_era = p->era[word];
        const sim_block *writer = b->cluster->blocks[who >> 16];
        if (sim_clock_fenced(w, who_issues, writer->race->index, last_era, who & 0xffff)) continue;
        sim_report_at(w, i, "missing-proxy-fence", lane,
                      "reads shared address 0x%llx, which thread %u of block rank %u wrote by an ordinary "
                      "store; no fence.proxy.async is ordered between that store and this read",
                      (unsigned long long)(b->shared_lo + word * 4), who & 0xffff, who >> 16);
        return;
    }
}

/* --- the list of copies in flight ------------------------------------------------------------- */

static void set_watched(sim_cluster *c) {
    for (uint32_t r = 0; r < c->size; r++)
        if (c->blocks[r]) c->blocks[r]->watched = c->pending_count || tracks_proxies(c->blocks[r]);
}

static void release(sim_copy *x) {
    free(x->data);
    free(x);
}

void sim_copies_discard(sim_cluster *c) {
    while (c->pending) {
        sim_copy *x = c->pending;
        c->pending = x->next;
        release(x);
    }
    c->pending_count = 0;
}

static bool overlaps(const uint8_t *a, uint64_t n, const uint8_t *b, uint64_t m) {
    return a && b && (uintptr_t)a < (uintptr_t)b + m && (uintptr_t)b < (uintptr_t)a + n;
}

static void report_conflict(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_copy *x, bool write, bool source) {
    char place[SIM_LINE_TEXT];
    sim_report_at(w, i, write ? "async-write" : "async-read", lane,
                  "%s the %s of the copy at %s, which nothing has waited for", write ? "writes" : "reads",
                  source ? "source" : "destination", sim_line_text(w->kernel->module, x->ins->line, place));
}

/* Quick test before sim_copies_check_access: whether any copy in flight accesses these bytes. */
bool sim_copy_overlaps(const sim_cluster *c, const uint8_t *host, uint64_t bytes) {
    for (const sim_copy *x = c->pending; x; x = x->next)
        if (overlaps(x->dst, x->bytes, host, bytes) || overlaps(x->src, x->bytes, host, bytes)) return true;
    return false;
}

void sim_copies_check_access(sim_warp *w, const sim_ins *i, uint32_t lane, const uint8_t *host, uint32_t bytes,
                             bool write) {
    if (!sim_option.async) return;
    for (const sim_copy *x = w->block->cluster->pending; x; x = x->next) {
        if (overlaps(x->dst, x->bytes, host, bytes))
            report_conflict(w, i, lane, x, write, false);
        else if (write && !x->read && overlaps(x->src, x->bytes, host, bytes))
            report_conflict(w, i, lane, x, true, true);
        else
            continue;
        return;
    }
}

/* Checks a new copy against those in flight: reductions into the same bytes do not conflict. */
static void check_against_pending(const sim_copy *n) {
    for (const sim_copy *x = n->warp->block->cluster->pending; x && sim_option.async; x = x->next) {
        bool both = x->how.type && n->how.type;
        if (overlaps(x->dst, x->bytes, n->src, n->read ? 0 : n->bytes))
            report_conflict(n->warp, n->ins, n->lane, x, false, false);
        else if (!both && overlaps(x->dst, x->bytes, n->dst, n->bytes))
            report_conflict(n->warp, n->ins, n->lane, x, true, false);
        else if (!x->read && overlaps(x->src, x->bytes, n->dst, n->bytes))
            report_conflict(n->warp, n->ins, n->lane, x, true, true);
        else
            continue;
        return;
    }
}

/* Checks for races, as an access by the issuing thread: it must know of earlier accesses to shared memory. */
static void check_order(const sim_copy *x) {
    sim_warp *w = x->warp;
    uint64_t at[SIM_LANES];
    if (!w->launch->races || !x->bytes) return;
    if (x->from && !x->read) {
        at[x->lane] = x->from->shared_lo + x->src_offset;
        sim_race_access(w, x->ins, 1u << x->lane, at, x->from, NULL, x->bytes, REC_ASYNC, false);
    }
    if (x->to) {
        at[x->lane] = x->to->shared_lo + x->dst_offset;
        sim_race_access(w, x->ins, 1u << x->lane, at, x->to, NULL, x->bytes, REC_WRITE | REC_ASYNC, false);
    }
}

static void issue(sim_cluster *c, sim_copy *x) {
    sim_counts *counts = &x->warp->worker->counts;
    check_against_pending(x);
    check_order(x);
    if (x->to && x->to->operands && x->bytes)
        sim_operands_write(x->warp, x->ins, x->lane, x->to, x->dst_offset, x->bytes);
    counts->c.async_copies++;
    counts->c.async_copy_bytes += x->bytes;
    if (x->to && !x->how.type) sim_shadow_set(x->dst_shadow, x->dst_offset, x->bytes); /* early reads: async-read */
    *c->pending_tail = x;
    c->pending_tail = &x->next;
    c->pending_count++;
    set_watched(c);
}

/* --- moving bytes ----------------------------------------------------------------------------- */

static bool bit(const uint8_t *bits, uint64_t at) { return bits[at >> 3] >> (at & 7) & 1; }

static void take(sim_copy *x, uint64_t to, const uint8_t *p, const uint8_t *shadow, uint64_t offset,
                 uint32_t n) {
    memcpy(x->data + to, p, n);
    if (sim_shadow_all(shadow, offset, n)) {
        sim_shadow_set(x->valid, to, n);
        return;
    }
    for (uint32_t k = 0; k < n; k++)
        if (bit(shadow, offset + k)) sim_shadow_set(x->valid, to + k, 1);
}

/* What bulk copies of this launch have written to global memory: must not be read by the read-only path. */
enum { MAX_COPIED = 1024 };
static struct {
    pthread_mutex_t lock;
    atomic_ullong launch;
    uint32_t count;
    struct copied_bytes { const uint8_t *from; uint64_t bytes; sim_site site; } list[MAX_COPIED];
} copied = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void record_copied_bytes(const sim_copy *x, const uint8_t *p, uint32_t n) {
    const sim_launch *l = x->warp->launch;
    if (!l->races) return;
    pthread_mutex_lock(&copied.lock);
    if (atomic_load(&copied.launch) != l->launch_serial) {
        copied.count = 0;
        atomic_store(&copied.launch, l->launch_serial);
    }
    struct copied_bytes *last = copied.count ? &copied.list[copied.count - 1] : NULL;
    if (last && last->site.ins == x->ins && last->from + last->bytes == p) last->bytes += n;
    else if (copied.count < MAX_COPIED)
        copied.list[copied.count++] = (struct copied_bytes){
            p, n, {x->ins, sim_block_index(x->warp->block), sim_thread_of(x->warp, x->lane)}};
    pthread_mutex_unlock(&copied.lock);
}

void sim_forget_copied_bytes(void) { atomic_store(&copied.launch, 0); }

/* A load by the read-only path: each lane of m reads `bytes` bytes at its address; address `base` is at `host`. */
void sim_check_stale_load(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const uint8_t *host,
                          uint64_t base, uint32_t bytes) {
    if (atomic_load(&copied.launch) != w->launch->launch_serial) return;
    sim_site writer = {NULL, 0, 0};
    uint32_t lane = 0;
    pthread_mutex_lock(&copied.lock);
    SIM_EACH_LANE(l, m)
        for (uint32_t n = 0; n < copied.count && !writer.ins; n++)
            if (overlaps(copied.list[n].from, copied.list[n].bytes, host + (at[l] - base), bytes)) {
                writer = copied.list[n].site;
                lane = l;
            }
    pthread_mutex_unlock(&copied.lock);
    if (!writer.ins) return;
    sim_site here = {i, sim_block_index(w->block), sim_thread_of(w, lane)};
    char site[420], text[600];
    sim_site_text(w->launch, &writer, site, sizeof site);
    snprintf(text, sizeof text, "read with .nc at global address 0x%llx, which this kernel has written %s",
             (unsigned long long)at[lane], site);
    sim_report_pair(w->launch, "nc-written", &here, &writer, text);
}

static void write_destination(const sim_copy *x, uint64_t from, uint8_t *p, uint8_t *shadow, uint64_t offset,
                              uint32_t n) {
    if (!x->to) record_copied_bytes(x, p, n);
    if (x->how.type) {
        uint32_t size = sim_types[x->how.type].bytes;
        for (uint32_t k = 0; k < n; k += size) {
            uint64_t v = 0;
            memcpy(&v, x->data + from + k, size);
            sim_combine(&x->how, p + k, size, v, !x->to);
        }
        return;
    }
    memcpy(p, x->data + from, n);
    if (sim_shadow_all(x->valid, from, n)) {
        sim_shadow_set(shadow, offset, n);
        return;
    }
    for (uint32_t k = 0; k < n; k++)
        if (bit(x->valid, from + k))
            sim_shadow_set(shadow, offset + k, 1);
        else
            sim_shadow_clear(shadow, offset + k, 1);
}

/* Swizzles permute 16-byte chunks by the shared address: bits 4-6 ^= bits 7-9, as many bits as the mode has. */
static uint32_t swizzled(const sim_tensor_map *m, uint32_t address) {
    static const uint8_t masks[] = {0, 1, 3, 7};
    return address ^ (address >> 7 & masks[m->swizzle & 3]) << 4;
}

/* The elements of one row of a box that lie inside the tensor. */
typedef struct row {
    uint64_t address;
    uint32_t first, bytes;
} row;

static uint32_t elements_of_box(const sim_tensor_map *m, uint32_t k) {
    return k ? (m->box[k] + m->element_strides[k] - 1u) / m->element_strides[k] : m->box[0];
}

static uint32_t row_count(const sim_tensor_map *m) {
    uint32_t n = 1;
    for (uint32_t k = 1; k < m->rank; k++) n *= elements_of_box(m, k);
    return n;
}

static bool row_of(const sim_tensor_map *m, const int32_t *at, uint32_t index, row *out) {
    uint32_t element = sim_tensor_bytes(m->type);
    uint64_t address = m->address;
    for (uint32_t k = 1; k < m->rank; k++) {
        uint32_t n = elements_of_box(m, k);
        int64_t x = (int64_t)at[k] + (int64_t)(index % n) * m->element_strides[k];
        index /= n;
        if (x < 0 || x > (int64_t)m->dims[k]) return false;
        address += (uint64_t)x * m->strides[k - 1];
    }
    int64_t first = at[0] < 0 ? -(int64_t)at[0] : 0, end = (int64_t)m->dims[0] + 1 - at[0];
    if (end > m->box[0]) end = m->box[0];
    if (first >= end) return false;
    out->address = address + (uint64_t)((int64_t)at[0] + first) * element;
    out->first = (uint32_t)first * element;
    out->bytes = (uint32_t)(end - first) * element;
    return true;
}

static void fill_box(sim_copy *x) {
    static const uint8_t nan16[2] = {0xff, 0x7f}, nan32[4] = {0xff, 0xff, 0xff, 0x7f},
                         nan64[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    uint32_t size = sim_tensor_bytes(x->map.type);
    memset(x->data, 0, x->bytes);
    for (uint32_t k = 0; x->map.fill && k < x->bytes; k += size)
        memcpy(x->data + k, size == 2 ? nan16 : size == 4 ? nan32 : nan64, size);
    sim_shadow_set(x->valid, 0, x->bytes);
}

enum { TENSOR_TF32 = 11 }; /* and 12, which flushes subnormal numbers */

/* Rounds elements of TFLOAT32 on their way to shared memory. How ties round is not documented; here away from 0. */
static void round_tf32(uint8_t *p, uint32_t bytes) {
    for (uint32_t k = 0, v; k < bytes; k += 4) {
        memcpy(&v, p + k, 4);
        if ((v >> 23 & 255) != 255) v = (v + 0x1000) & ~0x1fffu;
        memcpy(p + k, &v, 4);
    }
}

static void read_tensor(sim_copy *x) {
    uint32_t pitch = x->map.box[0] * sim_tensor_bytes(x->map.type);
    row r;
    fill_box(x);
    for (uint32_t n = 0; n < row_count(&x->map); n++) {
        if (!row_of(&x->map, x->at, n, &r)) continue;
        const sim_allocation *a = sim_memory_find(r.address);
        if (!a || r.address - a->base + r.bytes > a->size) continue; /* reported when it was issued */
        sim_shadow_clear(x->valid, (uint64_t)n * pitch + r.first, r.bytes);
        take(x, (uint64_t)n * pitch + r.first, a->host + (r.address - a->base), a->shadow,
             r.address - a->base, r.bytes);
        if (x->map.type >= TENSOR_TF32) round_tf32(x->data + (uint64_t)n * pitch + r.first, r.bytes);
    }
}

static void write_tensor(const sim_copy *x) {
    uint32_t pitch = x->map.box[0] * sim_tensor_bytes(x->map.type);
    row r;
    for (uint32_t n = 0; n < row_count(&x->map); n++) {
        if (!row_of(&x->map, x->at, n, &r)) continue;
        const sim_allocation *a = sim_memory_find(r.address);
        if (!a || r.address - a->base + r.bytes > a->size) continue;
        write_destination(x, (uint64_t)n * pitch + r.first, a->host + (r.address - a->base), a->shadow,
                          r.address - a->base, r.bytes);
    }
}

/* Copies the shared side of a box in chunks of 16 bytes, swizzled. */
static void box_chunks(sim_copy *x, bool into) {
    sim_block *b = into ? x->to : x->from;
    uint64_t start = into ? x->dst_offset : x->src_offset;
    for (uint32_t k = 0; k < x->bytes; k += 16) {
        uint64_t offset = swizzled(&x->map, b->shared_lo + (uint32_t)start + k) - b->shared_lo;
        if (into)
            write_destination(x, k, b->shared + offset, b->shared_shadow, offset, 16);
        else
            take(x, k, b->shared + offset, b->shared_shadow, offset, 16);
    }
}

static void read_source(sim_copy *x) {
    if (x->read) return;
    x->read = true;
    if (!x->tensor)
        take(x, 0, x->src, x->src_shadow, x->src_offset, x->bytes);
    else if (x->to)
        read_tensor(x);
    else
        box_chunks(x, false);
}

static void carry_out(sim_cluster *c, sim_copy *x) {
    sim_copy **at = &c->pending;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
    if (c->pending_tail == &x->next) c->pending_tail = at;
    c->pending_count--;
    read_source(x);
    if (!x->tensor)
        write_destination(x, 0, x->dst, x->dst_shadow, x->dst_offset, x->bytes);
    else if (x->to)
        box_chunks(x, true);
    else
        write_tensor(x);
    if (x->to && !x->how.type) proxy_forget(x->to, x->dst_offset, x->bytes);
    if (x->barrier_block)
        (void)sim_mbarrier_complete(x->warp, x->ins, x->lane, x->barrier_block, x->barrier, x->bytes);
    c->changes++;
    sim_changed(c->launch);
    release(x);
    set_watched(c);
}

/* --- when copies are carried out ---------------------------------------------------------------- */

/* Only wait_group tells the program that such a copy has read its source: it is delayed until then. */
static bool may_be_delayed(const sim_copy *x) { return x->grouped && x->from && !x->read; }

void sim_copy_complete_random(sim_cluster *c) {
    uint32_t others = 0;
    c->random ^= c->random << 13;
    c->random ^= c->random >> 17;
    c->random ^= c->random << 5;
    for (const sim_copy *x = c->pending; x; x = x->next) others += !may_be_delayed(x);
    bool any = !others;
    sim_copy *x = c->pending;
    for (uint32_t n = c->random % (any ? c->pending_count : others); n || (!any && may_be_delayed(x)); x = x->next)
        n -= any || !may_be_delayed(x);
    carry_out(c, x);
}

void sim_copies_advance(sim_cluster *c) {
    for (sim_copy *x = c->pending, *next; x; x = next) {
        next = x->next;
        if (++x->rounds > ROUNDS_MOST * c->size && !(may_be_delayed(x) && c->pending_count <= DELAYED_MOST))
            carry_out(c, x);
    }
}

void sim_copies_finish(sim_cluster *c, const sim_block *b) {
    for (sim_copy *x = c->pending, *next; x; x = next) {
        next = x->next;
        bool source = x->from == b && !x->read;
        if (x->to != b && !source) {
            if (x->warp->block == b && !x->to) carry_out(c, x); /* to global memory: nothing waits for it */
            continue;
        }
        if (sim_option.async)
            sim_report_at(x->warp, x->ins, "async-exit", x->lane,
                          "the block ends while its shared memory is the %s of this copy",
                          source ? "source" : "destination");
        carry_out(c, x);
    }
}

static bool groups_of(sim_warp *w) {
    sim_block *b = w->block;
    uint32_t n = w->launch->threads;
    if (b->group_capacity >= n) return true;
    uint32_t *grown = realloc(b->groups, n * sizeof *grown);
    if (!grown) {
        sim_warp_fault(w, 2);
        return false;
    }
    memset(grown + b->group_capacity, 0, (n - b->group_capacity) * sizeof *grown);
    b->groups = grown;
    b->group_capacity = n;
    return true;
}

void sim_bulk_commit(sim_warp *w, const sim_ins *i, uint32_t m) {
    (void)i;
    if (!groups_of(w)) return;
    SIM_EACH_LANE(l, m) w->block->groups[sim_thread_of(w, l)]++;
}

/* i->imm: number of groups that may stay pending; i->op: 1 with .read */
void sim_bulk_wait(sim_warp *w, const sim_ins *i, uint32_t m) {
    sim_cluster *c = w->block->cluster;
    if (!c->pending_count || !groups_of(w)) return;
    for (sim_copy *x = c->pending, *next; x; x = next) {
        next = x->next;
        if (!x->grouped || x->warp != w || !(m >> x->lane & 1)) continue;
        if ((int64_t)x->group + i->imm >= (int64_t)w->block->groups[x->thread]) continue;
        if (i->op)
            read_source(x);
        else
            carry_out(c, x);
    }
}

/* --- instructions ----------------------------------------------------------------------------- */

static uint64_t operand(const sim_warp *w, const uint32_t *p, uint32_t lane) {
    uint64_t v = p[ADDRESS_WIDE] ? sim_slot64(w, p[ADDRESS_SLOT])[lane] : sim_slot(w, p[ADDRESS_SLOT])[lane];
    v += (uint64_t)p[ADDRESS_LOW] | (uint64_t)p[ADDRESS_HIGH] << 32;
    return p[ADDRESS_WIDE] ? v : (uint32_t)v;
}

static bool check_multiple(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t value, uint32_t multiple,
                           const char *what) {
    if (!(value & (multiple - 1))) return true;
    sim_report_at(w, i, "misaligned", lane, "the %s of a bulk copy is 0x%llx, which is no multiple of %u",
                  what, (unsigned long long)value, multiple);
    sim_warp_fault(w, SIM_ERROR_MISALIGNED);
    return false;
}

/* One side of a copy; the functions that fill it return false after a fault. */
typedef struct side {
    sim_block *block;
    uint8_t *host, *shadow;
    uint64_t offset;
    uint32_t address;
} side;

static bool shared_side(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, bool generic,
                        bool cluster, uint32_t bytes, side *out) {
    uint64_t at = generic ? address - SIM_SHARED_WINDOW : address;
    sim_block *b = at >> SIM_RANK_SHIFT && !cluster ? NULL : sim_cluster_peer(w->block, &at);
    bool ended = b && b->ended;
    if (!b || ended || at < b->shared_lo || at > b->shared_hi || b->shared_hi - at < bytes) {
        sim_report_at(w, i, ended ? "ended-block" : "out-of-bounds", lane,
                      "%u bytes at shared address 0x%llx: shared memory spans 0x%x..0x%x%s", bytes,
                      (unsigned long long)at, w->block->shared_lo, w->block->shared_hi,
                      ended ? "; this block of the cluster has ended" : "");
        sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
        return false;
    }
    out->block = b;
    out->offset = at - b->shared_lo;
    out->host = b->shared + out->offset;
    out->shadow = b->shared_shadow;
    out->address = (uint32_t)at;
    return true;
}

/* The kind of access that a copy makes to global memory. */
static sim_access access_of(const sim_ins *i) { return i->width & BULK_REDUCE ? SIM_UPDATE : SIM_WRITE; }

static bool global_side(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, uint32_t bytes,
                        sim_access access, side *out) {
    sim_allocation *a = sim_memory_find(address);
    if (!a || a->size < bytes || address - a->base > a->size - bytes) {
        (void)sim_reach(w, i, lane, address, SP_GLOBAL, bytes ? bytes : 1, SIM_WRITE); /* reports the finding */
        if (w->fault) return false;
    }
    *out = (side){0};
    if (!a) return bytes == 0;
    if (SIM_UNLIKELY(w->worker->touches != NULL) && bytes && !(i->width & BULK_PREFETCH)) {
        uint64_t at[SIM_LANES];
        at[lane] = address;
        sim_touch(w, i, a, at, 1u << lane, bytes, access);
    }
    out->offset = address - a->base;
    out->host = a->host + out->offset;
    out->shadow = a->shadow;
    return true;
}

static sim_copy *new_copy(sim_warp *w, const sim_ins *i, uint32_t lane, uint32_t bytes) {
    sim_copy *x = calloc(1, sizeof *x);
    if (x) x->data = malloc((size_t)bytes + bytes / 8 + 16);
    if (!x || !x->data) {
        free(x);
        sim_warp_fault(w, 2);
        return NULL;
    }
    x->valid = x->data + bytes;
    memset(x->valid, 0, bytes / 8 + 16);
    x->warp = w;
    x->ins = i;
    x->lane = lane;
    x->thread = sim_thread_of(w, lane);
    x->bytes = bytes;
    x->grouped = i->width & BULK_GROUP;
    if (x->grouped) {
        if (!groups_of(w)) {
            release(x);
            return NULL;
        }
        x->group = w->block->groups[x->thread];
    }
    if (i->width & BULK_REDUCE) {
        x->how.op = i->op;
        x->how.type = i->type;
    }
    return x;
}

static void use_source(sim_copy *x, const side *s) {
    x->from = s->block;
    x->src = s->host;
    x->src_shadow = s->shadow;
    x->src_offset = s->offset;
}

static void use_destination(sim_copy *x, const side *s) {
    x->to = s->block;
    x->dst = s->host;
    x->dst_shadow = s->shadow;
    x->dst_offset = s->offset;
}

static bool use_barrier(sim_warp *w, const sim_ins *i, uint32_t lane, sim_copy *x, const side *bar) {
    if (bar->block != x->to) {
        sim_report_at(w, i, "bulk-barrier", lane,
                      "the mbarrier is in block %u of the cluster, the destination in block %u",
                      bar->block->rank, x->to->rank);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    if (!sim_mbarrier_known(bar->block, bar->address)) {
        sim_report_at(w, i, "mbarrier-uninitialised", lane,
                      "no mbarrier.init has made an mbarrier at shared address 0x%x", bar->address);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    x->barrier_block = bar->block;
    x->barrier = bar->address;
    return true;
}

/* Issues copies of *model, whose source is set, to the destinations in shared memory: one, or with .multicast the
 * same offset in each block of the mask. */
static bool issue_to_shared(sim_warp *w, const sim_ins *i, uint32_t lane, const uint32_t *p, sim_copy *model) {
    sim_cluster *c = w->block->cluster;
    uint64_t dst = operand(w, p + BULK_DESTINATION, lane), bar = operand(w, p + BULK_BARRIER, lane);
    bool generic = i->width & BULK_GENERIC, cluster = i->x & X_CLUSTER, cast = i->width & BULK_MULTICAST;
    uint32_t mask = cast ? sim_slot(w, p[BULK_MASK])[lane] & 0xffff : 1, bytes = model->bytes;
    if ((!(i->width & BULK_STORE) && !check_multiple(w, i, lane, dst, i->width & BULK_TENSOR ? 128 : 16, "destination"))
        || !check_multiple(w, i, lane, bar, 8, "mbarrier"))
        return false;
    if (cast && (!mask || mask >> c->size)) {
        sim_report_at(w, i, "multicast-mask", lane,
                      "the mask 0x%x names blocks outside the cluster of %u, or none", mask, c->size);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return false;
    }
    if (cast) {                        /* as given, they must be addresses in the cluster */
        side to, at;
        if (!shared_side(w, i, lane, dst, generic, true, bytes, &to)
            || !shared_side(w, i, lane, bar, generic, true, 8, &at))
            return false;
    }
    for (uint32_t r = 0; mask >> r; r++) {
        side to, at;
        if (!(mask >> r & 1)) continue;
        uint64_t dst_there = cast ? sim_in_block(dst, r) : dst, bar_there = cast ? sim_in_block(bar, r) : bar;
        if (!shared_side(w, i, lane, dst_there, generic, cluster || generic, bytes, &to)
            || !shared_side(w, i, lane, bar_there, generic, cluster || generic, 8, &at))
            return false;
        sim_copy *x = new_copy(w, i, lane, bytes);
        if (!x) return false;
        uint8_t *data = x->data, *valid = x->valid;
        *x = *model;
        x->data = data;
        x->valid = valid;
        x->next = NULL;
        if (model->read) { /* st.async, red.async: the values were taken at issue */
            memcpy(data, model->data, bytes);
            sim_shadow_set(valid, 0, bytes);
        }
        use_destination(x, &to);
        if (!use_barrier(w, i, lane, x, &at)) {
            release(x);
            return false;
        }
        issue(c, x);
    }
    return true;
}

static void bulk_lane(sim_warp *w, const sim_ins *i, uint32_t lane, const uint32_t *p) {
    uint32_t bytes = sim_slot(w, p[BULK_SIZE])[lane];
    uint64_t src = operand(w, p + BULK_SOURCE, lane), dst = operand(w, p + BULK_DESTINATION, lane);
    bool from_shared = i->width & BULK_FROM_SHARED;
    side s, d;
    if (!check_multiple(w, i, lane, bytes, 16, "size") || !check_multiple(w, i, lane, src, 16, "source")) return;
    if (from_shared ? !shared_side(w, i, lane, src, false, false, bytes, &s)
                    : !global_side(w, i, lane, src, bytes, SIM_READ, &s))
        return;
    if (from_shared) sim_proxy_read(w, i, lane, s.block, s.offset, bytes);
    if (i->space == SP_SHARED && bytes > w->launch->shared_bytes) { /* more than any block has: report it */
        (void)shared_side(w, i, lane, w->block->shared_lo, false, false, bytes, &d);
        return;
    }
    sim_copy *x = new_copy(w, i, lane, bytes);
    if (!x) return;
    use_source(x, &s);
    if (i->space == SP_SHARED) {
        issue_to_shared(w, i, lane, p, x);
        release(x);
        return;
    }
    if (!check_multiple(w, i, lane, dst, 16, "destination") || !global_side(w, i, lane, dst, bytes, access_of(i), &d)) {
        release(x);
        return;
    }
    use_destination(x, &d);
    issue(w->block->cluster, x);
}

void sim_bulk(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        bulk_lane(w, i, l, w->kernel->lists + i->list);
        if (w->fault) return;
    }
}

/* st.async, red.async: takes the values at issue. */
void sim_store_async(sim_warp *w, const sim_ins *i, uint32_t m) {
    const uint32_t *p = w->kernel->lists + i->list;
    SIM_EACH_LANE(l, m) {
        uint64_t dst = operand(w, p + BULK_DESTINATION, l);
        if (!check_multiple(w, i, l, dst, (uint32_t)i->size * i->count, "destination")) return;
        sim_copy *x = new_copy(w, i, l, (uint32_t)i->size * i->count);
        if (!x) return;
        for (uint32_t k = 0; k < i->count; k++)
            if (i->size == 8)
                memcpy(x->data + k * 8, &sim_slot64(w, p[BULK_COORDINATES + k] & ~SIM_WIDE)[l], 8);
            else
                memcpy(x->data + k * 4, &sim_slot(w, p[BULK_COORDINATES + k] & ~SIM_WIDE)[l], 4);
        x->read = true;
        bool good = issue_to_shared(w, i, l, p, x);
        release(x);
        if (!good) return;
    }
}

/* st.bulk: a long store of zeros, by the generic proxy. */
void sim_store_bulk(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        uint64_t at = (i->q ? sim_slot64(w, i->a)[l] : sim_slot(w, i->a)[l]) + (uint64_t)i->imm,
                 bytes = sim_slot64(w, i->b)[l];
        if (!check_multiple(w, i, l, bytes, 8, "size")) return;
        bool outside = i->space == SP_GENERIC && at - SIM_SHARED_WINDOW >= SIM_WINDOW_SIZE;
        if (bytes > SIM_STORE_BULK_MOST || outside) {
            sim_report_at(w, i, "out-of-bounds", l,
                          outside ? "the address 0x%llx is not in shared memory"
                                  : "%llu bytes, more than st.bulk can store",
                          (unsigned long long)(outside ? at : bytes));
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_ADDRESS);
            return;
        }
        uint8_t *p = bytes ? sim_reach(w, i, l, at, (sim_space)i->space, (uint32_t)bytes, SIM_WRITE) : NULL;
        if (w->fault) return;
        if (p) memset(p, 0, bytes);
    }
}

/* --- tensors ---------------------------------------------------------------------------------- */

static bool fetch_map(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address, sim_tensor_map *map) {
    if (!check_multiple(w, i, lane, address, 64, "tensor map's address")) return false;
    const uint8_t *at = sim_reach(w, i, lane, address, SP_GENERIC, 128, SIM_READ);
    if (!at) return false;
    memcpy(map, at, sizeof *map);
    const char *wrong = map->check != sim_tensor_check(map)
                            ? "what is there was not made by cuTensorMapEncodeTiled"
                        : map->rank != i->count ? "the map's rank is not the instruction's"
                                                : NULL;
    if (!wrong) return true;
    sim_report_at(w, i, "tensor-map", lane, "the tensor map at 0x%llx: %s", (unsigned long long)address,
                  wrong);
    sim_warp_fault(w, SIM_ERROR_ILLEGAL_INSTRUCTION);
    return false;
}

static sim_type reduction_type(const sim_tensor_map *m, uint32_t op) {
    static const uint8_t types[] = {T_NONE, T_NONE, T_U32,  T_S32, T_U64, T_S64, T_F16,
                                    T_F32,  T_F64,  T_BF16, T_F32, T_F32, T_F32};
    sim_type t = (sim_type)types[m->type];
    bool logic = op == A_AND || op == A_OR || op == A_XOR, real = sim_types[t].kind == K_FLOAT;
    if ((logic && real) || ((op == A_INC || op == A_DEC) && t != T_U32)) return T_NONE;
    if ((op == A_MIN || op == A_MAX) && (t == T_F32 || t == T_F64)) return T_NONE;
    return t;
}

/* Whether all elements of the box that are inside the tensor lie in allocated memory. */
static bool check_rows(sim_warp *w, const sim_ins *i, uint32_t lane, const sim_tensor_map *m,
                       const int32_t *at) {
    row r;
    side s;
    sim_access access = i->space == SP_GLOBAL ? access_of(i) : SIM_READ;
    for (uint32_t n = 0; n < row_count(m); n++)
        if (row_of(m, at, n, &r) && !global_side(w, i, lane, r.address, r.bytes, access, &s)) return false;
    return true;
}

static void tensor_lane(sim_warp *w, const sim_ins *i, uint32_t lane, const uint32_t *p) {
    sim_tensor_map map;
    int32_t at[SIM_MAX_BOX_RANK] = {0};
    bool store = i->space == SP_GLOBAL;
    uint64_t src = store ? operand(w, p + BULK_SOURCE, lane) : 0;
    side s;
    if (!fetch_map(w, i, lane, operand(w, p + (store ? BULK_DESTINATION : BULK_SOURCE), lane), &map)) return;
    for (uint32_t k = 0; k < map.rank; k++) at[k] = (int32_t)sim_slot(w, p[BULK_COORDINATES + k])[lane];
    uint32_t bytes = row_count(&map) * map.box[0] * sim_tensor_bytes(map.type);
    if (!check_rows(w, i, lane, &map, at)) return;
    if (i->width & BULK_PREFETCH) return;
    if (store
        && (!check_multiple(w, i, lane, src, 128, "source") || !shared_side(w, i, lane, src, false, false, bytes, &s)))
        return;
    sim_copy *x = new_copy(w, i, lane, bytes);
    if (!x) return;
    x->tensor = true;
    x->map = map;
    memcpy(x->at, at, sizeof at);
    if (!store) {
        issue_to_shared(w, i, lane, p, x);
        release(x);
        return;
    }
    sim_proxy_read(w, i, lane, s.block, s.offset, bytes);
    use_source(x, &s);
    if (i->width & BULK_REDUCE) {
        x->how.type = (uint8_t)reduction_type(&map, i->op);
        if (!x->how.type) {
            sim_report_at(w, i, "tensor-map", lane, "the elements of this tensor cannot be reduced so");
            sim_warp_fault(w, SIM_ERROR_ILLEGAL_INSTRUCTION);
            release(x);
            return;
        }
    }
    issue(w->block->cluster, x);
}

void sim_bulk_tensor(sim_warp *w, const sim_ins *i, uint32_t m) {
    SIM_EACH_LANE(l, m) {
        tensor_lane(w, i, l, w->kernel->lists + i->list);
        if (w->fault) return;
    }
}
