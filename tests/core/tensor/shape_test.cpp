#include "core/tensor/shape.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lunaria {
namespace {

std::string message(auto&& f) {
    try {
        f();
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(Shape, more_than_eight_axes_are_refused) {
    std::vector<int64_t> nine(9, 1);
    EXPECT_NE(message([&] { Shape{std::span<const int64_t>(nine)}; }).find("at most 8 axes"), std::string::npos);
    Shape eight{1, 1, 1, 1, 1, 1, 1, 1};
    EXPECT_THROW(eight.push_back(1), Error);
}

TEST(Shape, insert_and_erase_keep_the_other_axes) {
    Shape s{2, 3, 5};
    s.insert(1, 7);
    EXPECT_EQ(s, (Shape{2, 7, 3, 5}));
    s.erase(0);
    EXPECT_EQ(s, (Shape{7, 3, 5}));
    EXPECT_EQ(str(s), "(7, 3, 5)");
}

TEST(CheckedShape, negative_and_overflowing_sizes_are_refused) {
    std::vector<int64_t> negative{2, -1}, huge{1ll << 32, 1ll << 32}, empty_huge{1ll << 40, 1ll << 40, 0};
    EXPECT_NE(message([&] { checked_shape("ones", negative); }).find("negative (-1)"), std::string::npos);
    EXPECT_NE(message([&] { checked_shape("ones", huge); }).find("too large"), std::string::npos);
    EXPECT_EQ(checked_shape("ones", empty_huge).size(), 0);
    EXPECT_EQ(contiguous_strides(Shape{0, 1ll << 40, 1ll << 40, 1ll << 40})[3], 1);
}

TEST(NormalAxis, counts_from_the_end_and_says_the_range) {
    EXPECT_EQ(normal_axis("sum", -1, 3), 2);
    EXPECT_EQ(message([] { normal_axis("sum", 3, 3); }),
              "sum: axis 3 is out of range for a tensor of 3 axes: axes are -3 .. 2");
    std::vector<int64_t> twice{0, -2};
    EXPECT_THROW(normal_axes("sum", twice, 2), Error);
}

TEST(Broadcast, stretches_ones_and_shows_both_shapes_when_it_cannot) {
    EXPECT_EQ(broadcast("add", {2, 1, 3}, {4, 1}), (Shape{2, 4, 3}));
    EXPECT_EQ(broadcast("add", {}, {0}), (Shape{0}));
    EXPECT_EQ(broadcast("add", {1}, {0}), (Shape{0}));
    std::string m = message([] { broadcast("add", {2, 3}, {4, 3, 2}); });
    EXPECT_NE(m.find("(2, 3) and (4, 3, 2)"), std::string::npos) << m;
    EXPECT_NE(m.find("axis -2 has sizes 2 and 3"), std::string::npos) << m;
}

}  // namespace
}  // namespace lunaria
