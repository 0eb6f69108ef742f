// Pooling, channels-last: (batch, [depth, [height,]] width, channels).
#include <cmath>
#include <limits>

#include "core/lite/runtime/step.h"
#include "core/lite/runtime/windows.h"

namespace lunaria::lite {

namespace {

struct Pool : Windows {
    int64_t batch = 1, channels = 1;
    bool counts_pad = true;
    int64_t divisor = 0;
    // Of integers.
    DType dtype = DType::f32;
    int32_t x_zero = 0, zero = 0, low = 0, high = 0;
    float multiplier = 1;
};

void read_three(const StepForm& form, std::string_view name, int64_t (&to)[3]) {
    const std::vector<int64_t> list = form.integers(name);
    for (size_t i = 0; i < list.size() && i < 3; ++i) to[3 - std::min<size_t>(3, list.size()) + i] = list[i];
}

bool check_windows(const Pool& p, std::string& fault) {
    constexpr int64_t kMost = 1 << 24;
    auto is_within = [](int64_t least, int64_t x) { return x >= least && x <= kMost; };
    for (int i = 0; i < 3; ++i) {
        if (is_within(1, p.kernel[i]) && is_within(1, p.stride[i]) && is_within(1, p.dilation[i]) &&
            is_within(0, p.before[i]))
            continue;
        fault = "its attributes do not fit";
        return false;
    }
    return true;
}

bool read_pool(const StepForm& form, Pool& p, std::string& fault) {
    if (form.in.size() != 1 || form.out.empty()) {
        fault = "it lacks operands";
        return false;
    }
    const Operand &x = form.in[0], &y = form.out[0];
    const size_t rank = x.shape.size();
    const bool fits = rank >= 3 && rank <= 5 && y.shape.size() == rank && x.is_dense() && y.is_dense() &&
                      (x.dtype == DType::f32 || x.dtype == DType::i8 || x.dtype == DType::u8) && y.dtype == x.dtype &&
                      x.shape[0] == y.shape[0] && x.shape.back() == y.shape.back();
    if (!fits) {
        fault = "its operands do not fit";
        return false;
    }
    p.dtype = x.dtype;
    p.x_zero = static_cast<int32_t>(form.integer("x_zero"));
    p.zero = static_cast<int32_t>(form.integer("zero"));
    p.low = static_cast<int32_t>(form.integer("low", x.dtype == DType::u8 ? 0 : -128));
    p.high = static_cast<int32_t>(form.integer("high", x.dtype == DType::u8 ? 255 : 127));
    p.multiplier = static_cast<float>(form.number("multiplier", 1));
    p.batch = x.shape[0];
    p.channels = x.shape.back();
    for (size_t i = 1; i + 1 < rank; ++i) {
        p.in[4 - rank + i] = x.shape[i];
        p.out[4 - rank + i] = y.shape[i];
    }
    read_three(form, "kernel", p.kernel);
    read_three(form, "stride", p.stride);
    read_three(form, "dilation", p.dilation);
    read_three(form, "pad", p.before);
    std::copy(std::begin(p.before), std::end(p.before), p.after);
    read_three(form, "pad_after", p.after);
    p.counts_pad = form.integer("count_include_pad", 1) != 0;
    p.divisor = form.integer("divisor");
    return check_windows(p, fault);
}

// A window is joined in two steps: its rows of pixels, which are long vectors, and then the pixels of these.
template <bool Max, class T, class A>
void join(const T* x, A* to, int64_t count, int32_t zero) {
    for (int64_t i = 0; i < count; ++i) {
        if constexpr (Max)
            to[i] = x[i] > to[i] || x[i] != x[i] ? x[i] : to[i];
        else
            to[i] += static_cast<A>(x[i]) - static_cast<A>(zero);
    }
}

void store_average(const Pool&, const float* sums, float divisor, int64_t count, float* y) {
    for (int64_t i = 0; i < count; ++i) y[i] = sums[i] / divisor;
}
// As core/lite/kernels/integer.h rounds, with the multiplier over the number of pixels.
template <class T>
void store_average(const Pool& p, const int32_t* sums, float divisor, int64_t count, T* y) {
    const float factor = p.multiplier / divisor;
    const auto low = static_cast<float>(p.low - p.zero), high = static_cast<float>(p.high - p.zero);
    for (int64_t i = 0; i < count; ++i) {
        const float f = std::min(std::max(static_cast<float>(sums[i]) * factor, low), high);
        y[i] = static_cast<T>(static_cast<int32_t>(std::nearbyint(f)) + p.zero);
    }
}

// One row of results; `joined` has room for a row of the picture and one pixel.
template <bool Max, class T, class A>
void pool_row(const Pool& p, const T* x, T* y, int64_t at, A* joined) {
    const int64_t row = p.in[2] * p.channels, channels = p.channels;
    constexpr A kStart = !Max                          ? A(0)
                         : std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity()
                                                       : std::numeric_limits<A>::min();
    Taps w[3] = {Taps(p, 0, at / p.out[1]), Taps(p, 1, at % p.out[1]), {}};
    const int32_t zero = p.x_zero;
    std::fill_n(joined, row, kStart);
    for (int64_t i = w[0].from; i < w[0].to; ++i)
        for (int64_t j = w[1].from; j < w[1].to; ++j) {
            const int64_t z = w[0].start + i * p.dilation[0], r = w[1].start + j * p.dilation[1];
            join<Max>(x + (z * p.in[1] + r) * row, joined, row, zero);
        }
    A* const pixel = joined + row;
    for (int64_t c = 0; c < p.out[2]; ++c, y += channels) {
        w[2] = Taps(p, 2, c);
        std::fill_n(pixel, channels, kStart);
        for (int64_t k = w[2].from; k < w[2].to; ++k)
            join<Max>(joined + (w[2].start + k * p.dilation[2]) * channels, pixel, channels, 0);
        if constexpr (Max)
            std::copy_n(pixel, channels, y);
        else
            store_average(p, pixel, static_cast<float>(p.divisor != 0 ? p.divisor : divisor_of(p, w, p.counts_pad)),
                          channels, y);
    }
}

template <bool Max, class T, class A>
void run_pool(const Pool& p, const Call& call) {
    const int64_t rows = p.out[0] * p.out[1], row = p.out[2] * p.channels,
                  picture = p.in[0] * p.in[1] * p.in[2] * p.channels, room = (p.in[2] + 1) * p.channels;
    const int64_t each = p.in[2] * p.channels * p.kernel[0] * p.kernel[1];
    share(call.workers, p.batch * rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, each)),
          [&](int64_t begin, int64_t end, int worker) {
              auto* const joined = reinterpret_cast<A*>(call.scratch) + worker * room;
              for (int64_t i = begin; i < end; ++i)
                  pool_row<Max>(p, reinterpret_cast<const T*>(call.in[0]) + i / rows * picture,
                                reinterpret_cast<T*>(call.out[0]) + i * row, i % rows, joined);
          });
}

template <bool Max>
std::unique_ptr<Work> prepare_pool(const StepForm& form, std::string& fault) {
    Pool p;
    if (!read_pool(form, p, fault)) return nullptr;
    return work(
        [p](const Call& call) {
            if (p.dtype == DType::f32)
                run_pool<Max, float, float>(p, call);
            else if (p.dtype == DType::i8)
                run_pool<Max, int8_t, std::conditional_t<Max, int8_t, int32_t>>(p, call);
            else
                run_pool<Max, uint8_t, std::conditional_t<Max, uint8_t, int32_t>>(p, call);
        },
        (p.in[2] + 1) * p.channels * 4 * form.workers);
}

constexpr StepKind kPoolStepsKinds[] = {{"max_pool", prepare_pool<true>}, {"average_pool", prepare_pool<false>}};

}  // namespace

std::span<const StepKind> pool_kinds() { return kPoolStepsKinds; }

}  // namespace lunaria::lite
