/* nvrtc.h - NVIDIA's run-time compiler of CUDA C, loaded where it is installed, for comparisons of time.
 *
 * NVRTC_LIBRARY names the library; else libnvrtc.so, .13, .12 and that of /usr/local/cuda/lib64 are tried. */
#ifndef NVRTC_H
#define NVRTC_H

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef _WIN32
#include <dlfcn.h>
#endif

typedef struct nvrtc {
    int major, minor; /* 0: there is none */
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_size)(void *, size_t *);
    int (*log)(void *, char *);
    int (*ptx_size)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
} nvrtc;

/* Loads the library; 0: there is none, or not on this system. */
static inline int nvrtc_open(nvrtc *n) {
#ifndef _WIN32
    static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12",
                                        "/usr/local/cuda/lib64/libnvrtc.so"};
    static const char *const functions[] = {
        "nvrtcVersion",       "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
        "nvrtcGetProgramLog", "nvrtcGetPTXSize",    "nvrtcGetPTX",         "nvrtcDestroyProgram"};
    const char *given = getenv("NVRTC_LIBRARY");
    void *library = given ? dlopen(given, RTLD_NOW) : NULL, *f[8];
    int (*version)(int *, int *);
    size_t i;
    memset(n, 0, sizeof *n);
    for (i = 0; !given && !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library) return 0;
    for (i = 0; i < 8; i++)
        if (!(f[i] = dlsym(library, functions[i]))) return 0;
    memcpy(&version, &f[0], sizeof f[0]);
    memcpy(&n->create, &f[1], sizeof f[0]);
    memcpy(&n->compile, &f[2], sizeof f[0]);
    memcpy(&n->log_size, &f[3], sizeof f[0]);
    memcpy(&n->log, &f[4], sizeof f[0]);
    memcpy(&n->ptx_size, &f[5], sizeof f[0]);
    memcpy(&n->ptx, &f[6], sizeof f[0]);
    memcpy(&n->destroy, &f[7], sizeof f[0]);
    return !version(&n->major, &n->minor) && n->major;
#else
    memset(n, 0, sizeof *n);
    return 0;
#endif
}

/* Seconds of the processor, which other programs do not stretch. */
static inline double busy_seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

/* Seconds for source to PTX, for sm_90; -1 after a message if it does not compile. fast: with its fast
   mathematics. *ptx, if ptx is not NULL:
   the text, to be freed. */
static inline double nvrtc_seconds(const nvrtc *n, const char *source, int fast, char **ptx) {
    static const char *const options[] = {"--gpu-architecture=compute_90", "--fmad=false", "--use_fast_math"};
    double begun = busy_seconds(), seconds;
    void *program = NULL;
    size_t size = 0;
    int failed = n->create(&program, source, "source.cu", 0, NULL, NULL);
    if (!failed) failed = n->compile(program, fast ? 3 : 2, options);
    seconds = busy_seconds() - begun;
    if (failed && program && !n->log_size(program, &size) && size) {
        char *text = (char *)calloc(size + 1, 1);
        if (text && !n->log(program, text)) fprintf(stderr, "nvrtc: %s\n", text);
        free(text);
    }
    if (!failed && ptx) {
        *ptx = !n->ptx_size(program, &size) ? (char *)calloc(size + 1, 1) : NULL;
        failed = !*ptx || n->ptx(program, *ptx);
    }
    if (program) n->destroy(&program);
    return failed ? -1 : seconds;
}

/* The text of a graph (see shader_graph.c) as CUDA C: names are declared, numbers are f32. Returns its
   length, 0 if it does not fit. */
static inline size_t cuda_of_graph(const char *text, char *out, size_t capacity) {
    static const char head[] =
        "#define abs fabsf\n#define min fminf\n#define max fmaxf\n"
        "__device__ float fract(float x) { return x - floorf(x); }\n"
        "__device__ float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }\n"
        "__device__ float mod(float x, float y) { return x - y * floorf(x / y); }\n"
        "__device__ float step(float e, float x) { return x < e ? 0.0f : 1.0f; }\n"
        "__device__ float clamp(float x, float a, float b) { return fminf(fmaxf(x, a), b); }\n"
        "__device__ float mix(float x, float y, float t) { return x * (1.0f - t) + y * t; }\n"
        "__device__ float smoothstep(float a, float b, float x) {\n"
        "    float t = __saturatef((x - a) / (b - a));\n    return t * t * (3.0f - 2.0f * t);\n}\n"
        "__device__ unsigned level(float c) { return (unsigned)fmaf(__saturatef(c), 255.0f, 0.5f); }\n"
        "extern \"C\" __global__ void graph(unsigned *out, unsigned width, unsigned height) {\n"
        "    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "    if (column >= width || row >= height) return;\n"
        "    float x = ((float)column + 0.5f - 0.5f * (float)width) * (2.0f / (float)height);\n"
        "    float y = -((float)row + 0.5f - 0.5f * (float)height) * (2.0f / (float)height);\n";
    static const char tail[] = "};\n    out[row * width + column] = 0xff000000u | level(rgb[0]) | "
                               "level(rgb[1]) << 8 | level(rgb[2]) << 16;\n}\n";
    const char *last = strrchr(text, ';');
    size_t n = 0;
    int starts = 1;
    if (20 * strlen(text) + sizeof head + sizeof tail > capacity)
        return 0; /* a digit may become 16 characters */
    memcpy(out, head, sizeof head - 1);
    n = sizeof head - 1;
    for (; *text; text++) {
        if (starts && *text != ' ') {
            n += (size_t)sprintf(out + n, "%s", last && text <= last ? "    float " : "    float rgb[3] = {");
            starts = 0;
        }
        if (isalpha((unsigned char)*text)) {
            while (isalnum((unsigned char)*text) || *text == '_') out[n++] = *text++;
            text--;
        } else if (isdigit((unsigned char)*text) || *text == '.') {
            char *end;
            n += (size_t)sprintf(out + n, "%.9ef", strtod(text, &end));
            text = end > text ? end - 1 : text;
        } else
            out[n++] = *text;
        if (*text == ';') out[n++] = '\n', starts = 1;
    }
    memcpy(out + n, tail, sizeof tail);
    return n + sizeof tail - 1;
}

/* Seconds for the text of a graph. */
static inline double nvrtc_of_graph(const nvrtc *n, const char *text) {
    size_t capacity = 20 * strlen(text) + 2000;
    char *source = (char *)malloc(capacity);
    double seconds = source && cuda_of_graph(text, source, capacity) ? nvrtc_seconds(n, source, 0, NULL) : -1;
    free(source);
    return seconds;
}

#endif
