// The meaning of a name, for help, `?name` and the notebook's tooltips.
#pragma once

#include <string>
#include <string_view>

#include "interpreter/state.h"

namespace lunaria {

struct Inspection {
    bool found = false;
    std::string text;      // for a terminal
    std::string markdown;  // for a notebook
};

// The parameters of a function, "function(a, b)", where they are known.
std::string signature_text(lua_State* L, int index);

// The name at the cursor, or the function whose arguments the cursor is in. Level 1 adds the source of Lua functions.
Inspection inspect(State& state, const std::string& text, size_t cursor, int level = 0);

// The value at `index` of L; `name` is the user's name for it and may be empty.
Inspection inspect_value(lua_State* L, int index, std::string_view name, int level = 0);

}  // namespace lunaria
