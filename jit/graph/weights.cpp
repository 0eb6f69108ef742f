// The pass that copies weights which products read many times against their memory order.
#include <unordered_map>

#include "jit/graph/layout.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

// With more rows on the left, a product that copies its right side loses little.
constexpr int64_t kMostRows = 64;
constexpr int kFewestUses = 4;

const TensorType* matrix_type(const Value& v) {
    if (!v.is_node() || v.node()->type.kind != ir::NodeType::Kind::tensor) return nullptr;
    const TensorType& t = v.node()->type.tensor;
    const bool fits = t.shape.known() && t.shape.rank() == 2 && (t.dtype == DType::f32 || t.dtype == DType::f64);
    return fits ? &t : nullptr;
}

bool is_dense_layer(const ir::Node& node) { return is_call(&node, ops().dense); }

// The matrix that the product reads along its columns, or null.
const ir::Node* turned_weight(const ir::Node& node, const Arrangements& arrangements) {
    if (!is_call(&node, ops().matmul) && !is_dense_layer(node)) return nullptr;
    const TensorType* left = matrix_type(node.args[0]);
    if (!left || !matrix_type(node.args[1]) || left->shape[0] > kMostRows) return nullptr;
    const ir::Node* right = node.args[1].node();
    const Arrangement* a = arrangements.find(right);
    if (!a) return nullptr;
    if (is_dense_layer(node)) return a->is_dense() ? right : nullptr;
    const Shape& shape = a->type.shape;
    const bool turned = shape[0] > 1 && shape[1] > 1 && a->strides[0] == 1 && a->strides[1] >= shape[0];
    return turned ? right : nullptr;
}

}  // namespace

bool lay_out_weights(ir::Graph& graph) {
    // Reads of variables may not be moved across writes.
    for (const ir::Node* node : graph.body())
        if (node->op && node->op->writes()) return false;
    const Arrangements arrangements(graph);
    std::unordered_map<const ir::Node*, int> uses;
    for (const ir::Node* node : graph.body())
        if (const ir::Node* w = turned_weight(*node, arrangements)) ++uses[w];
    std::unordered_map<const ir::Node*, Value> copies;
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        const ir::Node* w = turned_weight(node, arrangements);
        if (!w || uses[w] < kFewestUses) return {};
        Value& copy = copies[w];
        if (copy.is_nil()) {
            const Shape& shape = w->type.tensor.shape;
            const bool turns = is_dense_layer(node);
            const Value across =
                turns ? emit(builder, ops().transpose, {node.args[1], Value::ints({1, 0}), Value()}) : node.args[1];
            // A reshape that is no view copies the elements in their order.
            const Value flat = emit(builder, ops().reshape, {across, Value::ints({shape.size()})});
            copy = emit(builder, ops().reshape, {flat, Value::ints({shape[turns ? 1 : 0], shape[turns ? 0 : 1]})});
        }
        const Value product = emit(builder, ops().matmul, {node.args[0], copy});
        if (!is_dense_layer(node) || node.args[2].is_nil()) return product;
        return emit(builder, ops().add, {product, node.args[2]});
    });
}

}  // namespace lunaria::graph
