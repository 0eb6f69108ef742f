// The functions of jit/saving/library_functions.h in Lua.
#pragma once

#include <lua.hpp>

#include "jit/saving/library_functions.h"

namespace lunaria {

// Pushes the library's present function, or nil. `name`: "name" or "table.name". `load`: a module of Lunaria that was
// not required yet is required.
void push_library_function(lua_State* L, const LibraryFunction& row, std::string_view name, bool load = false);

}  // namespace lunaria
