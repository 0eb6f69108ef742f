// table.sort, concat and move: the functions of Lua's manual (6.6), with loops of our own that check for an interrupt.
// Lua's own are C code that never does, and millions of elements keep them busy for seconds. (insert and remove stay
// Lua's: an interrupt in the middle of moving elements would lose some.)
#pragma once

#include <lua.hpp>

namespace lunaria {

// Puts them into the table `table`.
void install_table_functions(lua_State* L);

}  // namespace lunaria
