// Ranks that are processes: memory that they share, and what the others are told when one of them dies.
#include "core/parallel/shared.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace lunaria::parallel {
namespace {

using Clock = std::chrono::steady_clock;

struct Outcome {
    std::string text;    // what the function returned or threw
    int status = 0;      // as waitpid gives it
    double seconds = 0;  // until the process had ended
};

// Processes of this test, which act as ranks. The test is their launcher: it records how they end.
class Processes {
  public:
    using Rank = std::function<std::string(Communicator&)>;
    Processes(int ranks, const Rank& f) : job_(str("test-", getpid(), "-", ++jobs)), begin_(Clock::now()) {
        for (int rank = 0; rank < ranks; ++rank) {
            int ends[2];
            if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
            const int pid = fork();
            if (pid == 0) {
                close(ends[0]);
                run(f, rank, ranks, ends[1]);
            }
            close(ends[1]);
            pids_.push_back(pid);
            pipes_.push_back(ends[0]);
        }
    }
    ~Processes() {
        for (size_t i = 0; i < pids_.size(); ++i) unlink(ring(static_cast<int>(i)).c_str());
    }
    std::string ring(int rank) const { return record_path(job_, rank); }
    std::unique_ptr<RecordFile> record(int rank) const { return find_record(job_, rank); }
    int pid(int rank) const { return pids_[static_cast<size_t>(rank)]; }

    // Until each rank has asked for something: a launcher ends ranks that wait for one which never comes.
    void wait_until_all_have_come() const {
        for (size_t rank = 0; rank < pids_.size() && seconds() < 20;) {
            const auto file = record(static_cast<int>(rank));
            if (file && file->log().written.load() > 0)
                ++rank;
            else
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    // Waits for all; processes that take too long are killed.
    std::vector<Outcome> wait() {
        std::vector<Outcome> outcomes(pids_.size());
        size_t left = pids_.size();
        while (left > 0) {
            for (size_t i = 0; i < pids_.size(); ++i) {
                if (outcomes[i].seconds > 0 || waitpid(pids_[i], &outcomes[i].status, WNOHANG) != pids_[i]) continue;
                outcomes[i].seconds = seconds();
                note_end(job_, static_cast<int64_t>(i), outcomes[i].status);
                char text[4096];
                const ssize_t n = read(pipes_[i], text, sizeof text);
                outcomes[i].text.assign(text, n > 0 ? static_cast<size_t>(n) : 0);
                close(pipes_[i]);
                --left;
            }
            if (seconds() > 20)
                for (const int pid : pids_) kill(pid, SIGKILL);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return outcomes;
    }

  private:
    double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

    [[noreturn]] void run(const Rank& f, int rank, int ranks, int pipe) {
        std::string text;
        try {
            SharedCommunicator communicator(std::make_shared<Arena>(job_, rank, ranks), rank);
            try {
                text = f(communicator);
            } catch (const std::exception& e) {
                text = e.what();
            }
        } catch (const std::exception& e) {
            text = e.what();
        }
        const ssize_t written = write(pipe, text.data(), text.size());
        _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }

    static inline int jobs = 0;
    std::string job_;
    Clock::time_point begin_;
    std::vector<int> pids_, pipes_;
};

Request all_reduce(std::vector<float>& x, std::string_view place = {}, std::string_view parameter = {}) {
    Request r;
    r.operation = Collective::all_reduce;
    r.count = static_cast<int64_t>(x.size());
    r.in = r.out = x.data();
    r.label = {place, parameter};
    return r;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST(SharedMemory, connects_processes) {
    Processes processes(3, [](Communicator& c) {
        for (const size_t size : {1, 1000, 300'000}) {
            std::vector<float> x(size, static_cast<float>(c.rank() + 1));
            for (int i = 0; i < 5; ++i) c.run(all_reduce(x));
            for (const float number : x)
                if (number != 6 * 81) return std::string("wrong");
        }
        return std::string("right");
    });
    for (const Outcome& outcome : processes.wait()) EXPECT_EQ(outcome.text, "right");
    for (int rank = 0; rank < 3; ++rank) EXPECT_FALSE(exists(processes.ring(rank)));  // nothing is left behind
}

TEST(SharedMemory, tells_of_a_killed_rank) {
    Processes processes(3, [](Communicator& c) {
        std::vector<float> x(100, 1);
        for (int i = 0;; ++i) {
            if (c.rank() == 2 && i == 40) {
                c.start(all_reduce(x, "train.lua:58", "fc2.weight"));
                raise(SIGKILL);
            }
            c.run(all_reduce(x, "train.lua:57", "fc1.weight"));
            if (c.rank() < 2 && i == 40) usleep(100'000);
        }
        return std::string();
    });
    const std::vector<Outcome> outcomes = processes.wait();
    for (int rank = 0; rank < 2; ++rank) {
        const std::string& text = outcomes[rank].text;
        EXPECT_LT(outcomes[rank].seconds, 2) << rank;
        EXPECT_NE(text.find(str("rank 2 (process ", processes.pid(2), ") was killed by signal 9 (Killed)")),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("fc"), std::string::npos) << text;
        EXPECT_NE(text.find("of fc1.weight, train.lua:57"), std::string::npos) << text;
        EXPECT_TRUE(exists(processes.ring(rank)));  // for `lunaria ranks`
    }
    const auto record = processes.record(2);
    ASSERT_NE(record, nullptr);
    EXPECT_GE(record->log().written.load(), 40u);
    EXPECT_EQ(name_in(record->log(), record->log().ring[0].mark.chunk), "train.lua");
}

TEST(SharedMemory, tells_of_ranks_that_wait_for_one_another) {
    Processes processes(2, [](Communicator& c) {
        float x = 0;
        Request r;
        r.operation = Collective::recv;
        r.count = 1;
        r.out = &x;
        r.root = 1 - c.rank();
        r.label.place = c.rank() ? "b.lua:2" : "a.lua:1";
        c.run(r);
        return std::string();
    });
    for (const Outcome& outcome : processes.wait()) {
        EXPECT_LT(outcome.seconds, 2);
        EXPECT_NE(outcome.text.find("ranks wait for one another"), std::string::npos) << outcome.text;
        EXPECT_NE(outcome.text.find("b.lua:2"), std::string::npos) << outcome.text;
        EXPECT_NE(outcome.text.find("a.lua:1"), std::string::npos) << outcome.text;
    }
}

TEST(SharedMemory, tells_of_a_rank_that_has_no_more_data) {
    Processes processes(2, [](Communicator& c) {
        std::vector<float> x(10);
        for (int batch = 0; batch < (c.rank() ? 3 : 4); ++batch) c.run(all_reduce(x, str("train.lua:", 10 + c.rank())));
        return std::string("done");
    });
    const std::vector<Outcome> outcomes = processes.wait();
    EXPECT_EQ(outcomes[1].text, "done");
    EXPECT_NE(
        outcomes[0].text.find("rank 0 waits for rank 1 in all_reduce #4 (float32, 10 elements), train.lua:10; but "
                              "rank 1 has ended after all_reduce #3 (float32, 10 elements), train.lua:11"),
        std::string::npos)
        << outcomes[0].text;
    EXPECT_LT(outcomes[0].seconds, 2);
}

TEST(SharedMemory, is_left_by_processes_killed_at_any_time) {
    std::mt19937 generator(3);
    for (int round = 0; round < 12; ++round) {
        Processes processes(3, [](Communicator& c) {
            std::vector<float> small(3), large(200'000), sent(200'000), received(200'000);
            Request send, receive;
            send.operation = Collective::send;
            receive.operation = Collective::recv;
            send.count = receive.count = 200'000;
            send.in = sent.data();
            receive.out = received.data();
            send.root = (c.rank() + 1) % 3;
            receive.root = (c.rank() + 2) % 3;
            const std::vector<Request> both = {send, receive};
            while (true) {
                c.run(all_reduce(small));
                const Pending pending = c.start(all_reduce(large));
                try {
                    c.run_together(both);
                } catch (const Error&) {
                    try {
                        pending.wait();  // it uses `large` until then
                    } catch (const Error&) {
                    }
                    throw;
                }
                pending.wait();
            }
            return std::string();
        });
        const int victim = static_cast<int>(generator() % 3);
        processes.wait_until_all_have_come();
        std::this_thread::sleep_for(std::chrono::microseconds(generator() % 30'000));
        const auto begin = Clock::now();
        kill(processes.pid(victim), SIGKILL);
        const std::vector<Outcome> outcomes = processes.wait();
        EXPECT_LT(std::chrono::duration<double>(Clock::now() - begin).count(), 2);
        for (int rank = 0; rank < 3; ++rank) {
            if (rank == victim) continue;
            EXPECT_NE(outcomes[rank].text.find(str("rank ", victim)), std::string::npos) << outcomes[rank].text;
        }
    }
}

}  // namespace
}  // namespace lunaria::parallel
