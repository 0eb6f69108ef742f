#include "core/parallel/gradients.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "core/base/error.h"
#include "core/parallel/reductions.h"
#include "core/parallel/simulated.h"

namespace lunaria::parallel {

namespace {

using List = std::vector<Tensor>;

const std::vector<GradientType> kGradients = {{{DType::f32, {3, 5}}, "a"},
                                              {{DType::f32, {7}}, "b"},
                                              {{DType::f64, {4}}, "c"},
                                              {{DType::f32, {1}}, "d"},
                                              {{DType::f16, {6}}, "e"}};

Tensor random_tensor(const TensorType& type, uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    Tensor t = Tensor::empty(DType::f64, type.shape);
    for (int64_t i = 0; i < t.size(); ++i) t.set_at(i, normal(random));
    return t.cast(type.dtype);
}

Tensor gradient(size_t index, uint32_t shard, uint32_t step = 0) {
    return random_tensor(kGradients[index].type, static_cast<uint32_t>(index) + 100 * shard + 10000 * step);
}

uint32_t reversed(uint32_t value, uint32_t count) {
    uint32_t result = 0;
    for (; count > 1; count /= 2, value /= 2) result = result * 2 + value % 2;
    return result;
}

// A step of one of `ranks` ranks over shards of one number, given in the order in which rounds of pairs meet.
List step_of(GradientExchange& exchange, uint32_t rank, uint32_t ranks, uint32_t shards, uint32_t step = 0) {
    const uint32_t own = shards / ranks;
    for (uint32_t k = 0; k < own; ++k)
        for (size_t i = 0; i < kGradients.size(); ++i)
            exchange.give(i, gradient(i, rank + ranks * reversed(k, own), step));
    List results;
    for (size_t i = 0; i < kGradients.size(); ++i) results.push_back(exchange.take(i));
    return results;
}

std::vector<List> on_ranks(uint32_t ranks, uint32_t shards, const ExchangeOptions& wanted, uint32_t steps = 1,
                           std::vector<std::vector<std::vector<size_t>>>* buckets = nullptr) {
    std::vector<List> results(ranks);
    const auto rank_of = [&](uint32_t rank, Communicator* communicator) {
        ExchangeOptions options = wanted;
        options.communicator = communicator;
        options.shards = static_cast<int>(shards / ranks);
        GradientExchange exchange(kGradients, options);
        for (uint32_t step = 0; step < steps; ++step) results[rank] = step_of(exchange, rank, ranks, shards, step);
        if (buckets) (*buckets)[rank] = exchange.buckets();
    };
    if (ranks == 1)
        rank_of(0, nullptr);
    else
        run_simulated(static_cast<int>(ranks), [&](Communicator& c) { rank_of(static_cast<uint32_t>(c.rank()), &c); });
    return results;
}

void expect_same_bits(const List& a, const List& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
        const Tensor x = a[i].contiguous(), y = b[i].contiguous();
        ASSERT_EQ(x.dtype(), y.dtype());
        ASSERT_EQ(x.nbytes(), y.nbytes());
        EXPECT_EQ(std::memcmp(x.raw(), y.raw(), x.nbytes()), 0) << "gradient " << i;
    }
}

double sum_over(uint32_t shards, size_t index, int64_t element) {
    double sum = 0;
    for (uint32_t s = 0; s < shards; ++s) sum += gradient(index, s).at(element);
    return sum;
}

}  // namespace

TEST(Gradients, OfFixedShardsAreTheSameBitsForAnyNumberOfRanksAndAnyBuckets) {
    ExchangeOptions options;
    options.combination = Combination::tree;
    options.factor = 0.125;
    const List alone = on_ranks(1, 8, options)[0];
    for (size_t i = 0; i < kGradients.size(); ++i)
        for (int64_t k = 0; k < alone[i].size(); ++k)
            EXPECT_NEAR(alone[i].at(k), sum_over(8, i, k) / 8, i == 4 ? 2e-3 : 1e-6);
    for (uint32_t ranks : {2, 4, 8}) {
        for (const Buckets& ends : {Buckets{5}, Buckets{1, 2, 3, 4, 5}, Buckets{2, 5}}) {
            options.ends = ends;
            for (const List& of_rank : on_ranks(ranks, 8, options)) expect_same_bits(of_rank, alone);
        }
    }
}

TEST(Gradients, AreSumsOfTheRanks) {
    ExchangeOptions options;
    for (const Buckets& ends : {Buckets{}, Buckets{1, 5}}) {
        options.ends = ends;
        const std::vector<List> results = on_ranks(3, 3, options);
        for (const List& of_rank : results) {
            expect_same_bits(of_rank, results[0]);
            for (size_t i = 0; i < kGradients.size(); ++i)
                for (int64_t k = 0; k < of_rank[i].size(); ++k)
                    EXPECT_NEAR(of_rank[i].at(k), sum_over(3, i, k), i == 4 ? 1e-2 : 1e-5);
        }
    }
}

TEST(Gradients, GoInBucketsThatAllRanksChooseAlikeFromMeasuredTimes) {
    ExchangeOptions options;
    options.settles_after = 1;
    std::vector<std::vector<std::vector<size_t>>> buckets(4);
    const std::vector<List> results = on_ranks(4, 4, options, 3, &buckets);
    for (uint32_t rank = 1; rank < 4; ++rank) {
        EXPECT_EQ(buckets[rank], buckets[0]);
        expect_same_bits(results[rank], results[0]);
    }
    size_t count = 0;
    for (const auto& bucket : buckets[0]) {
        count += bucket.size();
        for (size_t i : bucket)
            EXPECT_EQ(kGradients[i].type.dtype == DType::f64, kGradients[bucket[0]].type.dtype == DType::f64);
    }
    EXPECT_EQ(count, kGradients.size());
}

TEST(Gradients, OfHalvesGoInMessagesOf16Bits) {
    std::vector<Tensor> results(2);
    uint64_t bytes = 0;
    run_simulated(2, [&](Communicator& c) {
        ExchangeOptions options;
        options.communicator = &c;
        options.packing = Packing::half;
        options.half = DType::bf16;
        GradientExchange exchange({{{DType::f32, {1000}}, "w"}}, options);
        exchange.give(0, random_tensor({DType::f32, {1000}}, static_cast<uint32_t>(c.rank())));
        results[static_cast<size_t>(c.rank())] = exchange.take(0);
        if (c.rank() == 0) bytes = c.traffic(Collective::all_reduce).bytes;
    });
    EXPECT_EQ(bytes, 2000U);
    expect_same_bits({results[0]}, {results[1]});
    const Tensor a = random_tensor({DType::f32, {1000}}, 0), b = random_tensor({DType::f32, {1000}}, 1);
    for (int64_t i = 0; i < 1000; ++i) EXPECT_NEAR(results[0].at(i), a.at(i) + b.at(i), 0.04);
}

TEST(Gradients, LeaveNothingOutForeverWhereOnlyTheLargestElementsGo) {
    // The sums over all steps of what is taken and what is left out are those of what was given.
    constexpr int64_t kSize = 200;
    constexpr uint32_t kSteps = 40;
    const GradientType type{{DType::f32, {kSize}}, "w"};
    std::vector<double> given(kSize, 0), taken(kSize, 0);
    for (uint32_t step = 0; step < kSteps; ++step)
        for (uint32_t rank = 0; rank < 2; ++rank)
            for (int64_t i = 0; i < kSize; ++i)
                given[static_cast<size_t>(i)] += random_tensor(type.type, step * 2 + rank).at(i);
    run_simulated(2, [&](Communicator& c) {
        ExchangeOptions options;
        options.communicator = &c;
        options.packing = Packing::top_k;
        options.fraction = 0.05;
        GradientExchange exchange({type}, options);
        const auto step = [&](const Tensor& gradient) {
            exchange.give(0, gradient);
            const Tensor result = exchange.take(0);
            int nonzero = 0;
            for (int64_t i = 0; i < kSize; ++i) {
                if (c.rank() == 0) taken[static_cast<size_t>(i)] += result.at(i);
                nonzero += result.at(i) != 0;
            }
            return nonzero;
        };
        for (uint32_t k = 0; k < kSteps; ++k)
            EXPECT_LE(step(random_tensor(type.type, k * 2 + static_cast<uint32_t>(c.rank()))), 20);
        // Without new gradients what was left out goes at last.
        for (int k = 0; k < 25; ++k) step(Tensor::zeros(DType::f32, {kSize}));
    });
    for (size_t i = 0; i < kSize; ++i) EXPECT_NEAR(taken[i], given[i], 1e-3);
}

TEST(Gradients, OfAdasumCountWhatIsEqualOnceAndAddWhatIsOrthogonal) {
    std::vector<List> results(4);
    run_simulated(4, [&](Communicator& c) {
        ExchangeOptions options;
        options.communicator = &c;
        options.combination = Combination::adasum;
        GradientExchange exchange({{{DType::f32, {4}}, "equal"}, {{DType::f32, {4}}, "orthogonal"}}, options);
        Tensor own = Tensor::zeros(DType::f32, {4});
        own.set_at(c.rank(), 3);
        exchange.give(0, Tensor::full(DType::f32, {4}, 1.5));
        exchange.give(1, own);
        results[static_cast<size_t>(c.rank())] = {exchange.take(0), exchange.take(1)};
    });
    for (const List& of_rank : results)
        for (int64_t i = 0; i < 4; ++i) {
            EXPECT_EQ(of_rank[0].at(i), 1.5);
            EXPECT_EQ(of_rank[1].at(i), 3);
        }
}

TEST(Gradients, SayWhatIsMissingOrGivenTwice) {
    GradientExchange exchange(kGradients, {});
    const auto message = [](auto&& f) {
        try {
            f();
        } catch (const Error& e) {
            return e.message();
        }
        return std::string();
    };
    exchange.give(0, gradient(0, 0));
    EXPECT_NE(message([&] { exchange.give(0, gradient(0, 0)); }).find("a was given before"), std::string::npos);
    EXPECT_NE(message([&] { exchange.give(1, gradient(0, 0)); }).find("has shape (3, 5) and not (7)"),
              std::string::npos);
    EXPECT_NE(message([&] { exchange.take(0); }).find("waits for that of b, which was not given"), std::string::npos);
    exchange.cancel();
    EXPECT_EQ(step_of(exchange, 0, 1, 1).size(), kGradients.size());
    EXPECT_NE(message([] {
                  ExchangeOptions options;
                  options.shards = 3;
                  GradientExchange other(kGradients, options);
              }).find("must have 1, 2, 4, 8 ... shards, not 3"),
              std::string::npos);
}

}  // namespace lunaria::parallel
