// Folding a row into one pack, and a pack into one number; what reductions of integers and of floats have in common.
#pragma once

#include <utility>

#include "backends/cpu/simd/math.h"

namespace lunaria::cpu::LUNARIA_ISA {

// The first `count` lanes; the others hold `fill`.
template <class T>
[[gnu::always_inline]] inline Pack<T> load_filled(const T* p, int count, T fill) {
    alignas(kBytes) T part[Pack<T>::lanes];
    for (int i = 0; i < Pack<T>::lanes; ++i) part[i] = i < count ? p[i] : fill;
    return Pack<T>::load(part);
}

// A double in every lane; Pack's own constructor is for constants.
template <class T>
[[gnu::always_inline]] inline Pack<T> spread(T x) {
    return x - typename Pack<T>::V{};
}

// Steps the packs of x[0 .. n) into accumulators, several at a time to hide the latency, and joins these. The last pack
// is filled up with `fill`. step(accumulator, position, pack of x). What lies a page ahead, in the next row if this one
// is shorter, is asked for unless Far: from the second cache it comes in half the time that it takes when the processor
// alone reads ahead, from the last one a tenth faster, from memory a tenth slower.
template <bool Far = false, class T, class Step, class Join>
[[gnu::always_inline]] inline Pack<T> fold(const T* x, int64_t n, Pack<T> identity, T fill, Step step, Join join) {
    constexpr int lanes = Pack<T>::lanes;
    constexpr int64_t kLine = 64 / sizeof(T), kAhead = 4096 / sizeof(T);
    Pack<T> a = identity, b = identity, c = identity, d = identity;
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        if constexpr (!Far)
            for (int64_t line = 0; line < 4 * lanes; line += kLine) __builtin_prefetch(x + i + kAhead + line);
        a = step(a, Pack<T>::load(x + i));
        b = step(b, Pack<T>::load(x + i + lanes));
        c = step(c, Pack<T>::load(x + i + 2 * lanes));
        d = step(d, Pack<T>::load(x + i + 3 * lanes));
    }
    for (; i + lanes <= n; i += lanes) a = step(a, Pack<T>::load(x + i));
    if (i < n) b = step(b, load_filled(x + i, static_cast<int>(n - i), fill));
    return join(join(a, b), join(c, d));
}

// The lower or the upper half of a vector, out of its register.
template <int First, class V, int... I>
[[gnu::always_inline]] inline auto lanes_from(V x, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(x, x, (First + I)...);
}

// Halves onto halves: a chain of as many additions as lanes would take longer than a short row.
template <int Count, class V>
[[gnu::always_inline]] inline double sum_of_doubles(V x) {
    if constexpr (Count == 2) {
        return x[0] + x[1];
    } else {
        constexpr std::make_integer_sequence<int, Count / 2> half;
        return sum_of_doubles<Count / 2>(lanes_from<0>(x, half) + lanes_from<Count / 2>(x, half));
    }
}
template <class T>
[[gnu::always_inline]] inline double sum_lanes(Pack<T> p) {
    constexpr int lanes = Pack<T>::lanes;
    if constexpr (sizeof(T) == 8) {
        return sum_of_doubles<lanes>(p.v);
    } else {
        typedef double Wide __attribute__((vector_size(kBytes)));
        constexpr std::make_integer_sequence<int, lanes / 2> half;
        const auto low = lanes_from<0>(p.v, half), high = lanes_from<lanes / 2>(p.v, half);
        return sum_of_doubles<lanes / 2>(__builtin_convertvector(low, Wide) + __builtin_convertvector(high, Wide));
    }
}

// NaN wins.
template <bool Largest, class T>
[[gnu::always_inline]] inline Pack<T> better(Pack<T> best, Pack<T> x) {
    return select((Largest ? x > best : x < best) | (x != x), x, best);
}
template <int Distance, class T, int... I>
[[gnu::always_inline]] inline Pack<T> lanes_exchanged(Pack<T> p, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(p.v, p.v, (I ^ Distance)...);
}
// Half of the lanes against the other half, until one is left.
template <bool Largest, int Distance, class T>
[[gnu::always_inline]] inline T best_lane(Pack<T> p) {
    if constexpr (Distance == 0) {
        return p.v[0];
    } else {
        using Lanes = std::make_integer_sequence<int, Pack<T>::lanes>;
        return best_lane<Largest, Distance / 2>(better<Largest>(p, lanes_exchanged<Distance>(p, Lanes())));
    }
}
template <bool Largest, class T>
[[gnu::always_inline]] inline T best_of(const T* x, int64_t n) {
    auto step = [](Pack<T> a, Pack<T> p) __attribute__((always_inline)) { return better<Largest>(a, p); };
    return best_lane<Largest, Pack<T>::lanes / 2>(fold(x, n, spread(x[0]), x[0], step, step));
}

template <bool Largest, class T>
T best_row(const T* x, int64_t n) {
    return best_of<Largest>(x, n);
}

// The first place of `value`, which must be there: of the first NaN if it is NaN.
template <class T>
int64_t find(const T* x, int64_t n, T value) {
    constexpr int lanes = Pack<T>::lanes;
    const bool nan = value != value;
    const Pack<T> wanted = spread(value);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Pack<T> p = Pack<T>::load(x + i);
        if (any(nan ? p != p : p == wanted)) break;
    }
    while (i + 1 < n && !(nan ? x[i] != x[i] : x[i] == value)) ++i;
    return i;
}

// A tile of columns whose accumulators stay in the first-level cache.
inline constexpr int64_t kTileColumns = 1024;

// f(tile of columns, its width) for all tiles.
template <class F>
[[gnu::always_inline]] inline void tiles(int64_t width, F f) {
    for (int64_t j = 0; j < width; j += kTileColumns) f(j, width - j < kTileColumns ? width - j : kTileColumns);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
