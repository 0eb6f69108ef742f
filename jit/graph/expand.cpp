// Expansion of composite operators, under the same rule as in eager mode, so that both run the same kernels.
#include "core/custom/custom_op.h"
#include "core/operator/expansion.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

bool is_composite(const Op& op) {
    if (!op.expand_fn || op.view_fn || op.host_fn) return false;
    if (custom_op(op)) return true;
    size_t count = 0;
    op.kernels(*current_device(), count);
    return !(op.infer_fn && count > 0);
}

// An expansion may reduce to a constant, which the builder has as a plain value.
Value as_operand(const Value& v, const ir::NodeType& type, ir::Graph& graph) {
    if (v.is_tensor()) return Value(graph.add_constant(v));
    if (v.is_number() && type.kind == ir::NodeType::Kind::tensor)
        return Value(graph.add_constant(Value(Tensor::scalar(type.tensor.dtype, v.number()))));
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (size_t i = 0; i < v.items().size(); ++i)
        items.push_back(as_operand(v.items()[i], i < type.items.size() ? type.items[i] : ir::NodeType(), graph));
    return Value::list(std::move(items));
}

}  // namespace

Value expansion_of(const ir::Node& node, ir::GraphBuilder& builder) {
    const DType dtype = promoted_dtype(*node.op, node.args);
    std::vector<Value> args = node.args;
    if (!custom_op(*node.op)) {
        args = expansion_args(*node.op, node.args, dtype);
        for (size_t i = 0; i < args.size(); ++i)
            args[i] = builder.operand(*node.op, node.op->signature.params[i], args[i], dtype);
    }
    return as_operand(expand(ExpandCall(Call(*node.op, args, dtype), builder)), node.type, builder.graph());
}

bool expand_composites(ir::Graph& graph) {
    bool changed = false;
    // The operators of an expansion may be composite again.
    while (rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> Value {
        return node.op && is_composite(*node.op) ? expansion_of(node, builder) : Value();
    }))
        changed = true;
    return changed;
}

}  // namespace lunaria::graph
