// The text form of a graph:
//
//     graph f(%0 x: float32(2, 3), %1 y: float32(2, 3)) {
//       %2 = mul(%0, %1)            : float32(2, 3)  -- demo.lua:3
//       return %2
//     }
//
// Inner graphs stand indented before the body that uses them.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace lunaria::ir {

std::string print(const Graph& graph);
std::string to_string(const NodeType& type);

}  // namespace lunaria::ir
