#include "core/ir/labels.h"

#include "core/ir/text.h"

namespace lunaria::ir {

Labels::Labels(const Graph& graph) {
    gather(graph);
    // The list grows during the walk: graphs that are referred to may refer to more.
    for (size_t i = 0; i < whole.size(); ++i) references(*whole[i]);
}

void Labels::gather(const Graph& graph) {
    whole.push_back(&graph);
    label(graph);
}

void Labels::label(const Graph& graph) {
    const std::string name = graph_name_text(graph.name);
    const int count = ++names_[name];
    in_order.push_back(count == 1 ? name : str(name, '#', count));
    of.try_emplace(&graph, in_order.back());
    for (auto& inner : graph.inner()) label(*inner);
}

void Labels::references(const Graph& graph) {
    auto look = [&](const Value& v) {
        for_each_node(v, [&](Node* node) {
            if (!node->function || of.contains(node->function)) return;
            const Graph* target = node->function;
            // A graph that uses nodes of the graphs around it is complete only with those.
            if (target->parent && !target->free_variables().empty())
                while (target->parent) target = target->parent;
            gather(*target);
        });
    };
    for (auto& inner : graph.inner()) references(*inner);
    for (const Node* node : graph.body()) {
        for (const Value& arg : node->args) look(arg);
        if (node->callee) look(Value(node->callee));
    }
    look(graph.result);
}

}  // namespace lunaria::ir
