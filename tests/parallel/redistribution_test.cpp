#include "core/parallel/redistribution.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/parallel/communicator.h"
#include "core/parallel/simulated.h"
#include "tests/parallel/layouts.h"

namespace lunaria::parallel {
namespace {

struct Tally {
    int pairs = 0, wrong = 0, above_bound = 0, paths = 0;
    std::string first;
    void note(const std::string& text) {
        if (first.empty()) first = text;
    }
};

// One pair of layouts: both candidates are executed, and where sending costs bytes alone the plan meets the bound.
void check_pair(const Distribution& from, const Distribution& to, const Shape& shape, Tally& tally) {
    ++tally.pairs;
    const std::string name = from.text(shape) + " to " + to.text(shape) + " on " + from.mesh().text();
    Costs free_start;
    free_start.link = {0, 1e-9};
    const Laid laid = random_pieces(from, shape, DType::f32, static_cast<uint32_t>(tally.pairs));
    std::vector<Plan> plans = {plan_redistribution(from, to, shape, DType::f32, free_start),
                               plan_redistribution(from, to, shape, DType::f32)};
    const Volume bound = lower_bound_bytes(from, to, shape, DType::f32);
    const bool is_complete = !from.partial() && !to.partial();
    // The counters of all_reduce round the bytes of each rank down.
    const int64_t rounding = from.partial() ? from.mesh().count() : 1;
    if (plans[0].total_bytes > bound.total || plans[0].total_bytes + rounding <= bound.total ||
        (is_complete && plans[0].bytes != bound.received)) {
        ++tally.above_bound;
        tally.note(name + ": " + plans[0].text() + ", in all " + std::to_string(plans[0].total_bytes) + ", bound " +
                   std::to_string(bound.received) + ", in all " + std::to_string(bound.total));
    }
    plans.push_back(direct_exchange(from, to, shape, DType::f32));
    for (const Plan& plan : plans) {
        tally.paths += plan.steps.size() > 1;
        const std::string wrong = difference(to, laid.whole, redistribute(plan, laid.pieces));
        if (wrong.empty()) continue;
        ++tally.wrong;
        tally.note(name + ": " + plan.text() + ": " + wrong);
    }
}

// All ordered pairs, or `count` of them chosen at random.
Tally check_pairs(const std::vector<int64_t>& sizes, const Shape& shape, Merge merge, size_t count = 0) {
    const std::vector<const Distribution*> layouts = all_layouts(mesh_of(sizes), shape.rank(), merge);
    Tally tally;
    std::mt19937 random(7);
    for (size_t i = 0; i < (count ? count : layouts.size() * layouts.size()); ++i) {
        const size_t k = count ? random() % (layouts.size() * layouts.size()) : i;
        check_pair(*layouts[k / layouts.size()], *layouts[k % layouts.size()], shape, tally);
    }
    return tally;
}

void expect_fine(const Tally& tally) {
    EXPECT_EQ(tally.wrong, 0) << tally.first;
    EXPECT_EQ(tally.above_bound, 0) << tally.first;
}

TEST(Redistribution, EveryPairOfLayoutsOfSmallMeshesIsExactAndMovesTheLeast) {
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{2}, {3}, {4}})
        for (const Shape& shape : {Shape{12}, Shape{12, 4}, Shape{12, 2, 12}, Shape{5, 3}})
            expect_fine(check_pairs(sizes, shape, Merge::sum));
    expect_fine(check_pairs({2, 2}, {4, 8}, Merge::sum));
    expect_fine(check_pairs({3, 2}, {6, 12}, Merge::sum));
}

TEST(Redistribution, PairsOfLayoutsOfLargerMeshesAreExactAndMoveTheLeast) {
    expect_fine(check_pairs({2, 2}, {4, 4, 4}, Merge::sum, 300));
    expect_fine(check_pairs({4, 2}, {8, 8, 8}, Merge::sum, 300));
    expect_fine(check_pairs({2, 2, 2}, {8, 8, 8}, Merge::sum, 300));
    expect_fine(check_pairs({3, 2}, {6, 6, 6}, Merge::sum, 300));
}

TEST(Redistribution, PiecesMayBeUnequalOrEmpty) {
    expect_fine(check_pairs({2, 2}, {3, 5}, Merge::sum));
    expect_fine(check_pairs({3, 2}, {7, 1, 2}, Merge::sum, 300));
    expect_fine(check_pairs({4, 2}, {5, 0, 3}, Merge::none, 100));
}

bool same_bits(const Tensor& a, const Tensor& b) {
    const Tensor left = a.contiguous(), right = b.contiguous();
    return left.shape() == right.shape() && std::memcmp(left.raw(), right.raw(), left.nbytes()) == 0;
}

// Fractions, whose sums depend on the order.
std::vector<Tensor> fractions(std::vector<Tensor> pieces) {
    for (Tensor& piece : pieces)
        for (int64_t k = 0; k < piece.size(); ++k) piece.set_at(k, 1.0 / (1 + 13 * piece.at(k) + 0.1 * k));
    return pieces;
}

TEST(Redistribution, RanksWithACommunicatorGetTheBitsOfOneProcessAndTheBytesOfThePlan) {
    const Mesh& mesh = mesh_of({2, 2});
    const std::vector<const Distribution*> layouts = all_layouts(mesh, 2);
    std::mt19937 random(3);
    std::vector<Plan> plans;
    std::vector<std::vector<Tensor>> given, expected;
    for (int i = 0; i < 120; ++i) {
        const Distribution &from = *layouts[random() % layouts.size()], &to = *layouts[random() % layouts.size()];
        const Shape shape = i % 2 ? Shape{4, 8} : Shape{5, 3};
        Costs costs;
        if (i % 3 == 0) costs.link.latency = 0;
        plans.push_back(plan_redistribution(from, to, shape, DType::f32, costs));
        given.push_back(fractions(random_pieces(from, shape, DType::f32, static_cast<uint32_t>(i)).pieces));
        // Ranks with the same part must have the same fractions.
        expected.push_back(redistribute(plans.back(), given.back()));
    }
    std::vector<std::vector<Tensor>> results(4);
    std::vector<std::vector<int64_t>> bytes(4);
    run_simulated(4, [&](Communicator& communicator) {
        const auto rank = static_cast<size_t>(communicator.rank());
        for (size_t i = 0; i < plans.size(); ++i) {
            communicator.reset_traffic();
            results[rank].push_back(redistribute(plans[i], given[i][rank], communicator));
            uint64_t sum = 0;
            for (size_t c = 0; c < kCollectives; ++c) sum += communicator.traffic(static_cast<Collective>(c)).bytes;
            bytes[rank].push_back(static_cast<int64_t>(sum));
        }
    });
    for (size_t i = 0; i < plans.size(); ++i) {
        int64_t total = 0;
        for (size_t rank = 0; rank < 4; ++rank) {
            EXPECT_TRUE(same_bits(results[rank][i], expected[i][rank])) << plans[i].text() << ", rank " << rank;
            total += bytes[rank][i];
        }
        EXPECT_EQ(total, plans[i].total_bytes) << plans[i].text();
    }
}

TEST(Redistribution, RanksOfAnotherMeshGetTheTensor) {
    const std::vector<int64_t> three = {3}, four = {2, 2};
    const std::vector<std::string> one = {"x"}, two = {"x", "y"};
    const std::vector<int> late = {2, 4, 3}, odd = {0, 3, 1, 4};
    const Mesh &left = Mesh::of("test", three, one, late), &right = Mesh::of("test", four, two, odd);
    const Shape shape{6, 4};
    for (const Distribution* from : all_layouts(left, 2))
        for (const Distribution* to : complete_layouts(right, 2)) {
            const Laid laid = random_pieces(*from, shape, DType::i32, 5);
            const Plan plan = plan_redistribution(*from, *to, shape, DType::i32);
            EXPECT_EQ(difference(*to, laid.whole, redistribute(plan, laid.pieces)), "") << plan.text();
            EXPECT_EQ(direct_exchange(*from, *to, shape, DType::i32, {{0, 1e-9}, {}, 0}).total_bytes,
                      lower_bound_bytes(*from, *to, shape, DType::i32).total);
            std::vector<Tensor> results(4);
            run_simulated(5, [&](Communicator& communicator) {
                const int64_t source = left.position(communicator.rank()), target = right.position(communicator.rank());
                const Tensor piece = source < 0 ? Tensor() : laid.pieces[static_cast<size_t>(source)];
                const Tensor result = redistribute(plan, piece, communicator);
                if (target >= 0) results[static_cast<size_t>(target)] = result;
            });
            EXPECT_EQ(difference(*to, laid.whole, results), "") << plan.text();
        }
}

}  // namespace
}  // namespace lunaria::parallel
