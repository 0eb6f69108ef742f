// Sums of a block are integers: products of weights and numbers are added up times the parts' scales, which are
// integers too, and what minima and offsets add follows from the sums of numbers.
#include "backends/cpu/simd/block_loops.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include <cmath>
#include <cstring>

namespace lunaria::cpu::LUNARIA_ISA {

namespace {

constexpr int64_t kBytesQ4 = 144, kBytesQ6 = 210;

template <class T>
[[gnu::always_inline]] inline T load(const void* from) {
    T x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

// An f16, not by the header's function, which is compiled for the oldest processor alone.
[[gnu::always_inline]] inline float half_at(const uint8_t* at) {
    const auto bits = load<uint16_t>(at);
#if defined(__F16C__)
    return _cvtsh_ss(bits);
#else
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, rest = bits & 0x7fffu;
    // Twice the exponent's range by a product: what was subnormal becomes normal, infinity is restored.
    const uint32_t moved = rest << 13;
    const float scaled = load<float>(&moved) * 0x1p112f;
    uint32_t whole = load<uint32_t>(&scaled) | sign;
    if (rest >= 0x7c00u) whole |= 0x7f800000u;
    return load<float>(&whole);
#endif
}

void round(const float* x, int64_t blocks, const RoundedRow& to) {
    for (int64_t b = 0; b < blocks; ++b, x += kLongBlock) {
        float most = 0;
        for (int64_t i = 0; i < kLongBlock; ++i) {
            const float size = std::fabs(x[i]);
            most = size > most ? size : most;
        }
        const float factor = most > 0 ? 127 / most : 0;
        to.scales[b] = most / 127;
        int8_t* numbers = to.numbers + b * kLongBlock;
        // Adding 1.5 * 2^23 leaves the nearest integer in the lowest bits.
        for (int64_t i = 0; i < kLongBlock; ++i) {
            const float shifted = x[i] * factor + 0x1.8p23f;
            numbers[i] = static_cast<int8_t>(load<int32_t>(&shifted) & 0xff);
        }
        for (int64_t part = 0; part < kLongBlock / kSummed; ++part) {
            int sum = 0;
            for (int64_t i = 0; i < kSummed; ++i) sum += numbers[part * kSummed + i];
            to.sums[b * (kLongBlock / kSummed) + part] = static_cast<int16_t>(sum);
        }
    }
}

// The scales of the eight parts of a block of 4 bits, and after them the minima.
[[gnu::always_inline]] inline void unpack_scales(const uint8_t* packed, uint8_t* to) {
    const auto a = load<uint32_t>(packed), b = load<uint32_t>(packed + 4), c = load<uint32_t>(packed + 8);
    const uint32_t four[4] = {a & 0x3f3f3f3fu, (c & 0x0f0f0f0fu) | ((a >> 6 & 0x03030303u) << 4), b & 0x3f3f3f3fu,
                              (c >> 4 & 0x0f0f0f0fu) | ((b >> 6 & 0x03030303u) << 4)};
    std::memcpy(to, four, sizeof four);
}

#if defined(__AVX2__)

[[gnu::always_inline]] inline float total(__m256 x) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

// Unsigned weights of at most six bits times numbers, in pairs, times a scale for each half of the 32.
[[gnu::always_inline]] inline __m256i products(__m256i w, const int8_t* x, int first, int second) {
    const __m256i scales = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_set1_epi16(static_cast<int16_t>(first))),
                                                   _mm_set1_epi16(static_cast<int16_t>(second)), 1);
    return _mm256_madd_epi16(scales, _mm256_maddubs_epi16(w, load<__m256i>(x)));
}

void rows_q4_k(const uint8_t* w, int64_t rows, int64_t blocks, const RoundedRow& x, float* out) {
    const __m256i low = _mm256_set1_epi8(15);
    for (int64_t row = 0; row < rows; ++row) {
        __m256 sum = _mm256_setzero_ps();
        for (int64_t b = 0; b < blocks; ++b, w += kBytesQ4) {
            uint8_t scales[16];
            unpack_scales(w + 4, scales);
            const int8_t* numbers = x.numbers + b * kLongBlock;
            __m256i parts = _mm256_setzero_si256();
            for (int p = 0; p < 4; ++p) {
                const __m256i both = load<__m256i>(w + 16 + 32 * p);
                parts = _mm256_add_epi32(
                    parts, products(_mm256_and_si256(both, low), numbers + 64 * p, scales[2 * p], scales[2 * p]));
                parts = _mm256_add_epi32(parts, products(_mm256_and_si256(_mm256_srli_epi16(both, 4), low),
                                                         numbers + 64 * p + 32, scales[2 * p + 1], scales[2 * p + 1]));
            }
            // A minimum belongs to two sums of 16.
            const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + 8));
            const __m256i twice = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(eight, eight));
            const __m256i below = _mm256_madd_epi16(twice, load<__m256i>(x.sums + b * 16));
            const float own = half_at(w) * x.scales[b], least = half_at(w + 2) * x.scales[b];
            sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(parts), _mm256_set1_ps(own), sum);
            sum = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(below), _mm256_set1_ps(least), sum);
        }
        out[row] = total(sum);
    }
}

void rows_q6_k(const uint8_t* w, int64_t rows, int64_t blocks, const RoundedRow& x, float* out) {
    const __m256i low = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    for (int64_t row = 0; row < rows; ++row) {
        __m256 sum = _mm256_setzero_ps();
        for (int64_t b = 0; b < blocks; ++b, w += kBytesQ6) {
            const auto* scales = reinterpret_cast<const int8_t*>(w + 192);
            const int8_t* numbers = x.numbers + b * kLongBlock;
            // Every weight is 32 less than its six bits.
            __m256i parts =
                _mm256_madd_epi16(_mm256_cvtepi8_epi16(load<__m128i>(scales)), load<__m256i>(x.sums + b * 16));
            parts = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_setzero_si256(), parts), 5);
            for (int half = 0; half < 2; ++half, numbers += 128, scales += 8) {
                const __m256i first = load<__m256i>(w + 64 * half), second = load<__m256i>(w + 64 * half + 32);
                const __m256i upper = load<__m256i>(w + 128 + 32 * half);
                const __m256i quarters[4] = {
                    _mm256_or_si256(_mm256_and_si256(first, low), _mm256_and_si256(_mm256_slli_epi16(upper, 4), two)),
                    _mm256_or_si256(_mm256_and_si256(second, low), _mm256_and_si256(_mm256_slli_epi16(upper, 2), two)),
                    _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(first, 4), low), _mm256_and_si256(upper, two)),
                    _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(second, 4), low),
                                    _mm256_and_si256(_mm256_srli_epi16(upper, 2), two))};
                for (int q = 0; q < 4; ++q)
                    parts = _mm256_add_epi32(parts,
                                             products(quarters[q], numbers + 32 * q, scales[2 * q], scales[2 * q + 1]));
            }
            sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(parts), _mm256_set1_ps(half_at(w + 208) * x.scales[b]), sum);
        }
        out[row] = total(sum);
    }
}

#else

void rows_q4_k(const uint8_t* w, int64_t rows, int64_t blocks, const RoundedRow& x, float* out) {
    for (int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (int64_t b = 0; b < blocks; ++b, w += kBytesQ4) {
            uint8_t scales[16];
            unpack_scales(w + 4, scales);
            int parts = 0, below = 0;
            for (int p = 0; p < 8; ++p) {
                const int8_t* numbers = x.numbers + b * kLongBlock + 32 * p;
                const uint8_t* bytes = w + 16 + p / 2 * 32;
                const int16_t* sums = x.sums + b * 16 + 2 * p;
                int own = 0;
                for (int i = 0; i < 32; ++i) own += (bytes[i] >> p % 2 * 4 & 15) * numbers[i];
                parts += own * scales[p];
                below += (sums[0] + sums[1]) * scales[8 + p];
            }
            sum += (half_at(w) * static_cast<float>(parts) - half_at(w + 2) * static_cast<float>(below)) * x.scales[b];
        }
        out[row] = sum;
    }
}

void rows_q6_k(const uint8_t* w, int64_t rows, int64_t blocks, const RoundedRow& x, float* out) {
    for (int64_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (int64_t b = 0; b < blocks; ++b, w += kBytesQ6) {
            int parts = 0;
            for (int p = 0; p < 16; ++p) {
                const int half = p / 8, quarter = p / 2 % 4, from = p % 2 * 16;
                const int8_t* numbers = x.numbers + b * kLongBlock + 16 * p;
                const uint8_t *lower = w + 64 * half + quarter % 2 * 32 + from, *upper = w + 128 + 32 * half + from;
                int own = 0;
                for (int i = 0; i < 16; ++i)
                    own += ((lower[i] >> quarter / 2 * 4 & 15) | (upper[i] >> quarter * 2 & 3) << 4) * numbers[i];
                parts += (own - 32 * x.sums[b * 16 + p]) * static_cast<int8_t>(w[192 + p]);
            }
            sum += half_at(w + 208) * x.scales[b] * static_cast<float>(parts);
        }
        out[row] = sum;
    }
}

#endif

}  // namespace

const BlockLoops block_loops = {round, rows_q4_k, rows_q6_k};

}  // namespace lunaria::cpu::LUNARIA_ISA
