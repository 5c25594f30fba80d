/* guard.c - guards pinned memory that a queued copy from the device will write: the host must not access it yet.
 *
 * While such a copy waits, the pages that it covers are inaccessible. A host that accesses one is given the
 * page with its present contents, and a finding. Pages with other bytes of the allocation stay accessible, and
 * all are accessible while the driver works. A host function may access them: usually the copy comes
 * after it in its stream. */
#include "driver.h"
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARDS = 64 };
typedef struct guard {
    _Atomic uintptr_t lo, hi;          /* hi = 0: the entry is free */
    _Atomic uintptr_t touched;         /* the address accessed */
    bool up;
    uint64_t base, size;
    char label[160], maker[96];
} guard;

static guard guards[GUARDS];
static unsigned used;
static bool lowered, installed;
static struct sigaction before;
_Thread_local bool sim_in_driver;

static void protect(const guard *g, int how)
{ (void)mprotect((void *)g->lo, (size_t)(g->hi - g->lo), how); }

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    bool ours = false;
    for (int k = 0; k < GUARDS; k++) {
        guard *g = &guards[k];
        uintptr_t none = 0;
        if (at < atomic_load(&g->lo) || at >= atomic_load(&g->hi)) continue;
        ours = true;
        protect(g, PROT_READ | PROT_WRITE);
        if (!sim_in_driver && !sim_in_host_function) (void)atomic_compare_exchange_strong(&g->touched, &none, at);
    }
    if (ours) return;
    if (before.sa_flags & SA_SIGINFO) before.sa_sigaction(signal_number, info, context);
    else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
        (void)sigaction(SIGSEGV, &before, NULL);
    else before.sa_handler(signal_number);
}

static void install(void)
{
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_sigaction = on_fault;
    a.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&a.sa_mask);
    installed = !sigaction(SIGSEGV, &a, &before);
}

void sim_guards_stop(void)
{
    struct sigaction now;
    if (installed && !sigaction(SIGSEGV, NULL, &now) && now.sa_sigaction == on_fault)
        (void)sigaction(SIGSEGV, &before, NULL);
    installed = false;
}

/* Guards the pages inside [lo, hi) of the allocation until the work is done; 0: not guarded. */
int sim_guard_raise(const sim_work *w, const sim_allocation *a, uint64_t lo, uint64_t hi)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = a->base + a->size;
    uint64_t first = lo == a->base ? lo : (lo + page - 1) / page * page;
    uint64_t last = hi == end ? (hi + page - 1) / page * page : hi / page * page;
    int k = 0;
    if (first >= last) return 0;
    while (k < GUARDS && guards[k].hi) k++;
    if (k == GUARDS) return 0;
    if (!installed) install();
    if (!installed) return 0;
    guard *g = &guards[k];
    sim_label(w, g->label, sizeof g->label);
    snprintf(g->maker, sizeof g->maker, "%s, call %llu", sim_entry_name(a->entry),
             (unsigned long long)a->call);
    g->base = a->base;
    g->size = a->size;
    atomic_store(&g->touched, 0);
    atomic_store(&g->lo, (uintptr_t)first);
    atomic_store(&g->hi, (uintptr_t)last);
    g->up = false;
    used++;
    lowered = true;                                           /* it takes effect when the call returns */
    return k + 1;
}

void sim_guard_drop(int number)
{
    guard *g = &guards[number - 1];
    sim_guards_down();
    uintptr_t at = atomic_load(&g->touched);
    if (at)
        sim_report_host("host-race",
                        "the host touched byte %llu of the %llu-byte pinned allocation at 0x%llx (%s) "
                        "before %s had written it; nothing had waited for that",
                        (unsigned long long)(at - g->base), (unsigned long long)g->size,
                        (unsigned long long)g->base, g->maker, g->label);
    atomic_store(&g->hi, 0);
    atomic_store(&g->lo, 0);
    used--;
}

/* The driver is about to access memory. */
void sim_guards_down(void)
{
    if (!used) return;
    for (int k = 0; k < GUARDS; k++) {
        if (!guards[k].hi || !guards[k].up) continue;
        protect(&guards[k], PROT_READ | PROT_WRITE);
        guards[k].up = false;
    }
    lowered = true;
}

/* The host continues. */
void sim_guards_up(void)
{
    if (!used || !lowered) return;
    for (int k = 0; k < GUARDS; k++) {
        if (!guards[k].hi || guards[k].up || atomic_load(&guards[k].touched)) continue;
        protect(&guards[k], PROT_NONE);
        guards[k].up = true;
    }
    lowered = false;
}
