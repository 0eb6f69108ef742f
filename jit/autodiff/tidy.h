// What a traced graph is like before anyone runs it: nothing in it is computed in vain or twice.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::autodiff {

// Parameters that take a plain number at run time, with its kind (integer or number), though their type is that of a
// tensor without axes.
using NumberParameters = std::unordered_map<const ir::Node*, Value::Kind>;

// A copy of `raw` with the nodes that its result and effects need, each computed once. Parameters for which `keep` is
// false are left out if nothing uses them; `kept` gets the positions in `raw` of those that stay.
//
// A number adapts to the operands beside it instead of bringing a dtype of its own. Where that would give another dtype
// than the type of its parameter (or where there is nothing beside it), the copy makes a tensor of the number first.
std::unique_ptr<ir::Graph> tidy(const ir::Graph& raw, const NumberParameters& numbers, const std::vector<bool>& keep,
                                std::vector<size_t>& kept);

}  // namespace lunaria::autodiff
