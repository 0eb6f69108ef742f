// Positions along axes: checks and address arithmetic for gathers and scatters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "backends/cpu/scratch.h"
#include "core/base/interrupt.h"
#include "core/operator/op.h"

namespace lunaria::cpu {

// (outer, size, inner) around one axis of a dense tensor.
struct AxisSplit {
    int64_t outer = 1, size = 1, inner = 1;
    AxisSplit(const Shape& shape, int axis);
};

[[noreturn]] void refuse_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what);
// `index` counted from 0; throws index_error when it is out of range for an axis of `size`.
inline int64_t checked_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what = "index") {
    const int64_t at = index < 0 ? index + size : index;
    if (static_cast<uint64_t>(at) >= static_cast<uint64_t>(size)) [[unlikely]]
        refuse_index(call, index, size, what);
    return at;
}
// Parameter i as an axis of a tensor with `rank` axes.
int axis_of(const KernelCall& call, size_t i, int rank);
// All elements of a dense i64 tensor, checked.
Scratch<int64_t> checked_indices(const KernelCall& call, const Tensor& index, int64_t size);
// Element offsets of the points in the last axis of `indices`, in a dense tensor of `shape`.
Scratch<int64_t> point_offsets(const KernelCall& call, const Tensor& indices, const Shape& shape);

// For each position of a dense `index`, the element with that coordinate along `axis` in a dense tensor of `shape`.
class ElementOffsets {
  public:
    ElementOffsets(const KernelCall& call, const Tensor& index, const Shape& shape, int axis);
    // The positions along the index's last axis are a row.
    int64_t rows() const { return rows_; }
    int64_t row_length() const { return inner_; }

    // Calls f(position in the index, offset of the element) for some rows. The loops read only local variables, and so
    // should f: a write by f could change anything else.
    template <class F>
    void visit(int64_t begin, int64_t end, F f) const {
        const int64_t size = size_, step = step_, along = along_, inner = inner_;
        int64_t looked = 0;
        for (int64_t row = begin; row < end; ++row) {
            const int64_t start = start_of(row);
            for (int64_t from = 0; from < inner; from += kElementsBetweenLooks) {
                const int64_t to = std::min(inner, from + kElementsBetweenLooks), first = row * inner;
                const int64_t* const index = index_ + first;
                if (step == 1 && along == 0)
#pragma GCC unroll 4
                    for (int64_t j = from; j < to; ++j) f(first + j, start + checked_index(call_, index[j], size));
                else
                    for (int64_t j = from; j < to; ++j)
                        f(first + j, start + checked_index(call_, index[j], size) * step + along * j);
                looked += to - from;
                if (looked < kElementsBetweenLooks) continue;
                poll_interrupt();
                looked = 0;
            }
        }
    }

  private:
    int64_t start_of(int64_t row) const;

    const KernelCall& call_;
    const int64_t* index_;
    Shape index_shape_;
    Strides strides_;
    int axis_, last_;
    int64_t inner_, rows_, size_, step_, along_;
};

// The number of pieces of so many elements between two looks at an interrupt.
inline int64_t offsets_between_looks(int64_t elements) {
    return std::max<int64_t>(1, kElementsBetweenLooks / std::max<int64_t>(1, elements));
}

// The type in which values of T are combined.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                       std::conditional_t<std::is_same_v<T, bool>, int, T>>;

}  // namespace lunaria::cpu
