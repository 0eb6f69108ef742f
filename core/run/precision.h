// The precision of products of 32-bit float matrices on a device that has a faster way which rounds its operands.
#pragma once

#include <atomic>

namespace lunaria {

namespace detail {
inline constinit std::atomic<bool> rounds_products{false};
}

// Whether operands may be rounded to 10 bits after the point (TF32); sums are as exact as ever.
inline bool rounds_products() { return detail::rounds_products.load(std::memory_order_relaxed); }
inline void allow_rounded_products(bool allowed) { detail::rounds_products.store(allowed, std::memory_order_relaxed); }

}  // namespace lunaria
