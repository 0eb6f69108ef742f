// The threads that make rows. There is one set for the whole process, no more than operators may use; they come when
// the first job begins and go when none has been there for a while. What they call runs on one thread each.
#pragma once

#include <chrono>
#include <cstdint>

namespace lunaria::data {

// Something that threads can go on with. Begun with start, and ended with stop before its members go.
class Job {
  public:
    virtual ~Job() = default;
    // Does one piece of work; false where there is none now. Called by several threads at once.
    virtual bool work() = 0;
    // How long after the last piece of work there will be some again: a thread then looks without being woken.
    virtual std::chrono::nanoseconds pause() const { return std::chrono::nanoseconds::max(); }

  protected:
    // At most `threads` threads at once. Without threads, which the system may refuse, the one who waits has to work.
    void start(int threads);
    // There may be work again.
    void wake();
    // Waits for the threads that are in work.
    void stop() noexcept;

  private:
    friend class Pool;
    // Under the pool's lock.
    int most_ = 0, inside_ = 0;
    bool started_ = false, idle_ = false;  // idle: had no work and was not woken since
    uint64_t wakes_ = 0;
    std::chrono::steady_clock::time_point due_;  // of an idle job: when a thread looks again
    int misses_ = 0;                             // looks in a row that found no work
};

// Threads of the pool that there are now, for tests.
int pool_threads();

}  // namespace lunaria::data
