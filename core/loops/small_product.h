// Products of a row or two with a matrix that stays in the nearest cache. Calling a kernel for one takes as long as the
// work, so compiled programs make them part of their loops. Kernels and generated code add up alike, to the same bits:
// every fourth product has a sum of its own, and of these it is (first + second) + (third + fourth).
#pragma once

#include <cstdint>

namespace lunaria {

inline constexpr int kProductSums = 4;

// For f32 and f64, where rows of both operands are dense.
inline bool is_small_product(int64_t rows, int64_t depth, int64_t columns) {
    constexpr int64_t kMostRows = 2, kMostDepth = 128, kMostElements = 4096;
    return rows <= kMostRows && columns >= 4 && depth > 0 && depth <= kMostDepth && depth * columns <= kMostElements;
}

}  // namespace lunaria
