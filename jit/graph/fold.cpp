#include <algorithm>
#include <unordered_set>

#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

namespace {

int64_t elements(const ir::NodeType& type) {
    if (type.kind == ir::NodeType::Kind::tensor) return type.tensor.shape.known() ? type.tensor.shape.size() : -1;
    if (type.kind != ir::NodeType::Kind::list) return -1;
    int64_t sum = 0;
    for (const ir::NodeType& item : type.items) {
        int64_t n = elements(item);
        if (n < 0) return -1;
        sum += n;
    }
    return sum;
}

using Nodes = std::unordered_set<const ir::Node*>;

// Constants into which the graph writes.
Nodes written(const ir::Graph& graph) {
    Nodes nodes;
    for (const ir::Node* node : graph.body()) {
        if (!node->op || !node->op->writes()) continue;
        for (const Value& arg : node->args) ir::for_each_node(arg, [&](ir::Node* n) { nodes.insert(n); });
    }
    return nodes;
}

bool is_constant(const Value& v, const Nodes& variable) {
    if (v.is_node())
        return v.node()->kind == ir::NodeKind::constant && !v.node()->function && !variable.contains(v.node()) &&
               !(v.node()->constant.is_tensor() && v.node()->constant.tensor().parameter());
    return !v.is_list() ||
           std::all_of(v.items().begin(), v.items().end(), [&](const Value& i) { return is_constant(i, variable); });
}

bool is_single(const ir::Node& node) { return node.constant.is_tensor() && node.constant.tensor().size() == 1; }

Value plain(const Value& v) {
    if (v.is_node()) return v.node()->constant;
    if (!v.is_list()) return v;
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(plain(item));
    return Value::list(std::move(items));
}

Value as_constants(const Value& v, ir::Graph& graph) {
    if (v.is_tensor()) return Value(graph.add_constant(Value(v.tensor().contiguous())));
    std::vector<Value> items;
    for (const Value& item : v.items()) items.push_back(as_constants(item, graph));
    return Value::list(std::move(items));
}

}  // namespace

bool fold_constants(ir::Graph& graph, int64_t most, const Op* except) {
    const Nodes variable = written(graph);
    return rewrite(graph, [&](ir::Node& node, ir::GraphBuilder&) -> Value {
        if (!node.op || node.op == except || has_effect(node)) return {};
        // A single value that is broadcast is better left so.
        if (node.op->view_fn && node.args[0].is_node() && is_single(*node.args[0].node())) return {};
        int64_t size = elements(node.type);
        if (size < 0 || size > most) return {};
        for (const Value& arg : node.args)
            if (!is_constant(arg, variable)) return {};
        std::vector<Value> args;
        for (const Value& arg : node.args) args.push_back(plain(arg));
        try {
            return as_constants(run(*node.op, args), graph);
        } catch (const Error&) {
            // The program has to fail at the same point as in eager mode.
            return {};
        }
    });
}

bool fold_constants(ir::Graph& graph) { return fold_constants(graph, 16 * 1024); }

}  // namespace lunaria::graph
