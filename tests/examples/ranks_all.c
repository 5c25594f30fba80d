/* ranks_all.c - architectures in 2 and 4 processes, as ranks.c has two of them: 12 tokens beside the reference, of one
 * model in five, others in every run. ranks_all build/libncclsim.so NAME TOKENS: one model ("": all of them; generate:
 * the program), so many tokens. */
#define _DEFAULT_SOURCE
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "../../ptxgen_kernels.h"
#include "../../ptxgen_cuda.h"
#include "../rankstest.h"

static const char *only; /* NULL, or the name of the only model to test */
static uint32_t tokens = 12;
static unsigned char is_chosen[sizeof models / sizeof *models];

/* Before the processes part, which must choose the same models. */
static void choose_models(void)
{
    uint32_t i;
    for (i = 0; i < sizeof models / sizeof *models; i++)
        is_chosen[i] = only ? !*only || !strcmp(models[i].what, only) : random_below(5) == 0;
}

static void test_models(void)
{
    uint32_t i;
    if (!open_rank()) return;
    for (i = 0; i < sizeof models / sizeof *models; i++) {
        model_shape s = shape_of_ranks(models[i].shape);
        if (!is_chosen[i]) continue;
        check_ranks(&s, 1, 18, s.layers > 20 ? 4 : tokens, models[i].what);
    }
}

/* -- the program itself -- */

/* Writes a copy of the file whose matrices are Q8_0, so that ranks can divide their rows. */
static int write_divisible(const char *from, const char *to)
{
    model_file f;
    FILE *file = fopen(to, "wb");
    uint64_t offset = 0, all, i;
    int ok;
    if (!CHECK(file) || !open_path(&f, from)) return 0;
    for (i = 0; i < f.g.tensors; i++) { /* the head's lines: name, how many sizes, these, type, offset */
        const gguf_tensor *t = &f.g.tensor[i];
        unsigned char *line = f.data + ((const unsigned char *)t->name.at - f.g.head) + t->name.bytes;
        uint32_t format = t->dimensions > 1 ? GGUF_FORMAT_Q8_0 : t->format;
        line += 4 + 8 * t->dimensions;
        memcpy(line, &format, 4);
        memcpy(line + 4, &offset, 8);
        offset += ref_row_bytes((int)format, (size_t)(t->size[0] * t->size[1]));
        offset = (offset + f.g.alignment - 1) / f.g.alignment * f.g.alignment;
    }
    all = (f.g.tensors_end + f.g.alignment - 1) / f.g.alignment * f.g.alignment;
    ok = fwrite(f.data, 1, (size_t)all, file) == all;
    for (i = 0; i < f.g.tensors; i++) {
        const gguf_tensor *t = &f.g.tensor[i];
        size_t n = (size_t)(t->size[0] * t->size[1]);
        size_t bytes = t->dimensions > 1 ? ref_row_bytes(GGUF_FORMAT_Q8_0, n) : (size_t)t->bytes;
        size_t room = (size_t)((bytes + f.g.alignment - 1) / f.g.alignment * f.g.alignment);
        float *x = (float *)malloc(n * sizeof *x);
        unsigned char *blocks = (unsigned char *)calloc(1, room);
        if (t->dimensions > 1) {
            ref_dequantise_f32((int)t->format, f.data + t->offset, n, x);
            ref_quantise(GGUF_FORMAT_Q8_0, x, n, blocks);
        } else {
            memcpy(blocks, f.data + t->offset, bytes);
        }
        ok = ok && fwrite(blocks, 1, room, file) == room;
        free(x);
        free(blocks);
    }
    close_file(&f);
    return CHECK(fclose(file) == 0 && ok);
}

/* What a command writes to standard output. */
static void output_of(const char *command, char *text, size_t bytes)
{
    FILE *pipe = popen(command, "r");
    size_t n = 0, more;
    while (pipe && n + 1 < bytes && (more = fread(text + n, 1, bytes - 1 - n, pipe)) > 0) n += more;
    text[n] = 0;
    CHECK_MORE(pipe && pclose(pipe) == 0, command);
}

/* generate in one rank and in two, started by hand: the same text, told once; a chat, whose lines rank 0 alone reads;
 * a prompt of each line of a file; guesses. */
static void test_program(void)
{
    static const char *const runs[] = {
        "'Once upon a time' --tokens 4 --graph",
        "--chat --template vicuna --tokens 2",
        "--prompts $F/prompts --tokens 2 --temperature 1 --seed 3",
        "'The king' --draft $F/gguf --tokens 4",
    };
    char program[400], command[1200], one[2000], two[2000], path[] = "/tmp/rankstest-XXXXXX", name[60];
    size_t i;
    FILE *file;
    if (!CHECK(mkdtemp(path))) return;
    setenv("F", path, 1);
    snprintf(program, sizeof program, "%.*sgenerate $F/gguf", (int)(strrchr(nccl_library, '/') + 1 - nccl_library),
             nccl_library);
    setenv("PTXSIM_PERTURB", "0", 1);
    snprintf(name, sizeof name, "%s/prompts", path);
    file = fopen(name, "w");
    CHECK(file && fprintf(file, "The fox\nA king\n") > 0 && !fclose(file));
    snprintf(name, sizeof name, "%s/gguf", path);
    for (i = 0; i < sizeof runs / sizeof *runs && (i || write_divisible(model_path, name)); i++) {
        snprintf(command, sizeof command, "printf 'hello\nand then\n' | %s %s 2>$F/err", program, runs[i]);
        output_of(command, one, sizeof one);
        snprintf(command, sizeof command,
                 "RANK=1 WORLD_SIZE=2 %s %s </dev/null 2>$F/err1 & printf 'hello\nand then\n' |"
                 "RANK=0 WORLD_SIZE=2 %s %s 2>$F/err && wait $! && test ! -s $F/err1"
                 " && grep -q '2 ranks; MB in each: weights' $F/err", program, runs[i], program, runs[i]);
        output_of(command, two, sizeof two);
        CHECK_MORE(*one && !strcmp(one, two), two);
    }
    CHECK(system("rm -r $F") == 0);
}

int main(int argc, char **argv)
{
    if (argc > 2) only = argv[2];
    if (argc > 3) tokens = (uint32_t)atoi(argv[3]);
    if (start_ranks(argc, argv)) {
        if (!only || !strcmp(only, "generate")) test_program();
        choose_models(), run_ranks(2, test_models);
        choose_models(), run_ranks(4, test_models);
    }
    return check_end();
}
