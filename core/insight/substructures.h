// Recognition of identical substructures: parts of a graph that occur several times, for a picture that shows each of
// them once. Every result is exact: instances are induced subgraphs that are isomorphic in the order of their nodes,
// with equal labels and equal places of inputs; instances of one key share no node; keys are disjoint or nested.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/insight/ordered_graph.h"

namespace lunaria::insight {

struct Substructure {
    std::vector<std::vector<int32_t>> instances;     // indices into the graph's nodes, in corresponding order
    std::vector<std::pair<int32_t, int32_t>> edges;  // of each instance, between places of that order
    std::vector<int32_t> inside;  // the substructures that occur in each instance of this one, by index

    // By how many nodes a picture shrinks that shows one instance in full, and a box for each.
    int64_t gain() const {
        return (static_cast<int64_t>(instances.size()) - 1) * (static_cast<int64_t>(instances[0].size()) - 1) - 1;
    }
};

// By falling gain. The same graph gives the same result whatever its nodes' numbers and order are.
std::vector<Substructure> find_substructures(const OperatorGraph& graph, Equality equality);

}  // namespace lunaria::insight
