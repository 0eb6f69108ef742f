// The rules for every graph between stages. Builds with assertions verify the graphs that lowering and differentiation
// make.
#pragma once

#include "core/ir/graph.h"

namespace lunaria::ir {

// Throws state_error with the graph's name and the node when: an operand is used before it is made or outside the
// graphs that see it; a call has another number of arguments than its signature or than the parameters of the graph
// that it goes on to; a call of a graph or a branch is not the last node and the result; a closure captures another
// number of values than its function has captures; a graph has more captures than parameters; a node's type is not
// what inference gives for its operands; a list item does not exist; two nodes have one number; the result is missing.
void verify(const Graph& graph);

}  // namespace lunaria::ir
