// The end of integer products for 16 neighbouring columns, as integer.h defines it, and the registers of 32-bit
// integers that integer kernels share. Compiled once for each instruction set, without fused multiplications and
// additions.
#pragma once

#include "core/lite/kernels/integer_sizes.h"
#include "core/lite/kernels/vector.h"
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace lunaria::lite::kernels::LUNARIA_ISA {

// Registers of 16 columns.
inline constexpr int kColumns = kPanel / kLanes;
struct Sums {
    Ints v[kColumns];
};

// Bytes 0 to 255 of kLanes columns.
[[gnu::always_inline]] inline Ints load_bytes(const uint8_t* p) {
#if defined(__AVX512BW__)
    return (Ints)_mm512_cvtepu8_epi32(load<__m128i>(p));
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#else
    typedef uint8_t Bytes4 __attribute__((vector_size(4)));
    return __builtin_convertvector(load<Bytes4>(p), Ints);
#endif
}

// Numbers from -128 to 127 as 16 bytes.
[[gnu::always_inline]] inline Bytes16 narrow(const Sums& q) {
#if defined(__AVX512BW__)
    return (Bytes16)_mm512_cvtepi32_epi8((__m512i)q.v[0]);
#elif defined(__AVX2__)
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32((__m256i)q.v[0], (__m256i)q.v[1]), 0xd8);
    return (Bytes16)_mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#elif defined(__SSE2__)
    return (Bytes16)_mm_packs_epi16(_mm_packs_epi32((__m128i)q.v[0], (__m128i)q.v[1]),
                                    _mm_packs_epi32((__m128i)q.v[2], (__m128i)q.v[3]));
#else
    Bytes16 b;
    for (int i = 0; i < 16; ++i) b[i] = static_cast<uint8_t>(q.v[i / 4][i % 4]);
    return b;
#endif
}

// Nearest even integers of numbers below 2^22: the sum with 1.5 * 2^23 has no places for fractions.
[[gnu::always_inline]] inline Ints nearest(Floats x) {
    return (Ints)(x + broadcast(0x1.8p23f)) - broadcast(static_cast<int32_t>(0x4b400000));
}
[[gnu::always_inline]] inline Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }

// s8 numbers count from -128 on as u8 ones do from 0, so that both are unsigned bytes inside kernels.
[[gnu::always_inline]] inline uint8_t flip_of(IntegerType type) { return type == IntegerType::s8 ? 0x80 : 0; }
[[gnu::always_inline]] inline int32_t offset_of(IntegerType type) { return type == IntegerType::s8 ? 128 : 0; }

class IntegerEnd {
  public:
    // `constants`: n rounded up to 16 integers and as many floats, which prepare() fills. sums: those of the weights'
    // columns; zero: the zero of unsigned activations.
    IntegerEnd(const IntegerEpilogue& e, int64_t n, void* constants)
        : e_(e),
          n_(n),
          columns_(round_up(n, kPanel)),
          correction_(static_cast<int32_t*>(constants)),
          multiplier_(reinterpret_cast<float*>(correction_ + columns_)),
          low_(static_cast<float>(e.low - e.zero)),
          high_(static_cast<float>(e.high - e.zero)),
          offset_(e.type == IntegerType::u8 ? e.zero - 128 : e.zero),
          flip_(e.type == IntegerType::u8 ? 0x80 : 0) {}
    void prepare(const int32_t* sums, int32_t zero) {
        for (int64_t j = 0; j < columns_; ++j) {
            const int32_t bias = j < n_ && e_.bias ? e_.bias[j] : 0;
            correction_[j] = static_cast<int32_t>(static_cast<uint32_t>(bias) -
                                                  static_cast<uint32_t>(zero) * static_cast<uint32_t>(sums[j]));
            multiplier_[j] = j < n_ ? e_.multiplier[j] : 0;
        }
    }

    // Nothing but limits, for 16 columns of which all are wanted: what rounds() does, with its constants in registers.
    bool is_plain(int64_t j, const void* residual) const {
        return !e_.to_float && !residual && !e_.table && n_ - j >= kPanel;
    }
    struct Plain {
        Ints correction[kColumns];
        Floats multiplier[kColumns];
        Floats low, high;
        Ints offset;
        uint8_t flip;
    };
    [[gnu::always_inline]] Plain plain(int64_t j) const {
        Plain p;
#pragma GCC unroll 4
        for (int v = 0; v < kColumns; ++v) {
            p.correction[v] = load<Ints>(correction_ + j + v * kLanes);
            p.multiplier[v] = load(multiplier_ + j + v * kLanes);
        }
        p.low = broadcast(low_);
        p.high = broadcast(high_);
        p.offset = broadcast(offset_);
        p.flip = flip_;
        return p;
    }
    [[gnu::always_inline]] static void finish(const Plain& p, const Sums& sums, uint8_t* y) {
        Sums q;
#pragma GCC unroll 4
        for (int v = 0; v < kColumns; ++v) {
            const Floats f = to_floats(sums.v[v] + p.correction[v]) * p.multiplier[v];
            q.v[v] = nearest(smaller(larger(f, p.low), p.high)) + p.offset;
        }
        store(y, narrow(q) ^ p.flip);
    }

    // Columns [j, j + 16) of one row; y and residual are that row's.
    [[gnu::always_inline]] void finish(int64_t j, const Sums& sums, void* y, const void* residual) const {
        const int64_t count = n_ - j < kPanel ? n_ - j : kPanel;
        Floats f[kColumns];
#pragma GCC unroll 4
        for (int v = 0; v < kColumns; ++v)
            f[v] = to_floats(sums.v[v] + load<Ints>(correction_ + j + v * kLanes)) * load(multiplier_ + j + v * kLanes);
        if (e_.to_float) {
            float* to = static_cast<float*>(y) + j;
#pragma GCC unroll 4
            for (int v = 0; v < kColumns; ++v) {
                const int64_t rest = count - v * kLanes;
                if (rest >= kLanes)
                    store(to + v * kLanes, f[v]);
                else if (rest > 0)
                    store_part(to + v * kLanes, f[v], rest);
            }
            return;
        }
        if (residual) add_residual(static_cast<const uint8_t*>(residual) + j, count, f);
        Sums q;
#pragma GCC unroll 4
        for (int v = 0; v < kColumns; ++v)
            q.v[v] = nearest(smaller(larger(f[v], broadcast(low_)), broadcast(high_))) + broadcast(offset_);
        Bytes16 bytes = narrow(q) ^ flip_;
        uint8_t* to = static_cast<uint8_t*>(y) + j;
        if (e_.table) look_up(bytes);
        if (count == kPanel)
            store(to, bytes);
        else
            for (int64_t i = 0; i < count; ++i) to[i] = bytes[i];
    }

  private:
    [[gnu::noinline]] void add_residual(const uint8_t* residual, int64_t count, Floats (&f)[kColumns]) const {
        alignas(16) uint8_t part[16] = {};
        if (count < kPanel) {
            for (int64_t i = 0; i < count; ++i) part[i] = residual[i];
            residual = part;
        }
        const Bytes16 unsigned_bytes = load<Bytes16>(residual) ^ flip_of(e_.type);
        store(part, unsigned_bytes);
        const Ints zero = broadcast(e_.residual_zero + offset_of(e_.type));
        const Floats multiplier = broadcast(e_.residual_multiplier);
        for (int v = 0; v < kColumns; ++v) f[v] += to_floats(load_bytes(part + v * kLanes) - zero) * multiplier;
    }
    [[gnu::noinline]] void look_up(Bytes16& bytes) const {
        const auto* table = static_cast<const uint8_t*>(e_.table);
        const uint8_t flip = flip_of(e_.type);
        for (int i = 0; i < 16; ++i) bytes[i] = table[bytes[i] ^ flip];
    }

    const IntegerEpilogue& e_;
    int64_t n_, columns_;
    int32_t* correction_;
    float* multiplier_;
    float low_, high_;
    int32_t offset_;
    uint8_t flip_;
};

#if defined(__AVX512VNNI__)
inline constexpr int kTogether = 4;  // rows of b in a word
#else
inline constexpr int kTogether = 2;
#endif
// Adds the products of the parts of each word: four unsigned bytes of x by signed ones of w, or two numbers of 16 bits.
[[gnu::always_inline]] inline Ints dot(Ints sum, Ints x, Ints w) {
#if defined(__AVX512VNNI__)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
#elif defined(__AVX512BW__)
    return sum + (Ints)_mm512_madd_epi16((__m512i)x, (__m512i)w);
#elif defined(__AVX2__)
    return sum + (Ints)_mm256_madd_epi16((__m256i)x, (__m256i)w);
#elif defined(__SSE2__)
    return sum + (Ints)_mm_madd_epi16((__m128i)x, (__m128i)w);
#elif defined(__aarch64__)
    const int16x8_t a = (int16x8_t)x, b = (int16x8_t)w;
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b)), high = vmull_high_s16(a, b);
    return sum + (Ints)vpaddq_s32(low, high);
#else
    return sum + ((x << 16) >> 16) * ((w << 16) >> 16) + (x >> 16) * (w >> 16);
#endif
}

// The same for words of four bytes; without VNNI the weights are at most 64, so that no sum of two products overflows
// 16 bits.
#if defined(__AVX2__) || defined(__SSSE3__)
inline constexpr bool kHasQuads = true;
#else
inline constexpr bool kHasQuads = false;
#endif
[[gnu::always_inline]] inline Ints dot_quads(Ints sum, Ints x, Ints w) {
#if defined(__AVX512VNNI__)
    return dot(sum, x, w);
#elif defined(__AVX512BW__)
    return sum + (Ints)_mm512_madd_epi16(_mm512_maddubs_epi16((__m512i)x, (__m512i)w), _mm512_set1_epi16(1));
#elif defined(__AVX2__)
    return sum + (Ints)_mm256_madd_epi16(_mm256_maddubs_epi16((__m256i)x, (__m256i)w), _mm256_set1_epi16(1));
#elif defined(__SSSE3__)
    return sum + (Ints)_mm_madd_epi16(_mm_maddubs_epi16((__m128i)x, (__m128i)w), _mm_set1_epi16(1));
#else
    (void)x;
    (void)w;
    return sum;
#endif
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
