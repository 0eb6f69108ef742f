#include "core/tensor/shape.h"

#include <algorithm>

#include "core/base/error.h"

namespace lunaria {

namespace {
[[noreturn]] void too_many_axes(std::string_view where, size_t rank) {
    throw shape_error(where, str("a tensor has at most ", kMaxRank, " axes, not ", rank));
}
}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
    if (dims.size() > kMaxRank) too_many_axes("shape", dims.size());
    std::copy(dims.begin(), dims.end(), dims_.begin());
    rank_ = static_cast<uint8_t>(dims.size());
}

void Shape::push_back(int64_t dim) { insert(rank_, dim); }

void Shape::insert(int axis, int64_t dim) {
    if (rank_ >= kMaxRank) too_many_axes("shape", kMaxRank + 1);
    auto at = dims_.begin() + axis;
    std::copy_backward(at, dims_.begin() + rank_, dims_.begin() + rank_ + 1);
    *at = dim;
    ++rank_;
}

void Shape::erase(int axis) {
    std::copy(dims_.begin() + axis + 1, dims_.begin() + rank_, dims_.begin() + axis);
    --rank_;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '(';
    for (int i = 0; i < shape.rank(); ++i) {
        if (i) out << ", ";
        if (shape[i] == kUnknownDim)
            out << '?';
        else
            out << shape[i];
    }
    return out << ')';
}

Strides contiguous_strides(const Shape& shape) {
    Strides strides;
    strides.resize(shape.rank());
    uint64_t step = 1;  // unsigned: it may overflow in an empty shape, whose strides are never followed
    for (int i = shape.rank() - 1; i >= 0; --i) {
        strides[i] = static_cast<int64_t>(step);
        step *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
    }
    return strides;
}

Shape checked_shape(std::string_view where, std::span<const int64_t> dims, size_t element_size) {
    if (dims.size() > kMaxRank) too_many_axes(where, dims.size());
    int64_t bytes = static_cast<int64_t>(element_size);
    bool overflow = false, empty = false;
    for (size_t i = 0; i < dims.size(); ++i) {
        if (dims[i] < 0)
            throw shape_error(where, str("the size of axis ", i, " of the shape is negative (", dims[i], ")"));
        if (dims[i] == 0)
            empty = true;
        else
            overflow |= __builtin_mul_overflow(bytes, dims[i], &bytes);
    }
    if (overflow && !empty) {
        std::string text = "(";
        for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
        throw shape_error(where, "the shape " + text +
                                     ") is too large: its size in bytes overflows 63 bits, it has too many elements");
    }
    return Shape(dims);
}

int normal_axis(std::string_view where, int64_t axis, int rank, std::string_view argument) {
    int64_t normal = axis < 0 ? axis + rank : axis;
    if (normal >= 0 && normal < rank) return static_cast<int>(normal);
    if (rank == 0) throw index_error(where, str(argument, " ", axis, " is out of range: the tensor has no axes"));
    throw index_error(where, str(argument, " ", axis, " is out of range for a tensor of ", rank, " axes: axes are ",
                                 -rank, " .. ", rank - 1));
}

Shape normal_axes(std::string_view where, std::span<const int64_t> axes, int rank, std::string_view argument) {
    Shape result;
    for (int64_t axis : axes) {
        int normal = normal_axis(where, axis, rank, argument);
        if (std::find(result.begin(), result.end(), normal) != result.end())
            throw value_error(where, str(argument, " names axis ", normal, " twice (a duplicate axis)"));
        result.push_back(normal);
    }
    return result;
}

Shape broadcast(std::string_view where, const Shape& a, const Shape& b) {
    if (a == b) return a;
    const Shape& longer = a.rank() >= b.rank() ? a : b;
    const Shape& shorter = a.rank() >= b.rank() ? b : a;
    Shape result = longer;
    int shift = longer.rank() - shorter.rank();
    for (int i = 0; i < shorter.rank(); ++i) {
        int64_t x = longer[i + shift], y = shorter[i];
        if (x == y || y == 1) continue;
        if (x == 1)
            result[i + shift] = y;
        else if (x == kUnknownDim || y == kUnknownDim)
            result[i + shift] = std::max(x, y);
        else
            throw shape_error(
                where,
                str("shapes ", a, " and ", b, " do not broadcast: axis ", i + shift - longer.rank(), " has sizes ",
                    a[i + shift + a.rank() - longer.rank()], " and ", b[i + shift + b.rank() - longer.rank()]))
                .hint("two sizes of an axis, counted from the end, must be equal, or one of them 1");
    }
    return result;
}

}  // namespace lunaria
