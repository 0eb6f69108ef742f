// Floats of two bytes, for code that is not in a hurry.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace lunaria::lite::kernels {

// Nearest even; numbers too large become infinite.
inline uint16_t to_f16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00);
    if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        // Adding 1/2 puts the last place of a subnormal half into the last place of the sum.
        const float sum = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
    }
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}
inline uint16_t to_bf16(float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float from_f16(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
    return std::copysign(std::bit_cast<float>(magnitude << 13) * 0x1p112f, std::bit_cast<float>(sign));
}

}  // namespace lunaria::lite::kernels
