/* guess.c - plain reads that a later compare-and-swap makes harmless.
 *
 *     old = *p;
 *     do { assumed = old; old = atomicCAS(p, assumed, f(assumed)); } while (assumed != old);
 *
 * The first read races with the atomics of other threads and does no harm: the compare-and-swap checks whatever
 * value it gave. So a plain read that conflicts with an atomic is only suspected. The reader's next atomic on these
 * bytes decides: a compare-and-swap clears the read, any other atomic convicts it. Suspicions that are still open
 * when the launch ends are reported.
 *
 * At most LIMIT suspicions are kept for each of at most PAIRS pairs of instructions; further ones are dropped and
 * not reported. That takes more open guesses than threads run at a time. */
#include "race.h"

enum { BUCKETS = 1024, PAIRS = 64, LIMIT = 16384 };

typedef struct suspicion {
    struct suspicion *next;
    sim_conflict x;
    const sim_site *reader;            /* x.a or x.b */
    uint32_t pair;
    bool convicted;
} suspicion;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static suspicion *buckets[BUCKETS];
static struct { const sim_ins *reader, *other; uint32_t count; } pairs[PAIRS];
static uint32_t pair_count;
static atomic_uint open_count;         /* not convicted: a compare-and-swap may still clear them */

static suspicion **bucket_of(uint64_t block, uint32_t thread)
{
    return &buckets[(block * 1024 + thread) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* A key for a byte of global memory (owner NULL) or of a block's shared memory. */
uint64_t sim_guess_place(const sim_block *owner, uint64_t address)
{
    return owner ? UINT64_C(1) << 63 | sim_block_index(owner) << 24 | address : address;
}

static bool same_site(const sim_site *a, const sim_site *b)
{
    return a->ins == b->ins && a->block == b->block && a->thread == b->thread;
}

/* The index of the pair of instructions; PAIRS if the table is full. */
static uint32_t index_of_pair(const sim_ins *reader, const sim_ins *other)
{
    uint32_t k = 0;
    while (k < pair_count && !(pairs[k].reader == reader && pairs[k].other == other)) k++;
    if (k < pair_count || k == PAIRS) return k;
    pairs[k].reader = reader;
    pairs[k].other = other;
    pairs[k].count = 0;
    return pair_count++;
}

void sim_guess_store(const sim_conflict *x, const sim_site *reader, const sim_site *other)
{
    pthread_mutex_lock(&lock);
    uint32_t pair = index_of_pair(reader->ins, other->ins);
    suspicion **head = bucket_of(reader->block, reader->thread), *s = *head;
    while (s && !(s->pair == pair && s->x.place == x->place && same_site(s->reader, reader))) s = s->next;
    if (!s && pair < PAIRS && pairs[pair].count < LIMIT && (s = malloc(sizeof *s))) {
        *s = (suspicion){ .next = *head, .x = *x, .pair = pair };
        s->reader = reader == &x->a ? &s->x.a : &s->x.b;
        *head = s;
        pairs[pair].count++;
        atomic_fetch_add(&open_count, 1);
    }
    pthread_mutex_unlock(&lock);
}

/* The thread's first atomic on these bytes after its read: clears the suspicion, or convicts it. */
static void settle_suspicion(uint64_t block, uint32_t thread, uint64_t first, uint32_t bytes, bool clears)
{
    for (suspicion **at = bucket_of(block, thread), *s; (s = *at);) {
        bool hit = !s->convicted && s->reader->block == block && s->reader->thread == thread
                   && s->x.place - first < bytes;
        if (!hit) { at = &s->next; continue; }
        atomic_fetch_sub(&open_count, 1);
        if (!clears) { s->convicted = true; at = &s->next; continue; }
        *at = s->next;
        pairs[s->pair].count--;
        free(s);
    }
}

void sim_guess_settle(sim_warp *w, const sim_ins *i, uint32_t m, const uint64_t *at, const sim_block *owner,
                      uint32_t bytes)
{
    if (!atomic_load_explicit(&open_count, memory_order_relaxed)) return;
    pthread_mutex_lock(&lock);
    SIM_EACH_LANE(l, m)
        settle_suspicion(sim_block_index(w->block), sim_thread_of(w, l), sim_guess_place(owner, at[l]), bytes,
                         i->op == A_CAS);
    pthread_mutex_unlock(&lock);
}

static bool precedes(const suspicion *a, const suspicion *b)
{
    if (a->reader->block != b->reader->block) return a->reader->block < b->reader->block;
    if (a->reader->thread != b->reader->thread) return a->reader->thread < b->reader->thread;
    return a->x.place < b->x.place;
}

/* Reports one suspicion of each pair, the same for any number of workers. After a fault only convicted ones: the
 * compare-and-swap of the others may have been still to come. */
void sim_guess_launch_end(const sim_launch *l)
{
    const suspicion *first[PAIRS] = { NULL };
    bool whole = !atomic_load(&l->error);
    for (uint32_t k = 0; k < BUCKETS && pair_count; k++)
        for (const suspicion *s = buckets[k]; s; s = s->next)
            if ((whole || s->convicted) && (!first[s->pair] || precedes(s, first[s->pair]))) first[s->pair] = s;
    for (uint32_t k = 0; k < pair_count; k++) if (first[k]) sim_race_report(l, &first[k]->x);
    for (uint32_t k = 0; k < BUCKETS && pair_count; k++)
        for (suspicion *s; (s = buckets[k]);) {
            buckets[k] = s->next;
            free(s);
        }
    pair_count = 0;
    atomic_store(&open_count, 0);
}
