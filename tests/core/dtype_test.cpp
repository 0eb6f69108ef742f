#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

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

TEST(Promote, follows_the_table) {
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
}

}  // namespace
}  // namespace lunaria
