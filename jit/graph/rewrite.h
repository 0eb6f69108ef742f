// Rewriting of straight-line graphs of tensor operators, for the passes.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>

#include "core/ir/builder.h"

namespace lunaria::graph {

// A rule gets a call or an item whose operands are up to date and returns its replacement: another node, a list of
// them, or nil where it stays. Nodes that the rule emits go before the node. A rule must keep the type of the value.
using Rule = std::function<Value(ir::Node& node, ir::GraphBuilder& builder)>;

// Applies the rule to every node in order; returns whether it replaced any.
bool rewrite(ir::Graph& graph, const Rule& rule);

// The number, for operands of which only the value matters: a constant tensor with one element, a plain number or
// boolean.
std::optional<double> constant_number(const Value& v);

// Whether the node has an effect beside its value, or never gives the same value twice.
bool has_effect(const ir::Node& node);

// Whether the node must run even if its value is not used: it has an effect, or may refuse the values of its operands.
bool must_run(const ir::Node& node);

// The tensor type of a node, a constant tensor or a number beside tensors; nothing for other values.
std::optional<TensorType> static_type(const Value& v);

// The number of writes before each node: a node that reads variables may not be moved across a write.
std::unordered_map<const ir::Node*, int> epochs_of(const ir::Graph& graph);

// Whether the sizes of all results of the node are known before it runs.
bool has_static_shape(const ir::NodeType& type);

}  // namespace lunaria::graph
