// Graphs written again with other values in place of their nodes: copied into another graph, or run.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::ir {

// What stands for each node of a graph. For instance, with a graph `twice` of one parameter, and a node `x` of `to`:
//
//     Substitution copied(&to);
//     copied[twice.parameters()[0]] = Value(x);
//     for (const Node* node : twice.body()) copied[node] = copied.copy(*node);
//     Value result = copied(twice.result);
class Substitution {
  public:
    // Constants and functions become nodes of `target`, each once; without a target constants are the values they hold.
    explicit Substitution(Graph* target = nullptr) : target_(target) {}
    // Where constants and copies go from here on.
    void write_to(Graph& target) { target_ = &target; }

    Value& operator[](const Node* node) { return values_[node]; }
    // The same value in terms of what stands for the nodes in it. Throws state_error where nothing does yet.
    Value operator()(const Value& v);
    std::vector<Value> operator()(std::span<const Value> values);

    // A call or an item, written into the target with what stands for its operands. An item of a list is what the list
    // holds. The result does not yet stand for the node.
    Value copy(const Node& node);

  private:
    Graph* target_;
    std::unordered_map<const Node*, Value> values_;
};

// What a graph without calls of functions gives for other operands in place of its parameters: run(op, operands) gives
// what an operator gives, item(results, i) a part of that.
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
