// J of one block: the forward graph, and for each exit of the block a graph that carries the cotangents of the values
// passed on back to the block's parameters.
#pragma once

#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "jit/autodiff/transform.h"

namespace lunaria::autodiff {

inline Value number(size_t i) { return Value(static_cast<int64_t>(i)); }

class BlockRewriter {
  public:
    // `target`: the graph to fill, an inner graph of `root` or `root` itself (`entry`).
    BlockRewriter(const ir::Graph& block, ir::Graph& target, ir::Graph& root, bool entry)
        : block_(block), target_(target), root_(root), entry_(entry) {}
    void run(const std::unordered_map<const ir::Graph*, ir::Graph*>& targets, Origin* origin);

    // For the rules of primitives (jit/language_rules.h), which write the forward graph node by node.
    Value emit(std::string_view name, std::vector<Value> args);
    Value emit(const Op& primitive, std::vector<Value> args);
    Value pick(const Value& node, size_t i);
    Value tr(const Value& old);  // its value in the new graph
    void set(const ir::Node& old, Value made) { map_[&old] = std::move(made); }
    Value copy(const ir::Node& node);  // unchanged
    // Marks a node without a cotangent: an object with an identity, or no number.
    void plain(const ir::Node& node) { plain_.insert(&node); }
    bool is_plain(const Value& old) const;
    // Whether the value of a field is only called or indexed further.
    bool leads_on(const ir::Node& field, const Value& key);
    // Adds the step of the backward pass for the node, to run with its cotangent.
    void step(std::function<void(class Backward&)> f);
    const Value& context() const { return context_; }
    Value with_context(const Value& contexts);
    // The new values for a node with several outputs, and the old node of the first output, if any.
    void set_outputs(const ir::Node& node, std::vector<Value> outputs) { outputs_[&node] = std::move(outputs); }
    const ir::Node* first_output(const ir::Node& node) const {
        auto found = first_output_.find(&node);
        return found == first_output_.end() ? nullptr : found->second;
    }
    Value function(const ir::Graph& graph) { return Value(target_.add_function(const_cast<ir::Graph&>(graph))); }
    // The running closure, and the order of its function.
    const Value& self() const { return self_; }
    int order() const { return root_.order; }

  private:
    friend class Backward;

    void parameters();
    void forward(const ir::Node& node);
    void item(const ir::Node& node);
    void finish(const std::unordered_map<const ir::Graph*, ir::Graph*>& targets);
    Value close(class Backward& backward, bool variadic);

    using Step = std::function<void(class Backward&)>;

    const ir::Graph& block_;
    ir::Graph& target_;
    ir::Graph& root_;
    const bool entry_;
    ir::Span at_;
    Value context_, self_, chain_;
    std::unordered_map<const ir::Node*, Value> map_;
    std::unordered_map<const ir::Node*, std::vector<Value>> outputs_;
    std::unordered_map<const ir::Node*, const ir::Node*> first_output_;
    std::unordered_set<const ir::Node*> plain_;
    std::unordered_set<const ir::Node*> used_;  // nodes used other than by a call of them or an index into them
    bool scanned_ = false;
    std::vector<Step> steps_;       // in the order of the forward pass
    std::vector<Step> last_steps_;  // after all others: those of captured values
};

// The writer of one backpropagator.
class Backward {
  public:
    Backward(BlockRewriter& forward, std::string name);

    // A value of the forward graph, captured.
    Value saved(const Value& forward_value);
    Value emit(std::string_view name, std::vector<Value> args);
    // Adds a cotangent to an old value: a node, a static list of them, or a constant (which takes none).
    void add(const Value& old, const Value& cotangent);
    // Calls the pullback of object[key] = value.
    void pull_write(const Value& r, const Value& object, const Value& key, const Value& value, const Value& error);
    void add_item(const ir::Node& list, size_t i, const Value& cotangent);
    // The cotangent of an old node, nil if there is none; that of a list node as a node, or as a static list.
    Value cotangent(const ir::Node& old);
    Value cotangents_of_list(const ir::Node& old);
    // Calls the pullback r with cotangents and adds the results to the operands.
    void pull(const Value& r, Value cotangents, std::span<const Value> operands);
    bool has(const ir::Node& old) const { return whole_.contains(&old) || items_.contains(&old); }

    ir::Node* parameter(std::string name);
    // Writes all steps in reverse and the result; afterwards the closure's captures are values of the forward graph.
    void finish(bool variadic);
    ir::Graph& graph() { return graph_; }
    const std::vector<Value>& captures() const { return captures_; }

  private:
    Value whole(const ir::Node& old) const;

    BlockRewriter& forward_;
    ir::Graph& graph_;
    std::vector<Value> captures_;
    std::vector<ir::Node*> capture_parameters_, own_parameters_;
    std::unordered_map<const ir::Node*, Value> saved_, whole_;
    std::unordered_map<const ir::Node*, std::map<size_t, Value>> items_;
};

}  // namespace lunaria::autodiff
