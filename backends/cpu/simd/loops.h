// The interface between the elementwise dispatcher and the loops that are compiled per instruction set.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tensor/dtype_list.h"

namespace lunaria::cpu {

// Applies a formula to `count` elements. Operand i starts at in[i] and has step[i] = 1 (dense) or 0 (one value for
// all). Operands have the element type of the loop, except for masks, which are bytes 0 or 1, as are boolean results.
using ElementLoop = void (*)(const void* const* in, const int64_t* step, void* out, int64_t count);

inline constexpr int kMostOperands = 5;

struct ElementLoopEntry {
    std::string_view op;
    DType dtype;      // of operands
    int8_t operands;  // 1 to kMostOperands
    int8_t mask;      // number of the operand that is a mask, or -1
    bool boolean;     // the result is boolean
    ElementLoop loop;
    ElementLoop around = nullptr;  // the same around the caches (backends/cpu/around_cache.h), if there is one
};

struct LoopTable {
    const ElementLoopEntry* entries;
    int count;
    int cost;  // of one element, compared with an addition
};

// Conversions between dense arrays.
using ConvertLoop = void (*)(const void* in, void* out, int64_t count);
struct ConvertEntry {
    DType from, to;
    ConvertLoop loop;
};
struct ConvertTable {
    const ConvertEntry* entries;
    int count;
};

// The interface of each instruction set's namespace: passes all its tables to the visitor.
struct LoopVisitor {
    void (*elements)(void* context, LoopTable table);
    void (*conversions)(void* context, ConvertTable table);
    void* context;
};
namespace v2 {
void visit_loops(const LoopVisitor& visitor);
}
namespace avx2 {
void visit_loops(const LoopVisitor& visitor);
}
namespace avx512 {
void visit_loops(const LoopVisitor& visitor);
}

}  // namespace lunaria::cpu
