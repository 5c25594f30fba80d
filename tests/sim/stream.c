/* stream.c - streams whose work runs late, and events.
 *
 * Every asynchronous call becomes a piece of work in its stream's queue. Work runs as late as
 * synchronisation allows: when the host waits for it, when something that the host waits for comes after
 * it, one piece at a time when the host asks whether it is done, and in the background when the host has
 * made no call for a while (it may be reading memory). Programs that forget to wait see what they would see on
 * the slowest chip.
 *
 * The order that the calls establish is kept as vector clocks: each piece of work carries what is ordered before
 * it, as a number of pieces for each stream. order.c compares them. */
#include "driver.h"
#include "dependents.h"
#include "pace.h"
#include <unistd.h>

sim_driver_options sim_driver_option = { 1, 1, 1, 1, 1 };
_Thread_local bool sim_in_host_function;

enum { MOST_PENDING = 1 << 17, IDLE_TICK = 100, IDLE_TICKS = 2 };

uint64_t sim_host_calls;               /* number of host functions that have run */
bool sim_running_early;
static sim_order *host;                /* what the host has waited for */
static uint64_t host_version = 1, stream_serial;
static uint32_t clock_count;
static bool *clock_used;               /* by a live stream */
static uint64_t *clock_queued;         /* where the next stream with that index continues to count */
static uint64_t pending;               /* queued pieces of work, in all contexts */

/* --- clocks ----------------------------------------------------------------------------------- */

bool sim_clock_covers(const sim_order *k, uint32_t id, uint64_t seq)
{
    return !seq || (k && id < k->count && k->at[id] >= seq);
}

bool sim_host_knows(uint32_t id, uint64_t seq) { return sim_clock_covers(host, id, seq); }

void sim_clock_drop(sim_order *k) { if (k && !--k->references) free(k); }

static sim_order *retain_order(sim_order *k) { if (k) k->references++; return k; }

/* Merges `other` and (id, seq) into *k. False: out of memory. */
static bool join(sim_order **k, const sim_order *other, uint32_t id, uint64_t seq)
{
    bool covered = sim_clock_covers(*k, id, seq);
    for (uint32_t n = 0; covered && other && n < other->count; n++)
        covered = sim_clock_covers(*k, n, other->at[n]);
    if (covered) return true;
    uint32_t count = id + 1;
    if (*k && (*k)->count > count) count = (*k)->count;
    if (other && other->count > count) count = other->count;
    sim_order *grown = calloc(1, sizeof *grown + count * sizeof(uint64_t));
    if (!grown) return false;
    grown->references = 1;
    grown->count = count;
    if (*k) memcpy(grown->at, (*k)->at, (*k)->count * sizeof(uint64_t));
    for (uint32_t n = 0; other && n < other->count; n++)
        if (other->at[n] > grown->at[n]) grown->at[n] = other->at[n];
    if (seq > grown->at[id]) grown->at[id] = seq;
    sim_clock_drop(*k);
    *k = grown;
    return true;
}

static void join_host_clock(const sim_order *k, uint32_t id, uint64_t seq)
{
    sim_order *before = host;
    (void)join(&host, k, id, seq);
    if (host != before) host_version++;
}

static bool assign_clock(sim_stream *s)
{
    uint32_t n = 0;
    while (n < clock_count && clock_used[n]) n++;
    if (n == clock_count) {
        uint32_t wanted = clock_count ? clock_count * 2 : 8;
        bool *used = realloc(clock_used, wanted * sizeof *used);
        if (!used) return false;
        clock_used = used;
        uint64_t *queued = realloc(clock_queued, wanted * sizeof *queued);
        if (!queued) return false;
        clock_queued = queued;
        memset(used + clock_count, 0, (wanted - clock_count) * sizeof *used);
        memset(queued + clock_count, 0, (wanted - clock_count) * sizeof *queued);
        clock_count = wanted;
    }
    clock_used[n] = true;
    s->id = n;
    s->queued = s->done = s->first = clock_queued[n];
    return true;
}

/* --- work ------------------------------------------------------------------------------------- */

sim_work *sim_work_new(sim_work_kind kind, size_t more)
{
    sim_work *w = calloc(1, sizeof *w + more);
    if (!w) return NULL;
    w->kind = (uint8_t)kind;
    w->entry = (uint16_t)sim_current_entry(&w->call);
    return w;
}

/* For graphs: a copy of the work that is not queued. */
sim_work *sim_work_copy(const sim_work *from)
{
    size_t more = from->kind == W_KERNEL ? from->u.launch.param_bytes : 0;
    sim_work *w = malloc(sizeof *w + more);
    if (!w) return NULL;
    memcpy(w, from, sizeof *w + more);
    w->next = NULL;
    w->stream = NULL;
    w->clock = NULL;
    w->deps = NULL;
    w->dep_count = 0;
    if (w->kind == W_KERNEL) w->u.launch.params = (uint8_t *)(w + 1);
    if (w->kind == W_COPY) {
        w->u.copy.staged = NULL;
        w->u.copy.checked = false;
        w->u.copy.guard = 0;
    }
    return w;
}

void sim_work_free(sim_work *w)
{
    if (!w) return;
    sim_clock_drop(w->clock);
    if (w->deps != w->inline_deps) free(w->deps);
    if (w->kind == W_COPY) { /* also work that a stream refused */
        free(w->u.copy.staged);
        if (w->u.copy.checked) sim_checked_copies--;
        if (w->u.copy.guard) sim_guard_drop(w->u.copy.guard);
    }
    if ((w->kind == W_RECORD || w->kind == W_WAIT) && w->stream && w->u.event.event) {
        sim_event *e = w->u.event.event;
        if (!--e->pending && !e->handle) { sim_clock_drop(e->clock); free(e); }
    }
    free(w);
}

void sim_label(const sim_work *w, char *out, size_t cap)
{
    char stream[48];
    const sim_stream *s = w->stream;
    if (!s) snprintf(stream, sizeof stream, "a graph");
    else if (s->legacy) snprintf(stream, sizeof stream, "the default stream");
    else if (!s->serial) snprintf(stream, sizeof stream, "the thread's default stream");
    else snprintf(stream, sizeof stream, "stream %llu", (unsigned long long)s->serial);
    if (w->kind == W_KERNEL)
        snprintf(out, cap, "kernel '%.60s' (%s, call %llu, in %s)", w->u.launch.kernel->function->name,
                 sim_entry_name(w->entry), (unsigned long long)w->call, stream);
    else
        snprintf(out, cap, "%s (call %llu, in %s)", sim_entry_name(w->entry), (unsigned long long)w->call,
                 stream);
}

static bool add_dependency(sim_work *w, sim_stream *s, uint64_t seq)
{
    if (s == w->stream || s->done >= seq) return true;
    if (!w->deps) w->deps = w->inline_deps;
    if (w->dep_count >= 2 && !(w->dep_count & (w->dep_count - 1))) {
        sim_dep *grown = malloc(w->dep_count * 2 * sizeof *grown);
        if (!grown) return false;
        memcpy(grown, w->deps, w->dep_count * sizeof *grown);
        if (w->deps != w->inline_deps) free(w->deps);
        w->deps = grown;
    }
    w->deps[w->dep_count++] = (sim_dep){ s, seq };
    return true;
}

/* --- streams ---------------------------------------------------------------------------------- */

static sim_stream *new_stream(sim_context *c, unsigned flags, bool legacy)
{
    sim_stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    if (!assign_clock(s)) { free(s); return NULL; }
    s->context = c;
    s->flags = flags;
    s->legacy = legacy;
    s->blocking = !legacy && !(flags & 1);
    s->next = c->streams;
    c->streams = s;
    return s;
}

static void free_stream(sim_stream *s)
{
    clock_used[s->id] = false;
    clock_queued[s->id] = s->queued;
    sim_clock_drop(s->clock);
    free(s->capture_deps);
    free(s);
}

sim_stream *sim_stream_legacy(sim_context *c)
{
    if (!c->legacy) c->legacy = new_stream(c, 0, true);
    return c->legacy;
}

/* Each thread's default streams, by context, which frees them. */
static _Thread_local struct { uint64_t context; sim_stream *stream; } mine[8];

static sim_stream *per_thread(sim_context *c)
{
    int free_slot = 0;
    for (int k = 0; k < 8; k++) {
        if (mine[k].stream && mine[k].context == c->id) return mine[k].stream;
        if (!mine[k].stream) free_slot = k;
    }
    mine[free_slot].stream = new_stream(c, 0, false);
    mine[free_slot].context = c->id;
    return mine[free_slot].stream;
}

sim_stream *sim_stream_of(sim_context *c, const void *handle)
{
    if ((uintptr_t)handle <= 1) return sim_stream_legacy(c);
    if ((uintptr_t)handle == 2) return per_thread(c);
    sim_stream *s = sim_handle_get(H_STREAM, handle);
    return s && s->context == c ? s : NULL;
}

bool sim_streams_idle(const sim_context *c) { return !c->pending; }

/* Frees destroyed streams once no work is queued. */
static void free_destroyed(sim_context *c)
{
    if (c->pending) return;
    for (sim_stream **at = &c->streams; *at;) {
        sim_stream *s = *at;
        if (!s->destroyed) { at = &s->next; continue; }
        *at = s->next;
        free_stream(s);
    }
}

/* --- running ---------------------------------------------------------------------------------- */

static bool value_holds(const sim_work *w)
{
    sim_allocation *a = sim_memory_find(w->u.value.address);
    uint64_t have = 0, want = w->u.value.value;
    if (!a) return true;
    const uint8_t *p = a->host + (w->u.value.address - a->base);
    if (w->u.value.bytes == 8) have = __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_SEQ_CST);
    else {
        have = __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_SEQ_CST);
        want = (uint32_t)want;
    }
    switch (w->u.value.flags & 3) {
    case 0: return w->u.value.bytes == 8 ? (int64_t)(have - want) >= 0 : (int32_t)(have - want) >= 0;
    case 1: return have == want;
    case 2: return (have & want) != 0;
    default: return w->u.value.bytes == 8 ? ~(have | want) != 0 : (uint32_t)~(have | want) != 0;
    }
}

static int run_value(const sim_work *w)
{
    sim_allocation *a = sim_memory_find(w->u.value.address);
    if (!a) return SIM_ERROR_ILLEGAL_ADDRESS;
    uint64_t offset = w->u.value.address - a->base;
    if (!w->u.value.write) return CU_OK;
    sim_order_range(w, a, w->u.value.address, w->u.value.address + w->u.value.bytes, 0, 0, true);
    if (w->u.value.bytes == 8)
        __atomic_store_n((uint64_t *)(void *)(a->host + offset), w->u.value.value, __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((uint32_t *)(void *)(a->host + offset), (uint32_t)w->u.value.value,
                         __ATOMIC_SEQ_CST);
    if (a->shadow) sim_shadow_set(a->shadow, offset, w->u.value.bytes);
    return CU_OK;
}

static int run_free(const sim_work *w)
{
    sim_allocation *a = sim_memory_at(w->u.release.address);
    if (!a || a->freed) return CU_OK;
    sim_order_range(w, a, a->base, a->base + a->size, 0, 0, true);
    sim_pool_returned(a);
    if (!a->of_graph) return sim_memory_free(a->base, a->kind);
    sim_memory_sleep(a);
    return CU_OK;
}

static int run_alloc(const sim_work *w)
{
    sim_allocation *a = sim_memory_at(w->u.release.address);
    if (!a || !a->of_graph) return CU_INVALID_VALUE;
    sim_memory_wake(a);
    sim_order_range(w, a, a->base, a->base + a->size, 0, 0, true);
    return CU_OK;
}

static _Thread_local bool host_function_fault;

SIM_EXPORT void ptxsim_fault(const char *text)
{
    sim_report_host("collective", "%s", text);
    host_function_fault = true;
}

/* Runs the stream's first piece of work, whose dependencies are done. False: it waits for a value in memory. */
static bool run_head(sim_stream *s)
{
    sim_work *w = s->head;
    sim_context *c = s->context;
    int code = CU_OK;
    sim_guards_down();
    bool dead = c->sticky != 0;        /* a poisoned context does nothing but free memory */
    if (w->kind == W_VALUE && !w->u.value.write && !dead && !value_holds(w)) return false;
    switch (w->kind) {
    case W_KERNEL: if (!dead) code = sim_launch_work(w); break;
    case W_COPY:   if (!dead) code = sim_copy_run(w); break;
    case W_SET:    if (!dead) code = sim_set_run(w); break;
    case W_VALUE:
        if (dead) break;
        code = run_value(w);
        if (w->u.value.write) join_host_clock(w->clock, s->id, w->seq);      /* the host may be polling it */
        break;
    case W_ALLOC:  if (!dead) code = run_alloc(w); break;
    case W_FREE:   code = run_free(w); break;
    case W_EMPTY: {                    /* cuMemAllocAsync: the memory may be used from here on */
        sim_allocation *a = w->u.release.address ? sim_memory_find(w->u.release.address) : NULL;
        if (a) sim_order_range(w, a, a->base, a->base + a->size, 0, 0, true);
        break;
    }
    case W_RECORD:
        w->u.event.event->time = sim_now_ns();
        if (w->u.event.event->finished < w->u.event.serial) w->u.event.event->finished = w->u.event.serial;
        break;
    case W_HOST: {
        if (c->sticky == CU_DEINITIALIZED || (dead && !w->u.host.callback)) break;
        s->busy = true;
        sim_host_calls++;
        sim_api_pause();
        sim_in_host_function = true;
        host_function_fault = false;
        if (w->u.host.call) w->u.host.call(w->u.host.argument);
        else w->u.host.callback(s->legacy ? NULL : s->handle, c->sticky, w->u.host.argument);
        sim_in_host_function = false;
        if (host_function_fault) code = SIM_ERROR_TIMEOUT;
        sim_api_resume();
        s->busy = false;
        join_host_clock(w->clock, s->id, w->seq);                 /* it may have notified the host */
        sim_api_signal();
        break;
    }
    default: break;
    }
    if (code && !c->sticky) c->sticky = code;
    s->head = w->next;
    if (!s->head) s->tail = NULL;
    s->done = w->seq;
    sim_work_free(w);
    c->pending--;
    pending--;
    return true;
}

static bool is_ready(const sim_stream *s)
{
    const sim_work *w = s->head;
    if (!w || s->busy) return false;
    for (uint32_t k = 0; k < w->dep_count; k++)
        if (w->deps[k].stream->done < w->deps[k].seq) return false;
    return true;
}

/* Runs work of another stream while one waits for a value in memory. */
static bool run_other_stream(sim_context *c)
{
    for (sim_stream *s = c->streams; s; s = s->next) if (is_ready(s) && run_head(s)) return true;
    return false;
}

/* Runs the stream's work up to `seq`, and the work that it depends on. */
int sim_drain(sim_stream *s, uint64_t seq)
{
    enum { FIRST = 16 };
    sim_dep inline_deps[FIRST], *stack = inline_deps;
    uint32_t depth = 1, capacity = FIRST;
    sim_context *c = s->context;
    uint64_t waited = 0;
    inline_deps[0] = (sim_dep){ s, seq };
    while (depth) {
        sim_stream *t = stack[depth - 1].stream;
        if (t->done >= stack[depth - 1].seq || !t->head) { depth--; continue; }
        if (t->busy) { sim_api_wait(1000); continue; }
        const sim_work *w = t->head;
        uint32_t k = 0;
        while (k < w->dep_count && w->deps[k].stream->done >= w->deps[k].seq) k++;
        if (k < w->dep_count) {
            if (depth == capacity) {
                sim_dep *grown = malloc(capacity * 2 * sizeof *grown);
                if (!grown) { c->sticky = CU_OUT_OF_MEMORY; break; }
                memcpy(grown, stack, depth * sizeof *grown);
                if (stack != inline_deps) free(stack);
                stack = grown;
                capacity *= 2;
            }
            stack[depth++] = w->deps[k];
            continue;
        }
        if (run_head(t) || run_other_stream(c)) { waited = 0; continue; }
        if (!waited) waited = sim_now_ns();
        if (sim_watchdog() && sim_now_ns() - waited > (uint64_t)sim_watchdog() * 1000000000u) {
            sim_report_host("deadlock", "cuStreamWaitValue waits for a value that nothing writes");
            c->sticky = SIM_ERROR_TIMEOUT;
        } else sim_api_wait(1);
    }
    if (stack != inline_deps) free(stack);
    return c->sticky;
}

static void drain_and_learn(sim_stream *s, uint64_t seq)
{
    (void)sim_drain(s, seq);
    if (s->queued == seq) join_host_clock(s->clock, s->id, seq);
    else join_host_clock(NULL, s->id, seq);
}

int sim_synchronise(sim_context *c)
{
    for (bool more = true; more;) {
        more = false;
        for (sim_stream *s = c->streams; s; s = s->next) {
            if (s->done == s->queued) continue;
            (void)sim_drain(s, s->queued);
            more = true;                                      /* a host function may have let others queue work */
            break;
        }
    }
    for (sim_stream *s = c->streams; s; s = s->next) join_host_clock(s->clock, s->id, s->queued);
    free_destroyed(c);
    return c->sticky;
}

/* Runs one piece of work early: the caller asks whether the work is done, but does not wait. */
static void run_early(sim_stream *s)
{
    if (s->busy) return;
    sim_running_early = true;
    if (s->head->kind == W_VALUE) (void)run_other_stream(s->context);
    else (void)sim_drain(s, s->done + 1);
    sim_running_early = false;
}

/* --- the background thread -------------------------------------------------------------------- */


static struct { pthread_t thread; bool started, quit, asleep; uint64_t calls; } idle;

void sim_idle_call(void) { idle.calls++; }                    /* under the driver's lock, at each call */

static void *background_thread(void *unused)
{
    int quiet = 0;
    uint64_t seen = 0;
    (void)unused;
    sim_api_resume();
    while (!idle.quit) {
        sim_guards_up();
        idle.asleep = !pending;
        sim_api_wait(idle.asleep ? 0 : IDLE_TICK);
        if (idle.calls != seen || sim_driver_option.lag != 1) { seen = idle.calls; quiet = 0; continue; }
        if (++quiet < IDLE_TICKS || !pending) continue;
        sim_contexts_progress();
        quiet = IDLE_TICKS;
    }
    sim_api_pause();
    return NULL;
}

void sim_context_progress(sim_context *c)
{
    sim_running_early = true;
    for (uint64_t before = idle.calls; c->pending && before == idle.calls && !idle.quit;)
        if (!run_other_stream(c)) break;
    sim_running_early = false;
}

static void in_background_begin(void)
{
    if (!idle.started) idle.started = !pthread_create(&idle.thread, NULL, background_thread, NULL);
    else if (idle.asleep) { idle.asleep = false; sim_api_signal(); }
}

void sim_streams_stop(void)
{
    sim_api_resume();
    bool started = idle.started;
    idle.quit = true;
    idle.started = false;
    sim_api_signal();
    sim_api_pause();
    if (started) pthread_join(idle.thread, NULL);
    idle.quit = false;
}

void sim_streams_shutdown(void)
{
    sim_grids_shutdown();
    sim_clock_drop(host);
    host = NULL;
    free(clock_used);
    free(clock_queued);
    clock_used = NULL;
    clock_queued = NULL;
    clock_count = 0;
}

/* --- queueing --------------------------------------------------------------------------------- */

static bool wait_for_stream(sim_work *w, sim_stream *s, sim_stream *t)
{
    if (t == s || sim_clock_covers(s->clock, t->id, t->queued)) return true;
    return add_dependency(w, t, t->queued) && join(&s->clock, t->clock, t->id, t->queued);
}

/* Guards pinned memory that the copy will write: the host must not access it before. */
static void raise_guard(sim_work *w)
{
    sim_copy *k = &w->u.copy;
    const sim_allocation *a =
        w->synchronous || k->height * k->depth != 1 ? NULL : sim_memory_find(k->to.address);
    if (a && a->kind == MEM_HOST && !a->owned_by_caller && !a->managed)
        k->guard = sim_guard_raise(w, a, k->to.address, k->to.address + k->width);
}

int sim_enqueue(sim_stream *s, sim_work *w)
{
    sim_context *c = s->context;
    bool fine = true;
    w->stream = s;
    if (w->kind == W_RECORD || w->kind == W_WAIT) w->u.event.event->pending++;
    if (s->host_seen != host_version) {
        fine = join(&s->clock, host, 0, 0);
        s->host_seen = host_version;
    }
    if (s->legacy) {
        for (sim_stream *t = c->streams; t && fine; t = t->next) if (t->blocking) fine = wait_for_stream(w, s, t);
    } else if (s->blocking && c->legacy) fine = fine && wait_for_stream(w, s, c->legacy);
    if (w->kind == W_WAIT) {
        sim_event *e = w->u.event.event;
        if (e->finished < e->recorded) fine = fine && add_dependency(w, e->stream, e->seq);
        if (e->recorded) fine = fine && join(&s->clock, e->clock, e->id, e->seq);
    }
    if (!fine) { sim_work_free(w); return CU_OUT_OF_MEMORY; }
    w->clock = retain_order(s->clock);
    if (w->programmatic && !w->after) w->after = s->queued;
    if (w->programmatic && sim_host_knows(s->id, w->after)) w->programmatic = false; /* the kernel before has ended */
    w->seq = ++s->queued;
    w->next = NULL;
    if (s->tail) s->tail->next = w; else s->head = w;
    s->tail = w;
    if (w->kind == W_RECORD) {
        sim_event *e = w->u.event.event;
        w->u.event.serial = ++e->recorded;
        e->stream = s;
        e->seq = w->seq;
        e->id = s->id;
        sim_clock_drop(e->clock);
        e->clock = retain_order(s->clock);
    }
    c->pending++;
    pending++;
    if (w->kind == W_COPY && sim_driver_option.host_races && sim_driver_option.lag) raise_guard(w);
    if (!sim_driver_option.lag) {
        sim_running_early = true;
        (void)sim_drain(s, s->queued);
        sim_running_early = false;
    }
    else if (c->pending > MOST_PENDING) (void)sim_drain(s, s->queued - (s->queued - s->done) / 2);
    else if (sim_driver_option.lag == 1 && (!idle.started || idle.asleep)) in_background_begin();
    return CU_OK;
}

int sim_submit(sim_stream *s, sim_work *w)
{
    if (s->legacy && s->context->captures && sim_legacy_in_capture(s->context)) {
        sim_work_free(w);
        return 906;
    }
    return sim_is_capturing(s) ? sim_capture_work(s, w) : sim_enqueue(s, w);
}

int sim_submit_wait(sim_stream *s, sim_work *w)
{
    bool legacy = s->legacy && s->context->captures && sim_legacy_in_capture(s->context);
    if (legacy || sim_is_capturing(s) || sim_forbidden_in_capture(s->context)) {
        sim_work_free(w);
        sim_capture_invalidate(s);
        return legacy ? 906 : 900;
    }
    sim_context *c = s->context;
    w->synchronous = true;
    int code = sim_enqueue(s, w);
    if (code) return code;
    drain_and_learn(s, s->queued);
    free_destroyed(c);
    return c->sticky;
}

/* --- entry points: streams -------------------------------------------------------------------- */

static int create_stream(sim_context *c, sim_handle **out, unsigned flags, int priority)
{
    if (!out || flags > 1) return CU_INVALID_VALUE;
    sim_stream *s = new_stream(c, flags, false);
    if (!s || !(s->handle = sim_handle_new(H_STREAM, s))) {
        if (s) { c->streams = s->next; free_stream(s); }
        return CU_OUT_OF_MEMORY;
    }
    s->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    s->serial = ++stream_serial;
    *out = s->handle;
    return CU_OK;
}

SIM_API cuStreamCreate(sim_handle **out, unsigned flags)
{ ENTER(cuStreamCreate); USABLE(); return leave(create_stream(c, out, flags, 0)); }

SIM_API cuStreamCreateWithPriority(sim_handle **out, unsigned flags, int priority)
{ ENTER(cuStreamCreateWithPriority); USABLE(); return leave(create_stream(c, out, flags, priority)); }

SIM_API cuStreamDestroy_v2(void *handle)
{
    ENTER(cuStreamDestroy_v2);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    if ((uintptr_t)handle <= 2) return leave(CU_INVALID_HANDLE);
    sim_stream *s = sim_handle_get(H_STREAM, handle);
    if (!s) return leave(CU_INVALID_HANDLE);
    sim_capture_abandon(s);
    sim_handle_drop(s->handle);
    s->handle = NULL;
    s->destroyed = true;                                         /* its work still runs */
    free_destroyed(s->context);
    return leave(CU_OK);
}

#define STREAM(handle) \
    sim_stream *s = sim_stream_of(c, handle); \
    if (!s) return leave(CU_INVALID_HANDLE)
#define NOT_IN_CAPTURE(s) \
    do { if (sim_is_capturing(s)) { sim_capture_invalidate(s); return leave(900); } } while (0)

SIM_API cuStreamSynchronize(void *handle)
{
    ENTER(cuStreamSynchronize);
    USABLE();
    STREAM(handle);
    NOT_IN_CAPTURE(s);
    drain_and_learn(s, s->queued);
    free_destroyed(c);
    return leave(c->sticky);
}

SIM_API cuStreamQuery(void *handle)
{
    ENTER(cuStreamQuery);
    USABLE();
    STREAM(handle);
    NOT_IN_CAPTURE(s);
    while (s->head && s->head->kind == W_WAIT && is_ready(s)) run_head(s);
    if (s->done == s->queued) { join_host_clock(s->clock, s->id, s->queued); return leave(c->sticky); }
    run_early(s);
    return leave(c->sticky ? c->sticky : CU_NOT_READY);
}

SIM_API cuCtxSynchronize(void)
{
    ENTER(cuCtxSynchronize);
    USABLE();
    if (sim_forbidden_in_capture(c)) return leave(900);
    return leave(sim_synchronise(c));
}

SIM_API cuStreamGetCtx(void *handle, void **out)
{
    ENTER(cuStreamGetCtx);
    USABLE();
    STREAM(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = s->context->handle;
    return leave(CU_OK);
}

SIM_API cuStreamGetFlags(void *handle, unsigned *out)
{
    ENTER(cuStreamGetFlags);
    USABLE();
    STREAM(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = s->flags;
    return leave(CU_OK);
}

SIM_API cuStreamGetPriority(void *handle, int *out)
{
    ENTER(cuStreamGetPriority);
    USABLE();
    STREAM(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = s->priority;
    return leave(CU_OK);
}

SIM_API cuStreamGetId(void *handle, unsigned long long *out)
{
    ENTER(cuStreamGetId);
    USABLE();
    STREAM(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = s->legacy ? 1 : s->serial ? s->serial + 2 : 2;
    return leave(CU_OK);
}

SIM_API cuStreamGetDevice(void *handle, int *out)
{
    ENTER(cuStreamGetDevice);
    USABLE();
    STREAM(handle);
    if (!out) return leave(CU_INVALID_VALUE);
    *out = 0;
    return leave(CU_OK);
}

SIM_API cuStreamAttachMemAsync(void *handle, uint64_t address, size_t length, unsigned flags)
{
    ENTER(cuStreamAttachMemAsync);
    USABLE();
    STREAM(handle);
    const sim_allocation *a = sim_memory_find(address);
    (void)length;
    return leave(!a || !a->managed || (flags != 1 && flags != 2 && flags != 4) ? CU_INVALID_VALUE : CU_OK);
}

static int host_function(sim_stream *s, void (*call)(void *), void (*callback)(void *, int, void *),
                         void *user)
{
    if (!call && !callback) return CU_INVALID_VALUE;
    sim_work *w = sim_work_new(W_HOST, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.host.call = call;
    w->u.host.callback = callback;
    w->u.host.argument = user;
    return sim_submit(s, w);
}

SIM_API cuLaunchHostFunc(void *handle, void (*call)(void *), void *user)
{
    ENTER(cuLaunchHostFunc);
    USABLE();
    STREAM(handle);
    return leave(host_function(s, call, NULL, user));
}

SIM_API cuStreamAddCallback(void *handle, void (*callback)(void *, int, void *), void *user, unsigned flags)
{
    ENTER(cuStreamAddCallback);
    USABLE();
    STREAM(handle);
    if (flags) return leave(CU_INVALID_VALUE);
    NOT_IN_CAPTURE(s);
    return leave(host_function(s, NULL, callback, user));
}

static int stream_value(sim_context *c, void *handle, uint64_t address, uint64_t value, unsigned flags,
                        unsigned bytes, bool write)
{
    sim_stream *s = sim_stream_of(c, handle);
    if (!s) return CU_INVALID_HANDLE;
    const sim_allocation *a = sim_memory_find(address);
    if (!a || address % bytes || address - a->base + bytes > a->size) return CU_INVALID_VALUE;
    if (write ? flags & ~1u : (flags & ~(1u << 30)) > 3) return CU_INVALID_VALUE;
    sim_work *w = sim_work_new(W_VALUE, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.value.address = address;
    w->u.value.value = value;
    w->u.value.flags = flags;
    w->u.value.bytes = (uint8_t)bytes;
    w->u.value.write = write;
    return sim_submit(s, w);
}

SIM_API cuStreamWaitValue32_v2(void *s, uint64_t address, uint32_t value, unsigned flags)
{
    ENTER(cuStreamWaitValue32_v2);
    USABLE();
    return leave(stream_value(c, s, address, value, flags, 4, false));
}
SIM_API cuStreamWaitValue64_v2(void *s, uint64_t address, uint64_t value, unsigned flags)
{
    ENTER(cuStreamWaitValue64_v2);
    USABLE();
    return leave(stream_value(c, s, address, value, flags, 8, false));
}
SIM_API cuStreamWriteValue32_v2(void *s, uint64_t address, uint32_t value, unsigned flags)
{
    ENTER(cuStreamWriteValue32_v2);
    USABLE();
    return leave(stream_value(c, s, address, value, flags, 4, true));
}
SIM_API cuStreamWriteValue64_v2(void *s, uint64_t address, uint64_t value, unsigned flags)
{
    ENTER(cuStreamWriteValue64_v2);
    USABLE();
    return leave(stream_value(c, s, address, value, flags, 8, true));
}

/* --- entry points: events --------------------------------------------------------------------- */

sim_event *sim_event_of(const void *handle) { return sim_handle_get(H_EVENT, handle); }

SIM_API cuEventCreate(sim_handle **out, unsigned flags)
{
    ENTER(cuEventCreate);
    USABLE();
    if (!out || flags > 7) return leave(CU_INVALID_VALUE);
    if ((flags & 4) && !(flags & 2)) return leave(CU_INVALID_VALUE); /* interprocess: without timing */
    if (flags & 4) return leave(CU_NOT_SUPPORTED);
    sim_event *e = calloc(1, sizeof *e);
    if (!e || !(e->handle = sim_handle_new(H_EVENT, e))) { free(e); return leave(CU_OUT_OF_MEMORY); }
    e->flags = flags;
    e->context = c;
    e->next = c->events;
    c->events = e;
    *out = e->handle;
    return leave(CU_OK);
}

static void drop_event(sim_event *e)
{
    sim_handle_drop(e->handle);
    e->handle = NULL;
    free(e->capture_deps);
    e->capture_deps = NULL;
    if (!e->pending) { sim_clock_drop(e->clock); free(e); }
}

SIM_API cuEventDestroy_v2(void *handle)
{
    ENTER(cuEventDestroy_v2);
    if (!sim_current()) return leave(CU_INVALID_CONTEXT);
    sim_event *e = sim_event_of(handle);
    if (!e) return leave(CU_INVALID_HANDLE);
    for (sim_event **at = &e->context->events; *at; at = &(*at)->next) if (*at == e) { *at = e->next; break; }
    drop_event(e);
    return leave(CU_OK);
}

static int record_event(sim_context *c, void *event, void *stream, unsigned flags)
{
    sim_event *e = sim_event_of(event);
    sim_stream *s = e ? sim_stream_of(c, stream) : NULL;
    if (!e || !s || e->context != c) return CU_INVALID_HANDLE;
    if (flags & ~1u) return CU_INVALID_VALUE;
    if (sim_is_capturing(s) && !(flags & 1)) return sim_capture_record(s, e);
    e->capture = NULL;
    sim_work *w = sim_work_new(W_RECORD, 0);
    if (!w) return CU_OUT_OF_MEMORY;
    w->u.event.event = e;
    return sim_submit(s, w);
}

SIM_API cuEventRecord(void *event, void *stream)
{ ENTER(cuEventRecord); USABLE(); return leave(record_event(c, event, stream, 0)); }
SIM_API cuEventRecordWithFlags(void *event, void *stream, unsigned flags)
{ ENTER(cuEventRecordWithFlags); USABLE(); return leave(record_event(c, event, stream, flags)); }

SIM_API cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    ENTER(cuStreamWaitEvent);
    USABLE();
    sim_event *e = sim_event_of(event);
    sim_stream *s = e ? sim_stream_of(c, stream) : NULL;
    if (!e || !s) return leave(CU_INVALID_HANDLE);
    if (flags > 1) return leave(CU_INVALID_VALUE);
    if (e->context != c) {                                    /* of another context: wait for it now */
        if (e->finished < e->recorded) (void)sim_drain(e->stream, e->seq);
        return leave(CU_OK);
    }
    if (e->capture || sim_is_capturing(s)) {
        if (!(flags & 1) || e->capture) return leave(sim_capture_wait(s, e));
    }
    if (!e->recorded) return leave(CU_OK);
    sim_work *w = sim_work_new(W_WAIT, 0);
    if (!w) return leave(CU_OUT_OF_MEMORY);
    w->u.event.event = e;
    return leave(sim_submit(s, w));
}

SIM_API cuEventSynchronize(void *event)
{
    ENTER(cuEventSynchronize);
    USABLE();
    sim_event *e = sim_event_of(event);
    if (!e) return leave(CU_INVALID_HANDLE);
    if (e->capture) return leave(907);
    if (e->finished < e->recorded) (void)sim_drain(e->stream, e->seq);
    if (e->recorded) join_host_clock(e->clock, e->id, e->seq);
    free_destroyed(c);
    return leave(c->sticky);
}

SIM_API cuEventQuery(void *event)
{
    ENTER(cuEventQuery);
    USABLE();
    sim_event *e = sim_event_of(event);
    if (!e) return leave(CU_INVALID_HANDLE);
    if (e->capture) return leave(907);
    if (e->finished >= e->recorded) {
        if (e->recorded) join_host_clock(e->clock, e->id, e->seq);
        return leave(c->sticky);
    }
    run_early(e->stream);
    return leave(c->sticky ? c->sticky : CU_NOT_READY);
}

static int elapsed_time(float *ms, void *start, void *end)
{
    const sim_event *a = sim_event_of(start), *b = sim_event_of(end);
    if (!a || !b) return CU_INVALID_HANDLE;
    if (!ms) return CU_INVALID_VALUE;
    if (!a->recorded || !b->recorded || ((a->flags | b->flags) & 2)) return CU_INVALID_HANDLE;
    if (a->capture || b->capture) return 907;
    if (a->finished < a->recorded || b->finished < b->recorded) return CU_NOT_READY;
    *ms = (float)((double)((int64_t)b->time - (int64_t)a->time) * 1e-6);
    return CU_OK;
}

SIM_API cuEventElapsedTime(float *ms, void *start, void *end)
{ ENTER(cuEventElapsedTime); USABLE(); return leave(elapsed_time(ms, start, end)); }
SIM_API cuEventElapsedTime_v2(float *ms, void *start, void *end)
{ ENTER(cuEventElapsedTime_v2); USABLE(); return leave(elapsed_time(ms, start, end)); }

/* --- interprocess communication: not supported ------------------------------------------------ */

typedef struct ipc { char bytes[64]; } ipc;

SIM_API cuIpcGetEventHandle(ipc *out, void *event)
{ ENTER(cuIpcGetEventHandle); (void)out; (void)event; return leave(CU_NOT_SUPPORTED); }
SIM_API cuIpcOpenEventHandle(void **out, ipc handle)
{ ENTER(cuIpcOpenEventHandle); (void)out; (void)handle; return leave(CU_NOT_SUPPORTED); }
SIM_API cuIpcGetMemHandle(ipc *out, uint64_t address)
{ ENTER(cuIpcGetMemHandle); (void)out; (void)address; return leave(CU_NOT_SUPPORTED); }
SIM_API cuIpcOpenMemHandle_v2(uint64_t *out, ipc handle, unsigned flags)
{ ENTER(cuIpcOpenMemHandle_v2); (void)out; (void)handle; (void)flags; return leave(CU_NOT_SUPPORTED); }
SIM_API cuIpcCloseMemHandle(uint64_t address)
{ ENTER(cuIpcCloseMemHandle); (void)address; return leave(CU_NOT_SUPPORTED); }

/* --- the end of a context --------------------------------------------------------------------- */

void sim_streams_free(sim_context *c)
{
    (void)sim_synchronise(c);
    while (c->events) {
        sim_event *e = c->events;
        c->events = e->next;
        drop_event(e);
    }
    while (c->streams) {
        sim_stream *s = c->streams;
        c->streams = s->next;
        sim_handle_drop(s->handle);
        free_stream(s);
    }
    c->legacy = NULL;
}
