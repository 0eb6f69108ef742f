// Turned tensors: results whose axes lie in memory in another order than row-major, because those of an operand do. The
// order is a matter of speed alone, and nothing shows it: code that shows strides, or makes a view whose strides are
// shown, takes row_major(), so that eager, compiled and transformed programs show the same.
#pragma once

#include "core/tensor/tensor.h"

namespace lunaria {

// The elements of `dense` with the axes in another order; its storage is marked. If other tensors have the storage, as
// where a conversion had nothing to do, the result is a plain view.
Tensor turned(const Tensor& dense, const Shape& shape, const Strides& strides);
// Of the marked storage, with those strides.
bool is_turned(const Tensor& t);
// Of a turned tensor a dense copy, which is made once for its storage; otherwise the tensor itself.
Tensor row_major(const Tensor& t);
// The strides as every mode shows them.
Strides shown_strides(const Tensor& t);
// The view of one position of an axis, without that axis.
Tensor part_of(const Tensor& t, int axis, int64_t position);

// Frees what the mark of a storage keeps. For the storage's end.
void forget_turned(Storage& storage) noexcept;

}  // namespace lunaria
