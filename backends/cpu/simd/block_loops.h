// The loops of products of one row of numbers with weights in blocks of 256 (core/tensor/blocks.h).
#pragma once

#include <cstdint>

namespace lunaria::cpu {

inline constexpr int64_t kLongBlock = 256, kSummed = 16;

// Numbers rounded to 8 bits: a block of 256 has one scale, and a sum for each 16 of its numbers.
struct RoundedRow {
    int8_t* numbers;
    int16_t* sums;
    float* scales;
};

struct BlockLoops {
    void (*round)(const float* x, int64_t blocks, const RoundedRow& to);
    // A result for each row of `blocks` blocks.
    void (*q4_k)(const uint8_t* weight, int64_t rows, int64_t blocks, const RoundedRow& x, float* out);
    void (*q6_k)(const uint8_t* weight, int64_t rows, int64_t blocks, const RoundedRow& x, float* out);
};

namespace v2 {
extern const BlockLoops block_loops;
}
namespace avx2 {
extern const BlockLoops block_loops;
}
namespace avx512 {
extern const BlockLoops block_loops;
}

}  // namespace lunaria::cpu
