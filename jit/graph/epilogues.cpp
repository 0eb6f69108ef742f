// Epilogues: operators after a product of matrices or a convolution that are applied to a part of its result while that
// is in the cache: a bias, and relu.
//
// A convolution's relu is our own even where a library computes the convolution: oneDNN's takes the larger of 0 and the
// value, which turns NaN into 0.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "jit/graph/fusion.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

enum AffineArg : size_t { kInput, kWeight, kBias, kTransposed, kRelu };

const TensorType* float_type(const Value& v) {
    if (!v.is_node() || v.node()->type.kind != ir::NodeType::Kind::tensor) return nullptr;
    const TensorType& t = v.node()->type.tensor;
    return t.shape.known() && (t.dtype == DType::f32 || t.dtype == DType::f64) ? &t : nullptr;
}

// Whether the node may be an epilogue of its operand. Most graphs have none, and are done after this check.
bool may_join(const ir::Node* node) {
    const bool relu = is_call(node, ops().relu);
    if (!relu && !is_call(node, ops().add)) return false;
    return std::ranges::any_of(node->args, [&](const Value& arg) {
        const ir::Node* from = node_of(arg);
        return is_call(from, ops().matmul) || (relu && (is_call(from, ops().dense) || is_call(from, ops().conv2d)));
    });
}

class Epilogues {
  public:
    explicit Epilogues(const ir::Graph& graph) : epochs_(epochs_of(graph)) {
        std::optional<Arrangements> arrangements;
        for (const ir::Node* node : graph.body()) {
            if (!is_call(node, ops().matmul)) continue;
            if (!arrangements) arrangements.emplace(graph);
            if (part_of(*node, *arrangements) != Part::product) products_.insert(node);
        }
        for (const ir::Node* node : graph.body())
            for (const Value& arg : node->args)
                ir::for_each_node(arg, [&](const ir::Node* n) {
                    Uses& u = uses_[n];
                    ++u.count;
                    u.loops += node->op && node->op->is_elementwise && !is_call(node, ops().relu);
                });
        ir::for_each_node(graph.result, [&](const ir::Node* n) { ++uses_[n].count; });
    }

    // The replacement of the node; nil where it stays.
    Value replacement(ir::Node& node, ir::GraphBuilder& builder) {
        Value made;
        if (is_call(&node, ops().relu))
            made = cut(node, builder);
        else if (is_call(&node, ops().add))
            made = biased(node, builder);
        // Later questions about the new node's uses get those of the old node.
        if (made.is_node()) {
            uses_[made.node()] = uses_[&node];
            epochs_[made.node()] = epochs_[&node];
        }
        return made;
    }

  private:
    struct Uses {
        int count = 0, loops = 0;  // loops: uses by other elementwise operators, which are joined with it anyway
    };

    // The operand, if it is an operator's result with the same type that only this node uses.
    const ir::Node* inner(const ir::Node& node, const Value& arg) const {
        const TensorType *from = float_type(arg), *to = float_type(Value(const_cast<ir::Node*>(&node)));
        if (!from || !to || !(*from == *to) || !arg.node()->op) return nullptr;
        return uses_.at(arg.node()).count == 1 && epochs_.at(arg.node()) == epochs_.at(&node) ? arg.node() : nullptr;
    }

    Value cut(const ir::Node& relu, ir::GraphBuilder& builder) const {
        const ir::Node* x = inner(relu, relu.args[0]);
        if (is_call(x, ops().dense))
            return emit(builder, ops().affine, {x->args[0], x->args[1], x->args[2], Value(true), Value(true)});
        if (is_product(x))
            return emit(builder, ops().affine, {x->args[0], x->args[1], Value(), Value(false), Value(true)});
        if (is_call(x, ops().conv2d)) return builder.emit(ops().conv2d_relu, x->args);
        if (!is_call(x, ops().affine) || x->args[kRelu].boolean()) return {};
        std::vector<Value> args = x->args;
        args[kRelu] = Value(true);
        return builder.emit(ops().affine, args);
    }

    // Whether it multiplies by one matrix and is not part of a loop.
    bool is_product(const ir::Node* node) const {
        if (!node || !products_.contains(node)) return false;
        const TensorType *x = float_type(node->args[0]), *w = float_type(node->args[1]);
        return x && w && x->dtype == w->dtype && x->shape.rank() >= 2 && w->shape.rank() == 2;
    }

    // A product plus one number for each column. If other elementwise operators follow, it is part of their loop
    // instead.
    Value biased(const ir::Node& add, ir::GraphBuilder& builder) const {
        if (auto u = uses_.find(&add); u == uses_.end() || u->second.loops > 0) return {};
        for (const size_t i : {0, 1}) {
            const ir::Node* product = inner(add, add.args[i]);
            const TensorType* bias = float_type(add.args[1 - i]);
            if (!is_product(product) || !bias || bias->dtype != add.type.tensor.dtype) continue;
            if (!(bias->shape == Shape{add.type.tensor.shape.back()})) continue;
            return emit(builder, ops().affine,
                        {product->args[0], product->args[1], add.args[1 - i], Value(false), Value(false)});
        }
        return {};
    }

    std::unordered_map<const ir::Node*, int> epochs_;
    std::unordered_map<const ir::Node*, Uses> uses_;
    std::unordered_set<const ir::Node*> products_;
};

}  // namespace

bool fuse_epilogues(ir::Graph& graph) {
    if (std::ranges::none_of(graph.body(), may_join) || !has_kernel(ops().affine) || !has_kernel(ops().conv2d_relu))
        return false;
    Epilogues epilogues(graph);
    const bool changed =
        rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) { return epilogues.replacement(node, builder); });
    if (changed) remove_dead_code(graph);
    return changed;
}

}  // namespace lunaria::graph
