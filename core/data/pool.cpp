#include "core/data/pool.h"

#include <omp.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/lone_thread.h"
#include "core/threads.h"

namespace lunaria::data {

constexpr auto kPatience = std::chrono::milliseconds(200);  // of a thread without a job

class Pool {
  public:
    // Before the memory that jobs use, which is older.
    ~Pool() {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        work_.notify_all();
        for (std::thread& thread : gone_) thread.join();
        for (std::thread& thread : threads_) thread.join();
    }
    void start(Job& job, int most) {
        const std::lock_guard lock(mutex_);
        job.most_ = most;
        job.started_ = true;
        job.idle_ = false;
        jobs_.push_back(&job);
        bury();
        int wanted = 0;
        for (const Job* j : jobs_) wanted += j->most_;
        wanted = std::min(wanted, num_threads());
        while (static_cast<int>(threads_.size()) < wanted && add_thread()) continue;
        work_.notify_all();
    }
    void wake(Job& job) {
        {
            const std::lock_guard lock(mutex_);
            job.idle_ = false;
            ++job.wakes_;
            if (sleeping_ == 0) return;
        }
        work_.notify_one();
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
    bool add_thread() {
        // Signals are for the threads that wait for them.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        bool added = true;
        try {
            threads_.emplace_back([this] { live(); });
        } catch (const std::system_error&) {
            added = false;
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return added;
    }
    // Joins threads that have ended. They hold no lock any more.
    void bury() {
        for (std::thread& thread : gone_) thread.join();
        gone_.clear();
    }
    // The next job that may have work, in turns.
    Job* choose() {
        for (size_t i = 0; i < jobs_.size(); ++i) {
            Job* job = jobs_[(turn_ + i) % jobs_.size()];
            if (job->idle_ || job->inside_ >= job->most_) continue;
            turn_ = (turn_ + i + 1) % jobs_.size();
            return job;
        }
        return nullptr;
    }
    void live() {
        // Libraries that ask OpenMP take one thread, our own loops too.
        omp_set_num_threads(1);
        const LoneThread alone;
        std::unique_lock lock(mutex_);
        for (;;) {
            Job* job = choose();
            if (!job) {
                ++sleeping_;
                const auto woken = work_.wait_for(lock, kPatience);
                --sleeping_;
                if (ending_) return;
                if (woken == std::cv_status::timeout && jobs_.empty()) break;
                continue;
            }
            ++job->inside_;
            const uint64_t wakes = job->wakes_;
            lock.unlock();
            const bool worked = job->work();
            lock.lock();
            if (!worked && job->wakes_ == wakes) job->idle_ = true;
            if (--job->inside_ == 0 && !job->started_) left_.notify_all();
            if (ending_) return;
        }
        const auto self = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& thread) {
            return thread.get_id() == std::this_thread::get_id();
        });
        gone_.push_back(std::move(*self));
        threads_.erase(self);
    }

    std::mutex mutex_;
    std::condition_variable work_, left_;
    std::vector<Job*> jobs_;
    std::vector<std::thread> threads_, gone_;
    size_t turn_ = 0;
    int sleeping_ = 0;
    bool ending_ = false;
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
