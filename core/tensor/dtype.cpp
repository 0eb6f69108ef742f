#include "core/tensor/dtype.h"

#include <algorithm>
#include <array>
#include <cmath>
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

// For normal numbers: the exponents are 8 apart from those of binary16 with 4 bits, a factor of 2^8, exact both ways.
float e4m3_to_float(uint8_t bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    if (exponent == 15 && mantissa == 7) return std::bit_cast<float>(bits & 0x80u ? 0xffc00000u : 0x7fc00000u);
    const float magnitude = exponent == 0 ? static_cast<float>(mantissa) * 0x1p-9f
                                          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return bits & 0x80u ? -magnitude : magnitude;
}

uint8_t float_to_e4m3(float x) {
    const auto sign = static_cast<uint8_t>(std::signbit(x) ? 0x80 : 0);
    const float size = std::fabs(x);
    // 464 lies between 448, the largest number, and the number that would follow it: ties go to even, which is 448.
    if (!(size <= 464.0f)) return static_cast<uint8_t>(sign | 0x7f);
    if (size == 0) return sign;
    int exponent = 0;
    std::frexp(size, &exponent);
    // The exponent of the last bit of a number of this size; below 2^-6 it is the same for all.
    const int place = std::max(exponent - 4, -9);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, -place)));
    return static_cast<uint8_t>(sign | ((place + 9) * 8 + steps));
}

uint8_t float_to_e5m2(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const auto sign = static_cast<uint8_t>(u >> 24 & 0x80u);
    const float size = std::fabs(x);
    if (size != size) return static_cast<uint8_t>(sign | 0x7e);
    if (size == 0) return sign;
    if (size >= 61440.0f) return static_cast<uint8_t>(sign | 0x7c);  // halfway to the number that would follow
    int exponent = 0;
    std::frexp(size, &exponent);
    const int place = std::max(exponent - 3, -16);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(size, -place)));
    return static_cast<uint8_t>(sign | ((place + 16) * 4 + steps));
}

uint8_t float_to_int4_pair(float x) {
    return static_cast<uint8_t>(static_cast<int>(x == x ? std::clamp(x, -128.f, 255.f) : 0));
}

namespace {
constexpr std::array<std::string_view, kDTypeCount> kNames = {
    "bool",    "uint8",         "int8",        "uint16",  "int16",    "uint32",  "int32",   "uint64",    "int64",
    "qint4x2", "float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
constexpr std::array<size_t, kDTypeCount> kSizes = {1, 1, 1, 2, 2, 4, 4, 8, 8, 1, 1, 1, 2, 2, 4, 8, 8, 16};
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
    if (a == DType::f8e4m3 && b == DType::f8e5m2) return DType::f16;
    if (a == DType::f64 && b == DType::c64) return DType::c128;
    // If one has a sign and the other does not, the result has a sign and is wide enough for both.
    if (is_integer(a) && is_integer(b) && has_sign(a) != has_sign(b)) {
        const size_t width = size_of(has_sign(a) ? b : a), signed_width = size_of(has_sign(a) ? a : b);
        if (width >= signed_width)
            return width == 1 ? DType::i16 : width == 2 ? DType::i32 : width == 4 ? DType::i64 : DType::f64;
        return has_sign(a) ? a : b;
    }
    return b;
}

}  // namespace lunaria
