// Exponentials, logarithms, trigonometric and hyperbolic functions on vectors of floats, written once over the vector
// type: packs of a SIMD register (backends/cpu/simd/pack.h) and values of generated code (jit/codegen/code.h).
//
// f32 is done by polynomials after a range reduction, within about 2 units in the last place (4 for pow, acosh and
// their like); exp, log, sin, cos, tanh and what is made of them also in f64. The rest of f64 asks libm lane by lane.
// Special values (infinities, NaN, signed zeros, subnormal arguments and results) agree with libm. Coefficients are
// Chebyshev fits of the function named beside them, low order first.
//
// Every vector type gives the same bits on one instruction set: nothing is contracted but what is written as fma, and
// no lane's result depends on its neighbours. Only the sign and the payload of a NaN are left open. Between instruction
// sets results differ in the last places, as fma rounds once or twice and AVX-512 has estimates and tables.
//
// A vector type P brings along, found by argument-dependent lookup: its element type Lane, P(double), arithmetic,
// comparisons that give a mask (with & | ! !=), select, abs, copysign, floor, ceil, trunc, rint, and
//   fma(a, b, c), fnma(a, b, c)     a b + c and c - a b; fuses(x) tells whether they round once
//   exact_sqrt(x)                   the correctly rounded root
//   at_least(x, limit), at_most     the larger, the smaller of x and a number; NaN stays NaN
//   bits_of(x), float_of(bits)      the bits as a vector of integers with + - & and the two below, and back
//   shift_left(bits, count), shift_right(bits, count)   zeros come in
//   replace_where(fast, mask, slow) slow() in the lanes of the mask, fast elsewhere; slow is run only where it is
//   needed each<f, d>(x...)                a function of libm, f for floats and d for doubles, lane by lane
//   in_doubles(f, x...)             f of the operands in double precision, rounded to f32
// and where the instructions exist, if has_avx512(x): scalef, getexp, getmant, fixup, rcp14, rsqrt14, lookup.
#pragma once

#include "core/ops/libm.h"

namespace lunaria::formula {

template <class P>
concept Vector = requires {
    typename P::Lane;
};
// Whether the numbers of a type are floats: that of a vector's lanes, or a number itself.
template <class T>
inline constexpr bool kSingle = sizeof(T) == 4;
template <Vector P>
inline constexpr bool kSingle<P> = sizeof(typename P::Lane) == 4;

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
    static constexpr int mantissa_bits = 23;
    static constexpr double mantissa = 0x7fffff, bias = 127;
    // Adding this number rounds a small one to an integer, which is then found in the lowest bits.
    static constexpr float rounder = 0x1.8p23f;
    static constexpr float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
    static constexpr float exp_min = -105.0f, exp_max = 90.0f, exp2_max = 152.0f, expm1_min = -30.0f, expm1_max = 89.0f;
    static constexpr float smallest_normal = 0x1p-126f, normalize = 0x1p25f, normalize_bits = 25.0f;
    static constexpr float two_over_pi = 0.636619772367581f;
    // pi / 2 in three parts, the first two with few bits so that their products with small integers are exact.
    static constexpr float half_pi[3] = {1.5703125f, 4.83751296997070312e-4f, 7.54978995489188216e-8f};
    static constexpr float trig_max = 10000.0f;
    // (exp(r) - 1 - r) / r^2
    static constexpr float exp_poly[] = {0.5f, 0.16666576266f, 0.041666556149f, 0.0083631789311f, 0.0013926184037f};
    // (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2
    static constexpr float sin_poly[] = {-0.16666667163f, 0.0083333319053f, -0.00019840084132f, 2.7249620870e-06f};
    static constexpr float cos_poly[] = {0.0416666679084f, -0.00138888880610f, 2.48005981120e-05f, -2.73007032092e-07f};
    // (log(1 + f) - f + f^2 / 2) / f^3
    static constexpr float log_poly[] = {0.3333333433f, -0.2499998957f, 0.2000001073f, -0.1666800082f,
                                         0.1428652406f, -0.1245074347f, 0.1103778332f, -0.1064619198f,
                                         0.1053086445f, -0.0620150007f};
};

template <>
struct MathConstants<double> {
    static constexpr int mantissa_bits = 52;
    static constexpr double mantissa = 0xfffffffffffff, bias = 1023;
    static constexpr double rounder = 0x1.8p52;
    static constexpr double ln2_hi = 6.93145751953125e-1, ln2_lo = 1.42860682030941723212e-6;
    static constexpr double exp_min = -746.0, exp_max = 711.0, exp2_max = 1080.0, expm1_min = -60.0, expm1_max = 710.0;
    static constexpr double smallest_normal = 0x1p-1022, normalize = 0x1p54, normalize_bits = 54.0;
    static constexpr double two_over_pi = 0.636619772367581343076;
    static constexpr double half_pi[3] = {1.57079625129699707031, 7.54978941586159635334e-8,
                                          5.39030285815811905290e-15};
    static constexpr double trig_max = 1e6;
    static constexpr double exp_poly[] = {0.5,
                                          0.1666666666666667,
                                          0.04166666666666667,
                                          0.008333333333326136,
                                          0.0013888888888883748,
                                          0.00019841269874820627,
                                          2.4801587325547743e-05,
                                          2.7557255400206422e-06,
                                          2.75572736431103e-07,
                                          2.5105217004720745e-08,
                                          2.0914686968086876e-09};
    static constexpr double sin_poly[] = {-0.16666666666666666,  0.008333333333333331,  -0.0001984126984126504,
                                          2.755731921932058e-06, -2.50521062259944e-08, 1.6058530596645953e-10,
                                          -7.586636882825159e-13};
    static constexpr double cos_poly[] = {0.041666666666666664,   -0.0013888888888888887, 2.4801587301584632e-05,
                                          -2.755731922139249e-07, 2.0876755787492604e-09, -1.1470460319209511e-11,
                                          4.745838412531023e-14};
    // (2 atanh(s) / s - 2) / s^2 in s^2, with s = f / (2 + f)
    static constexpr double log_poly[] = {0.666666666666667,  0.3999999999989819,  0.28571428626570206,
                                          0.2222221103781659, 0.18182896183483085, 0.15331487235865734,
                                          0.14619343453512615};
};
template <Vector P>
using ConstantsOf = MathConstants<typename P::Lane>;

// Coefficients low order first.
template <Vector P, class T, int N>
[[gnu::always_inline]] inline P poly(P x, const T (&c)[N]) {
    P y(static_cast<double>(c[N - 1]));
#pragma GCC unroll 16
    for (int i = N - 2; i >= 0; --i) y = fma(y, x, P(static_cast<double>(c[i])));
    return y;
}

// a / b within one unit in the last place for b of middling size (its reciprocal is a normal number): f32 division
// itself takes more than twice as long on 512-bit registers.
template <Vector P>
[[gnu::always_inline]] inline P quotient(P a, P b) {
    if constexpr (kSingle<P> && requires { rcp14(b); })
        if (has_avx512(b)) {
            P r = rcp14(b);
            r = fma(fnma(b, r, P(1)), r, r);
            P q = a * r;
            return fma(fnma(q, b, a), r, q);
        }
    return a / b;
}

// On AVX-512 the square root instruction takes three times as long as an estimate and one step of Newton's method,
// which comes within 0.6 units in the last place. Subnormal numbers would lose digits on the way.
template <Vector P>
[[gnu::always_inline]] inline P sqrt(P x) {
    if constexpr (kSingle<P> && requires { rsqrt14(x); })
        if (has_avx512(x)) {
            P y = rsqrt14(x), s = x * y;
            P r = fma(fnma(s, s, x), y * P(0.5), s);
            // Zeros and infinity are their own roots.
            r = fixup<0x00100100>(r, x);
            return replace_where(
                r, (x < P(0x1p-100)) & (x != P(0)), [&]() __attribute__((always_inline)) { return exact_sqrt(x); });
        }
    return exact_sqrt(x);
}

template <Vector P>
[[gnu::always_inline]] inline P rounder() {
    return P(ConstantsOf<P>::rounder);
}
// 2^n for an integer n of the normal range, from n + rounder.
template <Vector P>
[[gnu::always_inline]] inline P power_of_two(P rounded) {
    return float_of(shift_left(bits_of(rounded), ConstantsOf<P>::mantissa_bits) + bits_of(P(1)));
}
// x * 2^n for x near 1 and any integer n: in two steps, since 2^n itself need not be a number.
template <Vector P>
[[gnu::always_inline]] inline P scale(P x, P n) {
    if constexpr (requires { scalef(x, n); })
        if (has_avx512(x)) return scalef(x, n);
    P half = fma(n, P(0.5), rounder<P>());
    return x * power_of_two(half) * power_of_two((n - (half - rounder<P>())) + rounder<P>());
}

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1.
template <Vector P>
struct ExpParts {
    P n, em1, rounded;  // rounded: n + rounder
};
template <Vector P>
[[gnu::always_inline]] inline ExpParts<P> exp_parts(P x) {
    using C = ConstantsOf<P>;
    P rounded = fma(x, P(1.4426950408889634074), rounder<P>());
    P n = rounded - rounder<P>();
    P r = fnma(n, P(C::ln2_lo), fnma(n, P(C::ln2_hi), x));
    return {n, fma(r * r, poly(r, C::exp_poly), r), rounded};
}

// exp(x) * 2^shift, where only the result may overflow or underflow.
template <Vector P>
[[gnu::always_inline]] inline P exp_shifted(P x, double shift) {
    using C = ConstantsOf<P>;
    ExpParts<P> e = exp_parts(at_most(at_least(x, C::exp_min), C::exp_max));
    return scale(P(1) + e.em1, shift == 0 ? e.n : e.n + P(shift));
}
template <Vector P>
[[gnu::always_inline]] inline P exp(P x) {
    return exp_shifted(x, 0);
}

template <Vector P>
[[gnu::always_inline]] inline P exp2(P x) {
    using C = ConstantsOf<P>;
    x = at_most(at_least(x, -C::exp2_max), C::exp2_max);
    P n = (x + rounder<P>()) - rounder<P>();
    P r = (x - n) * P(0.69314718055994530942);
    return scale(P(1) + fma(r * r, poly(r, C::exp_poly), r), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved on the way because 2^n itself may overflow.
template <Vector P>
[[gnu::always_inline]] inline P expm1(P x) {
    using C = ConstantsOf<P>;
    ExpParts<P> e = exp_parts(at_most(at_least(x, C::expm1_min), C::expm1_max));
    P s = power_of_two(e.rounded - P(1));
    P half = fma(s, e.em1, s - P(0.5));
    return select(x == P(0), x, half + half);
}

// expm1 for x <= 0, up to the sign of a zero; any number elsewhere.
template <Vector P>
[[gnu::always_inline]] inline P expm1_negative(P x) {
    ExpParts<P> e = exp_parts(at_least(x, ConstantsOf<P>::expm1_min));
    P s = power_of_two(e.rounded);
    return fma(s, e.em1, s - P(1));
}

// log(m 2^e) = e ln 2 + log(m) with sqrt(1/2) <= m < sqrt(2), for x > 0.
template <Vector P>
struct LogParts {
    P e, f;  // exponent and m - 1
};
template <Vector P>
[[gnu::always_inline]] inline LogParts<P> log_parts(P x) {
    using C = ConstantsOf<P>;
    // Exponent and mantissa by instructions of their own, which know subnormal numbers.
    if constexpr (kSingle<P> && requires { getexp(x); })
        if (has_avx512(x)) {
            P m = getmant(x), e = getexp(x);
            auto upper = m > P(1.41421356f);
            return {select(upper, e + P(1), e), select(upper, m * P(0.5), m) - P(1)};
        }
    using Bits = decltype(bits_of(x));
    auto tiny = x < P(C::smallest_normal);
    x = select(tiny, x * P(C::normalize), x);
    Bits root_half = bits_of(P(0.70710678118654752440));
    Bits ix = bits_of(x) + (bits_of(P(1)) - root_half);
    // The exponent becomes the low bits of 2^23 (2^52).
    constexpr double base = C::mantissa + 1;
    P e = float_of(shift_right(ix, C::mantissa_bits) + bits_of(P(base))) - P(base + C::bias);
    e = select(tiny, e - P(C::normalize_bits), e);
    return {e, float_of((ix & Bits(C::mantissa)) + root_half) - P(1)};
}
// log(1 + f) - f + more, for sqrt(1/2) <= 1 + f < sqrt(2).
template <Vector P>
[[gnu::always_inline]] inline P log1p_rest(P f, P more) {
    if constexpr (kSingle<P>) {
        return fma(f * f, fma(f, poly(f, ConstantsOf<P>::log_poly), P(-0.5)), more);
    } else {
        P s = f / (P(2) + f), z = s * s, h = P(0.5) * f * f;
        return fma(s, fma(z, poly(z, ConstantsOf<P>::log_poly), h), more - h);
    }
}
// The value where log is defined and finite; its special values otherwise.
template <Vector P>
[[gnu::always_inline]] inline P log_range(P x, P value) {
    // One instruction: -inf for 0, NaN for negative numbers, infinity and NaN as they are.
    if constexpr (kSingle<P> && requires { getexp(x); })
        if (has_avx512(x)) return fixup<0x03530421>(value, x);
    constexpr double inf = __builtin_inf();
    auto regular = (x > P(0)) & (x < P(inf));
    P special = select(x == P(0), P(-inf), select(x < P(0), P(__builtin_nan("")), x));
    return select(regular, value, special);
}

template <Vector P>
[[gnu::always_inline]] inline P log_regular(P x, P tail) {
    using C = ConstantsOf<P>;
    LogParts<P> p = log_parts(x);
    return fma(p.e, P(C::ln2_hi), p.f + log1p_rest(p.f, fma(p.e, P(C::ln2_lo), tail)));
}
template <Vector P>
[[gnu::always_inline]] inline P log(P x) {
    return log_range(x, log_regular(x, P(0)));
}
template <Vector P>
[[gnu::always_inline]] inline P log2(P x) {
    LogParts<P> p = log_parts(x);
    // log2(e) - 1 times the logarithm, so that the larger part of the product is exact.
    P rest = log1p_rest(p.f, P(0)), l = p.f + rest;
    return log_range(x, p.e + (l + fma(l, P(0.44269504088896340736), rest - (l - p.f))));
}
template <Vector P>
[[gnu::always_inline]] inline P log10(P x) {
    LogParts<P> p = log_parts(x);
    P l = (kSingle<P> ? log1p_rest(p.f, p.f) : p.f + log1p_rest(p.f, P(0))) * P(0.43429448190325182765);
    return log_range(x, fma(p.e, P(0.301025390625), fma(p.e, P(4.60503898119521373889e-6), l)));
}
// log(u) with u = 1 + x rounded, and the first-order effect of the rounding: what u lost, over u.
template <Vector P>
[[gnu::always_inline]] inline P log1p(P x) {
    P u = P(1) + x;
    P lost = select(abs(x) < P(0.5), x - (u - P(1)), P(1) - (u - x));
    auto plain = (x == P(0)) | (x == P(__builtin_inf()));
    return select(plain, x, log_range(u, log_regular(u, quotient(lost, u))));
}

// sin(r), cos(r) and the quadrant for x = quadrant * pi / 2 + r.
template <Vector P>
struct TrigParts {
    P sin, cos;
    decltype(bits_of(P())) quadrant;
};
template <Vector P>
[[gnu::always_inline]] inline TrigParts<P> trig_parts(P x) {
    using C = ConstantsOf<P>;
    P rounded = fma(x, P(C::two_over_pi), rounder<P>());
    P n = rounded - rounder<P>();
    P r = fnma(n, P(C::half_pi[2]), fnma(n, P(C::half_pi[1]), fnma(n, P(C::half_pi[0]), x)));
    P z = r * r;
    P s = r * fma(z, poly(z, C::sin_poly), P(1));
    P c = P(1) - fnma(z * z, poly(z, C::cos_poly), P(0.5) * z);
    return {s, c, bits_of(rounded)};
}
template <Vector P>
[[gnu::always_inline]] inline auto outside_trig_range(P x) {
    return !(abs(x) <= P(ConstantsOf<P>::trig_max));
}
template <class Bits>
[[gnu::always_inline]] inline auto has_bit(Bits x, int bit) {
    return (x & Bits(bit)) != Bits(0);
}
template <Vector P, class Bits>
[[gnu::always_inline]] inline P turn(const TrigParts<P>& p, Bits quadrant) {
    P value = select(has_bit(quadrant, 1), p.cos, p.sin);
    return select(has_bit(quadrant, 2), -value, value);
}
template <Vector P>
[[gnu::always_inline]] inline P sin(P x) {
    TrigParts<P> p = trig_parts(x);
    return replace_where(turn(p, p.quadrant), outside_trig_range(x), [&] { return each<::sinf, ::sin>(x); });
}
template <Vector P>
[[gnu::always_inline]] inline P cos(P x) {
    TrigParts<P> p = trig_parts(x);
    using Bits = decltype(p.quadrant);
    return replace_where(turn(p, p.quadrant + Bits(1)), outside_trig_range(x), [&] { return each<::cosf, ::cos>(x); });
}
template <Vector P>
[[gnu::always_inline]] inline P tan(P x) {
    TrigParts<P> p = trig_parts(x);
    auto odd = has_bit(p.quadrant, 1);
    P value = select(odd, -p.cos, p.sin) / select(odd, p.sin, p.cos);
    return replace_where(value, outside_trig_range(x), [&] { return each<::tanf, ::tan>(x); });
}

}  // namespace lunaria::formula

#include "core/ops/functions_tables.h"

namespace lunaria::formula {

template <Vector P>
[[gnu::always_inline]] inline P tanh(P x) {
    if constexpr (kSingle<P> && requires { getexp(x); })
        if (has_avx512(x)) return copysign(tanh_from_table(abs(x)), x);
    P t = expm1_negative(P(-2) * abs(x));
    return copysign(quotient(t, P(2) + t), x);
}
template <Vector P>
[[gnu::always_inline]] inline P sinh(P x) {
    P a = abs(x), t = expm1(a);
    P small = P(0.5) * (t + t / (t + P(1)));
    return copysign(select(a > P(20), exp_shifted(a, -1), small), x);
}
template <Vector P>
[[gnu::always_inline]] inline P cosh(P x) {
    P e = exp_shifted(abs(x), -1);
    return e + P(0.25) / e;
}
template <Vector P>
[[gnu::always_inline]] inline P asinh(P x) {
    P a = abs(x);
    auto large = a > P(1e9);
    P grown = a + a * a / (P(1) + sqrt(fma(a, a, P(1))));
    // log(2a) = log1p(a - 1) + log 2
    P l = log1p(select(large, a - P(1), grown));
    return copysign(select(large, l + P(0.69314718055994530942), l), x);
}
template <Vector P>
[[gnu::always_inline]] inline P acosh(P x) {
    auto large = x > P(1e9);
    P t = x - P(1);
    P l = log1p(select(large, t, t + sqrt(t * (t + P(2)))));
    return select(x < P(1), P(__builtin_nan("")), select(large, l + P(0.69314718055994530942), l));
}
template <Vector P>
[[gnu::always_inline]] inline P atanh(P x) {
    P a = abs(x);
    return copysign(P(0.5) * log1p((a + a) / (P(1) - a)), x);
}

}  // namespace lunaria::formula
