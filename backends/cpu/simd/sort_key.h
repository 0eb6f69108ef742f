// Sorting keys: unsigned integers whose order is the order of the elements, with NaN above everything and -0 equal to
// 0.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace lunaria::cpu {

template <class T>
using SortKey = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <class T>
[[gnu::always_inline]] inline SortKey<T> sort_key(T x) {
    using K = SortKey<T>;
    constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
    if constexpr (std::is_floating_point_v<T>) {
        const K bits = std::bit_cast<K>(x + T(0));  // -0 + 0 is +0
        // Without branches: signs are often random.
        const K flip = (K(0) - (bits >> (sizeof(K) * 8 - 1))) | kSign;
        return (bits ^ flip) | (K(0) - static_cast<K>(x != x));
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<K>(x) ^ kSign;
    } else {
        return static_cast<K>(x);
    }
}

// The element with this key, but for the sign of a zero and the bits of a NaN.
template <class T>
[[gnu::always_inline]] inline T element_of(SortKey<T> key) {
    using K = SortKey<T>;
    constexpr K kSign = K(1) << (sizeof(K) * 8 - 1);
    if constexpr (std::is_floating_point_v<T>) {
        const K flip = ((key >> (sizeof(K) * 8 - 1)) - K(1)) | kSign;
        return std::bit_cast<T>(key ^ flip);
    } else if constexpr (std::is_signed_v<T>) {
        return static_cast<T>(key ^ kSign);
    } else {
        return static_cast<T>(key);
    }
}

// Whether a key keeps less than the element has: the sign of a zero, or the bits of a NaN.
template <class T>
[[gnu::always_inline]] inline bool is_hidden(T x) {
    using K = SortKey<T>;
    if constexpr (std::is_floating_point_v<T>) return (x != x) | (std::bit_cast<K>(x) == K(1) << (sizeof(K) * 8 - 1));
    return false;
}

}  // namespace lunaria::cpu
