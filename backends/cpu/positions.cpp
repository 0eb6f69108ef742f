#include "backends/cpu/positions.h"

#include "core/interrupt.h"
#include "core/threads.h"

namespace lunaria::cpu {

AxisSplit::AxisSplit(const Shape& shape, int axis) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    size = shape[axis];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
}

namespace {
[[noreturn]] void out_of_range(const KernelCall& call, int64_t index, int64_t size, std::string_view what) {
    if (size == 0) throw index_error(call.op.name(), str(what, " ", index, " is out of range: the axis is empty"));
    throw index_error(call.op.name(), str(what, " ", index, " is out of range for an axis of size ", size,
                                          ": it must be ", -size, " .. ", size - 1));
}
}  // namespace

int64_t checked_index(const KernelCall& call, int64_t index, int64_t size, std::string_view what) {
    if (index < -size || index >= size) out_of_range(call, index, size, what);
    return index < 0 ? index + size : index;
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

Scratch<int64_t> element_offsets(const KernelCall& call, const Tensor& index, const Shape& shape, int axis) {
    Strides strides = contiguous_strides(shape);
    Scratch<int64_t> offsets(static_cast<size_t>(index.size()));
    if (offsets.empty()) return offsets;
    int last = shape.rank() - 1;
    int64_t inner = last < 0 ? 1 : index.shape().back(), size = last < 0 ? 1 : shape[axis];
    int64_t step = last < 0 ? 0 : strides[axis], along = axis == last ? 0 : 1;
    const int64_t* value = index.data<int64_t>();
    parallel_for(index.size() / inner, std::max<int64_t>(32 * 1024 / inner, 1), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
            int64_t base = 0, rest = row;
            for (int i = last - 1; i >= 0; --i) {
                if (i != axis) base += rest % index.dim(i) * strides[i];
                rest /= index.dim(i);
            }
            for (int64_t j = row * inner; j < (row + 1) * inner; ++j)
                offsets[static_cast<size_t>(j)] =
                    base + checked_index(call, value[j], size) * step + along * (j - row * inner);
        }
    });
    return offsets;
}

}  // namespace lunaria::cpu
