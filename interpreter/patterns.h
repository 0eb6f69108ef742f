// string.find, match, gmatch and gsub: the same functions of Lua's manual (6.4.1) with a matcher of our own, which a
// pattern that tries too much does not keep from being interrupted. Lua's is C code without a place to look up from.
#pragma once

#include <lua.hpp>

namespace lunaria {

// Puts them into the table `string`.
void install_patterns(lua_State* L);

}  // namespace lunaria
