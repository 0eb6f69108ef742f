// The common form of layer_norm, group_norm and batch_norm: blocks of elements that share a mean, and a weight per
// channel. An operator's arguments are turned into one of these descriptions; kernels only see these.
#pragma once

#include <cstdint>

#include "backends/cpu/kernel_table.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

// x as `rows` contiguous rows of `channels` × `inner` elements; each row is normalised. Row r holds the channels
// (r % groups) * channels onwards. layer_norm: groups 1, inner 1.
struct RowNorm {
    int64_t rows = 0, groups = 1, channels = 1, inner = 1;
    int64_t length() const { return channels * inner; }
    int64_t first_channel(int64_t row) const { return row % groups * channels; }
};

// x as outer × channels × inner; each channel is normalised over outer and inner.
struct ChannelNorm {
    int64_t outer = 1, channels = 1, inner = 1;
    int64_t count() const { return outer * inner; }
};

inline RowNorm row_norm_of_last(const Shape& x, int64_t axes) {
    RowNorm n{1};
    for (int i = 0; i < x.rank(); ++i) (i < x.rank() - axes ? n.rows : n.channels) *= x[i];
    return n;
}

inline RowNorm row_norm_of_groups(const Shape& x, int64_t groups) {
    RowNorm n{x[0] * groups, groups, x[1] / groups, 1};
    for (int i = 2; i < x.rank(); ++i) n.inner *= x[i];
    return n;
}

inline ChannelNorm channel_norm(const Shape& x) {
    ChannelNorm n{x[0], x[1], 1};
    for (int i = 2; i < x.rank(); ++i) n.inner *= x[i];
    return n;
}

}  // namespace lunaria::cpu
