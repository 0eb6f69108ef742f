#include "core/ops/contraction_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random/random.h"

namespace lunaria {
namespace {

struct Network {
    std::vector<LabelSet> operands;
    LabelSet result = 0;
    LabelSizes sizes;
};

LabelSet labels(std::initializer_list<int> list) {
    LabelSet set = 0;
    for (int label : list) set |= LabelSet{1} << label;
    return set;
}

// A product of matrices; `sizes`: rows of the first, then the columns of each.
Network chain(const std::vector<double>& sizes) {
    Network n;
    n.sizes.fill(1);
    std::ranges::copy(sizes, n.sizes.begin());
    const int last = static_cast<int>(sizes.size()) - 1;
    for (int i = 0; i < last; ++i) n.operands.push_back(labels({i, i + 1}));
    n.result = labels({0, last});
    return n;
}

ContractionOrder order_of(const Network& n) { return contraction_order(n.operands, n.result, n.sizes); }

// The cost of multiplying in the order of the steps, step by step.
double cost_of(const Network& n, const std::vector<std::pair<size_t, size_t>>& steps) {
    std::vector<LabelSet> terms = n.operands;
    std::vector<bool> used(terms.size());
    double cost = 0;
    for (auto [a, b] : steps) {
        EXPECT_FALSE(used.at(a) || used.at(b) || a == b);
        used[a] = used[b] = true;
        LabelSet outside = n.result;
        for (size_t i = 0; i < terms.size(); ++i)
            if (!used[i]) outside |= terms[i];
        cost += contraction_cost(terms[a] | terms[b], n.sizes);
        terms.push_back((terms[a] | terms[b]) & outside);
        used.push_back(false);
    }
    EXPECT_EQ(steps.size() + 1, n.operands.size());
    return cost;
}

std::vector<std::pair<size_t, size_t>> left_to_right(size_t operands) {
    std::vector<std::pair<size_t, size_t>> steps;
    for (size_t i = 1; i < operands; ++i) steps.emplace_back(i == 1 ? 0 : operands + i - 2, i);
    return steps;
}

// The least cost of all orders there are.
double least_cost(const Network& n, std::vector<LabelSet> terms) {
    if (terms.size() == 1) return 0;
    double least = HUGE_VAL;
    for (size_t i = 0; i < terms.size(); ++i)
        for (size_t j = i + 1; j < terms.size(); ++j) {
            std::vector<LabelSet> rest;
            LabelSet outside = n.result;
            for (size_t k = 0; k < terms.size(); ++k)
                if (k != i && k != j) rest.push_back(terms[k]), outside |= terms[k];
            rest.push_back((terms[i] | terms[j]) & outside);
            least = std::min(least, contraction_cost(terms[i] | terms[j], n.sizes) + least_cost(n, rest));
        }
    return least;
}

TEST(ContractionOrderTest, a_chain_of_matrices_is_multiplied_with_the_fewest_multiplications) {
    // The textbook's example: Cormen, Leiserson, Rivest, Stein, Introduction to Algorithms, section 15.2.
    const Network n = chain({30, 35, 15, 5, 10, 20, 25});
    EXPECT_EQ(order_of(n).cost, 15125);
    EXPECT_EQ(cost_of(n, order_of(n).steps), 15125);
    // A vector at the end is multiplied first.
    const Network vector = chain({100, 100, 100, 1});
    EXPECT_EQ(order_of(vector).cost, 20000);
    EXPECT_EQ(order_of(vector).steps, (std::vector<std::pair<size_t, size_t>>{{1, 2}, {0, 3}}));
}

TEST(ContractionOrderTest, equal_costs_go_from_left_to_right) {
    EXPECT_EQ(order_of(chain({4, 4, 4, 4, 4})).steps, left_to_right(4));
}

TEST(ContractionOrderTest, no_order_of_a_random_network_is_cheaper) {
    for (uint64_t stream = 0; stream < 60; ++stream) {
        Network n;
        uint64_t at = 0;
        auto draw = [&](uint32_t below) { return philox(stream, at++, 3)[0] % below; };
        for (double& size : n.sizes) size = 1 + draw(9);
        for (uint32_t i = 0, count = 2 + draw(4); i < count; ++i) {
            LabelSet set = 0;
            for (uint32_t k = 0, rank = draw(4); k <= rank; ++k) set |= LabelSet{1} << draw(7);
            n.operands.push_back(set);
            if (draw(3) == 0) n.result |= set & ~(set - 1);
        }
        const ContractionOrder order = order_of(n);
        // Sums over labels that one operand alone has come before.
        std::vector<LabelSet> terms;
        for (size_t i = 0; i < n.operands.size(); ++i) {
            LabelSet outside = n.result;
            for (size_t k = 0; k < n.operands.size(); ++k)
                if (k != i) outside |= n.operands[k];
            terms.push_back(n.operands[i] & outside);
        }
        EXPECT_DOUBLE_EQ(order.cost, least_cost(n, terms)) << stream;
        n.operands = terms;
        EXPECT_DOUBLE_EQ(order.cost, cost_of(n, order.steps)) << stream;
    }
}

TEST(ContractionOrderTest, many_operands_are_ordered_in_little_time_and_not_worse_than_from_left_to_right) {
    std::vector<double> sizes;
    for (int i = 0; i < 40; ++i) sizes.push_back(i % 3 == 0 ? 50 : i % 3 == 1 ? 2 : 11);
    const Network n = chain(sizes);
    const ContractionOrder order = order_of(n);
    EXPECT_EQ(order.cost, cost_of(n, order.steps));
    EXPECT_LT(order.cost, cost_of(n, left_to_right(n.operands.size())) / 2);
}

}  // namespace
}  // namespace lunaria
