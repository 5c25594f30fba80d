/* library.c - the functions that CUDA gives to every program: vprintf, malloc, free, __assertfail.
 *
 * Printed text is kept by block. When a launch ends it goes, in the order of the blocks, to a FIFO of
 * limited size, which drops its oldest text when it is full, and from there to stdout when the host
 * synchronises. Objects of the device heap are allocations like those of the host, at addresses
 * that are never reused, so that bounds are exact and a use after free is seen. A new function is
 * a line in `functions`. */
#include "sim.h"
#include <stdarg.h>

static uint64_t argument(const sim_warp *w, const sim_ins *i, uint32_t n, uint32_t lane)
{
    return sim_slot64(w, w->kernel->lists[i->list + n])[lane];
}

/* --- device memory as text -------------------------------------------------------------------- */

/* The string at this address; NULL after a fault. The caller frees it. */
static char *device_string(sim_warp *w, const sim_ins *i, uint32_t lane, uint64_t address)
{
    enum { LONGEST = 1 << 20 };
    size_t length = 0, room = 64;
    char *text = malloc(room);
    while (text) {
        const uint8_t *p = sim_reach(w, i, lane, address + length, SP_GENERIC, 1, SIM_READ);
        if (!p) {
            free(text);
            return NULL;
        }
        if (length + 1 >= room) {
            char *grown = realloc(text, room *= 2);
            if (!grown) break;
            text = grown;
        }
        text[length] = (char)*p;
        if (!*p || length == LONGEST) {
            text[length] = 0;
            return text;
        }
        length++;
    }
    free(text);
    sim_warp_fault(w, 2);
    return NULL;
}

/* --- vprintf ---------------------------------------------------------------------------------- */

static bool append_output(sim_block *b, const char *text, size_t n)
{
    if (b->printed_length + n + 1 > b->printed_capacity) {
        size_t wanted = (b->printed_length + n + 1) * 2;
        char *grown = realloc(b->printed, wanted);
        if (!grown) return false;
        b->printed = grown;
        b->printed_capacity = wanted;
    }
    memcpy(b->printed + b->printed_length, text, n);
    b->printed_length += n;
    return true;
}

typedef struct arguments {
    sim_warp *w;
    const sim_ins *i;
    uint32_t lane;
    uint64_t at;
} arguments;

static bool next_argument(arguments *a, uint32_t bytes, uint64_t *v)
{
    a->at = (a->at + bytes - 1) / bytes * bytes;
    const uint8_t *p = sim_reach(a->w, a->i, a->lane, a->at, SP_GENERIC, bytes, SIM_READ);
    if (!p) return false;
    *v = 0;
    memcpy(v, p, bytes);
    a->at += bytes;
    return true;
}

/* A printf conversion, from % to its letter, without length modifiers. */
typedef struct conversion {
    char flags[8];
    int width, precision;
    bool has_width, has_precision;
    uint32_t bytes;
    char letter;
} conversion;

static const char *read_conversion(arguments *a, const char *p, conversion *c)
{
    uint64_t v;
    size_t n = 0;
    memset(c, 0, sizeof *c);
    for (; *p && strchr("-+ #0", *p); p++)
        if (n < 6 && !memchr(c->flags, *p, n)) c->flags[n++] = *p;
    for (int part = 0; part < 2; part++) {
        bool has = false;
        int number = 0;
        if (part) {
            if (*p != '.') break;
            p++;
            has = true;
        }
        if (*p == '*') {
            if (!next_argument(a, 4, &v)) return NULL;
            number = (int32_t)v;
            has = true;
            p++;
        } else
            for (; *p >= '0' && *p <= '9'; p++) {
                has = true;
                if (number < 100000) number = number * 10 + *p - '0';
            }
        if (number > 100000) number = 100000;
        if (number < -100000) number = -100000;
        if (part) {
            c->has_precision = has && number >= 0;
            c->precision = number;
        } else {
            c->has_width = has;
            c->width = number;
        }
    }
    c->bytes = 4;
    for (; *p && strchr("hlLqjzt", *p); p++)
        if (*p != 'h') c->bytes = 8;
    c->letter = *p;
    return *p ? p + 1 : p;
}

static bool put_conversion(arguments *a, const conversion *c, const char *from, const char *to)
{
    char format[40], small[512], *text = small, *string = NULL;
    sim_block *b = a->w->block;
    uint64_t v = 0;
    double d = 0;
    if (c->letter == '%') return append_output(b, "%", 1);
    bool real = c->letter && strchr("aAeEfFgG", c->letter), whole = c->letter && strchr("diuoxX", c->letter);
    if (!real && !whole && !(c->letter && strchr("cspn", c->letter)))
        return append_output(b, from, (size_t)(to - from));
    if (!next_argument(a,
                       real || c->letter == 's' || c->letter == 'p' || c->letter == 'n' ? 8
                       : whole                                                          ? c->bytes
                                                                               : 4,
                       &v))
        return false;
    if (c->letter == 'n') return true; /* %n stores nothing, as on a device */
    snprintf(format, sizeof format, "%%%s%s%s%s%c", c->flags, c->has_width ? "*" : "",
             c->has_precision ? ".*" : "", whole ? "ll" : "", c->letter);
    if (c->letter == 's' && !(string = v ? device_string(a->w, a->i, a->lane, v) : strdup("(null)")))
        return false;
    if (whole && c->bytes == 4)
        v = c->letter == 'd' || c->letter == 'i' ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
    memcpy(&d, &v, 8);
    size_t room = sizeof small;
    int n = 0;
#define FORMAT(value)                                                                                        \
    (c->has_width       ? c->has_precision ? snprintf(text, room, format, c->width, c->precision, value)     \
                                           : snprintf(text, room, format, c->width, value)                   \
           : c->has_precision ? snprintf(text, room, format, c->precision, value)                            \
                        : snprintf(text, room, format, value))
    for (int round = 0; round < 2; round++) {
        n = real               ? FORMAT(d)
            : c->letter == 's' ? FORMAT(string)
            : c->letter == 'p' ? FORMAT((void *)(uintptr_t)v)
            : c->letter == 'c' ? FORMAT((int)v)
                               : FORMAT((long long)v);
        if (n < 0 || (size_t)n < room) break;
        room = (size_t)n + 1;
        if (!(text = malloc(room))) {
            free(string);
            return false;
        }
    }
#undef FORMAT
    bool good = n >= 0 && append_output(b, text, (size_t)n);
    if (text != small) free(text);
    free(string);
    return good;
}

static void device_printf(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    SIM_EACH_LANE(l, mask)
    {
        arguments a = {w, i, l, argument(w, i, 1, l)};
        uint64_t address = argument(w, i, 0, l);
        int64_t count = address ? 0 : -1;
        char *format = address ? device_string(w, i, l, address) : NULL;
        for (const char *p = format; p && *p;) {
            const char *e = p + strcspn(p, "%"), *from = e;
            conversion c;
            bool good = append_output(w->block, p, (size_t)(e - p));
            p = e;
            if (good && *e) {
                p = read_conversion(&a, e + 1, &c);
                good = p && put_conversion(&a, &c, from, p);
                count += c.letter != '%';
            }
            if (good) continue;
            if (!w->fault) sim_warp_fault(w, 2);
            break;
        }
        free(format);
        if (w->fault) return;
        sim_slot64(w, i->d)[l] = (uint64_t)count;
    }
}

/* --- from blocks to the FIFO and stdout ------------------------------------------------------- */

typedef struct sim_output {
    struct sim_output *next;
    uint64_t block;
    size_t length;
    char *text;
} sim_output;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *fifo;
static size_t fifo_length;

void sim_output_block(sim_block *b)
{
    const uint32_t *g = b->launch->grid;
    if (!b->printed_length) return;
    sim_output *o = malloc(sizeof *o);
    if (o) {
        *o = (sim_output){NULL, b->ctaid[0] + (uint64_t)g[0] * (b->ctaid[1] + (uint64_t)g[1] * b->ctaid[2]),
                          b->printed_length, b->printed};
        pthread_mutex_lock(&lock);
        sim_output **at = &b->launch->output; /* sorted, later blocks first: they arrive in about this order */
        while (*at && (*at)->block > o->block) at = &(*at)->next;
        o->next = *at;
        *at = o;
        pthread_mutex_unlock(&lock);
        b->printed = NULL;
        b->printed_capacity = 0;
    }
    b->printed_length = 0;
}

static void append_to_fifo(const char *text, size_t n)
{
    size_t limit = (size_t)sim_option.fifo;
    if (n > limit) {
        text += n - limit;
        n = limit;
    }
    if (fifo_length + n > limit) {
        size_t lost = fifo_length + n - limit;
        memmove(fifo, fifo + lost, fifo_length - lost);
        fifo_length -= lost;
    }
    char *grown = realloc(fifo, fifo_length + n + 1);
    if (!grown) return;
    fifo = grown;
    memcpy(fifo + fifo_length, text, n);
    fifo_length += n;
}

void sim_output_launch(sim_launch *l)
{
    size_t total = 0;
    sim_output *first = NULL;
    pthread_mutex_lock(&lock);
    while (l->output) {
        sim_output *o = l->output;
        l->output = o->next;
        o->next = first;
        first = o;
    }
    while (first) {
        sim_output *o = first;
        first = o->next;
        total += o->length;
        append_to_fifo(o->text, o->length);
        free(o->text);
        free(o);
    }
    bool lost = total > (size_t)sim_option.fifo;
    pthread_mutex_unlock(&lock);
    if (lost)
        sim_report_host("printf-overflow",
                        "kernel '%s' printed %zu bytes, the FIFO holds %d: the first are lost",
                        l->kernel->function->name, total, sim_option.fifo);
}

void sim_output_flush(bool to_stdout)
{
    pthread_mutex_lock(&lock);
    if (fifo_length && to_stdout) {
        fwrite(fifo, 1, fifo_length, stdout);
        fflush(stdout);
    }
    free(fifo);
    fifo = NULL;
    fifo_length = 0;
    pthread_mutex_unlock(&lock);
}

/* --- the device heap -------------------------------------------------------------------------- */

/* a.size is 0 once the object is freed, so that a cached pointer to it fails the bounds check. */
typedef struct object {
    sim_allocation a;
    uint64_t size;
} object;

static pthread_rwlock_t heap_lock = PTHREAD_RWLOCK_INITIALIZER;
static object **objects;
static uint32_t object_count, object_capacity;
static uint64_t heap_used, heap_next = SIM_HEAP_BASE;

static object *object_near(uint64_t address) /* the last with base <= address */
{
    uint32_t lo = 0, n = object_count;
    while (lo < n) {
        uint32_t mid = (lo + n) / 2;
        if (objects[mid]->a.base <= address)
            lo = mid + 1;
        else
            n = mid;
    }
    return lo ? objects[lo - 1] : NULL;
}

sim_allocation *sim_heap_find(uint64_t address)
{
    pthread_rwlock_rdlock(&heap_lock);
    object *o = object_near(address);
    bool inside = o && address - o->a.base < o->a.size;
    pthread_rwlock_unlock(&heap_lock);
    return inside ? &o->a : NULL;
}

bool sim_heap_describe(uint64_t address, char *out, size_t cap)
{
    if (address - SIM_HEAP_BASE >= SIM_HEAP_SPAN) return false;
    pthread_rwlock_rdlock(&heap_lock);
    const object *o = object_near(address);
    if (!o)
        snprintf(out, cap, "before the first object of the device heap");
    else {
        uint64_t off = address - o->a.base;
        const char *state = o->a.freed ? "freed " : "";
        if (off < o->size)
            snprintf(out, cap, "byte %llu of the %s%llu-byte object at 0x%llx of the device heap",
                     (unsigned long long)off, state, (unsigned long long)o->size,
                     (unsigned long long)o->a.base);
        else
            snprintf(out, cap, "%llu bytes past the end of the %llu-byte object at 0x%llx of the device heap",
                     (unsigned long long)(off - o->size), (unsigned long long)o->size,
                     (unsigned long long)o->a.base);
    }
    pthread_rwlock_unlock(&heap_lock);
    return true;
}

static uint64_t heap_alloc(struct sim_context *c, uint64_t size)
{
    enum { GAP = 256 };
    uint64_t base = 0;
    object *o = NULL;
    pthread_rwlock_wrlock(&heap_lock);
    if (size > (uint64_t)sim_option.heap || heap_used > (uint64_t)sim_option.heap - size
        || heap_next - SIM_HEAP_BASE > SIM_HEAP_SPAN - size - 2 * GAP)
        goto done;
    if (object_count == object_capacity) {
        uint32_t wanted = object_capacity ? object_capacity * 2 : 256;
        object **grown = realloc(objects, wanted * sizeof *grown);
        if (!grown) goto done;
        objects = grown;
        object_capacity = wanted;
    }
    if (!(o = calloc(1, sizeof *o))) goto done;
    o->a.host = malloc(size ? (size_t)size : 1u);
    o->a.shadow = calloc((size_t)size / 8 + 16, 1);
    if (!o->a.host || !o->a.shadow) {
        free(o->a.host);
        free(o->a.shadow);
        free(o);
        goto done;
    }
    memset(o->a.host, 0xcd, (size_t)size);
    o->size = o->a.size = size;
    o->a.kind = MEM_DEVICE;
    o->a.context = c;
    o->a.base = base = heap_next;
    heap_next = (heap_next + size + GAP + 15) / 16 * 16;
    heap_used += size;
    objects[object_count++] = o;
done:
    pthread_rwlock_unlock(&heap_lock);
    return base;
}

/* Marks an object as freed. Its data stays until the context ends: another thread may be reading it, wrongly. */
static const char *heap_free(uint64_t address, const char **kind)
{
    const char *problem = NULL;
    pthread_rwlock_wrlock(&heap_lock);
    object *o = address - SIM_HEAP_BASE < SIM_HEAP_SPAN ? object_near(address) : NULL;
    *kind = "bad-free";
    if (!o || o->a.base != address)
        problem = "is not the start of an object of the device heap";
    else if (o->a.freed) {
        *kind = "double-free";
        problem = "was freed before";
    } else {
        o->a.freed = true;
        o->a.size = 0;
        heap_used -= o->size;
    }
    pthread_rwlock_unlock(&heap_lock);
    return problem;
}

void sim_heap_release(struct sim_context *c)
{
    uint32_t kept = 0, live = 0;
    uint64_t bytes = 0;
    pthread_rwlock_wrlock(&heap_lock);
    for (uint32_t k = 0; k < object_count; k++) {
        object *o = objects[k];
        if (o->a.context != c) {
            objects[kept++] = o;
            continue;
        }
        if (!o->a.freed) {
            live++;
            bytes += o->size;
            heap_used -= o->size;
        }
        free(o->a.host);
        free(o->a.shadow);
        free(atomic_exchange(&o->a.races, NULL));
        sim_order_freed(&o->a);
        free(o);
    }
    object_count = kept;
    if (!kept) {
        free(objects);
        objects = NULL;
        object_capacity = 0;
    }
    pthread_rwlock_unlock(&heap_lock);
    if (live)
        sim_report_host("leak", "%u objects of the device heap (%llu bytes) were never freed by a kernel",
                        live, (unsigned long long)bytes);
}

static void device_malloc(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    SIM_EACH_LANE(l, mask) sim_slot64(w, i->d)[l] = heap_alloc(w->launch->context, argument(w, i, 0, l));
}

static void device_free(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    SIM_EACH_LANE(l, mask)
    {
        uint64_t address = argument(w, i, 0, l);
        const char *kind, *problem = address ? heap_free(address, &kind) : NULL;
        if (!problem) continue;
        sim_report_at(w, i, kind, l, "free of 0x%llx, which %s", (unsigned long long)address, problem);
        sim_warp_fault(w, SIM_ERROR_LAUNCH_FAILED);
        return;
    }
}

/* --- assertions ------------------------------------------------------------------------------- */

static void device_assert(sim_warp *w, const sim_ins *i, uint32_t mask)
{
    const uint32_t *n = w->launch->block;
    SIM_EACH_LANE(l, mask)
    {
        uint32_t t = sim_thread_of(w, l);
        uint64_t texts[3] = {argument(w, i, 0, l), argument(w, i, 1, l), argument(w, i, 3, l)};
        char *text[3] = {NULL, NULL, NULL};
        for (int k = 0; k < 3 && !w->fault; k++) text[k] = device_string(w, i, l, texts[k]);
        if (!w->fault) {
            if (l == sim_lowest(mask))
                sim_report_at(w, i, "assert", l, "%s:%u: %s: assertion '%s' failed", text[1],
                              (unsigned)argument(w, i, 2, l), text[2], text[0]);
            if (!sim_option.quiet && !getenv("PTXSIM_QUIET"))
                fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                        text[1], (unsigned)argument(w, i, 2, l), text[2], w->block->ctaid[0],
                        w->block->ctaid[1], w->block->ctaid[2], t % n[0], t / n[0] % n[1], t / (n[0] * n[1]),
                        text[0]);
        }
        for (int k = 0; k < 3; k++) free(text[k]);
        if (w->fault) return;
    }
    sim_warp_fault(w, SIM_ERROR_ASSERT);
}

/* --- the table -------------------------------------------------------------------------------- */

sim_handler sim_library_function(const char *name, uint32_t *params, uint32_t *returns)
{
    static const struct {
        const char *name;
        uint32_t params, returns;
        sim_handler fn;
    } functions[] = {
        {"vprintf", 2, 1, device_printf},
        {"malloc", 1, 1, device_malloc},
        {"free", 1, 0, device_free},
        {"__assertfail", 5, 0, device_assert},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (strcmp(functions[k].name, name)) continue;
        *params = functions[k].params;
        *returns = functions[k].returns;
        return functions[k].fn;
    }
    return NULL;
}
