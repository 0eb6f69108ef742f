#include <unordered_set>

#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::graph {

bool remove_dead_code(ir::Graph& graph) { return remove_dead_code(graph, must_run); }

bool remove_dead_code(ir::Graph& graph, const std::function<bool(const ir::Node&)>& must_run) {
    std::unordered_set<const ir::Node*> needed;
    auto need = [&](ir::Node* node) { needed.insert(node); };
    ir::for_each_node(graph.result, need);
    const std::vector<ir::Node*>& body = graph.body();
    for (size_t i = body.size(); i-- > 0;) {
        if (!needed.contains(body[i]) && !must_run(*body[i])) continue;
        need(body[i]);
        for (const Value& arg : body[i]->args) ir::for_each_node(arg, need);
    }
    std::vector<ir::Node*> order;
    for (ir::Node* node : body)
        if (needed.contains(node)) order.push_back(node);
    if (order.size() == body.size()) return false;
    graph.reorder_body(std::move(order));
    return true;
}

}  // namespace lunaria::graph
