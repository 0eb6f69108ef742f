// A graph in an order that depends on its structure only: the same graph with other numbers or in another order of the
// file gives the same arrays. Names decide between nodes that can stand for each other, and only there. All that is
// computed from these arrays is independent of numbering for that reason.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/insight/operator_graph.h"

namespace lunaria::insight {

// Which operators count as equal: of one type with equally many inputs, or with equal attributes and results too.
enum class Equality { operators, exact };

// An edge seen from one of its nodes. `code` is the place among the user's inputs, twice, plus one for a control edge.
struct Edge {
    int32_t node, code;
};

struct OrderedGraph {
    std::vector<int32_t> label;   // equal operators have equal labels; numbered in the order of their texts
    std::vector<int32_t> origin;  // the node's index in the graph that this one was made of
    std::vector<uint32_t> input_start, user_start;
    std::vector<Edge> input_edges, user_edges;  // by place; by user

    int32_t size() const { return static_cast<int32_t>(label.size()); }
    std::span<const Edge> inputs(int32_t v) const {
        return {input_edges.data() + input_start[v], input_edges.data() + input_start[v + 1]};
    }
    std::span<const Edge> users(int32_t v) const {
        return {user_edges.data() + user_start[v], user_edges.data() + user_start[v + 1]};
    }
};

OrderedGraph ordered_graph(const OperatorGraph& graph, Equality equality);
// The nodes with the edges among them; `origin` is the place in the list.
OrderedGraph ordered_part(const OrderedGraph& graph, std::span<const int32_t> nodes);

uint64_t mixed(uint64_t a, uint64_t b);

}  // namespace lunaria::insight
