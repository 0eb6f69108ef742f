// Cuts a graph into pieces that each become one kernel: chains of elementwise operators are joined with the reductions
// before and after them, every other operator stays by itself. Joining never changes the order of effects.
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
    int rows = -1;          // number of leading axes of the domain that count rows; -1: there are no values per row
    bool has_sums = false;  // some of its nodes sum over rows, which must then not be split into units
    bool generated = false;
};

// The role of a node in a generated piece.
enum class Part : uint8_t {
    none,     // it needs a kernel of its own
    element,  // one value per element of its shape
    reduce,   // one value per row of its operand
    sum,      // the sum of its operand over rows: one value per column
    row,      // several passes over the rows of its operand, one value per element (softmax)
    product,  // one value per element of its shape, from whole rows and columns of its operands: a small matmul
};
Part part_of(const ir::Node& node, const Arrangements& arrangements);
// Whether loops of the current device add up as the host's kernels do, in the order of core/loops/sum_order.h.
bool adds_in_order();
// The dtype in which an elementwise operator computes.
DType element_dtype(const ir::Node& node);
// For reduce and row: the number of leading axes of the operand that count rows.
int row_axes(const ir::Node& node);

// The piece for the node alone, generated; a piece that is not generated if generated code cannot hold the node.
Piece piece_of(const ir::Node& node, const Arrangements& arrangements);

// The pieces in an order in which they can run. Views and constants are no pieces. Without `generate` every node is a
// piece by itself. The nodes of `late` do not join pieces before them, in which they would be computed too early. Those
// of `alone` are pieces by themselves.
std::vector<Piece> cut(const ir::Graph& graph, const Arrangements& arrangements, const Nodes& late, const Nodes& alone,
                       bool generate);

}  // namespace lunaria::graph
