#include "core/federated/vertical/masked_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/base/error.h"

namespace lunaria::federated {
namespace {

Tensor random_integers(std::mt19937_64& draws, const Shape& shape) {
    Tensor t = Tensor::empty(DType::i64, shape);
    for (int64_t i = 0; i < t.size(); ++i) t.data<uint64_t>()[i] = draws();
    return t;
}

Secret seed_of(uint8_t number) {
    Bytes32 bytes{};
    bytes[5] = number;
    return Secret(bytes);
}

bool equal(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && std::equal(a.data<int64_t>(), a.data<int64_t>() + a.size(), b.data<int64_t>());
}

TEST(MaskedProducts, SharesSumUpToTheProductModulo2To64) {
    std::mt19937_64 draws(1);
    for (const auto& [rows, n, k] :
         {std::tuple(1, 1, 1), std::tuple(7, 33, 3), std::tuple(40, 900, 2), std::tuple(3, 0, 2)}) {
        const Tensor m = random_integers(draws, {rows, n}), v = random_integers(draws, {k, n});
        const Secret owner = seed_of(1), asker = seed_of(2);
        const Tensor a = drawn_integers(asker, "vector", 0, static_cast<int64_t>(k) * n).reshaped({k, n});
        const Tensor s = drawn_integers(asker, "share", 0, static_cast<int64_t>(k) * rows).reshaped({k, rows});
        const Tensor correction = ring_difference(mask_product(owner, rows, a), s);  // of the dealer
        const Tensor one = ring_sum(ring_product(masked_matrix(m, owner), v), s);    // of the asker
        const Tensor other = ring_sum(mask_product(owner, rows, ring_difference(v, a)), correction);
        EXPECT_TRUE(equal(ring_sum(one, other), ring_product(m, v))) << rows << " " << n;
    }
}

TEST(MaskedProducts, WhatIsSentLooksRandom) {
    // A matrix of zeros and vectors of small numbers: bits of what leaves are even, and unlike what they hide.
    const Tensor m = Tensor::zeros(DType::i64, {50, 400});
    const Tensor sent = masked_matrix(m, seed_of(3));
    double ones = 0;
    for (int64_t i = 0; i < sent.size(); ++i) ones += __builtin_popcountll(sent.data<uint64_t>()[i]);
    const double bits = 64.0 * static_cast<double>(sent.size());
    EXPECT_LT(std::abs(ones - bits / 2) / std::sqrt(bits / 4), 4.5);
    double product = 0, square = 0, norm = 0;
    const Tensor a = drawn_integers(seed_of(4), "vector", 0, 20000);
    for (int64_t i = 0; i < a.size(); ++i) {
        const double x = std::sin(static_cast<double>(i)),
                     y = static_cast<double>(static_cast<int64_t>(x * 1e12) - a.data<int64_t>()[i]);
        product += x * y, square += x * x, norm += y * y;
    }
    EXPECT_LT(std::abs(product / std::sqrt(square * norm)), 0.035);  // five standard deviations
    EXPECT_FALSE(equal(drawn_integers(seed_of(4), "vector", 0, 8), drawn_integers(seed_of(4), "vector", 1, 8)));
    EXPECT_FALSE(equal(drawn_integers(seed_of(4), "vector", 0, 8), drawn_integers(seed_of(4), "share", 0, 8)));
}

TEST(MaskedProducts, HistogramsAreProductsWithZerosAndOnes) {
    std::mt19937_64 draws(5);
    constexpr int64_t kColumns = 3, kRows = 200, kWidth = 6;
    Tensor of = Tensor::empty(DType::i64, {kColumns, kRows}),
           indicators = Tensor::zeros(DType::i64, {kColumns * kWidth, kRows});
    for (int64_t f = 0; f < kColumns; ++f)
        for (int64_t i = 0; i < kRows; ++i) {
            const auto at = static_cast<int64_t>(draws() % kWidth);
            of.data<int64_t>()[f * kRows + i] = at;
            indicators.data<int64_t>()[(f * kWidth + at) * kRows + i] = 1;
        }
    const Tensor v = random_integers(draws, {2, kRows});
    EXPECT_TRUE(equal(ring_histogram(of, kWidth, v), ring_product(indicators, v)));
    EXPECT_THROW(ring_histogram(of, kWidth - 3, v), Error);
}

TEST(MaskedProducts, FixedPointRoundsToTheNearest) {
    const std::vector<double> numbers = {0.0, 1.0, -1.0, 0.3, -0.3, 0.5, 1.5, -2.5};
    const Tensor x = Tensor::from<double>(numbers, {8});
    const Tensor q = to_fixed(x, 0);
    const int64_t expected[] = {0, 1, -1, 0, 0, 0, 2, -2};
    for (int i = 0; i < 8; ++i) EXPECT_EQ(q.data<int64_t>()[i], expected[i]);
    const Tensor back = from_fixed(to_fixed(x, 40), 40);
    for (int i = 0; i < 8; ++i) EXPECT_NEAR(back.data<double>()[i], numbers[static_cast<size_t>(i)], 0x1p-41);
    for (const double bad : {1e7, -1e7, std::nan(""), HUGE_VAL})
        EXPECT_THROW(to_fixed(Tensor::full(DType::f64, {1}, bad), 40), Error);
}

}  // namespace
}  // namespace lunaria::federated
