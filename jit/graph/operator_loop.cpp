#include "jit/graph/operator_loop.h"

#include <unordered_map>

#include "core/ir/builder.h"
#include "core/loops/operator_loop.h"
#include "jit/graph/loop_builder.h"

namespace lunaria::graph {

namespace {

std::optional<OperatorLoop> write_loop(const KernelCall& call) {
    if (call.out.size() != 1 || !call.out[0]) return {};
    ir::Graph graph("operator");
    ir::GraphBuilder builder(graph);
    std::vector<Value> args;
    std::unordered_map<const ir::Node*, size_t> argument_of;
    for (size_t i = 0; i < call.args.size(); ++i) {
        const Value& v = call.args[i];
        for (size_t k = 0; v.is_list() && k < v.items().size(); ++k)
            if (v.items()[k].is_tensor()) return {};
        if (!v.is_tensor()) {
            args.push_back(v);
            continue;
        }
        ir::Node* node = graph.add_parameter("", ir::NodeType::of({v.tensor().dtype(), v.tensor().shape()}));
        argument_of[node] = i;
        args.emplace_back(node);
    }
    const Value result = builder.emit(call.op, args);
    if (!result.is_node() || result.node()->op != &call.op) return {};
    const ir::Node& node = *result.node();
    const TensorType wanted{call.out[0].dtype(), call.out[0].shape()};
    if (node.type.kind != ir::NodeType::Kind::tensor || !(node.type.tensor == wanted)) return {};
    graph.result = result;
    const Arrangements arrangements(graph);
    if (part_of(node, arrangements) == Part::none) return {};
    auto loop = build_loop(piece_of(node, arrangements), arrangements, [](const ir::Node*) { return true; });
    if (!loop) return {};
    OperatorLoop made{std::move(loop->program), std::move(loop->sizes), loop->rows, loop->inner, {}};
    for (LoopBinding& b : loop->operands) {
        const auto argument = argument_of.find(b.root);
        if (!b.written && argument == argument_of.end()) return {};
        made.operands.push_back(
            {b.written, b.written ? 0 : argument->second, b.offset, std::move(b.copied), std::move(b.copied_strides)});
    }
    return made;
}

}  // namespace

void offer_operator_loops() { set_operator_loops(&write_loop); }

}  // namespace lunaria::graph
