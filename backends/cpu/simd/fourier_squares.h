// Transposes of squares of numbers in registers, and sums of products, for the loops of Fourier transforms.
#pragma once

#include <utility>

#include "backends/cpu/simd/fourier_loops.h"
#include "backends/cpu/simd/math_basic.h"

namespace lunaria::cpu::LUNARIA_ISA {

// a b + c d, where the first product is fused with the sum. The compiler would fuse either one, and another in the
// vectors of one instruction set than in the single numbers of the next.
[[gnu::always_inline]] inline double fma(double a, double b, double c) {
    return kFused ? __builtin_fma(a, b, c) : a * b + c;
}
template <class T>
[[gnu::always_inline]] inline T products(T a, T b, T c, T d) {
    return fma(a, b, c * d);
}
// a b - c d
template <class T>
[[gnu::always_inline]] inline T products_apart(T a, T b, T c, T d) {
    return fma(a, b, -(c * d));
}

// Transposes squares of a pack's lanes: swaps their blocks of S lanes off the diagonal, then the smaller ones in each.
template <int S, int... L>
[[gnu::always_inline]] inline void swap_blocks(Pack<double>* rows, std::integer_sequence<int, L...> lanes) {
    constexpr int kLanes = Pack<double>::lanes;
    for (int i = 0; i < kLanes; ++i) {
        if (i & S) continue;
        const Pack<double> a = rows[i], b = rows[i + S];
        rows[i] = __builtin_shufflevector(a.v, b.v, (L & S ? kLanes + L - S : L)...);
        rows[i + S] = __builtin_shufflevector(a.v, b.v, (L & S ? kLanes + L : L + S)...);
    }
    if constexpr (S > 1) swap_blocks<S / 2>(rows, lanes);
}
[[gnu::always_inline]] inline void transpose(Pack<double>* rows) {
    constexpr int kLanes = Pack<double>::lanes;
    for (int i = 0; i < kSideBySide; i += kLanes)
        swap_blocks<kLanes / 2>(rows + i, std::make_integer_sequence<int, kLanes>());
}

}  // namespace lunaria::cpu::LUNARIA_ISA
