// Rewriting straight-line graphs of tensor operators: what the passes have in common.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "core/ir/builder.h"

namespace lunaria::graph {

// Given a call or an item whose operands are up to date, says what stands for it from here on: another node, a list of
// them, or nil where it stays. What the rule emits goes before the node. A rule must keep the type of the value.
using Rule = std::function<Value(ir::Node& node, ir::GraphBuilder& builder)>;

// Applies the rule to every node in order; true when it replaced any.
bool rewrite(ir::Graph& graph, const Rule& rule);

// Operands of which only the value matters: the one element of a constant tensor, a plain number or boolean.
std::optional<double> constant_number(const Value& v);

// Nodes that are called for more than their value, or that never give the same value twice.
bool has_effect(const ir::Node& node);

// Nodes that are called even where nobody reads their value: those with an effect, and those that may refuse the values
// of their operands.
bool must_run(const ir::Node& node);

// The tensor type of a node, a constant tensor or a number beside tensors; nothing for other values.
std::optional<TensorType> static_type(const Value& v);

// How many writes come before each node: what reads variables may not be moved across one.
std::unordered_map<const ir::Node*, int> epochs_of(const ir::Graph& graph);

// Whether all results of the node have sizes that are known before it runs.
bool has_static_shape(const ir::NodeType& type);

}  // namespace lunaria::graph
