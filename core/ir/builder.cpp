#include "core/ir/builder.h"
#include "core/operator/expansion.h"

namespace lunaria::ir {

namespace {

NodeType type_of_result(const Value& v) {
    if (v.is_node()) return v.node()->type;
    if (v.is_tensor()) return NodeType::of(type_of(v));
    if (!v.is_list()) return {NodeType::Kind::host, {}, {}};
    std::vector<NodeType> items;
    for (const Value& item : v.items()) items.push_back(type_of_result(item));
    return NodeType::list(std::move(items));
}

}  // namespace

NodeType infer_call(const Op& op, std::span<const Value> args) {
    Call call(op, args, promoted_dtype(op, args));
    if (!op.infer_fn) {
        if (!op.expand_fn) throw state_error(op.name(), "has neither an inference rule nor an expansion");
        Graph scratch("scratch");
        GraphBuilder builder(scratch);
        const std::vector<Value> converted = expansion_args(op, args, call.dtype);
        return type_of_result(expand(ExpandCall(Call(op, converted, call.dtype), builder)));
    }
    Types types = speaking_of(op, [&] { return op.infer_fn(call); });
    if (types.size() == 1) return NodeType::of(types[0]);
    std::vector<NodeType> items;
    for (TensorType& t : types) items.push_back(NodeType::of(std::move(t)));
    return NodeType::list(std::move(items));
}

Value GraphBuilder::constant_node(const Value& v) {
    if (!v.is_tensor()) return v;
    Node* node = graph_->add_constant(v);
    node->span = span;
    return Value(node);
}

Value GraphBuilder::operand(const Op& op, const Param& param, const Value& v, DType dtype) {
    if (v.is_nil() || !is_tensor_type(param.type)) return v;
    if (param.type == ArgType::tensors && v.is_list()) {
        if (v.items().empty()) throw value_error(op.name(), str(param.name, " is an empty list"));
        DType joint = type_of(v.items()[0]).dtype;
        for (const Value& item : v.items()) joint = promote(joint, type_of(item).dtype);
        std::vector<Value> items;
        for (const Value& item : v.items()) items.push_back(Expr(*this, constant_node(item)).cast(joint).value());
        return Value::list(std::move(items));
    }
    Value node = constant_node(v);
    if (!node.is_node()) return node;
    bool promoted = param.type == ArgType::same || param.type == ArgType::real;
    if (promoted) return Expr(*this, node).cast(dtype).value();
    if (param.type == ArgType::index) return as_positions({*this, node}).value();
    return node;
}

Value GraphBuilder::emit(const Op& op, std::span<const Value> given) {
    check_tensor_args(op, given);
    DType dtype = promoted_dtype(op, given);
    if (op.host_fn) return op.host_fn(Call(op, given, dtype));
    std::vector<Value> args;
    for (size_t i = 0; i < given.size(); ++i) args.push_back(operand(op, op.signature.params[i], given[i], dtype));
    if (expands && op.expand_fn && !op.infer_fn && !op.grad_fn && !op.no_grad_reason)
        return expand(ExpandCall(Call(op, args, dtype), *this));
    NodeType type = infer_call(op, args);
    Node* node = graph_->add_call(op, std::move(args), std::move(type));
    node->span = span;
    return Value(node);
}

Value GraphBuilder::item(const Value& results, size_t i) {
    if (results.is_list()) {
        if (i >= results.items().size())
            throw state_error("ir", str("a list of ", results.items().size(), " has no item ", i));
        return results.items()[i];
    }
    if (!results.is_node()) throw state_error("ir", str("an item of ", to_string(results), " was asked for"));
    Node* node = graph_->add_item(*results.node(), i);
    node->span = span;
    return Value(node);
}

}  // namespace lunaria::ir
