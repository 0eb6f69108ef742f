// Work in the order in which it is asked for, done by a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace lunaria {

class WorkQueue {
  public:
    WorkQueue();
    ~WorkQueue();  // waits until all work is done
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    // Adds work and returns its number. Its exception is kept for the next call that waits, together with `place`.
    uint64_t add(std::function<void()> work, std::string place = {});
    // Waits until all work up to that number is done; throws what failed since the last call.
    void wait(uint64_t number);
    uint64_t last() const;

  private:
    struct Item {
        std::function<void()> work;
        std::string place;
    };
    static std::exception_ptr failure_of(const Item& item);
    void run();

    mutable std::mutex mutex_;
    std::condition_variable added_, done_;
    std::deque<Item> items_;
    uint64_t given_ = 0, finished_ = 0;
    std::exception_ptr failure_;
    bool ends_ = false;
    std::thread thread_;  // last: it uses the other members
};

}  // namespace lunaria
