// Element types. Half-width floats are stored in 16 bits and computed in f32; floats of 8 bits and pairs of integers of
// 4 bits are storage types only.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/tensor/dtype_list.h"

namespace lunaria {

inline constexpr int kDTypeCount = 18;

float half_to_float(uint16_t bits);
uint16_t float_to_half(float x);  // round to nearest even, overflow to infinity

// IEEE binary16 as stored in tensors.
struct Half {
    uint16_t bits = 0;
    Half() = default;
    explicit Half(float x) : bits(float_to_half(x)) {}
    operator float() const { return half_to_float(bits); }
};

// bfloat16 as stored in tensors: the upper half of a binary32, rounded to nearest even.
struct BFloat16 {
    uint16_t bits = 0;
    BFloat16() = default;
    explicit BFloat16(float x) {
        uint32_t u = std::bit_cast<uint32_t>(x);
        bool nan = (u & 0x7fffffffu) > 0x7f800000u;
        // A NaN keeps its sign and gets the quiet bit: plain rounding could carry it into infinity.
        bits = nan ? static_cast<uint16_t>((u >> 16) | 0x40u)
                   : static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
    operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

uint8_t float_to_e4m3(float x);
float e4m3_to_float(uint8_t bits);

// Four bits of exponent and three of mantissa, without infinities (OCP 8-bit Floating Point Specification, 2023):
// rounded to nearest even; numbers beyond 448 become NaN.
struct Float8E4M3 {
    uint8_t bits = 0;
    Float8E4M3() = default;
    explicit Float8E4M3(float x) : bits(float_to_e4m3(x)) {}
    operator float() const { return e4m3_to_float(bits); }
};

uint8_t float_to_e5m2(float x);

// Five bits of exponent and two of mantissa: the upper half of a binary16, rounded to nearest even.
struct Float8E5M2 {
    uint8_t bits = 0;
    Float8E5M2() = default;
    explicit Float8E5M2(float x) : bits(float_to_e5m2(x)) {}
    operator float() const { return half_to_float(static_cast<uint16_t>(bits << 8)); }
};

uint8_t float_to_int4_pair(float x);

// Two signed integers of 4 bits in a byte, as weights of quantised networks are stored; as a number it is the byte.
struct Int4Pair {
    uint8_t bits = 0;
    Int4Pair() = default;
    explicit Int4Pair(float x) : bits(float_to_int4_pair(x)) {}
    operator float() const { return static_cast<int8_t>(bits); }
};

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

template <class T>
constexpr bool kIsComplex = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;

size_t size_of(DType t);
// The name in Lua, files and messages: "float32", "bool", "int64" ...
std::string_view name_of(DType t);
// Accepts MindSpore's and numpy's names ("float32", "bool_", "half"; not "f4"); nothing for unknown names.
std::optional<DType> parse_dtype(std::string_view name);

constexpr bool is_float(DType t) { return t >= DType::f16 && t <= DType::f64; }
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_integer(DType t) { return t >= DType::u8 && t <= DType::i64; }
// Whether the numbers may be negative.
constexpr bool has_sign(DType t) {
    return t != DType::boolean && t != DType::u8 && t != DType::u16 && t != DType::u32 && t != DType::u64;
}
// Whether the dtype is only for storage, not for computation.
constexpr bool is_stored_only(DType t) { return t >= DType::q4x2 && t <= DType::f8e5m2; }
constexpr bool is_complex(DType t) { return t >= DType::c64; }
// Whether generated code holds the elements in the lanes of its registers.
constexpr bool is_lane(DType t) { return !is_complex(t) && !is_stored_only(t); }
// The dtype of sums and products of integers and bools.
constexpr DType sum_of(DType t) { return t == DType::u64 ? t : DType::i64; }
// The dtype of the parts of complex numbers; other types as they are.
constexpr DType part_of(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }
// The complex numbers that hold numbers of type t.
constexpr DType complex_of(DType t) { return t == DType::f64 || t == DType::c128 ? DType::c128 : DType::c64; }

// The dtype in which an operator computes on operands of types a and b (MindSpore's table, where it covers them): the
// wider of the same kind, float over integer over bool. Integers with and without a sign give the narrowest signed type
// that holds both, or f64 where none does. f16 with bf16 gives f32, c64 with f64 gives c128.
DType promote(DType a, DType b);

template <class T>
struct TypeTag {
    using type = T;
};

[[noreturn]] void refuse_stored_only(DType t);

// Calls f(TypeTag<T>{}) with the C++ element type of `t`, a number or bool; an error for types that are only stored.
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
    switch (t) {
        case DType::boolean:
            return f(TypeTag<bool>{});
        case DType::u8:
            return f(TypeTag<uint8_t>{});
        case DType::i8:
            return f(TypeTag<int8_t>{});
        case DType::u16:
            return f(TypeTag<uint16_t>{});
        case DType::i16:
            return f(TypeTag<int16_t>{});
        case DType::u32:
            return f(TypeTag<uint32_t>{});
        case DType::i32:
            return f(TypeTag<int32_t>{});
        case DType::u64:
            return f(TypeTag<uint64_t>{});
        case DType::i64:
            return f(TypeTag<int64_t>{});
        case DType::f16:
            return f(TypeTag<Half>{});
        case DType::bf16:
            return f(TypeTag<BFloat16>{});
        case DType::f32:
            return f(TypeTag<float>{});
        case DType::f64:
            return f(TypeTag<double>{});
        case DType::c64:
            return f(TypeTag<Complex64>{});
        case DType::c128:
            return f(TypeTag<Complex128>{});
        default:
            refuse_stored_only(t);
    }
}

// As visit_dtype, for all types.
template <class F>
decltype(auto) visit_stored(DType t, F&& f) {
    if (t == DType::q4x2) return f(TypeTag<Int4Pair>{});
    if (t == DType::f8e4m3) return f(TypeTag<Float8E4M3>{});
    if (t == DType::f8e5m2) return f(TypeTag<Float8E5M2>{});
    return visit_dtype(t, std::forward<F>(f));
}

template <class T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, bool>)
        return DType::boolean;
    else if constexpr (std::is_same_v<T, uint8_t>)
        return DType::u8;
    else if constexpr (std::is_same_v<T, int8_t>)
        return DType::i8;
    else if constexpr (std::is_same_v<T, uint16_t>)
        return DType::u16;
    else if constexpr (std::is_same_v<T, int16_t>)
        return DType::i16;
    else if constexpr (std::is_same_v<T, uint32_t>)
        return DType::u32;
    else if constexpr (std::is_same_v<T, int32_t>)
        return DType::i32;
    else if constexpr (std::is_same_v<T, uint64_t>)
        return DType::u64;
    else if constexpr (std::is_same_v<T, int64_t>)
        return DType::i64;
    else if constexpr (std::is_same_v<T, Int4Pair>)
        return DType::q4x2;
    else if constexpr (std::is_same_v<T, Float8E4M3>)
        return DType::f8e4m3;
    else if constexpr (std::is_same_v<T, Float8E5M2>)
        return DType::f8e5m2;
    else if constexpr (std::is_same_v<T, Half>)
        return DType::f16;
    else if constexpr (std::is_same_v<T, BFloat16>)
        return DType::bf16;
    else if constexpr (std::is_same_v<T, float>)
        return DType::f32;
    else if constexpr (std::is_same_v<T, double>)
        return DType::f64;
    else if constexpr (std::is_same_v<T, Complex64>)
        return DType::c64;
    else
        return DType::c128;
}

}  // namespace lunaria
