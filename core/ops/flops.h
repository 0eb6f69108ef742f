// Arithmetic operations of the calls whose results take more than one for each element, see Op::flops.
#pragma once

#include "core/operator/op.h"

namespace lunaria {

inline double elements(const Shape& shape) { return shape.known() ? static_cast<double>(shape.size()) : 0; }
// Axis `axis` from the end; 1 where it is not there or not known.
inline double size_from_end(const Shape& shape, int axis) {
    return shape.known() && shape.rank() >= axis ? static_cast<double>(shape[shape.rank() - axis]) : 1;
}

// Products of matrices: every element adds up the last axis of the first operand.
inline double product_flops(const Call& c, std::span<const TensorType> results) {
    return 2 * elements(results[0].shape) * size_from_end(c.shape(0), 1);
}

}  // namespace lunaria
