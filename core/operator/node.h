// Nodes of the functional graph IR (MindIR): parameters, constants and calls, in A-normal form.
// A graph owns its nodes and keeps its calls in source order, so that effects keep theirs; a node of an outer graph
// used in an inner one is a free variable of the inner graph.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/operator/op.h"

namespace lunaria::ir {

class Graph;

// A node's place in the user's text; line 0: none (made by a transform).
struct Span {
    std::shared_ptr<const std::string> chunk;  // shared by all nodes of a chunk and by printers
    int line = 0, column = 0;
};

enum class NodeKind : uint8_t { parameter, constant, call, item };

// The knowledge about a node's value before it runs.
struct NodeType {
    enum class Kind : uint8_t { unknown, tensor, list, host };  // host: a plain value (number, string, dtype …)
    Kind kind = Kind::unknown;
    TensorType tensor;
    std::vector<NodeType> items;  // of a list

    static NodeType of(TensorType t) { return {Kind::tensor, std::move(t), {}}; }
    static NodeType list(std::vector<NodeType> items) { return {Kind::list, {}, std::move(items)}; }
    friend bool operator==(const NodeType&, const NodeType&) = default;
};

class Node {
  public:
    explicit Node(NodeKind kind) : kind(kind) {}  // in no graph yet
    Node(NodeKind kind, Graph& graph) : kind(kind), graph_(&graph) {}
    Node(const Node&) = delete;

    const NodeKind kind;
    std::string name;           // of a parameter, or a local variable's name; may be empty
    Value constant;             // of a constant
    const Op* op = nullptr;     // of a call to an operator; nullptr: the callee is `callee`
    Node* callee = nullptr;     // of a call to a function value
    Graph* function = nullptr;  // of a constant that stands for a graph
    // For a call: nodes, plain constants for attributes, or lists of both. For an item: the node from whose results it
    // picks one.
    std::vector<Value> args;
    size_t index = 0;  // of an item
    NodeType type;
    Span span;
    int id = -1;    // within the graph, in order of creation
    int slot = -1;  // the place of its value when the graph itself is executed, as that of a recorded call is

    Graph& graph() const { return *graph_; }
    const TensorType& tensor_type() const;  // throws state_error when it is not known to be a tensor

  private:
    friend class Graph;
    Graph* graph_ = nullptr;
};

}  // namespace lunaria::ir
