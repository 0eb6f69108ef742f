// string.find, match, gmatch, gsub and rep: the same functions of Lua's manual (6.4.1) with a matcher and a loop of our
// own, which a pattern that tries too much, or a string of gigabytes, does not keep from being interrupted. Lua's are C
// code without a place to look up from.
#pragma once

#include <lua.hpp>

namespace lunaria {

// Puts them into the table `string`.
void install_patterns(lua_State* L);

}  // namespace lunaria
