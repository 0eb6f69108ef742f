// NaN test for elements of any type.
#pragma once

#include <type_traits>

namespace lunaria::cpu {

template <class T>
bool is_nan(T x) {
    if constexpr (std::is_floating_point_v<T>)
        return x != x;
    else
        return false;
}

}  // namespace lunaria::cpu
