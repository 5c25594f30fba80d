/* nccl.c - the functions of NCCL that examples/ranks.h uses, on the CPU driver: one library, in as many processes as
 * ranks. `cc -std=c11 -O2 -fPIC -shared -pthread tests/nccl/nccl.c -o build/libncclsim.so -ldl` builds it;
 * PTXGEN_NCCL_LIBRARY names it.
 *
 * A collective is what any program could queue on a stream: copies to pinned memory, a host function in which the
 * processes meet, copies back. So it takes the stream's order and becomes nodes of a graph, and the CPU driver looks
 * at its memory as it does at any other's. Processes meet in a file mapped by all; sums are taken in the order of the
 * ranks, the same bits in all of them.
 *
 * What NCCL would hang at, or compute nonsense from, is told: a rank that has gone, or does not come within
 * NCCLSIM_TIMEOUT seconds (60); ranks whose collectives differ in kind, type or size. It is a finding of the CPU
 * driver (ptxsim_fault) in each rank, and the work that waits ends with CUDA_ERROR_LAUNCH_TIMEOUT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { MOST_RANKS = 64, PIECE = 1 << 18, TEXT = 400 };

typedef enum result {
    SUCCESS, UNHANDLED_CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR
} result;
static const char *const result_texts[] = {
    "no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument",
    "invalid usage", "remote process exited or there was a network error"
};

static _Thread_local char last_error[TEXT];

__attribute__((format(printf, 2, 3))) static result fail(result code, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(last_error, sizeof last_error, format, list);
    va_end(list);
    return code;
}

/* --- the driver: the one that is loaded ------------------------------------------------------------------------- */

#define DRIVER(X)                                                                                                      \
    X(cuMemcpyDtoHAsync_v2, int, (void *, uint64_t, size_t, void *))                                                   \
    X(cuMemcpyHtoDAsync_v2, int, (uint64_t, const void *, size_t, void *))                                             \
    X(cuLaunchHostFunc, int, (void *, void (*)(void *), void *))                                                       \
    X(cuMemHostAlloc, int, (void **, size_t, unsigned))                                                                \
    X(cuMemFreeHost, int, (void *))                                                                                    \
    X(cuStreamIsCapturing, int, (void *, int *))                                                                       \
    X(cuCtxSynchronize, int, (void))                                                                                   \
    X(cuCtxGetCurrent, int, (void **))                                                                                 \
    X(ptxsim_fault, void, (const char *))

static struct driver {
#define POINTER(name, returns, parameters) returns(*name) parameters;
    DRIVER(POINTER)
} cu;

static int find_driver(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (!*info->dlpi_name) return 0;
    void *library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "ptxsim_report") : NULL;
    if (symbol) *(void **)found = library; /* stays open: it is in use */
    else if (library) dlclose(library);
    return symbol != NULL;
}

static result load_driver(void)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    void *library = NULL, *symbol;
    const char *missing = NULL;
    pthread_mutex_lock(&loading);
    if (!cu.ptxsim_fault) {
        dl_iterate_phdr(find_driver, &library);
        if (!library) missing = "the CPU driver (build/libptxsim.so) in this process: with a GPU take NCCL itself";
#define FIND(name, returns, parameters)                                                                                \
    if (!missing) {                                                                                                    \
        symbol = dlsym(library, #name);                                                                                \
        memcpy(&cu.name, &symbol, sizeof symbol);                                                                      \
        if (!symbol) missing = #name;                                                                                  \
    }
        DRIVER(FIND)
    }
    pthread_mutex_unlock(&loading);
    return missing ? fail(SYSTEM_ERROR, "NCCL on the CPU lacks %s", missing) : SUCCESS;
}

static result driver(const char *what, int code)
{
    return code ? fail(UNHANDLED_CUDA_ERROR, "%s returned %d", what, code) : SUCCESS;
}

/* --- what the processes share ----------------------------------------------------------------------------------- */

typedef struct operation {
    uint64_t serial;                   /* of the collective, from 1; its bytes from `done` on are exchanged */
    uint64_t count, done;
    int kind, type, reduction;         /* kind 0: all-reduce; 1: all-gather */
} operation;

enum { ABSENT, PRESENT, LEFT };
typedef struct slot {
    int state;
    pid_t process;
    operation now;
    uint64_t published, taken;         /* pieces that this rank has put in its place; and taken from all */
} slot;

typedef struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    char magic[8];
    uint32_t ranks, present;
    char fault[TEXT];                  /* of any rank; then no more is exchanged */
    slot at[MOST_RANKS];
} shared;

enum { DATA = 1 << 16 };               /* where the ranks' bytes begin */
_Static_assert(sizeof(shared) <= DATA, "the head does not fit");

typedef struct communicator {
    struct communicator *next;
    shared *all;
    uint32_t rank, ranks;
    bool left;
    uint64_t serial, pieces;
    struct piece *queued;              /* not run yet, or of a graph */
    uint8_t *in, *out;                 /* pinned: PIECE bytes, and of each rank */
    int seconds;
} communicator;

static communicator *communicators;    /* all that ever were: a graph may still name one */
static pthread_mutex_t communicators_mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(shared *s)
{
    if (pthread_mutex_lock(&s->mutex) == EOWNERDEAD) pthread_mutex_consistent(&s->mutex);
}

static void unlock(shared *s) { pthread_mutex_unlock(&s->mutex); }

static bool is_alive(pid_t process)
{
    char path[40], text[200], *state;
    if (kill(process, 0) && errno == ESRCH) return false;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t n = read(file, text, sizeof text - 1);
    close(file);
    text[n > 0 ? n : 0] = 0;
    state = strrchr(text, ')');
    return !state || (state[1] && state[2] != 'Z');
}

static const char *ordinal(uint64_t n, char room[40])
{
    const char *end = n % 10 == 1 && n % 100 != 11 ? "st" : n % 10 == 2 && n % 100 != 12 ? "nd"
                    : n % 10 == 3 && n % 100 != 13 ? "rd" : "th";
    snprintf(room, 40, "%llu%s", (unsigned long long)n, end);
    return room;
}

static const struct type { const char *name; size_t bytes; } types[] = {
    { "ncclInt8", 1 }, { "ncclUint8", 1 }, { "ncclInt32", 4 }, { "ncclUint32", 4 }, { "ncclInt64", 8 },
    { "ncclUint64", 8 }, { "ncclFloat16", 2 }, { "ncclFloat32", 4 }, { "ncclFloat64", 8 }, { "ncclBfloat16", 2 }
};
enum { TYPES = sizeof types / sizeof *types, FLOAT16 = 6, BFLOAT16 = 9 };
static const char *const reductions[] = { "ncclSum", "ncclProd", "ncclMax", "ncclMin" };
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };

static void describe(const operation *o, char *room, size_t bytes)
{
    snprintf(room, bytes, "%s of %llu %s%s%s", o->kind ? "ncclAllGather" : "ncclAllReduce",
             (unsigned long long)o->count, types[o->type].name, o->kind ? "" : ", ",
             o->kind ? "" : reductions[o->reduction]);
}

/* Waits until each rank is through `want`; with the lock held. What keeps it from that is left in s->fault. */
typedef bool arrival(const slot *s, uint64_t want);
static bool is_present(const slot *s, uint64_t want) { (void)want; return s->state != ABSENT; }
static bool has_published(const slot *s, uint64_t want) { return s->published >= want; }
static bool has_taken(const slot *s, uint64_t want) { return s->taken >= want; }

static bool wait_for_all(communicator *c, arrival *arrived, uint64_t want, const operation *o)
{
    shared *s = c->all;
    struct timespec end, now;
    char room[40], what[120];
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += c->seconds;
    for (;;) {
        uint32_t k = 0;
        if (*s->fault) return false;
        while (k < c->ranks && arrived(&s->at[k], want)) k++;
        if (k == c->ranks) return true;
        clock_gettime(CLOCK_REALTIME, &now);
        bool late = now.tv_sec >= end.tv_sec;
        bool gone = s->at[k].state == LEFT || (s->at[k].state == PRESENT && !is_alive(s->at[k].process));
        if (late || gone) {
            const char *why = s->at[k].state == LEFT ? "has left" : gone ? "has ended" : "has not come";
            if (o) describe(o, what, sizeof what);
            if (o)
                snprintf(s->fault, sizeof s->fault,
                         "rank %u waits in its %s collective (%s) for rank %u, which %s after %llu of its own%s",
                         c->rank, ordinal(o->serial, room), what, k, why, (unsigned long long)s->at[k].now.serial,
                         late && !gone ? " in the time given (NCCLSIM_TIMEOUT)" : "");
            else
                snprintf(s->fault, sizeof s->fault, "rank %u of %u has not come within %d seconds", k, c->ranks,
                         c->seconds);
            pthread_cond_broadcast(&s->changed);
            return false;
        }
        now.tv_nsec += 100000000;
        if (now.tv_nsec >= 1000000000) now.tv_nsec -= 1000000000, now.tv_sec++;
        if (pthread_cond_timedwait(&s->changed, &s->mutex, &now) == EOWNERDEAD) pthread_mutex_consistent(&s->mutex);
    }
}

static bool is_same(const operation *a, const operation *b)
{
    return a->kind == b->kind && a->type == b->type && a->reduction == b->reduction && a->count == b->count
           && a->done == b->done && a->serial == b->serial;
}

static bool compare_ranks(communicator *c)
{
    shared *s = c->all;
    char room[40], one[120], other[120];
    for (uint32_t k = 1; k < c->ranks; k++) {
        if (is_same(&s->at[0].now, &s->at[k].now)) continue;
        describe(&s->at[0].now, one, sizeof one);
        describe(&s->at[k].now, other, sizeof other);
        snprintf(s->fault, sizeof s->fault, "ranks differ in their %s collective: rank 0 has %s, rank %u %s",
                 ordinal(s->at[0].now.serial, room), one, k, other);
        pthread_cond_broadcast(&s->changed);
        return false;
    }
    return true;
}

/* --- a piece of a collective, as a host function ---------------------------------------------------------------- */

typedef struct piece {
    struct piece *next, **before;      /* of the communicator's */
    communicator *communicator;
    operation operation;
    size_t bytes;                      /* of this rank */
    bool once;                         /* not of a graph */
} piece;

#define REDUCE(T)                                                                                                      \
    for (size_t n = 0; n < bytes / sizeof(T); n++) {                                                                   \
        T x, y;                                                                                                        \
        memcpy(&x, to + n * sizeof(T), sizeof(T));                                                                     \
        memcpy(&y, from + n * sizeof(T), sizeof(T));                                                                   \
        x = (T)(reduction == 0 ? x + y : reduction == 1 ? x * y : reduction == 2 ? (y > x || y != y ? y : x)           \
                                                              : (y < x || y != y ? y : x));                            \
        memcpy(to + n * sizeof(T), &x, sizeof(T));                                                                     \
    }

static void reduce(uint8_t *to, const uint8_t *from, size_t bytes, int type, int reduction)
{
    switch (type) {
    case 0: REDUCE(int8_t) break;
    case 1: REDUCE(uint8_t) break;
    case 2: if (reduction >= 2) { REDUCE(int32_t) break; } /* sums and products wrap */ /* fall through */
    case 3: REDUCE(uint32_t) break;
    case 4: if (reduction >= 2) { REDUCE(int64_t) break; } /* fall through */
    case 5: REDUCE(uint64_t) break;
    case 7: REDUCE(float) break;
    default: REDUCE(double) break;
    }
}

static bool exchange(communicator *c, const operation *o, size_t bytes)
{
    shared *s = c->all;
    slot *own = &s->at[c->rank];
    uint8_t *data = (uint8_t *)s + DATA;
    uint64_t number = c->pieces++;
    bool fine;
    lock(s);
    fine = wait_for_all(c, has_taken, number, o); /* what is in my place has been taken */
    unlock(s);
    if (fine) memcpy(data + (size_t)c->rank * PIECE, c->in, bytes);
    lock(s);
    own->now = *o;
    own->published = number + 1;
    pthread_cond_broadcast(&s->changed);
    fine = fine && wait_for_all(c, has_published, number + 1, o) && compare_ranks(c);
    unlock(s);
    for (uint32_t k = 0; fine && k < c->ranks; k++) {
        uint8_t *to = c->out + (o->kind ? k * (size_t)PIECE : 0);
        const uint8_t *from = data + (size_t)k * PIECE;
        if (o->kind || !k) memcpy(to, from, bytes);
        else reduce(to, from, bytes, o->type, o->reduction);
    }
    lock(s);
    own->taken = number + 1;
    pthread_cond_broadcast(&s->changed);
    unlock(s);
    return fine;
}

static void drop(piece *p)
{
    pthread_mutex_lock(&communicators_mutex);
    *p->before = p->next;
    if (p->next) p->next->before = p->before;
    pthread_mutex_unlock(&communicators_mutex);
    free(p);
}

static void run_piece(void *argument)
{
    piece *p = argument;
    communicator *c = p->communicator;
    operation o = p->operation;
    char text[TEXT + 40];
    if (c->left) {
        cu.ptxsim_fault("a collective runs when ncclCommDestroy has ended its communicator");
    } else {
        if (!o.done) c->serial++;
        o.serial = c->serial;
        if (!exchange(c, &o, p->bytes)) {
            lock(c->all);
            snprintf(text, sizeof text, "%s", c->all->fault);
            unlock(c->all);
            cu.ptxsim_fault(text);
        }
    }
    if (p->once) drop(p);
}

static result queue(communicator *c, operation o, const void *from, void *to, void *stream)
{
    size_t size = types[o.type].bytes, most = PIECE / size;
    int capturing = 0;
    result code = driver("cuStreamIsCapturing", cu.cuStreamIsCapturing(stream, &capturing));
    for (uint64_t at = 0; !code && at < o.count; at += most) {
        size_t n = o.count - at < most ? (size_t)(o.count - at) : most;
        piece *p = calloc(1, sizeof *p);
        if (!p) return fail(SYSTEM_ERROR, "no memory");
        *p = (piece){ .communicator = c, .operation = o, .bytes = n * size, .once = !capturing };
        p->operation.done = at;
        pthread_mutex_lock(&communicators_mutex);
        p->next = c->queued;
        p->before = &c->queued;
        if (p->next) p->next->before = &p->next;
        c->queued = p;
        pthread_mutex_unlock(&communicators_mutex);
        code = driver("cuMemcpyDtoHAsync_v2",
                      cu.cuMemcpyDtoHAsync_v2(c->in, (uint64_t)(uintptr_t)from + at * size, n * size, stream));
        if (!code) code = driver("cuLaunchHostFunc", cu.cuLaunchHostFunc(stream, run_piece, p));
        if (code) drop(p);
        for (uint32_t k = 0; !code && k < (o.kind ? c->ranks : 1); k++)
            code = driver("cuMemcpyHtoDAsync_v2",
                          cu.cuMemcpyHtoDAsync_v2((uint64_t)(uintptr_t)to + (k * o.count + at) * size,
                                                  c->out + k * (size_t)PIECE, n * size, stream));
    }
    return code;
}

/* --- NCCL's functions -------------------------------------------------------------------------------------------- */

typedef struct unique_id { char bytes[128]; } unique_id;

API result ncclGetVersion(int *version)
{
    if (!version) return fail(INVALID_ARGUMENT, "ncclGetVersion: version is NULL");
    *version = 22703;
    return SUCCESS;
}

API const char *ncclGetErrorString(result code)
{
    return (unsigned)code < sizeof result_texts / sizeof *result_texts ? result_texts[code] : "unknown result code";
}

API const char *ncclGetLastError(void *c) { (void)c; return last_error; }

API result ncclGetUniqueId(unique_id *id)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t changed;
    if (!id) return fail(INVALID_ARGUMENT, "ncclGetUniqueId: id is NULL");
    memset(id, 0, sizeof *id);
    /* A file without a name, which others open by this process's number: however the processes end, none is left. */
    int file = memfd_create("ncclsim", MFD_CLOEXEC);
    shared *s = file < 0 || ftruncate(file, DATA) ? MAP_FAILED
                                                   : mmap(NULL, DATA, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (s == MAP_FAILED) return fail(SYSTEM_ERROR, "memory that processes share: %s", strerror(errno));
    snprintf(id->bytes, sizeof id->bytes, "/proc/%ld/fd/%d", (long)getpid(), file);
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->mutex, &mutex);
    pthread_condattr_init(&changed);
    pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&s->changed, &changed);
    memcpy(s->magic, "ncclsim", 8);
    munmap(s, DATA);
    return SUCCESS;
}

static result join(communicator *c)
{
    shared *s = c->all;
    slot *own = &s->at[c->rank];
    result code = SUCCESS;
    lock(s);
    if (s->ranks && s->ranks != c->ranks)
        code = fail(INVALID_USAGE, "rank %u says %u ranks, another %u", c->rank, c->ranks, s->ranks);
    else if (own->state != ABSENT) code = fail(INVALID_USAGE, "two processes are rank %u", c->rank);
    else {
        s->ranks = c->ranks;
        own->state = PRESENT;
        own->process = getpid();
        s->present++;
        pthread_cond_broadcast(&s->changed);
        if (!wait_for_all(c, is_present, 0, NULL)) code = fail(SYSTEM_ERROR, "%s", s->fault);
    }
    unlock(s);
    return code;
}

API result ncclCommInitRank(void **out, int ranks, unique_id id, int rank)
{
    const char *seconds = getenv("NCCLSIM_TIMEOUT");
    void *context = NULL;
    result code = load_driver();
    if (code) return code;
    if (!out || ranks < 1 || ranks > MOST_RANKS || rank < 0 || rank >= ranks)
        return fail(INVALID_ARGUMENT, "ncclCommInitRank: rank %d of %d", rank, ranks);
    if (cu.cuCtxGetCurrent(&context) || !context) return fail(UNHANDLED_CUDA_ERROR, "no context is current");
    id.bytes[sizeof id.bytes - 1] = 0;
    int file = open(id.bytes, O_RDWR | O_CLOEXEC);
    size_t bytes = DATA + (size_t)ranks * PIECE;
    shared *s = file < 0 || ftruncate(file, (off_t)(DATA + (size_t)MOST_RANKS * PIECE))
                    ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (s == MAP_FAILED || memcmp(s->magic, "ncclsim", 8))
        return fail(INVALID_ARGUMENT, "ncclCommInitRank: the id '%.60s' is none of a run that begins", id.bytes);
    communicator *c = calloc(1, sizeof *c);
    if (!c) return fail(SYSTEM_ERROR, "no memory");
    c->all = s;
    c->rank = (uint32_t)rank;
    c->ranks = (uint32_t)ranks;
    c->seconds = seconds && atoi(seconds) > 0 ? atoi(seconds) : 60;
    code = driver("cuMemHostAlloc", cu.cuMemHostAlloc((void **)&c->in, PIECE, 0));
    if (!code) code = driver("cuMemHostAlloc", cu.cuMemHostAlloc((void **)&c->out, (size_t)ranks * PIECE, 0));
    if (!code) code = join(c);
    if (code) {
        if (c->in) cu.cuMemFreeHost(c->in);
        if (c->out) cu.cuMemFreeHost(c->out);
        munmap(s, bytes);
        free(c);
        return code;
    }
    pthread_mutex_lock(&communicators_mutex);
    c->next = communicators;
    communicators = c;
    pthread_mutex_unlock(&communicators_mutex);
    *out = c;
    return SUCCESS;
}

static bool is_communicator(const communicator *c)
{
    pthread_mutex_lock(&communicators_mutex);
    const communicator *k = communicators;
    while (k && k != c) k = k->next;
    pthread_mutex_unlock(&communicators_mutex);
    return k && !k->left;
}

static void leave(communicator *c)
{
    lock(c->all);
    c->all->at[c->rank].state = LEFT;
    pthread_cond_broadcast(&c->all->changed);
    unlock(c->all);
    c->left = true;
}

API result ncclCommDestroy(communicator *c)
{
    if (!is_communicator(c)) return fail(INVALID_ARGUMENT, "ncclCommDestroy: no communicator");
    result code = driver("cuCtxSynchronize", cu.cuCtxSynchronize());
    leave(c);
    cu.cuMemFreeHost(c->in);
    cu.cuMemFreeHost(c->out);
    munmap(c->all, DATA + (size_t)c->ranks * PIECE);
    return code;
}

/* The others need not wait for who ends without ncclCommDestroy. */
__attribute__((destructor)) static void leave_all(void)
{
    for (communicator *c = communicators; c; c = c->next) if (!c->left) leave(c);
}

static result check(const char *function, communicator *c, const void *from, const void *to, size_t count, int type,
                    size_t own_at, size_t all)
{
    if (!is_communicator(c)) return fail(INVALID_ARGUMENT, "%s: no communicator", function);
    if (type < 0 || type >= TYPES) return fail(INVALID_ARGUMENT, "%s: data type %d", function, type);
    if (type == FLOAT16 || type == BFLOAT16)
        return fail(INVALID_ARGUMENT, "%s: NCCL on the CPU does not have %s", function, types[type].name);
    if (count && (!from || !to)) return fail(INVALID_ARGUMENT, "%s: an address is NULL", function);
    uintptr_t a = (uintptr_t)from, b = (uintptr_t)to;
    size_t size = types[type].bytes;
    if (a % size || b % size) return fail(INVALID_ARGUMENT, "%s: an address is not a multiple of %zu", function, size);
    if (a != b + own_at * size && a < b + all * size && b < a + count * size)
        return fail(INVALID_ARGUMENT, "%s: the two ranges overlap, but not as in place", function);
    return SUCCESS;
}

API result ncclAllReduce(const void *from, void *to, size_t count, int type, int reduction, communicator *c,
                         void *stream)
{
    result code = check("ncclAllReduce", c, from, to, count, type, 0, count);
    if (code) return code;
    if (reduction < 0 || reduction >= REDUCTIONS)
        return fail(INVALID_ARGUMENT, "ncclAllReduce: NCCL on the CPU does not have operation %d", reduction);
    return queue(c, (operation){ .count = count, .type = type, .reduction = reduction }, from, to, stream);
}

API result ncclAllGather(const void *from, void *to, size_t count, int type, communicator *c, void *stream)
{
    size_t ranks = is_communicator(c) ? c->ranks : 0, rank = ranks ? c->rank : 0;
    result code = check("ncclAllGather", c, from, to, count, type, rank * count, ranks * count);
    return code ? code : queue(c, (operation){ .count = count, .type = type, .kind = 1 }, from, to, stream);
}
