// The walk of reductions and of operations along an axis over dense tensors.
#pragma once

#include <algorithm>
#include <array>

#include "backends/cpu/kernel_table.h"
#include "core/loops/sum_order.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

// The axes of a dense tensor seen as outer × n × inner around one axis: element k of line (o, i) is at
// (o * n + k) * inner + i.
struct AxisView {
    int64_t outer = 1, n = 1, inner = 1;

    AxisView(const Shape& shape, int axis) {
        for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : i == axis ? n : inner) *= shape[i];
    }
    int64_t start(int64_t line) const { return inner == 1 ? line * n : line / inner * n * inner + line % inner; }
    int64_t lines() const { return outer * inner; }
};

// The lines along the axis that argument `i` names; a 0-d tensor is one line of one element.
inline AxisView axis_view(const KernelCall& c, size_t i, size_t of = 0) {
    const Shape& shape = c.tensor(of).shape();
    if (shape.rank() == 0) return {shape, 0};
    return {shape, normal_axis(c.op.name(), c.args[i].integer(), shape.rank())};
}

// In double, so that squares of large floats do not overflow; doubles themselves are scaled by the largest.
bool vector_norm_plain(const KernelCall& c);

// For zeros of either sign the order of comparisons would decide which is the extremum.
template <class T>
T without_sign_of_zero(T x) {
    if constexpr (std::is_floating_point_v<T>) x += T(0);
    return x;
}

// A dense tensor split into kept and reduced axes; axes of size 1 are dropped and neighbours of one kind merged, so
// that most reductions have one axis of each kind.
struct ReduceLayout {
    int64_t outputs = 1, count = 1;  // number of results, and of elements for each
    Shape kept, kept_strides, reduced, reduced_strides;

    ReduceLayout(const Shape& shape, const Shape& axes) {
        int last_kind = -1;
        int64_t stride = 1;
        Shape sizes[2], strides[2];  // kept, reduced; innermost first
        for (int i = shape.rank() - 1; i >= 0; --i) {
            int kind = std::find(axes.begin(), axes.end(), i) != axes.end();
            (kind ? count : outputs) *= shape[i];
            if (shape[i] != 1) {
                if (kind == last_kind) {
                    sizes[kind][sizes[kind].rank() - 1] *= shape[i];
                } else {
                    sizes[kind].push_back(shape[i]);
                    strides[kind].push_back(stride);
                }
                last_kind = kind;
            }
            stride *= shape[i];
        }
        auto reversed = [](const Shape& s) {
            Shape r;
            for (int i = s.rank() - 1; i >= 0; --i) r.push_back(s[i]);
            return r;
        };
        kept = reversed(sizes[0]);
        kept_strides = reversed(strides[0]);
        reduced = reversed(sizes[1]);
        reduced_strides = reversed(strides[1]);
    }

    // Of complex numbers, each part of which is reduced by itself: their parts.
    ReduceLayout of_parts() const {
        ReduceLayout l = *this;
        for (int i = 0; i < kept.rank(); ++i) l.kept_strides[i] *= 2;
        for (int i = 0; i < reduced.rank(); ++i) l.reduced_strides[i] *= 2;
        l.outputs *= 2;
        const int last = kept.rank() - 1;
        if (last >= 0 && kept_strides[last] == 1) {
            l.kept[last] *= 2;
            l.kept_strides[last] = 1;
        } else {
            l.kept.push_back(2);
            l.kept_strides.push_back(1);
        }
        return l;
    }

    // The offset of a result's first element.
    int64_t start(int64_t output) const {
        int64_t offset = 0;
        for (int i = kept.rank() - 1; i >= 0; --i) {
            offset += output % kept[i] * kept_strides[i];
            output /= kept[i];
        }
        return offset;
    }

    // Calls f(offset, n, stride) for the runs of elements of the result that starts at `start`, in row-major order.
    template <class F>
    void runs(int64_t start, F f) const {
        if (count == 0) return;
        int last = reduced.rank() - 1;
        if (last < 0) return f(start, int64_t{1}, int64_t{1});
        std::array<int64_t, kMaxRank> index{};
        for (int64_t left = count / reduced[last]; left > 0; --left) {
            int64_t offset = start;
            for (int i = 0; i < last; ++i) offset += index[static_cast<size_t>(i)] * reduced_strides[i];
            f(offset, reduced[last], reduced_strides[last]);
            for (int i = last - 1; i >= 0; --i) {
                if (++index[static_cast<size_t>(i)] < reduced[i]) break;
                index[static_cast<size_t>(i)] = 0;
            }
        }
    }

    // Joins value(offset) over all elements of the result that starts at `start`, in the order of
    // core/loops/sum_order.h: groups of four in their own type, then as numbers of type A.
    template <class A, class Value, class Join>
    A total(int64_t start, A identity, Value value, Join join) const {
        const int64_t lanes = lanes_of_sum(reduced.rank() > 0 ? reduced_strides.back() : 1), size = kSumRows * lanes;
        A total = identity;
        runs(start, [&](int64_t offset, int64_t n, int64_t stride) {
            A run = identity;
            for (int64_t block = 0; block < n; block += size) {
                const int64_t end = std::min(n, block + size);
                std::array<A, kSumLanes> lane;
                lane.fill(identity);
                auto at = [&](int64_t j) { return value(offset + j * stride); };
                for (int64_t l = 0; l < lanes; ++l)
                    for (int64_t j = block + l; j < end; j += kSumLeaf * lanes) {
                        auto leaf = at(j);
                        if (j + lanes < end) leaf = join(leaf, at(j + lanes));
                        if (j + 3 * lanes < end)
                            leaf = join(leaf, join(at(j + 2 * lanes), at(j + 3 * lanes)));
                        else if (j + 2 * lanes < end)
                            leaf = join(leaf, at(j + 2 * lanes));
                        A& sum = lane[static_cast<size_t>(l)];
                        sum = join(sum, static_cast<A>(leaf));
                    }
                join_lanes(lane.data(), lanes, 1, join);
                run = join(run, lane[0]);
            }
            total = join(total, run);
        });
        return total;
    }
};

// results[i] = totals[i] / count.
template <class T>
void store_results(const double* totals, int64_t n, int64_t count, T* results) {
    const double divisor = static_cast<double>(count), inverse = 1 / divisor;
    // The inverse of a power of two is exact, and a division takes longer than to add up a short row.
    if ((count & (count - 1)) == 0) {
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) results[i] = static_cast<T>(totals[i] * inverse);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) results[i] = static_cast<T>(totals[i] / divisor);
    }
}

// The layout of a reduction of argument 0 over the axes in argument 1.
inline ReduceLayout reduce_layout(const KernelCall& c, size_t axes = 1) {
    return {c.tensor(0).shape(), Call(c.op, c.args, c.dtype).axes(axes, 0)};
}

void add_scan_kernels(KernelTable& table);

}  // namespace lunaria::cpu
