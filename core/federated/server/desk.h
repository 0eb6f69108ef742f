// The desk of a server: requests of many threads become changes of jobs, one after the other on one thread, and many of
// them in one transaction, so that the disk is waited for once. A request is answered when what it has changed is on
// the disk. Several desks, of several processes, may share one store: each transaction begins by reading what the
// others have changed, and one of them, the owner of a job, computes for it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/federated/server/job.h"
#include "core/io/descriptor.h"
#include "core/io/question.h"

namespace lunaria::federated {

struct DeskOptions {
    std::string store;                     // the file
    int64_t most_store_bytes = 0;          // 0: as many as the disk has
    bool names_clients = false;            // a client must have the name of its TLS certificate
    std::function<int64_t()> wall = {};    // ms since 1970; empty: the system's clock
    std::function<int64_t()> steady = {};  // ms of a clock that never goes back
};

class Desk {
  public:
    explicit Desk(DeskOptions options);
    // Ends the thread. Requests must have ended.
    ~Desk();
    Desk(const Desk&) = delete;
    Desk& operator=(const Desk&) = delete;

    void add(const std::string& job, JobOptions options);
    std::vector<std::string> jobs() const;

    // For any thread: a request by HTTP, and what it comes to. Neither throws.
    lunaria::Answer ask(const Question& question);
    messages::Reply ask(std::string_view endpoint, std::string_view body, std::string_view peer = {});
    // Requests by endpoint and code, bytes in and out, in the text format of Prometheus.
    std::string figures() const;
    int64_t bytes_in() const { return bytes_in_; }
    int64_t bytes_out() const { return bytes_out_; }

    // For the thread that computes. The next work that this desk owns, or none after so many seconds.
    Work next(double seconds);
    // Calls f with the job in a transaction and returns when it is on the disk. Throws what f throws; nothing is then
    // kept.
    void in(const std::string& job, const std::function<void(Job&)>& f);
    void with_store(const std::function<void(Store&)>& f);
    Store& store() { return *store_; }  // within in() only

  private:
    struct Task {
        std::string job;
        std::function<void(Job&)> run;  // may be called twice: the second time where another task's transaction failed
        std::function<void()> first = {};  // called before, also where the job is not open
        size_t bytes = 0;
        bool is_done = false;
        std::condition_variable done = {};
        std::optional<Error> error;
    };
    Reaction reaction(std::string_view endpoint, std::string_view body, std::string_view peer);
    void wait_for(Task& task);
    void work();
    void process(const std::vector<Task*>& batch);
    void step(const std::vector<Task*>& batch);
    int64_t pause() const;
    void offer_work();
    bool is_alive(std::string_view server) const;
    std::string lock_path(std::string_view server) const { return options_.store + ".server-" + std::string(server); }

    DeskOptions options_;
    std::string own_name_;
    Descriptor lock_;  // held as long as this desk lives
    std::optional<Store> store_;
    std::map<std::string, std::unique_ptr<Job>> open_;  // the thread's
    std::map<std::string, Work> given_;                 // the thread's
    int64_t last_steady_ = 0;

    mutable std::mutex mutex_;  // of what follows
    std::condition_variable came_, work_came_;
    std::deque<Task*> tasks_;
    std::map<std::string, std::shared_ptr<const JobOptions>> jobs_;
    std::deque<Work> works_;
    bool is_ending_ = false;

    mutable std::mutex figures_mutex_;
    std::map<std::pair<std::string, int>, int64_t> figures_;
    std::atomic<int64_t> bytes_in_ = 0, bytes_out_ = 0;
    std::thread thread_;
};

}  // namespace lunaria::federated
