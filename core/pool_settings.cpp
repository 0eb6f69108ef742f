// How long threads of the OpenMP pool spin before they sleep.
//
// libgomp takes it from the environment, once, in its own constructor; there is no call for it. Its default is to spin
// for several milliseconds, which starves whoever else wants the processor between two pieces of work. That
// constructor runs before any of ours, and a variable that is set here would come too late. Only the functions that the
// program lists as .preinit_array run earlier, before the C library has taken over the environment: they are handed its
// array, which cannot grow, but whose entries can be replaced. So one entry that no library reads while it starts is
// lent to the setting and restored by a constructor of the program, before main.
//
// Who sets GOMP_SPINCOUNT or OMP_WAIT_POLICY decides for himself.
#include "core/pool_settings.h"

namespace lunaria {

namespace {

// A pause is about 40 to 140 cycles: a few milliseconds, from one operator to the next. With a tenth of that the
// threads of one convolution slept between its steps and were woken on one and the same core, which doubled its time.
char spin_setting[] = "GOMP_SPINCOUNT=100000";

char** lent_entry = nullptr;
char* lent_value = nullptr;

// Without library functions: not even those of a sanitizer are ready yet.
__attribute__((no_sanitize("address", "undefined", "thread"))) bool is_variable(const char* entry, const char* name) {
    while (*name && *entry == *name) ++entry, ++name;
    return *name == 0 && *entry == '=';
}

__attribute__((no_sanitize("address", "undefined", "thread"))) void lend_entry(int, char**, char** environment) {
    constexpr const char* kSettled[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"};
    constexpr const char* kIdle[] = {"_",         "OLDPWD",  "SHLVL", "PWD",      "TERM",
                                     "LS_COLORS", "LOGNAME", "USER",  "HOSTNAME", "HOME"};
    for (char** e = environment; e && *e; ++e)
        for (const char* name : kSettled)
            if (is_variable(*e, name)) return;
    for (const char* name : kIdle)
        for (char** e = environment; e && *e; ++e) {
            if (!is_variable(*e, name)) continue;
            lent_entry = e;
            lent_value = *e;
            *e = spin_setting;
            return;
        }
}

[[gnu::constructor]] void restore_entry() {
    if (lent_entry) *lent_entry = lent_value;
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const lend_entry_first)(int, char**, char**) = lend_entry;

}  // namespace

bool pool_spin_is_ours() { return lent_entry != nullptr; }

}  // namespace lunaria
