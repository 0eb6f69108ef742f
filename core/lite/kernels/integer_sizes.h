// Sizes of packed 8-bit weights and of scratch, which the kernels of all instruction sets share.
#pragma once

#include "core/lite/kernels/sizes.h"

namespace lunaria::lite::kernels {

[[gnu::always_inline]] inline bool is_integer_depthwise(const ConvolutionShape& s) {
    return is_depthwise(s) && s.kernel[0] == 1 && s.kernel[1] <= 16;
}
// k in whole groups of four.
[[gnu::always_inline]] inline int64_t quads_of(int64_t k) { return (k + 3) / 4; }
// Weights of at most this magnitude can be multiplied four at a time by any processor.
inline constexpr int kSmallWeight = 64;
[[gnu::always_inline]] inline int64_t panel_bytes(int64_t k) { return quads_of(k) * 4 * kPanel; }

// One worker's scratch for products: rows as bytes and widened, sums, widened panels, and for all columns their
// constants.
struct IntegerScratch {
    static constexpr int64_t kRows = 12, kWideBytes = 512 << 10;
    [[gnu::always_inline]] IntegerScratch(int64_t n, int64_t k) {
        // Rows do not fall on the same lines of the first cache.
        row_bytes = round_up(k, 64) + 64;
        if (row_bytes % 1024 == 0) row_bytes += 64;
        panels = kWideBytes / (panel_bytes(k) * 2);
        if (panels < 2) panels = 2;
        if (panels > panels_of(n)) panels = panels_of(n);
        bytes = round_up(kRows * row_bytes * 3 + panels * panel_bytes(k) * 2 + panels_of(n) * kPanel * 8, 64) + 4096;
    }
    int64_t row_bytes, panels, bytes;
};

// One worker's scratch for depthwise convolutions: lines of the picture with their zeros, weights as words, constants.
struct IntegerLines {
    [[gnu::always_inline]] explicit IntegerLines(const ConvolutionShape& s) {
        height = (s.kernel[1] - 1) * s.dilation[1] + 1;
        // Results come four at a time: the last ones may read beyond the last pixel.
        width = (s.out[2] + 3) * s.stride[2] + (s.kernel[2] - 1) * s.dilation[2] + 1;
        channels = round_up(s.channels, 16);
        line_bytes = width * channels;
        pairs = (s.kernel[1] + 1) / 2;
        bytes = round_up(height * line_bytes + s.kernel[2] * pairs * channels * 4 + channels * 8, 64) + 256;
    }
    int64_t height, width, channels, line_bytes, pairs, bytes;
};

}  // namespace lunaria::lite::kernels
