// Operators that are computed together with the product or convolution before them, and others that are not.
#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/device.h"
#include "core/ir/parser.h"
#include "core/ir/verifier.h"
#include "jit/graph/passes.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

class EpiloguesTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    static std::string graph(std::string_view lines) {
        return str(
            "graph f(%0 x: float32(9, 40), %1 w: float32(33, 40), %2 b: float32(33), %3 v: float32(40, 33), "
            "%4 i: float32(70, 4, 18, 20), %5 k: float32(6, 4, 3, 3)) {\n",
            lines, "}\n");
    }
    static std::string ops_after(const std::string& text) {
        ir::ParsedGraph parsed = ir::parse(text);
        fuse_epilogues(*parsed.graph);
        EXPECT_NO_THROW(ir::verify(*parsed.graph));
        std::string names;
        for (const ir::Node* node : parsed.graph->body()) names += str(names.empty() ? "" : " ", node->op->name());
        return names;
    }
    static void expect_same(const std::string& text) {
        ir::ParsedGraph parsed = ir::parse(text);
        std::vector<Tensor> inputs;
        for (const ir::Node* p : parsed.graph->parameters())
            inputs.push_back(testing::random_tensor(p->type.tensor, 7 + inputs.size()));
        for (const size_t i : {0, 4}) inputs[i].set_at(i * 500 + 50, std::numeric_limits<double>::quiet_NaN());
        const std::vector<Tensor> eager = testing::run_eagerly(*parsed.graph, inputs);
        EXPECT_TRUE(testing::are_close(testing::run_compiled(*parsed.graph, inputs), eager, 1e-5)) << text;
    }
    static void expect_becomes(const std::string& lines, std::string_view names) {
        EXPECT_EQ(ops_after(graph(lines)), names) << lines;
        expect_same(graph(lines));
    }
};

const std::string kDense = "  %6 = ops.dense(%0, %1, %2) : float32(9, 33)\n";
const std::string kProduct = "  %6 = ops.matmul(%0, %3) : float32(9, 33)\n";

TEST_F(EpiloguesTest, relu_goes_into_layers_and_products) {
    const std::string relu = "  %7 = ops.relu(%6) : float32(9, 33)\n  return %7\n";
    expect_becomes(kDense + relu, "affine");
    expect_becomes(kProduct + relu, "affine");
    expect_becomes("  %6 = ops.dense(%0, %1, nil) : float32(9, 33)\n" + relu, "affine");
}

TEST_F(EpiloguesTest, a_bias_goes_into_the_product_and_relu_after_it) {
    for (const char* sum : {"%6, %2", "%2, %6"}) {
        const std::string add = str("  %7 = ops.add(", sum, ") : float32(9, 33)\n");
        expect_becomes(kProduct + add + "  return %7\n", "affine");
        expect_becomes(kProduct + add + "  %8 = ops.relu(%7) : float32(9, 33)\n  return %8\n", "affine");
    }
}

TEST_F(EpiloguesTest, relu_goes_into_convolutions) {
    for (const char* rest : {"\"valid\", {0, 0}, {1, 1}, 1) : float32(70, 6, 16, 18)",
                             "\"same\", {0, 0}, {1, 1}, 1) : float32(70, 6, 18, 20)"}) {
        const std::string type = std::string(rest).substr(std::string(rest).find("float32"));
        expect_becomes(
            str("  %6 = ops.conv2d(%4, %5, nil, {1, 1}, ", rest, "\n  %7 = ops.relu(%6) : ", type, "\n  return %7\n"),
            "conv2d_relu");
    }
}

TEST_F(EpiloguesTest, what_somebody_else_reads_stays) {
    expect_becomes(kDense + "  %7 = ops.relu(%6) : float32(9, 33)\n  return {%6, %7}\n", "dense relu");
    expect_becomes(kProduct + "  %7 = ops.add(%6, %2) : float32(9, 33)\n  return {%6, %7}\n", "matmul add");
}

TEST_F(EpiloguesTest, what_has_a_loop_of_its_own_anyway_stays) {
    expect_becomes(
        kProduct + "  %7 = ops.add(%6, %2) : float32(9, 33)\n  %8 = ops.tanh(%7) : float32(9, 33)\n" + "  return %8\n",
        "matmul add tanh");
}

TEST_F(EpiloguesTest, small_products_stay_in_loops) {
    const std::string text =
        "graph f(%0 x: float32(1, 24), %1 w: float32(24, 24), %2 b: float32(24)) {\n"
        "  %3 = ops.matmul(%0, %1) : float32(1, 24)\n"
        "  %4 = ops.add(%3, %2) : float32(1, 24)\n"
        "  %5 = ops.relu(%4) : float32(1, 24)\n  return %5\n}\n";
    EXPECT_EQ(ops_after(text), "matmul add relu");
}

TEST_F(EpiloguesTest, only_one_number_for_each_column_is_a_bias) {
    const std::string other = "  %7 = ops.dense(%0, %1, nil) : float32(9, 33)\n";
    expect_becomes(kProduct + other + "  %8 = ops.add(%6, %7) : float32(9, 33)\n  return %8\n", "matmul dense add");
}

// The product reads the variable before it is written.
TEST_F(EpiloguesTest, nothing_is_moved_across_a_write) {
    const std::string text = graph(kDense +
                                   "  %7 = ops.assign(%1, %1) : float32(33, 40)\n"
                                   "  %8 = ops.relu(%6) : float32(9, 33)\n  return {%7, %8}\n");
    EXPECT_EQ(ops_after(text), "dense assign relu");
}

}  // namespace
}  // namespace lunaria::graph
