// Rounding, sign and exponent manipulation on packs: the basis of math.h.
#pragma once

#include <immintrin.h>

#include "backends/cpu/simd/pack.h"

// libm by its C names: the only functions that code for a newer instruction set may share with the rest of the program.
extern "C" {
float sinf(float) noexcept;
float cosf(float) noexcept;
float tanf(float) noexcept;
float fmodf(float, float) noexcept;
float lgammaf_r(float, int*) noexcept;
double sin(double) noexcept;
double cos(double) noexcept;
double tan(double) noexcept;
double asin(double) noexcept;
double acos(double) noexcept;
double atan(double) noexcept;
double atan2(double, double) noexcept;
double erf(double) noexcept;
double erfc(double) noexcept;
double pow(double, double) noexcept;
double fmod(double, double) noexcept;
double hypot(double, double) noexcept;
double lgamma_r(double, int*) noexcept;
}

namespace lunaria::cpu::LUNARIA_ISA {

namespace scalar {
inline float sin(float x) { return ::sinf(x); }
inline float cos(float x) { return ::cosf(x); }
inline float tan(float x) { return ::tanf(x); }
inline float fmod(float x, float y) { return ::fmodf(x, y); }
inline double sin(double x) { return ::sin(x); }
inline double cos(double x) { return ::cos(x); }
inline double tan(double x) { return ::tan(x); }
inline double fmod(double x, double y) { return ::fmod(x, y); }
inline float lgamma(float x) {
    int sign;
    return ::lgammaf_r(x, &sign);
}
inline double lgamma(double x) {
    int sign;
    return ::lgamma_r(x, &sign);
}
}  // namespace scalar

// f applied lane by lane.
template <class T, class F>
[[gnu::noinline]] Pack<T> each(Pack<T> x, F f) {
    alignas(kBytes) T a[Pack<T>::lanes];
    x.store(a);
    for (T& t : a) t = f(t);
    return Pack<T>::load(a);
}
template <class T, class F>
[[gnu::noinline]] Pack<T> each(Pack<T> x, Pack<T> y, F f) {
    alignas(kBytes) T a[Pack<T>::lanes], b[Pack<T>::lanes];
    x.store(a);
    y.store(b);
    for (int i = 0; i < Pack<T>::lanes; ++i) a[i] = f(a[i], b[i]);
    return Pack<T>::load(a);
}

template <class T>
[[gnu::always_inline]] inline Pack<T> abs(Pack<T> x) {
    if constexpr (std::is_floating_point_v<T>) {
        using U = typename Pack<T>::U;
        return (typename Pack<T>::V)((U)x.v & (~U{} >> 1));
    } else if constexpr (std::is_unsigned_v<T>) {
        return x;
    } else {
        return select(x < Pack<T>(0), -x, x);
    }
}
template <class T>
[[gnu::always_inline]] inline Pack<T> copysign(Pack<T> magnitude, Pack<T> sign) {
    using U = typename Pack<T>::U;
    U rest = ~U{} >> 1;
    return (typename Pack<T>::V)(((U)magnitude.v & rest) | ((U)sign.v & ~rest));
}

// clang-format off
#if defined(__AVX512F__)
// Generated code has the instruction too: an estimate and a step of Newton's method would differ from it by an ulp.
[[gnu::always_inline]] inline Pack<float> sqrt(Pack<float> x) { return _mm512_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> sqrt(Pack<double> x) { return _mm512_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm512_roundscale_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm512_roundscale_pd(x.v, Mode); }
#elif defined(__AVX2__)
[[gnu::always_inline]] inline Pack<float> sqrt(Pack<float> x) { return _mm256_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> sqrt(Pack<double> x) { return _mm256_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm256_round_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm256_round_pd(x.v, Mode); }
#else
[[gnu::always_inline]] inline Pack<float> sqrt(Pack<float> x) { return _mm_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> sqrt(Pack<double> x) { return _mm_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm_round_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm_round_pd(x.v, Mode); }
#endif
// clang-format on

// Integers need no rounding.
template <int Mode, class T>
[[gnu::always_inline]] inline Pack<T> rounded(Pack<T> x) requires std::is_integral_v<T> {
    return x;
}
template <class T>
[[gnu::always_inline]] inline Pack<T> floor(Pack<T> x) {
    return rounded<_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC>(x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> ceil(Pack<T> x) {
    return rounded<_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC>(x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> trunc(Pack<T> x) {
    return rounded<_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC>(x);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> rint(Pack<T> x) {
    return rounded<_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC>(x);
}

// The larger (smaller) of x and a limit; NaN stays NaN.
template <class T>
[[gnu::always_inline]] inline Pack<T> at_least(Pack<T> x, double limit) {
    using V = typename Pack<T>::V;
    Pack<T> l(limit);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (V)_mm512_max_ps((__m512)l.v, (__m512)x.v);
    else
        return (V)_mm512_max_pd((__m512d)l.v, (__m512d)x.v);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return (V)_mm256_max_ps((__m256)l.v, (__m256)x.v);
    else
        return (V)_mm256_max_pd((__m256d)l.v, (__m256d)x.v);
#else
    if constexpr (sizeof(T) == 4)
        return (V)_mm_max_ps((__m128)l.v, (__m128)x.v);
    else
        return (V)_mm_max_pd((__m128d)l.v, (__m128d)x.v);
#endif
}
template <class T>
[[gnu::always_inline]] inline Pack<T> at_most(Pack<T> x, double limit) {
    using V = typename Pack<T>::V;
    Pack<T> l(limit);
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (V)_mm512_min_ps((__m512)l.v, (__m512)x.v);
    else
        return (V)_mm512_min_pd((__m512d)l.v, (__m512d)x.v);
#elif defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return (V)_mm256_min_ps((__m256)l.v, (__m256)x.v);
    else
        return (V)_mm256_min_pd((__m256d)l.v, (__m256d)x.v);
#else
    if constexpr (sizeof(T) == 4)
        return (V)_mm_min_ps((__m128)l.v, (__m128)x.v);
    else
        return (V)_mm_min_pd((__m128d)l.v, (__m128d)x.v);
#endif
}

// a * b + c with one rounding where the processor can; kFused tells.
#if defined(__FMA__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif
template <class T>
[[gnu::always_inline]] inline Pack<T> fma(Pack<T> a, Pack<T> b, Pack<T> c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm512_fmadd_ps((__m512)a.v, (__m512)b.v, (__m512)c.v);
    else
        return (typename Pack<T>::V)_mm512_fmadd_pd((__m512d)a.v, (__m512d)b.v, (__m512d)c.v);
#elif defined(__FMA__)
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm256_fmadd_ps((__m256)a.v, (__m256)b.v, (__m256)c.v);
    else
        return (typename Pack<T>::V)_mm256_fmadd_pd((__m256d)a.v, (__m256d)b.v, (__m256d)c.v);
#else
    return a * b + c;
#endif
}

// The halves of a pack in double precision, and back.
struct Doubles {
    Pack<double> low, high;
};
// GCC would convert vectors in halves and put these together.
[[gnu::always_inline]] inline Doubles widen(Pack<float> x) {
#if defined(__AVX512F__)
    const auto v = (__m512)x.v;
    return {Pack<double>((Pack<double>::V)_mm512_cvtps_pd(_mm512_castps512_ps256(v))),
            Pack<double>((Pack<double>::V)_mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)))};
#elif defined(__AVX2__)
    const auto v = (__m256)x.v;
    return {Pack<double>((Pack<double>::V)_mm256_cvtps_pd(_mm256_castps256_ps128(v))),
            Pack<double>((Pack<double>::V)_mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)))};
#else
    typedef float Half __attribute__((vector_size(kBytes / 2)));
    Half h[2];
    __builtin_memcpy(h, &x, kBytes);
    return {__builtin_convertvector(h[0], Pack<double>::V), __builtin_convertvector(h[1], Pack<double>::V)};
#endif
}
[[gnu::always_inline]] inline Pack<float> narrow(Doubles d) {
#if defined(__AVX512F__)
    const __m256 low = _mm512_cvtpd_ps((__m512d)d.low.v), high = _mm512_cvtpd_ps((__m512d)d.high.v);
    return (Pack<float>::V)_mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#elif defined(__AVX2__)
    const __m128 low = _mm256_cvtpd_ps((__m256d)d.low.v), high = _mm256_cvtpd_ps((__m256d)d.high.v);
    return (Pack<float>::V)_mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
#else
    typedef float Half __attribute__((vector_size(kBytes / 2)));
    Half h[2] = {__builtin_convertvector(d.low.v, Half), __builtin_convertvector(d.high.v, Half)};
    Pack<float> x;
    __builtin_memcpy(&x, h, kBytes);
    return x;
#endif
}

}  // namespace lunaria::cpu::LUNARIA_ISA
