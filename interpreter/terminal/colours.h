// The colours of Lua text at the prompt.
#pragma once

#include <string>
#include <string_view>

namespace lunaria {

// What a terminal is sent to colour a text that readline has displayed, and to come back to the cursor; empty where
// that cannot be told: the text is higher than the screen, or has characters of unknown width. `prompt`: columns before
// the first character; `point`: the offset of the cursor in the text. Nothing but colours changes.
std::string coloured_in_place(std::string_view text, size_t point, int prompt, int columns, int rows);

// Whether the text has anything that is coloured.
bool has_colours(std::string_view text);

}  // namespace lunaria
