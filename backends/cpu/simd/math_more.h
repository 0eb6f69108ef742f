// Powers, remainders and gamma functions on packs, and functions of libm lane by lane.
#pragma once

#include "core/ops/formulas_special.h"

namespace lunaria::cpu::LUNARIA_ISA {

// Powers with the exponents that programs usually have: -2, -1, -0.5, 0.5, 1, 2, 3 and 4. The value of a lane does not
// depend on the other lanes.
template <class T>
[[gnu::always_inline]] inline Mask<T> has_short_power(Pack<T> y) {
    using P = Pack<T>;
    P a = abs(y);
    return (a == P(1)) | (a == P(2)) | (a == P(0.5)) | (y == P(3)) | (y == P(4));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> short_power(Pack<T> x, Pack<T> y) {
    using P = Pack<T>;
    constexpr double inf = __builtin_inf();
    // The root of -0 and of -infinity is positive, as a power.
    P root = select(x == P(-inf), P(inf), sqrt(x) + P(0));
    P base = select(abs(y) == P(0.5), root, x);
    // The square of the inverse: the inverse of the square would overflow sooner.
    base = select(y < P(0), P(1) / base, base);
    P square = base * base;
    P r = select(abs(y) == P(2), square, base);
    r = select(y == P(3), base * base * base, r);
    return select(y == P(4), square * square, r);
}

// The same for a single exponent in all lanes: true, and the powers in `r`, with the values of short_power.
template <class T>
[[gnu::always_inline]] inline bool one_short_power(Pack<T> x, Pack<T> y, Pack<T>& r) {
    using P = Pack<T>;
    const T exponent = y.v[0];
    if (any(y != P(static_cast<double>(exponent)))) return false;
    if (exponent == T(2))
        r = x * x;
    else if (exponent == T(3))
        r = x * x * x;
    else if (exponent == T(4))
        r = (x * x) * (x * x);
    else if (exponent == T(1))
        r = x;
    else if (exponent == T(0))
        r = P(1);
    else if (exponent == T(0.5))
        r = select(x == P(-__builtin_inf()), P(__builtin_inf()), sqrt(x) + P(0));
    else if (exponent == T(-1))
        r = P(1) / x;
    else
        return false;
    return true;
}

// x^y for a positive normal x and |y| < 2^20, with fused multiply-adds. The product y log2(x) needs more digits than
// f32 has: the logarithm is a sum of two numbers, and the fractional part of the product is computed from both.
[[gnu::always_inline]] inline Pack<float> ordinary_pow(Pack<float> x, Pack<float> y) {
    using P = Pack<float>;
    // 2 / ln 2 in two parts; (log2((1 + s) / (1 - s)) / s - 2 / ln 2) / s^2 in s^2; 2^f for |f| <= 1/2
    static constexpr float unit = 2.88539004f, unit_rest = 3.851926e-08f;
    static constexpr double log_poly[] = {0.9617967f, 0.5770833f, 0.4116751f, 0.34084007f};
    static constexpr double exp_poly[] = {1.0f,         0.6931472f,    0.24022652f,   0.055503268f,
                                          0.009617994f, 0.0013400565f, 0.00015478171f};
    const auto [e, m] = split_exponent(x);
    // s = (m - 1) / (m + 1), with the rounding errors of the sum and of the quotient.
    const P t = m - P(1), d = m + P(1), d_rest = m - (d - P(1)), inverse = P(1) / d, s = t * inverse;
    const P s_rest = fma(-s, d_rest, fma(-s, d, t)) * inverse, z = s * s;
    const P head = fma(s, P(unit), e);
    P low = fma(s, P(unit), e - head);
    low = fma(s_rest, P(unit), low);
    low = fma(s, fma(z, poly(z, log_poly), P(unit_rest)), low);
    // The rest must be small, since it is omitted where the product is rounded.
    const P high = head + low;
    low = low - (high - head);
    P n = rint(y * high);
    const P f = fma(y, low, fma(y, high, -n));
#if !defined(__AVX512F__)
    // Twice the range of a factor of scale().
    n = at_most(at_least(n, -250), 250);
#endif
    return scale(poly(f, exp_poly), n);
}

// exp(y log x) in double precision, for any x that is not negative.
[[gnu::always_inline]] inline Pack<float> any_pow(Pack<float> x, Pack<float> y) {
    const Doubles base = widen(x), power = widen(y);
    return narrow({exp(power.low * log(base.low)), exp(power.high * log(base.high))});
}

// Lanes whose sign bit is set where ordinary_pow(|x|, y) is not defined.
[[gnu::always_inline]] inline Pack<float>::U outside_ordinary(Pack<float> x, Pack<float> y) {
    using U = Pack<float>::U;
    constexpr uint32_t kMagnitude = 0x7fffffff, kLeast = 0x00800000, kSpan = 0x7f000000, kMost = 0x49800000;
    const U above = ((U)x.v & kMagnitude) - kLeast;
    return above | (above + (0x80000000u - kSpan)) | ~(((U)y.v & kMagnitude) - kMost);
}
[[gnu::always_inline]] inline Mask<float> sign_bits(Pack<float>::U bits) {
    return (Mask<float>::V)((Pack<float>::I)bits >> 31);
}

// The power of |x| with the sign of a power of x; 1 where any base gives 1.
[[gnu::always_inline]] inline Pack<float> signed_pow(Pack<float> x, Pack<float> y, Pack<float> r) {
    using P = Pack<float>;
    constexpr double inf = __builtin_inf();
    const P half = y * P(0.5);
    const auto whole = rint(y) == y, odd = whole & (rint(half) != half), negative = copysign(P(1), x) < P(0);
    r = select(negative & odd, -r, r);
    r = select((x < P(0)) & !whole & (x > P(-inf)), P(__builtin_nan("")), r);
    const auto one = (y == P(0)) | (x == P(1)) | ((x == P(-1)) & (abs(y) == P(inf)));
    return select(one, P(1), r);
}

// The lanes without a short exponent. Rare cases are outside of this function, so that it is short enough to be inlined
// in loops.
[[gnu::noinline]] inline Pack<float> unusual_pow(Pack<float> x, Pack<float> y, Pack<float> r) {
    const auto others = sign_bits(outside_ordinary(x, y));
    if (any(others)) r = select(others, any_pow(abs(x), y), r);
    return signed_pow(x, y, r);
}
[[gnu::always_inline]] inline Pack<float> long_pow(Pack<float> x, Pack<float> y) {
    if constexpr (!kFused) return signed_pow(x, y, any_pow(abs(x), y));
    const Pack<float> r = ordinary_pow(abs(x), y);
    if (any(sign_bits(outside_ordinary(x, y) | (Pack<float>::U)x.v))) [[unlikely]]
        return unusual_pow(x, y, r);
    return r;
}
[[gnu::noinline]] inline Pack<float> pow_with_short_ones(Pack<float> x, Pack<float> y) {
    if (Pack<float> r; one_short_power(x, y, r)) return r;
    const auto is_short = has_short_power(y);
    const Pack<float> r = short_power(x, y);
    return any(!is_short) ? select(is_short, r, long_pow(x, y)) : r;
}

[[gnu::always_inline]] inline Pack<float> pow(Pack<float> x, Pack<float> y) {
    const Pack<float> r = long_pow(x, y);
    // The mantissa of exponents with a short power has at most one bit set. They are checked last, since otherwise
    // everything else would wait for the answer.
    if (any(Mask<float>((Pack<float>::I)(((Pack<float>::U)y.v << 10) == 0)))) [[unlikely]]
        return pow_with_short_ones(x, y);
    return r;
}

// Exact while the quotient fits the mantissa: then a - q b has no rounding error, and q is off by one at most.
template <class T>
[[gnu::always_inline]] inline Pack<T> fmod(Pack<T> a, Pack<T> b) {
    using P = Pack<T>;
    auto easy = abs(a) < abs(b) * P(sizeof(T) == 4 ? 0x1p22 : 0x1p51);
    easy = easy & (abs(b) < P(sizeof(T) == 4 ? 0x1p100 : 0x1p1000)) & (abs(b) > P(sizeof(T) == 4 ? 0x1p-80 : 0x1p-900));
    if (!kFused || any(!easy)) [[unlikely]]
        return each(a, b, [](T x, T y) { return scalar::fmod(x, y); });
    P q = trunc(a / b);
    P r = fma(-q, b, a), step = copysign(b, a);
    r = select((r < P(0)) != (a < P(0)), select(r == P(0), r, r + step), r);
    r = select(abs(r) >= abs(b), r - step, r);
    return copysign(r, a);
}

// The larger one is factored out, so that squares neither overflow nor underflow.
[[gnu::always_inline]] inline Pack<float> hypot(Pack<float> a, Pack<float> b) {
    using P = Pack<float>;
    constexpr double inf = __builtin_inf();
    P x = abs(a), y = abs(b);
    P top = select(x > y, x, y), low = select(x > y, y, x);
    P ratio = low / top;
    P r = top * sqrt(P(1) + ratio * ratio);
    r = select(top == P(0), top, r);
    r = select((x != x) | (y != y), x + y, r);
    return select((x == P(inf)) | (y == P(inf)), P(inf), r);
}

// log gamma(x) for x >= 1/2: Stirling's series from 8 on, and below that gamma(x + 8) = x (x + 1) ... (x + 7) gamma(x).
[[gnu::always_inline]] inline Pack<double> lgamma_right(Pack<double> x) {
    using P = Pack<double>;
    auto small = x < P(8);
    P y = select(small, x + P(8), x);
    P r = P(1) / y, s = r * r;
    // B(2k) / (2k (2k - 1))
    P series = P(-3617.0 / 122400);
    for (double c : {1.0 / 156, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12})
        series = fma(series, s, P(c));
    P value = (y - P(0.5)) * log(y) - y + P(0.91893853320467274178) + r * series;
    if (!any(small)) return value;
    // log gamma(1 + t) / t and log gamma(2 + t) / t for |t| < 1/16, where the other formula would cancel.
    constexpr double one[] = {-0.57721566490133, 0.82246703424728, -0.40068563605676, 0.27057912370565,
                              -0.20738341473198, 0.17041860275152, -0.14492361486761};
    constexpr double two[] = {0.42278433509847,    0.32246703342744,   -0.067352301056529, 0.020580801614061,
                              -0.0073855467660515, 0.0028939978175152, -0.0011944992382145};
    // With z = x (x + 7) the product of the outer factors, the next one (x + 1) (x + 6) is z + 6, and so on.
    P z = x * (x + P(7));
    P product = select(small, z * (z + P(6)) * ((z + P(10)) * (z + P(12))), P(1));
    value = value - log(product);
    P from_one = x - P(1), from_two = x - P(2);
    const auto at_one = abs(from_one) < P(0.0625), at_two = abs(from_two) < P(0.0625);
    if (!any(at_one | at_two)) return value;
    // For 1 it is 0, not -0.
    value = select(at_one, from_one * formula::polynomial(from_one, one) + P(0), value);
    return select(at_two, from_two * formula::polynomial(from_two, two), value);
}

// To the left of 1/2 by reflection: gamma(x) gamma(1 - x) = pi / sin(pi x).
[[gnu::always_inline]] inline Pack<double> lgamma_of(Pack<double> x) {
    using P = Pack<double>;
    auto left = x < P(0.5);
    P r = lgamma_right(select(left, P(1) - x, x));
    if (any(left)) {
        P sine = abs(sin((x - rint(x)) * P(3.14159265358979323846)));
        r = select(left, log(P(3.14159265358979323846) / sine) - r, r);
    }
    return r;
}

[[gnu::always_inline]] inline Pack<float> lgamma(Pack<float> x) {
    using P = Pack<float>;
    constexpr double inf = __builtin_inf();
    Doubles d = widen(x);
    P r = narrow({lgamma_of(d.low), lgamma_of(d.high)});
    return select(abs(x) == P(inf), P(inf), r);
}
inline Pack<double> lgamma(Pack<double> x) {
    return each(x, [](double t) { return scalar::lgamma(t); });
}

inline Pack<double> pow(Pack<double> x, Pack<double> y) {
    using P = Pack<double>;
    if (P r; one_short_power(x, y, r)) return r;
    const auto is_short = has_short_power(y);
    const P fast = short_power(x, y);
    if (!any(!is_short)) return fast;
    return select(is_short, fast, each(x, y, [](double s, double t) { return ::pow(s, t); }));
}

// clang-format off
inline Pack<double> asin(Pack<double> x) { return each(x, [](double t) { return ::asin(t); }); }
inline Pack<double> acos(Pack<double> x) { return each(x, [](double t) { return ::acos(t); }); }
inline Pack<double> atan(Pack<double> x) { return each(x, [](double t) { return ::atan(t); }); }
inline Pack<double> erf(Pack<double> x) { return each(x, [](double t) { return ::erf(t); }); }
inline Pack<double> erfc(Pack<double> x) { return each(x, [](double t) { return ::erfc(t); }); }
inline Pack<double> atan2(Pack<double> y, Pack<double> x) {
    return each(y, x, [](double s, double t) { return ::atan2(s, t); }); }
inline Pack<double> hypot(Pack<double> x, Pack<double> y) {
    return each(x, y, [](double s, double t) { return ::hypot(s, t); }); }

inline Pack<double> gauss(Pack<double> x) { return formula::gauss_twice(x); }
inline Pack<double> erfcx_right(Pack<double> x) { return formula::erfcx_right_twice(x); }
inline Pack<double> erfcx(Pack<double> x) { return formula::erfcx_twice(x); }
inline Pack<float> ndtr(Pack<float> x) { return formula::ndtr_of(x); }
inline Pack<double> ndtr(Pack<double> x) { return formula::ndtr_of(x); }
inline Pack<float> log_ndtr(Pack<float> x) { return formula::log_ndtr_of(x); }
inline Pack<double> log_ndtr(Pack<double> x) { return formula::log_ndtr_of(x); }
inline Pack<float> ndtri(Pack<float> p) { return formula::ndtri_of<false>(p); }
inline Pack<double> ndtri(Pack<double> p) { return formula::ndtri_of<true>(p); }
[[gnu::always_inline]] inline Pack<float> erfinv(Pack<float> x) { return formula::erfinv_signed<false>(x); }
inline Pack<double> erfinv(Pack<double> x) { return formula::erfinv_signed<true>(x); }
inline Pack<float> digamma(Pack<float> x) { return formula::digamma_of<false>(x); }
inline Pack<double> digamma(Pack<double> x) { return formula::digamma_of<true>(x); }
inline Pack<float> trigamma(Pack<float> x) { return formula::trigamma_of<false>(x); }
inline Pack<double> trigamma(Pack<double> x) { return formula::trigamma_of<true>(x); }
// clang-format on

}  // namespace lunaria::cpu::LUNARIA_ISA
