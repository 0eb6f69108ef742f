#include "core/parallel/elimination.h"

#include <gtest/gtest.h>

#include <random>

namespace lunaria::parallel {
namespace {

struct Drawn {
    Elimination problem;
    double most_bytes = 0, least_bytes = 0;
};

Drawn draw(std::mt19937& random) {
    std::uniform_real_distribution<double> cost(0, 10);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Drawn d;
    const int count = 2 + below(6);
    std::vector<int> sizes;
    for (int v = 0; v < count; ++v) {
        sizes.push_back(1 + below(6));
        std::vector<double> seconds, bytes;
        for (int i = 0; i < sizes.back(); ++i) {
            seconds.push_back(below(12) == 0 ? Elimination::kForbidden : cost(random));
            bytes.push_back(std::floor(cost(random)));
        }
        d.most_bytes += *std::max_element(bytes.begin(), bytes.end());
        d.least_bytes += *std::min_element(bytes.begin(), bytes.end());
        d.problem.add_variable(seconds, bytes, below(2));
    }
    for (int b = 1; b < count; ++b)
        for (int a = 0; a < b; ++a) {
            if (below(2)) continue;
            auto table = std::make_shared<PairTable>();
            const bool turned = below(2);
            const int rows = sizes[static_cast<size_t>(turned ? b : a)],
                      columns = sizes[static_cast<size_t>(turned ? a : b)];
            table->rows = static_cast<size_t>(rows), table->columns = static_cast<size_t>(columns);
            for (int i = 0; i < rows * columns; ++i)
                table->cells.push_back(below(15) == 0 ? Elimination::kForbidden : cost(random));
            d.problem.add_pair(turned ? b : a, turned ? a : b, table);
        }
    return d;
}

TEST(Elimination, equals_all_values_tried_also_within_limits) {
    std::mt19937 random(38);
    int limited = 0, nothing = 0;
    for (int turn = 0; turn < 1000; ++turn) {
        const Drawn d = draw(random);
        for (double share : {1.0, 0.7, 0.4, 0.1}) {
            const double limit = d.least_bytes + share * (d.most_bytes - d.least_bytes);
            const Cheapest found = d.problem.solve(limit), best = d.problem.exhaustive(limit);
            ASSERT_EQ(found.values.empty(), best.values.empty()) << turn << " " << share;
            nothing += best.values.empty();
            if (best.values.empty()) continue;
            ASSERT_NEAR(found.seconds, best.seconds, 1e-9) << turn << " " << share;
            ASSERT_LE(found.bytes, limit);
            ASSERT_TRUE(found.is_exact()) << turn << " " << share;
            limited += d.problem.exhaustive().bytes > limit;
        }
    }
    EXPECT_GT(limited, 500);
    EXPECT_GT(nothing, 10);
}

TEST(Elimination, a_chain_of_equal_layers_is_as_short_as_one) {
    // 2,000 layers of 3 variables with 60 values: the tables inside of a layer are the same object.
    std::mt19937 random(1);
    std::uniform_real_distribution<double> cost(0, 1);
    const auto table = [&] {
        auto t = std::make_shared<PairTable>(PairTable{60, 60, std::vector<double>(3600)});
        for (double& cell : t->cells) cell = cost(random);
        return t;
    };
    const auto in = table(), through = table(), out = table(), past = table();
    Elimination problem;
    const std::vector<double> nothing(60, 0);
    int stream = problem.add_variable(nothing, {}, 1);
    for (int layer = 0; layer < 2000; ++layer) {
        const int a = problem.add_variable(nothing, {}), b = problem.add_variable(nothing, {});
        const int next = problem.add_variable(nothing, {}, 1);
        problem.add_pair(stream, a, in);
        problem.add_pair(a, b, through);
        problem.add_pair(b, next, out);
        problem.add_pair(stream, next, past);
        stream = next;
    }
    const Cheapest found = problem.solve();
    EXPECT_NEAR(problem.seconds_of(found.values), found.seconds, 1e-9);
    EXPECT_TRUE(found.is_exact());
    // No change of one value makes it cheaper.
    for (int turn = 0; turn < 300; ++turn) {
        auto other = found.values;
        other[random() % other.size()] = static_cast<int>(random() % 60);
        EXPECT_GE(problem.seconds_of(other), found.seconds - 1e-9);
    }
}

}  // namespace
}  // namespace lunaria::parallel
