// Convolutions by oneDNN, for f32. The only header of the project that stands for oneDNN; it shows none of its types.
#pragma once

#include "core/ops/conv.h"

namespace lunaria::cpu {

// Where the channels of x and of y are: in front of the planes, or side by side for each pixel.
enum class ConvLayout : uint8_t { front, front_to_last, last };

enum class ConvKind : uint8_t { forward, input_grad, weight_grad };

// Computes y = convolution(x, w) + bias (bias may be null), or x from w and y, or w from x and y, as `kind` says. All
// arrays are dense in the order of the operator's shapes. The primitive made for a geometry is kept for later calls of
// the same thread. False when oneDNN has nothing for the case.
//
// `gradient` is the tensor of the x or w that is computed, when all of it is. Where the primitive computes in a layout
// of its own, the tensor is without memory until the operands' copies in their layouts are gone: it is another one
// afterwards.
//
// With `relu`, 0 takes the place of what is negative in a part of y as soon as it is there (not oneDNN's own, which
// makes 0 of what is no number).
//
// Looks for an interrupt, and offers safe points, after so many products for each thread: some hundredths of a second.
inline constexpr double kMostProducts = 1073741824.0;
bool dnn_convolve(ConvKind kind, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                  Tensor* gradient = nullptr, double most = kMostProducts, bool relu = false);

// y = convolution(x, w) + bias, with the layouts of x and y as `layout` says (not front).
bool dnn_convolve_last(ConvLayout layout, const Convolution& conv, float* x, float* w, const float* bias, float* y,
                       double most = kMostProducts);

}  // namespace lunaria::cpu
