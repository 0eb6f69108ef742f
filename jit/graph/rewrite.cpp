#include "jit/graph/rewrite.h"

#include <algorithm>
#include <unordered_map>

namespace lunaria::graph {

namespace {

using Replacements = std::unordered_map<const ir::Node*, Value>;

bool mentions(const Value& v, const Replacements& map) {
    if (v.is_node()) return map.contains(v.node());
    return v.is_list() &&
           std::any_of(v.items().begin(), v.items().end(), [&](const Value& i) { return mentions(i, map); });
}

Value substitute(const Value& v, const Replacements& map) {
    if (v.is_node()) {
        auto found = map.find(v.node());
        return found == map.end() ? v : found->second;
    }
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(mentions(item, map) ? substitute(item, map) : item);
    return Value::list(std::move(items));
}

}  // namespace

bool rewrite(ir::Graph& graph, const Rule& rule) {
    const std::vector<ir::Node*> body = graph.body();
    size_t seen = body.size();
    std::vector<ir::Node*> order;
    Replacements map;
    ir::GraphBuilder builder(graph);
    for (ir::Node* node : body) {
        for (Value& arg : node->args)
            if (mentions(arg, map)) arg = substitute(arg, map);
        Value replacement;
        builder.span = node->span;
        if (node->kind == ir::NodeKind::item && node->args[0].is_list())
            replacement = node->args[0].items().at(node->index);
        else
            replacement = rule(*node, builder);
        const auto& made = graph.body();
        order.insert(order.end(), made.begin() + static_cast<std::ptrdiff_t>(seen), made.end());
        seen = made.size();
        if (replacement.is_nil())
            order.push_back(node);
        else
            map[node] = std::move(replacement);
    }
    if (mentions(graph.result, map)) graph.result = substitute(graph.result, map);
    graph.reorder_body(std::move(order));
    return !map.empty();
}

std::unordered_map<const ir::Node*, int> epochs_of(const ir::Graph& graph) {
    std::unordered_map<const ir::Node*, int> epochs;
    int epoch = 0;
    for (const ir::Node* node : graph.body()) {
        if (node->op && node->op->writes()) ++epoch;
        epochs[node] = epoch;
    }
    return epochs;
}

std::optional<double> constant_number(const Value& v) {
    if (v.is_number()) return v.number();
    if (v.kind() == Value::Kind::boolean) return v.boolean() ? 1.0 : 0.0;
    if (!v.is_node() || v.node()->kind != ir::NodeKind::constant || !v.node()->constant.is_tensor()) return {};
    const Tensor& t = v.node()->constant.tensor();
    if (t.size() != 1 || is_complex(t.dtype())) return {};
    return t.at(0);
}

bool has_effect(const ir::Node& node) { return node.op && !node.op->is_repeatable(); }

bool must_run(const ir::Node& node) {
    return node.op && (!node.op->is_repeatable() || (node.op->raises_when != Raises::never &&
                                                     node.op->may_raise(promoted_dtype(*node.op, node.args))));
}

std::optional<TensorType> static_type(const Value& v) {
    if (v.is_node()) {
        if (v.node()->type.kind == ir::NodeType::Kind::tensor) return v.node()->type.tensor;
        return {};
    }
    if (v.is_tensor()) return type_of(v);
    return {};
}

bool has_static_shape(const ir::NodeType& type) {
    if (type.kind == ir::NodeType::Kind::tensor) return type.tensor.shape.known();
    if (type.kind != ir::NodeType::Kind::list) return false;
    return std::all_of(type.items.begin(), type.items.end(), has_static_shape);
}

}  // namespace lunaria::graph
