// Rules that are chains: which ones are, and the memory that their results may reuse.
#include "jit/vm/rule_chain.h"

#include <gtest/gtest.h>

#include "backends/cpu/device.h"

namespace lunaria::vm {
namespace {

using Kind = RuleChain::Result::Kind;

class RuleChainTest : public testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    Value parameter(const Shape& shape, DType dtype = DType::f32) {
        return Value(graph_.add_parameter("", ir::NodeType::of({dtype, shape})));
    }
    Value call(std::string_view op, std::vector<Value> args, const Shape& shape, DType dtype = DType::f32) {
        return Value(graph_.add_call(registry().get(op), std::move(args), ir::NodeType::of({dtype, shape})));
    }
    std::unique_ptr<const RuleChain> chain(std::vector<Value> results) {
        graph_.result = Value::list(std::move(results));
        return chain_of_rule(graph_);
    }

    ir::Graph graph_{"rule"};
};

TEST_F(RuleChainTest, ResultsTakeTheMemoryOfWhatNoLaterStepReads) {
    const Shape shape{4};
    Value x = parameter(shape), y = parameter(shape), d = parameter(shape);
    Value first = call("mul", {d, y}, shape), second = call("mul", {d, x}, shape);
    auto made = chain({first, second});
    ASSERT_NE(made, nullptr);
    ASSERT_NE(made->kernel, nullptr);
    ASSERT_EQ(made->inputs.size(), 3u);
    // Inputs stand in the order in which they are read: d, y, x. The second product still needs d.
    EXPECT_EQ(made->results[0].may_hold, 0b010u);
    EXPECT_EQ(made->results[1].may_hold, 0b111u);
    EXPECT_EQ(made->results[0].depends, 0b110u);
    EXPECT_EQ(made->results[1].depends, 0b101u);
}

TEST_F(RuleChainTest, ACotangentThatIsAResultIsNotWrittenOver) {
    const Shape shape{4};
    Value d = parameter(shape);
    auto made = chain({call("neg", {d}, shape), d});
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->results[0].may_hold, 0u);
    EXPECT_EQ(made->results[1].kind, Kind::parameter);
}

TEST_F(RuleChainTest, ZerosKeepTheirSigns) {
    const Shape shape{4};
    Value d = parameter(shape);
    auto made = chain({call("mul", {call("add", {d, Value(0.0)}, shape), Value(-0.0)}, shape)});
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->numbers.size(), 2u);
}

TEST_F(RuleChainTest, WhatOnlyHandsOnNeedsNoKernel) {
    Value d = parameter({2, 3});
    auto made = chain({d, Value(), d});
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->kernel, nullptr);
    EXPECT_EQ(made->results[1].kind, Kind::none);
}

TEST_F(RuleChainTest, OtherOperatorsShapesAndDtypesAreNoChains) {
    const Shape shape{4, 4};
    Value a = parameter(shape), d = parameter(shape);
    EXPECT_EQ(chain({call("matmul", {d, a}, shape)}), nullptr);
    ir::Graph rows("rows");
    Value row(rows.add_parameter("", ir::NodeType::of({DType::f32, {4}})));
    Value whole(rows.add_parameter("", ir::NodeType::of({DType::f32, shape})));
    rows.result =
        Value::list({Value(rows.add_call(registry().get("mul"), {whole, row}, ir::NodeType::of({DType::f32, shape})))});
    EXPECT_EQ(chain_of_rule(rows), nullptr);
    ir::Graph halves("halves");
    Value half(halves.add_parameter("", ir::NodeType::of({DType::f16, shape})));
    halves.result =
        Value::list({Value(halves.add_call(registry().get("neg"), {half}, ir::NodeType::of({DType::f16, shape})))});
    EXPECT_EQ(chain_of_rule(halves), nullptr);
}

}  // namespace
}  // namespace lunaria::vm
