// Convolutions of each channel by itself: vectors lie along the channels of a pixel, weights along channels for each
// tap. Compiled once for each instruction set.
#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// Channels whose weights stay in the first cache while the pixels of a line pass by.
constexpr int64_t kChannels = 256;

// Neighbouring results of one line, `side` of them, from rows of the picture: rows[ky] is the pixel under the left tap
// of the first result, or null outside the picture.
struct Group {
    const float* const* rows;
    int64_t pixel;  // elements from a pixel to the next
    const float* weight;
    int64_t tap;  // elements from a tap's weights to the next
    int64_t channels;
    float* y;
    int64_t y_pixel;
    const float* bias;
    const float* residual;
    int64_t residual_pixel;
    float low, high;
};

template <class Sum>
[[gnu::always_inline]] inline void finish(const Group& g, int64_t c, int64_t result, Sum sum, int64_t count) {
    const auto at = [&](const float* p) __attribute__((always_inline)) {
        return count == kLanes ? load(p) : load_part(p, count);
    };
    Floats v = sum;
    if (g.bias) v += at(g.bias + c);
    if (g.residual) v += at(g.residual + result * g.residual_pixel + c);
    v = smaller(larger(v, broadcast(g.low)), broadcast(g.high));
    float* y = g.y + result * g.y_pixel + c;
    if (count == kLanes)
        store(y, v);
    else
        store_part(y, v, count);
}

template <int Height, int Width, int Stride, int Side>
void group_of(const Group& g) {
    constexpr int kColumns = (Side - 1) * Stride + Width;
    for (int64_t c = 0; c < g.channels; c += kLanes) {
        const int64_t count = g.channels - c < kLanes ? g.channels - c : kLanes;
        Floats sums[Side];
#pragma GCC unroll 8
        for (int i = 0; i < Side; ++i) sums[i] = Floats{};
        auto line = [&](int ky, auto at) __attribute__((always_inline)) {
            Floats w[Width];
#pragma GCC unroll 8
            for (int kx = 0; kx < Width; ++kx) w[kx] = at(g.weight + (ky * Width + kx) * g.tap + c);
#pragma GCC unroll 16
            for (int j = 0; j < kColumns; ++j) {
                const Floats x = at(g.rows[ky] + j * g.pixel + c);
#pragma GCC unroll 8
                for (int i = 0; i < Side; ++i)
                    if (j - i * Stride >= 0 && j - i * Stride < Width) sums[i] += x * w[j - i * Stride];
            }
        };
        if (count == kLanes) {
            for (int ky = 0; ky < Height; ++ky)
                if (g.rows[ky])
                    line(
                        ky, [](const float* p) __attribute__((always_inline)) { return load(p); });
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i) finish(g, c, i, sums[i], kLanes);
        } else {
            for (int ky = 0; ky < Height; ++ky)
                if (g.rows[ky]) line(ky, [=](const float* p) { return load_part(p, count); });
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i) finish(g, c, i, sums[i], count);
        }
    }
}

// One result of any kernel, with taps outside the picture left out.
struct Taps {
    const Convolution* c;
    int64_t pixel;
    int64_t picture, z, y;
};
void single(const Group& g, const Taps& t, int64_t x, int64_t channel) {
    const ConvolutionShape& s = t.c->shape;
    for (int64_t c = 0; c < g.channels; c += kLanes) {
        const int64_t count = g.channels - c < kLanes ? g.channels - c : kLanes;
        const auto at = [&](const float* p) __attribute__((always_inline)) {
            return count == kLanes ? load(p) : load_part(p, count);
        };
        Floats sum{};
        for (int64_t kz = 0; kz < s.kernel[0]; ++kz) {
            const int64_t iz = t.z * s.stride[0] - s.pad[0] + kz * s.dilation[0];
            if (iz < 0 || iz >= s.in[0]) continue;
            for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
                const int64_t iy = t.y * s.stride[1] - s.pad[1] + ky * s.dilation[1];
                if (iy < 0 || iy >= s.in[1]) continue;
                const float* line =
                    t.c->x + ((t.picture * s.in[0] + iz) * s.in[1] + iy) * s.in[2] * t.pixel + channel + c;
                const float* w = g.weight + (kz * s.kernel[1] + ky) * s.kernel[2] * g.tap + c;
                for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
                    const int64_t ix = x * s.stride[2] - s.pad[2] + kx * s.dilation[2];
                    if (ix >= 0 && ix < s.in[2]) sum += at(line + ix * t.pixel) * at(w + kx * g.tap);
                }
            }
        }
        finish(g, c, 0, sum, count);
    }
}

using GroupLoop = void (*)(const Group&);
struct Loops {
    GroupLoop loop = nullptr;
    int side = 1;
};
Loops loops_of(const ConvolutionShape& s) {
    for (int d = 0; d < 3; ++d)
        if (s.dilation[d] != 1) return {};
    if (s.kernel[0] != 1) return {};
    const int64_t h = s.kernel[1], w = s.kernel[2], stride = s.stride[2];
    if (h == 3 && w == 3 && stride == 1) return {group_of<3, 3, 1, 4>, 4};
    if (h == 3 && w == 3 && stride == 2) return {group_of<3, 3, 2, 2>, 2};
    if (h == 5 && w == 5 && stride == 1) return {group_of<5, 5, 1, 4>, 4};
    if (h == 5 && w == 5 && stride == 2) return {group_of<5, 5, 2, 2>, 2};
    return {};
}

void line_of(const Convolution& c, const float* weight, const TileEnd& end, int64_t picture, int64_t z, int64_t y) {
    const ConvolutionShape& s = c.shape;
    const int64_t pixel = c.x_pixel ? c.x_pixel : s.channels, y_pixel = c.y_pixel ? c.y_pixel : s.channels;
    const Loops loops = loops_of(s);
    const int64_t first = ((picture * s.out[0] + z) * s.out[1] + y) * s.out[2];
    const Taps taps{&c, pixel, picture, z, y};
    const Epilogue& e = c.epilogue;
    // Results whose taps all lie within the line.
    int64_t left = (s.pad[2] + s.stride[2] - 1) / s.stride[2], right = 0;
    if (s.in[2] + s.pad[2] >= s.kernel[2]) right = (s.in[2] + s.pad[2] - s.kernel[2]) / s.stride[2] + 1;
    right = right < s.out[2] ? right : s.out[2];
    for (int64_t channel = 0; channel < s.channels; channel += kChannels) {
        Group g;
        const float* rows[5] = {};
        g.rows = rows;
        g.pixel = pixel;
        g.weight = weight + channel;
        g.tap = s.channels;
        g.channels = s.channels - channel < kChannels ? s.channels - channel : kChannels;
        g.y_pixel = y_pixel;
        g.bias = end.in_tile && e.bias ? e.bias + channel : nullptr;
        g.residual_pixel = e.residual_row;
        g.low = end.low;
        g.high = end.high;
        for (int64_t x = 0; x < s.out[2];) {
            g.y = c.y + (first + x) * y_pixel + channel;
            g.residual = end.in_tile && e.residual ? e.residual + (first + x) * e.residual_row + channel : nullptr;
            if (loops.loop && x >= left && x + loops.side <= right) {
                for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
                    const int64_t iy = y * s.stride[1] - s.pad[1] + ky;
                    rows[ky] =
                        iy < 0 || iy >= s.in[1]
                            ? nullptr
                            : c.x + ((picture * s.in[1] + iy) * s.in[2] + x * s.stride[2] - s.pad[2]) * pixel + channel;
                }
                loops.loop(g);
                x += loops.side;
            } else {
                single(g, taps, x, channel);
                ++x;
            }
        }
    }
    if (!end.in_tile) {
        Epilogue part = e;
        if (part.residual) part.residual += first * e.residual_row;
        apply(part, s.out[2], s.channels, c.y + first * y_pixel, y_pixel, c.y + first * y_pixel, y_pixel);
    }
}

}  // namespace

void depthwise(const Convolution& c, void* scratch, const Workers& workers) {
    const ConvolutionShape& s = c.shape;
    const int64_t count = s.kernel[0] * s.kernel[1] * s.kernel[2] * s.channels;
    const auto* weight = static_cast<const float*>(c.weight);
    if (c.type != WeightType::f32) {
        auto* wide = static_cast<float*>(scratch);
        const auto* from = static_cast<const uint16_t*>(c.weight);
        for (int64_t i = 0; i < count; i += kLanes) {
            const auto* p = from + i;
            const Floats w = c.type == WeightType::f16 ? load_floats(reinterpret_cast<const F16*>(p))
                                                       : load_floats(reinterpret_cast<const BF16*>(p));
            store(wide + i, w);
        }
        weight = wide;
    }
    const TileEnd end(c.epilogue);
    each_task(workers, s.batch * s.out[0] * s.out[1], [&](int64_t i, int) {
        line_of(c, weight, end, i / (s.out[0] * s.out[1]), i / s.out[1] % s.out[0], i % s.out[1]);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
