// Convolutions as products of matrices: the numbers that each output reads become a column (K. Chellapilla et al.,
// 2006). For the dtypes that oneDNN has no kernels for.
#pragma once

#include "backends/cpu/conv_pieces.h"

namespace lunaria::cpu {

// Computes y from x and w (and bias, or null) for the forward pass, x from y and w for the gradient of the input, w
// from x and y for that of the weights; all dense, with the channels in front. False where BLAS cannot be called.
template <class T>
bool convolve_columns(ConvKind kind, const Convolution& conv, T* x, T* w, const T* bias, T* y);

}  // namespace lunaria::cpu
