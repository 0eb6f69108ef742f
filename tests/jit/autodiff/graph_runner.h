// Straight-line graphs in tests: values of all their nodes, and cotangents by the operators' pullbacks.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::testing {

// A run of a graph of operators on tensors and primitives on numbers, with what every node gave.
class GraphRun {
  public:
    GraphRun(const ir::Graph& graph, std::span<const Value> args);
    const Value& result() const { return result_; }

    // Cotangents of the parameters from one of the result (a list for a list; nil is zero): tensors of float type and
    // numbers have one, nil where nothing depends on them.
    std::vector<Value> backward(const Value& cotangent) const;

  private:
    using Values = std::map<const ir::Node*, Value>;
    static Value substitute(const Value& v, const Values& values);
    const ir::Graph& graph_;
    Values values_;
    Value result_;
};

// The cotangents of a call's arguments by its pullback, or by its expansion if it has none of its own.
std::vector<Value> cotangents_of_call(const Op& op, std::span<const Value> args, const Value& result,
                                      const Value& cotangent, uint64_t active = ~uint64_t{0});

// The values to run a pullback's graph on.
std::vector<Value> pullback_inputs(const std::vector<int>& saved, const std::vector<int>& saved_item,
                                   std::span<const Value> args, const Value& result, std::span<const Value> cotangents);

}  // namespace lunaria::testing
