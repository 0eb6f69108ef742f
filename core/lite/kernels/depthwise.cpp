// Convolutions of each channel by itself: vectors lie along the channels of a pixel, weights along channels for each
// tap. Compiled once for each instruction set.
#include <type_traits>

#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

// Channels at a time, and bytes of the picture that stay in the first cache while a strip of it is passed downwards.
constexpr int64_t kChannels = 128, kStrip = 96 << 10;
constexpr int kMostRows = 5;

// Neighbouring results of one line. rows[ky] is the pixel under the left tap of the first result, or null outside the
// picture. Of the columns under the taps those in [begin, end) are in the picture.
struct Group {
    const float* rows[kMostRows];
    int begin, end;
    int results;
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

[[gnu::always_inline]] inline Floats load_some(const float* p, int64_t count) {
    return count >= kLanes ? load(p) : load_part(p, count);
}
[[gnu::always_inline]] inline void finish(const Group& g, int64_t c, int64_t result, Floats v, int64_t count) {
    if (g.bias) v += load_some(g.bias + c, count);
    if (g.residual) v += load_some(g.residual + result * g.residual_pixel + c, count);
    v = smaller(larger(v, broadcast(g.low)), broadcast(g.high));
    float* y = g.y + result * g.y_pixel + c;
    if (count >= kLanes)
        store(y, v);
    else
        store_part(y, v, count);
}

// Some channels of all results; `count` of them, a constant for whole vectors.
template <int Height, int Width, int Stride, int Side, bool Whole, class Count>
[[gnu::always_inline]] inline void vector_of(const Group& g, int64_t c, Count count) {
    constexpr int kColumns = (Side - 1) * Stride + Width;
    Floats sums[Side];
#pragma GCC unroll 8
    for (int i = 0; i < Side; ++i) sums[i] = Floats{};
#pragma GCC unroll 1
    for (int ky = 0; ky < Height; ++ky) {
        const float* row = g.rows[ky];
        if (!row) continue;
        Floats w[Width];
#pragma GCC unroll 8
        for (int kx = 0; kx < Width; ++kx) w[kx] = load_some(g.weight + (ky * Width + kx) * g.tap + c, count);
#pragma GCC unroll 16
        for (int j = 0; j < kColumns; ++j) {
            if (!Whole && (j < g.begin || j >= g.end)) continue;
            const Floats x = load_some(row + j * g.pixel + c, count);
#pragma GCC unroll 8
            for (int i = 0; i < Side; ++i)
                if (j - i * Stride >= 0 && j - i * Stride < Width) sums[i] += x * w[j - i * Stride];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < Side; ++i)
        if (Whole || i < g.results) finish(g, c, i, sums[i], count);
}

// Whole: all columns are in the picture, and all results are wanted.
template <int Height, int Width, int Stride, int Side, bool Whole>
void group_of(const Group& group) {
    const Group g = group;  // results could be anywhere, also in the argument
    int64_t c = 0;
    for (; c + kLanes <= g.channels; c += kLanes)
        vector_of<Height, Width, Stride, Side, Whole>(g, c, std::integral_constant<int64_t, kLanes>{});
    if (c < g.channels) vector_of<Height, Width, Stride, Side, Whole>(g, c, g.channels - c);
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
        const int64_t count = g.channels - c;
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
                    if (ix >= 0 && ix < s.in[2])
                        sum += load_some(line + ix * t.pixel, count) * load_some(w + kx * g.tap, count);
                }
            }
        }
        finish(g, c, 0, sum, count);
    }
}

using GroupLoop = void (*)(const Group&);
struct Loops {
    GroupLoop whole = nullptr, edge = nullptr;
    int side = 1;
};
template <int Height, int Stride>
constexpr Loops loops_for() {
    constexpr int kSideBySide = Stride == 1 ? 4 : 3;
    return {group_of<Height, Height, Stride, kSideBySide, true>, group_of<Height, Height, Stride, kSideBySide, false>,
            kSideBySide};
}
Loops loops_of(const ConvolutionShape& s) {
    if (s.dilation[0] != 1 || s.dilation[1] != 1 || s.dilation[2] != 1 || s.kernel[0] != 1 ||
        s.kernel[1] != s.kernel[2])
        return {};
    const int64_t size = s.kernel[1], stride = s.stride[2];
    if (size == 3 && stride == 1) return loops_for<3, 1>();
    if (size == 3 && stride == 2) return loops_for<3, 2>();
    if (size == 5 && stride == 1) return loops_for<5, 1>();
    if (size == 5 && stride == 2) return loops_for<5, 2>();
    return {};
}

class Strip {
  public:
    Strip(const Convolution& c, const float* weight, const TileEnd& end)
        : c_(c), s_(c.shape), end_(end), loops_(loops_of(s_)), weight_(weight) {
        pixel_ = c.x_pixel ? c.x_pixel : s_.channels;
        y_pixel_ = c.y_pixel ? c.y_pixel : s_.channels;
        is_large_ = s_.batch * s_.in[1] * s_.in[2] * s_.channels * 4 > (768 << 10);
    }
    int64_t width(int64_t channels) const {
        const int64_t columns = kStrip / (4 * channels * (s_.kernel[1] + 1)) / s_.stride[2] / loops_.side * loops_.side;
        return columns > loops_.side ? columns : loops_.side;
    }
    // Results [x0, x1) of a line.
    void line(int64_t picture, int64_t z, int64_t y, int64_t x0, int64_t x1, int64_t channel, int64_t channels) const {
        const Epilogue& e = c_.epilogue;
        const int64_t first = ((picture * s_.out[0] + z) * s_.out[1] + y) * s_.out[2];
        Group g;
        g.pixel = pixel_;
        g.weight = weight_ + channel;
        g.tap = s_.channels;
        g.channels = channels;
        g.y_pixel = y_pixel_;
        g.bias = end_.in_tile && e.bias ? e.bias + channel : nullptr;
        g.residual_pixel = e.residual_row;
        g.low = end_.low;
        g.high = end_.high;
        for (int64_t x = x0; x < x1; x += loops_.side) {
            g.y = c_.y + (first + x) * y_pixel_ + channel;
            g.residual = end_.in_tile && e.residual ? e.residual + (first + x) * e.residual_row + channel : nullptr;
            if (!loops_.whole) {
                single(g, {&c_, pixel_, picture, z, y}, x, channel);
                continue;
            }
            const int64_t ix = x * s_.stride[2] - s_.pad[2], columns = (loops_.side - 1) * s_.stride[2] + s_.kernel[2];
            for (int64_t ky = 0; ky < s_.kernel[1]; ++ky) {
                const int64_t iy = y * s_.stride[1] - s_.pad[1] + ky;
                g.rows[ky] = iy < 0 || iy >= s_.in[1]
                                 ? nullptr
                                 : c_.x + ((picture * s_.in[1] + iy) * s_.in[2] + ix) * pixel_ + channel;
            }
            if (is_large_)
                prefetch(picture, (y + 1) * s_.stride[1] - s_.pad[1] + s_.kernel[1] - 1, ix, channel, channels);
            const int64_t rest = x1 - x, inside = s_.in[2] - ix;
            if (ix >= 0 && inside >= columns && rest >= loops_.side) {
                loops_.whole(g);
                continue;
            }
            g.begin = static_cast<int>(ix < 0 ? -ix : 0);
            g.end = static_cast<int>(inside < columns ? inside : columns);
            g.results = static_cast<int>(rest < loops_.side ? rest : loops_.side);
            loops_.edge(g);
        }
    }
    void finish_line(int64_t picture, int64_t z, int64_t y) const {
        if (end_.in_tile) return;
        const int64_t first = ((picture * s_.out[0] + z) * s_.out[1] + y) * s_.out[2];
        Epilogue part = c_.epilogue;
        if (part.residual) part.residual += first * part.residual_row;
        float* to = c_.y + first * y_pixel_;
        apply(part, s_.out[2], s_.channels, to, y_pixel_, to, y_pixel_);
    }

  private:
    // The pixels that the result below needs first.
    void prefetch(int64_t picture, int64_t iy, int64_t ix, int64_t channel, int64_t channels) const {
        const int64_t columns = loops_.side * s_.stride[2];
        if (iy >= s_.in[1] || ix < 0 || ix + columns > s_.in[2]) return;
        const float* from = c_.x + ((picture * s_.in[1] + iy) * s_.in[2] + ix) * pixel_ + channel;
        for (int64_t lines = 0; lines < s_.stride[1]; ++lines, from -= s_.in[2] * pixel_)
            for (int64_t p = 0; p < columns; ++p)
                for (int64_t i = 0; i < channels; i += 16) __builtin_prefetch(from + p * pixel_ + i);
    }

    const Convolution& c_;
    const ConvolutionShape& s_;
    const TileEnd& end_;
    Loops loops_;
    const float* weight_;
    int64_t pixel_, y_pixel_;
    bool is_large_;  // more than the second cache holds
};

// Lines [y0, y1) of one plane, in strips that are passed downwards, so that each pixel comes into the first cache once.
void band_of(const Convolution& c, const Strip& strip, int64_t picture, int64_t z, int64_t y0, int64_t y1) {
    const ConvolutionShape& s = c.shape;
    for (int64_t channel = 0; channel < s.channels; channel += kChannels) {
        const int64_t channels = s.channels - channel < kChannels ? s.channels - channel : kChannels,
                      width = strip.width(channels);
        for (int64_t x = 0; x < s.out[2]; x += width)
            for (int64_t y = y0; y < y1; ++y)
                strip.line(picture, z, y, x, x + width < s.out[2] ? x + width : s.out[2], channel, channels);
    }
    for (int64_t y = y0; y < y1; ++y) strip.finish_line(picture, z, y);
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
    const Strip strip(c, weight, end);
    const int64_t planes = s.batch * s.out[0];
    int64_t bands = 1;
    if (is_shared(workers) && planes < 3 * workers.workers) {
        bands = (3 * workers.workers + planes - 1) / planes;
        bands = bands < (s.out[1] + 3) / 4 ? bands : (s.out[1] + 3) / 4;
    }
    each_task(workers, planes * bands, [&](int64_t i, int) {
        const int64_t plane = i / bands, band = i % bands;
        band_of(c, strip, plane / s.out[0], plane % s.out[0], s.out[1] * band / bands, s.out[1] * (band + 1) / bands);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
