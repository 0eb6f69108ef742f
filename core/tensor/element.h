// An element of a tensor as a value of the language: a boolean, an integer or a number, according to its dtype. An
// unsigned integer beyond the language's signed 64-bit integers becomes the nearest number.
#pragma once

#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace lunaria {

inline Value element(const Tensor& tensor, int64_t index) {
    if (tensor.dtype() == DType::boolean) return Value(tensor.integer_at(index) != 0);
    if (is_integer(tensor.dtype())) {
        const int64_t i = tensor.integer_at(index);
        if (i < 0 && tensor.dtype() == DType::u64) return Value(static_cast<double>(static_cast<uint64_t>(i)));
        return Value(i);
    }
    return Value(tensor.at(index));
}

// Holds every real element and every number of the language exactly, for comparisons.
using ExactNumber = long double;
static_assert(std::numeric_limits<ExactNumber>::digits >= 64);

inline ExactNumber exact_element(const Tensor& tensor, int64_t index) {
    if (!is_integer(tensor.dtype()) && tensor.dtype() != DType::boolean) return tensor.at(index);
    const int64_t i = tensor.integer_at(index);
    return tensor.dtype() == DType::u64 ? static_cast<ExactNumber>(static_cast<uint64_t>(i)) : i;
}

// Whether a number of the language is an integer within the range of type t; true for types that are not integers.
inline bool is_element(DType t, const Value& number) {
    if (!is_integer(t)) return true;
    if (t == DType::i64 && number.kind() == Value::Kind::integer) return true;
    return visit_dtype(t, [&](auto tag) {
        using T = typename decltype(tag)::type;
        if constexpr (!std::is_integral_v<T> || std::is_same_v<T, bool>) return true;
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
            if (number.kind() == Value::Kind::integer) return std::in_range<T>(number.integer());
            const double x = number.number();
            return x == std::trunc(x) && x >= static_cast<double>(std::numeric_limits<T>::min()) &&
                   x < std::ldexp(1.0, std::numeric_limits<T>::digits);
        }
    });
}

// Throws shape_error unless the tensor has exactly one element.
inline void expect_one_element(const Tensor& tensor) {
    if (tensor.size() != 1)
        throw shape_error("item", str("the tensor must have one element, it has shape ", tensor.shape(), " with ",
                                      tensor.size(), " elements"))
            .hint("pick one: x:item(i, j), or export all: x:tolist()");
}

// The element of a tensor with one element.
inline Value only_element(const Tensor& tensor) {
    expect_one_element(tensor);
    return element(tensor, 0);
}

}  // namespace lunaria
