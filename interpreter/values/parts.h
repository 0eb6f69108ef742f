// Tables of the library whose names lie in many files, such as ms.nn: a file is loaded when one of its names is first
// used (lua/lunaria/parts.lua).
#pragma once

#include <lua.hpp>

namespace lunaria {

// The module behind lunaria/parts.lua.
int open_parts(lua_State* L);
// Has a table of that kind load all of its names, which are fields of it then; false where it is no such table.
bool load_parts(lua_State* L, int table);

}  // namespace lunaria
