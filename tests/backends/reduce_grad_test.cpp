// Gradients where formulas divide by zero, cancel infinities or have corners.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"
#include "tests/backends/graph_tools.h"

namespace lunaria {
namespace {

constexpr double kInf = HUGE_VAL;

// The gradient of the sum of the (first) result of op(x, more…) with respect to x.
std::vector<double> slope(std::string_view op, std::initializer_list<double> x, std::vector<Value> more = {}) {
    set_current_device(&cpu::device());
    Tensor input = Tensor::empty(DType::f64, {static_cast<int64_t>(x.size())});
    int64_t i = 0;
    for (double v : x) input.set_at(i++, v);
    ir::Graph graph("f");
    ir::GraphBuilder builder(graph);
    std::vector<Arg> args{Expr(builder, Value(graph.add_parameter("x", ir::NodeType::of(type_of(Value(input))))))};
    for (Value& v : more) args.emplace_back(std::move(v));
    Expr result = builder.call_args(op, args);
    bool several = result.value().is_list() ||
                   (result.value().is_node() && result.value().node()->type.kind == ir::NodeType::Kind::list);
    graph.result = call("sum", {several ? result[0] : result}).value();
    size_t parameter[] = {0};
    auto gradient = testing::gradient(graph, parameter);
    Value inputs[] = {Value(input)};
    Tensor g = testing::evaluate(*gradient, inputs).items()[0].tensor();
    std::vector<double> list;
    for (int64_t k = 0; k < g.size(); ++k) list.push_back(g.at(k));
    return list;
}

using List = std::vector<double>;

TEST(ReduceGradient, products_with_zeros) {
    EXPECT_EQ(slope("prod", {2, 3, 4}), (List{12, 8, 6}));
    EXPECT_EQ(slope("prod", {2, 0, 4}), (List{0, 8, 0}));
    EXPECT_EQ(slope("prod", {0, 0, 4}), (List{0, 0, 0}));
    EXPECT_EQ(slope("cumprod", {2, 0, 4}, {Value(0)}), (List{1, 10, 0}));
}

TEST(ReduceGradient, equal_extrema_share_and_indexed_ones_do_not) {
    EXPECT_EQ(slope("amax", {1, 3, 3}), (List{0, 0.5, 0.5}));
    EXPECT_EQ(slope("amin", {1, 1, 3}), (List{0.5, 0.5, 0}));
    EXPECT_EQ(slope("max", {1, 3, 3}, {Value(0)}), (List{0, 1, 0}));
    EXPECT_EQ(slope("topk", {1, 3, 2}, {Value(2)}), (List{0, 1, 1}));
    EXPECT_EQ(slope("median", {5, 1, 3}), (List{0, 0, 1}));
}

TEST(ReduceGradient, corners_have_the_gradient_zero) {
    EXPECT_EQ(slope("norm", {0, 0}), (List{0, 0}));
    EXPECT_EQ(slope("vector_norm", {0, 0}, {Value(3.0)}), (List{0, 0}));
    EXPECT_EQ(slope("std", {2, 2, 2}), (List{0, 0, 0}));
    EXPECT_NEAR(slope("norm", {3, 4})[0], 0.6, 1e-12);
}

TEST(ReduceGradient, lines_of_minus_infinity_have_none) {
    EXPECT_EQ(slope("logsumexp", {-kInf, -kInf}), (List{0, 0}));
    EXPECT_EQ(slope("logsumexp", {0, -kInf}), (List{1, 0}));
    EXPECT_EQ(slope("logcumsumexp", {-kInf, 0, 0}, {Value(0)}), (List{0, 1.5, 0.5}));
}

TEST(ReduceGradient, running_sums_of_exponentials_do_not_overflow) {
    List g = slope("logcumsumexp", {-900, 0, 900}, {Value(0)});
    EXPECT_NEAR(g[0], 1, 1e-12);
    EXPECT_NEAR(g[1], 1, 1e-12);
    EXPECT_NEAR(g[2], 1, 1e-12);
}

TEST(ReduceGradient, losses_at_certainty_are_finite) {
    Tensor one = Tensor::full(DType::f64, {2}, 1);
    for (double g : slope("binary_cross_entropy", {0, 1}, {Value(one)})) EXPECT_TRUE(std::isfinite(g));
    EXPECT_EQ(slope("smooth_l1_loss", {1, 3}, {Value(one), Value(0.0)}), (List{0, 1}));
    EXPECT_EQ(slope("huber_loss", {1, 5}, {Value(one), Value("sum")}), (List{0, 1}));
}

TEST(ReduceGradient, ignored_labels_get_none) {
    Tensor labels = Tensor::full(DType::i64, {}, -100);
    EXPECT_EQ(slope("cross_entropy", {1, 2, 3}, {Value(labels), Value(), Value(-100), Value("sum")}), (List{0, 0, 0}));
}

}  // namespace
}  // namespace lunaria
