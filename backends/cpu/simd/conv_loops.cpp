#include "backends/cpu/simd/conv_loops.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "backends/cpu/simd/pack.h"
#include "backends/cpu/simd/transpose.h"

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

// The place of a tile: its first channel and row, and the first columns of its vectors.
struct Place {
    int64_t channel, row, column[2];
    int lanes;  // lanes of a vector that count
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
    float* const first = y + (at.channel * c.out_h + at.row) * c.out_w;
    const int64_t plane = c.out_h * c.out_w;
    auto finish = [&](bool whole) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int k = 0; k < Channels; ++k)
#pragma GCC unroll 16
            for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
                for (int v = 0; v < Vectors; ++v) {
                    float* to = first + k * plane + r * c.out_w + at.column[v];
                    if (whole)
                        sum[k][r][v].store(to);
                    else
                        store_part(to, sum[k][r][v], at.lanes);
                }
    };
    if (!kHasPartLoads || at.lanes == kLanes)
        finish(true);
    else
        finish(false);
}

// All channels for a tile's rows and columns, in tiles of about the same number.
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

// The last vector of a row overlaps the vector before it.
void small_f32(const SmallConv& c, const float* x, const float* w, const float* bias, float* y) {
    const int lanes = static_cast<int>(std::min<int64_t>(c.out_w, kLanes));
    const int64_t count = (c.out_w + lanes - 1) / lanes;
    auto column = [&](int64_t v) { return std::min(v * lanes, c.out_w - lanes); };
    int64_t v = 0;
    for (; v + 2 <= count; v += 2) rows<2>(c, {0, 0, {column(v), column(v + 1)}, lanes}, x, w, bias, y);
    if (v < count) rows<1>(c, {0, 0, {column(v), 0}, lanes}, x, w, bias, y);
}

// The most sums of a tile whose lanes are channels, rows by pixels by vectors: every product needs one element of x,
// which AVX-512 reads as part of the multiplication.
constexpr int kMostPixels = 12;
constexpr int kLaneRows = kRegisters / kMostPixels;
static_assert(kLaneRows == 1 || kLaneRows == 2);

int64_t whole_vectors(int64_t channels) { return (channels + kLanes - 1) / kLanes * kLanes; }

// Sums for `Pixels` neighbours in each of `Rows` rows, one or two, to `to`: the channels of one pixel after those of
// another.
template <int Pixels, int Rows, int Vectors>
void pixels(const SmallConv& c, const float* x, const float* w, int64_t width, const P* start, float* to) {
    P sum[Rows][Pixels][Vectors];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) sum[r][p][v] = start[v];
    // Products of a row of the image with the weights of one row of the kernel; for two rows of results, each element
    // is multiplied by the weights of both, since reading the elements twice would take as long as the products.
    auto products = [&](const float* row, const float* w0, const float* w1, auto uses0, auto uses1)
        __attribute__((always_inline)) {
        constexpr int kFirst = decltype(uses0)::value ? 0 : 1, kBehind = decltype(uses1)::value ? 2 : 1;
        for (int64_t kx = 0; kx < c.kernel_w; ++kx, ++row, w0 += width, w1 += width) {
            // Hides the address from the compiler. Otherwise it keeps the previous iteration's elements, which costs a
            // copy between registers for each, while reading an element again costs nothing.
            __asm__("" : "+r"(row));
            P weight[2][Vectors];
#pragma GCC unroll 16
            for (int r = kFirst; r < kBehind; ++r)
#pragma GCC unroll 16
                for (int v = 0; v < Vectors; ++v) weight[r][v] = P::load((r == 0 ? w0 : w1) + v * kLanes);
#pragma GCC unroll 16
            for (int p = 0; p < Pixels; ++p) {
                const P in = row[p] - P::V{};
#pragma GCC unroll 16
                for (int r = kFirst; r < kBehind; ++r)
#pragma GCC unroll 16
                    for (int v = 0; v < Vectors; ++v) sum[r][p][v] = sum[r][p][v] + in * weight[r][v];
            }
        }
    };
    constexpr std::true_type kUsed{};
    constexpr std::false_type kNot{};
    const int64_t plane = c.in_h * c.in_w, step = c.kernel_w * width;
    for (int64_t i = 0; i < c.in_channels; ++i, x += plane, w += c.kernel_h * step) {
        if constexpr (Rows == 1) {
            for (int64_t ky = 0; ky < c.kernel_h; ++ky) products(x + ky * c.in_w, w + ky * step, w, kUsed, kNot);
        } else {
            products(x, w, w, kUsed, kNot);
            for (int64_t y = 1; y < c.kernel_h; ++y)
                products(x + y * c.in_w, w + y * step, w + (y - 1) * step, kUsed, kUsed);
            products(x + c.kernel_h * c.in_w, w, w + (c.kernel_h - 1) * step, kNot, kUsed);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int p = 0; p < Pixels; ++p)
#pragma GCC unroll 16
            for (int v = 0; v < Vectors; ++v) sum[r][p][v].store(to + (r * c.out_w + p) * width + v * kLanes);
}

// One row, or kLaneRows of them, in tiles of nearly equal width.
template <int Rows, int Vectors>
void pixel_rows(const SmallConv& c, const float* x, const float* w, int64_t width, const P* start, float* to) {
    constexpr int kMost = kRegisters / (Rows * Vectors) < kMostPixels ? kRegisters / (Rows * Vectors) : kMostPixels;
    using Tile = void (*)(const SmallConv&, const float*, const float*, int64_t, const P*, float*);
    static constexpr auto kTiles = []<int... N>(std::integer_sequence<int, N...>) {
        return std::array<Tile, kMost>{pixels<N + 1, Rows, Vectors>...};
    }
    (std::make_integer_sequence<int, kMost>());
    const int64_t tiles = (c.out_w + kMost - 1) / kMost, least = c.out_w / tiles, wider = c.out_w % tiles;
    for (int64_t i = 0; i < tiles; ++i) {
        const int64_t count = least + (i < wider);
        kTiles[static_cast<size_t>(count - 1)](c, x, w, width, start, to);
        x += count;
        to += count * width;
    }
}

// A vector or two of channels for some rows of the image.
template <int Vectors>
void lane_rows(const SmallConv& c, int64_t rows, const float* x, const float* w, int64_t width, const float* bias,
               float* to) {
    P start[Vectors];
    for (int v = 0; v < Vectors; ++v) start[v] = P::load(bias + v * kLanes);
    // With two vectors of channels, one row fills the registers.
    constexpr int kRows = Vectors == 1 ? kLaneRows : 1;
    int64_t row = 0;
    for (; row + kRows <= rows; row += kRows)
        pixel_rows<kRows, Vectors>(c, x + row * c.in_w, w, width, start, to + row * c.out_w * width);
    for (; row < rows; ++row) pixel_rows<1, Vectors>(c, x + row * c.in_w, w, width, start, to + row * c.out_w * width);
}

void channels_f32(const SmallConv& c, const float* x, const float* packed, const float* bias, float* y) {
    // As many rows as make a few cache lines for each channel, which are brought into the image's order at once.
    constexpr int64_t kPixels = 256;
    alignas(kBytes) float sums[kPixels * kMostLaneChannels];
    alignas(kBytes) float start[kMostLaneChannels] = {};
    if (bias) std::copy_n(bias, c.out_channels, start);
    const int64_t width = whole_vectors(c.out_channels), plane = c.out_h * c.out_w;
    const int64_t most = std::max<int64_t>(kPixels / c.out_w / kLaneRows * kLaneRows, 1);
    for (int64_t row = 0; row < c.out_h; row += most) {
        const int64_t rows = std::min(most, c.out_h - row);
        const float* from = x + row * c.in_w;
        int64_t lane = 0;
        for (; lane + 2 * kLanes <= width; lane += 2 * kLanes)
            lane_rows<2>(c, rows, from, packed + lane, width, start + lane, sums + lane);
        if (lane < width) lane_rows<1>(c, rows, from, packed + lane, width, start + lane, sums + lane);
        transpose<float>(sums, width, y + row * c.out_w, plane, rows * c.out_w, c.out_channels, false);
    }
}

void pack_channels(const SmallConv& c, const float* w, float* packed) {
    const int64_t taps = c.in_channels * c.kernel_h * c.kernel_w, width = whole_vectors(c.out_channels);
    if (width > c.out_channels) std::fill_n(packed, taps * width, 0.0f);
    transpose<float>(w, taps, packed, width, c.out_channels, taps, false);
}

}  // namespace

const ConvLoops conv_loops = {kLanes, kHasPartLoads ? 4 : kLanes, small_f32, channels_f32, pack_channels};

}  // namespace lunaria::cpu::LUNARIA_ISA
