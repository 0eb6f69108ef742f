// Operators that only rearrange their operand's elements: one function over shape and strides gives both the inference
// rule and the view.
#pragma once

#include <type_traits>

#include "core/operator/infer.h"

namespace lunaria {

struct Layout {
    Shape shape;
    Strides strides;
    int64_t offset = 0;  // of the first element

    // Removes an axis, keeping the elements at `index` of it.
    void drop(int axis, int64_t index = 0) {
        offset += index * strides[axis];
        shape.erase(axis);
        strides.erase(axis);
    }
    void insert(int axis, int64_t size = 1, int64_t stride = 0) {
        shape.insert(axis, size);
        strides.insert(axis, stride);
    }
    // Keeps `count` elements of an axis from `start` on, `step` apart.
    void slice(int axis, int64_t start, int64_t count, int64_t step = 1) {
        if (count > 0) offset += start * strides[axis];
        shape[axis] = count;
        strides[axis] *= step;
    }
};

// Makes `op` a view of its first operand. `F` is a lambda without captures: void(const Call&, Layout&).
template <class F>
Op& rearranges(Op& op, F) {
    static_assert(std::is_empty_v<F>);
    return op
        .infer([](const Call& call) -> Types {
            TensorType t = call.type(0);
            Layout layout{t.shape, contiguous_strides(t.shape)};
            F{}(call, layout);
            return {{t.dtype, layout.shape}};
        })
        .view([](const Call& call) -> Value {
            const Tensor& t = call.args[0].tensor();
            Layout layout{t.shape(), t.strides()};
            F{}(call, layout);
            return Value(t.view(layout.shape, layout.strides, layout.offset));
        })
        .strided()
        .half_native();
}

// The same for operators that give several views: std::vector<Layout>(const Call&, const Layout&).
template <class F>
Op& divides(Op& op, F) {
    static_assert(std::is_empty_v<F>);
    return op
        .infer([](const Call& call) -> Types {
            TensorType t = call.type(0);
            Types types;
            for (const Layout& part : F{}(call, Layout{t.shape, contiguous_strides(t.shape)}))
                types.push_back({t.dtype, part.shape});
            return types;
        })
        .view([](const Call& call) -> Value {
            const Tensor& t = call.args[0].tensor();
            std::vector<Value> parts;
            for (const Layout& part : F{}(call, Layout{t.shape(), t.strides()}))
                parts.emplace_back(t.view(part.shape, part.strides, part.offset));
            return Value::list(std::move(parts));
        })
        .strided()
        .half_native();
}

// Applies begin, stop, strides and the masks begin, end, ellipsis, new_axis and shrink_axis, the parameters of `call`
// from `first` on, to a layout. Bit i of a mask belongs to entry i of the lists.
void slice_layout(const Call& call, size_t first, Layout& layout);

// The diagonal of axes dim1 and dim2 as a new last axis; `first`: the parameters offset, dim1, dim2.
void diagonal_layout(const Call& call, size_t first, Layout& layout);

// 0 of the operand's dtype, stretched to `shape` without taking memory.
inline Expr stretched_zero(Builder& b, DType dtype, const Shape& shape) {
    return b.call("full", {Shape{}, 0, dtype}).broadcast_to(shape);
}

// Axes of `rank` in their order.
inline Shape all_axes(int rank) {
    Shape axes;
    for (int i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
}

}  // namespace lunaria
