// The pass that replaces a written-out softmax(q k' scale) v by the operator that holds one tile of the scores at a
// time. It leaves the product alone if another node, such as a gradient, reads the scores or the weights, since they
// are then in memory anyway.
#include <unordered_map>

#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

// Fewer queries or keys make no tile.
constexpr int64_t kFewest = 8;

const TensorType* type_of_node(const Value& v) {
    if (!v.is_node() || v.node()->type.kind != ir::NodeType::Kind::tensor) return nullptr;
    const TensorType& t = v.node()->type.tensor;
    return t.shape.known() && (t.dtype == DType::f32 || t.dtype == DType::f64) ? &t : nullptr;
}

class Attentions {
  public:
    explicit Attentions(const ir::Graph& graph) {
        bool any = false;
        for (const ir::Node* node : graph.body()) {
            if (!node->op) continue;
            any |= node->op == &ops().softmax;
            // The operands would be read where the results are computed, no longer where the scores were.
            is_possible_ &= !node->op->writes();
            for (const Value& arg : node->args) ir::for_each_node(arg, [&](const ir::Node* n) { ++uses_[n]; });
        }
        ir::for_each_node(graph.result, [&](const ir::Node* n) { ++uses_[n]; });
        is_possible_ &= any && has_kernel(ops().attention);
    }

    bool is_possible() const { return is_possible_; }

    // The replacement of the product of weights and values; nil if the node is no such product.
    Value replacement(const ir::Node& node, ir::GraphBuilder& builder) const {
        if (!is_call(&node, ops().matmul)) return {};
        const ir::Node* weights = inner(node.args[0], ops().softmax);
        if (!weights || !is_last_axis(*weights)) return {};
        Value scores = weights->args[0];
        double scale = 1;
        for (const Op* op : {&ops().mul, &ops().div}) {
            const ir::Node* scaled = inner(scores, *op);
            if (!scaled || (op == &ops().div && !scaled->args[2].is_nil())) continue;
            const auto factor = constant_number(scaled->args[1]);
            if (!factor || !(static_type(scaled->args[0]) == static_type(scores))) return {};
            scale = op == &ops().mul ? *factor : 1 / *factor;
            scores = scaled->args[0];
            break;
        }
        const ir::Node* product = inner(scores, ops().matmul);
        if (!product) return {};
        const TensorType *q = type_of_node(product->args[0]), *k = type_of_node(product->args[1]),
                         *v = type_of_node(node.args[1]);
        if (!q || !k || !v || !fits(*q, *k, *v, node.type.tensor)) return {};
        // The value as (batch, heads, length, size).
        auto with_heads = [&](const Value& x) {
            const Shape& s = x.node()->type.tensor.shape;
            return s.rank() == 4 ? x : emit(builder, ops().reshape, {x, Value::ints({s[0], 1, s[1], s[2]})});
        };
        const Value keys =
            emit(builder, ops().transpose, {with_heads(product->args[1]), Value::ints({0, 1, 3, 2}), Value()});
        const Value result = emit(builder, ops().attention,
                                  {with_heads(product->args[0]), keys, with_heads(node.args[1]), Value(scale),
                                   Value(false), Value(int64_t{0})});
        return q->shape.rank() == 4 ? result
                                    : emit(builder, ops().reshape, {result, Value::ints(node.type.tensor.shape)});
    }

  private:
    // The node of an operand, if it is a call of that operator without other readers.
    const ir::Node* inner(const Value& v, const Op& op) const {
        const ir::Node* node = call_of(v, op);
        auto found = node ? uses_.find(node) : uses_.end();
        return found != uses_.end() && found->second == 1 ? node : nullptr;
    }

    static bool is_last_axis(const ir::Node& softmax) {
        const TensorType* t = type_of_node(softmax.args[0]);
        if (!t || !(softmax.type.tensor == *t)) return false;
        const int64_t axis = softmax.args[1].integer();
        return axis == -1 || axis == t->shape.rank() - 1;
    }

    // Whether q (.., queries, size), k (.., size, keys) and v (.., keys, columns) have one batch, with nothing
    // broadcast.
    static bool fits(const TensorType& q, const TensorType& k, const TensorType& v, const TensorType& out) {
        const int rank = q.shape.rank();
        if ((rank != 3 && rank != 4) || k.shape.rank() != rank || v.shape.rank() != rank) return false;
        for (int i = 0; i < rank - 2; ++i)
            if (q.shape[i] != k.shape[i] || q.shape[i] != v.shape[i]) return false;
        const int64_t queries = q.shape[rank - 2], keys = v.shape[rank - 2];
        return q.dtype == k.dtype && q.dtype == v.dtype && q.dtype == out.dtype && queries >= kFewest &&
               keys >= kFewest && out.shape.size() > 0;
    }

    bool is_possible_ = true;
    std::unordered_map<const ir::Node*, int> uses_;
};

}  // namespace

bool fuse_attention(ir::Graph& graph) {
    const Attentions attentions(graph);
    if (!attentions.is_possible()) return false;
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        return attentions.replacement(node, builder);
    });
}

}  // namespace lunaria::graph
