// Blocks of 32 numbers with a common scale, as instruction sets read them. Compiled once for each instruction set.
#pragma once

#include "core/lite/kernels/blocks.h"
#include "core/lite/kernels/vector.h"

namespace lunaria::lite::kernels::LUNARIA_ISA {

[[gnu::always_inline]] inline float half_to_float(uint16_t bits) {
#if defined(__F16C__)
    return _cvtsh_ss(bits);
#else
    const F16 half[4] = {{bits}, {bits}, {bits}, {bits}};
    return load_floats(half)[0];
#endif
}

[[gnu::always_inline]] inline void read_block(WeightType type, const uint8_t* row, int64_t block, float* to) {
    const uint8_t* p = row + block * (type == WeightType::q8_0 ? kBytesQ8 : kBytesQ4);
    const float scale = half_to_float(load<uint16_t>(p));
    p += 2;
    if (type == WeightType::q8_0) {
        for (int64_t i = 0; i < kBlock; ++i) to[i] = scale * static_cast<float>(static_cast<int8_t>(p[i]));
        return;
    }
    for (int64_t i = 0; i < kBlock / 2; ++i) {
        to[i] = scale * static_cast<float>((p[i] & 15) - 8);
        to[i + kBlock / 2] = scale * static_cast<float>((p[i] >> 4) - 8);
    }
}

}  // namespace lunaria::lite::kernels::LUNARIA_ISA
