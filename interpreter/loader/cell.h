// A cell: text typed at a prompt or in a notebook's box. A chunk of Lua whose last expression may come without
// `return`.
#pragma once

#include <string>
#include <string_view>

namespace lunaria {

struct Cell {
    std::string chunk;    // Lua text; returns the values to be shown. Lines are numbered as in the cell
    bool silent = false;  // a `;` at the end: nothing is to be shown
};

// The prefix of the last expression of a chunk. The variable to be closed keeps Lua from making a tail call of it,
// which would drop the cell from tracebacks and the place from messages.
inline constexpr const char* kShowPrefix = "local __cell <close> = nil return ";

// The mark between the text that %timeit puts around the code and the code (lua/lunaria/commands.lua).
inline constexpr std::string_view kMeasuredMark = "--[[measured]] ";

// A line of a chunk as its user typed it, without additions of the session.
std::string as_typed(std::string line);

// Throws lua::SyntaxError, with the place in the cell as typed; `name` is the cell's name in messages.
Cell prepare_cell(const std::string& text, const std::string& name);

}  // namespace lunaria
