#include "jit/lite/passes.h"

#include "core/tensor/device.h"
#include "jit/graph/operators.h"
#include "jit/graph/passes.h"
#include "jit/graph/rewrite.h"

namespace lunaria::lite {

namespace {

// `except`: an operator whose calls stay.
bool fold(ir::Graph& graph, const Op* except) {
    const PlaceScope host(nullptr);
    return graph::fold_constants(graph, INT64_MAX, except);
}

constexpr bool (*kSimplify[])(ir::Graph&) = {
    graph::expand_composites,           graph::simplify_views,   graph::simplify_algebra, merge_scales,
    graph::share_common_subexpressions, graph::remove_dead_code,
};
// Rules make graphs smaller, so that a few rounds are always enough.
constexpr int kMostRounds = 8;

void simplify(ir::Graph& graph, const Op* except = nullptr) {
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
        changed = fold(graph, except);
        for (const auto pass : kSimplify) changed |= pass(graph);
    }
}

bool is_half_tensor(const lunaria::Value& v) {
    const auto type = graph::static_type(v);
    return v.is_node() && type && is_half(type->dtype);
}

// Euclidean norms as sums of squares, which are loops.
bool compose_norms(ir::Graph& graph) {
    const Op& norm = registry().get("vector_norm");
    const auto& ops = graph::ops();
    return graph::rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& b) -> lunaria::Value {
        if (!graph::is_call(&node, norm) || !node.args[1].is_number() || node.args[1].number() != 2) return {};
        const auto type = graph::static_type(node.args[0]);
        if (!type || type->dtype != DType::f32 || !node.args[4].is_nil()) return {};
        const lunaria::Value squares = graph::emit(b, ops.mul, {node.args[0], node.args[0]});
        return graph::emit(b, ops.sqrt,
                           {graph::emit(b, ops.sum, {squares, node.args[2], node.args[3], lunaria::Value()})});
    });
}

}  // namespace

bool widen_halves(ir::Graph& graph) {
    const Op& cast = graph::ops().cast;
    return graph::rewrite(graph, [&](ir::Node& node, ir::GraphBuilder& builder) -> lunaria::Value {
        if (!node.op || node.op->is_elementwise || node.op->view_fn || node.op->only_moves || &cast == node.op)
            return {};
        if (node.type.kind != ir::NodeType::Kind::tensor || takes_halves(*node.op)) return {};
        bool any = false;
        std::vector<lunaria::Value> args;
        auto widened = [&](const lunaria::Value& v) {
            if (!is_half_tensor(v)) return v;
            any = true;
            return graph::emit(builder, cast, {v, lunaria::Value(DType::f32)});
        };
        for (const lunaria::Value& arg : node.args) {
            if (!arg.is_list()) {
                args.push_back(widened(arg));
                continue;
            }
            std::vector<lunaria::Value> items;
            for (const lunaria::Value& item : arg.items()) items.push_back(widened(item));
            args.push_back(lunaria::Value::list(std::move(items)));
        }
        if (!any) return {};
        const lunaria::Value made = builder.emit(*node.op, args);
        const DType dtype = node.type.tensor.dtype;
        return graph::static_type(made)->dtype == dtype ? made
                                                        : graph::emit(builder, cast, {made, lunaria::Value(dtype)});
    });
}

void run_passes(ir::Graph& graph, const PassOptions& options) {
    // Weights that are rounded to integers stay as they are until products of integers are found.
    graph::expand_composites(graph);
    simplify(graph, registry().find("fake_quantize_element"));
    use_integer_kernels(graph);
    compose_norms(graph);
    simplify(graph);
    if (widen_halves(graph)) simplify(graph);
    if (join_layers(graph)) simplify(graph);
    use_light_kernels(graph, options);
    simplify(graph);
    while (fuse_endings(graph)) graph::remove_dead_code(graph);
    simplify(graph);
}

}  // namespace lunaria::lite
