// Convolutions by Winograd's method (winograd.h). Compiled once for each instruction set.
#include "core/lite/kernels/winograd.h"

#include "core/lite/kernels/float_products.h"
#include "core/lite/kernels/rows.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

namespace {

template <int Size>
[[gnu::always_inline]] inline void transform_pixels(const Floats (&d)[Size + 2], Floats (&t)[Size + 2]) {
    if constexpr (Size == 2) {
        t[0] = d[0] - d[2];
        t[1] = d[1] + d[2];
        t[2] = d[2] - d[1];
        t[3] = d[1] - d[3];
    } else {
        constexpr auto a = float(kPointA), b = float(kPointB), aa = 0.5f, bb = 2.0f;
        t[0] = d[0] - (aa + bb) * d[2] + d[4];
        t[5] = d[1] - (aa + bb) * d[3] + d[5];
        const Floats even_a = d[4] - bb * d[2], odd_a = a * (d[3] - bb * d[1]);
        t[1] = even_a + odd_a;
        t[2] = even_a - odd_a;
        const Floats even_b = d[4] - aa * d[2], odd_b = b * (d[3] - aa * d[1]);
        t[3] = even_b + odd_b;
        t[4] = even_b - odd_b;
    }
}
template <int Size>
[[gnu::always_inline]] inline void transform_products(const Floats (&m)[Size + 2], Floats (&y)[Size]) {
    if constexpr (Size == 2) {
        y[0] = m[0] + m[1] + m[2];
        y[1] = m[1] - m[2] - m[3];
    } else {
        constexpr auto a = float(kPointA), b = float(kPointB), aa = 0.5f, bb = 2.0f;
        const Floats sum_a = m[1] + m[2], odd_a = m[1] - m[2], sum_b = m[3] + m[4], odd_b = m[3] - m[4];
        y[0] = m[0] + sum_a + sum_b;
        y[1] = a * odd_a + b * odd_b;
        y[2] = aa * sum_a + bb * sum_b;
        y[3] = aa * a * odd_a + bb * b * odd_b + m[5];
    }
}

template <int Size>
class Method {
  public:
    Method(const Convolution& c, const WinogradSizes& sizes, float* scratch)
        : c_(c),
          s_(c.shape),
          sizes_(sizes),
          end_(c.epilogue),
          pixels_(scratch),
          products_(scratch + sizes.places * sizes.group * sizes.in_row) {
        x_pixel_ = c.x_pixel ? c.x_pixel : s_.channels;
        y_pixel_ = c.y_pixel ? c.y_pixel : s_.out_channels;
    }

    void run(int64_t first, int64_t count, float* gathered) {
        for (int64_t i = 0; i < count; ++i) read(place(first + i), pixels_ + i * sizes_.in_row);
        const int64_t panels = panels_of(s_.out_channels), weight = s_.channels * panels * kPanel;
        for (int64_t t = 0; t < sizes_.places; ++t) {
            const int64_t element = c_.type == WeightType::f32 ? 4 : 2;
            const RowsTask task{count,          panels * kPanel,
                                s_.channels,    static_cast<const char*>(c_.weight) + t * weight * element,
                                c_.type,        products_ + t * sizes_.group * sizes_.out_row,
                                sizes_.out_row, nullptr};
            const DirectRows rows{pixels_ + t * sizes_.group * sizes_.in_row, sizes_.in_row};
            RowsLoop(task, gathered + kGatheredBytes / 4)
                .run(0, count, 0, panels, &rows, gathered, [](int64_t, int, int64_t, int64_t, float*) {});
        }
        for (int64_t i = 0; i < count; ++i) write(first + i, i);
    }

  private:
    static constexpr int kSpan = Size + 2;

    struct Place {
        int64_t picture, y, x;  // y and x of the first pixel read, in a plane (picture, depth)
    };
    Place place(int64_t tile) const {
        const int64_t column = tile % sizes_.columns, rest = tile / sizes_.columns;
        return {rest / sizes_.rows, rest % sizes_.rows * Size - s_.pad[1], column * Size - s_.pad[2]};
    }

    void read(const Place& at, float* to) {
        const float* base = c_.x + ((at.picture * s_.in[1] + at.y) * s_.in[2] + at.x) * x_pixel_;
        const int64_t line = s_.in[2] * x_pixel_;
        int64_t c = 0;
        if (at.y >= 0 && at.x >= 0 && at.y + kSpan <= s_.in[1] && at.x + kSpan <= s_.in[2]) {
            c = s_.channels / kLanes * kLanes;
            transform(base, line, x_pixel_, c, to);
        }
        // At the edges, and for the last channels, from a copy with zeros.
        constexpr int64_t kPart = 64;
        alignas(64) float patch[kSpan * kSpan * kPart];
        for (; c < s_.channels; c += kPart) {
            const int64_t count = s_.channels - c < kPart ? s_.channels - c : kPart, whole = round_up(count, kLanes);
            for (int64_t i = 0; i < kSpan; ++i)
                for (int64_t j = 0; j < kSpan; ++j) {
                    const bool inside = at.y + i >= 0 && at.y + i < s_.in[1] && at.x + j >= 0 && at.x + j < s_.in[2];
                    float* pixel = patch + (i * kSpan + j) * kPart;
                    if (inside) copy(pixel, base + i * line + j * x_pixel_ + c, count);
                    clear(pixel + (inside ? count : 0), whole - (inside ? count : 0));
                }
            transform(patch, kSpan * kPart, kPart, whole, to + c);
        }
    }
    // Whole vectors of channels of a tile.
    [[gnu::noinline]] void transform(const float* from, int64_t line, int64_t pixel, int64_t channels, float* to) {
        const int64_t next = sizes_.group * sizes_.in_row;
        for (int64_t c = 0; c < channels; c += kLanes) {
            Floats half[kSpan][kSpan];
#pragma GCC unroll 6
            for (int j = 0; j < kSpan; ++j) {
                Floats d[kSpan], t[kSpan];
#pragma GCC unroll 6
                for (int i = 0; i < kSpan; ++i) d[i] = load(from + i * line + j * pixel + c);
                transform_pixels<Size>(d, t);
#pragma GCC unroll 6
                for (int i = 0; i < kSpan; ++i) half[i][j] = t[i];
            }
#pragma GCC unroll 6
            for (int i = 0; i < kSpan; ++i) {
                Floats t[kSpan];
                transform_pixels<Size>(half[i], t);
#pragma GCC unroll 6
                for (int j = 0; j < kSpan; ++j) store(to + (i * kSpan + j) * next + c, t[j]);
            }
        }
    }

    [[gnu::noinline]] void write(int64_t number, int64_t tile) {
        const Place at = place(number);
        const int64_t y0 = at.y + s_.pad[1], x0 = at.x + s_.pad[2], next = sizes_.group * sizes_.out_row;
        const int64_t height = s_.out[1] - y0 < Size ? s_.out[1] - y0 : Size;
        const int64_t width = s_.out[2] - x0 < Size ? s_.out[2] - x0 : Size;
        const int64_t first = (at.picture * s_.out[1] + y0) * s_.out[2] + x0;
        const float* from = products_ + tile * sizes_.out_row;
        const Epilogue& e = c_.epilogue;
        const Floats low = broadcast(end_.low), high = broadcast(end_.high);
        for (int64_t c = 0; c < s_.out_channels; c += kLanes) {
            const int64_t count = s_.out_channels - c < kLanes ? s_.out_channels - c : kLanes;
            const auto load_at = [&](const float* p) __attribute__((always_inline)) {
                return count == kLanes ? load(p) : load_part(p, count);
            };
            Floats half[Size][kSpan];
#pragma GCC unroll 6
            for (int j = 0; j < kSpan; ++j) {
                Floats m[kSpan], y[Size];
#pragma GCC unroll 6
                for (int i = 0; i < kSpan; ++i) m[i] = load(from + (i * kSpan + j) * next + c);
                transform_products<Size>(m, y);
#pragma GCC unroll 4
                for (int i = 0; i < Size; ++i) half[i][j] = y[i];
            }
            const Floats bias = end_.in_tile && e.bias ? load_at(e.bias + c) : Floats{};
            Floats results[Size][Size];
#pragma GCC unroll 4
            for (int i = 0; i < Size; ++i) transform_products<Size>(half[i], results[i]);
#pragma GCC unroll 1
            for (int64_t i = 0; i < height; ++i)
#pragma GCC unroll 1
                for (int64_t j = 0; j < width; ++j) {
                    const int64_t result = first + i * s_.out[2] + j;
                    Floats v = results[i][j] + bias;
                    if (end_.in_tile && e.residual) v += load_at(e.residual + result * e.residual_row + c);
                    v = smaller(larger(v, low), high);
                    float* to = c_.y + result * y_pixel_ + c;
                    if (count == kLanes)
                        store(to, v);
                    else
                        store_part(to, v, count);
                }
        }
        if (end_.in_tile) return;
        for (int64_t i = 0; i < height; ++i) {
            Epilogue part = e;
            const int64_t result = first + i * s_.out[2];
            if (part.residual) part.residual += result * e.residual_row;
            apply(part, width, s_.out_channels, c_.y + result * y_pixel_, y_pixel_, c_.y + result * y_pixel_, y_pixel_);
        }
    }

    const Convolution& c_;
    const ConvolutionShape& s_;
    const WinogradSizes& sizes_;
    TileEnd end_;
    float *pixels_, *products_;
    int64_t x_pixel_, y_pixel_;
};

}  // namespace

void winograd(const Convolution& c, void* scratch, const Workers& workers) {
    const WinogradSizes sizes(c.shape, c.method, is_shared(workers) ? workers.workers : 1);
    const int64_t bytes = sizes.worker_bytes + rows_bytes(c.type);
    each_task(workers, sizes.groups, [&](int64_t i, int worker) {
        auto* gathered = reinterpret_cast<float*>(static_cast<char*>(scratch) + worker * bytes);
        float* own = gathered + rows_bytes(c.type) / 4;
        const int64_t first = i * sizes.group, rest = sizes.tiles - first,
                      count = rest < sizes.group ? rest : sizes.group;
        if (sizes.size == 2)
            Method<2>(c, sizes, own).run(first, count, gathered);
        else
            Method<4>(c, sizes, own).run(first, count, gathered);
    });
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
