// What core/ops/functions.h asks of a vector type, for packs; the arithmetic of the functions is there.
#pragma once

#include <immintrin.h>

#include "backends/cpu/simd/pack.h"
#include "core/ops/functions_special.h"

namespace lunaria::cpu::LUNARIA_ISA {

using formula::exp;
using formula::log;
using formula::log1p;
using formula::pow;

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
[[gnu::always_inline]] inline Pack<float> exact_sqrt(Pack<float> x) { return _mm512_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> exact_sqrt(Pack<double> x) { return _mm512_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm512_roundscale_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm512_roundscale_pd(x.v, Mode); }
#elif defined(__AVX2__)
[[gnu::always_inline]] inline Pack<float> exact_sqrt(Pack<float> x) { return _mm256_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> exact_sqrt(Pack<double> x) { return _mm256_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm256_round_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm256_round_pd(x.v, Mode); }
#else
[[gnu::always_inline]] inline Pack<float> exact_sqrt(Pack<float> x) { return _mm_sqrt_ps(x.v); }
[[gnu::always_inline]] inline Pack<double> exact_sqrt(Pack<double> x) { return _mm_sqrt_pd(x.v); }
template <int Mode>
[[gnu::always_inline]] inline Pack<float> rounded(Pack<float> x) { return _mm_round_ps(x.v, Mode); }
template <int Mode>
[[gnu::always_inline]] inline Pack<double> rounded(Pack<double> x) { return _mm_round_pd(x.v, Mode); }
#endif
// clang-format on

// Integers are whole already.
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

// The larger of x and a limit, the smaller of x and a limit; NaN stays NaN.
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

// c + a b and c - a b, with one rounding where the processor can.
#if defined(__FMA__)
inline constexpr bool kFused = true;
#else
inline constexpr bool kFused = false;
#endif
template <class T>
[[gnu::always_inline]] constexpr bool fuses(Pack<T>) {
    return kFused;
}
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
template <class T>
[[gnu::always_inline]] inline Pack<T> fnma(Pack<T> a, Pack<T> b, Pack<T> c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm512_fnmadd_ps((__m512)a.v, (__m512)b.v, (__m512)c.v);
    else
        return (typename Pack<T>::V)_mm512_fnmadd_pd((__m512d)a.v, (__m512d)b.v, (__m512d)c.v);
#elif defined(__FMA__)
    if constexpr (sizeof(T) == 4)
        return (typename Pack<T>::V)_mm256_fnmadd_ps((__m256)a.v, (__m256)b.v, (__m256)c.v);
    else
        return (typename Pack<T>::V)_mm256_fnmadd_pd((__m256d)a.v, (__m256d)b.v, (__m256d)c.v);
#else
    return c - a * b;
#endif
}

#if defined(__AVX512F__)
template <class T>
[[gnu::always_inline]] constexpr bool has_avx512(Pack<T>) {
    return true;
}
// clang-format off
[[gnu::always_inline]] inline Pack<float> scalef(Pack<float> x, Pack<float> n) { return _mm512_scalef_ps(x.v, n.v); }
[[gnu::always_inline]] inline Pack<double> scalef(Pack<double> x, Pack<double> n) { return _mm512_scalef_pd(x.v, n.v); }
[[gnu::always_inline]] inline Pack<float> getexp(Pack<float> x) { return _mm512_getexp_ps(x.v); }
[[gnu::always_inline]] inline Pack<float> getmant(Pack<float> x) {
    return _mm512_getmant_ps(x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero); }
[[gnu::always_inline]] inline Pack<float> rcp14(Pack<float> x) { return _mm512_rcp14_ps(x.v); }
[[gnu::always_inline]] inline Pack<float> rsqrt14(Pack<float> x) { return _mm512_rsqrt14_ps(x.v); }
template <int Table>
[[gnu::always_inline]] inline Pack<float> fixup(Pack<float> y, Pack<float> x) {
    return _mm512_fixupimm_ps(y.v, x.v, _mm512_set1_epi32(Table), 0); }
// The number at the lane's place (its lowest five bits) among 32.
[[gnu::always_inline]] inline Pack<float> lookup(Pack<int32_t> place, const float (&c)[32]) {
    return _mm512_permutex2var_ps(_mm512_load_ps(c), (__m512i)place.v, _mm512_load_ps(c + 16)); }
// clang-format on
#endif

template <class T>
[[gnu::always_inline]] inline Pack<BitsOf<T>> bits_of(Pack<T> x) {
    return (typename Pack<T>::I)x.v;
}
[[gnu::always_inline]] inline Pack<float> float_of(Pack<int32_t> bits) { return (Pack<float>::V)bits.v; }
[[gnu::always_inline]] inline Pack<double> float_of(Pack<int64_t> bits) { return (Pack<double>::V)bits.v; }
template <class T>
[[gnu::always_inline]] inline Pack<T> shift_left(Pack<T> bits, int count) {
    return (typename Pack<T>::V)((typename Pack<T>::U)bits.v << count);
}
template <class T>
[[gnu::always_inline]] inline Pack<T> shift_right(Pack<T> bits, int count) {
    return (typename Pack<T>::V)((typename Pack<T>::U)bits.v >> count);
}
template <class T>
[[gnu::always_inline]] inline T first_lane(Pack<T> x) {
    return x.v[0];
}

template <class T, class Slow>
[[gnu::always_inline]] inline Pack<T> replace_where(Pack<T> fast, Mask<T> mask, Slow slow) {
    if (any(mask)) [[unlikely]]
        return select(mask, slow(), fast);
    return fast;
}

// A function of libm lane by lane. The C library's functions are the only ones that code for a newer instruction set
// may share with the rest of the program.
template <auto F, class T, class... More>
[[gnu::noinline]] Pack<T> lane_by_lane(Pack<T> x, More... more) {
    Pack<T> y;
    for (int i = 0; i < Pack<T>::lanes; ++i) y.v[i] = F(x.v[i], more.v[i]...);
    return y;
}
template <float (*F)(float), double (*D)(double), class T>
[[gnu::always_inline]] inline Pack<T> each(Pack<T> x) {
    if constexpr (sizeof(T) == 4)
        return lane_by_lane<F>(x);
    else
        return lane_by_lane<D>(x);
}
template <float (*F)(float, float), double (*D)(double, double), class T>
[[gnu::always_inline]] inline Pack<T> each(Pack<T> x, Pack<T> y) {
    if constexpr (sizeof(T) == 4)
        return lane_by_lane<F>(x, y);
    else
        return lane_by_lane<D>(x, y);
}

// The halves of a pack in double precision, and back.
struct Doubles {
    Pack<double> low, high;
};
[[gnu::always_inline]] inline Doubles widen(Pack<float> x) {
    typedef float Half __attribute__((vector_size(kBytes / 2)));
    Half h[2];
    __builtin_memcpy(h, &x, kBytes);
    return {__builtin_convertvector(h[0], Pack<double>::V), __builtin_convertvector(h[1], Pack<double>::V)};
}
[[gnu::always_inline]] inline Pack<float> narrow(Doubles d) {
    typedef float Half __attribute__((vector_size(kBytes / 2)));
    Half h[2] = {__builtin_convertvector(d.low.v, Half), __builtin_convertvector(d.high.v, Half)};
    Pack<float> x;
    __builtin_memcpy(&x, h, kBytes);
    return x;
}
template <class F, class... X>
[[gnu::always_inline]] inline Pack<float> in_doubles(F f, X... x) {
    return narrow({f(widen(x).low...), f(widen(x).high...)});
}

}  // namespace lunaria::cpu::LUNARIA_ISA
