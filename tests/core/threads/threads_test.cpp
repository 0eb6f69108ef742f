#include "core/threads/threads.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/threads/pool_settings.h"

namespace lunaria {
namespace {

class Threads : public testing::Test {
  protected:
    void TearDown() override {
        set_num_threads(before_);
        clear_interrupt();
    }

  private:
    int before_ = num_threads();
};

TEST_F(Threads, EveryItemIsVisitedOnceForAnyCountAndNumberOfThreads) {
    for (int threads : {1, 2, 3, 7})
        for (int64_t count : {0, 1, 63, 64, 65, 1000, 100'001}) {
            set_num_threads(threads);
            std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
            parallel_for(count, 10, 64, [&](int64_t begin, int64_t end) {
                EXPECT_EQ(begin % 64, 0);
                EXPECT_LT(begin, end);
                for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
            });
            for (auto& v : visits) ASSERT_EQ(v.load(), 1) << count << " items on " << threads << " threads";
        }
}

TEST_F(Threads, LittleWorkStaysOnTheCallersThread) {
    set_num_threads(4);
    auto self = std::this_thread::get_id();
    parallel_for(100, 100, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(begin, 0);
        EXPECT_EQ(end, 100);
    });
}

// Only the thread that runs the program has a stack for handlers.
TEST_F(Threads, OthersOfThePoolTakeNoSignals) {
    set_num_threads(3);
    const auto self = std::this_thread::get_id();
    std::atomic<int> others = 0;
    parallel_for(3, 1, [&](int64_t, int64_t) {
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        const bool other = std::this_thread::get_id() != self;
        for (const int number : {SIGINT, SIGURG}) EXPECT_EQ(sigismember(&blocked, number), other);
        others += other;
    });
    EXPECT_EQ(others, 2);
}

TEST_F(Threads, AnExceptionOfTheBodyReachesTheCaller) {
    set_num_threads(3);
    for (int64_t bad : {0, 500, 999}) {
        auto body = [&](int64_t begin, int64_t end) {
            if (begin <= bad && bad < end) throw value_error("test", "broken");
        };
        EXPECT_THROW(parallel_for(1000, 1, body), Error);
    }
}

TEST_F(Threads, LoopsInsideLoopsAreDoneByTheThreadThatMeetsThem) {
    set_num_threads(2);
    std::atomic<int64_t> sum{0};
    parallel_for(8, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) parallel_for(1000, 1, [&](int64_t a, int64_t b) { sum += b - a; });
    });
    EXPECT_EQ(sum.load(), 8000);
}

TEST_F(Threads, AnInterruptEndsALongLoop) {
    set_num_threads(2);
    std::atomic<int64_t> done{0};
    auto body = [&](int64_t begin, int64_t end) {
        done += end - begin;
        request_interrupt();
    };
    EXPECT_THROW(parallel_for(1'000'000, 10, body), Error);
    EXPECT_LT(done.load(), 1'000'000);
}

TEST_F(Threads, TheNumberOfThreadsIsChecked) {
    EXPECT_THROW(set_num_threads(0), Error);
    EXPECT_THROW(set_num_threads(5000), Error);
    set_num_threads(2);
    EXPECT_EQ(num_threads(), 2);
}

// All threads of this process, with the processors that each may run on.
std::map<std::string, std::string> allowed_processors() {
    std::map<std::string, std::string> allowed;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream status(task.path() / "status");
        for (std::string line; std::getline(status, line);)
            if (line.starts_with("Cpus_allowed_list")) allowed[task.path().filename()] = line;
    }
    return allowed;
}

TEST_F(Threads, ThreadsThatWereBoundToWakeUpAreFreeAfterwards) {
    for (int threads : {2, 3}) {
        set_num_threads(threads);
        std::atomic<int64_t> sum{0};
        auto add = [&](int64_t begin, int64_t end) { sum += end - begin; };
        parallel_for(1000, 1, add);
        const auto before = allowed_processors();
        ASSERT_GE(before.size(), static_cast<size_t>(threads));
        for (int i = 0; i < 3; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            parallel_for(1000, 1, add);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            { const PoolUse use; }
            const auto after = allowed_processors();
            EXPECT_GE(after.size(), static_cast<size_t>(threads));
            // The pool ends threads that it has too many of in its own time.
            for (const auto& [thread, allowed] : after)
                EXPECT_TRUE(before.contains(thread) && before.at(thread) == allowed) << allowed;
        }
        EXPECT_EQ(sum.load(), 4000);
    }
}

// The environment of this process as its parent made it.
std::vector<std::string> original_environment() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    std::string all((std::istreambuf_iterator<char>(file)), {});
    std::vector<std::string> entries;
    for (size_t at = 0; at < all.size();) {
        entries.emplace_back(all.c_str() + at);
        at += entries.back().size() + 1;
    }
    return entries;
}

TEST_F(Threads, TheLentEntryOfTheEnvironmentIsGivenBack) {
    bool has_policy = false;
    for (const std::string& entry : original_environment()) {
        size_t equals = entry.find('=');
        if (equals == std::string::npos) continue;
        std::string name = entry.substr(0, equals);
        // "_" is the path of the program, which a start within the program (a sanitizer starts it anew) changes or
        // drops.
        if (name == "_") continue;
        has_policy |= name == "GOMP_SPINCOUNT" || name == "OMP_WAIT_POLICY";
        ASSERT_NE(std::getenv(name.c_str()), nullptr) << name;
    }
    if (has_policy) {
        EXPECT_FALSE(pool_spin_is_ours());
    } else {
        EXPECT_EQ(std::getenv("GOMP_SPINCOUNT"), nullptr);
    }
}

}  // namespace
}  // namespace lunaria
