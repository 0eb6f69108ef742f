// Mathematical functions on packs, found by argument-dependent lookup from the formulas.
//
// f32 is done by polynomials after a range reduction, within about 2 units in the last place (4 for pow, acosh and
// their like); exp, log, sin, cos, tanh and what is made of them also in f64. The rest of f64 asks libm lane by lane.
// Special values (infinities, NaN, signed zeros, subnormal arguments and results) agree with libm. Coefficients are
// Chebyshev fits of the function named beside them, low order first.
#pragma once

#include "backends/cpu/simd/math_basic.h"
#include "backends/cpu/simd/math_tables.h"

namespace lunaria::cpu::LUNARIA_ISA {

template <class T>
struct MathConstants;

template <>
struct MathConstants<float> {
    static constexpr float ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f;
    static constexpr float exp_min = -105.0f, exp_max = 90.0f, expm1_max = 89.5f;
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
};

template <>
struct MathConstants<double> {
    static constexpr double ln2_hi = 6.93145751953125e-1, ln2_lo = 1.42860682030941723212e-6;
    static constexpr double exp_min = -746.0, exp_max = 711.0, expm1_max = 710.5;
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
};

// x = n ln 2 + r with |r| <= ln 2 / 2, and exp(r) - 1.
template <class T>
struct ExpParts {
    Pack<T> n, em1;
    typename Pack<T>::U bits;  // n in the lowest bits
};
template <class T>
[[gnu::always_inline]] inline ExpParts<T> exp_parts(Pack<T> x) {
    using C = MathConstants<T>;
    Pack<T> shifted = x * Pack<T>(1.4426950408889634074) + rounder<T>();
    Pack<T> n = shifted - rounder<T>();
    Pack<T> r = x - n * Pack<T>(C::ln2_hi) - n * Pack<T>(C::ln2_lo);
    return {n, r + r * r * poly(r, C::exp_poly), (typename Pack<T>::U)shifted.v};
}

// exp(x) * 2^shift, where only the result may overflow or underflow.
template <class T>
[[gnu::always_inline]] inline Pack<T> exp_shifted(Pack<T> x, double shift) {
    using C = MathConstants<T>;
    auto [n, em1, bits] = exp_parts(at_most(at_least(x, C::exp_min), C::exp_max));
    return scale(Pack<T>(1) + em1, n + Pack<T>(shift));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> exp(Pack<T> x) {
    return exp_shifted(x, 0);
}

template <class T>
[[gnu::always_inline]] inline Pack<T> exp2(Pack<T> x) {
    constexpr double limit = sizeof(T) == 4 ? 152 : 1080;
    x = at_most(at_least(x, -limit), limit);
    Pack<T> n = round_small(x);
    Pack<T> r = (x - n) * Pack<T>(0.69314718055994530942);
    return scale(Pack<T>(1) + (r + r * r * poly(r, MathConstants<T>::exp_poly)), n);
}

// 2^n (e^r - 1) + (2^n - 1), halved on the way because 2^n itself may overflow.
template <class T>
[[gnu::always_inline]] inline Pack<T> expm1(Pack<T> x) {
    Pack<T> bounded = at_most(at_least(x, sizeof(T) == 4 ? -30 : -60), MathConstants<T>::expm1_max);
    auto [n, em1, bits] = exp_parts(bounded);
    Pack<T> s = power_of_two(n - Pack<T>(1));
    Pack<T> half = s * em1 + (s - Pack<T>(0.5));
    return select(x == Pack<T>(0), x, half + half);
}

// expm1 for x <= 0, up to the sign of a zero; any number elsewhere.
template <class T>
[[gnu::always_inline]] inline Pack<T> expm1_negative(Pack<T> x) {
    auto [n, em1, bits] = exp_parts(at_least(x, sizeof(T) == 4 ? -30 : -60));
    Pack<T> s = (typename Pack<T>::V)((bits << kMantissaBits<T>)+(typename Pack<T>::U)Pack<T>(1).v);
    return s * em1 + (s - Pack<T>(1));
}

// log(m 2^e) = e ln 2 + log(m) with sqrt(1/2) <= m < sqrt(2).
template <class T>
struct LogParts {
    Pack<T> e, f;  // exponent and m - 1
};
template <class T>
[[gnu::always_inline]] inline LogParts<T> log_parts(Pack<T> x) {
#if defined(__AVX512F__)
    // Exponent and mantissa by instructions of their own, which know subnormal numbers.
    if constexpr (sizeof(T) == 4) {
        __m512 v = (__m512)x.v, m = _mm512_getmant_ps(v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero),
               e = _mm512_getexp_ps(v);
        __mmask16 upper = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421356f), _CMP_GT_OQ);
        m = _mm512_mask_mul_ps(m, upper, m, _mm512_set1_ps(0.5f));
        e = _mm512_mask_add_ps(e, upper, e, _mm512_set1_ps(1.0f));
        return {(typename Pack<T>::V)e, (typename Pack<T>::V)_mm512_sub_ps(m, _mm512_set1_ps(1.0f))};
    }
#endif
    using C = MathConstants<T>;
    auto tiny = x < Pack<T>(C::smallest_normal);
    x = select(tiny, x * Pack<T>(C::normalize), x);
    auto [e, m] = split_exponent(x);
    e = select(tiny, e - Pack<T>(C::normalize_bits), e);
    return {e, m - Pack<T>(1)};
}
// log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2).
[[gnu::always_inline]] inline Pack<float> log1p_rest(Pack<float> f) {
    // (log(1 + f) - f + f^2 / 2) / f^3
    static constexpr float c[] = {0.3333333433f,  -0.2499998957f, 0.2000001073f,  -0.1666800082f, 0.1428652406f,
                                  -0.1245074347f, 0.1103778332f,  -0.1064619198f, 0.1053086445f,  -0.0620150007f};
    Pack<float> ff = f * f;
    return ff * (f * poly(f, c) - Pack<float>(0.5));
}
[[gnu::always_inline]] inline Pack<double> log1p_rest(Pack<double> f) {
    // (2 atanh(s) / s - 2) / s^2 in s^2, with s = f / (2 + f)
    static constexpr double c[] = {0.666666666666667,   0.3999999999989819,  0.28571428626570206, 0.2222221103781659,
                                   0.18182896183483085, 0.15331487235865734, 0.14619343453512615};
    Pack<double> s = f / (Pack<double>(2) + f), z = s * s;
    Pack<double> h = Pack<double>(0.5) * f * f;
    return s * (h + z * poly(z, c)) - h;
}
// The value where log is defined and finite; its special values otherwise.
template <class T>
[[gnu::always_inline]] inline Pack<T> log_range(Pack<T> x, Pack<T> value) {
#if defined(__AVX512F__)
    // One instruction: -inf for 0, NaN for negative numbers, infinity and NaN as they are.
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm512_fixupimm_ps((__m512)value.v, (__m512)x.v, _mm512_set1_epi32(0x03530421), 0);
#endif
    constexpr double inf = __builtin_inf();
    auto regular = (x > Pack<T>(0)) & (x < Pack<T>(inf));
    Pack<T> special = select(x == Pack<T>(0), Pack<T>(-inf), select(x < Pack<T>(0), Pack<T>(__builtin_nan("")), x));
    return select(regular, value, special);
}

template <class T>
[[gnu::always_inline]] inline Pack<T> log_regular(Pack<T> x, Pack<T> tail) {
    using C = MathConstants<T>;
    auto [e, f] = log_parts(x);
    return e * Pack<T>(C::ln2_hi) + (f + (log1p_rest(f) + (e * Pack<T>(C::ln2_lo) + tail)));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> log(Pack<T> x) {
    return log_range(x, log_regular(x, Pack<T>(0)));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> log2(Pack<T> x) {
    auto [e, f] = log_parts(x);
    // log2(e) - 1 times the logarithm, so that the larger part of the product is exact.
    Pack<T> rest = log1p_rest(f), l = f + rest;
    return log_range(x, e + (l + (l * Pack<T>(0.44269504088896340736) + (rest - (l - f)))));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> log10(Pack<T> x) {
    auto [e, f] = log_parts(x);
    Pack<T> l = (f + log1p_rest(f)) * Pack<T>(0.43429448190325182765);
    return log_range(x, e * Pack<T>(0.301025390625) + (l + e * Pack<T>(4.60503898119521373889e-6)));
}
// log(u) with u = 1 + x rounded, and the first-order effect of the rounding: what u lost, over u.
template <class T>
[[gnu::always_inline]] inline Pack<T> log1p(Pack<T> x) {
    Pack<T> u = Pack<T>(1) + x;
    Pack<T> lost = select(abs(x) < Pack<T>(0.5), x - (u - Pack<T>(1)), Pack<T>(1) - (u - x));
    auto plain = (x == Pack<T>(0)) | (x == Pack<T>(__builtin_inf()));
    return select(plain, x, log_range(u, log_regular(u, quotient(lost, u))));
}

// sin(r), cos(r) and the quadrant for x = quadrant * pi / 2 + r.
template <class T>
struct TrigParts {
    Pack<T> sin, cos;
    typename Pack<T>::I quadrant;
};
template <class T>
[[gnu::always_inline]] inline TrigParts<T> trig_parts(Pack<T> x) {
    using C = MathConstants<T>;
    Pack<T> shifted = x * Pack<T>(C::two_over_pi) + rounder<T>();
    Pack<T> n = shifted - rounder<T>();
    Pack<T> r = ((x - n * Pack<T>(C::half_pi[0])) - n * Pack<T>(C::half_pi[1])) - n * Pack<T>(C::half_pi[2]);
    Pack<T> z = r * r;
    Pack<T> s = r * (Pack<T>(1) + z * poly(z, C::sin_poly));
    Pack<T> c = Pack<T>(1) - (Pack<T>(0.5) * z - z * z * poly(z, C::cos_poly));
    return {s, c, shifted.bits()};
}
template <class T>
[[gnu::always_inline]] inline bool outside_trig_range(Pack<T> x) {
    return any(!(abs(x) <= Pack<T>(MathConstants<T>::trig_max)));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> turn(const TrigParts<T>& p, typename Pack<T>::I quadrant) {
    Mask<T> odd = (quadrant & 1) != 0, negative = (quadrant & 2) != 0;
    Pack<T> value = select(odd, p.cos, p.sin);
    return select(negative, -value, value);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> sin(Pack<T> x) {
    if (outside_trig_range(x)) [[unlikely]]
        return each(x, [](T t) { return scalar::sin(t); });
    auto parts = trig_parts(x);
    return turn(parts, parts.quadrant);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> cos(Pack<T> x) {
    if (outside_trig_range(x)) [[unlikely]]
        return each(x, [](T t) { return scalar::cos(t); });
    auto parts = trig_parts(x);
    return turn(parts, parts.quadrant + 1);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> tan(Pack<T> x) {
    if (outside_trig_range(x)) [[unlikely]]
        return each(x, [](T t) { return scalar::tan(t); });
    auto [s, c, quadrant] = trig_parts(x);
    Mask<T> odd = (quadrant & 1) != 0;
    return select(odd, -c, s) / select(odd, s, c);
}

template <class T>
[[gnu::always_inline]] inline Pack<T> tanh(Pack<T> x) {
#if defined(__AVX512F__)
    // Beyond the table it is 1 to the last digit.
    if constexpr (sizeof(T) == 4)
        return copysign(poly_from_table(at_most(abs(x), 31.4 * kTanhWidth), kTanhWidth, kTanh), x);
#endif
    Pack<T> t = expm1_negative(Pack<T>(-2) * abs(x));
    return copysign(quotient(t, Pack<T>(2) + t), x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> sinh(Pack<T> x) {
    Pack<T> a = abs(x), t = expm1(a);
    Pack<T> small = Pack<T>(0.5) * (t + t / (t + Pack<T>(1)));
    return copysign(select(a > Pack<T>(20), exp_shifted(a, -1), small), x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> cosh(Pack<T> x) {
    Pack<T> e = exp_shifted(abs(x), -1);
    return e + Pack<T>(0.25) / e;
}
template <class T>
[[gnu::always_inline]] inline Pack<T> asinh(Pack<T> x) {
    Pack<T> a = abs(x), aa = a * a;
    auto large = a > Pack<T>(1e9);
    Pack<T> grown = a + aa / (Pack<T>(1) + sqrt(aa + Pack<T>(1)));
    // log(2a) = log1p(a - 1) + log 2
    Pack<T> l = log1p(select(large, a - Pack<T>(1), grown));
    return copysign(select(large, l + Pack<T>(0.69314718055994530942), l), x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> acosh(Pack<T> x) {
    auto large = x > Pack<T>(1e9);
    Pack<T> t = x - Pack<T>(1);
    Pack<T> l = log1p(select(large, t, t + sqrt(t * (t + Pack<T>(2)))));
    return select(x < Pack<T>(1), Pack<T>(__builtin_nan("")), select(large, l + Pack<T>(0.69314718055994530942), l));
}
template <class T>
[[gnu::always_inline]] inline Pack<T> atanh(Pack<T> x) {
    Pack<T> a = abs(x);
    return copysign(Pack<T>(0.5) * log1p((a + a) / (Pack<T>(1) - a)), x);
}

}  // namespace lunaria::cpu::LUNARIA_ISA

#include "backends/cpu/simd/math_more.h"
