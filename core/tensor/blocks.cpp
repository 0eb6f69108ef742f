#include "core/tensor/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/tensor/dtype.h"

namespace lunaria {

namespace {

float half_at(const uint8_t* at) {
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return half_to_float(bits);
}

void put_half(float x, uint8_t* at) {
    const uint16_t bits = float_to_half(x);
    std::memcpy(at, &bits, sizeof bits);
}

// The integer part within bounds; the lower bound for NaN.
int whole(float x, int least, int most) {
    if (!(x > static_cast<float>(least))) return least;
    return x < static_cast<float>(most) ? static_cast<int>(x) : most;
}

constexpr int64_t kShort = 32, kLong = 256;

// 32 signed bytes after their scale.
void decode_q8_0(const uint8_t* block, int64_t count, float* to) {
    for (; count > 0; --count, block += 2 + kShort, to += kShort) {
        const float scale = half_at(block);
        for (int64_t i = 0; i < kShort; ++i) to[i] = scale * static_cast<float>(static_cast<int8_t>(block[2 + i]));
    }
}

void encode_q8_0(const float* from, int64_t count, uint8_t* block) {
    for (; count > 0; --count, block += 2 + kShort, from += kShort) {
        float most = 0;
        for (int64_t i = 0; i < kShort; ++i) most = std::max(most, std::fabs(from[i]));
        const float scale = most / 127, factor = scale != 0 ? 1 / scale : 0;
        put_half(scale, block);
        for (int64_t i = 0; i < kShort; ++i)
            block[2 + i] = static_cast<uint8_t>(whole(std::round(from[i] * factor), -127, 127));
    }
}

// 32 numbers of four bits, less 8, after their scale: the lower halves of the bytes first.
void decode_q4_0(const uint8_t* block, int64_t count, float* to) {
    for (; count > 0; --count, block += 2 + kShort / 2, to += kShort) {
        const float scale = half_at(block);
        for (int64_t i = 0; i < kShort / 2; ++i) {
            const int pair = block[2 + i];
            to[i] = scale * static_cast<float>((pair & 15) - 8);
            to[i + kShort / 2] = scale * static_cast<float>((pair >> 4) - 8);
        }
    }
}

void encode_q4_0(const float* from, int64_t count, uint8_t* block) {
    for (; count > 0; --count, block += 2 + kShort / 2, from += kShort) {
        float most = 0;
        for (int64_t i = 0; i < kShort; ++i)
            if (std::fabs(from[i]) > std::fabs(most)) most = from[i];
        // The number of largest magnitude becomes -8, whatever its sign.
        const float scale = most / -8, factor = scale != 0 ? 1 / scale : 0;
        put_half(scale, block);
        auto quantised = [factor](float x) { return whole(x * factor + 8.5f, 0, 15); };
        for (int64_t i = 0; i < kShort / 2; ++i)
            block[2 + i] = static_cast<uint8_t>(quantised(from[i]) | quantised(from[i + kShort / 2]) << 4);
    }
}

// 256 numbers in eight parts of 32 with a scale and a minimum of six bits each, which two halves scale again.
void decode_q4_k(const uint8_t* block, int64_t count, float* to) {
    for (; count > 0; --count, block += 144) {
        const float scale = half_at(block), least = half_at(block + 2);
        const uint8_t *const packed = block + 4, *numbers = block + 16;
        for (int part = 0; part < 8; ++part) {
            // The upper two bits of the last four scales and minima lie in those of the first four.
            const int s = part < 4 ? packed[part] & 63 : (packed[part + 4] & 15) | (packed[part - 4] >> 6) << 4;
            const int m = part < 4 ? packed[part + 4] & 63 : packed[part + 4] >> 4 | (packed[part] >> 6) << 4;
            const float own = scale * static_cast<float>(s), offset = least * static_cast<float>(m);
            const int shift = part % 2 * 4;
            for (int i = 0; i < 32; ++i) *to++ = own * static_cast<float>(numbers[i] >> shift & 15) - offset;
            if (shift) numbers += 32;
        }
    }
}

// 256 numbers of six bits, less 32: the lower four bits, the upper two, 16 scales of a byte, and the scale of those.
void decode_q6_k(const uint8_t* block, int64_t count, float* to) {
    for (; count > 0; --count, block += 210) {
        const float scale = half_at(block + 208);
        const uint8_t *lower = block, *upper = block + 128, *scales = block + 192;
        for (int half = 0; half < 2; ++half, lower += 64, upper += 32, scales += 8)
            for (int quarter = 0; quarter < 4; ++quarter)
                for (int i = 0; i < 32; ++i) {
                    const int low = lower[i + quarter % 2 * 32] >> quarter / 2 * 4 & 15;
                    const int number = (low | (upper[i] >> quarter * 2 & 3) << 4) - 32;
                    const int s = static_cast<int8_t>(scales[i / 16 + quarter * 2]);
                    *to++ = scale * static_cast<float>(s) * static_cast<float>(number);
                }
    }
}

constexpr BlockForm kForms[] = {{"q8_0", kShort, 34, decode_q8_0, encode_q8_0},
                                {"q4_0", kShort, 18, decode_q4_0, encode_q4_0},
                                {"q4_k", kLong, 144, decode_q4_k, nullptr},
                                {"q6_k", kLong, 210, decode_q6_k, nullptr}};

}  // namespace

std::span<const BlockForm> block_forms() { return kForms; }

const BlockForm* find_block_form(std::string_view name) {
    for (const BlockForm& form : kForms)
        if (form.name == name) return &form;
    return nullptr;
}

}  // namespace lunaria
