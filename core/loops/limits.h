// Limits of clamp, for kernels and compiled programs.
#pragma once

#include <algorithm>
#include <limits>

#include "core/tensor/dtype.h"
#include "core/tensor/value.h"

namespace lunaria {

// A limit of clamp in the dtype of the limited tensor: a limit beyond its range limits nothing, or everything.
inline Value limit_within(DType t, const Value& v) {
    if (!v.is_number() || !is_integer(t)) return v;
    return visit_dtype(t, [&](auto tag) -> Value {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_same_v<T, uint64_t>)
            return Value(std::max<int64_t>(v.integer(), 0));
        else if constexpr (std::is_integral_v<T>)
            return Value(std::clamp<int64_t>(v.integer(), std::numeric_limits<T>::min(),
                                             static_cast<int64_t>(std::numeric_limits<T>::max())));
        return Value();
    });
}

}  // namespace lunaria
