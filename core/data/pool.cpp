#include "core/data/pool.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "core/threads/lone_thread.h"
#include "core/threads/make_thread.h"
#include "core/threads/threads.h"

namespace lunaria::data {

using Time = std::chrono::steady_clock;

constexpr std::chrono::nanoseconds kPatience = std::chrono::milliseconds(200);  // life of a thread without a job
// Life of threads while no job has work: an iterator from which nothing is asked for any more may live on, in a
// compiled program for instance, and is no reason to keep them.
constexpr std::chrono::nanoseconds kIdlePatience = std::chrono::seconds(1);
// The shortest time between two looks for work.
constexpr std::chrono::nanoseconds kLeastPause = std::chrono::microseconds(200);
constexpr int kMostMisses = 9;

class Pool {
  public:
    // Stops the threads before the memory that their jobs use is destroyed, which is older than the pool.
    ~Pool() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
            call_all();
        }
        for (std::thread& thread : gone_) thread.join();
        for (std::thread& thread : threads_) thread.join();
    }
    void start(Job& job, int most) {
        const std::lock_guard lock(mutex_);
        job.most_ = most;
        job.started_ = true;
        job.idle_ = false;
        jobs_.push_back(&job);
        fill_up();
        call_all();
    }
    void wake(Job& job) {
        Sleeper* sleeper = nullptr;
        {
            const std::lock_guard lock(mutex_);
            job.idle_ = false;
            ++job.wakes_;
            if (sleeping_.empty()) return fill_up();
            worked_ = Time::now();
            sleeper = sleeping_.back();
            sleeping_.pop_back();
            sleeper->is_called = true;
        }
        sleeper->called.notify_one();
    }
    void stop(Job& job) noexcept {
        std::unique_lock lock(mutex_);
        if (!job.started_) return;
        job.started_ = false;
        std::erase(jobs_, &job);
        left_.wait(lock, [&] { return job.inside_ == 0; });
        bury();
    }
    int threads() {
        const std::lock_guard lock(mutex_);
        return static_cast<int>(threads_.size());
    }

  private:
    // The condition on which one thread waits for work. Each thread has its own: notifying the next of several threads
    // that share one may block until the last notified thread has run, which is long when all processors are busy. A
    // condition stays when its thread ends and serves the next thread.
    struct Sleeper {
        std::condition_variable called;
        bool is_called = false;
    };

    void call_all() {
        for (Sleeper* sleeper : sleeping_) {
            sleeper->is_called = true;
            sleeper->called.notify_one();
        }
        sleeping_.clear();
    }
    // Makes threads until there are as many as the jobs may use.
    void fill_up() {
        worked_ = Time::now();
        bury();
        int wanted = 0;
        for (const Job* j : jobs_) wanted += j->most_;
        wanted = std::min(wanted, num_threads());
        while (static_cast<int>(threads_.size()) < wanted && add_thread()) continue;
    }
    // The thread itself takes no memory, whose lack would end the process there: lists have room for it beforehand.
    bool add_thread() {
        try {
            const size_t count = threads_.size() + gone_.size() + 1;
            while (sleepers_.size() < count) {
                spare_.reserve(sleepers_.size() + 1);
                sleeping_.reserve(sleepers_.size() + 1);
                spare_.push_back(&sleepers_.emplace_back());
            }
            gone_.reserve(count);
            threads_.reserve(count);
            threads_.push_back(make_thread("dataset", [this] { live(); }));
        } catch (const Error&) {
            return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }
    // Joins threads that have ended. They hold no lock any more.
    void bury() {
        for (std::thread& thread : gone_) thread.join();
        gone_.clear();
    }
    // The next job that may have work; jobs take turns.
    Job* choose() {
        for (size_t i = 0; i < jobs_.size(); ++i) {
            Job* job = jobs_[(turn_ + i) % jobs_.size()];
            if (job->idle_ || job->inside_ >= job->most_) continue;
            turn_ = (turn_ + i + 1) % jobs_.size();
            return job;
        }
        return nullptr;
    }
    // Waits until the thread is called, or for a while. One of the waiting threads looks at the jobs that are due.
    bool sleep(Sleeper& rest, std::unique_lock<std::mutex>& lock) {
        const bool looks = !is_looked_;
        Time::time_point until = Time::now() + kPatience;
        if (looks)
            for (const Job* job : jobs_) until = job->idle_ ? std::min(until, job->due_) : until;
        is_looked_ = true;
        rest.is_called = false;
        sleeping_.push_back(&rest);
        const bool called = rest.called.wait_until(lock, until, [&] { return rest.is_called; });
        if (looks) is_looked_ = false;
        if (called) return true;
        std::erase(sleeping_, &rest);
        if (!looks) return false;
        const auto now = Time::now();
        for (Job* job : jobs_) {
            if (!job->idle_ || job->due_ > now) continue;
            job->idle_ = false;
            job->misses_ = std::min(job->misses_ + 1, kMostMisses);
        }
        return false;
    }
    void live() {
        // OpenMP in libraries uses one thread, and so do our own loops.
        omp_set_num_threads(1);
        const LoneThread alone;
        std::unique_lock lock(mutex_);
        Sleeper& rest = *spare_.back();
        spare_.pop_back();
        for (;;) {
            Job* job = choose();
            if (!job) {
                const bool called = sleep(rest, lock);
                if (ending_) return;
                if (!called && (jobs_.empty() || Time::now() - worked_ > kIdlePatience)) break;
                continue;
            }
            ++job->inside_;
            const uint64_t wakes = job->wakes_;
            lock.unlock();
            const bool worked = job->work();
            lock.lock();
            if (worked) {
                job->misses_ = 0;
                worked_ = Time::now();
            }
            if (!worked && job->wakes_ == wakes) {
                job->idle_ = true;
                job->due_ = Time::now() + std::clamp(job->pause(), kLeastPause * (1 << job->misses_), kPatience);
            }
            if (--job->inside_ == 0 && !job->started_) left_.notify_all();
            if (ending_) return;
        }
        spare_.push_back(&rest);
        const auto self = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& thread) {
            return thread.get_id() == std::this_thread::get_id();
        });
        gone_.push_back(std::move(*self));
        threads_.erase(self);
    }

    std::mutex mutex_;
    std::condition_variable left_;
    std::vector<Job*> jobs_;
    std::vector<std::thread> threads_, gone_;
    size_t turn_ = 0;
    Time::time_point worked_;  // when there was work last, or a job was woken
    std::list<Sleeper> sleepers_;
    std::vector<Sleeper*> spare_, sleeping_;
    bool ending_ = false, is_looked_ = false;  // is_looked_: whether one of the sleeping threads looks at due jobs
};

namespace {
Pool& pool() {
    static Pool instance;
    return instance;
}
}  // namespace

void Job::start(int threads) { pool().start(*this, threads); }
void Job::wake() { pool().wake(*this); }
void Job::stop() noexcept {
    if (started_) pool().stop(*this);
}
int pool_threads() { return pool().threads(); }

}  // namespace lunaria::data
