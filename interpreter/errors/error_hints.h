// Additions to the message of an error that ends a program: the variable that has no value, and the Lunaria form of a
// habit from another language or framework (lua/lunaria/help/hints.lua).
#pragma once

#include <lua.hpp>
#include <string>

namespace lunaria {

// The message with its hint. Called where the error's frames are still there, in its message handler.
std::string with_hint(lua_State* L, std::string message);

}  // namespace lunaria
