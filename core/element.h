// An element of a tensor as a value of the language: a boolean, an integer or a number, as its dtype is.
#pragma once

#include "core/error.h"
#include "core/tensor.h"
#include "core/value.h"

namespace lunaria {

inline Value element(const Tensor& tensor, int64_t index) {
    if (tensor.dtype() == DType::boolean) return Value(tensor.integer_at(index) != 0);
    if (is_integer(tensor.dtype())) return Value(tensor.integer_at(index));
    return Value(tensor.at(index));
}

// Throws shape_error where a tensor has not one element.
inline void expect_one_element(const Tensor& tensor) {
    if (tensor.size() != 1)
        throw shape_error("item", str("the tensor must have one element, it has shape ", tensor.shape(), " with ",
                                      tensor.size(), " elements"))
            .hint("pick one: x:item(i, j), or export all: x:tolist()");
}

// The element of a tensor that has one.
inline Value only_element(const Tensor& tensor) {
    expect_one_element(tensor);
    return element(tensor, 0);
}

}  // namespace lunaria
