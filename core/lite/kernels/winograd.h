// The shape of Winograd's method for kernels of 3 x 3 pixels: tiles of Size x Size results come from Size + 2 numbers
// in each direction, transformed so that a convolution is a product for each of the (Size + 2)^2 places.
//
// One dimension, by the points 0, a, -a, b, -b (for tiles of 2: 0, 1, -1) and infinity: the kernel is evaluated at the
// points, the pixels are multiplied by the polynomials that are 0 at all other points, and the results are the
// polynomial through the products. Of the points that were tried these have the smallest error, a third of that of the
// usual 1 and 2; a b is 1.
#pragma once

#include "core/lite/kernels/table.h"

namespace lunaria::lite::kernels {

inline constexpr double kPointA = 0.70710678118654752440, kPointB = 1.41421356237309504880;

struct WinogradSizes {
    [[gnu::always_inline]] WinogradSizes(const ConvolutionShape& s, ConvolutionMethod method, int workers) {
        size = method == ConvolutionMethod::winograd2 ? 2 : 4;
        places = (size + 2) * (size + 2);
        rows = (s.out[1] + size - 1) / size;
        columns = (s.out[2] + size - 1) / size;
        tiles = s.batch * s.out[0] * rows * columns;
        in_row = padded(s.channels);
        out_row = padded(s.out_channels);
        // Tiles that are computed together: few enough to stay in the second cache, or many where the weights do not.
        const int64_t tile = places * (in_row + out_row) * 4, weights = places * s.channels * s.out_channels * 4;
        group = (weights <= (600 << 10) ? 384 << 10 : 1536 << 10) / tile / 12 * 12;
        if (group < 12) group = 12;
        if (workers > 1 && group > tiles / (2 * workers)) group = (tiles / (2 * workers) + 11) / 12 * 12;
        if (group < 12) group = 12;
        if (group > tiles) group = tiles;
        groups = tiles ? (tiles + group - 1) / group : 0;
        // Of equal size.
        if (groups) group = (tiles + groups - 1) / groups;
        worker_bytes = round_up(places * group * (in_row + out_row) * 4, 64);
    }
    // A row length that does not put all rows on the same lines of the first cache.
    [[gnu::always_inline]] static int64_t padded(int64_t channels) {
        const int64_t row = round_up(channels, kPanel);
        return row * 4 % 1024 == 0 ? row + kPanel : row;
    }
    int64_t size, places, rows, columns, tiles, in_row, out_row, group, groups, worker_bytes;
};

}  // namespace lunaria::lite::kernels
