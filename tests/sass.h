/* Machine instructions of sm_90, which ptxas alone can tell: a kernel's code out of the file that it writes,
 * and loops in that code. An instruction has 16 bytes. Include it behind kerneltest.h. */
#ifndef PTXGEN_TESTS_SASS_H
#define PTXGEN_TESTS_SASS_H

#define SASS_BRA 0x947u
#define SASS_EXIT 0x94du
#define SASS_NOP 0x918u
#define SASS_HMMA 0x3cu /* the low 8 bits */

static inline int sass_possible(const char *test) {
    if (!system("ptxas --version > /dev/null 2>&1")) return 1;
    printf("SKIP %s: no ptxas on the PATH\n", test);
    return 0;
}

static inline uint64_t sass_word(const unsigned char *p, uint32_t bytes) {
    uint64_t x = 0;
    while (bytes--) x = x << 8 | p[bytes];
    return x;
}

/* The file that ptxas makes of that text, and with `remarks` what it says of spills and of wgmma: the number of such
 * lines. Returns 0 when a check has failed. */
static inline int sass_assemble_for(const char *target, const char *text, unsigned char *image,
                                    size_t capacity, unsigned *remarks) {
    char path[] = "/tmp/ptxgen_sass_XXXXXX", command[300], line[400];
    size_t bytes = 0;
    FILE *file;
    int handle = mkstemp(path);
    if (!CHECK(handle >= 0) || !CHECK((file = fdopen(handle, "w")) != NULL)) return 0;
    CHECK(fputs(text, file) >= 0);
    (void)fclose(file);
    (void)snprintf(command, sizeof command, "ptxas -v -arch=%s %s -o %s.cubin 2>&1", target, path, path);
    file = popen(command, "r");
    if (!CHECK(file != NULL)) return 0;
    if (remarks) *remarks = 0;
    while (fgets(line, sizeof line, file)) {
        const char *spill = strstr(line, "bytes spill stores");
        int spilt = spill && !strstr(line, " 0 bytes spill stores, 0 bytes spill loads");
        if (strstr(line, "error")) CHECK_MORE(0, line);
        if (!remarks || !(spilt || strstr(line, "(C75") || strstr(line, "serialized"))) continue;
        printf("ptxas: %s", line);
        ++*remarks;
    }
    CHECK(pclose(file) == 0);
    (void)remove(path);
    (void)snprintf(command, sizeof command, "%s.cubin", path);
    file = fopen(command, "rb");
    if (CHECK(file != NULL)) {
        bytes = fread(image, 1, capacity, file);
        (void)fclose(file);
        (void)remove(command);
    }
    return CHECK(bytes > 64 && bytes < capacity);
}

static inline int sass_assemble(const char *text, unsigned char *image, size_t capacity) {
    return sass_assemble_for("sm_90", text, image, capacity, NULL);
}

/* The code of a kernel in such a file, and how many instructions it has. NULL: a check has failed. */
static inline const unsigned char *sass_code(const unsigned char *image, const char *kernel,
                                             uint32_t *count) {
    size_t sections = (size_t)sass_word(image + 0x28, 8), i;
    size_t names = (size_t)sass_word(image + sections + 64 * sass_word(image + 0x3e, 2) + 24, 8);
    for (i = 0; i < sass_word(image + 0x3c, 2); i++) {
        const unsigned char *header = image + sections + 64 * i;
        const char *name = (const char *)image + names + sass_word(header, 4);
        if (strncmp(name, ".text.", 6) || strcmp(name + 6, kernel)) continue;
        *count = (uint32_t)(sass_word(header + 32, 8) / 16);
        return image + sass_word(header + 24, 8);
    }
    (void)CHECK_MORE(0, kernel);
    return NULL;
}

static inline uint32_t sass_opcode(const unsigned char *code, uint32_t i) {
    return (uint32_t)sass_word(code + 16 * (size_t)i, 8) & 0xfff;
}

/* Whether a guard may keep the instruction from being executed. */
static inline int sass_guarded(const unsigned char *code, uint32_t i) {
    return (sass_word(code + 16 * (size_t)i, 8) >> 12 & 7) != 7;
}

/* Where branch i leads. */
static inline int64_t sass_target(const unsigned char *code, uint32_t i) {
    uint64_t low = sass_word(code + 16 * (size_t)i, 8);
    int64_t offset = (int64_t)((low >> 34 << 8 | (low >> 16 & 255)) << 26) >> 26;
    return (int64_t)i + 1 + offset * 4 / 16;
}

/* How many of the instructions first ... last multiply matrices. */
static inline uint32_t sass_products(const unsigned char *code, uint32_t first, uint32_t last) {
    uint32_t n = 0;
    for (; first <= last; first++) n += (sass_opcode(code, first) & 255) == SASS_HMMA;
    return n;
}

/* The length of the longest loop that has no loop inside, and where it begins. */
static inline uint32_t sass_inner_loop(const unsigned char *code, uint32_t count, uint32_t *first) {
    uint32_t i, best = 0, previous = 0;
    for (i = 0; i < count; i++) {
        int64_t target = sass_target(code, i);
        if (sass_opcode(code, i) != SASS_BRA || target < 0 || target >= (int64_t)i) continue; /* backwards */
        if ((uint32_t)target >= previous && i - (uint32_t)target + 1 > best) {
            best = i - (uint32_t)target + 1;
            *first = (uint32_t)target;
        }
        previous = i;
    }
    return best;
}

#endif
