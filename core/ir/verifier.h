// What must hold of every graph between stages.
#pragma once

#include "core/ir/graph.h"

namespace lunaria::ir {

// Throws state_error with the graph's name and the node when: an operand is used before it is made or outside the
// graphs that see it; a call has another number of arguments than its signature; a node's type is not what inference
// gives for its operands; a list item does not exist; the result is missing.
void verify(const Graph& graph);

}  // namespace lunaria::ir
