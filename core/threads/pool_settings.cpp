// Settings that libraries read from the environment, once, in their own constructors: the time for which threads of the
// OpenMP pool spin before they sleep, and the number of threads. There is no function for either that could be called
// soon enough.
//
// libgomp's default is to spin for several milliseconds, which starves every other thread that wants the processor
// between two pieces of work. OpenBLAS takes 128 MB of addresses for each thread, and where a limit (ulimit -v) leaves
// too few, it asks for them for ever: with fewer it gets one thread, and where there is not even room for that, the
// program says so and ends.
//
// Those constructors run before any of ours, and a variable that is set here would come too late. Only the functions
// that the program lists as .preinit_array run earlier, before the C library has taken over the environment: they are
// handed its array, which cannot grow, but whose entries can be replaced. So entries that no library reads while it
// starts are lent to the settings and restored by a constructor of the program, before main.
//
// A GOMP_SPINCOUNT or OMP_WAIT_POLICY that is set already is left alone.
#include "core/threads/pool_settings.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/address_space.h"

namespace lunaria {

namespace {

// A pause is about 40 to 140 cycles: a few milliseconds, from one operator to the next. With a tenth of that the
// threads of one convolution slept between its steps and were woken on one and the same core, which doubled its time.
char spin_setting[] = "GOMP_SPINCOUNT=100000";
char one_thread[] = "OMP_NUM_THREADS=1";

struct Loan {
    char** entry;
    char* value;
};
Loan loans[2];
int loan_count = 0;
bool spins_by_loan = false;

// Uses only system calls, no library functions: not even those of a sanitizer are ready yet.
__attribute__((no_sanitize("address", "undefined", "thread"))) bool is_variable(const char* entry, const char* name) {
    while (*name && *entry == *name) ++entry, ++name;
    return *name == 0 && *entry == '=';
}

__attribute__((no_sanitize("address", "undefined", "thread"))) char** entry_of(char** environment, const char* name) {
    for (char** e = environment; e && *e; ++e)
        if (is_variable(*e, name)) return e;
    return nullptr;
}

// Puts the setting in the place of an entry, preferably one of its own name.
__attribute__((no_sanitize("address", "undefined", "thread"))) bool lend(char** environment, char** own,
                                                                         char* setting) {
    constexpr const char* kIdle[] = {"_",         "OLDPWD",  "SHLVL", "PWD",      "TERM",
                                     "LS_COLORS", "LOGNAME", "USER",  "HOSTNAME", "HOME"};
    for (const char* name : kIdle) {
        if (own) break;
        own = entry_of(environment, name);
    }
    if (!own) return false;
    loans[loan_count++] = {own, *own};
    *own = setting;
    return true;
}

__attribute__((no_sanitize("address", "undefined", "thread"))) bool has_room(unsigned long bytes) {
    const long place = syscall(SYS_mmap, 0L, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1L, 0L);
    if (place == -1) return false;
    syscall(SYS_munmap, place, bytes);
    return true;
}

// The processors that this process may run on, at least 1.
__attribute__((no_sanitize("address", "undefined", "thread"))) unsigned long processors() {
    unsigned long masks[128];
    const long bytes = syscall(SYS_sched_getaffinity, 0L, sizeof masks, masks);
    unsigned long count = 0;
    for (long i = 0; i < bytes / static_cast<long>(sizeof masks[0]); ++i)
        for (unsigned long rest = masks[i]; rest; rest &= rest - 1) ++count;
    return count > 0 ? count : 1;
}

__attribute__((no_sanitize("address", "undefined", "thread"))) void fit_threads_into_memory(char** environment) {
    // The size of the buffers, and of the rest that a program takes before it computes anything.
    constexpr unsigned long kBuffer = 129ul << 20, kRest = 16ul << 20;
    unsigned long threads = processors();
    char** const own = entry_of(environment, "OMP_NUM_THREADS");
    if (own) {
        unsigned long asked = 0;
        for (const char* c = *own + sizeof "OMP_NUM_THREADS"; *c >= '0' && *c <= '9'; ++c)
            asked = asked * 10 + static_cast<unsigned long>(*c - '0');
        if (asked > 0 && asked < threads) threads = asked;
    }
    if (has_room(threads * kBuffer + kRest)) return;
    if (!has_room(kBuffer + kRest)) {
        constexpr char kMessage[] =
            "lunaria: there is too little memory to begin: 145 MB of addresses are needed beside the program itself; "
            "raise the limit (ulimit -v)\n";
        syscall(SYS_write, 2L, kMessage, sizeof kMessage - 1);
        syscall(SYS_exit_group, 1L);
    }
    lend(environment, own, one_thread);
}

__attribute__((no_sanitize("address", "undefined", "thread"))) void lend_entries(int, char**, char** environment) {
    if (!entry_of(environment, "GOMP_SPINCOUNT") && !entry_of(environment, "OMP_WAIT_POLICY"))
        spins_by_loan = lend(environment, nullptr, spin_setting);
    fit_threads_into_memory(environment);
}

[[gnu::constructor]] void restore_entries() {
    while (loan_count > 0) {
        --loan_count;
        *loans[loan_count].entry = loans[loan_count].value;
    }
}

// Where addresses are limited, all threads share one heap: the C library would reserve 64 MB of them for each thread
// that allocates, whenever it first does.
[[gnu::constructor]] void share_one_heap() {
#ifdef M_ARENA_MAX
    if (address_space_is_limited()) mallopt(M_ARENA_MAX, 1);
#endif
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const lend_entries_first)(int, char**, char**) = lend_entries;

}  // namespace

bool pool_spin_is_ours() { return spins_by_loan; }

}  // namespace lunaria
