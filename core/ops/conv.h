// Geometry of convolutions, read from a call of conv1d/2d/3d or of one of their two gradients; the kernels read it too.
#pragma once

#include "core/ops/window.h"

namespace lunaria {

struct Convolution {
    Window window;
    int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;

    Shape input_shape() const;
    Shape weight_shape() const;
    Shape output_shape() const;
};

// Of convNd(input, weight, bias, stride, pad_mode, padding, dilation, groups); checks everything.
Convolution convolution_of(const Call& c);
// Of conv2d_last(input, weight, bias, stride, padding, dilation, groups), given as that of the same convolution with
// the channels in front: its shapes are those of conv2d.
Convolution convolution_of_last(const Call& c);
// Of conv_input_grad(dout, weight, input_size, stride, padding, dilation, groups).
Convolution convolution_of_input_grad(const Call& c);
// Of conv_weight_grad(input, dout, weight_size, stride, padding, dilation, groups).
Convolution convolution_of_weight_grad(const Call& c);

}  // namespace lunaria
