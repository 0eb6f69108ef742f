// Convolutions by oneDNN, for f32. This is the project's only header for oneDNN, and it shows none of its types.
#pragma once

#include "core/ops/conv.h"

namespace lunaria::cpu {

// The place of the channels of x and of y: in front of the planes, or side by side for each pixel.
enum class ConvLayout : uint8_t { front, front_to_last, last };

enum class ConvKind : uint8_t { forward, input_grad, weight_grad };

// Computes y = convolution(x, w) + bias (bias may be null), or x from w and y, or w from x and y, by `kind`. All arrays
// are dense in the order of the operator's shapes. The primitive for a geometry is kept for later calls of the same
// thread. False when oneDNN does not support the case.
//
// `gradient` is the tensor of the x or w that is computed, if all of it is. Where the primitive computes in a layout of
// its own, the tensor has no memory until the operands' copies in their layouts are freed: its memory is another one
// afterwards.
//
// With `relu`, negative elements become 0 in each part of y as soon as it is computed (not by oneDNN's own relu, which
// turns NaN into 0).
//
// Checks for an interrupt, and offers safe points, after so many products for each thread: some hundredths of a second.
inline constexpr double kMostProducts = 1073741824.0;
bool dnn_convolve(ConvKind kind, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                  Tensor* gradient = nullptr, double most = kMostProducts, bool relu = false);

// y = convolution(x, w) + bias, with the layouts of x and y given by `layout` (not front).
bool dnn_convolve_last(ConvLayout layout, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                       double most = kMostProducts);

}  // namespace lunaria::cpu
