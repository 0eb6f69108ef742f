#include "core/dtype.h"

#include <array>
#include <utility>

namespace lunaria {

float half_to_float(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    uint32_t exponent = (bits >> 10) & 0x1fu;
    uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    // Zero and subnormals: mantissa * 2^-24 is exact in f32.
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
}

uint16_t float_to_half(float x) {
    uint32_t u = std::bit_cast<uint32_t>(x);
    uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000u);
    uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
    if (magnitude < 0x38800000u) {
        // Below the smallest normal half: adding 0.5 shifts the value to the bottom of the mantissa, with the FPU's
        // rounding.
        float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude + 0xc8000fffu + odd) >> 13));
}

namespace {
constexpr std::array<std::string_view, kDTypeCount> kNames = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"};
constexpr std::array<size_t, kDTypeCount> kSizes = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8};
constexpr std::pair<std::string_view, DType> kOtherNames[] = {
    {"bool_", DType::boolean}, {"byte", DType::u8},  {"short", DType::i16}, {"int", DType::i32},
    {"long", DType::i64},      {"half", DType::f16}, {"float", DType::f32}, {"single", DType::f32},
    {"double", DType::f64},    {"int_", DType::i64}, {"float_", DType::f64}};
}  // namespace

size_t size_of(DType t) { return kSizes[static_cast<size_t>(t)]; }

std::string_view name_of(DType t) { return kNames[static_cast<size_t>(t)]; }

std::optional<DType> parse_dtype(std::string_view name) {
    for (size_t i = 0; i < kNames.size(); ++i)
        if (kNames[i] == name) return static_cast<DType>(i);
    for (auto [other, type] : kOtherNames)
        if (other == name) return type;
    return std::nullopt;
}

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    if (a == DType::f16 && b == DType::bf16) return DType::f32;
    if (a == DType::u8 && b == DType::i8) return DType::i16;
    return b;  // the enumerators are ordered so that the later one holds the earlier one in every other pair
}

}  // namespace lunaria
