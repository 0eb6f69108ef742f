// Cuts a graph into pieces that each become one kernel: chains of elementwise operators with the reductions before and
// behind them are joined, everything else stays by itself. Joining never changes the order of effects.
#pragma once

#include <unordered_set>
#include <vector>

#include "jit/graph/layout.h"

namespace lunaria::graph {

using Nodes = std::unordered_set<const ir::Node*>;

// Nodes that run as one kernel, in the order of the body. A piece of one node runs by the operator's own kernel unless
// it is `generated`.
struct Piece {
    std::vector<const ir::Node*> nodes;
    Shape domain;           // of a generated piece: the index space of its elements
    int rows = -1;          // how many leading axes of the domain tell rows apart; -1: there are no values per row
    bool has_sums = false;  // some of its nodes add up rows, for which rows must be no units of their own
    bool generated = false;
};

// What a node may do in a generated piece.
enum class Part : uint8_t {
    none,     // nothing: it needs a kernel of its own
    element,  // one value per element of its shape
    reduce,   // one value per row of its operand
    sum,      // the sum of its operand over rows: one value per column
    row,      // several passes over the rows of its operand, one value per element (softmax)
    product,  // one value per element of its shape, from whole rows and columns of its operands: a small matmul
};
Part part_of(const ir::Node& node, const Arrangements& arrangements);
// Whether loops of the current device add up as the host's kernels do, in the order of core/loops/sum_order.h.
bool adds_in_order();
// Of an elementwise operator: the dtype that it computes in.
DType element_dtype(const ir::Node& node);
// Of reduce and row: how many leading axes of the operand tell rows apart.
int row_axes(const ir::Node& node);

// The piece that the node alone is, generated; not one of a node that is none of generated code.
Piece piece_of(const ir::Node& node, const Arrangements& arrangements);

// The pieces in an order in which they can run. Views and constants are no pieces. Without `generate` every node is one
// by itself. The nodes of `late` do not join what comes before them: they would be computed too early. Those of `alone`
// are pieces by themselves.
std::vector<Piece> cut(const ir::Graph& graph, const Arrangements& arrangements, const Nodes& late, const Nodes& alone,
                       bool generate);

}  // namespace lunaria::graph
