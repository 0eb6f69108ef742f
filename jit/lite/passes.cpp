#include "jit/lite/passes.h"

#include "core/tensor/device.h"
#include "jit/graph/passes.h"

namespace lunaria::lite {

namespace {

bool fold(ir::Graph& graph) {
    const PlaceScope host(nullptr);
    return graph::fold_constants(graph, INT64_MAX);
}

constexpr bool (*kSimplify[])(ir::Graph&) = {
    graph::expand_composites,           graph::simplify_views,   graph::simplify_algebra, fold,
    graph::share_common_subexpressions, graph::remove_dead_code,
};
// Rules make graphs smaller, so that a few rounds are always enough.
constexpr int kMostRounds = 8;

}  // namespace

void run_passes(ir::Graph& graph) {
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
        changed = false;
        for (const auto pass : kSimplify) changed |= pass(graph);
    }
}

}  // namespace lunaria::lite
