// The order in which the elements of an elementwise result lie in memory. It is that of the first operand that has an
// element for each of the result; without one, row-major. Operands that are dense in one order of axes are then walked
// as they lie, and the result of a transposed tensor is transposed itself.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/tensor/value.h"

namespace lunaria {

class MemoryOrder {
  public:
    // For a result of the shape `shape`.
    MemoryOrder(std::span<const Value> args, const Shape& shape);

    bool is_row_major() const { return row_major_; }
    // The result's shape in which the outermost axis in memory comes first.
    Shape shape() const;
    // The operands with their axes in that order, so that the result is row-major for a kernel.
    std::vector<Value> arranged(std::span<const Value> args) const;
    // The result as the caller sees it, from the tensor of shape shape().
    Tensor restored(const Tensor& result) const;

  private:
    Shape shape_;
    std::array<int, kMaxRank> axes_{};  // from the outermost in memory
    bool row_major_ = true;
};

// Whether an operand is a view whose order may differ from that of its axes.
inline bool has_views(std::span<const Value> args) {
    for (const Value& v : args)
        if (v.is_tensor() && !v.tensor().is_contiguous()) return true;
    return false;
}

}  // namespace lunaria
