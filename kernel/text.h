// Positions in a text: the protocol counts code points, Lua bytes.
#pragma once

#include <string>
#include <string_view>

namespace lunaria::jupyter {

// The byte at which code point `position` begins; the end of the text when there is none, or when it is negative.
size_t byte_position(std::string_view text, int position);
// The number of code points that begin before the byte.
int code_point_position(std::string_view text, size_t byte);
// As base64, in one line.
std::string base64(std::string_view bytes);

}  // namespace lunaria::jupyter
