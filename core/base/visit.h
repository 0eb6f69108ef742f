// Work that others want done on the thread that runs programs, while a program runs: the requests of a notebook's
// second shell, for instance. Programs offer safe points for it, at which they hold nothing that another program could
// disturb: Lua between two instructions, the virtual machine, some operators between blocks of work.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/interrupt.h"

namespace lunaria {

inline std::atomic<bool> visit_flag{false};

// From any thread and from signal handlers.
inline void request_visit() noexcept { visit_flag.store(true); }
inline bool visit_requested() noexcept { return visit_flag.load(std::memory_order_relaxed); }

// Who does such work, on the thread that calls this; empty: nobody. What it throws goes to the program that it visits.
void set_visitor(std::function<void()> visitor);

// Has it done if there is some. Does nothing on other threads and within parallel loops.
void visit();

// For operators, where they may be interrupted and keep nothing that an operator of another program could change.
inline void safe_point() {
    poll_interrupt();
    if (visit_requested()) [[unlikely]]
        visit();
}

}  // namespace lunaria
