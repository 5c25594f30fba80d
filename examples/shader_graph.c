/* shader_graph - a text becomes one kernel and a picture. Prints the time, and NVRTC's where it is installed.
   cc -O2 examples/shader_graph.c -o shader_graph -ldl -lm

   ./shader_graph --graph "w = sin(3*x + y); w, w*w, cos(5*y*w)"      red, green and blue, from 0 to 1 each
   Runs on the GPU; without one, on the CPU driver: PTXGEN_CUDA_FALLBACK=build/libptxsim.so ./shader_graph */
#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_cuda.h"
#define EXAMPLE "shader_graph"
#include "example.h"
#include "image.h"
#include "nvrtc.h"

typedef struct graph { /* the parser emits while it reads: there is no tree */
    ptx_kernel *k;
    const char *text, *at, *name[64]; /* names: x, y, then what the text defines */
    size_t length[64], names, depth;
    ptx_val value[64];
} graph;

static void refuse(const graph *g, const char *at, const char *why) {
    fprintf(stderr, "%s\n%*s^ %s\n", g->text, (int)(at - g->text), "", why);
    exit(2);
}

/* The next character that is no blank. */
static char next(graph *g) {
    while (*g->at == ' ') g->at++;
    return *g->at;
}

static void need_next(graph *g, char c) {
    char why[] = "' ' is missing here";
    why[1] = c;
    if (next(g) != c) refuse(g, g->at, c ? why : "the text should end here");
    g->at++;
}

static size_t name_length(const char *at) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *at >= '0' && *at <= '9' ? 0 : strspn(at, letters);
}

static void define(graph *g, const char *name, size_t length, ptx_val value) {
    if (g->names == 64) refuse(g, name, "too many names");
    g->name[g->names] = name, g->length[g->names] = length, g->value[g->names++] = value;
}

static ptx_val read_factor(graph *g);

static ptx_val read_sum(graph *g, int products) {
    static const char ops[] = "+-*/";
    static const ptx_op_id op[] = {PTX_ADD, PTX_SUB, PTX_MUL, PTX_DIV};
    ptx_val a = products ? read_factor(g) : read_sum(g, 1), b;
    const char *is;
    while (next(g) && (is = strchr(ops, *g->at)) != NULL && (is - ops > 1) == products) {
        g->at++;
        b = products ? read_factor(g) : read_sum(g, 1);
        a = ptx_op2(g->k, op[is - ops], 0, a, b);
    }
    return a;
}

static ptx_val read_nested(graph *g) {
    static const char *const functions[] = {
        /* by their numbers of arguments; then instructions */
        " floor ceil round fract sign sin cos tan asin acos atan sinh cosh tanh exp exp2 log log2 cbrt erf ",
        " mod step pow atan2 hypot ", " clamp mix smoothstep ", " sqrt abs ", " min max "};
    const char first = next(g), *at = g->at;
    char *end, word[16];
    size_t length = name_length(at), i, n;
    ptx_val v[3];
    if (first == '-') return g->at++, ptx_neg(g->k, read_factor(g));
    if (first == '(') return g->at++, v[0] = read_sum(g, 0), need_next(g, ')'), v[0];
    if (!length) {
        v[0] = ptx_f32(strtod(at, &end));
        if (end == at) refuse(g, at, "a number, a name or '(' is missing here");
        return g->at = end, v[0];
    }
    g->at += length;
    for (i = g->names; i-- > 0;)
        if (g->length[i] == length && !strncmp(g->name[i], at, length)) return g->value[i];
    snprintf(word, sizeof word, " %.*s ", length < 12 ? (int)length : 0, at);
    for (n = 0; n < 5; n++)
        if (strstr(functions[n], word)) break;
    if (n == 5) refuse(g, at, "neither a name defined before nor a function");
    for (i = 0; i < (n < 3 ? n + 1 : n - 2); i++) need_next(g, i ? ',' : '('), v[i] = read_sum(g, 0);
    need_next(g, ')');
    word[length + 1] = 0;
    if (n == 3) return ptx_op1(g->k, word[1] == 's' ? PTX_SQRT : PTX_ABS, 0, v[0]);
    if (n == 4) return ptx_op2(g->k, word[2] == 'i' ? PTX_MIN : PTX_MAX, 0, v[0], v[1]);
    return ptx_math_(g->k, PTX__AT, word + 1, (uint32_t)n + 1, v[0], v[n > 0], v[n]);
}

static ptx_val read_factor(graph *g) {
    ptx_val v;
    if (++g->depth > 1000) refuse(g, g->at, "nested too deeply");
    v = read_nested(g);
    return g->depth--, v;
}

/* "name = sum;" any number of times, then three sums. x and y are 0 at the centre, y is 1 at the top. */
static void emit_graph(ptx_module *m, const char *text) {
    graph g;
    ptx_kernel *k = g.k = ptx_entry(m, "graph");
    ptx_val out = ptx_param_ptr(k, "out", PTX_GLOBAL), width = ptx_param(k, "width", PTX_U32);
    ptx_val height = ptx_param(k, "height", PTX_U32), column, row, rgb[3];
    size_t length, c;
    column = ptx_global_x(k), row = ptx_global_y(k);
    leave_where(k, ptx_setp(k, PTX_GE, column, width));
    leave_where(k, ptx_setp(k, PTX_GE, row, height));
    g.text = g.at = text, g.names = g.depth = 0;
    define(&g, "x", 1, from_centre(k, column, width, height));
    define(&g, "y", 1, ptx_neg(k, from_centre(k, row, height, height)));
    while (next(&g), text = g.at, length = name_length(text),
           text[length + strspn(text + length, " ")] == '=') {
        g.at = text + length;
        need_next(&g, '=');
        define(&g, text, length, read_sum(&g, 0));
        need_next(&g, ';');
    }
    for (c = 0; c < 3; c++) rgb[c] = read_sum(&g, 0), need_next(&g, c < 2 ? ',' : 0);
    ptx_st_elem(k, PTX_U32, out, ptx_mad(k, row, width, column), pack_pixel(k, rgb));
    ptx_ret(k);
}

int main(int argc, char **argv) {
    uint32_t width = 640, height = 400, rounds;
    const char *path = "shader_graph.png",
               *text = "q = x + sin(2*y); s = y + sin(2.3*q); u = q + sin(3.1*s)/2; v = s + sin(3.7*u)/2;"
                       "d = abs(sin(4*u) * sin(4*v)); e = exp2(-6*d); e + v/10, 0.6*e + d/4, d/2 + 0.4*e*e";
    const option options[] = {{"graph", OPTION_TEXT, &text, 0, 0, NULL, "names and three colours"},
                              {"width", OPTION_U32, &width, 1, 16384, NULL, "pixels of a row"},
                              {"height", OPTION_U32, &height, 1, 16384, NULL, "rows"},
                              {"out", OPTION_TEXT, &path, 0, 0, NULL, "the file"}};
    const command_line line = {EXAMPLE, "a text as a kernel and a picture", options, 4, NULL, NULL, 0};
    ptx_module *m;
    nvrtc compiler;
    double seconds, other;
    if (!parse_command_line(&line, argc, argv)) return 2;
    m = ptx_module_new(NULL);
    seconds = busy_seconds();
    for (rounds = 0; rounds < 20; rounds++) ptx_module_reset(m), emit_graph(m, text), ptx_text(m, NULL);
    seconds = (busy_seconds() - seconds) / rounds;
    printf("%s: text to PTX in %.3f ms", EXAMPLE, 1e3 * seconds);
    if (nvrtc_open(&compiler) && (other = nvrtc_of_graph(&compiler, text)) >= 0)
        printf("; by NVRTC in %.1f ms", 1e3 * other);
    printf("\n");
    return draw_picture(m, width, height, path);
}
