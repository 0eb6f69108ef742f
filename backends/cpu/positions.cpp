#include "backends/cpu/positions.h"

#include "core/base/interrupt.h"

namespace lunaria::cpu {

AxisSplit::AxisSplit(const Shape& shape, int axis) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    size = shape[axis];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
}

void refuse_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what) {
    if (size == 0) throw index_error(call.op.name(), str(what, " ", index, " is out of range: the axis is empty"));
    throw index_error(call.op.name(), str(what, " ", index, " is out of range for an axis of size ", size,
                                          ": it must be ", -size, " .. ", size - 1));
}

int axis_of(const KernelCall& call, size_t i, int rank) {
    return normal_axis(call.op.name(), call.args[i].integer(), rank, call.op.signature.params[i].name);
}

Scratch<int64_t> checked_indices(const KernelCall& call, const Tensor& index, int64_t size) {
    Scratch<int64_t> at(static_cast<size_t>(index.size()));
    const int64_t* given = index.data<int64_t>();
    for_elements(index.size(), [&](int64_t i) { at[static_cast<size_t>(i)] = checked_index(call, given[i], size); });
    return at;
}

Scratch<int64_t> point_offsets(const KernelCall& call, const Tensor& indices, const Shape& shape) {
    int64_t depth = indices.shape().back();
    Strides strides = contiguous_strides(shape);
    int64_t count = 1;
    for (int i = 0; i + 1 < indices.rank(); ++i) count *= indices.dim(i);
    Scratch<int64_t> offsets(static_cast<size_t>(count));
    const int64_t* index = indices.data<int64_t>();
    for_elements(count, [&](int64_t i) {
        int64_t offset = 0;
        for (int axis = 0; axis < depth; ++axis) offset += checked_index(call, *index++, shape[axis]) * strides[axis];
        offsets[static_cast<size_t>(i)] = offset;
    });
    return offsets;
}

ElementOffsets::ElementOffsets(const KernelCall& call, const Tensor& index, const Shape& shape, int axis)
    : call_(call),
      index_(index.data<int64_t>()),
      index_shape_(index.shape()),
      strides_(contiguous_strides(shape)),
      axis_(axis),
      last_(shape.rank() - 1),
      inner_(last_ < 0 ? 1 : index.shape().back()),
      rows_(index.size() == 0 ? 0 : index.size() / inner_),
      size_(last_ < 0 ? 1 : shape[axis]),
      step_(last_ < 0 ? 0 : strides_[axis]),
      along_(axis == last_ ? 0 : 1) {}

int64_t ElementOffsets::start_of(int64_t row) const {
    int64_t start = 0;
    for (int i = last_ - 1; i >= 0; --i) {
        if (i != axis_) start += row % index_shape_[i] * strides_[i];
        row /= index_shape_[i];
    }
    return start;
}

}  // namespace lunaria::cpu
