// Convolution of images with few channels, without another layout. Lanes are neighbours in a row of the result or,
// where these would leave more of a register empty, the channels of one pixel; in both cases the sums of a tile stay in
// registers while all of their products are added up.
#pragma once

#include <cstdint>

namespace lunaria::cpu {

// One image. Stride and dilation are 1 and there is no padding: out_h = in_h - kernel_h + 1, and likewise along rows.
struct SmallConv {
    int64_t in_channels, in_h, in_w, out_channels, out_h, out_w, kernel_h, kernel_w;
};

struct ConvLoops {
    int64_t lanes;      // of a vector
    int64_t narrowest;  // out_w must be at least this
    // y = convolution(x, w) + bias, where bias may be null.
    void (*small_f32)(const SmallConv& c, const float* x, const float* w, const float* bias, float* y);
    // The same with channels as lanes. `packed` is w in the form of pack_channels: for each tap the weights of all
    // channels, in whole vectors.
    void (*channels_f32)(const SmallConv& c, const float* x, const float* packed, const float* bias, float* y);
    void (*pack_channels)(const SmallConv& c, const float* w, float* packed);
};

// The most channels for channels_f32.
inline constexpr int64_t kMostLaneChannels = 32;

namespace v2 {
extern const ConvLoops conv_loops;
}
namespace avx2 {
extern const ConvLoops conv_loops;
}
namespace avx512 {
extern const ConvLoops conv_loops;
}

}  // namespace lunaria::cpu
