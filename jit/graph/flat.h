// The copy of a graph that the passes work on.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::graph {

struct FlatGraph {
    std::unique_ptr<ir::Graph> graph;
    // Constants of the original that may change from run to run: parameters of networks, and tensors that the graph
    // assigns to. They are the last parameters of the copy.
    std::vector<Tensor> variables;
    // Nodes that repeat the computation of others: see recompute_cheap_values().
    std::unordered_set<const ir::Node*> again{};
};

// Throws state_error where the graph holds inner functions, calls of functions, or parameters that are not tensors of
// known size.
FlatGraph flatten(const ir::Graph& graph);

}  // namespace lunaria::graph
