// Graphs that keep the channels of a pixel side by side: which ones do, and that their results stay the same.
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/parser.h"
#include "core/ir/verifier.h"
#include "jit/graph/passes.h"
#include "tests/jit/graph/compare.h"

namespace lunaria::graph {
namespace {

class ChannelsLastTest : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    // x of (2, 16, 9, 8), two weights, a scale for each channel, and a second image.
    static std::string graph(std::string_view lines) {
        return str(
            "graph f(%0 x: float32(2, 16, 9, 8), %1 w: float32(32, 16, 3, 3), %2 v: float32(32, 32, 3, 3), "
            "%3 s: float32(32, 1, 1), %4 y: float32(2, 32, 9, 8)) {\n",
            lines, "}\n");
    }
    static std::string conv(std::string_view name, std::string_view x, std::string_view w) {
        return str("  ", name, " = ops.conv2d(", x, ", ", w,
                   ", nil, {1, 1}, \"pad\", {1, 1, 1, 1}, {1, 1}, 1) : float32(2, 32, 9, 8)\n");
    }
    static std::string ops_after(const std::string& text) {
        ir::ParsedGraph parsed = ir::parse(text);
        keep_channels_last(*parsed.graph);
        simplify_views(*parsed.graph);
        remove_dead_code(*parsed.graph);
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
        const std::vector<Tensor> eager = testing::run_eagerly(*parsed.graph, inputs);
        const std::vector<Tensor> compiled = testing::run_compiled(*parsed.graph, inputs);
        EXPECT_TRUE(testing::are_close(compiled, eager, 1e-5));
        for (const Tensor& t : compiled) EXPECT_TRUE(t.is_contiguous());
    }
};

const std::string kTail = "  %9 = ops.mean(%8, {2, 3}, false, nil) : float32(2, 32)\n  return %9\n";

TEST_F(ChannelsLastTest, neighbours_keep_the_order_between_them) {
    const std::string text = graph(conv("%5", "%0", "%1") +
                                   "  %6 = ops.mul(%5, %3) : float32(2, 32, 9, 8)\n"
                                   "  %7 = ops.relu(%6) : float32(2, 32, 9, 8)\n" +
                                   conv("%8", "%7", "%2") + kTail);
    EXPECT_EQ(ops_after(text), "transpose conv2d_last reshape mul relu conv2d_last sum div");
    expect_same(text);
}

TEST_F(ChannelsLastTest, a_shortcut_around_them_stays_in_that_order) {
    const std::string text = graph(conv("%5", "%0", "%1") + conv("%6", "%5", "%2") +
                                   "  %7 = ops.add(%6, %5) : float32(2, 32, 9, 8)\n"
                                   "  %10 = ops.relu(%7) : float32(2, 32, 9, 8)\n" +
                                   conv("%8", "%10", "%2") + kTail);
    EXPECT_EQ(ops_after(text), "transpose conv2d_last conv2d_last add relu conv2d_last sum div");
    expect_same(text);
}

TEST_F(ChannelsLastTest, the_largest_are_found_before_the_negative_ones_are_cut_off) {
    const std::string text = graph(conv("%5", "%0", "%1") +
                                   "  %6 = ops.relu(%5) : float32(2, 32, 9, 8)\n"
                                   "  %7 = ops.max_window(%6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, false) : "
                                   "float32(2, 32, 9, 8)\n" +
                                   conv("%8", "%7", "%2") + kTail);
    EXPECT_EQ(ops_after(text), "transpose conv2d_last max_window_last relu conv2d_last sum div");
    expect_same(text);
}

TEST_F(ChannelsLastTest, one_convolution_alone_gains_nothing) {
    EXPECT_EQ(ops_after(graph(conv("%5", "%0", "%1") + "  return %5\n")), "conv2d");
}

TEST_F(ChannelsLastTest, images_that_lie_in_the_usual_order_are_not_turned_for_a_sum) {
    EXPECT_EQ(ops_after(graph(conv("%5", "%0", "%1") + "  %6 = ops.add(%5, %4) : float32(2, 32, 9, 8)\n" +
                              conv("%8", "%6", "%2") + kTail)),
              "conv2d add conv2d mean");
}

TEST_F(ChannelsLastTest, gradients_keep_the_usual_order) {
    EXPECT_EQ(ops_after(graph(conv("%5", "%0", "%1") + conv("%6", "%5", "%2") + conv("%8", "%6", "%2") +
                              "  %9 = ops.conv_weight_grad(%5, %8, {32, 32, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1) : "
                              "float32(32, 32, 3, 3)\n  return %9\n")),
              "conv2d conv2d conv2d conv_weight_grad");
}

TEST_F(ChannelsLastTest, results_and_operands_of_others_have_the_usual_order) {
    expect_same(graph(conv("%5", "%0", "%1") + conv("%6", "%5", "%2") + conv("%7", "%6", "%2") +
                      conv("%8", "%7", "%2") +
                      "  %9 = ops.concat({%8, %4}, 1) : float32(2, 64, 9, 8)\n"
                      "  %10 = ops.argmax(%8, 3, false) : int64(2, 32, 9)\n"
                      "  return {%8, %9, %10}\n"));
}

TEST_F(ChannelsLastTest, nan_stays_nan) {
    ir::ParsedGraph parsed = ir::parse(
        graph(conv("%5", "%0", "%1") + "  %6 = ops.relu(%5) : float32(2, 32, 9, 8)\n" +
              "  %7 = ops.max_window(%6, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, false) : float32(2, 32, 4, 4)\n"
              "  %8 = ops.conv2d(%7, %2, nil, {1, 1}, \"valid\", {0, 0}, {1, 1}, 1) : float32(2, 32, 2, 2)\n" +
              kTail));
    std::vector<Tensor> inputs;
    for (const ir::Node* p : parsed.graph->parameters())
        inputs.push_back(testing::random_tensor(p->type.tensor, 3 + inputs.size()));
    inputs[0].set_at(100, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(testing::are_close(testing::run_compiled(*parsed.graph, inputs),
                                   testing::run_eagerly(*parsed.graph, inputs), 1e-5));
}

}  // namespace
}  // namespace lunaria::graph
