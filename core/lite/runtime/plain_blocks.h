// Blocks of the interpreter that are compiled once: formulas on float64, integers and bools, and conversions.
//
// A register has one of four kinds of lanes: f32 (halves too, rounded), f64, integers as 64 bits (wrapped to the dtype
// after each formula), and bools as bytes.
#pragma once

#include <optional>

#include "core/lite/runtime/simd/blocks.h"
#include "core/tensor/dtype.h"

namespace lunaria::lite {

enum class Lane : uint8_t { single, twice, integer, boolean };

constexpr Lane lane_of(DType t) {
    if (t == DType::boolean) return Lane::boolean;
    if (t == DType::f64) return Lane::twice;
    return is_float(t) || t == DType::f8e4m3 || t == DType::f8e5m2 ? Lane::single : Lane::integer;
}
constexpr size_t width_of(Lane form) { return form == Lane::boolean ? 1 : form == Lane::single ? 4 : 8; }

// The blocks of the best instruction set of this processor; LUNARIA_ISA chooses a lower one.
const BlockSet& blocks();

// Null where there is no such formula for operands of the dtype.
const FormulaBlock* find_formula(std::string_view op, DType operand);

// From register to register: to another kind of lanes, and to the values that a dtype has. Null: nothing to do.
BlockFunction change_lane(DType from, Lane to);
BlockFunction round_to(DType t);

// Between memory and registers; any count.
using MemoryFunction = void (*)(const void* from, void* to, int64_t count);
MemoryFunction loader_of(DType t);
MemoryFunction storer_of(DType t);
// Whether elements of a dtype are the same bytes in memory and in registers.
constexpr bool is_same_in_memory(DType t) {
    return t == DType::f32 || t == DType::f64 || t == DType::i64 || t == DType::u64 || t == DType::boolean;
}

}  // namespace lunaria::lite
