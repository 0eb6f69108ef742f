// Mathematical functions on packs, found by argument-dependent lookup from the formulas: those of
// core/ops/vector_math.h, and the operations on vectors that these need.
#pragma once

#include <concepts>

#include "backends/cpu/simd/math_basic.h"
#include "core/ops/vector_math.h"

namespace lunaria::cpu::LUNARIA_ISA {

// A pack's bits as whole numbers.
template <class T>
struct Bits {
    using U = typename Pack<T>::U;
    U v;

    friend Bits operator+(Bits a, Bits b) { return {a.v + b.v}; }
    friend Bits operator-(Bits a, Bits b) { return {a.v - b.v}; }
    friend Bits operator&(Bits a, Bits b) { return {a.v & b.v}; }
    friend Bits operator|(Bits a, Bits b) { return {a.v | b.v}; }
    friend Bits operator<<(Bits a, int count) { return {a.v << count}; }
    friend Bits operator>>(Bits a, int count) { return {a.v >> count}; }
};
template <std::floating_point T>
[[gnu::always_inline]] inline Bits<T> bits_of(Pack<T> x) {
    return {(typename Pack<T>::U)x.v};
}
template <class T>
[[gnu::always_inline]] inline Pack<T> float_of(Bits<T> bits) {
    return (typename Pack<T>::V)bits.v;
}
template <class T>
[[gnu::always_inline]] inline Bits<T> bits_like(Pack<T>, uint64_t bits) {
    return {static_cast<typename Pack<T>::Unsigned>(bits) - typename Pack<T>::U{}};
}
template <class T>
[[gnu::always_inline]] inline Mask<T> any_bit(Pack<T>, Bits<T> bits) {
    return (typename Mask<T>::V)(bits.v != 0);
}

#if defined(__AVX512F__)
inline constexpr bool kWide = true;
#else
inline constexpr bool kWide = false;
#endif
template <class T>
constexpr bool is_double(Pack<T>) {
    return sizeof(T) == 8;
}
template <class T>
constexpr bool is_fused(Pack<T>) {
    return kFused;
}
template <class T>
constexpr bool scales(Pack<T>) {
    return kWide;
}
template <class T>
constexpr bool has_tables(Pack<T>) {
    return kFused && sizeof(T) == 4;
}

template <class T>
[[gnu::always_inline]] inline Pack<T> alone(Pack<T> x) {
#if defined(__AVX512F__)
    asm("" : "+v"(x.v));
#else
    asm("" : "+x"(x.v));
#endif
    return x;
}
template <class T>
[[gnu::always_inline]] inline Pack<T> scaled([[maybe_unused]] Pack<T> x, [[maybe_unused]] Pack<T> n) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm512_scalef_ps((__m512)x.v, (__m512)n.v);
    else
        return (typename Pack<T>::V)_mm512_scalef_pd((__m512d)x.v, (__m512d)n.v);
#else
    __builtin_unreachable();
#endif
}

// One of 32 numbers by the lowest five bits of each lane.
#if defined(__AVX512F__)
[[gnu::always_inline]] inline Pack<float> pick_of(const float (&numbers)[32], Bits<float> which) {
    return (Pack<float>::V)_mm512_permutex2var_ps(_mm512_load_ps(numbers), (__m512i)which.v,
                                                  _mm512_load_ps(numbers + 16));
}
#elif defined(__AVX2__)
[[gnu::always_inline]] inline Pack<float> pick_of(const float (&numbers)[32], Bits<float> which) {
    const auto at = (__m256i)which.v;
    auto eight = [&](int first) { return _mm256_permutevar8x32_ps(_mm256_load_ps(numbers + first), at); };
    // Selects within pairs of groups of eight by bit 3, and between the results by bit 4.
    const auto second = (__m256)_mm256_slli_epi32(at, 28), upper = (__m256)_mm256_slli_epi32(at, 27);
    return (Pack<float>::V)_mm256_blendv_ps(_mm256_blendv_ps(eight(0), eight(8), second),
                                            _mm256_blendv_ps(eight(16), eight(24), second), upper);
}
#endif

// The polynomial of the interval around the multiple of `width` next to x, for 0 <= x <= 31.4 width; NaN stays NaN.
// Both the centre and the distance from it are exact, as width has few bits.
template <class T, int K>
[[gnu::always_inline]] inline Pack<T> poly_from_table([[maybe_unused]] Pack<T> x, [[maybe_unused]] double width,
                                                      [[maybe_unused]] const float (&c)[K][32]) {
#if defined(__AVX2__)
    if constexpr (sizeof(T) == 4) {
        const Pack<T> center = vector_math::rounder(x), shifted = fma(x, Pack<T>(1 / width), center);
        const Pack<T> t = fma(center - shifted, Pack<T>(width), x);
        Pack<T> y = pick_of(c[K - 1], bits_of(shifted));
#pragma GCC unroll 16
        for (int k = K - 2; k >= 0; --k) y = fma(y, t, pick_of(c[k], bits_of(shifted)));
        return y;
    }
#endif
    __builtin_unreachable();
}

template <class T, class F>
[[gnu::always_inline]] inline Pack<T> where_rare(Mask<T> m, Pack<T> usual, F&& rare) {
    if (any(m)) [[unlikely]]
        return select(m, rare(), usual);
    return usual;
}
template <class T>
[[gnu::noinline]] Pack<T> by_libm(vector_math::Libm f, Pack<T> x) {
    if (f == vector_math::Libm::sin) return each(x, [](T t) { return scalar::sin(t); });
    if (f == vector_math::Libm::cos) return each(x, [](T t) { return scalar::cos(t); });
    return each(x, [](T t) { return scalar::tan(t); });
}

#if defined(__AVX512F__)
// Exponent and mantissa by instructions that handle subnormal numbers, with the results of vector_math.h.
[[gnu::always_inline]] inline vector_math::LogParts<Pack<float>> log_parts(Pack<float> x) {
    __m512 v = (__m512)x.v, m = _mm512_getmant_ps(v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero), e = _mm512_getexp_ps(v);
    __mmask16 upper = _mm512_cmp_ps_mask(m, _mm512_set1_ps(1.41421356f), _CMP_GE_OQ);
    m = _mm512_mask_mul_ps(m, upper, m, _mm512_set1_ps(0.5f));
    e = _mm512_mask_add_ps(e, upper, e, _mm512_set1_ps(1.0f));
    return {(Pack<float>::V)e, (Pack<float>::V)_mm512_sub_ps(m, _mm512_set1_ps(1.0f))};
}
// One instruction: -inf for 0, NaN for negative numbers, infinity and NaN as they are.
[[gnu::always_inline]] inline Pack<float> log_range(Pack<float> x, Pack<float> value) {
    return (Pack<float>::V)_mm512_fixupimm_ps((__m512)value.v, (__m512)x.v, _mm512_set1_epi32(0x03530421), 0);
}
#endif

using vector_math::acosh;
using vector_math::asinh;
using vector_math::atanh;
using vector_math::cos;
using vector_math::cosh;
using vector_math::exp;
using vector_math::exp2;
using vector_math::expm1;
using vector_math::expm1_negative;
using vector_math::log;
using vector_math::log10;
using vector_math::log1p;
using vector_math::log2;
using vector_math::normal_cdf;
using vector_math::poly;
using vector_math::scale;
using vector_math::sin;
using vector_math::sinh;
using vector_math::split_exponent;
using vector_math::tan;
using vector_math::tanh;

// For f32; f64 calls libm.
[[gnu::always_inline]] inline Pack<float> atan(Pack<float> x) { return vector_math::atan(x); }
[[gnu::always_inline]] inline Pack<float> atan2(Pack<float> y, Pack<float> x) { return vector_math::atan2(y, x); }
[[gnu::always_inline]] inline Pack<float> asin(Pack<float> x) { return vector_math::asin(x); }
[[gnu::always_inline]] inline Pack<float> acos(Pack<float> x) { return vector_math::acos(x); }
[[gnu::always_inline]] inline Pack<float> erf(Pack<float> x) { return vector_math::erf(x); }
[[gnu::always_inline]] inline Pack<float> erfc(Pack<float> x) { return vector_math::erfc(x); }
[[gnu::always_inline]] inline Pack<float> erfcx(Pack<float> x) { return vector_math::erfcx(x); }
[[gnu::always_inline]] inline Pack<float> erfcx_right(Pack<float> x) { return vector_math::erfcx_right(x); }
[[gnu::always_inline]] inline Pack<float> gauss(Pack<float> x) { return vector_math::gauss(x); }

}  // namespace lunaria::cpu::LUNARIA_ISA

#include "backends/cpu/simd/math_more.h"
