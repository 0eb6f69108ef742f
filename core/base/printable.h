// Text of others on its way to a terminal. Names come from files, and a file may hold any bytes: what a terminal would
// take for a command is shown as an escape instead.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lunaria {

// The bytes of the UTF-8 character at the start of a text; 0 where it is none, or one that does not print: a control
// character (C0, DEL, C1), a separator of lines or what turns the direction of text.
size_t printable_length(std::string_view text);

// The text, with \x1b or \u{202e} for what does not print; new lines and tabs stay.
std::string printable(std::string_view text);

}  // namespace lunaria
