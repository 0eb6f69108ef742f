// How exact products of matrices of 32-bit floats have to be, where a device has a faster way that rounds its operands.
#pragma once

#include <atomic>

namespace lunaria {

namespace detail {
inline constinit std::atomic<bool> rounds_products{false};
}

// Whether operands may be rounded to 10 bits behind the point (TF32); sums are as exact as ever.
inline bool rounds_products() { return detail::rounds_products.load(std::memory_order_relaxed); }
inline void allow_rounded_products(bool allowed) { detail::rounds_products.store(allowed, std::memory_order_relaxed); }

}  // namespace lunaria
