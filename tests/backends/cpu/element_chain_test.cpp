// Chains of elementwise operators: what they give is what the operators one by one give, in every bit.
#include "backends/cpu/element_chain.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "backends/cpu/device.h"
#include "core/operator/op.h"
#include "core/random/random.h"

namespace lunaria {
namespace {

Tensor random(DType dtype, int64_t count, uint64_t seed) {
    Tensor t = Tensor::empty(dtype, {count});
    for (int64_t i = 0; i < count; ++i) {
        const auto bits = static_cast<uint64_t>(i + 1) * 6364136223846793005u + seed * 1442695040888963407u;
        t.set_at(i, static_cast<double>(bits >> 40) / 8388608.0 - 1);
    }
    return t;
}

class Chain : public testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    static const Op* op(std::string_view name) { return &registry().get(name); }

    static bool same(const Tensor& a, const Tensor& b) {
        return a.nbytes() == b.nbytes() && std::memcmp(a.raw(), b.raw(), a.nbytes()) == 0;
    }
};

// d cos(x) + s and d x: two results, a value for all, a step that both need.
TEST_F(Chain, GivesWhatTheOperatorsGive) {
    for (DType dtype : {DType::f32, DType::f64}) {
        ElementChain chain;
        chain.dtype = dtype;
        chain.inputs = 3;
        chain.steps = {{op("cos"), {0}}, {op("mul"), {1, 3}}, {op("add"), {4, 2}}, {op("mul"), {1, 0}}};
        chain.outputs = {3, 2};
        auto kernel = compile_chain(chain);
        ASSERT_NE(kernel, nullptr);
        for (int64_t count : {1, 8, 1023, 5000, 300001}) {
            Tensor x = random(dtype, count, 1), d = random(dtype, count, 2), s = random(dtype, 1, 3);
            Tensor by_x = Tensor::empty(dtype, {count}), sum = Tensor::empty(dtype, {count});
            const std::array<const void*, 3> in{x.raw(), d.raw(), s.raw()};
            const std::array<int64_t, 3> step{1, 1, 0};
            const std::array<void*, 2> out{by_x.raw(), sum.raw()};
            kernel->run(in.data(), step.data(), out.data(), count);
            const Value product = run(*op("mul"), {Value(d), run(*op("cos"), {Value(x)})});
            EXPECT_TRUE(same(sum, run(*op("add"), {product, Value(s)}).tensor())) << count;
            EXPECT_TRUE(same(by_x, run(*op("mul"), {Value(d), Value(x)}).tensor())) << count;
        }
    }
}

TEST_F(Chain, KeepsMasksBetweenSteps) {
    ElementChain chain;
    chain.inputs = 2;
    chain.steps = {{op("greater"), {0, 1}}, {op("where"), {2, 0, 1}}};
    chain.outputs = {1};
    auto kernel = compile_chain(chain);
    ASSERT_NE(kernel, nullptr);
    Tensor x = random(DType::f32, 2500, 4), y = random(DType::f32, 2500, 5), z = Tensor::empty(DType::f32, {2500});
    const std::array<const void*, 2> in{x.raw(), y.raw()};
    const std::array<int64_t, 2> step{1, 1};
    void* const out = z.raw();
    kernel->run(in.data(), step.data(), &out, 2500);
    EXPECT_TRUE(same(z, run(*op("maximum"), {Value(x), Value(y)}).tensor()));
}

TEST_F(Chain, PutsAResultInThePlaceOfAnInput) {
    ElementChain chain;
    chain.inputs = 2;
    chain.steps = {{op("mul"), {0, 1}}, {op("mul"), {2, 0}}};
    chain.outputs = {1};
    auto kernel = compile_chain(chain);
    ASSERT_NE(kernel, nullptr);
    Tensor x = random(DType::f32, 4000, 6), y = random(DType::f32, 4000, 7);
    const Value expected = run(*op("mul"), {run(*op("mul"), {Value(x), Value(y)}), Value(x)});
    const std::array<const void*, 2> in{x.raw(), y.raw()};
    const std::array<int64_t, 2> step{1, 1};
    void* const out = x.raw();
    kernel->run(in.data(), step.data(), &out, 4000);
    EXPECT_TRUE(same(x, expected.tensor()));
}

TEST_F(Chain, IsRefusedWhereAnOperatorNeedsMoreThanItsLoop) {
    ElementChain limits;
    limits.inputs = 3;
    limits.steps = {{op("clamp"), {0, 1, 2}}};
    limits.outputs = {0};
    EXPECT_EQ(compile_chain(limits), nullptr);
    ElementChain too_few;
    too_few.inputs = 1;
    too_few.steps = {{op("mul"), {0}}};
    too_few.outputs = {0};
    EXPECT_EQ(compile_chain(too_few), nullptr);
}

TEST_F(Chain, IsNoMatterOfThePlainDevice) {
    ElementChain chain;
    chain.inputs = 1;
    chain.steps = {{op("neg"), {0}}};
    chain.outputs = {0};
    set_current_device(&cpu::plain_device());
    EXPECT_EQ(compile_chain(chain), nullptr);
    set_current_device(&cpu::device());
    EXPECT_NE(compile_chain(chain), nullptr);
}

}  // namespace
}  // namespace lunaria
