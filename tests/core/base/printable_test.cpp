#include "core/base/printable.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace lunaria {
namespace {

TEST(printable, shows_what_a_terminal_would_obey) {
    EXPECT_EQ(printable("plain text, 天气\n\tand more"), "plain text, 天气\n\tand more");
    EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
    EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
    // C1, separators of lines, and what turns the direction of text.
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "\\u{9b}31m");
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\u{202e}");
    EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u{2028}");
    // No UTF-8: a byte by itself, cut off, too long, half of a pair.
    EXPECT_EQ(printable("\x9b"), "\\x9b");
    EXPECT_EQ(printable("\xe5\xa4"), "\\xe5\\xa4");
    EXPECT_EQ(printable("\xe0\x80\x80"), "\\xe0\\x80\\x80");
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(Error, shows_names_as_text) {
    const Error error = file_error("\x1b[2Jfile", "has the tensor '\x1b[31m'").hint("\x07");
    EXPECT_EQ(std::string(error.what()), "\\x1b[2Jfile: has the tensor '\\x1b[31m'\n  hint: \\x07");
    EXPECT_EQ(std::string(error.hint("again").what()), "\\x1b[2Jfile: has the tensor '\\x1b[31m'\n  hint: again");
}

}  // namespace
}  // namespace lunaria
