/* strict.c - rules of ptxas beyond modifiers, types and kinds of operands: modifiers that belong to the name and
 * must stand in order, the order of two state spaces, `_` and special registers as operands. */
#include "sim.h"
#include "lower.h"

/* Words that make up a name must follow each other, before all other words. An instruction's name is the longest of
 * these whose words it all has. */
static const char *const names[] = {
    "bar.cta", "bar.cta.red", "bar.cta.sync", "bar.cta.arrive", "bar.red", "bar.warp.sync", "barrier.cta",
    "barrier.cluster.arrive", "barrier.cluster.wait", "cp.async", "cp.async.bulk",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.prefetch", "cp.async.bulk.prefetch.tensor", "cp.async.bulk.tensor",
    "cp.async.bulk.wait_group", "cp.async.commit_group", "cp.async.mbarrier.arrive", "cp.async.wait_all",
    "cp.async.wait_group", "cp.reduce.async.bulk", "cp.reduce.async.bulk.tensor", "createpolicy.cvt",
    "createpolicy.fractional", "createpolicy.range", "cvt.pack", "cvta.to", "div.full", "fence.proxy",
    "mad.hi", "mad.lo", "mad.wide", "mad24.hi", "mad24.lo", "madc.hi", "madc.lo",
    "mbarrier.arrive", "mbarrier.arrive.expect_tx", "mbarrier.arrive_drop", "mbarrier.arrive_drop.expect_tx",
    "mbarrier.complete_tx", "mbarrier.expect_tx", "mbarrier.init", "mbarrier.inval",
    "mbarrier.pending_count", "mbarrier.test_wait", "mbarrier.test_wait.parity", "mbarrier.try_wait",
    "mbarrier.try_wait.parity", "mul.hi", "mul.lo", "mul.wide", "mul24.hi", "mul24.lo",
    "red.async", "setmaxnreg.dec", "setmaxnreg.inc", "shf.l", "shf.r", "st.async",
    "tensormap.cp_fenceproxy", "tensormap.replace",
    "wgmma.commit_group", "wgmma.fence", "wgmma.mma_async", "wgmma.wait_group", "wmma.load",
    "wmma.mma", "wmma.store" };

static const char *next_word(const char *p, size_t *n)
{
    if (*p == '.') p++;
    const char *end = p;
    while (*end && *end != '.') end++;
    *n = (size_t)(end - p);
    return p;
}

/* The position of `word` among the words of `text`, from 1; 0: it is not there. */
static uint32_t place_of(const char *text, const char *word, size_t length)
{
    size_t n;
    uint32_t at = 1;
    for (const char *p = next_word(text, &n); n; p = next_word(p + n, &n), at++)
        if (n == length && !strncmp(p, word, n)) return at;
    return 0;
}

static uint32_t place(const char *text, const char *word) { return place_of(text, word, strlen(word)); }

/* The number of words in the name; 0: the text lacks some. *misplaced: the first that is not at its position,
 * or NULL. */
static uint32_t words_of(const char *name, const char *shown, const char **misplaced, size_t *misplaced_n)
{
    size_t n;
    uint32_t at = 1;
    *misplaced = NULL;
    for (const char *p = next_word(name, &n); n; p = next_word(p + n, &n), at++) {
        uint32_t there = place_of(shown, p, n);
        if (!there) return 0;
        if (there != at && !*misplaced) { *misplaced = p; *misplaced_n = n; }
    }
    return at - 1;
}

static bool spaces_in_order(const char *shown)
{
    uint32_t global = place(shown, "global"), cta = place(shown, "shared::cta"),
             cluster = place(shown, "shared::cluster"), shared = place(shown, "shared");
    uint32_t in_shared = cta ? cta : cluster ? cluster : shared;
    if (cta && cluster) return cluster < cta;
    if (!global || !in_shared) return true;
    bool to_global = place(shown, "bulk_group") || place(shown, "cp_fenceproxy");
    return to_global ? global < in_shared : in_shared < global;
}

bool sim_words_in_order(sim_module *m, uint32_t line, const char *shown)
{
    size_t first, n, best_n = 0;
    const char *opcode = next_word(shown, &first), *wrong, *best_wrong = NULL;
    uint32_t best = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (strncmp(names[k], opcode, first) || names[k][first] != '.') continue;
        uint32_t words = words_of(names[k], shown, &wrong, &n);
        if (words <= best) continue;
        best = words;
        best_wrong = wrong;
        best_n = n;
    }
    if (best_wrong) {
        sim_error(m, line, "Unknown modifier '.%.*s' at this place of '%s'", (int)best_n, best_wrong, shown);
        return false;
    }
    if (!strncmp(shown, "cp.", 3) || !strncmp(shown, "tensormap.", 10)) {
        if (spaces_in_order(shown)) return true;
        sim_error(m, line, "State space incorrect for instruction '%s' (the target's comes first)", shown);
        return false;
    }
    return true;
}

/* --- operands --------------------------------------------------------------------------------- */

static bool integer(uint8_t type) { return sim_types[type].kind == K_UINT || sim_types[type].kind == K_SINT; }

bool sim_special_allowed(const sim_statement *s)
{
    if (!strcmp(s->opcode, "mov")) return true;
    return !strcmp(s->form->name, "cvt") && s->type_count == 2 && integer(s->types[0])
           && integer(s->types[1]);
}

/* Whether `_` is allowed as result: `index` is that of the operand, t the type. */
bool sim_sink_allowed(const sim_statement *s, uint32_t index, sim_type t)
{
    static const char *const fine[] = { "atom", "call", "elect", "lop3", "setp" };
    for (size_t k = 0; k < sizeof fine / sizeof *fine; k++) if (!strcmp(s->opcode, fine[k])) return true;
    if (!strncmp(s->form->name, "mbarrier.arrive", 15)) return true;
    if (!strncmp(s->form->name, "match.all", 9)) return true;
    uint8_t kind = index < s->operand_count ? s->operands[index].kind : O_NONE;
    return kind == O_VECTOR || (kind == O_PAIR && t == T_PRED);
}

/* Checks position and length of a bit field, if they are constants. */
bool sim_field_in_range(sim_module *m, const sim_statement *s)
{
    bool extract = !strcmp(s->opcode, "bfe");
    if (!extract && strcmp(s->opcode, "bfi")) return true;
    for (uint32_t k = extract ? 2 : 3; k < s->operand_count; k++) {
        const sim_operand *o = &s->operands[k];
        if (o->kind != O_INT || (o->value >= 0 && o->value <= 255)) continue;
        sim_error(m, s->line, "Argument %u of instruction '%s': value '%lld' out of range, expected to be in "
                  "range [0..255]", k, s->opcode, (long long)o->value);
        return false;
    }
    return true;
}
