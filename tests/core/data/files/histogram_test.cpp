#include "core/data/files/histogram.h"

#include <cmath>
#include <limits>
#include <random>

#include "core/io/protobuf.h"
#include "gtest/gtest.h"

namespace lunaria {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor tensor_of(const std::vector<double>& values, DType dtype = DType::f64) {
    Tensor t = Tensor::empty(dtype, {static_cast<int64_t>(values.size())});
    for (size_t i = 0; i < values.size(); ++i) t.set_at(static_cast<int64_t>(i), values[i]);
    return t;
}

TEST(HistogramTest, EachValueIsInTheBinThatHoldsIt) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal;
    for (const DType dtype : {DType::f32, DType::f64}) {
        std::vector<double> values(1001);
        for (double& value : values) value = normal(random);
        const Tensor x = tensor_of(values, dtype);
        const Shown::Histogram h = histogram_of(x, 20);
        ASSERT_EQ(h.limits.size(), 20U);
        EXPECT_EQ(h.limits.back(), h.most);
        double sum = 0, squares = 0, counted = 0;
        std::vector<double> counts(20);
        for (int64_t i = 0; i < x.size(); ++i) {
            const double value = x.at(i);
            sum += value;
            squares += value * value;
            size_t bin = 0;
            while (bin < 19 && value >= h.limits[bin]) ++bin;
            ++counts[bin];
        }
        for (size_t i = 0; i < 20; ++i) {
            // A value on an edge may fall to either side of it by rounding.
            EXPECT_NEAR(h.counts[i], counts[i], 1) << i;
            counted += h.counts[i];
        }
        EXPECT_EQ(counted, 1001);
        EXPECT_EQ(h.count, 1001);
        EXPECT_NEAR(h.sum, sum, 1e-9);
        EXPECT_NEAR(h.squares, squares, 1e-9);
    }
}

TEST(HistogramTest, WhatIsNotFiniteIsCountedByItself) {
    const Shown::Histogram h = histogram_of(tensor_of({1, kInf, 3, -kInf, std::nan(""), kInf, 2}), 2);
    EXPECT_EQ(h.count, 3);
    EXPECT_EQ(h.nan, 1);
    EXPECT_EQ(h.up, 2);
    EXPECT_EQ(h.down, 1);
    EXPECT_EQ(h.counts, (std::vector<double>{1, 2}));
    EXPECT_EQ(h.limits, (std::vector<double>{2, 3}));
    const Shown::Histogram none = histogram_of(tensor_of({kInf, std::nan("")}), 4);
    EXPECT_EQ(none.count, 0);
    EXPECT_EQ(none.counts, (std::vector<double>{0}));
}

TEST(HistogramTest, EqualValuesAndTheLargestOnesHaveBins) {
    const Shown::Histogram same = histogram_of(tensor_of({2, 2, 2}), 50);
    EXPECT_EQ(same.counts, (std::vector<double>{3}));
    EXPECT_EQ(same.limits, (std::vector<double>{2}));
    const double most = std::numeric_limits<double>::max();
    const Shown::Histogram wide = histogram_of(tensor_of({-most, 0, most}), 2);
    double counted = 0;
    for (const double count : wide.counts) counted += count;
    EXPECT_EQ(counted, 3);
    EXPECT_EQ(wide.limits.back(), most);
    // Neighbours, between which the width of a bin is nothing.
    const double next = std::nextafter(1.0, 2.0);
    const Shown::Histogram near = histogram_of(tensor_of({1.0, next}), 50);
    EXPECT_EQ(near.limits.back(), next);
}

TEST(HistogramTest, BothFormsAreReadAsTheSame) {
    const Shown::Histogram h = histogram_of(tensor_of({1, 2, 3, 4, std::nan("")}), 3);
    ProtoWriter summary, event;
    for (const std::string& value : histogram_values("w", h)) summary.bytes(1, value);
    event.message(5, summary);
    const Event read = read_event(event.text(), "test");
    ASSERT_EQ(read.values.size(), 1U);
    const auto& found = std::get<Shown::Histogram>(read.values[0].value);
    EXPECT_EQ(found.counts, h.counts);
    EXPECT_EQ(found.limits, h.limits);
    EXPECT_EQ(found.nan, 1);
    EXPECT_EQ(found.count, 4);
    ProtoWriter only, second;
    only.bytes(1, histogram_values("w", h)[1]);
    second.message(5, only);
    const auto own = std::get<Shown::Histogram>(read_event(second.text(), "test").values.at(0).value);
    EXPECT_EQ(own.counts, h.counts);
    EXPECT_EQ(own.count, 4);
    EXPECT_EQ(own.sum, 10);
}

}  // namespace
}  // namespace lunaria
