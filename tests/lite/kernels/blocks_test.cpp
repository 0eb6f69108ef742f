#include "core/lite/kernels/blocks.h"

#include "core/lite/kernels/halves.h"
#include "tests/lite/kernels/support.h"

namespace lunaria::lite::kernels {

TEST(LiteBlocksTest, rounding_errors_stay_within_half_a_step) {
    Random random(1);
    const auto x = random.floats(8 * 128);
    for (WeightType type : {WeightType::q8_0, WeightType::q4_0}) {
        Bytes blocks(weight_bytes(type, 128, 8));
        std::vector<float> back(x.size());
        quantize_blocks(type, 8, 128, x.data(), 128, blocks.get());
        dequantize_blocks(type, 8, 128, blocks.get(), back.data(), 128);
        for (size_t i = 0; i < x.size(); i += 32) {
            float largest = 0;
            for (size_t j = i; j < i + 32; ++j) largest = std::fmax(largest, std::fabs(x[j]));
            // q4_0 has 16 steps from -8 to 7: at the far end one step is missing.
            const float step = type == WeightType::q8_0 ? largest / 127 : largest / 8;
            for (size_t j = i; j < i + 32; ++j)
                EXPECT_LE(std::fabs(back[j] - x[j]),
                          step * (type == WeightType::q8_0 ? 0.51f : 1.01f) + 127 * step * 0x1p-11f);
        }
    }
}

TEST(LiteBlocksTest, products_agree_with_plain_loops_within_the_rounding_of_activations) {
    for (unsigned seed = 0; seed < 60; ++seed) {
        Random random(seed);
        Product p;
        p.type = random.pick({WeightType::q8_0, WeightType::q4_0});
        p.m = random.pick<int64_t>({1, 1, 2, 4, 5, 8, 9, 13, 30});
        p.n = random.pick<int64_t>({1, 15, 16, 40, 100});
        p.k = 32 * random.pick<int64_t>({1, 2, 3, 7, 33, 70});
        p.a_row = p.k + random.pick<int64_t>({0, 7});
        const auto a = random.floats(p.m * p.a_row), w = random.floats(p.n * p.k);
        Bytes blocks(weight_bytes(p.type, p.k, p.n));
        pack_weight(p.type, p.k, p.n, w.data(), 1, p.k, blocks.get());
        std::vector<float> back(w.size());
        dequantize_blocks(p.type, p.n, p.k, blocks.get(), back.data(), p.k);
        const RandomEpilogue epilogue(random, p.m, p.n);
        p.epilogue = epilogue.e;
        p.a = a.data();
        p.b = blocks.get();
        p.c_row = p.n;
        for (Isa isa : instruction_sets())
            for (int workers : {1, 2}) {
                std::vector<float> c(static_cast<size_t>(p.m * p.n));
                p.c = c.data();
                Bytes scratch(product_scratch(p, workers));
                product(isa, p, scratch.get(), workers > 1 ? threads(workers) : Workers{});
                for (int64_t i = 0; i < p.m; ++i)
                    for (int64_t j = 0; j < p.n; ++j) {
                        double sum = 0, squares = 0;
                        for (int64_t k = 0; k < p.k; ++k) {
                            const double x = a[static_cast<size_t>(i * p.a_row + k)],
                                         y = back[static_cast<size_t>(j * p.k + k)];
                            sum += x * y;
                            squares += y * y;
                        }
                        // Activations of magnitude 3 are rounded to steps of 3 / 127: errors of independent sign.
                        const double bound = 6 * std::sqrt(squares) * 3.5 / 127 / std::sqrt(12) *
                                             (p.epilogue.scale ? std::fabs(epilogue.scale[static_cast<size_t>(j)]) : 1);
                        ASSERT_NEAR(c[static_cast<size_t>(i * p.n + j)], epilogue.end(sum, i, j), 1.2 * bound + 1e-4)
                            << "seed " << seed << " " << name_of(isa) << " m " << p.m << " n " << p.n << " k " << p.k
                            << " type " << static_cast<int>(p.type);
                    }
            }
    }
}

// Activations that are whole numbers below 128 in each block are not rounded at all.
TEST(LiteBlocksTest, sums_are_exact_where_activations_are) {
    Random random(9);
    const int64_t k = 160, n = 37;
    for (WeightType type : {WeightType::q8_0, WeightType::q4_0})
        for (int64_t m : {1, 3, 20}) {
            std::vector<float> a(static_cast<size_t>(m * k));
            for (size_t i = 0; i < a.size(); ++i)
                a[i] = i % 32 == 0 ? 127.0f : static_cast<float>(random.between(-127, 127));
            const auto w = random.floats(n * k);
            Bytes blocks(weight_bytes(type, k, n));
            quantize_blocks(type, n, k, w.data(), k, blocks.get());
            std::vector<float> back(w.size());
            dequantize_blocks(type, n, k, blocks.get(), back.data(), k);
            for (Isa isa : instruction_sets()) {
                std::vector<float> c(static_cast<size_t>(m * n));
                Product p;
                p.m = m;
                p.n = n;
                p.k = k;
                p.type = type;
                p.a = a.data();
                p.a_row = k;
                p.b = blocks.get();
                p.c = c.data();
                p.c_row = n;
                Bytes scratch(product_scratch(p, 1));
                product(isa, p, scratch.get());
                Difference d;
                for (int64_t i = 0; i < m * n; ++i) {
                    double sum = 0;
                    for (int64_t e = 0; e < k; ++e)
                        sum += double{a[static_cast<size_t>(i / n * k + e)]} * back[static_cast<size_t>(i % n * k + e)];
                    d.add(c[static_cast<size_t>(i)], sum);
                }
                EXPECT_LE(d.relative(), 2e-6) << name_of(isa) << " m " << m;
            }
        }
}

TEST(LiteBlocksTest, halves_are_rounded_to_nearest_even_both_ways) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<uint16_t>(bits);
        const float x = from_f16(half);
        if (std::isnan(x)) continue;
        ASSERT_EQ(to_f16(x), half);
    }
    EXPECT_EQ(to_f16(65520), 0x7c00);
    EXPECT_EQ(to_f16(65519), 0x7bff);
    EXPECT_EQ(to_f16(1 + 0x1p-11f), 0x3c00);
    EXPECT_EQ(to_f16(1 + 3 * 0x1p-11f), 0x3c02);
}

}  // namespace lunaria::lite::kernels
