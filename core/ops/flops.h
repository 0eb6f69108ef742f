// Numbers of arithmetic operations of calls whose results take more than one for each element, see Op::flops.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

inline double elements(const Shape& shape) { return shape.known() ? static_cast<double>(shape.size()) : 0; }
// The size of axis `axis` from the end; 1 where the axis does not exist or its size is unknown.
inline double size_from_end(const Shape& shape, int axis) {
    return shape.known() && shape.rank() >= axis ? static_cast<double>(shape[shape.rank() - axis]) : 1;
}

// Products of matrices: every element adds up the last axis of the first operand.
inline double product_flops(const Call& c, std::span<const TensorType> results) {
    return 2 * elements(results[0].shape) * size_from_end(c.shape(0), 1);
}

}  // namespace lunaria
