// Positions along axes: checks and address arithmetic that gathers and scatters share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "backends/cpu/scratch.h"
#include "core/interrupt.h"
#include "core/op.h"

namespace lunaria::cpu {

// (outer, size, inner) around one axis of a dense tensor.
struct AxisSplit {
    int64_t outer = 1, size = 1, inner = 1;
    AxisSplit(const Shape& shape, int axis);
};

// `index` counted from 0; throws index_error when it is out of range for an axis of `size`.
int64_t checked_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what = "index");
// Parameter i as an axis of a tensor with `rank` axes.
int axis_of(const KernelCall& call, size_t i, int rank);
// All elements of a dense i64 tensor, checked.
Scratch<int64_t> checked_indices(const KernelCall& call, const Tensor& index, int64_t size);
// Element offsets of the points in the last axis of `indices`, in a dense tensor of `shape`.
Scratch<int64_t> point_offsets(const KernelCall& call, const Tensor& indices, const Shape& shape);
// Element offsets, for each position of `index`, of the element of a dense tensor of `shape` with that coordinate
// along `axis`.
Scratch<int64_t> element_offsets(const KernelCall& call, const Tensor& index, const Shape& shape, int axis);

// How many pieces of so many elements are done between two looks at an interrupt.
inline int64_t offsets_between_looks(int64_t elements) {
    return std::max<int64_t>(1, kElementsBetweenLooks / std::max<int64_t>(1, elements));
}

// The type in which values of T are combined.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float,
                                       std::conditional_t<std::is_same_v<T, bool>, int, T>>;

}  // namespace lunaria::cpu
