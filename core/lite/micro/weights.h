// Weights in an order that simple loops read: undoes the arrangement that the runtime's kernels use.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/lite/kernels/convolution.h"
#include "core/lite/kernels/integer.h"

namespace lunaria::lite::micro {

// Nothing where the bytes are no such arrangement.

// n rows of k.
std::optional<std::vector<float>> plain_product(kernels::WeightType type, int64_t k, int64_t n,
                                                std::span<const std::byte> packed);
std::optional<std::vector<int8_t>> plain_integer_product(int64_t k, int64_t n, std::span<const std::byte> packed);

// As pack_convolution() takes them: (out_channels, channels / groups, depth, height, width), transposed ones (channels,
// out_channels / groups, depth, height, width).
std::optional<std::vector<float>> plain_convolution(const kernels::ConvolutionShape& s,
                                                    kernels::ConvolutionMethod method, kernels::WeightType type,
                                                    std::span<const std::byte> packed);
std::optional<std::vector<int8_t>> plain_integer_convolution(const kernels::ConvolutionShape& s,
                                                             std::span<const std::byte> packed);

}  // namespace lunaria::lite::micro
