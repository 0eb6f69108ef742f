// string.find, match, gmatch, gsub and rep: the functions of Lua's manual (6.4.1), with a matcher and a loop of our
// own, so that an interrupt stops a pattern that tries too much, or a string of gigabytes. Lua's own are C code that
// never checks for an interrupt.
#pragma once

#include <lua.hpp>

namespace lunaria {

// Puts them into the table `string`.
void install_patterns(lua_State* L);

}  // namespace lunaria
