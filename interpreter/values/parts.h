// Tables of the library whose names are in many files, such as ms.nn: a file is loaded when one of its names is first
// used (lua/lunaria/parts.lua).
#pragma once

#include <lua.hpp>

namespace lunaria {

// The module behind lunaria/parts.lua.
int open_parts(lua_State* L);
// Makes such a table load all of its names, which then are its fields; false for other tables.
bool load_parts(lua_State* L, int table);

}  // namespace lunaria
