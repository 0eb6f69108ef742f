// Builds a graph by calling operators: promotes operands, infers types, folds what is known from types alone.
#pragma once

#include "core/ir/graph.h"

namespace lunaria::ir {

class GraphBuilder final : public Builder {
  public:
    explicit GraphBuilder(Graph& graph) : graph_(&graph) {}

    // Every tensor operand of the call has its promoted dtype: where it had another one, a `cast` is inserted, so that
    // gradients flow through the conversion. Composite operators stay one node.
    Value emit(const Op& op, std::span<const Value> args) override;
    Value item(const Value& results, size_t i) override;
    Value tuple(std::vector<Value> items) override { return Value::list(std::move(items)); }

    // An argument as a call takes it: converted to the dtype that operands of its kind have there.
    Value operand(const Op& op, const Param& param, const Value& v, DType dtype);

    Graph& graph() const { return *graph_; }
    Span span;  // given to the nodes that are made
    // Composite operators without a gradient rule are written into the graph as the operators that they are made of.
    bool expands = false;

  private:
    Value constant_node(const Value& v);
    Graph* graph_;
};

// The type of a call's result: by the operator's rule, or by expanding it into a scratch graph.
NodeType infer_call(const Op& op, std::span<const Value> args);

}  // namespace lunaria::ir
