/* ptxdump - print the PTX of a ready kernel, to save, assemble or read.
   cc -O2 examples/ptxdump.c -o ptxdump -lm

     ptxdump                        list the kernels and their examples
     ptxdump NAME [VARIANT] [SM]    e.g. ptxdump flash_decode 0 90a > flash_decode.ptx
     ptxdump --all [SM]             everything, one module an example
     ptxdump --reference [WORD]     the builder's instructions (that have WORD in their line): name here,
                                    instruction, operands, types, modifiers, first .version, targets
     ptxdump --help */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PTXGEN_IMPLEMENTATION
#include "../ptxgen.h"
#include "../ptxgen_kernels.h"
#include "operation_examples.h"

typedef union description {
    uint64_t align;
    unsigned char bytes[256];
} description;

static int dump(uint32_t operation, uint32_t variant, ptx_target target) {
    const ptx_operation *op = ptxk_operation_get(operation);
    ptx_module_desc desc = PTX_ZERO;
    ptx_module *m;
    description d;
    const char *label = "", *text;
    desc.target = target;
    if (!op || !operation_example(operation, variant, &d, sizeof d, &label)) {
        fprintf(stderr, "ptxdump: there is no example %u of that kernel\n", variant);
        return 1;
    }
    m = ptx_module_new(&desc);
    if (m) op->emit(m, PTX__AT, &d);
    text = ptx_text(m, NULL);
    if (text)
        printf("// %s, example %u: %s\n%s", op->name, variant, label, text);
    else
        fprintf(stderr, "ptxdump: %s\n", ptx_get_error(m)->message);
    ptx_module_free(m);
    return text == NULL;
}

/* A number in the range, or -1 after a message. */
static long number(const char *text, long lowest, long highest, const char *what) {
    char *end;
    long n = strtol(text, &end, 10);
    if (*text && !*end && n >= lowest && n <= highest) return n;
    fprintf(stderr, "ptxdump: %s '%s' is not a number from %ld to %ld\n", what, text, lowest, highest);
    return -1;
}

/* -- the instruction reference, from the table of ptxgen.h, which this program compiles -- */

static char line[4096];

static void append(const char *text) { strncat(line, text, sizeof line - 1 - strlen(line)); }

static void append_mods(ptx_mods set) {
    unsigned bit;
    for (bit = 0; bit < 62; bit++)
        if (set >> bit & 1 && ptx__mod(set, bit).text) append(ptx__mod(set, bit).text);
}

static void append_types(uint64_t set) {
    unsigned type;
    const char *between = "";
    for (type = 0; type < PTX__TYPE_COUNT; type++)
        if (set >> type & 1) append(between), append(ptx__types[type].name), between = " ";
}

/* A row of the table, as a line. */
static void describe_row(const ptx__row *r) {
    static const char *const ids[] = {
#define ID(id, ...) "PTX_" #id,
#define NO_ID(id, ...)
        PTX_TABLE(ID, NO_ID)};
    const unsigned version = r->version < 63 ? 63u : r->version;
    char text[300];
    snprintf(line, sizeof line, "%s\t%s\t%s\t", ids[r->op], r->name, r->sig);
    append_types(ptx__types_of(r));
    if (ptx__sources_of(r)) append(" <- "), append_types(ptx__sources_of(r));
    append("\t");
    if (ptx__needed(r)) append_mods(ptx__needed(r));
    if (ptx__allowed(r) & ~ptx__needed(r)) {
        append(ptx__needed(r) ? " and " : "");
        append_mods((ptx__allowed(r) & ~ptx__needed(r)) | (ptx__allowed(r) & PTX__FAMILY));
    }
    snprintf(text, sizeof text, "\t%u.%u\tsm_", version / 10, version % 10);
    append(text);
    snprintf(text, sizeof text, "%u", r->sm < 75 ? 75u : (unsigned)r->sm);
    append(r->sm < PTX__ON_FIRST ? text : ptx__target_sets[r->sm - PTX__ON_FIRST - 1]);
}

/* The lines of the instruction reference that have the word. */
static int reference(const char *word) {
    size_t i;
    puts("# name\tinstruction\toperands\ttypes\tmodifiers\t.version\ttargets\n"
         "# instruction: %m modifiers, %l layouts, %t type, %s source type; of n registers in a group, %1 is "
         "n,"
         " %2 2n, %4 4n, %h n/2, %q n/4\n"
         "# operands: results = sources. t the type, w twice its width, c the source type, p predicate, u "
         "32-bit"
         " integer, d 64-bit,\n"
         "#   h 16-bit, f f32, z f64, q b128, x any 32 bits, S s32, y s32 or u32; m g s k l b r o [address] "
         "(any,"
         " global, shared, cluster's,\n"
         "#   matrix row, mbarrier, cluster's mbarrier, generic), n address, a [tensor memory]; {4f} four, "
         "{f+w} as"
         " many as given,\n"
         "#   ? the next may be left out, | between two results; i e j and other capitals: integers with "
         "limits,"
         " see ptx__slot_limits;\n"
         "#   in front: * printed as bits, ~ for ld and st, ! results are variables");
    for (i = 0; i < PTX__ROW_COUNT; i++) {
        describe_row(&ptx__rows[i]);
        if (!word || strstr(line, word)) puts(line);
    }
    return 0;
}

static int usage(FILE *out) {
    fputs("ptxdump - print the PTX of the ready kernels\n\n"
          "  ptxdump                        list the kernels and their examples\n"
          "  ptxdump NAME [VARIANT] [SM]    the text of one, for example: ptxdump flash_decode 0 90a\n"
          "  ptxdump --all [SM]             all of them\n"
          "  ptxdump --reference [WORD]     the builder's instructions that have WORD in their line\n"
          "  ptxdump --help                 this text\n",
          out);
    return out == stdout ? 0 : 2;
}

/* The texts of all examples, or their names. */
static int each_example(int texts, ptx_target target) {
    uint32_t i, v;
    description d;
    const char *label;
    int failed = 0;
    for (i = 0; i < ptxk_operation_count(); i++)
        for (v = 0; operation_example(i, v, &d, sizeof d, &label); v++)
            if (texts)
                failed |= dump(i, v, target);
            else
                printf("%s %u   %s\n", ptxk_operation_get(i)->name, v, label);
    return failed;
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "";
    int all = !strcmp(word, "--all"), most = !strcmp(word, "--reference") ? 3 : all ? 3 : 4;
    long variant, sm = 75;
    ptx_target target = 0;
    uint32_t i;
    if (argc > most) {
        fprintf(stderr, "ptxdump: '%s' is one argument too many; --help lists them\n", argv[most]);
        return 2;
    }
    if (argc == 1) return each_example(0, 0);
    if (!strcmp(word, "--help")) return usage(stdout);
    if (!strcmp(word, "--reference")) return reference(argc > 2 ? argv[2] : NULL);
    if (!all && word[0] == '-') {
        fprintf(stderr, "ptxdump: %s: unknown option; --help lists them\n", word);
        return 2;
    }
    variant = argc > 2 && !all ? number(argv[2], 0, 1000000, "variant") : 0;
    if (argc > (all ? 2 : 3)) { /* such as 90a, or a number, of which the module says what it is */
        target = ptx_target_parse(argv[all ? 2 : 3]);
        if (!target) sm = number(argv[all ? 2 : 3], 75, 999, "target");
    }
    if (variant < 0 || sm < 0) return 2;
    if (!target) target = PTX_SM((uint32_t)sm);
    if (all) return each_example(1, target);
    for (i = 0; i < ptxk_operation_count(); i++)
        if (!strcmp(word, ptxk_operation_get(i)->name)) return dump(i, (uint32_t)variant, target);
    fprintf(stderr, "ptxdump: no kernel is called '%s'; call it without arguments for the list\n", word);
    return 2;
}
