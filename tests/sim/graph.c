/* graph.c - graphs of work: captured or built node by node, instantiated, updated, launched.
 *
 * A node holds a piece of work that is not queued; a launch queues copies of the nodes' work in the stream.
 * Of the nodes whose dependencies are done the one added last runs first, so that a missing
 * dependency shows. */
#include "driver.h"

typedef struct sim_node {
    sim_handle *handle;
    const sim_handle *origin;          /* in a clone: the node that it copies */
    struct sim_node *next;
    struct sim_graph *graph, *child;   /* child: its own copy */
    sim_work *work;                    /* NULL: empty, or a child graph */
    struct sim_node **deps; uint32_t dep_count;
    void **pointers;                   /* storage of the parameters that GetParams returns */
    bool disabled;
    uint8_t type, mark;
    uint32_t left;
    int priority; uint8_t policy[64];  /* stored for GetAttribute only */
    uint64_t queued;                   /* its sequence number in the stream of the last launch */
} sim_node;

typedef struct sim_user_object {
    sim_handle *handle;
    void (*destroy)(void *);
    void *argument;
    uint64_t references;
    struct sim_user_object *next;      /* list of those without references */
} sim_user_object;
typedef struct sim_held {              /* a graph's references to a user object */
    struct sim_held *next;
    sim_user_object *object;
    uint64_t references;
} sim_held;

typedef struct sim_graph {
    sim_held *held;
    sim_handle *handle;                /* NULL: of a child graph or an executable graph */
    const sim_handle *origin;
    struct sim_graph *next;
    sim_context *context;
    sim_node *nodes, **tail; uint32_t count;
} sim_graph;

typedef struct sim_exec {
    sim_handle *handle;
    struct sim_exec *next;
    sim_context *context;
    sim_graph *graph;
    sim_node **order;                  /* the order in which nodes are queued */
    uint64_t flags;
} sim_exec;

enum { LOSSY_QUERY = 402 };            /* the call cannot return edge data, but there is some */
enum { N_KERNEL, N_MEMCPY, N_MEMSET, N_HOST, N_GRAPH, N_EMPTY, N_WAIT, N_RECORD, N_ALLOC = 10, N_FREE };

/* --- making and freeing ----------------------------------------------------------------------- */

static sim_graph *new_graph(sim_context *c, bool handle)
{
    sim_graph *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    if (handle && !(g->handle = sim_handle_new(H_GRAPH, g))) { free(g); return NULL; }
    g->context = c;
    g->tail = &g->nodes;
    if (handle) { g->next = c->graphs; c->graphs = g; }
    return g;
}

static void free_graph(sim_graph *g);

/* --- user objects: destroyed when neither a graph nor the caller holds a reference ----------------- */

static sim_user_object *unheld;

static void release_object(sim_user_object *o, uint64_t references)
{
    o->references -= references;
    if (o->references) return;
    o->next = unheld;
    unheld = o;
}

/* Ends a call: runs the destructors of unreferenced objects without the driver's lock. */
static int leave_and_destroy(int code)
{
    while (unheld) {
        sim_user_object *o = unheld;
        unheld = o->next;
        sim_handle_drop(o->handle);
        sim_api_pause();
        sim_in_host_function = true;
        o->destroy(o->argument);
        sim_in_host_function = false;
        sim_api_resume();
        free(o);
    }
    return leave(code);
}

static bool retain_object(sim_graph *g, sim_user_object *o, uint64_t references)
{
    sim_held *h = g->held;
    while (h && h->object != o) h = h->next;
    if (!h) {
        if (!(h = calloc(1, sizeof *h))) return false;
        h->object = o;
        h->next = g->held;
        g->held = h;
    }
    h->references += references;
    return true;
}

static void free_held(sim_graph *g)
{
    while (g->held) {
        sim_held *h = g->held;
        g->held = h->next;
        release_object(h->object, h->references);
        free(h);
    }
}

static void free_node(sim_node *n)
{
    sim_handle_drop(n->handle);
    sim_work_free(n->work);
    if (n->child) free_graph(n->child);
    free(n->deps);
    free(n->pointers);
    free(n);
}

static void free_graph(sim_graph *g)
{
    if (!g) return;
    if (g->handle)
        for (sim_graph **at = &g->context->graphs; *at; at = &(*at)->next)
            if (*at == g) {
                *at = g->next;
                break;
            }
    sim_handle_drop(g->handle);
    free_held(g);
    while (g->nodes) { sim_node *n = g->nodes; g->nodes = n->next; free_node(n); }
    free(g);
}

static void free_exec(sim_exec *x)
{
    for (sim_exec **at = &x->context->execs; *at; at = &(*at)->next) if (*at == x) { *at = x->next; break; }
    sim_handle_drop(x->handle);
    free_graph(x->graph);
    free(x->order);
    free(x);
}

/* Adds a node that owns `work`; frees it when the node cannot be made. */
static sim_node *add_node(sim_graph *g, int type, sim_work *work, sim_node *const *deps, size_t count)
{
    sim_node *n = calloc(1, sizeof *n);
    if (!n) { sim_work_free(work); return NULL; }
    n->work = work;
    n->type = (uint8_t)type;
    n->graph = g;
    n->deps = malloc((count + 1) * sizeof *n->deps);
    n->handle = sim_handle_new(H_NODE, n);
    if (!n->deps || !n->handle) { free_node(n); return NULL; }
    for (size_t k = 0; k < count; k++) {
        bool known = false;
        for (uint32_t j = 0; j < n->dep_count; j++) known |= n->deps[j] == deps[k];
        if (!known) n->deps[n->dep_count++] = deps[k];
    }
    *g->tail = n;
    g->tail = &n->next;
    g->count++;
    return n;
}

static sim_node *node_copied_from(const sim_graph *g, const sim_node *original)
{
    sim_node *n = g->nodes;
    while (n && n->origin != original->handle) n = n->next;
    return n;
}

static sim_graph *graph_copy(const sim_graph *from, bool handle)
{
    sim_graph *g = new_graph(from->context, handle);
    bool fine = g != NULL;
    for (const sim_node *n = from->nodes; n && fine; n = n->next) {
        sim_work *w = n->work ? sim_work_copy(n->work) : NULL;
        sim_node *m = n->work && !w ? NULL : add_node(g, n->type, w, NULL, 0);
        fine = m != NULL;
        if (!m) break;
        m->origin = n->handle;
        m->disabled = n->disabled;
        if (n->child) fine = (m->child = graph_copy(n->child, false)) != NULL;
    }
    sim_node *m = g ? g->nodes : NULL;
    for (const sim_node *n = from->nodes; n && m && fine; n = n->next, m = m->next) {
        free(m->deps);
        m->deps = malloc((n->dep_count + 1) * sizeof *m->deps);
        if (!(fine = m->deps != NULL)) break;
        for (uint32_t k = 0; k < n->dep_count; k++) m->deps[k] = node_copied_from(g, n->deps[k]);
        m->dep_count = n->dep_count;
    }
    for (const sim_held *h = from->held; h && fine; h = h->next) {
        fine = retain_object(g, h->object, h->references);
        if (fine) h->object->references += h->references;
    }
    if (fine) { g->origin = from->handle; return g; }
    free_graph(g);
    return NULL;
}

/* Whether the edges have no data: others can only be made by capture. */
static bool plain_edges(const uint8_t *edges, size_t count)
{
    for (size_t k = 0; edges && k < 8 * count; k++) if (edges[k]) return false;
    return true;
}

/* Whether the node may begin before the kernel that it depends on has ended. */
static bool programmatic(const sim_node *n)
{ return n->work && n->work->programmatic && n->dep_count == 1 && n->deps[0]->type == N_KERNEL; }

/* The nodes in a topological order; NULL: there is a cycle, or no memory. */
static sim_node **topological_order(sim_graph *g)
{
    sim_node **order = malloc((g->count + 1) * sizeof *order),
             **ready = malloc((g->count + 1) * sizeof *ready);
    uint32_t done = 0, open = 0;
    if (!order || !ready) { free(order); free(ready); return NULL; }
    for (sim_node *n = g->nodes; n; n = n->next) if (!(n->left = n->dep_count)) ready[open++] = n;
    while (open) {
        sim_node *n = ready[--open];
        order[done++] = n;
        for (sim_node *m = g->nodes; m; m = m->next)
            for (uint32_t k = 0; k < m->dep_count; k++)
                if (m->deps[k] == n && !--m->left) ready[open++] = m;
    }
    free(ready);
    if (done == g->count) return order;
    free(order);
    return NULL;
}

static bool acyclic(sim_graph *g)
{
    sim_node **order = topological_order(g);
    free(order);
    return order != NULL;
}

/* --- capture ---------------------------------------------------------------------------------- */

typedef struct sim_capture {
    struct sim_capture *next;
    uint64_t id;
    sim_context *context;
    sim_graph *graph;
    sim_stream *origin;
    int mode;
    pthread_t thread;
    bool active, to_graph;
} sim_capture;

static _Thread_local int thread_mode;
static uint64_t capture_ids;

bool sim_is_capturing(sim_stream *s) { return s->capture != NULL; }

void sim_capture_invalidate(sim_stream *s) { if (s->capture) s->capture->active = false; }

static bool set_capture_deps(sim_stream *s, sim_node *const *nodes, uint32_t count)
{
    sim_node **capture_deps = malloc((count + 1) * sizeof *capture_deps);
    if (!capture_deps) return false;
    if (count) memcpy(capture_deps, nodes, count * sizeof *capture_deps);
    free(s->capture_deps);
    s->capture_deps = capture_deps;
    s->capture_dep_count = count;
    return true;
}

static bool add_capture_deps(sim_stream *s, sim_node *const *nodes, uint32_t count)
{
    sim_node **capture_deps = malloc((s->capture_dep_count + count + 1) * sizeof *capture_deps);
    uint32_t n = 0;
    if (!capture_deps) return false;
    for (uint32_t k = 0; k < s->capture_dep_count + count; k++) {
        sim_node *node = k < s->capture_dep_count ? s->capture_deps[k] : nodes[k - s->capture_dep_count];
        bool known = false;
        for (uint32_t j = 0; j < n; j++) known |= capture_deps[j] == node;
        if (!known) capture_deps[n++] = node;
    }
    free(s->capture_deps);
    s->capture_deps = capture_deps;
    s->capture_dep_count = n;
    return true;
}

/* Refuses a call that could wait for the device, while a capture that concerns this thread is active. */
int sim_forbidden_in_capture(sim_context *c)
{
    bool forbidden = false;
    for (sim_capture *k = c->captures; k; k = k->next) {
        if (k->mode == 2 || thread_mode == 2) continue;
        if ((k->mode == 1 || thread_mode == 1) && !pthread_equal(k->thread, pthread_self())) continue;
        k->active = false;
        forbidden = true;
    }
    return forbidden;
}

/* Refuses work in the legacy stream, which would wait for the blocking streams that are being captured. */
bool sim_legacy_in_capture(sim_context *c)
{
    bool found = false;
    for (sim_stream *s = c->streams; s && c->captures; s = s->next) {
        if (!s->capture || !s->blocking) continue;
        s->capture->active = false;
        found = true;
    }
    return found;
}

static int type_of(const sim_work *w)
{
    switch (w->kind) {
    case W_KERNEL: return N_KERNEL;
    case W_COPY:   return N_MEMCPY;
    case W_SET:    return N_MEMSET;
    case W_HOST:   return N_HOST;
    case W_RECORD: return N_RECORD;
    case W_WAIT:   return N_WAIT;
    case W_ALLOC:  return N_ALLOC;
    case W_FREE:   return N_FREE;
    default:       return N_EMPTY;
    }
}

int sim_capture_work(sim_stream *s, sim_work *w)
{
    if (!s->capture->active) { sim_work_free(w); return 901; }
    if (w->kind == W_RECORD || w->kind == W_WAIT) w->function = w->u.event.event->handle;
    sim_node *n = add_node(s->capture->graph, type_of(w), w, s->capture_deps, s->capture_dep_count);
    return n && set_capture_deps(s, &n, 1) ? CU_OK : CU_OUT_OF_MEMORY;
}

int sim_capture_record(sim_stream *s, sim_event *e)
{
    if (!s->capture->active) return 901;
    sim_node **capture_deps = malloc((s->capture_dep_count + 1) * sizeof *capture_deps);
    if (!capture_deps) return CU_OUT_OF_MEMORY;
    if (s->capture_dep_count) memcpy(capture_deps, s->capture_deps, s->capture_dep_count * sizeof *capture_deps);
    free(e->capture_deps);
    e->capture_deps = capture_deps;
    e->capture_dep_count = s->capture_dep_count;
    e->capture = s->capture;
    return CU_OK;
}

int sim_capture_wait(sim_stream *s, sim_event *e)
{
    if (!e->capture) { s->capture->active = false; return 905; }
    if (!e->capture->active || (s->capture && !s->capture->active)) return 901;
    if (s->legacy) { e->capture->active = false; return 906; }
    if (s->capture && s->capture != e->capture) {
        s->capture->active = e->capture->active = false;
        return 902;
    }
    if (!s->capture) s->capture_dep_count = 0;
    s->capture = e->capture;
    return add_capture_deps(s, e->capture_deps, e->capture_dep_count) ? CU_OK : CU_OUT_OF_MEMORY;
}

static int begin(sim_context *c, void *handle, int mode, sim_graph *into)
{
    sim_stream *s = sim_stream_of(c, handle);
    if (!s) return CU_INVALID_HANDLE;
    if (mode < 0 || mode > 2) return CU_INVALID_VALUE;
    if (s->legacy) return 900;
    if (s->capture) return 401;
    sim_capture *k = calloc(1, sizeof *k);
    if (!k || !(k->graph = into ? into : new_graph(c, true))) { free(k); return CU_OUT_OF_MEMORY; }
    k->id = ++capture_ids;
    k->context = c;
    k->origin = s;
    k->mode = mode;
    k->thread = pthread_self();
    k->active = true;
    k->to_graph = into != NULL;
    k->next = c->captures;
    c->captures = k;
    s->capture = k;
    s->capture_dep_count = 0;
    return CU_OK;
}

static void end(sim_capture *k)
{
    sim_context *c = k->context;
    for (sim_stream *s = c->streams; s; s = s->next)
        if (s->capture == k) {
            s->capture = NULL;
            s->capture_dep_count = 0;
        }
    for (sim_event *e = c->events; e; e = e->next) if (e->capture == k) e->capture = NULL;
    for (sim_capture **at = &c->captures; *at; at = &(*at)->next) if (*at == k) { *at = k->next; break; }
    free(k);
}

/* Marks the nodes that lead to the origin stream's last nodes. */
static bool mark_joined(const sim_capture *k)
{
    sim_node **list = malloc((k->graph->count + 1) * sizeof *list);
    uint32_t n = 0;
    bool more = true;
    if (!list) return false;
    for (sim_node *node = k->graph->nodes; node; node = node->next) { node->mark = 0; list[n++] = node; }
    for (uint32_t j = 0; j < k->origin->capture_dep_count; j++) k->origin->capture_deps[j]->mark = 1;
    while (more) {                     /* one pass, unless edges were added by hand */
        more = false;
        for (uint32_t at = n; at-- > 0;)
            for (uint32_t j = 0; list[at]->mark && j < list[at]->dep_count; j++) {
                if (list[at]->deps[j]->mark) continue;
                list[at]->deps[j]->mark = 1;
                more = true;
            }
    }
    free(list);
    return true;
}

static bool is_joined(const sim_stream *s)
{
    for (uint32_t j = 0; j < s->capture_dep_count; j++) if (!s->capture_deps[j]->mark) return false;
    return true;
}

/* Whether everything that other streams captured leads to the origin stream's last nodes. */
static bool joined(const sim_capture *k)
{
    bool fine = mark_joined(k);
    for (const sim_stream *s = k->context->streams; s && fine; s = s->next)
        if (s->capture == k && s != k->origin) fine = is_joined(s);
    return fine;
}

/* A capturing stream is destroyed. The capture stays valid if all that the stream captured has been joined. */
void sim_capture_abandon(sim_stream *s)
{
    sim_capture *k = s->capture;
    if (!k) return;
    if (k->origin == s || !mark_joined(k) || !is_joined(s)) k->active = false;
    s->capture = NULL;
    if (k->origin != s) return;
    sim_graph *g = k->to_graph ? NULL : k->graph;
    end(k);
    free_graph(g);
}

SIM_API cuStreamBeginCapture_v2(void *stream, int mode)
{ ENTER(cuStreamBeginCapture_v2); USABLE(); return leave(begin(c, stream, mode, NULL)); }
SIM_API cuStreamBeginCapture(void *stream)
{ ENTER(cuStreamBeginCapture); USABLE(); return leave(begin(c, stream, 0, NULL)); }

static int nodes_of(const sim_graph *g, void *const *handles, size_t count, sim_node ***out)
{
    if (count && !handles) return CU_INVALID_VALUE;
    sim_node **list = malloc((count + 1) * sizeof *list);
    if (!list) return CU_OUT_OF_MEMORY;
    for (size_t k = 0; k < count; k++) {
        list[k] = sim_handle_get(H_NODE, handles[k]);
        if (!list[k] || list[k]->graph != g) { free(list); return CU_INVALID_VALUE; }
    }
    *out = list;
    return CU_OK;
}

SIM_API cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *deps, const void *edges,
                                    size_t count, int mode)
{
    ENTER(cuStreamBeginCaptureToGraph);
    USABLE();
    sim_graph *g = sim_handle_get(H_GRAPH, graph);
    sim_node **list;
    if (!plain_edges(edges, count)) return leave(CU_NOT_SUPPORTED);
    if (!g) return leave(CU_INVALID_HANDLE);
    int code = nodes_of(g, deps, count, &list);
    if (code) return leave(code);
    code = begin(c, stream, mode, g);
    if (!code && !set_capture_deps(sim_stream_of(c, stream), list, (uint32_t)count)) code = CU_OUT_OF_MEMORY;
    free(list);
    return leave(code);
}

SIM_API cuStreamEndCapture(void *stream, void **out)
{
    ENTER(cuStreamEndCapture);
    USABLE();
    sim_stream *s = sim_stream_of(c, stream);
    if (out) *out = NULL;
    if (!s) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    sim_capture *k = s->capture;
    if (!k) return leave(401);
    if (k->origin != s) { k->active = false; return leave(903); }
    if (k->mode != 2 && !pthread_equal(k->thread, pthread_self())) return leave(908);
    int code = !k->active ? 901 : joined(k) ? CU_OK : 904;
    sim_graph *g = k->graph;
    bool kept = k->to_graph;
    end(k);
    if (!code) *out = g->handle;
    else if (!kept) free_graph(g);
    return leave(code);
}

static int status_of(const sim_stream *s) { return !s->capture ? 0 : s->capture->active ? 1 : 2; }

SIM_API cuStreamIsCapturing(void *stream, int *status)
{
    ENTER(cuStreamIsCapturing);
    USABLE();
    sim_stream *s = sim_stream_of(c, stream);
    if (!s) return leave(CU_INVALID_HANDLE);
    if (!status) return leave(CU_INVALID_VALUE);
    if (s->legacy && sim_legacy_in_capture(c)) return leave(906);
    *status = status_of(s);
    return leave(CU_OK);
}

static int capture_info(sim_context *c, void *stream, int *status, uint64_t *id, void **graph, void ***deps,
                        const void **edges, size_t *count)
{
    static _Thread_local void *list[256];
    sim_stream *s = sim_stream_of(c, stream);
    if (!s) return CU_INVALID_HANDLE;
    if (!status) return CU_INVALID_VALUE;
    if (s->legacy && sim_legacy_in_capture(c)) return 906;
    *status = status_of(s);
    if (edges) *edges = NULL;
    if (*status != 1) return CU_OK;
    if (id) *id = s->capture->id;
    if (graph) *graph = s->capture->graph->handle;
    uint32_t n = s->capture_dep_count < 256 ? s->capture_dep_count : 256;
    for (uint32_t k = 0; k < n; k++) list[k] = s->capture_deps[k]->handle;
    if (deps) *deps = list;
    if (count) *count = n;
    return CU_OK;
}

SIM_API cuStreamGetCaptureInfo_v2(void *s, int *status, uint64_t *id, void **graph, void ***deps,
                                  size_t *count)
{
    ENTER(cuStreamGetCaptureInfo_v2);
    USABLE();
    return leave(capture_info(c, s, status, id, graph, deps, NULL, count));
}
SIM_API cuStreamGetCaptureInfo_v3(void *s, int *status, uint64_t *id, void **graph, void ***deps,
                                  const void **edges, size_t *count)
{
    ENTER(cuStreamGetCaptureInfo_v3);
    USABLE();
    return leave(capture_info(c, s, status, id, graph, deps, edges, count));
}

static int update_capture_deps(sim_context *c, void *stream, void *const *handles, size_t count, unsigned flags)
{
    sim_stream *s = sim_stream_of(c, stream);
    sim_node **list;
    if (!s) return CU_INVALID_HANDLE;
    if (!s->capture) return 401;
    if (!s->capture->active) return 901;
    if (flags > 1) return CU_INVALID_VALUE;
    int code = nodes_of(s->capture->graph, handles, count, &list);
    if (code) return code;
    bool fine = flags ? set_capture_deps(s, list, (uint32_t)count) : add_capture_deps(s, list, (uint32_t)count);
    free(list);
    return fine ? CU_OK : CU_OUT_OF_MEMORY;
}

SIM_API cuStreamUpdateCaptureDependencies(void *s, void *const *deps, size_t count, unsigned flags)
{ ENTER(cuStreamUpdateCaptureDependencies); USABLE(); return leave(update_capture_deps(c, s, deps, count, flags)); }
SIM_API cuStreamUpdateCaptureDependencies_v2(void *s, void *const *deps, const void *edges, size_t count,
                                             unsigned flags)
{
    ENTER(cuStreamUpdateCaptureDependencies_v2);
    USABLE();
    if (!plain_edges(edges, count)) return leave(CU_NOT_SUPPORTED);
    return leave(update_capture_deps(c, s, deps, count, flags));
}

SIM_API cuThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER(cuThreadExchangeStreamCaptureMode);
    if (!mode || *mode < 0 || *mode > 2) return leave(CU_INVALID_VALUE);
    int old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return leave(CU_OK);
}

/* --- nodes added by calls --------------------------------------------------------------------- */

static sim_graph *graph_of(const void *handle) { return sim_handle_get(H_GRAPH, handle); }
static sim_node *node_of(const void *handle) { return sim_handle_get(H_NODE, handle); }
static sim_exec *exec_of(const void *handle) { return sim_handle_get(H_EXEC, handle); }

SIM_API cuGraphCreate(void **out, unsigned flags)
{
    ENTER(cuGraphCreate);
    USABLE();
    if (!out || flags) return leave(CU_INVALID_VALUE);
    sim_graph *g = new_graph(c, true);
    if (!g) return leave(CU_OUT_OF_MEMORY);
    *out = g->handle;
    return leave(CU_OK);
}

SIM_API cuGraphDestroy(void *handle)
{
    ENTER(cuGraphDestroy);
    sim_graph *g = graph_of(handle);
    if (!g) return leave(CU_INVALID_HANDLE);
    for (sim_capture *k = g->context->captures, *next; k; k = next) {
        next = k->next;
        if (k->graph == g) end(k);
    }
    free_graph(g);
    return leave_and_destroy(CU_OK);
}

SIM_API cuGraphClone(void **out, void *handle)
{
    ENTER(cuGraphClone);
    const sim_graph *g = graph_of(handle);
    if (!g) return leave(CU_INVALID_HANDLE);
    if (!out) return leave(CU_INVALID_VALUE);
    sim_graph *copy = graph_copy(g, true);
    if (!copy) return leave(CU_OUT_OF_MEMORY);
    *out = copy->handle;
    return leave(CU_OK);
}

SIM_API cuGraphNodeFindInClone(void **out, void *node, void *graph)
{
    ENTER(cuGraphNodeFindInClone);
    const sim_node *n = node_of(node);
    const sim_graph *g = graph_of(graph);
    if (!out || !n || !g) return leave(CU_INVALID_VALUE);
    const sim_node *m = node_copied_from(g, n);
    if (!m) return leave(CU_INVALID_VALUE);
    *out = m->handle;
    return leave(CU_OK);
}

/* Adds a node for *work, unless `code` says that it could not be made. */
static int add_work_node(void **out, void *graph, void *const *deps, size_t count, int type, int code, sim_work *work,
                         sim_graph *child)
{
    sim_graph *g = graph_of(graph);
    sim_node **list = NULL, *n = NULL;
    if (!code && !g) code = CU_INVALID_HANDLE;
    if (!code && !out) code = CU_INVALID_VALUE;
    if (!code) code = nodes_of(g, deps, count, &list);
    if (code) { sim_work_free(work); if (child) free_graph(child); return code; }
    n = add_node(g, type, work, list, count);
    free(list);
    if (!n) { if (child) free_graph(child); return CU_OUT_OF_MEMORY; }
    n->child = child;
    *out = n->handle;
    return CU_OK;
}

typedef struct kernel_params {
    void *function;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kernel, *context;            /* not in the first version of the struct */
} kernel_params;

static int kernel_work(sim_context *c, const kernel_params *p, bool second, sim_work **out)
{
    if (!p) return CU_INVALID_VALUE;
    sim_launch_request r = {
        .function = p->function, .dynamic = p->shared, .params = p->params, .extra = p->extra};
    if (!r.function && second) r.function = p->kernel;
    memcpy(r.grid, p->grid, sizeof r.grid);
    memcpy(r.block, p->block, sizeof r.block);
    return sim_launch_new(c, &r, out);
}

static int copy_work(const void *p, sim_work **out)
{
    sim_copy k = { 0 };
    int code = sim_copy_of_3d(p, &k);
    if (code) return code;
    if (!k.width || !k.height || !k.depth) return CU_INVALID_VALUE;
    if (!(*out = sim_work_new(W_COPY, 0))) return CU_OUT_OF_MEMORY;
    (*out)->u.copy = k;
    return CU_OK;
}

typedef struct memset_params {
    uint64_t to;
    size_t pitch;
    unsigned value, bytes;
    size_t width, height;
} memset_params;

static int set_work(const memset_params *p, sim_work **out)
{
    if (!p || !p->width || !p->height) return CU_INVALID_VALUE;
    sim_set k = { .to = { p->to, p->pitch, 0 }, .width = p->width, .height = p->height, .value = p->value,
                  .bytes = p->bytes };
    int code = sim_set_check(&k);
    if (code) return code;
    if (!(*out = sim_work_new(W_SET, 0))) return CU_OUT_OF_MEMORY;
    (*out)->u.set = k;
    return CU_OK;
}

typedef struct host_params { void (*call)(void *); void *argument; } host_params;

static int host_work(const host_params *p, sim_work **out)
{
    if (!p || !p->call) return CU_INVALID_VALUE;
    if (!(*out = sim_work_new(W_HOST, 0))) return CU_OUT_OF_MEMORY;
    (*out)->u.host.call = p->call;
    (*out)->u.host.argument = p->argument;
    return CU_OK;
}

static int event_work(sim_work_kind kind, const void *event, sim_work **out)
{
    const sim_event *e = sim_event_of(event);
    if (!e) return CU_INVALID_HANDLE;
    if (!(*out = sim_work_new(kind, 0))) return CU_OUT_OF_MEMORY;
    (*out)->function = e->handle;
    return CU_OK;
}

#define ADD(name, type, parameter, make) \
    SIM_API name(void **out, void *graph, void *const *deps, size_t count, parameter) \
    { \
        ENTER(name); \
        USABLE(); \
        (void)c; \
        sim_work *w = NULL; \
        int code = make; \
        return leave(add_work_node(out, graph, deps, count, type, code, w, NULL)); \
    }
ADD(cuGraphAddKernelNode, N_KERNEL, const kernel_params *p, kernel_work(c, p, false, &w))
ADD(cuGraphAddKernelNode_v2, N_KERNEL, const kernel_params *p, kernel_work(c, p, true, &w))
ADD(cuGraphAddHostNode, N_HOST, const host_params *p, host_work(p, &w))
ADD(cuGraphAddEventRecordNode, N_RECORD, void *e, event_work(W_RECORD, e, &w))
ADD(cuGraphAddEventWaitNode, N_WAIT, void *e, event_work(W_WAIT, e, &w))

SIM_API cuGraphAddMemcpyNode(void **out, void *graph, void *const *deps, size_t count, const void *p,
                             void *context)
{
    ENTER(cuGraphAddMemcpyNode);
    USABLE();
    sim_work *w = NULL;
    int code = context && sim_context_of(context) != c ? CU_INVALID_CONTEXT : copy_work(p, &w);
    return leave(add_work_node(out, graph, deps, count, N_MEMCPY, code, w, NULL));
}

SIM_API cuGraphAddMemsetNode(void **out, void *graph, void *const *deps, size_t count, const memset_params *p,
                             void *context)
{
    ENTER(cuGraphAddMemsetNode);
    USABLE();
    sim_work *w = NULL;
    int code = context && sim_context_of(context) != c ? CU_INVALID_CONTEXT : set_work(p, &w);
    return leave(add_work_node(out, graph, deps, count, N_MEMSET, code, w, NULL));
}

SIM_API cuGraphAddEmptyNode(void **out, void *graph, void *const *deps, size_t count)
{
    ENTER(cuGraphAddEmptyNode);
    return leave(add_work_node(out, graph, deps, count, N_EMPTY, CU_OK, NULL, NULL));
}

SIM_API cuGraphAddChildGraphNode(void **out, void *graph, void *const *deps, size_t count, void *child)
{
    ENTER(cuGraphAddChildGraphNode);
    const sim_graph *from = graph_of(child);
    sim_graph *copy = from && child != graph ? graph_copy(from, false) : NULL;
    int code = !from            ? CU_INVALID_HANDLE
               : child == graph ? CU_INVALID_VALUE
               : copy           ? CU_OK
                                : CU_OUT_OF_MEMORY;
    return leave(add_work_node(out, graph, deps, count, N_GRAPH, code, NULL, copy));
}

SIM_API cuGraphChildGraphNodeGetGraph(void *node, void **out)
{
    ENTER(cuGraphChildGraphNodeGetGraph);
    sim_node *n = node_of(node);
    if (!n || !out || !n->child) return leave(CU_INVALID_VALUE);
    if (!n->child->handle) n->child->handle = sim_handle_new(H_GRAPH, n->child);
    *out = n->child->handle;
    return leave(*out ? CU_OK : CU_OUT_OF_MEMORY);
}

SIM_API cuGraphNodeGetType(void *node, int *out)
{
    ENTER(cuGraphNodeGetType);
    const sim_node *n = node_of(node);
    if (!n || !out) return leave(CU_INVALID_VALUE);
    *out = n->type;
    return leave(CU_OK);
}

static bool is_function_loaded(const sim_work *w)
{
    if (w->kind == W_KERNEL)
        return sim_handle_get(H_FUNCTION, w->function) || sim_handle_get(H_KERNEL, w->function);
    return (w->kind != W_RECORD && w->kind != W_WAIT) || sim_event_of(w->function);
}

static int get_kernel(void *handle, kernel_params *p, bool second)
{
    sim_node *n = node_of(handle);
    if (!n || !p || n->type != N_KERNEL) return CU_INVALID_VALUE;
    if (!is_function_loaded(n->work)) return CU_INVALID_HANDLE;
    const sim_launch *l = &n->work->u.launch;
    const sim_function *f = l->kernel->function;
    if (!n->pointers && !(n->pointers = calloc(f->param_count + 1, sizeof *n->pointers)))
        return CU_OUT_OF_MEMORY;
    uint32_t k = 0;
    for (const sim_symbol *y = f->params; y && k < f->param_count; y = y->list_next)
        n->pointers[k++] = l->params + y->address;
    p->function = n->work->function;
    memcpy(p->grid, l->grid, sizeof p->grid);
    memcpy(p->block, l->block, sizeof p->block);
    p->shared = l->dynamic_shared;
    p->params = n->pointers;
    p->extra = NULL;
    if (second) { p->kernel = NULL; p->context = l->context->handle; }
    return CU_OK;
}

/* Replaces the node's work by work of the same kind. */
static int replace(sim_node *n, int type, int code, sim_work *w)
{
    if (!code && (!n || n->type != type)) code = CU_INVALID_VALUE;
    if (code) { sim_work_free(w); return code; }
    w->programmatic = n->work && n->work->programmatic;
    sim_work_free(n->work);
    n->work = w;
    free(n->pointers);
    n->pointers = NULL;
    return CU_OK;
}

SIM_API cuGraphKernelNodeGetParams(void *node, kernel_params *p)
{ ENTER(cuGraphKernelNodeGetParams); return leave(get_kernel(node, p, false)); }
SIM_API cuGraphKernelNodeGetParams_v2(void *node, kernel_params *p)
{ ENTER(cuGraphKernelNodeGetParams_v2); return leave(get_kernel(node, p, true)); }

#define SET(name, type, parameter, make) \
    SIM_API name(void *node, parameter) \
    { \
        ENTER(name); \
        USABLE(); \
        (void)c; \
        sim_work *w = NULL; \
        int code = make; \
        return leave(replace(node_of(node), type, code, w)); \
    }
SET(cuGraphKernelNodeSetParams, N_KERNEL, const kernel_params *p, kernel_work(c, p, false, &w))
SET(cuGraphKernelNodeSetParams_v2, N_KERNEL, const kernel_params *p, kernel_work(c, p, true, &w))
SET(cuGraphMemcpyNodeSetParams, N_MEMCPY, const void *p, copy_work(p, &w))
SET(cuGraphMemsetNodeSetParams, N_MEMSET, const memset_params *p, set_work(p, &w))
SET(cuGraphHostNodeSetParams, N_HOST, const host_params *p, host_work(p, &w))
SET(cuGraphEventRecordNodeSetEvent, N_RECORD, void *e, event_work(W_RECORD, e, &w))
SET(cuGraphEventWaitNodeSetEvent, N_WAIT, void *e, event_work(W_WAIT, e, &w))

SIM_API cuGraphMemcpyNodeGetParams(void *node, void *p)
{
    ENTER(cuGraphMemcpyNodeGetParams);
    const sim_node *n = node_of(node);
    if (!n || !p || n->type != N_MEMCPY) return leave(CU_INVALID_VALUE);
    sim_copy_to_3d(&n->work->u.copy, p);
    return leave(CU_OK);
}

SIM_API cuGraphMemsetNodeGetParams(void *node, memset_params *p)
{
    ENTER(cuGraphMemsetNodeGetParams);
    const sim_node *n = node_of(node);
    if (!n || !p || n->type != N_MEMSET) return leave(CU_INVALID_VALUE);
    const sim_set *k = &n->work->u.set;
    *p = (memset_params){ k->to.address, k->to.pitch, k->value, k->bytes, k->width, k->height };
    return leave(CU_OK);
}

SIM_API cuGraphHostNodeGetParams(void *node, host_params *p)
{
    ENTER(cuGraphHostNodeGetParams);
    const sim_node *n = node_of(node);
    if (!n || !p || n->type != N_HOST) return leave(CU_INVALID_VALUE);
    *p = (host_params){ n->work->u.host.call, n->work->u.host.argument };
    return leave(CU_OK);
}

static int get_event(void *node, int type, void **out)
{
    const sim_node *n = node_of(node);
    if (!n || !out || n->type != type) return CU_INVALID_VALUE;
    *out = n->work->function;
    return CU_OK;
}

SIM_API cuGraphEventRecordNodeGetEvent(void *node, void **out)
{ ENTER(cuGraphEventRecordNodeGetEvent); return leave(get_event(node, N_RECORD, out)); }
SIM_API cuGraphEventWaitNodeGetEvent(void *node, void **out)
{ ENTER(cuGraphEventWaitNodeGetEvent); return leave(get_event(node, N_WAIT, out)); }

/* CUDA_MEM_ALLOC_NODE_PARAMS: CUmemPoolProps, access descriptors, size and address. */
typedef struct alloc_params {
    int type, handles, where, device;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
    const void *access;
    size_t access_count, size;
    uint64_t address;
} alloc_params;
_Static_assert(sizeof(alloc_params) == 120, "as the driver has it");

static int alloc_work(sim_context *c, alloc_params *p, sim_work **out)
{
    if (!p || p->type != 1 || p->where != 1) return CU_INVALID_VALUE;
    if (p->handles) return CU_NOT_SUPPORTED;
    if (p->device) return CU_INVALID_DEVICE;
    int code = sim_graph_alloc(c, p->size, out);
    if (!code) p->address = (*out)->u.release.address;
    return code;
}

SIM_API cuGraphAddMemAllocNode(void **out, void *graph, void *const *deps, size_t count, alloc_params *p)
{
    ENTER(cuGraphAddMemAllocNode);
    USABLE();
    sim_work *w = NULL;
    int code = alloc_work(c, p, &w);
    return leave(add_work_node(out, graph, deps, count, N_ALLOC, code, w, NULL));
}

ADD(cuGraphAddMemFreeNode, N_FREE, uint64_t address, sim_graph_free(address, &w))

SIM_API cuGraphMemAllocNodeGetParams(void *node, alloc_params *p)
{
    ENTER(cuGraphMemAllocNodeGetParams);
    const sim_node *n = node_of(node);
    if (!n || !p || n->type != N_ALLOC) return leave(CU_INVALID_VALUE);
    const sim_allocation *a = sim_memory_at(n->work->u.release.address);
    *p = (alloc_params){ .type = 1, .where = 1, .size = a ? (size_t)a->size : 0,
                         .address = n->work->u.release.address };
    return leave(CU_OK);
}

SIM_API cuGraphMemFreeNodeGetParams(void *node, uint64_t *out)
{
    ENTER(cuGraphMemFreeNodeGetParams);
    const sim_node *n = node_of(node);
    if (!n || !out || n->type != N_FREE) return leave(CU_INVALID_VALUE);
    *out = n->work->u.release.address;
    return leave(CU_OK);
}

/* CUgraphNodeParams: a type and its parameters. */
typedef struct node_params {
    int type, reserved[3];
    union {
        long long room[29];
        kernel_params kernel;
        struct { int flags, reserved; void *context; char copy[200]; } memcpy;
        memset_params memset;
        host_params host;
        struct { void *graph; int ownership; } child;
        void *event;
        alloc_params alloc;
        uint64_t free;
    } u;
} node_params;

static int any_work(sim_context *c, node_params *p, sim_work **out)
{
    if (!p) return CU_INVALID_VALUE;
    switch (p->type) {
    case N_KERNEL: return kernel_work(c, &p->u.kernel, true, out);
    case N_MEMCPY: return copy_work(p->u.memcpy.copy, out);
    case N_MEMSET: return set_work(&p->u.memset, out);
    case N_HOST:   return host_work(&p->u.host, out);
    case N_RECORD: return event_work(W_RECORD, p->u.event, out);
    case N_WAIT:   return event_work(W_WAIT, p->u.event, out);
    case N_EMPTY:  return CU_OK;
    case N_ALLOC:  return alloc_work(c, &p->u.alloc, out);
    case N_FREE:   return sim_graph_free(p->u.free, out);
    default:       return CU_NOT_SUPPORTED;
    }
}

static int add_any(sim_context *c, void **out, void *graph, void *const *deps, size_t count,
                   node_params *p)
{
    sim_work *w = NULL;
    if (p && p->type == N_GRAPH) {
        const sim_graph *from = graph_of(p->u.child.graph);
        sim_graph *copy = from && p->u.child.graph != graph ? graph_copy(from, false) : NULL;
        return add_work_node(out, graph, deps, count, N_GRAPH, copy ? CU_OK : CU_INVALID_VALUE, NULL, copy);
    }
    int code = any_work(c, p, &w);
    return add_work_node(out, graph, deps, count, code ? N_EMPTY : p->type, code, w, NULL);
}

SIM_API cuGraphAddNode(void **out, void *graph, void *const *deps, size_t count, node_params *p)
{ ENTER(cuGraphAddNode); USABLE(); return leave(add_any(c, out, graph, deps, count, p)); }
SIM_API cuGraphAddNode_v2(void **out, void *graph, void *const *deps, const void *edges, size_t count,
                          node_params *p)
{
    ENTER(cuGraphAddNode_v2);
    USABLE();
    if (!plain_edges(edges, count)) return leave(CU_NOT_SUPPORTED);
    return leave(add_any(c, out, graph, deps, count, p));
}

SIM_API cuGraphNodeSetParams(void *node, node_params *p)
{
    ENTER(cuGraphNodeSetParams);
    USABLE();
    sim_work *w = NULL;
    int code = p && (p->type == N_ALLOC || p->type == N_FREE) ? CU_NOT_SUPPORTED : any_work(c, p, &w);
    return leave(replace(node_of(node), code ? 0 : p->type, code, w));
}

/* --- querying graphs, edges ------------------------------------------------------------------- */

/* How driver calls return lists: without an array they count; with one they fill it and zero the rest. */
typedef struct list { void **out; size_t room, found; } list;

static void append_handle(list *l, void *handle)
{
    if (l->out && l->found < l->room) l->out[l->found] = handle;
    l->found++;
}

static int finish_list(list *l, size_t *count)
{
    for (size_t k = l->found; l->out && k < l->room; k++) l->out[k] = NULL;
    *count = l->out && l->found > l->room ? l->room : l->found;
    return CU_OK;
}

static int list_nodes(void *graph, void **out, size_t *count, bool roots)
{
    const sim_graph *g = graph_of(graph);
    if (!g || !count) return CU_INVALID_VALUE;
    list l = { out, *count, 0 };
    for (const sim_node *n = g->nodes; n; n = n->next) if (!roots || !n->dep_count) append_handle(&l, n->handle);
    return finish_list(&l, count);
}

SIM_API cuGraphGetNodes(void *graph, void **out, size_t *count)
{ ENTER(cuGraphGetNodes); return leave(list_nodes(graph, out, count, false)); }
SIM_API cuGraphGetRootNodes(void *graph, void **out, size_t *count)
{ ENTER(cuGraphGetRootNodes); return leave(list_nodes(graph, out, count, true)); }

/* Fills edge `at` of a list of CUgraphEdgeData with room for `count`: if it leads to a programmatic node, with the
 * port and type of launch_dependents. False: it has that data, and there is no list. */
static bool mark_edge(const sim_node *n, void *edges, size_t at, size_t count)
{
    if (!programmatic(n)) return true;
    if (!edges) return false;
    uint8_t *e = (uint8_t *)edges + 8 * at;
    if (at < count) e[0] = e[2] = 1;
    return true;
}

static int list_edges(void *graph, void **from, void **to, void *edges, size_t *count)
{
    const sim_graph *g = graph_of(graph);
    if (!g || !count || !from != !to) return CU_INVALID_VALUE;
    list a = { from, *count, 0 }, b = { to, *count, 0 };
    for (const sim_node *n = g->nodes; n; n = n->next)
        for (uint32_t k = 0; k < n->dep_count; k++) {
            append_handle(&a, n->deps[k]->handle);
            append_handle(&b, n->handle);
        }
    if (edges) memset(edges, 0, 8 * (a.found < *count ? a.found : *count));
    size_t at = 0;
    for (const sim_node *n = g->nodes; n; at += n->dep_count, n = n->next)
        if (!mark_edge(n, edges, at, *count)) return LOSSY_QUERY;
    (void)finish_list(&a, &(size_t){ *count });
    return finish_list(&b, count);
}

SIM_API cuGraphGetEdges(void *graph, void **from, void **to, size_t *count)
{ ENTER(cuGraphGetEdges); return leave(list_edges(graph, from, to, NULL, count)); }
SIM_API cuGraphGetEdges_v2(void *graph, void **from, void **to, void *edges, size_t *count)
{ ENTER(cuGraphGetEdges_v2); return leave(list_edges(graph, from, to, edges, count)); }

static int list_neighbours(void *node, void **out, void *edges, size_t *count, bool after)
{
    const sim_node *n = node_of(node);
    if (!n || !count) return CU_INVALID_VALUE;
    list l = { out, *count, 0 };
    for (uint32_t k = 0; !after && k < n->dep_count; k++) append_handle(&l, n->deps[k]->handle);
    for (const sim_node *m = n->graph->nodes; after && m; m = m->next)
        for (uint32_t k = 0; k < m->dep_count; k++) if (m->deps[k] == n) append_handle(&l, m->handle);
    if (edges && out) memset(edges, 0, 8 * (l.found < *count ? l.found : *count));
    bool fine = after || mark_edge(n, edges, 0, out ? *count : 0);
    size_t at = 0;
    for (const sim_node *m = n->graph->nodes; after && m; m = m->next)
        for (uint32_t k = 0; k < m->dep_count; k++)
            if (m->deps[k] == n) fine &= mark_edge(m, edges, at++, out ? *count : 0);
    if (!fine) return LOSSY_QUERY;
    return finish_list(&l, count);
}

SIM_API cuGraphNodeGetDependencies(void *node, void **out, size_t *count)
{ ENTER(cuGraphNodeGetDependencies); return leave(list_neighbours(node, out, NULL, count, false)); }
SIM_API cuGraphNodeGetDependencies_v2(void *node, void **out, void *edges, size_t *count)
{ ENTER(cuGraphNodeGetDependencies_v2); return leave(list_neighbours(node, out, edges, count, false)); }
SIM_API cuGraphNodeGetDependentNodes(void *node, void **out, size_t *count)
{ ENTER(cuGraphNodeGetDependentNodes); return leave(list_neighbours(node, out, NULL, count, true)); }
SIM_API cuGraphNodeGetDependentNodes_v2(void *node, void **out, void *edges, size_t *count)
{ ENTER(cuGraphNodeGetDependentNodes_v2); return leave(list_neighbours(node, out, edges, count, true)); }

static int edit_edges(void *graph, void *const *from, void *const *to, size_t count, bool add)
{
    sim_graph *g = graph_of(graph);
    if (!g || (count && (!from || !to))) return CU_INVALID_VALUE;
    for (size_t k = 0; k < count; k++) {
        sim_node *a = node_of(from[k]), *b = node_of(to[k]);
        uint32_t at = 0;
        if (!a || !b || a->graph != g || b->graph != g || a == b) return CU_INVALID_VALUE;
        while (at < b->dep_count && b->deps[at] != a) at++;
        if ((at < b->dep_count) == add) return CU_INVALID_VALUE;
        if (!add) { b->deps[at] = b->deps[--b->dep_count]; continue; }
        sim_node **grown = realloc(b->deps, (b->dep_count + 2) * sizeof *grown);
        if (!grown) return CU_OUT_OF_MEMORY;
        b->deps = grown;
        b->deps[b->dep_count++] = a;
        if (!acyclic(g)) { b->dep_count--; return CU_INVALID_VALUE; }
    }
    return CU_OK;
}

SIM_API cuGraphAddDependencies(void *g, void *const *from, void *const *to, size_t count)
{ ENTER(cuGraphAddDependencies); return leave(edit_edges(g, from, to, count, true)); }
SIM_API cuGraphAddDependencies_v2(void *g, void *const *from, void *const *to, const void *edges,
                                  size_t count)
{
    ENTER(cuGraphAddDependencies_v2);
    if (!plain_edges(edges, count)) return leave(CU_NOT_SUPPORTED);
    return leave(edit_edges(g, from, to, count, true));
}
SIM_API cuGraphRemoveDependencies(void *g, void *const *from, void *const *to, size_t count)
{ ENTER(cuGraphRemoveDependencies); return leave(edit_edges(g, from, to, count, false)); }
SIM_API cuGraphRemoveDependencies_v2(void *g, void *const *from, void *const *to, const void *edges,
                                     size_t count)
{
    ENTER(cuGraphRemoveDependencies_v2);
    (void)edges;
    return leave(edit_edges(g, from, to, count, false));
}

SIM_API cuGraphDestroyNode(void *handle)
{
    ENTER(cuGraphDestroyNode);
    sim_node *n = node_of(handle);
    if (!n) return leave(CU_INVALID_HANDLE);
    sim_graph *g = n->graph;
    for (sim_node *m = g->nodes; m; m = m->next)
        for (uint32_t k = 0; k < m->dep_count;) {
            if (m->deps[k] == n) m->deps[k] = m->deps[--m->dep_count];
            else k++;
        }
    for (sim_node **at = &g->nodes; *at; at = &(*at)->next)
        if (*at == n) {
            *at = n->next;
            if (!*at) g->tail = at;
            break;
        }
    g->count--;
    free_node(n);
    return leave(CU_OK);
}

/* --- instantiating, updating, launching ------------------------------------------------------- */

static int instantiate(sim_context *c, void **out, void *graph, uint64_t flags)
{
    const sim_graph *g = graph_of(graph);
    if (!g) return CU_INVALID_HANDLE;
    if (!out || flags & ~UINT64_C(15)) return CU_INVALID_VALUE;
    if (flags & 4) return CU_NOT_SUPPORTED;                   /* launch from the device */
    sim_exec *x = calloc(1, sizeof *x);
    if (!x) return CU_OUT_OF_MEMORY;
    x->context = c;
    x->flags = flags;
    x->graph = graph_copy(g, false);
    x->order = x->graph ? topological_order(x->graph) : NULL;
    x->handle = x->order ? sim_handle_new(H_EXEC, x) : NULL;
    if (!x->handle) {
        int code = x->graph && !x->order ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
        free_exec(x);
        return code;
    }
    x->next = c->execs;
    c->execs = x;
    *out = x->handle;
    return CU_OK;
}

SIM_API cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags)
{ ENTER(cuGraphInstantiateWithFlags); USABLE(); return leave(instantiate(c, out, graph, flags)); }

SIM_API cuGraphInstantiate_v2(void **out, void *graph, void **error_node, char *log, size_t log_size)
{
    ENTER(cuGraphInstantiate_v2);
    USABLE();
    if (error_node) *error_node = NULL;
    if (log && log_size) *log = 0;
    return leave(instantiate(c, out, graph, 0));
}

typedef struct instantiate_params {
    uint64_t flags;
    void *stream, *error_node;
    int result;
} instantiate_params;

SIM_API cuGraphInstantiateWithParams(void **out, void *graph, instantiate_params *p)
{
    ENTER(cuGraphInstantiateWithParams);
    USABLE();
    if (!p) return leave(CU_INVALID_VALUE);
    int code = instantiate(c, out, graph, p->flags);
    p->error_node = NULL;
    p->result = code != 0;
    return leave(code);
}

SIM_API cuGraphExecGetFlags(void *exec, uint64_t *out)
{
    ENTER(cuGraphExecGetFlags);
    const sim_exec *x = exec_of(exec);
    if (!x || !out) return leave(CU_INVALID_VALUE);
    *out = x->flags;
    return leave(CU_OK);
}

SIM_API cuGraphExecDestroy(void *exec)
{
    ENTER(cuGraphExecDestroy);
    sim_exec *x = exec_of(exec);
    if (!x) return leave(CU_INVALID_HANDLE);
    free_exec(x);                                             /* launches have their own copies */
    return leave_and_destroy(CU_OK);
}

static sim_node *exec_node(const void *exec, const void *node)
{
    const sim_exec *x = exec_of(exec);
    const sim_node *n = x ? node_of(node) : NULL;
    return n ? node_copied_from(x->graph, n) : NULL;
}

#define SET_EXEC(name, type, parameter, make) \
    SIM_API name(void *exec, void *node, parameter) \
    { \
        ENTER(name); \
        USABLE(); \
        sim_work *w = NULL; \
        if (!exec_of(exec)) return leave(CU_INVALID_HANDLE); \
        (void)c; \
        int code = make; \
        return leave(replace(exec_node(exec, node), type, code, w)); \
    }
#define WITH_CONTEXT(call) (context && sim_context_of(context) != c ? CU_INVALID_CONTEXT : (call))
SET_EXEC(cuGraphExecKernelNodeSetParams, N_KERNEL, const kernel_params *p, kernel_work(c, p, false, &w))
SET_EXEC(cuGraphExecKernelNodeSetParams_v2, N_KERNEL, const kernel_params *p, kernel_work(c, p, true, &w))
#define COPY_PARAMETERS const void *p, void *context
#define SET_PARAMETERS const memset_params *p, void *context
SET_EXEC(cuGraphExecMemcpyNodeSetParams, N_MEMCPY, COPY_PARAMETERS, WITH_CONTEXT(copy_work(p, &w)))
SET_EXEC(cuGraphExecMemsetNodeSetParams, N_MEMSET, SET_PARAMETERS, WITH_CONTEXT(set_work(p, &w)))
SET_EXEC(cuGraphExecHostNodeSetParams, N_HOST, const host_params *p, host_work(p, &w))
SET_EXEC(cuGraphExecEventRecordNodeSetEvent, N_RECORD, void *e, event_work(W_RECORD, e, &w))
SET_EXEC(cuGraphExecEventWaitNodeSetEvent, N_WAIT, void *e, event_work(W_WAIT, e, &w))

SIM_API cuGraphExecNodeSetParams(void *exec, void *node, node_params *p)
{
    ENTER(cuGraphExecNodeSetParams);
    USABLE();
    sim_work *w = NULL;
    if (!exec_of(exec)) return leave(CU_INVALID_HANDLE);
    int code = p && (p->type == N_ALLOC || p->type == N_FREE) ? CU_NOT_SUPPORTED : any_work(c, p, &w);
    return leave(replace(exec_node(exec, node), code ? 0 : p->type, code, w));
}

static int compare(const sim_graph *to, const sim_graph *from, const sim_node **at);

SIM_API cuGraphExecChildGraphNodeSetParams(void *exec, void *node, void *graph)
{
    ENTER(cuGraphExecChildGraphNodeSetParams);
    sim_node *n = exec_node(exec, node);
    const sim_graph *g = graph_of(graph);
    const sim_node *at;
    if (!exec_of(exec) || !g) return leave(CU_INVALID_HANDLE);
    if (!n || !n->child) return leave(CU_INVALID_VALUE);
    if (compare(n->child, g, &at)) return leave(910);
    sim_graph *copy = graph_copy(g, false);
    if (!copy) return leave(CU_OUT_OF_MEMORY);
    free_graph(n->child);
    n->child = copy;
    return leave(CU_OK);
}

SIM_API cuGraphNodeSetEnabled(void *exec, void *node, unsigned enabled)
{
    ENTER(cuGraphNodeSetEnabled);
    sim_node *n = exec_node(exec, node);
    if (!n || (n->type != N_KERNEL && n->type != N_MEMSET && n->type != N_MEMCPY))
        return leave(CU_INVALID_VALUE);
    n->disabled = !enabled;
    return leave(CU_OK);
}

SIM_API cuGraphNodeGetEnabled(void *exec, void *node, unsigned *out)
{
    ENTER(cuGraphNodeGetEnabled);
    const sim_node *n = exec_node(exec, node);
    if (!n || !out) return leave(CU_INVALID_VALUE);
    *out = !n->disabled;
    return leave(CU_OK);
}

/* Whether `to` can be updated from `from`: same shape and node types, in order of addition. 0 or the reason. */
static int compare(const sim_graph *to, const sim_graph *from, const sim_node **at)
{
    const sim_node *a = to->nodes, *b = from->nodes;
    *at = NULL;
    if (to->count != from->count) return 2;
    for (; a && b; a = a->next, b = b->next) {
        *at = b;
        if (a->type != b->type) return 3;
        if (a->dep_count != b->dep_count) return 2;
        for (uint32_t k = 0; k < a->dep_count; k++) {         /* by position in their graphs */
            const sim_node *x = to->nodes, *y = from->nodes;
            while (x != a->deps[k] && y) { x = x->next; y = y->next; }
            if (y != b->deps[k]) return 2;
        }
        if (a->child) {
            const sim_node *inner;
            int result = compare(a->child, b->child, &inner);
            if (result) return result;
        }
    }
    *at = NULL;
    return 0;
}

static bool take_over_work(sim_graph *to, const sim_graph *from)
{
    sim_node *a = to->nodes;
    for (const sim_node *b = from->nodes; a && b; a = a->next, b = b->next) {
        sim_work *w = b->work ? sim_work_copy(b->work) : NULL;
        if (b->work && !w) return false;
        sim_work_free(a->work);
        a->work = w;
        a->origin = b->handle;
        if (a->child && !take_over_work(a->child, b->child)) return false;
    }
    return true;
}

static int update(void *exec, void *graph, int *result, void **error_node)
{
    sim_exec *x = exec_of(exec);
    const sim_graph *g = graph_of(graph);
    const sim_node *at;
    if (!x || !g) return CU_INVALID_HANDLE;
    *result = compare(x->graph, g, &at);
    *error_node = *result && at ? at->handle : NULL;
    if (*result) return 910;
    return take_over_work(x->graph, g) ? CU_OK : CU_OUT_OF_MEMORY;
}

typedef struct update_info { int result; void *node, *from; } update_info;

SIM_API cuGraphExecUpdate_v2(void *exec, void *graph, update_info *info)
{
    ENTER(cuGraphExecUpdate_v2);
    update_info unused;
    if (!info) info = &unused;
    info->from = NULL;
    return leave(update(exec, graph, &info->result, &info->node));
}

SIM_API cuGraphExecUpdate(void *exec, void *graph, void **error_node, int *result)
{
    ENTER(cuGraphExecUpdate);
    void *node;
    int code, kind;
    code = update(exec, graph, result ? result : &kind, error_node ? error_node : &node);
    return leave(code);
}

SIM_API cuGraphUpload(void *exec, void *stream)
{
    ENTER(cuGraphUpload);
    USABLE();
    return leave(!exec_of(exec) || !sim_stream_of(c, stream) ? CU_INVALID_HANDLE : CU_OK);
}

static bool are_functions_loaded(const sim_graph *g)
{
    for (const sim_node *n = g->nodes; n; n = n->next)
        if ((n->work && !n->disabled && !is_function_loaded(n->work)) || (n->child && !are_functions_loaded(n->child)))
            return false;
    return true;
}

static int queue_node(sim_stream *s, sim_node *n);

static int queue_graph(sim_stream *s, sim_graph *g, sim_node *const *order)
{
    sim_node **own = order ? NULL : topological_order(g);
    int code = order || own ? CU_OK : CU_OUT_OF_MEMORY;
    for (uint32_t k = 0; k < g->count && !code; k++) code = queue_node(s, (order ? order : own)[k]);
    free(own);
    return code;
}

static int queue_node(sim_stream *s, sim_node *n)
{
    if (n->disabled) return CU_OK;
    if (n->child) return queue_graph(s, n->child, NULL);
    if (!n->work) return CU_OK;
    sim_event *e =
        n->work->kind == W_RECORD || n->work->kind == W_WAIT ? sim_event_of(n->work->function) : NULL;
    if (n->work->kind == W_WAIT && e && !e->recorded) return CU_OK;
    sim_work *w = sim_work_copy(n->work);
    if (!w) return CU_OUT_OF_MEMORY;
    if (e) w->u.event.event = e;
    w->programmatic = programmatic(n) && !n->deps[0]->disabled;
    if (w->programmatic) w->after = n->deps[0]->queued;
    n->queued = s->queued + 1;
    return sim_enqueue(s, w);
}

/* Memory that the graph allocates and does not free belongs to the caller from the launch on. If it is still
 * allocated, the launch fails, or frees it first (AUTO_FREE_ON_LAUNCH). */
enum { AUTO_FREE = 1 };

static int claim_graph_memory(sim_stream *s, const sim_graph *g, uint64_t flags)
{
    int code = CU_OK;
    for (const sim_node *n = g->nodes; n && !code; n = n->next) {
        if (n->child) code = claim_graph_memory(s, n->child, flags);
        if (n->type != N_ALLOC) continue;
        sim_allocation *a = sim_memory_at(n->work->u.release.address);
        if (!a || !a->of_graph) return CU_INVALID_VALUE;
        if (a->graph_live && !(flags & AUTO_FREE)) return CU_INVALID_VALUE;
        sim_work *w = a->graph_live ? sim_work_new(W_FREE, 0) : NULL;
        if (w) {
            w->u.release.address = a->base;
            code = sim_enqueue(s, w);
        }
        a->graph_live = true;
        a->freed_later = false;
    }
    for (const sim_node *n = g->nodes; n && !code; n = n->next) {
        sim_allocation *a = n->type == N_FREE ? sim_memory_at(n->work->u.release.address) : NULL;
        if (a) a->graph_live = false;
    }
    return code;
}

SIM_API cuGraphLaunch(void *exec, void *stream)
{
    ENTER(cuGraphLaunch);
    USABLE();
    sim_exec *x = exec_of(exec);
    sim_stream *s = x ? sim_stream_of(c, stream) : NULL;
    if (!s || x->context != c) return leave(CU_INVALID_HANDLE);
    if (!are_functions_loaded(x->graph)) return leave(CU_INVALID_HANDLE);
    if (s->legacy && sim_legacy_in_capture(c)) return leave(906);
    if (!s->capture) {
        int code = claim_graph_memory(s, x->graph, x->flags);
        return leave(code ? code : queue_graph(s, x->graph, x->order));
    }
    if (!s->capture->active) return leave(901);
    sim_graph *copy = graph_copy(x->graph, false);
    sim_node *n = copy ? add_node(s->capture->graph, N_GRAPH, NULL, s->capture_deps, s->capture_dep_count) : NULL;
    if (!n) { free_graph(copy); return leave(CU_OUT_OF_MEMORY); }
    n->child = copy;
    return leave(set_capture_deps(s, &n, 1) ? CU_OK : CU_OUT_OF_MEMORY);
}

static sim_user_object *object_of(const void *handle) { return sim_handle_get(H_OBJECT, handle); }

SIM_API cuUserObjectCreate(void **out, void *argument, void (*destroy)(void *), unsigned references,
                           unsigned flags)
{
    enum { NO_DESTRUCTOR_SYNC = 1 };
    ENTER(cuUserObjectCreate);
    if (!out || !destroy || !references || references > INT32_MAX || flags != NO_DESTRUCTOR_SYNC)
        return leave(CU_INVALID_VALUE);
    sim_user_object *o = calloc(1, sizeof *o);
    if (!o || !(o->handle = sim_handle_new(H_OBJECT, o))) { free(o); return leave(CU_OUT_OF_MEMORY); }
    o->destroy = destroy;
    o->argument = argument;
    o->references = references;
    *out = o->handle;
    return leave(CU_OK);
}

SIM_API cuUserObjectRetain(void *object, unsigned count)
{
    ENTER(cuUserObjectRetain);
    sim_user_object *o = object_of(object);
    if (!o || !count || count > INT32_MAX) return leave(CU_INVALID_VALUE);
    o->references += count;
    return leave(CU_OK);
}

SIM_API cuUserObjectRelease(void *object, unsigned count)
{
    ENTER(cuUserObjectRelease);
    sim_user_object *o = object_of(object);
    if (!o || !count || count > o->references) return leave(CU_INVALID_VALUE);
    release_object(o, count);
    return leave_and_destroy(CU_OK);
}

SIM_API cuGraphRetainUserObject(void *graph, void *object, unsigned count, unsigned flags)
{
    enum { MOVE = 1 };
    ENTER(cuGraphRetainUserObject);
    sim_graph *g = graph_of(graph);
    sim_user_object *o = object_of(object);
    if (!g || !o || !count || count > INT32_MAX || flags & ~1u) return leave(CU_INVALID_VALUE);
    if (flags & MOVE && count > o->references) return leave(CU_INVALID_VALUE);
    if (!retain_object(g, o, count)) return leave(CU_OUT_OF_MEMORY);
    if (!(flags & MOVE)) o->references += count;
    return leave(CU_OK);
}

SIM_API cuGraphReleaseUserObject(void *graph, void *object, unsigned count)
{
    ENTER(cuGraphReleaseUserObject);
    sim_graph *g = graph_of(graph);
    sim_user_object *o = object_of(object);
    sim_held **at = g ? &g->held : NULL;
    while (at && *at && (*at)->object != o) at = &(*at)->next;
    if (!o || !at || !*at || !count || count > (*at)->references) return leave(CU_INVALID_VALUE);
    sim_held *h = *at;
    h->references -= count;
    if (!h->references) { *at = h->next; free(h); }
    release_object(o, count);
    return leave_and_destroy(CU_OK);
}

/* --- the end of a context --------------------------------------------------------------------- */

void sim_graphs_report(sim_context *c, sim_leak_fn tell)
{
    for (const sim_graph *g = c->graphs; g; g = g->next) tell("a graph", g->handle);
    for (const sim_exec *x = c->execs; x; x = x->next) tell("a graph exec", x->handle);
}

void sim_graphs_free(sim_context *c)
{
    while (c->captures) end(c->captures);
    while (c->execs) free_exec(c->execs);
    while (c->graphs) free_graph(c->graphs);
}

/* --- attributes of kernel nodes, and the DOT file --------------------------------------------- */

enum { ATTRIBUTE_POLICY = 1, ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4, ATTRIBUTE_PRIORITY = 8 };

static sim_node *kernel_node(const void *handle)
{
    sim_node *n = node_of(handle);
    return n && n->type == N_KERNEL ? n : NULL;
}

SIM_API cuGraphKernelNodeSetAttribute(void *node, int attribute, const void *value)
{
    ENTER(cuGraphKernelNodeSetAttribute);
    sim_node *n = kernel_node(node);
    int v;
    if (!n || !value) return leave(CU_INVALID_VALUE);
    sim_launch *l = &n->work->u.launch;
    memcpy(&v, value, sizeof v);
    switch (attribute) {
    case ATTRIBUTE_POLICY: memcpy(n->policy, value, sizeof n->policy); return leave(CU_OK);
    case ATTRIBUTE_PRIORITY: n->priority = v; return leave(CU_OK);
    case ATTRIBUTE_COOPERATIVE: return leave((v != 0) == l->cooperative ? CU_OK : CU_INVALID_VALUE);
    case ATTRIBUTE_CLUSTER:
        return leave(memcmp(value, l->cluster, sizeof l->cluster) ? CU_INVALID_VALUE : CU_OK);
    default: return leave(CU_INVALID_VALUE);
    }
}

SIM_API cuGraphKernelNodeGetAttribute(void *node, int attribute, void *value)
{
    ENTER(cuGraphKernelNodeGetAttribute);
    const sim_node *n = kernel_node(node);
    if (!n || !value) return leave(CU_INVALID_VALUE);
    const sim_launch *l = &n->work->u.launch;
    int cooperative = l->cooperative;
    switch (attribute) {
    case ATTRIBUTE_POLICY: memcpy(value, n->policy, sizeof n->policy); return leave(CU_OK);
    case ATTRIBUTE_PRIORITY: memcpy(value, &n->priority, sizeof n->priority); return leave(CU_OK);
    case ATTRIBUTE_COOPERATIVE: memcpy(value, &cooperative, sizeof cooperative); return leave(CU_OK);
    case ATTRIBUTE_CLUSTER: memcpy(value, l->cluster, sizeof l->cluster); return leave(CU_OK);
    default: return leave(CU_INVALID_VALUE);
    }
}

SIM_API cuGraphKernelNodeCopyAttributes(void *to, void *from)
{
    ENTER(cuGraphKernelNodeCopyAttributes);
    sim_node *d = kernel_node(to);
    const sim_node *s = kernel_node(from);
    if (!d || !s) return leave(CU_INVALID_VALUE);
    memcpy(d->policy, s->policy, sizeof d->policy);
    d->priority = s->priority;
    return leave(CU_OK);
}

static void label_of(const sim_node *n, char *out, size_t cap)
{
    static const char *const types[] = { "kernel", "memcpy", "memset", "host",
                                         "graph",  "empty",  "wait",   "record",
                                         "",       "",       "alloc",  "free" };
    if (n->type == N_KERNEL && is_function_loaded(n->work))
        snprintf(out, cap, "kernel %.120s", n->work->u.launch.kernel->function->name);
    else snprintf(out, cap, "%s", types[n->type]);
}

SIM_API cuGraphDebugDotPrint(void *graph, const char *path, unsigned flags)
{
    ENTER(cuGraphDebugDotPrint);
    const sim_graph *g = graph_of(graph);
    (void)flags;
    if (!g) return leave(CU_INVALID_HANDLE);
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return leave(CU_INVALID_VALUE);
    fprintf(f, "digraph graph_1 {\n");
    for (const sim_node *n = g->nodes; n; n = n->next) {
        char label[160];
        label_of(n, label, sizeof label);
        fprintf(f, "  n%p [label=\"%s\"];\n", (const void *)n->handle, label);
    }
    for (const sim_node *n = g->nodes; n; n = n->next)
        for (uint32_t k = 0; k < n->dep_count; k++)
            fprintf(f, "  n%p -> n%p;\n", (const void *)n->deps[k]->handle, (const void *)n->handle);
    fprintf(f, "}\n");
    return leave(fclose(f) ? CU_INVALID_VALUE : CU_OK);
}
