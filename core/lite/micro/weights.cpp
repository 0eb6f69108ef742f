// The arrangements are known by the functions that make them alone: numbers that tell their places are arranged, and
// looked up again.
#include "core/lite/micro/weights.h"

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/halves.h"
#include "core/lite/kernels/integer_sizes.h"

namespace lunaria::lite::micro {

namespace {

using kernels::ConvolutionMethod;
using kernels::ConvolutionShape;
using kernels::WeightType;

constexpr int64_t kMost = 1 << 24;  // numbers that a float tells apart

size_t count(int64_t n) { return static_cast<size_t>(n); }

std::optional<std::vector<float>> elements_of(WeightType type, std::span<const std::byte> packed, int64_t n) {
    const size_t width = type == WeightType::f32 ? 4 : 2;
    if (kernels::is_blocks(type) || packed.size() < count(n) * width) return {};
    std::vector<float> elements(count(n));
    for (size_t i = 0; i < elements.size(); ++i) {
        if (type == WeightType::f32) {
            std::memcpy(&elements[i], packed.data() + i * 4, 4);
            continue;
        }
        uint16_t half = 0;
        std::memcpy(&half, packed.data() + i * 2, 2);
        elements[i] =
            type == WeightType::f16 ? kernels::from_f16(half) : std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
    }
    return elements;
}

// `arrange` packs f32 numbers; `elements` are those of the packed weight.
template <class F>
std::vector<float> looked_up(int64_t weights, const std::vector<float>& elements, F arrange) {
    std::vector<float> numbers(count(weights)), places(elements.size());
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    arrange(numbers.data(), places.data());
    std::vector<float> plain(count(weights));
    for (size_t i = 0; i < places.size(); ++i)
        if (places[i] > 0) plain[count(static_cast<int64_t>(places[i])) - 1] = elements[i];
    return plain;
}

// Solves a x = b for a positive definite matrix of 9 rows.
using Matrix = std::array<std::array<double, 9>, 9>;
std::array<double, 9> solve(Matrix a, std::array<double, 9> b) {
    for (size_t i = 0; i < 9; ++i)
        for (size_t r = i + 1; r < 9; ++r) {
            const double f = a[r][i] / a[i][i];
            for (size_t c = i; c < 9; ++c) a[r][c] -= f * a[i][c];
            b[r] -= f * b[i];
        }
    for (size_t i = 9; i-- > 0;) {
        for (size_t c = i + 1; c < 9; ++c) b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
    return b;
}

// Winograd's weights are more numbers than the kernel has: the kernel is that whose transform is nearest to them.
std::vector<float> from_winograd(const ConvolutionShape& s, ConvolutionMethod method,
                                 const std::vector<float>& elements) {
    const size_t places = method == ConvolutionMethod::winograd2 ? 16 : 36;
    ConvolutionShape one = s;
    one.channels = one.out_channels = 1;
    const size_t step = count(kernels::convolution_weight_bytes(one, method, WeightType::f32)) / 4 / places;
    std::vector<std::vector<double>> transform(9, std::vector<double>(places));
    for (size_t tap = 0; tap < 9; ++tap) {
        std::array<float, 9> unit{};
        unit[tap] = 1;
        std::vector<float> packed(step * places);
        kernels::pack_convolution(one, method, WeightType::f32, unit.data(), packed.data());
        for (size_t p = 0; p < places; ++p) transform[tap][p] = packed[p * step];
    }
    Matrix normal{};
    for (size_t i = 0; i < 9; ++i)
        for (size_t k = 0; k < 9; ++k)
            normal[i][k] = std::inner_product(transform[i].begin(), transform[i].end(), transform[k].begin(), 0.0);
    const size_t in = count(s.channels), out = count(s.out_channels), place = elements.size() / places;
    std::vector<float> plain(out * in * 9);
    for (size_t o = 0; o < out; ++o)
        for (size_t i = 0; i < in; ++i) {
            const size_t at = (o / kernels::kPanel * in + i) * kernels::kPanel + o % kernels::kPanel;
            std::array<double, 9> right{};
            for (size_t tap = 0; tap < 9; ++tap)
                for (size_t p = 0; p < places; ++p)
                    right[tap] += transform[tap][p] * static_cast<double>(elements[p * place + at]);
            const std::array<double, 9> kernel = solve(normal, right);
            for (size_t tap = 0; tap < 9; ++tap) plain[(o * in + i) * 9 + tap] = static_cast<float>(kernel[tap]);
        }
    return plain;
}

int64_t weights_of(const ConvolutionShape& s) { return s.out_channels * (s.channels / s.groups) * kernels::taps_of(s); }

}  // namespace

std::optional<std::vector<float>> plain_product(WeightType type, int64_t k, int64_t n,
                                                std::span<const std::byte> packed) {
    if (packed.size() < count(kernels::weight_bytes(type, k, n)) || k * n >= kMost) return {};
    if (kernels::is_blocks(type)) {
        std::vector<float> plain(count(k * n));
        kernels::dequantize_blocks(type, n, k, packed.data(), plain.data(), k);
        return plain;
    }
    const auto elements = elements_of(type, packed, kernels::weight_bytes(WeightType::f32, k, n) / 4);
    if (!elements) return {};
    return looked_up(k * n, *elements, [&](const float* from, float* to) {
        kernels::pack_weight(WeightType::f32, k, n, from, 1, k, to);
    });
}

std::optional<std::vector<float>> plain_convolution(const ConvolutionShape& s, ConvolutionMethod method,
                                                    WeightType type, std::span<const std::byte> packed) {
    if (weights_of(s) >= kMost) return {};
    const auto elements = elements_of(type, packed, kernels::convolution_weight_bytes(s, method, WeightType::f32) / 4);
    if (!elements) return {};
    if (method == ConvolutionMethod::winograd2 || method == ConvolutionMethod::winograd4)
        return from_winograd(s, method, *elements);
    return looked_up(weights_of(s), *elements, [&](const float* from, float* to) {
        kernels::pack_convolution(s, method, WeightType::f32, from, to);
    });
}

std::optional<std::vector<int8_t>> plain_integer_product(int64_t k, int64_t n, std::span<const std::byte> packed) {
    const size_t bytes = count(kernels::integer_weight_bytes(k, n));
    if (packed.size() < bytes) return {};
    std::vector<int8_t> plain(count(k * n));
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < k; ++i) {
            const int64_t panel = j / kernels::kPanel * kernels::panel_bytes(k);
            plain[count(j * k + i)] =
                static_cast<int8_t>(packed[count(panel + (i / 4 * kernels::kPanel + j % kernels::kPanel) * 4 + i % 4)]);
        }
    std::vector<std::byte> again(bytes);
    kernels::pack_integer_weight(k, n, plain.data(), 1, k, again.data());
    if (std::memcmp(again.data(), packed.data(), bytes) != 0) return {};
    return plain;
}

std::optional<std::vector<int8_t>> plain_integer_convolution(const ConvolutionShape& s,
                                                             std::span<const std::byte> packed) {
    const size_t bytes = count(kernels::integer_convolution_weight_bytes(s));
    if (bytes == 0 || packed.size() < bytes) return {};
    std::vector<int8_t> plain(count(weights_of(s)));
    const int64_t taps = kernels::taps_of(s), depth = s.channels / s.groups, n = s.out_channels / s.groups;
    if (kernels::is_integer_depthwise(s)) {
        const int64_t row = kernels::round_up(s.channels, 16);
        for (int64_t c = 0; c < s.channels; ++c)
            for (int64_t t = 0; t < taps; ++t)
                plain[count(c * taps + t)] = static_cast<int8_t>(packed[count(t * row + c)]);
    } else {
        const int64_t k = taps * depth;
        for (int64_t g = 0; g < s.groups; ++g) {
            const auto group =
                plain_integer_product(k, n, packed.subspan(count(g * kernels::integer_weight_bytes(k, n))));
            if (!group) return {};
            for (int64_t column = 0; column < n; ++column)
                for (int64_t i = 0; i < k; ++i)
                    plain[count(((g * n + column) * depth + i % depth) * taps + i / depth)] =
                        (*group)[count(column * k + i)];
        }
    }
    std::vector<std::byte> again(bytes);
    kernels::pack_integer_convolution(s, plain.data(), again.data());
    if (std::memcmp(again.data(), packed.data(), bytes) != 0) return {};
    return plain;
}

}  // namespace lunaria::lite::micro
