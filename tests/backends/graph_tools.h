// Straight-line graphs in tests: running them operator by operator, and their gradient by the operators' own rules.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::testing {

// Runs a graph without inner functions on the current device.
Value evaluate(const ir::Graph& graph, std::span<const Value> args);

// A graph that gives the cotangents of the named parameters of `graph` (whose result is one scalar float), as a list;
// parameters that do not influence the result get zeros. Composite operators without a rule are expanded first.
std::unique_ptr<ir::Graph> gradient(const ir::Graph& graph, std::span<const size_t> parameters);

}  // namespace lunaria::testing
