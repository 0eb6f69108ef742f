// Formulas on vectors give what they give number by number in float64; the tests of graph mode compare their bits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/lite/runtime/plain_blocks.h"

namespace lunaria::lite {
namespace {

constexpr int64_t kCount = 64;

template <class T>
std::vector<double> run(const FormulaBlock& f, const std::vector<std::vector<float>>& x) {
    // Masks and results that are bools are bytes.
    std::vector<std::vector<T>> operands;
    std::vector<std::vector<char>> masks(x.size());
    alignas(64) static T result[kCount];
    const char* in[kMostArguments] = {};
    const int64_t step[kMostArguments] = {1, 1, 1, 1, 1};
    for (const std::vector<float>& one : x) operands.emplace_back(one.begin(), one.end());
    for (size_t i = 0; i < x.size(); ++i) {
        in[i] = reinterpret_cast<const char*>(operands[i].data());
        if (!((f.op == "where" && i == 0) || (f.op == "masked_fill" && i == 1))) continue;
        for (const float v : x[i]) masks[i].push_back(v > 0.5f);
        in[i] = masks[i].data();
    }
    f.run(in, step, reinterpret_cast<char*>(result), kCount);
    std::vector<double> list;
    for (int64_t i = 0; i < kCount; ++i)
        list.push_back(f.boolean ? reinterpret_cast<const char*>(result)[i] : static_cast<double>(result[i]));
    return list;
}

TEST(LightFormulas, give_what_they_give_in_float64) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> numbers(0.1f, 0.9f);
    size_t count = 0;
    for (const FormulaBlocks& list : blocks().formulas)
        for (size_t k = 0; k < list.count; ++k) {
            const FormulaBlock& f = list.blocks[k];
            SCOPED_TRACE(f.op);
            const FormulaBlock* const twice = find_formula(f.op, DType::f64);
            ASSERT_NE(twice, nullptr);
            std::vector<std::vector<float>> x(static_cast<size_t>(f.operands));
            for (std::vector<float>& one : x)
                for (int64_t i = 0; i < kCount; ++i) one.push_back(numbers(random));
            const std::vector<double> got = run<float>(f, x), wanted = run<double>(*twice, x);
            for (size_t i = 0; i < kCount; ++i) {
                if (std::isnan(wanted[i]) && std::isnan(got[i])) continue;
                EXPECT_NEAR(got[i], wanted[i], 2e-5 * std::max(1.0, std::fabs(wanted[i])));
            }
            ++count;
        }
    EXPECT_GT(count, 100u);
}

}  // namespace
}  // namespace lunaria::lite
