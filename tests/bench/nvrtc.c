/* nvrtc - the time from a node graph to PTX, by ptxgen and by NVRTC, for graphs of 10 to 1,000 nodes:
   `nvrtc [SIM [PLOT.svg]]`. SIM: the CPU driver's library, on which both kernels run to compare their results.

   A node has an operation and one or two earlier nodes, and all of them count in the result. For NVRTC a node is
   a line of CUDA C; writing that text is not timed. Twice: with sin and cos as one instruction each, NVRTC with its
   fast mathematics; and with sin and cos that are right for all arguments. Times are of the processor, the least
   of several rounds. */
#define PTXGEN_IMPLEMENTATION
#include "../../ptxgen.h"
#include "../../ptxgen_cuda.h"
#define EXAMPLE "nvrtc"
#include "../../examples/example.h"
#include "../../examples/nvrtc.h"

enum { SIZES = 7, MOST = 1000, THREADS = 4096 };
static const uint32_t sizes[SIZES] = {10, 20, 50, 100, 200, 500, MOST};
typedef struct node {
    uint32_t op, a, b;
} node;
enum { MEAN, PRODUCT, LEAST, LARGEST, SINE, COSINE, OPS }; /* all of values from -1 to 1, and give such */

static void make_graph(node *graph, uint32_t count) {
    uint64_t state = 7;
    uint32_t i;
    for (i = 2; i < count + 2; i++) { /* 0 and 1 are x and y */
        uint32_t back = i < 20 ? i : 20;
        graph[i].op = (uint32_t)((uniform(&state) + 1) * 0.49999 * OPS);
        graph[i].a = i - 1;
        graph[i].b = i - 1 - (uint32_t)((uniform(&state) + 1) * 0.49999 * back);
    }
}

/* out[i] = the last node at x = in[2 i], y = in[2 i + 1]. */
static void emit_nodes(ptx_module *m, const node *graph, uint32_t count, int fast) {
    static ptx_val value[MOST + 2];
    ptx_kernel *k = ptx_entry(m, "graph");
    ptx_val in = ptx_param_ptr(k, "in", PTX_GLOBAL), out = ptx_param_ptr(k, "out", PTX_GLOBAL);
    ptx_val i = ptx_global_x(k), at = ptx_ptr_add(k, in, i, 8);
    uint32_t n;
    value[0] = ptx_ld(k, PTX_F32, ptx_at(at, 0));
    value[1] = ptx_ld(k, PTX_F32, ptx_at(at, 4));
    for (n = 2; n < count + 2; n++) {
        ptx_val a = value[graph[n].a], b = value[graph[n].b];
        switch (graph[n].op) {
        case MEAN: value[n] = ptx_mul(k, ptx_add(k, a, b), ptx_f32(0.5)); break;
        case PRODUCT: value[n] = ptx_mul(k, a, b); break;
        case LEAST: value[n] = ptx_min(k, a, b); break;
        case LARGEST: value[n] = ptx_max(k, a, b); break;
        default: {
            ptx_val sum = ptx_add(k, a, b);
            if (graph[n].op == SINE)
                value[n] = fast ? ptx_sin_approx(k, sum) : ptx_sin(k, sum);
            else
                value[n] = fast ? ptx_cos_approx(k, sum) : ptx_cos(k, sum);
        }
        }
    }
    ptx_st_elem(k, PTX_F32, out, i, value[count + 1]);
    ptx_ret(k);
}

static void write_nodes(char *at, const node *graph, uint32_t count) {
    static const char *const forms[OPS] = {"(v%u + v%u) * 0.5f", "v%u * v%u",       "fminf(v%u, v%u)",
                                           "fmaxf(v%u, v%u)",    "sinf(v%u + v%u)", "cosf(v%u + v%u)"};
    uint32_t n;
    at += sprintf(at, "extern \"C\" __global__ void graph(const float *in, float *out) {\n"
                      "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                      "    float v0 = in[2 * i], v1 = in[2 * i + 1];\n");
    for (n = 2; n < count + 2; n++) {
        at += sprintf(at, "    float v%u = ", n);
        at += sprintf(at, forms[graph[n].op], graph[n].a, graph[n].b);
        at += sprintf(at, ";\n");
    }
    sprintf(at, "    out[i] = v%u;\n}\n", count + 1);
}

/* -- both kernels on the CPU driver -- */

static void run_text(ptxcu *cu, const char *text, ptxcu_buffer in, float *results) {
    ptxcu_program *program;
    ptxcu_buffer out;
    ptx_launch launch = ptx_launch_1d(THREADS, 128);
    ptxcu_arg args[2];
    must(cu, ptxcu_load_text(cu, text, &program));
    must(cu, ptxcu_alloc(cu, THREADS * 4, &out));
    must(cu, ptxcu_entry_by_name(cu, program, "graph", &launch.entry));
    args[0] = ptxcu_arg_buffer(in), args[1] = ptxcu_arg_buffer(out);
    must(cu, ptxcu_launch(cu, program, &launch, args, 2, NULL));
    must(cu, ptxcu_download(cu, results, out, 0, THREADS * 4, NULL));
    must(cu, ptxcu_sync(cu));
    ptxcu_free(cu, out);
    ptxcu_unload(cu, program);
}

static double largest_difference(ptxcu *cu, const char *ours, const char *theirs) {
    static float in[2 * THREADS], a[THREADS], b[THREADS];
    uint64_t state = 11;
    double largest = 0;
    ptxcu_buffer buffer;
    int i;
    for (i = 0; i < 2 * THREADS; i++) in[i] = (float)uniform(&state);
    must(cu, ptxcu_alloc(cu, sizeof in, &buffer));
    must(cu, ptxcu_upload(cu, buffer, 0, in, sizeof in, NULL));
    run_text(cu, ours, buffer, a);
    run_text(cu, theirs, buffer, b);
    ptxcu_free(cu, buffer);
    for (i = 0; i < THREADS; i++) {
        double d = (double)a[i] - (double)b[i];
        if (!(d <= largest && -d <= largest)) largest = d < 0 ? -d : d;
    }
    return largest;
}

/* -- the plot: both axes logarithmic -- */

static double log_10(double x) { /* without libm, to 1e-6 */
    double whole = 0, y;
    while (x >= 10) x /= 10, whole++;
    while (x < 1) x *= 10, whole--;
    y = (x - 3.1622776601683795) / (x + 3.1622776601683795);
    return whole + 0.5
           + 0.8685889638065037 * (y + y * y * y / 3 + y * y * y * y * y / 5 + y * y * y * y * y * y * y / 7);
}

enum { LEFT = 70, TOP = 50, PLOT_WIDTH = 520, PLOT_HEIGHT = 280 };
static double plot_x(double nodes) { return LEFT + (log_10(nodes) - 1) / 2 * PLOT_WIDTH; }
static double plot_y(double ms, double low, double high) {
    return TOP + (high - log_10(ms)) / (high - low) * PLOT_HEIGHT;
}

static void plot_line(FILE *f, const double *ms, const char *look, const char *name, double low,
                      double high) {
    int i;
    fprintf(f, "<polyline fill=\"none\" %s stroke-width=\"2.5\" points=\"", look);
    for (i = 0; i < SIZES; i++) fprintf(f, "%.1f,%.1f ", plot_x(sizes[i]), plot_y(ms[i], low, high));
    fprintf(f, "\"/>\n<text x=\"%d\" y=\"%.1f\" fill=\"#222222\">%s</text>\n", LEFT + PLOT_WIDTH + 10,
            plot_y(ms[SIZES - 1], low, high) + 5, name);
}

static int write_plot(const char *path, double ms[2][2][SIZES], const nvrtc *n) {
    static const char *const labels[] = {"0.001", "0.01",  "0.1",    "1",      "10",
                                         "100",   "1,000", "10,000", "100,000"};
    static const char *const looks[2][2] = {
        {"stroke=\"#1f5fa8\"", "stroke=\"#b4551d\""},
        {"stroke=\"#1f5fa8\" stroke-dasharray=\"7 5\"", "stroke=\"#b4551d\" stroke-dasharray=\"7 5\""}};
    FILE *f = fopen(path, "w");
    double low = -3, high = 5;
    char name[60];
    int decade, i;
    if (!f) return 0;
    while (log_10(ms[1][0][0]) >= low + 1) low++;
    while (log_10(ms[0][1][SIZES - 1]) <= high - 1) high--;
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"400\" viewBox=\"0 0 760 400\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n"
            "<rect width=\"760\" height=\"400\" fill=\"#ffffff\"/>\n"
            "<text x=\"%d\" y=\"28\" font-size=\"16\" fill=\"#222222\">From a node graph to PTX: time by "
            "number of "
            "nodes</text>\n",
            LEFT);
    for (decade = (int)low; decade <= (int)high; decade++) {
        double y = TOP + (high - decade) / (high - low) * PLOT_HEIGHT;
        fprintf(f, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n", LEFT, y,
                LEFT + PLOT_WIDTH, y);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555555\">%s ms</text>\n", LEFT - 6,
                y + 4, labels[decade + 3]);
    }
    for (i = 0; i < SIZES; i++)
        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555555\">%u</text>\n",
                plot_x(sizes[i]), TOP + PLOT_HEIGHT + 22, sizes[i]);
    fprintf(
        f,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#555555\">nodes; dashed: sin and cos are one "
        "approximate instruction</text>\n",
        LEFT + PLOT_WIDTH / 2, TOP + PLOT_HEIGHT + 46);
    for (i = 0; i < 2; i++) {
        sprintf(name, "NVRTC %d.%d%s", n->major, n->minor, i ? ", approximate" : "");
        plot_line(f, ms[i][1], looks[i][1], name, low, high);
        plot_line(f, ms[i][0], looks[i][0], i ? "ptxgen, approximate" : "ptxgen", low, high);
    }
    fprintf(f, "</svg>\n");
    return fclose(f) == 0;
}

/* Milliseconds of ptxgen and of NVRTC for one graph; prints them. 0: NVRTC refused its text. */
static int measure(ptxcu *cu, const nvrtc *n, uint32_t count, int fast, double *ours, double *theirs) {
    static node graph[MOST + 2];
    static char source[MOST * 60 + 1000];
    ptx_module *m = ptx_module_new(NULL);
    const char *text = NULL;
    char *compiled = NULL;
    int round, rounds = count < 200 ? 5 : 2;
    make_graph(graph, count);
    write_nodes(source, graph, count);
    for (round = 0; round < 10; round++) {
        double begun = busy_seconds(), ms;
        int repeat;
        for (repeat = 0; repeat < 10; repeat++) {
            ptx_module_reset(m);
            emit_nodes(m, graph, count, fast);
            text = ptx_text(m, NULL);
        }
        ms = 1e3 * (busy_seconds() - begun) / repeat;
        if (!round || ms < *ours) *ours = ms;
    }
    for (round = 0; round < rounds; round++) {
        double ms = 1e3 * nvrtc_seconds(n, source, fast, round ? NULL : &compiled);
        if (ms < 0 || !text) return 0;
        if (!round || ms < *theirs) *theirs = ms;
    }
    printf("  %5u nodes          %9.3f ms %9.1f ms %7.0f   %.2g\n", count, *ours, *theirs, *theirs / *ours,
           largest_difference(cu, text, compiled));
    free(compiled);
    ptx_module_free(m);
    return 1;
}

int main(int argc, char **argv) {
    static double ms[2][2][SIZES]; /* accurate and fast; ptxgen and NVRTC */
    nvrtc n;
    ptxcu_desc desc = PTX_ZERO;
    ptxcu *cu = NULL;
    int s, fast;
    if (!nvrtc_open(&n)) {
        puts("skip: there is no libnvrtc to compare with (NVRTC_LIBRARY names one)");
        return 0;
    }
    desc.library = argc > 1 ? argv[1] : NULL;
    must(cu, ptxcu_open(&cu, &desc));
    for (fast = 0; fast < 2; fast++) {
        printf("sin and cos %s\n",
               fast ? "are one approximate instruction" : "right to 2 ulp for all arguments");
        printf(
            "from a node graph to PTX   ptxgen    NVRTC %d.%d   ratio   largest difference of %d results\n",
            n.major, n.minor, (int)THREADS);
        for (s = 0; s < SIZES; s++)
            if (!measure(cu, &n, sizes[s], fast, &ms[fast][0][s], &ms[fast][1][s])) return 1;
    }
    ptxcu_close(cu);
    if (argc > 2 && !write_plot(argv[2], ms, &n)) {
        fprintf(stderr, "nvrtc: %s: %s\n", argv[2], strerror(errno));
        return 1;
    }
    return 0;
}
