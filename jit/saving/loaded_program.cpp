#include "jit/saving/loaded_program.h"

#include "core/ir/mindir.h"
#include "core/ir/substitution.h"
#include "core/ir/verifier.h"
#include "core/tensor/device.h"
#include "jit/language.h"
#include "jit/saving/program_check.h"
#include "jit/vm/machine.h"

namespace lunaria {

namespace {

std::unique_ptr<ir::Graph> capture_weights(const ir::Graph& loaded, std::vector<Value>& weights) {
    auto graph = std::make_unique<ir::Graph>(loaded.name);
    ir::Substitution made(graph.get());
    ir::Node* table = nullptr;
    for (auto& node : loaded.nodes()) {
        if (node->kind != ir::NodeKind::constant) continue;
        if (node->function) {
            made[node.get()] = Value(graph->add_function(*node->function));
            continue;
        }
        if (!node->constant.is_tensor()) {
            made[node.get()] = Value(graph->add_constant(node->constant));
            continue;
        }
        // Like all new tensors they are on the current device, where the inputs will be.
        Tensor t = node->constant.tensor().to(current_place());
        if (node->name.empty()) {
            made[node.get()] = Value(graph->add_constant(Value(t)));
            continue;
        }
        t.set_parameter({node->name, is_float(t.dtype())});
        weights.emplace_back(t);
        if (!table) table = graph->add_parameter("weights", {});
        ir::Node* weight = graph->add_call(lua::primitive("index"),
                                           {Value(table), Value(static_cast<int64_t>(weights.size()))}, node->type);
        weight->name = node->name;
        made[node.get()] = Value(weight);
    }
    graph->captures = table ? 1 : 0;
    for (const ir::Node* p : loaded.parameters()) made[p] = Value(graph->add_parameter(p->name, p->type));
    for (const ir::Node* node : loaded.body()) made[node] = made.copy(*node);
    graph->result = made(loaded.result);
    return graph;
}

void forget_types(ir::Graph& graph) {
    for (auto& node : graph.nodes())
        if (node->kind != ir::NodeKind::constant) node->type = {};
    for (auto& inner : graph.inner()) forget_types(*inner);
}

}  // namespace

bool is_plain(const ir::Graph& g) {
    bool plain = g.inner().empty() && !g.variadic && !g.order && g.result.is_list();
    for (const ir::Node* node : g.body()) {
        // A weight of a network that was loaded.
        const bool weight = node->op == &lua::primitive("index") && g.captures == 1 && node->args[0].is_node() &&
                            node->args[0].node() == g.parameters()[0];
        plain &=
            node->kind == ir::NodeKind::item || weight || (node->op && registry().find(node->op->name()) == node->op);
    }
    for (auto& node : g.nodes()) plain &= !node->function;
    return plain;
}

ir::ParsedGraph read_program(const Source& source, const FunctionNamed& function_named) {
    return ir::read_mindir(source, {&lua::language(), nullptr, is_saved_primitive, function_named});
}

std::shared_ptr<LoadedProgram> load_program(const Source& source, const FunctionNamed& function_named) {
    auto loaded = std::make_shared<LoadedProgram>();
    loaded->parsed = read_program(source, function_named);
    ir::Graph& graph = *loaded->parsed.graph;
    for (const ir::Node* p : graph.parameters()) loaded->input_types.push_back(p->type);
    try {
        if (!loaded->parsed.others.empty() || !is_plain(graph)) {
            check_program(loaded->parsed);
            forget_types(graph);
            for (auto& other : loaded->parsed.others) forget_types(*other);
        }
        loaded->graph = capture_weights(graph, loaded->weights);
        ir::verify(*loaded->graph);
    } catch (const Error& e) {
        throw source.error(str("the graph is not valid: ", e.what()));
    }
    return loaded;
}

Value function_of(const std::shared_ptr<LoadedProgram>& program, const Value& weights) {
    vm::Values captures;
    if (!program->weights.empty()) captures.push_back(weights);
    return vm::make_object<vm::Closure>(vm::function_of(*program->graph), program, std::move(captures));
}

}  // namespace lunaria
