// Folds of a row into one pack, and of a pack into one number, for reductions of integers and of floats.
#pragma once

#include <immintrin.h>

#include <limits>
#include <utility>

#include "backends/cpu/simd/math.h"
#include "core/loops/sum_order.h"

namespace lunaria::cpu::LUNARIA_ISA {

// A double in every lane; Pack's own constructor is for constants.
template <class T>
[[gnu::always_inline]] inline Pack<T> spread(T x) {
    return x - typename Pack<T>::V{};
}

// The first `count` lanes; the others hold `fill`. Memory after them is not touched.
template <class T>
[[gnu::always_inline]] inline Pack<T> load_filled(const T* p, int count, T fill) {
#if defined(__AVX512BW__)
    const int bytes = count * static_cast<int>(sizeof(T));
    const uint64_t mask = bytes >= 64 ? ~0ull : (1ull << bytes) - 1;
    return (typename Pack<T>::V)_mm512_mask_loadu_epi8((__m512i)spread(fill).v, mask, p);
#else
#if defined(__AVX2__)
    if constexpr (sizeof(T) >= 4) {
        const __m256i first = first_lanes(count * static_cast<int>(sizeof(T) / 4));
        const __m256i there = _mm256_maskload_epi32(reinterpret_cast<const int*>(p), first);
        return (typename Pack<T>::V)_mm256_blendv_epi8((__m256i)spread(fill).v, there, first);
    }
#endif
    alignas(kBytes) T part[Pack<T>::lanes];
    copy_filled(p, count, fill, part, Pack<T>::lanes);
    return Pack<T>::load(part);
#endif
}

// The lanes that exist of `rest` ones, which may be none or too many.
template <class T>
[[gnu::always_inline]] inline Pack<T> load_rest(const T* x, int64_t rest, T fill) {
    if (rest >= Pack<T>::lanes) return Pack<T>::load(x);
    return rest > 0 ? load_filled(x, static_cast<int>(rest), fill) : spread(fill);
}

// Steps the packs of x[0 .. n) into accumulators, several at a time to hide the latency, and joins these. The last pack
// is padded with `fill`. step(accumulator, position, pack of x). Unless Far, prefetches a page ahead, from the next row
// if this one is shorter: data from the second cache then comes in half the time that the processor's own read-ahead
// takes, from the last cache a tenth faster, from memory a tenth slower.
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

// The lower or the upper half of a vector, extracted from its register.
template <int First, class V, int... I>
[[gnu::always_inline]] inline auto lanes_from(V x, std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(x, x, (First + I)...);
}

// A vector of as many numbers as a register holds of float64: half a register of floats, which one instruction widens
// to a whole register of float64, without taking a register apart.
template <class T>
struct Narrow {
    typedef T V __attribute__((vector_size(kBytes / 8 * sizeof(T))));
};
template <class T>
using Vector = typename Narrow<T>::V;

[[gnu::always_inline]] inline Vector<double> widen(Vector<double> x) { return x; }
[[gnu::always_inline]] inline Vector<double> widen(Vector<float> x) {
#if defined(__AVX512F__)
    return (Vector<double>)_mm512_cvtps_pd((__m256)x);
#elif defined(__AVX2__)
    return (Vector<double>)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, Vector<double>);
#endif
}
// Rounds a product, so that it is not fused with a following addition where a processor could do that.
template <class V>
[[gnu::always_inline]] inline V rounded(V x) {
#if defined(__AVX512F__)
    asm("" : "+v"(x));
#elif defined(__FMA__)
    asm("" : "+x"(x));
#endif
    return x;
}

// kSumLanes numbers: a step of all lanes of a sum, or their accumulators (core/loops/sum_order.h). With another number
// of parts, as many of them.
template <class T, int Parts = kSumLanes / Pack<double>::lanes>
struct Step {
    static constexpr int kWidth = Pack<double>::lanes, kParts = Parts, kCount = Parts * kWidth;
    Vector<T> part[kParts];

    [[gnu::always_inline]] static Step of(T x) {
        Step s;
        for (auto& p : s.part) p = x - Vector<T>{};
        return s;
    }
    [[gnu::always_inline]] static Step load(const T* x) {
        Step s;
        // Left to itself, GCC copies the numbers to the stack in a loop of half registers and waits for them there.
#pragma GCC unroll 16
        for (int k = 0; k < kParts; ++k) __builtin_memcpy(&s.part[k], x + k * kWidth, sizeof(Vector<T>));
        return s;
    }
    // The first `count`; the others hold `fill`.
    [[gnu::always_inline]] static Step load(const T* x, int64_t count, T fill) {
        if (count >= kCount) return load(x);
        alignas(64) T some[kCount];
        if constexpr (kBytes == 16 || kCount % Pack<T>::lanes != 0)
            copy_filled(x, count, fill, some, kCount);
        else
            for (int k = 0; k < kCount; k += Pack<T>::lanes) load_rest(x + k, count - k, fill).store(some + k);
        return load(some);
    }
    [[gnu::always_inline]] void store(T* to) const {
#pragma GCC unroll 16
        for (int k = 0; k < kParts; ++k) __builtin_memcpy(to + k * kWidth, &part[k], sizeof(Vector<T>));
    }
    // The first `count`; the others are 0.
    [[gnu::always_inline]] Step first(int64_t count) const {
        alignas(64) T some[kCount];
        store(some);
        return load(some, count, T(0));
    }
    [[gnu::always_inline]] friend Step operator+(Step a, Step b) {
        for (int k = 0; k < kParts; ++k) a.part[k] = a.part[k] + b.part[k];
        return a;
    }
    [[gnu::always_inline]] friend Step operator-(Step a, Step b) {
        for (int k = 0; k < kParts; ++k) a.part[k] = a.part[k] - b.part[k];
        return a;
    }
    [[gnu::always_inline]] friend Step operator*(Step a, Step b) {
        for (int k = 0; k < kParts; ++k) a.part[k] = rounded(a.part[k] * b.part[k]);
        return a;
    }
};
using Lanes = Step<double>;

template <class T, int Parts>
[[gnu::always_inline]] inline Step<double, Parts> widen(Step<T, Parts> x) {
    Step<double, Parts> l;
    for (int k = 0; k < Parts; ++k) l.part[k] = widen(x.part[k]);
    return l;
}

// The same for numbers that are computed in whole registers.
template <class T>
struct WholeStep {
    static constexpr int kParts = kSumLanes / Pack<T>::lanes;
    Pack<T> part[kParts];

    [[gnu::always_inline]] static WholeStep load(const T* x, int64_t count, T fill) {
        WholeStep s;
        for (int k = 0; k < kParts; ++k)
            s.part[k] = load_rest(x + k * Pack<T>::lanes, count - k * Pack<T>::lanes, fill);
        return s;
    }
    [[gnu::always_inline]] friend WholeStep operator+(WholeStep a, WholeStep b) {
        for (int k = 0; k < kParts; ++k) a.part[k] = a.part[k] + b.part[k];
        return a;
    }
    [[gnu::always_inline]] friend WholeStep operator-(WholeStep a, Pack<T> b) {
        for (auto& p : a.part) p = p - b;
        return a;
    }
    [[gnu::always_inline]] friend WholeStep operator*(WholeStep a, WholeStep b) {
        for (int k = 0; k < kParts; ++k) a.part[k] = alone(a.part[k] * b.part[k]);
        return a;
    }
};

[[gnu::always_inline]] inline Lanes widen(WholeStep<double> x) {
    Lanes l;
    for (int k = 0; k < Lanes::kParts; ++k) l.part[k] = x.part[k].v;
    return l;
}
[[gnu::always_inline]] inline Lanes widen(WholeStep<float> x) {
    Lanes l;
    for (int k = 0; k < WholeStep<float>::kParts; ++k) {
        const Doubles d = widen(x.part[k]);
        l.part[2 * k] = d.low.v;
        l.part[2 * k + 1] = d.high.v;
    }
    return l;
}

// Halves onto halves: a chain of as many steps as lanes would take longer than a short row.
template <int Count, class V, class Join>
[[gnu::always_inline]] inline double join_doubles(V x, Join join) {
    if constexpr (Count == 2) {
        return join(x[0], x[1]);
    } else {
        constexpr std::make_integer_sequence<int, Count / 2> half;
        return join_doubles<Count / 2>(join(lanes_from<0>(x, half), lanes_from<Count / 2>(x, half)), join);
    }
}
template <class Join>
[[gnu::always_inline]] inline double joined(Lanes l, Join join) {
    for (int half = Lanes::kParts / 2; half >= 1; half /= 2)
        for (int k = 0; k < half; ++k) l.part[k] = join(l.part[k], l.part[k + half]);
    return join_doubles<Pack<double>::lanes>(l.part[0], join);
}
[[gnu::always_inline]] inline double sum_lanes(Lanes l) {
    return joined(
        l, [](auto a, auto b) __attribute__((always_inline)) { return a + b; });
}

// The sum over a row of the Steps that value(position, number of valid lanes) returns; lanes past the end are 0.
template <class Value>
[[gnu::always_inline]] inline double sum_blocks(int64_t n, Value value) {
    double total = 0;
    for (int64_t block = 0; block < n; block += kSumBlock) {
        const int64_t end = n - block < kSumBlock ? n : block + kSumBlock;
        Lanes sum = Lanes::of(0);
        int64_t i = block;
        auto at = [&](int64_t k) __attribute__((always_inline)) {
            return value(i + k * kSumLanes, int64_t{kSumLanes});
        };
        for (; i + kSumLeaf * kSumLanes <= end; i += kSumLeaf * kSumLanes)
            sum = sum + widen((at(0) + at(1)) + (at(2) + at(3)));
        if (i < end) {
            auto some = [&](int64_t k) __attribute__((always_inline)) {
                const int64_t left = end - i - k * kSumLanes;
                return value(i + k * kSumLanes, left < kSumLanes ? left : int64_t{kSumLanes});
            };
            auto last = some(0);
            if (i + kSumLanes < end) last = last + some(1);
            if (i + 2 * kSumLanes < end) {
                auto second = some(2);
                if (i + 3 * kSumLanes < end) second = second + some(3);
                last = last + second;
            }
            sum = sum + widen(last);
        }
        total += sum_lanes(sum);
    }
    return total;
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
// Combines half of the lanes with the other half, until one is left.
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

// The first lane that is set; one must be.
template <class T>
[[gnu::always_inline]] inline int first_lane(Mask<T> m) {
#if defined(__AVX512BW__)
    const uint64_t bytes = _mm512_movepi8_mask((__m512i)m.v);
#elif defined(__AVX2__)
    const auto bytes = static_cast<uint32_t>(_mm256_movemask_epi8((__m256i)m.v));
#else
    const auto bytes = static_cast<uint32_t>(_mm_movemask_epi8((__m128i)m.v));
#endif
    return __builtin_ctzll(bytes) / static_cast<int>(sizeof(T));
}

// The first position of `value`, which must exist; for NaN, the first NaN.
template <class T>
int64_t find(const T* x, int64_t n, T value) {
    constexpr int lanes = Pack<T>::lanes;
    const bool nan = value != value;
    const Pack<T> wanted = spread(value);
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const Pack<T> p = Pack<T>::load(x + i);
        const Mask<T> found = nan ? p != p : p == wanted;
        if (any(found)) return i + first_lane(found);
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

// A later element only replaces an earlier one when it is really better, or the first NaN.
template <bool Largest, class T>
void first_best_of_part(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best, int64_t* at) {
    constexpr int lanes = Pack<T>::lanes;
    using Place = BitsOf<T>;
    alignas(64) Place place[kTileColumns];
    tiles(
        width, [&](int64_t first, int64_t columns) __attribute__((always_inline)) {
            T* b = best + first;
            // Positions relative to the first row, in integers as wide as T: -1 where the earlier best one still holds.
            for (int64_t j = 0; j < columns; ++j) place[j] = -1;
            for (int64_t r = 0; r < rows; ++r) {
                const T* p = x + r * stride + first;
                Pack<Place> here = spread(static_cast<Place>(r));
                int64_t j = 0;
                for (; j + lanes <= columns; j += lanes) {
                    Pack<T> v = Pack<T>::load(p + j), old = Pack<T>::load(b + j);
                    Mask<T> wins = (Largest ? v > old : v < old) | ((v != v) & (old == old));
                    select(wins, v, old).store(b + j);
                    select(Mask<Place>(wins.v), here, Pack<Place>::load(place + j)).store(place + j);
                }
                for (; j < columns; ++j)
                    if ((Largest ? p[j] > b[j] : p[j] < b[j]) || (p[j] != p[j] && b[j] == b[j])) {
                        b[j] = p[j];
                        place[j] = static_cast<Place>(r);
                    }
            }
            for (int64_t j = 0; j < columns; ++j)
                if (place[j] >= 0) at[first + j] = row + place[j];
        });
}

template <bool Largest, class T>
void first_best_columns(const T* x, int64_t rows, int64_t width, int64_t stride, int64_t row, T* best, int64_t* at) {
    // Parts in which the number of a row fits an integer as wide as T.
    constexpr int64_t kMost = std::numeric_limits<BitsOf<T>>::max();
    for (int64_t r = 0; r < rows; r += kMost)
        first_best_of_part<Largest>(x + r * stride, rows - r < kMost ? rows - r : kMost, width, stride, row + r, best,
                                    at);
}

}  // namespace lunaria::cpu::LUNARIA_ISA
