// table.sort, concat and move: the same functions of Lua's manual (6.6) with loops of our own that look at an
// interrupt. Lua's are C code without a place to look up from, and millions of elements keep them busy for seconds.
// (insert and remove stay Lua's: what is half moved up or down would be lost.)
#pragma once

#include <lua.hpp>

namespace lunaria {

// Puts them into the table `table`.
void install_table_functions(lua_State* L);

}  // namespace lunaria
