#include "core/ir/substitution.h"

#include "core/base/error.h"

namespace lunaria::ir {

Value Substitution::operator()(const Value& v) {
    if (v.is_list()) return Value::list((*this)(std::span<const Value>(v.items())));
    if (!v.is_node()) return v;
    const Node& node = *v.node();
    const auto found = values_.find(&node);
    if (found != values_.end()) return found->second;
    if (node.kind != NodeKind::constant)
        throw state_error("ir", str("node %", node.id, " is used before anything stands for it"));
    if (!target_) return node.constant;
    return values_[&node] =
               Value(node.function ? target_->add_function(*node.function) : target_->add_constant(node.constant));
}

std::vector<Value> Substitution::operator()(std::span<const Value> values) {
    std::vector<Value> result;
    result.reserve(values.size());
    for (const Value& v : values) result.push_back((*this)(v));
    return result;
}

Value Substitution::copy(const Node& node) {
    Node* made = nullptr;
    if (node.kind == NodeKind::item) {
        const Value source = (*this)(node.args[0]);
        if (source.is_list()) return source.items().at(node.index);
        made = target_->add_item(*source.node(), node.index);
    } else if (node.callee) {
        made = target_->add_call(*(*this)(Value(node.callee)).node(), (*this)(node.args), node.type);
    } else {
        made = target_->add_call(*node.op, (*this)(node.args), node.type);
    }
    made->type = node.type;
    made->name = node.name;
    made->span = node.span;
    return Value(made);
}

}  // namespace lunaria::ir
