#include "core/federated/compression.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "core/base/error.h"
#include "core/federated/signds.h"

namespace lunaria::federated {
namespace {

std::vector<double> normal_values(size_t count, unsigned seed, double deviation = 0.05) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal(0, deviation);
    std::vector<double> values(count);
    for (double& v : values) v = normal(random);
    return values;
}

// MindSpore's example of DIFF_SPARSE_QUANT.
TEST(Compression, Quantisation_gives_the_published_numbers) {
    const std::vector<double> data = {0.03356021,   -0.01842778, -0.009684053, 0.025363436,  -0.027571501,
                                      0.0077043395, 0.016391572, -0.03598478,  -0.0009508357};
    const Quantised q = quantised<double>("test", data, 8);
    EXPECT_EQ(q.values, (std::vector<int32_t>{127, -64, -32, 97, -97, 32, 64, -128, 0}));
    EXPECT_NEAR(q.scale(), 0.000272725450980392, 1e-17);
    for (size_t i = 0; i < data.size(); ++i) EXPECT_LE(std::fabs(q.value(i) - data[i]), q.scale() * 0.500001);
    EXPECT_EQ(kept_of("test", 99221, 0.08), 7937);
    // All elements alike.
    const Quantised same = quantised<double>("test", std::vector<double>{0.5, 0.5}, 4);
    EXPECT_EQ(same.values, (std::vector<int32_t>{-8, -8}));
    EXPECT_EQ(same.value(1), 0.5);
    EXPECT_THROW(quantised<double>("test", std::vector<double>{NAN}, 8), Error);
    EXPECT_THROW(quantised<double>("test", data, 17), Error);
}

TEST(Compression, Bits_are_packed_and_unpacked) {
    const std::string packed = packed_bits(std::vector<int32_t>{3, -4, 3, -2, 3, -2, -4, 0, 1, 3}, 3);
    EXPECT_EQ(packed, std::string("\x71\xE7\xA0\x2C"));
    std::mt19937 random(1);
    for (int bits = 1; bits <= 32; ++bits)
        for (size_t count = 0; count < 20; ++count) {
            std::vector<int32_t> values(count);
            for (int32_t& v : values) v = static_cast<int32_t>(random()) >> (32 - bits);
            EXPECT_EQ(unpacked_bits("test", packed_bits(values, bits), bits, count), values);
        }
    EXPECT_THROW(unpacked_bits("test", "abc", 3, 9), Error);
    EXPECT_THROW(unpacked_bits("test", "abc", 3, size_t{1} << 62), Error);
}

TEST(Compression, Seeded_places_are_every_set_alike) {
    std::map<std::vector<int64_t>, int> counts;
    for (uint64_t seed = 0; seed < 20000; ++seed) ++counts[seeded_places(6, 3, seed)];
    EXPECT_EQ(counts.size(), 20u);
    double chi2 = 0;
    for (const auto& [set, count] : counts) chi2 += (count - 1000.0) * (count - 1000.0) / 1000.0;
    EXPECT_LT(chi2, 45);  // 19 degrees of freedom
    EXPECT_EQ(seeded_places(1000, 1000, 4).size(), 1000u);
    // The same for every build: other clients have to find them too.
    EXPECT_EQ(seeded_places(20, 5, 42), seeded_places(20, 5, 42));
}

TEST(Compression, Sparse_updates_travel_and_others_are_refused) {
    const std::vector<double> values = normal_values(5000, 3);
    for (const int64_t block : {0, 100}) {
        const SparsePlan plan{5000, 0.08, 77, 8, block};
        const std::string payload = sparse_quantised<double>("test", plan, values);
        EXPECT_LT(payload.size(), 400u + (block ? 80 : 0) + 60);
        const std::vector<double> back = from_sparse_quantised(plan, payload);
        const std::vector<int64_t> places = seeded_places(5000, 400, 77);
        double worst = 0;
        size_t other = 0;
        for (size_t i = 0; i < 5000; ++i)
            if (std::ranges::binary_search(places, static_cast<int64_t>(i)))
                worst = std::max(worst, std::fabs(back[i] - values[i]));
            else
                other += back[i] != 0;
        EXPECT_LT(worst, 0.001);
        EXPECT_EQ(other, 0u);
        for (SparsePlan changed : {SparsePlan{5001, 0.08, 77, 8, block}, SparsePlan{5000, 0.09, 77, 8, block},
                                   SparsePlan{5000, 0.08, 78, 8, block}, SparsePlan{5000, 0.08, 77, 7, block},
                                   SparsePlan{5000, 0.08, 77, 8, 50}})
            EXPECT_THROW(from_sparse_quantised(changed, payload), Error);
        for (size_t cut = 0; cut < payload.size(); cut += 13)
            EXPECT_THROW(from_sparse_quantised(plan, payload.substr(0, cut)), Error);
    }
}

TEST(Compression, Largest_elements_travel) {
    const std::vector<double> values = {0.5, -3, 1, 3, -0.25, 1};
    EXPECT_EQ(largest_places<double>("test", values, 3), (std::vector<int64_t>{1, 2, 3}));
    EXPECT_EQ(from_top_k(6, 3, top_k<double>("test", values, 3, 0)), (std::vector<double>{0, -3, 1, 3, 0, 0}));
    const std::vector<double> rough = from_top_k(6, 3, top_k<double>("test", values, 3, 4));
    EXPECT_NEAR(rough[1], -3, 1e-12);
    EXPECT_NEAR(rough[2], 1, 0.2);
    EXPECT_THROW(from_top_k(6, 2, top_k<double>("test", values, 3, 0)), Error);
    EXPECT_THROW(from_top_k(7, 3, top_k<double>("test", values, 3, 0)), Error);
    EXPECT_THROW(top_k<double>("test", values, 7, 0), Error);
    EXPECT_THROW(read_places("test", std::string(3, '\xff'), 1, 100), Error);
    EXPECT_THROW(read_places("test", "\x05\x05", 2, 11), Error);
    EXPECT_EQ(read_places("test", "\x05\x05", 2, 12), (std::vector<int64_t>{5, 11}));
}

TEST(Compression, Sketches_find_what_is_large) {
    std::vector<double> values = normal_values(10000, 8, 0.01);
    values[17] = 5;
    values[4242] = -7;
    const SketchPlan plan{5, 500, 9};
    const std::vector<double> sketch = sketched<double>("test", plan, values);
    const std::vector<double> found = estimates("test", plan, sketch, 10000);
    EXPECT_NEAR(found[17], 5, 0.3);
    EXPECT_NEAR(found[4242], -7, 0.3);
    EXPECT_LT(std::fabs(found[5]), 0.5);
    // Linear: what makes sums of sketches sketches of sums.
    const std::vector<double> twice =
        sketched<double>("test", plan, estimates("test", plan, std::vector<double>(2500, 0), 10000));
    EXPECT_EQ(twice, std::vector<double>(2500, 0));
}

TEST(SignDS, Plans_and_choices) {
    SignDSPlan plan{1000, 0.1, 5.0, 0.6, 0};
    plan.find("test");
    EXPECT_EQ(plan.top, 100);
    EXPECT_EQ(plan.sent, 2);
    EXPECT_EQ(plan.threshold, 2);
    EXPECT_NEAR(plan.probabilities[2], 0.597663556510153, 1e-12);
    const std::vector<double> change = normal_values(1000, 5);
    std::mt19937_64 random(7);
    std::array<int, 3> counts{};
    std::vector<double> sorted = change;
    std::ranges::sort(sorted);
    int positive = 0;
    for (int i = 0; i < 20000; ++i) {
        const SignDSUpdate update = signds<double>("test", plan, change, [&] { return random(); });
        positive += update.sign > 0;
        ASSERT_EQ(update.places.size(), 2u);
        ASSERT_LT(update.places[0], update.places[1]);
        size_t top = 0;
        for (const int64_t place : update.places)
            top += update.sign > 0 ? change[static_cast<size_t>(place)] >= sorted[900]
                                   : change[static_cast<size_t>(place)] <= sorted[99];
        ++counts[top];
        if (i == 0) {
            const SignDSUpdate back = read_signds(plan, written_signds(plan, update));
            EXPECT_EQ(back.places, update.places);
            EXPECT_EQ(back.sign, update.sign);
        }
    }
    EXPECT_NEAR(positive, 10000, 300);
    for (size_t v = 0; v < 3; ++v) EXPECT_NEAR(counts[v] / 20000.0, plan.probabilities[v], 0.015);
    EXPECT_THROW((SignDSPlan{1000, 0.3, 5.0, 0.6, 0}.find("test")), Error);
    EXPECT_THROW((SignDSPlan{1000, 0.1, 0.0, 0.6, 0}.find("test")), Error);
    EXPECT_THROW((SignDSPlan{1000, 0.1, 5.0, 0.6, 51}.find("test")), Error);
    EXPECT_THROW(read_signds(plan, "\x08\x05"), Error);
}

}  // namespace
}  // namespace lunaria::federated
