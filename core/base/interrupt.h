// Ctrl-C and kernel interrupts. The flag is set from a signal handler or another thread; operators look at it before
// they start, long kernels between blocks of work.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

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

// Calls f(begin, end) for ranges that together cover 0 .. count, with a look at an interrupt between them.
template <class F>
void in_ranges(int64_t count, int64_t range, F f) {
    for (int64_t begin = 0; begin < count; begin += range) {
        if (begin > 0) poll_interrupt();
        f(begin, std::min(count, begin + range));
    }
}

// For loops whose elements take some nanoseconds each, or are fetched from anywhere in memory.
inline constexpr int64_t kElementsBetweenLooks = 1 << 17;

// Calls f(i) for 0 .. count - 1, with looks at an interrupt.
template <class F>
void for_elements(int64_t count, F f) {
    in_ranges(count, kElementsBetweenLooks, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) f(i);
    });
}

// A comparison that checks for an interrupt now and then, for the algorithms of the standard library.
template <class Less>
class InterruptibleLess {
  public:
    explicit InterruptibleLess(Less less) : less_(less) {}
    template <class A, class B>
    bool operator()(const A& a, const B& b) {
        // Algorithms copy the comparison; each copy counts for itself and lives long enough for that.
        if (++count_ % kComparisons == 0) poll_interrupt();
        return less_(a, b);
    }

  private:
    static constexpr uint32_t kComparisons = 1 << 16;
    Less less_;
    uint32_t count_ = 0;
};

}  // namespace lunaria
