#include "backends/cpu/conv_columns.h"

#include <algorithm>
#include <atomic>

#include "backends/cpu/blas.h"
#include "backends/cpu/scratch.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// Elements of the columns that are made at once: they stay in the last cache.
constexpr int64_t kElements = 1 << 18;

int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Goes over output pixels begin .. end - 1 at one position of the kernel: inside(pixel - begin, count, first input
// pixel) for those that read the input, whose pixels are stride[2] apart, outside(pixel - begin, count) for those that
// read padding.
template <class Inside, class Outside>
void along_pixels(const Window& w, const Window::Sizes& at, int64_t begin, int64_t end, Inside inside,
                  Outside outside) {
    const int64_t width = w.out[2], step = w.stride[2], shift = at[2] * w.dilation[2] - w.before[2];
    for (int64_t p = begin; p < end;) {
        const int64_t row = p / width, x = p - row * width, stop = std::min(width, x + end - p);
        const int64_t z = row / w.out[1] * w.stride[0] + at[0] * w.dilation[0] - w.before[0];
        const int64_t y = row % w.out[1] * w.stride[1] + at[1] * w.dilation[1] - w.before[1];
        int64_t first = stop, last = stop;
        if (z >= 0 && z < w.in[0] && y >= 0 && y < w.in[1]) {
            first = std::clamp(divide_up(-shift, step), x, stop);
            last = std::clamp(divide_up(w.in[2] - shift, step), first, stop);
        }
        const int64_t to = p - begin - x;
        if (first > x) outside(to + x, first - x);
        if (last > first) inside(to + first, last - first, (z * w.in[1] + y) * w.in[2] + first * step + shift);
        if (stop > last) outside(to + last, stop - last);
        p += stop - x;
    }
}

// Calls f(number of the row, channel, position in the kernel) for all rows of the columns.
template <class F>
void for_rows(const Window& w, int64_t channels, F f) {
    int64_t row = 0;
    for (int64_t channel = 0; channel < channels; ++channel)
        for (int64_t z = 0; z < w.kernel[0]; ++z)
            for (int64_t y = 0; y < w.kernel[1]; ++y)
                for (int64_t x = 0; x < w.kernel[2]; ++x) f(row++, channel, Window::Sizes{z, y, x});
}

// One group of one image, some pixels of the output at a time.
template <class T>
class Group {
  public:
    explicit Group(const Convolution& c)
        : w_(c.window), in_(c.in_channels / c.groups), out_(c.out_channels / c.groups), rows_(in_ * w_.kernel_size()) {
        const int64_t pixels = w_.out_size(), parts = rows_ * pixels / kElements + 1;
        count_ = std::max<int64_t>((pixels + parts - 1) / parts, 1);
        columns_.resize(static_cast<size_t>(rows_ * count_));
    }

    bool forward(const T* x, const T* weight, const T* bias, T* y) {
        const int64_t pixels = w_.out_size();
        const bool whole = count_ == pixels;
        if (!whole) part_.resize(static_cast<size_t>(out_ * count_));
        return in_parts([&](int64_t begin, int64_t end) {
            const int64_t count = end - begin;
            make_columns(x, begin, end);
            T* const to = whole ? y : part_.data();
            for (int64_t o = 0; bias && o < out_; ++o) std::fill_n(to + o * count, count, bias[o]);
            if (!gemm<T>({weight, out_, rows_, rows_, 1}, columns(count), to, bias ? T(1) : T(0))) return false;
            for (int64_t o = 0; !whole && o < out_; ++o) std::copy_n(to + o * count, count, y + o * pixels + begin);
            return true;
        });
    }

    bool input_grad(T* x, const T* weight, const T* y) {
        const int64_t pixels = w_.out_size(), step = w_.stride[2];
        std::fill_n(x, in_ * w_.in_size(), T(0));
        return in_parts([&](int64_t begin, int64_t end) {
            const MatrixRef<T> turned{weight, rows_, out_, 1, rows_}, part{y + begin, out_, end - begin, pixels, 1};
            if (!gemm<T>(turned, part, columns_.data(), T(0))) return false;
            for_rows(w_, in_, [&](int64_t row, int64_t channel, const Window::Sizes& at) {
                const T* from = columns_.data() + row * (end - begin);
                T* const plane = x + channel * w_.in_size();
                along_pixels(
                    w_, at, begin, end,
                    [&](int64_t i, int64_t count, int64_t to) {
                        for (int64_t k = 0; k < count; ++k) plane[to + k * step] += from[i + k];
                    },
                    [](int64_t, int64_t) {});
            });
            return true;
        });
    }

    bool weight_grad(const T* x, T* weight, const T* y, bool adds) {
        const int64_t pixels = w_.out_size();
        return in_parts([&](int64_t begin, int64_t end) {
            make_columns(x, begin, end);
            const MatrixRef<T> part{y + begin, out_, end - begin, pixels, 1};
            return gemm<T>(part, columns(end - begin).transposed(), weight, adds || begin > 0 ? T(1) : T(0));
        });
    }

  private:
    template <class F>
    bool in_parts(F part) {
        for (int64_t begin = 0; begin < w_.out_size(); begin += count_) {
            poll_interrupt();
            if (!part(begin, std::min(w_.out_size(), begin + count_))) return false;
        }
        return true;
    }

    MatrixRef<T> columns(int64_t count) const { return {columns_.data(), rows_, count, count, 1}; }

    void make_columns(const T* x, int64_t begin, int64_t end) {
        const int64_t step = w_.stride[2];
        for_rows(w_, in_, [&](int64_t row, int64_t channel, const Window::Sizes& at) {
            T* const to = columns_.data() + row * (end - begin);
            const T* const plane = x + channel * w_.in_size();
            along_pixels(
                w_, at, begin, end,
                [&](int64_t i, int64_t count, int64_t from) {
                    if (step == 1) return void(std::copy_n(plane + from, count, to + i));
                    for (int64_t k = 0; k < count; ++k) to[i + k] = plane[from + k * step];
                },
                [&](int64_t i, int64_t count) { std::fill_n(to + i, count, T(0)); });
        });
    }

    const Window& w_;
    int64_t in_, out_, rows_, count_ = 1;
    Scratch<T> columns_, part_;
};

}  // namespace

template <class T>
bool convolve_columns(ConvKind kind, const Convolution& c, T* x, T* w, const T* bias, T* y) {
    const int64_t in = c.in_channels / c.groups * c.window.in_size(), weights = c.out_channels / c.groups;
    const int64_t out = weights * c.window.out_size(), weight = c.in_channels / c.groups * c.window.kernel_size();
    std::atomic<bool> done = true;
    // The gradient of a group's weights is a sum over the images, in their order.
    const bool sums = kind == ConvKind::weight_grad;
    const int64_t count = sums ? c.groups : c.batch * c.groups;
    auto work = [&](int64_t begin, int64_t end) {
        Group<T> group(c);
        for (int64_t i = begin; i < end && done; ++i) {
            const int64_t g = i % c.groups;
            T* const weights_of_group = w + g * weights * weight;
            bool fine = true;
            if (kind == ConvKind::forward)
                fine = group.forward(x + i * in, weights_of_group, bias ? bias + g * weights : nullptr, y + i * out);
            else if (kind == ConvKind::input_grad)
                fine = group.input_grad(x + i * in, weights_of_group, y + i * out);
            else
                for (int64_t n = 0; fine && n < c.batch; ++n)
                    fine = group.weight_grad(x + (n * c.groups + g) * in, weights_of_group,
                                             y + (n * c.groups + g) * out, n > 0);
            if (!fine) done = false;
        }
    };
    // With fewer images and groups than threads, the threads share each product.
    constexpr int64_t kWorthwhile = 1 << 18;
    if (count < num_threads())
        work(0, count);
    else
        parallel_for(count, kWorthwhile / std::max<int64_t>(out * weight, 1) + 1, work);
    return done;
}

template bool convolve_columns(ConvKind, const Convolution&, double*, double*, const double*, double*);

}  // namespace lunaria::cpu
