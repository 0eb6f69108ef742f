// Values as a terminal shows them: plots in colours and as wide as the window, all other values as by pretty.
#pragma once

#include <lua.hpp>
#include <string>

#include "interpreter/display/pretty.h"

namespace lunaria {

struct TerminalSize {
    int columns = 80, rows = 24;
};
// The size of the terminal on standard output; these numbers when it is not a terminal.
TerminalSize terminal_size();

// The text of a metamethod __terminal(value, {width, height, color, sixel}), if there is one and standard output is a
// terminal, otherwise that of pretty. Raises no error.
std::string shown_text(lua_State* L, int index, const PrettyOptions& options);

}  // namespace lunaria
