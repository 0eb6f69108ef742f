// A register of floats for the kernels, with 4, 8 or 16 lanes, in the namespace of the instruction set that a file is
// compiled for. With registers of 16 bytes it is the compiler's vector extension alone, which serves SSE and NEON.
//
// It is a vector type of core/ops/vector_math.h, so that activations are the formulas of core/ops.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "core/ops/vector_math.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

#if defined(__AVX512BW__)
inline constexpr int kBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif
inline constexpr int kLanes = kBytes / 4;

typedef float Floats __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));
typedef uint32_t Words __attribute__((vector_size(kBytes)));

template <class V = Floats, class T>
[[gnu::always_inline]] inline V load(const T* p) {
    V r;
    __builtin_memcpy(&r, p, sizeof r);
    return r;
}
template <class V, class T>
[[gnu::always_inline]] inline void store(T* p, V x) {
    __builtin_memcpy(p, &x, sizeof x);
}
// x - 0 is x, also for -0.
[[gnu::always_inline]] inline Floats broadcast(float x) { return x - Floats{}; }
[[gnu::always_inline]] inline Ints broadcast(int32_t x) { return x - Ints{}; }

#if defined(__AVX2__) && !defined(__AVX512BW__)
[[gnu::always_inline]] inline __m256i first_lanes(int64_t count) {
    alignas(64) static constexpr int32_t kBits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return load<__m256i>(kBits + 8 - count);
}
#endif
// The first `count` lanes; zeros in the others. Memory after them is not touched.
[[gnu::always_inline]] inline Floats load_part(const float* p, int64_t count) {
#if defined(__AVX512BW__)
    return (Floats)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
#elif defined(__AVX2__)
    return (Floats)_mm256_maskload_ps(p, first_lanes(count));
#else
    alignas(kBytes) float part[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) part[i] = p[i];
    return load(part);
#endif
}
[[gnu::always_inline]] inline void store_part(float* p, Floats x, int64_t count) {
#if defined(__AVX512BW__)
    _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), (__m512)x);
#elif defined(__AVX2__)
    _mm256_maskstore_ps(p, first_lanes(count), (__m256)x);
#else
    alignas(kBytes) float part[kLanes];
    store(part, x);
    for (int64_t i = 0; i < count; ++i) p[i] = part[i];
#endif
}

[[gnu::always_inline]] inline void copy(float* to, const float* from, int64_t count) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, load(from + i));
    if (i < count) store_part(to + i, load_part(from + i, count - i), count - i);
}
[[gnu::always_inline]] inline void clear(float* to, int64_t count) {
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) store(to + i, Floats{});
    for (; i < count; ++i) to[i] = 0;
}
[[gnu::always_inline]] inline void fill(float* to, int64_t count, float) { clear(to, count); }

typedef uint8_t Bytes16 __attribute__((vector_size(16)));
// Rows of at least 16 bytes end with a step back.
[[gnu::always_inline]] inline void copy(uint8_t* to, const uint8_t* from, int64_t count) {
    if (count >= 16) {
        for (int64_t i = 0; i + 16 < count; i += 16) store(to + i, load<Bytes16>(from + i));
        store(to + count - 16, load<Bytes16>(from + count - 16));
        return;
    }
    if (count >= 4) {
        for (int64_t i = 0; i + 4 < count; i += 4) store(to + i, load<uint32_t>(from + i));
        store(to + count - 4, load<uint32_t>(from + count - 4));
        return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}
[[gnu::always_inline]] inline void fill(uint8_t* to, int64_t count, uint8_t value) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) store(to + i, value - Bytes16{});
    for (; i < count; ++i) to[i] = value;
}

struct F16 {
    uint16_t bits;
};
struct BF16 {
    uint16_t bits;
};
[[gnu::always_inline]] inline Floats load_floats(const float* p) { return load(p); }
[[gnu::always_inline]] inline Floats load_floats(const BF16* p) {
#if defined(__AVX512BW__)
    return (Floats)_mm512_slli_epi32(_mm512_cvtepu16_epi32(load<__m256i>(p)), 16);
#elif defined(__AVX2__)
    return (Floats)_mm256_slli_epi32(_mm256_cvtepu16_epi32(load<__m128i>(p)), 16);
#else
    const Words w = {p[0].bits, p[1].bits, p[2].bits, p[3].bits};
    return (Floats)(w << 16);
#endif
}
[[gnu::always_inline]] inline Floats load_floats(const F16* p) {
#if defined(__AVX512BW__)
    return (Floats)_mm512_cvtph_ps(load<__m256i>(p));
#elif defined(__AVX2__)
    return (Floats)_mm256_cvtph_ps(load<__m128i>(p));
#else
    // The exponent is put right by a product, which also makes subnormal numbers normal; infinity and NaN by hand.
    const Words w = {p[0].bits, p[1].bits, p[2].bits, p[3].bits};
    const Words magnitude = (w & 0x7fff) << 13;
    const Words value = (Words)((Floats)magnitude * broadcast(0x1p112f));
    const Words special = (Words)(magnitude >= 0x0f800000u) & 0x7f800000u;
    return (Floats)(value | special | ((w & 0x8000) << 16));
#endif
}

// The sum of all lanes.
[[gnu::always_inline]] inline float total(Floats x) {
#if defined(__AVX512BW__)
    return _mm512_reduce_add_ps((__m512)x);
#elif defined(__AVX2__)
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
#else
    return (x[0] + x[1]) + (x[2] + x[3]);
#endif
}

// Lane by lane: mask ? a : b.
[[gnu::always_inline]] inline Floats choose(Ints mask, Floats a, Floats b) { return mask ? a : b; }
// NaN stays NaN.
[[gnu::always_inline]] inline Floats larger(Floats x, Floats limit) {
#if defined(__AVX512BW__)
    return (Floats)_mm512_max_ps((__m512)limit, (__m512)x);
#elif defined(__AVX2__)
    return (Floats)_mm256_max_ps((__m256)limit, (__m256)x);
#else
    return choose(x < limit, limit, x);
#endif
}
[[gnu::always_inline]] inline Floats smaller(Floats x, Floats limit) {
#if defined(__AVX512BW__)
    return (Floats)_mm512_min_ps((__m512)limit, (__m512)x);
#elif defined(__AVX2__)
    return (Floats)_mm256_min_ps((__m256)limit, (__m256)x);
#else
    return choose(x > limit, limit, x);
#endif
}

// The type that formulas compute with.
struct Number;
struct NumberMask {
    Ints v;
    friend NumberMask operator&(NumberMask a, NumberMask b) { return {a.v & b.v}; }
    friend NumberMask operator|(NumberMask a, NumberMask b) { return {a.v | b.v}; }
    friend NumberMask operator!(NumberMask a) { return {~a.v}; }
};
struct NumberBits {
    Words v;
    friend NumberBits operator+(NumberBits a, NumberBits b) { return {a.v + b.v}; }
    friend NumberBits operator-(NumberBits a, NumberBits b) { return {a.v - b.v}; }
    friend NumberBits operator&(NumberBits a, NumberBits b) { return {a.v & b.v}; }
    friend NumberBits operator|(NumberBits a, NumberBits b) { return {a.v | b.v}; }
    friend NumberBits operator<<(NumberBits a, int count) { return {a.v << count}; }
    friend NumberBits operator>>(NumberBits a, int count) { return {a.v >> count}; }
};
struct Number {
    Floats v;
    Number() = default;
    Number(Floats x) : v(x) {}
    explicit Number(double x) : v(broadcast(static_cast<float>(x))) {}
    friend Number operator+(Number a, Number b) { return a.v + b.v; }
    friend Number operator-(Number a, Number b) { return a.v - b.v; }
    friend Number operator*(Number a, Number b) { return a.v * b.v; }
    friend Number operator/(Number a, Number b) { return a.v / b.v; }
    friend Number operator-(Number a) { return -a.v; }
    friend NumberMask operator==(Number a, Number b) { return {a.v == b.v}; }
    friend NumberMask operator!=(Number a, Number b) { return {a.v != b.v}; }
    friend NumberMask operator<(Number a, Number b) { return {a.v < b.v}; }
    friend NumberMask operator<=(Number a, Number b) { return {a.v <= b.v}; }
    friend NumberMask operator>(Number a, Number b) { return {a.v > b.v}; }
    friend NumberMask operator>=(Number a, Number b) { return {a.v >= b.v}; }
};

// clang-format off
inline Number select(NumberMask m, Number a, Number b) { return choose(m.v, a.v, b.v); }
inline Number abs(Number x) { return (Floats)((Words)x.v & 0x7fffffffu); }
inline Number copysign(Number x, Number sign) {
    return (Floats)(((Words)x.v & 0x7fffffffu) | ((Words)sign.v & 0x80000000u)); }
inline Number at_least(Number x, double limit) { return larger(x.v, Number(limit).v); }
inline Number at_most(Number x, double limit) { return smaller(x.v, Number(limit).v); }
inline Number fma(Number a, Number b, Number c) { return a.v * b.v + c.v; }
inline NumberBits bits_of(Number x) { return {(Words)x.v}; }
inline Number float_of(NumberBits x) { return (Floats)x.v; }
inline NumberBits bits_like(Number, uint64_t bits) { return {static_cast<uint32_t>(bits) - Words{}}; }
inline NumberMask any_bit(Number, NumberBits bits) { return {(Ints)(bits.v != 0)}; }
constexpr bool is_double(Number) { return false; }
constexpr bool is_fused(Number) { return false; }
constexpr bool scales(Number) { return false; }
constexpr bool has_tables(Number) { return false; }
inline Number scaled(Number x, Number) { return x; }  // never called
inline Number alone(Number x) {
#if defined(__AVX512BW__)
    asm("" : "+v"(x.v));
#elif defined(__x86_64__)
    asm("" : "+x"(x.v));
#else
    asm("" : "+w"(x.v));
#endif
    return x; }
template <int K> inline Number poly_from_table(Number x, double, const float (&)[K][32]) { return x; }  // never called
template <class Rare> inline Number where_rare(NumberMask m, Number usual, Rare rare) { return select(m, rare(), usual); }
// clang-format on

using vector_math::exp;
using vector_math::expm1_negative;
using vector_math::normal_cdf;
using vector_math::tanh;

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
