// The threads that make rows. There is one set for the whole process, of at most as many threads as operators may use;
// they start with the first job, end when there has been no work for a while, and start again with the next. Operators
// that they call use one thread each.
#pragma once

#include <chrono>
#include <cstdint>

namespace lunaria::data {

// Work that threads of the pool help with. It begins with start and must end with stop before its members are
// destroyed.
class Job {
  public:
    virtual ~Job() = default;
    // Does one piece of work; false if there is none at present. Called by several threads at once.
    virtual bool work() = 0;
    // The time from the last piece of work until there will be more: a thread then looks without being woken.
    virtual std::chrono::nanoseconds pause() const { return std::chrono::nanoseconds::max(); }

  protected:
    // Lets at most `threads` threads work at once. The system may refuse threads; the thread that waits for results
    // must then work itself.
    void start(int threads);
    // Announces that there may be work again.
    void wake();
    // Waits for the threads that are at work.
    void stop() noexcept;

  private:
    friend class Pool;
    // Guarded by the pool's lock.
    int most_ = 0, inside_ = 0;
    bool started_ = false, idle_ = false;  // idle: had no work and was not woken since
    uint64_t wakes_ = 0;
    std::chrono::steady_clock::time_point due_;  // of an idle job: the time when a thread looks again
    int misses_ = 0;                             // looks in a row that found no work
};

// The current number of threads in the pool, for tests.
int pool_threads();

}  // namespace lunaria::data
