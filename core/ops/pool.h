// Geometry of pooling, read from calls; the kernels read it too.
#pragma once

#include "core/ops/window.h"

namespace lunaria {

// The window of max_window and argmax_window(x, kernel_size, stride, padding, dilation, ceil_mode), where x is argument
// `x`. `behind`: the axes of x after the planes, 1 for max_window_last, whose elements are the channels of a pixel.
Window max_window_of(const Call& c, size_t x = 0, int behind = 0);
// The window of avg_poolNd(x, kernel_size, stride, padding, ceil_mode, …), and of its gradient, for which `input` has
// the sizes of the input.
Window avg_window_of(const Call& c, const Shape& input, size_t kernel_size);

// The first and the past-the-end input position of output position i if `in` positions are divided among `out`.
inline int64_t adaptive_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
inline int64_t adaptive_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

}  // namespace lunaria
