// Calls of operators with laid-out tensors: the rule of the operator says how the call can be divided; the operands are
// brought into the layouts that the cheapest division needs, and each rank computes its piece with the same operator.
#pragma once

#include <span>

#include "core/tensor/value.h"

namespace lunaria {
class Op;
}

namespace lunaria::parallel {

// Whether calls of the operator run as the operators that it is made of, each of which has a rule; `is_divided`: some
// operand has a layout.
bool runs_expanded(const Op& op, bool is_divided);

// Device::run of the mesh device.
bool run(const Op& op, std::span<const Value> given, Value& result);

}  // namespace lunaria::parallel
