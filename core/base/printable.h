// Text from outside the program on its way to a terminal. Names come from files, and a file may hold any bytes:
// characters that a terminal would take for a command are shown as escapes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lunaria {

// The number of bytes of the UTF-8 character at the start of a text. 0 where the text does not begin with one, or with
// one that does not print: a control character (C0, DEL, C1), a line separator, or a mark that changes the direction of
// text.
size_t printable_length(std::string_view text);

// The text with escapes (\x1b, \u{202e}) for characters that do not print; newlines and tabs stay.
std::string printable(std::string_view text);

}  // namespace lunaria
