/* refuse.c - errors during lowering: the line and the reason why an instruction is refused, in ptxas's words. */
#include "lower.h"

#include <stdarg.h>
#include <stdio.h>

void sim_reject(sim_lower *lw, const char *format, ...)
{
    char text[400];
    va_list a;
    va_start(a, format);
    vsnprintf(text, sizeof text, format, a);
    va_end(a);
    lw->errors++;
    sim_error(lw->m, lw->s->line, "%s", text);
}

void sim_require_version(sim_lower *lw, const char *what, uint32_t version, uint32_t target)
{
    if (lw->m->target < target) sim_reject(lw, "Feature '%s' requires .target sm_%u or higher", what, target);
    if (lw->m->version < version)
        sim_reject(lw, "Feature '%s' requires PTX ISA .version %u.%u or later", what, version / 10,
                   version % 10);
}
