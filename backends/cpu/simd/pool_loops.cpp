#include "backends/cpu/simd/pool_loops.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "backends/cpu/simd/pack.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

// Splits two registers of neighbours into one of the even and one of the odd positions, and back.
template <class T>
struct Pairs {
    static constexpr int kLanes = Pack<T>::lanes;
    Pack<T> even, odd;

    // `count` elements; the rest are zeros.
    static Pairs load(const T* p, int64_t count) {
        if (count >= 2 * kLanes) return split(Pack<T>::load(p), Pack<T>::load(p + kLanes));
        const int low = static_cast<int>(std::min<int64_t>(count, kLanes));
        const int high = static_cast<int>(count) - low;
        return split(load_part(p, low), high ? load_part(p + kLanes, high) : Pack<T>(0.0));
    }
    void store(T* p, int64_t count) const {
        const Pack<T> low = join<0>(std::make_integer_sequence<int, kLanes>());
        const Pack<T> high = join<kLanes / 2>(std::make_integer_sequence<int, kLanes>());
        if (count >= 2 * kLanes) {
            low.store(p);
            high.store(p + kLanes);
            return;
        }
        store_part(p, low, static_cast<int>(std::min<int64_t>(count, kLanes)));
        if (count > kLanes) store_part(p + kLanes, high, static_cast<int>(count - kLanes));
    }

  private:
    static Pairs split(Pack<T> a, Pack<T> b) { return split(a, b, std::make_integer_sequence<int, kLanes>()); }
    template <int... I>
    static Pairs split(Pack<T> a, Pack<T> b, std::integer_sequence<int, I...>) {
        return {__builtin_shufflevector(a.v, b.v, (2 * I)...), __builtin_shufflevector(a.v, b.v, (2 * I + 1)...)};
    }
    template <int From, int... I>
    Pack<T> join(std::integer_sequence<int, I...>) const {
        return __builtin_shufflevector(even.v, odd.v, (I % 2 * kLanes + From + I / 2)...);
    }
};

template <class T>
Pack<T> larger(Pack<T> best, Pack<T> x) {
    return select((x > best) | (x != x), x, best);
}

template <class T>
void raise(T* out, const T* in, int64_t count, int64_t stride) {
    constexpr int kLanes = Pack<T>::lanes;
    if (stride > 2) {
        for (int64_t i = 0; i < count; ++i)
            if (in[i * stride] > out[i] || in[i * stride] != in[i * stride]) out[i] = in[i * stride];
        return;
    }
    for (int64_t i = 0; i < count; i += kLanes) {
        const int part = static_cast<int>(std::min<int64_t>(count - i, kLanes));
        // Memory may end after the last element that is needed.
        const Pack<T> x = stride == 1 ? load_part(in + i, part)
                                      : Pairs<T>::load(in + 2 * i, i + kLanes < count ? 2 * kLanes : 2 * part - 1).even;
        store_part(out + i, larger(load_part(out + i, part), x), part);
    }
}

template <class T>
void largest_of_rows(const T* const* rows, int64_t row_count, int64_t count, T* out) {
    constexpr int kLanes = Pack<T>::lanes, kPacks = 4;
    int64_t i = 0;
    // Several packs at a time, since each waits for the row before. NaN is checked once for all, beside the largest.
    for (; i + kPacks * kLanes <= count; i += kPacks * kLanes) {
        Pack<T> most[kPacks];
        for (int k = 0; k < kPacks; ++k) most[k] = Pack<T>::load(rows[0] + i + k * kLanes);
        Mask<T> found = most[0] != most[0];
        for (int k = 1; k < kPacks; ++k) found = found | (most[k] != most[k]);
        for (int64_t r = 1; r < row_count; ++r)
            for (int k = 0; k < kPacks; ++k) {
                const Pack<T> x = Pack<T>::load(rows[r] + i + k * kLanes);
                found = found | (x != x);
                most[k] = select(x > most[k], x, most[k]);
            }
        if (any(found)) [[unlikely]] {
            for (int k = 0; k < kPacks; ++k) {
                most[k] = Pack<T>::load(rows[0] + i + k * kLanes);
                for (int64_t r = 1; r < row_count; ++r)
                    most[k] = larger(most[k], Pack<T>::load(rows[r] + i + k * kLanes));
            }
        }
        for (int k = 0; k < kPacks; ++k) most[k].store(out + i + k * kLanes);
    }
    for (; i < count; i += kLanes) {
        const int part = static_cast<int>(std::min<int64_t>(count - i, kLanes));
        Pack<T> most = load_part(rows[0] + i, part);
        for (int64_t r = 1; r < row_count; ++r) most = larger(most, load_part(rows[r] + i, part));
        store_part(out + i, most, part);
    }
}

// Pack i of every Step-th element from `in` on and, where Step is 2 and they are wanted, of their right neighbours in
// `next`. `left` results are needed from here on: memory may end after the elements that they read.
template <int Step, class T>
[[gnu::always_inline]] inline Pack<T> strided(const T* in, int64_t left, bool with_next, Pack<T>& next) {
    constexpr int kLanes = Pack<T>::lanes;
    if constexpr (Step == 1) {
        return left >= kLanes ? Pack<T>::load(in) : load_part(in, static_cast<int>(left));
    } else {
        const auto pairs = Pairs<T>::load(in, left > kLanes ? 2 * kLanes : 2 * left - (with_next ? 0 : 1));
        next = pairs.odd;
        return pairs.even;
    }
}

template <int Step, class T>
[[gnu::always_inline]] inline void largest_by_packs(const T* in, int64_t kernel, int64_t dilation, int64_t count,
                                                    T* out) {
    constexpr int kLanes = Pack<T>::lanes;
    // If a window's elements are adjacent, two come from one pair of registers.
    const bool neighbours = Step == 2 && dilation == 1;
    for (int64_t i = 0; i < count; i += kLanes) {
        const int64_t left = count - i;
        Pack<T> most(-__builtin_inf()), next = most;
        for (int64_t k = 0; k < kernel; ++k) {
            const bool with_next = neighbours && k + 1 < kernel;
            const Pack<T> x = strided<Step>(in + i * Step + k * dilation, left, with_next, next);
            most = larger(most, x);
            if (!with_next) continue;
            most = larger(most, next);
            ++k;
        }
        if (left >= kLanes)
            most.store(out + i);
        else
            store_part(out + i, most, static_cast<int>(left));
    }
}

template <class T>
void largest_along(const T* in, int64_t kernel, int64_t dilation, int64_t stride, int64_t count, T* out) {
    // The sizes of common windows are known to the compiler.
    auto of = [&](auto step) {
        constexpr int kStep = decltype(step)::value;
        if (dilation == 1 && kernel == 2) return largest_by_packs<kStep>(in, 2, 1, count, out);
        if (dilation == 1 && kernel == 3) return largest_by_packs<kStep>(in, 3, 1, count, out);
        largest_by_packs<kStep>(in, kernel, dilation, count, out);
    };
    if (stride == 1) return of(std::integral_constant<int, 1>());
    if (stride == 2) return of(std::integral_constant<int, 2>());
    for (int64_t i = 0; i < count; ++i) {
        T most = in[i * stride];
        for (int64_t k = 1; k < kernel; ++k) {
            const T x = in[i * stride + k * dilation];
            most = ((x > most) | (x != x)) ? x : most;
        }
        out[i] = most;
    }
}

template <class T>
void largest_of_four(const T* plane, int64_t width, int64_t rows, int64_t count, T* out) {
    constexpr int kLanes = Pack<T>::lanes;
    const T *const end = plane + 2 * rows * width, *const out_end = out + rows * count;
    for (int64_t y = 0; y < rows; ++y, plane += 2 * width, out += count)
        for (int64_t i = 0; i < count; i += kLanes) {
            const T *above = plane + 2 * i, *below = above + width;
            const int64_t part = std::min<int64_t>(count - i, kLanes);
            // Whole vectors also at the end of a row: what they write of the next row is overwritten later.
            const bool is_inside = below + 2 * kLanes <= end && out + i + kLanes <= out_end;
            const int64_t read = is_inside ? kLanes : part;
            const auto top = Pairs<T>::load(above, 2 * read), bottom = Pairs<T>::load(below, 2 * read);
            const Pack<T> most = larger(larger(top.even, top.odd), larger(bottom.even, bottom.odd));
            if (is_inside)
                most.store(out + i);
            else
                store_part(out + i, most, static_cast<int>(part));
        }
}

// For planes with NaN: rare, and not optimised.
template <class T>
void place_one_by_one(const T* top, const T* bottom, const T* dout, T* to_top, T* to_bottom, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        const T four[] = {top[2 * i], top[2 * i + 1], bottom[2 * i], bottom[2 * i + 1]};
        int best = 0;
        for (int k = 1; k < 4; ++k)
            if (four[k] > four[best] || four[k] != four[k]) best = k;
        to_top[2 * i] = best == 0 ? dout[i] : T(0);
        to_top[2 * i + 1] = best == 1 ? dout[i] : T(0);
        to_bottom[2 * i] = best == 2 ? dout[i] : T(0);
        to_bottom[2 * i + 1] = best == 3 ? dout[i] : T(0);
    }
}

template <class T>
void place_of_four(const T* plane, const T* dout, int64_t width, int64_t rows, int64_t count, T* out) {
    constexpr int kLanes = Pack<T>::lanes;
    const Pack<T> zero(0.0);
    for (int64_t y = 0; y < rows; ++y, plane += 2 * width, out += 2 * width, dout += count)
        for (int64_t i = 0; i < count; i += kLanes) {
            const int64_t part = std::min<int64_t>(count - i, kLanes);
            const T *above = plane + 2 * i, *below = above + width;
            const auto top = Pairs<T>::load(above, 2 * part), bottom = Pairs<T>::load(below, 2 * part);
            const Pack<T> a = top.even, b = top.odd, c = bottom.even, d = bottom.odd;
            if (any((a != a) | (b != b) | (c != c) | (d != d))) [[unlikely]] {
                place_one_by_one(above, below, dout + i, out + 2 * i, out + width + 2 * i, part);
                continue;
            }
            const Pack<T> left = select(b > a, b, a), right = select(d > c, d, c),
                          most = select(right > left, right, left);
            const Pack<T> g = load_part(dout + i, static_cast<int>(part));
            const Mask<T> in_a = a == most, in_b = (b == most) & !in_a, in_top = in_a | in_b,
                          in_c = (c == most) & !in_top;
            Pairs<T>{select(in_a, g, zero), select(in_b, g, zero)}.store(out + 2 * i, 2 * part);
            Pairs<T>{select(in_c, g, zero), select(in_top | in_c, zero, g)}.store(out + width + 2 * i, 2 * part);
        }
}

template <class T>
void add_where(T* out, Mask<T> where, Pack<T> x, int count) {
    store_part(out, load_part(out, count) + select(where, x, Pack<T>(0.0)), count);
}

template <class T>
void add_at_four(const T* plane, const T* dout, int64_t width, int64_t rows, int64_t count, T* out) {
    constexpr int kLanes = Pack<T>::lanes;
    for (int64_t y = 0; y < rows; ++y, plane += width, out += width, dout += count)
        for (int64_t i = 0; i < count; i += kLanes) {
            const int part = static_cast<int>(std::min<int64_t>(count - i, kLanes));
            const T *above = plane + i, *below = above + width;
            T *const top = out + i, *const bottom = top + width;
            const Pack<T> a = load_part(above, part), b = load_part(above + 1, part), c = load_part(below, part),
                          d = load_part(below + 1, part), g = load_part(dout + i, part);
            if (any((a != a) | (b != b) | (c != c) | (d != d))) [[unlikely]] {
                for (int k = 0; k < part; ++k) {
                    const T four[] = {above[k], above[k + 1], below[k], below[k + 1]};
                    T* const to[] = {top + k, top + k + 1, bottom + k, bottom + k + 1};
                    int best = 0;
                    for (int n = 1; n < 4; ++n)
                        if (four[n] > four[best] || four[n] != four[n]) best = n;
                    *to[best] += dout[i + k];
                }
                continue;
            }
            const Pack<T> left = select(b > a, b, a), right = select(d > c, d, c),
                          most = select(right > left, right, left);
            const Mask<T> in_a = a == most, in_b = (b == most) & !in_a, in_top = in_a | in_b,
                          in_c = (c == most) & !in_top, in_d = !(in_top | in_c);
            // Each element's sum in the order of the windows: the one to its left has come first.
            add_where(top + 1, in_b, g, part);
            add_where(top, in_a, g, part);
            add_where(bottom + 1, in_d, g, part);
            add_where(bottom, in_c, g, part);
        }
}

template <class T>
constexpr PoolLoopsOf<T> loops_of() {
    return {raise<T>, largest_of_rows<T>, largest_along<T>, largest_of_four<T>, place_of_four<T>, add_at_four<T>};
}

}  // namespace

const PoolLoops pool_loops = {loops_of<float>(), loops_of<double>()};

}  // namespace lunaria::cpu::LUNARIA_ISA
