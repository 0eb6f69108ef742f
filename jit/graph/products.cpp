// Joining of small matrix products into large ones: an unrolled loop over time steps has many of them.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "jit/graph/layout.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

const TensorType* float_type(const ir::Node& node) {
    if (!node.op || node.type.kind != ir::NodeType::Kind::tensor) return nullptr;
    const TensorType& t = node.type.tensor;
    return (t.dtype == DType::f32 || t.dtype == DType::f64) && t.shape.known() ? &t : nullptr;
}

bool is_matrix(const Value& v) {
    auto t = static_type(v);
    return t && v.is_node() && t->shape.known() && t->shape.rank() == 2;
}
const Shape& shape_of(const Value& v) { return v.node()->type.tensor.shape; }

bool is_product(const ir::Node& node) {
    return is_call(&node, ops().matmul) && float_type(node) && is_matrix(node.args[0]) && is_matrix(node.args[1]);
}

// Sums of several values, which the graph has as sums of two.
class Sums {
  public:
    explicit Sums(const ir::Graph& graph) : epochs_(epochs_of(graph)) {
        std::unordered_map<const ir::Node*, int> uses;
        auto count = [&](const ir::Node* n) { ++uses[n]; };
        for (const ir::Node* node : graph.body())
            for (const Value& arg : node->args) ir::for_each_node(arg, count);
        ir::for_each_node(graph.result, count);
        for (const ir::Node* node : graph.body()) {
            if (!is_sum(*node)) continue;
            for (const Value& arg : node->args) {
                const ir::Node* n = arg.is_node() ? arg.node() : nullptr;
                if (n && is_sum(*n) && uses[n] == 1 && n->type.tensor == node->type.tensor &&
                    epochs_.at(n) == epochs_.at(node))
                    inner_.emplace(n, node);
            }
        }
    }

    // Whether the node is a sum that is not part of a larger one.
    bool is_root(const ir::Node& node) const { return is_sum(node) && !inner_.contains(&node); }

    // Appends the terms of the sum, in order.
    void add_terms(const ir::Node& sum, std::vector<Value>& terms) const {
        for (const Value& arg : sum.args) {
            if (arg.is_node() && inner_.contains(arg.node()))
                add_terms(*arg.node(), terms);
            else
                terms.push_back(arg);
        }
    }

    int epoch(const ir::Node& node) const {
        auto found = epochs_.find(&node);
        return found == epochs_.end() ? -1 : found->second;
    }

  private:
    static bool is_sum(const ir::Node& node) { return is_call(&node, ops().add) && float_type(node); }
    std::unordered_map<const ir::Node*, int> epochs_;
    std::unordered_map<const ir::Node*, const ir::Node*> inner_;
};

class Joiner {
  public:
    explicit Joiner(ir::GraphBuilder& builder) : builder_(builder) {}

    // A sum of products a b is one product of the a side by side and the b one below the other.
    Value product(const std::vector<Value>& terms) {
        std::vector<Value> left, right;
        for (const Value& term : terms) {
            left.push_back(turned(term.node()->args[0]));
            right.push_back(term.node()->args[1]);
        }
        return emit(ops().matmul,
                    {emit(ops().transpose, {together(left), Value::ints({1, 0}), Value()}), together(right)});
    }

    Value add(const Value& a, const Value& b) { return emit(ops().add, {a, b}); }

  private:
    Value emit(const Op& op, std::initializer_list<Value> args) { return graph::emit(builder_, op, args); }
    Value together(const std::vector<Value>& parts) {
        return emit(ops().concat, {Value::list(parts), Value(int64_t{0})});
    }

    // The transposed matrix, without a copy if the value is a transpose already.
    Value turned(const Value& v) {
        const ir::Node& node = *v.node();
        const Shape& shape = node.type.tensor.shape;
        if (is_call(&node, ops().transpose)) {
            const ir::Node* inner = node.args[0].node();
            const Shape& before = inner->type.tensor.shape;
            if (before.rank() == 2 && before[0] == shape[1] && before[1] == shape[0] &&
                is_swap(node.args[1], node.args[2]))
                return Value(const_cast<ir::Node*>(inner));
        }
        if (shape[1] != 1) return emit(ops().transpose, {v, Value::ints({1, 0}), Value()});
        // A single column is often a reshaped row.
        if (is_call(&node, ops().reshape)) {
            ir::Node* inner = node.args[0].node();
            if (inner->type.tensor.shape == Shape{1, shape[0]}) return Value(inner);
        }
        return emit(ops().reshape, {v, Value::ints({1, shape[0]})});
    }
    // Whether transpose's operands exchange the axes of a matrix.
    static bool is_swap(const Value& axes, const Value& other) {
        if (!other.is_nil()) return ((axes.is_list() ? axes.items()[0] : axes).integer() + other.integer()) % 2 != 0;
        return axes.is_nil() || (axes.is_list() && axes.items()[0].integer() == 1 && axes.items()[1].integer() == 0);
    }

    ir::GraphBuilder& builder_;
};

// Whether copying both operands into place costs less than adding one more result.
bool is_narrow_product(const ir::Node& node) {
    if (!is_product(node)) return false;
    const Shape &a = shape_of(node.args[0]), &out = node.type.tensor.shape;
    return a[1] * (out[0] + out[1]) <= out[0] * out[1];
}

// Products with the same right side, whose left sides are rows of one value.
struct Batch {
    const ir::Node* root = nullptr;
    size_t members = 0;
    int64_t width = 0, rows = 0;  // rows: of the left sides together
    Value all{};                  // the products of all rows, once they are made
};

// Whether the product of all rows can replace the node: dense takes a bias too.
bool multiplies_rows(const ir::Node& node) {
    if (is_product(node)) return true;
    return is_call(&node, ops().dense) && float_type(node) && is_matrix(node.args[0]);
}

// The first row of the left side within its root, if it consists of whole rows of that value.
std::optional<int64_t> first_row(const Arrangement& a, const Shape& left) {
    const Shape& whole = a.root->type.tensor.shape;
    if (!a.is_dense() || !(a.type.dtype == a.root->type.tensor.dtype) || left[1] == 0) return {};
    if (a.offset % left[1] != 0 || whole.size() % left[1] != 0 || whole.size() <= left.size()) return {};
    return a.offset / left[1];
}

}  // namespace

bool join_products(ir::Graph& graph) {
    const Sums sums(graph);
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        if (!sums.is_root(node)) return {};
        std::vector<Value> terms, products, others;
        sums.add_terms(node, terms);
        for (const Value& term : terms) {
            const ir::Node* n = term.is_node() ? term.node() : nullptr;
            const bool fits = n && n->type.kind == ir::NodeType::Kind::tensor && n->type.tensor == node.type.tensor &&
                              sums.epoch(*n) == sums.epoch(node);
            (fits && is_narrow_product(*n) ? products : others).push_back(term);
        }
        if (products.size() < 2) return {};
        Joiner join(builder);
        others.push_back(join.product(products));
        Value total = others[0];
        for (size_t i = 1; i < others.size(); ++i) total = join.add(total, others[i]);
        return total;
    });
}

bool batch_products(ir::Graph& graph) {
    constexpr size_t kFewest = 4;
    const Arrangements arrangements(graph);
    const auto epochs = epochs_of(graph);
    // By root, operator, right side, bias, width of the rows and epoch.
    using Key = std::tuple<const ir::Node*, const Op*, const ir::Node*, const ir::Node*, int64_t, int>;
    std::map<Key, Batch> batches;
    struct Member {
        Batch* batch;
        int64_t row;
    };
    std::unordered_map<const ir::Node*, Member> members;
    for (const ir::Node* node : graph.body()) {
        if (!multiplies_rows(*node)) continue;
        const Arrangement* a = arrangements.find(node->args[0].node());
        const Shape& left = shape_of(node->args[0]);
        // A node that is replaced itself cannot be the value whose rows others use.
        if (!a || a->root == node->args[0].node() || members.contains(a->root)) continue;
        auto row = first_row(*a, left);
        if (!row) continue;
        const ir::Node* bias = node->args.size() > 2 ? node_of(node->args[2]) : nullptr;
        Batch& batch = batches[{a->root, node->op, node_of(node->args[1]), bias, left[1], epochs.at(node)}];
        batch.root = a->root;
        batch.width = left[1];
        batch.rows += left[0];
        ++batch.members;
        members[node] = {&batch, *row};
    }
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        auto found = members.find(&node);
        if (found == members.end()) return {};
        const auto [batch, row] = found->second;
        const int64_t all_rows = batch->root->type.tensor.shape.size() / batch->width;
        // Computing many rows that are not used would be a waste.
        if (batch->members < kFewest || batch->rows * 4 < all_rows * 3) return {};
        if (batch->all.is_nil()) {
            std::vector<Value> args = node.args;
            args[0] = emit(builder, ops().reshape,
                           {Value(const_cast<ir::Node*>(batch->root)), Value::ints({all_rows, batch->width})});
            batch->all = builder.emit(*node.op, args);
        }
        return emit(builder, ops().narrow,
                    {batch->all, Value(int64_t{0}), Value(row), Value(node.type.tensor.shape[0])});
    });
}

}  // namespace lunaria::graph
