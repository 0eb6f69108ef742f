// Transforms of rows on the threads of the pool: the same rows for any number of threads, whatever is above and below.
#include "core/data/transform.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/data/ahead.h"
#include "core/data/batch.h"
#include "core/data/functions.h"
#include "core/data/operations.h"
#include "core/data/pool.h"
#include "core/data/records.h"
#include "core/threads/threads.h"

namespace lunaria::data {
namespace {

// x + a random number below 1000, and the count of those that were made.
class AddNoise final : public Transform {
  public:
    AddNoise() : Transform("AddNoise") {}
    void apply(Row& row, RowDraws& draws) const override {
        const int64_t x = row[0].tensor().integer_at(0);
        if (x == fails_at) throw value_error(name(), "cannot be").hint("leave it out");
        row[0] = Tensor::scalar(x * 1000 + draws.below(1000));
        ++made;
    }
    int64_t fails_at = -1;
    mutable std::atomic<int64_t> made{0};
};

class Twice final : public Transform {
  public:
    Twice() : Transform("Twice") {}
    size_t results(size_t inputs) const override { return inputs * 2; }
    void apply(Row& row, RowDraws&) const override {
        const size_t count = row.size();
        for (size_t i = 0; i < count; ++i) row.push_back(row[i]);
    }
};

// A host whose only function adds 1, and which knows its thread.
class AddOne final : public Host {
  public:
    void call(uint64_t, std::span<const Value> in, size_t, Row& out, const Place&) override {
        EXPECT_EQ(std::this_thread::get_id(), thread_);
        out.push_back(Tensor::scalar(in[0].tensor().integer_at(0) + 1));
    }
    bool test(uint64_t, std::span<const Value> in, const Place&) override {
        EXPECT_EQ(std::this_thread::get_id(), thread_);
        return in[0].tensor().integer_at(0) % 3 != 0;
    }
    int64_t start(uint64_t, const Place&) override { return 0; }
    bool step(int64_t, size_t, Row& out, const Place& place) override {
        EXPECT_EQ(std::this_thread::get_id(), thread_);
        if (place.row == 50) return false;
        out.push_back(Tensor::scalar(place.row));
        return true;
    }
    void stop(int64_t) noexcept override {}

  private:
    std::thread::id thread_ = std::this_thread::get_id();
};

NodePtr numbers(int64_t count) { return source(range_records("x", count), random_sampler(false, {}, 7)); }
NodePtr noisy(const NodePtr& child) {
    return transform(child, {std::make_shared<AddNoise>()}, {0}, {"x"}, 5, std::nullopt);
}

std::vector<int64_t> all_of(const Node& node, int workers, uint64_t number = 3, int64_t skipped = 0) {
    AddOne host;
    Epoch epoch;
    epoch.number = epoch.order = number;
    epoch.workers = workers;
    epoch.host = &host;
    auto cursor = ahead(node.open(epoch), node, epoch);
    cursor->skip(skipped);
    std::vector<int64_t> list;
    for (Row row; cursor->next(row);)
        for (const Value& v : row)
            for (int64_t i = 0; i < v.tensor().size(); ++i) list.push_back(v.tensor().integer_at(i));
    return list;
}

// Pipelines that put transforms below and above everything that there is.
std::vector<std::pair<std::string, NodePtr>> pipelines() {
    const NodePtr plain = numbers(203), noise = noisy(plain);
    const NodePtr other = select(noisy(numbers(57)), {0}, {"y"});
    return {{"map", noise},
            {"two maps", noisy(noise)},
            {"shuffle", shuffle(noise, 20, 1)},
            {"shuffle below", noisy(shuffle(plain, 20, 1))},
            {"repeat", noisy(repeat(noise, 3))},
            {"repeat and shuffle", shuffle(repeat(noise, 3), 40, 2)},
            {"take and skip", noisy(take(skip(noise, 3), 77))},
            {"zip", zip({noise, other})},
            {"zip of repeats", noisy(zip({repeat(noise, 2), repeat(other, 9)}))},
            {"concat", noisy(concat({noise, select(other, {0}, {"x"})}))},
            {"batch", batch(noise, {8, false, {}})},
            {"batch of repeat", repeat(batch(noisy(repeat(noise, 2)), {7, true, {}}), 2)},
            {"split", part(noise, 20, 100, true, 4)},
            {"two columns", transform(noise, {std::make_shared<Twice>()}, {0}, {"x", "y"}, 5, std::nullopt)},
            {"function above", map(noise, "map", 1, {0}, {"x"}, 5, false)},
            {"function below", noisy(map(plain, "map", 1, {0}, {"x"}, 5, false))},
            {"function below shuffle", noisy(shuffle(map(plain, "map", 1, {0}, {"x"}, 5, false), 9, 2))},
            {"filter", batch(noisy(filter(noise, 1, {0}, 5)), {4, false, {}})},
            {"stream", batch(noisy(repeat(noisy(stream("stream", 1, {"x"}, kUnknownRows, 5)), 2)), {4, false, {}})}};
}

TEST(TransformTest, RowsAreTheSameForAnyNumberOfThreads) {
    for (const auto& [name, node] : pipelines()) {
        const auto expected = all_of(*node, 0);
        EXPECT_FALSE(expected.empty()) << name;
        for (int workers : {1, 2, 3, 8}) EXPECT_EQ(all_of(*node, workers), expected) << name << " by " << workers;
        EXPECT_NE(all_of(*node, 2, 4), expected) << name;
    }
}

TEST(TransformTest, SkippedRowsAreNotMadeAndTheRestIsTheSame) {
    for (const auto& [name, node] : pipelines()) {
        // The rows of a batch and the columns are put in a row, too.
        Epoch epoch;
        AddOne host;
        epoch.number = epoch.order = 3;
        epoch.host = &host;
        auto cursor = node->open(epoch);
        Row row;
        std::vector<std::vector<int64_t>> rows;
        while (cursor->next(row)) {
            rows.emplace_back();
            for (const Value& v : row)
                for (int64_t i = 0; i < v.tensor().size(); ++i) rows.back().push_back(v.tensor().integer_at(i));
        }
        for (size_t skipped : {size_t{1}, rows.size() / 2, rows.size() - 1, rows.size()}) {
            std::vector<int64_t> rest;
            for (size_t i = skipped; i < rows.size(); ++i) rest.insert(rest.end(), rows[i].begin(), rows[i].end());
            EXPECT_EQ(all_of(*node, 2, 3, static_cast<int64_t>(skipped)), rest) << name << " after " << skipped;
        }
    }
    const auto noise = std::make_shared<AddNoise>();
    const NodePtr node = transform(numbers(1000), {noise}, {0}, {"x"}, 5, std::nullopt);
    all_of(*node, 0, 3, 990);
    EXPECT_EQ(noise->made, 10);
}

TEST(TransformTest, TwoTransformsOfOneSeedDrawOtherNumbers) {
    const auto once = all_of(*noisy(source(range_records("x", 100), sequential_sampler(0, {}))), 0);
    const auto list = all_of(*noisy(noisy(source(range_records("x", 100), sequential_sampler(0, {})))), 0);
    int same = 0;
    for (size_t i = 0; i < once.size(); ++i) same += once[i] % 1000 == list[i] % 1000;
    EXPECT_LT(same, 5);
}

TEST(TransformTest, AnErrorComesAtItsRowAndNamesColumnRowAndTransform) {
    const auto noise = std::make_shared<AddNoise>();
    noise->fails_at = 20;
    const NodePtr rows = source(range_records("x", 100), sequential_sampler(0, {}));
    for (int workers : {0, 1, 4}) {
        Epoch epoch;
        epoch.workers = workers;
        const NodePtr node = transform(rows, {noise}, {0}, {"x"}, 5, std::nullopt);
        auto cursor = ahead(node->open(epoch), *node, epoch);
        Row row;
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(cursor->next(row)) << i;
        try {
            cursor->next(row);
            FAIL() << "no error";
        } catch (const Error& e) {
            EXPECT_STREQ(e.what(),
                         "AddNoise: cannot be\n  hint: leave it out\n  in map: column 'x', row 20 of epoch 0");
        }
    }
    EXPECT_THROW(transform(rows, {noise}, {0}, {"x", "y"}, 5, std::nullopt), Error);
}

// Of two rows, the one that is made by a thread of the pool takes long, and the one that asks is not done before it has
// begun: so it has to wait.
class OneOfTwoIsSlow final : public Transform {
  public:
    OneOfTwoIsSlow() : Transform("OneOfTwoIsSlow") {}
    void apply(Row&, RowDraws&) const override {
        if (std::this_thread::get_id() == asking_) {
            EXPECT_EQ(slow_begun_.get_future().wait_for(std::chrono::seconds(30)), std::future_status::ready);
            return;
        }
        std::call_once(once_, [&] { slow_begun_.set_value(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }

  private:
    std::thread::id asking_ = std::this_thread::get_id();
    mutable std::once_flag once_;
    mutable std::promise<void> slow_begun_;
};

TEST(TransformTest, WaitingForTheLastRowsTakesNoProcessorTime) {
    Epoch epoch;
    epoch.workers = 1;
    epoch.prefetch = 2;
    const NodePtr node = transform(numbers(2), {std::make_shared<OneOfTwoIsSlow>()}, {0}, {"x"}, 5, std::nullopt);
    const auto processor_time = [] {
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
    };
    const auto wall = std::chrono::steady_clock::now();
    const auto begin = processor_time();
    auto cursor = ahead(node->open(epoch), *node, epoch);
    Row row;
    while (cursor->next(row)) continue;
    EXPECT_GE(std::chrono::steady_clock::now() - wall, std::chrono::milliseconds(300));
    EXPECT_LT(processor_time() - begin, std::chrono::milliseconds(60));
}

TEST(TransformTest, ThreadsAreNoMoreThanAskedForAndGoAway) {
    const int before = num_threads();
    set_num_threads(3);
    {
        std::vector<NodePtr> nodes;  // outlive their cursors
        std::vector<std::unique_ptr<Cursor>> cursors;
        Row row;
        for (int i = 0; i < 6; ++i) {
            nodes.push_back(batch(noisy(numbers(1000)), {4, false, {}}));
            Epoch epoch;
            epoch.workers = 8;
            cursors.push_back(ahead(nodes.back()->open(epoch), *nodes.back(), epoch));
            cursors.back()->next(row);
            EXPECT_LE(pool_threads(), 3);
        }
        EXPECT_EQ(pool_threads(), 3);
    }
    for (int i = 0; i < 100 && pool_threads() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(pool_threads(), 0);
    set_num_threads(before);
}

TEST(TransformTest, ThreadsOfRowsThatNobodyAsksForGoAwayAndComeBack) {
    const int before = num_threads();
    set_num_threads(3);
    const NodePtr node = batch(noisy(numbers(1000)), {4, false, {}});
    const auto expected = all_of(*node, 2, 0);
    Epoch epoch;
    epoch.workers = 2;
    auto cursor = ahead(node->open(epoch), *node, epoch);
    Row row;
    ASSERT_TRUE(cursor->next(row));
    EXPECT_GT(pool_threads(), 0);
    for (int i = 0; i < 1000 && pool_threads() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(pool_threads(), 0);
    size_t rows = 1;
    int most_threads = 0;
    for (; cursor->next(row); ++rows) most_threads = std::max(most_threads, pool_threads());
    EXPECT_EQ(rows, 250u);
    EXPECT_GT(most_threads, 0);
    EXPECT_EQ(all_of(*node, 2, 0), expected);
    set_num_threads(before);
}

TEST(TransformTest, TenThousandEpochsOfATinySetLeaveNothing) {
    const NodePtr node = batch(noisy(repeat(noisy(numbers(3)), 2)), {2, false, {}});
    const auto first = all_of(*node, 2, 0);
    for (uint64_t number = 0; number < 10000; ++number) {
        Epoch epoch;
        epoch.number = epoch.order = number;
        epoch.workers = 2;
        auto cursor = ahead(node->open(epoch), *node, epoch);
        Row row;
        // Some are left in the middle.
        for (uint64_t i = 0; i < 1 + number % 4; ++i) cursor->next(row);
    }
    EXPECT_EQ(all_of(*node, 2, 0), first);
    EXPECT_LE(pool_threads(), num_threads());
}

}  // namespace
}  // namespace lunaria::data
