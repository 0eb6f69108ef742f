// Ctrl-C at random moments of a data pipeline: no thread, file or memory is left behind, and the pipeline works again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include "interpreter/program/program_state.h"
#include "interpreter/session/session.h"

namespace lunaria {
namespace {

struct Held {
    std::ptrdiff_t threads, files, kilobytes;
};

std::ptrdiff_t entries(const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

Held held() {
    std::ifstream statm("/proc/self/statm");
    std::ptrdiff_t size = 0, resident = 0;
    statm >> size >> resident;
    return {entries("/proc/self/task"), entries("/proc/self/fd"), resident * (sysconf(_SC_PAGESIZE) / 1024)};
}

// A decoded, cached (mostly on disk), shuffled, resized set with a function of Lua in workers, one in the stream of
// rows, and batches.
constexpr const char* kPipeline = R"(
D = ms.dataset
D.config.set_num_parallel_workers(2)
local vision, file = D.vision, assert(io.open("tests/data/samples/img/smooth_q95.jpg", "rb"))
local bytes, files = file:read "a", {}
file:close()
for i = 1, 24 do files[i] = bytes end
local numbers = ms.arange(24)
function pipeline(fails_at)
  local source = D.NumpySlicesDataset({ image = files, id = numbers }, { shuffle = true })
  local ds = source:map({ vision.Decode(), vision.Resize({ 160, 160 }) }, "image")
    :cache(D.DatasetCache(nil, 1, true)):map(vision.RandomHorizontalFlip(), "image")
  return ds:map(function(id)
    local sum = 0
    for i = 1, 500 + id:item() do sum = sum + i % 2 end
    if id:item() == fails_at then error "bad row" end
    return id + sum - sum
  end, "id", { python_multiprocessing = true, num_parallel_workers = 2 })
    :filter(function(id) return id:item() ~= 3 end, "id"):shuffle(8):batch(4):repeat_(2)
end
function go(ds)
  local count, sum = 0, 0
  for row in ds:create_dict_iterator({ num_epochs = 1 }) do
    count, sum = count + row.id.size, sum + row.id:sum():item()
  end
  return ("%d %d"):format(count, sum)
end
)";

class DataInterruptTest : public testing::TestWithParam<int> {
  protected:
    Execution run(const std::string& text) { return session.execute(text); }
    // Asks for an interrupt within the time that a run takes, mostly.
    bool interrupted(const std::string& text, std::mt19937& chance) {
        const auto patience = std::chrono::microseconds(chance() % longest_patience);
        std::thread other([&] {
            std::this_thread::sleep_for(patience);
            session.interrupt();
        });
        const Execution execution = run(text);
        other.join();
        if (!execution.error) return false;
        const bool stopped = execution.error->kind == ErrorReport::Kind::interrupt;
        EXPECT_TRUE(stopped || execution.error->message.find("bad row") != std::string::npos)
            << execution.error->message;
        return stopped;
    }
    // Once there are no more than so many threads, if that comes soon: those of the pool wait a while for more to do.
    Held settled(long threads) {
        run("it = nil collectgarbage() collectgarbage()");
        Held now;
        for (int i = 0; i < 100; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(i == 0 ? 600 : 100));
            now = held();
            if (now.threads <= threads) break;
        }
        return now;
    }

    ProgramState state;
    Session session{state};
    unsigned longest_patience = 8000;
};

TEST_P(DataInterruptTest, leaves_nothing_behind) {
    ASSERT_FALSE(run("ms.set_context { mode = " + std::to_string(GetParam()) + " }").error);
    const Execution made = run(kPipeline);
    ASSERT_FALSE(made.error) << made.error->message;
    run("kept, other, bad = pipeline(), pipeline(), pipeline(21)");
    const std::vector<std::string> expected{"\"46 546\""};
    EXPECT_EQ(run("go(pipeline())").results, expected);
    std::mt19937 chance(5);
    int stopped = 0;
    const auto rounds = [&](int count) {
        for (int i = 0; i < count; ++i) {
            // A program that is compiled keeps the sets and iterators that it was compiled for, and rows with them.
            const char* text = i % 3 == 0   ? GetParam() == 0 ? "go(other)" : "go(pipeline())"
                               : i % 3 == 1 ? "go(kept)"
                                            : "it = bad:create_tuple_iterator() while it() do end";
            stopped += interrupted(text, chance);
        }
    };
    rounds(60);
    const Held before = settled(std::numeric_limits<long>::max());
    rounds(150);
    // Where a run takes less than the longest patience, few are stopped.
    for (; stopped <= 15 && longest_patience > 100; longest_patience /= 2) rounds(30);
    const Held after = settled(before.threads);
    EXPECT_GT(stopped, 15);
    EXPECT_LE(after.threads, before.threads);
    EXPECT_LE(after.files, before.files);
    if (GetParam() == 1) {
        EXPECT_LE(after.kilobytes, before.kilobytes + 16 * 1024);
    }
    EXPECT_EQ(run("go(pipeline())").results, expected);
    EXPECT_EQ(run("go(kept)").results, expected);
}

INSTANTIATE_TEST_SUITE_P(Modes, DataInterruptTest, testing::Values(1, 0));

}  // namespace
}  // namespace lunaria
