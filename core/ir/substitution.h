// Rewriting of graphs with other values in place of their nodes: copies into another graph, or runs.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::ir {

// A substitute for each node of a graph. For instance, with a graph `twice` of one parameter, and a node `x` of `to`:
//
//     Substitution copied(&to);
//     copied[twice.parameters()[0]] = Value(x);
//     for (const Node* node : twice.body()) copied[node] = copied.copy(*node);
//     Value result = copied(twice.result);
class Substitution {
  public:
    // Constants and functions become nodes of `target`, each once; without a target constants are the values they hold.
    explicit Substitution(Graph* target = nullptr) : target_(target) {}
    // Constants and copies go to this graph from here on.
    void write_to(Graph& target) { target_ = &target; }

    Value& operator[](const Node* node) { return values_[node]; }
    // The same value with the nodes in it replaced by their substitutes. Throws state_error where a node has none yet.
    Value operator()(const Value& v);
    std::vector<Value> operator()(std::span<const Value> values);

    // Writes a call or an item into the target, with the substitutes of its operands. An item of a list is the element
    // of the list. The result does not yet become the node's substitute.
    Value copy(const Node& node);

  private:
    Graph* target_;
    std::unordered_map<const Node*, Value> values_;
};

// Evaluates a graph without calls of functions on other operands in place of its parameters: run(op, operands) returns
// the result of an operator, item(results, i) a part of it.
template <class Run, class Item>
Value replay(const Graph& graph, std::span<const Value> operands, Run&& run, Item&& item) {
    Substitution values;
    for (size_t i = 0; i < graph.parameters().size(); ++i) values[graph.parameters()[i]] = operands[i];
    for (const Node* node : graph.body()) {
        std::vector<Value> args = values(node->args);
        values[node] = node->op ? run(*node->op, std::move(args)) : item(args.at(0), node->index);
    }
    return values(graph.result);
}

}  // namespace lunaria::ir
