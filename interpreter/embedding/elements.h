// The dtypes of tensors by the numbers of the C interface.
#pragma once

#include <optional>

#include "core/tensor/dtype.h"
#include "interpreter/embedding/lunaria.h"

namespace lunaria {

inline constexpr DType kTypesInC[] = {DType::boolean, DType::u8,     DType::i8,   DType::i16, DType::i32,
                                      DType::i64,     DType::f16,    DType::bf16, DType::f32, DType::f64,
                                      DType::u16,     DType::u32,    DType::u64,  DType::c64, DType::c128,
                                      DType::f8e4m3,  DType::f8e5m2, DType::q4x2};

inline std::optional<DType> dtype_in_c(lunaria_dtype t) {
    const int at = static_cast<int>(t) - LUNARIA_BOOL;
    if (at < 0 || at >= static_cast<int>(std::size(kTypesInC))) return std::nullopt;
    return kTypesInC[at];
}

inline lunaria_dtype number_in_c(DType d) {
    for (size_t i = 0; i < std::size(kTypesInC); ++i)
        if (kTypesInC[i] == d) return static_cast<lunaria_dtype>(i + LUNARIA_BOOL);
    return LUNARIA_UNKNOWN;
}

}  // namespace lunaria
