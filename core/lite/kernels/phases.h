// The taps of a transposed convolution along one axis, by the place of a result: o + pad = i * stride + tap * dilation,
// so that results of one phase, (o + pad) modulo stride, have the same taps. Weights are arranged phase by phase.
#pragma once

#include "core/lite/kernels/convolution.h"

namespace lunaria::lite::kernels {

struct Phase {
    [[gnu::always_inline]] Phase(const ConvolutionShape& s, int axis, int64_t phase)
        : stride(s.stride[axis]), dilation(s.dilation[axis]), kernel(s.kernel[axis]) {
        first = 0;
        while (first < kernel && first * dilation % stride != phase) ++first;
        step = 1;
        while (step * dilation % stride != 0) ++step;
        count = first < kernel ? (kernel - first + step - 1) / step : 0;
    }
    [[gnu::always_inline]] int64_t tap(int64_t i) const { return first + i * step; }

    int64_t stride, dilation, kernel;
    int64_t first, step, count;
};

}  // namespace lunaria::lite::kernels
