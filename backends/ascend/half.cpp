#include "backends/ascend/half.h"

#include <immintrin.h>

#include "core/tensor/dtype.h"

namespace lunaria::ascend {

namespace {

bool has_conversions() {
    static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
    return has;
}

__attribute__((target("avx,f16c"))) int64_t widen(const uint16_t* from, float* to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    return i;
}

constexpr uint16_t kExponent = 0x7c00, kLargest = 0x7bff;

// `special`: whether a result is an infinity or NaN.
__attribute__((target("avx,f16c"))) int64_t narrow(const float* from, uint16_t* to, int64_t count, bool& special) {
    int64_t i = 0;
    const __m128i exponent = _mm_set1_epi16(kExponent);
    __m128i found = _mm_setzero_si128();
    for (; i + 8 <= count; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), 0);
        found = _mm_or_si128(found, _mm_cmpeq_epi16(_mm_and_si128(halves, exponent), exponent));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
    }
    special = _mm_movemask_epi8(found) != 0;
    return i;
}

}  // namespace

void halves_to_floats(const uint16_t* from, float* to, int64_t count) {
    for (int64_t i = has_conversions() ? widen(from, to, count) : 0; i < count; ++i) to[i] = half_to_float(from[i]);
}

bool floats_to_halves(const float* from, uint16_t* to, int64_t count, bool saturate) {
    bool special = false;
    for (int64_t i = has_conversions() ? narrow(from, to, count, special) : 0; i < count; ++i) {
        to[i] = float_to_half(from[i]);
        special |= (to[i] & kExponent) == kExponent;
    }
    if (!special || !saturate) return special;
    for (int64_t i = 0; i < count; ++i) {
        if ((to[i] & kExponent) != kExponent) continue;
        const bool nan = (to[i] & 0x3ff) != 0;
        to[i] = nan ? 0 : static_cast<uint16_t>((to[i] & 0x8000) | kLargest);
    }
    return special;
}

}  // namespace lunaria::ascend
