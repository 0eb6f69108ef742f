// Values as a terminal shows them: plots in colours and as wide as the window, the rest as pretty does it.
#pragma once

#include <lua.hpp>
#include <string>

#include "interpreter/display/pretty.h"

namespace lunaria {

struct TerminalSize {
    int columns = 80, rows = 24;
};
// Of the terminal that standard output is; these numbers when it is none.
TerminalSize terminal_size();

// What a metamethod __terminal(value, {width, height, color, sixel}) says, if there is one and standard output is a
// terminal, else pretty. Raises no error.
std::string shown_text(lua_State* L, int index, const PrettyOptions& options);

}  // namespace lunaria
