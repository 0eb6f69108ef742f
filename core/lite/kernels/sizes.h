// Questions about descriptions of products and convolutions that several files ask.
#pragma once

#include "core/lite/kernels/table.h"

namespace lunaria::lite::kernels {

[[gnu::always_inline]] inline bool is_blocks(WeightType type) {
    return type == WeightType::q8_0 || type == WeightType::q4_0;
}
[[gnu::always_inline]] inline int64_t bytes_of(WeightType type) { return type == WeightType::f32 ? 4 : 2; }
[[gnu::always_inline]] inline int64_t taps_of(const ConvolutionShape& s) {
    return s.kernel[0] * s.kernel[1] * s.kernel[2];
}
[[gnu::always_inline]] inline bool is_depthwise(const ConvolutionShape& s) {
    return s.groups > 1 && s.groups == s.channels && s.groups == s.out_channels && !s.transposed;
}

// Rows of a tile times this many columns of a lie in scratch while panels pass by.
inline constexpr int64_t kDepth = 256, kGatheredRow = kDepth + 16;
// Bytes of weights that stay in the second cache while rows pass by, and panels beside one another.
inline constexpr int64_t kCached = 512 << 10, kWide = 24;
// One worker's scratch: gathered rows, then weights of small types made f32.
inline constexpr int64_t kGatheredBytes = 12 * kGatheredRow * 4;
[[gnu::always_inline]] inline int64_t rows_bytes(WeightType type) {
    return kGatheredBytes + (type == WeightType::f32 ? 0 : kCached + kWide * kPanel * kDepth * 4);
}

// Convolutions of pictures with few channels: gathering rows of so few numbers takes longer than multiplying them.
// Lines of the picture are copied with the zeros around them instead, where neighbouring results read overlapping rows
// in place.
struct PaddedLines {
    [[gnu::always_inline]] explicit PaddedLines(const ConvolutionShape& s) {
        fits = !s.transposed && s.groups == 1 && s.channels <= 16 && s.kernel[0] == 1 && s.stride[0] == 1 &&
               s.pad[0] == 0 && s.in[0] == s.out[0] && s.dilation[2] == 1 && s.kernel[1] * s.kernel[2] > 1;
        width = ((s.out[2] - 1) * s.stride[2] + s.kernel[2]) * s.channels;
        reach = (s.kernel[1] - 1) * s.dilation[1] + 1;
        // Lines of results at a time.
        results = ((128 << 10) / (width * 4) - reach) / s.stride[1] + 1;
        results = results < 1 ? 1 : results > s.out[1] ? s.out[1] : results;
        bytes = round_up(((results - 1) * s.stride[1] + reach) * width * 4, 64);
    }
    bool fits;
    int64_t width, reach, results, bytes;  // width: floats of a line
};

// Scratch of products with weights in blocks. All rows of a are rounded to blocks first; where a product has more rows
// than kBlockRows, in pieces. Then each worker has panels of its own.
struct BlockScratch {
    static constexpr int64_t kBlockRows = 512;
    [[gnu::always_inline]] BlockScratch(const Product& p, int workers) {
        rows = p.m < kBlockRows ? p.m : kBlockRows;
        blocks = p.k / kBlock;
        row_bytes = round_up(p.k * 2 + blocks * 4, 64) + 64;
        worker_bytes = round_up(p.k * kPanel + blocks * kPanel * 8, 64);
        if (worker_bytes < rows_bytes(WeightType::q8_0)) worker_bytes = round_up(rows_bytes(WeightType::q8_0), 64);
        bytes = rows * row_bytes + (workers > 1 ? workers : 1) * worker_bytes;
    }
    int64_t rows, blocks, row_bytes, worker_bytes, bytes;
};

}  // namespace lunaria::lite::kernels
