// The processors on which threads of the OpenMP pool wake up.
//
// A sleeping thread is woken by the thread that has work for it, and the system likes to put it on the waker's
// processor: on a virtual machine, whose idle processors look busy to it, nearly always. The two then take turns, a few
// milliseconds each, at work that takes microseconds, until the system moves one of them. So each sleeper is bound to a
// processor of its own for the moment of waking, and free again as soon as it has done its work.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <vector>

namespace lunaria {

// The placement for one thread that gives out work, and the pool that OpenMP keeps for it.
class PoolPlacement {
  public:
    // That of the calling thread.
    static PoolPlacement& own();

    // Called by the thread that gives out work, before `threads` threads including itself start ...
    void before(int threads) {
        workers_.resize(static_cast<size_t>(threads));
        if (is_asleep()) bind();
    }
    // ... by each of the other threads, with its number, while it works ...
    void note(int worker) noexcept;
    // ... and by the first thread again when all are done.
    void after() {
        last_use_ = Clock::now();
        release();
    }

    // Whether the pool sleeps, or should be woken anew because two of its threads run on one processor.
    bool is_asleep() const {
        const Clock::time_point now = Clock::now();
        return now - last_use_ > kAwake || (crowded_ && now - last_bound_ > kAwake);
    }
    // Notes that a library has shared out work itself.
    void used() { last_use_ = Clock::now(); }

  private:
    using Clock = std::chrono::steady_clock;
    // Less than the time for which threads of the pool spin before they sleep.
    static constexpr std::chrono::milliseconds kAwake{1};

    struct Worker {
        pid_t id = 0;  // 0: not yet known
        int processor = -1;
        bool bound = false;
        cpu_set_t allowed;  // as before it was bound
    };

    void bind();
    void release();

    std::vector<Worker> workers_;  // by number; the first one is the thread itself
    // On another cache line than the members that workers read: it is written at each use.
    alignas(64) bool crowded_ = false;  // two threads were last seen on one processor, and another one is free
    bool too_many_ = false;             // more threads than processors
    Clock::time_point last_use_, last_bound_;
};

}  // namespace lunaria
