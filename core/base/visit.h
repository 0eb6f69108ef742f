// Requests from other threads that the thread that runs programs answers while a program runs, those of a notebook's
// second shell for instance. Programs offer safe points for it, at which they hold nothing that another program could
// disturb: Lua between two instructions, the virtual machine, some operators between blocks of work.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/interrupt.h"

namespace lunaria {

inline std::atomic<bool> visit_flag{false};

// Callable from any thread and from signal handlers.
inline void request_visit() noexcept { visit_flag.store(true); }
inline bool visit_requested() noexcept { return visit_flag.load(std::memory_order_relaxed); }

// The function that answers requests on the calling thread; an empty function: requests are left unanswered. Its
// exceptions go to the program at whose safe point it runs.
void set_visitor(std::function<void()> visitor);

// Runs the visitor if there is a request. Does nothing on other threads and within parallel loops.
void visit();

// For operators, at places where they may be interrupted and hold nothing that an operator of another program could
// change.
inline void safe_point() {
    poll_interrupt();
    if (visit_requested()) [[unlikely]]
        visit();
}

}  // namespace lunaria
