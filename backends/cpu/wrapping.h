// Arithmetic on numbers of any kind, where integers wrap around.
#pragma once

#include <cstdint>
#include <type_traits>

namespace lunaria::cpu {

// f(a, b), for integers as unsigned ones: only these may overflow.
template <class A, class F>
A wrapping(A a, A b, F f) {
    if constexpr (std::is_integral_v<A>)
        return static_cast<A>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    else
        return f(a, b);
}

}  // namespace lunaria::cpu
