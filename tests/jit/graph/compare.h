// Running graphs in both ways, for the tests of graph mode's back end.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "jit/graph/loop_builder.h"

namespace lunaria::testing {

// Operator by operator, as eager mode does it.
std::vector<Tensor> run_eagerly(const ir::Graph& graph, std::span<const Tensor> inputs);
// Compiled.
std::vector<Tensor> run_compiled(const ir::Graph& graph, std::span<const Tensor> inputs, bool generate = true);

// Every element of a is within `tolerance` (relative, and absolute below 1) of b's; NaN equals NaN.
::testing::AssertionResult are_close(std::span<const Tensor> a, std::span<const Tensor> b, double tolerance);

// Every element of a is bit for bit b's, but for NaN, which equals NaN.
::testing::AssertionResult are_equal(std::span<const Tensor> a, std::span<const Tensor> b);

// Normal random floats, small integers, bits.
Tensor random_tensor(const TensorType& type, uint64_t seed, double low = -2, double high = 2);

// One parameter per tensor of the arguments; `inputs` gets the tensors.
std::unique_ptr<ir::Graph> graph_of(const Op& op, std::span<const Value> args, std::vector<Tensor>& inputs);

// The loop programs that are made of a graph.
std::vector<graph::Loop> loops_of(const ir::Graph& graph);

}  // namespace lunaria::testing
