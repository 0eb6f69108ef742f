// Kernels that differ in nothing but numbers, as an unrolled loop that counts leaves them behind, read these from
// memory, so that machine code is made for one of them instead of for each.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "jit/graph/loop_builder.h"

namespace lunaria::graph {

// The numbers become constants of `graph`.
void share_programs(std::vector<Loop>& loops, ir::Graph& graph);

}  // namespace lunaria::graph
