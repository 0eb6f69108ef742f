#include "core/threads/work_queue.h"

#include <omp.h>

#include <utility>

#include "core/base/error.h"
#include "core/threads/lone_thread.h"
#include "core/threads/make_thread.h"

namespace lunaria {

WorkQueue::WorkQueue() : thread_(make_thread("device", [this] { run(); })) {}

WorkQueue::~WorkQueue() {
    {
        std::lock_guard lock(mutex_);
        ends_ = true;
    }
    added_.notify_all();
    thread_.join();
}

uint64_t WorkQueue::add(std::function<void()> work, std::string place) {
    uint64_t number = 0;
    {
        std::lock_guard lock(mutex_);
        items_.push_back({std::move(work), std::move(place)});
        number = ++given_;
    }
    added_.notify_one();
    return number;
}

void WorkQueue::wait(uint64_t number) {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return finished_ >= number; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

uint64_t WorkQueue::last() const {
    std::lock_guard lock(mutex_);
    return given_;
}

// Does the work; what it throws, with the place of an error.
std::exception_ptr WorkQueue::failure_of(const Item& item) {
    try {
        try {
            item.work();
        } catch (const Error& e) {
            throw item.place.empty() ? e : e.at(item.place);
        }
    } catch (...) {
        return std::current_exception();
    }
    return nullptr;
}

void WorkQueue::run() {
    const LoneThread alone;
    omp_set_num_threads(1);  // for this thread, in case a library uses OpenMP
    std::unique_lock lock(mutex_);
    for (;;) {
        added_.wait(lock, [&] { return ends_ || !items_.empty(); });
        if (items_.empty()) return;
        Item item = std::move(items_.front());
        items_.pop_front();
        lock.unlock();
        std::exception_ptr failure = failure_of(item);
        item = {};
        lock.lock();
        ++finished_;
        if (failure && !failure_) failure_ = std::move(failure);
        done_.notify_all();
    }
}

}  // namespace lunaria
