#include "backends/cpu/simd/distance_loops.h"

#include <limits>

#include "backends/cpu/simd/math.h"

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int kTogether = 4;  // number of packs whose sums are in registers at the same time

// |d|^N, with the sign of d where it is odd.
template <int N, bool Odd>
struct Whole {
    static constexpr bool divides = false;
    explicit Whole(double) {}
    template <class T>
    Pack<T> operator()(Pack<T> d) const {
        if constexpr (N == 0) return Odd ? select(d == Pack<T>(0.0), d, copysign(Pack<T>(1.0), d)) : Pack<T>(1.0);
        if constexpr (N == 1) return Odd ? d : abs(d);
        if constexpr (N == 2) return (Odd ? abs(d) : d) * d;
        if constexpr (N == 3) return (Odd ? d : abs(d)) * d * d;
        if constexpr (N == 4) return (Odd ? abs(d) : d) * d * (d * d);
    }
};

// 0 where d is 0, also for powers that are undefined there.
template <bool Odd>
struct Power {
    static constexpr bool divides = false;
    explicit Power(double power) : power(power) {}
    template <class T>
    Pack<T> operator()(Pack<T> d) const {
        const Pack<T> size = abs(d), zero(0.0), safe = select(size == zero, Pack<T>(1.0), size);
        const Pack<T> raised = select(size == zero, zero, pow(safe, Pack<T>(power)));
        return Odd ? copysign(raised, d) : raised;
    }
    double power;
};

// |d|^infinity, for |d| of at most 1. Only a division gives exactly 1 for equal numbers.
template <bool Odd>
struct Largest {
    static constexpr bool divides = true;
    explicit Largest(double) {}
    template <class T>
    Pack<T> operator()(Pack<T> d) const {
        const Pack<T> one(1.0);
        return select(abs(d) >= one, Odd ? copysign(one, d) : one, Pack<T>(0.0));
    }
};

template <class T, class F>
void pair_sums_with(const PairSum<T>& x, int64_t begin, int64_t end) {
    using P = Pack<T>;
    const F f(x.power);
    auto scaled = [](P d, P scale) { return F::divides ? d / scale : d * scale; };
    auto one_pack = [&](int64_t u, int64_t v, int count) {
        const bool whole = count == P::lanes;
        auto vector = [&](const typename PairSum<T>::Operand& o, int64_t w) {
            const T* at = o.data + u * o.u + w * o.w + v;
            return whole ? P::load(at) : load_part(at, count);
        };
        P sum(0.0);
        for (int64_t w = 0; w < x.depth; ++w) {
            const P s(x.s.data[u * x.s.u + w * x.s.w]), p(x.p.data[u * x.p.u + w * x.p.w]);
            sum = sum + s * vector(x.a, w) * f(scaled(p - vector(x.b, w), vector(x.scale, w)));
        }
        T* to = x.out + u * x.out_step + v;
        whole ? sum.store(to) : store_part(to, sum, count);
    };
    constexpr int64_t kBlock = kTogether * P::lanes;
    for (int64_t v = 0; v < x.count; v += kBlock)
        for (int64_t u = begin; u < end; ++u) {
            if (v + kBlock > x.count) {
                for (int64_t at = v; at < x.count; at += P::lanes)
                    one_pack(u, at, static_cast<int>(x.count - at < P::lanes ? x.count - at : P::lanes));
                continue;
            }
            const T *s = x.s.data + u * x.s.u, *p = x.p.data + u * x.p.u;
            const T *a = x.a.data + u * x.a.u + v, *b = x.b.data + u * x.b.u + v,
                    *scale = x.scale.data + u * x.scale.u + v;
            P sum[kTogether] = {P(0.0), P(0.0), P(0.0), P(0.0)};
            for (int64_t w = 0; w < x.depth; ++w) {
                const P factor(*s), from(*p);
                for (int k = 0; k < kTogether; ++k) {
                    const int64_t at = k * P::lanes;
                    const P d = scaled(from - P::load(b + at), P::load(scale + at));
                    sum[k] = sum[k] + factor * P::load(a + at) * f(d);
                }
                s += x.s.w, p += x.p.w, a += x.a.w, b += x.b.w, scale += x.scale.w;
            }
            for (int k = 0; k < kTogether; ++k) sum[k].store(x.out + u * x.out_step + v + k * P::lanes);
        }
}

template <class T>
using Loop = void (*)(const PairSum<T>&, int64_t, int64_t);

template <class T, bool Odd>
Loop<T> pair_loop(double power) {
    if (power == 0) return pair_sums_with<T, Whole<0, Odd>>;
    if (power == 1) return pair_sums_with<T, Whole<1, Odd>>;
    if (power == 2) return pair_sums_with<T, Whole<2, Odd>>;
    if (power == 3) return pair_sums_with<T, Whole<3, Odd>>;
    if (power == 4) return pair_sums_with<T, Whole<4, Odd>>;
    if (power == std::numeric_limits<double>::infinity()) return pair_sums_with<T, Largest<Odd>>;
    return pair_sums_with<T, Power<Odd>>;
}

template <class T>
void pair_sums(const PairSum<T>& x, int64_t begin, int64_t end) {
    (x.odd ? pair_loop<T, true>(x.power) : pair_loop<T, false>(x.power))(x, begin, end);
}

struct Add {
    template <class T>
    Pack<T> operator()(Pack<T> sum, Pack<T> x) const {
        return sum + x;
    }
};
// NaN wins.
struct Max {
    template <class T>
    Pack<T> operator()(Pack<T> most, Pack<T> x) const {
        return select((x > most) | (x != x), x, most);
    }
};
struct NotZero {
    explicit NotZero(double) {}
    template <class T>
    Pack<T> operator()(Pack<T> d) const {
        return select(d == Pack<T>(0.0), Pack<T>(0.0), Pack<T>(1.0));
    }
};

template <class T>
Pack<T> root(Pack<T> x) {
    T list[Pack<T>::lanes];
    x.store(list);
    for (T& each : list) each = sizeof(T) == 4 ? __builtin_sqrtf(each) : __builtin_sqrt(each);
    return Pack<T>::load(list);
}

// A distance whose powers are too large or too small for T: computed number by number, divided by the largest of them.
template <class T>
T scaled_distance(const DistanceRows<T>& x, int64_t u, int64_t v) {
    auto difference = [&](int64_t w) {
        return __builtin_fabs(static_cast<double>(x.p[u * x.p_step + w]) - static_cast<double>(x.b[w * x.count + v]));
    };
    double most = 0, sum = 0;
    for (int64_t w = 0; w < x.depth; ++w) {
        const double d = difference(w);
        if (d != d || d == std::numeric_limits<double>::infinity()) return static_cast<T>(d);
        if (d > most) most = d;
    }
    if (most == 0) return 0;
    for (int64_t w = 0; w < x.depth; ++w) {
        const double d = difference(w) / most;
        if (d > 0) sum += x.power == 2 ? d * d : __builtin_pow(d, x.power);
    }
    return static_cast<T>(most * (x.power == 2 ? __builtin_sqrt(sum) : __builtin_pow(sum, 1 / x.power)));
}

template <class T, class F, class Combine>
void distances_with(const DistanceRows<T>& x, int64_t begin, int64_t end) {
    using P = Pack<T>;
    const F f(x.power);
    const Combine combine;
    const bool rooted = x.power != 0 && x.power != 1 && x.power != std::numeric_limits<double>::infinity();
    // Sums beyond these may have lost summands.
    const P least(sizeof(T) == 4 ? 1e-30 : 1e-290), most(sizeof(T) == 4 ? 1e30 : 1e290);
    auto finish = [&](P sum, int64_t u, int64_t v, int count) {
        T* to = x.out + u * x.count + v;
        P result = sum;
        if (rooted) result = x.power == 2 ? root(sum) : pow(sum, P(1 / x.power));
        count == P::lanes ? result.store(to) : store_part(to, result, count);
        if (!rooted || !any(!((sum > least) & (sum < most)))) return;
        T sums[P::lanes];
        sum.store(sums);
        for (int k = 0; k < count; ++k)
            if (!(sums[k] > least.v[0] && sums[k] < most.v[0])) to[k] = scaled_distance(x, u, v + k);
    };
    constexpr int64_t kBlock = kTogether * P::lanes;
    for (int64_t v = 0; v < x.count; v += kBlock)
        for (int64_t u = begin; u < end; ++u) {
            const T* p = x.p + u * x.p_step;
            if (v + kBlock > x.count) {
                for (int64_t at = v; at < x.count; at += P::lanes) {
                    const int count = static_cast<int>(x.count - at < P::lanes ? x.count - at : P::lanes);
                    P sum(0.0);
                    for (int64_t w = 0; w < x.depth; ++w)
                        sum = combine(sum, f(P(p[w]) - load_part(x.b + w * x.count + at, count)));
                    finish(sum, u, at, count);
                }
                continue;
            }
            P sum[kTogether] = {P(0.0), P(0.0), P(0.0), P(0.0)};
            const T* b = x.b + v;
            for (int64_t w = 0; w < x.depth; ++w, b += x.count)
                for (int k = 0; k < kTogether; ++k) sum[k] = combine(sum[k], f(P(p[w]) - P::load(b + k * P::lanes)));
            for (int k = 0; k < kTogether; ++k) finish(sum[k], u, v + k * P::lanes, P::lanes);
        }
}

template <class T>
void distances(const DistanceRows<T>& x, int64_t begin, int64_t end) {
    const double p = x.power;
    if (p == 0) return distances_with<T, NotZero, Add>(x, begin, end);
    if (p == 1) return distances_with<T, Whole<1, false>, Add>(x, begin, end);
    if (p == 2) return distances_with<T, Whole<2, false>, Add>(x, begin, end);
    if (p == 3) return distances_with<T, Whole<3, false>, Add>(x, begin, end);
    if (p == 4) return distances_with<T, Whole<4, false>, Add>(x, begin, end);
    if (p == std::numeric_limits<double>::infinity()) return distances_with<T, Whole<1, false>, Max>(x, begin, end);
    distances_with<T, Power<false>, Add>(x, begin, end);
}

}  // namespace

const DistanceTable distance_table = {{pair_sums<float>, distances<float>}, {pair_sums<double>, distances<double>}};

}  // namespace lunaria::cpu::LUNARIA_ISA
