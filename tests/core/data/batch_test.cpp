// Batches made by threads: their order, their errors, and that they end wherever they are left.
#include "core/data/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/data/ahead.h"
#include "core/data/operations.h"
#include "core/data/records.h"

namespace lunaria::data {
namespace {

NodePtr numbers(int64_t count, SamplerPtr sampler = sequential_sampler(0, {})) {
    return source(range_records("x", count), std::move(sampler));
}

Epoch epoch_of(uint64_t number, int workers) {
    Epoch epoch;
    epoch.number = epoch.order = number;
    epoch.workers = workers;
    return epoch;
}

std::unique_ptr<Cursor> opened(const Node& node, const Epoch& epoch) { return ahead(node.open(epoch), node, epoch); }

std::vector<int64_t> all_of(const Node& node, const Epoch& epoch, int64_t skipped = 0) {
    auto cursor = opened(node, epoch);
    cursor->skip(skipped);
    std::vector<int64_t> list;
    for (Row row; cursor->next(row);)
        for (int64_t i = 0; i < row[0].tensor().size(); ++i) list.push_back(row[0].tensor().integer_at(i));
    return list;
}

NodePtr shuffled_batches() {
    return batch(shuffle(numbers(1003, random_sampler(false, {}, 7)), 31, 7), {8, false, {}});
}

TEST(BatchTest, ThreadsGiveTheOrderOfOneThread) {
    const NodePtr node = shuffled_batches();
    for (uint64_t number : {0, 1, 5}) {
        const auto expected = all_of(*node, epoch_of(number, 0));
        EXPECT_EQ(expected.size(), 1003u);
        for (int workers = 1; workers <= 8; ++workers) EXPECT_EQ(all_of(*node, epoch_of(number, workers)), expected);
    }
    EXPECT_NE(all_of(*node, epoch_of(0, 0)), all_of(*node, epoch_of(1, 0)));
}

TEST(BatchTest, SkippedBatchesAreThoseThatComeFirst) {
    const NodePtr node = shuffled_batches();
    const auto whole = all_of(*node, epoch_of(2, 0));
    for (int64_t skipped : {0, 1, 50, 125, 126, 200}) {
        const auto begin = whole.begin() + std::min<int64_t>(skipped * 8, 1003);
        EXPECT_EQ(all_of(*node, epoch_of(2, 3), skipped), std::vector<int64_t>(begin, whole.end()));
    }
}

TEST(ShuffleTest, SkippedRowsAreThoseThatComeFirst) {
    for (const int64_t buffer : {1, 2, 31, 202, 203, 204, 5000}) {
        const NodePtr node = shuffle(numbers(203, random_sampler(false, {}, 7)), buffer, 7);
        const auto whole = all_of(*node, epoch_of(2, 0));
        ASSERT_EQ(whole.size(), 203u);
        for (int64_t skipped : {0, 1, 2, 100, 171, 172, 173, 202, 203, 500}) {
            // In two steps, so that the second one finds ids and places in the buffer.
            auto cursor = node->open(epoch_of(2, 0));
            Row row;
            int64_t there = cursor->skip(skipped / 3);
            if (skipped % 3 > 0) there += cursor->next(row);
            there += cursor->skip(skipped - there);
            EXPECT_EQ(there, std::min<int64_t>(skipped, 203));
            std::vector<int64_t> rest;
            while (cursor->next(row)) rest.push_back(row[0].tensor().integer_at(0));
            EXPECT_EQ(rest, std::vector<int64_t>(whole.begin() + there, whole.end())) << buffer << " " << skipped;
        }
    }
}

TEST(BatchTest, CursorsCanBeLeftAnywhere) {
    const NodePtr node = shuffled_batches();
    for (int rows = 0; rows < 130; rows += 3) {
        auto cursor = opened(*node, epoch_of(0, 4));
        Row row;
        for (int i = 0; i < rows; ++i) cursor->next(row);
    }
}

TEST(BatchTest, AnErrorComesWhereItsBatchWouldAndStays) {
    std::vector<Column> columns(1);
    columns[0].name = "text";
    columns[0].texts = {Value("a"), Value("b")};
    // The third batch would join a number and a text.
    const NodePtr mixed =
        concat({select(numbers(5), {0}, {"text"}), source(table_records("test", columns), sequential_sampler(0, {}))});
    for (int workers : {0, 1, 4}) {
        const NodePtr node = batch(mixed, {2, false, {}});
        auto cursor = opened(*node, epoch_of(0, workers));
        Row row;
        EXPECT_TRUE(cursor->next(row));
        EXPECT_TRUE(cursor->next(row));
        EXPECT_THROW(cursor->next(row), Error);
        if (workers == 0) continue;
        EXPECT_THROW(cursor->next(row), Error);
    }
}

TEST(BatchTest, AnInterruptStopsAnEndlessSearch) {
    const NodePtr endless = repeat(numbers(3), kEndless);
    auto cursor = endless->open(epoch_of(0, 0));
    request_interrupt();
    EXPECT_THROW(cursor->skip(kEndless), Error);
    clear_interrupt();
    EXPECT_EQ(all_of(*repeat(numbers(0), kEndless), epoch_of(0, 0)).size(), 0u);
}

TEST(SamplerTest, PermutationsAreUniform) {
    // Of 24 orders of four rows each comes 1,000 times in 24,000 epochs, with a deviation of 31.
    std::map<std::vector<int64_t>, int> counts;
    const SamplerPtr sampler = random_sampler(false, {}, 3);
    for (uint64_t e = 0; e < 24000; ++e) ++counts[sampler->order(4, e).list];
    EXPECT_EQ(counts.size(), 24u);
    for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 160);
}

TEST(SamplerTest, LargeOrdersNeedNoListAndAreMixed) {
    const SamplerPtr sampler = random_sampler(false, {}, 3);
    for (int64_t rows : {int64_t{1} << 16, int64_t{65537}, int64_t{100003}, int64_t{1000000}}) {
        const Order order = sampler->order(rows, 1), other = sampler->order(rows, 2);
        EXPECT_TRUE(order.list.empty());
        std::vector<char> seen(static_cast<size_t>(rows));
        int64_t same = 0, rising = 0, equal = 0;
        double sum = 0;
        for (int64_t i = 0; i < rows; ++i) {
            const int64_t at = order.at(i);
            ASSERT_TRUE(at >= 0 && at < rows && !seen[static_cast<size_t>(at)]);
            seen[static_cast<size_t>(at)] = 1;
            same += at == i;
            equal += at == other.at(i);
            if (i > 0) rising += at > order.at(i - 1);
            sum += static_cast<double>(at) * static_cast<double>(i);
        }
        const double n = static_cast<double>(rows);
        // Fixed points of a random order: 1 in the mean. Neighbours rise half the time, with a deviation of sqrt(n /
        // 12).
        EXPECT_LT(same, 8);
        EXPECT_LT(equal, 8);
        EXPECT_NEAR(static_cast<double>(rising), n / 2, 5 * std::sqrt(n / 12));
        // The correlation of place and row has a deviation of 1 / sqrt(n).
        const double mean = (n - 1) / 2, correlation = (sum / n - mean * mean) / ((n * n - 1) / 12);
        EXPECT_LT(std::abs(correlation), 5 / std::sqrt(n));
    }
}

TEST(ShuffleTest, EveryRowCanComeAnywhereWithinTheBuffer) {
    std::map<int64_t, int> firsts;
    const NodePtr node = shuffle(numbers(100), 5, 11);
    for (uint64_t e = 0; e < 5000; ++e) {
        auto cursor = node->open(epoch_of(e, 0));
        Row row;
        cursor->next(row);
        ++firsts[row[0].tensor().integer_at(0)];
    }
    EXPECT_EQ(firsts.size(), 5u);
    for (const auto& [row, count] : firsts) EXPECT_NEAR(count, 1000, 150);
}

}  // namespace
}  // namespace lunaria::data
