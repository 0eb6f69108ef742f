// Copies between tensors of any layout. Axes are ordered as the target lies in memory and merged where both sides allow
// it; the innermost part is then a run of bytes, a run of one value, a transpose of two axes, or single elements.
#include "backends/cpu/copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/short_copy.h"
#include "core/base/interrupt.h"
#include "core/threads/threads.h"

namespace lunaria::cpu {

namespace {

// The number of bytes that is worth waking a thread for.
constexpr int64_t kThreadBytes = 256 * 1024;
// Larger results do not stay in the cache anyway: writing around it saves reading them first.
constexpr int64_t kStreamBytes = 4 * 1024 * 1024;

struct CopyPlan {
    int rank = 0;
    std::array<int64_t, kMaxRank> dims{}, in{}, out{};  // strides in elements
    const char* from = nullptr;
    char* to = nullptr;
    int64_t width = 4;  // bytes of an element

    CopyPlan(const Tensor& source, const Tensor& target, const Shape& shape, const Strides& in_strides,
             const Strides& out_strides)
        : from(static_cast<const char*>(source.raw())),
          to(static_cast<char*>(target.raw())),
          width(static_cast<int64_t>(size_of(source.dtype()))) {
        std::array<int, kMaxRank> order{};
        int axes = 0;
        for (int axis = 0; axis < shape.rank(); ++axis)
            if (shape[axis] != 1) order[static_cast<size_t>(axes++)] = axis;
        std::stable_sort(order.begin(), order.begin() + axes,
                         [&](int a, int b) { return std::abs(out_strides[a]) > std::abs(out_strides[b]); });
        for (int k = 0; k < axes; ++k) {
            int axis = order[static_cast<size_t>(k)];
            auto last = static_cast<size_t>(rank - 1);
            bool merge =
                rank > 0 && in[last] == in_strides[axis] * shape[axis] && out[last] == out_strides[axis] * shape[axis];
            if (!merge) last = static_cast<size_t>(rank++);
            dims[last] = merge ? dims[last] * shape[axis] : shape[axis];
            in[last] = in_strides[axis];
            out[last] = out_strides[axis];
        }
        if (rank == 0) {
            dims[0] = in[0] = out[0] = 1;
            rank = 1;
        }
    }
    // Where the axis before the last one is short, pieces of the axis before that come after it: more rows to go
    // through by steps. Without a fitting piece the axes change places.
    void lengthen_rows() {
        if (rank < 3 || rank >= kMaxRank) return;
        const auto outer = static_cast<size_t>(rank - 3), at = static_cast<size_t>(rank);
        if (dims[outer + 1] >= 8 || dims[outer] <= dims[outer + 1]) return;
        const int64_t common = std::gcd(dims[outer], int64_t{256}), piece = common < 8 ? dims[outer] : common;
        for (auto* a : {&dims, &in, &out}) {
            (*a)[at] = (*a)[at - 1];
            (*a)[at - 1] = (*a)[outer];
        }
        dims[at - 1] = piece;
        dims[outer] /= piece;
        in[outer] *= piece;
        out[outer] *= piece;
        ++rank;
    }
    int64_t last(const std::array<int64_t, kMaxRank>& a) const { return a[static_cast<size_t>(rank - 1)]; }
};

// Moves through the positions of some axes, keeping both offsets.
struct Odometer {
    const CopyPlan& plan;
    int axes;  // the first `axes` axes
    std::array<int64_t, kMaxRank> at{};
    int64_t in = 0, out = 0;

    Odometer(const CopyPlan& p, int n, int64_t start) : plan(p), axes(n) {
        for (int i = axes - 1; i >= 0; --i) {
            auto k = static_cast<size_t>(i);
            at[k] = start % plan.dims[k];
            start /= plan.dims[k];
            in += at[k] * plan.in[k];
            out += at[k] * plan.out[k];
        }
    }
    void next() {
        for (int i = axes - 1; i >= 0; --i) {
            auto k = static_cast<size_t>(i);
            in += plan.in[k];
            out += plan.out[k];
            if (++at[k] < plan.dims[k]) return;
            in -= plan.dims[k] * plan.in[k];
            out -= plan.dims[k] * plan.out[k];
            at[k] = 0;
        }
    }
};

// Complex numbers of 16 bytes, which move one by one.
struct Wide {
    uint64_t low, high;
    friend bool operator==(Wide a, int zero) { return zero == 0 && (a.low | a.high) == 0; }
};

template <class T>
constexpr int kLogWidth = sizeof(T) == 1   ? 0
                          : sizeof(T) == 2 ? 1
                          : sizeof(T) == 4 ? 2
                                           : 3;

template <class T>
constexpr bool kHasLoops = sizeof(T) <= 8;

// Elements below which a call costs more than wide registers save.
constexpr int64_t kShortRun = 32;

template <class T>
void copy_run(const T* from, int64_t in, T* to, int64_t out, int64_t count) {
    if (in == 1 && out == 1) {
        if (count * static_cast<int64_t>(sizeof(T)) >= 64) {
            std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
            return;
        }
        for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    } else if (in == 0 && out == 1) {
        T value = *from;
        if (value == 0)
            std::memset(to, 0, static_cast<size_t>(count) * sizeof(T));
        else if (count < kShortRun || !kHasLoops<T>)
            std::fill(to, to + count, value);
        else
            copy_loops().fill[kLogWidth<T>](from, to, count);
    } else if (in == -1 && out == 1 && count >= kShortRun && kHasLoops<T>) {
        copy_loops().reverse[kLogWidth<T>](from, to, count);
    } else if (in == 2 && out == 1 && count >= kShortRun && kHasLoops<T>) {
        copy_loops().every_other[kLogWidth<T>](from, to, count);
    } else if (out == 1) {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * in];
    } else {
        for (int64_t i = 0; i < count; ++i) to[i * out] = from[i * in];
    }
}

// The number of elements of a row between two looks at an interrupt.
constexpr int64_t kLongRun = 1 << 20;

template <class T>
void copy_rows(CopyPlan plan) {
    if (plan.last(plan.dims) * plan.width < kShortBytes) plan.lengthen_rows();
    auto* from = reinterpret_cast<const T*>(plan.from);
    auto* to = reinterpret_cast<T*>(plan.to);
    int64_t inner = plan.last(plan.dims), in = plan.last(plan.in), out = plan.last(plan.out);
    if (plan.rank == 1) {
        parallel_for(inner, kThreadBytes / plan.width, 64, [&](int64_t begin, int64_t end) {
            copy_run(from + begin * in, in, to + begin * out, out, end - begin);
        });
        return;
    }
    int64_t rows = 1;
    for (int i = 0; i + 1 < plan.rank; ++i) rows *= plan.dims[static_cast<size_t>(i)];
    if (inner * plan.width < kShortBytes) {
        // The rows of the last two axes together.
        const auto second = static_cast<size_t>(plan.rank - 2);
        const int64_t together = plan.dims[second], from_row = plan.in[second], to_row = plan.out[second];
        parallel_for(rows, std::max<int64_t>(kThreadBytes / (inner * plan.width), 1), [&](int64_t begin, int64_t end) {
            Odometer odometer(plan, plan.rank - 2, begin / together);
            for (int64_t row = begin; row < end; odometer.next()) {
                const int64_t at = row % together, count = std::min(end - row, together - at);
                in_ranges(count, kLongRun / inner, [&](int64_t first, int64_t last) {
                    const T* const source = from + odometer.in + (at + first) * from_row;
                    T* const target = to + odometer.out + (at + first) * to_row;
                    copy_short_rows(source, from_row, in, target, to_row, out, last - first, inner);
                });
                row += count;
            }
        });
        return;
    }
    parallel_for(rows, std::max<int64_t>(kThreadBytes / (inner * plan.width), 1), [&](int64_t begin, int64_t end) {
        Odometer odometer(plan, plan.rank - 1, begin);
        for (int64_t row = begin; row < end; ++row, odometer.next())
            in_ranges(inner, kLongRun, [&](int64_t first, int64_t last) {
                copy_run(from + odometer.in + first * in, in, to + odometer.out + first * out, out, last - first);
            });
    });
}

// The axis along which the source is dense, where the target's dense axis is another one; otherwise -1. It may be as
// short as the numbers of one pixel if these become long planes.
int transposed_axis(const CopyPlan& plan) {
    if (plan.rank < 2 || plan.width > 8 || plan.last(plan.out) != 1 || plan.last(plan.in) < 2 ||
        plan.last(plan.dims) < 4)
        return -1;
    for (int i = 0; i + 1 < plan.rank; ++i) {
        auto k = static_cast<size_t>(i);
        const bool pixels = plan.dims[k] == plan.last(plan.in) && plan.last(plan.dims) >= 64;
        if (plan.in[k] == 1 && (plan.dims[k] >= 4 || pixels) && plan.out[k] > 0) return i;
    }
    return -1;
}

// Axis `axis` runs along the source's rows, the last one along the target's.
void copy_transposed(CopyPlan plan, int axis) {
    auto column = static_cast<size_t>(axis), last = static_cast<size_t>(plan.rank - 1);
    int64_t columns = plan.dims[column], rows = plan.dims[last];
    int64_t from_stride = plan.in[last], to_stride = plan.out[column];
    // Tiles keep the number of pages in use small; at the edges of the tensor they are smaller. Few columns make long
    // ones.
    constexpr int64_t kSide = 128;
    const int64_t side = columns <= 8 ? 16 * kSide : kSide;
    int64_t down = (rows + side - 1) / side, across = (columns + kSide - 1) / kSide;
    int64_t batches = 1;
    CopyPlan outer = plan;
    outer.rank = 0;
    for (int i = 0; i + 1 < plan.rank; ++i) {
        if (i == axis) continue;
        auto k = static_cast<size_t>(i), to = static_cast<size_t>(outer.rank++);
        outer.dims[to] = plan.dims[k];
        outer.in[to] = plan.in[k];
        outer.out[to] = plan.out[k];
        batches *= plan.dims[k];
    }
    int64_t bytes = batches * rows * columns * plan.width;
    bool stream =
        bytes >= kStreamBytes && reinterpret_cast<uintptr_t>(plan.to) % 64 == 0 && to_stride * plan.width % 64 == 0;
    for (int i = 0; i < outer.rank; ++i) stream &= outer.out[static_cast<size_t>(i)] * plan.width % 64 == 0;
    int log_width = plan.width == 1 ? 0 : plan.width == 2 ? 1 : plan.width == 4 ? 2 : 3;
    TransposeLoop loop = copy_loops().transpose[log_width];
    int64_t tile_bytes = std::min(rows, side) * std::min(columns, kSide) * plan.width;
    parallel_for(
        batches * down * across, std::max<int64_t>(kThreadBytes / tile_bytes, 1), [&](int64_t begin, int64_t end) {
            for (int64_t tile = begin; tile < end; ++tile) {
                // Each tile may be the first to touch some large pages, which the system then fills with zeros.
                poll_interrupt();
                Odometer batch(outer, outer.rank, tile / (down * across));
                int64_t r = tile / across % down * side, c = tile % across * kSide;
                const char* from = plan.from + (batch.in + r * from_stride + c) * plan.width;
                char* to = plan.to + (batch.out + c * to_stride + r) * plan.width;
                loop(from, from_stride, to, to_stride, std::min(side, rows - r), std::min(kSide, columns - c), stream);
            }
        });
}

void copy_same_dtype(const Tensor& source, const Tensor& target) {
    Shape shape = source.is_contiguous() && !target.is_contiguous() ? target.shape() : source.shape();
    Strides dense = contiguous_strides(shape);
    CopyPlan plan(source, target, shape, source.is_contiguous() ? dense : source.strides(),
                  target.is_contiguous() ? dense : target.strides());
    if (int axis = transposed_axis(plan); axis >= 0) return copy_transposed(plan, axis);
    switch (plan.width) {
        case 1:
            return copy_rows<uint8_t>(plan);
        case 2:
            return copy_rows<uint16_t>(plan);
        case 4:
            return copy_rows<uint32_t>(plan);
        case 8:
            return copy_rows<uint64_t>(plan);
        default:
            return copy_rows<Wide>(plan);
    }
}

}  // namespace

const CopyLoops& copy_loops() {
    switch (current_isa()) {
        case Isa::avx512:
            return avx512::copy_loops;
        case Isa::avx2:
            return avx2::copy_loops;
        default:
            return v2::copy_loops;
    }
}

bool fast_copy(const Tensor& source, const Tensor& target) {
    if (source.size() == 0) return true;
    if (source.dtype() == target.dtype()) {
        copy_same_dtype(source, target);
        return true;
    }
    const DType half_way = is_half(source.dtype()) || is_half(target.dtype()) ? DType::f32 : target.dtype();
    const ConvertLoop first = find_conversion(source.dtype(), half_way);
    const ConvertLoop second = half_way == target.dtype() ? nullptr : find_conversion(half_way, target.dtype());
    if (source.dtype() != half_way && !first) return false;
    if (half_way != target.dtype() && !second) return false;
    Tensor from = source.contiguous();
    Tensor to = target.is_contiguous() ? target : Tensor::empty(target.dtype(), target.shape());
    auto in_size = static_cast<int64_t>(size_of(from.dtype())), out_size = static_cast<int64_t>(size_of(to.dtype()));
    parallel_for(from.size(), 64 * 1024, 64, [&](int64_t begin, int64_t end) {
        const char* in = from.data<char>() + begin * in_size;
        char* out = to.data<char>() + begin * out_size;
        if (!first || !second) return (first ? first : second)(in, out, end - begin);
        constexpr int64_t kBlock = 1024;
        float between[kBlock];
        for (int64_t left = end - begin; left > 0; left -= kBlock, in += kBlock * in_size, out += kBlock * out_size) {
            first(in, between, std::min(left, kBlock));
            second(between, out, std::min(left, kBlock));
        }
    });
    if (!to.same_body(target)) copy_same_dtype(to, target);
    return true;
}

}  // namespace lunaria::cpu
