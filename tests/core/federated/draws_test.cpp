#include "core/federated/draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace lunaria::federated {

TEST(Draws, ChosenDevicesDifferAndLieInThePopulation) {
    for (const auto& [population, count] :
         {std::pair{10, 3}, {10, 10}, {10, 0}, {1, 1}, {1000, 999}, {1000, 501}, {1000, 500}}) {
        const auto list = chosen(7, 3, static_cast<uint64_t>(population), static_cast<uint64_t>(count));
        EXPECT_EQ(list.size(), static_cast<size_t>(count));
        EXPECT_EQ(std::set(list.begin(), list.end()).size(), list.size());
        EXPECT_TRUE(std::ranges::is_sorted(list));
        for (const uint64_t d : list) EXPECT_LT(d, static_cast<uint64_t>(population));
        EXPECT_EQ(chosen(7, 3, static_cast<uint64_t>(population), static_cast<uint64_t>(count)), list);
    }
    EXPECT_NE(chosen(7, 3, 1000, 10), chosen(7, 4, 1000, 10));
    EXPECT_NE(chosen(7, 3, 1000, 10), chosen(8, 3, 1000, 10));
}

TEST(Draws, EachSetIsEquallyLikely) {
    // The six pairs out of four, in 6,000 rounds: five degrees of freedom, of which 20.5 is the 0.999 quantile.
    for (const uint64_t count : {2, 3}) {
        std::map<std::vector<uint64_t>, int> seen;
        for (uint64_t round = 1; round <= 6000; ++round) ++seen[chosen(1, round, 4, count)];
        const double expected = 6000.0 / (count == 2 ? 6 : 4);
        EXPECT_EQ(seen.size(), count == 2 ? 6u : 4u);
        double chi = 0;
        for (const auto& [set, n] : seen) chi += (n - expected) * (n - expected) / expected;
        EXPECT_LT(chi, 20.5);
    }
}

TEST(Draws, UniformNumbersAreOfTheirPosition) {
    double sum = 0;
    for (uint64_t d = 0; d < 10'000; ++d) {
        const double u = uniform(3, 9, d, Purpose::selection);
        ASSERT_GE(u, 0);
        ASSERT_LT(u, 1);
        sum += u;
    }
    EXPECT_NEAR(sum / 10'000, 0.5, 0.01);
    EXPECT_EQ(uniform(3, 9, 5, Purpose::selection), uniform(3, 9, 5, Purpose::selection));
    EXPECT_NE(uniform(3, 9, 5, Purpose::selection), uniform(3, 9, 5, Purpose::next_request));
}

}  // namespace lunaria::federated
