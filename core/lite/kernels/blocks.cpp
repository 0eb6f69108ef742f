// Numbers to blocks and back (blocks.h).
#include "core/lite/kernels/blocks.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/lite/kernels/halves.h"
#include "core/lite/kernels/sizes.h"

namespace lunaria::lite::kernels {

namespace {

void quantize_q8(const float* x, uint8_t* to) {
    float largest = 0;
    for (int i = 0; i < kBlock; ++i) largest = std::fmax(largest, std::fabs(x[i]));
    const float scale = largest / 127, inverse = scale != 0 ? 1 / scale : 0;
    const uint16_t half = to_f16(scale);
    std::memcpy(to, &half, 2);
    for (int i = 0; i < kBlock; ++i) to[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * inverse)));
}

// The number of the largest magnitude becomes -8, whichever sign it has.
void quantize_q4(const float* x, uint8_t* to) {
    float most = 0;
    for (int i = 0; i < kBlock; ++i)
        if (std::fabs(x[i]) > std::fabs(most)) most = x[i];
    const float scale = most / -8, inverse = scale != 0 ? 1 / scale : 0;
    const uint16_t half = to_f16(scale);
    std::memcpy(to, &half, 2);
    const auto quantized = [&](float v) {
        const auto q = static_cast<int>(v * inverse + 8.5f);
        return static_cast<uint8_t>(q < 15 ? q : 15);
    };
    for (int i = 0; i < kBlock / 2; ++i)
        to[2 + i] = static_cast<uint8_t>(quantized(x[i]) | quantized(x[i + kBlock / 2]) << 4);
}

}  // namespace

void quantize_blocks(WeightType type, int64_t n, int64_t k, const float* from, int64_t from_row, void* to) {
    auto* out = static_cast<uint8_t*>(to);
    const bool q8 = type == WeightType::q8_0;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < k; i += kBlock) {
            (q8 ? quantize_q8 : quantize_q4)(from + j * from_row + i, out);
            out += q8 ? kBytesQ8 : kBytesQ4;
        }
}

void dequantize_blocks(WeightType type, int64_t n, int64_t k, const void* from, float* to, int64_t to_row) {
    const auto* in = static_cast<const uint8_t*>(from);
    const bool q8 = type == WeightType::q8_0;
    for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < k; i += kBlock) {
            uint16_t half;
            std::memcpy(&half, in, 2);
            const float scale = from_f16(half);
            float* x = to + j * to_row + i;
            for (int b = 0; b < kBlock; ++b) {
                if (q8)
                    x[b] = scale * static_cast<float>(static_cast<int8_t>(in[2 + b]));
                else
                    x[b] = scale * static_cast<float>((b < 16 ? in[2 + b] & 15 : in[2 + b - 16] >> 4) - 8);
            }
            in += q8 ? kBytesQ8 : kBytesQ4;
        }
}

}  // namespace lunaria::lite::kernels
