#include "jit/lite/convert.h"

#include <unordered_map>

#include "core/ir/substitution.h"
#include "jit/graph/passes.h"
#include "jit/lite/device.h"

namespace lunaria::lite {

namespace {

// A copy in which parameters of networks are plain constants. It keeps the names of nodes and the lines of the program.
std::unique_ptr<ir::Graph> frozen(const ir::Graph& graph) {
    auto copy = std::make_unique<ir::Graph>(graph.name);
    ir::Substitution copied(copy.get());
    std::unordered_map<const void*, lunaria::Value> constants;
    for (const ir::Node* p : graph.parameters()) copied[p] = lunaria::Value(copy->add_parameter(p->name, p->type));
    auto freeze = [&](const lunaria::Value& v) {
        ir::for_each_node(v, [&](ir::Node* n) {
            if (n->kind != ir::NodeKind::constant || !n->constant.is_tensor() || !n->constant.tensor().parameter())
                return;
            lunaria::Value& known = constants[n];
            if (known.is_nil()) {
                ir::Node* const made = copy->add_constant(lunaria::Value(n->constant.tensor().contiguous().apart()));
                made->name = n->name;
                known = lunaria::Value(made);
            }
            copied[n] = known;
        });
    };
    for (const ir::Node* node : graph.body()) {
        for (const lunaria::Value& arg : node->args) freeze(arg);
        copied[node] = copied.copy(*node);
        if (copied[node].is_node()) {
            copied[node].node()->span = node->span;
            copied[node].node()->name = node->name;
        }
    }
    freeze(graph.result);
    copy->result = copied(graph.result);
    return copy;
}

}  // namespace

Converted convert(const ir::Graph& graph, const ConvertOptions& options) {
    const PlaceScope scope(&light_device());
    graph::FlatGraph flat = graph::flatten(*frozen(graph));
    run_passes(*flat.graph, options.passes);
    Converted made = lower(graph::make_plan(flat, {.generates_single = true, .keeps_sources = true}), options.inputs,
                           options.outputs);
    made.model.properties = options.properties;
    return made;
}

}  // namespace lunaria::lite
