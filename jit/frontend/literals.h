// Values of numerals, and numbers written so that they read back as the same value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace lunaria::lua {

using NumberValue = std::variant<std::int64_t, double>;

// The value of a numeral without sign: decimal integers that do not fit become floats, hexadecimal ones wrap around.
// Empty when it is malformed. Does not depend on the locale.
std::optional<NumberValue> parse_number(std::string_view text);
// The number that Lua reads a text as: a numeral with or without a sign, and blanks around it. Empty where the text is
// none.
std::optional<NumberValue> read_number(std::string_view text);

// A numeral for a value; the smallest integer and negative floats come out as an expression with a minus.
std::string write_number(std::int64_t value);
std::string write_number(double value);
// A string literal in double quotes, in one line of printable ASCII.
std::string write_string(std::string_view value);

// Appends a code point below 2^31 in UTF-8, in the original form of up to six bytes as stock Lua does.
void append_utf8(std::string& out, std::uint32_t code);

}  // namespace lunaria::lua
