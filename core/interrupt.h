// Ctrl-C and kernel interrupts. The flag is set from a signal handler or another thread; operators look at it before
// they start, long kernels between blocks of work.
#pragma once

#include <atomic>

namespace lunaria {

inline std::atomic<bool> interrupt_flag{false};  // the one thing a signal handler may touch

inline void request_interrupt() noexcept { interrupt_flag.store(true, std::memory_order_relaxed); }
inline void clear_interrupt() noexcept { interrupt_flag.store(false, std::memory_order_relaxed); }
inline bool interrupt_requested() noexcept { return interrupt_flag.load(std::memory_order_relaxed); }

[[noreturn]] void throw_interrupted();

// Throws Error(ErrorKind::interrupt) when an interrupt has been asked for. The flag stays set until the session clears
// it, so that a program cannot swallow it by accident.
inline void poll_interrupt() {
    if (interrupt_requested()) [[unlikely]]
        throw_interrupted();
}

}  // namespace lunaria
