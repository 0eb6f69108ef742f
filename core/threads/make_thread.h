// Threads beside that of the program.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace lunaria {

// A thread that runs f and takes no signals but those of its own instructions (a mapped file that became shorter):
// other signals are for the threads that wait for them. Where the system refuses a thread, throws an error in the name
// of `where`. What f throws ends the process: work that can fail keeps its error for the thread that waits for it.
template <class F>
std::thread make_thread(std::string_view where, F&& f) {
    struct Mask {
        Mask() {
            sigset_t others;
            sigfillset(&others);
            for (const int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&others, own);
            pthread_sigmask(SIG_SETMASK, &others, &before);
        }
        ~Mask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
        sigset_t before;
    };
    try {
        const Mask mask;
        return std::thread(std::forward<F>(f));
    } catch (const std::system_error& e) {
        throw state_error(where, "the system gives no thread for it: " + e.code().message())
            .hint("the limit of processes (ulimit -u) or of memory (ulimit -v) is reached; raise it");
    }
}

}  // namespace lunaria
