/* ranks.h - several processes that compute together, each with a GPU of its own: who they are, how they meet,
   and sums over all of them by NCCL, which is loaded at run time, as the driver is.

   Include it behind ptxgen_cuda.h. Functions return 0, or 1 with r->error.

       ranks_group r;
       ranks_read(&r);                            // who am I: from the environment
       ranks_meet(&r);                            // waits for the others
       desc.device = (int)r.local;  ptxcu_open(&cu, &desc);
       ranks_open(&r, cu);                        // NCCL
       ranks_sum(&r, address, count, stream);     // f32 in place; also while a graph is recorded
       ranks_gather(&r, part, all, count, stream);
       ranks_close(&r);                           // before ptxcu_close

   A process learns its number from what starts it (see ranks_variables): torchrun, mpirun (Open MPI, MPICH,
   Intel MPI), srun; by hand RANK and WORLD_SIZE. Without any there is one rank, and nothing here does
   anything. MPI itself is not used.

   Ranks meet by TCP at MASTER_ADDR (127.0.0.1), where rank 0 takes the first free port behind MASTER_PORT
   (29500; torchrun listens there itself). Over this connection go NCCL's id, what rank 0 has read, and what
   is wrong with one of them, so that none waits for it in vain. Nobody is asked for a password: a network
   that others can reach needs a firewall. Rank 0 waits PTXGEN_RANKS_TIMEOUT seconds (60), then names those
   that have not come.

   NCCL is libnccl.so.2, or the library that PTXGEN_NCCL_LIBRARY names. For tests there is one on the CPU, see
   tests/nccl. NCCL's sums have the same bits in all ranks: an element is summed in one place and copied. */
#ifndef EXAMPLES_RANKS_H
#define EXAMPLES_RANKS_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RANKS_MAX 64
#define RANKS_TEXT 400

typedef struct ranks_id {
    char bytes[128];
} ranks_id;

/* X(function, parameters): what is used of NCCL; each returns a ncclResult_t, 0: fine. */
#define RANKS_NCCL(X)                                                                                        \
    X(ncclGetVersion, (int *version))                                                                        \
    X(ncclGetUniqueId, (ranks_id * id))                                                                      \
    X(ncclCommInitRank, (void **communicator, int ranks, ranks_id id, int rank))                             \
    X(ncclCommDestroy, (void *communicator))                                                                 \
    X(ncclAllReduce,                                                                                         \
      (const void *from, void *to, size_t count, int type, int operation, void *communicator, void *stream)) \
    X(ncclAllGather, (const void *from, void *to, size_t count, int type, void *communicator, void *stream))

typedef struct ranks_group {
    uint32_t rank, count;   /* this process, of how many */
    uint32_t local;         /* which of those on this machine: the device's ordinal */
    char error[RANKS_TEXT]; /* of the last call that failed */
    int failed;             /* all know that one of them has failed, see ranks_agree */
    /* private */
    int peer[RANKS_MAX]; /* sockets: of rank 0 to each; of others [0], to rank 0; -1: none */
    ptxcu *cu;
    void *communicator;
    const char *(*ncclGetErrorString)(int result);
    const char *(*ncclGetLastError)(void *communicator); /* NULL before 2.13 */
#define RANKS_POINTER(name, parameters) int(*name) parameters;
    RANKS_NCCL(RANKS_POINTER)
#undef RANKS_POINTER
} ranks_group;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline int
ranks_fail(ranks_group *r, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(r->error, sizeof r->error, format, list);
    va_end(list);
    return 1;
}

/* -- who -- */

/* X(rank, how many, which on this machine): the first two that are set count. */
#define RANKS_VARIABLES(X)                                                                                   \
    X("RANK", "WORLD_SIZE", "LOCAL_RANK")                                                                    \
    X("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")                          \
    X("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID")                                                             \
    X("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")

/* A variable that is a whole number below a limit; without it *x stays. */
static inline int ranks_number(ranks_group *r, const char *name, uint32_t limit, uint32_t *x) {
    const char *text = getenv(name);
    char *end;
    unsigned long value;
    if (!text || !*text) return 0;
    errno = 0;
    value = strtoul(text, &end, 10);
    if (*end || errno || strchr("+- ", *text) || value >= limit)
        return ranks_fail(r, "%s is '%.40s', must be a whole number below %lu", name, text,
                          (unsigned long)limit);
    *x = (uint32_t)value;
    return 0;
}

/* Fills in rank, count and local from the environment. */
static inline int ranks_read(ranks_group *r) {
    static const char *const names[][3] = {
#define RANKS_ROW(rank, count, local) {rank, count, local},
        RANKS_VARIABLES(RANKS_ROW)
#undef RANKS_ROW
    };
    size_t i;
    memset(r, 0, sizeof *r);
    for (i = 0; i < RANKS_MAX; i++) r->peer[i] = -1;
    r->count = 1;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rank = getenv(names[i][0]), *count = getenv(names[i][1]);
        int has_rank = rank && *rank, has_count = count && *count;
        if (!has_rank && !has_count) continue;
        if (!has_rank || !has_count) {
            if (i) continue; /* other tools set only one of them */
            return ranks_fail(r, "%s is set, and %s is not: several ranks need both",
                              names[i][has_rank ? 0 : 1], names[i][has_rank ? 1 : 0]);
        }
        if (ranks_number(r, names[i][1], RANKS_MAX + 1, &r->count)) return 1;
        if (!r->count) return ranks_fail(r, "%s is 0", names[i][1]);
        if (ranks_number(r, names[i][0], r->count, &r->rank)) return 1;
        r->local = r->rank;
        return ranks_number(r, names[i][2], 1u << 16, &r->local);
    }
    return 0;
}

/* -- how they meet -- */

enum { RANKS_PORTS = 16, RANKS_SECONDS = 60 };

/* What a process says first. `job` tells runs at one port apart. */
typedef struct ranks_hello {
    char magic[8];
    uint64_t job;
    uint32_t rank, count;
} ranks_hello;

static inline double ranks_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline ranks_hello ranks_own_hello(const ranks_group *r) {
    static const char *const names[] = {"TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
                                        "SLURM_JOB_ID", "SLURM_STEP_ID"};
    ranks_hello h;
    size_t i;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, "ptxranks", 8);
    h.job = 14695981039346656037ull;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = getenv(names[i]);
        for (; at && *at; at++) h.job = (h.job ^ (unsigned char)*at) * 1099511628211ull;
        h.job = (h.job ^ 256) * 1099511628211ull;
    }
    h.rank = r->rank;
    h.count = r->count;
    return h;
}

static inline void ranks_hang_up(int *s) {
    if (*s >= 0) close(*s);
    *s = -1;
}

/* All of `bytes`, until the other end is gone, or ranks_now() passes `end` (0: never). Returns 0 then. */
static inline int ranks_receive(int s, void *to, size_t bytes, double end) {
    char *at = (char *)to;
    while (bytes) {
        struct pollfd p;
        ssize_t n;
        double left = end > 0 ? end - ranks_now() : 1;
        p.fd = s, p.events = POLLIN;
        if (left <= 0) return 0;
        if (poll(&p, 1, (int)(left < 1 ? 1e3 * left + 1 : 1000)) <= 0) continue;
        n = recv(s, at, bytes, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        at += n, bytes -= (size_t)n;
    }
    return 1;
}

static inline int ranks_send(int s, const void *from, size_t bytes) {
    const char *at = (const char *)from;
    while (bytes) {
        ssize_t n = send(s, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return 0;
        at += n, bytes -= (size_t)n;
    }
    return 1;
}

/* Those that have not come. */
static inline const char *ranks_missing(const ranks_group *r, char room[RANKS_TEXT / 2]) {
    uint32_t i;
    size_t n = 0;
    for (i = 1; i < r->count && n < RANKS_TEXT / 2 - 8; i++)
        if (r->peer[i] < 0)
            n += (size_t)snprintf(room + n, RANKS_TEXT / 2 - n, "%s%u", n ? ", " : "", (unsigned)i);
    return room;
}

/* Takes up a process that has called. Returns 0, or 1 where two say that they are one. */
static inline int ranks_take_up(ranks_group *r, int s) {
    ranks_hello have, want = ranks_own_hello(r);
    char answer = 'n';
    if (!ranks_receive(s, &have, sizeof have, ranks_now() + 2) || memcmp(have.magic, want.magic, 8)
        || have.job != want.job || have.count != want.count || !have.rank || have.rank >= r->count) {
        ranks_send(s, &answer, 1);
        close(s);
        return 0;
    }
    answer = r->peer[have.rank] < 0 ? 'y' : '2';
    if (!ranks_send(s, &answer, 1) || answer == '2') {
        close(s);
        return answer != '2' ? 0
                             : ranks_fail(r,
                                          "two processes say that they are rank %u of %u: two runs at one "
                                          "MASTER_PORT, or a number given twice",
                                          (unsigned)have.rank, (unsigned)have.count);
    }
    r->peer[have.rank] = s;
    return 0;
}

/* Rank 0: listens at the first free port, until all have come. */
static inline int ranks_wait(ranks_group *r, const char *address, uint32_t port, uint32_t seconds) {
    char room[RANKS_TEXT / 2], go = 'g';
    double end = ranks_now() + seconds;
    struct sockaddr_in at;
    uint32_t i, come = 1;
    int s = -1, on = 1, bad = 0, bound = 0;
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr =
        htonl(!strncmp(address, "127.", 4) || !strcmp(address, "localhost") ? INADDR_LOOPBACK : INADDR_ANY);
    for (i = 1; i <= RANKS_PORTS && !bound; i++) {
        ranks_hang_up(&s);
        s = socket(AF_INET, SOCK_STREAM, 0);
        if (s < 0) break;
        at.sin_port = htons((uint16_t)(port + i));
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        bound = !bind(s, (struct sockaddr *)&at, sizeof at) && !listen(s, RANKS_MAX);
    }
    if (!bound) {
        ranks_hang_up(&s);
        return ranks_fail(r, "rank 0 can listen at none of the ports %u to %u: %s; MASTER_PORT names others",
                          (unsigned)port + 1, (unsigned)port + RANKS_PORTS, strerror(errno));
    }
    while (!bad && come < r->count && ranks_now() < end) {
        struct pollfd p;
        p.fd = s, p.events = POLLIN;
        if (poll(&p, 1, 100) > 0) {
            int one = accept(s, NULL, NULL);
            if (one >= 0) bad = ranks_take_up(r, one);
        }
        for (i = 1, come = 1; i < r->count; i++) come += r->peer[i] >= 0;
    }
    if (!bad && come < r->count)
        bad = ranks_fail(r, "of %u ranks these have not come to %s, port %u, in %u seconds: %s",
                         (unsigned)r->count, address, (unsigned)ntohs(at.sin_port), (unsigned)seconds,
                         ranks_missing(r, room));
    close(s);
    for (i = 1; i < r->count; i++) { /* or what was wrong, to those that have come */
        if (r->peer[i] < 0) continue;
        if (bad) go = 'b';
        if (ranks_send(r->peer[i], &go, 1) && bad) ranks_send(r->peer[i], r->error, sizeof r->error);
        setsockopt(r->peer[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return bad;
}

/* Another rank: calls rank 0 until that answers. */
static inline int ranks_call(ranks_group *r, const char *address, uint32_t port, uint32_t seconds) {
    double end = ranks_now() + seconds;
    struct addrinfo hints, *found = NULL;
    ranks_hello hello = ranks_own_hello(r);
    char answer = 0;
    uint32_t i, strangers = 0;
    int on = 1, code;
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    code = getaddrinfo(address, NULL, &hints, &found);
    if (code) return ranks_fail(r, "MASTER_ADDR is '%.100s': %s", address, gai_strerror(code));
    while (answer != 'y' && answer != '2' && ranks_now() < end) {
        for (i = 1, strangers = 0; i <= RANKS_PORTS && answer != 'y' && answer != '2'; i++) {
            struct sockaddr_in at;
            int s = socket(AF_INET, SOCK_STREAM, 0);
            memcpy(&at, found->ai_addr, sizeof at);
            at.sin_port = htons((uint16_t)(port + i));
            if (s >= 0 && !connect(s, (struct sockaddr *)&at, sizeof at)) {
                answer = 0;
                if (ranks_send(s, &hello, sizeof hello)) ranks_receive(s, &answer, 1, ranks_now() + 4);
                strangers += answer != 'y';
            }
            if (answer == 'y')
                r->peer[0] = s;
            else if (s >= 0)
                close(s);
        }
        if (answer != 'y') poll(NULL, 0, 50);
    }
    freeaddrinfo(found);
    if (answer == '2')
        return ranks_fail(r, "rank 0 knows a rank %u already: a number given twice, or two runs at one port",
                          (unsigned)r->rank);
    if (answer != 'y')
        return ranks_fail(r,
                          "rank 0 of %u does not answer at %s, ports %u to %u, within %u seconds%s; "
                          "MASTER_ADDR and MASTER_PORT name its machine and another port",
                          (unsigned)r->count, address, (unsigned)port + 1, (unsigned)port + RANKS_PORTS,
                          (unsigned)seconds,
                          strangers ? " (somebody there is of another run, or counts other ranks)" : "");
    setsockopt(r->peer[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (ranks_receive(r->peer[0], &answer, 1, ranks_now() + seconds + 10) && answer == 'g') return 0;
    if (answer == 'b' && ranks_receive(r->peer[0], r->error, sizeof r->error, ranks_now() + 4)) {
        r->error[sizeof r->error - 1] = 0;
        r->failed = 1;
        return 1;
    }
    return ranks_fail(r, "rank 0 has gone while it waited for the others");
}

/* Waits until all ranks are there. */
static inline int ranks_meet(ranks_group *r) {
    const char *address = getenv("MASTER_ADDR");
    uint32_t port = 29500, seconds = RANKS_SECONDS;
    if (r->count == 1) return 0;
    if (!address || !*address) address = "127.0.0.1";
    if (ranks_number(r, "MASTER_PORT", 65536 - RANKS_PORTS, &port)
        || ranks_number(r, "PTXGEN_RANKS_TIMEOUT", 1000000, &seconds))
        return 1;
    return r->rank ? ranks_call(r, address, port, seconds) : ranks_wait(r, address, port, seconds);
}

/* -- words between them: each waits for all -- */

static inline int ranks_gone(ranks_group *r, uint32_t rank) {
    return ranks_fail(r, "rank %u has gone; its own message says why", (unsigned)rank);
}

/* Bytes of each rank to rank 0: all[rank]. */
static inline int ranks_collect(ranks_group *r, const void *mine, size_t bytes, void *all) {
    uint32_t i;
    if (r->rank) return ranks_send(r->peer[0], mine, bytes) ? 0 : ranks_gone(r, 0);
    memcpy(all, mine, bytes);
    for (i = 1; i < r->count; i++)
        if (!ranks_receive(r->peer[i], (char *)all + i * bytes, bytes, 0)) return ranks_gone(r, i);
    return 0;
}

/* Bytes of rank 0 to all. */
static inline int ranks_share(ranks_group *r, void *data, size_t bytes) {
    uint32_t i;
    if (r->rank) return ranks_receive(r->peer[0], data, bytes, 0) ? 0 : ranks_gone(r, 0);
    for (i = 1; i < r->count; i++)
        if (!ranks_send(r->peer[i], data, bytes)) return ranks_gone(r, i);
    return 0;
}

/* All say whether something is wrong with them: a text, or NULL. Returns 1 in all ranks if it is with one,
   whose number and text are then r->error; nothing more is said after that. */
static inline int ranks_agree(ranks_group *r, const char *problem) {
    char(*all)[RANKS_TEXT], verdict[RANKS_TEXT] = {0}, mine[RANKS_TEXT] = {0};
    uint32_t i;
    int bad;
    if (problem) snprintf(mine, sizeof mine, "%s", *problem ? problem : "no reason given");
    if (r->failed) return 1;
    if (r->count == 1) return problem ? ranks_fail(r, "%s", mine) : 0;
    r->failed = 1;
    all = (char(*)[RANKS_TEXT])calloc(r->count, sizeof *all);
    if (!all) return ranks_fail(r, "no memory");
    bad = ranks_collect(r, mine, sizeof mine, all);
    if (bad) snprintf(verdict, sizeof verdict, "%s", r->error); /* one has gone: the others are told */
    for (i = r->count; !bad && i-- > 0;)
        if (all[i][0]) snprintf(verdict, sizeof verdict, "rank %u: %.370s", (unsigned)i, all[i]);
    free(all);
    if (r->rank && bad) return 1;
    if (!r->rank && bad) {
        for (i = 1; i < r->count; i++)
            if (r->peer[i] >= 0) ranks_send(r->peer[i], verdict, sizeof verdict);
        return 1;
    }
    if (ranks_share(r, verdict, sizeof verdict)) return 1;
    verdict[sizeof verdict - 1] = 0;
    r->failed = *verdict != 0;
    return r->failed ? ranks_fail(r, "%s", verdict) : 0;
}

/* -- sums: NCCL -- */

enum { RANKS_NCCL_LEAST = 20900, RANKS_FLOAT = 7, RANKS_SUM = 0 }; /* 2.9 is the first that graphs may hold */

static inline int ranks_nccl(ranks_group *r, const char *what, int result) {
    const char *more;
    if (!result) return 0;
    more = r->ncclGetLastError ? r->ncclGetLastError(NULL) : "";
    return ranks_fail(r, "%s: %s%s%.200s", what, r->ncclGetErrorString(result), more && *more ? "; " : "",
                      more ? more : "");
}

static inline int ranks_load(ranks_group *r) {
    const char *name = getenv("PTXGEN_NCCL_LIBRARY"), *why;
    char missing[120] = {0};
    void *library, *symbol;
    int version = 0;
    if (!name || !*name) name = "libnccl.so.2";
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* stays loaded: it has threads */
    if (!library) {
        why = dlerror();
        return ranks_fail(r,
                          "%u ranks need NCCL: %.250s; install it (libnccl2), or name its file in "
                          "PTXGEN_NCCL_LIBRARY",
                          (unsigned)r->count, why ? why : name);
    }
#define RANKS_SYMBOL(function)                                                                               \
    symbol = dlsym(library, #function);                                                                      \
    memcpy(&r->function, &symbol, sizeof symbol);                                                            \
    if (!symbol) snprintf(missing, sizeof missing, "%s", #function);
#define RANKS_FIND(function, parameters) RANKS_SYMBOL(function)
    RANKS_NCCL(RANKS_FIND)
    RANKS_SYMBOL(ncclGetErrorString)
#undef RANKS_FIND
    if (*missing) return ranks_fail(r, "%.200s is no NCCL: it lacks %s", name, missing);
    RANKS_SYMBOL(ncclGetLastError)
#undef RANKS_SYMBOL
    if (ranks_nccl(r, "ncclGetVersion", r->ncclGetVersion(&version))) return 1;
    if (version >= RANKS_NCCL_LEAST) return 0;
    return ranks_fail(r, "%.200s is NCCL of version code %d, and must be 2.9 (%d) or newer", name, version,
                      RANKS_NCCL_LEAST);
}

/* NCCL takes the thread's current context. */
static inline int ranks_enter(ranks_group *r) {
    int (*push)(void *);
    void *symbol = ptxcu_symbol(r->cu, "cuCtxPushCurrent_v2");
    memcpy(&push, &symbol, sizeof symbol);
    return symbol && !push(ptxcu_get_context(r->cu)) ? 0 : ranks_fail(r, "cuCtxPushCurrent_v2 failed");
}

static inline void ranks_leave(ranks_group *r) {
    int (*pop)(void **);
    void *symbol = ptxcu_symbol(r->cu, "cuCtxPopCurrent_v2"), *context;
    memcpy(&pop, &symbol, sizeof symbol);
    if (symbol) pop(&context);
}

/* Queues the sum of `count` f32 numbers over all ranks, in place. */
static inline int ranks_sum(ranks_group *r, uint64_t address, size_t count, ptxcu_stream stream) {
    void *at = (void *)(uintptr_t)address;
    int bad;
    if (r->count == 1) return 0;
    if (ranks_enter(r)) return 1;
    bad = ranks_nccl(r, "ncclAllReduce",
                     r->ncclAllReduce(at, at, count, RANKS_FLOAT, RANKS_SUM, r->communicator, stream));
    ranks_leave(r);
    return bad;
}

/* A first sum: NCCL connects the ranks, which it should not do while a graph is recorded. */
static inline int ranks_try(ranks_group *r) {
    float one = 1;
    ptxcu_buffer b;
    int bad = ptxcu_alloc(r->cu, sizeof one, &b) || ptxcu_upload(r->cu, b, 0, &one, sizeof one, NULL);
    if (!bad && ranks_sum(r, b.address, 1, NULL)) {
        ptxcu_free(r->cu, b);
        return 1;
    }
    bad = bad || ptxcu_download(r->cu, &one, b, 0, sizeof one, NULL) || ptxcu_sync(r->cu);
    if (bad) ranks_fail(r, "%.380s", ptxcu_get_error(r->cu)->message);
    ptxcu_free(r->cu, b);
    if (bad || (one > (float)r->count - 0.5f && one < (float)r->count + 0.5f)) return bad;
    return ranks_fail(r, "the sum of a 1 from each of %u ranks is %g", (unsigned)r->count, (double)one);
}

/* Prepares the sums, on the handle's device. All ranks, or none: what is wrong with one is told by all. */
static inline int ranks_open(ranks_group *r, ptxcu *cu) {
    ranks_id id;
    int bad;
    if (r->count == 1) return 0;
    r->cu = cu;
    memset(&id, 0, sizeof id);
    bad = ranks_load(r) || (!r->rank && ranks_nccl(r, "ncclGetUniqueId", r->ncclGetUniqueId(&id)));
    if (ranks_agree(r, bad ? r->error : NULL) || ranks_share(r, &id, sizeof id)) return 1;
    bad = ranks_enter(r);
    if (!bad) {
        bad = ranks_nccl(r, "ncclCommInitRank",
                         r->ncclCommInitRank(&r->communicator, (int)r->count, id, (int)r->rank));
        ranks_leave(r);
    }
    if (ranks_agree(r, bad ? r->error : NULL)) return 1;
    return ranks_agree(r, ranks_try(r) ? r->error : NULL);
}

/* Queues copies of `count` f32 numbers of each rank to all: to[rank * count ...]. */
static inline int ranks_gather(ranks_group *r, uint64_t from, uint64_t to, size_t count,
                               ptxcu_stream stream) {
    int bad;
    if (ranks_enter(r)) return 1;
    bad = ranks_nccl(r, "ncclAllGather",
                     r->ncclAllGather((const void *)(uintptr_t)from, (void *)(uintptr_t)to, count,
                                      RANKS_FLOAT, r->communicator, stream));
    ranks_leave(r);
    return bad;
}

/* Leaves. What is queued must have run. */
static inline void ranks_close(ranks_group *r) {
    uint32_t i;
    if (r->communicator && !ranks_enter(r)) {
        r->ncclCommDestroy(r->communicator);
        ranks_leave(r);
    }
    r->communicator = NULL;
    for (i = 0; i < RANKS_MAX; i++) ranks_hang_up(&r->peer[i]);
}

#endif
