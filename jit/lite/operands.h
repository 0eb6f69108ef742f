// Questions that the passes of light models share: of operands, the order of axes, the uses of nodes.
#pragma once

#include <unordered_map>

#include "core/ir/graph.h"
#include "core/lite/kernels/convolution.h"
#include "core/ops/conv.h"

namespace lunaria::lite {

// The tensor, if the operand is a constant; otherwise null.
const Tensor* constant_of(const lunaria::Value& v);
// Of an operand with a static type.
Shape shape_of(const lunaria::Value& v);

// The order of axes that puts the channels of (batch, channels, pixels ...) last, and the one that brings them back.
Shape to_last(int rank);
Shape to_front(int rank);
Shape turned(const Shape& shape, const Shape& order);

// `transposed`: of the gradient of its input, which goes from the outputs of c to its inputs.
kernels::ConvolutionShape convolution_shape(const Convolution& c, bool transposed = false);

// How often each node is an operand or a result.
using Uses = std::unordered_map<const ir::Node*, int>;
Uses uses_of(const ir::Graph& graph);

}  // namespace lunaria::lite
