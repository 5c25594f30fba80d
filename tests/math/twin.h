/* twin.h - a kernel's text as a C function that does the same to the last bit; see twin_prelude.h.
 *
 * The kernel loads its operands with ld.global, in their order, and stores results with st.global. Of control
 * flow it has forward branches and calls of functions of the module whose operands are 64-bit or 32-bit
 * registers; of memory, constant tables of the module whose elements it loads by index. */
#ifndef TWIN_H
#define TWIN_H

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An operand in C: %r1 is r1, 0f3F800000 and 0d... are their bits. */
static const char *twin_operand(FILE *out, const char *p)
{
    while (*p == ' ' || *p == ',') p++;
    if (p[0] == '0' && (p[1] == 'f' || p[1] == 'd')) {
        int wide = p[1] == 'd';
        fputs("0x", out);
        for (p += 2; isxdigit((unsigned char)*p); p++) fputc(*p, out);
        fputs(wide ? "ull" : "u", out);
        return p;
    }
    if (*p == '%') p++;
    if (*p == '-' || isdigit((unsigned char)*p)) {
        char *end;
        long long v = strtoll(p, &end, 0);
        fprintf(out, v < 0 ? "(uint32_t)%lld" : "%lldu", v);
        return end;
    }
    for (; isalnum((unsigned char)*p) || *p == '_'; p++) fputc(*p, out);
    return p;
}

static void twin_statement(FILE *out, const char *p, unsigned *loads, unsigned *stores)
{
    char name[64];
    size_t n = 0;
    while (*p == '\t' || *p == ' ') p++;
    if (*p == '@') {
        int inverted = p[1] == '!';
        fprintf(out, "  if (%s", inverted ? "!" : "");
        p = twin_operand(out, p + 1 + inverted);
        fputs(") ", out);
        p++;
    } else
        fputs("  ", out);
    while (*p && *p != ' ' && *p != ';' && n < sizeof name - 1) name[n++] = *p++;
    name[n] = 0;
    if (!strcmp(name, "bra")) {
        fprintf(out, "goto L%d;\n", atoi(p + 3));
        return;
    }
    if (!strcmp(name, "ret")) {
        fputs("goto end;\n", out);
        return;
    }
    if (!strcmp(name, "mad.wide.u32") && isdigit((unsigned char)strchr(strchr(p, ',') + 1, ',')[2])) {
        p = twin_operand(out, p); /* the address of an element: its index, for the tables */
        fputs(" = ", out);
        twin_operand(out, p);
        fputs(";\n", out);
        return;
    }
    if (!strcmp(name, "mov.b64") && isalpha((unsigned char)strchr(p, ',')[2])) { /* a table's address */
        fputs("(void)0;\n", out);
        return;
    }
    if (!strcmp(name, "ld.const.u64")) {
        p = twin_operand(out, p);
        fputs(" = twin_table[", out);
        twin_operand(out, strchr(p, '[') + 1);
        fputs("];\n", out);
        return;
    }
    if (!strcmp(name, "{")) { /* { .param ... st.param [$a0], x; ... call.uni ($r), name, ($a0); ld.param r, [$r]; } */
        const char *call = strstr(p, "call.uni"), *to = strstr(call, "ld.param"), *store = p;
        twin_operand(out, strchr(to, ' '));
        fputs(" = ", out);
        twin_operand(out, strchr(call, ',') + 1);
        for (n = 0; (store = strstr(store, "st.param")) != NULL && store < call; n++) {
            store = strchr(store, ',');
            fputs(n ? ", " : "(", out);
            twin_operand(out, store);
        }
        fputs(");\n", out);
        return;
    }
    if (!strncmp(name, "ld.param", 8)) {
        twin_operand(out, p);
        fputs(" = ", out);
        twin_operand(out, strchr(p, '[') + 1);
        fputs(";\n", out);
        return;
    }
    if (!strncmp(name, "st.param", 8)) {
        fputs("result = ", out);
        twin_operand(out, strchr(p, ']') + 1);
        fputs(";\n", out);
        return;
    }
    if (!strncmp(name, "ld.global", 9)) {
        twin_operand(out, p);
        fprintf(out, " = %s(x[%u]);\n", strstr(name, "64") ? "" : "(uint32_t)", (*loads)++);
        return;
    }
    if (!strncmp(name, "st.global", 9)) {
        fprintf(out, "y[%u] = ", (*stores)++);
        twin_operand(out, strchr(p, ']') + 1);
        fputs(";\n", out);
        return;
    }
    if (!strcmp(name, "mov.b64") && memchr(p, '{', strcspn(p, ";"))) {
        const char *brace = strchr(p, '{'), *comma = strchr(p, ',');
        if (brace < comma) { /* {low, high}, whole */
            const char *whole = strchr(p, '}') + 1;
            twin_operand(out, brace + 1);
            fputs(" = (uint32_t)", out);
            twin_operand(out, whole);
            fputs(", ", out);
            twin_operand(out, comma);
            fputs(" = (uint32_t)(", out);
            twin_operand(out, whole);
            fputs(" >> 32);\n", out);
        } else {
            twin_operand(out, p);
            fputs(" = (uint64_t)", out);
            p = twin_operand(out, brace + 1);
            fputs(" | (uint64_t)", out);
            twin_operand(out, p);
            fputs(" << 32;\n", out);
        }
        return;
    }
    p = twin_operand(out, p);
    fputs(" = ", out);
    for (n = 0; name[n]; n++) fputc(name[n] == '.' ? '_' : name[n], out);
    for (n = 0; *p && *p != ';'; n++) {
        fputs(n ? ", " : "(", out);
        p = twin_operand(out, p);
    }
    fputs(");\n", out);
}

/* The body of a kernel, from its first load on, or of a function; behind it the label "end". */
static void twin_body(FILE *out, const char *line, int function)
{
    unsigned registers, loads = 0, stores = 0, body = 0;
    const char *end;
    char kind;
    for (; line && *line && *line != '}'; line = end + 1) {
        end = strchr(line, '\n');
        while (*line == '\t') line++;
        if (sscanf(line, ".reg .%*[a-z0-9] %%%c<%u>", &kind, &registers) == 2) {
            for (unsigned i = 0; i < registers; i++)
                fprintf(out, "  %s %c%u;\n", kind == 'p' ? "int" : kind == 'd' ? "uint64_t" : "uint32_t", kind, i);
            continue;
        }
        if (!strncmp(line, function ? "ld.param" : "ld.global", function ? 8 : 9)) body = 1;
        if (*line == '$')
            fprintf(out, "L%d:;\n", atoi(line + 2));
        else if (body)
            twin_statement(out, line, &loads, &stores);
    }
    fputs("  goto end;\nend:;\n", out);
}

/* static void twin(const uint64_t *x, uint64_t *y). The functions of the module have the name of the twin and
 * theirs; calls reach them by a macro. */
static void twin_write(FILE *out, const char *text, const char *name)
{
    const char *table = strstr(text, ".const"), *at;
    if (table) {
        const char *from = strchr(table, '{'), *to = strchr(table, '}');
        fprintf(out, "#define twin_table %s_table\nstatic const uint64_t twin_table[] = %.*s};\n", name,
                (int)(to - from), from);
    }
    for (at = text; (at = strstr(at, "\n.func")) != NULL; at++) {
        const char *head = strchr(at, ')') + 2, *open = strchr(head, '('), *p = open, *close = strchr(head, ')');
        int wide = strstr(at, ".b64") && strstr(at, ".b64") < head;
        if (close[1] == ';') continue; /* a declaration */
        fprintf(out, "#define %.*s %s_%.*s\nstatic inline %s %s_%.*s", (int)(open - head), head, name,
                (int)(open - head), head, wide ? "uint64_t" : "uint32_t", name, (int)(open - head), head);
        while (p < close) { /* .param .b32 x */
            fputs(p == open ? "(" : ", ", out);
            p = strstr(p, ".b") + 2;
            fputs(atoi(p) == 64 ? "uint64_t " : "uint32_t ", out);
            p = twin_operand(out, strchr(p, ' '));
        }
        fprintf(out, ") {\n  %s result;\n", wide ? "uint64_t" : "uint32_t");
        twin_body(out, strstr(close, ".reg"), 1);
        fputs("  return result;\n}\n", out);
    }
    fprintf(out, "static inline __attribute__((always_inline)) void %s(const uint64_t *x, uint64_t *y) {\n", name);
    twin_body(out, strstr(strstr(text, ".entry"), ".reg"), 0);
    fputs("}\n", out);
    if (table) fputs("#undef twin_table\n", out);
    for (at = text; (at = strstr(at, "\n.func")) != NULL; at++) {
        const char *head = strchr(at, ')') + 2;
        if (strchr(head, ')')[1] != ';') fprintf(out, "#undef %.*s\n", (int)(strchr(head, '(') - head), head);
    }
}
#endif
