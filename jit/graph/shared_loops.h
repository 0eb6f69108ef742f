// Kernels that differ only in numbers, of which an unrolled loop with a counter has many. They read the numbers from
// memory, so that machine code is generated once for all of them.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "jit/graph/loop_builder.h"

namespace lunaria::graph {

// The numbers become constants of `graph`.
void share_programs(std::vector<Loop>& loops, ir::Graph& graph);

}  // namespace lunaria::graph
