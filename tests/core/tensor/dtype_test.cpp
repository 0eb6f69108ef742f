#include "core/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace lunaria {
namespace {

TEST(Half, every_bit_pattern_survives_the_way_through_float) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
        auto h = static_cast<uint16_t>(bits);
        float x = half_to_float(h);
        if (std::isnan(x))
            EXPECT_TRUE(std::isnan(half_to_float(float_to_half(x))));
        else
            EXPECT_EQ(float_to_half(x), h) << bits;
    }
}

TEST(Half, rounds_to_the_nearest_even) {
    EXPECT_EQ(float_to_half(2049.0f), float_to_half(2048.0f));  // halfway, 2048 is even
    EXPECT_EQ(float_to_half(2051.0f), float_to_half(2052.0f));
    EXPECT_EQ(float_to_half(65519.9f), 0x7bff);
    EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
    EXPECT_EQ(float_to_half(std::ldexp(1.0f, -25)), 0);  // halfway between 0 and the smallest subnormal
    EXPECT_EQ(float_to_half(std::ldexp(1.5f, -25)), 1);
    EXPECT_EQ(float_to_half(-0.0f), 0x8000);
}

TEST(BFloat16, rounds_to_the_nearest_even_and_keeps_nan) {
    EXPECT_EQ(BFloat16(1.0f).bits, 0x3f80);
    EXPECT_EQ(float(BFloat16(1.00390625f)), 1.0f);  // halfway, 1.0 is even
    EXPECT_EQ(float(BFloat16(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(float(BFloat16(std::bit_cast<float>(0x7f800001u)))));
}

// All numbers of a type of 8 bits are known: the nearest one, or of two equally near ones the even one, is the right
// one.
template <class T>
void expect_nearest(float x, float largest_step) {
    const T got(x);
    const float value = got;
    for (int bits = 0; bits < 256; ++bits) {
        T other;
        other.bits = static_cast<uint8_t>(bits);
        const float y = other;
        if (!std::isfinite(y)) continue;
        const double near = std::fabs(double(value) - double(x)), far = std::fabs(double(y) - double(x));
        if (std::isfinite(value)) {
            EXPECT_LE(near, far) << x;
            EXPECT_TRUE(y == value || near != far || got.bits % 2 == 0) << x;
        } else {
            EXPECT_GE(far, largest_step) << x;
        }
    }
}

template <class T>
void expect_bits_survive() {
    for (int bits = 0; bits < 256; ++bits) {
        T x;
        x.bits = static_cast<uint8_t>(bits);
        const float value = x;
        if (std::isnan(value))
            EXPECT_TRUE(std::isnan(float(T(value))));
        else
            EXPECT_EQ(T(value).bits, bits);
    }
}

TEST(Float8, every_bit_pattern_survives_the_way_through_float) {
    expect_bits_survive<Float8E4M3>();
    expect_bits_survive<Float8E5M2>();
}

TEST(Float8, has_the_numbers_of_its_specification) {
    auto e4m3 = [](int bits) { return e4m3_to_float(static_cast<uint8_t>(bits)); };
    EXPECT_EQ(e4m3(0x7e), 448.0f);
    EXPECT_EQ(e4m3(0x08), std::ldexp(1.0f, -6));
    EXPECT_EQ(e4m3(0x01), std::ldexp(1.0f, -9));
    EXPECT_EQ(e4m3(0xb8), -1.0f);
    EXPECT_TRUE(std::isnan(e4m3(0x7f)) && std::isnan(e4m3(0xff)));
    EXPECT_TRUE(std::isnan(float(Float8E4M3(1000.0f))));
    EXPECT_TRUE(std::isnan(float(Float8E4M3(std::numeric_limits<float>::infinity()))));
    Float8E5M2 largest;
    largest.bits = 0x7b;
    EXPECT_EQ(float(largest), 57344.0f);
    EXPECT_EQ(float(Float8E5M2(-1e6f)), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(float(Float8E5M2(std::numeric_limits<float>::quiet_NaN()))));
}

TEST(Float8, rounds_to_the_nearest_even) {
    for (int i = -3000; i <= 3000; ++i) {
        const float x = std::ldexp(static_cast<float>(i), i % 23 - 16);
        expect_nearest<Float8E4M3>(x, 16.0f);
        expect_nearest<Float8E5M2>(x, 4096.0f);
    }
    for (float x : {17.0f, 19.0f, 0.0009765625f, 448.0f, 464.0f, 465.0f, 0x1p-10f, 0x1.8p-9f, 61439.0f, 0x1p-17f}) {
        expect_nearest<Float8E4M3>(x, 16.0f);
        expect_nearest<Float8E5M2>(x, 4096.0f);
    }
}

TEST(Promote, follows_the_table) {
    EXPECT_EQ(promote(DType::u16, DType::i8), DType::i32);
    EXPECT_EQ(promote(DType::u16, DType::i32), DType::i32);
    EXPECT_EQ(promote(DType::u8, DType::u32), DType::u32);
    EXPECT_EQ(promote(DType::i32, DType::u32), DType::i64);
    EXPECT_EQ(promote(DType::u64, DType::i8), DType::f64);
    EXPECT_EQ(promote(DType::u64, DType::f16), DType::f16);
    EXPECT_EQ(promote(DType::c64, DType::f64), DType::c128);
    EXPECT_EQ(promote(DType::c64, DType::i64), DType::c64);
    EXPECT_EQ(promote(DType::f8e5m2, DType::f8e4m3), DType::f16);
    EXPECT_EQ(promote(DType::f8e5m2, DType::bf16), DType::bf16);
    EXPECT_EQ(promote(DType::f16, DType::i64), DType::f16);
    EXPECT_EQ(promote(DType::u8, DType::i8), DType::i16);
    EXPECT_EQ(promote(DType::u8, DType::i32), DType::i32);
    EXPECT_EQ(promote(DType::f16, DType::bf16), DType::f32);
    EXPECT_EQ(promote(DType::boolean, DType::i32), DType::i32);
    EXPECT_EQ(promote(DType::f32, DType::f64), DType::f64);
    for (int a = 0; a < kDTypeCount; ++a)
        for (int b = 0; b < kDTypeCount; ++b)
            EXPECT_EQ(promote(static_cast<DType>(a), static_cast<DType>(b)),
                      promote(static_cast<DType>(b), static_cast<DType>(a)));
}

TEST(DType, names_are_read_back) {
    for (int i = 0; i < kDTypeCount; ++i) EXPECT_EQ(parse_dtype(name_of(static_cast<DType>(i))), static_cast<DType>(i));
    EXPECT_EQ(parse_dtype("half"), DType::f16);
    EXPECT_FALSE(parse_dtype("float31"));
    EXPECT_THROW(visit_dtype(DType::f8e5m2, [](auto) {}), Error);
}

}  // namespace
}  // namespace lunaria
