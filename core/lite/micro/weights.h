// Weights in an order that simple loops read: undoes the arrangement that the runtime's kernels use.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/lite/kernels/convolution.h"
#include "core/lite/kernels/integer.h"
#include "core/lite/micro/program.h"

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

// Arrays of the program that hold such weights.
template <class T>
Array weight_array(const std::vector<T>& elements, std::string comment) {
    const auto* const first = reinterpret_cast<const std::byte*>(elements.data());
    return {{},
            std::is_same_v<T, float> ? DType::f32 : DType::i8,
            static_cast<int64_t>(elements.size()),
            std::move(comment),
            {first, first + elements.size() * sizeof(T)}};
}

// Whether each channel of the result comes from one channel of the picture.
inline bool is_by_channel(const kernels::ConvolutionShape& s) {
    return s.groups > 1 && s.channels == s.groups && s.out_channels == s.groups;
}
// (out_channels, taps, channels / groups); by channel: (taps, channels).
template <class T>
Array convolution_array(const kernels::ConvolutionShape& s, const std::vector<T>& plain) {
    const int64_t taps = s.kernel[0] * s.kernel[1] * s.kernel[2], depth = s.channels / s.groups,
                  n = s.out_channels / s.groups;
    std::vector<T> ordered(plain.size());
    for (int64_t o = 0; o < s.out_channels; ++o)
        for (int64_t c = 0; c < depth; ++c)
            for (int64_t t = 0; t < taps; ++t) {
                const int64_t from =
                    s.transposed ? ((o / n * depth + c) * n + o % n) * taps + t : (o * depth + c) * taps + t;
                const int64_t to = is_by_channel(s) ? t * s.channels + o : (o * taps + t) * depth + c;
                ordered[static_cast<size_t>(to)] = plain[static_cast<size_t>(from)];
            }
    const std::string window = str(s.kernel[0] == 1 ? "" : str(s.kernel[0], " x "), s.kernel[1], " x ", s.kernel[2]);
    return weight_array(ordered, is_by_channel(s) ? str(window, " taps of ", s.channels, " channels")
                                                  : str(s.out_channels, " x ", window, " x ", depth));
}

}  // namespace lunaria::lite::micro
