// Calls of operators with laid-out tensors: the rule of the operator says how the call can be divided; the operands are
// brought into the layouts that the cheapest division needs, and each rank computes its piece with the same operator.
#pragma once

#include <span>

#include "core/tensor/value.h"

namespace lunaria {
class Op;
}

namespace lunaria::parallel {

// Device::run of the mesh device.
bool run(const Op& op, std::span<const Value> given, Value& result);

}  // namespace lunaria::parallel
