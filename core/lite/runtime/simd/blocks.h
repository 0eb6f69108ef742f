// The interface between the interpreter of loop programs and the code that is compiled once for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lunaria::lite {

// Every register of the interpreter is 64-byte aligned and holds a multiple of so many elements: loops over registers
// have no remainder.
inline constexpr int64_t kGroup = 16;

// Computes `count` elements, a multiple of kGroup. Operand i starts at in[i] and has step[i] = 1 (dense) or 0 (kGroup
// copies of one value). Bools are bytes 0 or 1.
using BlockFunction = void (*)(const char* const* in, const int64_t* step, char* out, int64_t count);

inline constexpr int kMostArguments = 5;

struct FormulaBlock {
    std::string_view op;
    int8_t operands = 0;
    bool boolean = false;  // the result is boolean
    BlockFunction run = nullptr;
};
struct FormulaBlocks {
    const FormulaBlock* blocks = nullptr;
    size_t count = 0;
};

// The sum of a row in the order of core/loops/sum_order.h, part by part. All parts but the last have a multiple of 64
// elements.
struct RowSum {
    double lanes[16] = {};
    double total = 0;
    int64_t in_block = 0;
};

struct RowBlocks {
    void (*sum)(const float* x, int64_t count, bool squares, RowSum& sum);
    // The extremum of the elements and of `best`; NaN if any of them is.
    float (*largest)(const float* x, int64_t count, float best);
    float (*smallest)(const float* x, int64_t count, float best);
    // out[j] = the sum over k of a[k] b[k * stride + j], in the order of core/loops/small_product.h.
    void (*product)(const float* a, const float* b, int64_t depth, int64_t stride, float* out, int64_t count);
    // sum[j] += x[j], in float64 where `wide` says so; best[j] = the extremum of both.
    void (*add_points)(const float* x, double* sum, int64_t count);
    void (*add_points_single)(const float* x, float* sum, int64_t count);
    void (*f16_to_f32)(const uint16_t* x, float* out, int64_t count);
    void (*f32_to_f16)(const float* x, uint16_t* out, int64_t count);
};

// What each instruction set's namespace has.
struct BlockSet {
    FormulaBlocks formulas[3];
    RowBlocks rows;
};

// clang-format off
#if defined(__x86_64__)
namespace v2 { BlockSet block_set(); }
namespace avx2 { BlockSet block_set(); }
namespace avx512 { BlockSet block_set(); }
#else
namespace neon { BlockSet block_set(); }
#endif
// clang-format on

}  // namespace lunaria::lite
