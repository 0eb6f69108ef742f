// The graph of a program for a whole batch gives what the program gives for one sample after the other.
#include "jit/batch/transform.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/device.h"
#include "core/ir/parser.h"
#include "core/ir/verifier.h"
#include "tests/jit/graph/compare.h"

namespace lunaria {
namespace {

constexpr int64_t kSize = 3;

class BatchTransformTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    static std::unique_ptr<ir::Graph> transformed(std::string_view text, const std::vector<bool>& mapped) {
        const ir::ParsedGraph parsed = ir::parse(text);
        return batch::transform(*parsed.graph, mapped, kSize);
    }

    static size_t count(const ir::Graph& graph, std::string_view name) {
        return static_cast<size_t>(std::ranges::count_if(
            graph.body(), [&](const ir::Node* node) { return node->op && node->op->name() == name; }));
    }

    static Tensor sample_of(const Tensor& whole, int64_t i) {
        Shape shape = whole.shape();
        shape.erase(0);
        const Value part = eager_builder().call("narrow", {Value(whole), int64_t{0}, i, int64_t{1}}).value();
        return part.tensor().reshaped(shape);
    }

    // Compares the batch with the samples, for all operands mapped and for each of them alone.
    static void expect_agreement(std::string_view text) {
        const ir::ParsedGraph parsed = ir::parse(text);
        const ir::Graph& graph = *parsed.graph;
        const size_t parameters = graph.parameters().size();
        for (size_t alone = 0; alone <= parameters; ++alone) {
            std::vector<bool> mapped(parameters, alone == parameters);
            if (alone < parameters) mapped[alone] = true;
            const auto whole = batch::transform(graph, mapped, kSize);
            ASSERT_NE(whole, nullptr) << text;
            ASSERT_NO_THROW(ir::verify(*whole));
            std::vector<Tensor> inputs;
            for (size_t i = 0; i < parameters; ++i)
                inputs.push_back(testing::random_tensor(whole->parameters()[i]->tensor_type(), 7 + i));
            const std::vector<Tensor> got = testing::run_eagerly(*whole, inputs);
            ASSERT_TRUE(testing::are_close(testing::run_compiled(*whole, inputs), got, 1e-5));
            for (int64_t k = 0; k < kSize; ++k) {
                std::vector<Tensor> own, row;
                for (size_t i = 0; i < parameters; ++i) own.push_back(mapped[i] ? sample_of(inputs[i], k) : inputs[i]);
                for (const Tensor& t : got) row.push_back(sample_of(t, k));
                EXPECT_TRUE(testing::are_close(row, testing::run_eagerly(graph, own), 1e-5))
                    << text << " alone " << alone << " sample " << k;
            }
        }
    }
    static std::string body(std::string_view lines) {
        return str("graph f(%0 x: float32(2, 4), %1 y: float32(4)) {\n", lines, "}\n");
    }
};

TEST_F(BatchTransformTest, programs_give_what_they_give_sample_by_sample) {
    const char* const lines[] = {
        // Elements of other ranks, and numbers.
        "  %2 = ops.mul(%0, %1)  : float32(2, 4)\n"
        "  %3 = ops.add(%2, 0.5)  : float32(2, 4)\n"
        "  %4 = ops.tanh(%3)  : float32(2, 4)\n"
        "  return {%4}\n",
        // Products with what is a vector, and reductions.
        "  %2 = ops.matmul(%0, %1)  : float32(2)\n"
        "  %3 = ops.sum(%0, {1}, false, nil)  : float32(2)\n"
        "  %4 = ops.mul(%2, %3)  : float32(2)\n"
        "  return {%4, %3}\n",
        // Moves.
        "  %2 = ops.transpose(%0, {1, 0})  : float32(4, 2)\n"
        "  %3 = ops.reshape(%2, {8})  : float32(8)\n"
        "  %4 = ops.flip(%3, {0})  : float32(8)\n"
        "  return {%4}\n",
        // What one operand alone is made of is the same for all samples.
        "  %2 = ops.exp(%1)  : float32(4)\n"
        "  %3 = ops.sub(%0, %2)  : float32(2, 4)\n"
        "  return {%2, %3, %0, %1}\n",
        // A list of tensors, some of which differ.
        "  %2 = ops.exp(%1)  : float32(4)\n"
        "  %3 = ops.reshape(%2, {1, 4})  : float32(1, 4)\n"
        "  %4 = ops.concat({%0, %3}, 0)  : float32(3, 4)\n"
        "  return {%4}\n",
        // An operator without a rule: one sample after the other.
        "  %2 = ops.cdist(%0, %0, 2.0)  : float32(2, 2)\n"
        "  return {%2, %1}\n",
    };
    for (const char* text : lines) expect_agreement(body(text));
}

TEST_F(BatchTransformTest, operators_with_several_results_give_each_for_the_batch) {
    expect_agreement(
        body("  %2 = ops.split(%0, 2, 1)  : {float32(2, 2), float32(2, 2)}\n"
             "  %3 = %2[0]  : float32(2, 2)\n"
             "  %4 = %2[1]  : float32(2, 2)\n"
             "  %5 = ops.sub(%4, %3)  : float32(2, 2)\n"
             "  return {%5, %1}\n"));
}

TEST_F(BatchTransformTest, rows_that_meet_one_matrix_are_one_product) {
    const auto whole = transformed(
        "graph f(%0 x: float32(4), %1 w: float32(4, 5)) {\n"
        "  %2 = ops.matmul(%0, %1)  : float32(5)\n"
        "  %3 = ops.relu(%2)  : float32(5)\n"
        "  return {%3}\n"
        "}\n",
        {true, false});
    ASSERT_NE(whole, nullptr);
    EXPECT_EQ(count(*whole, "matmul"), 1u);
    EXPECT_EQ(count(*whole, "relu"), 1u);
    EXPECT_EQ(type_of(whole->result.items()[0]).shape, (Shape{kSize, 5}));
}

TEST_F(BatchTransformTest, what_all_samples_share_is_computed_once) {
    const auto whole = transformed(body("  %2 = ops.exp(%1)  : float32(4)\n"
                                        "  %3 = ops.mul(%0, %2)  : float32(2, 4)\n"
                                        "  return {%3}\n"),
                                   {true, false});
    ASSERT_NE(whole, nullptr);
    const auto& nodes = whole->body();
    const auto exp = std::ranges::find_if(nodes, [](const ir::Node* node) { return node->op->name() == "exp"; });
    ASSERT_NE(exp, nodes.end());
    EXPECT_EQ((*exp)->tensor_type().shape, (Shape{4}));
    EXPECT_EQ(count(*whole, "exp"), 1u);
}

TEST_F(BatchTransformTest, what_is_made_of_other_operators_has_to_be_expanded_first) {
    EXPECT_EQ(transformed(body("  %2 = ops.huber_loss(%1, %1, \"mean\", 1.0)  : float32()\n"
                               "  return {%2}\n"),
                          {true, true}),
              nullptr);
}

}  // namespace
}  // namespace lunaria
