// Element types. Half-width floats are stored in 16 bits and computed in f32.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace lunaria {

enum class DType : uint8_t { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64, c64 };
inline constexpr int kDTypeCount = 11;

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

using Complex64 = std::complex<float>;

size_t size_of(DType t);
// The name in Lua, files and messages: "float32", "bool", "int64" ...
std::string_view name_of(DType t);
// Accepts MindSpore's and numpy's names ("float32", "bool_", "half", "f4" is not one); nothing when unknown.
std::optional<DType> parse_dtype(std::string_view name);

constexpr bool is_float(DType t) { return t >= DType::f16 && t <= DType::f64; }
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_integer(DType t) { return t >= DType::u8 && t <= DType::i64; }
constexpr bool is_complex(DType t) { return t == DType::c64; }

// The dtype in which an operator computes on operands of types a and b (MindSpore's table): the wider of the same
// kind, float over integer over bool, u8 with i8 gives i16, f16 with bf16 gives f32.
DType promote(DType a, DType b);

template <class T>
struct TypeTag {
    using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ element type of `t`.
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
    switch (t) {
        case DType::boolean:
            return f(TypeTag<bool>{});
        case DType::u8:
            return f(TypeTag<uint8_t>{});
        case DType::i8:
            return f(TypeTag<int8_t>{});
        case DType::i16:
            return f(TypeTag<int16_t>{});
        case DType::i32:
            return f(TypeTag<int32_t>{});
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
        default:
            return f(TypeTag<Complex64>{});
    }
}

template <class T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, bool>)
        return DType::boolean;
    else if constexpr (std::is_same_v<T, uint8_t>)
        return DType::u8;
    else if constexpr (std::is_same_v<T, int8_t>)
        return DType::i8;
    else if constexpr (std::is_same_v<T, int16_t>)
        return DType::i16;
    else if constexpr (std::is_same_v<T, int32_t>)
        return DType::i32;
    else if constexpr (std::is_same_v<T, int64_t>)
        return DType::i64;
    else if constexpr (std::is_same_v<T, Half>)
        return DType::f16;
    else if constexpr (std::is_same_v<T, BFloat16>)
        return DType::bf16;
    else if constexpr (std::is_same_v<T, float>)
        return DType::f32;
    else if constexpr (std::is_same_v<T, double>)
        return DType::f64;
    else
        return DType::c64;
}

}  // namespace lunaria
