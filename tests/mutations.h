/* mutations.h - takes one synchronising instruction out of a text of PTX, to see whether tests notice. */
#ifndef MUTATIONS_H
#define MUTATIONS_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Waits whose result is a predicate become true at once; the others vanish. */
static const char *const synchronising[] = {
    "mbarrier.try_wait", "mbarrier.test_wait", "mbarrier.init", "mbarrier.arrive", "mbarrier.expect_tx", "fence.",
    "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "tcgen05.fence", "tcgen05.wait", "tcgen05.commit",
    "bar.sync", "bar.warp.sync", "barrier.cluster", "setmaxnreg",
    "cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "cp.async.wait", "cp.async.commit",
    "cp.async.mbarrier"};

/* The text without the other entries. to: as large as text. */
static inline void one_entry(const char *text, const char *name, char *to)
{
    static const char head[] = ".visible .entry ";
    const char *entry, *end, *next;
    size_t length = strlen(name);
    for (; (entry = strstr(text, head)) != NULL; text = next) {
        end = strstr(entry, "\n}");
        next = end ? end + 2 : entry + strlen(entry);
        if (!strncmp(entry + strlen(head), name, length) && entry[strlen(head) + length] == '(') entry = next;
        memcpy(to, text, (size_t)(entry - text));
        to += entry - text;
    }
    strcpy(to, text);
}

/* The text without synchronising instruction `n`, counted from 0, to `to`, which has 64 bytes more than text; what:
   the line that was there. 0: there is none. */
static inline int mutate(const char *text, unsigned n, char *to, char what[160])
{
    const char *line, *next, *op, *end;
    size_t i;
    for (line = text; *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) next++;
        op = line + strspn(line, " \t");
        if (*op == '@') op += strcspn(op, " "), op += strspn(op, " ");
        for (i = 0; i < sizeof synchronising / sizeof *synchronising; i++)
            if (!strncmp(op, synchronising[i], strlen(synchronising[i]))) break;
        if (i == sizeof synchronising / sizeof *synchronising || n-- > 0) continue;
        end = line + strcspn(line, "\n");
        snprintf(what, 160, "%.*s", (int)(end - line < 150 ? end - line : 150), line + strspn(line, " \t"));
        memcpy(to, text, (size_t)(line - text));
        to += line - text;
        if (i < 2) {
            op = strchr(op, ' ') + 1;
            to += sprintf(to, "\tsetp.eq.u32 %.*s, 0, 0;\n", (int)strcspn(op, ","), op);
        }
        strcpy(to, next);
        return 1;
    }
    return 0;
}

#endif
