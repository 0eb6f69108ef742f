// The arrangement of weights, the choice of a convolution's method, and sizes of scratch.
#include <cstring>
#include <vector>

#include "core/lite/kernels/halves.h"
#include "core/lite/kernels/integer_sizes.h"
#include "core/lite/kernels/phases.h"
#include "core/lite/kernels/winograd.h"

namespace lunaria::lite::kernels {

namespace {

void put(WeightType type, void* to, int64_t at, float x) {
    if (type == WeightType::f32)
        static_cast<float*>(to)[at] = x;
    else
        static_cast<uint16_t*>(to)[at] = type == WeightType::f16 ? to_f16(x) : to_bf16(x);
}
void* moved(void* to, int64_t bytes) { return static_cast<char*>(to) + bytes; }

// One group's panels: get(row, column).
template <class F>
void pack(WeightType type, int64_t k, int64_t n, void* to, F get) {
    for (int64_t p = 0; p < panels_of(n); ++p)
        for (int64_t i = 0; i < k; ++i)
            for (int64_t j = 0; j < kPanel; ++j) {
                const int64_t column = p * kPanel + j;
                put(type, to, (p * k + i) * kPanel + j, column < n ? get(i, column) : 0);
            }
}
int64_t panels_bytes(WeightType type, int64_t k, int64_t n) { return k * panels_of(n) * kPanel * bytes_of(type); }

// Rows (tap, channel) of ordinary convolutions.
void pack_direct(const ConvolutionShape& s, WeightType type, const float* from, void* to) {
    const int64_t depth = s.channels / s.groups, n = s.out_channels / s.groups, taps = taps_of(s);
    for (int64_t g = 0; g < s.groups; ++g)
        pack(type, taps * depth, n, moved(to, g * panels_bytes(type, taps * depth, n)),
             [&](int64_t row, int64_t column) {
                 return from[((g * n + column) * depth + row % depth) * taps + row / depth];
             });
}

// Phases of transposed ones, one after the other; rows as TransposedLine gathers them.
void pack_transposed(const ConvolutionShape& s, WeightType type, const float* from, void* to) {
    const int64_t depth = s.channels / s.groups, n = s.out_channels / s.groups, taps = taps_of(s);
    for (int64_t g = 0; g < s.groups; ++g)
        for (int64_t z = 0; z < s.stride[0]; ++z)
            for (int64_t y = 0; y < s.stride[1]; ++y)
                for (int64_t x = 0; x < s.stride[2]; ++x) {
                    const Phase pz(s, 0, z), py(s, 1, y), px(s, 2, x);
                    const int64_t k = pz.count * py.count * px.count * depth;
                    pack(type, k, n, to, [&](int64_t row, int64_t column) {
                        const int64_t tap = row / depth, channel = g * depth + row % depth;
                        const int64_t kx = px.tap(tap % px.count), ky = py.tap(tap / px.count % py.count);
                        const int64_t kz = pz.tap(tap / px.count / py.count);
                        return from[(channel * n + column) * taps + (kz * s.kernel[1] + ky) * s.kernel[2] + kx];
                    });
                    to = moved(to, panels_bytes(type, k, n));
                }
}

// The kernel at the points of Winograd's method: rows of G for one dimension.
void evaluate(int64_t size, const double* g, int64_t step, double* to, int64_t to_step) {
    const double g0 = g[0], g1 = g[step], g2 = g[2 * step];
    if (size == 2) {
        to[0] = g0;
        to[to_step] = (g0 + g1 + g2) / 2;
        to[2 * to_step] = (g0 - g1 + g2) / 2;
        to[3 * to_step] = g2;
        return;
    }
    const double aa = kPointA * kPointA, bb = kPointB * kPointB;
    to[0] = g0 / (aa * bb);
    const double na = 2 * aa * (aa - bb), nb = 2 * bb * (bb - aa);
    to[to_step] = (g0 + g1 * kPointA + g2 * aa) / na;
    to[2 * to_step] = (g0 - g1 * kPointA + g2 * aa) / na;
    to[3 * to_step] = (g0 + g1 * kPointB + g2 * bb) / nb;
    to[4 * to_step] = (g0 - g1 * kPointB + g2 * bb) / nb;
    to[5 * to_step] = g2;
}
void pack_winograd(const ConvolutionShape& s, ConvolutionMethod method, WeightType type, const float* from, void* to) {
    const int64_t size = method == ConvolutionMethod::winograd2 ? 2 : 4, span = size + 2;
    const int64_t k = s.channels, n = s.out_channels, place_bytes = panels_bytes(type, k, n);
    std::memset(to, 0, static_cast<size_t>(span * span * place_bytes));
    for (int64_t o = 0; o < n; ++o)
        for (int64_t i = 0; i < k; ++i) {
            double g[9], half[18], u[36];
            for (int t = 0; t < 9; ++t) g[t] = from[(o * k + i) * 9 + t];
            for (int x = 0; x < 3; ++x) evaluate(size, g + x, 3, half + x, 3);
            for (int64_t y = 0; y < span; ++y) evaluate(size, half + y * 3, 1, u + y * span, 1);
            for (int64_t t = 0; t < span * span; ++t)
                put(type, moved(to, t * place_bytes), (o / kPanel * k + i) * kPanel + o % kPanel,
                    static_cast<float>(u[t]));
        }
}

bool is_winograd(const ConvolutionShape& s) {
    return !s.transposed && s.groups == 1 && s.kernel[0] == 1 && s.kernel[1] == 3 && s.kernel[2] == 3 &&
           s.stride[0] == 1 && s.stride[1] == 1 && s.stride[2] == 1 && s.dilation[1] == 1 && s.dilation[2] == 1 &&
           s.pad[0] == 0 && s.in[0] == s.out[0];
}

}  // namespace

int64_t weight_bytes(WeightType type, int64_t k, int64_t n) {
    if (type == WeightType::q8_0) return k / kBlock * n * kBytesQ8;
    if (type == WeightType::q4_0) return k / kBlock * n * kBytesQ4;
    return panels_bytes(type, k, n);
}

void pack_weight(WeightType type, int64_t k, int64_t n, const float* from, int64_t k_step, int64_t n_step, void* to) {
    if (!is_blocks(type)) {
        pack(type, k, n, to, [&](int64_t row, int64_t column) { return from[row * k_step + column * n_step]; });
        return;
    }
    std::vector<float> row(static_cast<size_t>(k));
    for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < k; ++i) row[static_cast<size_t>(i)] = from[i * k_step + j * n_step];
        quantize_blocks(type, 1, k, row.data(), k, moved(to, j * weight_bytes(type, k, 1)));
    }
}

ConvolutionMethod convolution_method(const ConvolutionShape& s, bool exact) {
    if (is_depthwise(s)) return ConvolutionMethod::depthwise;
    if (exact || !is_winograd(s)) return ConvolutionMethod::direct;
    // With few channels the transformations cost more than the products that they save.
    if (s.channels < 16 || s.out_channels < 16) return ConvolutionMethod::direct;
    const int64_t tiles = s.batch * s.out[0] * ((s.out[1] + 3) / 4) * ((s.out[2] + 3) / 4);
    return tiles >= 12 ? ConvolutionMethod::winograd4 : ConvolutionMethod::winograd2;
}

int64_t convolution_weight_bytes(const ConvolutionShape& s, ConvolutionMethod method, WeightType type) {
    const int64_t taps = taps_of(s);
    switch (method) {
        case ConvolutionMethod::depthwise:
            return round_up(taps * s.channels, 16) * bytes_of(type);
        case ConvolutionMethod::winograd2:
            return 16 * panels_bytes(type, s.channels, s.out_channels);
        case ConvolutionMethod::winograd4:
            return 36 * panels_bytes(type, s.channels, s.out_channels);
        case ConvolutionMethod::direct:
            break;
    }
    return s.groups * panels_bytes(type, taps * (s.channels / s.groups), s.out_channels / s.groups);
}

bool pack_convolution(const ConvolutionShape& s, ConvolutionMethod method, WeightType type, const float* from,
                      void* to) {
    if (is_blocks(type)) return false;
    switch (method) {
        case ConvolutionMethod::depthwise: {
            if (!is_depthwise(s)) return false;
            const int64_t taps = taps_of(s), count = taps * s.channels;
            for (int64_t i = 0; i < round_up(count, 16); ++i)
                put(type, to, i, i < count ? from[i % s.channels * taps + i / s.channels] : 0);
            return true;
        }
        case ConvolutionMethod::winograd2:
        case ConvolutionMethod::winograd4:
            if (!is_winograd(s)) return false;
            pack_winograd(s, method, type, from, to);
            return true;
        case ConvolutionMethod::direct:
            break;
    }
    if (s.transposed)
        pack_transposed(s, type, from, to);
    else
        pack_direct(s, type, from, to);
    return true;
}

int64_t integer_weight_bytes(int64_t k, int64_t n) {
    // Panels, the sums of columns, and whether all are small.
    return round_up(panels_of(n) * panel_bytes(k) + panels_of(n) * kPanel * 4 + 4, 64);
}

namespace {

template <class F>
void pack_integers(int64_t k, int64_t n, void* to, F get) {
    std::memset(to, 0, static_cast<size_t>(integer_weight_bytes(k, n)));
    auto* panels = static_cast<int8_t*>(to);
    auto* sums = static_cast<int32_t*>(moved(to, panels_of(n) * panel_bytes(k)));
    int32_t& small = sums[panels_of(n) * kPanel];
    small = 1;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < k; ++i) {
            const int8_t w = get(i, j);
            if (w > kSmallWeight || w < -kSmallWeight) small = 0;
            panels[j / kPanel * panel_bytes(k) + (i / 4 * kPanel + j % kPanel) * 4 + i % 4] = w;
            sums[j] += w;
        }
}

}  // namespace

void pack_integer_weight(int64_t k, int64_t n, const int8_t* from, int64_t k_step, int64_t n_step, void* to) {
    pack_integers(k, n, to, [&](int64_t i, int64_t j) { return from[i * k_step + j * n_step]; });
}

int64_t integer_convolution_weight_bytes(const ConvolutionShape& s) {
    if (s.transposed) return 0;
    // Rows of taps, then sums of channels.
    if (is_integer_depthwise(s)) return round_up(round_up(s.channels, 16) * (taps_of(s) + 4), 64);
    return s.groups * integer_weight_bytes(taps_of(s) * (s.channels / s.groups), s.out_channels / s.groups);
}

bool pack_integer_convolution(const ConvolutionShape& s, const int8_t* from, void* to) {
    if (s.transposed) return false;
    const int64_t taps = taps_of(s), depth = s.channels / s.groups, n = s.out_channels / s.groups;
    if (is_integer_depthwise(s)) {
        const int64_t row = round_up(s.channels, 16);
        std::memset(to, 0, static_cast<size_t>(integer_convolution_weight_bytes(s)));
        auto* weights = static_cast<int8_t*>(to);
        auto* sums = static_cast<int32_t*>(moved(to, row * taps));
        for (int64_t c = 0; c < s.channels; ++c)
            for (int64_t t = 0; t < taps; ++t) {
                weights[t * row + c] = from[c * taps + t];
                sums[c] += from[c * taps + t];
            }
        return true;
    }
    for (int64_t g = 0; g < s.groups; ++g)
        pack_integers(taps * depth, n, moved(to, g * integer_weight_bytes(taps * depth, n)),
                      [&](int64_t row, int64_t column) {
                          return from[((g * n + column) * depth + row % depth) * taps + row / depth];
                      });
    return true;
}

}  // namespace lunaria::lite::kernels
