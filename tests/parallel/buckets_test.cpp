#include "core/parallel/buckets.h"

#include <gtest/gtest.h>

#include <random>

namespace lunaria::parallel {

namespace {

// Every way to cut the gradients, which are at most 14.
double best_by_trial(std::span<const ReadyGradient> gradients, MessageCost cost, int64_t most_bytes) {
    const size_t count = gradients.size();
    double best = INFINITY;
    for (uint32_t cuts = 0; cuts < 1u << (count - 1); ++cuts) {
        Buckets buckets;
        for (size_t i = 0; i + 1 < count; ++i)
            if (cuts >> i & 1) buckets.push_back(i + 1);
        buckets.push_back(count);
        bool fits = true;
        for (size_t b = 0, begin = 0; b < buckets.size(); begin = buckets[b++]) {
            int64_t bytes = 0;
            for (size_t i = begin; i < buckets[b]; ++i) bytes += gradients[i].bytes;
            fits &= bytes <= most_bytes || buckets[b] - begin == 1;
        }
        if (fits) best = std::min(best, end_of_messages(gradients, buckets, cost));
    }
    return best;
}

std::vector<ReadyGradient> random_gradients(std::mt19937& random, size_t most) {
    std::vector<ReadyGradient> gradients(1 + random() % most);
    double now = 0;
    for (ReadyGradient& g : gradients) {
        now += static_cast<double>(random() % 1000) * 1e-5;
        g = {now, static_cast<int64_t>(4 * (1 + random() % (random() % 2 ? 100 : 1000000)))};
    }
    return gradients;
}

}  // namespace

TEST(Buckets, AreTheBestOfAllWaysToCut) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const auto gradients = random_gradients(random, round % 20 == 0 ? 14 : 9);
        const MessageCost cost{static_cast<double>(random() % 1000) * 1e-5,
                               static_cast<double>(random() % 100) * 1e-10};
        const int64_t most = round % 3 ? INT64_MAX : static_cast<int64_t>(random() % 4000000);
        const Buckets found = best_buckets(gradients, cost, most);
        ASSERT_EQ(found.back(), gradients.size());
        ASSERT_DOUBLE_EQ(end_of_messages(gradients, found, cost), best_by_trial(gradients, cost, most))
            << "round " << round;
    }
}

TEST(Buckets, AreOneMessageWhereLatencyIsAllAndOneEachWhereItIsNone) {
    const std::vector<ReadyGradient> gradients = {{1, 100}, {2, 100}, {3, 100}};
    EXPECT_EQ(best_buckets(gradients, {10, 0}), (Buckets{3}));
    EXPECT_EQ(best_buckets(gradients, {0, 0.005}), (Buckets{1, 2, 3}));
    EXPECT_TRUE(best_buckets({}, {1, 1}).empty());
}

TEST(Buckets, HaveABestSizeBetweenTheExtremes) {
    // A network of 60 layers of 400 KB; a message of 50 us and 1 GB/s.
    std::vector<ReadyGradient> gradients(60);
    std::vector<int64_t> bytes(60, 400'000);
    for (size_t i = 0; i < 60; ++i) gradients[i] = {1e-4 * static_cast<double>(i + 1), 400'000};
    const MessageCost cost{5e-5, 1e-10};
    const auto end = [&](int64_t most) { return end_of_messages(gradients, buckets_of_size(bytes, most), cost); };
    const double best = end_of_messages(gradients, best_buckets(gradients, cost), cost);
    double least = INFINITY;
    for (int64_t most = 400'000; most <= 24'000'000; most += 400'000) least = std::min(least, end(most));
    EXPECT_LT(least, end(24'000'000) * 0.9);
    EXPECT_LE(best, least);
    EXPECT_GE(best, least * 0.95);
}

TEST(Buckets, OfASizeHoldAtMostThat) {
    const std::vector<int64_t> bytes = {10, 10, 50, 5, 5, 5};
    EXPECT_EQ(buckets_of_size(bytes, 20), (Buckets{2, 3, 6}));
    EXPECT_EQ(buckets_of_size(bytes, 1), (Buckets{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(buckets_of_size(bytes, 1000), (Buckets{6}));
}

TEST(Buckets, CostIsFoundFromMeasuredMessages) {
    std::vector<Message> messages;
    for (int64_t bytes : {64, 4096, 65536, 1 << 20})
        messages.push_back({bytes, 2e-5 + 3e-10 * static_cast<double>(bytes)});
    const MessageCost cost = fitted_cost(messages);
    EXPECT_NEAR(cost.latency, 2e-5, 1e-9);
    EXPECT_NEAR(cost.per_byte, 3e-10, 1e-14);
    // Times that fall with the size are no line with coefficients that make sense.
    const std::vector<Message> falling = {{10, 2.0}, {1000, 1.0}};
    EXPECT_EQ(fitted_cost(falling).per_byte, 0);
    EXPECT_GT(fitted_cost(falling).latency, 0);
}

}  // namespace lunaria::parallel
