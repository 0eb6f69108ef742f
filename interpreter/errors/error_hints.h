// What an error that ends a program is told beside its own words: which variable has no value, and what to write
// instead of a habit of another language or framework (lua/lunaria/help/hints.lua).
#pragma once

#include <lua.hpp>
#include <string>

namespace lunaria {

// The message with what can be added to it. Called where the error's frames are still there, in its message handler.
std::string with_hint(lua_State* L, std::string message);

}  // namespace lunaria
