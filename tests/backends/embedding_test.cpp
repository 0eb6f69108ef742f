// Parts that the gradient of an embedding omits or scales on purpose, which finite differences would not show.
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "tests/backends/graph_tools.h"

namespace lunaria {
namespace {

// The gradient of the sum of embedding({2, 0, 2}, weight) with respect to a (3, 2) weight.
Tensor weight_gradient(Value padding_idx, bool scale_by_frequency) {
    set_current_device(&cpu::device());
    int64_t rows[] = {2, 0, 2};
    ir::Graph graph("f");
    ir::GraphBuilder b(graph);
    Tensor weight = Tensor::full(DType::f64, {3, 2}, 1);
    Expr w(b, Value(graph.add_parameter("weight", ir::NodeType::of({DType::f64, {3, 2}}))));
    Expr rows_of_weight = b.call("embedding", {Tensor::from<int64_t>(rows, {3}),
                                               w,
                                               {"padding_idx", padding_idx},
                                               {"scale_grad_by_freq", Value(scale_by_frequency)}});
    graph.result = rows_of_weight.sum({0, 1}).value();
    size_t first[] = {0};
    auto derivative = testing::gradient(graph, first);
    Value args[] = {Value(weight)};
    return testing::evaluate(*derivative, args).items()[0].tensor();
}

TEST(Embedding, every_use_of_a_row_counts) {
    Tensor g = weight_gradient({}, false);
    EXPECT_EQ(g.at(0), 1);
    EXPECT_EQ(g.at(2), 0);
    EXPECT_EQ(g.at(4), 2);
}

TEST(Embedding, the_padding_row_gets_no_gradient) {
    Tensor g = weight_gradient(Value(-1), false);
    EXPECT_EQ(g.at(0), 1);
    EXPECT_EQ(g.at(4), 0);
}

TEST(Embedding, gradients_can_be_divided_by_how_often_a_row_occurs) {
    Tensor g = weight_gradient({}, true);
    EXPECT_EQ(g.at(0), 1);
    EXPECT_EQ(g.at(4), 1);
}

}  // namespace
}  // namespace lunaria
