#include "core/ops/indexing.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lunaria {
namespace {

using Kind = IndexItem::Kind;

TEST(SliceText, reads_integers_slices_ellipsis_and_new_axes) {
    Index index = parse_index("tensor", " 1:3, ::2 ,..., -1, None, :, 4:, :-2:-1");
    ASSERT_EQ(index.items.size(), 8u);
    EXPECT_EQ(index.items[0].kind, Kind::slice);
    EXPECT_EQ(index.items[0].start, 1);
    EXPECT_EQ(index.items[0].stop, 3);
    EXPECT_EQ(index.items[1].start, std::nullopt);
    EXPECT_EQ(index.items[1].step, 2);
    EXPECT_EQ(index.items[2].kind, Kind::ellipsis);
    EXPECT_EQ(index.items[3].kind, Kind::integer);
    EXPECT_EQ(index.items[3].integer, -1);
    EXPECT_EQ(index.items[4].kind, Kind::new_axis);
    EXPECT_EQ(index.items[5].stop, std::nullopt);
    EXPECT_EQ(index.items[6].start, 4);
    EXPECT_EQ(index.items[7].stop, -2);
    EXPECT_EQ(index.items[7].step, -1);
}

TEST(SliceText, allows_a_comma_at_the_end) { EXPECT_EQ(parse_index("tensor", "1, 2,").items.size(), 2u); }

std::string message_of(std::string_view text) {
    try {
        parse_index("tensor", text);
    } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::syntax);
        return e.what();
    }
    return "no error";
}

TEST(SliceText, puts_a_caret_under_the_mistake) {
    EXPECT_EQ(message_of("1:3, a"),
              "tensor: malformed index: a number, a slice like 1:3, '...' or None is expected\n    1:3, a\n         ^");
    EXPECT_NE(message_of("1 2").find("',' or ':' is expected\n    1 2\n      ^"), std::string::npos);
    EXPECT_NE(message_of("0:3:0").find("step of 0"), std::string::npos);
    EXPECT_NE(message_of("99999999999999999999").find("too large"), std::string::npos);
    EXPECT_NE(message_of("").find("an index is expected"), std::string::npos);
    EXPECT_NE(message_of("1,,2").find("^"), std::string::npos);
}

}  // namespace
}  // namespace lunaria
