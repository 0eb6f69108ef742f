// Errors of what composite operators are made of: they speak of the operator that was called and of its parameters.
#include <gtest/gtest.h>

#include "backends/cpu/device.h"
#include "core/ir/builder.h"

namespace lunaria {
namespace {

class CompositeErrors : public ::testing::Test {
  protected:
    void SetUp() override { set_current_device(&cpu::device()); }

    static std::string error_of(Builder& builder, std::string_view op, std::span<const Arg> args) {
        try {
            builder.call_args(op, args);
        } catch (const Error& e) {
            return e.what();
        }
        return "no error";
    }
    // Eagerly, and of a graph's parameters.
    static void expect(std::string_view op, std::vector<Arg> args, const std::string& error) {
        EXPECT_EQ(error_of(eager_builder(), op, args), error);
        ir::Graph graph("f");
        ir::GraphBuilder builder(graph);
        for (Arg& arg : args)
            if (arg.value.is_tensor())
                arg.value = Value(graph.add_parameter("x", ir::NodeType::of(type_of(arg.value))));
        EXPECT_EQ(error_of(builder, op, args), error) << "of parameters";
    }
};

Value zeros(const Shape& shape, DType dtype = DType::f32) { return Value(Tensor::zeros(dtype, shape)); }

TEST_F(CompositeErrors, operands_have_the_names_that_the_caller_knows) {
    expect("addmm", {zeros({2, 5}), zeros({4}), zeros({4, 5})}, "addmm: mat1 must have 2 axes, not shape (4) (rank 1)");
    expect("addr", {zeros({2, 2}), zeros({2}), zeros({2, 1})},
           "addr: vec2 must have 1 axes, not shape (2, 1) (rank 2)");
    expect("scatter_add", {zeros({2, 3}), 7, zeros({1, 1}, DType::i64), zeros({1, 1})},
           "scatter_add: dim 7 is out of range for a tensor of 2 axes: axes are -2 .. 1");
}

TEST_F(CompositeErrors, what_is_computed_from_one_operand_has_its_name) {
    expect("quantile", {zeros({3}, DType::c64), 0.5}, "quantile: input must be real: complex numbers have no order");
    expect("logdet", {zeros({2, 3})}, "logdet: input must be a square matrix or a batch of them, not (2, 3)");
}

TEST_F(CompositeErrors, attributes_have_the_names_that_the_caller_knows) {
    expect("count_nonzero", {zeros({2, 3}), 7},
           "count_nonzero: axis 7 is out of range for a tensor of 2 axes: axes are -2 .. 1");
}

TEST_F(CompositeErrors, hints_stay) {
    expect(
        "l1_loss", {zeros({2, 3}), zeros({2, 5})},
        "l1_loss: shapes (2, 3) and (2, 5) do not broadcast: axis -1 has sizes 3 and 5\n  hint: two sizes of an axis, "
        "counted from the end, must be equal, or one of them 1");
}

TEST_F(CompositeErrors, kernels_know_the_names_as_well) {
    const Arg args[] = {Shape{2}, -1.0};
    EXPECT_EQ(error_of(eager_builder(), "poisson", args),
              "poisson: mean must not be negative, got -1\n  hint: where it is computed, keep it positive with "
              "ops.softplus or ops.exp");
}

}  // namespace
}  // namespace lunaria
