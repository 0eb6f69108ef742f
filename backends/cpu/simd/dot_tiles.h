// Products of matrices by inner products. The columns of the right side are dense, as in the weight of a layer, and it
// is multiplied by so few rows, or has so few columns, that reordering it for the outer products in gemm_loops.cpp
// would take longer than the product. Each sum is accumulated in the lanes of a vector.
#pragma once

#include <array>
#include <utility>

#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

// The number of columns whose lanes are added up together.
inline constexpr int kDots = 4;

// In every 128 bits of two vectors: the lower halves of the bits, alternating between the two vectors, or the upper
// halves.
template <class T, bool upper, int... I>
[[gnu::always_inline]] inline typename Pack<T>::V interleaved(typename Pack<T>::V a, typename Pack<T>::V b,
                                                              std::integer_sequence<int, I...>) {
    constexpr int kWords = 16 / static_cast<int>(sizeof(T)), kLanes = Pack<T>::lanes;
    return __builtin_shufflevector(
        a, b, (I / kWords * kWords + I % kWords / 2 + (upper ? kWords / 2 : 0) + (I % 2 ? kLanes : 0))...);
}

// In every 128 bits: sums of two neighbouring halves of a, then of b.
template <class T, bool upper, int... I>
[[gnu::always_inline]] inline typename Pack<T>::V halves(typename Pack<T>::V a, typename Pack<T>::V b,
                                                         std::integer_sequence<int, I...>) {
    constexpr int kWords = 16 / static_cast<int>(sizeof(T)), kLanes = Pack<T>::lanes, kHalf = kWords / 2;
    return __builtin_shufflevector(
        a, b, (I / kWords * kWords + I % kHalf + (upper ? kHalf : 0) + (I % kWords < kHalf ? 0 : kLanes))...);
}

// The sums of the lanes of four vectors.
template <class T>
[[gnu::always_inline]] inline void add_lanes(const typename Pack<T>::V* v, T* sums) {
    using V = typename Pack<T>::V;
    constexpr int kLanes = Pack<T>::lanes, kWords = 16 / static_cast<int>(sizeof(T));
    constexpr auto kAll = std::make_integer_sequence<int, kLanes>();
    typedef T Few __attribute__((vector_size(16)));
    auto folded = [](V x) __attribute__((always_inline)) {
        Few parts[kLanes / kWords], sum;
        __builtin_memcpy(parts, &x, sizeof x);
        sum = parts[0];
#pragma GCC unroll 4
        for (int i = 1; i < kLanes / kWords; ++i) sum += parts[i];
        return sum;
    };
    V pairs[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i)
        pairs[i] =
            interleaved<T, false>(v[2 * i], v[2 * i + 1], kAll) + interleaved<T, true>(v[2 * i], v[2 * i + 1], kAll);
    if constexpr (sizeof(T) == 4) {
        const Few sum = folded(halves<T, false>(pairs[0], pairs[1], kAll) + halves<T, true>(pairs[0], pairs[1], kAll));
        __builtin_memcpy(sums, &sum, sizeof sum);
    } else {
        const Few first = folded(pairs[0]), second = folded(pairs[1]);
        __builtin_memcpy(sums, &first, sizeof first);
        __builtin_memcpy(sums + 2, &second, sizeof second);
    }
}

template <class T>
struct DotOperands {
    int64_t k;
    const T* a;
    int64_t a_row;
    const T* b;
    int64_t b_column;
    T* c;
    int64_t c_row;
};

template <class T, int Rows, int Columns>
static void dot_tile(const DotOperands<T>& o) {
    using P = Pack<T>;
    using V = typename P::V;
    // The last group may have fewer columns than kDots; the missing ones are zeros, so that all lanes can be summed.
    constexpr int kGroups = (Columns + kDots - 1) / kDots;
    V sum[Rows][kGroups * kDots];
    const T *a = o.a, *from[Columns];
    const int64_t a_row = o.a_row;
#pragma GCC unroll 16
    for (int j = 0; j < Columns; ++j) from[j] = o.b + j * o.b_column;
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 16
        for (int j = 0; j < kGroups * kDots; ++j) sum[r][j] = V{};
    int64_t at = 0;
    auto add = [&](auto load) __attribute__((always_inline)) {
        V x[Rows];
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) x[r] = load(a + r * a_row).v;
#pragma GCC unroll 16
        for (int j = 0; j < Columns; ++j) {
            const V y = load(from[j] + at).v;
#pragma GCC unroll 4
            for (int r = 0; r < Rows; ++r) sum[r][j] += x[r] * y;
        }
    };
    int64_t left = o.k;
    for (; left >= P::lanes; left -= P::lanes, a += P::lanes, at += P::lanes)
        add([](const T* p) __attribute__((always_inline)) { return P::load(p); });
    if (left > 0)
        add([left](const T* p) __attribute__((always_inline)) { return load_part(p, static_cast<int>(left)); });
#pragma GCC unroll 4
    for (int r = 0; r < Rows; ++r) {
        T sums[kGroups * kDots];
#pragma GCC unroll 4
        for (int g = 0; g < kGroups; ++g) add_lanes<T>(sum[r] + g * kDots, sums + g * kDots);
        __builtin_memcpy(o.c + r * o.c_row, sums, Columns * sizeof(T));
    }
}

#if defined(__AVX512BW__)
inline constexpr int kDotRows = 4, kWideDotRows = 2;
#else
inline constexpr int kDotRows = 2, kWideDotRows = 1;
#endif

template <class T>
using DotTile = void (*)(const DotOperands<T>&);

template <class T, int Columns, int... Rows>
constexpr std::array<DotTile<T>, kDotRows> dot_tiles_of(std::integer_sequence<int, Rows...>) {
    return {dot_tile<T, Rows + 1, Columns>...};
}

// By columns and rows. Few rows take more columns, so that there are enough sums to hide the latency of an addition.
template <class T, int... Columns>
constexpr std::array<std::array<DotTile<T>, kDotRows>, 2 * kDots> all_dot_tiles(
    std::integer_sequence<int, Columns...>) {
    return {dot_tiles_of<T, Columns + 1>(
        std::make_integer_sequence<int, (Columns < kDots ? kDotRows : kWideDotRows)>())...};
}
template <class T>
constexpr auto kDotTiles = all_dot_tiles<T>(std::make_integer_sequence<int, 2 * kDots>());

template <class T>
static void dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b, int64_t b_column, T* c,
                 int64_t c_row) {
    const int64_t width = m <= kWideDotRows ? 2 * kDots : kDots;
    DotOperands<T> o{k, a, a_row, b, b_column, c, c_row};
    for (int64_t j = 0; j < n; j += width, o.b += width * b_column) {
        const int64_t columns = n - j < width ? n - j : width;
        o.a = a;
        o.c = c + j;
        for (int64_t i = 0; i < m;) {
            const int64_t rows = m - i < kDotRows ? m - i : kDotRows;
            kDotTiles<T>[columns - 1][rows - 1](o);
            i += rows;
            o.a += rows * a_row;
            o.c += rows * c_row;
        }
    }
}

}  // namespace lunaria::cpu::LUNARIA_ISA
