#include "core/run/memory_order.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/tensor/turned.h"

namespace lunaria {

namespace {
// Whether every element of the shape is one of the tensor's, none of them repeated along an axis.
bool has_all(const Tensor& t, const Shape& shape) {
    if (!(t.shape() == shape)) return false;
    for (int axis = 0; axis < t.rank(); ++axis)
        if (t.strides()[axis] == 0 && t.dim(axis) != 1) return false;
    return true;
}
}  // namespace

MemoryOrder::MemoryOrder(std::span<const Value> args, const Shape& shape) : shape_(shape) {
    std::iota(axes_.begin(), axes_.end(), 0);
    const auto full =
        std::ranges::find_if(args, [&](const Value& v) { return v.is_tensor() && has_all(v.tensor(), shape); });
    if (full == args.end() || full->tensor().is_contiguous()) return;
    const Tensor& t = full->tensor();
    // Axes of size 1 may have any stride: they stay where they are among the axes before them.
    std::array<int64_t, kMaxRank> steps{};
    for (int axis = t.rank() - 1, last = -1; axis >= 0; --axis) {
        const auto at = static_cast<size_t>(axis);
        steps[at] = t.dim(axis) != 1 ? std::abs(t.strides()[axis]) : last < 0 ? 0 : steps[static_cast<size_t>(last)];
        last = axis;
    }
    std::stable_sort(axes_.begin(), axes_.begin() + t.rank(),
                     [&](int a, int b) { return steps[static_cast<size_t>(a)] > steps[static_cast<size_t>(b)]; });
    row_major_ = std::is_sorted(axes_.begin(), axes_.begin() + t.rank());
}

Shape MemoryOrder::shape() const {
    Shape result;
    for (int i = 0; i < shape_.rank(); ++i) result.push_back(shape_[axes_[static_cast<size_t>(i)]]);
    return result;
}

std::vector<Value> MemoryOrder::arranged(std::span<const Value> args) const {
    std::vector<Value> result(args.begin(), args.end());
    for (Value& v : result) {
        if (!v.is_tensor() || v.tensor().rank() == 0) continue;
        const Tensor& t = v.tensor();
        // Axes that broadcasting puts before the others have size 1.
        const int missing = shape_.rank() - t.rank();
        Shape dims;
        Strides strides;
        for (int i = 0; i < shape_.rank(); ++i) {
            const int axis = axes_[static_cast<size_t>(i)] - missing;
            dims.push_back(axis < 0 ? 1 : t.dim(axis));
            strides.push_back(axis < 0 ? 0 : t.strides()[axis]);
        }
        v = Value(t.view(dims, strides));
    }
    return result;
}

Tensor MemoryOrder::restored(const Tensor& result) const {
    Strides strides = shape_;
    for (int i = 0; i < shape_.rank(); ++i) strides[axes_[static_cast<size_t>(i)]] = result.strides()[i];
    return turned(result, shape_, strides);
}

}  // namespace lunaria
