// Convolutions in one to three dimensions, with an epilogue.
//
// Pictures are channels-last: (batch, depth, height, width, channels), the channels of a pixel side by side, with a
// depth (and a height) of 1 where there are fewer dimensions. A chain of convolutions, poolings and elementwise
// operators stays in this order; transpose() of common.h leads into it and out of it. A product of packed weights is
// the case of a convolution of 1 x 1 pixels, and the same code.
//
// How a convolution is computed is chosen when its weights are arranged, because each method has an arrangement of its
// own:
//   direct     rows of pixels are gathered in a small block beside the registers and multiplied by panels of weights
//   winograd2, winograd4   3 x 3 pixels, stride 1: tiles of 2 x 2 or 4 x 4 results with 16 or 36 products instead of 36
//   or
//              144; the largest error is about 2 and 5 times that of the direct sum
//   depthwise  each channel by itself
// The result is the same for every size of the picture, so that one arrangement serves a model that is resized.
#pragma once

#include "core/lite/kernels/product.h"

namespace lunaria::lite::kernels {

struct ConvolutionShape {
    int64_t batch = 1;
    int64_t channels = 1, out_channels = 1, groups = 1;
    // Depth, height, width. `pad`: zeros before the first pixel; those after the last follow from `out`. With
    // `transposed`, pad zeros are cut from the result, and `out` says how much of it there is.
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
    int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
    bool transposed = false;
};

enum class ConvolutionMethod : uint8_t { direct, winograd2, winograd4, depthwise };

// The fastest method for this shape. exact: no method with a larger error than that of the direct sum.
ConvolutionMethod convolution_method(const ConvolutionShape& s, bool exact = false);

int64_t convolution_weight_bytes(const ConvolutionShape& s, ConvolutionMethod method, WeightType type);
// `from`: (out_channels, channels / groups, depth, height, width), transposed ones (channels, out_channels / groups,
// depth, height, width), as ONNX, PyTorch and MindSpore have them. Winograd and depthwise weights are f32 or as `type`
// says, too; q8_0 and q4_0 are refused (returns false).
bool pack_convolution(const ConvolutionShape& s, ConvolutionMethod method, WeightType type, const float* from,
                      void* to);

struct Convolution {
    ConvolutionShape shape;
    ConvolutionMethod method = ConvolutionMethod::direct;
    WeightType type = WeightType::f32;
    const float* x = nullptr;
    const void* weight = nullptr;
    float* y = nullptr;
    int64_t x_pixel = 0, y_pixel = 0;  // elements from a pixel to the next; 0: the number of channels
    Epilogue epilogue;
};
int64_t convolution_scratch(const Convolution& c, int workers);
void convolution(Isa isa, const Convolution& c, void* scratch, const Workers& workers = {});

}  // namespace lunaria::lite::kernels
