// Products of one or two rows with a matrix that stays in the nearest cache. A kernel call would take as long as the
// product, so compiled programs make such products part of their loops. Kernels and generated code add up in the same
// order, for the same bits: every fourth product belongs to one of four sums, and the result is (first + second) +
// (third + fourth).
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
