// A vector register of numbers: Pack<float> has 4, 8 or 16 of them, depending on the instruction set that this file is
// compiled for. Everything here lies in the namespace of the instruction set, and nothing of it may be used outside
// backends/cpu/simd: the same names mean different code in each of the three builds.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <type_traits>

namespace lunaria::cpu::LUNARIA_ISA {

#if defined(__AVX512BW__)
inline constexpr int kBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kBytes = 32;
#else
inline constexpr int kBytes = 16;
#endif

template <int Size>
struct IntOf;
template <>
struct IntOf<1> {
    using type = int8_t;
};
template <>
struct IntOf<2> {
    using type = int16_t;
};
template <>
struct IntOf<4> {
    using type = int32_t;
};
template <>
struct IntOf<8> {
    using type = int64_t;
};
template <class T>
using BitsOf = typename IntOf<sizeof(T)>::type;

// The result of comparing two packs of T: all bits of a lane set or none.
template <class T>
struct Mask {
    typedef BitsOf<T> V __attribute__((vector_size(kBytes)));
    V v;

    Mask() = default;
    Mask(V x) : v(x) {}
    friend Mask operator&(Mask a, Mask b) { return a.v & b.v; }
    friend Mask operator|(Mask a, Mask b) { return a.v | b.v; }
    friend Mask operator!=(Mask a, Mask b) { return a.v ^ b.v; }
    friend Mask operator!(Mask a) { return ~a.v; }
};

template <class T>
struct Pack {
    static constexpr int lanes = kBytes / static_cast<int>(sizeof(T));
    typedef T V __attribute__((vector_size(kBytes)));
    typedef BitsOf<T> I __attribute__((vector_size(kBytes)));
    // Signed integers wrap around: their arithmetic uses the unsigned type.
    using Unsigned = std::make_unsigned_t<BitsOf<T>>;
    typedef Unsigned U __attribute__((vector_size(kBytes)));
    using Wrapping = std::conditional_t<std::is_integral_v<T>, Unsigned, T>;
    typedef Wrapping A __attribute__((vector_size(kBytes)));
    V v;

    Pack() = default;
    Pack(V x) : v(x) {}
    explicit Pack(double x) : v(static_cast<T>(x) - V{}) {}
    static Pack load(const T* p) {
        Pack r;
        __builtin_memcpy(&r.v, p, kBytes);
        return r;
    }
    void store(T* p) const { __builtin_memcpy(p, &v, kBytes); }
    I bits() const { return (I)v; }
    static Pack from_bits(I b) { return (V)b; }

    friend Pack operator+(Pack a, Pack b) { return (V)((A)a.v + (A)b.v); }
    friend Pack operator-(Pack a, Pack b) { return (V)((A)a.v - (A)b.v); }
    friend Pack operator*(Pack a, Pack b) { return (V)((A)a.v * (A)b.v); }
    friend Pack operator/(Pack a, Pack b) requires std::is_floating_point_v<T> { return a.v / b.v; }
    friend Pack operator-(Pack a) {
        if constexpr (std::is_floating_point_v<T>)
            return -a.v;
        else
            return (V)(-(U)a.v);
    }
    friend Pack operator&(Pack a, Pack b) requires std::is_integral_v<T> { return a.v & b.v; }
    friend Pack operator|(Pack a, Pack b) requires std::is_integral_v<T> { return a.v | b.v; }
    friend Pack operator^(Pack a, Pack b) requires std::is_integral_v<T> { return a.v ^ b.v; }
    friend Pack operator~(Pack a) requires std::is_integral_v<T> { return ~a.v; }
    // Shifting by the width or more (negative counts are large ones) leaves only the sign.
    friend Pack operator<<(Pack a, Pack b) requires std::is_integral_v<T> {
        const U n = (U)b.v, width = Unsigned(8 * sizeof(T)) - U{};
        return (V)((U)a.v << (n & (width - 1))) & (V)(n < width);
    }
    friend Pack operator>>(Pack a, Pack b) requires std::is_integral_v<T> {
        const U n = (U)b.v, last = Unsigned(8 * sizeof(T) - 1) - U{};
        if constexpr (std::is_signed_v<T>)
            return a.v >> (V)(n < last ? n : last);
        else
            return (a.v >> (n & last)) & (V)(n <= last);
    }

    friend Mask<T> operator==(Pack a, Pack b) { return (I)(a.v == b.v); }
    friend Mask<T> operator!=(Pack a, Pack b) { return (I)(a.v != b.v); }
    friend Mask<T> operator<(Pack a, Pack b) { return (I)(a.v < b.v); }
    friend Mask<T> operator<=(Pack a, Pack b) { return (I)(a.v <= b.v); }
    friend Mask<T> operator>(Pack a, Pack b) { return (I)(a.v > b.v); }
    friend Mask<T> operator>=(Pack a, Pack b) { return (I)(a.v >= b.v); }
};

template <class T>
[[gnu::always_inline]] inline Pack<T> select(Mask<T> m, Pack<T> a, Pack<T> b) {
    return m.v ? a.v : b.v;
}

template <class T>
[[gnu::always_inline]] inline bool any(Mask<T> m) {
#if defined(__AVX512BW__)
    return _mm512_test_epi8_mask((__m512i)m.v, (__m512i)m.v) != 0;
#elif defined(__AVX2__)
    return _mm256_testz_si256((__m256i)m.v, (__m256i)m.v) == 0;
#else
    typedef int64_t Words __attribute__((vector_size(kBytes)));
    Words w = (Words)m.v;
    return (w[0] | w[1]) != 0;
#endif
}

#if defined(__AVX2__) && !defined(__AVX512BW__)
// All bits of the first `count` lanes of four bytes, or of half as many of eight.
[[gnu::always_inline]] inline __m256i first_lanes(int count) {
    alignas(64) static constexpr int32_t kBits[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kBits + 8 - count));
}
#endif

// Copies `count` numbers and as many of `fill` as make it `lanes`. A function of its own: inlined, it would be most of
// the code of loops over rows and tiles, which all end so where there are no masked loads.
template <class T>
[[gnu::noinline]] void copy_filled(const T* from, int64_t count, T fill, T* to, int64_t lanes) {
    for (int64_t i = 0; i < lanes; ++i) to[i] = i < count ? from[i] : fill;
}

// The first `count` lanes; the others are zero. Memory after them is not touched.
template <class T>
[[gnu::always_inline]] inline Pack<T> load_part(const T* p, int count) {
#if defined(__AVX512BW__)
    int bytes = count * static_cast<int>(sizeof(T));
    return (typename Pack<T>::V)_mm512_maskz_loadu_epi8(bytes >= 64 ? ~0ull : (1ull << bytes) - 1, p);
#else
#if defined(__AVX2__)
    if constexpr (sizeof(T) >= 4)
        return (typename Pack<T>::V)_mm256_maskload_epi32(reinterpret_cast<const int*>(p),
                                                          first_lanes(count * static_cast<int>(sizeof(T) / 4)));
#endif
    alignas(kBytes) T part[Pack<T>::lanes];
    copy_filled(p, count, T(0), part, Pack<T>::lanes);
    return Pack<T>::load(part);
#endif
}

template <class T>
[[gnu::always_inline]] inline void store_part(T* p, Pack<T> x, int count) {
#if defined(__AVX512BW__)
    int bytes = count * static_cast<int>(sizeof(T));
    _mm512_mask_storeu_epi8(p, bytes >= 64 ? ~0ull : (1ull << bytes) - 1, (__m512i)x.v);
#else
#if defined(__AVX2__)
    if constexpr (sizeof(T) >= 4) {
        _mm256_maskstore_epi32(reinterpret_cast<int*>(p), first_lanes(count * static_cast<int>(sizeof(T) / 4)),
                               (__m256i)x.v);
        return;
    }
#endif
    alignas(kBytes) T part[Pack<T>::lanes];
    x.store(part);
    copy_filled(part, count, T(0), p, count);
#endif
}

}  // namespace lunaria::cpu::LUNARIA_ISA
