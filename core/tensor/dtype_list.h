// The list of element types, without other definitions: also for code that is compiled once for each instruction set.
#pragma once

#include <cstdint>

namespace lunaria {

// In an order in which the later of two types mostly holds the earlier one (promote).
enum class DType : uint8_t {
    boolean,
    u8,
    i8,
    u16,
    i16,
    u32,
    i32,
    u64,
    i64,
    q4x2,
    f8e4m3,
    f8e5m2,
    f16,
    bf16,
    f32,
    f64,
    c64,
    c128
};

}  // namespace lunaria
