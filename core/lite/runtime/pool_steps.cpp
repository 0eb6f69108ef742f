// Pooling, channels-last: (batch, [depth, [height,]] width, channels).
#include <cstring>
#include <limits>

#include "core/lite/runtime/step.h"

namespace lunaria::lite {

namespace {

struct Pool {
    int64_t batch = 1, channels = 1;
    int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};
    int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0},
            after[3] = {0, 0, 0};
    bool counts_pad = true;
    int64_t divisor = 0;
};

void read_three(const StepForm& form, std::string_view name, int64_t (&to)[3]) {
    const std::vector<int64_t> list = form.integers(name);
    for (size_t i = 0; i < list.size() && i < 3; ++i) to[3 - std::min<size_t>(3, list.size()) + i] = list[i];
}

bool read_pool(const StepForm& form, Pool& p, std::string& fault) {
    if (form.in.size() != 1 || form.out.empty()) {
        fault = "it lacks operands";
        return false;
    }
    const Operand &x = form.in[0], &y = form.out[0];
    const size_t rank = x.shape.size();
    if (rank < 3 || rank > 5 || y.shape.size() != rank || !x.is_dense() || !y.is_dense() || x.dtype != DType::f32 ||
        y.dtype != DType::f32 || x.shape[0] != y.shape[0] || x.shape.back() != y.shape.back()) {
        fault = "its operands do not fit";
        return false;
    }
    p.batch = x.shape[0];
    p.channels = x.shape.back();
    for (size_t i = 1; i + 1 < rank; ++i) {
        p.in[4 - rank + i] = x.shape[i];
        p.out[4 - rank + i] = y.shape[i];
    }
    read_three(form, "kernel", p.kernel);
    read_three(form, "stride", p.stride);
    read_three(form, "dilation", p.dilation);
    read_three(form, "pad", p.pad);
    std::copy(std::begin(p.pad), std::end(p.pad), p.after);
    read_three(form, "pad_after", p.after);
    p.counts_pad = form.integer("count_include_pad", 1) != 0;
    p.divisor = form.integer("divisor");
    for (int i = 0; i < 3; ++i)
        if (p.kernel[i] < 1 || p.stride[i] < 1 || p.dilation[i] < 1 || p.pad[i] < 0 || p.kernel[i] > (1 << 24) ||
            p.dilation[i] > (1 << 24) || p.stride[i] > (1 << 24) || p.pad[i] > (1 << 24)) {
            fault = "its attributes do not fit";
            return false;
        }
    return true;
}

// The pixels of a window along an axis that lie in the picture: first, last + 1, as numbers of its elements.
struct Window {
    int64_t from = 0, to = 0, start = 0;
};
Window window_of(const Pool& p, int axis, int64_t at) {
    Window w;
    w.start = at * p.stride[axis] - p.pad[axis];
    const int64_t d = p.dilation[axis];
    w.from = w.start < 0 ? (-w.start + d - 1) / d : 0;
    w.to = w.start >= p.in[axis] ? 0 : std::min(p.kernel[axis], (p.in[axis] - w.start + d - 1) / d);
    return w;
}

template <bool Max>
void join(const float* x, float* y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if constexpr (Max)
            y[i] = (x[i] > y[i]) | (x[i] != x[i]) ? x[i] : y[i];
        else
            y[i] += x[i];
    }
}

template <bool Max>
void pool_pixel(const Pool& p, const float* x, float* y, int64_t pixel) {
    int64_t at[3], rest = pixel;
    for (int axis = 2; axis >= 0; --axis) {
        at[axis] = rest % p.out[axis];
        rest /= p.out[axis];
    }
    const Window d = window_of(p, 0, at[0]), h = window_of(p, 1, at[1]), w = window_of(p, 2, at[2]);
    std::fill_n(y, p.channels, Max ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (int64_t i = d.from; i < d.to; ++i)
        for (int64_t j = h.from; j < h.to; ++j)
            for (int64_t k = w.from; k < w.to; ++k) {
                const int64_t z = d.start + i * p.dilation[0], r = h.start + j * p.dilation[1],
                              c = w.start + k * p.dilation[2];
                join<Max>(x + ((z * p.in[1] + r) * p.in[2] + c) * p.channels, y, p.channels);
            }
    if constexpr (!Max) {
        int64_t count = p.divisor;
        if (count == 0 && p.counts_pad) {
            count = 1;
            const Window* windows[] = {&d, &h, &w};
            for (int axis = 0; axis < 3; ++axis)
                count *= std::max<int64_t>(0, std::min(windows[axis]->start + p.kernel[axis] * p.dilation[axis],
                                                       p.in[axis] + p.after[axis]) -
                                                  windows[axis]->start) /
                         p.dilation[axis];
        } else if (count == 0) {
            count = std::max<int64_t>(0, d.to - d.from) * std::max<int64_t>(0, h.to - h.from) *
                    std::max<int64_t>(0, w.to - w.from);
        }
        const float factor = count > 0 ? 1.0f / static_cast<float>(count) : std::numeric_limits<float>::quiet_NaN();
        const auto divisor = static_cast<float>(count);
        if (count > 0 && (count & (count - 1)) == 0)
            for (int64_t i = 0; i < p.channels; ++i) y[i] *= factor;
        else
            for (int64_t i = 0; i < p.channels; ++i) y[i] /= divisor;
    }
}

template <bool Max>
std::unique_ptr<Work> prepare_pool(const StepForm& form, std::string& fault) {
    Pool p;
    if (!read_pool(form, p, fault)) return nullptr;
    return work([p](const Call& call) {
        const auto* const x = reinterpret_cast<const float*>(call.in[0]);
        auto* const y = reinterpret_cast<float*>(call.out[0]);
        const int64_t pixels = p.out[0] * p.out[1] * p.out[2], picture = p.in[0] * p.in[1] * p.in[2] * p.channels;
        const int64_t each = p.channels * p.kernel[0] * p.kernel[1] * p.kernel[2];
        share(call.workers, p.batch * pixels, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, each)),
              [&](int64_t begin, int64_t end, int) {
                  for (int64_t i = begin; i < end; ++i)
                      pool_pixel<Max>(p, x + i / pixels * picture, y + i * p.channels, i % pixels);
              });
    });
}

constexpr StepKind kKinds[] = {{"max_pool", prepare_pool<true>}, {"average_pool", prepare_pool<false>}};

}  // namespace

std::span<const StepKind> pool_kinds() { return kKinds; }

}  // namespace lunaria::lite
