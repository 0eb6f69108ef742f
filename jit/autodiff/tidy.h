// Clean-up of a traced graph before it runs: nothing in it is computed in vain or twice.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace lunaria::autodiff {

// Parameters that take a plain number at run time, with its kind (integer or number), although their type is that of a
// tensor without axes.
using NumberParameters = std::unordered_map<const ir::Node*, Value::Kind>;

// A copy of `raw` with the nodes that its result and effects need, each computed once. Unused parameters for which
// `keep` is false are left out; `kept` gets the positions in `raw` of the remaining ones.
//
// A plain number takes the dtype of the operands beside it. Where that would differ from the type of its parameter (or
// where there are no such operands), the copy first makes a tensor of the number.
std::unique_ptr<ir::Graph> tidy(const ir::Graph& raw, const NumberParameters& numbers, const std::vector<bool>& keep,
                                std::vector<size_t>& kept);

}  // namespace lunaria::autodiff
