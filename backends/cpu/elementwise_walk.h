// The walk of an elementwise kernel over operands of any layout: axes are merged where all operands allow it, and a
// range of the (dense) result is then processed in blocks in which every operand is a dense run, one value, or gathered
// into a small buffer, where half floats are widened as well.
#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/simd/loops.h"
#include "core/tensor/tensor.h"

namespace lunaria::cpu {

inline constexpr int64_t kBlock = 1024;
// Rows from this length on are processed one by one, shorter ones in blocks.
inline constexpr int64_t kLongRow = 192;

struct WalkOperand {
    const char* data = nullptr;              // first element, or `value`
    int size = 4;                            // bytes of a stored element
    bool constant = false;                   // one value for all, in the loop's element type already
    bool dense = false;                      // the whole operand is one run in the order of the result
    ConvertLoop widen = nullptr;             // from the stored type to the loop's
    std::array<int64_t, kMaxRank> stride{};  // in elements, by merged axis
};

struct Walk {
    std::array<WalkOperand, kMostOperands> operand;
    int operands = 0;
    int rank = 0;
    std::array<int64_t, kMaxRank> dims{};
    char* out = nullptr;
    int out_size = 4;
    ConvertLoop narrow = nullptr;  // from the loop's element type to the result's
    ElementLoop loop = nullptr;

    // Strides of `t` as it is broadcast to `shape`.
    void set_strides(int i, const Tensor& t, const Shape& shape);
    // To be called once all operands are set.
    void merge_axes(const Shape& shape);
    // Elements `begin` to `end` of the result.
    void run(int64_t begin, int64_t end) const;

  private:
    // The same by whole rows, of operands none of which goes through a buffer.
    void run_rows(int64_t begin, int64_t end) const;
    // Carries an overflow of the last axis into the axes before it.
    void carry(std::array<int64_t, kMaxRank>& index) const;
};

}  // namespace lunaria::cpu
