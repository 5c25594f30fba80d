/* link.c - linking: PTX texts in, one "cubin" out.
 *
 * Each input is compiled alone when it is added, to find its errors. The link works on the text: it splits
 * the inputs into their top-level declarations, keeps one definition of each name, renames
 * private names that occur elsewhere, drops the `extern` of what another input defines, and compiles the rest as
 * one module. */
#include "driver.h"
#include <ctype.h>
#include <stdarg.h>

typedef enum linkage { L_PRIVATE, L_VISIBLE, L_WEAK, L_COMMON, L_EXTERN } linkage;

typedef struct item {
    const char *text; size_t length;
    const char *name; size_t name_length;
    uint8_t linkage;
    bool function, entry, body, shared, other, dropped;
} item;

typedef struct sim_input {
    struct sim_input *next;
    char *text, *name;
    item *items; uint32_t count, capacity;
    uint32_t version, target; char suffix[4];
    char **renamed; uint32_t renamed_count;
} sim_input;

typedef struct text { char *p; size_t length, capacity; bool failed; } text;

static void append_text(text *t, const char *p, size_t n)
{
    if (t->length + n + 1 > t->capacity) {
        size_t wanted = (t->length + n + 1) * 2;
        char *grown = realloc(t->p, wanted);
        if (!grown) { t->failed = true; return; }
        t->p = grown;
        t->capacity = wanted;
    }
    memcpy(t->p + t->length, p, n);
    t->length += n;
    t->p[t->length] = 0;
}

/* --- cutting ---------------------------------------------------------------------------------- */

static const char *skip_blank(const char *p)
{
    for (;;) {
        while (isspace((unsigned char)*p)) p++;
        if (p[0] == '/' && p[1] == '/') p += strcspn(p, "\n");
        else if (p[0] == '/' && p[1] == '*') {
            const char *e = strstr(p + 2, "*/");
            p = e ? e + 2 : p + strlen(p);
        } else return p;
    }
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

/* The end of the token at p: a word, a string, or one character. */
static const char *token_end(const char *p)
{
    if (*p == '"') {
        for (p++; *p && *p != '"'; p++) if (*p == '\\' && p[1]) p++;
        return *p ? p + 1 : p;
    }
    if (!word_char(*p)) return *p ? p + 1 : p;
    while (word_char(*p) && !(p[0] == '/' && p[1] == '/')) p++;
    return p;
}

static bool is(const char *p, const char *e, const char *word)
{ return (size_t)(e - p) == strlen(word) && !memcmp(p, word, (size_t)(e - p)); }

static bool line_directive(const char *p, const char *e)
{ return is(p, e, ".version") || is(p, e, ".target") || is(p, e, ".address_size") || is(p, e, ".file"); }

static void header(sim_input *in, const char *p, const char *e)
{
    unsigned a = 0, b = 0;
    const char *value = skip_blank(e);
    if (is(p, e, ".version") && sscanf(value, "%u.%u", &a, &b) == 2) in->version = a * 10 + b;
    if (is(p, e, ".target") && sscanf(value, "sm_%u", &a) == 1) {
        in->target = a;
        const char *s = value + 3;
        while (isdigit((unsigned char)*s)) s++;
        in->suffix[0] = *s == 'a' || *s == 'f' ? *s : 0;
    }
}

/* Reads one declaration from p; returns its end. */
static const char *read_item(const char *p, item *out)
{
    const char *start = p;
    int round = 0, curly = 0;
    bool variable = false;
    memset(out, 0, sizeof *out);
    while (*(p = skip_blank(p))) {
        const char *e = token_end(p);
        if (!curly && !round) {
            if (is(p, e, ".extern")) out->linkage = L_EXTERN;
            else if (is(p, e, ".visible")) out->linkage = L_VISIBLE;
            else if (is(p, e, ".weak")) out->linkage = L_WEAK;
            else if (is(p, e, ".common")) out->linkage = L_COMMON;
            else if (is(p, e, ".func")) out->function = true;
            else if (is(p, e, ".entry")) out->function = out->entry = true;
            else if (is(p, e, ".section") || is(p, e, ".pragma") || is(p, e, ".alias")) out->other = true;
            else if (is(p, e, ".global") || is(p, e, ".const") || is(p, e, ".shared") || is(p, e, ".tex")) {
                variable = true;
                out->shared |= is(p, e, ".shared");
            } else if (!out->name && (isalpha((unsigned char)*p) || *p == '_' || *p == '$' || *p == '%')) {
                out->name = p;
                out->name_length = (size_t)(e - p);
            }
        }
        if (*p == '(') round++;
        if (*p == ')') round--;
        if (*p == '{') { curly++; out->body |= out->function; }
        if (*p == '}') curly--;
        p = e;
        if (curly || round) continue;
        if (e[-1] == ';' || (e[-1] == '}' && (out->function || out->other))) break;
    }
    if (!variable && !out->function) out->other = true;
    if (variable) out->body = out->linkage != L_EXTERN;
    if (out->entry && out->linkage == L_PRIVATE) out->linkage = L_VISIBLE;
    out->text = start;
    out->length = (size_t)(p - start);
    return p;
}

static bool split_items(sim_input *in)
{
    const char *p = in->text;
    while (*(p = skip_blank(p))) {
        const char *e = token_end(p);
        if (line_directive(p, e)) { header(in, p, e); p += strcspn(p, "\n"); continue; }
        if (in->count == in->capacity) {
            uint32_t wanted = in->capacity ? in->capacity * 2 : 32;
            item *grown = realloc(in->items, wanted * sizeof *grown);
            if (!grown) return false;
            in->items = grown;
            in->capacity = wanted;
        }
        const char *next = read_item(p, &in->items[in->count++]);
        if (next == p) break;
        p = next;
    }
    return true;
}

/* --- joining ---------------------------------------------------------------------------------- */

static bool same_name(const item *a, const item *b)
{
    return a->name && b->name && a->name_length == b->name_length
           && !memcmp(a->name, b->name, a->name_length);
}

static bool builtin(const item *k)
{
    static const char *const names[] = { "vprintf", "malloc", "free", "__assertfail" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        if (is(k->name, k->name + k->name_length, names[n])) return true;
    return false;
}

static void log_line(sim_link *k, const char *format, ...) SIM_PRINTF(2, 3);
static void log_line(sim_link *k, const char *format, ...)
{
    va_list a;
    char line[400];
    va_start(a, format);
    vsnprintf(line, sizeof line, format, a);
    va_end(a);
    k->errors++;
    if (!k->log || !k->log_size) return;
    size_t used = strlen(k->log);
    if (used + 1 < k->log_size) snprintf(k->log + used, k->log_size - used, "%s\n", line);
}

/* The item that defines what `k` only declares; NULL if there is none. */
static item *definition(sim_link *link, const item *k, sim_input **where)
{
    for (sim_input *in = link->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) {
            item *d = &in->items[n];
            if (!d->body || d->dropped || d->other || d->linkage == L_PRIVATE || d->linkage == L_EXTERN)
                continue;
            if (same_name(d, k)) { *where = in; return d; }
        }
    return NULL;
}

static void keep_one_definition(sim_link *link)
{
    for (sim_input *in = link->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) {
            item *k = &in->items[n];
            sim_input *first;
            if (k->other || !k->body || k->dropped || k->linkage == L_PRIVATE || k->linkage == L_EXTERN)
                continue;
            item *d = definition(link, k, &first);
            if (!d || d == k) continue;
            if (k->linkage == L_VISIBLE && d->linkage == L_VISIBLE) {
                log_line(link, "error   : Multiple definition of '%.*s' in '%s', first defined in '%s'",
                         (int)k->name_length, k->name, in->name, first->name);
                k->dropped = true;
            } else if (k->linkage == L_VISIBLE) d->dropped = true;
            else k->dropped = true;
        }
}

static void resolve(sim_link *link)
{
    for (sim_input *in = link->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) {
            item *k = &in->items[n];
            sim_input *where;
            if (k->other || k->linkage != L_EXTERN || !k->name) continue;
            if (definition(link, k, &where)) { k->dropped = true; continue; }
            if (k->shared || builtin(k)) continue;
            log_line(link, "error   : Undefined reference to '%.*s' in '%s'", (int)k->name_length, k->name,
                     in->name);
        }
}

/* Finds the private names that another input uses too, for whatever it is. */
static bool rename_private(sim_link *link)
{
    for (sim_input *in = link->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) {
            const item *k = &in->items[n];
            bool clash = false;
            if (k->other || k->linkage != L_PRIVATE || !k->name) continue;
            for (const sim_input *o = link->inputs; o && !clash; o = o->next)
                for (uint32_t m = 0; o != in && m < o->count; m++) clash |= same_name(k, &o->items[m]);
            if (!clash) continue;
            char **grown = realloc(in->renamed, (in->renamed_count + 1) * sizeof *grown);
            if (!grown) return false;
            in->renamed = grown;
            if (!(grown[in->renamed_count] = strndup(k->name, k->name_length))) return false;
            in->renamed_count++;
        }
    return true;
}

static void put_item(text *out, const sim_input *in, uint32_t number, const char *p, const char *end)
{
    while (p < end) {
        const char *e = token_end(p), *blank = skip_blank(p);
        if (blank != p) { append_text(out, p, (size_t)(blank - p)); p = blank; continue; }
        append_text(out, p, (size_t)(e - p));
        for (uint32_t n = 0; n < in->renamed_count; n++)
            if (is(p, e, in->renamed[n])) {
                char tail[24];
                append_text(out, tail, (size_t)snprintf(tail, sizeof tail, "__input%u", number));
                break;
            }
        p = e;
    }
    append_text(out, "\n", 1);
}

/* Writes a declaration without `.extern`, so that the definition may follow. */
static void put_declaration(text *out, const sim_input *in, uint32_t number, const item *k, const item *d)
{
    const char *at = strstr(k->text, ".extern");
    put_item(out, in, number, k->text, at);
    if (out->length) out->length--;                           /* no line end here */
    const char *how = d->linkage == L_WEAK ? ".weak" : ".visible";
    append_text(out, how, strlen(how));
    put_item(out, in, number, at + strlen(".extern"), k->text + k->length);
}

static bool is_first_of_name(const sim_link *link, const item *k)
{
    for (const sim_input *in = link->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) {
            const item *o = &in->items[n];
            if (o->linkage == L_EXTERN && same_name(o, k)) return o == k;
        }
    return true;
}

static void compose(sim_link *link, text *out)
{
    uint32_t version = 0, target = 0, number;
    char head[120], suffix = 0;
    for (const sim_input *in = link->inputs; in; in = in->next) {
        if (in->version > version) version = in->version;
        if (in->target > target) { target = in->target; suffix = 0; }
        if (in->target == target && in->suffix[0]) suffix = in->suffix[0];
    }
    append_text(out, head,
                (size_t)snprintf(head, sizeof head, ".version %u.%u\n.target sm_%u%s\n.address_size 64\n",
                                 version / 10, version % 10, target,
                                 suffix == 'a' ? "a"
                                 : suffix      ? "f"
                                       : ""));
    for (int pass = 0; pass < 3; pass++) {                    /* declarations of functions; variables; functions */
        number = 1;
        for (sim_input *in = link->inputs; in; in = in->next, number++)
            for (uint32_t n = 0; n < in->count; n++) {
                const item *k = &in->items[n];
                sim_input *where;
                if (pass == 0) {
                    bool unresolved = k->function && k->linkage == L_EXTERN && !k->dropped;
                    const item *d =
                        k->function && k->linkage == L_EXTERN ? definition(link, k, &where) : NULL;
                    if (!is_first_of_name(link, k)) continue;
                    if (d) put_declaration(out, in, number, k, d);
                    else if (unresolved || (k->function && !k->body && k->linkage != L_EXTERN))
                        put_item(out, in, number, k->text, k->text + k->length);
                    continue;
                }
                if (k->dropped || (k->function && !k->body)) continue;
                if (k->linkage == L_EXTERN && !is_first_of_name(link, k)) continue;
                if ((pass == 2) != k->function && !(k->other && pass == 1)) continue;
                if (k->other && pass == 2) continue;
                put_item(out, in, number, k->text, k->text + k->length);
            }
    }
}

/* --- entry points ----------------------------------------------------------------------------- */

static void free_inputs(sim_link *k)
{
    while (k->inputs) {
        sim_input *in = k->inputs;
        k->inputs = in->next;
        for (uint32_t n = 0; n < in->renamed_count; n++) free(in->renamed[n]);
        free(in->renamed);
        free(in->items);
        free(in->text);
        free(in->name);
        free(in);
    }
}

static void free_link(sim_link *k)
{
    sim_handle_drop(k->handle);
    free_inputs(k);
    free(k->cubin);
    free(k);
}

void sim_links_free(sim_context *c)
{
    while (c->links) { sim_link *k = c->links; c->links = k->next; free_link(k); }
}

static sim_link *link_of(sim_context *c, const void *handle)
{
    sim_link *k = sim_handle_get(H_LINK, handle);
    return k && k->context == c ? k : NULL;
}

SIM_API cuLinkCreate_v2(unsigned count, int *options, void **values, void **out)
{
    ENTER(cuLinkCreate_v2);
    USABLE();
    sim_jit j;
    if (!out) return leave(CU_INVALID_VALUE);
    int code = sim_jit_options(count, options, values, &j);
    if (code) return leave(code);
    sim_link *k = calloc(1, sizeof *k);
    if (!k || !(k->handle = sim_handle_new(H_LINK, k))) { free(k); return leave(CU_OUT_OF_MEMORY); }
    k->log = j.logs[1];
    k->log_size = j.sizes[1];
    k->context = c;
    k->next = c->links;
    c->links = k;
    *out = k->handle;
    return leave(CU_OK);
}

static int add(sim_context *c, void *handle, int type, const char *data, size_t size, const char *name)
{
    sim_link *k = link_of(c, handle);
    if (!k) return CU_INVALID_HANDLE;
    if (!data || !size) return CU_INVALID_VALUE;
    if (type != 0 && type != 1) return type < 0 || type > 5 ? CU_INVALID_VALUE : CU_NOT_SUPPORTED;
    size_t length = size;
    if (size >= sizeof(sim_cubin) && !memcmp(data, SIM_CUBIN_MAGIC, 8)) {
        sim_cubin head;
        memcpy(&head, data, sizeof head);
        if (head.length > size - sizeof head) return CU_INVALID_IMAGE;
        data += sizeof head;
        length = (size_t)head.length;
    } else if (type == 0) return CU_INVALID_IMAGE;
    else while (length && !data[length - 1]) length--;
    int code = sim_module_check(c, data, length, k->log, k->log_size);
    if (code) return code;
    sim_input *in = calloc(1, sizeof *in), **at = &k->inputs;
    if (!in) return CU_OUT_OF_MEMORY;
    while (*at) at = &(*at)->next;
    *at = in;
    in->text = calloc(1, length + 8);
    in->name = strdup(name && *name ? name : "<input>");
    if (!in->text || !in->name) return CU_OUT_OF_MEMORY;
    memcpy(in->text, data, length);
    return split_items(in) ? CU_OK : CU_OUT_OF_MEMORY;
}

SIM_API cuLinkAddData_v2(void *handle, int type, void *data, size_t size, const char *name, unsigned count,
                         int *options, void **values)
{
    ENTER(cuLinkAddData_v2);
    USABLE();
    if (count && (!options || !values)) return leave(CU_INVALID_VALUE);
    return leave(add(c, handle, type, data, size, name));
}

SIM_API cuLinkAddFile_v2(void *handle, int type, const char *path, unsigned count, int *options,
                         void **values)
{
    ENTER(cuLinkAddFile_v2);
    USABLE();
    size_t length;
    if (!path || (count && (!options || !values))) return leave(CU_INVALID_VALUE);
    char *data = sim_read_file(path, &length);
    if (!data) return leave(301);
    int code = add(c, handle, type, data, length, path);
    free(data);
    return leave(code);
}

static int complete(sim_context *c, sim_link *k, text *out)
{
    sim_module *m;
    k->errors = 0;
    if (k->log && k->log_size) *k->log = 0;
    for (sim_input *in = k->inputs; in; in = in->next)
        for (uint32_t n = 0; n < in->count; n++) in->items[n].dropped = false;
    if (!k->inputs->next) append_text(out, k->inputs->text, strlen(k->inputs->text));
    keep_one_definition(k);
    resolve(k);
    if (k->errors) return CU_INVALID_PTX;
    if (k->inputs->next) {
        if (!rename_private(k)) return CU_OUT_OF_MEMORY;
        compose(k, out);
    }
    if (out->failed || !out->p) return CU_OUT_OF_MEMORY;
    int code = sim_module_load(c, out->p, out->length, k->log, k->log_size, &m);
    if (!code) sim_module_free(m);
    return code;
}

SIM_API cuLinkComplete(void *handle, void **cubin, size_t *size)
{
    ENTER(cuLinkComplete);
    USABLE();
    sim_link *k = link_of(c, handle);
    text all = { 0 };
    if (!k) return leave(CU_INVALID_HANDLE);
    if (!cubin || !k->inputs) return leave(CU_INVALID_VALUE);
    int code = complete(c, k, &all);
    if (code) { free(all.p); return leave(code); }
    sim_cubin head = { { 0 }, 1, sim_the_device()->sm, all.length, sim_text_checksum(all.p, all.length) };
    memcpy(head.magic, SIM_CUBIN_MAGIC, 8);
    free(k->cubin);
    k->cubin_size = sizeof head + all.length + 1;
    if ((k->cubin = malloc(k->cubin_size)) != NULL) {
        memcpy(k->cubin, &head, sizeof head);
        memcpy(k->cubin + sizeof head, all.p, all.length + 1);
        *cubin = k->cubin;
        if (size) *size = k->cubin_size;
    }
    free(all.p);
    return leave(k->cubin ? CU_OK : CU_OUT_OF_MEMORY);
}

SIM_API cuLinkDestroy(void *handle)
{
    ENTER(cuLinkDestroy);
    sim_context *c = sim_current();
    if (!c) return leave(CU_INVALID_CONTEXT);
    sim_link *k = link_of(c, handle);
    if (!k) return leave(CU_INVALID_HANDLE);
    for (sim_link **at = &c->links; *at; at = &(*at)->next) if (*at == k) { *at = k->next; break; }
    free_link(k);
    return leave(CU_OK);
}
