// A function of the IR: parameters, calls in source order, one result. Inner functions are graphs inside graphs; what
// they use of an outer one are their free variables.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/operator/node.h"

namespace lunaria::ir {

// Data that a later stage keeps beside a graph: its compiled form, its derivative.
struct Attachment {
    virtual ~Attachment() = default;
};

class Graph {
  public:
    explicit Graph(std::string name, Graph* parent = nullptr) : name(std::move(name)), parent(parent) {}
    Graph(const Graph&) = delete;

    std::string name;
    Graph* parent;  // nullptr: outermost
    Value result;   // a node, a constant, or a list of both; nil until it is set
    Span span;
    // Of a function: how many of the first parameters are captured values, and whether the last one takes the list of
    // all further arguments.
    size_t captures = 0;
    bool variadic = false;
    int order = 0;  // how many times it was differentiated
    mutable std::unique_ptr<Attachment> attachment;

    Node* add_parameter(std::string parameter_name, NodeType type);
    Node* add_constant(Value v);       // a tensor or a list of tensors; attributes stay plain arguments
    Node* add_function(Graph& graph);  // the function value of an inner or enclosing graph
    Node* add_call(const Op& op, std::vector<Value> args, NodeType type);
    Node* add_call(Node& callee, std::vector<Value> args, NodeType type);
    Node* add_item(Node& results, size_t index);
    Graph& add_inner(std::string inner_name);
    // Takes in a node that was made without a graph, as the last one of the body.
    Node* append(std::unique_ptr<Node> node);
    // Nodes that are added from here on have ids of at least `id`: for readers, which give nodes the ids of a text.
    void reserve_ids(int id);

    const std::vector<Node*>& parameters() const { return parameters_; }
    // Calls and items, in the order in which they run.
    const std::vector<Node*>& body() const { return body_; }
    const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
    const std::vector<std::unique_ptr<Graph>>& inner() const { return inner_; }
    bool encloses(const Graph& other) const;  // true for the graph itself
    // Nodes of enclosing graphs that this graph or an inner one uses, in the order of their first use.
    std::vector<Node*> free_variables() const;
    void reorder_parameters(std::vector<Node*> order) { parameters_ = std::move(order); }
    // Replaces the body: another order, with nodes left out or added. Nodes that are left out live on until the graph
    // goes.
    void reorder_body(std::vector<Node*> order) { body_ = std::move(order); }
    // Takes out the parameters (inner graphs) for which `dead` is true. The nodes of parameters live on until the graph
    // goes, those of inner graphs do not.
    void erase_parameters(const std::function<bool(const Node&)>& dead);
    void erase_inner(const std::function<bool(const Graph&)>& dead);

    // Takes out all nodes from `first` on, and the result. Only for a graph that has grown at its end.
    void erase_from(const Node& first);
    // The same, but the nodes that are taken out become a new inner graph, which takes the other inner graphs along.
    Graph& split(const Node& first, std::string inner_name);
    // Appends the content of an inner graph without parameters to this graph, and removes the inner graph.
    void join(Graph& inner);

  private:
    Node* add(NodeKind kind);
    size_t find(const Node& node) const;   // position among the nodes
    size_t count_body(size_t from) const;  // number of body nodes among the nodes from there on
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<Node*> parameters_, body_;
    std::vector<std::unique_ptr<Graph>> inner_;
    int next_id_ = 0;  // ids are counted through the whole tree by its root
};

// Whether the node continues in another block: a call of a graph, or the primitive `branch` with two graphs.
bool goes_on(const Node& node);
// The blocks of a function: its entry and all blocks that it continues in, in the order in which they are found.
std::vector<const Graph*> blocks_of(const Graph& entry);

// Calls f with every node in a value (a node, or a list that may hold some).
void for_each_node(const Value& v, const std::function<void(Node*)>& f);

}  // namespace lunaria::ir
