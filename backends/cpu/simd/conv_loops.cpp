#include "backends/cpu/simd/conv_loops.h"

#include <algorithm>

#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

using P = Pack<float>;
constexpr int kLanes = P::lanes;
#if defined(__AVX512BW__)
constexpr int kRegisters = 24;  // for sums; the others hold an input and a weight
constexpr bool kHasPartLoads = true;
#else
constexpr int kRegisters = 12;
constexpr bool kHasPartLoads = false;
#endif

// Where a tile lies: its first channel and row, and the columns that its vectors begin at.
struct Place {
    int64_t channel, row, column[2];
    int lanes;  // of a vector that count
};

P load_lanes(const float* p, int lanes) {
    if constexpr (kHasPartLoads) return load_part(p, lanes);
    return P::load(p);
}

template <int Channels, int Rows, int Vectors>
void tile(const SmallConv& c, const Place& at, const float* x, const float* w, const float* bias, float* y) {
    P sum[Channels][Rows][Vectors];
#pragma GCC unroll 16
    for (int k = 0; k < Channels; ++k)
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) sum[k][r][v] = P(bias ? static_cast<double>(bias[at.channel + k]) : 0.0);
    const int64_t taps = c.in_channels * c.kernel_h * c.kernel_w;
    const float* weight = w + at.channel * taps;
    for (int64_t i = 0; i < c.in_channels; ++i)
        for (int64_t ky = 0; ky < c.kernel_h; ++ky) {
            const float* row = x + (i * c.in_h + at.row + ky) * c.in_w;
            for (int64_t kx = 0; kx < c.kernel_w; ++kx, ++weight) {
                P in[Rows][Vectors];
#pragma GCC unroll 16
                for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
                    for (int v = 0; v < Vectors; ++v)
                        in[r][v] = load_lanes(row + r * c.in_w + kx + at.column[v], at.lanes);
#pragma GCC unroll 16
                for (int k = 0; k < Channels; ++k) {
                    const P factor = weight[k * taps] - P::V{};
#pragma GCC unroll 16
                    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
                        for (int v = 0; v < Vectors; ++v) sum[k][r][v] = sum[k][r][v] + in[r][v] * factor;
                }
            }
        }
#pragma GCC unroll 16
    for (int k = 0; k < Channels; ++k)
#pragma GCC unroll 16
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) {
                float* to = y + ((at.channel + k) * c.out_h + at.row + r) * c.out_w + at.column[v];
                if (kHasPartLoads)
                    store_part(to, sum[k][r][v], at.lanes);
                else
                    sum[k][r][v].store(to);
            }
}

// All channels of a tile's rows and columns, in tiles of about as many each.
template <int Rows, int Vectors, int Channels = kRegisters / (2 * Vectors)>
void channels(const SmallConv& c, Place at, const float* x, const float* w, const float* bias, float* y) {
    const int64_t left = c.out_channels - at.channel, tiles = (left + Channels - 1) / Channels;
    if constexpr (Channels > 1)
        if (left < tiles * Channels && (left + tiles - 1) / tiles < Channels)
            return channels<Rows, Vectors, Channels - 1>(c, at, x, w, bias, y);
    for (; at.channel + Channels <= c.out_channels; at.channel += Channels)
        tile<Channels, Rows, Vectors>(c, at, x, w, bias, y);
    if constexpr (Channels > 1)
        if (at.channel < c.out_channels) channels<Rows, Vectors, Channels - 1>(c, at, x, w, bias, y);
}

template <int Vectors>
void rows(const SmallConv& c, Place at, const float* x, const float* w, const float* bias, float* y) {
    for (; at.row + 2 <= c.out_h; at.row += 2) channels<2, Vectors>(c, at, x, w, bias, y);
    if (at.row < c.out_h) channels<1, Vectors>(c, at, x, w, bias, y);
}

// The last vector of a row overlaps the one before it.
void small_f32(const SmallConv& c, const float* x, const float* w, const float* bias, float* y) {
    const int lanes = static_cast<int>(std::min<int64_t>(c.out_w, kLanes));
    const int64_t count = (c.out_w + lanes - 1) / lanes;
    auto column = [&](int64_t v) { return std::min(v * lanes, c.out_w - lanes); };
    int64_t v = 0;
    for (; v + 2 <= count; v += 2) rows<2>(c, {0, 0, {column(v), column(v + 1)}, lanes}, x, w, bias, y);
    if (v < count) rows<1>(c, {0, 0, {column(v), 0}, lanes}, x, w, bias, y);
}

}  // namespace

const ConvLoops conv_loops = {kLanes, kHasPartLoads ? 4 : kLanes, small_f32};

}  // namespace lunaria::cpu::LUNARIA_ISA
